"""What the page shows of tasks that run on the server: a row in the list, a page with its life, and the JSON of each.

Knows client tasks and their calls; knows no route and no template engine.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app import bounds
from app.core.figures import measured
from app.core.tasks.running import CORE, ClientTask, poll_seconds
from app.core.tasks.status import Visit
from app.core.times import wire_time
from app.core.wire import Finding
from app.web.asks.card import asks_of
from app.web.kit import format
from app.web.kit.words import finding_json
from app.web.tasks.life import LifeStep
from app.web.tasks.sequence import DONE_WORDS

if TYPE_CHECKING:
    from app.sessions import Workspace
from app.web.tasks.life import SHOWN

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


def _life(task: ClientTask) -> list[LifeStep]:
    steps: list[LifeStep] = []
    for polls, run in itertools.groupby(task.visits, key=lambda visit: visit.what == task.wire.get):
        visits = list(run)
        if polls and len(visits) > 3:
            gaps = [later.at - earlier.at for earlier, later in itertools.pairwise(visits)]
            mean = format.duration(1000 * sum(gaps) / len(gaps))
            more = f"{len(visits) - 2} more polls, every {mean} on average"
            steps.append(_step(visits[0], task))
            steps.append(LifeStep("", "fold", "", task.wire.get, more, "", None))
            steps.append(_step(visits[-1], task))
        else:
            steps += [_step(visit, task) for visit in visits]
    return steps


def _step(visit: Visit, task: ClientTask) -> LifeStep:
    at, seq = format.clock(visit.at), visit.seq if visit.seq is not None else visit.reply_seq
    wire = visit.text if visit.text in WORDS else ""
    ends = visit.text in ("completed", "failed", "cancelled") and visit.what != task.wire.result
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
        return LifeStep(at, "parley", "", "", text, "", seq, visit.what == "lost")
    words = {task.wire.get: "asked, and it was", task.wire.result: "waits for the result while it is"}.get(
        visit.what, "asked:"
    )
    return LifeStep(at, "us", "o-req", visit.what, words if wire else f"{words} {visit.text}", wire, seq, ends)


# ---------------------------------------------------------------------------------------------------------- section


@dataclass(slots=True)
class RunningView:
    """The section *on the server*."""

    base: str
    ready: bool
    declared: bool
    can_list: bool
    can_run: bool
    state: str
    listed: str
    error: str
    stopped: str
    findings: list[Finding]
    cards: list[RunningCard]
    total: int
    label: str


@dataclass(slots=True)
class RunningCard:
    """A task that runs on the server, as its page, its call and the list show it."""

    id: str
    base: str
    label: str
    tool: str
    status: str
    status_word: str
    gone: str
    live: bool
    wire_id: str
    message: str
    known: str
    deadline: str | None
    outlived: bool
    left: str
    """The time left, until the page counts by itself."""
    total_seconds: float | None
    ttl_words: str
    poll_words: str
    polls: int
    last_poll: str
    notified: int
    call_id: str | None
    fetched: str | None
    immediate: str
    waiting: bool
    cancelling: bool
    followed: bool
    can_cancel: bool
    can_ask: bool
    """There is a connection."""
    findings: list[Finding]
    asks: list[tuple[str, str, str, bool]]
    life: list[LifeStep]
    progress: Any
    progress_words: str


def running_card(session: Workspace, task: ClientTask, *, alone: bool = False) -> RunningCard:
    """One task at this moment; `alone`, on its own page, with its life."""
    capable, ready = session.client_tasks.capable, session.info.state == "ready"
    last_poll = next((visit.at for visit in reversed(task.visits) if visit.what == task.wire.get), None)
    call = session.calls.get(task.call_id or "")
    progress = None if call is None else call.progress
    words = ""
    if progress is not None:
        words = measured(progress.progress)
        words += f" of {measured(progress.total)}" if progress.total is not None else ""
    granted = "no limit" if task.ttl is None else format.duration(task.ttl)
    asked = "" if task.requested_ttl is None else f", asked for {format.duration(task.requested_ttl)}"
    if task.requested_ttl is not None and task.requested_ttl == task.ttl:
        asked = ", as asked"
    told = "" if task.poll is not None else ", our default"
    return RunningCard(
        id=task.id,
        base=f"/s/{session.id}",
        label=task.wire.label,
        tool=task.tool,
        status=task.status,
        status_word=WORDS[task.status],
        gone=GONE.get(task.gone or "", ""),
        live=task.live,
        wire_id=task.task_id,
        message=task.message or "",
        known=format.clock(task.began_at),
        deadline=wire_time(task.expires_at)
        if task.live and task.expires_at is not None and not task.outlived
        else None,
        outlived=task.outlived and task.live,
        left="" if task.expires_at is None else _left(task.expires_at - session.wall()),
        total_seconds=None if task.ttl is None else task.ttl / 1000,
        ttl_words=f"{granted}{asked}",
        poll_words=f"every {format.duration(poll_seconds(task.poll) * 1000)}{told}",
        polls=task.polls,
        last_poll=format.clock(last_poll) if last_poll is not None else "",
        notified=task.notified,
        call_id=task.call_id if call is not None else None,
        fetched=task.fetched if task.fetched in session.calls and task.fetched != task.call_id else None,
        immediate=task.immediate or "",
        waiting=task.waiting,
        cancelling=task.cancelling,
        followed=task.followed,
        can_cancel=ready and capable.cancel and task.live,
        can_ask=ready,
        findings=task.findings[:20],
        asks=asks_of(session, task.asks),
        life=_life(task) if alone else [],
        progress=progress if call is not None and not call.settled else None,
        progress_words=words,
    )


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


def running_view(session: Workspace) -> RunningView:
    """What is known of the server's tasks, newest first."""
    known, capable = session.client_tasks, session.client_tasks.capable
    listing, found = known.listing, format.plural(len(known.listing.items), "task")
    newest = list(itertools.islice(reversed(known.tasks.values()), SHOWN))
    pages = f", {format.plural(listing.pages, 'page')}" if listing.pages > 1 else ""
    return RunningView(
        base=f"/s/{session.id}",
        ready=session.info.state == "ready",
        declared=capable.tools_call or capable.list or capable.cancel,
        can_list=capable.list and session.info.state == "ready",
        can_run=capable.tools_call,
        state=listing.state,
        listed=f"{found}{pages}, at {format.time_of_day(listing.at)}" if listing.at else "",
        error="" if listing.error is None else listing.error.message,
        stopped=listing.stopped or "",
        findings=listing.log.findings_of(listing.seqs)[: bounds.TASK_LIST_FINDINGS],
        cards=[running_card(session, task) for task in newest],
        total=len(known.tasks),
        label=CORE.label,
    )
