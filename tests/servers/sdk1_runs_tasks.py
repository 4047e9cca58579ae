"""A server on the previous SDK, mcp 1.30, that runs its tools as tasks: `sdk1_runs_tasks.py [http or sse]`, else stdio.

`book` may be a task, and asks for a name in the middle; `ferry` is one always, and fails on demand; `echo` never is.
"""

import sys
from contextlib import asynccontextmanager

import anyio
import mcp.types as types
from mcp.server.lowlevel import Server

server = Server("previous-tasks")
server.experimental.enable_tasks()
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def text(said, error=False):
    return types.CallToolResult(content=[types.TextContent(type="text", text=said)], isError=error)


@server.list_tools()
async def list_tools():
    empty = {"type": "object"}
    return [
        types.Tool(name="book", inputSchema=empty, execution=types.ToolExecution(taskSupport="optional")),
        types.Tool(name="ferry", inputSchema=empty, execution=types.ToolExecution(taskSupport="required")),
        types.Tool(name="echo", inputSchema=empty),
    ]


async def book(task):
    await task.update_status("Looking for a seat")
    answer = await task.elicit("Which traveller?", SCHEMA)
    name = (answer.content or {}).get("name") if answer.action == "accept" else answer.action
    return text(f"Booked for {name}")


async def ferry(task):
    await anyio.sleep(0.05)
    return text("The Dorothea is fully booked", error=True)


async def forever(task):
    await anyio.sleep_forever()


@server.call_tool()
async def call_tool(name, arguments):
    context = server.request_context.experimental
    if name == "echo":
        return text(str(arguments.get("message")))
    if name == "book" and not context.is_task:
        return text("Booked plainly")
    context.validate_task_mode("required" if name == "ferry" else "optional")
    work = book if name == "book" else forever if arguments.get("forever") else ferry
    return await context.run_task(work, model_immediate_response="We are on it.")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "sse":
        from mcp.server.sse import SseServerTransport
        from starlette.applications import Starlette
        from starlette.responses import Response
        from starlette.routing import Mount, Route
        from web_record import serve

        older = SseServerTransport("/messages/")

        async def stream(request):
            async with older.connect_sse(request.scope, request.receive, request._send) as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())
            return Response()

        serve(Starlette(routes=[Route("/sse", stream), Mount("/messages/", older.handle_post_message)]))
    elif len(sys.argv) > 1:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from starlette.applications import Starlette
        from starlette.routing import Mount
        from web_record import serve

        manager = StreamableHTTPSessionManager(server)

        @asynccontextmanager
        async def lifespan(app):
            async with manager.run():
                yield

        async def mcp(scope, receive, send):
            await manager.handle_request(scope, receive, send)

        serve(Starlette(routes=[Mount("/mcp", mcp)], lifespan=lifespan))
    else:
        from mcp.server.stdio import stdio_server

        async def main():
            async with stdio_server() as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())

        anyio.run(main)
