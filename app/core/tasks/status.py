"""What holds for every task, whoever executes it: its status and how that may move, its TTL, and its history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from app import bounds
from app.core.times import LAST_MOMENT

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
STATUSES: tuple[Status, ...] = ("working", "input_required", "completed", "failed", "cancelled")
TERMINAL: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})
Ending = Literal["expired", "lost", "not found", "not listed"]
"""How a task goes without an end: a record of ours expires or is lost, the server's is no longer found or listed."""
POLL = "tasks/get"


def may_move(before: Status, after: Status) -> bool:
    """The legal edges (R1-20): nothing leaves an end, and staying is no move."""
    return before not in TERMINAL and after != before


@dataclass(slots=True, frozen=True)
class Visit:
    """One thing that happened in the life of a task."""

    at: float
    what: str
    """A method, or a word: `created`, `status`, `notified`, `asked`, `answered`, `outlived`, `expired`, `not found`,
    `lost`, `known`, `stopped`."""
    text: str = ""
    seq: int | None = None
    """Of the request, or of the notification."""
    reply_seq: int | None = None
    words: str = ""
    """What the server said with its status."""


@dataclass(slots=True)
class Task:
    """The part that both kinds of task have."""

    id: str
    """Ours, for pages and addresses; the wire's is `task_id`."""
    task_id: str
    began_at: float = field(kw_only=True)
    """When we first knew of it, which is when its TTL begins for us."""
    began: float = field(kw_only=True)
    """The same, monotonic."""
    ttl: int | None = field(default=None, kw_only=True)
    """Milliseconds from its beginning; None is unlimited."""
    requested_ttl: int | None = field(default=None, kw_only=True)
    status: Status = field(default="working", kw_only=True)
    message: str | None = field(default=None, kw_only=True)
    gone: Ending | None = field(default=None, kw_only=True)
    """Why nobody can ask for it any more."""
    polls: int = field(default=0, kw_only=True)
    """How often somebody asked how it stands, also where the visit is forgotten."""
    visits: list[Visit] = field(default_factory=list, kw_only=True)
    """What happened, oldest first; of very many polls the oldest are forgotten."""

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def live(self) -> bool:
        """It may still change, and somebody can ask for it."""
        return not self.terminal and self.gone is None

    @property
    def expires(self) -> float | None:
        """Monotonic time at which its TTL is over."""
        return None if self.ttl is None else self.began + self.ttl / 1000

    @property
    def expires_at(self) -> float | None:
        """The same on the wall."""
        return None if self.ttl is None else min(self.began_at + self.ttl / 1000, LAST_MOMENT)

    def written(self, created: str, updated: str, times: dict[str, int | None]) -> dict[str, Any]:
        """The task object of the wire; `times` are its TTL and its interval, by the names that they have there."""
        named: dict[str, Any] = {"taskId": self.task_id, "status": self.status}
        said = {} if self.message is None else {"statusMessage": self.message}
        return {**named, "createdAt": created, "lastUpdatedAt": updated, **times, **said}

    def visit(
        self, at: float, what: str, text: str = "", seq: int | None = None, reply: int | None = None, words: str = ""
    ) -> None:
        """Remember one thing that happened."""
        if len(self.visits) >= bounds.TASK_VISITS:
            del self.visits[next((place for place, one in enumerate(self.visits) if one.what == POLL), 1)]
        self.visits.append(Visit(at, what, text, seq, reply, words))
