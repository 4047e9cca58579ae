"""A small server on the previous SDK, mcp 1.30. Started in a virtual environment of its own, never imported."""

from typing import TypedDict

from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("previous", instructions="A server on the previous SDK.")


class Sum(TypedDict):
    sum: float


@server.tool()
def echo(message: str) -> str:
    """Says back what you said."""
    return message


@server.tool()
def add(a: float, b: float) -> Sum:
    """Adds two numbers, with structured output."""
    return {"sum": a + b}


@server.tool()
async def count(steps: int, ctx: Context) -> str:
    """Reports progress and a log message for each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
        await ctx.info(f"step {step}")
    return f"counted {steps}"


@server.tool()
async def roots(ctx: Context) -> list[str]:
    """Asks the client for its roots."""
    return [str(root.uri) for root in (await ctx.session.list_roots()).roots]


if __name__ == "__main__":
    server.run("stdio")
