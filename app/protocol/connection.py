"""One live connection to one server: opening, handshake, calls, answers, end.

Owns the order of a connection's life; one task enters and leaves everything in it, other tasks call it. The layers,
from the wire up: a link (links/), JSON-RPC over it (rpc.py), the handshake that chooses a kind of wire (handshake.py),
and what each request carries there (envelope.py). Results pass raw: what does not conform is shown, and judged beside
it (judge.py). Knows the session it serves only as a `Host`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import anyio

from app.core.asks import METHODS, admit
from app.core.errors import METHOD_NOT_FOUND, RpcError, Trouble
from app.core.log import MessageLog
from app.core.options import Options
from app.core.revisions import Era, Wire
from app.core.rules import catalogue
from app.core.targets import AnyTarget
from app.core.tasks.received import AWAITING, TASK_METHODS, ReceiverTask, ReceiverTasks
from app.core.wire import Finding, Message, RpcId
from app.egress import Egress
from app.protocol.envelope import Envelope, Plain
from app.protocol.handshake import Agreed, Handshake, HandshakeHost
from app.protocol.links import Opener, open_link
from app.protocol.links.base import Link, LinkError, LinkHost
from app.protocol.requests import Outgoing, Reply
from app.protocol.rpc import Rpc
from app.protocol.serving import Answered, Incoming
from app.protocol.timeout import CallTimeout, OutOfTime
from app.settings import Limits

OLDER_TRANSPORT = frozenset({"http-400", "http-404", "http-405"})
"""What a server of the older HTTP with SSE says to a POST it does not know (R5-47)."""
LONG_METHODS = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests that may take long, so they carry a progress token."""
_NOT_OPEN = Trouble("lost", "The connection is not open.", "Connect first.")
_CLOSED = Trouble("closed", "The connection was closed.")
_COURTESY_SECONDS = 1.0
"""How long a `notifications/cancelled` may take to leave before we stop caring."""


class Host(HandshakeHost, LinkHost, Protocol):
    """Who is told how a connection lives, besides what its link and its handshake tell."""

    def opened(self, transport: str, pid: int | None) -> None:
        """The link is open; the handshake begins."""

    def heard(self, message: Message) -> None:
        """A frame came in, and is in the log."""

    def lost(self, trouble: Trouble) -> None:
        """The link of a ready connection has ended by itself."""

    def notified(self, method: str, params: dict[str, Any], message: Message) -> None:
        """A notification arrived; called in the order of the wire."""


class AskHost(Protocol):
    """Who puts what a server asks to whoever answers."""

    async def asked(self, request: Incoming) -> None:
        """The server asks something; returns when it is answered. Cancelled when the server takes it back."""

    def task_asked(self, request: Incoming, task: ReceiverTask) -> None:
        """The server asks by a task, and polls. Raises RpcError when there are too many asks."""

    def store(self, notify: Callable[[ReceiverTask], None]) -> ReceiverTasks:
        """A store for the tasks of this connection."""


