"""What this process was started with; read-only, without secrets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.settings import Settings
from app.web.kit.responses import show
from app.web.kit.templates import Context


@dataclass(slots=True)
class About(Context):
    """What this process was started with; read-only."""

    template: ClassVar[str] = "session/about.html"

    settings: dict[str, Any]
    limits: dict[str, Any]


def about_json(settings: Settings) -> dict[str, dict[str, Any]]:
    """The settings, without secrets."""
    plain = settings.model_dump(mode="json", exclude={"token", "limits"})
    plain["script_access"] = settings.token is not None
    return {"settings": plain, "limits": settings.limits.model_dump(mode="json")}


async def about(request: Request) -> Response:
    settings: Settings = request.app.state.settings
    return await show(request, lambda: About(**about_json(settings)), lambda: about_json(settings))
