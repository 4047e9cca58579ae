"""Sessions: one workspace each, with its log, its calls and at most one live connection; and the registry of them all.

State lives here, never in a tab. A session survives reconnects and reloads; everything in it is bounded and ends with
it: calls, connection, child process. Knows the protocol layer, which it loads on first use because the SDK is slow to
import; knows nothing of the web.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import anyio
import anyio.abc
import anyio.to_thread
from pydantic import ValidationError

from app.asking import Asking
from app.core import checks
from app.core.events import EventKind, EventLog
from app.core.inbox import Inbox
from app.core.jsontext import THREAD_ABOVE, Parsed, parse_async, share_strings
from app.core.log import MessageLog, StderrLog
from app.core.model import (
    LIVE_OPTIONS,
    AnyTarget,
    Call,
    CallError,
    CallLog,
    CallState,
    ConnectionInfo,
    Direction,
    Exchange,
    Finding,
    Gone,
    Leg,
    Listing,
    Message,
    Options,
    Progress,
    Refused,
    Root,
    RpcId,
    Side,
    StdioTarget,
    Step,
    Trouble,
    target_digest,
)
from app.settings import Limits, Settings
from app.store import Store

if TYPE_CHECKING:
    from app.egress import Egress
    from app.protocol.connection import Agreed, Connection, Patience
    from app.protocol.receiver_tasks import ReceiverTask, ReceiverTasks
    from app.protocol.rpc import Incoming, Outgoing

logger = logging.getLogger("parley.sessions")

_REAP_SECONDS = 5.0
_DAY_MS = 24 * 3_600_000
"""No call lasts longer, whatever its progress says (R5-05)."""
_PROGRESS_WORDS = 1_000


@dataclass(slots=True, frozen=True)
class Identity:
    """Who is asking. Local mode has exactly one id; `kind` says how they came in."""

    id: str
    name: str
    kind: Literal["person", "script"] = "person"


class Session:
    """One inspection workspace of one identity. It is the `Host` of its connection."""

    def __init__(
        self,
        sid: str,
        number: int,
        owner: Identity,
        registry: SessionRegistry,
    ) -> None:
        self._registry = registry
        self._limits = limits = registry.settings.limits
        self.wall = self._wall = registry.wall
        self.mono = self._mono = registry.mono
        self.id, self.number, self.owner = sid, number, owner.id
        self.created_at = self._wall()
        self.events = EventLog(limits.events)
        self.messages = MessageLog(limits, self.events, self._wall, self._mono)
        self.stderr = StderrLog(limits, self.events, self._wall)
        self.target: AnyTarget | None = None
        self.options = Options()
        self.roots: list[Root] = [Root(uri=uri) for uri in registry.settings.roots]
        self.info = ConnectionInfo()
        self.calls: dict[str, Call] = {}
        self.tools = Listing()
        self.asking = Asking(self, Inbox(limits.open_asks, limits.settled_asks, self.events, self._wall))
        """What the server asks of the people here."""
        self.closed = False
        self._call_ids = itertools.count(1)
        self._reply_bytes = 0
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._patience: dict[str, Patience] = {}
        self._connection: Connection | None = None
        self._connecting: anyio.CancelScope | None = None
        self._ended = anyio.Event()
        self._ended.set()
        self._stderr_mark = 0
        self._began = self._mono()
        self._streams = 0
        self._seen = self._mono()
        self._listing_again = False

    # ---- who it is

    @property
    def label(self) -> str:
        """The server's name when it is known, else the target, else that there is none yet."""
        named = self.info.server_info
        if isinstance(named, dict):
            for key in ("title", "name"):
                if isinstance(named.get(key), str) and named[key].strip():
                    return str(named[key])
        return self.target.label if self.target is not None else "New session"

    @property
    def limits(self) -> Limits:
        """Every size that bounds this session."""
        return self._limits

    @property
    def inbox(self) -> Inbox:
        """The open asks, and the recent settled ones."""
        return self.asking.inbox

    @property
    def open_asks(self) -> int:
        """How many asks wait for an answer."""
        return len(self.inbox.open)

    @property
    def running(self) -> list[Call]:
        """The calls that are not settled."""
        return [call for cid in self._scopes if (call := self.calls.get(cid)) is not None and not call.settled]

    # ---- idle clock

    def touch(self) -> None:
        """A request named this session."""
        self._seen = self._mono()

    def stream_opened(self) -> None:
        """A tab watches."""
        self._streams += 1
        self.touch()

    def stream_closed(self) -> None:
        """A tab stopped watching."""
        self._streams -= 1
        self.touch()

    def idle_for(self) -> float:
        """Seconds since anything needed this session; 0 while something does (architecture.md §7)."""
        oldest = self._wall() - self._limits.ask_seconds
        if self._streams or self.running or any(ask.asked_at > oldest for ask in self.inbox.open):
            self.touch()
            return 0.0
        return self._mono() - self._seen

    # ---- connecting

    def connect(self, target: AnyTarget, options: Options, *, by: Identity) -> None:
        """Begin to connect and return at once; watch `info.state`. Refused by policy, Gone while connected."""
        if self.closed:
            raise Gone("This session is closed.")
        if self.info.state in ("connecting", "ready"):
            raise Gone("This session is connected already. Disconnect first, or open another session.")
        self.target, self.options = target, options
        self.tools = Listing()
        self.info = ConnectionInfo(
            state="connecting",
            number=self.info.number + 1,
            began_at=self._wall(),
            deadline_at=self._wall() + self._limits.handshake_seconds,
        )
        self._stderr_mark = self.stderr.count
        self._registry.remember(by, target, options)
        logger.info("session %s connects over %s, asked by a %s", self.id, target.transport, by.kind)
        self.changed("connection.changed", "connection")
        before, self._ended = self._ended, anyio.Event()
        self._began = self._mono()
        self._registry.group.start_soon(self._live, self.info, target, options, before, self._ended)

    async def disconnect(self) -> None:
        """Close the connection; returns when the child is gone. The session and its history stay."""
        if self.info.state in ("connecting", "ready"):
            self._end_of_connection("closed", None)
        if self._connecting is not None:
            self._connecting.cancel()
        await self._ended.wait()

    async def _live(
        self, info: ConnectionInfo, target: AnyTarget, options: Options, before: anyio.Event, ended: anyio.Event
    ) -> None:
        """The one task that owns a connection, from opening to end. It begins when the one before is gone."""
        with anyio.CancelScope(shield=True):
            await before.wait()
        try:
            if self.info is not info or info.state != "connecting":
                return
            with anyio.CancelScope() as scope:
                self._connecting = scope
                await self._registry.until_ready()
                from app.protocol.connection import Connection

                connection = self._connection = Connection(target, options, self, self._limits, self._registry.egress)
                try:
                    trouble = await connection.run()
                except Exception:
                    logger.exception("the connection of session %s failed inside Parley", self.id)
                    trouble = Trouble(
                        "internal", "Parley itself failed on this connection.", "Connect again, and report it."
                    )
                self.lost(trouble)
        finally:
            self._connecting = None
            self._connection = None
            ended.set()

    def lost(self, trouble: Trouble) -> None:
        """The link has ended by itself; what is left of it is cleaned up after this.

        A connection that was closed meanwhile has no say: the state may already be that of its successor."""
        if self._connection is not None:
            self._end_of_connection("lost", trouble)

    def _end_of_connection(self, state: Literal["lost", "closed"], trouble: Trouble | None) -> None:
        """Say that the connection is over, once; nothing stays running on it."""
        if self.info.state not in ("connecting", "ready"):
            return
        if trouble is not None:
            words = self.stderr.tail(self._limits.stderr_last_words, self._stderr_mark)
            trouble = replace(trouble, last_words=trouble.last_words or words)
            if self.info.state == "connecting":
                self.step(trouble.message)
        self.info.state, self.info.trouble = state, trouble
        self.info.ended_at, self.info.deadline_at, self.info.pid = self._wall(), None, None
        self._connection = None
        self.asking.connection_ended(self.info.number, "" if trouble is None else trouble.message)
        for call in self.running:
            message = "The connection was closed." if trouble is None else f"The connection was lost: {trouble.message}"
            self._fail(call, CallError(None, message, kind="connection"))
        if self.tools.state == "loading":
            self.tools.state = "failed"
        self.changed("connection.changed", "connection")

    # ---- what the connection tells us (its Host)

    def frame(
        self,
        direction: Direction,
        raw: bytes,
        parsed: Parsed,
        *,
        quiet: bool = False,
        size: int | None = None,
        exchange: Exchange | None = None,
    ) -> Message:
        """Keep one frame."""
        return self.messages.record(direction, raw, parsed, quiet=quiet, size=size, exchange=exchange)

    def exchanged(self, seq: int, exchange: Exchange) -> None:
        """A frame that we sent left with this HTTP exchange."""
        self.messages.exchanged(seq, exchange)

    def stream_changed(self, words: str) -> None:
        """What became of the stream on which an HTTP server speaks unasked."""
        self.info.stream = words
        self.changed("connection.changed", "connection")

    def finding(self, seq: int, finding: Finding) -> None:
        """Keep one remark beside a frame, and beside the call whose reply it is."""
        self.messages.remark(seq, finding)

    def stderr_line(self, line: bytes) -> None:
        """Keep one line of the server's stderr."""
        self.stderr.write(line)

    def step(
        self,
        text: str,
        *,
        side: Side = "parley",
        seq: int | None = None,
        code: str | None = None,
    ) -> None:
        """Say one step of how the connection came about."""
        if len(self.info.steps) < 50:
            self.info.steps.append(Step((self._mono() - self._began) * 1000, text, side, seq, code))
        self.changed("connection.changed", "connection")

    def opened(self, transport: str, pid: int | None) -> None:
        """The link is open; the handshake begins."""
        self.info.transport, self.info.pid = transport, pid
        self.info.deadline_at = self._wall() + self._limits.handshake_seconds
        label = "" if self.target is None else self.target.label
        self.step(f"Started {label}" if pid is not None else f"Dialled {label}")

    def ready(self, agreed: Agreed) -> None:
        """The handshake is over: the connection can be used."""
        info, now = self.info, self._wall()
        if info.state != "connecting":
            return
        info.state, info.era, info.protocol_version = "ready", "legacy", agreed.version
        info.server_info, info.server_capabilities = agreed.server_info, agreed.server_capabilities
        info.client_capabilities, info.instructions = agreed.client_capabilities, agreed.instructions
        info.ready_at, info.deadline_at = now, None
        info.connect_ms = (self._mono() - self._began) * 1000
        self.step("Ready")
        if info.offers("tools"):
            self.tools.state = "loading"
            self._registry.group.start_soon(self._list_tools)
        if self.options.log_level is not None and info.offers("logging"):
            self.start_call("logging/setLevel", {"level": self.options.log_level}, quiet=True, by=PARLEY)

    def notified(self, method: str, params: dict[str, Any], message: Message) -> None:
        """A notification arrived: log lines go to the call that runs, list changes to the listing."""
        if method == "notifications/message":
            running = [call for call in self.running if not call.quiet]
            if len(running) == 1:
                self._log_line(running[0], params, message.size)
        elif method == "notifications/elicitation/complete":
            self.asking.completed_elsewhere(params.get("elicitationId"), message)
        elif method == "notifications/tools/list_changed" and self.info.state == "ready":
            if self.tools.state == "loading":
                self._listing_again = True
            else:
                self.tools.state = "loading"
                self._registry.group.start_soon(self._list_tools)

    async def asked(self, request: Incoming) -> None:
        """The server asks a person; returns when they have answered."""
        await self.asking.asked(request)

    async def roots_asked(self, request: Incoming) -> dict[str, Any] | None:
        """The server asks for our roots."""
        return await self.asking.roots_asked(request)

    def task_asked(self, request: Incoming, task: ReceiverTask) -> None:
        """The server asks a person by a task, and polls."""
        self.asking.task_asked(request, task)

    def receiver_tasks(self, notify: Callable[[ReceiverTask], None]) -> ReceiverTasks:
        """A store for the receiver tasks of this connection."""
        return self.asking.store(notify)

    def _log_line(self, call: Call, params: dict[str, Any], size: int) -> None:
        logger_name = params.get("logger")
        call.logs.append(
            CallLog(
                self._wall(),
                str(params.get("level")),
                logger_name if isinstance(logger_name, str) else None,
                params.get("data"),
                size,
            )
        )
        call.logs_bytes += size
        while len(call.logs) > self._limits.call_logs or call.logs_bytes > self._limits.call_log_bytes:
            call.logs_bytes -= call.logs.popleft().size
            call.logs_dropped += 1
        self.changed("call.changed", call.id)

    # ---- calls

    def start_call(
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
        if self._connection is None or self.info.state != "ready":
            raise Gone("This session is not connected. Connect first, then call again.")
        if as_task or ttl is not None:
            raise Refused("Calling as a task comes with a later release.", {"/as_task": ["Not available yet."]})
        if len(self._scopes) >= self._limits.calls_running:
            raise Gone(f"{self._limits.calls_running} calls are running already. Wait for one, or cancel one.")
        call = Call(
            id=f"c{next(self._call_ids)}",
            method=method,
            params=params,
            started_at=self._wall(),
            started=self._mono(),
            by=by.kind,
            quiet=quiet,
            notification=notification,
        )
        self.calls[call.id] = call
        self._forget_old_calls()
        self.changed("call.added", call.id)
        seconds = (timeout_ms or self.options.request_timeout_ms) / 1000
        call.deadline_at = None if notification else self._wall() + seconds
        scope = self._scopes[call.id] = anyio.CancelScope()
        self._registry.group.start_soon(self._run_call, call, seconds, scope, self._connection)
        return call

    def cancel_call(self, cid: str, reason: str = "cancelled by the person") -> Call:
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

    async def _run_call(self, call: Call, seconds: float, scope: anyio.CancelScope, connection: Connection) -> None:
        from app.protocol.connection import OutOfTime, Patience
        from app.protocol.link import LinkError, RequestLost
        from app.protocol.rpc import Outgoing

        options = self.options
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
                    logger.exception("a call of session %s failed inside Parley", self.id)
                    self._fail(call, CallError(None, f"Parley could not carry out this call: {fault}", kind="internal"))
        finally:
            del self._scopes[call.id]
            self._patience.pop(call.id, None)

    async def _take_reply(self, call: Call, connection: Connection, patience: Patience, wanted: Outgoing) -> None:
        reply = await connection.call(call.method, call.params, wanted, patience)
        call.legs[-1].reply_seq = reply.seq
        call.reply = reply.raw
        self._reply_bytes += len(reply.raw)
        call.findings += self.messages.findings(reply.seq)
        if reply.is_error:
            error = reply.value["error"]
            fields = error if isinstance(error, dict) else {"message": str(error)}
            code = fields.get("code")
            number = code if isinstance(code, int) and not isinstance(code, bool) else None
            self._fail(call, CallError(number, str(fields.get("message", "")), fields.get("data")))
            return
        result = reply.value.get("result")
        findings = await connection.judge(call.method, connection.version, result, len(reply.raw))
        findings += await self._check_output(call, result, len(reply.raw))
        for finding in findings:
            call.findings.append(self.messages.remark(reply.seq, finding))
        self._settle(call, "done")

    async def _check_output(self, call: Call, result: Any, size: int) -> list[Finding]:
        """Whether a tool's structured result fits the output schema the server listed."""
        if call.method != "tools/call" or call.params is None:
            return []
        name = call.params.get("name")
        listed = next((tool for tool in self.tools.items if isinstance(tool, dict) and tool.get("name") == name), None)
        schema = listed.get("outputSchema") if listed is not None else None
        if schema is None:
            return []
        if size <= THREAD_ABOVE:
            return checks.structured_output(schema, result)
        return await anyio.to_thread.run_sync(checks.structured_output, schema, result)

    def call_waits(self, call: Call, waits: bool) -> None:
        """A call waits for a person, or goes on; its time limit stands still meanwhile (architecture.md §7)."""
        patience = self._patience.get(call.id)
        if call.wait() if waits else call.go_on():
            if patience is not None:
                if waits:
                    patience.pause()
                else:
                    patience.resume()
            call.deadline_at = None if waits or patience is None else self._wall() + patience.left()
            self.changed("call.changed", call.id)

    def _sent(self, call: Call, rpc_id: RpcId, seq: int) -> None:
        call.legs.append(Leg(rpc_id, seq))
        capability = checks.METHOD_CAPABILITY.get(call.method)
        if capability is not None and not self.info.offers(capability):
            call.findings.append(self.messages.remark(seq, checks.not_offered(call.method, capability)))

    def _progress(self, call: Call, values: dict[str, Any], patience: Patience) -> None:
        message = values.get("message")
        call.progress = Progress(
            checks.number(values.get("progress")) or 0.0,
            checks.number(values.get("total")),
            message[:_PROGRESS_WORDS] if isinstance(message, str) else None,
            self._wall(),
        )
        if patience.renewed_by_progress and call.state == "running":
            call.deadline_at = self._wall() + patience.seconds
        self.changed("call.changed", call.id)

    def _fail(self, call: Call, error: CallError) -> None:
        if not call.settled:
            call.error = error
        self._settle(call, "failed")

    def _settle(self, call: Call, state: CallState) -> None:
        if call.settle(state, at=self._wall(), now=self._mono()):
            self.changed("call.settled", call.id)

    def _forget_old_calls(self) -> None:
        extra = len(self.calls) - self._limits.calls
        if extra > 0:
            over = (call.id for call in self.calls.values() if call.settled and call.id not in self._scopes)
            for cid in list(itertools.islice(over, extra)):
                self._reply_bytes -= len(self.calls.pop(cid).reply or b"")
        if self._reply_bytes <= self._limits.log_bytes:
            return
        for call in self.calls.values():
            if self._reply_bytes <= self._limits.log_bytes:
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

    # ---- listings

    async def refresh_tools(self) -> None:
        """Ask the server for its tools again, and wait for the answer."""
        if self.info.state == "ready" and self.info.offers("tools") and self.tools.state != "loading":
            self.tools.state = "loading"
            await self._list_tools()
        await self._until(lambda: self.tools.state != "loading", self.options.request_timeout_ms / 1000)

    async def _list_tools(self) -> None:
        """All pages of `tools/list`, as received; guarded against endless cursors (R5-26)."""
        self._listing_again = False
        info, size = self.info, 0
        listing = Listing(state="loading")
        cursor: Any = None
        cursors: set[str] = set()
        for page in itertools.count(1):
            try:
                call = self.start_call("tools/list", {"cursor": cursor} if page > 1 else None, quiet=True, by=PARLEY)
            except (Gone, Refused) as no:
                listing.error = CallError(None, no.message, kind="refused")
                break
            await self._until(lambda call=call: call.settled, None, call.id)  # type: ignore[misc]
            if call.state != "done":
                listing.error = call.error
                break
            size += len(call.reply or b"")
            result = await self.result(call)
            items = result.get("tools") if isinstance(result, dict) else None
            listing.findings += call.findings
            listing.items += share_strings(items) if isinstance(items, list) else []
            cursor = result.get("nextCursor") if isinstance(result, dict) else None
            if cursor is None:
                break
            if not isinstance(cursor, str):
                listing.stopped = f"The cursor of page {page} is no string, so the list ends here."
            elif cursor in cursors:
                listing.stopped = f"The cursor of page {page} came a second time, so the list ends here."
            elif (
                page >= self._limits.list_pages
                or len(listing.items) >= self._limits.list_items
                or size >= self._limits.log_bytes
            ):
                listing.stopped = f"There is more: Parley stopped after {page} pages and {len(listing.items)} tools."
            if listing.stopped is not None:
                listing.findings.append(
                    Finding("R5-26", "note", listing.stopped, "Follow the cursor by hand if you need more.")
                )
                break
            cursors.add(cursor)
        if self.info is not info:
            return
        listing.state = "failed" if listing.error is not None else "ready"
        listing.at = self._wall()
        again, self._listing_again = self._listing_again, False
        self.tools = listing
        self.changed("listing.changed", "tools")
        if again and self.info.state == "ready":
            self.tools.state = "loading"
            self._registry.group.start_soon(self._list_tools)

    # ---- roots and options

    async def set_roots(self, roots: list[Root]) -> None:
        """Replace the list, and tell a server that was promised to hear of it (R5-20)."""
        if len(roots) > self._limits.roots:
            raise Refused(f"At most {self._limits.roots} roots.", {"/roots": ["Too many."]})
        self.roots = list(roots)
        self.changed("roots.changed", "roots")
        if self._connection is not None and self.info.state == "ready" and self.options.roots:
            await self._connection.notify("notifications/roots/list_changed", None)

    async def change_options(self, changes: dict[str, Any]) -> None:
        """Change what the handshake did not say; Refused, with the fields, for what it did say."""
        live = self.info.state in ("connecting", "ready")
        fixed = {key for key in changes if live and key in Options.model_fields and key not in LIVE_OPTIONS}
        if fixed:
            raise Refused(
                "These options were said in the handshake. Reconnect to change them.",
                {f"/{key}": ["Fixed while connected."] for key in sorted(fixed)},
            )
        try:
            self.options = Options.model_validate({**self.options.model_dump(), **changes})
        except ValidationError as fault:
            fields: dict[str, list[str]] = {}
            for error in fault.errors(include_url=False, include_input=False):
                fields.setdefault("/" + "/".join(str(part) for part in error["loc"]), []).append(error["msg"])
            raise Refused("These options cannot be used.", fields) from None
        if self._connection is not None:
            self._connection.options = self.options
        self.changed("options.changed", "options")
        level = changes.get("log_level")
        if level is not None and self.info.state == "ready" and self.info.offers("logging"):
            self.start_call("logging/setLevel", {"level": level}, quiet=True, by=PARLEY)

    # ---- waiting

    async def wait_connection(self, seconds: float) -> None:
        """Return when the connection is no longer connecting, or the time is over."""
        await self._until(lambda: self.info.state != "connecting", seconds, "connection")

    async def wait_call(self, call: Call, seconds: float) -> None:
        """Return when the call is settled or waits for an answer, or the time is over."""
        await self._until(lambda: call.state != "running", seconds, call.id)

    async def _until(self, true: Callable[[], bool], seconds: float | None, subject: str | None = None) -> None:
        """Look whenever anything changed, or only when the subject did that decides it."""
        with anyio.move_on_after(seconds):
            while not true():
                if subject is None:
                    await self.events.wait(self.events.seq)
                else:
                    await self.events.next_of(subject)

    # ---- end

    async def close(self) -> None:
        """End the connection and forget nothing that a reader still holds; afterwards nobody finds it."""
        self.closed = True
        await self.disconnect()
        self.changed("session.closed", "session")

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> None:
        """Run something in the registry's task group."""
        self._registry.group.start_soon(function, *arguments)

    def changed(self, kind: EventKind, subject: str) -> None:
        """Tell everybody who watches that something changed."""
        self.events.append(kind, subject, self._wall())


PARLEY = Identity("parley", "Parley", "script")
"""Ourselves: calls that nobody asked for by hand, like listing the tools."""


class SessionRegistry:
    """All sessions of this process. An async context manager: it owns the task group that everything runs in."""

    def __init__(
        self,
        settings: Settings,
        *,
        wall: Callable[[], float] = time.time,
        mono: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings, self.wall, self.mono = settings, wall, mono
        self.group: anyio.abc.TaskGroup
        self.closing = False
        self._sessions: dict[str, Session] = {}
        self._numbers = itertools.count(1)
        self._loaded = anyio.Event()
        self._consents: dict[str, set[str]] = {}
        self.store = Store(settings.data_dir, wall)
        self._stack = contextlib.AsyncExitStack()
        self.egress: Egress
        self.own_ports: set[int] = {settings.port} - {0}
        """Where this Parley listens; it is never its own target (S22)."""

    async def __aenter__(self) -> Self:
        self.group = await self._stack.enter_async_context(anyio.create_task_group())
        self.group.start_soon(self._load)
        self.group.start_soon(self._reap)
        self.group.start_soon(self.store.open)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> bool | None:
        with anyio.CancelScope(shield=True):
            await self.close_all()
            await self.store.close()
            if self.ready:
                await self.egress.aclose()
        self.group.cancel_scope.cancel()
        return await self._stack.__aexit__(exc_type, exc, tb)

    # ---- the SDK

    @property
    def ready(self) -> bool:
        """Whether the MCP SDK is loaded, so that connections can be made."""
        return self._loaded.is_set()

    async def until_ready(self) -> None:
        """Wait for the SDK."""
        await self._loaded.wait()

    async def _load(self) -> None:
        """Import the protocol layer in a thread: it takes longer than everything else together."""

        def load() -> Egress:
            import app.protocol.connection  # noqa: F401
            from app.egress import Egress, Policy

            # What is loaded now stays for ever: the collector need not walk it again, 100 ms at a time in a flood.
            gc.collect()
            gc.freeze()
            return Egress(Policy(self.settings.mode, self.own_ports))

        self.egress = await anyio.to_thread.run_sync(load)
        self._loaded.set()

    # ---- sessions

    def open(self, identity: Identity) -> Session:
        """A new session. Refused over a limit, or while shutting down."""
        limits: Limits = self.settings.limits
        if self.closing:
            raise Refused("Parley is shutting down.")
        if len(self.of(identity)) >= limits.sessions_per_identity:
            raise Refused(
                f"You have {limits.sessions_per_identity} sessions open, which is the limit. Close one first."
            )
        if len(self._sessions) >= limits.sessions:
            raise Refused("This Parley has no room for another session. Try again later.")
        session = Session(f"r0-{secrets.token_urlsafe(12)}", next(self._numbers), identity, self)
        self._sessions[session.id] = session
        return session

    def find(self, identity: Identity, sid: str) -> Session | None:
        """A session of this identity; somebody else's is as unknown as one that never was (S15)."""
        session = self._sessions.get(sid)
        return session if session is not None and session.owner == identity.id else None

    def of(self, identity: Identity) -> list[Session]:
        """The open sessions of an identity, oldest first."""
        return [session for session in self._sessions.values() if session.owner == identity.id]

    async def close(self, session: Session) -> None:
        """End a session. It cannot be found from the first moment on."""
        self._sessions.pop(session.id, None)
        await session.close()

    async def close_all(self) -> None:
        """End every session, all at the same time."""
        self.closing = True
        async with anyio.create_task_group() as group:
            for session in list(self._sessions.values()):
                group.start_soon(self.close, session)

    async def _reap(self) -> None:
        """Close sessions that nobody has needed for the idle time."""
        limits = self.settings.limits
        while True:
            await anyio.sleep(min(_REAP_SECONDS, limits.idle_seconds / 4))
            for session in list(self._sessions.values()):
                if session.idle_for() >= limits.idle_seconds:
                    logger.info("session %s was idle and is closed", session.id)
                    self.group.start_soon(self.close, session)

    # ---- consent and memory

    def consented(self, identity: Identity, target: AnyTarget) -> bool:
        """Whether this identity has agreed to start exactly this process (R5-71)."""
        return not isinstance(target, StdioTarget) or target_digest(target) in self._consents.get(identity.id, set())

    def consent(self, identity: Identity, target: AnyTarget) -> None:
        """Remember that it has."""
        agreed = self._consents.setdefault(identity.id, set())
        if len(agreed) < 1000:
            agreed.add(target_digest(target))

    def remember(self, identity: Identity, target: AnyTarget, options: Options | None = None) -> None:
        """Keep a target among the recent ones; the disk follows when it can."""
        self.group.start_soon(self.store.write, self.store.used(identity.id, target, options or Options()))

    def recent(self, identity: Identity) -> list[AnyTarget]:
        """The targets this identity used, newest first."""
        return [kept.target for kept in self.store.of(identity.id)]


def _seconds(value: float) -> str:
    return f"{value:g} s"
