"""Calls: a card with its result, a line in the list, a page of its own, and the JSON of each."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from app.core import links
from app.core.calls import Call, RequiredLink
from app.core.targets import HttpTarget
from app.core.times import wire_time
from app.core.wire import Finding
from app.sessions import Workspace
from app.sessions.lists import ListName
from app.web.asks.card import LinkCard, link_cards
from app.web.calls.asked import AskLine, ask_lines
from app.web.calls.compare import Beside, beside, can_compare, others
from app.web.calls.given import given_of, on_a_line
from app.web.calls.ladder import Ladder
from app.web.calls.result import RAW_ALONE, is_large, result_of, show_result, shown_of
from app.web.calls.rounds import RoundLine, rounds_json
from app.web.calls.shown import Shown
from app.web.kit import format, json_tree
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.templates import Context
from app.web.kit.words import finding_json
from app.web.lists.keys import key_at
from app.web.tasks.running import RunningCard
from app.web.tasks.sequence import Drawing, of_call

CARDS = 20
"""Recent calls on a tool's page."""
_ARGUMENTS = 20
"""Arguments on the line of a call."""
_FIRST_ARGUMENTS = 6
"""The same where there is hardly room."""


def recent_calls(session: Workspace) -> list[Call]:
    """The calls a person made, newest first."""
    return [call for call in session.calls.newest if not call.quiet]


def unfolded(recent: list[Call]) -> set[str]:
    """Which of these calls stand on a page with all they brought, newest first: the newest one, those that run, and the
    one that ended last. The others are a line each."""
    ended = [call for call in recent if call.ended_at is not None]
    last = max(ended, key=lambda call: call.ended_at or 0.0, default=None)
    shown = [*recent[:1], *(call for call in recent if not call.settled), *([last] if last else [])]
    return {call.id for call in shown}


def cards_of(session: Workspace, recent: list[Call]) -> list[CallCard]:
    """The calls of a tool, a prompt or a resource, as its page shows them."""
    whole = unfolded(recent)
    return [CallCard(session, call, folded=call.id not in whole) for call in recent]


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
_FORMS: dict[str, ListName] = {"tools/call": "tools", "prompts/get": "prompts"}
"""Calls that have a form of their own."""


@dataclass(slots=True, frozen=True)
class CallCard:
    """One call with its result as a card, or without it as a line; a part of the stream (`#call-{id}`) either way."""

    session: Workspace
    call: Call
    ready: Shown | None = None
    """Its result, where somebody has waited until it was read; a large one is fetched by the tab itself otherwise."""
    alone: bool = False
    """It is on its own page."""
    full: bool = False
    """Its raw reply is wanted whole."""
    folded: bool = False
    """It is one of the earlier ones, of which a page has only a line."""

    @property
    def given(self) -> Any:
        """What was asked, apart from what the name says."""
        return given_of(self.call)

    @property
    def arguments(self) -> list[tuple[str, Html]]:
        """What was asked, as names and values on one line; the first of them."""
        return on_a_line(self.call, _ARGUMENTS)

    @property
    def first_arguments(self) -> list[tuple[str, Html]]:
        """The first few of them, for a line among others."""
        return on_a_line(self.call, _FIRST_ARGUMENTS)

    @property
    def arguments_cut(self) -> int:
        """How many more there are."""
        return max(0, len(self.given) - _ARGUMENTS) if isinstance(self.given, dict) else 0

    @property
    def of(self) -> str:
        """What it is a call of: how its results are to be shown is remembered by that."""
        return f"{self.call.method} {self.call.subject}"[:200]

    @property
    def elapsed(self) -> str:
        """How long it runs already, as a clock shows it."""
        return format.stopwatch(time.time() - self.call.started_at)

    @property
    def left(self) -> str:
        """How much of its time is left, as a clock shows it."""
        return format.stopwatch((self.call.deadline_at or 0.0) - time.time())

    @property
    def ago(self) -> str:
        """How long ago it was made."""
        return format.ago(time.time() - self.call.started_at)

    @property
    def cancelled(self) -> str:
        """Who cancelled it, in words."""
        reason = self.call.cancel_reason
        return "Cancelled by you" if reason in (None, "", "cancelled by the person") else f"Cancelled: {reason}"

    @property
    def spots(self) -> list[tuple[Finding, str]]:
        """What was remarked about it, each with the place in the result that it points to, if it points there."""
        found = self.call.findings[:20]
        return [(one, one.pointer or "" if self.call.state == "done" else "") for one in found]

    @property
    def asked(self) -> Html | None:
        """All that was asked, as a tree."""
        return json_tree.tree(self.call.params, open_depth=3, label="What was asked") if self.call.params else None

    @property
    def too_large(self) -> bool:
        return self.ready is None and self.call.unread is None and is_large(self.call)

    @property
    def shown(self) -> Shown:
        """The result; empty when it is too large to be read beside everything else. Made each time it is asked for."""
        if self.ready is not None:
            return self.ready
        result = None if self.too_large else self.session.calls.small_result(self.call)
        return shown_of(self.session.base, self.call, result, alone=self.alone)

    @property
    def raw(self) -> tuple[str, int]:
        """The reply as it came, and how much of it is left out."""
        reply = self.call.reply or b""
        return format.raw_text(reply, len(reply) if self.full else RAW_ALONE)

    @property
    def failure(self) -> tuple[str, Html | None]:
        """What its error is called, and the data that came with it."""
        code, data = (None, None) if self.call.error is None else (self.call.error.code, self.call.error.data)
        tree = None if data is None else json_tree.tree(data, open_depth=2, max_nodes=400, label="Error data")
        return error_name(code), tree

    @property
    def form(self) -> str:
        """The address of the form of its tool or prompt; "" when it has none, or the server lists none of that name."""
        listed = _FORMS.get(self.call.method)
        if listed is None:
            return ""
        listing = self.session.lists[listed]
        place = listing.place((self.call.params or {}).get("name"))
        return "" if place is None else f"{self.session.base}/{listed}/{quote(key_at(listing, place), safe='~')}"

    @property
    def copies(self) -> list[tuple[str, str]]:
        """In which forms it can be copied, each by its name: JSON always, curl where the server is reached by
        streamable HTTP, Python where there is a server at all."""
        target, kinds = self.session.target, [("JSON", "json")]
        if isinstance(target, HttpTarget) and (self.session.info.transport or target.transport) == "http":
            kinds.append(("curl", "curl"))
        return kinds if target is None else [*kinds, ("Python", "python")]

    @property
    def asks(self) -> list[AskLine]:
        """What the server asked while it ran."""
        return ask_lines(self.session, self.call.asks)

    @property
    def links(self) -> list[LinkCard]:
        """What error -32042 wants opened before it is tried again."""
        return link_cards(self.call.links)

    @property
    def rounds(self) -> list[RoundLine]:
        """What the server asked before it answered (2026-07-28)."""
        return [RoundLine(self.session, turn) for turn in self.call.rounds]

    @property
    def ladder(self) -> Ladder:
        """The same, rung by rung."""
        return Ladder(self.session, self.call)

    @property
    def asks_here(self) -> bool:
        """Whether what it asks is answered in its own page, which then has no inbox (an ask has one form in a page): so
        for a call of 2026-07-28, even before it asks for the first time."""
        return self.alone and (bool(self.call.rounds) or (self.session.wire.rounds and not self.call.settled))

    @property
    def comparable(self) -> list[Beside]:
        """Other calls of the same tool, prompt or resource, the newest first."""
        if not self.call.settled or self.call.notification or self.call.quiet:
            return []
        return [beside(self.session, self.call, one) for one in others(self.session, self.call, 12)]

    @property
    def beside_newest(self) -> Beside | None:
        """What one of the earlier calls is compared with when nobody says: the newest other one."""
        return next((beside(self.session, self.call, one) for one in others(self.session, self.call, 1)), None)

    @property
    def compare(self) -> str:
        """The revision of the other era, when the call could be run there too."""
        return can_compare(self.session, self.call) if self.alone else ""

    @property
    def task(self) -> RunningCard | None:
        """The task that it became."""
        task = self.session.client_tasks.tasks.get(self.call.task_id or "")
        return None if task is None else RunningCard(self.session, task)

    @property
    def sequence(self) -> Drawing:
        return of_call(self.session, self.call)

    @property
    def cancelling(self) -> bool:
        """It was asked to end, and the server has not said so yet."""
        task = self.task
        return not self.call.settled and (self.call.cancel_wanted or (task is not None and task.task.cancelling))


