"""The domain: nouns, events, findings. Knows no MCP SDK, no HTTP, no HTML, no database."""
