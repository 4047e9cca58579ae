"""How tests drive tasks that run on a server: the raw peer of servers/task_peer.py, and a clock to push by hand."""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from app.core.calls import Call
from app.core.targets import AnyTarget, StdioTarget
from app.core.tasks.running import ClientTask
from app.sessions import Session
from tests.drive import ME, SERVERS, settled, until
from tests.drive_http import started

DONE = {"content": [{"type": "text", "text": "done for $NAME"}]}


@dataclass
class TaskPeer:
    """The peer, and its own record of the wire."""

    target: AnyTarget
    record: Path

    def messages(self, io: str) -> list[dict[str, Any]]:
        """What it read (`<`) or wrote (`>`), in order."""
        entries = [json.loads(line) for line in self.record.read_text().splitlines()]
        return [each["message"] for each in entries if each["io"] == io]

    def received(self, method: str | None = None) -> list[dict[str, Any]]:
        """The messages it read, all or of one method."""
        return [each for each in self.messages("<") if method in (None, each.get("method"))]

    def times(self, method: str) -> list[float]:
        """When it read the requests of a method; monotonic."""
        entries = [json.loads(line) for line in self.record.read_text().splitlines()]
        return [each["at"] for each in entries if each["io"] == "<" and each["message"].get("method") == method]

    def replies(self) -> list[dict[str, Any]]:
        """The answers that it got to its own requests."""
        return [each for each in self.messages("<") if "method" not in each]


@contextmanager
def task_peer(transport: str = "stdio", **settings: Any) -> Iterator[TaskPeer]:
    """A tests/servers/task_peer.py with these settings, over stdio, http or sse."""
    with tempfile.TemporaryDirectory(prefix="parley-test-") as folder:
        record = Path(folder) / "record"
        record.touch()
        script = ["-I", "-S", str(SERVERS / "task_peer.py")]
        more = ["--record", str(record), "--with", json.dumps(settings)]
        if transport == "stdio":
            yield TaskPeer(StdioTarget(command=sys.executable, args=(*script, *more)), record)
            return
        with started([sys.executable, *script, transport, *more], record=record) as peer:
            yield TaskPeer(peer.target() if transport == "http" else peer.older(), record)


def begin(session: Session, tool: str = "work", *, ttl: int | None = None, **arguments: Any) -> Call:
    """Call a tool as a task."""
    params = {"name": tool, "arguments": arguments}
    return session.start_call("tools/call", params, as_task=True, ttl=ttl, by=ME)


async def task_of(session: Session, call: Call) -> ClientTask:
    """The task that a call became."""
    await until(session, lambda: call.task_id is not None or call.settled)
    assert call.task_id is not None, (call.state, call.error)
    return session.client_tasks.tasks[call.task_id]


async def text_of(session: Session, call: Call) -> str:
    """The text of the result of a call that went well."""
    await settled(session, call)
    assert call.state == "done", (call.error, call.cancel_reason)
    return "\n".join(block.get("text", "") for block in (await session.result(call))["content"])


class HandClock:
    """Monotonic time that stands still until a test pushes it; who sleeps is woken then, and not before."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self._sleepers: list[tuple[float, anyio.Event]] = []
        self._more = anyio.Event()

    def mono(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken = anyio.Event()
        entry = (self.now + seconds, woken)
        self._sleepers.append(entry)
        self._more.set()
        try:
            await woken.wait()
        finally:
            self._sleepers.remove(entry)

    async def rests(self) -> float:
        """Wait until somebody sleeps, and say for how long from now."""
        while not self._sleepers:
            self._more = anyio.Event()
            await self._more.wait()
        return round(min(at for at, _ in self._sleepers) - self.now, 6)

    def push(self, seconds: float) -> None:
        """Let time pass."""
        self.now = round(self.now + seconds, 6)
        for at, woken in list(self._sleepers):
            if at <= self.now:
                woken.set()
