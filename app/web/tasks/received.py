"""Tasks that we execute for the server: a row in the list, a page with its life, and the JSON of each."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

from app.core.asks import Ask
from app.core.tasks.received import ReceiverTask, Remark, manners
from app.core.tasks.status import TERMINAL, Visit
from app.core.times import wire_time
from app.sessions import Workspace
from app.web.asks.card import gist_of
from app.web.asks.words import Written, written
from app.web.kit import format
from app.web.kit.words import ASK_KINDS
from app.web.tasks.life import SHOWN, LifeStep, ended_words, life
from app.web.tasks.sequence import Drawing, of_receiver_task

TASK_WORDS = {
    "working": "working",
    "input_required": "with you",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


def received_json(task: ReceiverTask) -> dict[str, Any]:
    """A receiver task: the wire object, and what we know beside it."""
    return {
        **task.wire(),
        "id": task.id,
        "method": task.method,
        "ask_id": task.ask_id,
        "requested_ttl": task.requested_ttl,
        "expires_at": None if task.expires_at is None else wire_time(task.expires_at),
        "gone": task.gone,
        "fetched": task.fetched,
        "history": [
            {"time": wire_time(visit.at), "what": visit.what, "text": visit.text, "seq": visit.seq}
            for visit in task.visits
        ],
    }


@dataclass(slots=True, frozen=True)
class ReceivedCard:
    """A receiver task, as its page and the list show it."""

    session: Workspace
    task: ReceiverTask
    kind: ClassVar[str] = "received"

    @property
    def ask(self) -> Ask | None:
        """What it is about, while that is kept."""
        return self.session.inbox.asks.get(self.task.ask_id or "")

    @property
    def by(self) -> str:
        """The rule or model that answered it."""
        return self.task.by

    @property
    def written(self) -> str:
        """Which model wrote the answer, and whether it was edited; "" when none did."""
        wrote = Written() if self.ask is None else written(self.ask)
        return f"written by {wrote.model}{', edited' if wrote.edited else ''}" if wrote.model else ""

    @property
    def title(self) -> str:
        return "" if self.ask is None else gist_of(self.ask) or ASK_KINDS[self.ask.kind][1]

    @property
    def status_word(self) -> str:
        return self.task.gone if self.task.gone is not None and not self.task.terminal else TASK_WORDS[self.task.status]

    @property
    def life(self) -> list[LifeStep]:
        return life(self.task.visits, lambda visit: _step(visit, self.task.method))

    @property
    def ended(self) -> str:
        """How long ago it ended; "" while it lives."""
        return "" if self.task.live else ended_words(self.task.visits, self.session.wall())

    @property
    def manners(self) -> list[Remark]:
        return manners(self.task)

    @property
    def outcome(self) -> str:
        """What the server gets, as JSON text; "" while there is nothing."""
        said = self.task.result if self.task.error is None else self.task.error.wire()
        return "" if said is None else format.pretty(said)

    @property
    def sequence(self) -> Drawing:
        return of_receiver_task(self.task, self.ask)


_STEPS = {
    "created": ("them", "i-req", "asked as a task,"),
    "tasks/get": ("them", "i-req", "polled while it was"),
    "tasks/result": ("them", "i-req", "came for the result while it was"),
    "tasks/cancel": ("them", "i-req", "wants no answer any more"),
    "answered": ("parley", "", "Answered,"),
    "status": ("us", "o-not", "Now"),
    "expired": ("parley", "", "The time was up: the record is gone"),
    "lost": ("parley", "", "The connection ended:"),
}


def _step(visit: Visit, method: str) -> LifeStep:
    side, glyph, words = _STEPS.get(visit.what, ("parley", "", visit.what))
    code = method if visit.what == "created" else visit.what if "/" in visit.what else ""
    wire = visit.text if visit.text in TASK_WORDS else ""
    if visit.what == "status" and wire == "input_required":
        words = "Handed to you, now"
    text = words if wire else f"{words} {visit.text}".rstrip(" ,:")
    ends = visit.what == "status" and visit.text in TERMINAL
    over = visit.what in ("expired", "lost")
    return LifeStep(format.clock(visit.at), side, glyph, code, text, wire, visit.seq, ends or over, over)


def received_cards(session: Workspace) -> list[ReceivedCard]:
    """The tasks that the server asked of us, newest first."""
    newest = itertools.islice(reversed(session.asks.tasks.values()), SHOWN)
    return [ReceivedCard(session, task) for task in newest]
