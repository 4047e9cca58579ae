"""The resources of the desk: a listing in pages, templates, text and binary content, and subscriptions."""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import UriTemplate

from app.demo import questions
from app.demo.asking import Client
from app.demo.data import DESTINATIONS, base64, chime, departures, describe, picture
from app.demo.state import BOARD, Context, Desk, is_modern

RESOURCES_PER_PAGE = 4
DIARY = "desk://diary"
RESOURCE_NOT_FOUND = -32002  # until 2025-11-25; later revisions say "invalid params"
ItemT = TypeVar("ItemT")

HOURS = """\
Nordwind Travel Desk, Quay 4

Monday to Friday  08:00 - 18:00 (lunch 12:30 - 13:30)
Saturday          09:00 - 14:00
"""
ENTRY = """\
Tuesday. Fog. Blew the horn at what turned out to be the lighthouse. Nobody laughed.
"""
GUIDE = """\
# Welcome to the Nordwind Travel Desk

Everything here is *invented*, and everything works:

1. Read `desk://destinations` and choose a place.
2. Call `plan_trip` with your dates.
3. Subscribe to `desk://board`, then call `advance_board`.
4. Call `parade`, and answer what the desk asks.

> Ferries leave on time. Poets are asked to board early.

```json
{"motto": "There is always another ferry."}
```
"""


def catalogue() -> dict[str, Any]:
    """All destinations as JSON."""
    return {
        slug: {"name": place.name, "summary": place.summary, "fare": place.fare, "days": list(place.days)}
        for slug, place in DESTINATIONS.items()
    }


# URI -> title, description, MIME type, and what gives the content
RESOURCES: dict[str, tuple[str, str, str, Callable[[Desk], str | bytes]]] = {
    "desk://guide": ("Welcome guide", "What there is to try, in Markdown.", "text/markdown", lambda desk: GUIDE),
    "desk://hours": ("Opening hours", "When somebody is here.", "text/plain", lambda desk: HOURS),
    "desk://destinations": ("Destinations", "All of them.", "application/json", lambda desk: json.dumps(catalogue())),
    BOARD: ("Departure board", "Subscribe, then `advance_board`.", "application/json", lambda desk: desk.board()),
    DIARY: ("The captain's diary", "Asks before it opens.", "text/plain", lambda desk: ENTRY),
    "desk://poster.png": ("Poster", "A binary resource.", "image/png", lambda desk: picture("kestrelholm")),
    "desk://chime.wav": ("Boarding chime", "A binary resource.", "audio/wav", lambda desk: chime()),
}
LISTED_RESOURCES = [
    types.Resource(
        uri=uri,
        name=uri.removeprefix("desk://"),
        title=title,
        description=description,
        mime_type=mime_type,
        annotations=types.Annotations(audience=["user", "assistant"], priority=1.0 if uri == "desk://guide" else 0.5),
    )
    for uri, (title, description, mime_type, _) in RESOURCES.items()
]
PLACE_TEMPLATE = UriTemplate.parse("desk://destinations/{slug}")
SAILINGS_TEMPLATE = UriTemplate.parse("desk://departures/{slug}/{weekday}")
TEMPLATES = [
    types.ResourceTemplate(
        uri_template=str(PLACE_TEMPLATE),
        name="destination",
        title="One destination",
        description="A page about one place, in Markdown.",
        mime_type="text/markdown",
    ),
    types.ResourceTemplate(
        uri_template=str(SAILINGS_TEMPLATE),
        name="departures",
        title="Departures of one day",
        description="Who sails there on that weekday, as JSON. The completion of `weekday` depends on `slug`.",
        mime_type="application/json",
    ),
]


def content_of(desk: Desk, uri: str) -> tuple[str, str | bytes] | None:
    """The MIME type and the content behind a URI, or nothing."""
    if (entry := RESOURCES.get(uri)) is not None:
        return entry[2], entry[3](desk)
    if (found := PLACE_TEMPLATE.match(uri)) and found["slug"] in DESTINATIONS:
        return "text/markdown", describe(str(found["slug"]))
    if (found := SAILINGS_TEMPLATE.match(uri)) and (place := DESTINATIONS.get(str(found["slug"]))):
        lines = [line.model_dump() for line in departures(40) if line.destination == place.name]
        return "application/json", json.dumps(lines if found["weekday"] in place.days else [], indent=2)
    return None


def page_of(items: Sequence[ItemT], cursor: str | None, size: int) -> tuple[list[ItemT], str | None]:
    """One page of a list and the cursor of the next, if there is one."""
    start = int(cursor) if cursor and cursor.isdecimal() else 0
    if (cursor is not None and str(start) != cursor) or start > len(items):
        raise MCPError(types.INVALID_PARAMS, f"Unknown cursor: {cursor}")
    return list(items[start : start + size]), str(start + size) if start + size < len(items) else None


async def list_resources(context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    page, following = page_of(LISTED_RESOURCES, params.cursor if params else None, RESOURCES_PER_PAGE)
    return types.ListResourcesResult(resources=page, next_cursor=following)


async def list_templates(
    context: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=TEMPLATES)


def found_content(context: Context, uri: str) -> tuple[str, str | bytes]:
    """The content behind a URI, or the error that this revision prescribes."""
    content = content_of(context.lifespan_context, uri)
    if content is None:
        code = types.INVALID_PARAMS if is_modern(context) else RESOURCE_NOT_FOUND
        raise MCPError(code, "Resource not found", {"uri": uri})
    return content


async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    if params.uri == DIARY:
        told = await Client(context).ask(questions.diary_consent())
        if not told.accepted or not ((told.answer or {}).get("content") or {}).get("promise"):
            raise MCPError(types.INVALID_PARAMS, "The captain keeps the diary closed.", {"uri": params.uri})
    mime_type, content = found_content(context, params.uri)
    if isinstance(content, bytes):
        blob = types.BlobResourceContents(uri=params.uri, mime_type=mime_type, blob=base64(content))
        return types.ReadResourceResult(contents=[blob])
    text = types.TextResourceContents(uri=params.uri, mime_type=mime_type, text=content)
    return types.ReadResourceResult(contents=[text])


async def subscribe(context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    found_content(context, params.uri)
    visitor = context.lifespan_context.visitor(context)
    visitor.session = context.session
    visitor.subscriptions.add(params.uri)
    return types.EmptyResult()


async def unsubscribe(context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    context.lifespan_context.visitor(context).subscriptions.discard(params.uri)
    return types.EmptyResult()
