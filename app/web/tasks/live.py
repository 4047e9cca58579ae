"""Tasks on a page, as they live: both lists, and one task with its drawing."""

from __future__ import annotations

from typing import Final

from app.core.events import Event, EventKind
from app.web.kit.html import NOTHING, Html
from app.web.kit.templates import fragment
from app.web.live.parts import Each, Part, View, partial
from app.web.tasks import sequence
from app.web.tasks.received import ReceivedCard, received_cards
from app.web.tasks.running import RunningCard, RunningList


def _lists(view: View) -> Html:
    return fragment("tasks/_tasks.html", tasks=received_cards(view.session), running=RunningList(view.session))


TASKS: Final = Part("#tasks", ("task.*", "tasks.*"), _lists)


def _task(view: View, tid: str, _: tuple[EventKind, ...] = ()) -> Html:
    session = view.session
    if (received := session.asks.tasks.get(tid)) is not None:
        html = fragment("tasks/_received.html", card=ReceivedCard(session, received))
        drawn = sequence.of_receiver_task(session, received)
    elif (running := session.client_tasks.tasks.get(tid)) is not None:
        html = fragment("tasks/_running.html", card=RunningCard(session, running))
        drawn = sequence.of_client_task(session, running)
    else:
        return NOTHING
    return partial(f"#task-{tid}", html) + partial("#sequence", fragment("tasks/_sequence.html", sequence=drawn))


def _this(view: View, event: Event) -> str | None:
    """A task of ours moves by itself; one on the server also with its call and its asks."""
    return view.of if event.subject == view.of or view.of in view.session.client_tasks.tasks else None


TASK: Final = Each(("task.*", "tasks.*", "ask.*", "call.*"), _this, _task, lambda view: _task(view, view.of))
"""The task that the page is about."""
