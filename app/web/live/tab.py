"""A tab: a cursor in the session's event log, and a loop over the live parts of the page that it shows.

It has no queue of its own. State goes first and whole, log rows follow in portions, and a tab that is too far behind
gets one snapshot. `stream` brings it to the browser.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial as partial_of
from typing import Final, Protocol

from app.core.events import Event
from app.sessions import Workspace
from app.web.kit.html import NOTHING, Html, markup, shown
from app.web.live.parts import Live, TooMany, View, partial

logger = logging.getLogger("parley.stream")


@dataclass(slots=True, frozen=True)
class Patch:
    """One message for a tab: what to put where, and the seq up to which the tab then knows everything."""

    html: Html
    seq: int


class Rows(Protocol):
    """The rows of the log, which are in every page."""

    def after(self, view: View, mark: int, most: int) -> tuple[Html, int, int]:
        """The next rows, how many they are, and the seq of the last."""

    def anew(self, view: View, seqs: Sequence[int]) -> Html:
        """Rows that were sent and have changed."""

    def whole(self, view: View) -> Html:
        """The newest rows, for a tab that knows nothing."""


@dataclass(slots=True, frozen=True)
class Shown:
    """What a tab shows that can change: the live parts of its page and of what surrounds it, figures, the log."""

    live: tuple[Live, ...]
    numbers: Callable[[Workspace], Mapping[str, str]]
    rows: Rows
    late: frozenset[str] = frozenset()
    """Figures that say what the rows show, so that they wait for the last of the rows that are on their way."""


_NEVER: Final = -1


class Tab:
    """What one tab knows: two cursors, because state must not wait behind log rows."""

    def __init__(self, view: View, what: Shown, since: int | None) -> None:
        self._view, self._what = view, what
        self._state_mark = self._row_mark = _NEVER if since is None else since
        self._unsent = 0
        self._numbers: dict[str, str] = {}
        self._seen: dict[object, Hashable] = {}

    @property
    def session(self) -> Workspace:
        """The session that this tab shows."""
        return self._view.session

    @property
    def mark(self) -> int:
        """The newest event that this tab's state includes."""
        return self._state_mark

    def patch(self) -> Patch | None:
        """What the tab should hear next; None when it knows everything."""
        events = self.session.events.since(self._state_mark)
        if events is not None and not events and not self._unsent:
            return None
        try:
            if events is None:
                raise TooMany
            return self._news(events)
        except TooMany:
            return self.snapshot()
        finally:
            self._view.drawings.rest()

    def _news(self, events: list[Event]) -> Patch:
        limits = self._view.limits
        self._unsent += sum(event.kind == "message.recorded" for event in events)
        if self._unsent > limits.stream_behind:
            raise TooMany
        said = [self._remarked(events), *self._changed(events), *self._new_numbers()]
        newest = self._state_mark = self.session.events.seq
        count, last = 0, newest
        if self._unsent:
            rows, count, last = self._what.rows.after(self._view, self._row_mark, limits.stream_rows)
            said.append(rows)
        self._unsent = self._unsent - count if count == limits.stream_rows else 0
        self._row_mark = last if count and self._unsent else newest
        return Patch(markup(said), self._row_mark)

    def snapshot(self) -> Patch:
        """Everything this page shows that can change, in one message."""
        newest = self.session.events.seq
        self._state_mark = self._row_mark = newest
        self._unsent, self._numbers = 0, {}
        whole = [self._safely(part, partial_of(part.whole, self._view, self._seen)) for part in self._what.live]
        return Patch(markup([*self._new_numbers(), *whole, self._what.rows.whole(self._view)]), newest)

    def _changed(self, events: list[Event]) -> list[Html]:
        """The parts that these events touch, each once."""
        happened = {event.kind for event in events}
        return [
            self._safely(part, partial_of(part.changed, self._view, _of(part, events), self._seen))
            for part in self._what.live
            if not part.on.isdisjoint(happened)
        ]

    def _safely(self, part: Live, draw: Callable[[], Html]) -> Html:
        """A part that cannot be drawn is left as it is, and that is in our log: it must not end the stream, which would
        come back and end again."""
        try:
            return draw()
        except TooMany:
            raise
        except Exception:
            logger.exception("a part of the page %s could not be drawn, %r", self._view.page, part)
            return NOTHING

    def _remarked(self, events: list[Event]) -> Html:
        """Rows that the tab has and that somebody has remarked on since."""
        seqs = {int(event.subject) for event in events if event.kind == "finding.raised" and event.subject.isdecimal()}
        sent = sorted(seq for seq in seqs if seq <= self._row_mark)
        if len(sent) > self._view.limits.stream_rows:
            raise TooMany
        return self._what.rows.anew(self._view, sent)

    def _new_numbers(self) -> list[Html]:
        session, numbers = self.session, self._what.numbers
        now = self._view.once(numbers, session.events.seq, lambda: dict(numbers(session)))
        if self._unsent > self._view.limits.stream_rows:
            now = {key: text for key, text in now.items() if key not in self._what.late}
        changed = {key: text for key, text in now.items() if self._numbers.get(key) != text}
        self._numbers |= now
        return [partial(f"#{key}", shown(text), "textContent") for key, text in changed.items()]


def _of(part: Live, events: list[Event]) -> list[Event]:
    return [event for event in events if event.kind in part.on]
