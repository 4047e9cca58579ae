"""POST: read a list of the server again, all pages or one; or its next page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.core.errors import Conflict
from app.core.strict import Closed
from app.sessions import Workspace
from app.sessions.lists import LISTS, ListName
from app.web.kit import request_bodies
from app.web.kit.responses import in_json_apart, wants_json


class ListBody(Closed):
    """How a list is to be read from now on; None leaves that as it is."""

    pages: Literal["all", "one"] | None = None


def _of_form(form: request_bodies.Body) -> dict[str, Any]:
    return {"pages": form.text("pages")} if form.text("pages") else {}


async def _done(request: Request, session: Workspace, href: str, as_json: Callable[[Workspace], Any]) -> Response:
    if wants_json(request):
        return await in_json_apart(as_json(session))
    if "hx-request" in request.headers:
        return Response(status_code=204)
    return RedirectResponse(f"/s/{session.id}/{href}", 303)


async def read_again(request: Request, name: ListName, href: str, as_json: Callable[[Workspace], Any]) -> Response:
    """Ask the server for a list once more."""
    session: Workspace = request.state.session
    wanted = (await request_bodies.read(request)).read(ListBody, _of_form)
    if wanted.pages is not None:
        await session.lists.settled(name)  # what is being read was asked for otherwise
        (session.lists.by_page.add if wanted.pages == "one" else session.lists.by_page.discard)(name)
    if session.info.state == "ready" and not session.lists.offered(name):
        raise Conflict(f"The server did not declare `{LISTS[name].capability}`, so Parley does not ask for a list.")
    await session.lists.refresh(name)
    return await _done(request, session, href, as_json)


async def read_on(request: Request, name: ListName, href: str, as_json: Callable[[Workspace], Any]) -> Response:
    """Ask the server for the next page of a list."""
    session: Workspace = request.state.session
    (await request_bodies.read(request)).read(request_bodies.Nothing, lambda form: {})
    session.lists.more(name)
    await session.lists.settled(name)
    return await _done(request, session, href, as_json)
