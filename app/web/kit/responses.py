"""How a request is answered: a context as a page or as JSON, a failure as the page, part or JSON that explains it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from app.web import views
from app.web.kit.errors import Denied, understood, wants_json

log = logging.getLogger("parley.web")


def in_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value for a script."""
    return Response(views.json_bytes(value), status, headers, "application/json")


async def in_json_apart(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value for a script that may be large."""
    return Response(await views.json_bytes_apart(value), status, headers, "application/json")


async def show(
    request: Request, context: views.Context, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """What there is, for whoever asks."""
    if wants_json(request):
        return await in_json_apart(context.as_json(), status, headers)
    return await views.render(request, context, status, dict(headers or {}))


async def answer(request: Request, fault: Exception) -> Response:
    """What to say about a failure. Never a traceback, never a path of ours."""
    denied = understood(fault)
    if denied is None:
        log.error("%s %s broke", request.method, _route(request), exc_info=fault)
        denied = Denied(500, "broken", "Parley itself failed here. The terminal that runs it shows the reason.")
    if wants_json(request):
        error = {"kind": denied.kind, "message": denied.message, "fields": denied.fields, **denied.detail}
        return in_json({"error": error}, denied.status, denied.headers)
    session = getattr(request.state, "session", None)
    here = f"/s/{session.id}" if session is not None else ""
    context: views.Context = views.problem(denied.status, denied.kind, denied.message, denied.fields, session=here)
    if denied.status == 401:
        outside = request.scope.get("root_path", "") != request.app.state.visitors.root
        context = views.signed_out(denied.message, outside=outside)
    return await views.render(request, context, denied.status, denied.headers)


def _route(request: Request) -> str:
    """The pattern of the route, not the address: an address may hold ids that no log should."""
    return getattr(request.scope.get("route"), "path", "an unknown path")
