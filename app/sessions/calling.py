"""What the person asks of the server: calls, several in flight, each with its time limit, progress, cancel and reply.

Owns the calls of one session, over all its connections. A call is settled once, whatever happens; old ones are
forgotten, and the bytes of their replies before them. Knows the session it serves; knows nothing of the web.
"""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from app.core import checks
from app.core.jsontext import THREAD_ABOVE, parse_async
from app.core.links import required_links
from app.core.model import Call, CallError, CallLog, CallState, Finding, Gone, Leg, Progress, Refused, RpcId
from app.sessions.identity import Identity

if TYPE_CHECKING:
    from app.protocol.connection import Connection, Patience
    from app.protocol.rpc import Outgoing
    from app.sessions.session import Session

logger = logging.getLogger("parley.sessions")

_DAY_MS = 24 * 3_600_000
"""No call lasts longer, whatever its progress says (R5-05)."""
_PROGRESS_WORDS = 1_000


class Calling:
    """The calls of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.calls: dict[str, Call] = {}
        self._ids = itertools.count(1)
        self._reply_bytes = 0
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._patience: dict[str, Patience] = {}

    @property
    def running(self) -> list[Call]:
        """The calls that are not settled."""
        return [call for cid in self._scopes if (call := self.calls.get(cid)) is not None and not call.settled]

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
        by: Identity,
    ) -> Call:
        """Begin a call and return it at once. Gone when there is no connection."""
        connection = self._session.connection
        if connection is None or self._session.info.state != "ready":
            raise Gone("This session is not connected. Connect first, then call again.")
        if as_task or ttl is not None:
            raise Refused("Calling as a task comes with a later release.", {"/as_task": ["Not available yet."]})
        if len(self._scopes) >= self._session.limits.calls_running:
            raise Gone(f"{self._session.limits.calls_running} calls are running already. Wait for one, or cancel one.")
        call = Call(
            id=f"c{next(self._ids)}",
            method=method,
            params=params,
            started_at=self._session.wall(),
            started=self._session.mono(),
            by=by.kind,
            quiet=quiet,
            notification=notification,
        )
        self.calls[call.id] = call
        self._forget_old_calls()
        self._session.changed("call.added", call.id)
        seconds = (timeout_ms or self._session.options.request_timeout_ms) / 1000
        call.deadline_at = None if notification else self._session.wall() + seconds
        scope = self._scopes[call.id] = anyio.CancelScope()
        self._session.start_soon(self._run, call, seconds, scope, connection)
        return call

    def cancel(self, cid: str, reason: str = "cancelled by the person") -> Call:
        """Stop waiting for a call, and tell the server so. KeyError when unknown, Gone when settled."""
        call = self.calls[cid]
        if call.settled:
            raise Gone(f"This call is {call.state} already.")
        call.cancel_reason = reason
        self._settle(call, "cancelled")
        scope = self._scopes.get(cid)
        if scope is not None:
            scope.cancel()
        return call

    async def _run(self, call: Call, seconds: float, scope: anyio.CancelScope, connection: Connection) -> None:
        from app.protocol.connection import OutOfTime, Patience
        from app.protocol.link import LinkError, RequestLost
        from app.protocol.rpc import Outgoing

        options = self._session.options
        most = options.max_total_timeout_ms or _DAY_MS
        patience = Patience(seconds, renewed_by_progress=options.reset_timeout_on_progress, at_most=most / 1000)
        self._patience[call.id] = patience
        wanted = Outgoing(
            quiet=call.quiet,
            on_sent=lambda rpc_id, seq: self._sent(call, rpc_id, seq),
            on_progress=lambda values, seq: self._progress(call, values, patience),
        )
        try:
            with scope:
                try:
                    if call.notification:
                        await connection.notify(call.method, call.params)
                        self._settle(call, "done")
                    else:
                        await self._take_reply(call, connection, patience, wanted)
                except OutOfTime:
                    self._fail(call, CallError(None, f"No answer within {_seconds(seconds)}.", kind="timeout"))
                except RequestLost as fault:
                    words = f"{fault.message} {fault.trouble.advice}".strip()
                    self._fail(call, CallError(None, words, kind="http"))
                except LinkError as fault:
                    self._fail(call, CallError(None, f"The connection was lost: {fault.message}", kind="connection"))
                except Exception as fault:
                    # It must not reach the task group: that one carries every session of this process.
                    logger.exception("a call of session %s failed inside Parley", self._session.id)
                    self._fail(call, CallError(None, f"Parley could not carry out this call: {fault}", kind="internal"))
        finally:
            del self._scopes[call.id]
            self._patience.pop(call.id, None)

    async def _take_reply(self, call: Call, connection: Connection, patience: Patience, wanted: Outgoing) -> None:
        reply = await connection.call(call.method, call.params, wanted, patience)
        call.legs[-1].reply_seq = reply.seq
        call.reply = reply.raw
        self._reply_bytes += len(reply.raw)
        call.findings += self._session.messages.findings(reply.seq)
        if reply.is_error:
            error = reply.value["error"]
            fields = error if isinstance(error, dict) else {"message": str(error)}
            code = fields.get("code")
            number = code if isinstance(code, int) and not isinstance(code, bool) else None
            failed = CallError(number, str(fields.get("message", "")), fields.get("data"))
            call.links, remarks = required_links(failed)
            call.findings += [self._session.messages.remark(reply.seq, finding) for finding in remarks]
            self._fail(call, failed)
            return
        result = reply.value.get("result")
        findings = await connection.judge(call.method, connection.version, result, len(reply.raw))
        findings += await self._check_output(call, result, len(reply.raw))
        for finding in findings:
            call.findings.append(self._session.messages.remark(reply.seq, finding))
        self._settle(call, "done")

    async def _check_output(self, call: Call, result: Any, size: int) -> list[Finding]:
        """Whether a tool's structured result fits the output schema the server listed."""
        if call.method != "tools/call" or call.params is None:
            return []
        name = call.params.get("name")
        listed = next(
            (tool for tool in self._session.tools.items if isinstance(tool, dict) and tool.get("name") == name), None
        )
        schema = listed.get("outputSchema") if listed is not None else None
        if schema is None:
            return []
        if size <= THREAD_ABOVE:
            return checks.structured_output(schema, result)
        return await anyio.to_thread.run_sync(checks.structured_output, schema, result)

    def waits(self, call: Call, waits: bool) -> None:
        """A call waits for a person, or goes on; its time limit stands still meanwhile (architecture.md §7)."""
        patience = self._patience.get(call.id)
        if call.wait() if waits else call.go_on():
            if patience is not None:
                if waits:
                    patience.pause()
                else:
                    patience.resume()
            call.deadline_at = None if waits or patience is None else self._session.wall() + patience.left()
            self._session.changed("call.changed", call.id)

    def _sent(self, call: Call, rpc_id: RpcId, seq: int) -> None:
        call.legs.append(Leg(rpc_id, seq))
        capability = checks.METHOD_CAPABILITY.get(call.method)
        if capability is not None and not self._session.info.offers(capability):
            call.findings.append(self._session.messages.remark(seq, checks.not_offered(call.method, capability)))

    def _progress(self, call: Call, values: dict[str, Any], patience: Patience) -> None:
        message = values.get("message")
        call.progress = Progress(
            checks.number(values.get("progress")) or 0.0,
            checks.number(values.get("total")),
            message[:_PROGRESS_WORDS] if isinstance(message, str) else None,
            self._session.wall(),
        )
        if patience.renewed_by_progress and call.state == "running":
            call.deadline_at = self._session.wall() + patience.seconds
        self._session.changed("call.changed", call.id)

    def _fail(self, call: Call, error: CallError) -> None:
        if not call.settled:
            call.error = error
        self._settle(call, "failed")

    def _settle(self, call: Call, state: CallState) -> None:
        if call.settle(state, at=self._session.wall(), now=self._session.mono()):
            self._session.changed("call.settled", call.id)

    def _forget_old_calls(self) -> None:
        extra = len(self.calls) - self._session.limits.calls
        if extra > 0:
            over = (call.id for call in self.calls.values() if call.settled and call.id not in self._scopes)
            for cid in list(itertools.islice(over, extra)):
                self._reply_bytes -= len(self.calls.pop(cid).reply or b"")
        if self._reply_bytes <= self._session.limits.log_bytes:
            return
        for call in self.calls.values():
            if self._reply_bytes <= self._session.limits.log_bytes:
                break
            if call.reply is not None and call.settled:
                self._reply_bytes -= len(call.reply)
                call.reply = None
                if call.error is not None:
                    call.error.data = None

    async def result(self, call: Call) -> Any:
        """The result of a settled call as JSON; None when there is none, or it is no longer kept."""
        if call.reply is None or call.state != "done":
            return None
        value = (await parse_async(call.reply)).value
        return value.get("result") if isinstance(value, dict) else None

    # ---- from the connection

    def logged(self, params: dict[str, Any], size: int) -> None:
        """A log message of the server: it belongs to the only call that runs, if there is just one."""
        running = [call for call in self.running if not call.quiet]
        if len(running) != 1:
            return
        call = running[0]
        logger_name = params.get("logger")
        call.logs.append(
            CallLog(
                self._session.wall(),
                str(params.get("level")),
                logger_name if isinstance(logger_name, str) else None,
                params.get("data"),
                size,
            )
        )
        call.logs_bytes += size
        while len(call.logs) > self._session.limits.call_logs or call.logs_bytes > self._session.limits.call_log_bytes:
            call.logs_bytes -= call.logs.popleft().size
            call.logs_dropped += 1
        self._session.changed("call.changed", call.id)

    def connection_ended(self, message: str) -> None:
        """Nothing stays running on a connection that is gone."""
        for call in self.running:
            self._fail(call, CallError(None, message, kind="connection"))


def _seconds(value: float) -> str:
    return f"{value:g} s"
