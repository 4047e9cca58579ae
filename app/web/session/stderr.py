"""What the server wrote to its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.targets import HttpTarget
from app.core.times import wire_time
from app.core.wire import StderrLine
from app.sessions import Workspace
from app.web.kit.frame import Shell, shell
from app.web.kit.responses import show
from app.web.kit.templates import Context

# ---------------------------------------------------------------------------------------------------- stderr, roots


@dataclass(slots=True)
class Stderr(Context):
    """What the server wrote to its standard error."""

    template: ClassVar[str] = "session/stderr.html"

    shell: Shell
    lines: list[StderrLine]
    count: int
    by_probe: int
    """How many of them complain of our probe."""
    has_process: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "lines": [
                {"number": one.number, "time": wire_time(one.at), "text": one.text, "by_probe": one.by_probe}
                for one in self.lines
            ],
            "count": self.count,
            "by_probe": self.by_probe,
        }


def stderr_page(session: Workspace) -> Stderr:
    """The lines still kept."""
    return Stderr(
        shell=shell(session, "stderr", "Stderr"),
        lines=session.stderr.lines(),
        count=session.stderr.count,
        by_probe=session.stderr.by_probe,
        has_process=not isinstance(session.target, HttpTarget),
    )


async def stderr(request: Request) -> Response:
    return await show(request, stderr_page(request.state.session))
