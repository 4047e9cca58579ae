"""Calls: a card with its result, a line in the list, a page of its own, and the JSON of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from app.core import jsontext
from app.core.model import (
    Call,
    Finding,
    wire_time,
)
from app.sessions import Session
from app.web import ask_views
from app.web import render as show
from app.web.render import Html
from app.web.shell import Context, Shell, finding_json, shell, text_of, tool_links

CARDS = 20
"""Cards of recent calls on a tool's page."""
CARD_BLOCKS = 40
CARD_TEXT = 6_000
CARD_REPLY_BYTES = 128 * 1024
"""A larger reply is shown on the page of its call, not in every card."""

# ------------------------------------------------------------------------------------------------------------- calls


def recent_calls(session: Session) -> list[Call]:
    """The calls a person made, newest first."""
    return [call for call in reversed(session.calls.values()) if not call.quiet]


def is_call_of(call: Call, name: Any) -> bool:
    """Whether a call is one of the tool with this name."""
    return call.method == "tools/call" and call.params is not None and call.params.get("name") == name


@dataclass(slots=True, frozen=True)
class Block:
    """One content block of a result, as it can be shown."""

    kind: str
    """`text`, `media`, `link` or `json`."""
    label: str
    text: str = ""
    cut: int = 0
    json: Html | None = None


def _block(item: Any, text_limit: int) -> Block:
    kind = item.get("type") if isinstance(item, dict) else None
    if kind == "text" and isinstance(item.get("text"), str):
        text = item["text"]
        return Block("text", "Text", text[:text_limit], max(0, len(text) - text_limit))
    if kind in {"image", "audio"}:
        data = item.get("data")
        held = show.base64_bytes(data)
        what = "not valid base64" if held is None else f"{show.size(held)}, base64"
        return Block("media", "Image" if kind == "image" else "Audio", f"{text_of(item.get('mimeType'))[:80]}, {what}")
    if kind == "resource_link":
        title = text_of(item.get("title")) or text_of(item.get("name"))
        return Block("link", "Resource link", f"{title}  {text_of(item.get('uri'))}"[:2_000])
    if kind == "resource" and isinstance(item.get("resource"), dict):
        held = item["resource"]
        about = f"{text_of(held.get('uri'))}, {text_of(held.get('mimeType')) or 'no type'}"[:2_000]
        if isinstance(held.get("text"), str):
            text = held["text"]
            return Block("text", f"Resource {about}", text[:text_limit], max(0, len(text) - text_limit))
        bytes_held = show.base64_bytes(held.get("blob"))
        what = "not valid base64" if bytes_held is None else f"{show.size(bytes_held)}, base64"
        return Block("media", "Resource", f"{about}, {what}")
    label = f"Content of type {show.gist(kind, 40)}" if kind is not None else "Content without a type"
    return Block("json", label, json=show.tree(item, open_depth=2, max_nodes=400, label=label))


@dataclass(slots=True)
class CallCard:
    """One call with its result, as a card; also a part of the stream (`#call-{id}`)."""

    id: str
    base: str
    number: str
    method: str
    subject: str
    gist: str
    state: str
    tool_error: bool
    took: str
    started: str
    deadline: str | None
    progress: Any
    progress_words: str
    logs: list[tuple[str, str, str]]
    logs_dropped: int
    findings: list[Finding]
    blocks: list[Block]
    blocks_cut: int
    structured: Html | None
    plain: Html | None
    error: Any
    error_data: Html | None
    cancel_reason: str
    notification: bool
    size: str
    request_seq: int | None
    reply_seq: int | None
    legs: int
    raw: str
    raw_cut: int
    full: bool
    alone: bool
    too_large: bool
    asks: list[tuple[str, str, str, bool]]
    """What the server asked while it ran: id, kind, state in words, whether it waits."""

    @property
    def settled(self) -> bool:
        return self.state in {"done", "failed", "cancelled"}


def _pointers(findings: list[Finding]) -> list[str]:
    """The places in the result that findings speak of, where their text names one in `/pointer/form`."""
    found: list[str] = []
    for one in findings:
        found += re.findall(r"`(/[^`\s]{0,200})`", one.text)
    return found[:50]


