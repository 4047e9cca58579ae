"""Calls: a card with its result, a line in the list, a page of its own, and the JSON of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from app.core import links
from app.core.calls import Call, RequiredLink
from app.core.figures import measured
from app.core.json import text as jsontext
from app.core.targets import HttpTarget
from app.core.times import wire_time
from app.core.wire import Finding
from app.sessions import Workspace
from app.sessions.lists import ListName
from app.web.asks.card import LinkCard, asks_of, link_cards
from app.web.calls.compare import can_compare
from app.web.calls.result import RAW_ALONE, Shown, is_large, result_of, show_result, shown_of
from app.web.calls.rounds import RoundsView, rounds_json, rounds_view
from app.web.kit import format, json_tree
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.templates import Context, Twofold
from app.web.kit.words import finding_json
from app.web.lists.keys import key_at
from app.web.tasks import sequence
from app.web.tasks.running import RunningCard, running_card

CARDS = 20
"""Cards of recent calls on a tool's page."""


def recent_calls(session: Workspace) -> list[Call]:
    """The calls a person made, newest first."""
    return [call for call in session.calls.newest if not call.quiet]


def is_call_of(call: Call, name: Any) -> bool:
    """Whether a call is one of the tool with this name."""
    return call.method == "tools/call" and call.params is not None and call.params.get("name") == name


def error_name(code: int | None) -> str:
    """What a code of JSON-RPC or MCP is called; "" when it has no name."""
    if code is None:
        return ""
    return _CODES.get(code, "Server error" if -32099 <= code <= -32000 else "")


_CODES = {
    -32700: "Parse error",
    -32600: "Invalid request",
    -32601: "Method not found",
    -32602: "Invalid params",
    -32603: "Internal error",
    -32002: "Resource not found",
    -32042: "URL elicitation required",
    -32001: "Request timed out",
    -32020: "Header mismatch",
    -32021: "Missing required client capability",
    -32022: "Unsupported protocol version",
    -1: "User rejected",
}


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
    shown: Shown
    error: Any
    error_name: str
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
    again: str
    """Where it can be changed and sent again: the form of its tool or prompt, else the composer."""
    copies: list[tuple[str, str]]
    """In which forms it can be copied, and where each is."""
    asks: list[tuple[str, str, str, bool]]
    """What the server asked while it ran: id, kind, state in words, whether it waits."""
    links: list[LinkCard]
    """What error -32042 wants opened before it is tried again."""
    retry_of: str | None
    rounds: RoundsView | None
    """What the server asked before it answered (2026-07-28)."""
    compare: str
    """The revision of the other era, when the call could be run there too."""
    compared: bool
    task: RunningCard | None
    """The task that it became."""
    cancelling: bool
    """It was asked to end, and the server has not said so yet."""

    @property
    def settled(self) -> bool:
        return self.state in {"done", "failed", "cancelled"}


