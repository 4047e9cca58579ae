"""The application of a public demo: the pages of a session behind a door that is open to everybody, and few of them.

What can be reached is listed here, not what cannot: a route that somebody adds elsewhere is not public by that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app import guest_bounds as bounds
from app.core.errors import Full, NotAllowed
from app.core.options import Options
from app.core.targets import DemoTarget
from app.sessions.tour import STEPS, Step, Tour
from app.sessions.visiting import PublicRegistry
from app.settings import Settings
from app.web.app import Door, create_app
from app.web.door import public
from app.web.door.addresses import FromAddress, Network, address_of
from app.web.door.denied import Denied
from app.web.door.guard import Access, GuardedRoute, host_name, loopback_names
from app.web.kit import request_bodies
from app.web.kit.responses import show_page
from app.web.kit.templates import Context
from app.web.visiting.door import PublicVisitors

_SHOWN = """
    tour stage tools tools/{name:path} resources resources/one resources/templates resources/templates/{name:path}
    prompts prompts/{name:path} calls calls/{cid} calls/{cid}/snippet calls/{cid}/shown calls/{cid}/branch
    calls/{cid}/table calls/{cid}/search calls/{cid}/markdown calls/{cid}/result blobs/{sha} frames/{sha} inbox
    asks/{aid} tasks tasks/{tid} subscriptions timeline log log/{seq} logging roots stderr palette counts events
"""
"""What of a session a visitor may look at, below its address, which they may too."""
_DONE = """
    tour close ping complete tools/refresh tools/more tools/form/{name:path} tools/check/{name:path}
    tools/call/{name:path} resources/refresh resources/more resources/read resources/subscribe
    resources/templates/refresh resources/templates/more resources/templates/expand/{name:path}
    resources/templates/read/{name:path} prompts/refresh prompts/more prompts/get/{name:path} calls calls/{cid}/cancel
    calls/{cid}/retry inbox/clear asks/{aid}/answer asks/{aid}/reopen asks/{aid}/form asks/{aid}/request
    asks/{aid}/uses asks/{aid}/touch tasks/refresh tasks/{tid}/poll tasks/{tid}/result tasks/{tid}/stop
    tasks/{tid}/cancel subscriptions subscriptions/{lid}/stop subscriptions/{lid}/again
"""
"""What they may do in it."""
_PUBLIC = frozenset(("/healthz", "/static/{path:path}", "/favicon.ico"))


@dataclass(slots=True)
class Welcome(Context):
    """The first page: what a visit is, and the steps of the tour."""

    template: ClassVar[str] = "visiting/home.html"
    steps: tuple[Step, ...]
    minutes: int
    calls: int


def create_public_app(settings: Settings, proxies: tuple[Network, ...] = ()) -> Starlette:
    """The application. The one demo server is started and ended with it. `proxies` may say for whom they ask."""
    visitors = PublicVisitors(settings)
    registry = PublicRegistry(settings)
    host = host_name(urlsplit(settings.public_url or "").netloc)
    names = [*loopback_names(settings.host), *([host] if host else [])]
    before = (Middleware(FromAddress, proxies=proxies),)
    door = Door(visitors, names, public_routes(), "its own names", settings.public_url or "", before, public_table)
    app = create_app(settings, registry, door=door)
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(of: Starlette) -> AsyncIterator[None]:
        async with registry.server(), anyio.create_task_group() as tasks:
            tasks.start_soon(registry.end_visits)
            async with inner(of):
                yield
            tasks.cancel_scope.cancel()

    app.router.lifespan_context = lifespan
    return app


def public_routes() -> list[GuardedRoute]:
    """What anybody may ask for: the first page, and the button on it."""
    return [
        *(route for route in public.routes() if route.path in _PUBLIC),
        GuardedRoute("/", home, access=Access.PUBLIC, method="GET"),
        GuardedRoute("/begin", begin, access=Access.PUBLIC, method="POST"),
    ]


def public_table(table: list[GuardedRoute]) -> list[GuardedRoute]:
    """Of all routes those that a visitor has."""
    kept, shown, done = [], {"", *_SHOWN.split()}, set(_DONE.split())
    for route in table:
        _, sid, below = route.path.partition("/s/{sid}")
        allowed = shown if "GET" in (route.methods or ()) else done
        if sid and route.access is Access.SESSION and below.removeprefix("/") in allowed:
            kept.append(route)
    return [*public_routes(), *kept]


async def home(request: Request) -> Response:
    """What this is, and the way in."""
    await request.app.state.loaded.wait()
    return await show_page(request, Welcome(STEPS, int(bounds.VISIT_SECONDS // 60), bounds.VISIT_CALLS))


async def begin(request: Request) -> Response:
    """Somebody begins: a visit, a session with the demo server, and the tour through it."""
    await request_bodies.nothing(request)
    await request.app.state.loaded.wait()
    registry: PublicRegistry = request.app.state.registry
    visitors: PublicVisitors = request.app.state.visitors
    modern = request.query_params.get("era") == "modern"
    try:
        visitor = visitors.recognise(request.headers, "")
        for old in registry.of(visitor.identity):
            await registry.close(old)
        identity, cookie = visitor.identity, ""
    except Denied:
        identity, cookie = visitors.begin(address_of(request), {each.owner for each in registry.everybodys()})
    try:
        session = registry.open(identity)
    except (Full, NotAllowed) as full:
        words = "Every place is taken at the moment. Somebody leaves every few minutes: try again soon."
        raise Denied(503, "full", words, headers={"retry-after": "60"}) from full
    session.tour = Tour()
    session.connect(DemoTarget(), Options(era="modern" if modern else "legacy"), by=identity)
    response = RedirectResponse(f"{session.base}/tour", 303)
    if cookie:
        response.headers.append("set-cookie", cookie)
    return response
