"""Two calls side by side, step by step: what each was given, was asked and answered, and brought; and what differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from app import bounds
from app.core import forms, pairs
from app.core.asks import Ask
from app.core.calls import Call
from app.core.json import lines
from app.core.json import text as jsontext
from app.core.json.essence import essence
from app.core.json.values import MISSING, same
from app.core.lane import apart
from app.core.times import wire_time
from app.core.wire import Finding, Message
from app.sessions.compare import Side, messages_of
from app.web.asks.card import AskCard
from app.web.asks.words import Said, answer_of, did, given, line_of, question_of
from app.web.calls.given import plain_of
from app.web.kit import format
from app.web.kit.words import finding_json

VERDICTS = {
    "equal": "equal",
    "answer": "≠ answer",
    "question": "≠ question",
    "left": "− only left",
    "right": "+ only right",
    "waiting": "waiting",
    "later": "not yet",
}


class Argument(NamedTuple):
    """One argument of a call, as JSON on a line."""

    key: str
    text: str
    kind: str
    differs: bool


@dataclass(slots=True)
class AskStep:
    """One ask of either call, or one of each."""

    number: int
    left: Ask | None
    right: Ask | None
    pair: Pair

    @property
    def verdict(self) -> str:
        found = pairs.verdict(self.left, self.right)
        lacks = {"left": self.pair.right, "right": self.pair.left}.get(found)
        return "later" if lacks is not None and not lacks.call.settled else found

    @property
    def words(self) -> str:
        return VERDICTS[self.verdict]

    @property
    def sides(self) -> list[AskSide]:
        return [
            AskSide(self.pair.left, self.left, self.right, self.pair.right),
            AskSide(self.pair.right, self.right, self.left, self.pair.left),
        ]


@dataclass(slots=True)
class AskSide:
    """One ask, beside that of the other call."""

    side: View
    ask: Ask | None
    other: Ask | None
    from_: View

    @property
    def question(self) -> str:
        return "" if self.ask is None else question_of(self.ask)

    @property
    def answers(self) -> list[Said]:
        return answer_of(self.ask, self.other)

    @property
    def did(self) -> str:
        return "" if self.ask is None else did(self.ask)

    @property
    def card(self) -> AskCard | None:
        """The ask, to be answered here: filled in as the other call was answered, when that fits."""
        return None if self.ask is None else card_of(self.side, self.ask, self.other)

    @property
    def filled(self) -> bool:
        """Whether its card begins with the answer of the other call."""
        other = self.other
        if self.ask is None or other is None or not _fits(self.ask, other) or self.ask.state != "open":
            return False
        answer = given(other)
        return answer is not None and answer.action in ("accept", "respond") and self.ask.kind in ("form", "sampling")


def _fits(ask: Ask, other: Ask) -> bool:
    """Whether an answer to the other may be shown as one to this: what one server was told is for no other one."""
    return ask.kind == other.kind and ask.server == other.server


def card_of(side: View, ask: Ask, other: Ask | None) -> AskCard:
    """The card of an open ask, which takes the answer of the other call as what was typed. Of another session it goes
    by a name that no ask of this one has."""
    made = AskCard(side.session, ask, name="" if side.own else f"x{side.session.number}-{ask.id}")
    answer = None if other is None or not _fits(ask, other) else given(other)
    if answer is None or answer.result is None or ask.state != "open":
        return made
    if ask.kind == "form" and answer.action == "accept":
        made.filled = forms.build(ask.schema, answer.result.get("content") or {})
    elif ask.kind == "sampling" and answer.action == "respond":
        made.typed = _typed(answer.result)
    return made


def _typed(result: dict[str, Any]) -> dict[str, str]:
    """A result of sampling as it would be typed: a text, or else all of it as JSON."""
    content = result.get("content")
    text = content.get("text") if isinstance(content, dict) and content.keys() == {"type", "text"} else None
    if not isinstance(text, str) or result.keys() - {"role", "content", "model", "stopReason"}:
        return {"json": format.pretty(result)}
    typed = {"text": text, "model": result.get("model"), "stopReason": result.get("stopReason")}
    return {name: text for name, text in typed.items() if isinstance(text, str)}


@dataclass(frozen=True)
class View(Side):
    """One of the two calls, as the page shows it."""

    own: bool = True
    """It is of the session whose page this is."""
    ref: str = ""
    """What stands for it in an address."""

    @cached_property
    def messages(self) -> list[Message]:
        return messages_of(self.session, self.call)

    @property
    def number(self) -> str:
        return self.call.id[1:]

    @property
    def base(self) -> str:
        return self.session.base

    @property
    def version(self) -> str:
        return self.session.info.protocol_version or ""

    @property
    def bytes(self) -> int:
        return sum(each.size for each in self.messages)

    @property
    def findings(self) -> list[Finding]:
        return self.call.findings

    @property
    def given(self) -> dict[str, Any]:
        """What was given to it, apart from its name."""
        return plain_of(self.call)

    @property
    def way(self) -> str:
        """How the server asked."""
        if self.call.rounds:
            return f"asked in {format.plural(len(self.call.rounds), 'round')}"
        origins = {ask.origin for ask in self.asks}
        if not origins:
            return ""
        return "asked as input of a task" if "task-input" in origins else "asked by requests of the server"

    @property
    def open(self) -> list[Ask]:
        return [ask for ask in self.asks if ask.state == "open"]


@dataclass
class Pair:
    """Both, and how they differ."""

    left: View
    right: View
    results: tuple[Any, Any] = (None, None)
    difference: lines.Difference | None = None
    """Of their results, when both have one that can be compared by line."""
    what: str = "result"
    """Which part of the results that is."""
    large: bool = False
    """There is too much to compare it by line."""
    ignore: bool = True

    @cached_property
    def steps(self) -> list[AskStep]:
        found = pairs.matched(self.left.asks, self.right.asks)
        return [AskStep(at, one, two, self) for at, (one, two) in enumerate(found, 1)]

    @property
    def sides(self) -> tuple[View, View]:
        return self.left, self.right

    def name(self, side: View) -> str:
        """What one of them is called: by its number, and where they are of two sessions by what tells these apart."""
        if self.left.session is self.right.session:
            return f"call {side.number}"
        if self.left.version != self.right.version:
            return f"call {side.number} ({side.version or 'no connection'})"
        if self.left.session.label != self.right.session.label:
            return f"call {side.number} ({format.gist(side.session.label, 30)})"
        return f"call {side.number} ({'this' if side.own else 'other'} session)"

    def short(self, side: View) -> str:
        """The same where there is hardly room."""
        if self.left.number != self.right.number:
            return side.number
        return "left" if side is self.left else "right"

    @property
    def partner(self) -> str:
        """The call for which one of the two sessions was opened, when it was opened by the other one."""
        for side, other in ((self.left, self.right), (self.right, self.left)):
            made_for = side.session.made_for
            if made_for is not None and made_for[0] == other.session.id and other.own:
                return made_for[1]
        return ""

    @property
    def settled(self) -> bool:
        return self.left.call.settled and self.right.call.settled

    @cached_property
    def arguments(self) -> tuple[list[Argument], list[Argument]]:
        one, two = self.left.given, self.right.given
        return list(_arguments(one, two)), list(_arguments(two, one))

    @property
    def arguments_differ(self) -> int:
        return len({each.key for side in self.arguments for each in side if each.differs})

    @property
    def progress(self) -> bool:
        return any(side.call.progressed for side in self.sides)

    @property
    def progress_equal(self) -> bool:
        first, second = (_progress(side.call) for side in self.sides)
        return first == second

    @property
    def findings_equal(self) -> bool:
        first, second = (sorted({(one.id, one.text) for one in side.findings}) for side in self.sides)
        return first == second

    @property
    def result_words(self) -> str:
        """The verdict on what they brought; begins with ≠ where it differs."""
        if not self.settled:
            return "not yet"
        first, second = (_outcome(side.call) for side in self.sides)
        if first != second:
            return "≠ outcome"
        if self.difference is None:
            equal = same(*self.results) and not self.large
            return "equal" if equal else "too large to compare" if self.large else "≠ result"
        if self.difference.count:
            return f"≠ {format.plural(self.difference.count, 'line')}"
        return f"equal, {self.difference.ignored} ignored" if self.difference.ignored else "equal"

    @property
    def result_changes(self) -> str:
        """The same for people: what was added as a whole is one change, however many lines it has."""
        changes = 0 if self.difference is None else self.difference.changes
        return f"≠ {format.plural(changes, 'change')}" if changes else self.result_words

    @property
    def waiting(self) -> list[tuple[View, View, list[tuple[Ask, Ask]]]]:
        """The sides on which something is open, each with the other one and with what can be answered as there."""
        both = ((self.left, self.right), (self.right, self.left))
        return [(one, other, one.same_answers(other)) for one, other in both if one.open]

    @property
    def alike(self) -> bool:
        """Whether both are calls of the same tool, prompt or resource."""
        return self.left.call.subject == self.right.call.subject


def answered_as(open_asks: list[tuple[Ask, Ask]]) -> str:
    """What would be answered once more, in a line."""
    said = [", ".join(f"{one.key} {one.text}".strip() for one in answer_of(before)) for _, before in open_asks[:3]]
    return "; ".join(line for line in said if line)[:300]


def _progress(call: Call) -> tuple[int, float | None, float | None]:
    last = call.progress
    return (call.progressed, last.progress if last else None, last.total if last else None)


def _outcome(call: Call) -> tuple[str, Any]:
    error = call.error
    return ("tool error" if call.tool_error else call.state, None if error is None else (error.code, error.message))


def _arguments(mine: dict[str, Any], other: dict[str, Any]) -> Iterator[Argument]:
    for key in list(dict.fromkeys([*mine, *other]))[: bounds.COMPARED_ARGUMENTS]:
        value, there = mine.get(key, MISSING), other.get(key, MISSING)
        differs = value is MISSING or there is MISSING or not same(value, there)
        kind = (
            "s"
            if isinstance(value, str | list | dict)
            else "b"
            if value is None or value is True or value is False
            else "n"
        )
        if value is MISSING:
            yield Argument(key, "not set", "", True)
        else:
            text = format.gist(jsontext.dump(value).decode(errors="replace"), 300)
            yield Argument(key, text, kind, differs)


# ---------------------------------------------------------------------------------------------------------- results


async def pair_of(left: View, right: View, *, ignore: bool = True) -> Pair:
    """Both calls, with their results compared as far as they have some."""
    made = Pair(left, right, ignore=ignore)
    if not made.settled or not all(side.call.has_result and side.call.state == "done" for side in made.sides):
        return made
    size = max(len(side.call.reply or b"") for side in made.sides)
    if size > bounds.DIFFERENCE_BYTES:
        made.large = True
        return made
    made.results = await left.session.result(left.call), await right.session.result(right.call)
    if None in made.results:
        return made
    one, two, made.what = essence(*made.results)
    if size > bounds.THREAD_ABOVE // 4:
        made.difference = await apart(lines.compared, one, two, ignore=ignore)
    else:
        made.difference = lines.compared(one, two, ignore=ignore)
    return made


# ------------------------------------------------------------------------------------------------------------- JSON


def pair_json(pair: Pair) -> dict[str, Any]:
    """The comparison, as scripts read it."""
    difference = pair.difference
    return {
        "left": _side_json(pair.left),
        "right": _side_json(pair.right),
        "settled": pair.settled,
        "arguments": {
            "equal": not pair.arguments_differ,
            "left": pair.left.given,
            "right": pair.right.given,
        },
        "asks": [
            {"verdict": step.verdict, "left": _ask_json(step.left), "right": _ask_json(step.right)}
            for step in pair.steps
        ],
        "result": {
            "verdict": pair.result_words,
            "compared": pair.what,
            "ignore": pair.ignore,
            "ignored": 0 if difference is None else difference.ignored,
            "lines": None if difference is None else len(difference.rows),
            "different": None if difference is None else difference.count,
            "changes": None if difference is None else difference.changes,
            "cut": pair.large or (difference is not None and difference.cut),
            "differences": []
            if difference is None
            else [_row_json(row) for row in difference.rows if row.kind != "equal"],
        },
        "findings": {side: [finding_json(one) for one in view.findings] for side, view in _named(pair)},
        "messages": {side: {"count": len(view.messages), "bytes": view.bytes} for side, view in _named(pair)},
    }


def _named(pair: Pair) -> tuple[tuple[str, View], ...]:
    return (("left", pair.left), ("right", pair.right))


def _side_json(view: View) -> dict[str, Any]:
    call = view.call
    return {
        "session": view.session.id,
        "call": call.id,
        "url": f"{view.base}/calls/{call.id}",
        "method": call.method,
        "subject": call.subject,
        "state": call.state,
        "version": view.version,
        "started_at": wire_time(call.started_at),
        "duration_ms": call.duration_ms,
        "open_asks": [ask.id for ask in view.open],
    }


def _ask_json(ask: Ask | None) -> dict[str, Any] | None:
    if ask is None:
        return None
    return {
        "id": ask.id,
        "kind": ask.kind,
        "state": ask.state,
        "question": question_of(ask, kind=False),
        "answer": line_of(ask),
    }


def _row_json(row: lines.Row) -> dict[str, Any]:
    left, right = ("".join(text for _, text in parts) if parts else None for parts in (row.left, row.right))
    return {"kind": row.kind, "depth": row.depth, "left": left, "right": right}
