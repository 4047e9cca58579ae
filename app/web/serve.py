"""Running the application: sockets, uvicorn with every limit set, signals, and the process's own log.

The order at the end is what makes Ctrl-C quick: first every stream is told `bye`, so that uvicorn has nobody to wait
for; then all children end at the same time; then the last requests. A second signal kills the children and leaves.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import FrameType

import anyio
import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.settings import Settings
from app.web.app import end_everything
from app.web.guard import SECURITY_HEADERS, is_loopback

_CHILDREN_SECONDS = 4.0
_REQUESTS_SECONDS = 1


class CannotListen(Exception):
    """The address cannot be had. Says why in one sentence."""


def bind(settings: Settings) -> list[socket.socket]:
    """The sockets to listen on: 127.0.0.1 and, where it is to be had, ::1 with the same port."""
    both = settings.host in {"127.0.0.1", "localhost"}
    first = "127.0.0.1" if both else settings.host
    try:
        sockets = [_bind(first, settings.port)]
    except OSError as fault:
        raise CannotListen(_why(fault, first, settings.port)) from fault
    if both:
        # No IPv6 here, or somebody else has it: no harm, the address we print is the other one.
        with suppress(OSError):
            sockets.append(_bind("::1", sockets[0].getsockname()[1]))
    return sockets


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio leaves Nagle's algorithm on, which costs every answer 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        # Two processes may bind the same address as long as neither listens: the second one must find out now.
        sock.listen(1024)
    except BaseException:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def _why(fault: OSError, host: str, port: int) -> str:
    if fault.errno == errno.EADDRINUSE:
        return f"port {port} is taken; stop what listens there, or choose another with --port (0 takes any free one)"
    if fault.errno in {errno.EACCES, errno.EPERM}:
        return f"this user may not listen on port {port}; choose one above 1023 with --port"
    return f"cannot listen on {host}, port {port}: {fault.strerror or fault}"


class _Protocol(H11Protocol):
    """uvicorn's, with our headers on the one answer that never reaches the application: to what is not HTTP."""

    def send_400_response(self, msg: str) -> None:
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close"), *SECURITY_HEADERS.items()]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=b"That is not a request that Parley understands.\n"),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class Server(uvicorn.Server):
    """uvicorn, with our beginning and our end."""

    def __init__(self, app: Starlette, settings: Settings, listening: Callable[[], Awaitable[None]]) -> None:
        self._app = app
        self._listening = listening
        self._children: list[int] = []
        self.broken = False
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=_Protocol,
                ws="none",
                interface="asgi3",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=True,
                limit_concurrency=settings.limits.streams + 200,
                backlog=1024,
                timeout_keep_alive=15,
                timeout_graceful_shutdown=_REQUESTS_SECONDS,
                h11_max_incomplete_event_size=64 * 1024,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            await self._listening()

    async def on_tick(self, counter: int) -> bool:
        """When what lives as long as the process has died, the process has nothing left to serve."""
        if self.lifespan.error_occurred:
            self.broken = self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        with anyio.move_on_after(_CHILDREN_SECONDS):
            await end_everything(self._app)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            # Each child leads a process group of its own. Nobody waits any more, so nothing is asked for politely.
            for pid in self._children:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
            os._exit(1)
        if self._app.state.loaded.is_set():
            from app.web.identity import LOCAL

            sessions = self._app.state.registry.of(LOCAL)
            self._children = [session.info.pid for session in sessions if session.info.pid is not None]
        self.should_exit = True


def url(settings: Settings) -> str:
    """Where people find us."""
    host = settings.host if is_loopback(settings.host) and settings.host != "localhost" else "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


# -------------------------------------------------------------------------------------------------------------- log

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def escaped(text: str) -> str:
    """Text for a log: one line, and nothing that a terminal would obey (S35)."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


class _Formatter(logging.Formatter):
    """One line a record; what belongs to it (a traceback) is indented, so that no text can pose as a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = escaped(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        text = super().formatException(ei)  # type: ignore[arg-type]
        return "\n".join("    " + escaped(line) for line in text.split("\n"))


def set_up_log() -> None:
    """Warnings of everybody and the notes of our own, on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("parley").setLevel(logging.INFO)
