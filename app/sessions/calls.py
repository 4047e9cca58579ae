"""What the person asks of the server: calls, several in flight, each with its time limit, progress, cancel and reply.

Owns the calls of one session, over all its connections. A call is settled once, whatever happens; old ones are
forgotten, and the bytes of their replies before them. Knows the session it serves; knows nothing of the web.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from app import bounds
from app.core.calls import Call, CallError, CallLog, CallState, Leg, Progress, ReplyHead, tool_or_method
from app.core.errors import Conflict
from app.core.json import text as jsontext
from app.core.json.text import THREAD_ABOVE, parse_async, whole
from app.core.lane import apart
from app.core.links import required_links
from app.core.rules import catalogue, stateless
from app.core.rules.notifications import number
from app.core.rules.results import structured_output
from app.core.tasks.running import ClientTask
from app.core.unfinished import Unfinished
from app.core.wire import Finding, RpcId
from app.protocol.connection import Connection
from app.protocol.judge import judge
from app.protocol.links.base import LinkError, RequestLost
from app.protocol.requests import Outgoing, Reply
from app.protocol.timeout import CallTimeout, OutOfTime
from app.sessions.identity import PARLEY, Identity
from app.sessions.leftovers import taken_up
from app.sessions.tasks.choice import as_task_or_not

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace

logger = logging.getLogger("parley.sessions")


@dataclass(slots=True, eq=False)
class _Run:
    """A call while it is under way."""

    timeout: CallTimeout | None
    """None once it is a task, which may take its time."""
    take: Callable[[Any], None] | None
    """Who wants its result as it was read when it arrived."""
    begun: Unfinished | None = None
    """How far it had come in a session that is lost."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    held: bool = False
    """Its time limit stands still, for an ask is open that may be its own."""
    judging: bool = False
    """It has its result, which is still being judged."""


