"""What happens to a server that runs when its person may not use it any more: it ends, and their session says why."""

from __future__ import annotations

from starlette.requests import Request

from app.core.errors import Trouble
from app.sessions import Session
from app.web.team.house import role_of_owner
from app.web.team.pages import house_of

_TAKEN = Trouble(
    "withdrawn",
    "An admin has taken this server out of the catalogue, or it is no longer for you.",
    "What was said stays here to be read. Pick another server, or ask an admin.",
)


async def end_withdrawn(request: Request) -> int:
    """End every connection to a server that its person may not use any more; how many there were."""
    house, ended = house_of(request), 0
    listed = house.catalogue()
    for session in request.app.state.registry.everybodys():
        if not isinstance(session, Session) or session.info.state not in ("connecting", "ready"):
            continue
        if session.target is not None and listed.withdrawn(role_of_owner(house, session.owner), session.target):
            await session.disconnect(_TAKEN)
            ended += 1
    return ended
