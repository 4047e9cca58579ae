"""Routes of subscriptions (2026-07-28): the page, and opening, stopping and asking again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.core.rules import stateless
from app.core.strict import Closed
from app.sessions import Workspace
from app.sessions.subscriptions import Subscription
from app.web.door.denied import unknown
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.responses import done, show
from app.web.kit.templates import Context, fragment
from app.web.live.page import page
from app.web.live.parts import Part, View
from app.web.subscriptions.view import subscription_json, task_ids


@dataclass(slots=True)
class SubscriptionsPage(Context):
    """What the server was asked to tell of."""

    template: ClassVar[str] = "subscriptions/page.html"
    part: ClassVar[str | None] = "subscriptions/_subscriptions.html"
    shell: Shell
    session: Workspace
    tasks: int
    """How many tasks run that could tell of themselves."""


class Filter(Closed):
    """What to hear of, as the protocol names it; `tasks` stands for every task that runs now."""

    toolsListChanged: bool = False
    promptsListChanged: bool = False
    resourcesListChanged: bool = False
    resourceSubscriptions: list[str] = Field(default=[], max_length=200)
    taskIds: list[str] = Field(default=[], max_length=200)


class ListenBody(Closed):
    notifications: Filter
    tasks: bool = False
    """Also every task that runs now, without naming their ids."""


def _of_form(form: request_bodies.Body) -> dict[str, Any]:
    uris = [line.strip() for line in form.text("uris").splitlines() if line.strip()]
    wanted: dict[str, Any] = {key: form.text(key) == "1" for key in stateless.FLAGS}
    return {"notifications": {**wanted, "resourceSubscriptions": uris}, "tasks": form.text("tasks") == "1"}


def _draw(view: View) -> Html:
    return fragment("subscriptions/_subscriptions.html", session=view.session)


@page("subscriptions", Part("#subscriptions", ("subscription.changed", "connection.changed"), _draw))
async def subscriptions(request: Request) -> Response:
    session: Workspace = request.state.session
    return await show(
        request,
        lambda: SubscriptionsPage(shell(session, "subscriptions", "Subscriptions"), session, len(task_ids(session))),
        lambda: {"subscriptions": [subscription_json(one) for one in session.subscriptions.all.values()]},
    )


async def begin(request: Request) -> Response:
    """Open a subscription."""
    session: Workspace = request.state.session
    wanted = (await request_bodies.read(request)).read(ListenBody, _of_form)
    asked = wanted.notifications.model_dump()
    if wanted.tasks:
        asked["taskIds"] = [*asked["taskIds"], *task_ids(session)]
    return await _done(request, session, session.subscriptions.open(asked), 202)


async def stop(request: Request) -> Response:
    """Stop listening."""
    session, one = _find(request)
    await request_bodies.nothing(request)
    session.subscriptions.stop(one)
    return await _done(request, session, one, 200)


async def again(request: Request) -> Response:
    """Ask for the same once more."""
    session, one = _find(request)
    await request_bodies.nothing(request)
    return await _done(request, session, session.subscriptions.again(one), 202)


def _find(request: Request) -> tuple[Workspace, Subscription]:
    session: Workspace = request.state.session
    one = session.subscriptions.all.get(request.path_params["lid"])
    if one is None:
        raise unknown("There is no such subscription. The oldest ones are forgotten first.")
    return session, one


async def _done(request: Request, session: Workspace, one: Subscription, status: int) -> Response:
    return await done(request, f"{session.base}/subscriptions", lambda: subscription_json(one), status)
