"""A streamable HTTP server that offers nothing: it shakes hands, holds the GET stream open, and has no lists.

Started as `python -I -S bare.py`; on the standard library only. Prints its address.
"""

import asyncio
import itertools
import json

SESSIONS = itertools.count(1)


def answer(status, headers="", body=b"", length=True):
    size = f"Content-Length: {len(body)}\r\n" if length else ""
    return f"HTTP/1.1 {status}\r\n{headers}{size}\r\n".encode() + body


def initialized(request):
    result = {
        "protocolVersion": request["params"]["protocolVersion"],
        "capabilities": {},
        "serverInfo": {"name": "bare", "version": "1.0"},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()
    return answer("200 OK", f"Content-Type: application/json\r\nMcp-Session-Id: {next(SESSIONS)}\r\n", body)


def unknown(request):
    error = {"code": -32601, "message": "Method not found"}
    body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()
    return answer("200 OK", "Content-Type: application/json\r\n", body)


async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            size = int(head.split("content-length:")[1].split("\r\n")[0]) if "content-length:" in head else 0
            body = await reader.readexactly(size)
            if head.startswith("get "):
                writer.write(answer("200 OK", "Content-Type: text/event-stream\r\n", length=False))
                await reader.read()  # until they leave
                return
            message = json.loads(body) if body else {}
            if message.get("method") == "initialize":
                writer.write(initialized(message))
            else:
                writer.write(unknown(message) if "id" in message else answer("202 Accepted"))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", flush=True)
    await server.serve_forever()


asyncio.run(main())
