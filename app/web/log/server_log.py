"""What the server logs and how it answers pings, as parts of a page: the lines that fit a filter, and the last ping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from app.core.wire import StderrLine
from app.sessions import Workspace
from app.sessions.server_log import LEVELS, LogLine, rank
from app.web.kit import html as show_as

LINES = 200
STDERR_LINES = 100


@dataclass(slots=True, frozen=True)
class Wanted:
    """Which lines a page shows: from a level up, of one logger, with a text."""

    level: str = ""
    logger: str | None = None
    q: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wanted:
        level = query.get("level", "")
        logger = query.get("logger", "*")
        named = None if logger == "*" else logger[:200]
        return cls(level if level in LEVELS else "", named, query.get("q", "").strip()[:200])

    @classmethod
    def of_query(cls, text: str) -> Wanted:
        return cls.of(dict(parse_qsl(text, keep_blank_values=True)))

    @property
    def query(self) -> str:
        given = {"level": self.level} if self.level else {}
        given |= {"logger": self.logger} if self.logger is not None else {}
        return urlencode(given | ({"q": self.q} if self.q else {}))

    def fits(self, line: LogLine) -> bool:
        if self.level and rank(line.level) < LEVELS.index(self.level):
            return False
        if self.logger is not None and line.logger != self.logger:
            return False
        return not self.q or self.q.casefold() in f"{line.logger}\n{line.text}".casefold()


@dataclass(slots=True)
class LoggingView:
    """The lines, newest first, and stderr beside them; also a part of the stream (`#server-log`)."""

    base: str
    lines: list[LogLine]
    matching: int
    kept: int
    count: int
    stderr: list[StderrLine]
    stderr_count: int
    has_process: bool
    offered: bool
    wanted: Wanted


@dataclass(slots=True)
class PingView:
    """The last ping, and whether they leave by themselves; also a part of the stream (`#ping`)."""

    base: str
    connected: bool
    offered: bool
    """2026-07-28 has no ping."""
    took: str
    at: str
    error: str
    sent: int
    failed: int
    every_ms: int | None


def logging_view(session: Workspace, wanted: Wanted) -> LoggingView:
    kept = session.server_log.lines()
    found = [line for line in kept if wanted.fits(line)]
    stderr = [line for line in session.stderr.lines() if not line.by_probe]
    return LoggingView(
        base=f"/s/{session.id}",
        lines=found[: -LINES - 1 : -1],
        matching=len(found),
        kept=len(kept),
        count=session.server_log.count,
        stderr=stderr[: -STDERR_LINES - 1 : -1],
        stderr_count=session.stderr.count - session.stderr.by_probe,
        has_process=session.info.pid is not None or bool(stderr),
        offered=session.info.offers("logging"),
        wanted=wanted,
    )


def ping_view(session: Workspace) -> PingView:
    pinging = session.pings
    last = pinging.last
    return PingView(
        base=f"/s/{session.id}",
        connected=session.info.state == "ready",
        offered=session.wire.ping,
        took=show_as.duration(last.ms) if last is not None and last.ms is not None else "",
        at=show_as.time_of_day(last.at) if last is not None else "",
        error=last.error if last is not None else "",
        sent=pinging.sent,
        failed=pinging.failed,
        every_ms=pinging.every_ms,
    )
