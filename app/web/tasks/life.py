"""The life of a task as lines, whichever side executes it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from app.core.tasks.status import POLL, Visit
from app.web.kit import format

T = TypeVar("T")
U = TypeVar("U")

SHOWN = 200
"""Rows of each kind on the Tasks page."""
_ALIKE = 3


@dataclass(slots=True, frozen=True)
class LifeStep:
    """One line of a task's life; runs of polls are one."""

    at: str
    side: str
    glyph: str
    code: str
    text: str
    status: str
    """A status by its name on the wire, after the text."""
    seq: int | None
    end: bool = False
    over: bool = False
    """It ended without a result: the time was up, or the connection was."""
    clock: str = ""
    """When it was; `at` says how long that was after the beginning."""


def folded(things: Iterable[T], key: Callable[[T], object], middle: Callable[[list[T]], U]) -> Iterator[T | U]:
    """Each thing. Of a longer run with the same key only the first and the last, and between them what stands for
    the others; what has no key is never folded."""
    for alike, group in itertools.groupby(things, key):
        run = list(group)
        yield from (run[0], middle(run), run[-1]) if alike and len(run) > _ALIKE else run


def life(visits: Iterable[Visit], step: Callable[[Visit], LifeStep]) -> list[LifeStep]:
    """One step for each visit; longer runs of polls are folded."""

    def polls(run: list[Visit]) -> LifeStep:
        mean = format.duration(1000 * (run[-1].at - run[0].at) / (len(run) - 1))
        more = f"{len(run) - 2} more polls, every {mean} on average"
        return LifeStep("", "fold", "", POLL, more, "", None)

    visits = list(visits)
    began = visits[0].at if visits else 0.0

    def placed(visit: Visit) -> LifeStep:
        made = step(visit)
        after = f"+{format.duration(1000 * (visit.at - began))}" if visit.at > began else "0"
        return replace(made, clock=made.at, at=after)

    lines = folded(visits, lambda visit: visit.what == POLL, polls)
    return [placed(one) if isinstance(one, Visit) else one for one in lines]


def ended_words(visits: Iterable[Visit], now: float) -> str:
    """How long ago the last thing of a life happened."""
    last = max((visit.at for visit in visits), default=None)
    return "" if last is None else f"ended {format.ago(now - last)}"
