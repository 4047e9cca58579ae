"""Tools that ask the client one thing: a form, a link, a model, its roots. Each can ask plainly or as a task.

Scenes with several asks are in `scenes.py`; how an ask travels is in `asking.py`.
"""

from secrets import token_urlsafe
from typing import Any

import anyio
import mcp_types as types
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field

from app.demo import questions
from app.demo.asking import Client, Collect, Manner, Question, Told, in_words
from app.demo.data import Slug
from app.demo.state import Context, Visitor
from app.demo.tools import Arguments, Toolbox, ToolError, structured

TOOLS = Toolbox()
MOST_SIGN_INS = 20


class AskArguments(Arguments):
    """How to ask; the arguments of every tool of this module begin with these."""

    as_task: bool = Field(default=False, description="Ask as a task of 2025-11-25: the client answers with a task.")
    ttl_ms: int | None = Field(default=None, ge=0, description="The lifetime to ask for, in milliseconds; for a task.")
    collect: Collect = Field(
        default="poll",
        description="For a task: poll `tasks/get` and then fetch `tasks/result`, or block in `tasks/result` at once.",
    )

    def manner(self, patience: float | None = None) -> Manner:
        return Manner(self.as_task, self.ttl_ms, self.collect, patience)


async def ask(context: Context, question: Question, arguments: AskArguments) -> types.CallToolResult:
    """Ask one question and return what the desk learned."""
    told = await Client(context).ask(question, arguments.manner())
    return structured(told, in_words(told))


# --- elicitation: forms


@TOOLS.offer("Ask for preferences", AskArguments, output=Told)
async def preferences(context: Context, arguments: AskArguments) -> types.CallToolResult:
    """Asks with a small form: the output format (required), the verbosity, and timestamps (yes, unless you say no)."""
    return await ask(context, questions.preferences(), arguments)


class EveryFieldArguments(AskArguments):
    defaults: bool = Field(default=True, description="Fill in what can be filled in; otherwise all fields are empty.")


@TOOLS.offer("Ask with every kind of field", EveryFieldArguments, output=Told)
async def every_field(context: Context, arguments: EveryFieldArguments) -> types.CallToolResult:
    """Asks with a long form: texts, formats, numbers, switches, choices and several choices, each with a default."""
    return await ask(context, questions.every_field(arguments.defaults), arguments)


# --- elicitation: links


def begin_sign_in(visitor: Visitor) -> str:
    """The id of a new sign-in. Only the last few can still be completed."""
    while len(visitor.sign_ins) >= MOST_SIGN_INS:
        del visitor.sign_ins[0]
    elicitation_id = f"sign-in-{token_urlsafe(12)}"
    visitor.sign_ins.append(elicitation_id)
    return elicitation_id


async def ask_to_sign_in(client: Client, manner: Manner) -> tuple[Told, str | None]:
    """Ask with a link; also the id of the sign-in, which is under way from now on if the person agreed."""
    elicitation_id = begin_sign_in(client.visitor)
    accepted = False
    try:
        told = await client.ask(questions.link(elicitation_id), manner)
        accepted = told.accepted
    finally:
        if not accepted and elicitation_id in client.visitor.sign_ins:
            client.visitor.sign_ins.remove(elicitation_id)
    return told, elicitation_id if accepted else None


async def complete_sign_in(
    visitor: Visitor, session: ServerSession, elicitation_id: str, related: types.RequestId | None = None
) -> None:
    """The visitor is signed in; tell the client, unless somebody already did."""
    if elicitation_id in visitor.sign_ins:
        visitor.sign_ins.remove(elicitation_id)
        visitor.signed_in = True
        await session.send_elicit_complete(elicitation_id, related)


class SignInArguments(AskArguments):
    completes_after: float = Field(
        default=0,
        ge=0,
        le=600,
        description="Seconds after your consent until the desk says that it is complete; 0 waits for confirm_sign_in.",
    )


@TOOLS.offer("Sign in by a link", SignInArguments, output=Told, changes=True)
async def sign_in(context: Context, arguments: SignInArguments) -> types.CallToolResult:
    """Asks to open a page, and later sends `notifications/elicitation/complete`: by itself or on confirm_sign_in."""
    client, session = Client(context), context.session
    told, under_way = await ask_to_sign_in(client, arguments.manner())

    async def complete_later(elicitation_id: str) -> None:
        await anyio.sleep(arguments.completes_after)
        await complete_sign_in(client.visitor, session, elicitation_id)

    if client.modern:
        client.visitor.signed_in = under_way is not None
        client.visitor.sign_ins.clear()  # nobody is told of the end: the next call shows it
    elif under_way is not None and arguments.completes_after:
        context.lifespan_context.errands.start_soon(complete_later, under_way)
    return structured(told, in_words(told))


class NoArguments(Arguments):
    """For tools that need nothing."""


