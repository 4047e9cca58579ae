"""What this process was started with; read-only, without secrets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.figures import grouped
from app.settings import Settings
from app.web.kit import format
from app.web.kit.responses import show
from app.web.kit.templates import Context

# ------------------------------------------------------------------------------------------- about, signed out, problem


@dataclass(slots=True)
class About(Context):
    """What this process was started with; read-only."""

    template: ClassVar[str] = "session/about.html"

    settings: list[tuple[str, str]]
    limits: list[tuple[str, str]]
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


def about_page(settings: Settings) -> About:
    """The settings, without secrets."""
    plain = settings.model_dump(mode="json", exclude={"token", "limits"})
    plain["script_access"] = settings.token is not None
    limits = settings.limits.model_dump(mode="json")
    return About(
        settings=[(key, format.gist(value, 200) if value is not None else "not set") for key, value in plain.items()],
        limits=[
            (key, f"{grouped(value)}" if isinstance(value, int) else f"{value:g}") for key, value in limits.items()
        ],
        json={"settings": plain, "limits": limits},
    )


async def about(request: Request) -> Response:
    return await show(request, about_page(request.app.state.settings))
