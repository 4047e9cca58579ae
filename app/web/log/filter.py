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
from app.core.wire import Message
from app.sessions import Workspace
from app.web.door.denied import invalid
from app.web.kit.html import Html
from app.web.kit.templates import Context, jinja
from app.web.log.row import log_rows

FOUND_ROWS: Final = 200
METHODS: Final = 200


DIRECTIONS: Final = (("", "Both"), ("out", "Sent"), ("in", "Received"))
KINDS: Final = (
    ("", "All kinds"),
    ("request", "Requests"),
    ("reply", "Replies"),
    ("notification", "Notifications"),
    ("invalid", "Invalid"),
)
jinja.globals.update(DIRECTIONS=DIRECTIONS, KINDS=KINDS)
_OF_KIND: Final = {
    "request": {"request"},
    "reply": {"response", "error"},
    "notification": {"notification"},
    "invalid": {"invalid"},
}


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
    def query(self) -> str:
        """As the query of an address."""
        return urlencode({key: value for key, value in asdict(self).items() if value})

    def search(self, session: Workspace, messages: list[Message]) -> list[Message]:
        """Those of the messages that match; reads only, so it may run in a thread."""
        if not self:
            return messages
        log, kinds = session.messages, _OF_KIND.get(self.kind)
        words = self.q.lower().split()
        wire_words = [word.encode("utf-8", "surrogatepass") for word in words]

        def says(message: Message) -> bool:
            row = f"{message.seq} {message.method or ''} {message.gist} {message.rpc_id}".lower()
            if all(word in row for word in words):
                return True
            body = (log.raw(message.seq) or b"").lower()
            return all(word in row or wire in body for word, wire in zip(words, wire_words, strict=True))

        return [
            one
            for one in messages
            if (not self.dir or one.direction == self.dir)
            and (kinds is None or one.kind in kinds)
            and (not self.method or (one.method or "").startswith(self.method))
            and (not self.findings or log.findings(one.seq))
            and (not words or says(one))
        ]


async def search(session: Workspace, wanted: LogFilter) -> list[Message]:
    """Every kept message that matches, oldest first. Looks into bodies, so it runs in a thread."""
    kept = session.messages.last(len(session.messages))
    return await anyio.to_thread.run_sync(wanted.search, session, kept) if wanted else kept


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
    matching: list[Message],
    *,
    after: int | None = None,
    before: int | None = None,
) -> LogMatches:
    """The newest of what matches; those before a message; or those after one, when they are few enough to add."""
    newest = session.messages.last(1)
    swap, chosen = "innerHTML", matching[-FOUND_ROWS:]
    if before is not None:
        swap, chosen = "afterbegin", [one for one in matching if one.seq < before][-FOUND_ROWS:]
    elif after is not None:
        newer = [one for one in matching if one.seq > after]
        if len(newer) <= FOUND_ROWS:
            swap, chosen = "beforeend", newer
    if not wanted:
        chosen = []
    methods = {one.method for one in session.messages.last(5_000) if one.method}
    more = chosen and matching[0].seq < chosen[0].seq
    return LogMatches(
        filter=wanted,
        swap=swap,
        rows=log_rows(session, chosen, found=True),
        words=f"{grouped(len(matching))} of {grouped(len(session.messages))}" if wanted else "",
        earlier=chosen[0].seq if more else None,
        mark=newest[0].seq if newest else 0,
        methods=sorted(methods)[:METHODS],
    )


@dataclass(slots=True)
class LogMatchesPart(Context):
    """The answer to a tab that filters."""

    template: ClassVar[str] = "log/_matches.html"
    part: ClassVar[str | None] = "log/_matches.html"

    base: str
    found: LogMatches
