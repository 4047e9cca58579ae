"""What the page shows of tasks that run on the server: a row in the list, a page with its life, and the JSON of each.

Knows client tasks and their calls; knows no route and no template engine.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

from app.core.calls import Call
from app.core.tasks.running import CORE, ClientTask, poll_seconds
from app.core.tasks.status import TERMINAL, Visit
from app.core.times import wire_time
from app.sessions import Workspace
from app.web.asks.card import asks_of
from app.web.kit import format
from app.web.kit.words import finding_json
from app.web.tasks.life import SHOWN, LifeStep, ended_words, life
from app.web.tasks.sequence import DONE_WORDS, Drawing, of_client_task

WORDS = {
    "working": "working",
    "input_required": "needs an answer",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
GONE = {
    "not found": "unknown to the server",
    "lost": "connection ended",
    "not listed": "no longer listed",
}


def _left(seconds: float) -> str:
    """Seconds as the page counts them down."""
    whole = max(0, math.ceil(seconds))
    minutes = f"{whole // 60 % 60:02}" if whole >= 3_600 else f"{whole // 60}"
    return (f"{whole // 3_600}:" if whole >= 3_600 else "") + f"{minutes}:{whole % 60:02}"


# ------------------------------------------------------------------------------------------------------------- life

_STEPS = {
    "created": ("them", "i-res", "", "answered with a task,"),
    "known": ("them", "i-res", "tasks/list", "The server's list has it,"),
    "status": ("them", "i-not", CORE.notification, "says"),
    "result": ("them", "i-res", "", "The server sent"),
}


def _step(visit: Visit, task: ClientTask) -> LifeStep:
    at, seq = format.clock(visit.at), visit.seq if visit.seq is not None else visit.reply_seq
    wire = visit.text if visit.text in WORDS else ""
    ends = visit.text in TERMINAL and visit.what != task.wire.result
    if visit.what in _STEPS:
        side, glyph, code, words = _STEPS[visit.what]
        if visit.what == "created":
            code = "tools/call"
        if visit.words:
            words = f"says “{format.gist(visit.words, 120)}”,"
        return LifeStep(at, side, glyph, code, words if wire else f"{words} {visit.text}", wire, seq, ends)
    if visit.what in DONE_WORDS:
        words = DONE_WORDS[visit.what]
        text = f"{words[0].upper()}{words[1:]}" + (f": {visit.text}" if visit.text and not wire else "")
        over = visit.what == "lost"
        return LifeStep(at, "parley", "", "", text, "", seq, over, over)
    words = {task.wire.get: "asked, and it was", task.wire.result: "waits for the result while it is"}.get(
        visit.what, "asked:"
    )
    return LifeStep(at, "us", "o-req", visit.what, words if wire else f"{words} {visit.text}", wire, seq, ends)


# ------------------------------------------------------------------------------------------------------------ cards


@dataclass(slots=True, frozen=True)
class RunningCard:
    """A task that runs on the server, as its page, its call and the list show it."""

    session: Workspace
    task: ClientTask
    kind: ClassVar[str] = "running"

    @property
    def call(self) -> Call | None:
        """The call that became it, while that is kept."""
        return self.session.calls.get(self.task.call_id or "")

    @property
    def fetched(self) -> str | None:
        """The call of its own that fetched the result."""
        cid = self.task.fetched
        return cid if cid in self.session.calls and cid != self.task.call_id else None

    @property
    def status_words(self) -> str:
        word, gone = WORDS[self.task.status], GONE.get(self.task.gone or "")
        return word if gone is None else f"{word}, {gone}"

    @property
    def deadline(self) -> float | None:
        return self.task.expires_at if self.task.live and not self.task.outlived else None

    @property
    def left(self) -> str:
        """The time until then, until the page counts by itself."""
        at = self.task.expires_at
        return "" if at is None else _left(at - self.session.wall())

    @property
    def ttl_words(self) -> str:
        task = self.task
        granted = "no limit" if task.ttl is None else format.duration(task.ttl)
        if task.requested_ttl is None:
            return granted
        asked = "as asked" if task.requested_ttl == task.ttl else f"asked for {format.duration(task.requested_ttl)}"
        return f"{granted}, {asked}"

    @property
    def ended(self) -> str:
        """How long ago it ended; "" while it lives."""
        return "" if self.task.live else ended_words(self.task.visits, self.session.wall())

    @property
    def poll_ms(self) -> float:
        return poll_seconds(self.task.poll) * 1000

    @property
    def can_cancel(self) -> bool:
        session = self.session
        return session.info.state == "ready" and session.client_tasks.capable.cancel and self.task.live

    @property
    def asks(self) -> list[tuple[str, str, str, bool]]:
        return asks_of(self.session, self.task.asks)

    @property
    def life(self) -> list[LifeStep]:
        return life(self.task.visits, lambda visit: _step(visit, self.task))

    @property
    def sequence(self) -> Drawing:
        return of_client_task(self.session, self.task)


def running_cards(session: Workspace) -> list[RunningCard]:
    """What is known of the server's tasks, newest first."""
    newest = itertools.islice(reversed(session.client_tasks.tasks.values()), SHOWN)
    return [RunningCard(session, task) for task in newest]


# ------------------------------------------------------------------------------------------------------------- JSON


def running_json(task: ClientTask) -> dict[str, Any]:
    """A task on the server: the wire object, and what we know beside it."""
    return {
        **task.object(),
        "id": task.id,
        "call_id": task.call_id,
        "tool": task.tool,
        "requested_ttl": task.requested_ttl,
        "expires_at": None if task.expires_at is None else wire_time(task.expires_at),
        "gone": task.gone,
        "outlived": task.outlived,
        "followed": task.followed,
        "waiting": task.waiting,
        "polls": task.polls,
        "notifications": task.notified,
        "immediate_response": task.immediate,
        "result_call_id": task.fetched,
        "asks": list(task.asks),
        "findings": [finding_json(one) for one in task.findings],
        "history": [
            {"time": wire_time(one.at), "what": one.what, "text": one.text, "seq": one.seq, "reply_seq": one.reply_seq}
            for one in task.visits
        ],
    }
