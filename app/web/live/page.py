"""A page: how it is answered, and what of it is live. Declared once, beside what draws it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.sessions import Workspace
from app.web.live.parts import Live
from app.web.live.tab import Shown

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(slots=True, frozen=True, eq=False)
class Page:
    """What a GET shows, and what of it lives.

    `name` is what its tabs call it when they ask for their stream; `live` is what they then hear of besides what every
    page has; `numbers` are figures in the page, by element id."""

    name: str
    handler: Handler
    live: tuple[Live, ...] = ()
    numbers: Callable[[Workspace], Mapping[str, str]] = lambda _: {}
    notice: bool = True
    """Whether it says above all when there is no connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request: a `Page` is an application of its own, which a route leads to."""
        response = await self.handler(Request(scope, receive, send))
        await response(scope, receive, send)


def page(
    name: str,
    *live: Live,
    numbers: Callable[[Workspace], Mapping[str, str]] = lambda _: {},
    notice: bool = True,
) -> Callable[[Handler], Page]:
    """Make a page of a handler: `@page("roots", Part("#roots", {"roots.changed"}, draw))`."""
    return lambda handler: Page(name, handler, live, numbers, notice)


class Pages:
    """Every page by its name, and what surrounds them all."""

    def __init__(self, pages: Iterable[Page], around: Shown, notice: Live, kept: Shown) -> None:
        """`around` surrounds the pages of a session, `kept` those of a recording."""
        known = list(pages)
        self._around, self._kept = around, kept
        self._shown = {page.name: _shown(page, around, notice) for page in known}
        self._shown_kept = {page.name: _shown(replace(page, notice=False), kept, notice) for page in known}

    def __iter__(self) -> Iterator[str]:
        return iter(self._shown)

    def shown(self, name: str, *, kept: bool = False) -> Shown:
        """What a tab of this page shows that can change; of a page that nobody knows, what surrounds it."""
        return self._shown_kept.get(name, self._kept) if kept else self._shown.get(name, self._around)


def _shown(page: Page, around: Shown, notice: Live) -> Shown:
    def numbers(session: Workspace) -> dict[str, str]:
        return {**around.numbers(session), **page.numbers(session)}

    live = (*around.live, *([notice] if page.notice else []), *page.live)
    return replace(around, live=live, numbers=numbers)
