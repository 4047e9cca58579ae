"""The built-in demo MCP server: a program of its own, which imports nothing else of Parley."""
