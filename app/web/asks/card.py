"""What the page shows of asks: the inbox, the card of one, and its JSON.

The same card serves the inbox column, an ask's own page and the stream. A server's words are text; an address becomes
a link only when it is one that may be opened. Knows asks; knows no route and no template engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from app.core import forms, links
from app.core.asks import AnsweredBy, Ask, Draft
from app.core.calls import Call, RequiredLink
from app.core.forms import Field
from app.core.json.pointer import split
from app.core.times import wire_time
from app.core.wire import Finding
from app.web.asks.sampling import SHOWN_TEXT, EditField, Sampling, edit_fields, last_words, sampling_view
from app.web.kit import format, html
from app.web.kit.words import ASK_KINDS, ASK_STATES, finding_json

if TYPE_CHECKING:
    from app.sessions import Workspace

ORIGINS = {
    "request": "direct request",
    "receiver-task": "as a task",
    "input-required": "round",
    "task-input": "input of a task",
}
TYPED = ("action", "text", "model", "stopReason", "json", "force", "code", "message")
"""What a card has beside the fields of a form, and shows again as it was typed."""
FOLDED_ABOVE = 5
"""With more asks than this only the oldest stands open."""


@dataclass
class AskCard:
    """One ask, as the inbox shows it: with what was typed and what is wrong with it, when it is shown again. What is
    computed is computed when a template asks for it."""

    session: Workspace
    ask: Ask
    folded: bool = False
    whole: bool = False
    """Whether everything stands in it; in the inbox, which every page has, the form to edit a request is fetched."""
    errors: list[str] = field(default_factory=list)
    typed: dict[str, str] = field(default_factory=dict)
    filled: Field | None = None
    """The form with what was typed into it."""

    @cached_property
    def call(self) -> Call | None:
        """What it belongs to, when that is known and still kept."""
        return self.session.calls.get(self.ask.call_id or "")

    @property
    def origin(self) -> str:
        """How it came, on its chip; an ask of a round says of which."""
        turns = self.call.rounds if self.call is not None and self.ask.origin == "input-required" else []
        number = next((turn.number for turn in turns if self.ask.id in turn.asks.values()), None)
        return ORIGINS[self.ask.origin] if number is None else f"round {number}"

    @property
    def ttl_seconds(self) -> float | None:
        """How long its task lives in all."""
        task = self.session.asks.tasks.get(self.ask.task_id or "")
        return None if task is None or task.ttl is None else task.ttl / 1000

    @property
    def message(self) -> str:
        """The server's words; `roots/list` has none."""
        said = self.ask.message
        if self.ask.kind == "roots":
            said = said or "The server asks which directories it may know about."
        return said if self.whole else html.cut(said, SHOWN_TEXT)

    @property
    def gist(self) -> str:
        """Its words in one line, for when it is folded."""
        return gist_of(self.ask)

    @cached_property
    def tree(self) -> Field:
        """The form that it asks to fill in."""
        return forms.build(self.ask.schema) if self.filled is None else self.filled

    @cached_property
    def link(self) -> links.Link | None:
        """The address that it asks to open, when it is one that may be opened."""
        return links.read(str(self.ask.params.get("url", "")))

    @cached_property
    def sampling(self) -> Sampling:
        """The request that it asks to have answered by a model."""
        return sampling_view(self.ask.params, self.ask.edited, whole=self.whole)

    @cached_property
    def fields(self) -> list[EditField]:
        """What of that request can be changed by typing."""
        return edit_fields(self.ask.request)

    @property
    def edits(self) -> bool:
        """Whether the form to edit the request stands in the card: on its own page, or with what was typed in it."""
        return self.whole or any(name.startswith("edit-") for name in self.typed)

    @property
    def editing(self) -> bool:
        """Changes to the request were typed, and are not in force."""
        return any(name.startswith("edit-") for name in self.typed) and self.typed.get("action") is None

    @cached_property
    def sent(self) -> str:
        """What was sent, as JSON text."""
        if self.ask.answer is None or self.ask.state != "answered":
            return ""
        error = self.ask.answer.error
        return format.brief_json(self.ask.answer.result if error is None else error.wire())


class InboxView(NamedTuple):
    """The cards of the column: open asks oldest first, then what is settled."""

    open: list[AskCard]
    settled: list[AskCard]


def inbox_view(session: Workspace) -> InboxView:
    """Everything the inbox column shows."""
    opened = session.inbox.open
    folded = len(opened) > FOLDED_ABOVE
    return InboxView(
        [AskCard(session, ask, folded=folded and at > 0) for at, ask in enumerate(opened)],
        [AskCard(session, ask, folded=True) for ask in session.inbox.settled[:30]],
    )


def summary(session: Workspace) -> str:
    """How many wait, in words."""
    waiting = session.open_asks
    return f"{waiting} waiting" if waiting else "nothing waiting"


def refused_words(session: Workspace) -> str:
    """That asks were over the limit, in a sentence; "" when none was (F10)."""
    many = session.inbox.refused
    most = session.limits.open_asks
    return f"{format.plural(many, 'ask was', 'asks were')} refused: at most {most} may be open." if many else ""


def gist_of(ask: Ask) -> str:
    """The server's words; of a sampling request, which has many, the last."""
    return last_words(ask.request) if ask.kind == "sampling" and not ask.message else ask.message


def asks_of(session: Workspace, ids: list[str]) -> list[tuple[str, str, str, bool]]:
    """The asks of a call, for its card: id, kind, state in words, and whether it waits."""
    found = [session.inbox.asks[one] for one in ids[-20:] if one in session.inbox.asks]
    return [(ask.id, ASK_KINDS[ask.kind][1], ASK_STATES[ask.state], ask.state == "open") for ask in found]


class LinkCard(NamedTuple):
    """One address that error -32042 wants opened, for the card of its call (R4-48)."""

    required: RequiredLink
    link: links.Link | None
    """None for an address that may not be opened: it is shown as text."""
    findings: list[Finding]


def link_cards(required: list[RequiredLink]) -> list[LinkCard]:
    """What a person must open before a call can succeed."""
    return [LinkCard(one, links.read(one.url), links.url_findings(one.url)) for one in required]


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
        "answered_by": None if answer is None else _by_json(answer.by),
        "findings": [finding_json(one) for one in ask.findings],
        **({} if ask.draft is None else {"draft": _draft_json(ask.draft)}),
    }


def _draft_json(draft: Draft) -> dict[str, Any]:
    return {
        "by": _by_json(draft.by),
        "state": draft.state,
        "text": draft.text,
        "content": draft.content,
        "problem": draft.problem,
        "started_at": wire_time(draft.started_at),
        "updated_at": wire_time(draft.updated_at),
    }


def _by_json(by: AnsweredBy) -> dict[str, str]:
    return {"kind": by.kind, "name": by.name}


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