def call_json(call: Call, result: Any) -> dict[str, Any]:
    """A call, as scripts read it."""
    progress, error = call.progress, call.error
    return {
        "id": call.id,
        "method": call.method,
        "params": call.params,
        "state": call.state,
        "waits_for": "sign-in" if call.signs_in and not call.settled else None,
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
        "continues": call.continues,
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


def links_json(required: Iterable[RequiredLink]) -> list[dict[str, Any]]:
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


@dataclass(slots=True)
class Calls(Context):
    """Every call of the session, newest first."""

    template: ClassVar[str] = "calls/page.html"
    part: ClassVar[str | None] = "calls/_lines.html"

    shell: Shell
    lines: list[CallCard]


def call_lines(session: Workspace) -> list[CallCard]:
    return [CallCard(session, call) for call in recent_calls(session)]


def calls_page(session: Workspace) -> Calls:
    """The list of calls."""
    return Calls(shell(session, "calls", "Calls"), call_lines(session))


_LISTED_RESULT = 16 * 1024


def _small_result(session: Workspace, call: Call) -> dict[str, Any]:
    """In a list, results are given while they are small; `result_omitted` says that one is not."""
    if call.reply is None or len(call.reply) > _LISTED_RESULT:
        return call_json(call, None) | {"result_omitted": call.reply is not None and call.state == "done"}
    return call_json(call, session.calls.small_result(call)) | {"result_omitted": False}


def calls_json(session: Workspace) -> dict[str, Any]:
    """The list for scripts."""
    return {"calls": [_small_result(session, call) for call in recent_calls(session)]}


@dataclass(slots=True)
class CallView(Context):
    """One call on its own page."""

    template: ClassVar[str] = "calls/call.html"
    part: ClassVar[str | None] = "calls/_card.html"

    shell: Shell
    card: CallCard


async def call_page(session: Workspace, call: Call, *, full: bool = False) -> CallView:
    """One call with its result, as a page."""
    card = CallCard(session, call, await show_result(session, call, alone=True), alone=True, full=full)
    return CallView(shell(session, "call", f"Call {call.id[1:]}", of=call.id), card)


async def call_alone_json(session: Workspace, call: Call) -> dict[str, Any]:
    """One call with its result, for scripts."""
    return call_json(call, await result_of(session, call))
