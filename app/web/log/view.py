"""One message with its pair, opened, and its HTTP exchange; and the JSON of both."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app import bounds
from app.core.figures import grouped
from app.core.json import text as jsontext
from app.core.lane import apart
from app.core.times import wire_time
from app.core.wire import Exchange, Finding, Message
from app.sessions import Workspace
from app.web.kit import format, json_tree
from app.web.kit.html import Html
from app.web.kit.words import finding_json

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
        "findings": [finding_json(one) for one in session.messages.findings(message.seq)],
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
    return json_tree.tree(jsontext.parse(raw).value, open_depth=3, label=f"Message {seq}")


def _half(session: Workspace, message: Message, view: Html | None) -> Half:
    raw, carrier = session.messages.raw(message.seq), session.messages.exchange(message.seq)
    text, cut = ("", 0)
    if raw is not None:
        text, cut = format.raw_text(raw, 64 * 1024)
    return Half(
        seq=message.seq,
        direction=message.direction,
        kind=message.kind,
        method=message.method or "",
        rpc_id="" if message.rpc_id is None else format.gist(json.dumps(message.rpc_id), 60),
        at=format.clock(message.at),
        size=f"{grouped(message.size)} B",
        tree=view,
        raw=text,
        raw_cut=cut,
        trimmed=raw is None,
        problem=message.problem or "",
        findings=list(session.messages.findings(message.seq)),
        exchange=None if carrier is None else exchange_view(carrier),
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
        rpc_id="" if first.rpc_id is None else format.gist(json.dumps(first.rpc_id), 60),
        halves=[_half(session, one, read.get(one.seq)) for one in members],
        between=format.duration(latency),
        unanswered=first.kind == "request" and len(members) == 1,
        call_id=owner,
    )


def placed_json(exchange: Exchange) -> dict[str, Any]:
    """The same with its own place in the log, and the messages that it carried; `messages` counts all of them."""
    place = {"seq": exchange.seq, "message_seqs": list(exchange.message_seqs), "messages": exchange.carried}
    return exchange_json(exchange) | place


def exchange_view(exchange: Exchange) -> ExchangeView:
    answer = "no answer" if exchange.status is None else f"answered {exchange.status}"
    if exchange.answered_ms is not None:
        answer += f" after {format.duration(exchange.answered_ms)}"
    return ExchangeView(
        method=exchange.method,
        line=f"{exchange.method} {exchange.url}",
        answer=answer,
        error=exchange.error or "",
        note=exchange.note or "",
        sent=exchange.request_headers,
        received=exchange.response_headers,
        at=format.clock(exchange.at),
    )


async def read_pair(session: Workspace, seq: int) -> dict[int, Html]:
    """A message and its pair as trees, where they can be read; large ones are read in a thread."""
    found: dict[int, Html] = {}
    for one in _pair(session, seq):
        raw = session.messages.raw(one.seq)
        if raw is None or one.problem is not None or one.unread is not None or len(raw) > _TREE_BYTES:
            continue
        large = len(raw) > bounds.THREAD_ABOVE
        found[one.seq] = await apart(_tree, raw, one.seq) if large else _tree(raw, one.seq)
    return found
