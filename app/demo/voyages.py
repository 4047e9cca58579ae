"""A tool that takes its time: in 2026-07-28, for a client that offers it, as a task of the extension (SEP-2663).

The desk decides: whoever declares `io.modelcontextprotocol/tasks` gets a handle and asks for news by `tasks/get`, all
others wait for the result. On the way the desk needs answers, by `tasks/update` or by whatever way there is.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from app.demo import questions
from app.demo.desk import Context
from app.demo.peer import Client, Question, lacking
from app.demo.tools import Arguments, Toolbox, structured

TOOLS = Toolbox()
EXTENSION = "io.modelcontextprotocol/tasks"
MOST_VOYAGES = 200
TTL_MS = 600_000
POLL_MS = 500


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class Voyage:
    """One task, from the quay and back."""

    id: str
    questions: dict[str, Question]
    created: str = field(default_factory=now)
    updated: str = field(default_factory=now)
    status: str = "working"
    words: str = "Casting off."
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    result: dict[str, Any] | None = None
    answered: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def move(self, status: str, words: str) -> None:
        """The next status; nothing leaves an end."""
        if self.status not in ("completed", "cancelled"):
            self.status, self.words, self.updated = status, words, now()

    @property
    def waiting(self) -> dict[str, Question]:
        """What has no answer yet."""
        return {key: each for key, each in self.questions.items() if key not in self.answers}

    def wire(self) -> dict[str, Any]:
        """The task as `tasks/get` shows it."""
        task: dict[str, Any] = {
            "taskId": self.id,
            "status": self.status,
            "statusMessage": self.words,
            "createdAt": self.created,
            "lastUpdatedAt": self.updated,
            "ttlMs": TTL_MS,
            "pollIntervalMs": POLL_MS,
        }
        if self.status == "input_required":
            task["inputRequests"] = {
                key: {"method": each.method, "params": each.params} for key, each in self.waiting.items()
            }
        if self.result is not None:
            task["result"] = self.result
        return task


class VoyageArguments(Arguments):
    days: int = Field(default=3, ge=1, le=60, description="How long to be at sea.")
    seconds_a_day: float = Field(default=1, ge=0, le=60, description="How long a day takes here.")
    ask: bool = Field(default=True, description="Ask about the cabin, and for a shanty, on the first day.")


class Log(BaseModel):
    days: int
    answers: dict[str, dict[str, Any]]


def asked_on(context: Context, arguments: VoyageArguments) -> dict[str, Question]:
    """What this voyage asks: the cabin, and a shanty if the client has a model."""
    if not arguments.ask:
        return {}
    found = {"cabin": questions.confirmation()}
    if lacking(context, questions.SAMPLING) is None:
        found["shanty"] = questions.caption("saltmere")
    return found


def offers_tasks(context: Context) -> bool:
    """Whether this very request says that it may be answered with a task."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    capabilities = context.session.client_capabilities
    declared = capabilities.model_dump(by_alias=True, exclude_none=True) if capabilities is not None else {}
    return EXTENSION in (declared.get("extensions") or {})


@TOOLS.offer("Go on a voyage", VoyageArguments, output=Log)
async def voyage(context: Context, arguments: VoyageArguments) -> types.CallToolResult:
    """Takes a few seconds and asks on the way. In 2026-07-28 it becomes a task, if your client offers the extension."""
    asks = asked_on(context, arguments)
    if offers_tasks(context):
        desk = context.lifespan_context
        while len(desk.voyages) >= MOST_VOYAGES:
            desk.voyages.pop(next(iter(desk.voyages))).scope.cancel()
        begun = Voyage(f"voyage-{token_urlsafe(12)}", asks)
        desk.voyages[begun.id] = begun
        desk.errands.start_soon(sail, begun, arguments)
        handle: Any = {"resultType": "task", **begun.wire()}
        return handle  # type: ignore[no-any-return]
    client = Client(context)
    if asks:
        client.require(*questions.FORM)
    answers: dict[str, dict[str, Any]] = {}
    if client.modern and asks:
        answers = {key: told.answer or {} for key, told in zip(asks, client.ask_all(list(asks.values())), strict=True)}
    for day in range(1, arguments.days + 1):
        await anyio.sleep(arguments.seconds_a_day)
        await context.session.report_progress(day, arguments.days, f"Day {day} of {arguments.days}")
        if day == 1 and not client.modern:
            for key, question in asks.items():
                answers[key] = (await client.ask(question)).answer or {}
    return logged(arguments, answers)


def logged(arguments: VoyageArguments, answers: dict[str, dict[str, Any]]) -> types.CallToolResult:
    return structured(Log(days=arguments.days, answers=answers), f"Back after {arguments.days} days at sea.")


async def sail(voyage: Voyage, arguments: VoyageArguments) -> None:
    """The life of a task, beside the request that began it."""
    with voyage.scope:
        for day in range(1, arguments.days + 1):
            voyage.move("working", f"Day {day} of {arguments.days}.")
            await anyio.sleep(arguments.seconds_a_day)
            if day == 1 and voyage.waiting:
                voyage.move("input_required", "The purser has a question.")
                await voyage.answered.wait()
        result = logged(arguments, voyage.answers).model_dump(by_alias=True, mode="json", exclude_none=True)
        voyage.result = result
        voyage.move("completed", "Back at the quay.")


class TaskParams(types.RequestParams):
    task_id: str = Field(alias="taskId")


class UpdateParams(TaskParams):
    input_responses: dict[str, dict[str, Any]] = Field(alias="inputResponses")


def found(context: Context, task_id: str) -> Voyage:
    """The task of a request; MCPError where there is none, or the client did not offer the extension."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
    if not offers_tasks(context):
        wanted: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"Declare {EXTENSION} first.", wanted)
    task = context.lifespan_context.voyages.get(task_id)
    if task is None:
        raise MCPError(types.INVALID_PARAMS, "There is no such task.")
    return task


async def get(context: Context, params: TaskParams) -> dict[str, Any]:
    return found(context, params.task_id).wire()


async def update(context: Context, params: UpdateParams) -> dict[str, Any]:
    task = found(context, params.task_id)
    unknown = [key for key in params.input_responses if key not in task.waiting]
    if unknown:
        raise MCPError(types.INVALID_PARAMS, f"Not asked, or answered before: {', '.join(unknown)}")
    task.answers.update(params.input_responses)
    if not task.waiting:
        task.move("working", "All questions are answered.")
        task.answered.set()
    return {}


async def cancel(context: Context, params: TaskParams) -> dict[str, Any]:
    task = found(context, params.task_id)
    task.move("cancelled", "Turned back.")
    task.scope.cancel()
    return {}
