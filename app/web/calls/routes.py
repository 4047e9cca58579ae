"""Routes of calls: the list, one call, starting, cancelling and repeating one. No route waits for the server."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import Conflict
from app.sessions import Workspace
from app.web.calls.card import call_alone_json, call_page, calls_json, calls_page
from app.web.calls.live import ALONE, LINES
from app.web.kit import request_bodies
from app.web.kit.lookup import call_of
from app.web.kit.request_bodies import waiting_seconds
from app.web.kit.responses import by_htmx, done, show, started, wants_json
from app.web.kit.starting import is_off, reconnected
from app.web.lists.item import LOOK_SECONDS
from app.web.live.page import page


@page("calls", LINES)
async def calls(request: Request) -> Response:
    session: Workspace = request.state.session
    return await show(request, lambda: calls_page(session), lambda: calls_json(session))


@page("call", ALONE)
async def call(request: Request) -> Response:
    session, found = call_of(request)
    if seconds := waiting_seconds(request):
        await session.wait_call(found, seconds)
    full = "full" in request.query_params
    return await show(request, lambda: call_page(session, found, full=full), lambda: call_alone_json(session, found))


async def start(request: Request) -> Response:
    """Send a request of any method. Answers with the call's id, not with its result."""
    session: Workspace = request.state.session
    body = await request_bodies.read(request)
    wanted = body.read(request_bodies.CallBody, request_bodies.call_of_form)
    if wanted.as_task and session.info.state == "ready":
        await session.lists.known("tools", LOOK_SECONDS)  # which says whether the tool may be one
    call = session.start_call(
        wanted.method,
        wanted.params,
        timeout_ms=wanted.timeout_ms,
        notification=wanted.notification,
        quiet=wanted.quiet,
        as_task=wanted.as_task,
        ttl=wanted.ttl,
        force=wanted.force,
        by=request.state.identity,
    )
    return await started(request, session, call)


async def cancel(request: Request) -> Response:
    """Stop a running call; the server is told."""
    await request_bodies.nothing(request)
    session, call = call_of(request)
    session.cancel_call(call.id)
    return await done(request, f"{session.base}/calls/{call.id}", lambda: call_alone_json(session, call))


async def retry(request: Request) -> Response:
    """Send the same request once more, as a call of its own: what error -32042 asks for after its links (R4-48). On a
    page a connection that is gone is made again first."""
    await request_bodies.nothing(request)
    session, before = call_of(request)
    if not before.settled:
        raise Conflict("This call is still running. Wait for it, or cancel it first.")
    if not wants_json(request) and is_off(session) and not await reconnected(request, session):
        if by_htmx(request):
            return Response(status_code=204, headers={"parley-not-sent": "1"})  # the banner of the page says why
        trouble = session.info.trouble
        raise Conflict(f"Not sent: {'the connection was closed.' if trouble is None else trouble.message}")
    call = session.start_call(before.method, before.params, notification=before.notification, by=request.state.identity)
    call.retry_of = before.id
    return await started(request, session, call, retry_of=before.id)
