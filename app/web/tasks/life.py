"""The life of a task as lines, whichever side executes it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.core.tasks.status import POLL, Task, Visit
from app.web.kit import format

SHOWN = 200
"""Rows of each kind on the Tasks page."""
_POLLS_SHOWN = 3


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


def life(visits: Iterable[Visit], step: Callable[[Visit], LifeStep]) -> list[LifeStep]:
    """One step for each visit. Of a longer run of polls the first and the last are shown, and between them how many
    there were."""
    steps: list[LifeStep] = []
    for polls, group in itertools.groupby(visits, key=lambda visit: visit.what == POLL):
        run = list(group)
        if polls and len(run) > _POLLS_SHOWN:
            mean = format.duration(1000 * (run[-1].at - run[0].at) / (len(run) - 1))
            more = f"{len(run) - 2} more polls, every {mean} on average"
            steps += [step(run[0]), LifeStep("", "fold", "", POLL, more, "", None), step(run[-1])]
        else:
            steps += map(step, run)
    return steps


def last_poll(task: Task) -> str:
    """When it was polled the last time; "" when it never was."""
    return next((format.clock(visit.at) for visit in reversed(task.visits) if visit.what == POLL), "")
