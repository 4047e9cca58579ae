"""What the page shows of asks: the inbox, the card of one, and its JSON.

The same card serves the inbox column, an ask's own page and the stream. A server's words are text; an address becomes
a link only when it is one that may be opened. Knows asks; knows no route and no template engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app.core import forms, links
from app.core.asks import Ask, Draft
from app.core.calls import Call, RequiredLink
from app.core.forms import Entries, Field
from app.core.json.pointer import split
from app.core.times import wire_time
from app.core.wire import Finding
from app.web.asks import sampling as sampling_views
from app.web.asks.sampling import Sampling
from app.web.kit import format, html
from app.web.kit.words import finding_json

if TYPE_CHECKING:
    from app.sessions import Workspace

KINDS = {
    "form": ("k-form", "Form"),
    "url": ("k-url", "Link"),
    "sampling": ("k-samp", "Sampling"),
    "roots": ("k-root", "Roots"),
}
ORIGINS = {
    "request": "direct request",
    "receiver-task": "as a task",
    "input-required": "round",
    "task-input": "input of a task",
}
STATES = {
    "open": "waiting",
    "held": "held",
    "sending": "being sent",
    "answered": "answered",
    "withdrawn": "withdrawn",
    "expired": "expired",
    "lost": "lost",
}
TYPED = ("action", "text", "model", "stopReason", "json", "force", "code", "message")
"""What a card has beside the fields of a form, and shows again as it was typed."""
FOLDED_ABOVE = 5
"""With more asks than this only the oldest stands open."""


@dataclass(slots=True)
class AskCard:
    """One ask, as the inbox shows it."""

    id: str
    base: str
    state: str
    state_word: str
    kind: str
    kind_word: str
    icon: str
    origin: str
    origin_word: str
    message: str
    gist: str
    """Its words in one line, for when it is folded."""
    asked: str
    deadline: str | None
    total_seconds: float | None
    call_id: str | None
    call_word: str
    task_id: str | None
    message_seq: int | None
    findings: list[Finding]
    folded: bool
    words: str
    """What became of it, in a sentence; empty while it is open."""
    sent: str
    """What was sent, as JSON text."""
    settled_at: str
    tree: Field | None = None
    url: str = ""
    url_parts: tuple[str, str, str] = ("", "", "")
    """What stands before, in and after the host."""
    link: str | None = None
    own_machine: bool = False
    """Whether that host is the machine of whoever opens it."""
    completed_elsewhere: bool = False
    sampling: Sampling | None = None
    roots: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    typed: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    """The request as it stands: edited, when it was."""
    whole: bool = False
    """Whether everything stands in it; in the inbox, which every page has, the form to edit a request is fetched."""
    server: str = ""

    @property
    def raw(self) -> str:
        """The parameters as they came; made when a page shows them."""
        return json.dumps(self.params, ensure_ascii=False, indent=2)

    @property
    def edits(self) -> bool:
        """Whether the form to edit the request stands in the card: on its own page, or with what was typed in it."""
        return self.whole or any(name.startswith("edit-") for name in self.typed)

    @property
    def fields(self) -> list[sampling_views.EditField]:
        """What of the request can be changed by typing; made when a template asks."""
        return sampling_views.fields(self.request)

    @property
    def open(self) -> bool:
        return self.state == "open"

    @property
    def editing(self) -> bool:
        """Changes to the request were typed, and are not in force."""
        return any(name.startswith("edit-") for name in self.typed) and self.typed.get("action") is None

    @property
    def failing(self) -> bool:
        """An error was to be sent, and could not be."""
        return self.typed.get("action") == "fail"


@dataclass(slots=True)
class InboxView:
    """The column: open asks oldest first, then what is settled."""

    base: str
    open: list[AskCard]
    settled: list[AskCard]
    summary: str
    server: str
    refused: str


def summary(session: Workspace) -> str:
    """How many wait, in words."""
    waiting = session.open_asks
    return f"{waiting} waiting" if waiting else "nothing waiting"


def refused_words(session: Workspace) -> str:
    """That asks were over the limit, in a sentence; "" when none was (F10)."""
    many = session.inbox.refused
    most = session.limits.open_asks
    return f"{format.plural(many, 'ask was', 'asks were')} refused: at most {most} may be open." if many else ""


def inbox_view(session: Workspace) -> InboxView:
    """Everything the inbox column shows."""
    opened = session.inbox.open
    folded = len(opened) > FOLDED_ABOVE
    return InboxView(
        base=f"/s/{session.id}",
        open=[ask_card(session, ask, folded=folded and at > 0) for at, ask in enumerate(opened)],
        settled=[ask_card(session, ask, folded=True) for ask in session.inbox.settled[:30]],
        summary=summary(session),
        server=session.label,
        refused=refused_words(session),
    )


def gist_of(ask: Ask) -> str:
    """The server's words; of a sampling request, which has many, the last."""
    if ask.message or ask.kind != "sampling":
        return ask.message
    return sampling_views.last_words(ask.request)


