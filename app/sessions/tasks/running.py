"""Tasks that run on the server: made by our calls or found in its list, polled to their end, cancelled, fetched.

A call that became a task waits in `follow`; a task without a call is watched. How a task is asked after stands in
`polling.py`, how the server lists them in `task_list.py`, what a wire calls things in `app.core.tasks.TaskWire`:
nothing here names a method of its own. Knows the session it serves; knows nothing of the web.
"""

from __future__ import annotations

import contextlib
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import anyio

from app import bounds
from app.core.calls import Call, CallError, Leg
from app.core.errors import INVALID_PARAMS, Conflict, Invalid, NotAllowed
from app.core.lists import Listing
from app.core.rules import catalogue, stateless
from app.core.targets import AnyTarget
from app.core.tasks import running as tasks
from app.core.tasks.running import CORE, EXTENSION, Capabilities, ClientTask, Support, TaskWire
from app.core.wire import Finding, Message, RpcId, error_of
from app.protocol.connection import Connection
from app.protocol.requests import Reply
from app.sessions.identity import PARLEY, Identity
from app.sessions.tasks.listing import TaskList
from app.sessions.tasks.polling import Polling

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace

logger = logging.getLogger("parley.sessions")


class ClientTasks:
    """The tasks of one session that run on its server, over all its connections."""

    def __init__(self, session: Workspace) -> None:
        self._session = session
        self.tasks: OrderedDict[str, ClientTask] = OrderedDict()
        """By our own id, the recent ones also after the server forgot them."""
        self.polling = Polling(session)
        self._target: AnyTarget | None = None
        """Whose extension tasks these are."""
        self.listing = Listing()
        """What became of the last `tasks/list`: our ids of the tasks in it."""
        self._list = TaskList(session, self)
        self.known: dict[str, ClientTask] = {}
        """By the server's id, of the present connection."""
        self._early: OrderedDict[str, tuple[dict[str, Any], int]] = OrderedDict()
        self._supported: tuple[Listing | None, dict[str, Support]] = None, {}
        """What was found out about tools, of this list."""
        self._waits: dict[str, anyio.CancelScope] = {}

    # ---- what is possible

    @property
    def wire(self) -> TaskWire | None:
        """How tasks are spoken of on this connection; None when it has none."""
        if not self._session.wire.asks_for_tasks:
            declared = self._session.info.client_capabilities
            offered = declared.get("extensions") if isinstance(declared, dict) else None
            return EXTENSION if isinstance(offered, dict) and stateless.TASKS in offered else None
        return CORE if self._session.info.protocol_version == "2025-11-25" else None

    @property
    def capable(self) -> Capabilities:
        """What the server declared about tasks."""
        info = self._session.info
        if self.wire is EXTENSION:
            return Capabilities(cancel=True)
        return tasks.capabilities_of(info.server_capabilities, info.protocol_version)

    def support(self, name: Any) -> Support:
        """Whether a tool may be called as a task, and whether it may be called plainly."""
        if not self._session.wire.asks_for_tasks:
            return Support("absent", no_task=f"In {stateless.VERSION} the server alone decides what becomes a task.")
        tools = self._session.tools
        if self._supported[0] is not tools:
            self._supported = tools, {}
        found = self._supported[1].get(name) if isinstance(name, str) else None
        if found is None:
            tool = tools.by_name(name)
            found = tasks.support_of(tool, self.capable)
            if tool is not None:
                self._supported[1][name] = found
        return found

    def of_wire(self, task_id: Any) -> ClientTask | None:
        """The task with this id of the server's, on this connection."""
        return self.known.get(task_id) if isinstance(task_id, str) else None

    # ---- a call that becomes a task

    def announces(self, reply: Reply) -> bool:
        """Whether this reply brings a task, so that progress of its request goes on (R2-32)."""
        return self._created(reply) is not None

    def _created(self, reply: Reply) -> dict[str, Any] | None:
        result = reply.value.get("result")
        if self.wire is None or reply.is_error or not isinstance(result, dict) or "content" in result:
            return None
        return self.wire.created(result)

    def created(self, call: Call, reply: Reply) -> ClientTask | None:
        """The task that a reply brought; None when the reply is an ordinary one. Remarks what is odd about it."""
        session, wire = self._session, self.wire
        value = self._created(reply) if call.method == "tools/call" else None
        if value is None or wire is None:
            if call.as_task and not reply.is_error:
                session.messages.remark(reply.seq, catalogue.task_ignored())
            return None
        seen, findings = tasks.read_task(wire, value)
        if seen is None:
            session.messages.remark(reply.seq, *findings)
            return None
        known = self.known.get(seen.task_id)
        # The server's list may be quicker than the reply itself: then it is the task that we have heard of already.
        listed = known is not None and known.call_id is None and known.created_at == seen.created_at
        task = known if known is not None and listed else self.new(seen, wire)
        task.call_id, task.tool = call.id, call.subject
        task.requested_ttl = call.ttl
        findings += tasks.first_status(wire, seen.status)
        if not call.as_task and wire is CORE:
            findings.append(catalogue.task_unasked())
        if known is not None and not listed:
            findings.append(catalogue.task_id_known())
        self.known[seen.task_id] = task
        meta = reply.value["result"].get("_meta")
        said = meta.get(tasks.IMMEDIATE) if isinstance(meta, dict) else None
        task.immediate = said[: bounds.TASK_IMMEDIATE] if isinstance(said, str) else None
        leg = call.legs[-1] if call.legs else None
        task.visit(session.wall(), "created", task.status, None if leg is None else leg.request_seq, reply.seq)
        for finding in findings:
            self.polling.remark(task, finding, reply.seq)
        call.task_id, call.deadline_at = task.id, None
        logger.info("session %s: a call became task %s", session.id, task.id)
        session.changed("task.created", task.id)
        session.changed("call.changed", call.id)
        self.polling.ended(task)
        early = self._early.pop(seen.task_id, None)
        if early is not None:
            params, seq = early
            task.notified += 1
            task.visit(session.wall(), "notified", "It came before the task itself, and was kept.", seq)
            self.polling.hear(task, params, seq)
        return task

    async def follow(self, call: Call, task: ClientTask, connection: Connection) -> Reply | None:
        """Follow the task of a call to its end: the reply that is its result, or None when there is none to be had,
        and then the call is settled here."""
        replies: list[Reply] = []
        task.followed = True
        try:
            async with anyio.create_task_group() as group:

                async def fetch() -> None:
                    try:
                        reply = await self._fetch(task, connection, call)
                        if reply is not None:
                            replies.append(reply)
                    finally:
                        task.waiting = False
                        task.nudge()

                def wait() -> None:
                    task.waiting = True
                    group.start_soon(fetch)

                if call.cancel_wanted and task.live:
                    self._cancel_or_stop(call, task)
                await self.polling.accompany(task, connection, wait, lambda: bool(replies) or call.settled)
                tries = 0
                while task.status in ("completed", "failed") and task.gone is None and not replies:
                    if not task.waiting:
                        tries += 1
                        wait()
                    while task.waiting:
                        await self.polling.rest(task, None)
                    if tries >= bounds.TASK_FETCHES or not await self.polling.still_there(task, connection):
                        break
                group.cancel_scope.cancel()
        finally:
            task.unfollowed()
        if replies:
            if task.live:
                self.watch(task)
            return replies[0]
        self._settle_without(call, task)
        if task.live and task.wire.update is not None:
            self.watch(task)  # nobody waits for it any more, and it still has a truth to show
        return None

    def _settle_without(self, call: Call, task: ClientTask) -> None:
        """The end of a call whose task brought no result."""
        calling = self._session.calls
        if task.status == "cancelled":
            call.cancel_reason = task.message or "The task was cancelled."
            calling.settle(call, "cancelled")
            return
        sentences = {
            "not found": "The server no longer knows the task.",
            "lost": "The connection ended while the task ran. Connect again: the server's list may still have it.",
            "not listed": "The server no longer lists the task.",
        }
        words = sentences[task.gone] if task.gone is not None else "The result of the task could not be fetched."
        calling.fail(call, CallError(None, words, kind="task"))

    # ---- the result

    async def _fetch(self, task: ClientTask, connection: Connection, call: Call) -> Reply | None:
        """The reply of `tasks/result`, however long that takes; None when the wait was stopped or lost."""
        method = task.wire.result
        if method is None:
            if task.terminal and task.payload is None:  # it ended with its first word, or with a notice without more
                await self.polling.poll(task, connection)
            return self.polling.inputs.reply_of(task, call)

        def sent(rpc_id: RpcId, seq: int) -> None:
            call.legs.append(Leg(rpc_id, seq))
            task.visit(self._session.wall(), method, task.status, seq)
            self._session.changed("task.changed", task.id)

        with anyio.CancelScope() as scope:
            self._waits[task.id] = scope
            try:
                params, most = {"taskId": task.task_id}, bounds.CALL_MS / 1000
                _, reply = await self.polling.send(connection, method, params, seconds=most, on_sent=sent)
            finally:
                if self._waits.get(task.id) is scope:
                    del self._waits[task.id]
            if reply is None:
                task.reply_lost = True
                return None
            task.fetched, task.answered = call.id, True
            task.visit(self._session.wall(), "result", "an error" if reply.is_error else "the result", None, reply.seq)
            if reply.is_error and error_of(reply.value)[0] == INVALID_PARAMS and task.live:
                self.polling.gone(task, "not found", error_of(reply.value)[1])
            return reply
        task.visit(self._session.wall(), "stopped")
        self._session.changed("task.changed", task.id)
        return None

    def judge_result(self, task_id: Any, result: Any, status: str | None = None) -> list[Finding]:
        """What is to be said of the result of a task, beside what is said of any result (R2-22, R2-23)."""
        if self.wire is EXTENSION:
            return []  # a tool error is a completed task here, and nothing names a task (R7-12)
        findings = tasks.related(result, task_id) if isinstance(task_id, str) else []
        if status == "completed" and isinstance(result, dict) and result.get("isError") is True:
            findings.append(catalogue.task_should_have_failed())
        return findings

    def fetch(self, task: ClientTask, by: Identity) -> Call:
        """Ask for the result at any time, as a call of its own: it blocks until the task ends (R2-21)."""
        if task.wire.result is None:
            raise NotAllowed("On this connection the result comes with the status.")
        call = self._session.start_call(task.wire.result, {"taskId": task.task_id}, timeout_ms=bounds.CALL_MS, by=by)
        task.fetched = task.fetched or call.id
        task.visit(self._session.wall(), task.wire.result, task.status)
        self._session.changed("task.changed", task.id)
        return call

    def stop_waiting(self, task: ClientTask) -> None:
        """End the wait for the result, and nothing else: the task goes on (R2-21)."""
        scope = self._waits.get(task.id)
        if scope is None:
            raise Conflict("Nobody waits for the result of this task at the moment.")
        scope.cancel()

    # ---- by the person

    def poll_now(self, task: ClientTask) -> None:
        """Ask at once how it stands, whatever the interval (F18). Raises NotConnected without a connection."""
        connection = self._session.live(then="ask again")
        if task.followed:
            task.nudge(poll=True)
        else:
            self._session.start_soon(self._poll_once, task, connection)

    async def _poll_once(self, task: ClientTask, connection: Connection) -> None:
        if await self.polling.poll(task, connection):
            task.connection = self._session.info.number
            self.known.setdefault(task.task_id, task)

    def cancel(self, task: ClientTask) -> None:
        """Begin to cancel a task by `tasks/cancel` (R2-40). Raises NotAllowed when the server
        cannot, Conflict when it has ended."""
        connection = self._session.live(then="ask again")
        if not self.capable.cancel:
            raise NotAllowed("The server did not declare `tasks.cancel`, so its tasks cannot be cancelled.")
        if not task.live:
            raise Conflict(f"This task is {task.gone or task.status} already.")
        if task.cancelling:
            raise Conflict("The server was asked to cancel this task already. Wait for its answer.")
        task.cancelling = True
        self._session.changed("task.changed", task.id)
        self._session.start_soon(self._cancel, task, connection)

    async def _cancel(self, task: ClientTask, connection: Connection) -> None:
        sent, reply = await self.polling.ask(task, connection, task.wire.cancel)
        task.cancelling = False
        if reply is not None and reply.is_error:
            # It ended meanwhile, or is gone: what it is now, the server must say (R2-41).
            await self.polling.poll(task, connection)
        elif reply is not None:
            task.visit(self._session.wall(), task.wire.cancel, "taken", sent, reply.seq)
            if task.wire.update is not None:
                task.nudge(poll=True)  # an intent, and an empty answer: what becomes of it, a poll shows (R7-30)
                self._session.changed("task.changed", task.id)
                return
            self.polling.hear(task, reply.value.get("result"), reply.seq)
            if task.live:
                self.polling.remark(task, catalogue.task_not_cancelled(), reply.seq)
        self._session.changed("task.changed", task.id)
        call = self._session.calls.get(task.call_id or "")
        if call is not None:
            self._session.changed("call.changed", call.id)

    def cancel_call(self, call: Call) -> bool:
        """Cancel a call by its task, when it has one or will have; False when it is an ordinary call."""
        task = self.tasks.get(call.task_id or "")
        if task is None:
            if not call.as_task:
                return False
            # Never `notifications/cancelled` for a task (R2-40): its id comes with the reply.
            call.cancel_wanted = True
            self._session.changed("call.changed", call.id)
            return True
        if not task.live:
            return False
        self._cancel_or_stop(call, task)
        return not call.settled

    def _cancel_or_stop(self, call: Call, task: ClientTask) -> None:
        if self.capable.cancel:
            if not task.cancelling:
                self.cancel(task)
            return
        call.cancel_reason = (
            "Parley stopped following the task. The server did not declare `tasks.cancel`, so it goes on with it."
        )
        self._session.calls.settle(call, "cancelled")
        task.nudge()

    # ---- the list

    def refresh(self) -> None:
        """Begin to read the server's list of tasks. Raises NotAllowed when it has none (R2-42)."""
        self._list.refresh()

    # ---- without a call

    def watch(self, task: ClientTask) -> None:
        """Poll a task to its end although no call waits for it any more."""
        connection = self._session.connection
        if connection is not None and not task.followed:
            task.followed = True
            self._session.start_soon(self._watch, task, connection)

    async def _watch(self, task: ClientTask, connection: Connection) -> None:
        def wait() -> None:
            call = self._session.calls.get(task.fetched or "")
            if not task.answered and (call is None or call.settled):
                with contextlib.suppress(Conflict, NotAllowed, Invalid):
                    self.fetch(task, PARLEY)

        try:
            await self.polling.accompany(task, connection, wait, lambda: False)
        except Exception:
            # It must not reach the task group: that one carries every session of this process.
            logger.exception("watching a task of session %s failed inside Parley", self._session.id)
        finally:
            task.unfollowed()

    # ---- from the connection

    def connected(self) -> None:
        """A connection is ready: what the server has is asked for, so that tasks outlive a reconnect."""
        self.listing = Listing()
        if self.capable.list:
            self.refresh()
        if self.wire is EXTENSION:
            self._resume()

    def _resume(self) -> None:
        """Tasks of the extension have no list: those that the connection before knew are asked for by id (R7-10)."""
        number, target = self._session.info.number, self._session.target
        for task in list(self.tasks.values()):
            lost = task.wire is EXTENSION and task.gone == "lost" and not task.terminal
            if lost and task.connection == number - 1 and target == self._target:
                task.gone, task.connection = None, number
                self.known[task.task_id] = task
                self.polling.inputs.resumed(task)
                task.visit(self._session.wall(), "known", "It is followed again on a new connection.")
                self.watch(task)
        self._target = target

    def notified(self, params: dict[str, Any], message: Message) -> None:
        """A status notification. One for a task that is not known yet is kept until it is."""
        task_id = params.get("taskId")
        task = self.of_wire(task_id)
        if task is not None:
            task.notified += 1
            self.polling.hear(task, params, message.seq)
        elif isinstance(task_id, str) and message.size <= bounds.EARLY_NOTICE_BYTES:
            self._early[task_id] = (params, message.seq)
            while len(self._early) > bounds.EARLY_NOTICES:
                self._early.popitem(last=False)

    def connection_ended(self) -> None:
        """Nothing of this connection can be asked for any more; what is known stays to look at."""
        for task in list(self.known.values()):
            if task.gone is None:
                self.polling.gone(task, "lost")
        self.known.clear()
        self._early.clear()
        self.listing = Listing()

    # ---- small pieces

    def new(self, seen: tasks.Seen, wire: TaskWire) -> ClientTask:
        """A task that we have just heard of; the oldest ones are forgotten."""
        session = self._session
        task = ClientTask(
            id=f"t{next(session.task_ids)}",
            task_id=seen.task_id,
            wire=wire,
            connection=session.info.number,
            began_at=session.wall(),
            began=session.mono(),
            log=session.messages,
        )
        task.take(seen, session.wall())
        self.tasks[task.id] = task
        extra = max(0, len(self.tasks) - bounds.TASKS_KEPT)
        for old in [one for one in self.tasks.values() if not one.followed][:extra]:
            del self.tasks[old.id]
            if self.known.get(old.task_id) is old:
                del self.known[old.task_id]
        return task
