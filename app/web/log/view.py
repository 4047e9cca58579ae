"""The log: rows for the page, messages for scripts, its filter, and one message opened with its pair.

A filter is the server's alone: a tab that filters asks again when messages arrive, so that a row which does not match
can never slip in, and the text of the bodies counts too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final
from urllib.parse import urlencode

import anyio.to_thread

from app import bounds
from app.core.figures import grouped
from app.core.json import text as jsontext
from app.core.lane import apart
from app.core.times import wire_time
from app.core.wire import Exchange, Finding, Message
from app.sessions import Workspace
from app.web.kit import html as show
from app.web.kit.errors import invalid
from app.web.kit.frame import Context, Shell, jinja, json_bytes, log_rows, shell
from app.web.kit.html import Html

JSON_ROWS = 1_000
JSON_RAW_BYTES = 4 * 1024 * 1024
FOUND_ROWS: Final = 200
EXPORT_ROWS: Final = 200
METHODS: Final = 200
_BARE: Final = 50
"""HTTP requests without a message on the page."""

# ------------------------------------------------------------------------------------------------------------ filter

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

    @property
    def active(self) -> bool:
        return bool(self.filter)


def _found_rows(session: Workspace, messages: list[Message]) -> Html:
    """Rows with ids of their own: the same messages stand in `#log` too."""
    return log_rows(session, messages, found=True)


def found(
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
        rows=_found_rows(session, chosen),
        words=f"{grouped(len(matching))} of {grouped(len(session.messages))}" if wanted else "",
        earlier=chosen[0].seq if more else None,
        mark=newest[0].seq if newest else 0,
        methods=sorted(methods)[:METHODS],
    )


@dataclass(slots=True)
class LogMatchesPart(Context):
    """The answer to a tab that filters, and the JSON of a filtered log."""

    template: ClassVar[str] = "log/_matches.html"
    part: ClassVar[str | None] = "log/_matches.html"

    base: str
    found: LogMatches

    def as_json(self) -> dict[str, Any]:
        raise NotImplementedError


async def export(session: Workspace, wanted: LogFilter) -> AsyncIterator[bytes]:
    """Every message that is kept now, one JSON object to a line."""
    kept = await search(session, wanted)

    def lines(messages: list[Message]) -> bytes:
        return b"".join(json_bytes(message_json(session, one)) + b"\n" for one in messages)

    for start in range(0, len(kept), EXPORT_ROWS):
        yield await anyio.to_thread.run_sync(lines, kept[start : start + EXPORT_ROWS])


# --------------------------------------------------------------------------------------------------------------- log


def message_json(session: Workspace, message: Message) -> dict[str, Any]:
    """One message for scripts: `raw` is text, or null with `raw_base64` where the bytes are not UTF-8."""
    raw = session.messages.raw(message.seq)
    text: str | None = None
    encoded: str | None = None
    if raw is not None:
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            encoded = base64.b64encode(raw).decode()
    row: dict[str, Any] = {
        "seq": message.seq,
        "direction": message.direction,
        "time": wire_time(message.at),
        "size": message.size,
        "kind": message.kind,
        "method": message.method,
        "rpc_id": message.rpc_id,
        "raw": text,
        "answers": message.answers,
        "latency_ms": message.latency_ms,
        "problem": message.problem,
        "findings": [show.finding_json(one) for one in session.messages.findings(message.seq)],
    }
    if (exchange := session.messages.exchange(message.seq)) is not None:
        row["exchange"] = exchange_json(exchange)
    if encoded is not None:
        row["raw_base64"] = encoded
    if raw is None:
        row["trimmed"] = True
    return row


def exchange_json(exchange: Exchange) -> dict[str, Any]:
    """The HTTP request that carried a message, and its answer; secrets are masked already."""
    return {
        "method": exchange.method,
        "url": exchange.url,
        "time": wire_time(exchange.at),
        "request_headers": [list(pair) for pair in exchange.request_headers],
        "status": exchange.status,
        "response_headers": [list(pair) for pair in exchange.response_headers],
        "answered_ms": exchange.answered_ms,
        "ended_ms": exchange.ended_ms,
        "error": exchange.error,
        "note": exchange.note,
    }


def _placed_json(exchange: Exchange) -> dict[str, Any]:
    """The same with its own place in the log, and the messages that it carried; `messages` counts all of them."""
    place = {"seq": exchange.seq, "message_seqs": list(exchange.message_seqs), "messages": exchange.carried}
    return exchange_json(exchange) | place


@dataclass(slots=True)
class Log(Context):
    """The log: rows for the page, messages for scripts."""

    template: ClassVar[str] = "log/page.html"
    part: ClassVar[str | None] = "log/_earlier.html"

    shell: Shell
    detail: MessageView | None
    rows: Html
    earlier: int | None
    dropped: int
    found: LogMatches
    session: Workspace
    after: int | None
    before: int | None
    limit: int | None
    matching: list[Message] | None
    """None without a filter."""
    http: list[ExchangeView]
    """The newest HTTP requests that carried no message, which no row shows."""

    def as_json(self) -> dict[str, Any]:
        log, limit = self.session.messages, self.limit or JSON_ROWS
        after = self.after or 0
        if self.matching is not None and self.before is not None:
            chosen = [one for one in self.matching if one.seq < self.before][-limit:]
        elif self.matching is not None:
            chosen = [one for one in self.matching if one.seq > after][:limit]
        else:
            chosen = log.before(self.before, limit) if self.before is not None else log.after(after, limit)
        rows: list[dict[str, Any]] = []
        held = 0
        for message in chosen:
            held += message.size
            if rows and held > JSON_RAW_BYTES:
                break
            rows.append(message_json(self.session, message))
        first = log.first_seq
        missing = log.rows_dropped > 0 and first is not None and after < first - 1
        trimmed = missing or any(row.get("trimmed") for row in rows)
        requests = self._requests(rows, after)
        known = [after, *(row["seq"] for row in rows[-1:]), *(one.seq for one in requests[-1:])]
        following = rows[-1]["seq"] if rows and self.before is not None else max(known)
        return {
            "messages": rows,
            "next": following,
            "trimmed": trimmed,
            "exchanges": [_placed_json(one) for one in requests],
        }

    def _requests(self, rows: list[dict[str, Any]], after: int) -> list[Exchange]:
        """The HTTP requests that stand between these messages, and after the newest one. Whoever goes on from `next`
        meets each once. A filter chooses messages, and no requests."""
        log = self.session.messages
        if self.matching is not None:
            return []
        if self.before is not None:
            begins = not rows or rows[0]["seq"] == log.first_seq
            return log.exchanges(0 if begins else rows[0]["seq"] - 1, self.before)
        newest = log.last(1)
        ends = not rows or rows[-1]["seq"] == newest[0].seq
        return log.exchanges(after, None if ends else rows[-1]["seq"] + 1)


def log(
    session: Workspace,
    *,
    after: int | None,
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
        found=found(session, wanted, matching or [], before=before),
        session=session,
        after=after,
        before=before,
        limit=limit,
        matching=matching if wanted else None,
        http=_bare(session),
    )


@dataclass(slots=True, frozen=True)
class ExchangeView:
    """The HTTP request that carried a message, and its answer, in words."""

    method: str
    line: str
    answer: str
    error: str
    note: str
    sent: tuple[tuple[str, str], ...]
    received: tuple[tuple[str, str], ...]
    at: str


def _bare(session: Workspace) -> list[ExchangeView]:
    """The newest HTTP requests that carried no message, the last one first."""
    found = [one for one in session.messages.exchanges() if not one.carried]
    return [_exchange(one) for one in reversed(found[-_BARE:])]


def _exchange(exchange: Exchange) -> ExchangeView:
    answer = "no answer" if exchange.status is None else f"answered {exchange.status}"
    if exchange.answered_ms is not None:
        answer += f" after {show.duration(exchange.answered_ms)}"
    return ExchangeView(
        method=exchange.method,
        line=f"{exchange.method} {exchange.url}",
        answer=answer,
        error=exchange.error or "",
        note=exchange.note or "",
        sent=exchange.request_headers,
        received=exchange.response_headers,
        at=show.clock(exchange.at),
    )


@dataclass(slots=True)
class Half:
    """One message of a pair, opened."""

    seq: int
    direction: str
    kind: str
    method: str
    rpc_id: str
    at: str
    size: str
    tree: Html | None
    raw: str
    raw_cut: int
    trimmed: bool
    problem: str
    findings: list[Finding]
    exchange: ExchangeView | None


@dataclass(slots=True)
class MessageView:
    """One message with its pair; also the fragment that a row opens (`#detail`)."""

    base: str
    seq: int
    title: str
    glyph: str
    side: str
    rpc_id: str
    halves: list[Half]
    between: str
    unanswered: bool
    call_id: str


_TREE_BYTES = 2 * 1024 * 1024


def _tree(raw: bytes, seq: int) -> Html:
    return show.tree(jsontext.parse(raw).value, open_depth=3, label=f"Message {seq}")


async def _read(session: Workspace, seq: int) -> dict[int, Html]:
    """A message and its pair as trees, where they can be read; large ones are read in a thread."""
    found: dict[int, Html] = {}
    for one in _pair(session, seq):
        raw = session.messages.raw(one.seq)
        if raw is None or one.problem is not None or one.unread is not None or len(raw) > _TREE_BYTES:
            continue
        large = len(raw) > bounds.THREAD_ABOVE
        found[one.seq] = await apart(_tree, raw, one.seq) if large else _tree(raw, one.seq)
    return found


def _half(session: Workspace, message: Message, view: Html | None) -> Half:
    raw, carrier = session.messages.raw(message.seq), session.messages.exchange(message.seq)
    text, cut = ("", 0)
    if raw is not None:
        text, cut = show.raw_text(raw, 64 * 1024)
    return Half(
        seq=message.seq,
        direction=message.direction,
        kind=message.kind,
        method=message.method or "",
        rpc_id="" if message.rpc_id is None else show.gist(json.dumps(message.rpc_id), 60),
        at=show.clock(message.at),
        size=f"{grouped(message.size)} B",
        tree=view,
        raw=text,
        raw_cut=cut,
        trimmed=raw is None,
        problem=message.problem or "",
        findings=list(session.messages.findings(message.seq)),
        exchange=None if carrier is None else _exchange(carrier),
    )


def _pair(session: Workspace, seq: int) -> list[Message]:
    """A message and the one it belongs to, in their order; none when it is not there."""
    source = session.messages
    message = source.get(seq)
    if message is None:
        return []
    pair = source.get(message.answers) if message.answers is not None else source.reply_to(seq)
    return sorted([one for one in (message, pair) if one is not None], key=lambda one: one.seq)


def message_view(session: Workspace, seq: int, read: Mapping[int, Html]) -> MessageView | None:
    """A message and the one it belongs to, with the trees that were made of them."""
    members = _pair(session, seq)
    if not members:
        return None
    first = members[0]
    latency = next((one.latency_ms for one in members if one.latency_ms is not None), None)
    owner = next(
        (
            call.id
            for call in session.calls.values()
            if not call.quiet and any(seq in (leg.request_seq, leg.reply_seq) for leg in call.legs)
        ),
        "",
    )
    shape = {"request": "req", "notification": "not", "invalid": "not"}.get(first.kind, "res")
    return MessageView(
        base=f"/s/{session.id}",
        seq=seq,
        title=first.method or ("reply" if first.kind in {"response", "error"} else "not a message"),
        glyph=("o-" if first.direction == "out" else "i-") + shape,
        side="ours" if first.direction == "out" else "theirs",
        rpc_id="" if first.rpc_id is None else show.gist(json.dumps(first.rpc_id), 60),
        halves=[_half(session, one, read.get(one.seq)) for one in members],
        between=show.duration(latency),
        unanswered=first.kind == "request" and len(members) == 1,
        call_id=owner,
    )


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
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


async def message(session: Workspace, seq: int) -> MessageDetail | None:
    """One message of the log; None when it never existed or has left the log."""
    one = session.messages.get(seq)
    if one is None:
        return None
    page = log(session, after=None, at=seq, read=await _read(session, seq))
    if page.detail is None:
        return None
    return MessageDetail(
        shell=page.shell,
        detail=page.detail,
        rows=page.rows,
        earlier=page.earlier,
        dropped=page.dropped,
        found=page.found,
        http=page.http,
        json=message_json(session, one),
    )
