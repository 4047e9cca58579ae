"""A fault of Parley itself, wherever a session runs something, ends at most the connection of that session (H12)."""

import ast
import gc
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import app.sessions
from app.core.targets import DemoTarget
from app.core.tasks.received import ReceiverTasks
from app.protocol.serving import Serving
from app.sessions import Session, SessionRegistry
from app.sessions.calls import Calls
from app.sessions.compare import Comparisons
from app.sessions.lists import Lists
from app.sessions.ping import Pings
from app.sessions.polls import RoomSettings
from app.sessions.room import Room
from tests.drive import HANG, ME, call_tool, connect, connected, echoes, raw_target, until

pytestmark = pytest.mark.anyio

ROOMS = Path(app.sessions.__file__).parent


OTHERS = {"self._road": "Road", "session.asks": "Asks"}
"""Whose method it is, where one room starts that of another."""


def entry_points() -> list[tuple[str, str]]:
    """Class and method of everything that a session starts as a task of its own."""
    found = set()
    for path in ROOMS.rglob("*.py"):
        for room in ast.walk(ast.parse(path.read_text())):
            if not isinstance(room, ast.ClassDef):
                continue
            for node in ast.walk(room):
                match node:
                    case ast.Call(
                        func=ast.Attribute(value=owner, attr="start_soon"),
                        args=[ast.Attribute(value=of, attr=method), *_],
                    ) if ast.unparse(owner) in ("session", "self._session") or room.name in ("Session", "Workspace"):
                        if method != "_guarded":
                            found.add((OTHERS.get(ast.unparse(of)) or room.name, method))
                            assert ast.unparse(of) in {"self", *OTHERS}, "say in OTHERS of which class it is"
    return sorted(found)


def room_of(session: Session, name: str) -> Any:
    """The part of a session that is of this class."""
    stack: list[Any] = [session]
    seen: set[int] = set()
    while stack:
        one = stack.pop()
        if type(one).__name__ == name:
            return one
        seen.add(id(one))
        held = vars(one).values() if hasattr(one, "__dict__") else ()
        stack += [each for each in held if type(each).__module__.startswith("app.sessions") and id(each) not in seen]
    raise AssertionError(f"no {name} in a session")


async def boom(*_: Any, **__: Any) -> None:
    raise RuntimeError("the oven is on fire")


@pytest.fixture
async def neighbour(registry: SessionRegistry) -> Session:
    opened = registry.open(ME)
    await connected(opened, raw_target())
    return opened


