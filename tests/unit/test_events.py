"""The event log: order, replay since a mark, waking, and its bound."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.events import EventLog
from tests.drive import HANG


def filled(count: int, keep: int = 100) -> EventLog:
    log = EventLog(keep)
    for number in range(count):
        log.append("call.changed", f"c{number}", float(number))
    return log


def test_seq_counts_from_one_and_an_event_carries_no_value():
    log = EventLog(10)
    assert log.seq == 0 and log.since(0) == []
    event = log.append("message.recorded", "7", 1.5)
    assert (event.seq, event.kind, event.subject, event.at, log.seq) == (1, "message.recorded", "7", 1.5, 1)


@given(st.integers(0, 300), st.integers(1, 120), st.integers(-3, 320))
def test_replay_gives_everything_after_the_mark_or_says_that_it_cannot(count: int, keep: int, mark: int):
    replayed = filled(count, keep).since(mark)
    if mark < 0 or mark > count or (mark != count and mark < count - keep):
        assert replayed is None
    else:
        assert replayed is not None and [each.seq for each in replayed] == list(range(mark + 1, count + 1))


async def test_everybody_who_waits_is_woken_by_one_event():
    log, woken = filled(3), []

    async def wait(mark: int) -> None:
        await log.wait(mark)
        woken.append(mark)

    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(wait, 3)
            await anyio.lowlevel.checkpoint()
            assert woken == []
            log.append("roots.changed", "roots", 0)
    assert woken == [3] * 5


async def test_waiting_for_what_has_happened_returns_at_once():
    with anyio.fail_after(HANG):
        await filled(3).wait(2)


@pytest.mark.parametrize("times", [3])
async def test_a_waiter_that_wakes_sees_every_event_once(times: int):
    log = EventLog(100)
    seen: list[int] = []

    async def read() -> None:
        mark = 0
        while len(seen) < times * 10:
            await log.wait(mark)
            for event in log.since(mark) or []:
                seen.append(event.seq)
                mark = event.seq

    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            for _ in range(times):
                for _ in range(10):
                    log.append("stderr.written", "stderr", 0)
                await anyio.lowlevel.checkpoint()
    assert seen == list(range(1, times * 10 + 1))


async def test_a_subject_is_forgotten_when_nobody_waits_for_it_any_more():
    log = EventLog(100)
    woken: list[str] = []

    async def wait(subject: str) -> None:
        await log.next_of(subject)
        woken.append(subject)

    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as group:
            group.start_soon(wait, "c1")
            async with anyio.create_task_group() as gives_up:
                gives_up.start_soon(wait, "c1")
                gives_up.start_soon(wait, "c2")
                await anyio.lowlevel.checkpoint()
                assert log.awaited == {"c1", "c2"}
                gives_up.cancel_scope.cancel()
            assert log.awaited == {"c1"} and woken == [], "one gave up, and the other still waits"
            log.append("call.changed", "c1", 0)
    assert woken == ["c1"] and log.awaited == frozenset()
