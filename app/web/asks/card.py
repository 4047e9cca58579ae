"""What the page shows of asks: the inbox, the card of one, and its JSON. Its words stand in `words`.

The same card serves the inbox column, an ask's own page and the stream. A server's words are text; an address becomes
a link only when it is one that may be opened. Knows asks; knows no route and no template engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from app import bounds
from app.core import answer_rules, forms, links
from app.core.asks import AnsweredBy, Ask, Draft
from app.core.calls import Call, RequiredLink
from app.core.forms import Field
from app.core.json.changes import changes
from app.core.json.pointer import split
from app.core.times import wire_time
from app.core.wire import Finding
from app.web.asks import words
from app.web.asks.drafting import Drafting, edits_of
from app.web.asks.edits import Piece, pieces
from app.web.asks.sampling import SHOWN_TEXT, EditField, Sampling, drawn_from, edit_fields, sampling_view
from app.web.asks.uses import Uses, composed
from app.web.door.reader import fixed, reader
from app.web.kit import format, html
from app.web.kit.words import ASK_KINDS, ASK_STATES, finding_json

if TYPE_CHECKING:
    from app.sessions import Workspace
    from app.sessions.answerers.rules import Kept

TYPED = ("action", "as", "text", "model", "stopReason", "json", "force", "code", "message", "by")
"""What a card has beside the fields of a form, and shows again as it was typed."""
_MOST_CHANGES = 20
FOLDED_ABOVE = 3
"""With more asks than this only one stands open: the oldest, or the one that somebody works on."""


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
    composing: Uses | None = None
    """The tool uses that were being composed."""
    name: str = ""
    """What it is called in a page that also shows asks of another session; its own id otherwise."""

    def __post_init__(self) -> None:
        self.asked = self.ask
        if self.name:
            self.ask = replace(self.ask, id=self.name)

    @cached_property
    def call(self) -> Call | None:
        """What it belongs to, when that is known and still kept."""
        return self.session.calls.get(self.ask.call_id or "")

    @property
    def origin(self) -> str:
        """How it came, on its chip."""
        return words.origin(self.asked, self.call)

    @property
    def ttl_seconds(self) -> float | None:
        """How long its task lives in all."""
        task = self.session.asks.tasks.get(self.ask.task_id or "")
        return None if task is None or task.ttl is None else task.ttl / 1000

    @property
    def message(self) -> str:
        """The server's words."""
        said = words.question(self.ask) if self.ask.kind == "roots" else self.ask.message
        return said if self.whole else html.cut(said, SHOWN_TEXT)

    @property
    def gist(self) -> str:
        """Its words in one line, for when it is folded."""
        return words.question(self.ask)

    @property
    def outcome(self) -> str:
        """What became of it, in a word."""
        return words.outcome(self.ask)

    @property
    def answer(self) -> str:
        """What was sent, in words."""
        return words.answer(self.ask)

    @property
    def by(self) -> str:
        """The rule or the model that answered it; "" for everybody else."""
        return words.by(self.ask)

    @property
    def may_rule(self) -> bool:
        """Whether a rule can be made from its answer."""
        return not fixed(self.session) and answer_rules.may_make(self.ask)

    @property
    def promise(self) -> Kept | None:
        """The rule that will answer it unless a person does."""
        return self.session.asks.rules.promise(self.asked) if self.ask.state == "open" else None

    @property
    def due(self) -> bool:
        """Whether the time of that rule has come."""
        return self.ask.rule_at is not None and self.ask.rule_at <= self.session.wall()

    @property
    def in_hand(self) -> str:
        """Whether a person has it in hand, for a minute or to the end."""
        seconds = self.asked.claimed_for(self.session.wall())
        return "kept" if seconds == inf else "claimed" if seconds else ""

    @property
    def claim(self) -> str:
        """Whether somebody of a team has it in hand: "mine", "other", or "" for nobody."""
        who = reader()
        return who.together.claimed(self.asked, who.person, self.session.wall())

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
    def drawn_from(self) -> str:
        """What these fields are drawn from."""
        return drawn_from(self.ask.request)

    @property
    def way(self) -> str:
        """How a sampling is being answered: what was chosen, or by the model that writes already."""
        if chosen := self.typed.get("as"):
            return chosen
        if self.typed.get("json"):
            return "json"
        return "model" if self.drafting.draft is not None else "text"

    @cached_property
    def drafting(self) -> Drafting:
        """Where it stands on its way through a model."""
        return Drafting(self.session, self.ask, self.typed.get("by", ""))

    @cached_property
    def uses(self) -> Uses:
        """The tool uses that somebody composes."""
        return composed(self.ask.request, self.ask.tool_round) if self.composing is None else self.composing

    @property
    def written(self) -> words.Written:
        """Which model wrote what was answered."""
        return words.written(self.ask)

    @cached_property
    def changed(self) -> list[list[Piece]]:
        """What a person changed in the draft of a model before it left, marked in place."""
        answer = self.ask.answer
        if self.ask.draft is None or answer is None or answer.result is None or not self.written.edited:
            return []
        told = edits_of(self.ask.draft, answer.result)[:_MOST_CHANGES]
        return [pieces(html.cut(before, SHOWN_TEXT), html.cut(after, SHOWN_TEXT)) for before, after in told]

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
    waiting, sign_in = session.open_asks, session.sign_in.current
    return f"{waiting} waiting" if waiting else "sign-in" if sign_in is not None and sign_in.open else "nothing waiting"


