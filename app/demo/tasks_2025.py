"""A tool that the desk runs as a task of 2025-11-25: progress, one question in the middle, and a result to collect.

The SDK has no server side for tasks, and would refuse one as the answer to a call. A middleware that does not call on
owns its answer, so the whole of it stands here: what is declared, `tools/call` with `task`, and the four operations.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any, TypeAlias, cast

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field, ValidationError

from app.demo import questions
from app.demo.asking import TERMINAL, Client, Question, lacking
from app.demo.errands import Answers, DeskTask, Errand, OnItsCall, Questions
from app.demo.state import Context
from app.demo.tools import Arguments, Toolbox, ToolError, complaints, failed, structured

TOOLS = Toolbox()
REVISION = "2025-11-25"
DECLARED: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
RELATED = "io.modelcontextprotocol/related-task"
TTL_MS, MOST_TTL_MS, POLL_MS, MOST = 300_000, 3_600_000, 1_000, 100
STEPS = 3


class CharterArguments(Arguments):
    seconds: float = Field(default=6, ge=0, le=600, description="How long the preparations take, together.")
    ask: bool = Field(default=True, description="Ask in the middle who travels.")


class Charter(BaseModel):
    ferry: str = Field(description="The ship.")
    traveller: str = Field(description="Who travels.")
    steps: int = Field(description="How many preparations there were.")


def asked_for(arguments: CharterArguments) -> Questions:
    """The one thing that the desk must know, if it may ask."""
    if not arguments.ask:
        return {}
    properties = {"who": {"type": "string", "title": "Name", "minLength": 1, "maxLength": 80}}
    params = questions.form("Whose name goes on the charter?", properties, ["who"])
    return {"who": Question("elicitation/create", params, questions.FORM)}


async def prepare(errand: Errand, arguments: CharterArguments, asks: Questions) -> types.CallToolResult:
    """Three preparations, and after the second the question."""
    traveller = "nobody in particular"
    for step, message in enumerate(("Found a ship", "Hired a crew", "Loaded the tea"), 1):
        await anyio.sleep(arguments.seconds / STEPS)
        await errand.report(step, STEPS, message)
        if step == STEPS - 1 and asks:
            answer = (await errand.ask(asks))["who"]
            if answer.get("action") != "accept":
                return failed(f"No charter: the answer was {answer.get('action')}.")
            traveller = str((answer.get("content") or {}).get("who") or traveller)
    booked = Charter(ferry="Dorothea", traveller=traveller, steps=STEPS)
    return structured(booked, f"The Dorothea sails for {traveller}.")


@TOOLS.offer("Charter a ferry", CharterArguments, output=Charter)
async def charter(context: Context, arguments: CharterArguments) -> types.CallToolResult:
    """Takes its time: three preparations with progress, and a question in the middle. Call it as a task, or plainly."""
    asks = asked_for(arguments)
    return await prepare(await OnItsCall.begin(context, asks), arguments, asks)


TOOLS["charter"].listed.execution = types.ToolExecution(task_support="optional")


# --- a task


class WireNotification(types.Notification[dict[str, Any], str]):
    """A notification that leaves as it is: a task keeps its `ttl`, also when that is null."""

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return {"method": self.method, "params": self.params}


@dataclass(slots=True, kw_only=True)
class Running(DeskTask):
    """One task of the desk; it is also the errand of the tool that runs in it."""

    session: ServerSession
    ttl: int
    token: str | int | None
    began: float = field(default_factory=anyio.current_time)
    result: types.CallToolResult | None = None
    asked: Questions | None = None
    answers: Answers | None = None
    moved: anyio.Event = field(default_factory=anyio.Event)
    asking: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def expired(self) -> bool:
        return anyio.current_time() > self.began + self.ttl / 1000

    def wire(self) -> dict[str, Any]:
        return {**DeskTask.wire(self), "ttl": self.ttl, "pollInterval": POLL_MS}

    def stir(self) -> None:
        """Wake whoever waits for this task to change."""
        self.moved.set()
        self.moved = anyio.Event()

    async def go_on(self, status: str, message: str | None = None) -> None:
        """Change the status, unless it is final, and tell the client."""
        if self.move(status, message):
            self.stir()
            await self.tell("notifications/tasks/status", self.wire())

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        note = cast("types.ServerNotification", WireNotification(method=method, params=params))
        await self.session.send_notification(note)

    async def report(self, step: int, steps: int, message: str) -> None:
        await self.go_on("working", message)
        if self.token is not None:
            params = {"progressToken": self.token, "progress": step, "total": steps, "message": message}
            await self.tell("notifications/progress", {**params, "_meta": {RELATED: {"taskId": self.id}}})

    async def ask(self, asks: Questions) -> Answers:
        """Leave the questions for whoever calls `tasks/result`: they travel on that stream."""
        self.asked, self.answers = asks, None
        await self.go_on("input_required", "The desk has a question.")
        while self.answers is None:
            await self.moved.wait()
        await self.go_on("working", "The desk has your answer.")
        return self.answers

    async def work(self, arguments: CharterArguments) -> None:
        """The life of the task; whatever happens in it is its outcome."""
        with self.scope:
            try:
                self.result = await prepare(self, arguments, asked_for(arguments))
                await self.go_on("failed" if self.result.is_error else "completed")
            except (ToolError, MCPError) as error:
                self.result = failed(str(error))
                await self.go_on("failed", str(error))

    async def collect(self, context: Context) -> dict[str, Any]:
        """Wait for the end. Meanwhile ask what there is to ask, on the stream of this very request."""
        while self.status not in TERMINAL:
            if self.asked is None:
                await self.moved.wait()
                continue
            async with self.asking:
                if self.asked is not None:
                    self.answers = {key: await self.put(context, each) for key, each in self.asked.items()}
                    self.asked = None
                    self.stir()
        if self.result is None:
            raise MCPError(types.INTERNAL_ERROR, f"The task is {self.status}.")
        result = self.result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return {**result, "_meta": {RELATED: {"taskId": self.id}}}

    async def put(self, context: Context, question: Question) -> dict[str, Any]:
        """Send one question, related to this task, and wait for its answer."""
        params = {**question.params, "_meta": {RELATED: {"taskId": self.id}}}
        return await Client(context).request(question.method, params)


# --- the middleware


Operation: TypeAlias = Callable[[Context, dict[str, Any]], Awaitable[dict[str, Any]]]


def tasks_of(context: Context) -> dict[str, Running]:
    """The tasks of this visitor that still live."""
    running = context.lifespan_context.visitor(context).running
    for task in [task for task in running.values() if task.expired]:
        task.scope.cancel()
        del running[task.id]
    return running


def find(context: Context, params: dict[str, Any]) -> Running:
    task = tasks_of(context).get(str(params.get("taskId")))
    if task is None:
        raise MCPError(types.INVALID_PARAMS, "The desk has no such task; it was never here, or it has expired.")
    return task


async def begin(context: Context, params: dict[str, Any]) -> dict[str, Any]:
    asked, running = params.get("task"), tasks_of(context)
    ttl = asked.get("ttl") if isinstance(asked, dict) else None
    try:
        arguments = CharterArguments.model_validate(params.get("arguments") or {})
    except ValidationError as error:
        raise MCPError(types.INVALID_PARAMS, "\n".join(complaints(error))) from None
    if arguments.ask and (reason := lacking(context, questions.FORM)) is not None:
        raise MCPError(types.INVALID_PARAMS, reason)
    if len(running) >= MOST:
        raise MCPError(types.INTERNAL_ERROR, f"The desk runs {MOST} tasks already.")
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    granted = min(int(ttl), MOST_TTL_MS) if isinstance(ttl, int | float) and ttl > 0 else TTL_MS
    task = Running(id=token_urlsafe(24), session=context.session, ttl=granted, token=token)
    running[task.id] = task
    context.lifespan_context.errands.start_soon(task.work, arguments)
    hint = {"io.modelcontextprotocol/model-immediate-response": "The desk prepares the ferry; look again in a moment."}
    return {"task": task.wire(), "_meta": hint}


async def get(context: Context, params: dict[str, Any]) -> dict[str, Any]:
    return find(context, params).wire()


async def list_all(context: Context, params: dict[str, Any]) -> dict[str, Any]:
    return {"tasks": [task.wire() for task in tasks_of(context).values()]}


async def result(context: Context, params: dict[str, Any]) -> dict[str, Any]:
    return await find(context, params).collect(context)


async def cancel(context: Context, params: dict[str, Any]) -> dict[str, Any]:
    task = find(context, params)
    if task.status in TERMINAL:
        raise MCPError(types.INVALID_PARAMS, f"The task is {task.status} already and cannot be cancelled.")
    task.scope.cancel()
    await task.go_on("cancelled", "Cancelled by the client.")
    return task.wire()


OPERATIONS: dict[str, Operation] = {
    "tasks/get": get,
    "tasks/list": list_all,
    "tasks/result": result,
    "tasks/cancel": cancel,
}


async def run_tasks(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Middleware: declare tasks where the revision has them, and answer everything about them."""
    context = ctx
    params = dict(context.params) if context.params is not None else {}
    if context.method == "initialize":
        answer = await call_next(context)
        if isinstance(answer, dict) and answer.get("protocolVersion") == REVISION:
            answer["capabilities"] = {**answer.get("capabilities", {}), "tasks": DECLARED}
        return answer
    if context.protocol_version == REVISION and context.request_id is not None:
        if context.method in OPERATIONS:
            return await OPERATIONS[context.method](context, params)
        if context.method == "tools/call" and params.get("name") == "charter" and "task" in params:
            return await begin(context, params)
    return await call_next(context)
