"""How often somebody does something: so many times in a while, each by themselves. Knows no person and no clock."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

from app import bounds


class Rate:
    """So many times in so many seconds, for each key; none of them suffers from another one."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float]) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def take(self, key: str) -> int:
        """Do it once more: 0 when that is allowed, and else the seconds until it is."""
        wait = self.wait(key)
        if not wait:
            self._times.setdefault(key, deque()).append(self._clock())
            self._times.move_to_end(key)
            while len(self._times) > bounds.RATE_KEYS:
                self._times.popitem(last=False)
        return wait

    def wait(self, key: str) -> int:
        """The seconds until it may be done; 0 for now."""
        times, now = self._times.get(key, deque[float]()), self._clock()
        while times and now - times[0] >= self._seconds:
            times.popleft()
        elsewhere = self._elsewhere(key, now)
        too_many = len(times) + sum(many for _, many in elsewhere) - self._most
        if too_many < 0:
            return 0
        for until, many in sorted([*((at + self._seconds, 1) for at in times), *elsewhere]):
            too_many -= many
            if too_many < 0:
                return max(1, math.ceil(until - now))
        return max(1, math.ceil(self._seconds))

    def left(self, key: str) -> int:
        """How often it may be done now."""
        now = self._clock()
        here = sum(now - at < self._seconds for at in self._times.get(key, ()))
        return max(0, self._most - here - sum(many for _, many in self._elsewhere(key, now)))

    def _elsewhere(self, key: str, now: float) -> list[tuple[float, int]]:
        """Until when how many count that were done in other processes."""
        return []


class SharedRate(Rate):
    """The same for somebody who comes to several processes. Nobody waits for the others: what was done here is told
    them in a while, and what they tell counts from then on, and for no longer than it would there."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float]) -> None:
        super().__init__(most, seconds, clock)
        self._untold: deque[tuple[float, str]] = deque(maxlen=bounds.RATE_UNTOLD)
        self._others: dict[str, list[tuple[float, int]]] = {}
        """Of each key, by its `named`, until when how many count."""

    def take(self, key: str) -> int:
        wait = super().take(key)
        if not wait:
            self._untold.append((self._clock(), key))
        return wait

    def untold(self) -> list[tuple[float, str]]:
        """What the others do not know yet: how long ago it was, and its key as they know it."""
        now = self._clock()
        while self._untold and now - self._untold[0][0] >= self._seconds:
            self._untold.popleft()
        return [(now - at, named(key)) for at, key in self._untold]

    def told(self, many: int) -> None:
        """The others know so many of these, the oldest ones."""
        for _ in range(min(many, len(self._untold))):
            self._untold.popleft()

    def hear(self, others: Iterable[tuple[str, float, int]]) -> None:
        """What was done elsewhere: by key, for how many seconds from now on how many count."""
        now, found = self._clock(), dict[str, list[tuple[float, int]]]()
        for key, seconds, many in others:
            found.setdefault(key, []).append((now + seconds, many))
        self._others = found

    def _elsewhere(self, key: str, now: float) -> list[tuple[float, int]]:
        return (
            [(until, many) for until, many in self._others.get(named(key), ()) if until > now] if self._others else []
        )


def named(key: str) -> str:
    """What others know a key by: that may be an address, which is nobody's business there."""
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()[:32]