def refused_words(session: Workspace) -> str:
    """That asks were over the limit, in a sentence; "" when none was (F10)."""
    many = session.inbox.refused
    most = session.limits.open_asks
    return f"{format.plural(many, 'ask was', 'asks were')} refused: at most {most} may be open." if many else ""


gist_of = words.question


def asks_of(session: Workspace, ids: Sequence[str]) -> list[tuple[str, str, str, bool]]:
    """The asks of a call, for its card: id, kind, state in words, and whether it waits."""
    found = [session.inbox.asks[one] for one in ids[-20:] if one in session.inbox.asks]
    return [(ask.id, ASK_KINDS[ask.kind][1], ASK_STATES[ask.state], ask.state == "open") for ask in found]


class LinkCard(NamedTuple):
    """One address that error -32042 wants opened, for the card of its call (R4-48)."""

    required: RequiredLink
    link: links.Link | None
    """None for an address that may not be opened: it is shown as text."""
    findings: list[Finding]


def link_cards(required: Iterable[RequiredLink]) -> list[LinkCard]:
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
        if ask.draft is not None and ask.draft.content is not None and answer.action == "respond":
            changed = changes(ask.draft.content, answer.result)
            outcome["draft"] = {"by": _by_json(ask.draft.by), "changed": bool(changed), "changes": changed}
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
        **({} if ask.edited is None else {"changes": changes(ask.params, ask.edited)}),
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
        **({} if not ask.tool_round else {"tool_round": _round_json(ask)}),
        **_claim_json(ask),
        **({} if ask.rule_at is None else {"rule": {"id": ask.rule_id, "answers_at": wire_time(ask.rule_at)}}),
    }


def _claim_json(ask: Ask) -> dict[str, Any]:
    """Who of a team has it in hand, and until when; None is until they have answered."""
    if ask.claimed_by is None or ask.claimed_until is None or ask.state != "open":
        return {}
    until = None if ask.claimed_until == inf else wire_time(ask.claimed_until)
    return {"claim": {"by": {"id": ask.claimed_by.id, "name": ask.claimed_by.name}, "until": until}}


def _draft_json(draft: Draft) -> dict[str, Any]:
    return {
        "by": _by_json(draft.by),
        "state": draft.state,
        "text": draft.text,
        "content": draft.content,
        "problem": draft.problem,
        "fault": draft.fault or None,
        "said": draft.said,
        "number": draft.number,
        "retry_after": draft.retry_after,
        "retry_at": None if draft.retry_after is None else wire_time(draft.updated_at + draft.retry_after),
        "notes": list(draft.notes),
        "took": None if draft.took is None else asdict(draft.took),
        "started_at": wire_time(draft.started_at),
        "updated_at": wire_time(draft.updated_at),
    }


def _round_json(ask: Ask) -> dict[str, Any]:
    """Which round of tool use it is, and how many in a row are warned about."""
    most = bounds.TOOL_ROUNDS
    return {"number": ask.tool_round, "limit": most, "over": ask.tool_round > most, "follows": ask.follows}


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
