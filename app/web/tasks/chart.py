"""The life of a receiver task as a strip chart: where each thing stands, in per cent, for a template to draw.

Positions are numbers of ours, never a server's text. Knows the task; knows no markup.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.web.kit import format

if TYPE_CHECKING:
    from app.core.tasks.received import ReceiverTask
    from app.core.tasks.status import Visit

LEFT, RIGHT = 13.0, 1.5
"""What the names of the rows take, and a little room at the end."""
_LEAST = 1.0
_WORDS_PER_CENT = 0.75
"""How much of the width one letter takes, so that a word is only written where it fits."""


@dataclass(slots=True, frozen=True)
class Bar:
    """A stretch of time."""

    kind: str
    x: str
    width: str
    text: str
    text_x: str


@dataclass(slots=True, frozen=True)
class Tick:
    """A moment."""

    x: str
    fast: bool = False
    label: str = ""
    anchor: str = "middle"


@dataclass(slots=True)
class Chart:
    """Everything that the strip shows."""

    left: str
    right: str
    width: str
    summary: str
    """The same in a sentence, for whoever cannot see it."""
    scale: list[Tick] = field(default_factory=list)
    status: list[Bar] = field(default_factory=list)
    polls: list[Tick] = field(default_factory=list)
    waits: list[Bar] = field(default_factory=list)
    fetches: list[Tick] = field(default_factory=list)
    sent: list[Tick] = field(default_factory=list)
    answered: str = ""
    """Where somebody answered."""
    end: str = ""
    """Where the record goes, when that is in view."""
    end_words: str = ""
    fast_words: str = ""


def chart(task: ReceiverTask, now: float) -> Chart:
    """The strip of one task. It reaches a little beyond what has happened, or to the end of the record."""
    began = task.began_at
    last = max((visit.at for visit in task.visits), default=began)
    live = not task.terminal and task.gone is None
    span = max((now if live else last) - began, _LEAST) * 1.08
    ttl = None if task.ttl is None else task.ttl / 1000
    if ttl is not None and ttl <= span * 1.5:
        span = max(ttl, last - began) or _LEAST

    def x(at: float) -> float:
        return LEFT + (100 - LEFT - RIGHT) * min(1.0, max(0.0, (at - began) / span))

    def bar(kind: str, since: float, until: float, text: str) -> Bar:
        start, width = x(since), x(until) - x(since)
        fits = len(text) * _WORDS_PER_CENT < width
        return Bar(kind, _percent(start), _percent(width), text if fits else "", _percent(start + 0.8))

    ends = next((one.at for one in task.visits if one.what in ("expired", "lost")), None)
    settled = task.updated_at if task.terminal else ends
    polls = [visit for visit in task.visits if visit.what == "tasks/get"]
    fetches = [visit for visit in task.visits if visit.what == "tasks/result"]
    stop = ends if ends is not None else now if live else began + span
    found = Chart(
        left=_percent(LEFT), right=_percent(100 - RIGHT), width=_percent(100 - LEFT - RIGHT), summary=_summary(task)
    )
    found.scale = [
        Tick(_percent(x(began + at)), label=_seconds(at, step), anchor="end" if at > span * 0.97 else "middle")
        for at, step in _steps(span)
    ]
    found.status = [
        bar(status, since, until, status) for status, since, until in _stretches(task, min(stop, began + span))
    ]
    found.polls = _ticks(task, polls, x)
    fast = sum(tick.fast for tick in found.polls)
    if fast:
        found.fast_words = f"{format.plural(fast, 'poll')} sooner than {format.duration(task.poll_interval)}"
    for visit in fetches:
        until = settled if settled is not None else now
        if visit.at < until:
            found.waits.append(bar("wait", visit.at, until, f"waits {format.duration((until - visit.at) * 1000)}"))
        else:
            found.fetches.append(Tick(_percent(x(visit.at))))
    found.sent = [Tick(_percent(x(visit.at))) for visit in task.visits if visit.what in ("created", "status")]
    answered = next((visit.at for visit in task.visits if visit.what == "answered"), None)
    found.answered = "" if answered is None else _percent(x(answered))
    if ttl is not None and ttl <= span:
        found.end, found.end_words = _percent(x(began + ttl)), f"TTL {format.duration(ttl * 1000)}, record dropped"
    return found


def _ticks(task: ReceiverTask, polls: list[Visit], x: Callable[[float], float]) -> list[Tick]:
    from app.core.tasks.received import is_fast

    before: float | None = None
    ticks = []
    for visit in polls:
        ticks.append(Tick(_percent(x(visit.at)), before is not None and is_fast(visit.at - before, task)))
        before = visit.at
    return ticks


def _stretches(task: ReceiverTask, stop: float) -> list[tuple[str, float, float]]:
    """How long it stood at each status."""
    status, since, stretches = "working", task.began_at, []
    for visit in task.visits:
        if visit.what == "status":
            stretches.append((status, since, visit.at))
            status, since = visit.text, visit.at
    return [*stretches, (status, since, max(since, stop))]


def _steps(span: float) -> list[tuple[float, float]]:
    """Round seconds for the scale, five to ten of them, each with the distance between two."""
    rough = span / 6
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [(step * number, step) for number in range(int(span / step + 1e-9) + 1)]


def _seconds(at: float, step: float) -> str:
    return f"{at:.{max(0, -math.floor(math.log10(step)))}f} s"


def _percent(value: float) -> str:
    return f"{value:.2f}%"


def _summary(task: ReceiverTask) -> str:
    polls, fetches = task.polls, sum(visit.what == "tasks/result" for visit in task.visits)
    age = task.updated_at - task.began_at
    when = f", {task.status} after {format.duration(age * 1000)}" if task.terminal else f", now {task.status}"
    return f"Strip chart of the task: {format.plural(polls, 'poll')}, {fetches} times tasks/result{when}."
