"""JSON-RPC towards one server: who asked what, who answers whom. Lenient in what it takes, exact in what it sends.

Ours rather than the SDK's dispatcher, because an inspector must go on where a client may stop: a result that is no
object, an error without a code, a reply to nobody, junk between two messages are all shown and judged, and none of
them leaves a caller waiting.

Owns the ids of our requests, the order of writing, the tasks that answer the server's requests. Knows no MCP method.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Literal

import anyio
import anyio.abc
import anyio.lowlevel

from app.core.errors import Trouble, own_fault
from app.core.json.heads import HeadReader, heads
from app.core.json.text import THREAD_ABOVE, Parsed, dump, heavy, members, parse_async, read_async
from app.core.lane import apart
from app.core.log import MessageLog
from app.core.revisions import HANDSHAKE
from app.core.rules import catalogue, frames, notifications
from app.core.rules.hidden_text import hidden_text
from app.core.signal import Signal
from app.core.wire import Exchange, Message, RpcId, id_key
from app.protocol.links.base import (
    Barrier,
    Delivery,
    Failed,
    Frame,
    Inbound,
    Link,
    LinkError,
    Outbound,
    Oversized,
    Remarked,
    RequestLost,
)
from app.protocol.requests import NOTHING_MORE, Outgoing, Pending, Reply, ended, progress_token, remember
from app.protocol.serving import Answer, Serving, Written
from app.settings import Limits

logger = logging.getLogger("parley.protocol")

_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
_AT_ONCE = 4
"""Frames taken before others get their turn: one chunk can hold tens of thousands."""
_CROWD = 4
"""So many notifications are taken before a flood rests, while somebody waits for another session."""
_REST_SECONDS = 0.003
_GRACE_SECONDS = 0.25
"""How long a request waits on after an unreadable reply to it: perhaps that was only a print of the real one."""


Notified = Callable[[str, dict[str, Any], Message], None]
"""Told of each notification, in the order of the wire."""


class Rpc:
    """One end of a JSON-RPC conversation over a link."""

    def __init__(
        self,
        link: Link,
        log: MessageLog,
        limits: Limits,
        *,
        answer: Answer,
        notified: Notified,
        others_wait: Callable[[], bool],
        heard: Callable[[Message], None],
    ) -> None:
        self._link, self._log, self._limits = link, log, limits
        self._notified, self._others_wait, self._heard = notified, others_wait, heard
        self._ids = itertools.count(1)
        self._pending: dict[tuple[str, str], Pending] = {}
        self._tokens: dict[tuple[str, str], Pending] = {}
        self._fates: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._serving = Serving(log, limits, answer, self._write, self.start_soon)
        self._writing = anyio.Lock(fast_acquire=True)
        self._group: anyio.abc.TaskGroup | None = None
        self.version: str | None = None
        """The agreed revision; decides whether a batch is legal."""
        self.wire = HANDSHAKE
        """What the agreed revision has."""
        self.initialized = False
        """We have sent `notifications/initialized`: from now on the server may ask (R5-02)."""
        self._scattered: HeadReader | None = None
        """A message that began on an earlier line and has not ended yet."""
        self.trouble: Trouble | None = None
        self._crowd = 0
        self._replied = False
        """Somebody is to hear of a reply before the next frame is read: what follows a reply is after it."""
        self.closed = Signal()

    # ---- sending

    async def request(self, method: str, params: Mapping[str, Any] | None, opts: Outgoing) -> Reply:
        """Send a request and wait for its reply, whatever it looks like. Raises LinkError when the link is gone.

        With `on_progress` the request carries a progress token: the caller's own, else its id (R5-23). Whether the
        server is told of a caller that gave up is the caller's business."""
        pending = Pending(next(self._ids), method, opts)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": pending.rpc_id, "method": method}
        if params is not None:
            message["params"] = dict(params)
        key = token = id_key(pending.rpc_id)
        self._pending[key] = pending
        if opts.on_progress is not None:
            token = progress_token(message, pending.rpc_id)
            self._tokens[token] = pending
        fate = "given up"
        try:
            await self._write(message, opts)
            await pending.done.wait()
            if pending.reply is not None:
                fate = "answered"
        except anyio.get_cancelled_exc_class():
            fate = opts.fate()
            raise
        finally:
            del self._pending[key]
            opts.taken_back = self._link.settled(pending.rpc_id, answered=pending.reply is not None)
            keeps = pending.reply is not None and opts.keeps_progress(pending.reply)
            if self._tokens.get(token) is pending and not keeps:
                del self._tokens[token]
            remember(self._fates, key, fate)
            remember(self._fates, token, fate)
        if pending.reply is None:
            raise pending.lost or LinkError(self._gone())
        return pending.reply

    def end_progress(self, rpc_id: RpcId) -> None:
        """What this request began is over: later progress of it is a fault (R2-32)."""
        for token in [token for token, pending in self._tokens.items() if pending.rpc_id == rpc_id]:
            del self._tokens[token]
            remember(self._fates, ended(token), "task")

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification; one that can no longer be sent is dropped, its reader is gone."""
        try:
            await self.deliver(method, params)
        except LinkError:
            return

    async def deliver(self, method: str, params: Mapping[str, Any] | None, *, settled: bool = False) -> int:
        """Send a notification, and say its place in the log; with `settled`, wait until the server has taken it."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        return await self._write(message, settled=settled)

    async def _write(self, message: dict[str, Any], opts: Outgoing = NOTHING_MORE, *, settled: bool = False) -> int:
        """Record a frame and put it on the wire, in one order for both."""
        raw = await apart(dump, message) if heavy(message) else dump(message)
        if isinstance(message.get("id"), Written):
            written: Written = message["id"]
            raw = raw.replace(b'"id":' + dump(written), b'"id":' + written.text, 1)
        method = message.get("method")
        async with self._writing:
            if self.closed.is_set():
                raise LinkError(self._gone())
            seq = self._log.record("out", raw, Parsed(message), quiet=opts.quiet).seq
            if opts.on_sent is not None:
                # Not after writing: a caller that gives up while the pipe is full must know that it is on its way.
                opts.on_sent(message["id"], seq)
            kind: Literal["request", "notification", "reply"] = "reply"
            if method is not None:
                kind = "request" if "id" in message else "notification"
            delivery = Delivery() if settled else None
            alone = opts.stateless or not self.wire.server_asks
            about = Outbound(kind, seq, message.get("id"), method, delivery, opts.headers, alone)
            await self._link.send(raw, about)
        if delivery is not None:
            await delivery.wait()
        return seq

    def _gone(self) -> Trouble:
        return self.trouble or Trouble("lost", "The connection is closed.", "Connect again.")

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> None:
        """Run something as long as this conversation lasts; nothing when it is over."""
        if self._group is not None and not self.closed.is_set():
            self._group.start_soon(function, *arguments)

    # ---- receiving

    async def run(self, begin: Callable[[], Awaitable[bool]]) -> None:
        """Read frames until the link ends. `begin` runs beside that, and when it comes to nothing, so does this."""

        async def begun() -> None:
            if not await begin():
                group.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as group:
                self._group = group
                self._link.start(group)
                group.start_soon(begun)
                while self.trouble is None and (items := await self._link.receive()) is not None:
                    for number, item in enumerate(items, 1):
                        await self._take(item)
                        if self.trouble is not None:
                            break
                        if number % _AT_ONCE == 0:
                            await self._let_others()
                    self._replied = False
                self.trouble = self.trouble or await self._link.ended()
                group.cancel_scope.cancel()
        except Exception as fault:
            self.trouble = self.trouble or own_fault(fault)
            raise
        finally:
            self.trouble = self.trouble or Trouble("closed", "The connection was closed.", "")
            self.closed.set()
            for pending in self._pending.values():
                pending.lost = LinkError(self.trouble)
                pending.done.set()

    async def _let_others(self) -> None:
        """Let everything else have its turn, once."""
        self._replied = False
        await anyio.lowlevel.checkpoint()

    def _arrived(
        self, raw: bytes, parsed: Parsed, *, size: int | None = None, exchange: Exchange | None = None
    ) -> Message:
        message = self._log.record("in", raw, parsed, size=size, exchange=exchange)
        self._heard(message)
        return message

    def _refuse(self, frame: Oversized) -> None:
        limit = self._limits.message_bytes
        kept = frame.prefix[: self._limits.kept_prefix_bytes]
        problem = Parsed(problem=f"Longer than {limit / 1048576:g} MiB; only its beginning is kept.")
        message = self._arrived(kept, problem, size=frame.size, exchange=frame.exchange)
        self._log.remark(message.seq, frames.oversized(frame.size, limit, over_http=frame.exchange is not None))
        if frame.fatal:
            self.trouble = Trouble(
                "oversized",
                f"The server sent a message of more than {limit / 1048576:g} MiB, so the connection was closed.",
                "Send large content as a resource, or in pages; then connect again.",
            )

    async def _take(self, item: Inbound) -> None:
        """One item of the link: a frame, or word of something that happened beside the frames."""
        match item:
            case bytes():
                await self._read(Frame(item))
            case Frame():
                await self._read(item)
            case Oversized():
                self._refuse(item)
            case Failed(rpc_id, trouble):
                pending = self._pending.get(id_key(rpc_id))
                if pending is not None and pending.reply is None:
                    pending.lost = pending.unread or RequestLost(trouble)
                    pending.done.set()
            case Remarked(seq, finding):
                self._log.remark(seq, finding)
            case Barrier(reached):
                reached.set()

    async def _read(self, frame: Frame) -> None:
        raw, exchange = frame.raw, frame.exchange
        if not raw.strip():
            message = self._arrived(raw, Parsed(problem="An empty line."), exchange=exchange)
            blank = catalogue.empty_line() if exchange is None else catalogue.empty_answer()
            self._log.remark(message.seq, blank)
            return
        parsed = await read_async(raw)
        if isinstance(parsed.value, list) and parsed.value:
            if self.version == "2025-03-26":
                split = members(raw) if len(raw) <= THREAD_ABOVE else await apart(members, raw)
                for number, member in enumerate(split, 1):
                    await self._act(replace(frame, raw=member), await parse_async(member))
                    if number % _AT_ONCE == 0:
                        await anyio.lowlevel.checkpoint()
                return
            message = self._arrived(raw, parsed, exchange=exchange)
            spoken = self.version or "no agreed revision yet"
            self._log.remark(message.seq, catalogue.batch(version=spoken))
            return
        await self._act(frame, parsed)

    async def _act(self, frame: Frame, parsed: Parsed) -> None:
        if self._replied:
            await self._let_others()
        message = self._arrived(frame.raw, parsed, exchange=frame.exchange)
        meant = heads(frame.raw) if parsed.problem is not None else []
        over_http, refusal = frame.exchange is not None, frame.place == "refusal"
        remarks = frames.frame(parsed, "in", over_http=over_http, refusal=refusal, meant=any(h.members for h in meant))
        self._log.remark(message.seq, *remarks, *frame.findings)
        value = parsed.value
        large = len(frame.raw) > THREAD_ABOVE
        hidden = await apart(hidden_text, frame.raw, value) if large else hidden_text(frame.raw, value)
        self._log.remark(message.seq, *hidden)
        match message.kind:
            case "response" | "error":
                if frame.place == "unasked":
                    self._log.remark(message.seq, catalogue.reply_unasked())
                if frame.settles:
                    self._settle(Reply(message.seq, frame.raw, value, parsed.unread), value, frame)
                self._replied = True
            case "request":
                if not self.wire.server_asks:
                    self._log.remark(message.seq, catalogue.server_request(method=value["method"]))
                else:
                    if not self.initialized and value["method"] != "ping":
                        self._log.remark(message.seq, catalogue.early_request(method=value["method"]))
                    await self._serving.take(message, value, frame, parsed.unread)
            case "notification" if parsed.unread is not None:
                self._log.remark(message.seq, catalogue.not_heard())
            case "notification":
                params = value.get("params")
                self._hear(message, value["method"], params if isinstance(params, dict) else {})
                await self._give_way()
            case _:
                await self._make_out(frame, parsed, message, meant)
                return
        self._scattered = None

    # ---- replies that cannot be read

    async def _make_out(self, frame: Frame, parsed: Parsed, message: Message, meant: list[HeadReader]) -> None:
        """A frame that is no message. When it was meant to be a reply, whoever waits for that hears why it fails."""
        problem = parsed.problem or "it is no JSON-RPC message."
        if frame.place == "body":
            pending = self._pending.get(id_key(frame.via))
            if pending is not None and parsed.problem is not None:
                pending.unread = _unreadable(problem, message.seq)
                self._lose(pending)
                await anyio.lowlevel.checkpoint()
            return
        if frame.place == "line":
            if self._scattered is not None:
                self._scattered.feed(frame.raw + b"\n")
                meant, problem = [self._scattered], "It is written over several lines."
            elif meant and not meant[-1].over:
                self._scattered = meant[-1]
                self._scattered.feed(b"\n")
        if len(meant) > 1:
            problem = "Several messages stand on one line."
        for head in meant:
            pending = self._meant_for(head, frame) if head.is_reply else None
            if pending is not None and pending.unread is None:
                pending.unread = _unreadable(problem, message.seq)
                self.start_soon(self._lose_soon, pending)
        if self._scattered is not None and self._scattered.over:
            self._scattered = None

    def _meant_for(self, head: HeadReader, frame: Frame) -> Pending | None:
        """The request that an unreadable reply was meant for; None when that cannot be told."""
        if head.rpc_id is not None:
            return self._asked_as(head.rpc_id)
        if frame.via is not None:
            return self._pending.get(id_key(frame.via))
        alone = frame.place == "line" and head.over and len(self._pending) == 1
        return next(iter(self._pending.values())) if alone else None

    def _asked_as(self, rpc_id: RpcId) -> Pending | None:
        """The request of ours that has this id, also where our number came back as a string."""
        if isinstance(rpc_id, str) and _NUMBER.fullmatch(rpc_id):
            rpc_id = int(rpc_id)
        return self._pending.get(id_key(rpc_id))

    async def _lose_soon(self, pending: Pending) -> None:
        await anyio.sleep(_GRACE_SECONDS)
        self._lose(pending)

    def _lose(self, pending: Pending) -> None:
        if pending.reply is None and not pending.done.is_set():
            pending.lost = pending.unread
            pending.done.set()

    async def _give_way(self) -> None:
        """Let a flood rest while somebody waits for another session, and its server with it; else it runs free."""
        self._crowd = (self._crowd + 1) % _CROWD
        if self._crowd == 0 and self._others_wait():
            await anyio.sleep(_REST_SECONDS)

    def _settle(self, reply: Reply, value: dict[str, Any], frame: Frame) -> None:
        rpc_id, via, refused = value.get("id"), frame.via, frame.place == "refusal"
        if via is not None and "error" in value:
            # One POST, one request: an error without a usable id can only be the answer to that.
            asked = self._pending.get(id_key(via))
            free = refused or (asked is not None and asked.opts.stateless)
            if free and self._asked_as(rpc_id) is None:
                rpc_id = via
        pending = self._asked_as(rpc_id)
        if pending is not None and isinstance(rpc_id, str) and not refused:
            self._log.remark(reply.seq, catalogue.id_as_string(rpc_id=rpc_id))
        if pending is None or pending.reply is not None:
            fate = "answered" if pending is not None else self._fates.get(id_key(rpc_id))
            if not refused and (rpc_id is not None or "error" not in value):
                self._log.remark(reply.seq, frames.stray_reply(rpc_id, fate))
            return
        pending.reply = reply
        pending.done.set()

    def _hear(self, message: Message, method: str, params: dict[str, Any]) -> None:
        self._log.remark(message.seq, *notifications.notification(method, params, self.version))
        if method == "notifications/progress":
            self._progress(message, params)
        elif method == "notifications/cancelled":
            key, reason = id_key(params.get("requestId")), params.get("reason")
            withdrawn = self._serving.withdraw(key, reason if isinstance(reason, str) else "")
            if not withdrawn and self._is_only_ours(key):
                self._log.remark(message.seq, catalogue.cancels_ours(rpc_id=json.dumps(params.get("requestId"))))
        try:
            self._notified(method, params, message)
        except Exception:
            # One message that we cannot take must not end the connection: it is in the log, and so is this.
            logger.exception("a notification failed inside Parley")

    def _is_only_ours(self, key: tuple[str, str]) -> bool:
        """Whether an id is that of a request of ours which waits, and was never one of the server's. A subscription
        of 2026-07-28 may be ended by the server in this way (R6-44)."""
        pending = self._pending.get(key)
        if pending is None or pending.method == "subscriptions/listen":
            return False
        return self._serving.never_asked(key)

    def _progress(self, message: Message, params: dict[str, Any]) -> None:
        key = id_key(params.get("progressToken"))
        pending = self._tokens.get(key)
        if pending is None or pending.opts.on_progress is None:
            fate = self._fates.get(ended(key)) or self._fates.get(key)
            self._log.remark(message.seq, notifications.stray_progress(fate))
            return
        said = params.get("progress")
        self._log.remark(message.seq, *notifications.progress_rises(pending.last_progress, said))
        value = notifications.number(said)
        if value is not None:
            pending.last_progress = value if pending.last_progress is None else max(value, pending.last_progress)
            pending.opts.on_progress(params, message.seq)


def _unreadable(problem: str, seq: int) -> RequestLost:
    said = f"The reply came and cannot be read: {problem[:1].lower()}{problem[1:]}"
    return RequestLost(Trouble("unreadable", said, f"Message {seq} of the log shows it."), seq)
