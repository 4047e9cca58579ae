"""The prompts of the desk, and the completion of the arguments of prompts and of resource templates."""

from collections.abc import Sequence

import mcp_types as types
from mcp.shared.exceptions import MCPError

from app.demo import questions
from app.demo.asking import Client
from app.demo.data import DESTINATIONS, MOODS, base64, describe, picture
from app.demo.state import Context

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
        name="packing_list",
        title="Packing list",
        description="Asks who travels, and for how long, before it is written.",
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
    if prompt.name == "caption_picture":
        image = types.ImageContent(data=base64(picture(slug)), mime_type="image/png")
        messages = [
            message("user", types.TextContent(text=f"This is {name}. Here is a picture, and what we say about it.")),
            message("user", image),
            message("user", page),
            message("assistant", types.TextContent(text="What a view! Shall the caption be funny or honest?")),
            message("user", types.TextContent(text="Honest, in at most twelve words.")),
        ]
        return types.GetPromptResult(description=prompt.description, messages=messages)
    if prompt.name == "packing_list":
        told = await Client(context).ask(questions.travellers())
        content = (told.answer or {}).get("content") or {}
        who, days = (content.get("who"), content.get("days", 2)) if told.accepted else ("somebody", 2)
        wish = f"Write a packing list for {who}: {days} days in {name}. Use the page below."
    else:
        wish = f"Plan two days in {name} for me. The mood: {given.get('mood') or 'quiet'}. Use the page below."
    messages = [message("user", types.TextContent(text=wish)), message("user", page)]
    return types.GetPromptResult(description=prompt.description, messages=messages)


async def complete(context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    about = params.ref.name if isinstance(params.ref, types.PromptReference) else params.ref.uri
    earlier = (params.context.arguments if params.context else None) or {}
    choices: Sequence[str] = ()
    match about, params.argument.name:
        case ("plan_weekend" | "caption_picture" | "packing_list", "destination"):
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
