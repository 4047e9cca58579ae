"""A workspace that recorded frames fill, instead of a connection.

Frame by frame it learns what a live session would have learned: what was agreed, which lists there are, what was called
and what came of it, what the server asked and what was answered. Nothing is sent, and nobody is asked. It is read like
any other session; whoever wants to act hears that it is not connected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.core.asks import METHODS, Answer, AnsweredBy, Ask, Delivery, Origin
from app.core.calls import Call, CallError, Leg
from app.core.errors import Gone, RpcError
from app.core.inbox import InboxFull
from app.core.json.text import parse, whole
from app.core.revisions import HANDSHAKE, STATELESS
from app.core.rules import frames, stateless
from app.core.tasks.received import ReceiverTask
from app.core.tasks.status import STATUSES, Status, may_move
from app.core.wire import Direction, Message, id_key, is_error
from app.protocol.requests import Reply
from app.sessions.identity import Identity
from app.sessions.lists import LISTS
from app.sessions.workspace import Workspace

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry

_BY = AnsweredBy("person", "recorded")
_NO_CALLS = frozenset({"initialize", "server/discover", "ping", "tasks/list"})
"""What Parley asks by itself, and never lists among the calls."""
_UNFOLLOWED = "More was open at once than is followed, so what came of it is not known."
_ABOUT_TASKS = frozenset({"tasks/get", "tasks/result", "tasks/cancel", "tasks/update"})


@dataclass(slots=True, frozen=True)
class Recorded:
    """One frame as it crossed the wire, and when."""

    direction: Direction
    raw: bytes
    at: float


@dataclass(slots=True)
class _Asked:
    """One request of either side that waits for its reply."""

    method: str
    params: dict[str, Any]
    seq: int
    call: Call | None = None
    ask: Ask | None = None
    task: ReceiverTask | None = None
    """The task of ours that it asks about."""


class Replay(Workspace):
    """A session that is over, as its frames tell it."""

    def __init__(self, sid: str, number: int, owner: Identity, registry: SessionRegistry) -> None:
        self._at = registry.wall()
        super().__init__(sid, number, owner, registry, wall=lambda: self._at, mono=lambda: self._at)
        self._ours: dict[tuple[str, str], _Asked] = {}
        self._theirs: dict[tuple[str, str], _Asked] = {}
        self._received: dict[str, ReceiverTask] = {}
        """Receiver tasks by the id that the wire has."""

    def fill(self, frames: Iterable[Recorded]) -> None:
        """Take all frames, in their order; afterwards what is still open is over."""
        for frame in frames:
            self._take(frame)
        self.info.state, self.info.ended_at = "closed", self._at
        for call in self.calls.values():
            self.calls.fail(call, CallError(None, "The recording ends here.", kind="connection"))
        for ask in self.inbox.open:
            self.inbox.end(ask, "lost", "The recording ends here.")
        for task in self._received.values():
            task.gone = task.gone or (None if task.terminal else "lost")
        self.client_tasks.connection_ended()
        self.changed("connection.changed", "connection")

    def _take(self, frame: Recorded) -> None:
        self._at = frame.at
        if self.info.began_at is None:
            self.info.began_at = frame.at
        parsed = parse(frame.raw)
        message = self.messages.record(frame.direction, frame.raw, parsed)
        if frame.direction == "in":
            self.messages.remark(message.seq, *frames.frame(parsed, "in"))
        value = parsed.value
        if not isinstance(value, dict):
            return
        params = value.get("params")
        given = params if isinstance(params, dict) else {}
        match frame.direction, message.kind:
            case "out", "request":
                self._we_asked(value, given, message)
            case "in", "response" | "error":
                self._they_replied(frame.raw, value, message)
            case "in", "request":
                self._they_asked(value, given, message)
            case "out", "response" | "error":
                self._we_replied(value)
            case "in", "notification":
                self._they_told(value["method"], given, message)
            case _:
                pass

    def _expect(self, waiting: dict[tuple[str, str], _Asked], rpc_id: Any, asked: _Asked) -> None:
        """Remember what waits for its reply. A recording may leave any number of requests open; the newest count."""
        waiting[id_key(rpc_id)] = asked
        if len(waiting) > self.limits.calls:
            del waiting[next(iter(waiting))]

    # ---- what we asked

    def _we_asked(self, value: dict[str, Any], params: dict[str, Any], message: Message) -> None:
        method = value["method"]
        asked = _Asked(method, params, message.seq)
        self._expect(self._ours, value.get("id"), asked)
        known = method in _ABOUT_TASKS and self.client_tasks.of_wire(_task_id(params)) is not None
        if method not in _NO_CALLS and not known:
            listed = any(method == kind.method for kind in LISTS.values())
            given = _as_asked(params, message) if "params" in value else None
            call = asked.call = self.calls.new(method, given, by="person", quiet=listed)
            if len(self.calls) > self.limits.calls:  # all are open, and the next one needs the place of the oldest
                self.calls.fail(next(iter(self.calls.values())), CallError(None, _UNFOLLOWED, kind="connection"))
            call.as_task = method == "tools/call" and isinstance(params.get("task"), dict)
            call.legs.append(Leg(message.rpc_id, message.seq))
            self.changed("call.added", call.id)

    def _they_replied(self, raw: bytes, value: dict[str, Any], message: Message) -> None:
        asked = self._ours.pop(id_key(value.get("id")), None)
        if asked is None:
            return
        reply = Reply(message.seq, raw, value, message.unread)
        call, result = asked.call, value.get("result")
        if call is not None:
            self.calls.keep(call, reply)
            if self.client_tasks.created(call, reply) is None:
                self._settle(call, reply)
                self._listed(asked, result, message.seq)
            return
        task = self.client_tasks.of_wire(_task_id(asked.params))
        if task is None:
            self._agreed(asked.method, asked.params, result if isinstance(result, dict) else {})
            return
        call = self.calls.get(task.call_id or "")
        if asked.method == "tasks/result" and call is not None:
            call.legs.append(Leg(message.rpc_id, asked.seq, message.seq))
            self.calls.keep(call, reply)
            task.fetched, task.answered = call.id, True
            self._settle(call, reply)
        elif not reply.is_error:
            self.client_tasks.polling.hear(task, result, message.seq, asked.seq)
            if call is not None and task.status == "cancelled":
                self.calls.settle(call, "cancelled")

    def _settle(self, call: Call, reply: Reply) -> None:
        if reply.is_error:
            self.calls.refuse(call, reply)
        else:
            self.calls.settle(call, "done")

    def _listed(self, asked: _Asked, result: Any, seq: int) -> None:
        for name, kind in LISTS.items():
            items = result.get(kind.key) if isinstance(result, dict) else None
            if kind.method == asked.method and isinstance(items, list):
                self.lists.recorded(name, items, seq, more="cursor" in asked.params)

    def _agreed(self, method: str, params: dict[str, Any], fields: dict[str, Any]) -> None:
        info = self.info
        if method == "initialize" and "protocolVersion" in fields:
            info.era, info.protocol_version = HANDSHAKE.era, str(fields["protocolVersion"])
            info.server_info, info.client_capabilities = fields.get("serverInfo"), params.get("capabilities")
        elif method == "server/discover" and "supportedVersions" in fields:
            meta, said = fields.get("_meta"), params.get("_meta")
            ours = said if isinstance(said, dict) else {}
            version = ours.get(stateless.META_VERSION)
            info.era, info.protocol_version = STATELESS.era, None if version is None else str(version)
            info.server_info = meta.get(stateless.META_SERVER) if isinstance(meta, dict) else None
            info.client_capabilities = ours.get(stateless.META_CAPABILITIES)
        else:
            return
        info.state, info.ready_at, info.number = "ready", self._at, info.number + 1
        info.server_capabilities = fields.get("capabilities")
        instructions = fields.get("instructions")
        info.instructions = instructions if isinstance(instructions, str) else None

    # ---- what they asked and told

    def _they_told(self, method: str, params: dict[str, Any], message: Message) -> None:
        if method == "notifications/message":
            self.server_log.write(params, message.seq, message.at)
        elif self.client_tasks.wire is not None and method == self.client_tasks.wire.notification:
            self.client_tasks.notified(params, message)
        elif method == "notifications/cancelled":
            asked = self._theirs.pop(id_key(params.get("requestId")), None)
            if asked is not None and asked.ask is not None and asked.task is None:
                self.inbox.end(asked.ask, "withdrawn", str(params.get("reason") or ""))

    def _they_asked(self, value: dict[str, Any], params: dict[str, Any], message: Message) -> None:
        method = value["method"]
        asked = _Asked(method, params, message.seq)
        self._expect(self._theirs, value.get("id"), asked)
        if method in _ABOUT_TASKS:
            asked.task = self._received.get(_task_id(params) or "")
            if asked.task is not None:
                asked.task.visit(self._at, method, asked.task.status, message.seq)
                self.changed("task.changed", asked.task.id)
            return
        if method not in METHODS and method != "roots/list":
            return
        running = [call for call in self.calls.values() if not call.settled and not call.quiet]
        call = running[0] if len(running) == 1 else None
        origin: Origin = "receiver-task" if isinstance(params.get("task"), dict) else "request"
        ask = self.asks.new(origin, method, params, message.seq, _nobody, call_id=None if call is None else call.id)
        try:
            self.inbox.add(ask)
        except InboxFull:
            return
        asked.ask = ask
        if call is not None:
            call.asks += (ask.id,)

    def _we_replied(self, value: dict[str, Any]) -> None:
        asked = self._theirs.pop(id_key(value.get("id")), None)
        if asked is None:
            return
        task, result = asked.task, value.get("result")
        if asked.ask is not None:
            made = result.get("task") if isinstance(result, dict) else None
            if isinstance(made, dict) and isinstance(made.get("taskId"), str):
                self._become_receiver(asked.ask, made, asked.seq)
            else:
                self._answered(asked.ask, value)
        elif task is not None and asked.method == "tasks/result":
            ask = self.inbox.asks.get(task.ask_id or "")
            if ask is not None and not ask.settled:
                self._answered(ask, value)
            task.fetched = True
            self._moved(task, "failed" if is_error(value) else "completed")
        elif task is not None and isinstance(result, dict) and result.get("status") in STATUSES:
            self._moved(task, result["status"])

    def _become_receiver(self, ask: Ask, made: dict[str, Any], seq: int) -> None:
        ttl, poll = whole(made.get("ttl")), whole(made.get("pollInterval"))
        tid, now = f"t{next(self.task_ids)}", self._at
        task = ReceiverTask(
            tid, made["taskId"], ask.method, poll or 0, now, seq, ask.id, began_at=now, began=now, ttl=ttl
        )
        task.visit(self._at, "created", "" if ttl is None else f"ttl {ttl} ms", seq)
        ask.task_id, ask.expires_at = task.id, task.expires_at
        self._received[task.task_id] = self.asks.tasks[task.id] = task
        if len(self.asks.tasks) > self.limits.receiver_tasks:
            _, oldest = self.asks.tasks.popitem(last=False)
            if self._received.get(oldest.task_id) is oldest:
                del self._received[oldest.task_id]
        self.changed("task.created", task.id)

    def _moved(self, task: ReceiverTask, status: Status) -> None:
        if may_move(task.status, status):
            task.status, task.updated_at = status, self._at
            task.visit(self._at, "status", status)
        if status == "cancelled" and (ask := self.inbox.asks.get(task.ask_id or "")) is not None:
            self.inbox.end(ask, "withdrawn")
        self.changed("task.changed", task.id)

    def _answered(self, ask: Ask, value: dict[str, Any]) -> None:
        result, error = value.get("result"), value.get("error")
        if isinstance(result, dict):
            action = result.get("action", "respond" if ask.kind == "sampling" else "accept")
            ask.begin(Answer(str(action), result, None, _BY))
        else:
            fields = error if isinstance(error, dict) else {}
            refused = RpcError(whole(fields.get("code")) or 0, str(fields.get("message", "")), fields.get("data"))
            ask.begin(Answer("fail", None, refused, _BY))
        self.inbox.sent(ask)


def _task_id(params: dict[str, Any]) -> str | None:
    found = params.get("taskId")
    return found if isinstance(found, str) else None


def _as_asked(params: dict[str, Any], message: Message) -> dict[str, Any]:
    """The params without the progress token that Parley adds by itself, which is the id of the request (R5-23)."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or meta.get("progressToken") != message.rpc_id:
        return params
    rest = {key: value for key, value in meta.items() if key != "progressToken"}
    return {**params, "_meta": rest} if rest else {key: value for key, value in params.items() if key != "_meta"}


async def _nobody(ask: Ask, answer: Answer) -> Delivery:
    """The reply channel of an ask that was recorded."""
    raise Gone("This was recorded. Nobody waits for an answer.")
