"""One thing that happens once, and whoever waits for it. As `anyio.Event`, and light.

A connection holds about fifteen of these, most of which nobody ever waits for. Each of the library's brings a queue
for its waiters, 0.9 KB together; this one makes a list when somebody waits. Runs on asyncio, as Parley does.
"""

from __future__ import annotations

import asyncio

import anyio.lowlevel


class Signal:
    """Set once; then nobody waits any more."""

    __slots__ = ("_set", "_waiters")

    def __init__(self) -> None:
        self._set = False
        self._waiters: list[asyncio.Future[None]] | None = None

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._set

    def set(self) -> None:
        """It has happened: everybody who waits goes on, in the order in which they began to wait."""
        self._set = True
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Return when it has happened. Others get their turn in any case."""
        await first_of(self)

    def add(self, waiter: asyncio.Future[None]) -> None:
        """Somebody waits."""
        if self._waiters is None:
            self._waiters = []
        self._waiters.append(waiter)

    def remove(self, waiter: asyncio.Future[None]) -> None:
        """They wait no longer."""
        if self._waiters is not None:
            self._waiters.remove(waiter)


async def first_of(*signals: Signal) -> None:
    """Return when one of these has happened. Others get their turn in any case."""
    if any(signal.is_set() for signal in signals):
        await anyio.lowlevel.checkpoint()
        return
    waiter = asyncio.get_running_loop().create_future()
    for signal in signals:
        signal.add(waiter)
    try:
        await waiter
    finally:
        for signal in signals:
            signal.remove(waiter)
