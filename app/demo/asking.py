"""How the desk asks its client: plainly, or as a task that the client executes and the desk collects (2025-11-25).

In 2026-07-28 a server sends no requests: there the same question is returned, and the call played again (rounds.py).
Owns the wire of an ask, the check of what the client declared, and the manners of a requestor: poll no faster than
told, fetch the result at the end, cancel what nobody waits for any more. Knows none of the questions and no tool.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, RootModel

from app.demo import rounds
from app.demo.state import Context, Visitor, is_modern
from app.demo.tools import ToolError

TERMINAL = frozenset({"completed", "failed", "cancelled"})
POLL_MS = 1000  # when the client does not say
FAREWELL_SECONDS = 1.0
TASK_NEED = {
    "elicitation/create": "tasks.requests.elicitation.create",
    "sampling/createMessage": "tasks.requests.sampling.createMessage",
}
SINCE = {
    "elicitation": "2025-06-18",
    "elicitation.url": "2025-11-25",
    "sampling.tools": "2025-11-25",
    "tasks": "2025-11-25",
}
Collect: TypeAlias = Literal["poll", "block"]


class WireRequest(types.Request[dict[str, Any], str]):
    """A request that leaves as it is, and whose answer the SDK does not check.

    The session looks up by `method` what an answer must look like, and so refuses a task as the answer to an
    elicitation; what it sends is the dump. Hence this `method` is in no table, and the dump has the real one.
    """

    method: str = "nordwind/unchecked"
    wire_method: str

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return {"method": self.wire_method, "params": self.params}


class WireResult(RootModel[dict[str, Any]]):
    """Whatever the client answered."""


@dataclass(frozen=True, slots=True)
class Question:
    """Something to ask: the request without its `task`, and the capabilities that it needs."""

    method: str
    params: dict[str, Any]
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manner:
    """How to ask: plainly or as a task, how to collect a task, and for how many seconds to want the answer at all."""

    as_task: bool = False
    ttl_ms: int | None = None
    collect: Collect = "poll"
    patience: float | None = None


PLAINLY = Manner()


class Refusal(BaseModel):
    """A JSON-RPC error of the client."""

    code: int
    message: str
    data: Any = None


class Told(BaseModel):
    """What the desk learned from one ask."""

    outcome: Literal["answered", "refused", "withdrawn", "gone"] = "answered"
    answer: dict[str, Any] | None = None
    error: Refusal | None = None
    task: dict[str, Any] | None = None
    statuses: list[str] = []
    polls: int = 0
    seconds: float = 0.0

    def look(self, task: dict[str, Any]) -> None:
        """Take note of a task object as the client describes it now."""
        self.task = task
        status = str(task.get("status"))
        if self.statuses[-1:] != [status]:
            self.statuses.append(status)

    def refuse(self, error: MCPError, gone: bool = False) -> None:
        """Take note of an error; `gone` says that the client does not know the task (any more)."""
        self.outcome = "gone" if gone else "refused"
        self.error = Refusal(code=error.code, message=error.message, data=error.data)

    @property
    def accepted(self) -> bool:
        """Whether a person agreed to an elicitation."""
        return self.outcome == "answered" and self.answer is not None and self.answer.get("action") == "accept"


def in_words(told: Told) -> str:
    """One sentence for people about what came of an ask."""
    if told.outcome == "withdrawn":
        return "The desk changed its mind and took the question back."
    if told.error is not None:
        what = "The task is gone" if told.outcome == "gone" else "The client refused"
        return f"{what}: {told.error.message} ({told.error.code})."
    action = (told.answer or {}).get("action")
    return f"The answer to our question: {action}." if action else "The client answered."


def lacking(context: Context, needs: Collection[str]) -> str | None:
    """Why these capabilities of the client cannot be used here, in one sentence; nothing if they can."""
    modern = is_modern(context)
    if not modern and not context.session.can_send_request:
        return (
            f"This connection ({context.protocol_version}) has no way for a server to send requests: connect over "
            "stdio, or with a session."
        )
    if modern and any(need.startswith("tasks.") for need in needs):
        return f"Clients have no tasks of their own in {context.protocol_version}: connect with revision 2025-11-25."
    declared = declared_by(context)
    for need in needs:
        since = max((SINCE[name] for name in SINCE if f"{need}.".startswith(f"{name}.")), default="")
        if context.protocol_version < since:
            return f"`{need}` exists since revision {since}, and this connection speaks {context.protocol_version}."
        if not declares(declared, need):
            return f"The client did not declare the capability `{need}`, so the desk does not ask."
    return None


def declared_by(context: Context) -> dict[str, Any]:
    """The capabilities of the client, as it declared them."""
    capabilities = context.session.client_capabilities
    return capabilities.model_dump(by_alias=True, exclude_none=True) if capabilities is not None else {}


def declares(capabilities: Mapping[str, Any], need: str) -> bool:
    """Whether a path like `tasks.requests.elicitation.create` is there. An elicitation without modes is a form."""
    if need == "elicitation.form" and capabilities.get("elicitation") == {}:
        return True
    place: Any = capabilities
    for name in need.split("."):
        if not isinstance(place, Mapping) or name not in place:
            return False
        place = place[name]
    return True


def required(needs: Iterable[str]) -> dict[str, Any]:
    """Capabilities as an object, the way a client would declare them."""
    found: dict[str, Any] = {}
    for need in needs:
        place = found
        for name in need.split("."):
            place = place.setdefault(name, {})
    return found


class Client:
    """The client that made the call which is being answered."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.visitor: Visitor = context.lifespan_context.visitor(context)
        self.modern = is_modern(context)

    def require(self, *needs: str) -> None:
        """ToolError, which becomes a result with `isError`, if the client lacks one of these capabilities.

        In 2026-07-28 there is an error for it, which names them."""
        if (reason := lacking(self.context, needs)) is None:
            return
        if self.modern and not any(need.startswith("tasks.") for need in needs):
            wanted = {"requiredCapabilities": required(needs)}
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, reason, wanted)
        raise ToolError(reason)

    def needs(self, question: Question, manner: Manner) -> tuple[str, ...]:
        """All that the client must have declared to be asked like this."""
        return (*question.needs, TASK_NEED[question.method]) if manner.as_task else question.needs

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send one request on the stream of this call; MCPError if the client answers with an error."""
        request = cast("types.ServerRequest", WireRequest(wire_method=method, params=params))
        origin = ServerMessageMetadata(related_request_id=self.context.request_id)
        return (await self.context.session.send_request(request, WireResult, metadata=origin)).root

    async def ask(self, question: Question, manner: Manner = PLAINLY) -> Told:
        """Ask and wait for what comes of it. An error of the client is an outcome, not an exception."""
        self.require(*self.needs(question, manner))
        if self.modern:
            if manner.patience is not None:
                raise ToolError(f"A question cannot be taken back in {self.context.protocol_version}.")
            return self.ask_all([question])[0]
        told, started = Told(), anyio.current_time()
        try:
            if manner.as_task:
                await self._ask_as_task(question, manner, told)
            else:
                with anyio.move_on_after(manner.patience) as scope:
                    told.answer = await self.request(question.method, question.params)
                if scope.cancelled_caught:  # the SDK has sent `notifications/cancelled`
                    told.outcome = "withdrawn"
        except MCPError as error:
            told.refuse(error)
        told.seconds = round(anyio.current_time() - started, 3)
        return told

    def ask_all(self, questions: list[Question]) -> list[Told]:
        """Several questions in one round of 2026-07-28; what was not answered yet is returned to the client."""
        talk = rounds.current.get()
        if talk is None:
            raise ToolError("The desk can ask only in the middle of a call.")
        # Links have no id in this era.
        wire = [
            {"method": each.method, "params": {k: v for k, v in each.params.items() if k != "elicitationId"}}
            for each in questions
        ]
        return [Told(answer=answer) for answer in talk.ask(*wire)]

    async def ask_several(self, questions: list[Question]) -> list[Told]:
        """All of these: in one round where there are rounds, else one after the other."""
        return self.ask_all(questions) if self.modern else [await self.ask(question) for question in questions]

    async def _ask_as_task(self, question: Question, manner: Manner, told: Told) -> None:
        wanted = {} if manner.ttl_ms is None else {"ttl": manner.ttl_ms}
        created = await self.request(question.method, {**question.params, "task": wanted})
        if (task := task_in(created)) is None:
            told.answer = created  # the client ignored `task`, and answered as if it had been asked plainly
            return
        told.look(task)
        task_id: str = task["taskId"]
        try:
            with anyio.move_on_after(manner.patience) as scope:
                await self._collect(task_id, manner.collect, told)
        except anyio.get_cancelled_exc_class():
            await self.abandon(task_id)
            raise
        if scope.cancelled_caught:
            told.outcome = "withdrawn"
            told.look(await self.request("tasks/cancel", {"taskId": task_id}))

    async def _collect(self, task_id: str, collect: Collect, told: Told) -> None:
        """Follow a task to its end, and fetch its result."""
        which = {"taskId": task_id}
        try:
            while collect == "poll" and told.statuses[-1] not in TERMINAL:
                await anyio.sleep(poll_seconds(told.task))
                told.polls += 1
                told.look(await self.request("tasks/get", which))
        except MCPError as error:
            told.refuse(error, gone=True)
            return
        try:
            told.answer = await self.request("tasks/result", which)
        except MCPError as error:
            told.refuse(error)
        if told.statuses[-1] not in TERMINAL:  # the one who blocks has not seen how it ended
            try:
                told.look(await self.request("tasks/get", which))
            except MCPError as error:
                if told.error is not None:
                    told.refuse(error, gone=True)

    async def abandon(self, task_id: str) -> None:
        """Cancel a task that nobody waits for any more, also from within a cancelled scope, but do not wait long."""
        if lacking(self.context, ["tasks.cancel"]) is None:
            with anyio.move_on_after(FAREWELL_SECONDS, shield=True), suppress(MCPError):
                await self.request("tasks/cancel", {"taskId": task_id})


def task_in(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """The task of a `CreateTaskResult`, if the result is one."""
    task = result.get("task")
    return task if isinstance(task, dict) and isinstance(task.get("taskId"), str) else None


def poll_seconds(task: Mapping[str, Any] | None) -> float:
    """How long to wait before the next poll, as the client wishes."""
    wish = (task or {}).get("pollInterval")
    return wish / 1000 if isinstance(wish, int | float) and wish > 0 else POLL_MS / 1000
