"""Answer rules as their page draws them: a line for each, the editor with what was typed, and what a trial found.

Rules are text of the people here, what they would have answered is text of a server: both are shown, never markup.
Knows rules and asks; knows no route.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from app import bounds
from app.core.answer_rules import ACTIONS, Rule
from app.core.errors import INTERNAL_ERROR
from app.sessions.answerers.rules import MODEL_WRITES, Kept, Trial
from app.web.kit import format
from app.web.kit.frame import Shell
from app.web.kit.templates import Context
from app.web.kit.words import ASK_KINDS

if TYPE_CHECKING:
    from app.sessions import Workspace

KINDS: Final = (("", "any"), ("form", "Form"), ("sampling", "Sampling"), ("roots", "Roots"))
ORIGINS: Final = (
    ("", "any"),
    ("request", "direct request"),
    ("receiver-task", "as a task"),
    ("input-required", "round"),
    ("task-input", "input of a task"),
)
DEEDS: Final = (
    ("accept", "Accept"),
    ("respond", "Respond"),
    ("model", "Model"),
    ("decline", "Decline"),
    ("cancel", "Cancel"),
    ("fail", "Fail"),
)
"""What a rule can do; the editor offers what goes with the kind of ask."""
_VALUE: Final = 60
_ANSWER: Final = 400
_SHOWN: Final = 100
"""Answers of a trial that are drawn."""

Piece = tuple[str, bool]
"""A few words, and whether they are somebody's own, set as code."""


# ---------------------------------------------------------------------------------------------------------- in words


def when_words(rule: Rule) -> list[Piece]:
    """What a rule answers: `Form from preferences`."""
    when = rule.when
    said: list[Piece] = [(ASK_KINDS[when.kind][1] if when.kind is not None else "Any ask", False)]
    if when.tool is not None:
        said += [(" from ", False), (when.tool, True)]
    for word, value in (("server", when.server), ("message", when.message)):
        if value is not None:
            said += [(f", {word} ", False), (format.gist(value, _VALUE), True)]
    if when.origin is not None:
        said.append((f", {dict(ORIGINS)[when.origin]}", False))
    for number, name in enumerate(when.fields):
        said += [(", " if number else ", fields " if len(when.fields) > 1 else ", field ", False), (name, True)]
    return said


def do_words(rule: Rule) -> list[Piece]:
    """What it does: `accept, defaults`."""
    do = rule.do
    match do.action:
        case "accept" if isinstance(do.content, dict):
            return [(f"accept with {format.plural(len(do.content), 'value')}", False)]
        case "accept" if rule.when.kind == "roots":
            return [("send the list", False)]
        case "accept":
            return [("accept, defaults", False)]
        case "fail":
            return [("fail ", False), (str(do.code), True)]
        case "model" if do.model is not None:
            return [("model ", False), (do.model, True)]
        case "model":
            return [("model that fits best", False)]
        case "respond":
            return [("respond with a text" if do.text is not None else "respond with a result", False)]
        case "decline" if rule.when.kind == "sampling":
            return [("deny", False)]
        case _:
            return [(do.action, False)]


class Line(NamedTuple):
    """One rule in the list."""

    id: str
    number: int
    name: str
    on: bool
    did: str
    words: list[Piece]
    note: str
    """Why it does not answer, or did not."""
    lacks: bool
    """It cannot be switched on: a secret of it was not kept."""


def line_of(number: int, kept: Kept) -> Line:
    """One rule, in its place."""
    rule, did = kept.rule, ""
    if kept.used_up and not kept.promised:
        did = f"done, {format.plural(kept.answered, 'answer')}"
    elif kept.answered:
        did = f"answered {kept.answered}"
    did = did if rule.on else ", ".join(part for part in (did, "off") if part)
    note = f"Type again, it was not kept: {', '.join(kept.missing)}" if kept.missing else ""
    if kept.problem:
        note = f"The last answer was left to you: {kept.problem}"
    words = [*when_words(rule), (": ", False), *do_words(rule)]
    return Line(kept.id, number, rule.name, rule.on, did or "on", words, note, bool(kept.missing))


