"""The directories that the server may know about: the page, and the form that replaces them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.options import Root
from app.sessions import Workspace
from app.web.door.denied import invalid
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.lookup import client
from app.web.kit.request_bodies import FormErrors
from app.web.kit.responses import go, show, show_page, wants_json
from app.web.kit.templates import Context, fragment
from app.web.kit.words import list_of
from app.web.live.page import page
from app.web.live.parts import Part


@dataclass(slots=True)
class Roots(Context):
    """The directories the server may know about, and a form to change them."""

    template: ClassVar[str] = "session/roots.html"
    part: ClassVar[str | None] = "session/_roots.html"

    shell: Shell
    roots: list[Root]
    rows: list[tuple[str, str]]
    errors: dict[str, str]


def roots_page(
    session: Workspace, *, values: dict[str, Any] | None = None, errors: dict[str, list[str]] | None = None
) -> Roots:
    """The roots of a session, with what was typed when it could not be taken."""
    rows = [(root.uri, root.name or "") for root in session.roots]
    if values is not None:
        uris, names = list_of(values, "root_uri"), list_of(values, "root_name")
        rows = [(uri, names[index] if index < len(names) else "") for index, uri in enumerate(uris)]
    return Roots(
        shell=shell(session, "roots", "Roots"),
        roots=session.roots,
        rows=rows,
        errors={pointer: " ".join(texts) for pointer, texts in (errors or {}).items()},
    )


def roots_json(session: Workspace) -> dict[str, Any]:
    """The list as it is sent."""
    return {"roots": [root.wire() for root in session.roots]}


@page(
    "roots",
    Part("#roots", ["roots.changed"], lambda view: fragment("session/_roots.html", roots=view.session.roots)),
)
async def roots(request: Request) -> Response:
    session: Workspace = request.state.session
    return await show(request, lambda: roots_page(session), lambda: roots_json(session))


async def change(request: Request) -> Response:
    """Replace the list of roots, and tell the server."""
    session = client(request)
    body = await request_bodies.read(request)
    most = request.app.state.settings.limits.roots
    try:
        wanted = body.read(request_bodies.RootsBody, request_bodies.roots_of_form).roots
    except FormErrors as fault:
        if wants_json(request):
            raise
        return await show_page(request, roots_page(session, values=body.data, errors=fault.fields), 422)
    if len(wanted) > most:
        raise invalid({"/roots": [f"At most {most} roots."]})
    await session.set_roots(wanted)
    return await go(request, f"{session.base}/roots", lambda: roots_json(session))
