"""Routes of tasks: the page with both kinds, the page of one, and what a person may ask of a task on the server.

An action begins something and answers at once; the stream brings what came of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.tasks.running import ClientTask
from app.sessions import Workspace
from app.sessions.tasks.running import ClientTasks
from app.web.door.denied import unknown
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.responses import done, go, show, started
from app.web.kit.templates import Context
from app.web.live.page import page
from app.web.tasks.live import TASK, TASKS, task_card
from app.web.tasks.received import ReceivedCard, received_cards, received_json
from app.web.tasks.running import RunningCard, running_cards, running_json

# -------------------------------------------------------------------------------------------------------------- GET


@dataclass(slots=True)
class TasksPage(Context):
    """Both kinds of tasks, apart."""

    template: ClassVar[str] = "tasks/page.html"
    part: ClassVar[str | None] = "tasks/_tasks.html"

    shell: Shell
    session: Workspace
    received: list[ReceivedCard]
    running: list[RunningCard]


def tasks_page(session: Workspace) -> TasksPage:
    return TasksPage(shell(session, "tasks", "Tasks"), session, received_cards(session), running_cards(session))


def tasks_json(session: Workspace) -> dict[str, Any]:
    """Both kinds of tasks, for scripts."""
    capable = session.client_tasks.capable
    return {
        "receiver": [received_json(task) for task in reversed(session.asks.tasks.values())],
        "client": [running_json(task) for task in reversed(session.client_tasks.tasks.values())],
        "capabilities": {"list": capable.list, "cancel": capable.cancel, "toolCall": capable.tools_call},
        "listing": session.client_tasks.listing.state,
    }


@page("tasks", TASKS)
async def tasks(request: Request) -> Response:
    """Both kinds of tasks."""
    session: Workspace = request.state.session
    return await show(request, lambda: tasks_page(session), lambda: tasks_json(session))


@dataclass(slots=True)
class TaskPage(Context):
    """The life of one task, whichever side executes it."""

    template: ClassVar[str] = "tasks/task.html"
    part: ClassVar[str | None] = "tasks/_task.html"

    shell: Shell
    card: ReceivedCard | RunningCard


@page("task", TASK)
async def task(request: Request) -> Response:
    """One task of either kind."""
    session: Workspace = request.state.session
    tid = request.path_params["tid"]
    card = task_card(session, tid)
    if card is None:
        raise unknown("There is no such task. The oldest ones are forgotten first.")
    return await show(
        request,
        lambda: TaskPage(shell(session, "task", f"Task {tid[1:]}", of=tid), card),
        lambda: received_json(card.task) if isinstance(card, ReceivedCard) else running_json(card.task),
    )


# ------------------------------------------------------------------------------------------------------------- POST


async def refresh(request: Request) -> Response:
    """Ask the server for the list of its tasks."""
    session: Workspace = request.state.session
    await request_bodies.nothing(request)
    session.client_tasks.refresh()
    listing = session.client_tasks.listing
    return await done(request, f"{session.base}/tasks", lambda: {"listing": listing.state}, 202)


async def poll(request: Request) -> Response:
    """Ask the server at once how a task stands."""
    return await _act(request, ClientTasks.poll_now)


async def cancel(request: Request) -> Response:
    """Ask the server to cancel a task."""
    return await _act(request, ClientTasks.cancel)


async def stop(request: Request) -> Response:
    """Stop waiting for the result of a task; the task goes on."""
    return await _act(request, ClientTasks.stop_waiting)


async def _act(request: Request, act: Callable[[ClientTasks, ClientTask], object]) -> Response:
    session: Workspace = request.state.session
    found = await _find(request)
    act(session.client_tasks, found)
    return await done(request, f"{session.base}/tasks/{found.id}", lambda: running_json(found), 202)


async def result(request: Request) -> Response:
    """Ask for the result of a task, as a call of its own."""
    session: Workspace = request.state.session
    found = await _find(request)
    call = session.client_tasks.fetch(found, request.state.identity)
    return await started(request, session, call, then=go)


async def _find(request: Request) -> ClientTask:
    """The task on the server that the address names; a receiver task has none of these actions."""
    await request_bodies.nothing(request)
    session: Workspace = request.state.session
    found = session.client_tasks.tasks.get(request.path_params["tid"])
    if found is None:
        raise unknown("The server runs no such task. The oldest ones are forgotten first.")
    return found
