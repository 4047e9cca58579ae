"""Sessions and their registry: ownership, limits, idleness, clocks; and after every kind of end no process is left."""

import signal
from collections.abc import Callable
from typing import Any

import anyio
import psutil
import pytest

from app.core.errors import Conflict, NotAllowed
from app.core.options import Options
from app.core.targets import DemoTarget, StdioTarget
from app.sessions import Identity, Session, SessionRegistry
from app.settings import Limits, local
from tests.conftest import Clock, Processes
from tests.drive import HANG, ME, RawPeer, call, connected, echoes, raw_target, until

Raw = Callable[..., RawPeer]
IDLE = 1_000.0


@pytest.fixture
def limits() -> Limits:
    return Limits(
        sessions_per_identity=3, sessions=4, idle_seconds=IDLE, stdin_close_seconds=0.5, terminate_seconds=0.3
    )


# --- who may have what ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S15")
async def test_a_session_is_found_by_its_owner_alone(registry: SessionRegistry, session: Session):
    mallory = Identity("mallory", "Mallory")
    assert registry.find(ME, session.id) is session
    assert registry.find(mallory, session.id) is None
    assert registry.find(ME, session.id + "x") is None
    assert registry.of(mallory) == []


async def test_session_ids_cannot_be_guessed_and_numbers_count(registry: SessionRegistry):
    first, second = registry.open(ME), registry.open(ME)
    assert first.id != second.id and len(first.id) >= 18
    assert second.number == first.number + 1


async def test_sessions_are_bounded_for_one_and_for_all(registry: SessionRegistry):
    for _ in range(3):
        registry.open(ME)
    with pytest.raises(NotAllowed, match="3 sessions open"):
        registry.open(ME)
    registry.open(Identity("b", "B"))
    with pytest.raises(NotAllowed, match="no room"):
        registry.open(Identity("c", "C"))
    await registry.close(registry.of(ME)[0])
    registry.open(ME)


@pytest.mark.requirement("R5-71")
async def test_consent_is_for_one_identity_and_exactly_one_command(registry: SessionRegistry):
    target = StdioTarget(command="server", args=("--a",), env={"K": "1"})
    assert registry.consented(ME, DemoTarget())
    assert not registry.consented(ME, target)
    registry.consent(ME, target)
    assert registry.consented(ME, target)
    assert not registry.consented(Identity("b", "B"), target)
    for change in ({"args": ("--b",)}, {"env": {"K": "2"}}, {"cwd": "/"}, {"command": "other"}):
        assert not registry.consented(ME, target.model_copy(update=change))


async def test_recent_targets_are_remembered_newest_first(registry: SessionRegistry, session: Session):
    for target in (raw_target(), DemoTarget(), raw_target()):
        registry.remember(ME, target)
    assert [kept.target for kept in registry.store.of(ME.id)] == [raw_target(), DemoTarget()]
    assert registry.store.of("b") == []


# --- moves ------------------------------------------------------------------------------------------------------------


async def test_one_connection_at_a_time(session: Session):
    await connected(session, raw_target())
    with pytest.raises(Conflict, match="connected already"):
        session.connect(raw_target(), Options(), by=ME)


async def test_history_survives_a_reconnect(session: Session):
    await connected(session, raw_target())
    done = await call(session, "ping")
    count = session.messages.count
    await session.disconnect()
    await connected(session, raw_target())
    assert session.info.number == 2 and session.messages.count > count
    assert session.calls[done.id].state == "done"
    seqs = [each.seq for each in session.messages.last(1_000)]
    assert seqs == sorted(set(seqs))


async def test_a_closed_session_is_gone(registry: SessionRegistry, session: Session):
    await connected(session, raw_target())
    mark = session.events.seq
    await registry.close(session)
    assert session.closed and registry.find(ME, session.id) is None
    assert [each.kind for each in session.events.since(mark) or []][-1] == "session.closed"
    with pytest.raises(Conflict, match="closed"):
        session.connect(raw_target(), Options(), by=ME)