# ------------------------------------------------------------------------------------------------------------- editor


@dataclass(slots=True)
class Editor:
    """A rule as it is typed."""

    id: str
    """"" for one that is not there yet."""
    name: str
    on: bool
    typed: dict[str, str]
    errors: dict[str, list[str]] = field(default_factory=dict)
    saved: bool = False
    first: bool = True
    last: bool = True
    lacks: tuple[str, ...] = ()
    asked: str = ""
    """The ask that it is made from."""

    def wrong(self, *pointers: str) -> str:
        """What is wrong with a field."""
        found = [
            text
            for place, texts in self.errors.items()
            if any(place == one or place.startswith(f"{one}/") for one in pointers)
            for text in texts
        ]
        return " ".join(dict.fromkeys(found))

    @property
    def elsewhere(self) -> str:
        """What is wrong and belongs to no field."""
        homes = ("/name", "/when/", "/do/", "/delay_ms", "/most", "/per_minute")
        return " ".join(text for place, texts in self.errors.items() if not place.startswith(homes) for text in texts)


EMPTY: Final[dict[str, str]] = dict.fromkeys(
    ("name", "server", "kind", "origin", "tool", "message", "fields", "text", "result", "model", "most", "per_minute"),
    "",
) | {
    "action": "accept",
    "content_as": "values",
    "content": "{}",
    "respond_as": "text",
    "code": str(INTERNAL_ERROR),
    "fail_message": "Failed by a rule",
    "delay_ms": "0",
    "kind": "form",
}
"""An editor in which nobody has typed."""


def typed_of(rule: Rule) -> dict[str, str]:
    """The fields of the editor for a rule."""
    when, do = rule.when, rule.do
    said: dict[str, str | None] = {
        "name": rule.name,
        "server": when.server,
        "kind": when.kind or "",
        "origin": when.origin,
        "tool": when.tool,
        "message": when.message,
        "fields": ", ".join(when.fields),
        "action": do.action,
        "content_as": "values" if isinstance(do.content, dict) or do.action != "accept" else "defaults",
        "content": format.pretty(do.content) if isinstance(do.content, dict) else None,
        "respond_as": "text" if do.result is None else "result",
        "text": do.text,
        "result": None if do.result is None else format.pretty(do.result),
        "model": do.model,
        "code": str(do.code),
        "fail_message": do.message,
        "delay_ms": str(rule.delay_ms),
        "most": None if rule.most is None else str(rule.most),
        "per_minute": None if rule.per_minute is None else str(rule.per_minute),
    }
    return {**EMPTY, **{name: text for name, text in said.items() if text is not None}}


def editor_of(session: Workspace, kept: Kept, **more: Any) -> Editor:
    """The editor of a rule that is there."""
    ids = list(session.asks.rules.all)
    at = ids.index(kept.id)
    known = {"typed": typed_of(kept.rule), "first": at == 0, "last": at == len(ids) - 1, "lacks": kept.missing}
    return Editor(kept.id, kept.rule.name, kept.rule.on, **{**known, **more})


# -------------------------------------------------------------------------------------------------------------- trial


class Match(NamedTuple):
    """An ask that a rule would have answered, and what."""

    ask: str
    title: str
    action: str
    said: str
    call: str | None


class Miss(NamedTuple):
    """Asks of one kind that it would have left, and why."""

    title: str
    many: int
    reason: str


@dataclass(slots=True, frozen=True)
class Tried:
    """What a rule would have done."""

    of: int
    answered: int
    matches: list[Match]
    misses: list[Miss]
    limited: bool
    """Its limits were not counted."""
    problem: str = ""
    """Why there is nothing to try."""

    @property
    def words(self) -> str:
        """In a sentence."""
        return f"Would have answered {self.answered} of {self.of}" if self.of else "Nothing to try it on yet"


