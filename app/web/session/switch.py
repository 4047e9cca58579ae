"""One's other sessions, to go to from the header of any page."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from app.sessions import Identity, SessionRegistry, Workspace
from app.web.kit.responses import in_html, in_json, wants_json
from app.web.kit.templates import fragment


async def sessions(request: Request) -> Response:
    """My sessions, those that wait for me first: a menu, or for a script the same as JSON."""
    registry: SessionRegistry = request.app.state.registry
    identity: Identity = request.state.identity
    mine = sorted(registry.of(identity), key=lambda one: (one.open_asks == 0, -one.number))
    if wants_json(request):
        return await in_json(lambda: {"sessions": [_brief(one) for one in mine]})
    here = request.query_params.get("here", "")
    # A first connection that failed is where its form is, and in no list.
    mine = [one for one in mine if not one.never_connected or one.id == here]
    return in_html(fragment("session/_switch.html", sessions=mine, here=here))


def _brief(session: Workspace) -> dict[str, Any]:
    return {
        "id": session.id,
        "url": session.base,
        "label": session.label,
        "state": session.info.state,
        "open_asks": session.open_asks,
    }
