"""What a server says by `notifications/message`: level, logger and text, the newest kept (R5-22).

The messages themselves stand in the log of the session, byte for byte; this is the list a person reads. Knows nothing
of the web.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from sys import intern
from typing import Any

from app import bounds
from app.core.options import LEVELS


@dataclass(slots=True, frozen=True)
class LogLine:
    """One message of the server's log."""

    number: int
    seq: int
    """Of the message that brought it."""
    at: float
    level: str
    logger: str
    text: str
    cut: int = 0
    """Characters that are left out here."""


class ServerLog:
    """The log of one server, over the connections of a session."""

    def __init__(self) -> None:
        self._lines: deque[LogLine] | None = None
        self.count = 0
        self.loggers: dict[str, int] = {}
        """Who logs, and how often."""

    def put(self, lines: Iterable[LogLine], count: int, loggers: dict[str, int]) -> None:
        """Have just these lines, of so many."""
        self._lines, self.count, self.loggers = deque(lines, maxlen=bounds.SERVER_LOG_LINES), count, dict(loggers)

    def write(self, params: dict[str, Any], seq: int, at: float) -> None:
        """Keep one notification."""
        if self._lines is None:
            self._lines = deque(maxlen=bounds.SERVER_LOG_LINES)
        self.count += 1
        data = params.get("data")
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
        level, name = params.get("level"), params.get("logger")
        # The same few words come again and again, each time as another text.
        logger = intern(name[:200]) if isinstance(name, str) else ""
        said = intern(level[:40] if isinstance(level, str) else json.dumps(level)[:40])
        shown = text[: bounds.SERVER_LOG_TEXT]
        self._lines.append(LogLine(self.count, seq, at, said, logger, shown, len(text) - len(shown)))
        if logger in self.loggers or len(self.loggers) < bounds.SERVER_LOGGERS:
            self.loggers[logger] = self.loggers.get(logger, 0) + 1

    def lines(self) -> list[LogLine]:
        """Those that are kept, oldest first."""
        return list(self._lines or ())


def rank(level: str) -> int:
    """How severe a level is; one that the specification does not know counts as the most severe: nobody misses it."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)
