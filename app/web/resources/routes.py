"""Resources: the list of them, the page of one, reading it, and subscribing to it.

A resource is addressed by its URI in the query, so one that is not listed has a page too: a template leads there, and
so does a link in a result. What was read is a call like any other, and its card shows the content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.core.calls import Call
from app.core.strict import Closed
from app.core.times import wire_time
from app.sessions import Workspace
from app.sessions.lists import ListName
from app.sessions.resources import Watched
from app.web.calls.card import CallCard, cards_of
from app.web.calls.live import cards
from app.web.door.denied import unknown
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.responses import show, started
from app.web.kit.templates import Context, fragment
from app.web.kit.words import text_of
from app.web.lists.item import LOOK_SECONDS, Item
from app.web.lists.routes import ListRoutes
from app.web.live.page import page
from app.web.live.parts import Part, View

READS = 5
_LONGEST = 8_000


def resource_href(session: Workspace, uri: str) -> str:
    """The page of a resource."""
    return f"{session.base}/resources/one?{urlencode({'uri': uri})}"


@dataclass(slots=True, frozen=True)
class Resource(Item):
    """One resource, listed or not; its key is its URI."""

    list_name: ClassVar[ListName] = "resources"
    path: ClassVar[str] = "resources"
    kind: ClassVar[str] = "resource"
    heading: ClassVar[str] = "Resources"
    about: ClassVar[str] = "Resources, by URI. Names, descriptions and annotations are the server's."
    none: ClassVar[str] = "The server declared `resources` and listed none; it may still have templates."

    @classmethod
    def at(cls, session: Workspace, index: int) -> Self:
        item = session.lists["resources"].items[index]
        return cls(session, text_of(item.get("uri")) if isinstance(item, dict) else "", item)

    @classmethod
    def list_json(cls, session: Workspace) -> dict[str, Any]:
        watched = session.resources
        return {
            "subscribed": [one.uri for one in watched.subscribed],
            "updated": {
                one.uri: {"updates": one.updates, "at": wire_time(one.updated_at)}
                for one in watched.by_uri.values()
                if one.updated_at is not None
            },
        }

    def href(self, verb: str = "") -> str:
        return resource_href(self.session, self.key)

    @property
    def label(self) -> str:
        return self.key or "(without a URI)"

    @property
    def title(self) -> str:
        return self.text("title") or self.name

    @property
    def watched(self) -> Watched:
        """Whether it is watched, and what came of it."""
        return self.session.resources.by_uri.get(self.key) or Watched(self.key)

    @property
    def tag(self) -> str:
        return "updated" if self.watched.updates else "subscribed" if self.watched.subscribed else ""

    @property
    def reads(self) -> list[Call]:
        """The newest reads of it."""
        return [call for call in self.session.calls.newest if is_read_of(call, self.key)][:READS]


RESOURCES = ListRoutes(Resource, "resource.changed")


# ------------------------------------------------------------------------------------------------------ one resource


@dataclass(slots=True)
class ResourcePage(Context):
    """One resource: what the server says of it, its content, and whether it is watched."""

    template: ClassVar[str] = "resources/resource.html"

    shell: Shell
    resource: Resource
    cards: list[CallCard]


def is_read_of(call: Call, uri: str) -> bool:
    """Whether a call read this resource; re-reads of a subscription are quiet ones."""
    return call.method == "resources/read" and call.params is not None and call.params.get("uri") == uri


def _of(view: View) -> Resource:
    return Resource(view.session, view.of, None)


def _watch(view: View) -> Html:
    return fragment("resources/_watch.html", resource=_of(view))


@page(
    "resource",
    Part("#watch", ("resource.changed", "connection.changed"), _watch),
    cards(lambda view, call: is_read_of(call, view.of), lambda view: _of(view).reads),
)
async def resource(request: Request) -> Response:
    """The page of the resource that `uri` names, listed or not."""
    session: Workspace = request.state.session
    uri = request.query_params.get("uri", "")
    if not uri or len(uri) > _LONGEST:
        raise unknown("Which resource? The address names it by its `uri`, of at most 8,000 characters.")
    listing = await session.lists.known("resources", LOOK_SECONDS)
    one = Resource(session, uri, listing.by_name(uri, "uri"))
    recent = one.reads
    return await show(
        request,
        lambda: ResourcePage(shell(session, "resource", uri, of=uri), one, cards_of(session, recent)),
        lambda: {
            "uri": uri,
            "resource": one.raw,
            "subscribed": one.watched.subscribed,
            "updates": one.watched.updates,
            "calls": [call.id for call in recent],
        },
    )


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