def _origin_word(ask: Ask, call: Call | None) -> str:
    """How it came, on its chip; an ask of a round says of which."""
    turns = call.rounds if call is not None and ask.origin == "input-required" else []
    number = next((turn.number for turn in turns if ask.id in turn.asks.values()), None)
    return ORIGINS[ask.origin] if number is None else f"round {number}"


def ask_card(
    session: Workspace,
    ask: Ask,
    *,
    folded: bool = False,
    tree: Field | None = None,
    errors: list[str] | None = None,
    typed: dict[str, str] | None = None,
    whole: bool = False,
) -> AskCard:
    """One ask at this moment; with what was typed and what is wrong with it, when it is shown again."""
    call = session.calls.get(ask.call_id or "")
    task = session.asks.tasks.get(ask.task_id or "")
    card = AskCard(
        id=ask.id,
        base=f"/s/{session.id}",
        state=ask.state,
        state_word=STATES[ask.state],
        kind=ask.kind,
        kind_word=KINDS[ask.kind][1],
        icon=KINDS[ask.kind][0],
        origin=ask.origin,
        origin_word=_origin_word(ask, call),
        message=ask.message if whole else html.cut(ask.message, sampling_views.SHOWN_TEXT),
        gist=html.cut(gist_of(ask), sampling_views.SHOWN_TEXT),
        asked=wire_time(ask.asked_at),
        deadline=None if ask.expires_at is None else wire_time(ask.expires_at),
        total_seconds=None if task is None or task.ttl is None else task.ttl / 1000,
        call_id=ask.call_id,
        call_word="" if call is None else call.subject,
        task_id=ask.task_id,
        message_seq=ask.message_seq,
        findings=ask.findings,
        folded=folded,
        words=_settled_words(ask),
        sent=_sent(ask),
        settled_at="" if ask.settled_at is None else format.time_of_day(ask.settled_at),
        completed_elsewhere=ask.completed_elsewhere,
        errors=errors or [],
        typed=typed or {},
        params=ask.params,
        request=ask.request if ask.kind == "sampling" else {},
        whole=whole,
        server=session.label,
    )
    if ask.kind == "form":
        if not ask.settled:
            card.tree = tree if tree is not None else forms.build(ask.schema)
    elif ask.kind == "url":
        card.url = str(ask.params.get("url", ""))
        link = links.read(card.url)
        if link is not None:
            card.link, card.url_parts = link.href, (link.before, link.host, link.after)
            card.own_machine = link.loopback
    elif ask.kind == "sampling":
        if not ask.settled or ask.edited is not None:
            card.sampling = sampling_views.sampling(ask.params, ask.edited, whole=whole)
    else:
        card.message = card.message or "The server asks which directories it may know about."
        card.roots = [root.uri for root in session.roots]
    return card


def _settled_words(ask: Ask) -> str:
    match ask.state:
        case "answered":
            answer = ask.answer
            if answer is None:
                return "Answered."
            who = {
                "person": "You",
                "script": "A script",
                "roots": "Parley, from the list of roots,",
                "limit": "Nobody; the limit",
            }
            forced = " It does not fit the schema, and was sent on purpose." if answer.forced else ""
            said = {
                "accept": "accepted",
                "decline": "declined",
                "cancel": "dismissed it",
                "respond": "answered",
                "fail": "failed it with an error",
            }.get(answer.action, answer.action)
            return f"{who.get(answer.by.kind, answer.by.name)} {said}.{forced}"
        case "withdrawn" if ask.taken_back:
            return f"{ask.reason} {ask.fate}"
        case "withdrawn":
            reason = f": “{ask.reason}”" if ask.reason else ""
            return f"The server took this back after {format.duration(_age_ms(ask))}{reason}. {ask.fate}"
        case "expired":
            return f"The time was up. The server was told. {ask.fate}"
        case "lost":
            return f"The connection ended before this was answered. {ask.fate}"
        case _:
            return ""


def _age_ms(ask: Ask) -> float:
    return ((ask.settled_at or ask.asked_at) - ask.asked_at) * 1000


