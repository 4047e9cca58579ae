"""What this process was started with; read-only, without secrets. And the way out: who is logged in; sign out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.strict import Closed
from app.remembered import Remembered
from app.settings import Settings
from app.web.door.denied import Denied
from app.web.door.visitors import Visitors
from app.web.kit import request_bodies
from app.web.kit.responses import go, show
from app.web.kit.templates import Context


@dataclass(slots=True)
class About(Context):
    """What this process was started with; read-only."""

    template: ClassVar[str] = "session/about.html"

    settings: dict[str, Any]
    limits: dict[str, Any]
    login: dict[str, Any]


class LogoutBody(Closed):
    everywhere: bool = False
    """Every browser, not only the one that asks."""


def about_json(settings: Settings, remembered: Remembered) -> dict[str, dict[str, Any]]:
    """The settings, without secrets."""
    plain = settings.model_dump(mode="json", exclude={"token", "limits"})
    plain["script_access"] = settings.token is not None
    login = {"browsers": remembered.browsers, "lasts": remembered.lasts, "trouble": remembered.trouble or None}
    return {"settings": plain, "limits": settings.limits.model_dump(mode="json"), "login": login}


async def about(request: Request) -> Response:
    settings: Settings = request.app.state.settings
    remembered: Remembered = request.app.state.visitors.remembered
    return await show(
        request, lambda: About(**about_json(settings, remembered)), lambda: about_json(settings, remembered)
    )


async def logout(request: Request) -> Response:
    """Forget this browser, or every one. Sessions go on; their pages are closed to whoever is out."""
    visitors: Visitors = request.app.state.visitors
    body = await request_bodies.read(request)
    wanted = body.read(LogoutBody, lambda form: {"everywhere": bool(form.text("everywhere"))})
    async with visitors.remembered.alone():
        count = visitors.sign_out(request.headers, everywhere=wanted.everywhere)
    request.app.state.streams.sign_out(visitors.gone())
    cleared = visitors.cleared(visitors.root)
    if trouble := visitors.remembered.trouble:
        words = f"You are signed out until Parley ends, but that could not be written: {trouble}"
        raise Denied(507, "not-saved", words, headers={"set-cookie": cleared})
    response = await go(request, "/", lambda: {"signed_out": count})
    if request.state.browser is not None:
        response.headers.append("set-cookie", cleared)
    return response
