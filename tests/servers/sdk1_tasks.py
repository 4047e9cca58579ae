"""A server on the previous SDK, mcp 1.30, that asks its client as a task: `sdk1_tasks.py [http or sse]`, else stdio.

Every tool returns, as JSON text, what the SDK made of the client's `tasks/result`, or the error it got.
"""

import json
import sys

from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from mcp.shared.exceptions import McpError

server = FastMCP("previous-tasks")
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Full name"},
        "bags": {"type": "integer", "title": "Bags", "minimum": 0},
        "window": {"type": "boolean", "title": "Window seat", "default": False},
    },
    "required": ["name"],
}
MESSAGES = [types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Say something."))]


async def told(asking):
    """What became of it."""
    try:
        result = await asking
    except McpError as error:
        return json.dumps({"error": error.error.model_dump(exclude_none=True)})
    return result.model_dump_json(by_alias=True, exclude_none=True)


@server.tool()
def echo(message: str) -> str:
    """Says back what you said."""
    return message


@server.tool()
async def elicit(ctx: Context) -> str:
    """Asks with a plain form."""
    return await told(ctx.session.elicit("Which traveller?", SCHEMA, ctx.request_id))


@server.tool()
async def elicit_as_task(ctx: Context, ttl: int = 60000) -> str:
    """Asks with a form, as a task."""
    return await told(ctx.session.experimental.elicit_as_task("Which traveller?", SCHEMA, ttl=ttl))


@server.tool()
async def sample(ctx: Context) -> str:
    """Asks for a text, plainly."""
    return await told(ctx.session.create_message(MESSAGES, max_tokens=50, related_request_id=ctx.request_id))


@server.tool()
async def sample_as_task(ctx: Context, ttl: int = 60000) -> str:
    """Asks for a text, as a task."""
    return await told(ctx.session.experimental.create_message_as_task(MESSAGES, max_tokens=50, ttl=ttl))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        from web_record import serve

        serve(server.sse_app() if sys.argv[1] == "sse" else server.streamable_http_app())
    else:
        server.run("stdio")
