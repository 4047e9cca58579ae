"""GET: what there is, as a page or as JSON. Reads, never changes; the guard has already found the session."""

from __future__ import annotations

import math

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app.sessions import Workspace
from app.web import views
from app.web.kit.errors import invalid, unknown, wants_json
from app.web.kit.lookup import call_of
from app.web.kit.responses import in_json_apart, show
from app.web.lists.view import Window
from app.web.live import stream
from app.web.log import view as log_views


async def home(request: Request) -> Response:
    state = request.app.state
    await state.registry.store.loaded()
    target = request.query_params.get("target", "")
    return await show(request, views.home(state.registry, request.state.identity, state.settings, target=target))


async def about(request: Request) -> Response:
    return await show(request, views.about(request.app.state.settings))


async def overview(request: Request) -> Response:
    session: Workspace = request.state.session
    if seconds := waiting_seconds(request):
        await session.wait_connection(seconds)
    return await show(request, views.overview(session))


async def connect_form(request: Request) -> Response:
    values = {"like": target} if (target := request.query_params.get("target")) else None
    form = views.connect_form(request.state.session, request.app.state.registry, request.state.identity, values=values)
    return await show(request, form)


async def roots(request: Request) -> Response:
    return await show(request, views.roots(request.state.session))


async def tools(request: Request) -> Response:
    return await show(request, views.tools(request.state.session, Window.of(request.query_params)))


async def calls(request: Request) -> Response:
    return await show(request, views.calls(request.state.session))


async def call(request: Request) -> Response:
    session, found = call_of(request)
    if seconds := waiting_seconds(request):
        await session.wait_call(found, seconds)
    if wants_json(request):
        return await in_json_apart(await views.call_alone_json(session, found))
    return await show(request, await views.call(session, found, full="full" in request.query_params))


async def log(request: Request) -> Response:
    session: Workspace = request.state.session
    after, before, limit = (_number(request, name) for name in ("after", "before", "limit"))
    wanted = log_views.LogFilter.of(request.query_params)
    matching = await log_views.search(session, wanted) if wanted else None
    asks_filter = matching is not None or before is None  # an empty filter is one too: it shows everything again
    if asks_filter and "hx-request" in request.headers and not wants_json(request):
        part = log_views.found(session, wanted, matching or [], after=after, before=before)
        return await show(request, log_views.LogMatchesPart(f"/s/{session.id}", part))
    page = views.log(session, after=after, before=before, limit=limit, wanted=wanted, matching=matching)
    return await show(request, page)


async def export(request: Request) -> Response:
    """The log as JSON lines, one message each."""
    session: Workspace = request.state.session
    name = f"parley-log-{session.number}.jsonl"
    return StreamingResponse(
        log_views.export(session, log_views.LogFilter.of(request.query_params)),
        media_type="application/x-ndjson",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


async def message(request: Request) -> Response:
    seq = request.path_params["seq"]
    found = await views.message(request.state.session, int(seq)) if seq.isdecimal() and len(seq) < 16 else None
    if found is None:
        raise unknown("There is no such message. The oldest ones leave the log first.")
    return await show(request, found)


async def stderr(request: Request) -> Response:
    return await show(request, views.stderr(request.state.session))


async def events(request: Request) -> Response:
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    return await stream.events(request, request.state.session)


# ------------------------------------------------------------------------------------------------------------ query


def waiting_seconds(request: Request) -> float:
    """How long the asker lets us wait, within the limit; 0 when not said."""
    text = request.query_params.get("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise invalid({"/wait": ["A number of seconds, like 10."]})
    return min(seconds, float(request.app.state.settings.limits.wait_seconds))


def _number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise invalid({f"/{name}": ["A whole number, 0 or more."]})
    return int(text)