def tried(session: Workspace, rule: Rule, before: Kept | None) -> Tried:
    """A rule held against every ask that is known, the newest first."""
    asks = list(session.inbox.asks.values())[::-1]
    trials = session.asks.rules.tried(rule, asks, before=before)
    hits = [one for one in trials if _matched(one)]
    rest = sorted((_title(session, one), one.reason) for one in trials if not _matched(one))
    misses = [Miss(title, len(list(same)), reason) for (title, reason), same in groupby(rest)]
    matches = [_match(session, one) for one in hits[:_SHOWN]]
    return Tried(len(trials), len(hits), matches, misses, bool(rule.most or rule.per_minute))


def _title(session: Workspace, trial: Trial) -> str:
    tool = session.asks.about(trial.ask).tool
    kind = ASK_KINDS[trial.ask.kind][1]
    return f"{kind}, {tool[: bounds.RULE_WORD]}" if tool else kind


def _matched(trial: Trial) -> bool:
    """Whether it would have been answered, by the rule or by a model in its name."""
    return trial.answer is not None or trial.reason == MODEL_WRITES


def _match(session: Workspace, trial: Trial) -> Match:
    answer, said = trial.answer, None
    if answer is not None and answer.error is not None:
        said = answer.error.wire()
    elif answer is not None:
        result = answer.result or {}
        said = result.get("content") if trial.ask.kind == "form" else result
    words = trial.reason if answer is None else "" if said is None else format.gist(said, _ANSWER)
    call = trial.ask.call_id if trial.ask.call_id in session.calls else None
    return Match(trial.ask.id, _title(session, trial), "model:" if answer is None else answer.action, words, call)


# --------------------------------------------------------------------------------------------------------------- page


@dataclass(slots=True)
class RulesView:
    """The list, the editor beside it, and what a trial of that found."""

    session: Workspace
    editor: Editor | None = None
    tried: Tried | None = None
    pasted: str = ""
    refused: str = ""
    """What was pasted to be imported, and why it was not."""
    alone: bool = False
    """The page is about the rule in the editor: on a narrow one the list is another page."""

    @property
    def lines(self) -> list[Line]:
        return [line_of(at, one) for at, one in enumerate(self.session.asks.rules.all.values(), 1)]

    @property
    def chosen(self) -> str:
        return "" if self.editor is None else self.editor.id

    @property
    def models(self) -> list[str]:
        return list(self.session.models.all)

    @property
    def were_on(self) -> int:
        """How many came back off that were on when somebody left."""
        return sum(one.was_on for one in self.session.asks.rules.all.values())

    @property
    def keeping(self) -> str:
        """Where they are kept."""
        trouble = self.session.saved.trouble
        if trouble:
            return f"Kept until Parley ends; they could not be written: {trouble}"
        if not self.session.kept_rules.lasts:
            return "Kept until Parley ends."
        return "Saved with this server. On a new connection they come back off."

    def offers(self, action: str) -> str:
        """The kinds of ask that go with something that a rule can do, for the style sheet."""
        return " ".join(["any", *(kind for kind, deeds in ACTIONS.items() if action in deeds)])


@dataclass(slots=True)
class RulesPage(Context):
    """Answer rules."""

    template: ClassVar[str] = "rules/page.html"
    part: ClassVar[str | None] = "rules/_list.html"

    shell: Shell
    view: RulesView
    KINDS: tuple[tuple[str, str], ...] = KINDS
    ORIGINS: tuple[tuple[str, str], ...] = ORIGINS
    DEEDS: tuple[tuple[str, str], ...] = DEEDS


def made_words(session: Workspace, rule: Rule) -> tuple[list[Piece], list[Piece], str]:
    """A rule that is about to be made from an answer: when, do, and what it would have done."""
    found = tried(session, rule, None)
    return when_words(rule), do_words(rule), f"off; {found.words[:1].lower()}{found.words[1:]}"
