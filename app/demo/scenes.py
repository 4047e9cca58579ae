"""Tools in which more happens than one ask: several at once, a change of mind, bad manners, a parade of everything.

And `what_i_saw`, which shows the conversation from the server's side. The single asks are in `asks.py`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field

from app.demo import questions
from app.demo.asks import AskArguments, ToolChoiceArguments, ask_to_sign_in, complete_sign_in, converse
from app.demo.desk import Context, log
from app.demo.peer import PLAINLY, Client, Manner, Question, Told, in_words, lacking, task_in
from app.demo.tools import Arguments, Toolbox, ToolError, structured

TOOLS = Toolbox()
UNANSWERED_SECONDS = 5.0
MOST_PAGES = 100
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
    if client.modern:
        caption, roots, confirmation = client.ask_all(list(everything))
    else:
        caption, roots, confirmation = [await client.ask(question) for question in everything]
    booked = Booking(preferences=first, caption=caption, roots=roots, confirmation=confirmation)
    return structured(booked, "Booked. Mind the gap." if confirmation.accepted else "Nothing was booked.")


# --- withdrawn and expired


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


class ShortTtlArguments(Arguments):
    ttl_ms: int = Field(default=3000, ge=0, le=600_000, description="The lifetime of the task, in milliseconds.")
    about: Subject = Field(default="form", description="What to ask.")
    collect: Literal["poll", "block"] = Field(
        default="block", description="Block in `tasks/result`, which must be released, or poll until the task is gone."
    )


@TOOLS.offer("Ask for a short time", ShortTtlArguments, output=Told)
async def short_ttl(context: Context, arguments: ShortTtlArguments) -> types.CallToolResult:
    """Asks as a task that lives only three seconds. Too late, and it is gone: the desk hears -32602."""
    manner = Manner(as_task=True, ttl_ms=arguments.ttl_ms, collect=arguments.collect)
    told = await ask_about(Client(context), arguments.about, manner)
    return structured(told, in_words(told))


# --- bad manners


class ImpoliteArguments(Arguments):
    polls: int = Field(default=20, ge=0, le=2000, description="How often to poll without any pause.")


class Attempt(BaseModel):
    what: str
    code: int | None = Field(default=None, description="The error code that came back, if any.")
    message: str | None = None
    status: str | None = Field(default=None, description="The status of the task that came back, if any.")


class Impolite(BaseModel):
    attempts: list[Attempt]


@TOOLS.offer("Behave badly", ImpoliteArguments, output=Impolite)
async def impolite(context: Context, arguments: ImpoliteArguments) -> types.CallToolResult:
    """Does with a task of yours what a server should not do, and returns the error codes it got for it."""
    client = Client(context)
    question = questions.preferences()
    client.require(*client.needs(question, Manner(as_task=True)))
    done: list[Attempt] = []
    live: list[str] = []

    async def attempt(what: str, method: str, params: dict[str, Any]) -> str | None:
        """Try one thing; the id of the task that it made, if it made one."""
        tried = Attempt(what=what)
        result: dict[str, Any] = {}
        with anyio.move_on_after(UNANSWERED_SECONDS) as scope:
            try:
                result = await client.request(method, params)
            except MCPError as error:
                tried.code, tried.message = error.code, error.message
        if scope.cancelled_caught:
            tried.message = f"No answer within {UNANSWERED_SECONDS:g} seconds; taken back."
        made = task_in(result)
        status = (made or result).get("status")
        tried.status = status if isinstance(status, str) else None
        done.append(tried)
        if made is not None:
            live.append(made["taskId"])
        return made["taskId"] if made is not None else None

    async def ask_with(what: str, ttl: Any) -> str | None:
        return await attempt(what, question.method, {**question.params, "task": {"ttl": ttl}})

    nobody = {"taskId": "no-such-task"}
    try:
        task_id = await ask_with("an honest task to begin with", 60_000)
        if task_id is None:
            raise ToolError("The client took `task` for nothing and made no task; there is nothing to be impolite to.")
        mine = {"taskId": task_id}
        for number in range(arguments.polls):
            await attempt(f"poll {number + 1} without a pause", "tasks/get", mine)
        await attempt("tasks/get of an unknown task", "tasks/get", nobody)
        await attempt("tasks/result of an unknown task", "tasks/result", nobody)
        await attempt("tasks/cancel of an unknown task", "tasks/cancel", nobody)
        await attempt("tasks/get of no task", "tasks/get", {})
        await attempt("tasks/list with a bad cursor", "tasks/list", {"cursor": "the middle"})
        await ask_with("a task with a negative ttl", -1)
        await ask_with("a task with a ttl in words", "soon")
        await ask_with("a task with a ttl of null", None)
        await attempt("tasks/cancel", "tasks/cancel", mine)
        await attempt("tasks/cancel once more", "tasks/cancel", mine)
        await attempt("tasks/result of a cancelled task", "tasks/result", mine)
        await attempt("a method that nobody knows", "nordwind/unheard_of", {})
        live.remove(task_id)
    finally:
        for left in live:
            await client.abandon(left)
    codes = sorted({tried.code for tried in done if tried.code is not None})
    return structured(Impolite(attempts=done), f"{len(done)} rude things done; error codes received: {codes}.")


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


# --- from the other side


class WhatISawArguments(Arguments):
    since: Literal["last look", "start"] = Field(default="last look", description="From when on to tell.")
    list_tasks: bool = Field(default=True, description="Also ask for `tasks/list`, if your client offers it.")


class WhatISaw(BaseModel):
    seen: list[dict[str, Any]] = Field(description="Answers, errors and notifications of the client, oldest first.")
    forgotten: int = Field(description="How many there were before those that the desk still remembers.")
    tasks: list[dict[str, Any]] | None = Field(description="What `tasks/list` says; null if the client has none.")


@TOOLS.offer("What the desk saw", WhatISawArguments, output=WhatISaw)
async def what_i_saw(context: Context, arguments: WhatISawArguments) -> types.CallToolResult:
    """Tells what your client has sent to the desk: every answer, task, error and notification on this connection."""
    client = Client(context)
    visitor = client.visitor
    tasks: list[dict[str, Any]] | None = None
    if arguments.list_tasks and lacking(context, ["tasks.list"]) is None:
        tasks = await listed_tasks(client)
    start = visitor.looked if arguments.since == "last look" else 0
    seen = [asdict(sighting) for sighting in visitor.sightings if sighting.number > start]
    forgotten = visitor.sighted - start - len(seen)
    visitor.looked = visitor.sighted
    return structured(WhatISaw(seen=seen, forgotten=forgotten, tasks=tasks), f"The desk saw {len(seen)} things.")


async def listed_tasks(client: Client) -> list[dict[str, Any]]:
    """All pages of `tasks/list`, as far as they come."""
    tasks: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    for _ in range(MOST_PAGES):
        try:
            page = await client.request("tasks/list", params)
        except MCPError:
            break  # it is among the sightings
        found = page.get("tasks")
        tasks += [task for task in found if isinstance(task, dict)] if isinstance(found, list) else []
        if not isinstance(cursor := page.get("nextCursor"), str):
            break
        params = {"cursor": cursor}
    return tasks
