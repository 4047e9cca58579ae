"""What the desk can ask: two forms, a link, and sampling with text, with tools and with media.

Owns the wording and the schemas, as they are on the wire. Pure: nothing here sends anything.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from app.demo.asking import Question
from app.demo.data import DESTINATIONS, base64, chime, picture

ToolChoice: TypeAlias = Literal["auto", "required", "none"]
FORM, LINK, SAMPLING = ("elicitation.form",), ("elicitation.url",), ("sampling",)
ROOTS = Question("roots/list", {}, ("roots",))
SIGN_IN_PAGE = "https://sign-in.nordwind.example/harbour"


def form(message: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"message": message, "requestedSchema": schema}


def preferences() -> Question:
    """A small form: one required choice, one optional, one that is true unless somebody says no."""
    properties = {
        "outputFormat": {
            "type": "string",
            "title": "Output format",
            "description": "How the desk should write to you.",
            "enum": ["json", "markdown", "plain"],
        },
        "verbosity": {
            "type": "string",
            "title": "Verbosity",
            "description": "How much it should say.",
            "enum": ["quiet", "normal", "verbose"],
        },
        "includeTimestamps": {
            "type": "boolean",
            "title": "Include timestamps",
            "description": "Put the time of departure on every line.",
            "default": True,
        },
    }
    # No `mode`: a form needs none, and clients of 2025-06-18 do not know the word.
    message = "How would you like the travel desk to write to you?"
    return Question("elicitation/create", form(message, properties, ["outputFormat"]), FORM)


def confirmation() -> Question:
    """A form with one switch."""
    properties = {"sure": {"type": "boolean", "title": "Yes, book it", "default": True}}
    return Question("elicitation/create", {"mode": "form", **form("Shall we book it?", properties, [])}, FORM)


def travellers() -> Question:
    """A small form for a prompt."""
    properties = {
        "who": {"type": "string", "title": "Who travels?", "minLength": 1, "maxLength": 80},
        "days": {"type": "integer", "title": "For how many days?", "minimum": 1, "maximum": 30, "default": 2},
    }
    message = "Before we write the packing list: who travels, and for how long?"
    return Question("elicitation/create", {"mode": "form", **form(message, properties, ["who"])}, FORM)


def diary_consent() -> Question:
    """A form before a resource is given out."""
    properties = {"promise": {"type": "boolean", "title": "I will not laugh", "default": False}}
    message = "This is the diary of the Dorothea's captain. Do you promise not to laugh?"
    return Question("elicitation/create", {"mode": "form", **form(message, properties, ["promise"])}, FORM)


# Every kind of field that a form may have (R4-04 to R4-08); those without a default are there to be left empty.
FIELDS: dict[str, dict[str, Any]] = {
    "name": {"type": "string", "title": "Name", "description": "2 to 40 letters.", "minLength": 2, "maxLength": 40},
    "nickname": {"type": "string", "title": "Nickname", "default": "Skipper"},
    "cabin": {"type": "string", "title": "Cabin number", "pattern": "^[A-D][0-9]{2}$", "default": "B12"},
    "email": {"type": "string", "title": "E-mail", "format": "email", "default": "ida@nordwind.example"},
    "homepage": {"type": "string", "title": "Homepage", "format": "uri", "default": "https://nordwind.example/ida"},
    "birthday": {"type": "string", "title": "Birthday", "format": "date", "default": "1990-05-04"},
    "boarding": {"type": "string", "title": "Boarding", "format": "date-time", "default": "2027-03-01T06:30:00Z"},
    "notes": {"type": "string", "title": "Notes", "description": "May stay empty.", "maxLength": 500},
    "adults": {"type": "integer", "title": "Adults", "minimum": 1, "maximum": 6},
    "children": {"type": "integer", "title": "Children", "minimum": 0, "maximum": 6, "default": 0},
    "budget": {"type": "number", "title": "Budget", "minimum": 0, "maximum": 5000, "default": 199.5},
    "weight": {"type": "number", "title": "Luggage in kg", "description": "May stay empty.", "minimum": 0},
    "window": {"type": "boolean", "title": "Window seat", "default": True},
    "dog": {"type": "boolean", "title": "A dog comes along", "default": False},
    "newsletter": {"type": "boolean", "title": "Newsletter", "description": "No default: say yes, no or nothing."},
    "berth": {"type": "string", "title": "Berth", "enum": ["deck chair", "bunk", "suite"], "default": "bunk"},
    "destination": {
        "type": "string",
        "title": "Destination",
        "oneOf": [{"const": slug, "title": place.name} for slug, place in DESTINATIONS.items()],
        "default": "kestrelholm",
    },
    "currency": {
        "type": "string",
        "title": "Currency",
        "enum": ["EUR", "NOK", "SEK"],
        "enumNames": ["Euro", "Norwegian crown", "Swedish crown"],
        "default": "NOK",
    },
    "meals": {
        "type": "array",
        "title": "Meals",
        "description": "One or two.",
        "items": {"type": "string", "enum": ["breakfast", "lunch", "dinner"]},
        "minItems": 1,
        "maxItems": 2,
        "default": ["breakfast"],
    },
    "stops": {
        "type": "array",
        "title": "Stops on the way",
        "description": "At most three.",
        "items": {"anyOf": [{"const": slug, "title": place.name} for slug, place in DESTINATIONS.items()]},
        "maxItems": 3,
        "default": ["saltmere", "tindra"],
    },
}


def every_field(defaults: bool = True) -> Question:
    """The long form, with its defaults or as bare fields."""
    properties = {
        name: {key: value for key, value in schema.items() if defaults or key != "default"}
        for name, schema in FIELDS.items()
    }
    message = "A form with every kind of field there is. Name, adults and destination are required."
    params = {"mode": "form", **form(message, properties, ["name", "adults", "destination"])}
    return Question("elicitation/create", params, FORM)


def link(elicitation_id: str) -> Question:
    """A page to open: the desk does not see what happens there."""
    return Question("elicitation/create", link_params(elicitation_id), LINK)


def link_params(elicitation_id: str) -> dict[str, Any]:
    return {
        "mode": "url",
        "elicitationId": elicitation_id,
        "url": f"{SIGN_IN_PAGE}?visit={elicitation_id}",
        "message": "Please sign in with the harbour office. (The page is invented: nothing will load.)",
    }


def sampling(messages: list[dict[str, Any]], **more: Any) -> Question:
    needs = ("sampling.tools",) if "tools" in more else SAMPLING
    return Question("sampling/createMessage", {"messages": messages, "maxTokens": 200, **more}, needs)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def caption(slug: str) -> Question:
    """Sampling with everything that a plain request may carry."""
    place = DESTINATIONS[slug]
    wish = f"Write a caption of at most twelve words for a postcard from {place.name}: {place.summary}."
    return sampling(
        [
            {"role": "user", "content": text("We print postcards. They are honest.")},
            {"role": "assistant", "content": text("Understood. What does the picture show?")},
            {"role": "user", "content": text(wish)},
        ],
        systemPrompt="You write for a small ferry company. You never use exclamation marks.",
        modelPreferences={
            "hints": [{"name": "small"}, {"name": "haiku"}],
            "costPriority": 0.8,
            "speedPriority": 0.6,
            "intelligencePriority": 0.2,
        },
        includeContext="none",
        temperature=0.7,
        stopSequences=["\n\n"],
        metadata={"desk": "nordwind", "postcard": slug},
    )


def postcard(slug: str, revision: str) -> Question:
    """Sampling with a picture and a sound: in one message where the revision allows it, else one message each."""
    place = DESTINATIONS[slug]
    parts = [
        text(f"This is {place.name}, and the chime that calls for boarding. What do you see and hear?"),
        {"type": "image", "data": base64(picture(slug)), "mimeType": "image/png"},
    ]
    if revision >= "2025-03-26":
        parts.append({"type": "audio", "data": base64(chime()), "mimeType": "audio/wav"})
    if revision >= "2025-11-25":
        return sampling([{"role": "user", "content": parts}])
    return sampling([{"role": "user", "content": part} for part in parts])


# The tools that a model may use while it answers, and what they need.
MODEL_TOOLS = [
    {
        "name": "find_ferry",
        "title": "Find a ferry",
        "description": "Which days the ferry sails to a destination, and what it costs.",
        "inputSchema": {
            "type": "object",
            "properties": {"destination": {"type": "string", "enum": list(DESTINATIONS)}},
            "required": ["destination"],
        },
    },
    {
        "name": "weather",
        "description": "The weather at a destination on a day of the week.",
        "inputSchema": {
            "type": "object",
            "properties": {"destination": {"type": "string"}, "weekday": {"type": "string"}},
            "required": ["destination"],
        },
    },
]


def with_tools(messages: list[dict[str, Any]], choice: ToolChoice) -> Question:
    """Sampling in which the model may, must or must not use the tools above."""
    return sampling(messages, tools=MODEL_TOOLS, toolChoice={"mode": choice})


def opening(slug: str) -> list[dict[str, Any]]:
    """The first message of a conversation with tools."""
    wish = f"When can I sail to {DESTINATIONS[slug].name}, and what does it cost? Use the tools."
    return [{"role": "user", "content": text(wish)}]


def blocks_of(answer: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The content blocks of a sampling answer, which may be one or several."""
    content = (answer or {}).get("content", [])
    blocks = content if isinstance(content, list) else [content]
    return [block for block in blocks if isinstance(block, dict)]


def tool_result(use: Mapping[str, Any]) -> dict[str, Any]:
    """What the tool says that the model wanted to use."""
    given = use.get("input")
    slug = str(given.get("destination", "")).lower() if isinstance(given, dict) else ""
    place, name = DESTINATIONS.get(slug), use.get("name")
    result: dict[str, Any] = {"type": "tool_result", "toolUseId": use.get("id", "")}
    if place is None or name not in ("find_ferry", "weather"):
        return {**result, "content": [text(f"There is no {name} for {slug or 'nowhere'}.")], "isError": True}
    if name == "weather":
        return {**result, "content": [text(f"In {place.name} it is fine. It always is; we invented it.")]}
    facts = {"days": list(place.days), "fare": place.fare}
    words = text(f"To {place.name} on {' and '.join(place.days)}, from {place.fare} EUR.")
    return {**result, "content": [words], "structuredContent": facts}
