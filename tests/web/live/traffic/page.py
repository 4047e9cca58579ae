from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.web.door.guard import Access, GuardedRoute
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.responses import show
from app.web.kit.templates import Context, also_from, fragment
from app.web.live.page import page
from app.web.live.parts import Part, View

also_from(Path(__file__).parent)


@dataclass(slots=True)
class Traffic(Context):
    template: ClassVar[str] = "traffic.html"
    shell: Shell
    count: int


def _count(view: View) -> Html:
    return fragment("_traffic.html", count=view.session.messages.count)


@page("traffic", Part("#traffic", ["message.recorded"], _count))
async def traffic(request: Request) -> Response:
    session, count = request.state.session, request.state.session.messages.count
    return await show(request, lambda: Traffic(shell(session, "traffic", "Traffic"), count), lambda: {"count": count})


ROUTE = GuardedRoute("/s/{sid}/traffic", traffic, access=Access.SESSION, method="GET")
