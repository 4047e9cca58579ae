"""Tasks on a page, as they live: both lists, and one task with its drawing."""

from __future__ import annotations

from typing import Final

from app.core.events import Event, EventKind
from app.sessions import Workspace
from app.web.kit.html import NOTHING, Html
from app.web.kit.templates import fragment
from app.web.live.parts import Each, Part, View, partial
from app.web.tasks.received import ReceivedCard, received_cards
from app.web.tasks.running import RunningCard, running_cards


def task_card(session: Workspace, tid: str) -> ReceivedCard | RunningCard | None:
    """A task of either kind; None when there is no such."""
    ours, theirs = session.asks.tasks.get(tid), session.client_tasks.tasks.get(tid)
    if ours is not None:
        return ReceivedCard(session, ours)
    return None if theirs is None else RunningCard(session, theirs)


def _lists(view: View) -> Html:
    session = view.session
    received, running = received_cards(session), running_cards(session)
    return fragment("tasks/_tasks.html", session=session, received=received, running=running)


TASKS: Final = Part("#tasks", ("task.*", "tasks.*"), _lists)


def _task(view: View, tid: str, _: tuple[EventKind, ...] = ()) -> Html:
    card = task_card(view.session, tid)
    if card is None:
        return NOTHING
    drawn = partial("#sequence", fragment("tasks/_sequence.html", card=card))
    return partial(f"#task-{tid}", fragment("tasks/_task.html", card=card)) + drawn


def _this(view: View, event: Event) -> str | None:
    """A task of ours moves by itself; one on the server also with its call and its asks."""
    return view.of if event.subject == view.of or view.of in view.session.client_tasks.tasks else None


TASK: Final = Each(("task.*", "tasks.*", "ask.*", "call.*"), _this, _task, lambda view: _task(view, view.of))
"""The task that the page is about."""
