"""The filter of the log, and what it found.

A filter is the server's alone: a tab that filters asks again when messages arrive, so that a row which does not match
can never slip in, and the text of the bodies counts too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar, Final
from urllib.parse import urlencode

import anyio.to_thread

from app.core.figures import grouped
from app.core.folds import Entry, Worth, folded, worth
from app.core.found import Found, Listed, Search
from app.core.wire import Direction, MessageKind
from app.sessions import Workspace
from app.web.door.denied import invalid
from app.web.kit.html import Html
from app.web.kit.templates import Context, jinja
from app.web.log.row import log_rows

FOUND_ROWS: Final = 200
METHODS: Final = 200
_LOOKED_AT: Final = 5_000
"""Messages whose methods a filter offers."""


DIRECTIONS: Final = (("", "Both"), ("out", "Sent"), ("in", "Received"))
KINDS: Final = (
    ("", "All"),
    ("request", "Requests"),
    ("reply", "Replies"),
    ("notification", "Notifications"),
    ("invalid", "Invalid"),
)
jinja.globals.update(DIRECTIONS=DIRECTIONS, KINDS=KINDS)
_OF_KIND: Final[dict[str, frozenset[MessageKind]]] = {
    "request": frozenset({"request"}),
    "reply": frozenset({"response", "error"}),
    "notification": frozenset({"notification"}),
    "invalid": frozenset({"invalid"}),
}
_DIRECTION: Final[dict[str, Direction]] = {"in": "in", "out": "out"}
NONE: Final[Found] = Listed([])
"""What no filter found."""


@dataclass(slots=True, frozen=True)
class LogFilter:
    """Which messages to show: every word somewhere in the message, and the rest exactly."""

    q: str = ""
    dir: str = ""
    kind: str = ""
    method: str = ""
    """How the method begins."""
    findings: str = ""
    """Not empty: only messages with a finding."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> LogFilter:
        """What an address asks for. Denied when a choice does not exist."""
        wrong = {}
        for name, choices in (("dir", DIRECTIONS), ("kind", KINDS)):
            words = [key for key, _ in choices if key]
            if query.get(name, "") not in {"", *words}:
                wrong[f"/{name}"] = [f"One of {', '.join(words)}, or nothing."]
        if wrong:
            raise invalid(wrong)
        return cls(
            q=query.get("q", "").strip()[:500],
            dir=query.get("dir", ""),
            kind=query.get("kind", ""),
            method=query.get("method", "").strip()[:200],
            findings="1" if query.get("findings", "") not in {"", "0", "false"} else "",
        )

    def __bool__(self) -> bool:
        return any(asdict(self).values())

    @property
    def folds(self) -> bool:
        """Whether what repeats is folded: not where somebody looks for a text."""
        return not (self.q or self.method or self.findings)

    @property
    def query(self) -> str:
        """As the query of an address."""
        return urlencode({key: value for key, value in asdict(self).items() if value})

    @property
    def search(self) -> Search:
        """As the log looks for it."""
        kinds, words = _OF_KIND.get(self.kind), tuple(self.q.lower().split())
        return Search(words, _DIRECTION.get(self.dir), kinds, self.method, bool(self.findings))


async def search(session: Workspace, wanted: LogFilter) -> Found:
    """Every kept message that matches, oldest first. Looks into bodies, so it runs in a thread."""
    look = session.messages.search(wanted.search)
    return await anyio.to_thread.run_sync(look) if wanted else look()


@dataclass(slots=True)
class LogMatches:
    """What a filter found; also the part that answers a tab which filters."""

    filter: LogFilter
    swap: str
    rows: Html
    words: str
    """`46 of 1 208`"""
    earlier: int | None
    mark: int
    """Up to which message it looked."""
    methods: list[str]


def matches(
    session: Workspace,
    wanted: LogFilter,
    matching: Found,
    *,
    after: int | None = None,
    before: int | None = None,
) -> LogMatches:
    """The newest of what matches; those before a message; or those after one, when they are few enough to add."""
    newest = session.messages.last(1)
    key: Worth = worth(session.messages) if wanted.folds else lambda _: None
    swap, entries, oldest = "innerHTML", list[Entry](), None
    if wanted and before is not None:
        swap, (entries, oldest) = "afterbegin", folded(matching.back(before), key, FOUND_ROWS)
    elif wanted and after is not None and len(newer := matching.after(after, FOUND_ROWS + 1)) <= FOUND_ROWS:
        swap, entries = "beforeend", list(newer)
    elif wanted:
        entries, oldest = folded(matching.back(), key, FOUND_ROWS)
    first = matching.first_seq
    return LogMatches(
        filter=wanted,
        swap=swap,
        rows=log_rows(session, entries, found=True, folds=wanted.folds),
        words=f"{grouped(len(matching))} of {grouped(len(session.messages))}" if wanted else "",
        earlier=oldest if oldest is not None and first is not None and first < oldest else None,
        mark=newest[0].seq if newest else 0,
        methods=sorted(session.messages.methods(_LOOKED_AT))[:METHODS],
    )


@dataclass(slots=True)
class LogMatchesPart(Context):
    """The answer to a tab that filters."""

    template: ClassVar[str] = "log/_matches.html"
    part: ClassVar[str | None] = "log/_matches.html"

    base: str
    found: LogMatches
