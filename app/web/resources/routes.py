"""Resources: the lists of them and of their templates, the page of one, reading it, and subscribing to it.

A resource is addressed by its URI in the query, so one that is not listed has a page too: a template leads there, and
so does a link in a result. What was read is a call like any other, and its card shows the content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.core.calls import Call
from app.core.strict import Closed
from app.core.times import wire_time
from app.sessions import Workspace
from app.web.calls.card import CallCard
from app.web.calls.live import cards
from app.web.door.denied import unknown
from app.web.kit import format, json_tree, request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.responses import show, started, wants_json
from app.web.kit.templates import Context, fragment
from app.web.kit.words import text_of
from app.web.lists.keys import LOOK_SECONDS, keys_of
from app.web.lists.live import refetched
from app.web.lists.routes import read_again, read_on
from app.web.lists.view import Entry, ListView, Window, annotation_text, icon_text, list_json, list_view
from app.web.live.page import page
from app.web.live.parts import Part, View

READS = 5
_LONGEST = 8_000


# ------------------------------------------------------------------------------------------------------------- lists


def resource_href(session: Workspace, uri: str) -> str:
    """The page of a resource."""
    return f"/s/{session.id}/resources/one?{urlencode({'uri': uri})}"


def resources_view(session: Workspace, window: Window) -> ListView:
    """The resources; also a part of the stream (`#resources`)."""

    def entry(index: int, item: dict[str, Any]) -> Entry:
        uri = text_of(item.get("uri"))
        watched = session.resources.by_uri.get(uri)
        tag = ""
        if watched is not None:
            tag = "updated" if watched.updates else "subscribed" if watched.subscribed else ""
        return Entry(
            name=uri or "(without a URI)",
            href=resource_href(session, uri),
            title=text_of(item.get("title")) or text_of(item.get("name")),
            description=text_of(item.get("description")),
            detail=detail(item),
            notes=annotation_text(item.get("annotations")),
            tag=tag,
        )

    return list_view(session, "resources", window, entry, href=f"/s/{session.id}/resources")


def detail(item: dict[str, Any]) -> str:
    """Type and size, as the server says them."""
    size = item.get("size")
    said = format.size(size) if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else ""
    return ", ".join(part for part in (text_of(item.get("mimeType"))[:80], said) if part)


def templates_view(session: Workspace, window: Window) -> ListView:
    """The templates; also a part of the stream (`#templates`)."""
    keys = keys_of(session.lists["templates"])

    def entry(index: int, item: dict[str, Any]) -> Entry:
        return Entry(
            name=text_of(item.get("uriTemplate")) or "(without a template)",
            href=f"/s/{session.id}/resources/templates/{quote(keys[index], safe='~')}",
            title=text_of(item.get("title")) or text_of(item.get("name")),
            description=text_of(item.get("description")),
            detail=text_of(item.get("mimeType"))[:80],
            notes=annotation_text(item.get("annotations")),
        )

    return list_view(session, "templates", window, entry, href=f"/s/{session.id}/resources/templates")


@dataclass(slots=True)
class Resources(Context):
    """Every resource the server listed."""

    template: ClassVar[str] = "resources/page.html"
    part: ClassVar[str | None] = "resources/_list.html"

    shell: Shell
    resources: ListView
    subscribed: int


@dataclass(slots=True)
class Templates(Context):
    """Every resource template the server listed."""

    template: ClassVar[str] = "resources/templates.html"
    part: ClassVar[str | None] = "resources/_templates.html"

    shell: Shell
    templates: ListView


def _resources_json(session: Workspace) -> dict[str, Any]:
    return list_json(session, "resources", "resources") | {
        "subscribed": [one.uri for one in session.resources.subscribed],
        "updated": {
            one.uri: {"updates": one.updates, "at": wire_time(one.updated_at)}
            for one in session.resources.by_uri.values()
            if one.updated_at is not None
        },
    }


def _templates_json(session: Workspace) -> dict[str, Any]:
    return list_json(session, "templates", "templates") | {"keys": keys_of(session.lists["templates"])}


@page("resources", refetched("resources", "resources", "resource.changed"))
async def resources(request: Request) -> Response:
    """The list of resources. Looking at it is what has it read."""
    session: Workspace = request.state.session
    await session.lists.known("resources", _timeout(request, session))
    window = Window.of(request.query_params)
    return await show(
        request,
        lambda: Resources(
            shell=shell(session, "resources", "Resources"),
            resources=resources_view(session, window),
            subscribed=len(session.resources.subscribed),
        ),
        lambda: _resources_json(session),
    )


@page("templates", refetched("templates", "resources/templates"))
async def templates(request: Request) -> Response:
    """The list of templates, likewise."""
    session: Workspace = request.state.session
    await session.lists.known("templates", _timeout(request, session))
    window = Window.of(request.query_params)
    return await show(
        request,
        lambda: Templates(shell(session, "templates", "Resource templates"), templates_view(session, window)),
        lambda: _templates_json(session),
    )


def _timeout(request: Request, session: Workspace) -> float:
    """A script wants the list; a page may show that it is on its way."""
    return session.options.request_timeout_ms / 1000 if wants_json(request) else LOOK_SECONDS


async def refresh(request: Request) -> Response:
    return await read_again(request, "resources", "resources", _resources_json)


async def more(request: Request) -> Response:
    return await read_on(request, "resources", "resources", _resources_json)


async def refresh_templates(request: Request) -> Response:
    return await read_again(request, "templates", "resources/templates", _templates_json)


async def more_templates(request: Request) -> Response:
    return await read_on(request, "templates", "resources/templates", _templates_json)


# ------------------------------------------------------------------------------------------------------ one resource


@dataclass(slots=True)
class WatchView:
    """Whether a resource is watched, and what came of it; also a part of the stream (`#watch`)."""

    base: str
    uri: str
    connected: bool
    offered: bool
    modern: bool
    forced: bool
    """Whether reading at all is against what the server declared."""
    subscribed: bool
    since: str
    updates: int
    updated: str
    refused: str


@dataclass(slots=True)
class Resource(Context):
    """One resource: what the server says of it, its content, and whether it is watched."""

    template: ClassVar[str] = "resources/resource.html"

    shell: Shell
    uri: str
    title: str
    name: str
    description: str
    detail: str
    notes: tuple[str, ...]
    icons: str
    listed: Html | None
    watch: WatchView
    cards: list[CallCard]


def is_read_of(call: Call, uri: str) -> bool:
    """Whether a call read this resource; re-reads of a subscription are quiet ones."""
    return call.method == "resources/read" and call.params is not None and call.params.get("uri") == uri


def reads(session: Workspace, uri: str) -> list[Call]:
    """The newest reads of a resource."""
    return [call for call in session.calls.newest if is_read_of(call, uri)][:READS]


def watch_view(session: Workspace, uri: str) -> WatchView:
    one = session.resources.by_uri.get(uri)
    return WatchView(
        base=f"/s/{session.id}",
        uri=uri,
        connected=session.info.state == "ready",
        offered=session.resources.offered,
        modern=session.wire.listens,
        forced=not session.info.offers("resources"),
        subscribed=one is not None and one.subscribed,
        since=format.time_of_day(one.since) if one is not None and one.since is not None else "",
        updates=0 if one is None else one.updates,
        updated=format.time_of_day(one.updated_at) if one is not None and one.updated_at is not None else "",
        refused="" if one is None else one.refused,
    )


def _watch(view: View) -> Html:
    return fragment("resources/_watch.html", watch=watch_view(view.session, view.of))


@page(
    "resource",
    Part("#watch", ("resource.changed", "connection.changed"), _watch),
    cards(lambda view, call: is_read_of(call, view.of), lambda view: reads(view.session, view.of)),
)
async def resource(request: Request) -> Response:
    """The page of the resource that `uri` names, listed or not."""
    session: Workspace = request.state.session
    uri = request.query_params.get("uri", "")
    if not uri or len(uri) > _LONGEST:
        raise unknown("Which resource? The address names it by its `uri`, of at most 8,000 characters.")
    listing = await session.lists.known("resources", LOOK_SECONDS)
    item = listing.by_name(uri, "uri")
    recent = reads(session, uri)
    return await show(
        request, lambda: _page(session, uri, item, recent), lambda: _resource_json(session, uri, item, recent)
    )


def _page(session: Workspace, uri: str, item: dict[str, Any] | None, recent: list[Call]) -> Resource:
    known = item or {}
    return Resource(
        shell=shell(session, "resource", uri, of=uri),
        uri=uri,
        title=text_of(known.get("title")) or text_of(known.get("name")) or uri,
        name=text_of(known.get("name")),
        description=text_of(known.get("description")),
        detail=detail(known),
        notes=annotation_text(known.get("annotations")),
        icons=icon_text(known),
        listed=None if item is None else json_tree.tree(item, open_depth=2, label="As listed"),
        watch=watch_view(session, uri),
        cards=[CallCard(session, call) for call in recent],
    )


def _resource_json(session: Workspace, uri: str, item: dict[str, Any] | None, recent: list[Call]) -> dict[str, Any]:
    watched = session.resources.by_uri.get(uri)
    return {
        "uri": uri,
        "resource": item,
        "subscribed": watched is not None and watched.subscribed,
        "updates": 0 if watched is None else watched.updates,
        "calls": [call.id for call in recent],
    }


class _UriBody(Closed):
    uri: str = Field(min_length=1, max_length=_LONGEST)


class _WatchBody(_UriBody):
    subscribe: bool = True


async def read(request: Request) -> Response:
    """Read a resource; the answer is a call."""
    session: Workspace = request.state.session
    wanted = (await request_bodies.read(request)).read(_UriBody, lambda form: {"uri": form.text("uri")})
    call = session.start_call("resources/read", {"uri": wanted.uri}, by=request.state.identity)
    return await started(request, session, call, url=resource_href(session, wanted.uri))


async def subscribe(request: Request) -> Response:
    """Ask the server to tell of changes of a resource, or to stop that."""
    session: Workspace = request.state.session
    wanted = (await request_bodies.read(request)).read(
        _WatchBody, lambda form: {"uri": form.text("uri"), "subscribe": form.text("subscribe") or "true"}
    )
    call = session.resources.subscribe(wanted.uri, wanted.subscribe, by=request.state.identity)
    return await started(request, session, call, url=resource_href(session, wanted.uri))
