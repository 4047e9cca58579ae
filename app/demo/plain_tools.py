"""The ordinary tools of the desk: text, data, media, progress, large results, a long form, and two ways to fail.

None of them asks the client anything; those that do are in `asking_tools.py` and `scenes.py`.
"""

import math
from datetime import date, time, timedelta
from itertools import pairwise
from typing import Annotated, Literal, TypeAlias

import anyio
import mcp_types as types
from mcp.server.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field, WithJsonSchema

from app.demo.data import DESTINATIONS, Departure, Slug, base64, chime, departures, describe, picture
from app.demo.state import BOARD, Context, log, say
from app.demo.tools import Arguments, Toolbox, ToolError, structured

TOOLS = Toolbox()
CONTENT_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}


class EchoArguments(Arguments):
    message: str = Field(description="What the desk should say back.", examples=["Good morning!"])


@TOOLS.offer("Echo", EchoArguments)
async def echo(context: Context, arguments: EchoArguments) -> types.CallToolResult:
    """Says back what you said, unchanged."""
    return types.CallToolResult(content=[types.TextContent(text=arguments.message)])


Number: TypeAlias = Annotated[int | float, WithJsonSchema({"type": "number"})]


class AddArguments(Arguments):
    a: Number = Field(description="The first number.")
    b: Number = Field(description="The second number.")


class Sum(BaseModel):
    sum: Number = Field(description="a + b")


@TOOLS.offer("Add two numbers", AddArguments, output=Sum)
async def add(context: Context, arguments: AddArguments) -> types.CallToolResult:
    """Adds two numbers, with structured output and an output schema."""
    total = arguments.a + arguments.b
    if not math.isfinite(total):
        raise ToolError("That sum is larger than our till can count.")
    return structured(Sum(sum=total))


class SlowCountArguments(Arguments):
    steps: int = Field(default=5, ge=1, le=10_000, description="How many waves to count.")
    delay: float = Field(default=0.5, ge=0, le=60, description="Seconds to wait before each wave.")


@TOOLS.offer("Count waves, slowly", SlowCountArguments)
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


@TOOLS.offer("Fail as a tool", ToolErrorArguments)
async def tool_error(context: Context, arguments: ToolErrorArguments) -> types.CallToolResult:
    """Always fails, politely: with a result that has `isError`, which a model can read and learn from."""
    raise ToolError(arguments.reason)


class ProtocolErrorArguments(Arguments):
    code: int = Field(default=-32000, description="The JSON-RPC error code.")
    message: str = Field(default="The desk is closed for lunch.", description="The JSON-RPC error message.")


@TOOLS.offer("Fail as a protocol", ProtocolErrorArguments)
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


@TOOLS.offer("Send a postcard", PostcardArguments)
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


@TOOLS.offer("Print the timetable", TimetableArguments, output=Timetable)
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


@TOOLS.offer("Plan a trip", PlanTripArguments, output=Itinerary)
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


@TOOLS.offer("Move the board on", AdvanceBoardArguments, output=BoardStep, changes=True)
async def advance_board(context: Context, arguments: AdvanceBoardArguments) -> types.CallToolResult:
    """Moves the departure board on and tells every subscriber of desk://board that it has changed."""
    desk = context.lifespan_context
    desk.step += arguments.steps
    told = [visitor.session for visitor in desk.visitors.values() if BOARD in visitor.subscriptions]
    for session in told:
        if session is not None:
            await session.send_resource_updated(BOARD)
    await desk.bus.publish(ResourceUpdated(uri=BOARD))
    return structured(BoardStep(step=desk.step, notified=len(told)))