class Completed(BaseModel):
    completed: list[str] = Field(description="The ids of the elicitations that are complete now.")


@TOOLS.offer("Confirm the sign-in", NoArguments, output=Completed, changes=True)
async def confirm_sign_in(context: Context, arguments: NoArguments) -> types.CallToolResult:
    """Plays the harbour office: completes every sign-in under way, with a notification for each."""
    client = Client(context)
    visitor = client.visitor
    if client.modern:
        raise ToolError(f"Links have no end of their own in {context.protocol_version}: call needs_sign_in again.")
    if not visitor.sign_ins:
        raise ToolError("No sign-in is under way. Call sign_in or needs_sign_in first.")
    completed = list(visitor.sign_ins)
    for elicitation_id in completed:
        await complete_sign_in(visitor, context.session, elicitation_id, context.request_id)
    return structured(Completed(completed=completed))


class NeedsSignInArguments(Arguments):
    forget: bool = Field(default=False, description="Sign out afterwards, so that the next call needs a new sign-in.")


@TOOLS.offer("Collect the tickets", NeedsSignInArguments, changes=True)
async def needs_sign_in(context: Context, arguments: NeedsSignInArguments) -> types.CallToolResult:
    """Works only for those who are signed in. Everybody else gets the link: in error -32042, or in a round."""
    client = Client(context)
    client.require(*questions.LINK)
    if client.modern:
        told, _ = await ask_to_sign_in(client, Manner())
        if not told.accepted:
            raise ToolError("Without the harbour office there are no tickets.")
    elif not client.visitor.signed_in:
        under_way = client.visitor.sign_ins
        params = questions.link_params(under_way[-1] if under_way else begin_sign_in(client.visitor))
        raise MCPError(
            types.URL_ELICITATION_REQUIRED,
            "Sign in with the harbour office first, then call again.",
            {"elicitations": [params]},
        )
    client.visitor.signed_in = not arguments.forget
    return types.CallToolResult(content=[types.TextContent(text="Here are your tickets. Mind the gap at the quay.")])


# --- sampling


class PlaceArguments(AskArguments):
    destination: Slug = Field(default="kestrelholm", description="Which place it is about.")


@TOOLS.offer("Have a caption written", PlaceArguments, output=Told)
async def write_caption(context: Context, arguments: PlaceArguments) -> types.CallToolResult:
    """Asks your model for a caption: a conversation with system prompt, preferences, temperature and stop words."""
    return await ask(context, questions.caption(arguments.destination), arguments)


@TOOLS.offer("Have a postcard described", PlaceArguments, output=Told)
async def describe_postcard(context: Context, arguments: PlaceArguments) -> types.CallToolResult:
    """Asks your model about a picture and a sound."""
    return await ask(context, questions.postcard(arguments.destination, context.protocol_version), arguments)


class ToolChoiceArguments(PlaceArguments):
    tool_choice: questions.ToolChoice = Field(default="auto", description="Whether the model may, must or must not.")
    rounds: int = Field(default=3, ge=1, le=10, description="The most often that the desk asks, tool results included.")


class Conversation(BaseModel):
    rounds: list[Told] = Field(description="What came of each round.")
    tools_used: list[str] = Field(description="The tools that the model wanted, in order.")


@TOOLS.offer("Ask a model with tools", ToolChoiceArguments, output=Conversation)
async def ask_with_tools(context: Context, arguments: ToolChoiceArguments) -> types.CallToolResult:
    """Asks your model with two tools to use. If it uses one, the desk runs it and asks again with its result."""
    conversation = await converse(Client(context), arguments)
    return structured(conversation, in_words(conversation.rounds[-1]))


async def converse(client: Client, arguments: ToolChoiceArguments) -> Conversation:
    """Ask, run the tools that the model wants, ask again; in the last round it may not want any."""
    messages, told, used = questions.opening(arguments.destination), list[Told](), list[str]()
    choice = arguments.tool_choice
    while True:
        told.append(await client.ask(questions.with_tools(messages, choice), arguments.manner()))
        blocks = questions.blocks_of(told[-1].answer)
        uses = [block for block in blocks if block.get("type") == "tool_use"]
        if not uses or len(told) == arguments.rounds:
            return Conversation(rounds=told, tools_used=used)
        used += [str(use.get("name")) for use in uses]
        results: list[dict[str, Any]] = [questions.tool_result(use) for use in uses]
        messages = [*messages, {"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
        choice = "none" if len(told) + 1 == arguments.rounds else "auto"


# --- roots


@TOOLS.offer("List your roots", NoArguments, output=Told)
async def list_roots(context: Context, arguments: NoArguments) -> types.CallToolResult:
    """Asks for the roots of your client and returns what it got. Roots have no tasks."""
    told = await Client(context).ask(questions.ROOTS)
    return structured(told, in_words(told))
