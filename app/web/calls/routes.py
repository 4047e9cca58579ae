"""Routes of calls: the list, one call, starting, cancelling and repeating one. No route waits for the server."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import Conflict
from app.sessions import Workspace
from app.web.calls.card import call_alone_json, call_page, calls_page
from app.web.kit import request_bodies
from app.web.kit.lookup import call_of
from app.web.kit.request_bodies import waiting_seconds
from app.web.kit.responses import done, in_json, in_json_apart, show, wants_json
from app.web.lists.keys import LOOK_SECONDS


async def calls(request: Request) -> Response:
    return await show(request, calls_page(request.state.session))


async def call(request: Request) -> Response:
    session, found = call_of(request)
    if seconds := waiting_seconds(request):
        await session.wait_call(found, seconds)
    if wants_json(request):
        return await in_json_apart(await call_alone_json(session, found))
    return await show(request, await call_page(session, found, full="full" in request.query_params))


# ------------------------------------------------------------------------------------------------------------ calls


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
    url = f"/s/{session.id}/calls/{call.id}"
    if wants_json(request):
        return in_json({"id": call.id, "url": url, "state": call.state}, 202, {"location": url})
    return done(request, url)


async def cancel(request: Request) -> Response:
    """Stop a running call; the server is told."""
    await request_bodies.nothing(request)
    session, call = call_of(request)
    session.cancel_call(call.id)
    if wants_json(request):
        return await in_json_apart(await call_alone_json(session, call))
    return done(request, f"/s/{session.id}/calls/{call.id}")


async def retry(request: Request) -> Response:
    """Send the same request once more, as a call of its own: what error -32042 asks for after its links (R4-48)."""
    await request_bodies.nothing(request)
    session, before = call_of(request)
    if not before.settled:
        raise Conflict("This call is still running. Wait for it, or cancel it first.")
    call = session.start_call(before.method, before.params, notification=before.notification, by=request.state.identity)
    call.retry_of = before.id
    url = f"/s/{session.id}/calls/{call.id}"
    if wants_json(request):
        return in_json({"id": call.id, "url": url, "state": call.state, "retry_of": before.id}, 202, {"location": url})
    return done(request, url)
