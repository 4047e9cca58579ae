"""One message with its pair, opened, and its HTTP exchange; and the JSON of both."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from app import bounds
from app.core.calls import Call
from app.core.figures import grouped
from app.core.json import text as jsontext
from app.core.lane import apart
from app.core.times import wire_time
from app.core.wire import Exchange, Finding, Message, StderrLine
from app.sessions import Workspace
from app.web.calls.again import call_of, why_not
from app.web.kit import format, json_tree
from app.web.kit.html import Html
from app.web.kit.templates import jinja
from app.web.kit.words import finding_json
from app.web.log import row

_TREE_BYTES = 2 * 1024 * 1024
_RAW_BYTES = 64 * 1024
STDERR_NEAR = 0.25
"""Seconds before and after a message in which a line of stderr is of its time."""


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
    made: dict[str, Any] = {
        "seq": message.seq,
        "number": message.number,
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
        made["exchange"] = exchange_json(exchange)
    if message.by:
        kind, _, name = message.by.partition(" ")
        made["answered_by"] = {"kind": kind, "name": name}
    if encoded is not None:
        made["raw_base64"] = encoded
    if raw is None:
        made["trimmed"] = True
    return made


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
class Half:
    """One message of a pair, opened."""

    message: Message
    tree: Html | None
    raw: bytes | None
    """None when it is no longer kept."""
    findings: tuple[Finding, ...]
    exchange: Exchange | None

    @property
    def text(self) -> tuple[str, int]:
        """The beginning of what crossed the wire, and how much is left out."""
        return format.raw_text(self.raw or b"", _RAW_BYTES)


@dataclass(slots=True, frozen=True)
class Opened:
    """One message with its pair; also the fragment that a row opens (`#detail`)."""

    session: Workspace
    seq: int
    halves: list[Half]

    @property
    def first(self) -> Message:
        return self.halves[0].message

    @property
    def title(self) -> str:
        return row.title(self.first)

    @property
    def rpc_id(self) -> str:
        return "" if self.first.rpc_id is None else format.gist(json.dumps(self.first.rpc_id), 60)

    @property
    def latency(self) -> float | None:
        return next((one.message.latency_ms for one in self.halves if one.message.latency_ms is not None), None)

    @property
    def unanswered(self) -> bool:
        return self.first.kind == "request" and len(self.halves) == 1

    @property
    def chosen(self) -> Message:
        """The one that was asked for."""
        return next(half.message for half in self.halves if half.message.seq == self.seq)

    @property
    def numbers(self) -> str:
        """`9 and 10`"""
        return " and ".join(grouped(half.message.number) for half in self.halves)

    @property
    def call(self) -> Call | None:
        """The call that it belongs to."""
        return call_of(self.session, self.seq)

    @property
    def ours(self) -> Message | None:
        """The request or notification of ours that can be sent again, or that cannot."""
        return self.first if self.first.direction == "out" and self.first.kind != "invalid" else None

    @property
    def why_not(self) -> str:
        return "" if self.ours is None else why_not(self.session, self.ours)

    @property
    def connected(self) -> bool:
        return self.session.info.state == "ready"

    @property
    def stderr(self) -> list[StderrLine]:
        """What the server wrote to its standard error while this went over the wire."""
        since, until = self.first.at - STDERR_NEAR, self.halves[-1].message.at + STDERR_NEAR
        of_probe = self.first.method == "server/discover"
        lines = self.session.stderr.lines()
        return [line for line in lines if since <= line.at <= until and (of_probe or not line.by_probe)]


def _pair(session: Workspace, seq: int) -> list[Message]:
    """A message and the one it belongs to, in their order; none when it is not there."""
    source = session.messages
    message = source.get(seq)
    if message is None:
        return []
    pair = source.get(message.answers) if message.answers is not None else source.reply_to(seq)
    return sorted([one for one in (message, pair) if one is not None], key=lambda one: one.seq)


def placed_json(exchange: Exchange) -> dict[str, Any]:
    """The same with its own place in the log, and the messages that it carried; `messages` counts all of them."""
    place = {"seq": exchange.seq, "message_seqs": list(exchange.message_seqs), "messages": exchange.carried}
    return exchange_json(exchange) | place


def answer_words(exchange: Exchange) -> str:
    """How a request was answered."""
    answer = "no answer" if exchange.status is None else f"answered {exchange.status}"
    return answer if exchange.answered_ms is None else f"{answer} after {format.duration(exchange.answered_ms)}"


jinja.filters.update(answer_words=answer_words, glyph=row.glyph)


async def opened(session: Workspace, seq: int) -> Opened | None:
    """A message and the one it belongs to; None when it is not there."""
    log = session.messages
    halves = [
        Half(one, await _tree(one, raw), raw, log.findings(one.seq), log.exchange(one.seq))
        for one, raw in [(one, log.raw(one.seq)) for one in _pair(session, seq)]
    ]
    return Opened(session, seq, halves) if halves else None


async def _tree(message: Message, raw: bytes | None) -> Html | None:
    """A message as a tree, where it can be read; a large one is read in a thread."""
    if raw is None or message.problem is not None or message.unread is not None or len(raw) > _TREE_BYTES:
        return None

    def read() -> Html:
        return json_tree.tree(jsontext.parse(raw).value, open_depth=3, label=f"Message {message.number}")

    return await apart(read) if len(raw) > bounds.THREAD_ABOVE else read()
