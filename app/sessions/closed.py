"""Sessions that a person has just closed, kept for a moment: closing can be taken back, a mistake costs nothing.

Nobody finds them and their children are gone; only what they knew is kept, bounded by number, by bytes and by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app.core.lane import apart
from app.core.signal import Signal
from app.core.weight import weight
from app.settings import Limits

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace


@dataclass(eq=False, slots=True)
class ClosedSession:
    """A session that may come back."""

    session: Workspace
    until: float
    """Monotonic: when it is forgotten."""
    shown: bool
    """Whether the first page offers it: somebody closed it there, or in its own page."""
    ended: Signal = field(default_factory=Signal)
    """Set when its connection is gone."""
    size: int = 0
    """What it holds, once it was weighed."""
    weighed: Signal = field(default_factory=Signal)

    @property
    def bytes(self) -> int:
        """What it holds, as far as that is known."""
        return max(self.size, self.session.messages.body_bytes)


class ClosedSessions:
    """Those that may come back, the one that was closed first in front."""

    def __init__(self, limits: Limits, mono: Callable[[], float], forget: Callable[[Workspace], None]) -> None:
        self._limits, self._mono, self._forget = limits, mono, forget
        self._kept: dict[str, ClosedSession] = {}

    def keep(self, session: Workspace, *, shown: bool) -> ClosedSession:
        """Keep it for a moment; older ones go when there is no room."""
        kept = self._kept[session.id] = ClosedSession(session, self._until(), shown)
        self.sweep()
        return kept

    def over(self, kept: ClosedSession) -> None:
        """Its connection is gone: the time to take it back counts from now."""
        kept.until = self._until()
        kept.ended.set()

    async def weigh(self, kept: ClosedSession, without: Iterable[Any]) -> None:
        """Find out what it holds beside its log, in a thread; what is too much goes."""
        try:
            kept.size = await apart(weight, kept.session, self._limits.closed_bytes, without=without)
        finally:
            kept.weighed.set()
        self.sweep()

    def find(self, owner: str, sid: str) -> ClosedSession | None:
        """One of this owner that may still come back."""
        kept = self._kept.get(sid)
        return kept if kept is not None and kept.session.owner == owner and self.left(kept) > 0 else None

    def of(self, owner: str) -> list[ClosedSession]:
        """Those of an owner, the one that was closed last first."""
        return [one for one in reversed(self._kept.values()) if self.find(owner, one.session.id) is one]

    def left(self, kept: ClosedSession) -> float:
        """Seconds until it is forgotten."""
        return max(0.0, kept.until - self._mono())

    def take(self, kept: ClosedSession) -> None:
        """It comes back."""
        self._kept.pop(kept.session.id, None)

    def sweep(self) -> None:
        """Forget those whose time is over, and the oldest of too many: of the owner who has most, so that nobody's
        mistake is made final by somebody else."""
        for kept in list(self._kept.values()):
            if not self.left(kept):
                self._drop(kept)
        for owner in {one.session.owner for one in self._kept.values()}:
            mine = [one for one in self._kept.values() if one.session.owner == owner]
            for oldest in mine[: -self._limits.closed_sessions]:
                self._drop(oldest)
        while self._bytes() > self._limits.closed_bytes:
            self._drop(self._oldest_of_the_heaviest())

    def clear(self) -> None:
        """Forget all of them."""
        for kept in list(self._kept.values()):
            self._drop(kept)

    def _oldest_of_the_heaviest(self) -> ClosedSession:
        held: Counter[str] = Counter()
        for one in self._kept.values():
            held[one.session.owner] += one.bytes
        heaviest = held.most_common(1)[0][0]
        return next(one for one in self._kept.values() if one.session.owner == heaviest)

    def _bytes(self) -> int:
        return sum(one.bytes for one in self._kept.values())

    def _drop(self, kept: ClosedSession) -> None:
        self.take(kept)
        self._forget(kept.session)

    def _until(self) -> float:
        return self._mono() + self._limits.reopen_seconds
