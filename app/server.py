"""Running the application: sockets, uvicorn with every limit set, signals, and the process's own log.

The order at the end is what makes Ctrl-C quick: first every stream is told `bye`, so that uvicorn has nobody to wait
for; then all children end at the same time; then the last requests. A second signal kills the children and leaves.

Connections are taken in here rather than by asyncio, which tries a thousand times in a row when no file is left, and
writes a traceback each time. Whoever says nothing has to make room for whoever comes (H06).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal

import anyio
import h11
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from app import process
from app.core.links import is_loopback
from app.settings import Limits, Settings
from app.web.app import end_everything
from app.web.door.guard import SECURITY_HEADERS

_CHILDREN_SECONDS = 4.0
_REQUESTS_SECONDS = 1
_AT_ONCE = 16
"""Connections taken in before others get their turn."""
_NO_FILES_SECONDS = 0.5
"""How long nobody is taken in after the system said that it has no room."""
_FULL_SECONDS = 0.1
"""How long nobody is taken in when we have no room. Who comes meanwhile waits at the door, which holds a thousand."""
_HEARING_SECONDS = 0.25
"""How long a connection is not taken for silent: what it said may be on its way."""
_REAP_TICKS = 50
"""uvicorn ticks ten times a second."""


logger = logging.getLogger("parley.serve")


class CannotListen(Exception):
    """The address cannot be had. Says why in one sentence."""


def bind(settings: Settings) -> list[socket.socket]:
    """The sockets to listen on: 127.0.0.1 and, where it is to be had, ::1 with the same port."""
    both = settings.host in {"127.0.0.1", "localhost"}
    first = "127.0.0.1" if both else settings.host
    try:
        sockets = [bind_to(first, settings.port)]
    except OSError as fault:
        raise CannotListen(why(fault, first, settings.port)) from fault
    if both:
        # No IPv6 here, or somebody else has it: no harm, the address we print is the other one.
        with suppress(OSError):
            sockets.append(bind_to("::1", sockets[0].getsockname()[1]))
    return sockets


def bind_to(host: str, port: int) -> socket.socket:
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


def why(fault: OSError, host: str, port: int) -> str:
    if fault.errno == errno.EADDRINUSE:
        return f"port {port} is taken; stop what listens there, or choose another with --port (0 takes any free one)"
    if fault.errno in {errno.EACCES, errno.EPERM}:
        return f"this user may not listen on port {port}; choose one above 1023 with --port"
    return f"cannot listen on {host}, port {port}: {fault.strerror or fault}"


_HEAD_BYTES = 256 * 1024
"""The head of a request. Other programs on this host may set cookies for it, and the browser sends us all of them."""
_NOT_UNDERSTOOD = b"""That is not a request that Parley understands.
If a browser sent it, another page may have set very large cookies for this host: delete them, then open Parley again.
"""


class Protocol(H11Protocol):
    """uvicorn's, which knows how long it has been waiting for its peer; and with our headers on the one answer that
    never reaches the application: to what is not HTTP. A request that wants to become something else, such as a
    WebSocket, is answered as the request it is."""

    def __init__(self, config: uvicorn.Config, server_state: Any, app_state: dict[str, Any], limits: Limits) -> None:
        super().__init__(config, server_state, app_state)
        self._limits = limits
        self.heard = self._since = self.loop.time()
        self._got = 0
        """Bytes of the head or body that is arriving since `_since`."""
        self._unsent, self._unsent_since = 0, self._since

    @property
    def waits(self) -> bool:
        """Whether it is open, and nobody's request is being answered on it."""
        return not self.transport.is_closing() and (not self.served or self.cycle.response_complete)

    @property
    def served(self) -> bool:
        """Whether it ever brought a request."""
        return self.cycle is not None

    def data_received(self, data: bytes) -> None:
        self.heard = self.loop.time()
        phase = self.conn.their_state
        if phase is h11.IDLE and not self._got:
            self._since = self.heard
        super().data_received(data)
        if self.conn.their_state is phase:
            self._got += len(data)
        else:
            self._since, self._got = self.heard, 0

    def on_response_complete(self) -> None:
        self._since, self._got = self.loop.time(), 0
        super().on_response_complete()

    def overdue(self, now: float) -> bool:
        """Whether its peer has taken too long: to send a head or a body, or to take what was sent to it."""
        limits = self._limits
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        elif now - self._unsent_since > limits.unread_seconds:
            return True
        waited = now - self._since
        if self.conn.their_state is h11.IDLE:
            # After an answer and before the next first byte, the time between two requests counts: uvicorn's timer.
            return waited > limits.head_seconds and (self._got > 0 or not self.served)
        if self.conn.their_state is h11.SEND_BODY:
            return waited > limits.body_seconds + self._got / limits.body_bytes_per_second
        return False

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: uvicorn would write two lines for every one of them, and anybody can send them (M13)."""

    def send_400_response(self, msg: str) -> None:
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close"), *SECURITY_HEADERS.items()]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=_NOT_UNDERSTOOD),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def configured(app: ASGIApp, limits: Limits, lifespan: Literal["on", "off"]) -> uvicorn.Config:
    """uvicorn with every limit set."""
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=Protocol,
        ws="none",
        interface="asgi3",
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=limits.keep_alive_seconds,
        timeout_graceful_shutdown=_REQUESTS_SECONDS,
        h11_max_incomplete_event_size=_HEAD_BYTES,
    )


class Server(uvicorn.Server):
    """uvicorn, with our beginning and our end."""

    def __init__(self, app: Starlette, settings: Settings, listening: Callable[[], Awaitable[None]]) -> None:
        self._app = app
        self._limits = settings.limits
        self._listening = listening
        self._children: list[int] = []
        self._arriving: set[asyncio.Task[Any]] = set()
        self._most = self._limits.connections
        self.broken = False
        super().__init__(configured(self._answer, self._limits, "on"))

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        files = process.raise_file_limit(self._limits.open_files)
        self._most = min(self._limits.connections, files // 2)
        process.adopt_orphans()
        super().run(sockets)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application; in words who comes too much, while there is still room for words."""
        if scope["type"] == "http" and len(self.server_state.tasks) > self._most - self._most // 16:
            logger.warning("a request was refused: %d are being answered", len(self.server_state.tasks))
            words = "Parley is busy with too many requests at once. Try again in a moment.\n"
            headers = {**SECURITY_HEADERS, "retry-after": "1", "connection": "close"}
            await PlainTextResponse(words, 503, headers)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn is given nothing to listen on: that is done here.
        await super().startup([])
        if self.started:
            for sock in sockets or ():
                self._listen(sock)
            await self._listening()

    async def on_tick(self, counter: int) -> bool:
        """When what lives as long as the process has died, the process has nothing left to serve."""
        if self.lifespan.error_occurred:
            self.broken = self.should_exit = True
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in self._connections():
                if connection.overdue(now):
                    connection.transport.abort()
            brake.tick()
        if counter % _REAP_TICKS == 0:
            process.reap()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for sock in sockets or ():
            asyncio.get_running_loop().remove_reader(sock)
        with anyio.move_on_after(_CHILDREN_SECONDS):
            await end_everything(self._app)
        await super().shutdown(sockets)
        process.kill_descendants()
        brake.tick(last=True)

    # ---- connections

    def _connections(self) -> list[Protocol]:
        return [one for one in self.server_state.connections if isinstance(one, Protocol)]

    def _listen(self, sock: socket.socket) -> None:
        if not self.should_exit:
            asyncio.get_running_loop().add_reader(sock, self._accept, sock)

    def _accept(self, sock: socket.socket) -> None:
        """Take in who waits at the door, as far as there is room."""
        loop = asyncio.get_running_loop()
        room = self._room_of(sock)
        for _ in range(min(room, _AT_ONCE)):
            try:
                connection, _ = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as fault:
                logger.warning("no connection can be taken in for a moment: %s", fault.strerror)
                self._drop_silent()
                self._pause(sock, _NO_FILES_SECONDS)
                return
            connection.setblocking(False)
            task = loop.create_task(loop.connect_accepted_socket(self._protocol_of(sock), connection))
            self._arriving.add(task)
            task.add_done_callback(self._arrived)
        if room <= 0:
            self._pause(sock, _FULL_SECONDS)

    def _pause(self, sock: socket.socket, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(sock)
        loop.call_later(seconds, self._listen, sock)

    def _protocol_of(self, sock: socket.socket) -> Callable[[], Protocol]:
        """What speaks to whoever came in there."""
        return self._protocol

    def _room_of(self, sock: socket.socket) -> int:
        """How many may come in there now."""
        return self._make_room()

    def _protocol(self) -> Protocol:
        return Protocol(self.config, self.server_state, self.lifespan.state, self._limits)

    def _arrived(self, task: asyncio.Task[Any]) -> None:
        self._arriving.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.warning("a connection could not be taken in", exc_info=task.exception())

    def _make_room(self) -> int:
        """How many connections may come now. When few, those that say nothing leave."""
        free = self._most - len(self.server_state.connections) - len(self._arriving)
        return free if free > self._most // 8 else free + self._drop_silent()

    def _drop_silent(self) -> int:
        """Close connections on which nobody waits for an answer, and say how many: first those that never brought a
        request, the longest silent before the others."""
        lately = asyncio.get_running_loop().time() - _HEARING_SECONDS
        silent = [one for one in self._connections() if one.waits and one.heard < lately]
        leaving = sorted(silent, key=lambda one: (one.served, one.heard))[: self._most // 4]
        for connection in leaving:
            connection.transport.abort()
        return len(leaving)

    # ---- signals

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As Ctrl-C: also a terminal that is closed, and Ctrl-\\. What is ignored from the start, as under nohup, stays
        ignored."""
        wanted = [one for one in (signal.SIGHUP, signal.SIGQUIT) if signal.getsignal(one) is not signal.SIG_IGN]
        before = {one: signal.signal(one, self.handle_exit) for one in wanted}
        try:
            with super().capture_signals():
                yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGHUP:
            return  # A terminal that closes says so twice, by its shell and by the system.
        if self.should_exit:
            # Each child leads a process group of its own. Nobody waits any more, so nothing is asked for politely.
            for pid in self._children:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
            process.kill_descendants()
            os._exit(1)
        if self._app.state.loaded.is_set():
            sessions = self._app.state.registry.everybodys()
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


@dataclass(slots=True)
class _Kind:
    """Lines of one kind within one minute."""

    began: float
    said: int = 0
    held: int = 0


class Brake(logging.Filter):
    """Holds lines back that repeat, and all of them when there are too many; says once a minute how many there were.

    Lines are of one kind when they have the same template. What was started for whom (R5-73) is never held back."""

    KINDS = 200

    def __init__(self) -> None:
        super().__init__()
        self.limits = Limits()
        self._kinds: dict[tuple[str, str], _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name in {"parley.spawn", "parley.brake"}:
            return True
        kind = record.name, str(record.msg)[:200]
        if kind not in self._kinds and len(self._kinds) >= self.KINDS:
            kind = "", "lines of other kinds"
        one = self._count(kind, self.limits.log_repeats_per_minute)
        return one and self._count(("", "lines of all kinds"), self.limits.log_lines_per_minute)

    def _count(self, key: tuple[str, str], most: int) -> bool:
        kind = self._kinds.setdefault(key, _Kind(time.monotonic()))
        if kind.said < most:
            kind.said += 1
            return True
        kind.held += 1
        return False

    def tick(self, *, last: bool = False) -> None:
        """End the minutes that are over, with a line for each that had to be held back."""
        now = time.monotonic()
        for key, kind in list(self._kinds.items()):
            if last or now - kind.began >= 60:
                del self._kinds[key]
                if kind.held:
                    what = ": ".join(filter(None, key))
                    logging.getLogger("parley.brake").warning("… repeated %s times: %s", f"{kind.held:,}", what)


brake = Brake()


def set_up_log(limits: Limits | None = None, formatter: logging.Formatter | None = None) -> None:
    """Warnings of everybody and the notes of our own, on standard error, repeated lines braked."""
    brake.limits = limits or brake.limits
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(brake)
    lines = _Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
    handler.setFormatter(formatter or lines)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("parley").setLevel(logging.INFO)
