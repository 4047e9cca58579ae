"""The built-in demo server, "Nordwind Travel Desk": a real MCP server with something of every kind to inspect.

Owns its tools, resources, prompts and the two ways to serve them: `python -m app.demo.server` speaks stdio,
`--http --port N` speaks streamable HTTP on loopback. It is a separate program: it imports nothing else of Parley and
knows nothing of the inspector that looks at it. Built on the low-level `Server`, so that every request and every
result on the wire is in our own hands. All places, ferries and people are invented.
"""
# ruff: noqa: E402 - the signal handlers stand before the import of the SDK, see there

import argparse
import gc
import json
import math
import os
import signal
import socket
import struct
import sys
import warnings
import wave
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from functools import cache
from inspect import cleandoc
from io import BytesIO
from itertools import pairwise
from types import FrameType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args


def leave(signal_number: int, frame: FrameType | None) -> None:
    """End at once: the SDK's stdin reader waits in a thread that no cancellation reaches, and nothing needs saving."""
    os._exit(0)


if __name__ == "__main__":  # before the SDK, whose import takes long enough for somebody to press Ctrl-C
    gc.disable()  # and which makes only objects that stay: no use looking for garbage, neither now nor at the end
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.uri_template import UriTemplate
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

DEFAULT_PORT = 6281
RESOURCES_PER_PAGE = 4
MOST_SESSIONS = 256
RESOURCE_NOT_FOUND = -32002  # until 2025-11-25; later revisions say "invalid params"
BOARD = "desk://board"
LOG_LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
CONTENT_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}

INSTRUCTIONS = """\
You are talking to the Nordwind Travel Desk, a demo server: every place and every ferry in it is invented.
Start with `echo` and `add`. `slow_count` reports progress and can be cancelled, `postcard` returns media,
`timetable` returns as much JSON as you like, and `plan_trip` has the long form. `advance_board` changes the
resource desk://board and tells everybody who subscribed to it. `tool_error` and `protocol_error` fail on purpose."""


# --- the invented world


@dataclass(frozen=True, slots=True)
class Destination:
    """One place the ferries go to."""

    name: str
    summary: str
    sky: tuple[int, int, int]
    fare: int
    days: tuple[str, ...]


DESTINATIONS = {
    "brackenhus": Destination(
        "Brackenhus", "a lake hut with a stove, a boat and no clock", (120, 160, 110), 64, ("monday", "thursday")
    ),
    "hollowfjord": Destination(
        "Hollowfjord", "steep water, echoing walls and one very good bakery", (90, 120, 170), 88, ("tuesday", "friday")
    ),
    "kestrelholm": Destination(
        "Kestrelholm", "red boathouses and a lighthouse that hums", (225, 130, 95), 42, ("monday", "friday", "sunday")
    ),
    "saltmere": Destination(
        "Saltmere", "flat marshes, loud birds, long evenings", (235, 180, 110), 35, ("wednesday", "saturday")
    ),
    "tindra": Destination("Tindra", "an island for looking at stars", (60, 60, 120), 120, ("saturday",)),
}
Slug: TypeAlias = Literal["brackenhus", "hollowfjord", "kestrelholm", "saltmere", "tindra"]
MOODS = ("festive", "quiet", "windswept")
FERRIES = ("Aurelia", "Bluebell", "Corvina", "Dorothea")
STATUSES = ("on time", "boarding", "departed", "back at the quay")


class Departure(BaseModel):
    """One line of a timetable."""

    number: str
    ferry: str
    destination: str
    leaves_at: str
    fare: float
    seats: dict[str, int]
    aboard: list[str]


def departures(count: int) -> Iterator[Departure]:
    """The first `count` departures, the same ones every time."""
    places = list(DESTINATIONS.values())
    for index in range(count):
        place = places[index % len(places)]
        yield Departure(
            number=f"NW{1000 + index}",
            ferry=FERRIES[index % len(FERRIES)],
            destination=place.name,
            leaves_at=f"{5 + index % 18:02}:{index * 7 % 60:02}",
            fare=place.fare + index % 10 / 2,
            seats={"inside": 120 - index % 90, "deck": index % 40},
            aboard=["bicycles", "dogs", "soup"][: 1 + index % 3],
        )


