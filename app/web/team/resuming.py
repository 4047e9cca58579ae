"""A session that was opened in the place of a lost one: what of that goes on here, when somebody says so.

Each call goes on once, whichever session, tab or replica it is taken up in: the store decides who has it. Until it is
certain that the process is gone which held it, nobody has.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import Conflict, Gone, ParleyError, Unavailable
from app.core.targets import AnyTarget
from app.core.times import wire_time
from app.sessions import Workspace
from app.store import without_secrets
from app.store.replicas import HeldSession, Replicas
from app.web.kit import format, request_bodies
from app.web.kit.html import Html
from app.web.kit.responses import done, in_json, started
from app.web.kit.templates import fragment
from app.web.live.parts import Part, View
from app.web.team.house import House
from app.web.team.unfinished import opened


def _drawn(view: View) -> Html:
    return fragment("team/_unfinished.html", session=view.session)


STRIP = Part("#unfinished", ["unfinished.changed", "connection.changed"], _drawn)
"""Below the header of every page of a session."""


async def owned(replicas: Replicas, owner: str, sid: str) -> HeldSession | None:
    """A lost session of this person."""
    held = await replicas.find(sid) if sid else None
    return held if held is not None and held.owner == owner and not replicas.is_mine(held) else None


async def in_place_of(house: House, replicas: Replicas, held: HeldSession | None, session: Workspace) -> None:
    """A session was opened in the place of a lost one; when it leads to the same server, calls may go on in it."""
    if held is None or session.target is None or not _same(held, session.target):
        return
    found = opened(house.sealed, held)
    session.leftovers.put(held.id, held.replica, found.offers, found.lost, found.more)
    await replicas.reopened(held.id)


def _same(held: HeldSession, target: AnyTarget) -> bool:
    aim = held.aim()
    return aim is not None and without_secrets(target)[0] == aim[0]


def leftovers_json(session: Workspace) -> dict[str, Any]:
    """`GET /s/{sid}/unfinished`: what may go on here, and what is lost."""
    left = session.leftovers
    return {
        "before": left.before or None,
        "replica": left.replica or None,
        "offers": [
            {
                "id": one.id,
                "kind": one.kind,
                "method": one.method,
                "subject": one.subject,
                "called_at": wire_time(one.began),
                "round": one.round or None,
                "task_id": None if one.task is None else one.task.get("taskId"),
                "asked": [format.gist(words) for words in one.asked],
                "can": not one.secret,
            }
            for one in left.offers.values()
        ],
        "lost": [{"message": words, "method": method} for words, method in left.lost],
        "too_large": left.more,
    }


async def unfinished(request: Request) -> Response:
    """What the session before this one had not finished."""
    return await in_json(lambda: leftovers_json(request.state.session))


async def go_on(request: Request) -> Response:
    """Go on with one call, as a call of this session."""
    await request_bodies.nothing(request)
    session: Workspace = request.state.session
    key, before = request.path_params["offer"], session.leftovers.before
    session.leftovers.check(key)
    replicas: Replicas = request.app.state.keeper.replicas
    taken = await replicas.take(before, key)
    if taken is None:
        raise Unavailable("It cannot be looked up whether this call goes on elsewhere. Try again in a while.")
    how, held = taken
    match how:
        case "alive":
            where = session.leftovers.replica
            raise Conflict(f"{where} may still hold this call: try again in some seconds, then it is certain.")
        case "again" | "gone":
            session.leftovers.leave(key)
            raise Gone("This call goes on in another session already, or was left there.")
    # Nothing is awaited from here on: a second press must not find it taken before it goes on.
    found = [] if held is None else opened(request.app.state.house.sealed, held).offers
    if not session.leftovers.stands(key, found):
        raise Gone("This call came to its end before its session was lost.")
    try:
        call = session.leftovers.go_on(key, request.state.identity)
    except ParleyError:  # too many calls, or the connection went a moment ago: nothing was sent
        await replicas.take(before, key, back=True)
        raise
    return await started(request, session, call)


async def leave(request: Request) -> Response:
    """Let go of one call; the server is told nothing."""
    await request_bodies.nothing(request)
    session: Workspace = request.state.session
    session.leftovers.leave(request.path_params["offer"])
    return await done(request, session.base, lambda: leftovers_json(session))


async def seen(request: Request) -> Response:
    """Somebody has read what is lost: let go of all of it."""
    await request_bodies.nothing(request)
    session: Workspace = request.state.session
    session.leftovers.leave()
    return await done(request, session.base, lambda: leftovers_json(session))
