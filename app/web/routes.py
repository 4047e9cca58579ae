"""The table of contents: every address of Parley, who may reach it, and which handler answers.

GET shows, POST acts, and nothing else exists. Loaded once the port is open, because it imports everything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from app.web import palette
from app.web.asks import routes as asks
from app.web.calls import blobs, compare, compose, rounds, snippets
from app.web.calls import routes as calls
from app.web.connect import home, requests, targets
from app.web.connect import routes as connect
from app.web.door import public
from app.web.door.guard import Access, GuardedRoute
from app.web.door.rights import Needs
from app.web.guests import answer as guests
from app.web.guests import links as answer_links
from app.web.guests import room
from app.web.kit import completion
from app.web.lists.routes import ListRoutes
from app.web.live import stream
from app.web.live.page import Page, Pages
from app.web.live.parts import Live
from app.web.log import page as log
from app.web.log import server_log
from app.web.models import routes as models
from app.web.prompts import routes as prompts
from app.web.recorded import listed as listed_recordings
from app.web.recorded import moments
from app.web.recorded import routes as recorded
from app.web.recordings import kept as recordings
from app.web.recordings import masks as recording_masks
from app.web.recordings import record
from app.web.resources import routes as resources
from app.web.resources import template
from app.web.rules import routes as rules
from app.web.session import about, options, overview, ping, roots, stderr, switch
from app.web.sign_in import routes as sign_in
from app.web.subscriptions import routes as subscriptions
from app.web.surroundings import AROUND, KEPT, NOTICE
from app.web.tasks import routes as tasks
from app.web.timeline import routes as timeline
from app.web.tools import routes as tools
from app.web.tools import saved
from app.web.tour import routes as tour

Handler = Callable[[Request], Awaitable[Response]]
IDENTITY, SESSION, RECORDING, RECORDED = Access.IDENTITY, Access.SESSION, Access.RECORDING, Access.RECORDED
_LIVE_ONLY = ("connect", "compose", "stage", "room", "tour", "saved", "counts", "rules", "models", "record", "sign-in")
"""Pages below a session that are about what can be done in it: a recording has none of them."""
_LIVE_ENDS = ("{cid}/compare", "{aid}/models", "{aid}/rule", "{aid}/link")
ANSWER, OWN, PRIVATE = Needs.ANSWER, Needs.OWN, Needs.PRIVATE


def get(path: str, handler: Handler | Page, access: Access, needs: Needs | None = None) -> GuardedRoute:
    name = handler.handler.__name__ if isinstance(handler, Page) else None
    return GuardedRoute(path, handler, access=access, method="GET", name=name, needs=needs)


def post(path: str, handler: Handler, access: Access, needs: Needs | None = None) -> GuardedRoute:
    return GuardedRoute(path, handler, access=access, method="POST", needs=needs)


def listed(path: str, of: ListRoutes) -> list[GuardedRoute]:
    """A list of the server: its page, and reading it again, or its next page."""
    return [
        get(path, of.page, SESSION),
        post(f"{path}/refresh", of.refresh, SESSION),
        post(f"{path}/more", of.more, SESSION),
    ]


def kept(table: Iterable[GuardedRoute]) -> Iterator[GuardedRoute]:
    """What can be read of a session can be read of a recording, at the same places below its address."""
    for route in table:
        _, sid, below = route.path.partition("/s/{sid}/")
        live_only = below.startswith(_LIVE_ONLY) or below.endswith(_LIVE_ENDS)
        if sid and "GET" in (route.methods or ()) and not live_only:
            yield get(f"/r/{{rid}}/{below}", route.endpoint, RECORDING, route.needs)


def recorded_routes() -> list[GuardedRoute]:
    """A recording, beside what it shares with a session."""
    return [
        get("/r/{rid}", recorded.opened, RECORDING),
        get("/r/{rid}/about", recorded.about, RECORDING),
        post("/r/{rid}/connect", recorded.connect, RECORDING),
        post("/r/{rid}/moments", moments.save, RECORDING),
        post("/r/{rid}", recordings.change, RECORDED),
        post("/r/{rid}/delete", recordings.delete, RECORDED),
        get("/r/{rid}/file", recordings.file, RECORDED),
        get("/r/{rid}/masks", recording_masks.masks, RECORDED, PRIVATE),
        post("/r/{rid}/masks", recording_masks.mask, RECORDED),
    ]


def routes() -> list[GuardedRoute]:
    """Every address. The first one that fits is taken, so a fixed path stands before one with a name in it."""
    table = session_routes()
    return [*table, *recorded_routes(), *kept(table), post("/r/{rid}/{rest:path}", recorded.over, RECORDED)]


def session_routes() -> list[GuardedRoute]:
    """Everything but recordings."""
    return [
        *public.routes(),
        # One's own, over all sessions
        get("/", home.home, IDENTITY),
        get("/about", about.about, IDENTITY),
        post("/logout", about.logout, IDENTITY),
        get("/s", home.start_again, IDENTITY),
        get("/sessions", switch.sessions, IDENTITY),
        post("/s", connect.open_session, IDENTITY),
        post("/close-lost", home.close_lost, IDENTITY),
        post("/targets", targets.save, IDENTITY),
        get("/targets/{target}/requests", requests.requests, IDENTITY),
        post("/targets/{target}/requests", requests.save, IDENTITY),
        get("/targets/{target}/requests/{request}", requests.one, IDENTITY),
        post("/targets/{target}/requests/{request}", requests.change, IDENTITY),
        post("/targets/{target}/requests/{request}/delete", requests.delete, IDENTITY),
        post("/targets/{target}", targets.rename, IDENTITY),
        post("/targets/{target}/delete", targets.delete, IDENTITY),
        post("/targets/{target}/restore", targets.restore, IDENTITY),
        # Recordings
        get("/recordings", listed_recordings.recordings, IDENTITY),
        GuardedRoute("/recordings", listed_recordings.upload, access=IDENTITY, method="POST", upload=True),
        # A session and its connection
        get("/s/{sid}", overview.overview, SESSION),
        get("/s/{sid}/connect", connect.form, SESSION, OWN),
        post("/s/{sid}/connect", connect.connect, SESSION, OWN),
        post("/s/{sid}/disconnect", connect.disconnect, SESSION, OWN),
        post("/s/{sid}/close", connect.close, SESSION, OWN),
        post("/s/{sid}/reopen", connect.reopen, Access.CLOSED),
        post("/s/{sid}/record", record.record, SESSION, OWN),
        post("/s/{sid}/options", options.options, SESSION),
        post("/s/{sid}/ping", ping.ping, SESSION),
        get("/s/{sid}/roots", roots.roots, SESSION),
        post("/s/{sid}/roots", roots.change, SESSION),
        get("/s/{sid}/stderr", stderr.stderr, SESSION),
        get("/s/{sid}/palette", palette.palette, SESSION),
        get("/s/{sid}/saved/{request}", saved.open_saved, SESSION, PRIVATE),
        get("/s/{sid}/counts", overview.listed, SESSION),
        get("/s/{sid}/events", stream.events, SESSION),
        # Tools
        *listed("/s/{sid}/tools", tools.TOOLS),
        post("/s/{sid}/tools/form/{name:path}", tools.form, SESSION),
        post("/s/{sid}/tools/check/{name:path}", tools.check, SESSION),
        post("/s/{sid}/tools/call/{name:path}", tools.call, SESSION),
        post("/s/{sid}/tools/save/{name:path}", saved.save, SESSION),
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
        get("/s/{sid}/compose", compose.compose, SESSION, PRIVATE),
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
        post("/s/{sid}/calls/{cid}/compare/close", compare.end, SESSION),
        get("/s/{sid}/compare", compare.pair, SESSION),
        post("/s/{sid}/compare/again", compare.again, SESSION),
        post("/s/{sid}/compare/same", compare.same, SESSION),
        get("/s/{sid}/calls/{cid}/snippet", snippets.snippet, SESSION),
        get("/s/{sid}/calls/{cid}/shown", blobs.shown, SESSION),
        get("/s/{sid}/calls/{cid}/branch", blobs.branch, SESSION),
        get("/s/{sid}/calls/{cid}/table", blobs.table, SESSION),
        get("/s/{sid}/calls/{cid}/search", blobs.search, SESSION),
        get("/s/{sid}/calls/{cid}/markdown", blobs.markdown, SESSION),
        get("/s/{sid}/calls/{cid}/result", blobs.result, SESSION),
        get("/s/{sid}/blobs/{sha}", blobs.blob, SESSION),
        get("/s/{sid}/frames/{sha}", blobs.frame, SESSION),
        # Asks
        get("/s/{sid}/inbox", asks.inbox, SESSION),
        post("/s/{sid}/inbox/clear", asks.clear, SESSION, ANSWER),
        get("/s/{sid}/asks/{aid}", asks.ask, SESSION),
        post("/s/{sid}/asks/{aid}/answer", asks.answer, SESSION, ANSWER),
        post("/s/{sid}/asks/{aid}/reopen", asks.reopen, SESSION, ANSWER),
        post("/s/{sid}/asks/{aid}/form", asks.form, SESSION, ANSWER),
        post("/s/{sid}/asks/{aid}/request", asks.request, SESSION, ANSWER),
        post("/s/{sid}/asks/{aid}/uses", asks.uses, SESSION, ANSWER),
        get("/s/{sid}/stage", asks.stage, SESSION),
        post("/s/{sid}/asks/{aid}/touch", asks.touch, SESSION, ANSWER),
        get("/s/{sid}/asks/{aid}/link", answer_links.link, SESSION, PRIVATE),
        post("/s/{sid}/asks/{aid}/link", answer_links.make, SESSION, OWN),
        post("/s/{sid}/asks/{aid}/link/revoke", answer_links.revoke, SESSION, OWN),
        get("/s/{sid}/room", room.room, SESSION),
        post("/s/{sid}/room", room.let_answer, SESSION),
        post("/s/{sid}/room/act", room.act, SESSION),
        post("/s/{sid}/room/close", room.close, SESSION),
        post("/s/{sid}/stage/reset", room.reset, SESSION, OWN),
        get("/s/{sid}/tour", tour.tour, SESSION),
        post("/s/{sid}/tour", tour.go_on, SESSION),
        get("/answer/{guest}", guests.answer_page, Access.GUEST),
        post("/answer/{guest}", guests.answer_by_link, Access.GUEST),
        get("/s/{sid}/asks/{aid}/rule", rules.offer, SESSION, PRIVATE),
        post("/s/{sid}/asks/{aid}/rule", rules.from_ask, SESSION),
        get("/s/{sid}/asks/{aid}/models", models.choices, SESSION),
        post("/s/{sid}/asks/{aid}/draft", models.draft, SESSION, ANSWER),
        post("/s/{sid}/asks/{aid}/draft/stop", models.stop, SESSION, ANSWER),
        # Signing in to the server
        get("/s/{sid}/sign-in", sign_in.sign_in, SESSION, PRIVATE),
        post("/s/{sid}/sign-in", sign_in.act, SESSION, OWN),
        post("/s/{sid}/sign-in/steps/{step}", sign_in.step, SESSION, OWN),
        post("/s/{sid}/sign-in/refresh", sign_in.refresh, SESSION, OWN),
        post("/s/{sid}/sign-in/revoke", sign_in.revoke, SESSION, OWN),
        post("/s/{sid}/sign-in/forget", sign_in.forget, SESSION, OWN),
        # Models that draft answers
        get("/s/{sid}/models", models.models, SESSION, PRIVATE),
        post("/s/{sid}/models", models.add, SESSION),
        post("/s/{sid}/models/{name}/delete", models.delete, SESSION),
        # Answer rules
        get("/s/{sid}/rules", rules.rules, SESSION, PRIVATE),
        post("/s/{sid}/rules", rules.add, SESSION),
        post("/s/{sid}/rules/order", rules.order, SESSION),
        post("/s/{sid}/rules/pause", rules.pause, SESSION),
        post("/s/{sid}/rules/resume", rules.resume, SESSION),
        post("/s/{sid}/rules/try", rules.attempt, SESSION),
        get("/s/{sid}/rules/export", rules.export, SESSION, PRIVATE),
        post("/s/{sid}/rules/import", rules.take, SESSION),
        get("/s/{sid}/rules/new", rules.blank, SESSION, PRIVATE),
        get("/s/{sid}/rules/{rid}", rules.rule, SESSION, PRIVATE),
        post("/s/{sid}/rules/{rid}", rules.change, SESSION),
        post("/s/{sid}/rules/{rid}/delete", rules.delete, SESSION),
        post("/s/{sid}/rules/{rid}/move", rules.move, SESSION),
        # Tasks, and streams of notifications
        get("/s/{sid}/timeline", timeline.show_timeline, SESSION),
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
        get("/s/{sid}/moments", moments.form, SESSION, PRIVATE),
        post("/s/{sid}/moments", moments.save, SESSION),
        get("/s/{sid}/log", log.log, SESSION),
        get("/s/{sid}/log.jsonl", log.export, SESSION),
        get("/s/{sid}/log/{seq}", log.message, SESSION),
        post("/s/{sid}/log/{seq}/resend", log.resend, SESSION),
        get("/s/{sid}/logging", server_log.logging, SESSION),
    ]


def pages(table: Iterable[GuardedRoute], more: tuple[Live, ...] = ()) -> Pages:
    """The pages of a session among these addresses, by the names that their tabs use; `more` lives on each of them."""
    around = replace(AROUND, live=(*AROUND.live, *more))
    return Pages((route.endpoint for route in table if isinstance(route.endpoint, Page)), around, NOTICE, KEPT)
