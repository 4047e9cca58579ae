"""How a request is answered: what there is, what was done, what was started, and what went wrong.

Whoever asks gets one representation, and only that one is made (H12): a script JSON, htmx the part that stands for a
page, a browser the page. A deed is answered with JSON, with nothing (the stream brings what changed), or with a
redirect.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.core.calls import Call
from app.sessions import Workspace
from app.web.door.denied import Denied
from app.web.kit import html
from app.web.kit.errors import problem, signed_out, understood
from app.web.kit.json_text import json_bytes_apart
from app.web.kit.request_bodies import is_json
from app.web.kit.templates import Context, fragment, ready

log = logging.getLogger("parley.web")

Made = TypeVar("Made")
Maker = Callable[[], Made | Awaitable[Made]]
"""Makes a representation when it is the one that is asked for."""


# ------------------------------------------------------------------------------------------------------- who asks


def wants_json(request: Request) -> bool:
    """Whether the asker is a script: it says so, it sends JSON, or it came with a token and does not ask for HTML."""
    accept = request.headers.get("accept", "")
    if "application/json" in accept:
        return True
    if "text/html" in accept or by_htmx(request):
        return False
    return is_json(request) or request.headers.get("authorization", "")[:7].lower() == "bearer "


def by_htmx(request: Request) -> bool:
    """Whether a page asks for a part of itself."""
    return "hx-request" in request.headers


# ------------------------------------------------------------------------------------------------- what there is


async def show(request: Request, page: Context | Maker[Context], json: Maker[Any], status: int = 200) -> Response:
    """What there is, for whoever asks."""
    if wants_json(request):
        return await in_json(json, status)
    return await show_page(request, page, status)


async def show_page(
    request: Request,
    page: Context | Maker[Context],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A page, or for htmx the part that stands for it."""
    context = page if isinstance(page, Context) else await _made(page)
    template = (context.part if by_htmx(request) else None) or context.template
    await ready(template)
    text = fragment(template, **context.values())
    return in_html(text, status, {"Vary": "Accept, HX-Request", **(headers or {})})


def in_html(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Markup that is made already."""
    extra = {"Cache-Control": "no-store", **(headers or {})}
    return Response(html.page_bytes(text), status, extra, "text/html; charset=utf-8")


async def in_json(json: Maker[Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value for a script."""
    return Response(await json_bytes_apart(await _made(json)), status, headers, "application/json")


async def _made(maker: Maker[Made]) -> Made:
    made = maker()
    return await made if isawaitable(made) else made


# ------------------------------------------------------------------------------------------------- what was done


class Then(Protocol):
    """What a page does once its deed is done: `done`, `go` or `back`."""

    async def __call__(
        self,
        request: Request,
        url: str,
        json: Maker[Any],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response: ...


async def done(
    request: Request, url: str, json: Maker[Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """It is done. A page with a stream hears of it there; one without goes to where it can be seen."""
    if wants_json(request):
        return await in_json(json, status, headers)
    return Response(status_code=204) if by_htmx(request) else RedirectResponse(url, 303)


async def go(
    request: Request, url: str, json: Maker[Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """It is done, and every page goes on to another one."""
    if by_htmx(request) and not wants_json(request):
        return Response(headers={"hx-redirect": url})
    return await back(request, url, json, status, headers)


async def back(
    request: Request, url: str, json: Maker[Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """It is done, by a form that no script of the page submits."""
    if wants_json(request):
        return await in_json(json, status, headers)
    return RedirectResponse(url, 303)


async def started(
    request: Request, session: Workspace, call: Call, *, then: Then = done, url: str = "", **more: Any
) -> Response:
    """A call was started, and nobody waits for it. `url` is where a page goes instead of to the call."""
    own = f"{session.base}/calls/{call.id}"
    said = {"id": call.id, "url": own, "state": call.state, **more}
    return await then(request, url or own, lambda: said, 202, {"location": own})


# ----------------------------------------------------------------------------------------------- what went wrong


async def answer(request: Request, fault: Exception) -> Response:
    """What to say about a failure. Never a traceback, never a path of ours."""
    denied = understood(fault)
    if denied is None:
        log.error("%s %s broke", request.method, _route(request), exc_info=fault)
        denied = Denied(500, "broken", "Parley itself failed here. The terminal that runs it shows the reason.")
    if wants_json(request):
        error = {"kind": denied.kind, "message": denied.message, "fields": denied.fields, **denied.detail}
        return await in_json(lambda: {"error": error}, denied.status, denied.headers)
    if denied.status == 401:
        outside = request.scope.get("root_path", "") != request.app.state.visitors.root
        team = request.app.state.settings.mode != "local"
        way_in = getattr(request.app.state, "sign_in", ("", ""))
        login = signed_out(denied.message, outside=outside, team=team, way_in=way_in)
        return await show_page(request, login, 401, denied.headers)
    session = getattr(request.state, "session", None)
    here = session.base if session is not None else ""
    undo = denied.detail.get("reopen", "")
    page = problem(denied.status, denied.kind, denied.message, denied.fields, session=here, undo=undo)
    return await show_page(request, page, denied.status, denied.headers)


def _route(request: Request) -> str:
    """The pattern of the route, not the address: an address may hold ids that no log should."""
    return getattr(request.scope.get("route"), "path", "an unknown path")
