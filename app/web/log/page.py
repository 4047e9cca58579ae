"""The page of the log, one message of it opened, and the log as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app.core.log import MessageLog
from app.core.wire import Exchange, Message
from app.sessions import Workspace
from app.web.door.denied import unknown
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.json_text import json_bytes
from app.web.kit.request_bodies import whole_number
from app.web.kit.responses import by_htmx, show, show_page, wants_json
from app.web.kit.templates import Context
from app.web.live.page import page
from app.web.log.filter import LogFilter, LogMatches, LogMatchesPart, matches, search
from app.web.log.view import (
    ExchangeView,
    MessageView,
    exchange_view,
    message_json,
    message_view,
    placed_json,
    read_pair,
)

JSON_ROWS = 1_000
JSON_RAW_BYTES = 4 * 1024 * 1024
EXPORT_ROWS: Final = 200
_GONE: Final = "There is no such message. The oldest ones leave the log first."
_BARE: Final = 50
"""HTTP requests without a message on the page."""


async def export_lines(session: Workspace, wanted: LogFilter) -> AsyncIterator[bytes]:
    """Every message that is kept now, one JSON object to a line."""
    kept = await search(session, wanted)

    def lines(messages: list[Message]) -> bytes:
        return b"".join(json_bytes(message_json(session, one)) + b"\n" for one in messages)

    for start in range(0, len(kept), EXPORT_ROWS):
        yield await anyio.to_thread.run_sync(lines, kept[start : start + EXPORT_ROWS])


@dataclass(slots=True)
class Log(Context):
    """The log as a page."""

    template: ClassVar[str] = "log/page.html"
    part: ClassVar[str | None] = "log/_earlier.html"

    shell: Shell
    detail: MessageView | None
    rows: Html
    earlier: int | None
    dropped: int
    found: LogMatches
    http: list[ExchangeView]
    """The newest HTTP requests that carried no message, which no row shows."""


@dataclass(slots=True, frozen=True)
class Portion:
    """Which messages a script asks for: from one on, or before one; all of them, or what a filter found."""

    after: int | None
    before: int | None
    limit: int | None
    matching: list[Message] | None
    """None without a filter."""

    def messages(self, log: MessageLog) -> list[Message]:
        limit, after = self.limit or JSON_ROWS, self.after or 0
        if self.matching is not None and self.before is not None:
            return [one for one in self.matching if one.seq < self.before][-limit:]
        if self.matching is not None:
            return [one for one in self.matching if one.seq > after][:limit]
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


def log_page(
    session: Workspace,
    *,
    before: int | None = None,
    limit: int | None = None,
    at: int | None = None,
    read: Mapping[int, Html] | None = None,
    wanted: LogFilter | None = None,
    matching: list[Message] | None = None,
) -> Log:
    """The log of a session: the newest rows, those before `before`, or those around message `at`, which are opened
    with what was `read` of them.

    With a filter (`wanted`) and what it found (`matching`) these stand in a list of their own."""
    source, many = session.messages, min(limit or 200, 1_000)
    wanted = wanted or LogFilter()
    if before is not None and not wanted:
        shown = source.before(before, many)
    elif at is not None and len(newer := source.after(at - 1, 1_000)) < 1_000:
        shown = source.before(at, many // 2) + newer
    else:
        shown = source.last(many)
    first = source.first_seq
    surroundings = shell(session, "log", "Log" if at is None else f"Message {at}", messages=shown)
    return Log(
        shell=surroundings,
        detail=message_view(session, at, read or {}) if at is not None else None,
        rows=surroundings.rows,
        earlier=shown[0].seq if shown and first is not None and shown[0].seq > first else None,
        dropped=source.rows_dropped,
        found=matches(session, wanted, matching or [], before=before),
        http=_bare(session),
    )


def _bare(session: Workspace) -> list[ExchangeView]:
    """The newest HTTP requests that carried no message, the last one first."""
    found = [one for one in session.messages.exchanges() if not one.carried]
    return [exchange_view(one) for one in reversed(found[-_BARE:])]


@dataclass(slots=True)
class MessageDetail(Context):
    """One message: the log page with it opened, or only the opened message."""

    template: ClassVar[str] = "log/page.html"
    part: ClassVar[str | None] = "log/_message.html"

    shell: Shell
    detail: MessageView
    rows: Html
    earlier: int | None
    dropped: int
    found: LogMatches
    http: list[ExchangeView]


async def message_page(session: Workspace, seq: int) -> MessageDetail:
    """One message of the log, opened."""
    page = log_page(session, at=seq, read=await read_pair(session, seq))
    if page.detail is None:
        raise unknown(_GONE)
    return MessageDetail(
        shell=page.shell,
        detail=page.detail,
        rows=page.rows,
        earlier=page.earlier,
        dropped=page.dropped,
        found=page.found,
        http=page.http,
    )


@page("log", notice=False)
async def log(request: Request) -> Response:
    session: Workspace = request.state.session
    after, before, limit = (whole_number(request, name) for name in ("after", "before", "limit"))
    wanted = LogFilter.of(request.query_params)
    matching = await search(session, wanted) if wanted else None
    asks_filter = matching is not None or before is None  # an empty filter is one too: it shows everything again
    if asks_filter and by_htmx(request) and not wants_json(request):
        part = matches(session, wanted, matching or [], after=after, before=before)
        return await show_page(request, LogMatchesPart(f"/s/{session.id}", part))
    return await show(
        request,
        lambda: log_page(session, before=before, limit=limit, wanted=wanted, matching=matching),
        lambda: log_json(session, Portion(after, before, limit, matching)),
    )


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
    seq = request.path_params["seq"]
    found = session.messages.get(int(seq)) if seq.isdecimal() and len(seq) < 16 else None
    if found is None:
        raise unknown(_GONE)
    return await show(request, lambda: message_page(session, found.seq), lambda: message_json(session, found))
