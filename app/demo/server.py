"""The built-in demo server, "Nordwind Travel Desk": a real MCP server with something of every kind to inspect.

The entry point, and the two ways to serve: `python -m app.demo.server` speaks stdio, `--http --port N` speaks
streamable HTTP on loopback. It is a separate program: it imports nothing else of Parley and knows nothing of the
inspector that looks at it. Built on the low-level `Server`, so that every request and every result on the wire is in
our own hands. The other modules of this package say what it offers; `state.py` is what they share.
"""
# ruff: noqa: E402 - the signal handlers stand before the import of the SDK, see there

import argparse
import gc
import os
import signal
import socket
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from types import FrameType


def leave(signal_number: int, frame: FrameType | None) -> None:
    """End at once: the SDK's stdin reader waits in a thread that no cancellation reaches, and nothing needs saving."""
    os._exit(0)


if __name__ == "__main__":  # before the SDK, whose import takes long enough for somebody to press Ctrl-C
    gc.disable()  # and which makes only objects that stay: no use looking for garbage, neither now nor at the end
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning

from app.demo import asking_tools, plain_tools, prompts, resources, scenes, tasks_2025, tasks_2026
from app.demo.data import base64, picture
from app.demo.rounds import in_rounds
from app.demo.state import Context, Desk, open_desk, say
from app.demo.tools import Toolbox

DEFAULT_PORT = 6281
TOOLS = Toolbox(
    {**plain_tools.TOOLS, **asking_tools.TOOLS, **scenes.TOOLS, **tasks_2026.TOOLS, **tasks_2025.TOOLS},
)

INSTRUCTIONS = """\
You are talking to the Nordwind Travel Desk, a demo server: every place and every ferry in it is invented.
Start with `echo` and `add`. `slow_count` reports progress and can be cancelled, `postcard` returns media,
`timetable` returns as much JSON as you like, and `plan_trip` has the long form. `advance_board` changes the
resource desk://board and tells everybody who subscribed to it. `tool_error` and `protocol_error` fail on purpose.
The desk also asks back: `preferences` with a form, `sign_in` with a link, `write_caption` by sampling, each plainly or
as a task; `book_ferry` in two rounds; `voyage` takes its time and may become a task of yours; `charter` runs
as a task of 2025-11-25; `parade` asks everything there is."""


async def set_log_level(context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    context.lifespan_context.visitor(context).log_level = params.level
    return types.EmptyResult()


def build_server() -> Server[Desk]:
    """The demo server, ready to be run on any pair of streams."""
    bus = InMemorySubscriptionBus()
    server = Server[Desk](
        "nordwind-travel-desk",
        version="1.0.0",
        title="Nordwind Travel Desk",
        description="The demo server that comes with Parley.",
        instructions=INSTRUCTIONS,
        icons=[
            types.Icon(
                src="data:image/png;base64," + base64(picture("kestrelholm", 48, 48)),
                mime_type="image/png",
                sizes=["48x48"],
            )
        ],
        lifespan=partial(open_desk, bus=bus),
        on_list_tools=TOOLS.list_tools,
        on_call_tool=in_rounds(TOOLS.call_tool),
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=in_rounds(resources.read_resource),
        on_subscribe_resource=resources.subscribe,
        on_unsubscribe_resource=resources.unsubscribe,
        on_list_prompts=prompts.list_prompts,
        on_get_prompt=in_rounds(prompts.get_prompt),
        on_subscriptions_listen=ListenHandler(bus),
        cache_hints={"tools/list": CacheHint(60_000, "public"), "prompts/list": CacheHint(60_000, "public")},
        on_completion=prompts.complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_log_level)
    server.extensions[tasks_2026.EXTENSION] = {}
    server.add_request_handler("tasks/get", tasks_2026.TaskParams, tasks_2026.get)
    server.add_request_handler("tasks/update", tasks_2026.UpdateParams, tasks_2026.update)
    server.add_request_handler("tasks/cancel", tasks_2026.TaskParams, tasks_2026.cancel)
    server.middleware.append(tasks_2025.run_tasks)
    return server


async def serve_stdio() -> None:
    """Serve one connection on stdin and stdout until stdin closes."""
    server = build_server()
    say("The Nordwind Travel Desk is open on stdio. Close stdin or press Ctrl-C to go home.")
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


async def serve_http(listener: socket.socket) -> None:
    """Serve any number of connections over streamable HTTP until a signal comes."""
    import uvicorn

    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    app = build_server().streamable_http_app()
    config = uvicorn.Config(app, log_level="critical", access_log=False, ws="none", timeout_graceful_shutdown=1)
    say(f"The Nordwind Travel Desk is open at {url} - press Ctrl-C to close it.")
    sys.stdout.write(url + "\n")
    sys.stdout.flush()
    await uvicorn.Server(config).serve(sockets=[listener])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo server as the command line says and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m app.demo.server", description="The demo MCP server of Parley.")
    parser.add_argument("--http", action="store_true", help="serve streamable HTTP on loopback instead of stdio")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="for --http; 0 takes any free port")
    options = parser.parse_args(arguments)
    # Logging, roots and sampling are deprecated since 2026-07-28, and exactly what people come to see here.
    warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
    if options.http:
        try:
            listener = socket.create_server(("127.0.0.1", options.port))
            # Inherited by every connection: asyncio does not know this socket for TCP, and would leave Nagle on.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, OverflowError) as error:
            say(f"Port {options.port} cannot be used: {error}.")
            return 1
        anyio.run(serve_http, listener)
        return 0
    try:
        anyio.run(serve_stdio)
    except* BrokenPipeError:
        say("Nobody reads stdout any more; going home.")
    return 0


if __name__ == "__main__":
    gc.freeze()
    gc.enable()
    sys.exit(main())
