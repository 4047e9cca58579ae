"""What the server logs: by level and logger, with stderr beside it, and the level that is asked of it.

The page and its stream show the newest lines that fit the filter. Every message is in the log of the session too, byte
for byte, and each line here leads to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import Response

from app.core.options import LEVELS
from app.core.times import wire_time
from app.sessions import Workspace
from app.sessions.server_log import LogLine, rank
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.responses import show
from app.web.kit.templates import Context, fragment
from app.web.live.page import page
from app.web.live.parts import Part, View

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


class LoggingView:
    """The lines, newest first, and stderr beside them; also a part of the stream (`#server-log`)."""

    def __init__(self, session: Workspace, wanted: Wanted) -> None:
        self.session, self.wanted = session, wanted
        kept = session.server_log.lines()
        found = [line for line in kept if wanted.fits(line)]
        stderr = [line for line in session.stderr.lines() if line.counts]
        self.kept, self.matching = len(kept), len(found)
        self.lines, self.stderr = found[: -LINES - 1 : -1], stderr[: -STDERR_LINES - 1 : -1]


@dataclass(slots=True)
class Logging(Context):
    """The log of the server."""

    template: ClassVar[str] = "log/server_log.html"
    part: ClassVar[str | None] = "log/_server_log.html"

    shell: Shell
    log: LoggingView
    levels: tuple[str, ...]


def _newest(view: View) -> Html:
    return fragment("log/_server_log.html", log=LoggingView(view.session, Wanted.of_query(view.of)))


_LINES = Part(
    "#server-log",
    ("message.recorded", "stderr.written"),
    _newest,
    version=lambda view: (view.session.server_log.count, view.session.stderr.count),
)


@page("logging", _LINES)
async def logging(request: Request) -> Response:
    """The log of the server, as the query wants it."""
    session: Workspace = request.state.session
    wanted = Wanted.of(request.query_params)
    return await show(request, lambda: logging_page(session, wanted), lambda: logging_json(session, wanted))


def logging_page(session: Workspace, wanted: Wanted) -> Logging:
    """The log of the server as a page."""
    surroundings = shell(session, "logging", "Server logging", of=wanted.query)
    return Logging(surroundings, LoggingView(session, wanted), LEVELS)


def logging_json(session: Workspace, wanted: Wanted) -> dict[str, Any]:
    """Every line that is kept and fits, for scripts."""
    return {
        "messages": [
            {
                "number": one.number,
                "seq": one.seq,
                "time": wire_time(one.at),
                "level": one.level,
                "logger": one.logger or None,
                "text": one.text,
            }
            for one in session.server_log.lines()
            if wanted.fits(one)
        ],
        "count": session.server_log.count,
        "loggers": session.server_log.loggers,
        "level": session.options.log_level,
    }
