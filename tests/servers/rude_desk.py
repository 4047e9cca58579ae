"""The demo server with bad manners: everything that it offers, and `impolite`, which tries what no server should do.

    python -m tests.servers.rude_desk [--http --port N]          from the root of the repository

It stands on the demo's own way of asking, so what comes back has passed through the SDK and not through a script.
"""

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field

from app.demo import questions, server
from app.demo.asking import Client, Manner, task_in
from app.demo.state import Context
from app.demo.tools import Arguments, ToolError, structured

UNANSWERED_SECONDS = 5.0


class ImpoliteArguments(Arguments):
    polls: int = Field(default=20, ge=0, le=2000, description="How often to poll without any pause.")


class Attempt(BaseModel):
    what: str
    code: int | None = Field(default=None, description="The error code that came back, if any.")
    message: str | None = None
    status: str | None = Field(default=None, description="The status of the task that came back, if any.")


class Impolite(BaseModel):
    attempts: list[Attempt]


@server.TOOLS.offer("Behave badly", ImpoliteArguments, output=Impolite)
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


if __name__ == "__main__":
    sys.exit(server.main())
