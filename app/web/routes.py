"""The table of contents: every address of Parley, who may reach it, and which handler answers.

GET shows, POST acts, and nothing else exists. Loaded once the port is open, because it imports everything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from starlette.requests import Request
from starlette.responses import Response

from app.web import palette
from app.web.asks import routes as asks
from app.web.calls import blobs, compare, compose, rounds, snippets
from app.web.calls import routes as calls
from app.web.connect import home, targets
from app.web.connect import routes as connect
from app.web.door import public
from app.web.door.guard import Access, GuardedRoute
from app.web.kit import completion
from app.web.lists.routes import ListRoutes
from app.web.live import stream
from app.web.live.page import Page, Pages
from app.web.log import page as log
from app.web.log import server_log
from app.web.prompts import routes as prompts
from app.web.resources import routes as resources
from app.web.resources import template
from app.web.session import about, options, overview, ping, roots, stderr
from app.web.subscriptions import routes as subscriptions
from app.web.surroundings import AROUND, NOTICE
from app.web.tasks import routes as tasks
from app.web.tools import routes as tools

Handler = Callable[[Request], Awaitable[Response]]
IDENTITY, SESSION = Access.IDENTITY, Access.SESSION


def get(path: str, handler: Handler | Page, access: Access) -> GuardedRoute:
    name = handler.handler.__name__ if isinstance(handler, Page) else None
    return GuardedRoute(path, handler, access=access, method="GET", name=name)


def post(path: str, handler: Handler, access: Access) -> GuardedRoute:
    return GuardedRoute(path, handler, access=access, method="POST")


def listed(path: str, of: ListRoutes) -> list[GuardedRoute]:
    """A list of the server: its page, and reading it again, or its next page."""
    return [
        get(path, of.page, SESSION),
        post(f"{path}/refresh", of.refresh, SESSION),
        post(f"{path}/more", of.more, SESSION),
    ]


def routes() -> list[GuardedRoute]:
    """Every address. The first one that fits is taken, so a fixed path stands before one with a name in it."""
    return [
        *public.routes(),
        # One's own, over all sessions
        get("/", home.home, IDENTITY),
        get("/about", about.about, IDENTITY),
        post("/s", connect.open_session, IDENTITY),
        post("/targets", targets.save, IDENTITY),
        post("/targets/{target}", targets.rename, IDENTITY),
        post("/targets/{target}/delete", targets.delete, IDENTITY),
        # A session and its connection
        get("/s/{sid}", overview.overview, SESSION),
        get("/s/{sid}/connect", connect.form, SESSION),
        post("/s/{sid}/connect", connect.connect, SESSION),
        post("/s/{sid}/disconnect", connect.disconnect, SESSION),
        post("/s/{sid}/close", connect.close, SESSION),
        post("/s/{sid}/options", options.options, SESSION),
        post("/s/{sid}/ping", ping.ping, SESSION),
        get("/s/{sid}/roots", roots.roots, SESSION),
        post("/s/{sid}/roots", roots.change, SESSION),
        get("/s/{sid}/stderr", stderr.stderr, SESSION),
        get("/s/{sid}/palette", palette.palette, SESSION),
        get("/s/{sid}/events", stream.events, SESSION),
        # Tools
        *listed("/s/{sid}/tools", tools.TOOLS),
        post("/s/{sid}/tools/form/{name:path}", tools.form, SESSION),
        post("/s/{sid}/tools/check/{name:path}", tools.check, SESSION),
        post("/s/{sid}/tools/call/{name:path}", tools.call, SESSION),
        get("/s/{sid}/tools/{name:path}", tools.tool, SESSION),
        # Resources and their templates
        *listed("/s/{sid}/resources", resources.RESOURCES),
        get("/s/{sid}/resources/one", resources.resource, SESSION),
        post("/s/{sid}/resources/read", resources.read, SESSION),
        post("/s/{sid}/resources/subscribe", resources.subscribe, SESSION),
        *listed("/s/{sid}/resources/templates", template.TEMPLATES),
        post("/s/{sid}/resources/templates/expand/{name:path}", template.expand, SESSION),
        post("/s/{sid}/resources/templates/read/{name:path}", template.read_template, SESSION),
        get("/s/{sid}/resources/templates/{name:path}", template.template, SESSION),
        # Prompts, and completion of their arguments
        *listed("/s/{sid}/prompts", prompts.PROMPTS),
        post("/s/{sid}/prompts/get/{name:path}", prompts.get, SESSION),
        get("/s/{sid}/prompts/{name:path}", prompts.prompt, SESSION),
        post("/s/{sid}/complete", completion.complete, SESSION),
        # Calls
        get("/s/{sid}/compose", compose.compose, SESSION),
        post("/s/{sid}/compose", compose.send, SESSION),
        post("/s/{sid}/compose/check", compose.check, SESSION),
        get("/s/{sid}/calls", calls.calls, SESSION),
        post("/s/{sid}/calls", calls.start, SESSION),
        get("/s/{sid}/calls/{cid}", calls.call, SESSION),
        post("/s/{sid}/calls/{cid}/cancel", calls.cancel, SESSION),
        post("/s/{sid}/calls/{cid}/retry", calls.retry, SESSION),
        post("/s/{sid}/calls/{cid}/rounds", rounds.change, SESSION),
        post("/s/{sid}/calls/{cid}/resend", rounds.resend, SESSION),
        get("/s/{sid}/calls/{cid}/compare", compare.comparison, SESSION),
        post("/s/{sid}/calls/{cid}/compare", compare.begin, SESSION),
        get("/s/{sid}/calls/{cid}/snippet", snippets.snippet, SESSION),
        get("/s/{sid}/calls/{cid}/shown", blobs.shown, SESSION),
        get("/s/{sid}/calls/{cid}/branch", blobs.branch, SESSION),
        get("/s/{sid}/calls/{cid}/search", blobs.search, SESSION),
        get("/s/{sid}/calls/{cid}/markdown", blobs.markdown, SESSION),
        get("/s/{sid}/calls/{cid}/result", blobs.result, SESSION),
        get("/s/{sid}/blobs/{sha}", blobs.blob, SESSION),
        get("/s/{sid}/frames/{sha}", blobs.frame, SESSION),
        # Asks
        get("/s/{sid}/inbox", asks.inbox, SESSION),
        post("/s/{sid}/inbox/clear", asks.clear, SESSION),
        get("/s/{sid}/asks/{aid}", asks.ask, SESSION),
        post("/s/{sid}/asks/{aid}/answer", asks.answer, SESSION),
        post("/s/{sid}/asks/{aid}/reopen", asks.reopen, SESSION),
        post("/s/{sid}/asks/{aid}/form", asks.form, SESSION),
        post("/s/{sid}/asks/{aid}/request", asks.request, SESSION),
        get("/s/{sid}/stage", asks.stage, SESSION),
        # Tasks, and streams of notifications
        get("/s/{sid}/tasks", tasks.tasks, SESSION),
        post("/s/{sid}/tasks/refresh", tasks.refresh, SESSION),
        get("/s/{sid}/tasks/{tid}", tasks.task, SESSION),
        post("/s/{sid}/tasks/{tid}/poll", tasks.poll, SESSION),
        post("/s/{sid}/tasks/{tid}/result", tasks.result, SESSION),
        post("/s/{sid}/tasks/{tid}/stop", tasks.stop, SESSION),
        post("/s/{sid}/tasks/{tid}/cancel", tasks.cancel, SESSION),
        get("/s/{sid}/subscriptions", subscriptions.subscriptions, SESSION),
        post("/s/{sid}/subscriptions", subscriptions.begin, SESSION),
        post("/s/{sid}/subscriptions/{lid}/stop", subscriptions.stop, SESSION),
        post("/s/{sid}/subscriptions/{lid}/again", subscriptions.again, SESSION),
        # The log of messages, and the log that the server writes
        get("/s/{sid}/log", log.log, SESSION),
        get("/s/{sid}/log.jsonl", log.export, SESSION),
        get("/s/{sid}/log/{seq}", log.message, SESSION),
        get("/s/{sid}/logging", server_log.logging, SESSION),
    ]


def pages(table: Iterable[GuardedRoute]) -> Pages:
    """The pages of a session among these addresses, by the names that their tabs use."""
    return Pages((route.endpoint for route in table if isinstance(route.endpoint, Page)), AROUND, NOTICE)
