"""What a task of the extension `io.modelcontextprotocol/tasks` brings with its status: questions, a result, an error.

The questions go into the inbox, each key once for the life of the task, and are answered by `tasks/update`, one at a
time or several (R7-20, R7-21). A result or an error stands in the task itself: it becomes the reply of the call that
the task was made for (R7-11). Knows the session it serves; knows nothing of the web.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from app.core import asks
from app.core.asks import Answer, Ask, Delivery
from app.core.calls import Call, Leg
from app.core.errors import Conflict, Gone, RpcError
from app.core.inbox import InboxFull
from app.core.json.text import dump
from app.core.rules import catalogue
from app.core.tasks.running import ClientTask
from app.core.wire import error_of
from app.protocol.requests import Reply

if TYPE_CHECKING:
    from app.sessions.tasks.polling import Polling
    from app.sessions.workspace import Workspace


class TaskInputs:
    """The inputs and outcomes of the extension tasks of one session."""

    def __init__(self, session: Workspace, polling: Polling) -> None:
        self._session, self._polling = session, polling

    def heard(self, task: ClientTask, value: dict[str, Any], seq: int, sent: int | None) -> None:
        """The server described a task: by a poll, which was `sent`, or by a notification."""
        if sent is not None and value.get("resultType", "complete") != "complete":
            self._polling.remark(task, catalogue.task_result_type(said=value["resultType"]), seq)
        match task.status:
            case "completed" | "failed":
                member = "result" if task.status == "completed" else "error"
                if member not in value:
                    self._polling.remark(task, catalogue.task_without_outcome(member=member), seq)
                # A notice may be that of a task without its outcome; then a poll brings it. Kept only for a call.
                call = self._session.calls.get(task.call_id or "")
                wanted = call is not None and not call.settled and not task.answered
                if wanted and task.payload is None and (member in value or sent is not None):
                    task.payload, task.payload_seq, task.payload_sent = {member: value.get(member)}, seq, sent
            case "input_required":
                self._ask(task, value.get("inputRequests"), seq)
                return
        self.no_longer(task)

    # ---- questions

    def _ask(self, task: ClientTask, requests: Any, seq: int) -> None:
        """Put what is new before people; what was asked or answered before is not asked again (R7-21)."""
        if not isinstance(requests, dict):
            self._polling.remark(task, catalogue.task_without_requests(), seq)
            return
        self.no_longer(task, requests)
        for key, request in requests.items():
            if key in task.inputs:
                continue
            try:
                self._ask_one(task, key, request, seq)
            except (RpcError, InboxFull) as no:
                if isinstance(no, RpcError):
                    task.inputs[key] = ""
                else:
                    task.inputs.pop(key, None)  # the next poll asks again
                self._polling.remark(task, catalogue.task_request_unanswerable(key=key, why=no), seq)

    def _ask_one(self, task: ClientTask, key: str, request: Any, seq: int) -> None:
        session = self._session
        connection = session.connection
        if connection is None:
            return
        method, params, findings = asks.admit_embedded(request, session.options, connection.offered)
        session.messages.remark(seq, *findings, about=key)
        deliver = partial(self._deliver, task, key)
        ask = session.asks.new("task-input", method, params, seq, deliver, call_id=task.call_id, task=task, about=key)
        task.inputs[key] = ask.id
        if session.asks.put(ask):
            session.start_soon(session.asks.hand_over, ask)
        else:
            task.visit(session.wall(), "asked", key[:60], seq)

    async def _deliver(self, task: ClientTask, key: str, ask: Ask, answer: Answer) -> Delivery:
        """Send one answer by `tasks/update`; partial sets are allowed, and the acknowledgement is empty (R7-22)."""
        session = self._session
        if answer.error is not None:
            call = session.calls.get(task.call_id or "")
            words = f"The {ask.kind} was refused. There is no way to tell the server, so the call ends here."
            if call is not None and not call.settled:
                session.calls.abandon(call, words)
            task.visit(session.wall(), "answered", "refused, and nothing was sent")
            task.nudge()
            return "sent"
        try:
            await self._update(task, key, answer)
        except Conflict:
            if ask.recorded:
                task.inputs.pop(key, None)  # the next poll asks again
            elif not task.live:  # no poll will take it back any more
                session.asks.end(ask, "withdrawn", "The task has ended.")
            raise
        return "sent"

    async def _update(self, task: ClientTask, key: str, answer: Answer) -> None:
        session, update = self._session, task.wire.update
        connection = session.connection
        if connection is None or update is None or not task.live:
            raise Gone("The task is over. Yours was not sent.")
        params = {"taskId": task.task_id, "inputResponses": {key: answer.result or {}}}
        sent, reply = await self._polling.send(connection, update, params)
        if reply is None:
            raise Gone("The answer could not be sent.")
        if reply.is_error:
            code, message = error_of(reply.value)
            task.visit(session.wall(), update, f"error {code}: {message}", sent, reply.seq)
            raise Gone(f"The server did not take it: {code} {message}")
        task.visit(session.wall(), update, key[:60], sent, reply.seq)
        task.nudge(poll=True)

    def no_longer(self, task: ClientTask, wanted: Collection[str] = ()) -> None:
        """Asks whose key the server no longer names, or whose task is gone, are not open any more."""
        for key, aid in task.inputs.items():
            ask = self._session.inbox.asks.get(aid)
            if key not in wanted and ask is not None and ask.state == "open":
                self._session.asks.end(ask, "withdrawn", "The task no longer asks this.")

    def resumed(self, task: ClientTask) -> None:
        """A task is followed on a new connection: what nobody answered may be asked again."""
        open_again = {ask.id for ask in self._session.inbox.asks.values() if ask.state != "answered"}
        task.inputs = {key: aid for key, aid in task.inputs.items() if aid not in open_again}

    # ---- outcomes

    def reply_of(self, task: ClientTask, call: Call) -> Reply | None:
        """The result or error that stands in the task, as the reply of its call; None while there is none."""
        if task.payload is None or task.payload_seq is None:
            return None
        call.legs.append(Leg(None, task.payload_sent, task.payload_seq))
        task.fetched, task.answered = call.id, True
        value, task.payload = {"jsonrpc": "2.0", "id": None, **task.payload}, None
        came = self._session.messages.get(task.payload_seq)
        unread = None if came is None else came.unread
        raw = self._session.messages.raw(task.payload_seq) if unread is not None else None
        return Reply(task.payload_seq, raw or dump(value), value, unread)