def call_card(session: Session, call: Call, *, result: Any = None, alone: bool = False, full: bool = False) -> CallCard:
    """One call as a card. `alone` on its own page, which brings a large `result`; elsewhere that stays folded."""
    too_large = call.reply is not None and len(call.reply) > CARD_REPLY_BYTES and result is None
    if call.reply is not None and not too_large and result is None:
        value = jsontext.parse(call.reply).value
        result = value.get("result") if isinstance(value, dict) else None
    limit = 128 * 1024 if alone else CARD_TEXT
    nodes = show.MAX_NODES if alone else 600
    blocks: list[Block] = []
    blocks_cut = 0
    structured = plain = None
    tool_error = False
    if isinstance(result, dict) and call.method == "tools/call" and isinstance(result.get("content"), list):
        content = result["content"]
        many = 500 if alone else CARD_BLOCKS
        blocks = [_block(item, limit) for item in content[:many]]
        blocks_cut = len(content) - len(blocks)
        tool_error = result.get("isError") is True
        if "structuredContent" in result:
            marks = _pointers(call.findings)
            structured = show.tree(
                result["structuredContent"], open_depth=3, max_nodes=nodes, marks=marks, label="Structured content"
            )
    elif result is not None:
        plain = show.tree(result, open_depth=3, max_nodes=nodes, label="Result")
    raw, raw_cut = ("", 0)
    if alone and call.reply is not None:
        raw, raw_cut = show.raw_text(call.reply, len(call.reply) if full else 32 * 1024)
    progress = call.progress
    words = ""
    if progress is not None:
        words = show.figure(progress.progress)
        words += f" of {show.figure(progress.total)}" if progress.total is not None else ""
    params = call.params or {}
    given = params.get("arguments") if call.method == "tools/call" else params
    leg = call.legs[-1] if call.legs else None
    return CallCard(
        id=call.id,
        base=f"/s/{session.id}",
        number=call.id.lstrip("c"),
        method=call.method,
        subject=call.subject,
        gist=show.gist(given, 100) if given else "",
        state=call.state,
        tool_error=tool_error,
        took=show.duration(call.duration_ms),
        started=wire_time(call.started_at),
        deadline=wire_time(call.deadline_at) if call.deadline_at is not None else None,
        progress=progress,
        progress_words=words,
        logs=[(show.clock(one.at), one.level, show.gist(one.data, 400)) for one in call.logs],
        logs_dropped=call.logs_dropped,
        findings=call.findings[:20],
        blocks=blocks,
        blocks_cut=blocks_cut,
        structured=structured,
        plain=plain,
        error=call.error,
        error_data=show.tree(call.error.data, open_depth=2, max_nodes=400, label="Error data")
        if call.error is not None and call.error.data is not None
        else None,
        cancel_reason=call.cancel_reason or "",
        notification=call.notification,
        size=show.size(len(call.reply)) if call.reply is not None else "",
        request_seq=leg.request_seq if leg is not None else None,
        reply_seq=leg.reply_seq if leg is not None else None,
        legs=len(call.legs),
        raw=raw,
        raw_cut=raw_cut,
        full=full,
        alone=alone,
        too_large=too_large,
        asks=ask_views.asks_of(session, call.asks),
    )


def call_json(call: Call, result: Any) -> dict[str, Any]:
    """A call, as scripts read it."""
    progress, error = call.progress, call.error
    return {
        "id": call.id,
        "method": call.method,
        "params": call.params,
        "state": call.state,
        "notification": call.notification,
        "progress": None
        if progress is None
        else {
            "progress": progress.progress,
            "total": progress.total,
            "message": progress.message,
            "at": wire_time(progress.at),
        },
        "legs": [
            {"rpc_id": leg.rpc_id, "request_seq": leg.request_seq, "reply_seq": leg.reply_seq} for leg in call.legs
        ],
        "result": result,
        "error": None
        if error is None
        else {"code": error.code, "message": error.message, "data": error.data, "kind": error.kind},
        "task_id": call.task_id,
        "asks": list(call.asks),
        "findings": [finding_json(one) for one in call.findings],
        "logs": [
            {"at": wire_time(one.at), "level": one.level, "logger": one.logger, "data": one.data} for one in call.logs
        ],
        "started_at": wire_time(call.started_at),
        "ended_at": None if call.ended_at is None else wire_time(call.ended_at),
        "duration_ms": call.duration_ms,
        "cancel_reason": call.cancel_reason,
    }


