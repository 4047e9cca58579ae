"""The page of the log, one message of it opened, and the log as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app import bounds
from app.core.calls import Call
from app.core.folds import Entry, folded, members, worth
from app.core.found import Found
from app.core.log import MessageLog
from app.core.wire import Exchange, Message
from app.sessions import Workspace
from app.web.calls.again import GONE, sent
from app.web.door.denied import unknown
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.json_text import json_bytes
from app.web.kit.request_bodies import nothing, whole_number
from app.web.kit.responses import by_htmx, show, show_page, started, wants_json
from app.web.kit.templates import Context
from app.web.live.page import page
from app.web.log.filter import NONE, LogFilter, LogMatches, LogMatchesPart, matches, search
from app.web.log.row import log_rows
from app.web.log.view import Opened, message_json, opened, placed_json

JSON_ROWS = 1_000
JSON_RAW_BYTES = 4 * 1024 * 1024
EXPORT_ROWS: Final = 200
_ROWS: Final = 200
_MOST_ROWS: Final = 1_000
_BARE: Final = 50
"""HTTP requests without a message on the page."""


async def export_lines(session: Workspace, wanted: LogFilter) -> AsyncIterator[bytes]:
    """Every message that is kept now, one JSON object to a line."""
    kept = await search(session, wanted)

    def lines(messages: list[Message]) -> bytes:
        return b"".join(json_bytes(message_json(session, one)) + b"\n" for one in messages)

    last = 0
    while portion := await anyio.to_thread.run_sync(kept.after, last, EXPORT_ROWS):
        last = portion[-1].seq
        yield await anyio.to_thread.run_sync(lines, portion)


@dataclass(slots=True)
class Log(Context):
    """The log as a page."""

    template: ClassVar[str] = "log/page.html"
    part: ClassVar[str | None] = "log/_earlier.html"

    shell: Shell
    detail: Opened | None
    found: LogMatches
    http: list[Exchange]
    """The newest HTTP requests that carried no message, which no row shows."""


@dataclass(slots=True)
class MessageDetail(Log):
    """One message: the log page with it opened, or only the opened message."""

    part: ClassVar[str | None] = "log/_message.html"


@dataclass(slots=True)
class FoldPart(Context):
    """What is in a fold of the log, as rows."""

    template: ClassVar[str] = "log/_fold.html"
    part: ClassVar[str | None] = "log/_fold.html"

    rows: Html


@dataclass(slots=True)
class Resent(Context):
    """What became of a message that was sent again."""

    template: ClassVar[str] = "log/_resent.html"
    part: ClassVar[str | None] = "log/_resent.html"

    session: Workspace
    call: Call


@dataclass(slots=True, frozen=True)
class Portion:
    """Which messages a script asks for: from one on, or before one; all of them, or what a filter found."""

    after: int | None
    before: int | None
    limit: int | None
    matching: Found | None
    """None without a filter."""

    def messages(self, log: MessageLog) -> list[Message]:
        limit, after = self.limit or JSON_ROWS, self.after or 0
        if self.matching is not None and self.before is not None:
            return self.matching.before(self.before, limit)
        if self.matching is not None:
            return self.matching.after(after, limit)
        return log.before(self.before, limit) if self.before is not None else log.after(after, limit)

    def requests(self, log: MessageLog, rows: list[dict[str, Any]]) -> list[Exchange]:
        """The HTTP requests that stand between these messages, and after the newest one. Whoever goes on from `next`
        meets each once. A filter chooses messages, and no requests."""
        if self.matching is not None:
            return []
        if self.before is not None:
            begins = not rows or rows[0]["seq"] == log.first_seq
            return log.exchanges(0 if begins else rows[0]["seq"] - 1, self.before)
        newest = log.last(1)
        ends = not rows or rows[-1]["seq"] == newest[0].seq
        return log.exchanges(self.after or 0, None if ends else rows[-1]["seq"] + 1)


def log_json(session: Workspace, wanted: Portion) -> dict[str, Any]:
    """Messages for scripts, at most so many bytes of them at once."""
    log, after = session.messages, wanted.after or 0
    rows: list[dict[str, Any]] = []
    held = 0
    for message in wanted.messages(log):
        held += message.size
        if rows and held > JSON_RAW_BYTES:
            break
        rows.append(message_json(session, message))
    first = log.first_seq
    missing = log.rows_dropped > 0 and first is not None and after < first - 1
    requests = wanted.requests(log, rows)
    known = [after, *(row["seq"] for row in rows[-1:]), *(one.seq for one in requests[-1:])]
    return {
        "messages": rows,
        "next": rows[-1]["seq"] if rows and wanted.before is not None else max(known),
        "trimmed": missing or any(row.get("trimmed") for row in rows),
        "exchanges": [placed_json(one) for one in requests],
    }


def _page(
    session: Workspace,
    shown: tuple[list[Entry], int | None],
    wanted: LogFilter,
    matching: Found,
    *,
    before: int | None = None,
    detail: Opened | None = None,
) -> Log:
    """The log with these rows. With a filter (`wanted`), what it found (`matching`) stands in a list of its own."""
    title = "Log" if detail is None else f"Message {detail.chosen.number}"
    bare = [one for one in session.messages.exchanges() if not one.carried]
    return (Log if detail is None else MessageDetail)(
        shell=shell(session, "log", title, shown=shown),
        detail=detail,
        found=matches(session, wanted, matching, before=before),
        http=bare[: -_BARE - 1 : -1],
    )


def log_page(session: Workspace, before: int | None, limit: int | None, wanted: LogFilter, matching: Found) -> Log:
    """The log of a session: the newest rows, or those before `before`."""
    many, source = min(limit or _ROWS, _MOST_ROWS), session.messages
    older = None if wanted else before
    return _page(session, folded(source.back(older), worth(source), many), wanted, matching, before=before)


async def message_page(session: Workspace, seq: int) -> Log:
    """One message of the log, opened among the rows around it."""
    detail, source = await opened(session, seq), session.messages
    if detail is None:
        raise unknown(GONE)
    key, newer = worth(source, apart=seq), source.after(seq - 1, bounds.FOLD_LOOKS)
    rows, oldest = folded(reversed(newer), key, _MOST_ROWS) if len(newer) < bounds.FOLD_LOOKS else ([], None)
    if oldest != seq:  # too long ago to stand among the newest
        return _page(session, folded(source.back(), key, _ROWS), LogFilter(), NONE, detail=detail)
    before, first = folded(source.back(seq), key, _ROWS // 2)
    return _page(session, (before + rows, first or oldest), LogFilter(), NONE, detail=detail)


@page("log")
async def log(request: Request) -> Response:
    session: Workspace = request.state.session
    after, before, limit = (whole_number(request, name) for name in ("after", "before", "limit"))
    wanted = LogFilter.of(request.query_params)
    matching = await search(session, wanted) if wanted else None
    if (name := request.query_params.get("fold")) and by_htmx(request) and not wants_json(request):
        return await show_page(request, _fold_part(request, session, name, matching))
    asks_filter = matching is not None or before is None  # an empty filter is one too: it shows everything again
    if asks_filter and by_htmx(request) and not wants_json(request):
        part = matches(session, wanted, matching or NONE, after=after, before=before)
        return await show_page(request, LogMatchesPart(session.base, part))
    return await show(
        request,
        lambda: log_page(session, before, limit, wanted, matching or NONE),
        lambda: log_json(session, Portion(after, before, limit, matching)),
    )


def _fold_part(request: Request, session: Workspace, name: str, matching: Found | None) -> FoldPart:
    """The rows of one fold, of the log or of what a filter found."""
    first, last = whole_number(request, "first") or 0, whole_number(request, "last") or 0
    messages = session.messages.back(last + 1) if matching is None else matching.back()
    found = members(messages, worth(session.messages), name, first, last, bounds.FOLD_ROWS)
    return FoldPart(log_rows(session, found, found=matching is not None))


async def resend(request: Request) -> Response:
    """What we sent, once more, as a call of its own."""
    await nothing(request)
    session: Workspace = request.state.session
    again = sent(session, _seq(request))
    call = session.start_call(again.method, again.params, notification=again.notification, by=request.state.identity)
    if by_htmx(request) and not wants_json(request):
        return await show_page(request, Resent(session, call))
    return await started(request, session, call)


def _seq(request: Request) -> int:
    """The message that an address names; 0 when it cannot be one."""
    seq = request.path_params["seq"]
    return int(seq) if seq.isdecimal() and len(seq) < 16 else 0


async def export(request: Request) -> Response:
    """The log as JSON lines, one message each."""
    session: Workspace = request.state.session
    name = f"parley-log-{session.number}.jsonl"
    return StreamingResponse(
        export_lines(session, LogFilter.of(request.query_params)),
        media_type="application/x-ndjson",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


async def message(request: Request) -> Response:
    session: Workspace = request.state.session
    found = session.messages.get(_seq(request))
    if found is None:
        raise unknown(GONE)
    return await show(request, lambda: message_page(session, found.seq), lambda: message_json(session, found))
