"""The event log of one session: what changed, in order, for every tab and script that watches.

An event names a subject and never carries its new value: readers render current state. So a flood coalesces by
subject, a replay is harmless, and a slow reader is only a cursor that is behind. Knows nothing of who reads.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from app.core.signal import Signal

EventKind = Literal[
    "message.recorded",
    "finding.raised",
    "log.trimmed",
    "exchange.recorded",
    "stderr.written",
    "connection.changed",
    "call.added",
    "call.changed",
    "call.settled",
    "ask.added",
    "ask.changed",
    "ask.claimed",
    "ask.draft",
    "ask.stepped",
    "ask.reopened",
    "ask.settled",
    "ask.withdrawn",
    "inbox.cleared",
    "task.created",
    "task.changed",
    "task.completed",
    "task.failed",
    "task.cancelled",
    "tasks.listed",
    "listing.changed",
    "subscription.changed",
    "comparison.changed",
    "resource.changed",
    "ping.settled",
    "roots.changed",
    "rules.changed",
    "models.changed",
    "options.changed",
    "sign_in.changed",
    "room.changed",
    "recording.changed",
    "unfinished.changed",
    "people.changed",
    "people.moved",
    "session.closed",
    "session.reopened",
]


@dataclass(slots=True, frozen=True)
class Event:
    """One change. `seq` is the session's only counter, `subject` the id of what changed."""

    seq: int
    at: float
    kind: EventKind
    subject: str


@dataclass(slots=True)
class _Awaited:
    """The next event of one subject, and how many wait for it."""

    came: Signal = field(default_factory=Signal)
    waiters: int = 0


class EventLog:
    """Append, replay since a mark, wait for the next. Bounded: what is too old cannot be replayed, and that is said."""

    def __init__(self, keep: int) -> None:
        self._events: deque[Event] = deque(maxlen=keep)
        self._changed: Signal | None = None
        self._of_kinds: dict[frozenset[EventKind], Signal] = {}
        self._awaited: dict[str, _Awaited] = {}
        self.seq = 0
        """The seq of the newest event; 0 before the first."""

    def append(self, kind: EventKind, subject: str, at: float) -> Event:
        """Record one change and wake everybody who waits. Never blocks."""
        self.seq += 1
        event = Event(self.seq, at, kind, subject)
        self._events.append(event)
        if self._changed is not None:
            self._changed.set()
            self._changed = None
        for kinds in [kinds for kinds in self._of_kinds if kind in kinds] if self._of_kinds else ():
            self._of_kinds.pop(kinds).set()
        if self._awaited and (awaited := self._awaited.pop(subject, None)) is not None:
            awaited.came.set()
        return event

    def forget(self) -> None:
        """Replay nothing of what was: whoever watches begins anew."""
        self._events.clear()

    def since(self, mark: int) -> list[Event] | None:
        """The events after `mark`, oldest first; None when they cannot be replayed (unknown or too old)."""
        if mark == self.seq:
            return []
        if mark < 0 or mark > self.seq or not self._events or mark < self._events[0].seq - 1:
            return None
        return list(islice(reversed(self._events), self.seq - mark))[::-1]

    async def wait(self, mark: int) -> None:
        """Return as soon as there is an event after `mark`."""
        while self.seq <= mark:
            await self.after(mark).wait()

    def after(self, mark: int) -> Signal:
        """Set as soon as there is an event after `mark`."""
        if self.seq > mark:
            signal = Signal()
            signal.set()
            return signal
        if self._changed is None:
            self._changed = Signal()
        return self._changed

    def next_of_kind(self, kinds: frozenset[EventKind]) -> Signal:
        """Set at the next event of one of these kinds; nothing else wakes who waits for it."""
        return self._of_kinds.setdefault(kinds, Signal())

    async def next_of(self, subject: str) -> None:
        """Return at the next event of this subject: twenty calls that wait do not wake each other."""
        awaited = self._awaited.setdefault(subject, _Awaited())
        awaited.waiters += 1
        try:
            await awaited.came.wait()
        finally:
            awaited.waiters -= 1
            if not awaited.waiters and self._awaited.get(subject) is awaited:
                del self._awaited[subject]  # whoever waited gave up: nothing may ever happen to this subject

    @property
    def awaited(self) -> frozenset[str]:
        """The subjects that somebody waits for."""
        return frozenset(self._awaited)
