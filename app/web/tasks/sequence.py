"""Who said what to whom: the life of a task or a call as a sequence drawing with three lanes.

You stand at the left, Parley in the middle, the server at the right, as everywhere on the page. Makes turns
and sentences for a template to draw; the same sentences are a list for whoever cannot see the drawing. Polls are
folded. Knows tasks, calls and asks; knows no markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from app.core.asks import Ask
from app.core.calls import Call
from app.core.figures import measured
from app.core.tasks.running import ClientTask
from app.core.tasks.status import STATUSES, TERMINAL
from app.web.kit import format
from app.web.tasks.life import folded

if TYPE_CHECKING:
    from app.core.tasks.received import ReceiverTask
    from app.sessions import Workspace

Lane = Literal["person", "parley", "server"]
NAMES: dict[Lane, str] = {"person": "You", "parley": "Parley", "server": "Server"}
_PLACES: dict[Lane, float] = {"person": 16.0, "parley": 53.0, "server": 90.0}
_MOST = 60
_POLL = "tasks/get"
_SHORT = "tasks/status"
"""The notification of a status, without the word that its dashed line already says."""


@dataclass(slots=True, frozen=True)
class Turn:
    """One thing that one of the three said to another, or did alone."""

    at: float
    source: Lane
    target: Lane
    code: str = ""
    """A name of the wire, before the words."""
    text: str = ""
    seq: int | None = None
    kind: str = "says"
    """`says`, `tells` (a notification), `asks` (waits for an answer), `fold`, `end`."""
    key: str = ""
    """What repeats under the same key is folded."""

    @property
    def alone(self) -> bool:
        return self.source == self.target

    @property
    def words(self) -> str:
        """Its text, as far as there is room in the drawing."""
        return format.gist(self.text, 46 - len(self.code) // 2)

    @property
    def sentence(self) -> str:
        who = NAMES[self.source] if self.alone else f"{NAMES[self.source]} to {NAMES[self.target]}"
        said = f"{self.code} {self.text}".strip()
        return f"{who}: {said}."


@dataclass(slots=True, frozen=True)
class Drawing:
    """Everything that the drawing shows. The last turn is marked while it is `live`."""

    title: str
    turns: list[Turn]
    live: bool
    names: ClassVar = NAMES
    places: ClassVar = _PLACES
    """Where the lanes are, in per cent of the width."""

    @property
    def summary(self) -> str:
        """The same in a sentence, for whoever cannot see it."""
        state = "It goes on" if self.live else "It is over"
        last = f"; the last: {self.turns[-1].sentence}" if self.turns else ""
        return f"{format.plural(len(self.turns), 'step')} between you, Parley and the server. {state}{last}"


def drawing(title: str, turns: Iterable[Turn], *, live: bool) -> Drawing:
    """The drawing of these turns, in the order of time."""
    ordered = sorted(turns, key=lambda turn: turn.at)
    return Drawing(title, _cut(list(folded(ordered, lambda turn: turn.key, _others))), live)


def _others(run: list[Turn]) -> Turn:
    return replace(run[1], text=f"{len(run) - 2} more of these", seq=None, kind="fold")


def _cut(turns: list[Turn]) -> list[Turn]:
    if len(turns) <= _MOST:
        return turns
    left = len(turns) - _MOST + 1
    middle = Turn(turns[20].at, "parley", "parley", "", f"{left} steps are left out", kind="fold")
    return [*turns[:20], middle, *turns[20 + left :]]


# -------------------------------------------------------------------------------------------------- what is drawn


def of_call(session: Workspace, call: Call) -> Drawing:
    """A call with everything the server asked meanwhile; with its task, when it became one."""
    task = session.client_tasks.tasks.get(call.task_id or "")
    turns = _call_turns(session, call, task)
    return drawing(f"Call {call.id.lstrip('c')}", turns, live=not call.settled)


def of_client_task(session: Workspace, task: ClientTask) -> Drawing:
    """A task that runs on the server, with the call that made it."""
    call = session.calls.get(task.call_id or "")
    turns = _task_turns(task) + _ask_turns(session, task.asks) if call is None else _call_turns(session, call, task)
    live = task.live or (call is not None and not call.settled)
    return drawing(f"Task {task.id[1:]}", turns, live=live)


def of_receiver_task(task: ReceiverTask, ask: Ask | None = None) -> Drawing:
    """A task that Parley executes for the server, and what a model did for its ask."""
    turns: list[Turn] = [] if ask is None else _draft_turns(ask)
    for visit in task.visits:
        match visit.what:
            case "created":
                turns.append(Turn(visit.at, "server", "parley", task.method, "as a task", visit.seq, "asks"))
                turns.append(Turn(visit.at, "parley", "server", "", "a task, working", None))
                turns.append(Turn(visit.at, "parley", "person", "", "the ask, in the inbox", None, "asks"))
            case "status":
                kind = "end" if visit.text in TERMINAL else "tells"
                turns.append(Turn(visit.at, "parley", "server", _SHORT, visit.text, None, kind))
            case "answered":
                turns.append(Turn(visit.at, "parley" if task.by else "person", "parley", "", visit.text))
            case "expired" | "lost":
                turns.append(Turn(visit.at, "parley", "parley", "", f"the record is {visit.what}", None, "end"))
            case "tasks/get":
                turns.append(Turn(visit.at, "server", "parley", _POLL, visit.text, visit.seq, key=_POLL))
            case method:
                turns.append(Turn(visit.at, "server", "parley", method, visit.text, visit.seq))
    return drawing(f"Task {task.id[1:]}", turns, live=task.live)


def _call_turns(session: Workspace, call: Call, task: ClientTask | None) -> list[Turn]:
    turns = [Turn(call.started_at, "person", "parley", "", f"call {call.subject}" if call.by != "parley" else "begin")]
    fetches = {visit.seq for visit in task.visits if visit.what == task.wire.result} if task is not None else set()
    for leg in call.legs:
        if leg.request_seq in fetches:
            continue
        asked = session.messages.get(leg.request_seq) if leg.request_seq is not None else None
        answered = session.messages.get(leg.reply_seq) if leg.reply_seq is not None else None
        if asked is not None:
            as_task = "as a task" if call.as_task else ""
            kind = "tells" if call.notification else "asks"
            turns.append(Turn(asked.at, "parley", "server", call.method, as_task, asked.seq, kind))
        if answered is not None:
            made = task is not None and leg is call.legs[0]
            words = f"a task, {task.visits[0].text}" if made and task is not None and task.visits else "the reply"
            turns.append(Turn(answered.at, "server", "parley", "", words, answered.seq))
    if call.progress is not None:
        words = f"{format.plural(call.progressed, 'time')}, the last: {measured(call.progress.progress)}"
        if call.progress.total is not None:
            words += f" of {measured(call.progress.total)}"
        turns.append(Turn(call.progress.at, "server", "parley", "notifications/progress", words, None, "tells"))
    turns += _ask_turns(session, call.asks)
    if task is not None:
        turns += _task_turns(task)[1:]
    if call.ended_at is not None:
        turns.append(Turn(call.ended_at, "parley", "person", "", f"the call is {call.state}", None, "end"))
    return turns


def _task_turns(task: ClientTask) -> list[Turn]:
    turns = []
    for visit in task.visits:
        match visit.what:
            case "created" | "known":
                words = f"a task, {visit.text}" if visit.what == "created" else f"in the server's list, {visit.text}"
                turns.append(Turn(visit.at, "server", "parley", "", words, visit.reply_seq))
            case "status":
                words = f"{visit.text}, “{visit.words}”" if visit.words else visit.text
                turns.append(Turn(visit.at, "server", "parley", _SHORT, words, visit.seq, "tells"))
            case "result":
                turns.append(Turn(visit.at, "server", "parley", "", f"{visit.text} of the task", visit.reply_seq))
            case "notified" | "stopped" | "outlived" | "not found" | "lost" | "not listed":
                words = DONE_WORDS.get(visit.what, visit.what)
                turns.append(Turn(visit.at, "parley", "parley", "", words, visit.seq))
            case method:
                key = method if method == task.wire.get else ""
                words = f"it is {visit.text}" if visit.text in STATUSES else visit.text
                if method == task.wire.result:
                    words = "waits for the end" if visit.text not in TERMINAL else "for the result"
                turns.append(Turn(visit.at, "parley", "server", method, words, visit.seq, key=key))
    return turns


DONE_WORDS = {
    "notified": "a notification, kept until the task was known",
    "stopped": "stopped waiting for the result",
    "outlived": "the TTL is over, and the server still has it",
    "not found": "the server no longer knows it",
    "lost": "the connection ended",
    "not listed": "the server no longer lists it",
}
"""What Parley noticed or did by itself, in words."""


def _draft_turns(ask: Ask) -> list[Turn]:
    """What a model did for an ask: the request goes to it once a person has checked that, and its draft comes back."""
    draft = ask.draft
    if draft is None or draft.by.kind != "model":
        return []
    name = format.gist(draft.by.name, 40)
    turns = [Turn(draft.started_at, "person", "parley", "", f"the request, for {name}")]
    turns.append(Turn(draft.started_at, "parley", "parley", "", f"{name} writes"))
    if draft.state == "ready":
        turns.append(Turn(draft.updated_at, "parley", "person", "", "the draft, to check", None, "asks"))
    elif draft.state == "failed":
        turns.append(Turn(draft.updated_at, "parley", "person", "", f"{name} {draft.fault or 'failed'}", None, "asks"))
    return turns


def _ask_turns(session: Workspace, ids: Iterable[str]) -> list[Turn]:
    turns: list[Turn] = []
    for ask in (session.inbox.asks[one] for one in ids if one in session.inbox.asks):
        turns.append(Turn(ask.asked_at, "server", "parley", ask.method, "", ask.message_seq, "asks"))
        turns.append(Turn(ask.asked_at, "parley", "person", "", ask.message or ask.kind, None, "asks"))
        turns += _draft_turns(ask)
        if ask.settled_at is None:
            continue
        if ask.state == "answered" and ask.answer is not None:
            by = ask.answer.by.credit
            who: Lane = "parley" if ask.recorded or by else "person"
            turns.append(Turn(ask.settled_at, who, "parley", "", ask.answer.action + (f" by {by}" if by else "")))
            turns.append(Turn(ask.settled_at, "parley", "server", "", "the answer"))
        else:
            turns.append(Turn(ask.settled_at, "parley", "parley", "", f"the question is {ask.state}"))
    return turns
