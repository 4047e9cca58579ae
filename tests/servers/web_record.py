"""Serves an ASGI application on a free port of loopback, prints the port, and keeps its own record of what crossed.

Used by the servers on both SDKs; knows nothing of MCP. The record has the shape of raw_http.py's.
"""

import base64
import json
import os
import socket
import sys
import time

import uvicorn


class Record:
    """An ASGI application around another: every request body, every response body or event data, exactly."""

    def __init__(self, app, path):
        self._app = app
        self._file = None if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, **entry):
        if self._file is not None:
            os.write(self._file, json.dumps({"at": time.monotonic(), **entry}).encode() + b"\n")

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        taken, kind = [], b""
        query = "?" + scope["query_string"].decode() if scope["query_string"] else ""
        headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in scope["headers"]]

        def noted(body):
            encoded = base64.b64encode(body).decode()
            self.note(io="<", method=scope["method"], path=scope["path"] + query, headers=headers, body=encoded)

        async def receiving():
            message = await receive()
            if message["type"] == "http.request":
                taken.append(message.get("body", b""))
                if not message.get("more_body") and scope["method"] == "POST":
                    noted(b"".join(taken))
            return message

        async def sending(message):
            nonlocal kind
            if message["type"] == "http.response.start":
                kind = dict(message["headers"]).get(b"content-type", b"")
            elif message.get("body"):
                for raw in _frames(kind, message["body"]):
                    self.note(io=">", body=base64.b64encode(raw).decode())
            await send(message)

        if scope["method"] != "POST":
            noted(b"")
        await self._app(scope, receiving, sending)


def _frames(kind, body):
    if kind.startswith(b"application/json"):
        yield body
    elif kind.startswith(b"text/event-stream"):
        for block in body.replace(b"\r\n", b"\n").split(b"\n\n"):
            lines = block.split(b"\n")
            data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
            if any(data) and b"event: endpoint" not in lines:
                yield b"\n".join(data)


def serve(app):
    """Until somebody ends the process."""
    arguments = sys.argv
    record = arguments[arguments.index("--record") + 1] if "--record" in arguments else None
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(Record(app, record), log_level="warning", lifespan="on", timeout_graceful_shutdown=1)
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(config).run(sockets=[listener])
