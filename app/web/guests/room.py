"""What a presenter does with a room: open it, change its rules, decide, close it; and begin again from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app import bounds as sizes
from app import guest_bounds as bounds
from app.core.errors import Conflict
from app.core.strict import Closed
from app.sessions import Session, Workspace
from app.sessions.polls import RoomSettings
from app.web.asks.room import room_json
from app.web.kit import request_bodies
from app.web.kit.request_bodies import Body
from app.web.kit.responses import done, in_json, wants_json
from app.web.kit.starting import start

if TYPE_CHECKING:
    from app.sessions.room import Room

Deed = Literal["stop", "show", "hide", "skip", "vote", "model", "pick", "confirm", "decline"]


class RoomBody(RoomSettings):
    """What a presenter chooses."""

    seconds: float | None = Field(default=None, ge=3, le=bounds.ROOM_SECONDS)
    model: str | None = Field(default=None, max_length=sizes.MODEL_NAME)


class ActBody(Closed):
    """What a presenter does, and to which answer."""

    do: Deed
    ballot: str = Field(default="", max_length=20)


def _of(request: Request) -> Room:
    session: Workspace = request.state.session
    found = session.asks.audience.room
    if found is None:
        raise Conflict("There is no room. Open one first.")
    return found


async def _answered(request: Request, status: int = 200) -> Response:
    session: Workspace = request.state.session
    return await done(request, f"{session.base}/stage", lambda: room_json(session), status)


async def room(request: Request) -> Response:
    """How the room stands; a browser sees it on the stage."""
    session: Workspace = request.state.session
    if wants_json(request):
        return await in_json(lambda: room_json(session))
    return RedirectResponse(f"{session.base}/stage", 303)


async def let_answer(request: Request) -> Response:
    """Open a room, or give the one that is open other rules."""
    session: Workspace = request.state.session
    wanted = (await request_bodies.read(request)).read(RoomBody, _of_form)
    is_new = session.asks.audience.room is None
    request.app.state.registry.open_room(session, RoomSettings(**wanted.model_dump()))
    return await _answered(request, 201 if is_new else 200)


async def act(request: Request) -> Response:
    """Decide over the question that is before the room."""
    wanted = (await request_bodies.read(request)).read(ActBody, _act_of_form)
    found = _of(request)
    match wanted.do:
        case "stop":
            found.stop()
        case "show" | "hide":
            found.show(wanted.do == "show")
        case "skip":
            found.skip()
        case "vote":
            found.let_vote()
        case "model":
            await found.let_model_pick(found.asked())
        case "pick":
            found.change(found.settings.model_copy(update={"decide": "pick"}))
            found.show(True)
        case "confirm":
            await found.confirm(wanted.ballot)
        case "decline":
            await found.decline()
    return await _answered(request)


async def close(request: Request) -> Response:
    """Everybody goes home."""
    await request_bodies.nothing(request)
    _of(request).close()
    return await _answered(request)


async def reset(request: Request) -> Response:
    """Begin again: a session like this one with nothing in it, and the server as it was at the start. The one before
    is closed, with its room; for a moment that can be taken back."""
    await request_bodies.nothing(request)
    before: Workspace = request.state.session
    if not isinstance(before, Session) or before.target is None:
        raise Conflict("This session was never connected: there is nothing to begin again with.")
    registry, identity = request.app.state.registry, request.state.identity
    target, options = before.target, before.options
    await registry.close(before, undo=True)
    session = registry.open(identity)
    start(registry, session, target, options, identity)
    return await done(request, f"{session.base}/stage", lambda: {"id": session.id, "url": session.base}, 201)


def _of_form(form: Body) -> dict[str, Any]:
    seconds = form.text("seconds").strip()
    return {
        "seconds": float(seconds) if seconds.isdecimal() and len(seconds) < 6 else None,
        "decide": form.text("decide") or "majority",
        "by_itself": bool(form.text("by_itself")),
        "picked_by": form.text("picked_by") or "presenter",
        "model": form.text("model") or None,
        "names": bool(form.text("names")),
    }


def _act_of_form(form: Body) -> dict[str, Any]:
    return {"do": form.text("do"), "ballot": form.text("ballot")}