class Calls(Mapping[str, Call]):
    """The calls of one session, oldest first."""

    def __init__(self, session: Workspace) -> None:
        self._session = session
        self._calls: dict[str, Call] = {}
        self._ids, self._quiet_ids = itertools.count(1), itertools.count(1)
        """People see calls 1, 2, 3: what Parley sends quietly, such as lists, is counted apart."""
        self._reply_bytes = 0
        self._latest: tuple[bytes, Any] | None = None
        """The reply that came last, when it is small, with its result: whoever waited for it looks at once."""
        self._runs: dict[str, _Run] = {}

    def __getitem__(self, cid: str) -> Call:
        return self._calls[cid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: Call) -> None:
        """Keep a call."""
        self._calls[call.id] = call

    def note(self, call: Call, finding: Finding) -> None:
        """Keep a remark about how a call was made, which is beside no message."""
        self._session.messages.note(call.id, finding)

    @property
    def newest(self) -> Iterator[Call]:
        """The calls, the newest first."""
        return reversed(self._calls.values())

    @property
    def running(self) -> list[Call]:
        """The calls that are not settled."""
        return [call for cid in self._runs if (call := self._calls.get(cid)) is not None and not call.settled]

    @property
    def wants_logs(self) -> bool:
        """Whether a request of ours that is under way asked for log messages (R6-51)."""
        if self._session.options.log_level is not None:
            return True
        metas = [self._session.options.meta, *((call.params or {}).get("_meta") for call in self.running)]
        return any(isinstance(meta, dict) and stateless.META_LOG_LEVEL in meta for meta in metas)

    def new(self, method: str, params: dict[str, Any] | None, *, by: str, quiet: bool = False) -> Call:
        """A call that is kept and not sent; old ones that are over leave for it."""
        call = Call(
            id=f"q{next(self._quiet_ids)}" if quiet else f"c{next(self._ids)}",
            method=method,
            params=params,
            started_at=self._session.wall(),
            started=self._session.mono(),
            by=by,
            quiet=quiet,
            log=self._session.messages,
        )
        self.add(call)
        self._forget_old_calls()
        return call

    def start(
        self,
        method: str,
        params: dict[str, Any] | None,
        *,
        timeout_ms: int | None = None,
        notification: bool = False,
        quiet: bool = False,
        as_task: bool = False,
        ttl: int | None = None,
        force: bool = False,
        take: Callable[[Any], None] | None = None,
        begun: Unfinished | None = None,
        by: Identity,
    ) -> Call:
        """Begin a call and return it at once. Raises NotConnected without a connection. `take` gets its result, when
        that was read, before the call is settled.

        A tool is called as a task only where server and tool allow it, else plainly, with a note; one that runs only
        as a task is Invalid plainly. `force` sends what was said, whatever the rules."""
        connection = self._session.live(then="call again")
        params, as_task, findings = as_task_or_not(
            self._session.client_tasks.support, method, params, as_task and not notification, ttl, force
        )
        options, most = self._session.options, self._session.limits.calls_running
        if len(self._runs) >= most:
            raise Conflict(f"{most} calls are running already. Wait for one, or cancel one.")
        if (gate := self._session.gate) is not None and by.id != PARLEY.id:
            gate.calls(by, tool_or_method(method, params), self._session.target)
        call = self.new(method, params, by=by.kind, quiet=quiet)
        call.notification, call.as_task = notification, as_task
        for finding in findings:
            self.note(call, finding)
        self._session.changed("call.added", call.id)
        seconds, whole = timeout_ms or options.request_timeout_ms, options.max_total_timeout_ms or bounds.CALL_MS
        renewed = options.reset_timeout_on_progress
        timeout = CallTimeout(seconds / 1000, renewed_by_progress=renewed, at_most=whole / 1000)
        call.deadline_at = None if notification else self._session.wall() + timeout.seconds
        self._runs[call.id] = _Run(timeout, take, begun)
        if not quiet:
            self._session.moment()
        self._session.start_soon(self._run, call, timeout, connection)
        return call

    def cancel(self, cid: str, reason: str = "cancelled by the person") -> Call:
        """Stop waiting for a call, and tell the server so. Raises KeyError when it is unknown, Conflict
        when it is settled.

        A call that became a task is cancelled by its task, and settled when the server says so."""
        call = self._calls[cid]
        if call.settled:
            raise Conflict(f"This call is {call.state} already.")
        if self._session.client_tasks.cancel_call(call) or call.settled:
            return call
        call.cancel_reason = reason
        self.settle(call, "cancelled")
        if cid in self._runs:
            self._runs[cid].scope.cancel()
        return call

    async def _run(self, call: Call, timeout: CallTimeout, connection: Connection) -> None:
        wanted = Outgoing(
            quiet=call.quiet,
            on_sent=lambda rpc_id, seq: self._sent(call, rpc_id, seq),
            on_progress=lambda values, seq: self._progress(call, values, timeout),
            keeps_progress=self._session.client_tasks.announces,
            says_cancelled=not call.as_task,
        )
        try:
            with nullcontext() if call.quiet else self._session.waited_for(), self._runs[call.id].scope:
                try:
                    if call.notification:
                        await connection.notify(call.method, call.params)
                        self.settle(call, "done")
                    else:
                        await self._take_reply(call, connection, timeout, wanted)
                except OutOfTime:
                    if call.cancel_wanted:
                        call.cancel_reason = "Cancelled before the server said which task it is."
                        self.settle(call, "cancelled")
                    self.fail(call, CallError(None, f"No answer within {timeout.seconds:g} s.", kind="timeout"))
                except RequestLost as fault:
                    words = f"{fault.message} {fault.trouble.advice}".strip()
                    if fault.seq is not None and call.legs:
                        call.legs[-1].reply_seq = fault.seq
                    self.fail(call, CallError(None, words, kind="http" if connection.over_http else "invalid"))
                except LinkError as fault:
                    self.fail(call, CallError(None, f"The connection was lost: {fault.message}", kind="connection"))
                except Exception as fault:
                    # It must not reach the task group: that one carries every session of this process.
                    logger.exception("a call of session %s failed inside Parley", self._session.id)
                    self.fail(call, CallError(None, f"Parley could not carry out this call: {fault}", kind="internal"))
        finally:
            for leg in call.legs:
                connection.end_progress(leg.rpc_id)
            del self._runs[call.id]

    async def _take_reply(self, call: Call, connection: Connection, timeout: CallTimeout, wanted: Outgoing) -> None:
        """One request and its reply; when the reply is a task, what ends the task is the reply."""
        begun = self._runs[call.id].begun
        if begun is not None and begun.task is not None:
            await self._take_task(call, await taken_up(self._session, call, begun.task, connection), connection)
            return
        if connection.wire.rounds:
            outcome = await self._session.rounds.play(call, connection, timeout, wanted, begun)
            if outcome is None:
                return
            reply, invalid = outcome.reply, outcome.invalid
        else:
            reply, invalid = await connection.call(call.method, call.params, wanted, timeout), ""
        self.keep(call, reply)
        if invalid:
            self.fail(call, CallError(None, invalid, kind="invalid"))
        elif (task := self._session.client_tasks.created(call, reply)) is not None:
            await self._take_task(call, task, connection)
        else:
            await self._take_result(call, reply, connection)

    async def _take_task(self, call: Call, task: ClientTask, connection: Connection) -> None:
        self._runs[call.id].timeout = None
        reply = await self._session.client_tasks.follow(call, task, connection)
        if reply is not None:
            self.keep(call, reply)
            await self._take_result(call, reply, connection)

    def keep(self, call: Call, reply: Reply) -> None:
        """Remember a reply with its leg; the newest is the one that counts."""
        call.legs[-1].reply_seq = reply.seq
        self._reply_bytes += len(reply.raw) - len(call.reply or b"")
        result = reply.value.get("result")
        failed = isinstance(result, dict) and result.get("isError") is True
        call.reply, call.head = reply.raw, ReplyHead(reply.is_error, failed, len(reply.raw), reply.unread)

    async def _take_result(self, call: Call, reply: Reply, connection: Connection) -> None:
        """Settle a call by the reply that is its result."""
        if reply.is_error:
            self.refuse(call, reply)
            return
        result = reply.value.get("result")
        findings: list[Finding] = []
        if reply.unread is None:
            run = self._runs[call.id]
            if run.take is not None:
                run.take(result)
            run.judging = True
            findings += await judge(call.method, connection.version, result, len(reply.raw))
            findings += await self._check_output(call, result, len(reply.raw))
        findings += self._check_task(call, result)
        self._session.messages.remark(reply.seq, *findings)
        self._latest = (reply.raw, result) if len(reply.raw) <= bounds.LATEST_RESULT_BYTES else None
        self.settle(call, "done")

    def refuse(self, call: Call, reply: Reply) -> None:
        """Settle a call by a reply that is an error."""
        error = reply.value["error"]
        fields = error if isinstance(error, dict) else {"message": str(error)}
        data = fields.get("data") if reply.unread is None else None
        failed = CallError(whole(fields.get("code")), str(fields.get("message", "")), data)
        links, remarks = required_links(failed)
        call.links = tuple(links)
        self._session.messages.remark(reply.seq, *remarks)
        self.fail(call, failed)

    def _check_task(self, call: Call, result: Any) -> list[Finding]:
        """What a result says wrongly of its task, or of having none."""
        running, params = self._session.client_tasks, call.params or {}
        if call.method == "tasks/result":
            task = running.of_wire(params.get("taskId"))
            if task is not None:
                task.answered = True
            return running.judge_result(params.get("taskId"), result, None if task is None else task.status)
        if call.method != "tools/call":
            return []
        task = running.tasks.get(call.task_id or "")
        if task is not None:
            return running.judge_result(task.task_id, result, task.status)
        must_be_task = running.support(params.get("name")).no_plain
        return [catalogue.task_not_required()] if must_be_task and not call.as_task else []

    async def _check_output(self, call: Call, result: Any, size: int) -> list[Finding]:
        """Whether a tool's structured result fits the output schema the server listed."""
        if call.params is None or call.method not in ("tools/call", "tasks/result"):
            return []
        name = call.params.get("name")
        if call.method == "tasks/result":
            task = self._session.client_tasks.of_wire(call.params.get("taskId"))
            name = None if task is None else task.tool
        listed = self._session.tools.by_name(name)
        schema = listed.get("outputSchema") if listed is not None else None
        if schema is None:
            return []
        small = size <= THREAD_ABOVE
        return structured_output(schema, result) if small else await apart(structured_output, schema, result)

    def abandon(self, call: Call, reason: str) -> None:
        """A person said no, and this wire has no way to say it: the call ends here (R6-34)."""
        call.abandoned, call.cancel_reason = True, reason
        self.settle(call, "cancelled")

    def waits(self, call: Call, waits: bool) -> None:
        """A call waits for a person, or goes on; its time limit stands still meanwhile."""
        if call.wait(waits):
            self._set_limit(call)

    def hold(self, call: Call, held: bool, *, for_sign_in: bool = False) -> None:
        """The time limit of a call stands still, or goes on, for an ask that may be its own or that of another call
        (R5-05). The call keeps its state: nobody knows whether it waits; of a sign-in it is known, and said."""
        run = self._runs.get(call.id)
        if for_sign_in:
            call.signs_in = held
        if run is not None and run.timeout is not None and not call.settled and held != run.held:
            run.held = held
            self._set_limit(call)

    def _set_limit(self, call: Call) -> None:
        """Let the time limit stand still while the call waits or is held, and go on otherwise; and say so."""
        run = self._runs.get(call.id)
        timeout = None if run is None else run.timeout
        still = call.state == "waiting" or (run is not None and run.held)
        if timeout is not None:
            if still:
                timeout.pause()
            else:
                timeout.resume()
        call.deadline_at = None if still or timeout is None else self._session.wall() + timeout.left()
        self._session.changed("call.changed", call.id)

    def _sent(self, call: Call, rpc_id: RpcId, seq: int) -> None:
        call.legs.append(Leg(rpc_id, seq))
        if not self._session.wire.server_asks and call.method in stateless.GONE_METHODS:
            self._session.messages.remark(seq, catalogue.gone_method(method=call.method))
            return
        capability = self._session.info.undeclared(call.method)
        if capability is not None:
            self._session.messages.remark(seq, catalogue.not_offered(method=call.method, capability=capability))

    def _progress(self, call: Call, values: dict[str, Any], timeout: CallTimeout) -> None:
        message = values.get("message")
        call.progress = Progress(
            number(values.get("progress")) or 0.0,
            number(values.get("total")),
            message[: bounds.PROGRESS_WORDS] if isinstance(message, str) else None,
            self._session.wall(),
        )
        call.progressed += 1
        if timeout.renewed_by_progress and not timeout.still and call.state == "running" and call.task_id is None:
            call.deadline_at = self._session.wall() + timeout.seconds
        self._session.changed("call.changed", call.id)

    def fail(self, call: Call, error: CallError) -> None:
        """End a call with an error, unless it has ended."""
        if not call.settled:
            call.error = error
        self.settle(call, "failed")

    def settle(self, call: Call, state: CallState) -> None:
        """Move a call to its end; the first end counts."""
        if call.settle(state, at=self._session.wall(), now=self._session.mono()):
            self._session.changed("call.settled", call.id)

    def _forget_old_calls(self) -> None:
        extra = len(self._calls) - self._session.limits.calls
        if extra > 0:
            over = (call.id for call in self._calls.values() if call.settled and call.id not in self._runs)
            for cid in list(itertools.islice(over, extra)):
                self._reply_bytes -= len(self._calls.pop(cid).reply or b"")
        for call in self._calls.values():
            if self._reply_bytes <= self._session.limits.log_bytes:
                break
            if call.reply is not None and call.settled:
                self._reply_bytes -= len(call.reply)
                call.reply = None
                if call.error is not None:
                    call.error.data = None

    async def result(self, call: Call) -> Any:
        """The result of a settled call as JSON; None when there is none, or it is no longer kept."""
        if call.reply is None or len(call.reply) <= THREAD_ABOVE:
            return self.small_result(call)
        value = (await parse_async(call.reply)).value if call.state == "done" and call.has_result else None
        return value.get("result") if isinstance(value, dict) else None

    def small_result(self, call: Call) -> Any:
        """The same at once, of a call whose reply is small. The latest is there already, and not read again."""
        if call.reply is None or call.state != "done" or not call.has_result:
            return None
        if self._latest is not None and self._latest[0] is call.reply:
            return self._latest[1]
        value = jsontext.parse(call.reply).value
        return value.get("result") if isinstance(value, dict) else None

    # ---- from the connection

    def logged(self, params: dict[str, Any], size: int) -> None:
        """A log message of the server: it belongs to the only call that runs, if there is just one."""
        running = [call for call in self.running if not call.quiet]
        if len(running) != 1:
            return
        call = running[0]
        logger_name = params.get("logger")
        call.add_log(
            CallLog(
                self._session.wall(),
                str(params.get("level")),
                logger_name if isinstance(logger_name, str) else None,
                params.get("data"),
                size,
            ),
            most=self._session.limits.call_logs,
            most_bytes=self._session.limits.call_log_bytes,
        )
        self._session.changed("call.changed", call.id)

    def connection_ended(self, message: str) -> None:
        """Nothing stays running on a connection that is gone."""
        for call in self.running:
            if self._runs[call.id].judging:
                self.settle(call, "done")
                continue
            self.fail(call, CallError(None, message, kind="connection"))
            if call.rounds:  # it may wait for answers that no longer have anywhere to go
                self._runs[call.id].scope.cancel()