def call_card(
    session: Workspace, call: Call, *, shown: Shown | None = None, alone: bool = False, full: bool = False
) -> CallCard:
    """One call as a card. `alone` on its own page, which brings a large result as `shown`; elsewhere the tab fetches
    that by itself."""
    too_large = shown is None and call.unread is None and is_large(call)
    if shown is None:
        result = None
        if call.reply is not None and not too_large and call.has_result:
            value = jsontext.parse(call.reply).value
            result = value.get("result") if isinstance(value, dict) else None
        shown = shown_of(session.id, call, result, alone=alone)
    raw, raw_cut = ("", 0)
    if alone and call.reply is not None:
        raw, raw_cut = format.raw_text(call.reply, len(call.reply) if full else RAW_ALONE)
    progress = call.progress
    words = ""
    if progress is not None:
        words = measured(progress.progress)
        words += f" of {measured(progress.total)}" if progress.total is not None else ""
    params = call.params or {}
    given = params.get("arguments") if call.method in _FORMS else params
    leg = call.legs[-1] if call.legs else None
    task = session.client_tasks.tasks.get(call.task_id or "")
    return CallCard(
        id=call.id,
        base=f"/s/{session.id}",
        number=call.id.lstrip("c"),
        method=call.method,
        subject=call.subject,
        gist=format.gist(given, 100) if given else "",
        state=call.state,
        tool_error=call.tool_error and call.method in ("tools/call", "tasks/result"),
        took=format.duration(call.duration_ms),
        started=wire_time(call.started_at),
        deadline=wire_time(call.deadline_at) if call.deadline_at is not None else None,
        progress=progress,
        progress_words=words,
        logs=[(format.clock(one.at), one.level, format.gist(one.data, 400)) for one in call.logs],
        logs_dropped=call.logs_dropped,
        findings=call.findings[:20],
        shown=shown,
        error=call.error,
        error_name=error_name(call.error.code) if call.error is not None else "",
        error_data=json_tree.tree(call.error.data, open_depth=2, max_nodes=400, label="Error data")
        if call.error is not None and call.error.data is not None
        else None,
        cancel_reason=call.cancel_reason or "",
        notification=call.notification,
        size=format.size(call.head.size) if call.head is not None else "",
        request_seq=leg.request_seq if leg is not None else None,
        reply_seq=leg.reply_seq if leg is not None else None,
        legs=len(call.legs),
        raw=raw,
        raw_cut=raw_cut,
        full=full,
        alone=alone,
        too_large=too_large,
        again=_again(session, call),
        copies=_copies(session, call),
        asks=asks_of(session, call.asks),
        links=link_cards(call.links),
        retry_of=call.retry_of,
        rounds=rounds_view(session, call),
        compare=can_compare(session, call) if alone else "",
        compared=call.id in session.comparisons.by_call,
        task=None if task is None else running_card(session, task),
        cancelling=not call.settled and (call.cancel_wanted or (task is not None and task.cancelling)),
    )


_FORMS: dict[str, ListName] = {"tools/call": "tools", "prompts/get": "prompts"}
"""Calls that have a form of their own."""


def _form_of(session: Workspace, call: Call) -> str:
    """The address of the form of its tool or prompt; "" when it has none, or the server lists none of that name."""
    name = (call.params or {}).get("name")
    if call.method in _FORMS and isinstance(name, str):
        listed = _FORMS[call.method]
        listing = session.lists[listed]
        place = listing.place(name)
        if place is not None:
            return f"/s/{session.id}/{listed}/{quote(key_at(listing, place), safe='~')}"
    return ""


def _again(session: Workspace, call: Call) -> str:
    """The address that loads a call into the form of its tool or prompt, or into the composer."""
    return f"{_form_of(session, call) or f'/s/{session.id}/compose'}?from={call.id}"


def _copies(session: Workspace, call: Call) -> list[tuple[str, str]]:
    """JSON always; curl where the server is reached by streamable HTTP; Python where there is a server at all."""
    base = f"/s/{session.id}/calls/{call.id}/snippet?as="
    kinds = ["json"]
    if isinstance(session.target, HttpTarget) and (session.info.transport or session.target.transport) == "http":
        kinds.append("curl")
    if session.target is not None:
        kinds.append("python")
    words = {"json": "JSON", "curl": "curl", "python": "Python"}
    return [(words[kind], base + kind) for kind in kinds]


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
        "result_unread": call.unread,
        "error": None
        if error is None
        else {"code": error.code, "message": error.message, "data": error.data, "kind": error.kind},
        "as_task": call.as_task,
        "task_id": call.task_id,
        "asks": list(call.asks),
        "links": links_json(call.links),
        "retry_of": call.retry_of,
        "rounds": rounds_json(call),
        "round_limit": call.round_limit or None,
        "outcome": "abandoned" if call.abandoned else None,
        "findings": [finding_json(one) for one in call.findings],
        "logs": [
            {"at": wire_time(one.at), "level": one.level, "logger": one.logger, "data": one.data} for one in call.logs
        ],
        "started_at": wire_time(call.started_at),
        "ended_at": None if call.ended_at is None else wire_time(call.ended_at),
        "duration_ms": call.duration_ms,
        "cancel_reason": call.cancel_reason,
    }


