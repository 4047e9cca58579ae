"""Routes of a list, whatever it holds: its page, and reading it again: all pages of it, one, or the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import Conflict
from app.core.strict import Closed
from app.sessions import Workspace
from app.sessions.lists import LISTS
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.responses import done, show, wants_json
from app.web.kit.templates import Context
from app.web.lists.item import LOOK_SECONDS, Item
from app.web.lists.view import ListView, Window, list_json
from app.web.live.page import Page
from app.web.live.parts import Each, View, refetch


@dataclass(slots=True)
class ListPage(Context):
    """Everything of a kind that the server listed."""

    template: ClassVar[str] = "lists/page.html"
    part: ClassVar[str | None] = "lists/_list.html"

    shell: Shell
    view: ListView


class ListBody(Closed):
    """How a list is to be read from now on; None leaves that as it is."""

    pages: Literal["all", "one"] | None = None


def _of_form(form: request_bodies.Body) -> dict[str, Any]:
    return {"pages": form.text("pages")} if form.text("pages") else {}


class ListRoutes:
    """The addresses of one list. Beside the events of every list, `on` names what else touches its page."""

    def __init__(self, of: type[Item], *on: str) -> None:
        self._of, self._name = of, of.list_name

        def draw(view: View, *_: object) -> Html:
            # The tab fetches it, for only the tab knows what is searched in it.
            return refetch(f"{view.base}/{of.path}", f"#{of.list_name}", "#list-q, #list-page, #list-sort")

        live = Each(("listing.changed", "connection.changed", *on), lambda *_: "", draw, draw)
        self.page = Page(of.list_name, self.show, (live,))

    async def show(self, request: Request) -> Response:
        """The list. A script wants all of it; a page may show that it is on its way."""
        session: Workspace = request.state.session
        if self._of.read_on_sight:
            seconds = session.options.request_timeout_ms / 1000 if wants_json(request) else LOOK_SECONDS
            await session.lists.known(self._name, seconds)
        window = Window.of(request.query_params)
        return await show(
            request,
            lambda: ListPage(shell(session, self._name, self._of.heading), ListView(session, self._of, window)),
            lambda: list_json(session, self._of),
        )

    async def refresh(self, request: Request) -> Response:
        """Ask the server for the list once more."""
        session: Workspace = request.state.session
        wanted = (await request_bodies.read(request)).read(ListBody, _of_form)
        if wanted.pages is not None:
            await session.lists.settled(self._name)  # what is being read was asked for otherwise
            (session.lists.by_page.add if wanted.pages == "one" else session.lists.by_page.discard)(self._name)
        if session.info.state == "ready" and not session.lists.offered(self._name):
            capability = LISTS[self._name].capability
            raise Conflict(f"The server did not declare `{capability}`, so Parley does not ask for a list.")
        await session.lists.refresh(self._name)
        return await self._done(request, session)

    async def more(self, request: Request) -> Response:
        """Ask the server for the next page of the list."""
        session: Workspace = request.state.session
        await request_bodies.nothing(request)
        session.lists.more(self._name)
        await session.lists.settled(self._name)
        return await self._done(request, session)

    async def _done(self, request: Request, session: Workspace) -> Response:
        return await done(request, f"{session.base}/{self._of.path}", lambda: list_json(session, self._of))
