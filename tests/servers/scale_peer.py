"""A server of streamable HTTP for tests of several machines, on asyncio alone: it asks, it counts what it is answered,
and it can say something to every connection some times a second.

    python scale_peer.py

It prints its port, and ends when its stdin closes. `/mcp?rate=5` is the server; `/state` says as JSON which questions
were asked, and every answer that came to each. The tool `ask` asks one and returns the answer; `echo` returns.
"""

import asyncio
import itertools
import json
import sys
import time
from urllib.parse import parse_qs, urlsplit

asked = {}
"""Every question: the answers that came, as they came."""
waiting = {}
numbers = itertools.count(1)
streams = set()
TOOLS = [
    {"name": "ask", "description": "Asks one thing", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "echo", "description": "Says hello", "inputSchema": {"type": "object", "properties": {}}},
]


def event(message):
    return f"event: message\ndata: {json.dumps(message)}\n\n".encode()


async def rest(seconds):
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, over.set)
    await over.wait()


async def chunk(writer, data):
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


def head(writer, status, headers, length=None):
    size = [f"content-length: {length}"] if length is not None else ["transfer-encoding: chunked"]
    writer.write("\r\n".join([f"HTTP/1.1 {status}", *headers, *size, "", ""]).encode())


async def reply(writer, value, status="200 OK", more=()):
    body = json.dumps(value).encode() if value is not None else b""
    head(writer, status, ["content-type: application/json", *more], len(body))
    writer.write(body)
    await writer.drain()


async def ask(writer, call):
    """A stream with the question, and once it is answered with the result."""
    key = f"q{next(numbers)}"
    asked[key], waiting[key] = [], asyncio.Event()
    head(writer, "200 OK", ["content-type: text/event-stream"])
    schema = {"type": "object", "properties": {"word": {"type": "string", "title": "A word"}}}
    question = {"message": f"Which word, {key}?", "requestedSchema": schema, "mode": "form"}
    await chunk(writer, event({"jsonrpc": "2.0", "id": key, "method": "elicitation/create", "params": question}))
    await waiting[key].wait()
    said = {"content": [{"type": "text", "text": json.dumps(asked[key])}]}
    await chunk(writer, event({"jsonrpc": "2.0", "id": call["id"], "result": said}))
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def stream(writer, rate):
    """What the server says by itself: some messages a second, each with the moment it left."""
    head(writer, "200 OK", ["content-type: text/event-stream"])
    await writer.drain()
    streams.add(writer)
    try:
        if not rate:
            await asyncio.Event().wait()
        await rest((next(numbers) % 97) / 97 / rate)  # not all at the same moment
        due = time.monotonic()
        while True:
            said = {"level": "info", "logger": "load", "data": f"t={time.monotonic():.6f}"}
            await chunk(writer, event({"jsonrpc": "2.0", "method": "notifications/message", "params": said}))
            due += 1 / rate
            await rest(max(0, due - time.monotonic()))
    finally:
        streams.discard(writer)


async def act(writer, message):
    if "method" not in message:
        if (key := message.get("id")) in asked:
            asked[key].append(message.get("result", message.get("error")))
            waiting[key].set()
        return await reply(writer, None, "202 Accepted")
    if "id" not in message:
        return await reply(writer, None, "202 Accepted")
    method, done = message["method"], {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        server = {"name": "scale", "version": "1"}
        can = {"tools": {}, "logging": {}}
        result = {"protocolVersion": "2025-06-18", "capabilities": can, "serverInfo": server}
        return await reply(writer, {**done, "result": result}, more=[f"mcp-session-id: s{next(numbers)}"])
    if method == "tools/list":
        return await reply(writer, {**done, "result": {"tools": TOOLS}})
    if method == "tools/call" and message["params"]["name"] == "ask":
        return await ask(writer, message)
    if method == "tools/call":
        return await reply(writer, {**done, "result": {"content": [{"type": "text", "text": "hello"}]}})
    if method in ("ping", "logging/setLevel"):
        return await reply(writer, {**done, "result": {}})
    return await reply(writer, {**done, "error": {"code": -32601, "message": "unknown method"}})


async def serve(reader, writer):
    try:
        while True:
            first = (await reader.readline()).decode()
            if not first:
                return
            headers = {}
            while (line := (await reader.readline()).decode().strip()) != "":
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            verb, path, _ = first.split(" ", 2)
            parts = urlsplit(path)
            if parts.path == "/state":
                await reply(writer, {"asked": asked, "streams": len(streams)})
            elif verb == "GET":
                await stream(writer, float(parse_qs(parts.query).get("rate", ["0"])[0]))
            elif verb == "POST":
                await act(writer, json.loads(body))
            else:
                await reply(writer, {})
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
