"""The page of the log, one message of it opened, and the log as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
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
from app.web.kit.json_text import json_bytes
from app.web.kit.request_bodies import whole_number
from app.web.kit.responses import by_htmx, show, show_page, wants_json
from app.web.kit.templates import Context
from app.web.live.page import page
from app.web.log.filter import LogFilter, LogMatches, LogMatchesPart, matches, search
from app.web.log.view import Opened, message_json, opened, placed_json

JSON_ROWS = 1_000
JSON_RAW_BYTES = 4 * 1024 * 1024
EXPORT_ROWS: Final = 200
_GONE: Final = "There is no such message. The oldest ones leave the log first."
_ROWS: Final = 200
_MOST_ROWS: Final = 1_000
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
    detail: Opened | None
    found: LogMatches
    http: list[Exchange]
    """The newest HTTP requests that carried no message, which no row shows."""


@dataclass(slots=True)
class MessageDetail(Log):
    """One message: the log page with it opened, or only the opened message."""

    part: ClassVar[str | None] = "log/_message.html"


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


def _page(
    session: Workspace,
    shown: list[Message],
    wanted: LogFilter,
    matching: list[Message],
    *,
    before: int | None = None,
    detail: Opened | None = None,
) -> Log:
    """The log with these rows. With a filter (`wanted`), what it found (`matching`) stands in a list of its own."""
    title = "Log" if detail is None else f"Message {detail.seq}"
    bare = [one for one in session.messages.exchanges() if not one.carried]
    return (Log if detail is None else MessageDetail)(
        shell=shell(session, "log", title, messages=shown),
        detail=detail,
        found=matches(session, wanted, matching, before=before),
        http=bare[: -_BARE - 1 : -1],
    )


def log_page(
    session: Workspace, before: int | None, limit: int | None, wanted: LogFilter, matching: list[Message]
) -> Log:
    """The log of a session: the newest rows, or those before `before`."""
    many, source = min(limit or _ROWS, _MOST_ROWS), session.messages
    shown = source.before(before, many) if before is not None and not wanted else source.last(many)
    return _page(session, shown, wanted, matching, before=before)


async def message_page(session: Workspace, seq: int) -> Log:
    """One message of the log, opened among the rows around it."""
    detail, source = await opened(session, seq), session.messages
    if detail is None:
        raise unknown(_GONE)
    newer = source.after(seq - 1, _MOST_ROWS)
    shown = source.before(seq, _ROWS // 2) + newer if len(newer) < _MOST_ROWS else source.last(_ROWS)
    return _page(session, shown, LogFilter(), [], detail=detail)


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
        lambda: log_page(session, before, limit, wanted, matching or []),
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
