"""Sessions that were closed because nobody needed them, so that their owner is told: a few of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app import bounds
from app.core.targets import AnyTarget

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace


@dataclass(slots=True, frozen=True)
class Idled:
    """One of them."""

    sid: str
    label: str
    target: AnyTarget | None
    at: float
    minutes: float
    """For which nobody had needed it."""


class IdledSessions:
    """The last ones of each owner, for some hours."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._of: dict[str, deque[Idled]] = {}

    def note(self, session: Workspace, seconds: float) -> None:
        """A session is closed after so long."""
        mine = self._of.setdefault(session.owner, deque(maxlen=bounds.IDLED))
        mine.append(Idled(session.id, session.label, session.target, self._wall(), seconds / 60))
        for owner in [key for key in self._of if not self.of(key)]:
            del self._of[owner]

    def of(self, owner: str) -> list[Idled]:
        """Those of somebody, the last one first."""
        since = self._wall() - bounds.IDLED_SECONDS
        return [one for one in reversed(self._of.get(owner, ())) if one.at > since]

    def find(self, owner: str, sid: str) -> Idled | None:
        return next((one for one in self.of(owner) if one.sid == sid), None)

    def seen(self, owner: str) -> None:
        """They know: not to be told again."""
        self._of.pop(owner, None)
