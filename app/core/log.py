"""The log of one session: every frame byte for byte, its findings, and every HTTP exchange.

All is bounded, rows and bodies apart: when the bodies grow too large the oldest are dropped and their rows stay; when
there are too many rows the oldest leave, counted. A finding stands here and nowhere else: calls, asks, tasks, lists
and subscriptions know the messages they are made of, and ask. So it stays for as long as one of them refers to its
message, though the row has left. Pairs requests with their replies. Knows no wire and no page.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, dropwhile, islice, takewhile
from operator import attrgetter

from app import bounds
from app.core.events import EventLog
from app.core.found import Found, Listed, Search, fits
from app.core.json.text import Parsed
from app.core.summary import gist, junk, repeated
from app.core.wire import (
    Direction,
    Exchange,
    Finding,
    Message,
    MessageKind,
    id_key,
    kind_of,
    rpc_id_of,
    short,
)
from app.settings import Limits

_TRIM_NOTICE = 1_000
_SWEEP_EVERY = 256
"""So many findings leave their rows before it is looked which of them somebody still refers to."""

_Beside = dict[str, list[Finding]]
"""The findings of one message, by what of it they are about."""


class MessageLog:
    """Every frame of one session, in order, with what was remarked about it."""

    def __init__(self, limits: Limits, events: EventLog, wall: Callable[[], float], mono: Callable[[], float]) -> None:
        self._limits, self._events, self._wall, self._mono = limits, events, wall, mono
        self._rows: deque[Message] = deque()
        self._bodies: OrderedDict[int, bytes] = OrderedDict()
        self._body_bytes = 0
        self._findings: dict[int, _Beside] = {}
        self._outlived: dict[int, _Beside] = {}
        """Findings whose row has left."""
        self._notes: dict[str, list[tuple[int, Finding]]] = {}
        """Findings that no message says, by their subject, each with the seq after which it was made."""
        self._sweep_at = _SWEEP_EVERY
        self.referred: Callable[[], Iterable[int | str]] = tuple
        """The messages and subjects that somebody refers to: what was remarked about them is kept."""
        self._outstanding: OrderedDict[tuple[str, tuple[str, str]], tuple[int, float, str | None, bool, str | None]] = (
            OrderedDict()
        )
        self._credits: dict[int, str] = {}
        """Who answers which request, until the answer is recorded."""
        self._replies: dict[int, int] = {}
        self._exchanges: dict[int, Exchange] = {}
        """What carried each message."""
        self._requests: deque[Exchange] = deque(maxlen=limits.exchanges)
        """Every HTTP request of ours, also those that carried no message."""
        self._bodies_dropped = 0
        self._fold: str | None = None
        self.count = 0
        self.invalid = 0
        """How many were no messages at all."""
        self.bytes_total = 0
        self.inbound = 0
        self.outbound = 0
        self.rows_dropped = 0
        self.findings_total = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def first_seq(self) -> int | None:
        """The oldest message still kept; None when there is none."""
        return self._rows[0].seq if self._rows else None

    # ---- writing

    def record(
        self,
        direction: Direction,
        raw: bytes,
        parsed: Parsed,
        *,
        quiet: bool = False,
        size: int | None = None,
        exchange: Exchange | None = None,
    ) -> Message:
        """Keep one frame and tell everybody. A reply learns which request it answers, and how long that took."""
        now, at, value = self._mono(), self._wall(), parsed.value
        if exchange is not None and not exchange.seq:
            self.exchanged(exchange)
        kind: MessageKind = "invalid" if parsed.problem is not None else kind_of(value)
        method: str | None = short(value["method"]) if kind in ("request", "notification") else None
        rpc_id = rpc_id_of(value)
        answers, sent = None, now
        fold, step = repeated(kind, method, value, quiet=quiet)
        fold = self._fold = self._fold if fold == self._fold else fold  # one text for all that say the same
        if kind in ("response", "error") and rpc_id is not None:
            asked = self._outstanding.pop(("out" if direction == "in" else "in", id_key(rpc_id)), None)
            if asked is not None:
                answers, sent, method, quiet, fold = asked
        seq = self._events.seq + 1
        message = Message(
            seq=seq,
            direction=direction,
            at=at,
            size=len(raw) if size is None else size,
            kind=kind,
            method=method,
            rpc_id=short(rpc_id) if isinstance(rpc_id, str) else rpc_id,
            gist=_said(parsed, kind, method, raw),
            answers=answers,
            latency_ms=None if answers is None else (now - sent) * 1000,
            problem=parsed.problem,
            quiet=quiet,
            unread=parsed.unread,
            number=self.count + 1,
            fold=fold,
            step=step,
            by="" if answers is None else self._credits.pop(answers, ""),
        )
        if kind == "request" and rpc_id is not None:
            self._outstanding[direction, id_key(rpc_id)] = (seq, now, method, quiet, fold)
            if len(self._outstanding) > bounds.OUTSTANDING:
                self._outstanding.popitem(last=False)
        if answers is not None:
            self._replies[answers] = seq
        self._rows.append(message)
        if exchange is not None:
            self._carry(seq, exchange)
        self._bodies[seq] = raw
        self._body_bytes += len(raw)
        self.count += 1
        self.invalid += kind == "invalid"
        self.bytes_total += message.size
        if direction == "in":
            self.inbound += 1
        else:
            self.outbound += 1
        self._events.append("message.recorded", str(seq), at)
        self._trim(at)
        return message

    def credit(self, seq: int, by: str) -> None:
        """Say who answers a request, before its answer is recorded."""
        if by:
            self._credits[seq] = by
            if len(self._credits) > bounds.OUTSTANDING:
                del self._credits[next(iter(self._credits))]

    def remark(self, seq: int, *findings: Finding, about: str = "") -> None:
        """Put findings beside a message, about all of it or one thing in it. Bounded; the total still counts."""
        for finding in findings:
            self.findings_total += 1
            if seq in self._outlived:
                self._findings[seq] = self._outlived.pop(seq)
            stamped, beside = replace(finding, message_seq=seq, about=about), self._findings.setdefault(seq, {})
            if about in beside or len(beside) <= self._limits.open_asks:
                same = beside.setdefault(about, [])
                if len(same) < self._limits.findings_per_message and stamped not in same:
                    same.append(stamped)
            if len(self._findings) > self._limits.findings:
                self._outlive(next(iter(self._findings)))
            self._events.append("finding.raised", str(seq), self._wall())

    def note(self, subject: str, finding: Finding) -> None:
        """Keep a finding that no message says, for as long as somebody refers to its subject."""
        notes = self._notes.setdefault(subject, [])
        if len(notes) < self._limits.findings_per_message:
            notes.append((self._events.seq, finding))
        self._sweep()

    def _outlive(self, seq: int) -> None:
        """A row has left, or it is too old to show its findings: whoever refers to it still has them."""
        beside = self._findings.pop(seq, None)
        if beside is not None:
            self._outlived[seq] = beside
            self._sweep()

    def _sweep(self) -> None:
        """Forget what nobody refers to any more. Not each time: asking everybody is slow."""
        if len(self._outlived) + len(self._notes) < self._sweep_at:
            return
        held = set(self.referred())
        self._outlived = {seq: beside for seq, beside in self._outlived.items() if seq in held}
        self._notes = {subject: notes for subject, notes in self._notes.items() if subject in held}
        for seq in list(self._outlived)[: -self._limits.findings_outlived]:
            del self._outlived[seq]
        self._sweep_at = len(self._outlived) + len(self._notes) + _SWEEP_EVERY

    def link_opened(self) -> None:
        """A new link counts its requests from the beginning: what is unanswered of the one before stays so."""
        self._outstanding.clear()

    def exchanged(self, exchange: Exchange, seq: int | None = None) -> None:
        """Keep an HTTP request of ours from its beginning; what becomes of it is written into it later. With `seq`, it
        carries that message."""
        exchange.seq = self._events.seq + 1
        self._requests.append(exchange)
        if seq is not None:
            self._carry(seq, exchange)
        self._events.append("exchange.recorded", str(exchange.seq), self._wall())

    def _carry(self, seq: int, exchange: Exchange) -> None:
        self._exchanges[seq] = exchange
        exchange.carried += 1
        exchange.message_seqs.append(seq)
        del exchange.message_seqs[: -self._limits.exchange_messages]

    @property
    def body_bytes(self) -> int:
        """What the bodies that are kept take."""
        return self._body_bytes

    def forget_bodies(self) -> None:
        """Keep the rows only."""
        self._bodies_dropped += len(self._bodies)
        self._bodies.clear()
        self._body_bytes = 0

    def _trim(self, at: float) -> None:
        dropped = self.rows_dropped + self._bodies_dropped
        while self._body_bytes > self._limits.log_bytes and len(self._bodies) > 1:
            _, body = self._bodies.popitem(last=False)
            self._body_bytes -= len(body)
            self._bodies_dropped += 1
        while len(self._rows) > self._limits.log_messages:
            oldest = self._rows.popleft()
            self.rows_dropped += 1
            self._outlive(oldest.seq)
            self._replies.pop(oldest.seq, None)
            self._exchanges.pop(oldest.seq, None)
            body_of_row = self._bodies.pop(oldest.seq, None)
            if body_of_row is not None:
                self._body_bytes -= len(body_of_row)
        now_dropped = self.rows_dropped + self._bodies_dropped
        if now_dropped != dropped and (dropped == 0 or dropped // _TRIM_NOTICE != now_dropped // _TRIM_NOTICE):
            self._events.append("log.trimmed", "log", at)

    # ---- reading

    def get(self, seq: int) -> Message | None:
        """One message by its seq; rows are in order of seq, so this is a binary search."""
        place = bisect_left(self._rows, seq, key=attrgetter("seq"))
        return self._rows[place] if place < len(self._rows) and self._rows[place].seq == seq else None

    def raw(self, seq: int) -> bytes | None:
        """The bytes of a message; None when there is no such message or its body was trimmed."""
        return self._bodies.get(seq)

    def number(self, seq: int) -> int:
        """As which row people know a message; 0 when it is not kept."""
        message = self.get(seq)
        return 0 if message is None else message.number

    def back(self, before: int | None = None) -> Iterator[Message]:
        """The messages older than one, or all of them, newest first."""
        rows = reversed(self._rows)
        return rows if before is None else dropwhile(lambda message: message.seq >= before, rows)

    def after(self, seq: int, limit: int) -> list[Message]:
        """Up to `limit` messages newer than `seq`, oldest first."""
        newer = list(takewhile(lambda message: message.seq > seq, reversed(self._rows)))
        return newer[::-1][:limit]

    def before(self, seq: int, limit: int) -> list[Message]:
        """The `limit` newest messages older than `seq`, oldest first."""
        older = dropwhile(lambda message: message.seq >= seq, reversed(self._rows))
        return list(islice(older, limit))[::-1]

    def last(self, limit: int) -> list[Message]:
        """The newest `limit` messages, oldest first."""
        return list(islice(reversed(self._rows), limit))[::-1]

    def search(self, wanted: Search) -> Callable[[], Found]:
        """What fits of the messages that are kept now: a look into bodies, which may run in a thread."""
        kept = self.last(len(self._rows))
        return lambda: Listed([one for one in kept if fits(wanted, one, self)] if wanted else kept)

    def methods(self, newest: int) -> set[str]:
        """The methods of so many of the newest messages."""
        return {one.method for one in self.last(newest) if one.method}

    def findings(self, seq: int) -> tuple[Finding, ...]:
        """What was remarked beside a message, while its row is kept."""
        beside = self._findings.get(seq)
        return () if beside is None else tuple(chain.from_iterable(list(beside.values())))

    def findings_of(
        self, seqs: Iterable[int], subjects: Iterable[str] = (), *, about: str | None = None
    ) -> list[Finding]:
        """What was remarked about something: beside the messages it is made of, and with what it is known by; oldest
        first. With `about`, only what is said of that in each message."""
        found: list[tuple[int, Finding]] = []
        for seq in seqs:
            beside = self._findings.get(seq) or self._outlived.get(seq)
            if beside is not None:
                told = chain.from_iterable(list(beside.values())) if about is None else beside.get(about, ())
                found += [(seq, finding) for finding in told]
        for subject in subjects:
            found += self._notes.get(subject, ())
        found.sort(key=lambda placed: placed[0])
        return [finding for _, finding in found]

    def is_noted(self, subject: str) -> bool:
        """Whether something was remarked about it that no message says."""
        return subject in self._notes

    def exchange(self, seq: int) -> Exchange | None:
        """The HTTP exchange that carried a message, if one did."""
        return self._exchanges.get(seq)

    def exchanges(self, after: int = 0, before: int | None = None) -> list[Exchange]:
        """Every HTTP request of ours between two places of the log, oldest first, also those without a message."""
        newer = takewhile(lambda exchange: exchange.seq > after, reversed(self._requests))
        return [exchange for exchange in newer if before is None or exchange.seq < before][::-1]

    def reply_to(self, seq: int) -> Message | None:
        """The reply of a request, when it came and is still kept."""
        reply = self._replies.get(seq)
        return None if reply is None else self.get(reply)


def _said(parsed: Parsed, kind: MessageKind, method: str | None, raw: bytes) -> str:
    """What a row says: what is in a message, of junk the junk itself, or which limit of ours it went beyond."""
    if parsed.problem is None:
        return gist(kind, method, parsed.value, raw)
    return parsed.problem if parsed.our_limit else junk(raw)
