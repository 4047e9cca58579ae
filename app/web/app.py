"""The table of contents: every route with who may reach it, the order of the guards, the life of the process.

The port opens before the pages are loaded: templates and their engine take longer to import than all that listens.
They follow at once in a thread, and a request that comes earlier waits for them; then follows the MCP SDK.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response

from app.sessions import SessionRegistry
from app.settings import Settings
from app.web import public
from app.web.auth import Door
from app.web.consent import Proposals
from app.web.guard import Access, Armour, BodyLimit, Doorway, HostCheck, IdentityCheck, OriginCheck, loopback_names

Handler = Callable[[Request], Awaitable[Response]]


class _Later:
    """A module of handlers that is not loaded yet. `Later.name` is a handler that waits until it is."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Handler:
        async def handler(request: Request) -> Response:
            await request.app.state.pages_loaded.wait()
            real: Handler = getattr(import_module(self._module), name)
            return await real(request)

        handler.__name__ = name
        return handler


if TYPE_CHECKING:
    from app.web import actions, pages
else:
    actions, pages = _Later("app.web.actions"), _Later("app.web.pages")

PUBLIC, IDENTITY, SESSION = Access.PUBLIC, Access.IDENTITY, Access.SESSION


def routes() -> list[Doorway]:
    """Every address of Parley. GET shows, POST acts, and nothing else exists."""
    get, post = "GET", "POST"
    return [
        # Anybody
        Doorway("/login", public.login, access=PUBLIC, method=get),
        Doorway("/healthz", public.healthz, access=PUBLIC, method=get),
        Doorway("/static/{path:path}", public.static, access=PUBLIC, method=get),
        Doorway("/favicon.ico", public.favicon, access=PUBLIC, method=get),
        # One's own, over all sessions
        Doorway("/", pages.home, access=IDENTITY, method=get),
        Doorway("/about", pages.about, access=IDENTITY, method=get),
        Doorway("/s", actions.open_session, access=IDENTITY, method=post),
        # One session
        Doorway("/s/{sid}", pages.overview, access=SESSION, method=get),
        Doorway("/s/{sid}/connect", pages.connect_form, access=SESSION, method=get),
        Doorway("/s/{sid}/connect", actions.connect, access=SESSION, method=post),
        Doorway("/s/{sid}/disconnect", actions.disconnect, access=SESSION, method=post),
        Doorway("/s/{sid}/close", actions.close, access=SESSION, method=post),
        Doorway("/s/{sid}/options", actions.options, access=SESSION, method=post),
        Doorway("/s/{sid}/roots", pages.roots, access=SESSION, method=get),
        Doorway("/s/{sid}/roots", actions.roots, access=SESSION, method=post),
        Doorway("/s/{sid}/tools", pages.tools, access=SESSION, method=get),
        Doorway("/s/{sid}/tools/refresh", actions.refresh_tools, access=SESSION, method=post),
        Doorway("/s/{sid}/tools/{name:path}", pages.tool, access=SESSION, method=get),
        Doorway("/s/{sid}/calls", pages.calls, access=SESSION, method=get),
        Doorway("/s/{sid}/calls", actions.start_call, access=SESSION, method=post),
        Doorway("/s/{sid}/calls/{cid}", pages.call, access=SESSION, method=get),
        Doorway("/s/{sid}/calls/{cid}/cancel", actions.cancel_call, access=SESSION, method=post),
        Doorway("/s/{sid}/inbox", pages.inbox, access=SESSION, method=get),
        Doorway("/s/{sid}/log", pages.log, access=SESSION, method=get),
        Doorway("/s/{sid}/log/{seq}", pages.message, access=SESSION, method=get),
        Doorway("/s/{sid}/stderr", pages.stderr, access=SESSION, method=get),
        Doorway("/s/{sid}/events", pages.events, access=SESSION, method=get),
    ]


def create_app(
    settings: Settings,
    registry: SessionRegistry | None = None,
    *,
    announce: Callable[[str], None] | None = None,
) -> Starlette:
    """The application. `announce` gets each launch code after the first, when the one before is used or expires."""
    door = Door(settings, announce=announce)
    app = Starlette(
        routes=routes(),
        middleware=[
            Middleware(Armour),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5),
            Middleware(HostCheck, hosts=loopback_names(settings.host)),
            Middleware(OriginCheck, door=door),
            Middleware(IdentityCheck, door=door),
            Middleware(BodyLimit, most=settings.limits.body_bytes),
        ],
        exception_handlers={HTTPException: _pass_on},
        lifespan=_lifespan,
    )
    # An address has one spelling: a redirect to another one would be an answer before the guards have spoken.
    app.router.redirect_slashes = False
    app.state.settings = settings
    app.state.door = door
    app.state.registry = SessionRegistry(settings) if registry is None else registry
    app.state.proposals = Proposals()
    app.state.pages_loaded = anyio.Event()
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    async with app.state.registry, anyio.create_task_group() as tasks:
        tasks.start_soon(app.state.door.keep_fresh)
        tasks.start_soon(_load_pages, app)
        yield
        say_goodbye(app)
        await app.state.registry.close_all()
        tasks.cancel_scope.cancel()


def say_goodbye(app: Starlette) -> None:
    """Tell every stream that the process stops, so that nobody waits for it to end by itself."""
    if app.state.pages_loaded.is_set():
        app.state.streams.shutdown()


async def _load_pages(app: Starlette) -> None:
    """Import what shows pages, in a thread, and then let the waiting requests through."""

    def load() -> None:
        for module in ("app.web.actions", "app.web.pages", "app.web.stream"):
            import_module(module)

    await anyio.to_thread.run_sync(load)
    app.state.streams = import_module("app.web.stream").StreamHub(app.state.settings.limits)
    app.state.pages_loaded.set()


async def _pass_on(request: Request, fault: Exception) -> Response:
    """Not Starlette's own answers: all failures end in Armour, at the one place that knows how to say them."""
    raise fault
