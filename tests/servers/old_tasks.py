"""A server on FastMCP 3.4 with a tool that runs as a task. Started in a virtual environment of its own."""

import anyio
from fastmcp import FastMCP

server = FastMCP("old tasks")


@server.tool(task=True)
async def slow(seconds: float) -> str:
    """Takes its time."""
    await anyio.sleep(seconds)
    return f"slept {seconds} s"


if __name__ == "__main__":
    server.run("stdio")
