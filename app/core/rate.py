"""How often somebody does something: so many times in a while, each by themselves. Knows no person and no clock."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable

from app import bounds


class Rate:
    """So many times in so many seconds, for each key; none of them suffers from another one."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float]) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def take(self, key: str) -> int:
        """Do it once more: 0 when that is allowed, and else the seconds until it is."""
        times = self._times.setdefault(key, deque())
        self._times.move_to_end(key)
        while len(self._times) > bounds.RATE_KEYS:
            self._times.popitem(last=False)
        now = self._clock()
        while times and now - times[0] >= self._seconds:
            times.popleft()
        if len(times) >= self._most:
            return max(1, math.ceil(self._seconds - (now - times[0])))
        times.append(now)
        return 0

    def left(self, key: str) -> int:
        """How often it may be done now."""
        now = self._clock()
        return self._most - sum(now - at < self._seconds for at in self._times.get(key, ()))