class Connection:
    """One link, from opening to end. `run` lives as long as it does."""

    def __init__(
        self,
        target: AnyTarget,
        options: Options,
        host: Host,
        log: MessageLog,
        asks: AskHost,
        limits: Limits,
        egress: Egress,
        *,
        open_link: Opener = open_link,
        known_era: Era | None = None,
        renewed: bool = False,
    ) -> None:
        self._open_link, self._log, self._asks = open_link, log, asks
        self._target, self._host, self._limits, self._egress = target, host, limits, egress
        self.options = options
        self._known_era, self._renewed = known_era, renewed
        self._transport = target.transport
        self._handshake: Handshake | None = None
        self._link: Link
        self._rpc: Rpc | None = None
        self._envelope: Plain | Envelope = Plain()
        self.version: str | None = None
        """The agreed revision."""
        self.offered: dict[str, Any] = {}
        """The capabilities we declared."""
        self.tasks: ReceiverTasks | None = None
        """The tasks we execute for the server, when the revision has them and we declared it."""

    # ---- life

    async def run(self) -> Trouble:
        """Open, shake hands, stay until the link ends; why it ended. Cancelling this closes the connection.

        A server that refuses the POST of streamable HTTP may speak the older transport (R5-47)."""
        trouble = await self._attempt(self._target)
        if self.version is None and self._target.transport == "http" and trouble.kind in OLDER_TRANSPORT:
            self._host.step("The server took no POST there, so perhaps it speaks the older HTTP with SSE.")
            older = await self._attempt(self._target.model_copy(update={"transport": "sse"}))
            if self.version is not None:
                return older
        begun = self._handshake
        disturbed = begun is not None and begun.probe_sent and not begun.decided
        if self.version is None and self._target.transport == "stdio" and disturbed:
            # Some servers end on whatever comes before `initialize`, and some hang; the next start is not disturbed.
            self._host.step(trouble.message)
            self._host.step("It is started once more, without the version check.")
            return await self._attempt(self._target, probing=False)
        return trouble

    async def _attempt(self, target: AnyTarget, *, probing: bool = True) -> Trouble:
        self._transport = target.transport
        try:
            async with self._open_link(target, self._limits, self._egress, self._host, self._log) as link:
                self._host.opened(target.transport, link.pid)
                rpc = self._rpc = Rpc(
                    link,
                    self._log,
                    self._limits,
                    answer=self._answer,
                    notified=self._host.notified,
                    others_wait=self._host.others_wait,
                    heard=self._host.heard,
                )
                self._link = link
                handshake = self._handshake = Handshake(
                    rpc,
                    self.options,
                    self._host,
                    self._log,
                    self._limits,
                    target.transport,
                    adopt=self._adopt,
                    known_era=self._known_era,
                    renewed=self._renewed,
                )
                failed: list[Trouble] = []

                async def begin() -> bool:
                    trouble = await handshake.run(probing=probing)
                    failed.extend([] if trouble is None else [trouble])
                    return trouble is None

                await rpc.run(begin)
                if self.version is not None and not failed:
                    # Said before the child is ended, which may take seconds.
                    self._host.lost(rpc.trouble or _CLOSED)
                return failed[0] if failed else rpc.trouble or _CLOSED
        except LinkError as fault:
            return fault.trouble

    def _adopt(self, agreed: Agreed) -> None:
        """From now on both sides speak this revision; the server may ask by tasks, when we offered it."""
        rpc = self._rpc_now()
        self._envelope, self.offered = agreed.envelope, agreed.client_capabilities
        self.version = rpc.version = agreed.version
        rpc.wire = self.wire
        self._link.agreed(agreed.version)
        if agreed.version == "2025-11-25" and "tasks" in self.offered:
            self.tasks = self._asks.store(self._notify_status)

    @property
    def wire(self) -> Wire:
        """What the agreed revision has."""
        return self._envelope.wire

    @property
    def over_http(self) -> bool:
        """Whether requests have headers."""
        return self._transport in ("http", "sse")

    def learn_tools(self, tools: list[Any]) -> tuple[list[Any], list[tuple[Any, Finding]]]:
        """The tools to offer, and those that the revision rejects; calls carry the headers that the rest ask for."""
        return self._envelope.learn_tools(tools)

    # ---- towards the server

    async def call(self, method: str, params: dict[str, Any] | None, opts: Outgoing, timeout: CallTimeout) -> Reply:
        """Send a request and wait for its reply. A caller that is cancelled, or out of time, tells the server so
        (R5-05, R5-24). Raises OutOfTime when the limit is over, and LinkError when the link is gone."""
        sent: list[RpcId] = []
        on_sent, on_progress = opts.on_sent, opts.on_progress
        with anyio.CancelScope() as scope:

            def told(rpc_id: RpcId, seq: int) -> None:
                sent.append(rpc_id)
                if on_sent is not None:
                    on_sent(rpc_id, seq)

            def moved(values: dict[str, Any], seq: int) -> None:
                if timeout.renewed_by_progress:
                    timeout.renew()
                if on_progress is not None:
                    on_progress(values, seq)

            opts.fate = lambda: "given up" if scope.cancel_called else "cancelled"
            opts.on_sent = told
            opts.on_progress = moved if method in LONG_METHODS else None
            timeout.begin(scope)
            try:
                params, opts.headers = self._envelope.seal(method, self._with_meta(params), self.options.log_level)
                opts.stateless = not self.wire.server_asks
                return await self._rpc_now().request(method, params, opts)
            except anyio.get_cancelled_exc_class():
                if sent and method != "initialize" and opts.says_cancelled and not opts.taken_back:
                    reason = "the time limit is over" if scope.cancel_called else "cancelled by the person"
                    if not (self.wire.cancels_by_closing and self.over_http):
                        with anyio.move_on_after(_COURTESY_SECONDS, shield=True):
                            gone = {"requestId": sent[0], "reason": reason}
                            await self._rpc_now().notify("notifications/cancelled", gone)
                raise
        raise OutOfTime

    def end_progress(self, rpc_id: RpcId) -> None:
        """What a request began, a task, is over: later progress of it is a fault (R2-32)."""
        if self._rpc is not None:
            self._rpc.end_progress(rpc_id)

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification."""
        await self._rpc_now().notify(method, params)

    def _with_meta(self, params: dict[str, Any] | None) -> dict[str, Any] | None:
        if not self.options.meta:
            return params
        own = (params or {}).get("_meta")
        return {**(params or {}), "_meta": {**self.options.meta, **(own if isinstance(own, dict) else {})}}

    def _rpc_now(self) -> Rpc:
        if self._rpc is None:
            raise LinkError(_NOT_OPEN)
        return self._rpc

    # ---- from the server

    async def _answer(self, request: Incoming) -> dict[str, Any] | Answered | None:
        """Answer one request of the server: what a person must answer goes to the session, the rest is said here."""
        method, params, seq = request.method, request.params, request.message.seq
        if method == "ping":
            return {}
        if method == "roots/list" and self.options.roots:
            await self._asks.asked(request)
            return None
        try:
            if self.tasks is not None and method in TASK_METHODS:
                return await _task_operation(self.tasks, method, params, seq)
            if method in METHODS:
                self._log.remark(seq, *admit(method, params, self.options, self.offered))
                if self.tasks is not None and "task" in params and self._takes_tasks_of(method):
                    if params["task"] is not None:
                        return self._become_receiver(self.tasks, request)
                    self._log.remark(seq, catalogue.null_task())
                await self._asks.asked(request)
                return None
        except RpcError as refusal:
            if refusal.code == METHOD_NOT_FOUND:
                self._log.remark(seq, self._not_handled(method))
            elif refusal.rule:
                self._log.remark(seq, catalogue.refused_params(rule=refusal.rule, why=refusal.message))
            raise
        self._log.remark(seq, self._not_handled(method))
        raise RpcError(METHOD_NOT_FOUND, "Method not found", {"method": method})

    def _not_handled(self, method: str) -> Finding:
        """Why a request was answered with -32601: nothing is agreed yet, or it was not offered."""
        early = self.version is None and method in METHODS
        return catalogue.not_agreed_yet(method=method) if early else catalogue.not_handled(method=method)

    # ---- receiver tasks (2025-11-25)

    def _takes_tasks_of(self, method: str) -> bool:
        """Whether we declared to take this request as a task (R1-03, R1-04)."""
        declared = self.offered.get("tasks", {}).get("requests", {})
        area, _, name = method.partition("/")
        return name in declared.get(area, {})

    def _become_receiver(self, tasks: ReceiverTasks, request: Incoming) -> Answered:
        """Answer `{task}` at once; the ask is in the inbox before that, the status moves after it (R1-11, R1-72)."""
        if not tasks.watched:
            self._rpc_now().start_soon(tasks.run)
        task = tasks.create_receiver_task(request.method, request.params["task"], seq=request.message.seq)
        try:
            self._asks.task_asked(request, task)
        except RpcError:
            tasks.forget(task)
            raise

        def sent(trouble: Trouble | None) -> None:
            if trouble is not None or task.gone is not None:
                return
            task.announced = True
            awaits = self.options.awaiting_user_status == "input_required"
            moved = awaits and tasks.upsert_receiver_task(task, "input_required", AWAITING)
            if task.status != "working" and not moved:
                self._notify_status(task)  # somebody was quicker than the server

        return Answered({"task": task.wire()}, sent)

    def _notify_status(self, task: ReceiverTask) -> None:
        """Tell the server that a task of ours moved, once it has the task; nothing depends on it (R1-70, R1-72)."""
        if self.options.send_status_notifications and task.announced and self._rpc is not None:
            self._rpc.start_soon(self._rpc.notify, "notifications/tasks/status", task.wire())


async def _task_operation(tasks: ReceiverTasks, method: str, params: dict[str, Any], seq: int) -> dict[str, Any]:
    """What a server asks of the tasks that we execute for it."""
    task_id = params.get("taskId")
    match method:
        case "tasks/get":
            return tasks.get_receiver_task(task_id, seq=seq).wire()
        case "tasks/cancel":
            return tasks.cancel_receiver_task(task_id, seq=seq).wire()
        case "tasks/result":
            return await tasks.get_receiver_task_payload(task_id, seq=seq)
        case _:
            page, cursor = tasks.list_receiver_tasks(params.get("cursor"))
            listed: dict[str, Any] = {"tasks": [task.wire() for task in page]}
            return listed if cursor is None else {**listed, "nextCursor": cursor}
