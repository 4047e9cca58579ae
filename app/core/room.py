"""What a room says: the answers of many phones to one ask, counted, and what becomes of them.

Data and pure functions: how answers are counted field by field, which of them is the majority's, what a presenter
shows. Knows JSON Schema as far as a form does; knows no phone, no page and no clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from app import guest_bounds as bounds
from app.core import forms
from app.core.forms import Field
from app.core.json.text import dump

DecidedBy = Literal["first", "majority", "pick"]
"""How a room's answer is found: the first one, the majority of each field, or the presenter picks."""
PickedBy = Literal["presenter", "vote", "model"]
"""Of sampling, where people write: who picks from what they wrote."""
_COUNTED = frozenset({"choice", "multi", "checkbox", "threeway", "const", "integer", "number"})
"""Kinds of fields whose values are counted; of the others texts are shown, when the presenter wants."""


@dataclass(slots=True, frozen=True)
class Ballot:
    """What one phone sent."""

    id: str
    """Names it on the presenter's page; says nothing of the phone."""
    content: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    """Of sampling: what was written."""
    name: str = ""
    """Only when somebody typed one."""


class Bar(NamedTuple):
    """One value of a field, and how many chose it."""

    label: str
    many: int
    leads: bool = False


class Tally(NamedTuple):
    """The answers to one field."""

    label: str
    bars: list[Bar]
    """Counted, in the order of the schema, so that none moves while people answer."""
    texts: list[str]
    """Written ones, as they came."""


class Found(NamedTuple):
    """The answer that a rule finds."""

    content: dict[str, Any]
    tied: tuple[str, ...] = ()
    """Fields whose first place is shared: somebody should choose."""


def _exactly(value: Any) -> str:
    return dump(value).decode()


def _alike(value: Any) -> str:
    """A text may differ by its case and the space around it."""
    return value.strip().casefold() if isinstance(value, str) else _exactly(value)


def counted(one: Field) -> bool:
    """Whether the values of a field are bars."""
    return one.kind in _COUNTED


def tallies(schema: Any, ballots: Sequence[Ballot]) -> list[Tally]:
    """The answers, field by field."""
    return [_tally(one, ballots) for one in forms.build(schema).children[: bounds.ROOM_FIELDS]]


def _tally(one: Field, ballots: Sequence[Ballot]) -> Tally:
    label = one.label or one.title or one.word
    given = [ballot.content[one.key] for ballot in ballots if one.key in ballot.content]
    if not counted(one):
        return Tally(label, [], [str(value) for value in given if str(value).strip()])
    values = [each for value in given for each in value] if one.kind == "multi" else given
    counts = Counter(_exactly(value) for value in values if isinstance(value, str | int | float | bool))
    known = {_exactly(option.value): option.title for option in one.options}
    if one.kind in ("checkbox", "threeway"):
        known = {_exactly(True): "Yes", _exactly(False): "No"}
    known |= {key: key.strip('"') for key in counts if key not in known}
    most = max(counts.values(), default=0)
    bars = [Bar(text, counts[key], 0 < most == counts[key]) for key, text in known.items()]
    if not one.options and one.kind in ("integer", "number"):
        bars.sort(key=lambda bar: (-bar.many, bar.label))
    return Tally(label, bars[: bounds.ROOM_BARS], [])


def majority(schema: Any, ballots: Sequence[Ballot], fits: Callable[[dict[str, Any]], bool]) -> Found | None:
    """What most people said, field by field; None when nobody has said anything.

    Of values that share the first place the one that came first counts, and the field is named as tied. A text that is
    not required is only sent when several wrote the same and no other as often. What does not fit as a whole, because
    nobody said it as a whole, gives way to the answer that most people sent."""
    if not ballots:
        return None
    content: dict[str, Any] = {}
    tied: list[str] = []
    for one in forms.build(schema).children:
        given = [ballot.content[one.key] for ballot in ballots if one.key in ballot.content]
        missing = len(ballots) - len(given)
        if one.kind == "multi":
            most = [each for each, many in _ranked(v for value in given for v in value) if many * 2 > len(ballots)]
            if given and (most or one.required):
                content[one.key] = [option.value for option in one.options if option.value in most] or given[0]
            continue
        ranked = _ranked(given, _exactly if counted(one) else _alike)
        if not ranked:
            continue
        value, many = ranked[0]
        shared = len(ranked) > 1 and ranked[1][1] == many
        if counted(one):
            if not one.required and missing > many:
                continue
            content[one.key] = value
            tied += [one.label or one.title or one.word] if shared else []
        elif one.required or (many > 1 and not shared):
            content[one.key] = value
    if fits(content):
        return Found(content, tuple(tied))
    whole = _ranked(ballot.content for ballot in ballots)
    return Found(whole[0][0], ("the answer",) if len(whole) > 1 and whole[0][1] == whole[1][1] else ())


def without_texts(schema: Any, content: dict[str, Any]) -> dict[str, Any]:
    """Of an answer only what was chosen, nothing that somebody wrote."""
    return {one.key: content[one.key] for one in forms.build(schema).children if counted(one) and one.key in content}


def voted(votes: Iterable[str], order: Sequence[str]) -> tuple[str | None, bool]:
    """Which of these most people voted for, the first of those that share the first place; whether they share it."""
    counts = Counter(vote for vote in votes if vote in order)
    if not counts:
        return None, False
    most = max(counts.values())
    first = [each for each in order if counts[each] == most]
    return first[0], len(first) > 1


def texts_of(schema: Any) -> frozenset[str]:
    """Which fields somebody writes, and does not choose."""
    return frozenset(one.key for one in forms.build(schema).children if not counted(one))


def line(content: dict[str, Any], texts: Collection[str] = ()) -> str:
    """An answer in one line; what was written in quotes, for it may have commas of its own."""
    said = [
        f"“{value}”"
        if key in texts and isinstance(value, str)
        else ", ".join(map(str, value))
        if isinstance(value, list)
        else _shown(value)
        for key, value in content.items()
    ]
    return ", ".join(said) or "yes"


def _shown(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _ranked(values: Iterable[Any], key: Callable[[Any], str] = _exactly) -> list[tuple[Any, int]]:
    """Values by how often they came, those that came first before others that came as often."""
    counts: dict[str, int] = {}
    first: dict[str, Any] = {}
    for value in values:
        counts[key(value)] = counts.get(key(value), 0) + 1
        first.setdefault(key(value), value)
    return sorted(((first[each], many) for each, many in counts.items()), key=lambda pair: -pair[1])
