"""Work that takes its time, and asks on the way. It is written once, whoever waits for it: a call, or a task.

A tool of this kind gets an `Errand`. The one of a plain call is here; a task is one too, in `tasks_2025.py` and in
`tasks_2026.py`, which begin with what tasks of both eras have in common. Knows none of the tools.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

import anyio

from app.demo.asking import TERMINAL, Client, Question
from app.demo.state import Context

Questions: TypeAlias = dict[str, Question]
Answers: TypeAlias = dict[str, dict[str, Any]]


class Errand(Protocol):
    """How a tool reports and asks while it works."""

    async def report(self, step: int, steps: int, message: str) -> None: ...

    async def ask(self, asks: Questions) -> Answers: ...


@dataclass(slots=True)
class OnItsCall:
    """The errand of a tool whose caller waits for the result."""

    client: Client
    early: Answers | None = None
    """What was answered before the work began."""

    @classmethod
    async def begin(cls, context: Context, asks: Questions) -> "OnItsCall":
        """Refuse at once if the client cannot be asked, and ask at once where there are rounds.

        A call of 2026-07-28 is played anew in each round, and nothing that takes time should be done twice."""
        errand = cls(Client(context))
        errand.client.require(*(need for each in asks.values() for need in each.needs))
        if errand.client.modern and asks:
            errand.early = await errand.ask(asks)
        return errand

    async def report(self, step: int, steps: int, message: str) -> None:
        await self.client.context.session.report_progress(step, steps, message)

    async def ask(self, asks: Questions) -> Answers:
        if self.early is not None:
            return self.early
        found = await self.client.ask_several(list(asks.values()))
        return {key: told.answer or {"action": told.outcome} for key, told in zip(asks, found, strict=True)}


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class DeskTask:
    """What the desk keeps of a task, in either era."""

    id: str
    status: str = "working"
    message: str | None = None
    created: str = field(default_factory=now)
    updated: str = field(default_factory=now)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def move(self, status: str, message: str | None = None) -> bool:
        """The next status; nothing leaves an end. Whether it has moved."""
        if self.status in TERMINAL:
            return False
        self.status, self.message, self.updated = status, message, now()
        return True

    def wire(self) -> dict[str, Any]:
        """The task as `tasks/get` shows it, without what each era calls by its own name."""
        task = {"taskId": self.id, "status": self.status, "createdAt": self.created, "lastUpdatedAt": self.updated}
        return task if self.message is None else {**task, "statusMessage": self.message}
