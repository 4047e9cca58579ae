"""How one task on the server is asked after: when to poll, what to make of the answer, when to stop.

Polling is what everything rests on; a status notification only makes it shorter (R2-12). A wait ends at the interval
that the server wants, or when something happens to the task. The end of the TTL ends nothing: a server may then delete
the task, and says so by -32602 (R2-11, R2-43). Knows the session whose tasks they are; knows neither who waits for a
task nor what becomes of its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio

from app import bounds
from app.core.errors import INVALID_PARAMS
from app.core.events import EventKind
from app.core.rules import catalogue
from app.core.signal import Signal
from app.core.tasks import running as tasks
from app.core.tasks.running import ClientTask
from app.core.tasks.status import Ending, Status
from app.core.wire import Finding, RpcId, error_of
from app.protocol.connection import Connection
from app.protocol.links.base import LinkError
from app.protocol.requests import Outgoing, Reply
from app.protocol.timeout import CallTimeout, OutOfTime
from app.sessions.tasks.inputs import TaskInputs

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace


_ENDED: dict[Status, EventKind] = {
    "completed": "task.completed",
    "failed": "task.failed",
    "cancelled": "task.cancelled",
}


class Polling:
    """Asks after the tasks of one session."""

    def __init__(self, session: Workspace) -> None:
        self._session = session
        self.inputs = TaskInputs(session, self)
        """What tasks of the extension ask, and how they end."""

    async def still_there(self, task: ClientTask, connection: Connection) -> bool:
        """Whether the reply with the result was lost, and a poll shows that the server still has the task."""
        if not task.reply_lost:
            return False
        task.reply_lost = False
        await self.rest(task, self._session.mono() + tasks.poll_seconds(task.poll))
        return await self.poll(task, connection)

    async def accompany(
        self, task: ClientTask, connection: Connection, wait: Callable[[], None], done: Callable[[], bool]
    ) -> None:
        """Poll until the task ends or is gone, or `done`. On `input_required` the result is waited for at once: that
        is the way on which the server's questions come (R2-20)."""
        mono = self._session.mono
        waited = failed = 0
        last = mono()

        def over() -> bool:
            return not task.live or done()

        while not over():
            task.next_poll = last + tasks.poll_seconds(task.poll)
            if task.status == "input_required" and not task.waiting and not waited:
                waited += 1
                wait()
            elif task.status == "working" and not task.waiting:
                waited = 0
            await self.rest(task, task.next_poll)
            if over():
                break
            if mono() < last + tasks.poll_seconds(task.poll) and not task.poll_now:
                continue
            task.poll_now = False
            failed = 0 if await self.poll(task, connection) else failed + 1
            if not failed and task.reply_lost:
                task.reply_lost = False
                waited = 0
            last = mono()
            if over():
                break
            if failed >= bounds.FAILED_POLLS:
                self.gone(task, "not found", f"{failed} polls in a row had no usable answer")
            elif not task.outlived and task.expires is not None and last >= task.expires:
                task.outlived = True
                task.visit(self._session.wall(), "outlived")
                self.remark(task, catalogue.task_outlives_ttl(seconds=(task.ttl or 0) / 1000), None)
                self._session.changed("task.changed", task.id)

    async def rest(self, task: ClientTask, until: float | None) -> None:
        """Wait until a moment, or until something happens to the task."""
        nudge = task.nudged = Signal()
        if until is None:
            await nudge.wait()
            return
        seconds = min(bounds.POLL_REST_SECONDS, max(0.0, until - self._session.mono()))
        async with anyio.create_task_group() as group:

            async def alarm() -> None:
                await self._session.sleep(seconds)
                nudge.set()

            group.start_soon(alarm)
            await nudge.wait()
            group.cancel_scope.cancel()

    async def poll(self, task: ClientTask, connection: Connection) -> bool:
        """Ask once how it stands; False when there was no answer to that."""
        sent, reply = await self.ask(task, connection, task.wire.get, quiet=True)
        task.polls += 1
        if reply is not None and not reply.is_error:
            task.gone = None
            return self.hear(task, reply.value.get("result"), reply.seq, sent)
        if reply is not None and error_of(reply.value)[0] == INVALID_PARAMS:
            self.gone(task, "not found", error_of(reply.value)[1])
            return True
        self._session.changed("task.changed", task.id)
        return False

    async def ask(
        self, task: ClientTask, connection: Connection, method: str, *, quiet: bool = False
    ) -> tuple[int | None, Reply | None]:
        """As `send`, about a task alone. That there is no answer, or an error, is part of its history."""
        sent, reply = await self.send(connection, method, {"taskId": task.task_id}, quiet=quiet)
        if reply is None:
            task.visit(self._session.wall(), method, "no answer", sent)
        elif reply.is_error:
            task.visit(self._session.wall(), method, "error {}: {}".format(*error_of(reply.value)), sent, reply.seq)
        return sent, reply

    async def send(
        self,
        connection: Connection,
        method: str,
        params: dict[str, Any],
        *,
        quiet: bool = False,
        seconds: float | None = None,
        on_sent: Callable[[RpcId, int], None] | None = None,
    ) -> tuple[int | None, Reply | None]:
        """Send a request about tasks; its place in the log, and the reply, None when there is none.

        No related-task in these: the task is named in the params (R2-31)."""
        sent: list[int] = []

        def told(rpc_id: RpcId, seq: int) -> None:
            sent.append(seq)
            if on_sent is not None:
                on_sent(rpc_id, seq)

        limit = self._session.options.request_timeout_ms / 1000 if seconds is None else seconds
        wanted, timeout = Outgoing(quiet=quiet, on_sent=told), CallTimeout(limit, at_most=limit)
        try:
            reply = await connection.call(method, params, wanted, timeout)
        except (OutOfTime, LinkError):
            reply = None
        return (sent[0] if sent else None), reply

    def hear(self, task: ClientTask, value: Any, seq: int, sent: int | None = None) -> bool:
        """Take what the server says of a task, by a reply or a notification; False when it says nothing usable."""
        seen, findings = tasks.read_task(task.wire, value)
        if seen is not None and seen.task_id != task.task_id:
            findings.append(catalogue.task_other())
            seen = None
        before, now = task.status, self._session.wall()
        changed = False
        if seen is not None:
            changed, more = task.take(seen, now)
            findings += more
        for finding in findings:
            self.remark(task, finding, seq)
        if sent is not None:
            task.visit(now, task.wire.get, task.status if seen is not None else "nothing usable", sent, seq)
        elif changed:
            task.visit(now, "status", task.status, seq, words=task.message or "")
        if seen is not None and task.wire.update is not None:
            self.inputs.heard(task, value, seq, sent)
        self._session.changed("task.changed", task.id)
        if task.status != before:
            self.ended(task)
        task.nudge()
        return seen is not None

    def ended(self, task: ClientTask) -> None:
        """Say that a task came to its end, when it has."""
        if task.status in _ENDED:
            self._session.changed(_ENDED[task.status], task.id)

    def gone(self, task: ClientTask, how: Ending, text: str = "") -> None:
        """The task can no longer be asked for (R2-43)."""
        task.gone = how
        self.inputs.no_longer(task)
        task.visit(self._session.wall(), how, text)
        self._session.changed("task.changed", task.id)
        task.nudge()

    def remark(self, task: ClientTask, finding: Finding, seq: int | None) -> None:
        """Keep a remark about a task and its call, once: beside a message, or with the task where none says it."""
        before = task.findings
        if (
            any((one.id, one.text) == (finding.id, finding.text) for one in before)
            or len(before) >= self._session.limits.findings_per_message
        ):
            return
        call = self._session.calls.get(task.call_id or "")
        if seq is None:
            self._session.messages.note(task.id, finding)
        else:
            self._session.messages.remark(seq, finding, about=task.id)
            task.beside.add(seq)
            if call is not None:
                call.beside |= {seq}
        if call is not None:
            self._session.changed("call.changed", call.id)
