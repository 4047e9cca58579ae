"""The tour: where somebody is, one button that goes on, and the list of its steps to come back to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.core.strict import Closed
from app.sessions import Workspace
from app.sessions.tour import STEPS, Step, Tour, press
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.request_bodies import Body
from app.web.kit.responses import done, show
from app.web.kit.templates import Context
from app.web.live.page import page


class TourBody(Closed):
    """What somebody does on the tour: press the button of the step, go on, or leave it for later."""

    do: Literal["press", "next", "back", "leave", "again"] = "press"
    step: int | None = Field(default=None, ge=1, le=len(STEPS))


@dataclass(slots=True)
class TourPage(Context):
    """All steps, and where somebody is."""

    template: ClassVar[str] = "tour/page.html"
    shell: Shell
    steps: tuple[Step, ...]
    at: Tour


def _of(session: Workspace) -> Tour:
    if session.tour is None:
        session.tour = Tour()
    return session.tour


def tour_json(session: Workspace) -> dict[str, Any]:
    """The tour for scripts."""
    at = _of(session)
    return {
        "step": at.at + 1,
        "steps": len(STEPS),
        "key": at.step.key,
        "title": at.step.title,
        "before": at.step.before,
        "button": at.step.button,
        "after": at.step.after if at.done else None,
        "done": at.done,
        "over": at.over,
        "left": at.left,
        "url": where(session, at),
    }


def where(session: Workspace, at: Tour) -> str:
    """The page on which a step is seen."""
    return session.base + at.filled(at.step.page) if at.done else f"{session.base}/tour"


@page("tour")
async def tour(request: Request) -> Response:
    """The list of the steps. Whoever comes here is on the tour."""
    session: Workspace = request.state.session
    at = _of(session)
    return await show(request, lambda: TourPage(shell(session, "tour", "Tour"), STEPS, at), lambda: tour_json(session))


async def go_on(request: Request) -> Response:
    """One step further."""
    session: Workspace = request.state.session
    wanted = (await request_bodies.read(request)).read(TourBody, _of_form)
    at = _of(session)
    if wanted.step is not None:
        at.move(wanted.step - 1)
    match wanted.do:
        case "press":
            at.left = False
            await press(session, at, request.state.identity)
        case "next":
            at.move(at.at + 1)
        case "back":
            at.move(at.at - 1)
        case "leave":
            at.left = True
        case "again":
            at.move(0)
    leaving = at.left
    return await done(request, session.base if leaving else where(session, at), lambda: tour_json(session))


def _of_form(form: Body) -> dict[str, Any]:
    step = form.text("step")
    return {"do": form.text("do") or "press", "step": int(step) if step.isdecimal() and len(step) < 4 else None}
