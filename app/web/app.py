"""The application: the order of the guards, and what lives as long as the process.

The port opens first, with the public routes: sessions, templates and what they need take longer to import than all that
listens. They follow at once in a thread; then the table of `routes` takes its place, and whoever came earlier for
anything else has waited for it. After them comes the MCP SDK.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
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

from app.remembered import Remembered
from app.settings import Settings
from app.web.door import public
from app.web.door.guard import (
    BodyLimit,
    GuardedRoute,
    HostCheck,
    IdentityCheck,
    OriginCheck,
    SecurityHeaders,
    loopback_names,
)
from app.web.door.root import BrowserRoot, browser_root
from app.web.door.visitors import Visitors

if TYPE_CHECKING:
    from app.sessions import SessionRegistry
    from app.web.live.parts import Live


def create_app(
    settings: Settings,
    registry: SessionRegistry | None = None,
    *,
    announce: Callable[[str], None] | None = None,
    more: Iterable[GuardedRoute] = (),
    door: Door | None = None,
) -> Starlette:
    """The application. `announce` gets each launch code after the first, when the one before is used or expires;
    `more` are addresses beside those of the table; `door` is another way in than that of local mode."""
    door = door or _local_door(settings, announce)
    visitors = door.visitors
    app = Starlette(
        routes=door.public,
        middleware=[
            Middleware(BrowserRoot, root=visitors.root),
            Middleware(SecurityHeaders),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5),
            *door.before,
            Middleware(HostCheck, hosts=door.hosts, what=door.what),
            Middleware(OriginCheck, visitors=visitors, origin=door.origin),
            Middleware(IdentityCheck, visitors=visitors),
            Middleware(BodyLimit, most=settings.limits.body_bytes, most_upload=settings.limits.recording_bytes),
        ],
        exception_handlers={HTTPException: _pass_on},
        lifespan=_lifespan,
    )
    # An address has one spelling: a redirect to another one would be an answer before the guards have spoken.
    app.router.redirect_slashes = False
    app.state.settings = settings
    app.state.visitors = visitors
    app.state.registry = registry
    app.state.shelf = None
    app.state.more = list(more)
    app.state.door = door
    app.state.loaded = anyio.Event()
    app.state.ended = anyio.Event()
    return app


@dataclass(slots=True, frozen=True)
class Door:
    """How people come in: who is known, by which names we are called, and what anybody may ask for."""

    visitors: Visitors
    hosts: Sequence[str]
    public: list[GuardedRoute]
    what: str = "its loopback address"
    """Those names, in a sentence."""
    origin: str = ""
    """Where our pages come from; empty where that is how we are called."""
    before: Sequence[Middleware] = ()
    """What is looked at before everything else."""
    table: Callable[[list[GuardedRoute]], list[GuardedRoute]] = list
    """What becomes of the table of routes."""
    around: tuple[Live, ...] = ()
    """What else lives on every page of a session."""


def _local_door(settings: Settings, announce: Callable[[str], None] | None) -> Door:
    root, limits = browser_root(settings.data_dir), settings.limits
    remembered = Remembered(settings.data_dir, logins=limits.logins, login_seconds=limits.login_seconds)
    visitors = Visitors(settings, root=root, remembered=remembered, announce=announce)
    return Door(visitors, loopback_names(settings.host), public.routes())


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app.state.visitors.keep_fresh)
        async with anyio.create_task_group() as lives:
            lives.start_soon(_live, app)
            yield
            await end_everything(app)
            app.state.ended.set()  # and it ends by itself: what it still has to write is not cut off
        tasks.cancel_scope.cancel()


async def _live(app: Starlette) -> None:
    """Load what the port did not wait for, let the waiting requests through, and keep the sessions until the end."""

    table = await anyio.to_thread.run_sync(import_module, "app.web.routes")
    app.router.routes[:] = [*app.state.door.table(table.routes()), *app.state.more]
    app.state.pages = table.pages(app.router.routes, app.state.door.around)
    # sse-starlette would cut every stream off as soon as a signal comes. We end them ourselves, with a last word.
    import_module("sse_starlette.sse").AppStatus.disable_automatic_graceful_drain()
    from app.sessions import SessionRegistry
    from app.web.connect.consent import Proposals
    from app.web.live.stream import StreamHub
    from app.web.recordings.record import record_always

    state = app.state
    registry = state.registry
    if registry is None:
        registry = SessionRegistry(state.settings, remembered=state.visitors.remembered)
    async with registry:
        state.registry, state.streams, state.proposals = registry, StreamHub(state.settings.limits), Proposals()
        registry.start_soon(state.streams.end_signed_out, state.visitors.gone)
        if state.settings.record == "always":
            await record_always(app)
        state.loaded.set()
        await state.ended.wait()


async def end_everything(app: Starlette) -> None:
    """Tell every stream that the process stops, so that nobody waits for it to end by itself; end every child."""
    app.state.visitors.close()
    if app.state.loaded.is_set():
        app.state.streams.shutdown()
        await app.state.registry.close_all()


async def _pass_on(request: Request, fault: Exception) -> Response:
    """Not Starlette's own answers: all failures end in SecurityHeaders, at the one place that knows how to say them."""
    raise fault
