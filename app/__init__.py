"""Parley: a browser-based MCP inspector that answers back."""

__version__ = "0.1.0"
