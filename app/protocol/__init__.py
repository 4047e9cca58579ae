"""The MCP side: with the demo server, the only code that imports the MCP SDK."""
