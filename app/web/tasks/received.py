"""Tasks that we execute for the server: a row in the list, a page with its life, and the JSON of each."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any

from app.core.tasks.received import ReceiverTask, Remark, manners
from app.core.tasks.status import Visit
from app.core.times import wire_time
from app.sessions import Workspace
from app.web.asks.card import gist_of
from app.web.kit import format
from app.web.kit.words import ASK_KINDS
from app.web.tasks.chart import Chart, chart
from app.web.tasks.life import SHOWN, LifeStep, life

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


@dataclass(slots=True)
class ReceivedCard:
    """A receiver task, as its page and the list show it."""

    id: str
    base: str
    method: str
    status: str
    status_word: str
    gone: str
    wire_id: str
    created: str
    deadline: str | None
    total_seconds: float | None
    ttl_words: str
    polls: int
    last_poll: str
    ask_id: str | None
    call_id: str | None
    title: str
    message: str
    life: list[LifeStep]
    manners: list[Remark]
    outcome: str
    chart: Chart


def received_card(session: Workspace, task: ReceiverTask) -> ReceivedCard:
    """One receiver task at this moment."""
    ask = session.inbox.asks.get(task.ask_id or "")
    polls = [visit for visit in task.visits if visit.what == "tasks/get"]
    requested = "" if task.requested_ttl is None else f", asked for {format.duration(task.requested_ttl)}"
    live = not task.terminal and task.gone is None
    outcome = ""
    if task.error is not None:
        outcome = json.dumps(task.error.wire(), ensure_ascii=False, indent=2)
    elif task.result is not None:
        outcome = json.dumps(task.result, ensure_ascii=False, indent=2)
    return ReceivedCard(
        id=task.id,
        base=f"/s/{session.id}",
        method=task.method,
        status=task.status,
        status_word=task.gone if task.gone is not None and not task.terminal else TASK_WORDS[task.status],
        gone=task.gone or "",
        wire_id=task.task_id,
        created=format.clock(task.began_at),
        deadline=wire_time(task.expires_at) if live and task.expires_at is not None else None,
        total_seconds=None if task.ttl is None else task.ttl / 1000,
        ttl_words="no limit" if task.ttl is None else f"{format.duration(task.ttl)}{requested}",
        polls=task.polls,
        last_poll=format.clock(polls[-1].at) if polls else "",
        ask_id=task.ask_id if ask is not None else None,
        call_id=None if ask is None else ask.call_id,
        title="" if ask is None else (gist_of(ask) or ASK_KINDS[ask.kind][1]),
        message=task.message or "",
        life=life(task.visits, "tasks/get", lambda visit: _step(visit, task.method)),
        manners=manners(task),
        outcome=outcome,
        chart=chart(task, session.wall()),
    )


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
    ends = visit.what == "status" and visit.text in ("completed", "failed", "cancelled")
    return LifeStep(format.clock(visit.at), side, glyph, code, text, wire, visit.seq, ends or visit.what == "expired")


def received_cards(session: Workspace) -> list[ReceivedCard]:
    """The tasks that the server asked of us, newest first."""
    newest = itertools.islice(reversed(session.asks.tasks.values()), SHOWN)
    return [received_card(session, task) for task in newest]
