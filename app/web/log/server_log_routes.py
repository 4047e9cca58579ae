"""What the server logs: by level and logger, with stderr beside it; the level that is asked of it; and pings.

The page and its stream show the newest lines that fit the filter. Every message is in the log of the session too, byte
for byte, and each line here leads to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app import bounds
from app.core.strict import Closed
from app.core.times import wire_time
from app.sessions import Workspace
from app.sessions.server_log import LEVELS
from app.web.kit import request_bodies as bodies
from app.web.kit.errors import wants_json
from app.web.kit.frame import Context, Shell, shell
from app.web.kit.responses import in_json, show
from app.web.log.server_log import LoggingView, PingView, Wanted, logging_view, ping_view


@dataclass(slots=True)
class Logging(Context):
    """The log of the server."""

    template: ClassVar[str] = "log/server_log.html"
    part: ClassVar[str | None] = "log/_server_log.html"

    shell: Shell
    log: LoggingView
    loggers: list[str]
    levels: tuple[str, ...]
    asked: str
    can_ask: bool
    modern: bool
    ping: PingView
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


async def logging(request: Request) -> Response:
    """The log of the server, as the query wants it."""
    session: Workspace = request.state.session
    wanted = Wanted.of(request.query_params)
    view = logging_view(session, wanted)
    lines = [line for line in session.server_log.lines() if wanted.fits(line)] if wants_json(request) else []
    return await show(
        request,
        Logging(
            shell=shell(session, "logging", "Logging", of=wanted.query),
            log=view,
            loggers=sorted(session.server_log.loggers),
            levels=LEVELS,
            asked=session.options.log_level or "",
            can_ask=session.info.state == "ready" and session.info.offers("logging"),
            modern=not session.wire.sets_log_level,
            ping=ping_view(session),
            json={
                "messages": [
                    {
                        "number": one.number,
                        "seq": one.seq,
                        "time": wire_time(one.at),
                        "level": one.level,
                        "logger": one.logger or None,
                        "text": one.text,
                    }
                    for one in lines
                ],
                "count": view.count,
                "loggers": session.server_log.loggers,
                "level": session.options.log_level,
            },
        ),
    )


class PingBody(Closed):
    """`every_ms` makes pings leave by themselves, null stops that; without it one ping leaves now."""

    every_ms: int | None = Field(default=None, ge=bounds.PING_AT_LEAST_MS, le=bounds.PING_AT_MOST_MS)


def _of_form(form: bodies.Body) -> dict[str, Any]:
    return {"every_ms": form.text("every_ms") or None} if "every_ms" in form.data else {}


async def ping(request: Request) -> Response:
    """Ping the server, once or from now on."""
    session: Workspace = request.state.session
    wanted = (await bodies.read(request)).read(PingBody, _of_form)
    if "every_ms" in wanted.model_fields_set:
        session.pings.repeat(wanted.every_ms)
    else:
        await session.pings.ping(by=request.state.identity)
    if wants_json(request):
        last = session.pings.last
        return in_json(
            {
                "ms": None if last is None else last.ms,
                "error": (last.error or None) if last is not None else None,
                "at": None if last is None else wire_time(last.at),
                "sent": session.pings.sent,
                "failed": session.pings.failed,
                "every_ms": session.pings.every_ms,
            }
        )
    if "hx-request" in request.headers:
        return Response(status_code=204)
    return RedirectResponse(f"/s/{session.id}/logging", 303)
