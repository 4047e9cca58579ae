"""Routes of the two-era comparison: begin one, and look at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.web import views
from app.web.calls.compare import CompareView, compare_json, compare_view
from app.web.kit import request_bodies as bodies
from app.web.kit.errors import unknown, wants_json
from app.web.kit.lookup import call_of
from app.web.kit.responses import in_json_apart, show
from app.web.views import Context, Shell


@dataclass(slots=True)
class ComparePage(Context):
    """Two conversations side by side."""

    template: ClassVar[str] = "calls/compare.html"
    part: ClassVar[str | None] = "calls/_compare.html"
    shell: Shell
    compare: CompareView
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


async def begin(request: Request) -> Response:
    """Open the other session, and run the call there."""
    session, call = call_of(request)
    (await bodies.read(request)).read(bodies.Nothing, lambda _: {})
    session.comparisons.begin(call, request.state.identity)
    url = f"/s/{session.id}/calls/{call.id}/compare"
    if wants_json(request):
        return await in_json_apart(await compare_json(session, call), 202, {"location": url})
    return RedirectResponse(url, 303)


async def comparison(request: Request) -> Response:
    session, call = call_of(request)
    view = await compare_view(session, call)
    if view is None:
        raise unknown("This call was not compared yet. Its page has a button for that.")
    shell = views.shell(session, "compare", f"{call.subject} in two eras", of=call.id)
    return await show(request, ComparePage(shell, view, await compare_json(session, call)))
