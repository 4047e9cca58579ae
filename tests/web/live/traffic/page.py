from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from starlette.requests import Request

from app.web.door.guard import Access, GuardedRoute
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.templates import Context, also_from, fragment
from app.web.live.page import page
from app.web.live.parts import Part, View

also_from(Path(__file__).parent)


@dataclass(slots=True)
class Traffic(Context):
    template: ClassVar[str] = "traffic.html"
    shell: Shell
    count: int

    def as_json(self) -> dict[str, Any]:
        return {"count": self.count}


def _count(view: View) -> Html:
    return fragment("_traffic.html", count=view.session.messages.count)


@page("traffic", Part("#traffic", ["message.recorded"], _count))
async def traffic(request: Request) -> Traffic:
    session = request.state.session
    return Traffic(shell(session, "traffic", "Traffic"), session.messages.count)


ROUTE = GuardedRoute("/s/{sid}/traffic", traffic, access=Access.SESSION, method="GET")
