"""The application: the order of the guards, and what lives as long as the process.

The port opens first, with the public routes: sessions, templates and what they need take longer to import than all that
listens. They follow at once in a thread; then the table of `routes` takes its place, and whoever came earlier for
anything else has waited for it. After them comes the MCP SDK.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
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


def create_app(
    settings: Settings,
    registry: SessionRegistry | None = None,
    *,
    announce: Callable[[str], None] | None = None,
    more: Iterable[GuardedRoute] = (),
) -> Starlette:
    """The application. `announce` gets each launch code after the first, when the one before is used or expires;
    `more` are addresses beside those of the table."""
    root = browser_root(settings.data_dir)
    visitors = Visitors(settings, root=root, announce=announce)
    app = Starlette(
        routes=public.routes(),
        middleware=[
            Middleware(BrowserRoot, root=root),
            Middleware(SecurityHeaders),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5),
            Middleware(HostCheck, hosts=loopback_names(settings.host)),
            Middleware(OriginCheck, visitors=visitors),
            Middleware(IdentityCheck, visitors=visitors),
            Middleware(BodyLimit, most=settings.limits.body_bytes),
        ],
        exception_handlers={HTTPException: _pass_on},
        lifespan=_lifespan,
    )
    # An address has one spelling: a redirect to another one would be an answer before the guards have spoken.
    app.router.redirect_slashes = False
    app.state.settings = settings
    app.state.visitors = visitors
    app.state.registry = registry
    app.state.more = list(more)
    app.state.loaded = anyio.Event()
    app.state.ended = anyio.Event()
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app.state.visitors.keep_fresh)
        tasks.start_soon(_live, app)
        yield
        await end_everything(app)
        app.state.ended.set()
        await app.state.loaded.wait()
        tasks.cancel_scope.cancel()


async def _live(app: Starlette) -> None:
    """Load what the port did not wait for, let the waiting requests through, and keep the sessions until the end."""

    table = await anyio.to_thread.run_sync(import_module, "app.web.routes")
    app.router.routes[:] = [*table.routes(), *app.state.more]
    app.state.pages = table.pages(app.router.routes)
    # sse-starlette would cut every stream off as soon as a signal comes. We end them ourselves, with a last word.
    import_module("sse_starlette.sse").AppStatus.disable_automatic_graceful_drain()
    from app.sessions import SessionRegistry
    from app.web.connect.consent import Proposals
    from app.web.live.stream import StreamHub

    state = app.state
    registry = SessionRegistry(state.settings) if state.registry is None else state.registry
    async with registry:
        state.registry, state.streams, state.proposals = registry, StreamHub(state.settings.limits), Proposals()
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