async def ended(
    session: Session, neighbour: Session, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This session says what happened, the other one goes on, and this one can connect again."""
    await until(session, lambda: session.info.trouble is not None)
    await session.disconnect()  # until nothing of it is left
    monkeypatch.undo()
    trouble = session.info.trouble
    assert trouble is not None and trouble.kind == "internal" and session.info.state == "lost"
    assert trouble.message.startswith("Parley itself failed: RuntimeError: the oven is on fire.")
    assert "ended" in trouble.message and trouble.advice.startswith("Connect again.")
    assert any(record.exc_info and "inside Parley" in record.message for record in caplog.records), "with a traceback"
    assert neighbour.info.state == "ready"
    await echoes(neighbour)
    await connected(session, raw_target())
    await echoes(session)


def test_the_entry_points_are_found() -> None:
    found = entry_points()
    assert {("Lists", "_read"), ("Calls", "_run"), ("Session", "_live"), ("Pings", "_repeating")} <= set(found)
    assert len(found) >= 13


def test_h12_nothing_of_a_session_is_started_beside_the_guard() -> None:
    """Only the guards themselves, and what must be there before anything works, go into the group of all sessions."""
    unguarded = []
    for path in ROOMS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("group.start_soon"):
                what = ast.unparse(node.args[0])
                local = ast.unparse(node.func) == "group.start_soon" and what in ("fetch", "alarm")
                if not local:
                    unguarded.append(what)
    assert sorted(set(unguarded)) == ["_guarded", "self._guarded", "self._load"]


@pytest.mark.requirement("H12")
@pytest.mark.parametrize(("room", "method"), entry_points())
async def test_h12_a_fault_in_any_task_of_a_session_ends_only_its_connection(
    session: Session,
    neighbour: Session,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    room: str,
    method: str,
) -> None:
    await connected(session, raw_target())
    session.asks.audience.room = Room(session, RoomSettings(), lambda _: None)
    part = room_of(session, room)
    monkeypatch.setattr(type(part), method, boom)
    session.start_soon(getattr(part, method))
    await ended(session, neighbour, caplog, monkeypatch)


async def _list(session: Session, patch: Callable[[type, str], None]) -> None:
    patch(Lists, "_read")
    await connect(session, raw_target())


async def _ping(session: Session, patch: Callable[[type, str], None]) -> None:
    patch(Pings, "_repeating")
    await connected(session, raw_target())
    session.pings.repeat(1_000)


async def _compare(session: Session, patch: Callable[[type, str], None]) -> None:
    patch(Comparisons, "_run")
    await connected(session, raw_target())
    session.comparisons.begin(await call_tool(session, "echo"), ME)


async def _call(session: Session, patch: Callable[[type, str], None]) -> None:
    await connected(session, raw_target())
    patch(Calls, "_run")
    session.start_call("ping", None, by=ME)


ASK = '{"jsonrpc":"2.0","id":"q","method":"roots/list"}'


async def _serve(session: Session, patch: Callable[[type, str], None]) -> None:
    await connected(session, raw_target())
    patch(Serving, "_serve_one")
    session.start_call("tools/call", {"name": "say", "arguments": {"lines": [ASK]}}, by=ME)


async def _tasks(session: Session, patch: Callable[[type, str], None]) -> None:
    patch(ReceiverTasks, "run")
    await connected(session, raw_target())
    params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}, "task": {}}
    line = json.dumps({"jsonrpc": "2.0", "id": "t", "method": "elicitation/create", "params": params})
    session.start_call("tools/call", {"name": "say", "arguments": {"lines": [line]}}, by=ME)


@pytest.mark.requirement("H12")
@pytest.mark.parametrize("trigger", [_list, _ping, _compare, _call, _serve, _tasks])
async def test_h12_a_fault_in_the_course_of_things_ends_only_its_connection(
    session: Session,
    neighbour: Session,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trigger: Callable[[Session, Callable[[type, str], None]], Any],
) -> None:
    with anyio.fail_after(HANG):
        await trigger(session, lambda part, method: monkeypatch.setattr(part, method, boom))
    await ended(session, neighbour, caplog, monkeypatch)


@pytest.mark.requirement("H12")
async def test_h12_a_session_that_cannot_be_closed_keeps_no_other_open(
    registry: SessionRegistry, session: Session, neighbour: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "close", boom)
    await registry.close_all()
    assert neighbour.closed and neighbour.info.state == "closed"
    registry.closing = False


# ---- comparisons


@pytest.mark.requirement("H12")
async def test_h12_comparisons_keep_no_closed_session_alive(registry: SessionRegistry, session: Session) -> None:
    await connected(session, raw_target())
    first = await call_tool(session, "echo")
    others: list[weakref.ref[Session]] = []
    for _ in range(30):
        found = session.comparisons.begin(first, ME)
        others.append(weakref.ref(found.other))
        await until(session, lambda: session.comparisons.by_call[first.id].failed)
        await registry.close(found.other)
    await echoes(session)
    gc.collect()
    assert sum(other() is not None for other in others) == 0
    assert session.comparisons.by_call[first.id].open is None


@pytest.mark.requirement("H12")
async def test_h12_the_events_of_the_other_session_are_not_ours(registry: SessionRegistry, session: Session) -> None:
    await connected(session, DemoTarget(), era="modern")
    first = await call_tool(session, "echo", {"message": "hello"})
    before = session.events.seq
    found = session.comparisons.begin(first, ME)
    other = found.other
    for _ in range(2_000):
        other.changed("call.changed", found.other_call or "c1")
        await anyio.lowlevel.checkpoint()
    await until(session, lambda: found.words == "Both calls are done.")
    assert session.events.seq - before < 30
    assert found.differences
    await registry.close(other)
    assert found.open is None and found.differences, "what differed is still known"
