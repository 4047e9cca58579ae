"""Where the time of a session went: a bar for each call, its asks below it, and who was waited for in each part.

Data and arithmetic: times are seconds on the wall, and a part that has not ended ends now. Knows no page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from app.core.asks import Ask
from app.core.calls import Call

Who = Literal["server", "person", "model"]
Part = Literal["server", "person", "model", "waiting", "failed"]
"""Who was waited for; `waiting` is a person who is waited for now, `failed` a server that came to no good end."""
WHO: Final[dict[Part, Who]] = {
    "server": "server",
    "failed": "server",
    "person": "person",
    "waiting": "person",
    "model": "model",
}
_FIRST: Final[tuple[Part, ...]] = ("waiting", "person", "model")
"""What a moment of a call is told as, when several of its asks are open in it."""
_BY_PERSON: Final = frozenset({"person", "script"})


@dataclass(slots=True, frozen=True)
class Span:
    """A stretch of time in which one and the same was waited for."""

    part: Part
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class Polls(NamedTuple):
    """When somebody asked how a task stands; `many` has also those whose moment is forgotten."""

    task: str = ""
    at: tuple[float, ...] = ()
    many: int = 0


_NO_POLLS: Final = Polls()


@dataclass(slots=True, frozen=True)
class Bar:
    """A call or an ask in time; `ended` is None while it goes on."""

    id: str
    kind: Literal["call", "ask"]
    parent: str | None
    began: float
    ended: float | None
    spans: tuple[Span, ...]
    polls: Polls = _NO_POLLS
    """Of the task that it became, or that it is answered by."""

    def waited(self, who: Who) -> float:
        """For how many seconds this one was waited for."""
        return sum(span.seconds for span in self.spans if WHO[span.part] == who)

    @property
    def total(self) -> float:
        return self.spans[-1].ended - self.began if self.spans else 0.0


@dataclass(slots=True, frozen=True)
class Group:
    """What stands together: a call with its asks, or an ask that no call caused."""

    id: str
    bars: tuple[Bar, ...]

    @property
    def began(self) -> float:
        return min(bar.began for bar in self.bars)

    @property
    def live(self) -> bool:
        return any(bar.ended is None for bar in self.bars)

    @property
    def ends(self) -> float:
        """Where its last bar ends, or is now."""
        return max(bar.began + bar.total for bar in self.bars)


def of_ask(ask: Ask, now: float, polls: Polls = _NO_POLLS) -> Bar:
    """One ask: a person's time, but for the part that a model wrote in, and what no person was needed for."""
    began, ended = ask.asked_at, ask.settled_at
    end = max(began, now if ended is None else ended)
    mine: Part = "waiting" if ask.state == "open" else "person"
    by = ask.answer.by.kind if ask.answer is not None else "person"
    draft = ask.draft
    if ask.recorded or (ask.settled and by not in _BY_PERSON and by != "model"):
        spans = [Span("model", began, end)]
    elif draft is not None and draft.by.kind == "model" and draft.started_at:
        writes = min(max(began, draft.started_at), end)
        written = end if draft.state == "streaming" else min(max(writes, draft.updated_at), end)
        # What came before the model wrote is over, also while the ask waits for somebody to look at what it wrote.
        spans = [Span("person", began, writes), Span("model", writes, written), Span(mine, written, end)]
    else:
        spans = [Span(mine, began, end)]
    return Bar(ask.id, "ask", ask.call_id, began, ended, _whole(spans), polls)


def of_call(call: Call, asks: Iterable[Bar], now: float, polls: Polls = _NO_POLLS) -> Bar:
    """One call: the server's time, but for that in which one of its asks was open."""
    began, ended = call.started_at, call.ended_at
    end = max(began, now if ended is None else ended)
    theirs: Part = "failed" if call.state in ("failed", "cancelled") or call.tool_error else "server"
    edges: list[tuple[float, Part, int]] = []
    for bar in asks:
        for span in bar.spans:
            start, stop = max(began, span.began), min(end, span.ended)
            if start < stop:
                edges += [(start, span.part, 1), (stop, span.part, -1)]
    spans: list[Span] = []
    open_now: dict[Part, int] = {}
    at = began
    for moment, part, step in sorted(edges, key=lambda edge: edge[0]):
        spans.append(Span(_told(open_now, theirs), at, moment))
        open_now[part] = open_now.get(part, 0) + step
        at = moment
    spans.append(Span(_told(open_now, theirs), at, end))
    return Bar(call.id, "call", None, began, ended, _whole(spans), polls)


def _told(open_now: Mapping[Part, int], theirs: Part) -> Part:
    return next((part for part in _FIRST if open_now.get(part)), theirs)


def _whole(spans: list[Span]) -> tuple[Span, ...]:
    """The same without what takes no time, neighbours that are alike in one; something that takes none is one."""
    found: list[Span] = []
    for span in spans:
        if found and found[-1].part == span.part:
            found[-1] = Span(span.part, found[-1].began, span.ended)
        elif span.ended > span.began:
            found.append(span)
    return tuple(found) or tuple(spans[-1:])


PollsOf = Callable[[Call | Ask], Polls]


def group_of(call: Call, asks: Mapping[str, Ask], polls: PollsOf, now: float) -> Group:
    """A call with the asks that are still known."""
    below = [of_ask(asks[one], now, polls(asks[one])) for one in call.asks if one in asks]
    return Group(call.id, (of_call(call, below, now, polls(call)), *below))


def alone(ask: Ask, polls: PollsOf, now: float) -> Group:
    """An ask that no call is known to have caused."""
    return Group(ask.id, (of_ask(ask, now, polls(ask)),))


def groups(calls: Iterable[Call], asks: Mapping[str, Ask], polls: PollsOf, now: float) -> list[Group]:
    """All of it, in the order in which it began; quiet calls are Parley's own and have no bar."""
    loud = [call for call in calls if not call.quiet]
    told = {one for call in loud for one in call.asks}
    found = [group_of(call, asks, polls, now) for call in loud]
    found += [alone(ask, polls, now) for ask in asks.values() if ask.id not in told]
    return sorted(found, key=lambda group: group.began)


_STEPS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def scale(seconds: float) -> float:
    """How much time the bars are drawn over: a round number that is not less, so that it seldom changes."""
    unit = 0.1
    while unit * 10 < seconds:
        unit *= 10
    return next((unit * step for step in _STEPS if unit * step >= seconds), unit * 10)


_TICKS: Final = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30),
    *(60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400),
)


def tick(seconds: float, most: int = 8) -> float:
    """How far apart the marks of an axis of so many seconds stand, when it has at most so many."""
    return next((float(step) for step in _TICKS if seconds / step <= most), seconds / most)
