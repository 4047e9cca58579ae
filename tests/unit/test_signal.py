"""A signal: set once, heard by all, also by those who come late; whoever gives up leaves nothing behind."""

import sys

import anyio

from app.core.signal import Signal


async def test_everybody_who_waits_goes_on_in_order():
    signal, heard = Signal(), []

    async def wait(number: int) -> None:
        await signal.wait()
        heard.append(number)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(wait, number)
            await anyio.wait_all_tasks_blocked()
            assert heard == [] and not signal.is_set()
            signal.set()
            signal.set()
    assert heard == [0, 1, 2] and signal.is_set()


async def test_who_comes_late_does_not_wait_and_lets_others_have_a_turn():
    signal, turns = Signal(), []
    signal.set()

    async def other() -> None:
        turns.append("other")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(other)
            await signal.wait()
            assert turns == ["other"]


async def test_who_gives_up_leaves_nothing_behind():
    signal = Signal()
    with anyio.move_on_after(0.01) as scope:
        await signal.wait()
    assert scope.cancelled_caught and signal._waiters == []
    signal.set()
    with anyio.fail_after(10):
        await signal.wait()


async def test_who_gives_up_in_the_moment_of_the_signal_harms_nobody():
    signal, heard = Signal(), []

    async def wait() -> None:
        await signal.wait()
        heard.append(True)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            leaving = anyio.CancelScope()

            async def leave() -> None:
                with leaving:
                    await signal.wait()

            group.start_soon(leave)
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            leaving.cancel()
            signal.set()
    assert heard == [True]


def test_it_is_light():
    assert sys.getsizeof(Signal()) < 64