def _sent(ask: Ask) -> str:
    if ask.answer is None or ask.state != "answered":
        return ""
    payload = ask.answer.error.wire() if ask.answer.error is not None else ask.answer.result
    return format.brief_json(payload)


def asks_of(session: Workspace, ids: list[str]) -> list[tuple[str, str, str, bool]]:
    """The asks of a call, for its card: id, kind, state in words, and whether it waits."""
    found = [session.inbox.asks[one] for one in ids[-20:] if one in session.inbox.asks]
    return [(ask.id, KINDS[ask.kind][1], STATES[ask.state], ask.state == "open") for ask in found]


@dataclass(slots=True, frozen=True)
class LinkCard:
    """One address that error -32042 wants opened, for the card of its call (R4-48)."""

    message: str
    url: str
    parts: tuple[str, str, str]
    link: str | None
    findings: list[Finding]
    completed: bool
    own_machine: bool
    """Whether it leads back to the machine that opens it."""


def link_cards(required: list[RequiredLink]) -> list[LinkCard]:
    """What a person must open before a call can succeed; an address that may not be opened is text."""
    return [_link_card(one, links.read(one.url)) for one in required]


def _link_card(one: RequiredLink, link: links.Link | None) -> LinkCard:
    return LinkCard(
        message=one.message,
        url=one.url,
        parts=("", "", "") if link is None else (link.before, link.host, link.after),
        link=None if link is None else link.href,
        findings=links.url_findings(one.url),
        completed=one.completed,
        own_machine=link is not None and link.loopback,
    )


# ----------------------------------------------------------------------------------------------------- answer forms


def filled(ask: Ask, form: Entries) -> tuple[Field, Any, dict[str, list[str]]]:
    """What was typed into a form: its tree, its value, and what is wrong by pointer."""
    tree = forms.build(ask.schema, form=form)
    read = forms.read(tree)
    return tree, ({} if read.value is forms.MISSING else read.value), read.errors


# ------------------------------------------------------------------------------------------------------------- JSON


def ask_json(ask: Ask) -> dict[str, Any]:
    """An ask, by the names that scripts rely on."""
    answer = ask.answer if ask.state == "answered" else None
    outcome: dict[str, Any] | None = None
    if answer is not None:
        outcome = {"action": answer.action, "forced": answer.forced}
        if answer.request is not None:
            outcome["request"] = answer.request
        if answer.error is not None:
            outcome["error"] = answer.error.wire()
        elif ask.kind == "form" and answer.result is not None:
            outcome["content"] = answer.result.get("content")
        else:
            outcome["result"] = answer.result
    return {
        "id": ask.id,
        "kind": ask.kind,
        "origin": ask.origin,
        "state": ask.state,
        "method": ask.method,
        "params": ask.params,
        "edited": ask.edited,
        "fields": _fields_json(ask),
        "task_id": ask.task_id,
        "call_id": ask.call_id,
        "related_task": ask.related_task,
        "message_seq": ask.message_seq,
        "asked_at": wire_time(ask.asked_at),
        "expires_at": None if ask.expires_at is None else wire_time(ask.expires_at),
        "settled_at": None if ask.settled_at is None else wire_time(ask.settled_at),
        "reason": ask.reason,
        "completed_elsewhere": ask.completed_elsewhere,
        "outcome": outcome,
        "answered_by": None if answer is None else {"kind": answer.by.kind, "name": answer.by.name},
        "findings": [finding_json(one) for one in ask.findings],
        **({} if ask.draft is None else {"draft": _draft_json(ask.draft)}),
    }


def _draft_json(draft: Draft) -> dict[str, Any]:
    return {
        "by": {"kind": draft.by.kind, "name": draft.by.name},
        "state": draft.state,
        "text": draft.text,
        "content": draft.content,
        "problem": draft.problem,
        "started_at": wire_time(draft.started_at),
        "updated_at": wire_time(draft.updated_at),
    }


def _fields_json(ask: Ask) -> list[dict[str, Any]] | None:
    """The fields of a form ask, with the values a person would see pre-filled."""
    if ask.kind != "form":
        return None
    tree = forms.build(ask.schema)
    value = forms.read(tree).value
    prefilled = value if isinstance(value, dict) else {}
    named = [("".join(split(child.pointer)), child) for child in tree.children]
    return [
        {
            "name": name,
            "kind": child.kind,
            "label": child.label,
            "description": child.description,
            "required": child.required,
            "options": [{"value": option.value, "title": option.title} for option in child.options],
            **({"value": prefilled[name]} if name in prefilled and (prefilled[name] != "" or child.text) else {}),
        }
        for name, child in named
    ]
