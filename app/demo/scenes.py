"""Tools in which more happens than one ask: several at once, a change of mind, a parade of everything.

The single asks are in `asking_tools.py`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import anyio
import mcp_types as types
from pydantic import BaseModel, Field

from app.demo import questions
from app.demo.asking import PLAINLY, Client, Manner, Question, Told, in_words, lacking
from app.demo.asking_tools import AskArguments, ToolChoiceArguments, ask_to_sign_in, complete_sign_in, converse
from app.demo.state import Context, log
from app.demo.tools import Arguments, Toolbox, ToolError, structured

TOOLS = Toolbox()
Subject: TypeAlias = Literal["form", "link", "caption"]


def question_about(subject: Subject, elicitation_id: str = "") -> Question:
    """One question of each kind, for the scenes where the kind is all that matters."""
    if subject == "link":
        return questions.link(elicitation_id)
    return questions.preferences() if subject == "form" else questions.caption("saltmere")


async def ask_about(client: Client, subject: Subject, manner: Manner) -> Told:
    """Ask that question. Every link is a sign-in of its own, which confirm_sign_in completes."""
    if subject == "link":
        return (await ask_to_sign_in(client, manner))[0]
    return await client.ask(question_about(subject), manner)


# --- several at once


class ThreeArguments(AskArguments):
    as_task: bool = Field(
        default=True, description="Ask for the form and the caption as tasks; the link comes plainly."
    )


class Three(BaseModel):
    form: Told
    link: Told
    caption: Told
    order: list[str] = Field(description="Which was settled first, second and third.")


@TOOLS.offer("Ask three things at once", ThreeArguments, output=Three)
async def three_at_once(context: Context, arguments: ThreeArguments) -> types.CallToolResult:
    """Asks with a form, with a link and for a caption, all at the same time. Answer them in any order."""
    client = Client(context)
    manner = PLAINLY if client.modern else arguments.manner()
    manners: dict[Subject, Manner] = {"form": manner, "link": PLAINLY, "caption": manner}
    answers = await ask_together(client, manners, count=True)
    order = [str(subject) for subject in answers]
    three = Three(form=answers["form"], link=answers["link"], caption=answers["caption"], order=order)
    return structured(three, f"All three are settled: first the {order[0]}, then the {order[1]}, then the {order[2]}.")


async def ask_together(client: Client, manners: dict[Subject, Manner], count: bool) -> dict[Subject, Told]:
    """Ask all of them at the same time; the answers in the order in which they came, counted as progress or not."""
    for subject, manner in manners.items():
        client.require(*client.needs(question_about(subject), manner))
    answers: dict[Subject, Told] = {}
    if client.modern:  # one round with all of them
        found = client.ask_all([question_about(subject) for subject in manners])
        return dict(zip(manners, found, strict=True))

    async def ask_one(subject: Subject) -> None:
        answers[subject] = await ask_about(client, subject, manners[subject])
        if count:
            await client.context.session.report_progress(len(answers), len(manners), f"The {subject} is settled.")

    async with anyio.create_task_group() as together:
        for subject in manners:
            together.start_soon(ask_one, subject)
    return answers


class BookArguments(Arguments):
    """For a scene that asks for the rest."""


class Booking(BaseModel):
    preferences: Told
    caption: Told
    roots: Told
    confirmation: Told


@TOOLS.offer("Book in two rounds", BookArguments, output=Booking, changes=True)
async def book_ferry(context: Context, arguments: BookArguments) -> types.CallToolResult:
    """Asks how to write to you; then, all together, for a caption, for your roots and for a last confirmation."""
    client = Client(context)
    everything = (questions.caption("tindra"), questions.ROOTS, questions.confirmation())
    client.require(*questions.FORM, *(need for question in everything for need in question.needs))
    first = await client.ask(questions.preferences())
    if not first.accepted:
        raise ToolError("Then we do not book anything. Come back any time.")
    caption, roots, confirmation = await client.ask_several(list(everything))
    booked = Booking(preferences=first, caption=caption, roots=roots, confirmation=confirmation)
    return structured(booked, "Booked. Mind the gap." if confirmation.accepted else "Nothing was booked.")


# --- withdrawn


class ChangesItsMindArguments(AskArguments):
    about: Subject = Field(default="form", description="What to ask.")
    after_seconds: float = Field(default=5, ge=0, le=600, description="How long the desk wants to know.")


@TOOLS.offer("Ask, then change its mind", ChangesItsMindArguments, output=Told)
async def changes_its_mind(context: Context, arguments: ChangesItsMindArguments) -> types.CallToolResult:
    """Asks, and takes the question back: with `notifications/cancelled`, or with `tasks/cancel` if it is a task."""
    client = Client(context)
    if arguments.as_task:
        client.require("tasks.cancel")
    told = await ask_about(client, arguments.about, arguments.manner(patience=arguments.after_seconds))
    return structured(told, in_words(told))


# --- everything


@dataclass(frozen=True, slots=True)
class Act:
    """One part of the parade: what it is called, what it needs, and how it goes."""

    title: str
    needs: tuple[str, ...]
    play: Callable[[], Awaitable[list[Told]]]


def programme(client: Client) -> list[Act]:
    """All acts, in the order of the parade."""
    context = client.context
    poll, block = Manner(as_task=True), Manner(as_task=True, collect="block")
    cancellable = lacking(context, ["tasks.cancel", "tasks.requests.elicitation.create"]) is None
    tools = ToolChoiceArguments()

    def single(title: str, question: Question, manner: Manner = PLAINLY) -> Act:
        async def play() -> list[Told]:
            return [await client.ask(question, manner)]

        return Act(title, client.needs(question, manner), play)

    async def play_nothing() -> list[Told]:
        return []

    async def play_link() -> list[Told]:
        told, under_way = await ask_to_sign_in(client, PLAINLY)
        if under_way is not None and not client.modern:
            await complete_sign_in(client.visitor, context.session, under_way, context.request_id)
        return [told]

    async def play_tools() -> list[Told]:
        return (await converse(client, tools)).rounds

    async def play_three() -> list[Told]:
        answers = await ask_together(client, {"form": poll, "link": PLAINLY, "caption": block}, count=False)
        return list(answers.values())

    every_task = ("tasks.requests.elicitation.create", "tasks.requests.sampling.createMessage")
    return [
        single("your roots", questions.ROOTS),
        single("a form", questions.preferences()),
        Act("a link", questions.LINK, play_link),
        single("a caption", questions.caption("saltmere")),
        Act("a model with tools", ("sampling.tools",), play_tools),
        single("a picture and a sound", questions.postcard("hollowfjord", context.protocol_version)),
        single("every kind of field, as a task", questions.every_field(), poll),
        single("a caption, as a task", questions.caption("brackenhus"), block),
        Act("three at once", (*questions.FORM, *questions.LINK, *questions.SAMPLING, *every_task), play_three),
        Act("a change of mind", ("tasks.cancel",), play_nothing)
        if client.modern
        else single("a change of mind", questions.preferences(), Manner(as_task=cancellable, patience=3)),
    ]


class ParadeArguments(Arguments):
    together: bool = Field(default=False, description="All acts at the same time instead of one after the other.")


class Played(BaseModel):
    title: str
    told: list[Told]


class Parade(BaseModel):
    acts: list[Played]
    skipped: dict[str, str] = Field(description="The acts that your client cannot be asked for, and why.")


@TOOLS.offer("The parade", ParadeArguments, output=Parade)
async def parade(context: Context, arguments: ParadeArguments) -> types.CallToolResult:
    """Asks everything that can be asked, act by act, with progress. What your client does not offer is left out."""
    client = Client(context)
    acts = programme(client)
    skipped = {act.title: reason for act in acts if (reason := lacking(context, act.needs)) is not None}
    acts = [act for act in acts if act.title not in skipped]
    if not acts:
        raise ToolError("Your client offers nothing that could be asked. " + next(iter(skipped.values())))
    played, done = list[Played](), 0

    async def play(act: Act) -> None:
        told = await act.play()
        played.append(Played(title=act.title, told=told))
        await log(context, "info", f"{act.title}: {', '.join(one.outcome for one in told)}")

    async def play_and_count(act: Act) -> None:
        nonlocal done
        await play(act)
        done += 1  # counted where nothing can come between the count and the report
        await context.session.report_progress(done, len(acts), f"Done: {act.title}")

    if arguments.together and not client.modern:
        await context.session.report_progress(0, len(acts), "Here comes everything")
        async with anyio.create_task_group() as group:
            for act in acts:
                group.start_soon(play_and_count, act)
    else:
        for number, act in enumerate(acts):
            await context.session.report_progress(number, len(acts), f"Act {number + 1} of {len(acts)}: {act.title}")
            await play(act)
        await context.session.report_progress(len(acts), len(acts), "The parade is over")
    return structured(Parade(acts=played, skipped=skipped), f"{len(played)} acts played, {len(skipped)} left out.")