async def test_a_reconnect_while_the_old_child_is_still_ending_waits_for_it(session: Session, processes: Processes):
    """Two tabs: one disconnects a server that is slow to end, the other connects again and then disconnects."""
    await connected(session, raw_target())
    await call(session, "x/deafen")
    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as group:
            group.start_soon(session.disconnect)
            await until(session, lambda: session.info.state == "closed")
            session.connect(raw_target(), Options(), by=ME)
            await session.wait_connection(HANG)
        assert session.info.state == "ready"
        assert len(processes.pids) == 2 and not psutil.pid_exists(processes.pids[0])
        await echoes(session)
        await session.disconnect()
    assert processes.left() == []


async def test_a_disconnect_while_the_reconnect_waits_is_honoured(session: Session, processes: Processes):
    await connected(session, raw_target())
    await call(session, "x/deafen")
    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as group:
            group.start_soon(session.disconnect)
            await until(session, lambda: session.info.state == "closed")
            session.connect(raw_target(), Options(), by=ME)
            await anyio.lowlevel.checkpoint()
            await session.disconnect()
    assert session.info.state == "closed" and processes.left() == []
    assert len(processes.pids) == 1, "the second was never started"


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13, 21, 34])
async def test_a_disconnect_at_any_moment_of_connecting_leaves_nothing(
    session: Session, processes: Processes, turns: int
):
    session.connect(raw_target(), Options(), by=ME)
    for _ in range(turns):
        await anyio.lowlevel.checkpoint()
    with anyio.fail_after(HANG):
        await session.disconnect()
    assert session.info.state == "closed" and processes.left() == []


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("F20")
async def test_idle_means_no_stream_no_request_no_call_and_no_ask(
    registry: SessionRegistry, session: Session, clock: Clock
):
    await connected(session, raw_target())
    clock.mono_shift += IDLE - 100
    assert IDLE - 101 < session.idle_for() < IDLE
    session.touch()
    assert session.idle_for() < 1
    clock.mono_shift += IDLE + 1
    assert session.idle_for() > IDLE
    session.stream_opened()
    clock.mono_shift += IDLE + 1
    assert session.idle_for() == 0
    session.stream_closed()
    held = session.start_call("x/hold", {}, by=ME)
    clock.mono_shift += IDLE + 1
    assert session.idle_for() == 0
    session.cancel_call(held.id)
    clock.mono_shift += IDLE + 1
    assert session.idle_for() > IDLE
    session.touch()
    params = '{"message":"?","requestedSchema":{"type":"object","properties":{}}}'
    line = f'{{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{params}}}'
    await call(session, "x/say", {"lines": [line, '{"jsonrpc":"2.0","id":$ID,"result":{}}']})
    await until(session, lambda: session.open_asks)
    clock.mono_shift += IDLE + 1
    assert session.idle_for() == 0


@pytest.mark.requirement("F20")
async def test_an_idle_session_is_closed_and_its_process_ended(clock: Clock, processes: Processes):
    quick = Limits(idle_seconds=0.4)  # so that the registry looks every 0.1 s; time itself is the test's

    def mono() -> float:
        return clock.mono_shift

    async with SessionRegistry(local(limits=quick), wall=clock.wall, mono=mono) as registry:
        idle, busy = registry.open(ME), registry.open(ME)
        await connected(idle, raw_target())
        busy.stream_opened()
        clock.mono_shift += 1
        with anyio.fail_after(HANG):
            await idle.events.wait(idle.events.seq)
            await until(idle, lambda: idle.closed and idle.info.state == "closed")
            await idle.disconnect()
        assert registry.of(ME) == [busy]
        assert processes.left() == []


