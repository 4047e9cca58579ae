"""Large work: in a thread, one piece after the other, with the memory given back afterwards.

Whoever reads, judges or shows something large does it here, so that at most one thread competes with the event loop,
and trees of megabytes do not stand side by side. Owns the lane and the clock of giving back; knows no JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
import anyio.to_thread

from app import bounds, garbage

P = ParamSpec("P")
T = TypeVar("T")


_lane: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("lane")
_due: WeakKeyDictionary[asyncio.AbstractEventLoop, bool] = WeakKeyDictionary()
"""The loops that will give memory back in a moment, and whether cycles are looked for too. Not a variable of anyio's:
in a plain callback of the loop there is no task, and anyio may not know then which loop is running."""


@dataclass(slots=True)
class _Pace:
    next_at: float = 0.0
    """When to look through everything again at the earliest: everybody waits for that, so it is a small part of the
    time also where it takes long."""


_pace = _Pace()


async def apart(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Do large work in a thread, when all that came before is done."""
    try:
        lane = _lane.get()
    except LookupError:
        lane = anyio.CapacityLimiter(1)
        _lane.set(lane)
    try:
        return await anyio.to_thread.run_sync(functools.partial(function, *arguments, **named), limiter=lane)
    finally:
        give_back_soon()


def give_back_soon(*, cycles: bool = False) -> None:
    """Something large is no longer needed, or soon will not be; `cycles` when objects that know each other are gone.

    At most once in a while, in a thread."""
    loop = asyncio.get_running_loop()
    due = _due.get(loop)
    _due[loop] = cycles or bool(due)
    if due is None:
        loop.call_later(max(bounds.GIVE_BACK_SECONDS, _pace.next_at - loop.time()), _give_back_now, loop)


def _give_back_now(loop: asyncio.AbstractEventLoop) -> None:
    cycles = _due.pop(loop, False)
    # When Parley ends, its threads may be gone before this is due: then all of it is given back anyway.
    with contextlib.suppress(RuntimeError):
        loop.run_in_executor(None, _give_back, cycles)


def _give_back(cycles: bool) -> None:
    """Python frees what a tree took, but the C library keeps most of it, and large buffers too, until it is asked."""
    if cycles:
        began = time.monotonic()
        garbage.collect()
        now = time.monotonic()
        _pace.next_at = now + (now - began) * bounds.GIVE_BACK_REST
    trim = _trimmer()
    if trim is not None:
        trim(0)


@functools.cache
def _trimmer() -> Callable[[int], int] | None:
    """`malloc_trim`, where the C library is glibc; None elsewhere."""
    import ctypes

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    found: Callable[[int], int] = trim
    return found