def links_json(required: list[RequiredLink]) -> list[dict[str, Any]]:
    """The addresses that a call wants opened; `opens` says whether a page would make a link of it."""
    return [
        {
            "elicitation_id": link.elicitation_id,
            "message": link.message,
            "url": link.url,
            "opens": links.read(link.url) is not None,
            "completed": link.completed,
            "findings": [
                {"id": one.id, "level": one.level, "text": one.text, "advice": one.advice}
                for one in links.url_findings(link.url)
            ],
        }
        for link in required
    ]


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
    size: str


def call_line(session: Workspace, call: Call) -> CallLine:
    params = call.params or {}
    given = params.get("arguments") if call.method in _FORMS else params
    return CallLine(
        id=call.id,
        href=f"/s/{session.id}/calls/{call.id}",
        number=call.id.lstrip("c"),
        method=call.method,
        subject=call.subject,
        gist=format.gist(given, 90) if given else "",
        state=call.state,
        took=format.duration(call.duration_ms),
        at=format.time_of_day(call.started_at),
        deadline=wire_time(call.deadline_at) if call.deadline_at is not None else None,
        progress=call.progress,
        findings=len(call.findings),
        failure=format.gist(call.error.message, 120) if call.error is not None else "",
        tool_error=call.tool_error and call.method == "tools/call",
        size=format.size(call.head.size) if call.head is not None else "",
    )


@dataclass(slots=True)
class Calls(Twofold):
    """Every call of the session, newest first."""

    template: ClassVar[str] = "calls/page.html"
    part: ClassVar[str | None] = "calls/_lines.html"


_LISTED_RESULT = 16 * 1024


def _small_result(call: Call) -> dict[str, Any]:
    """In a list, results are given while they are small; `result_omitted` says that one is not."""
    if call.reply is None or len(call.reply) > _LISTED_RESULT:
        return call_json(call, None) | {"result_omitted": call.reply is not None and call.state == "done"}
    if not call.has_result:
        return call_json(call, None) | {"result_omitted": False}
    value = jsontext.parse(call.reply).value
    return call_json(call, value.get("result") if isinstance(value, dict) else None) | {"result_omitted": False}


@dataclass(slots=True)
class CallView(Context):
    """One call on its own page. Its JSON is made apart (`call_alone_json`): nothing of the page is in it."""

    template: ClassVar[str] = "calls/call.html"
    part: ClassVar[str | None] = "calls/_card.html"

    shell: Shell
    call: CallCard
    params: Html | None
    tool_href: str
    sequence: sequence.Drawing


async def call_alone_json(session: Workspace, call: Call) -> dict[str, Any]:
    """One call with its result, for scripts."""
    return call_json(call, await result_of(session, call))


def calls_page(session: Workspace) -> Calls:
    """The list of calls."""
    listed = recent_calls(session)
    return Calls(
        page=lambda: {
            "shell": shell(session, "calls", "Calls"),
            "lines": [call_line(session, call) for call in listed],
            "connected": session.info.state == "ready",
        },
        json=lambda: {"calls": [_small_result(call) for call in listed]},
    )


async def call_page(session: Workspace, call: Call, *, full: bool = False) -> CallView:
    """One call with its result, as a page."""
    shown = await show_result(session, call, alone=True)
    return CallView(
        shell=shell(session, "call", f"Call {call.id.lstrip('c')}", of=call.id),
        call=call_card(session, call, shown=shown, alone=True, full=full),
        params=json_tree.tree(call.params, open_depth=3, label="What was asked") if call.params else None,
        tool_href=_form_of(session, call) if call.method == "tools/call" else "",
        sequence=sequence.of_call(session, call),
    )
