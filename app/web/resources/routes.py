"""Resources and their templates: lists, a page for each, reading, subscriptions, and the form of a template.

A resource is addressed by its URI in the query, so one that is not listed has a page too: a template leads there, and
so does a link in a result. What was read is a call like any other, and its card shows the content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from pydantic import Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.core.calls import Call
from app.core.strict import Closed
from app.core.times import wire_time
from app.core.uritemplate import BadTemplate, UriTemplate, Value, Variable
from app.sessions import Workspace
from app.web.calls import card as call_views
from app.web.kit import html as show_as
from app.web.kit import request_bodies as bodies
from app.web.kit.completion import FieldView
from app.web.kit.errors import invalid, unknown, wants_json
from app.web.kit.frame import Context, Shell, fragment, keys_of, shell, text_of
from app.web.kit.html import Html
from app.web.kit.lookup import LOOK_SECONDS, listed
from app.web.kit.responses import in_json, show
from app.web.lists import routes as relisting
from app.web.lists.view import Entry, ListView, Window, annotation_text, icon_text, list_json, list_view

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
            detail=_detail(item),
            notes=annotation_text(item.get("annotations")),
            tag=tag,
        )

    return list_view(session, "resources", window, entry, href=f"/s/{session.id}/resources")


def _detail(item: dict[str, Any]) -> str:
    """Type and size, as the server says them."""
    size = item.get("size")
    said = show_as.size(size) if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else ""
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
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


@dataclass(slots=True)
class Templates(Context):
    """Every resource template the server listed."""

    template: ClassVar[str] = "resources/templates.html"
    part: ClassVar[str | None] = "resources/_templates.html"

    shell: Shell
    templates: ListView
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


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


async def resources(request: Request) -> Response:
    """The list of resources. Looking at it is what has it read."""
    session: Workspace = request.state.session
    await session.lists.known("resources", _timeout(request, session))
    return await show(
        request,
        Resources(
            shell=shell(session, "resources", "Resources"),
            resources=resources_view(session, Window.of(request.query_params)),
            subscribed=len(session.resources.subscribed),
            json=_resources_json(session) if wants_json(request) else {},
        ),
    )


async def templates(request: Request) -> Response:
    """The list of templates, likewise."""
    session: Workspace = request.state.session
    await session.lists.known("templates", _timeout(request, session))
    return await show(
        request,
        Templates(
            shell=shell(session, "templates", "Resource templates"),
            templates=templates_view(session, Window.of(request.query_params)),
            json=_templates_json(session) if wants_json(request) else {},
        ),
    )


def _timeout(request: Request, session: Workspace) -> float:
    """A script wants the list; a page may show that it is on its way."""
    return session.options.request_timeout_ms / 1000 if wants_json(request) else LOOK_SECONDS


async def refresh(request: Request) -> Response:
    return await relisting.refresh(request, "resources", "resources", _resources_json)


async def more(request: Request) -> Response:
    return await relisting.more(request, "resources", "resources", _resources_json)


async def refresh_templates(request: Request) -> Response:
    return await relisting.refresh(request, "templates", "resources/templates", _templates_json)


async def more_templates(request: Request) -> Response:
    return await relisting.more(request, "templates", "resources/templates", _templates_json)


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
    cards: list[call_views.CallCard]
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


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
        since=show_as.time_of_day(one.since) if one is not None and one.since is not None else "",
        updates=0 if one is None else one.updates,
        updated=show_as.time_of_day(one.updated_at) if one is not None and one.updated_at is not None else "",
        refused="" if one is None else one.refused,
    )


async def resource(request: Request) -> Response:
    """The page of the resource that `uri` names, listed or not."""
    session: Workspace = request.state.session
    uri = request.query_params.get("uri", "")
    if not uri or len(uri) > _LONGEST:
        raise unknown("Which resource? The address names it by its `uri`, of at most 8,000 characters.")
    listing = await session.lists.known("resources", LOOK_SECONDS)
    item = listing.by_name(uri, "uri")
    known = item or {}
    watch = watch_view(session, uri)
    recent = reads(session, uri)
    return await show(
        request,
        Resource(
            shell=shell(session, "resource", uri, of=uri),
            uri=uri,
            title=text_of(known.get("title")) or text_of(known.get("name")) or uri,
            name=text_of(known.get("name")),
            description=text_of(known.get("description")),
            detail=_detail(known),
            notes=annotation_text(known.get("annotations")),
            icons=icon_text(known),
            listed=None if item is None else show_as.tree(item, open_depth=2, label="As listed"),
            watch=watch,
            cards=[call_views.call_card(session, call) for call in recent],
            json={
                "uri": uri,
                "resource": item,
                "subscribed": watch.subscribed,
                "updates": watch.updates,
                "calls": [call.id for call in recent],
            },
        ),
    )


class _UriBody(Closed):
    uri: str = Field(min_length=1, max_length=_LONGEST)


class _WatchBody(_UriBody):
    subscribe: bool = True


async def read(request: Request) -> Response:
    """Read a resource; the answer is a call."""
    session: Workspace = request.state.session
    wanted = (await bodies.read(request)).read(_UriBody, lambda form: {"uri": form.text("uri")})
    call = session.start_call("resources/read", {"uri": wanted.uri}, by=request.state.identity)
    return _started(request, session, call, wanted.uri)


async def subscribe(request: Request) -> Response:
    """Ask the server to tell of changes of a resource, or to stop that."""
    session: Workspace = request.state.session
    wanted = (await bodies.read(request)).read(
        _WatchBody, lambda form: {"uri": form.text("uri"), "subscribe": form.text("subscribe") or "true"}
    )
    call = session.resources.subscribe(wanted.uri, wanted.subscribe, by=request.state.identity)
    return _started(request, session, call, wanted.uri)


def _started(request: Request, session: Workspace, call: Call, uri: str) -> Response:
    url = f"/s/{session.id}/calls/{call.id}"
    if wants_json(request):
        return in_json({"id": call.id, "url": url, "state": call.state}, 202, {"location": url})
    if "hx-request" in request.headers:
        return Response(status_code=204)
    return RedirectResponse(resource_href(session, uri), 303)


# ---------------------------------------------------------------------------------------------------------- templates


@dataclass(slots=True)
class Template(Context):
    """One template: a field for each of its variables, and the URI that they make."""

    template: ClassVar[str] = "resources/template.html"
    part: ClassVar[str | None] = "resources/_template_form.html"

    shell: Shell
    key: str
    uri_template: str
    name: str
    title: str
    description: str
    detail: str
    notes: tuple[str, ...]
    fields: list[FieldView]
    problem: str
    uri: str
    said: str
    completes: bool
    connected: bool
    read_href: str
    expand_href: str
    complete_href: str
    listed: Html
    raw: Any = field(default=None)

    def as_json(self) -> dict[str, Any]:
        return {"template": self.raw, "key": self.key, "variables": [one.name for one in self.fields], "uri": self.uri}


async def _find(request: Request) -> tuple[Workspace, str, dict[str, Any]]:
    session: Workspace = request.state.session
    return session, *await listed(session, "templates", request.path_params["name"])


def value_of(variable: Variable, text: str) -> Value | None:
    """What was typed for a variable; None when nothing was. Of `{list*}` each line is one, of pairs each is `a=b`."""
    if not text:
        return None
    if not variable.explode:
        return text
    lines = [line for line in text.splitlines() if line]
    if lines and all("=" in line for line in lines):
        return dict(line.split("=", 1) for line in lines)
    return lines


def _page(session: Workspace, key: str, item: dict[str, Any], values: dict[str, str], said: str = "") -> Template:
    text = text_of(item.get("uriTemplate"))
    problem, fields, uri = "", list[FieldView](), ""
    try:
        parsed = UriTemplate.parse(text)
        for number, one in enumerate(parsed.variables):
            help_text = "one value on each line, or name=value" if one.explode else ""
            if one.prefix is not None:
                help_text = f"only the first {show_as.plural(one.prefix, 'character')} are used somewhere"
            typed = values.get(one.name, "")
            fields.append(FieldView(one.name, f"arg-{number}", typed, help=help_text, many=one.explode))
        given = {one.name: value for one in parsed.variables if (value := value_of(one, values.get(one.name, "")))}
        uri = parsed.expand(given)
    except BadTemplate as fault:
        problem = str(fault)
    base = f"/s/{session.id}"
    address = quote(key, safe="~")
    return Template(
        shell=shell(session, "template", text or key, of=key),
        key=key,
        uri_template=text,
        name=text_of(item.get("name")),
        title=text_of(item.get("title")) or text_of(item.get("name")) or text,
        description=text_of(item.get("description")),
        detail=_detail(item),
        notes=annotation_text(item.get("annotations")),
        fields=fields,
        problem=problem,
        uri=uri,
        said=said,
        completes=session.info.offers("completions"),
        connected=session.info.state == "ready",
        read_href=f"{base}/resources/templates/read/{address}",
        expand_href=f"{base}/resources/templates/expand/{address}",
        complete_href=f"{base}/complete",
        listed=show_as.tree(item, open_depth=2, label="As listed"),
        raw=item,
    )


def _typed(body: bodies.Body) -> dict[str, str]:
    """The fields of a form that hold arguments; of a JSON body its `arguments`."""
    if body.is_form:
        return {name.removeprefix("arg."): body.text(name) for name in body.data if name.startswith("arg.")}
    given = body.data.get("arguments")
    return {name: text for name, text in given.items() if isinstance(text, str)} if isinstance(given, dict) else {}


async def template(request: Request) -> Response:
    """The page of a template; values of variables may stand in the query."""
    session, key, item = await _find(request)
    values = {name[4:]: text for name, text in request.query_params.items() if name.startswith("arg.")}
    return await show(request, _page(session, key, item, values))


async def expand(request: Request) -> Response:
    """The URI that the values make, while they are typed."""
    session, key, item = await _find(request)
    made = _page(session, key, item, _typed(await bodies.read(request)))
    if wants_json(request):
        return in_json({"uri": made.uri, "error": made.problem or None})
    html = fragment("resources/_expanded.html", uri=made.uri, problem=made.problem)
    headers = {"cache-control": "no-store"}
    return Response(show_as.page_bytes(html), media_type="text/html; charset=utf-8", headers=headers)


async def read_template(request: Request) -> Response:
    """Expand the template and read what it names: on to the page of that resource."""
    session, key, item = await _find(request)
    typed = _typed(await bodies.read(request))
    made = _page(session, key, item, typed)
    empty = [one.name for one in made.fields if not typed.get(one.name)]
    if made.problem or not made.uri or (made.fields and len(empty) == len(made.fields)):
        words = made.problem or "Type a value for at least one variable."
        if wants_json(request):
            raise invalid({"/arguments": [words]})
        return await show(request, _page(session, key, item, typed, words), 422)
    call = session.start_call("resources/read", {"uri": made.uri}, by=request.state.identity)
    url = f"/s/{session.id}/calls/{call.id}"
    if wants_json(request):
        answer = {"id": call.id, "url": url, "state": call.state, "uri": made.uri}
        return in_json(answer, 202, {"location": url})
    if "hx-request" in request.headers:
        return Response(headers={"hx-redirect": resource_href(session, made.uri)})
    return RedirectResponse(resource_href(session, made.uri), 303)
