"""What a server wrote to its standard error: line by line, bounded, with what our own probe caused told apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from app import bounds
from app.core.events import EventLog
from app.core.wire import StderrLine
from app.settings import Limits

_PROBE = "server/discover"
_HEADS = ("validation error", "Traceback (most recent call last)")
_CHAINS = ("During handling of the above exception", "The above exception was the direct cause")


def _goes_on(text: str) -> bool:
    """Whether a line continues the report of an error: it is indented, a place in a message, or an exception."""
    first = text.partition(" ")[0]
    return (
        not text
        or text[0] in " \t|+"
        or text.startswith(_CHAINS)
        or (first == text and "Request" in text and "." in text)
        or first.endswith(("Error:", "Exception:"))
    )


class StderrLog:
    """What the server wrote to its standard error, line by line, bounded.

    Servers of the older era may report at length that they do not know our probe: those lines are marked."""

    def __init__(self, limits: Limits, events: EventLog, wall: Callable[[], float]) -> None:
        self._limits, self._events, self._wall = limits, events, wall
        self._lines: deque[StderrLine] | None = None
        self.count = 0
        self.by_probe = 0
        """How many lines complain of our probe."""
        self.earlier = 0
        """How many others are of starts that were repeated without a probe."""
        self.redrawn = 0
        """How often lines that were written before turned out to be of that kind."""
        self._watched_until = 0.0
        self._report = 0
        """The number of the line with which the report began that is being written; 0 outside of one."""
        self._blamed = False
        """That report is about our probe."""

    def put(self, lines: list[StderrLine]) -> None:
        """Have just these lines."""
        self._lines, self.count = deque(lines, self._limits.stderr_lines), lines[-1].number if lines else 0
        self.by_probe = sum(line.by_probe for line in lines)
        self.earlier = sum(line.earlier and not line.by_probe for line in lines)

    def probe_sent(self) -> None:
        """A `server/discover` leaves: from now on stderr may complain of it."""
        self._watched_until, self._report, self._blamed = float("inf"), 0, False

    def probe_over(self, *, at_once: bool = False) -> None:
        """It was answered, or its process is gone."""
        self._watched_until = min(self._watched_until, 0.0 if at_once else self._wall() + bounds.PROBE_GRACE_SECONDS)

    def write(self, line: bytes) -> None:
        """Keep one line. Bytes that are no text are shown as such, control characters stay visible."""
        self.count += 1
        kept = line[: self._limits.stderr_line_bytes]
        text = kept.decode(errors="backslashreplace")
        if len(kept) < len(line):
            text += f" … {len(line) - len(kept)} more bytes"
        if self._lines is None:  # most servers over HTTP have none
            self._lines = deque(maxlen=self._limits.stderr_lines)
        self._lines.append(StderrLine(self.count, self._wall(), text))
        if self._watched_until:
            self._blame(text)
        self._events.append("stderr.written", "stderr", self._wall())

    def _blame(self, text: str) -> None:
        """Mark the line just written, and its report, when they are about our probe."""
        if self._wall() > self._watched_until:
            self._watched_until = 0.0
            return
        if any(head in text for head in _HEADS):
            self._report = self._report or self.count
        elif not _goes_on(text):
            self._report, self._blamed = 0, False
        if _PROBE in text:
            self._blamed = self._report > 0
            self._mark(self._report or self.count)
        elif self._blamed:
            self._mark(self.count)

    def _mark(self, since: int) -> None:
        for line in reversed(self._lines or ()):
            if line.number < since or line.by_probe:
                break
            line.by_probe = True
            self.by_probe += 1
            self.redrawn += line.number != self.count

    def set_aside(self, since: int) -> None:
        """What was written after line `since` is of a start that is now repeated without a probe."""
        for line in self._lines or ():
            if line.number > since and line.counts:
                line.earlier = True
                self.earlier += 1
        self.redrawn += 1
        self._events.append("stderr.written", "stderr", self._wall())

    @property
    def own(self) -> int:
        """How many lines are the server's own word."""
        return self.count - self.by_probe - self.earlier

    def lines(self) -> list[StderrLine]:
        """The lines still kept, oldest first."""
        return list(self._lines or ())

    def tail(self, n_bytes: int, since: int = 0) -> str:
        """The end of what was written after line `since`: at most about `n_bytes`, whole lines, and no complaint of
        our probe."""
        kept: list[str] = []
        size = 0
        for line in reversed(self._lines or ()):
            if line.by_probe:
                continue
            size += len(line.text) + 1
            if line.number <= since or (kept and size > n_bytes):
                break
            kept.append(line.text[-n_bytes:])
        return "\n".join(reversed(kept))
