"""The table of contents: every route with who may reach it, the order of the guards, the life of the process.

The port opens first: sessions, templates and what they need take longer to import than all that listens. They follow
at once in a thread, a request that comes earlier waits for them, and after them comes the MCP SDK.
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

from app.settings import Settings
from app.web.door import public
from app.web.door.guard import (
    Access,
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

Handler = Callable[[Request], Awaitable[Response]]


_later: list[str] = []
"""Every module of handlers, to be loaded once the port is open."""


class _Later:
    """A module of handlers that is not loaded yet. `Later.name` is a handler that waits until it is."""

    def __init__(self, module: str) -> None:
        self._module = module
        _later.append(module)

    def __getattr__(self, name: str) -> Handler:
        async def handler(request: Request) -> Response:
            await request.app.state.loaded.wait()
            real: Handler = getattr(import_module(self._module), name)
            return await real(request)

        handler.__module__, handler.__name__ = self._module, name
        return handler


if TYPE_CHECKING:
    from app.sessions import SessionRegistry
    from app.web import actions, pages, palette
    from app.web.asks import routes as asks
    from app.web.calls import blobs, snippets
    from app.web.calls import compare_routes as comparing
    from app.web.calls import compose as composer
    from app.web.calls import rounds_routes as rounds
    from app.web.connect import targets
    from app.web.kit import completion as completing
    from app.web.log import server_log_routes as logging_views
    from app.web.prompts import routes as prompts
    from app.web.resources import routes as resources
    from app.web.subscriptions import routes as subscriptions
    from app.web.tasks import routes as tasks
    from app.web.tools import routes as tool_forms
else:
    actions, asks, pages = _Later("app.web.actions"), _Later("app.web.asks.routes"), _Later("app.web.pages")
    blobs, tool_forms = _Later("app.web.calls.blobs"), _Later("app.web.tools.routes")
    palette, targets = _Later("app.web.palette"), _Later("app.web.connect.targets")
    completing, composer = _Later("app.web.kit.completion"), _Later("app.web.calls.compose")
    logging_views, prompts = _Later("app.web.log.server_log_routes"), _Later("app.web.prompts.routes")
    resources, snippets = _Later("app.web.resources.routes"), _Later("app.web.calls.snippets")
    tasks, rounds = _Later("app.web.tasks.routes"), _Later("app.web.calls.rounds_routes")
    subscriptions, comparing = _Later("app.web.subscriptions.routes"), _Later("app.web.calls.compare_routes")

PUBLIC, IDENTITY, SESSION = Access.PUBLIC, Access.IDENTITY, Access.SESSION


def routes() -> list[GuardedRoute]:
    """Every address of Parley. GET shows, POST acts, and nothing else exists."""
    get, post = "GET", "POST"
    return [
        # Anybody
        GuardedRoute("/login", public.login, access=PUBLIC, method=get),
        GuardedRoute("/healthz", public.healthz, access=PUBLIC, method=get),
        GuardedRoute("/static/{path:path}", public.static, access=PUBLIC, method=get),
        GuardedRoute("/favicon.ico", public.favicon, access=PUBLIC, method=get),
        # One's own, over all sessions
        GuardedRoute("/", pages.home, access=IDENTITY, method=get),
        GuardedRoute("/about", pages.about, access=IDENTITY, method=get),
        GuardedRoute("/s", actions.open_session, access=IDENTITY, method=post),
        GuardedRoute("/targets", targets.save, access=IDENTITY, method=post),
        GuardedRoute("/targets/{target}", targets.rename, access=IDENTITY, method=post),
        GuardedRoute("/targets/{target}/delete", targets.delete, access=IDENTITY, method=post),
        # One session
        GuardedRoute("/s/{sid}", pages.overview, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/connect", pages.connect_form, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/connect", actions.connect, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/disconnect", actions.disconnect, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/close", actions.close, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/options", actions.options, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/roots", pages.roots, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/roots", actions.roots, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/tools", pages.tools, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/tools/refresh", actions.refresh_tools, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/tools/more", actions.more_tools, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/tools/form/{name:path}", tool_forms.form, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/tools/check/{name:path}", tool_forms.check, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/tools/call/{name:path}", tool_forms.call, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/tools/{name:path}", tool_forms.tool, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/resources", resources.resources, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/resources/refresh", resources.refresh, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/resources/more", resources.more, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/resources/one", resources.resource, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/resources/read", resources.read, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/resources/subscribe", resources.subscribe, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/resources/templates", resources.templates, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/resources/templates/refresh", resources.refresh_templates, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/resources/templates/more", resources.more_templates, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/resources/templates/expand/{name:path}", resources.expand, access=SESSION, method=post),
        GuardedRoute(
            "/s/{sid}/resources/templates/read/{name:path}", resources.read_template, access=SESSION, method=post
        ),
        GuardedRoute("/s/{sid}/resources/templates/{name:path}", resources.template, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/prompts", prompts.prompts, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/prompts/refresh", prompts.refresh, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/prompts/more", prompts.more, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/prompts/get/{name:path}", prompts.get, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/prompts/{name:path}", prompts.prompt, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/complete", completing.complete, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/logging", logging_views.logging, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/ping", logging_views.ping, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/compose", composer.compose, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/compose", composer.send, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/compose/check", composer.check, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/calls", pages.calls, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/calls", actions.start_call, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/calls/{cid}", pages.call, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/calls/{cid}/cancel", actions.cancel_call, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/calls/{cid}/retry", actions.retry_call, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/calls/{cid}/rounds", rounds.change, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/calls/{cid}/resend", rounds.resend, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/calls/{cid}/compare", comparing.comparison, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/calls/{cid}/compare", comparing.begin, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/calls/{cid}/snippet", snippets.snippet, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/calls/{cid}/shown", blobs.shown, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/calls/{cid}/branch", blobs.branch, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/calls/{cid}/search", blobs.search, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/calls/{cid}/markdown", blobs.markdown, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/calls/{cid}/result", blobs.result, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/blobs/{sha}", blobs.blob, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/frames/{sha}", blobs.frame, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/inbox", asks.inbox, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/inbox/clear", asks.clear, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/asks/{aid}", asks.ask, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/asks/{aid}/answer", asks.answer, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/subscriptions", subscriptions.page, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/subscriptions", subscriptions.begin, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/subscriptions/{lid}/stop", subscriptions.stop, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/subscriptions/{lid}/again", subscriptions.again, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/asks/{aid}/reopen", rounds.reopen, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/asks/{aid}/form", asks.form, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/asks/{aid}/request", asks.request, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/stage", asks.stage, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/tasks", tasks.tasks, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/tasks/refresh", tasks.refresh, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/tasks/{tid}", tasks.task, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/tasks/{tid}/poll", tasks.poll, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/tasks/{tid}/result", tasks.result, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/tasks/{tid}/stop", tasks.stop, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/tasks/{tid}/cancel", tasks.cancel, access=SESSION, method=post),
        GuardedRoute("/s/{sid}/log", pages.log, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/log.jsonl", pages.export, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/log/{seq}", pages.message, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/palette", palette.palette, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/stderr", pages.stderr, access=SESSION, method=get),
        GuardedRoute("/s/{sid}/events", pages.events, access=SESSION, method=get),
    ]


def create_app(
    settings: Settings,
    registry: SessionRegistry | None = None,
    *,
    announce: Callable[[str], None] | None = None,
) -> Starlette:
    """The application. `announce` gets each launch code after the first, when the one before is used or expires."""
    root = browser_root(settings.data_dir)
    visitors = Visitors(settings, root=root, announce=announce)
    app = Starlette(
        routes=routes(),
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

    def load() -> None:
        for module in _later:
            import_module(module)

    await anyio.to_thread.run_sync(load)
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
