"""What the server wrote to its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.times import wire_time
from app.sessions import Workspace
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.responses import show
from app.web.kit.templates import Context, fragment
from app.web.live.page import page
from app.web.live.parts import Lines, Part, View

_ON = ("stderr.written",)


@dataclass(slots=True)
class Stderr(Context):
    """What the server wrote to its standard error."""

    template: ClassVar[str] = "session/stderr.html"

    shell: Shell


def stderr_json(session: Workspace) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "lines": [
            {
                "number": one.number,
                "time": wire_time(one.at),
                "text": one.text,
                "by_probe": one.by_probe,
                "earlier_start": one.earlier,
            }
            for one in session.stderr.lines()
        ],
        "count": session.stderr.count,
        "by_probe": session.stderr.by_probe,
        "earlier_start": session.stderr.earlier,
    }


def _lines(view: View, had: int | None) -> Html:
    fresh = [one for one in view.session.stderr.lines() if one.counts and (had is None or one.number > had)]
    return fragment("session/_stderr_lines.html", lines=fresh)


@page(
    "stderr",
    # Lines that turned out to be of another kind than they were drawn as are drawn anew, with all others.
    Lines("#stderr", _ON, lambda view: (view.session.stderr.count, view.session.stderr.redrawn), _lines),
    Part(
        "#stderr-probe",
        _ON,
        lambda view: fragment("session/_stderr_probe.html", session=view.session),
        version=lambda view: (view.session.stderr.by_probe, view.session.stderr.earlier),
    ),
)
async def stderr(request: Request) -> Response:
    session: Workspace = request.state.session
    return await show(request, lambda: Stderr(shell(session, "stderr", "Stderr")), lambda: stderr_json(session))
