"""How tests drive a session: start a raw peer, connect, call, compare bytes, and measure what others feel meanwhile."""

import base64
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import psutil

from app.core.calls import Call
from app.core.options import Options
from app.core.targets import StdioTarget
from app.core.wire import Direction, Finding, Message
from app.sessions import Identity, Session

ROOT = Path(__file__).parents[1]
SERVERS = ROOT / "tests" / "servers"
HANG = 60.0
"""Seconds after which a wait has failed. A guard, about ten times what anything here should take on a busy machine."""
ME = Identity("local", "you")


@dataclass
class RawPeer:
    """A tests/servers/raw.py that was, or will be, started: its target, and its own record of the wire."""

    target: StdioTarget
    record: Path | None = None

    def _entries(self, sign: bytes) -> bytes:
        assert self.record is not None
        data, at, found = self.record.read_bytes(), 0, []
        while at < len(data):
            end = data.index(b"\n", at)
            size = int(data[at + 2 : end])
            if data[at : at + 1] == sign:
                found.append(data[end + 1 : end + 1 + size])
            at = end + 1 + size
        return b"".join(found)

    def read(self) -> bytes:
        """Every byte it read so far."""
        return self._entries(b"<")

    def wrote(self) -> bytes:
        """Every byte it wrote so far."""
        return self._entries(b">")

    def saw_the_end(self) -> bool:
        """Whether it got to read that its stdin was closed."""
        assert self.record is not None
        return self.record.read_bytes().endswith(b"< 0\n")

    def received(self, method: str | None = None) -> list[dict[str, Any]]:
        """The messages it read, all or of one method."""
        messages = [json.loads(line) for line in self.read().splitlines()]
        return [each for each in messages if method is None or each.get("method") == method]


def raw_target(scenario: str = "plain", *, record: Path | None = None, **settings: Any) -> StdioTarget:
    """The command of a raw peer. `-I -S`: it needs nothing but the standard library, and starts in 20 ms."""
    args = ["-I", "-S", str(SERVERS / "raw.py"), scenario]
    if record is not None:
        args += ["--record", str(record)]
    if settings:
        args += ["--with", json.dumps(settings)]
    return StdioTarget(command=sys.executable, args=tuple(args))


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


# --- a session --------------------------------------------------------------------------------------------------------


async def connect(session: Session, target: Any, **options: Any) -> None:
    """Connect and wait until it is decided; the caller looks at `session.info`.

    In the older era, unless the test says another: a probe before each handshake would only move every id by one."""
    options.setdefault("era", "legacy")
    session.connect(target, Options(**options), by=ME)
    await session.wait_connection(HANG)
    assert session.info.state != "connecting"


async def connected(session: Session, target: Any, **options: Any) -> None:
    """Connect, and see that it is ready and its tools are listed."""
    await connect(session, target, **options)
    assert session.info.state == "ready", session.info.trouble
    await until(session, lambda: session.tools.state != "loading")


async def until(session: Session, true: Callable[[], object]) -> None:
    """Wait for something to become true, looking whenever the session says that anything changed."""
    with anyio.fail_after(HANG):
        while not true():
            await session.events.wait(session.events.seq)


async def call(session: Session, method: str, params: dict[str, Any] | None = None, **more: Any) -> Call:
    """Call and wait until it is settled."""
    started = session.start_call(method, params, by=ME, **more)
    await settled(session, started)
    return started


async def call_tool(session: Session, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> Call:
    """Call a tool and wait until it is settled."""
    return await call(session, "tools/call", {"name": name, "arguments": arguments or {}}, **more)


async def settled(session: Session, *calls: Call) -> None:
    """Wait until these calls are settled."""
    await until(session, lambda: all(each.settled for each in calls))


async def flushed(session: Session) -> None:
    """Wait until the peer has read, and recorded, everything that was sent before this."""
    assert (await call(session, "ping", quiet=True)).state == "done"


async def echoes(session: Session, text: str = "still here") -> None:
    """This session's server answers a call of `echo`."""
    done = await call_tool(session, "echo", {"message": text})
    assert done.state == "done", done.error
    assert (await session.result(done))["content"] == [{"type": "text", "text": text}]


def raws(session: Session, direction: Direction) -> list[bytes]:
    """The bytes of every message in the log, in order."""
    rows = session.messages.last(1_000_000)
    return [session.messages.raw(each.seq) or b"" for each in rows if each.direction == direction]


def inbound(session: Session, method: str | None = None) -> list[Message]:
    """The messages that came in, all or of one method."""
    rows = session.messages.last(1_000_000)
    return [each for each in rows if each.direction == "in" and method in (None, each.method)]


def findings(session: Session) -> list[Finding]:
    """Every finding beside any message, in order."""
    return [each for row in session.messages.last(1_000_000) for each in session.messages.findings(row.seq)]


def last_findings(session: Session) -> list[tuple[str, str]]:
    """Requirement and text of what was remarked beside the newest inbound message."""
    return [(each.id, each.text) for each in session.messages.findings(inbound(session)[-1].seq)]


# --- what others feel -------------------------------------------------------------------------------------------------


@dataclass
class Felt:
    """What the rest of the process felt while something went on: stalls of the loop, growth of memory, echoes."""

    stall: float = 0.0
    grown: int = 0
    echoes: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        slowest = f", slowest echo of a bystander {max(self.echoes) * 1000:.0f} ms" if self.echoes else ""
        return f"loop stall {self.stall * 1000:.1f} ms, memory {self.grown / 1048576:+.1f} MiB{slowest}"


@asynccontextmanager
async def feeling(bystander: Session | None = None) -> AsyncIterator[Felt]:
    """Measure, while the body runs, the longest stall of the loop and how quickly a bystander's server answers."""
    felt, process = Felt(), psutil.Process(os.getpid())
    before = process.memory_info().rss
    tick = 0.002

    async def ticking() -> None:
        while True:
            began = anyio.current_time()
            await anyio.sleep(tick)
            felt.stall = max(felt.stall, anyio.current_time() - began - tick)

    async def echoing(session: Session) -> None:
        while True:
            began = anyio.current_time()
            await echoes(session)
            felt.echoes.append(anyio.current_time() - began)
            await anyio.sleep(0.01)

    async with anyio.create_task_group() as group:
        group.start_soon(ticking)
        if bystander is not None:
            group.start_soon(echoing, bystander)
        try:
            yield felt
            if bystander is not None:
                await echoes(bystander)
        finally:
            felt.grown = process.memory_info().rss - before
            group.cancel_scope.cancel()
