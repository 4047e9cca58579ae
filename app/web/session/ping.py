"""Pings: one now, or one every so often, and how the last one went."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app import bounds
from app.core.strict import Closed
from app.core.times import wire_time
from app.sessions import Workspace
from app.web.kit import request_bodies
from app.web.kit.responses import done
from app.web.kit.templates import fragment
from app.web.live.parts import Part

PING = Part(
    "#ping",
    ("ping.settled", "connection.changed"),
    lambda view: fragment("session/_ping.html", session=view.session),
)
"""How the last ping went, wherever a page shows it."""


class PingBody(Closed):
    """`every_ms` makes pings leave by themselves, null stops that; without it one ping leaves now."""

    every_ms: int | None = Field(default=None, ge=bounds.PING_AT_LEAST_MS, le=bounds.PING_AT_MOST_MS)


def _of_form(form: request_bodies.Body) -> dict[str, Any]:
    return {"every_ms": form.text("every_ms") or None} if "every_ms" in form.data else {}


async def ping(request: Request) -> Response:
    """Ping the server, once or from now on."""
    session: Workspace = request.state.session
    wanted = (await request_bodies.read(request)).read(PingBody, _of_form)
    if "every_ms" in wanted.model_fields_set:
        session.pings.repeat(wanted.every_ms)
    else:
        await session.pings.ping(by=request.state.identity)
    return await done(request, session.base, lambda: ping_json(session))


def ping_json(session: Workspace) -> dict[str, Any]:
    """How the last ping went, and what comes."""
    last = session.pings.last
    return {
        "ms": None if last is None else last.ms,
        "error": (last.error or None) if last is not None else None,
        "at": None if last is None else wire_time(last.at),
        "sent": session.pings.sent,
        "failed": session.pings.failed,
        "every_ms": session.pings.every_ms,
    }
