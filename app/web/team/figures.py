"""What is counted for the figures of a team: numbers alone, in memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import anyio

_LOOK_SECONDS = 0.5


@dataclass(slots=True)
class Figures:
    """Since the process began."""

    calls: int = 0
    over: int = 0
    """Calls that were over somebody's limit."""
    answers: Counter[int] = field(default_factory=Counter)
    """Answered requests by their status."""
    lag: float = 0.0
    most_lag: float = 0.0

    async def watch(self) -> None:
        """Look how late the loop is, again and again. Runs until cancelled."""
        while True:
            due = anyio.current_time() + _LOOK_SECONDS
            await anyio.sleep_until(due)
            self.lag = max(0.0, anyio.current_time() - due)
            self.most_lag = max(self.most_lag, self.lag)
