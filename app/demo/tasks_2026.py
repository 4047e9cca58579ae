"""A tool that becomes a task of the extension (SEP-2663), in 2026-07-28 and for a client that offers it.

The desk decides: whoever declares `io.modelcontextprotocol/tasks` gets a handle and asks for news by `tasks/get`, all
others wait for the result. On the way the desk needs answers, by `tasks/update` or by whatever way there is.
"""

from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field

from app.demo import questions
from app.demo.asking import declared_by, lacking
from app.demo.errands import Answers, DeskTask, Errand, OnItsCall, Questions
from app.demo.state import Context, is_modern
from app.demo.tools import Arguments, Toolbox, structured

TOOLS = Toolbox()
EXTENSION = "io.modelcontextprotocol/tasks"
MOST_VOYAGES = 200
TTL_MS = 600_000
POLL_MS = 500


# --- the tool


class VoyageArguments(Arguments):
    days: int = Field(default=3, ge=1, le=60, description="How long to be at sea.")
    seconds_a_day: float = Field(default=1, ge=0, le=60, description="How long a day takes here.")
    ask: bool = Field(default=True, description="Ask about the cabin, and for a shanty, on the first day.")


class Log(BaseModel):
    days: int
    answers: dict[str, dict[str, Any]]


def asked_on(context: Context, arguments: VoyageArguments) -> Questions:
    """What this voyage asks: the cabin, and a shanty if the client has a model."""
    if not arguments.ask:
        return {}
    found = {"cabin": questions.confirmation()}
    if lacking(context, questions.SAMPLING) is None:
        found["shanty"] = questions.caption("saltmere")
    return found


async def sail(errand: Errand, arguments: VoyageArguments, asks: Questions) -> types.CallToolResult:
    """Day by day, and after the first the questions."""
    answers: Answers = {}
    for day in range(1, arguments.days + 1):
        await anyio.sleep(arguments.seconds_a_day)
        await errand.report(day, arguments.days, f"Day {day} of {arguments.days}")
        if day == 1 and asks:
            answers = await errand.ask(asks)
    return structured(Log(days=arguments.days, answers=answers), f"Back after {arguments.days} days at sea.")


@TOOLS.offer("Go on a voyage", VoyageArguments, output=Log)
async def voyage(context: Context, arguments: VoyageArguments) -> types.CallToolResult:
    """Takes a few seconds and asks on the way. In 2026-07-28 it becomes a task, if your client offers the extension."""
    asks = asked_on(context, arguments)
    if not offers_tasks(context):
        return await sail(await OnItsCall.begin(context, asks), arguments, asks)
    desk = context.lifespan_context
    while len(desk.voyages) >= MOST_VOYAGES:
        desk.voyages.pop(next(iter(desk.voyages))).scope.cancel()
    begun = Voyage(f"voyage-{token_urlsafe(12)}", message="Casting off.")
    desk.voyages[begun.id] = begun
    desk.errands.start_soon(begun.work, arguments, asks)
    handle: Any = {"resultType": "task", **begun.wire()}
    return handle  # type: ignore[no-any-return]


# --- a task


@dataclass(slots=True)
class Voyage(DeskTask):
    """One task, from the quay and back; it is also the errand of the tool that runs in it."""

    asks: Questions = field(default_factory=dict)
    answers: Answers = field(default_factory=dict)
    answered: anyio.Event = field(default_factory=anyio.Event)
    result: dict[str, Any] | None = None

    @property
    def waiting(self) -> Questions:
        """What has no answer yet."""
        return {key: each for key, each in self.asks.items() if key not in self.answers}

    def wire(self) -> dict[str, Any]:
        task = {**DeskTask.wire(self), "ttlMs": TTL_MS, "pollIntervalMs": POLL_MS}
        if self.status == "input_required":
            task["inputRequests"] = {
                key: {"method": each.method, "params": each.params} for key, each in self.waiting.items()
            }
        return task if self.result is None else {**task, "result": self.result}

    async def report(self, step: int, steps: int, message: str) -> None:
        self.move("working", message)

    async def ask(self, asks: Questions) -> Answers:
        self.asks = asks
        self.move("input_required", "The purser has a question.")
        await self.answered.wait()
        return self.answers

    async def work(self, arguments: VoyageArguments, asks: Questions) -> None:
        """The life of the task, beside the request that began it."""
        with self.scope:
            result = await sail(self, arguments, asks)
            self.result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
            self.move("completed", "Back at the quay.")


# --- its operations


class TaskParams(types.RequestParams):
    task_id: str = Field(alias="taskId")


class UpdateParams(TaskParams):
    input_responses: dict[str, dict[str, Any]] = Field(alias="inputResponses")


def offers_tasks(context: Context) -> bool:
    """Whether this very request says that it may be answered with a task."""
    return is_modern(context) and EXTENSION in (declared_by(context).get("extensions") or {})


def found(context: Context, task_id: str) -> Voyage:
    """The task of a request. Raises MCPError when there is none, or the client did not offer the extension."""
    if not is_modern(context):
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
