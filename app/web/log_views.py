"""The log: rows for the page, messages for scripts, and one message opened with its pair."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, ClassVar

from app.core import jsontext
from app.core.model import (
    Finding,
    Message,
    wire_time,
)
from app.sessions import Session
from app.web import render as show
from app.web.render import Html
from app.web.shell import Context, Shell, finding_json, shell

JSON_ROWS = 1_000
JSON_RAW_BYTES = 4 * 1024 * 1024

# --------------------------------------------------------------------------------------------------------------- log


def message_json(session: Session, message: Message) -> dict[str, Any]:
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
        "findings": [finding_json(one) for one in session.messages.findings(message.seq)],
    }
    if encoded is not None:
        row["raw_base64"] = encoded
    if raw is None:
        row["trimmed"] = True
    return row


@dataclass(slots=True)
class Log(Context):
    """The log: rows for the page, messages for scripts."""

    template: ClassVar[str] = "pages/log.html"
    part: ClassVar[str | None] = "parts/_earlier.html"

    shell: Shell
    detail: MessageView | None
    rows: Html
    earlier: int | None
    dropped: int
    session: Session
    after: int | None
    before: int | None
    limit: int | None

    def as_json(self) -> dict[str, Any]:
        log, limit = self.session.messages, self.limit or JSON_ROWS
        after = self.after or 0
        found = log.before(self.before, limit) if self.before is not None else log.after(after, limit)
        rows: list[dict[str, Any]] = []
        held = 0
        for message in found:
            held += message.size
            if rows and held > JSON_RAW_BYTES:
                break
            rows.append(message_json(self.session, message))
        first = log.first_seq
        missing = log.rows_dropped > 0 and first is not None and after < first - 1
        trimmed = missing or any(row.get("trimmed") for row in rows)
        return {"messages": rows, "next": rows[-1]["seq"] if rows else after, "trimmed": trimmed}


def log(
    session: Session, *, after: int | None, before: int | None = None, limit: int | None = None, at: int | None = None
) -> Log:
    """The log of a session: the newest rows, those before `before`, or those around message `at`."""
    source, many = session.messages, min(limit or 200, 1_000)
    if before is not None:
        found = source.before(before, many)
    elif at is not None and len(newer := source.after(at - 1, 1_000)) < 1_000:
        found = source.before(at, many // 2) + newer
    else:
        found = source.last(many)
    first = source.first_seq
    surroundings = shell(session, "log", "Log", messages=found)
    return Log(
        shell=surroundings,
        detail=message_view(session, at) if at is not None else None,
        rows=surroundings.rows,
        earlier=found[0].seq if found and first is not None and found[0].seq > first else None,
        dropped=source.rows_dropped,
        session=session,
        after=after,
        before=before,
        limit=limit,
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


def _half(session: Session, message: Message) -> Half:
    raw = session.messages.raw(message.seq)
    view: Html | None = None
    text, cut = ("", 0)
    if raw is not None:
        text, cut = show.raw_text(raw, 64 * 1024)
        if message.problem is None and len(raw) <= 2 * 1024 * 1024:
            view = show.tree(jsontext.parse(raw).value, open_depth=3, label=f"Message {message.seq}")
    return Half(
        seq=message.seq,
        direction=message.direction,
        kind=message.kind,
        method=message.method or "",
        rpc_id="" if message.rpc_id is None else show.gist(json.dumps(message.rpc_id), 60),
        at=show.clock(message.at),
        size=f"{show.number(message.size)} B",
        tree=view,
        raw=text,
        raw_cut=cut,
        trimmed=raw is None,
        problem=message.problem or "",
        findings=list(session.messages.findings(message.seq)),
    )


def message_view(session: Session, seq: int) -> MessageView | None:
    """A message and the one it belongs to."""
    source = session.messages
    message = source.get(seq)
    if message is None:
        return None
    pair = source.get(message.answers) if message.answers is not None else source.reply_to(seq)
    members = sorted([one for one in (message, pair) if one is not None], key=lambda one: one.seq)
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
        halves=[_half(session, one) for one in members],
        between=show.duration(latency),
        unanswered=first.kind == "request" and len(members) == 1,
        call_id=owner,
    )


@dataclass(slots=True)
class MessageDetail(Context):
    """One message: the log page with it opened, or only the opened message."""

    template: ClassVar[str] = "pages/log.html"
    part: ClassVar[str | None] = "parts/_message.html"

    shell: Shell
    detail: MessageView
    rows: Html
    earlier: int | None
    dropped: int
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


def message(session: Session, seq: int) -> MessageDetail | None:
    """One message of the log; None when it never existed or has left the log."""
    found = session.messages.get(seq)
    if found is None:
        return None
    page = log(session, after=None, at=seq)
    if page.detail is None:
        return None
    return MessageDetail(
        shell=page.shell,
        detail=page.detail,
        rows=page.rows,
        earlier=page.earlier,
        dropped=page.dropped,
        json=message_json(session, found),
    )
