"""A server on FastMCP with extension tasks (2026-07-28): `tables.py` over stdio, `tables.py http` over HTTP.

Over HTTP it prints its port on the first line. `book_table` asks for a time as a task; `crunch` is a task without asks;
`echo` is a plain tool.
"""

import os
import socket
import sys
from datetime import timedelta

import anyio
import mcp_types
import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension

os.environ.setdefault("FASTMCP_SHOW_SERVER_BANNER", "false")
QUICK = TaskConfig(mode="optional", poll_interval=timedelta(milliseconds=200))
server = FastMCP("tables")
server.add_extension(TasksExtension(url="memory://"))

ASK = mcp_types.ElicitRequest(
    params=mcp_types.ElicitRequestFormParams(
        message="When do you want to come?",
        requested_schema={
            "type": "object",
            "properties": {"time": {"type": "string"}, "people": {"type": "integer", "minimum": 1}},
            "required": ["time"],
        },
    )
)


@server.tool(task=QUICK)
async def book_table(name: str, ctx: Context) -> str | mcp_types.InputRequiredResult:
    """Books a table, once it knows when."""
    said = (ctx.input_responses or {}).get("when")
    if said is None:
        return mcp_types.InputRequiredResult(input_requests={"when": ASK}, request_state="asked-when")
    return f"{name}: {said.action} {said.content}"


@server.tool(task=QUICK)
async def crunch(seconds: float = 0.2) -> str:
    """Takes a while."""
    await anyio.sleep(seconds)
    return "crunched"


@server.tool
async def echo(message: str) -> str:
    """Says back what you said."""
    return message


if __name__ == "__main__":
    if "http" in sys.argv[1:]:
        listening = socket.create_server(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(server.http_app(path="/mcp"), log_level="warning")
        uvicorn.Server(config).run(sockets=[listening])
    else:
        server.run(transport="stdio", show_banner=False)
