"""How tests record: a registry with a directory, a recorder for a session, and a recording read back line by line."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.core.targets import DemoTarget
from app.recordings.lines import End, Frame, Header, State, read_line
from app.recordings.recorders import Recorders
from app.sessions import Session, SessionRegistry
from app.settings import Limits, local
from app.store.recordings import Recordings
from tests.drive import ME, call, call_tool, connected, settled, until


@dataclass
class Read:
    """A recording, as its lines say it."""

    header: Header
    frames: list[Frame] = field(default_factory=list)
    states: dict[tuple[str, str], State] = field(default_factory=dict)
    unknown: int = 0

    def of(self, kind: str) -> dict[str, State]:
        return {key: state for (each, key), state in self.states.items() if each == kind}

    @property
    def end(self) -> End | None:
        found = self.states.get(("end", ""))
        return found.noun if found is not None and isinstance(found.noun, End) else None


def read_text(data: bytes) -> Read:
    """Every line must fit."""
    found: Read | None = None
    for line in data.splitlines(keepends=True):
        assert line.endswith(b"\n"), line[-80:]
        one = read_line(line)
        if isinstance(one, Header):
            assert found is None
            found = Read(one)
            continue
        assert found is not None
        if isinstance(one, Frame):
            found.frames.append(one)
        elif isinstance(one, State):
            found.states[one.kind, one.id] = one
        else:
            found.unknown += 1
    assert found is not None
    return found


def body_of(store: Recordings, rid: str) -> bytes:
    body = store.bodies.open(rid)
    try:
        return body.read(0, body.size)
    finally:
        body.close()


def read_back(store: Recordings, rid: str) -> Read:
    return read_text(body_of(store, rid))


@asynccontextmanager
async def keeping(directory: Path, *, limits: Limits | None = None, **settings: Any) -> AsyncIterator[SessionRegistry]:
    """A registry that keeps what it is told to."""
    async with SessionRegistry(local(data_dir=directory, limits=limits or Limits(), **settings)) as registry:
        await registry.until_ready()
        yield registry


async def lived(session: Session, **options: Any) -> None:
    """Everything that the demo does: calls, every kind of ask, tasks or rounds, lists, pings, errors."""
    await connected(session, DemoTarget(), **options)
    for name in ("resources", "templates", "prompts"):
        await session.lists.refresh(name)
    await call_tool(session, "add", {"a": 2, "b": 3})
    await call_tool(session, "tool_error")
    await call(session, "no/such", {})
    if session.wire.ping:
        await session.pings.ping(by=ME)
        session.resources.notified({"uri": "demo://tide"})
    else:
        session.subscriptions.open({"toolsListChanged": True})
    running = [session.start_call("tools/call", {"name": "parade", "arguments": {}}, by=ME)]
    if session.wire.asks_for_tasks:
        running.append(session.start_call("tools/call", {"name": "charter", "arguments": {}}, as_task=True, by=ME))
    while not all(each.settled for each in running):
        await until(session, lambda: session.inbox.open or all(each.settled for each in running))
        for ask in session.inbox.open:
            if ask.state == "open":
                action = {"sampling": "decline", "form": "decline", "url": "accept", "roots": "accept"}[ask.kind]
                await session.asks.answer(ask, {"action": action}, ME)
        await until(session, lambda: any(ask.state == "open" for ask in session.inbox.open) or running[0].settled)
    await settled(session, *running)


__all__ = ["Read", "Recorders", "body_of", "keeping", "lived", "read_back", "read_text"]