@dataclass(slots=True, frozen=True)
class CallLine:
    """One call in the list; also a part of the stream (`#call-{id}`)."""

    id: str
    href: str
    number: str
    method: str
    subject: str
    gist: str
    state: str
    took: str
    at: str
    deadline: str | None
    progress: Any
    findings: int
    failure: str
    tool_error: bool


_IS_ERROR = re.compile(rb'"isError"\s*:\s*true')


def _reports_error(call: Call) -> bool:
    """Whether a tool answered with `isError`. The text is searched first: most replies need no second reading."""
    if call.method != "tools/call" or call.reply is None or len(call.reply) > CARD_REPLY_BYTES:
        return False
    if _IS_ERROR.search(call.reply) is None:
        return False
    value = jsontext.parse(call.reply).value
    result = value.get("result") if isinstance(value, dict) else None
    return isinstance(result, dict) and result.get("isError") is True


def call_line(session: Session, call: Call) -> CallLine:
    params = call.params or {}
    given = params.get("arguments") if call.method == "tools/call" else params
    return CallLine(
        id=call.id,
        href=f"/s/{session.id}/calls/{call.id}",
        number=call.id.lstrip("c"),
        method=call.method,
        subject=call.subject,
        gist=show.gist(given, 90) if given else "",
        state=call.state,
        took=show.duration(call.duration_ms),
        at=show.time_of_day(call.started_at),
        deadline=wire_time(call.deadline_at) if call.deadline_at is not None else None,
        progress=call.progress,
        findings=len(call.findings),
        failure=show.gist(call.error.message, 120) if call.error is not None else "",
        tool_error=_reports_error(call),
    )


@dataclass(slots=True)
class Calls(Context):
    """Every call of the session, newest first."""

    template: ClassVar[str] = "pages/calls.html"
    part: ClassVar[str | None] = "parts/_calls.html"

    shell: Shell
    lines: list[CallLine]
    connected: bool
    json: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {"calls": self.json}


_LISTED_RESULT = 16 * 1024


def _small_result(call: Call) -> dict[str, Any]:
    """In a list, results are given while they are small; `result_omitted` says that one is not."""
    if call.reply is None or len(call.reply) > _LISTED_RESULT:
        return call_json(call, None) | {"result_omitted": call.reply is not None and call.state == "done"}
    value = jsontext.parse(call.reply).value
    return call_json(call, value.get("result") if isinstance(value, dict) else None) | {"result_omitted": False}


def calls(session: Session) -> Calls:
    """The list of calls."""
    listed = recent_calls(session)
    return Calls(
        shell=shell(session, "calls", "Calls"),
        lines=[call_line(session, call) for call in listed],
        connected=session.info.state == "ready",
        json=[_small_result(call) for call in listed],
    )


@dataclass(slots=True)
class CallView(Context):
    """One call on its own page."""

    template: ClassVar[str] = "pages/call.html"
    part: ClassVar[str | None] = "parts/_call.html"

    shell: Shell
    call: CallCard
    params: Html | None
    tool_href: str
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


async def call(session: Session, call: Call, *, full: bool = False) -> CallView:
    """One call with its result."""
    result = await session.result(call) if call.reply is not None else None
    tool_href = ""
    if call.method == "tools/call":
        names = {link.name: link.href for link in tool_links(session)}
        tool_href = names.get(call.subject, "")
    return CallView(
        shell=shell(session, "call", f"Call {call.id.lstrip('c')}", of=call.id),
        call=call_card(session, call, result=result, alone=True, full=full),
        params=show.tree(call.params, open_depth=3, label="What was asked") if call.params else None,
        tool_href=tool_href,
        json=call_json(call, result),
    )
