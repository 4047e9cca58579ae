"""How tests drive peers over HTTP: start one as a process, know its address, and read its own record of the wire."""

import base64
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from app.core.targets import HttpTarget, StdioTarget
from app.core.wire import Exchange
from app.sessions import Session
from tests import peers
from tests.drive import SERVERS

CANARY = "canary-session-"
"""What every session id of the raw peer begins with, so that a test can look for it everywhere."""


@dataclass
class Request:
    """One HTTP request, as the peer saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    """Monotonic; the same clock in every process of this machine."""


@dataclass
class Peer:
    """A server that runs, and its record."""

    port: int
    record: Path | None = None
    process: subprocess.Popen[bytes] | None = None

    def url(self, path: str = "/mcp") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def target(self, path: str = "/mcp", transport: Literal["http", "sse"] = "http", **more: Any) -> HttpTarget:
        return HttpTarget(transport=transport, url=self.url(path), **more)

    def older(self, **more: Any) -> HttpTarget:
        return self.target("/sse", "sse", **more)

    def _entries(self, io: str) -> list[dict[str, Any]]:
        assert self.record is not None
        entries = [json.loads(line) for line in self.record.read_bytes().splitlines()]
        return [each for each in entries if each["io"] == io]

    def requests(self, method: str | None = None) -> list[Request]:
        """The HTTP requests it read, in order."""
        return [
            Request(each["method"], each["path"], dict(each["headers"]), base64.b64decode(each["body"]), each["at"])
            for each in self._entries("<")
            if method in (None, each["method"])
        ]

    def received(self, method: str | None = None) -> list[dict[str, Any]]:
        """The messages it read, all or of one method."""
        messages = [json.loads(each.body) for each in self.requests("POST")]
        return [each for each in messages if method is None or each.get("method") == method]

    def wrote(self) -> list[bytes]:
        """The messages it wrote: each body, and the data of each event."""
        return [base64.b64decode(each["body"]) for each in self._entries(">")]


def free_port() -> int:
    """One on which nobody listens at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def started(argv: list[str], env: dict[str, str] | None = None, record: Path | None = None) -> Iterator[Peer]:
    """A peer that prints its port on the first line, and is ended with the block."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield Peer(int(process.stdout.readline()), record, process)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@contextmanager
def raw_web(**settings: Any) -> Iterator[Peer]:
    """A tests/servers/raw_http.py with these settings; the record is kept."""
    with tempfile.TemporaryDirectory(prefix="parley-test-") as folder:
        record = Path(folder) / "record"
        record.touch()
        argv = [sys.executable, "-I", "-S", str(SERVERS / "raw_http.py"), "--record", str(record)]
        with started([*argv, "--with", json.dumps(settings)], record=record) as peer:
            yield peer


@asynccontextmanager
async def raw_peer(**settings: Any) -> AsyncIterator[Peer]:
    """The same, started and ended beside the loop, so that nobody's measurements feel it."""
    peer = raw_web(**settings)
    started = await anyio.to_thread.run_sync(peer.__enter__)
    try:
        yield started
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(peer.__exit__, None, None, None)


@contextmanager
def sdk_web(name: Literal["sdk1", "sdk2"], *arguments: str, record: Path | None = None) -> Iterator[Peer]:
    """A server on the previous or the current SDK, over HTTP."""
    python = peers.mcp1_python() if name == "sdk1" else sys.executable
    argv = [python, str(SERVERS / f"{name}_http.py"), *arguments]
    with started(argv if record is None else [*argv, "--record", str(record)], record=record) as peer:
        yield peer


@contextmanager
def everything_web(mode: Literal["http", "sse"]) -> Iterator[Peer]:
    """npm's server-everything. It takes its port from the environment, so ask the system for a free one first."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    argv = peers.everything_http() if mode == "http" else peers.everything_sse()
    env = {**os.environ, **peers.node_env(), "PORT": str(port)}
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if str(port).encode() in line:
                break
        yield Peer(port, None, process)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@contextmanager
def everything_by(transport: str) -> Iterator[StdioTarget | HttpTarget]:
    """The same by stdio, http or sse, as a target; ended with the block."""
    if transport == "stdio":
        argv = peers.everything_stdio()
        yield StdioTarget(command=argv[0], args=tuple(argv[1:]), env={"TERM": "dumb", **peers.node_env()})
        return
    with everything_web("http" if transport == "http" else "sse") as peer:
        yield peer.target() if transport == "http" else peer.older()


def stream_words(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a session is told of its GET stream from now on."""
    words: list[str] = []
    real = Session.stream_changed

    def heard(self: Session, said: str) -> None:
        words.append(said)
        real(self, said)

    monkeypatch.setattr(Session, "stream_changed", heard)
    return words


def http(status: str, headers: dict[str, str] | None = None, body: bytes = b"", *, length: int | None = None) -> str:
    """The bytes of an HTTP answer, for `x/http`; `length` may lie."""
    fields = {"content-length": str(len(body) if length is None else length), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return base64.b64encode(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body).decode()


def exchanges(session: Session, method: str | None = None) -> list[Exchange]:
    """The HTTP exchanges behind the messages of the log, each once, in order."""
    found: dict[int, Exchange] = {}
    for row in session.messages.last(1_000_000):
        exchange = session.messages.exchange(row.seq)
        if exchange is not None and method in (None, exchange.method):
            found[id(exchange)] = exchange
    return list(found.values())


@dataclass
class Shown:
    """Everything that a session shows of itself, as one text to search for what must not be there."""

    session: Session
    parts: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        session = self.session
        rows = session.messages.last(1_000_000)
        self.parts += [repr(session.info), repr(session.calls), session.label]
        self.parts += [repr(each) for each in session.messages.exchanges()]
        self.parts += [repr(row) + repr(session.messages.findings(row.seq)) for row in rows]
        self.parts += [(session.messages.raw(row.seq) or b"").decode(errors="replace") for row in rows]
        return "\n".join(self.parts)