@pytest.mark.requirement("F27")
@pytest.mark.parametrize("jump", [-3_600.0, 3_600.0])
async def test_a_jump_of_the_clock_touches_no_limit_and_no_duration(
    registry: SessionRegistry, session: Session, clock: Clock, jump: float
):
    session.connect(raw_target(), Options(), by=ME)
    clock.wall_shift = jump
    await session.wait_connection(HANG)
    assert session.info.state == "ready"
    assert session.info.connect_ms is not None and 0 < session.info.connect_ms < HANG * 1000
    assert all(0 <= step.after_ms < HANG * 1000 for step in session.info.steps)
    held = session.start_call("x/hold", {}, timeout_ms=60_000, by=ME)
    late = session.start_call("x/hold", {}, timeout_ms=200, by=ME)
    await until(session, lambda: held.legs and late.legs)
    clock.wall_shift = -jump
    await until(session, lambda: late.settled)
    assert late.error is not None and late.error.kind == "timeout" and not held.settled
    await call(session, "x/release")
    await until(session, lambda: held.settled)
    assert held.state == "done" and held.duration_ms is not None and 0 < held.duration_ms < HANG * 1000
    rows = session.messages.last(100)
    assert all(each.latency_ms is None or 0 <= each.latency_ms < HANG * 1000 for each in rows)
    assert session.idle_for() < 60 and not session.closed


# --- after every end no process is left (acceptance 5) ----------------------------------------------------------------


async def end_by_disconnect(registry: SessionRegistry, session: Session) -> None:
    await session.disconnect()
    assert session.info.state == "closed"


async def end_by_close(registry: SessionRegistry, session: Session) -> None:
    await registry.close(session)


async def end_by_crash(registry: SessionRegistry, session: Session) -> None:
    assert session.info.pid is not None
    psutil.Process(session.info.pid).send_signal(signal.SIGKILL)
    await until(session, lambda: session.info.state == "lost")
    assert session.info.trouble is not None and "SIGKILL" in session.info.trouble.message
    await session.disconnect()


async def end_by_exit(registry: SessionRegistry, session: Session) -> None:
    """Leaving the registry is the end."""


@pytest.mark.requirement("R5-06", "F28")
@pytest.mark.parametrize("end", [end_by_disconnect, end_by_close, end_by_crash, end_by_exit])
@pytest.mark.parametrize("manner", ["plain", "fork", "deafen"])
async def test_no_process_is_left(limits: Limits, processes: Processes, manner: str, end: Any):
    with anyio.fail_after(HANG):
        async with SessionRegistry(local(limits=limits)) as registry:
            session = registry.open(ME)
            await connected(session, raw_target())
            pids = [session.info.pid]
            if manner != "plain":
                done = await session.result(await call(session, f"x/{manner}"))
                pids += [done["pid"]] if "pid" in done else []
            assert [alive(pid) for pid in pids] == [True] * len(pids)
            await end(registry, session)
            if end is not end_by_exit:
                assert [alive(pid) for pid in pids] == [False] * len(pids)
                assert processes.left() == []
    assert [alive(pid) for pid in pids] == [False] * len(pids)
    assert processes.left() == []
    assert session.info.state in ("closed", "lost")
    with pytest.raises(NotAllowed, match="shutting down"):
        registry.open(ME)


def alive(pid: int | None) -> bool:
    """Whether a process runs; one that only waits to be reaped by its new parent does not."""
    assert pid is not None
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.requirement("R5-06")
async def test_a_server_gets_to_read_that_its_stdin_was_closed(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    await session.disconnect()
    assert peer.saw_the_end()


@pytest.mark.requirement("R5-06")
async def test_several_sessions_end_at_the_same_time(limits: Limits, processes: Processes):
    async with SessionRegistry(local(limits=limits)) as registry:
        sessions = [registry.open(ME) for _ in range(3)]
        for each in sessions:
            await connected(each, raw_target())
            await call(each, "x/deafen")
        began = anyio.current_time()
    took = anyio.current_time() - began
    print(f"3 deaf children ended in {took:.2f} s")
    assert took < HANG
    assert processes.left() == []


async def test_a_connection_to_the_demo_server(session: Session):
    await connected(session, DemoTarget())
    await echoes(session)
    assert session.label and session.info.server_info is not None


async def test_connecting_counts_and_says_where_it_stands(session: Session):
    session.connect(raw_target(), Options(), by=ME)
    assert (session.info.state, session.info.number) == ("connecting", 1)
    assert session.info.deadline_at is not None and session.info.deadline_at > session.created_at
    await session.wait_connection(HANG)
    assert session.info.state == "ready" and session.info.deadline_at is None
