"""Routes of tasks: the page with both kinds, the page of one, and what a person may ask of a task on the server.

An action begins something and answers at once; the stream brings what came of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.core.tasks.running import ClientTask
from app.sessions import Workspace
from app.sessions.tasks.running import ClientTasks
from app.web.calls.card import call_card
from app.web.door.denied import unknown
from app.web.kit import request_bodies
from app.web.kit.frame import shell
from app.web.kit.responses import in_json, show, wants_json
from app.web.kit.templates import Twofold
from app.web.tasks import sequence
from app.web.tasks.received import received_card, received_cards, received_json
from app.web.tasks.running import running_card, running_json, running_view

# -------------------------------------------------------------------------------------------------------------- GET


@dataclass(slots=True)
class TasksPage(Twofold):
    """Both kinds of tasks, apart."""

    template: ClassVar[str] = "tasks/page.html"
    part: ClassVar[str | None] = "tasks/_tasks.html"


def tasks_page(session: Workspace) -> TasksPage:
    """The Tasks page."""
    capable = session.client_tasks.capable
    return TasksPage(
        page=lambda: {
            "shell": shell(session, "tasks", "Tasks"),
            "tasks": received_cards(session),
            "running": running_view(session),
        },
        json=lambda: {
            "receiver": [received_json(task) for task in reversed(session.asks.tasks.values())],
            "client": [running_json(task) for task in reversed(session.client_tasks.tasks.values())],
            "capabilities": {"list": capable.list, "cancel": capable.cancel, "toolCall": capable.tools_call},
            "listing": session.client_tasks.listing.state,
        },
    )


@dataclass(slots=True)
class ReceiverTaskPage(Twofold):
    """The life of one receiver task."""

    template: ClassVar[str] = "tasks/received.html"
    part: ClassVar[str | None] = "tasks/_received.html"


@dataclass(slots=True)
class ClientTaskPage(Twofold):
    """The life of one task on the server."""

    template: ClassVar[str] = "tasks/running.html"
    part: ClassVar[str | None] = "tasks/_running.html"


def task_page(session: Workspace, tid: str) -> ReceiverTaskPage | ClientTaskPage | None:
    """The page of a task of either kind; None when there is none of that id."""
    received, task = session.asks.tasks.get(tid), session.client_tasks.tasks.get(tid)
    title = f"Task {tid[1:]}"
    if received is not None:
        return ReceiverTaskPage(
            page=lambda: {
                "shell": shell(session, "task", title, of=tid),
                "task": received_card(session, received),
                "sequence": sequence.of_receiver_task(session, received),
            },
            json=lambda: received_json(received),
        )
    if task is None:
        return None
    call = session.calls.get(task.call_id or "")
    return ClientTaskPage(
        page=lambda: {
            "shell": shell(session, "task", title, of=tid),
            "task": running_card(session, task, alone=True),
            "sequence": sequence.of_client_task(session, task),
            "call": None if call is None else call_card(session, call),
        },
        json=lambda: running_json(task),
    )


async def tasks(request: Request) -> Response:
    """Both kinds of tasks."""
    return await show(request, tasks_page(request.state.session))


async def task(request: Request) -> Response:
    """One task of either kind."""
    found = task_page(request.state.session, request.path_params["tid"])
    if found is None:
        raise unknown("There is no such task. The oldest ones are forgotten first.")
    return await show(request, found)


# ------------------------------------------------------------------------------------------------------------- POST


async def refresh(request: Request) -> Response:
    """Ask the server for the list of its tasks."""
    session: Workspace = request.state.session
    await request_bodies.nothing(request)
    session.client_tasks.refresh()
    return _begun(request, f"/s/{session.id}/tasks", {"listing": session.client_tasks.listing.state})


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
    return _begun(request, _page(session, found), running_json(found))


async def result(request: Request) -> Response:
    """Ask for the result of a task, as a call of its own."""
    session: Workspace = request.state.session
    found = await _find(request)
    call = session.client_tasks.fetch(found, request.state.identity)
    url = f"/s/{session.id}/calls/{call.id}"
    if wants_json(request):
        return in_json({"id": call.id, "url": url, "state": call.state}, 202, {"location": url})
    if "hx-request" in request.headers:
        return Response(headers={"hx-redirect": url})
    return RedirectResponse(url, 303)


def _page(session: Workspace, found: ClientTask) -> str:
    return f"/s/{session.id}/tasks/{found.id}"


async def _find(request: Request) -> ClientTask:
    """The task on the server that the address names; a receiver task has none of these actions."""
    await request_bodies.nothing(request)
    session: Workspace = request.state.session
    found = session.client_tasks.tasks.get(request.path_params["tid"])
    if found is None:
        raise unknown("The server runs no such task. The oldest ones are forgotten first.")
    return found


def _begun(request: Request, url: str, said: dict[str, Any]) -> Response:
    """It is begun. A page with a stream hears of it there."""
    if wants_json(request):
        return in_json(said, 202)
    return Response(status_code=204) if "hx-request" in request.headers else RedirectResponse(url, 303)
