"""A small server as it was written once: on whichever old SDK its virtual environment has. Started, never imported."""

try:
    from fastmcp import FastMCP
except ImportError:
    from mcp.server.fastmcp import FastMCP

server = FastMCP("old")


@server.tool()
def echo(message: str) -> str:
    """Says back what you said."""
    return message


@server.resource("old://readme")
def readme() -> str:
    """Something to read."""
    return "An old server."


@server.prompt()
def greet(name: str) -> str:
    """Something to say."""
    return f"Greet {name}."


if __name__ == "__main__":
    server.run("stdio")