@cache
def picture(slug: str, width: int = 240, height: int = 150) -> bytes:
    """A PNG of the view: a sky with one palette entry per row, a sun, two ranges of hills and the sea."""
    sky = DESTINATIONS[slug].sky
    sun, far, near, sea = height, height + 1, height + 2, height + 3
    palette = bytearray()
    for y in range(height):
        palette += bytes(min(255, part + (255 - part) * y // (height + height // 3)) for part in sky)
    palette += bytes((255, 240, 200)) + bytes(part * 3 // 5 for part in sky) + bytes(part * 2 // 5 for part in sky)
    palette += bytes((40, 70, 100))
    shift = sum(slug.encode())
    far_edge = [height * 0.55 - height * 0.16 * math.sin((x * 3 + shift) * math.tau / width) for x in range(width)]
    near_edge = [height * 0.70 - height * 0.10 * math.sin((x * 5 - shift) * math.tau / width) for x in range(width)]
    rows = bytearray()
    for y in range(height):
        row = bytearray([y]) * width
        for x in range(width):
            if math.hypot(x - width * 0.72, y - height * 0.30) < height * 0.13:
                row[x] = sun
            if y > far_edge[x]:
                row[x] = far
            if y > near_edge[x]:
                row[x] = near
            if y > height * 0.82:
                row[x] = sea
        rows += b"\0" + row

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"PLTE", bytes(palette)) + chunk(b"IDAT", zlib.compress(bytes(rows), 9))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


@cache
def chime() -> bytes:
    """A WAV of the three notes that call for boarding: 0.6 seconds, 8 kHz, 16 bit, mono."""
    rate, samples = 8000, bytearray()
    for frequency in (523.25, 659.25, 783.99):
        for tick in range(rate // 5):
            loudness = 12000 * math.exp(-tick / 700)
            samples += struct.pack("<h", int(loudness * math.sin(math.tau * frequency * tick / rate)))
    target = BytesIO()
    with wave.open(target, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(bytes(samples))
    return target.getvalue()


def base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


# --- the state of the desk


@dataclass(slots=True)
class Visitor:
    """What the desk remembers of one connection."""

    log_level: types.LoggingLevel = "info"
    session: ServerSession | None = None
    subscriptions: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Desk:
    """What changes while the server runs: the departure board, and the visitors by their session."""

    step: int = 0
    visitors: dict[str, Visitor] = field(default_factory=dict)

    def visitor(self, context: "Context") -> Visitor:
        """The visitor who sent this request. Over stdio there is only one; over HTTP the oldest is forgotten first."""
        key = context.request.headers.get("mcp-session-id", "") if context.request is not None else ""
        if key not in self.visitors and len(self.visitors) >= MOST_SESSIONS:
            del self.visitors[next(iter(self.visitors))]
        return self.visitors.setdefault(key, Visitor())

    def board(self) -> str:
        """The departure board as it stands now, as JSON."""
        lines = [line.model_dump(include={"number", "ferry", "destination", "leaves_at"}) for line in departures(5)]
        for index, line in enumerate(lines):
            line["status"] = STATUSES[max(0, self.step - index) % len(STATUSES)]
        return json.dumps({"step": self.step, "departures": lines})


@asynccontextmanager
async def open_desk(server: Server[Desk]) -> AsyncIterator[Desk]:
    """The lifespan of the server: one desk, shared by all its connections."""
    yield Desk()


Context: TypeAlias = ServerRequestContext[Desk, Any]


async def log(context: Context, level: types.LoggingLevel, data: str) -> None:
    """Send a log message, if its level is one that this visitor asked for."""
    wanted = context.lifespan_context.visitor(context).log_level
    # In the modern era each request names its own level, and the SDK applies it.
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS or LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted):
        await context.session.send_log_message(level, data, "nordwind.desk", related_request_id=context.request_id)


def say(line: str) -> None:
    """One friendly line on stderr, which belongs to people in both transports."""
    sys.stderr.write(f"[nordwind] {line}\n")
    sys.stderr.flush()


# --- tools


class Arguments(BaseModel):
    """The base of all tool arguments: what is not in the schema is refused."""

    model_config = ConfigDict(extra="forbid")


class ToolError(Exception):
    """A failure that the caller should read: it becomes a result with `isError`, never a JSON-RPC error."""


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)
ItemT = TypeVar("ItemT")
ToolFunction: TypeAlias = Callable[[Context, ArgumentsT], Awaitable[types.CallToolResult]]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as it is listed, and the function that checks its arguments and runs it."""

    listed: types.Tool
    run: Callable[[Context, dict[str, Any]], Awaitable[types.CallToolResult]]


TOOLS: dict[str, OfferedTool] = {}


def tool(
    title: str, arguments: type[ArgumentsT], output: type[BaseModel] | None = None, changes: bool = False
) -> Callable[[ToolFunction[ArgumentsT]], ToolFunction[ArgumentsT]]:
    """Offer the decorated function as a tool: its name and docstring are the tool's name and description."""

    def offer(function: ToolFunction[ArgumentsT]) -> ToolFunction[ArgumentsT]:
        async def run(context: Context, given: dict[str, Any]) -> types.CallToolResult:
            try:
                return await function(context, arguments.model_validate(given))
            except ValidationError as error:
                lines = [f"- {'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors()]
                return failed("The desk cannot read this form:\n" + "\n".join(lines))
            except ToolError as error:
                return failed(str(error))

        listed = types.Tool(
            name=function.__name__,
            title=title,
            description=cleandoc(function.__doc__ or ""),
            input_schema=schema_of(arguments),
            output_schema=schema_of(output) if output else None,
            annotations=types.ToolAnnotations(
                title=title,
                read_only_hint=not changes,
                destructive_hint=False,
                idempotent_hint=not changes,
                open_world_hint=False,
            ),
        )
        TOOLS[listed.name] = OfferedTool(listed, run)
        return function

    return offer


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of a model, without the name and docstring of our Python class at its root."""
    schema = model.model_json_schema()
    return {key: value for key, value in schema.items() if key not in ("title", "description")}


def failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def structured(value: BaseModel) -> types.CallToolResult:
    """A result that says the same twice, as the specification asks: as data, and as text for older clients."""
    data = value.model_dump(mode="json")
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(data))], structured_content=data)


class EchoArguments(Arguments):
    message: str = Field(description="What the desk should say back.", examples=["Good morning!"])


@tool("Echo", EchoArguments)
async def echo(context: Context, arguments: EchoArguments) -> types.CallToolResult:
    """Says back what you said, unchanged."""
    return types.CallToolResult(content=[types.TextContent(text=arguments.message)])


Number: TypeAlias = Annotated[int | float, WithJsonSchema({"type": "number"})]


class AddArguments(Arguments):
    a: Number = Field(description="The first number.")
    b: Number = Field(description="The second number.")


class Sum(BaseModel):
    sum: Number = Field(description="a + b")


@tool("Add two numbers", AddArguments, output=Sum)
async def add(context: Context, arguments: AddArguments) -> types.CallToolResult:
    """Adds two numbers, with structured output and an output schema."""
    total = arguments.a + arguments.b
    if not math.isfinite(total):
        raise ToolError("That sum is larger than our till can count.")
    return structured(Sum(sum=total))


class SlowCountArguments(Arguments):
    steps: int = Field(default=5, ge=1, le=10_000, description="How many waves to count.")
    delay: float = Field(default=0.5, ge=0, le=60, description="Seconds to wait before each wave.")


@tool("Count waves, slowly", SlowCountArguments)
async def slow_count(context: Context, arguments: SlowCountArguments) -> types.CallToolResult:
    """Counts waves from the quay, with progress and a log message for each one. Cancel it whenever you like."""
    steps, step = arguments.steps, 0
    await log(context, "debug", f"Counting {steps} waves, {arguments.delay:g} s apart.")
    try:
        for step in range(1, steps + 1):
            await anyio.sleep(arguments.delay)
            await context.session.report_progress(step, steps, f"Wave {step} of {steps}")
            await log(context, "info", f"Wave {step} came in.")
    except anyio.get_cancelled_exc_class():
        say(f"slow_count was cancelled at wave {step} of {steps}.")
        raise
    await log(context, "notice", f"All {steps} waves are in.")
    return types.CallToolResult(content=[types.TextContent(text=f"Counted {steps} waves.")])


class ToolErrorArguments(Arguments):
    reason: str = Field(default="The Dorothea is fully booked.", description="What the error should say.")


@tool("Fail as a tool", ToolErrorArguments)
async def tool_error(context: Context, arguments: ToolErrorArguments) -> types.CallToolResult:
    """Always fails, politely: with a result that has `isError`, which a model can read and learn from."""
    raise ToolError(arguments.reason)


class ProtocolErrorArguments(Arguments):
    code: int = Field(default=-32000, description="The JSON-RPC error code.")
    message: str = Field(default="The desk is closed for lunch.", description="The JSON-RPC error message.")


@tool("Fail as a protocol", ProtocolErrorArguments)
async def protocol_error(context: Context, arguments: ProtocolErrorArguments) -> types.CallToolResult:
    """Always fails, abruptly: the request is answered with a JSON-RPC error instead of a result."""
    raise MCPError(arguments.code, arguments.message, {"tool": "protocol_error", "opens_again_at": "13:30"})


Part: TypeAlias = Literal["image", "audio", "link", "embedded"]


class PostcardArguments(Arguments):
    destination: Slug = Field(default="kestrelholm", description="Where the postcard comes from.")
    include: list[Part] = Field(
        default=["image", "audio", "link", "embedded"],
        description="What comes with it.",
        json_schema_extra={"uniqueItems": True},
    )


@tool("Send a postcard", PostcardArguments)
async def postcard(context: Context, arguments: PostcardArguments) -> types.CallToolResult:
    """Returns a text with an image, a sound, links to resources and an embedded resource."""
    slug = arguments.destination
    place, uri = DESTINATIONS[slug], f"desk://destinations/{slug}"
    parts: dict[str, list[types.ContentBlock]] = {
        "image": [types.ImageContent(data=base64(picture(slug)), mime_type="image/png")],
        "audio": [types.AudioContent(data=base64(chime()), mime_type="audio/wav")],
        "link": [
            types.ResourceLink(name=slug, title=place.name, uri=uri, mime_type="text/markdown"),
            types.ResourceLink(name="board", title="Departure board", uri=BOARD, mime_type="application/json"),
        ],
        "embedded": [
            types.EmbeddedResource(
                resource=types.TextResourceContents(uri=uri, mime_type="text/markdown", text=describe(slug)),
                annotations=types.Annotations(audience=["user"], priority=0.5),
            )
        ],
    }
    content: list[types.ContentBlock] = [types.TextContent(text=f"Greetings from {place.name}: {place.summary}.")]
    for block in (block for kind in arguments.include for block in parts[kind]):
        if context.protocol_version < CONTENT_SINCE.get(block.type, ""):
            content.append(types.TextContent(text=f"({block.type} left out: this revision does not know it)"))
        else:
            content.append(block)
    return types.CallToolResult(content=content)


class TimetableArguments(Arguments):
    count: int = Field(default=1000, ge=0, le=50_000, description="How many departures to return.")


class Timetable(BaseModel):
    departures: list[Departure]


@tool("Print the timetable", TimetableArguments, output=Timetable)
async def timetable(context: Context, arguments: TimetableArguments) -> types.CallToolResult:
    """Returns a large JSON result: one object for each departure, about 200 bytes each, as data and as text."""
    return structured(Timetable(departures=list(departures(arguments.count))))


class Traveller(BaseModel):
    name: str = Field(min_length=1, max_length=80, description="As it is written in the passport.")
    born: date = Field(description="Date of birth.")
    email: str | None = Field(default=None, json_schema_extra={"format": "email"}, description="For the ticket.")
    meals: Literal["anything", "vegetarian", "vegan", "fish only"] = Field(default="anything")


class Budget(BaseModel):
    amount: float = Field(gt=0, description="The most it may cost, for everybody together.")
    currency: Literal["EUR", "NOK", "SEK"] = Field(default="EUR")


class PlanTripArguments(Arguments):
    destination: Slug = Field(description="Where to go.")
    leaves_on: date = Field(description="The day of departure.")
    returns_on: date | None = Field(default=None, description="The day of return; leave it out for a one-way trip.")
    wake_up_at: time | None = Field(default=None, description="Somebody knocks on the cabin door.")
    cabin: Literal["deck chair", "bunk", "suite"] = Field(default="bunk", description="How to sleep on board.")
    travellers: list[Traveller] = Field(min_length=1, max_length=6, description="Who comes along.")
    stops: list[Slug] = Field(
        default=[], max_length=3, json_schema_extra={"uniqueItems": True}, description="Places to visit on the way."
    )
    budget: Budget | None = Field(default=None, description="Only if it matters.")
    flexible: bool = Field(default=False, description="A day earlier or later is fine.")
    notes: str = Field(default="", max_length=2000, description="Anything the crew should know.")


class Itinerary(BaseModel):
    reference: str
    nights: int | None
    travellers: int
    legs: list[str]
    total: float
    currency: str
    within_budget: bool | None


@tool("Plan a trip", PlanTripArguments, output=Itinerary)
async def plan_trip(context: Context, arguments: PlanTripArguments) -> types.CallToolResult:
    """Works out a journey and its price from a long form: enums, dates, nested objects, lists and optional fields."""
    if arguments.returns_on and arguments.returns_on < arguments.leaves_on:
        raise ToolError("The return is before the departure. Our ferries only go forwards in time.")
    route = ["Nordwind Quay", *(DESTINATIONS[slug].name for slug in (*arguments.stops, arguments.destination))]
    nights: timedelta | None = arguments.returns_on - arguments.leaves_on if arguments.returns_on else None
    fares = sum(DESTINATIONS[slug].fare for slug in (*arguments.stops, arguments.destination))
    berth = {"deck chair": 0, "bunk": 25, "suite": 140}[arguments.cabin]
    total = float((fares * (2 if nights is not None else 1) + berth) * len(arguments.travellers))
    itinerary = Itinerary(
        reference=f"NW-{arguments.leaves_on:%y%m%d}-{arguments.destination[:3].upper()}",
        nights=nights.days if nights is not None else None,
        travellers=len(arguments.travellers),
        legs=[f"{start} to {end}" for start, end in pairwise(route)],
        total=total,
        currency=arguments.budget.currency if arguments.budget else "EUR",
        within_budget=total <= arguments.budget.amount if arguments.budget else None,
    )
    return structured(itinerary)


class AdvanceBoardArguments(Arguments):
    steps: int = Field(default=1, ge=1, le=100, description="How many steps to move it on.")


class BoardStep(BaseModel):
    step: int
    notified: int = Field(description="How many subscribed connections were told.")


@tool("Move the board on", AdvanceBoardArguments, output=BoardStep, changes=True)
async def advance_board(context: Context, arguments: AdvanceBoardArguments) -> types.CallToolResult:
    """Moves the departure board on and tells every subscriber of desk://board that it has changed."""
    desk = context.lifespan_context
    desk.step += arguments.steps
    told = [visitor.session for visitor in desk.visitors.values() if BOARD in visitor.subscriptions]
    for session in told:
        if session is not None:
            await session.send_resource_updated(BOARD)
    return structured(BoardStep(step=desk.step, notified=len(told)))


async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[offered.listed for offered in TOOLS.values()])


async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    offered = TOOLS.get(params.name)
    if offered is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await offered.run(context, params.arguments or {})


# --- resources


def describe(slug: str) -> str:
    """A Markdown page about one destination."""
    place = DESTINATIONS[slug]
    return (
        f"# {place.name}\n\n*{place.summary.capitalize()}.*\n\n| | |\n|---|---|\n"
        f"| fare from | {place.fare} EUR |\n| sails on | {', '.join(place.days)} |\n\n"
        f"Ask the desk for `desk://departures/{slug}/{place.days[0]}`.\n"
    )


HOURS = """\
Nordwind Travel Desk, Quay 4

Monday to Friday  08:00 - 18:00 (lunch 12:30 - 13:30)
Saturday          09:00 - 14:00
"""
GUIDE = """\
# Welcome to the Nordwind Travel Desk

Everything here is *invented*, and everything works:

1. Read `desk://destinations` and choose a place.
2. Call `plan_trip` with your dates.
3. Subscribe to `desk://board`, then call `advance_board`.

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
        modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        raise MCPError(types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})
    return content


async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
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


# --- prompts and completion

DESTINATION_ARGUMENT = types.PromptArgument(
    name="destination", title="Destination", description="One of our places.", required=True
)
PROMPTS = [
    types.Prompt(
        name="plan_weekend",
        title="Plan a weekend",
        description="Asks the model for two days somewhere, in a mood of your choice.",
        arguments=[
            DESTINATION_ARGUMENT,
            types.PromptArgument(name="mood", title="Mood", description="How it should feel.", required=False),
        ],
    ),
    types.Prompt(
        name="caption_picture",
        title="Caption a picture",
        description="A conversation with an image and an embedded resource.",
        arguments=[DESTINATION_ARGUMENT],
    ),
    types.Prompt(
        name="phrase_of_the_day", title="Phrase of the day", description="A prompt without arguments.", arguments=[]
    ),
]


def message(role: types.Role, content: types.ContentBlock) -> types.PromptMessage:
    return types.PromptMessage(role=role, content=content)


async def list_prompts(context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=PROMPTS)


async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    prompt = next((prompt for prompt in PROMPTS if prompt.name == params.name), None)
    if prompt is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    given = params.arguments or {}
    if prompt.name == "phrase_of_the_day":
        text = types.TextContent(text="Invent a short, kind phrase that a ferry captain would say in fog.")
        return types.GetPromptResult(description=prompt.description, messages=[message("user", text)])
    slug = given.get("destination", "").lower()
    if slug not in DESTINATIONS:
        known = ", ".join(DESTINATIONS)
        raise MCPError(types.INVALID_PARAMS, f"The argument 'destination' must be one of: {known}")
    page = types.EmbeddedResource(
        resource=types.TextResourceContents(
            uri=f"desk://destinations/{slug}", mime_type="text/markdown", text=describe(slug)
        )
    )
    name = DESTINATIONS[slug].name
    if prompt.name == "plan_weekend":
        wish = f"Plan two days in {name} for me. The mood: {given.get('mood') or 'quiet'}. Use the page below."
        messages = [message("user", types.TextContent(text=wish)), message("user", page)]
    else:
        image = types.ImageContent(data=base64(picture(slug)), mime_type="image/png")
        messages = [
            message("user", types.TextContent(text=f"This is {name}. Here is a picture, and what we say about it.")),
            message("user", image),
            message("user", page),
            message("assistant", types.TextContent(text="What a view! Shall the caption be funny or honest?")),
            message("user", types.TextContent(text="Honest, in at most twelve words.")),
        ]
    return types.GetPromptResult(description=prompt.description, messages=messages)


async def complete(context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    about = params.ref.name if isinstance(params.ref, types.PromptReference) else params.ref.uri
    earlier = (params.context.arguments if params.context else None) or {}
    choices: Sequence[str] = ()
    match about, params.argument.name:
        case ("plan_weekend" | "caption_picture", "destination"):
            choices = list(DESTINATIONS)
        case ("plan_weekend", "mood"):
            choices = MOODS
        case ("desk://destinations/{slug}" | "desk://departures/{slug}/{weekday}", "slug"):
            choices = list(DESTINATIONS)
        case ("desk://departures/{slug}/{weekday}", "weekday"):
            place = DESTINATIONS.get(earlier.get("slug", ""))
            choices = place.days if place else sorted({day for place in DESTINATIONS.values() for day in place.days})
    values = [choice for choice in choices if choice.startswith(params.argument.value.lower())]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


# --- serving


async def set_log_level(context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    context.lifespan_context.visitor(context).log_level = params.level
    return types.EmptyResult()


def build_server() -> Server[Desk]:
    """The demo server, ready to be run on any pair of streams."""
    server = Server[Desk](
        "nordwind-travel-desk",
        version="1.0.0",
        title="Nordwind Travel Desk",
        description="The demo server that comes with Parley.",
        instructions=INSTRUCTIONS,
        icons=[
            types.Icon(
                src="data:image/png;base64," + base64(picture("kestrelholm", 48, 48)),
                mime_type="image/png",
                sizes=["48x48"],
            )
        ],
        lifespan=open_desk,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_log_level)
    return server


async def serve_stdio() -> None:
    """Serve one connection on stdin and stdout until stdin closes."""
    server = build_server()
    say("The Nordwind Travel Desk is open on stdio. Close stdin or press Ctrl-C to go home.")
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


async def serve_http(listener: socket.socket) -> None:
    """Serve any number of connections over streamable HTTP until a signal comes."""
    import uvicorn

    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    app = build_server().streamable_http_app()
    config = uvicorn.Config(app, log_level="critical", access_log=False, ws="none", timeout_graceful_shutdown=1)
    say(f"The Nordwind Travel Desk is open at {url} - press Ctrl-C to close it.")
    sys.stdout.write(url + "\n")
    sys.stdout.flush()
    await uvicorn.Server(config).serve(sockets=[listener])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo server as the command line says and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m app.demo.server", description="The demo MCP server of Parley.")
    parser.add_argument("--http", action="store_true", help="serve streamable HTTP on loopback instead of stdio")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="for --http; 0 takes any free port")
    options = parser.parse_args(arguments)
    # Logging, roots and sampling are deprecated since 2026-07-28, and exactly what people come to see here.
    warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
    if options.http:
        try:
            listener = socket.create_server(("127.0.0.1", options.port))
        except (OSError, OverflowError) as error:
            say(f"Port {options.port} cannot be used: {error}.")
            return 1
        anyio.run(serve_http, listener)
        return 0
    try:
        anyio.run(serve_stdio)
    except* BrokenPipeError:
        say("Nobody reads stdout any more; going home.")
    return 0


if __name__ == "__main__":
    gc.freeze()
    gc.enable()
    sys.exit(main())
