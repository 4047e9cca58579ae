"""Two calls side by side: of one session, of two, or one that is run again in the other era by a session made for that.

That one is an ordinary session: it has its page, its inbox and its log; it says in its name what it is for, and ends
with the session that it was made for. Knows sessions and their registry; knows nothing of the web.
"""

from __future__ import annotations

import contextlib
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import anyio

from app import bounds
from app.core import pairs
from app.core.asks import AnsweredBy, Ask
from app.core.calls import Call
from app.core.errors import Conflict, Gone, Invalid, NotAllowed, NotConnected
from app.core.json import diff
from app.core.revisions import HANDSHAKE
from app.core.wire import Message
from app.sessions.identity import Identity

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry
    from app.sessions.session import Session
    from app.sessions.workspace import Workspace


@dataclass(slots=True)
class Comparison:
    """One call, and the same call in another session. It does not keep that one alive: when it is closed, only what
    differed stays (H12)."""

    call_id: str
    other_id: str
    _other: weakref.ref[Session]
    era: Literal["legacy", "modern"]
    """Of the other session."""
    other_call: str | None = None
    words: str = "Connecting to the same server on the other protocol."
    failed: bool = False
    differences: list[str] = field(default_factory=list)
    """What differed, once both calls were settled."""

    @property
    def open(self) -> Session | None:
        """The other session; None when it is closed."""
        other = self._other()
        return None if other is None or other.closed else other

    @property
    def other(self) -> Session:
        """The other session. Raises Gone when it is closed."""
        other = self.open
        if other is None:
            raise Gone("The other session was closed. Compare again to see both conversations.")
        return other


@dataclass(frozen=True)
class Side:
    """One of two calls, with its session."""

    session: Workspace
    call: Call

    @property
    def asks(self) -> list[Ask]:
        """What the server asked for it, as far as that is kept, in the order in which it asked."""
        return [ask for ask in self.session.inbox.asks.values() if ask.call_id == self.call.id]

    def same_answers(self, before: Side) -> list[tuple[Ask, Ask]]:
        """What is open here and can be answered as the same was answered there: the ask, and whose answer it gets."""
        mine, theirs = self.asks, before.asks
        found = [(ask, pairs.to_repeat(ask, mine, theirs)) for ask in mine if ask.state == "open"]
        return [(ask, one) for ask, one in found if one is not None]

    async def answer_as(self, before: Side, by: Identity) -> list[Ask]:
        """Give the same answers to all that is open and was asked there word for word. What was given."""
        given: list[Ask] = []
        for ask, one in self.same_answers(before):
            roots = [root.wire() for root in self.session.roots]
            with contextlib.suppress(Gone):
                await self.session.asks.give(ask, pairs.repeated(ask, one, AnsweredBy(by.kind, by.name), roots))
                given.append(ask)
        return given

    def answer_later_as(self, before: Side, by: Identity) -> None:
        """Give the same answers to whatever this call asks later, when it is asked word for word. Raises NotAllowed for
        calls of different servers."""
        if self.session.target_key != before.session.target_key:
            raise NotAllowed("These are calls of different servers: what one was answered is not told to the other.")
        there, cid = weakref.ref(before.session), before.call.id

        def asked() -> list[Ask]:
            session = there()
            call = None if session is None or session.closed else session.calls.get(cid)
            return [] if session is None or call is None else Side(session, call).asks

        self.session.asks.repeats.begin(self.call.id, lambda: self.asks, asked, AnsweredBy(by.kind, by.name))


def _again(side: Side, by: Identity) -> Call:
    """The same call once more."""
    call = side.session.start_call(side.call.method, side.call.params, by=by)
    call.retry_of = side.call.id
    return call


class Comparisons:
    """The comparisons that began in one session."""

    def __init__(self, session: Workspace, registry: SessionRegistry) -> None:
        self._session, self._registry = session, registry
        self.by_call: dict[str, Comparison] = {}
        self._watched: set[tuple[str, str]] = set()
        """Calls of other sessions whose changes are told here too."""

    def begin(self, call: Call, by: Identity) -> Comparison:
        """Open the other session and run the call there. Raises Conflict while this one is
        not connected, NotAllowed over a limit."""
        session = self._session
        if session.target is None or session.info.state != "ready" or session.info.era is None:
            raise NotConnected("compare")
        if session.info.transport == "sse":
            raise NotAllowed("HTTP with SSE ends with 2025-11-25, so there is nothing to compare with.")
        if not call.settled or call.notification:
            raise Conflict("Wait until this call is settled, then compare it.")
        self.by_call = {cid: one for cid, one in self.by_call.items() if cid in session.calls}
        before = self.by_call.pop(call.id, None)
        if before is not None and before.open is not None:
            self._registry.start_soon(self._registry.close, before.open)
        era: Literal["legacy", "modern"] = "modern" if session.wire is HANDSHAKE else "legacy"
        other = self._registry.open(by)
        other.roots = list(session.roots)
        other.made_for = (session.id, call.id)
        found = self.by_call[call.id] = Comparison(call.id, other.id, weakref.ref(other), era)
        options = session.options.model_copy(update={"era": era, "protocol_version": None})
        other.connect(session.target, options, by=by)
        session.start_soon(self._run, found, other, call, by)
        self._changed(found)
        return found

    async def _run(self, found: Comparison, other: Session, call: Call, by: Identity) -> None:
        await other.until(lambda: other.info.state != "connecting", None, "connection")
        if other.info.state != "ready":
            trouble = other.info.trouble
            words = "The other session ended." if trouble is None else f"{trouble.message} {trouble.advice}".strip()
            self._say(found, words, failed=True)
            return
        await other.until(lambda: other.tools.state != "loading", other.options.request_timeout_ms / 1000)
        params = {key: value for key, value in (call.params or {}).items() if key not in ("task", "_meta")}
        try:
            again = other.start_call(call.method, params if call.params is not None else None, force=True, by=by)
        except (Conflict, NotAllowed, Invalid) as no:
            self._say(found, no.message, failed=True)
            return
        found.other_call = again.id
        self._say(found, "The same call runs on the other protocol.")
        while not again.settled and not other.closed:
            await other.events.next_of(again.id)
            self._changed(found)
            await anyio.sleep(bounds.COMPARED_SECONDS)
        found.differences = diff.differences(await told(self._session, call), await told(other, again))
        self._say(found, "Both calls are done.")

    def close(self) -> None:
        """The session ends: so do those that were made for it."""
        for each in self.by_call.values():
            if each.open is not None and not self._registry.closing:
                self._registry.start_soon(self._registry.close, each.open)

    async def end(self, call: Call) -> None:
        """Close the session that was made for a call."""
        found = self.by_call.get(call.id)
        if found is not None and found.open is not None:
            await self._registry.close(found.open)
            self._changed(found)

    # ---- any two calls

    def watch(self, other: Workspace, call: Call) -> None:
        """Tell the pages of this session what happens to a call of another one, until it is settled."""
        key = (other.id, call.id)
        if (
            call.settled
            or other is self._session
            or key in self._watched
            or len(self._watched) >= bounds.COMPARED_WATCHED
        ):
            return
        self._watched.add(key)
        self._session.start_soon(self._watch, other, call, key)

    async def _watch(self, other: Workspace, call: Call, key: tuple[str, str]) -> None:
        try:
            while not call.settled and not other.closed and not self._session.closed:
                await other.events.next_of(call.id)
                self._session.changed("comparison.changed", ":".join(key))
                await anyio.sleep(bounds.COMPARED_SECONDS)
        finally:
            self._watched.discard(key)
            self._session.changed("comparison.changed", ":".join(key))

    def again(self, left: Side, right: Side, by: Identity) -> tuple[Call, Call | None]:
        """Call both once more; the right one is None when it has to wait until the left one is settled: over a
        wire that does not say to which call an ask belongs, only one of them may run. Raises NotConnected."""
        for one in (left, right):
            one.session.live(then="call both again")
        first = _again(left, by)
        if left.session is not right.session or left.session.wire.rounds or left.session.info.transport == "http":
            return first, _again(right, by)
        self._session.start_soon(self._after, left.session, first, right, by)
        return first, None

    async def _after(self, session: Workspace, first: Call, right: Side, by: Identity) -> None:
        await session.until(lambda: first.settled, None, first.id)
        with contextlib.suppress(Conflict, NotAllowed, Invalid):
            _again(right, by)
        self._session.changed("comparison.changed", right.call.id)

    def _say(self, found: Comparison, words: str, *, failed: bool = False) -> None:
        found.words, found.failed = words, failed
        self._changed(found)

    def _changed(self, found: Comparison) -> None:
        self._session.changed("comparison.changed", found.call_id)


def messages_of(session: Workspace, call: Call) -> list[Message]:
    """What crossed the wire from the first request of a call to its last reply, without what was folded away."""
    seqs = [seq for leg in call.legs for seq in (leg.request_seq, leg.reply_seq) if seq is not None]
    if not seqs:
        return []
    first, last = min(seqs), max(seqs) if call.settled else session.events.seq
    rows = session.messages.after(first - 1, bounds.COMPARED_MESSAGES)
    return [each for each in rows if each.seq <= last and not each.quiet]


async def told(session: Workspace, call: Call) -> diff.Told:
    """One side of a comparison in figures."""
    rows = messages_of(session, call)
    out = [each for each in rows if each.direction == "out"]
    came = [each for each in rows if each.direction == "in"]
    asked = [ask for ask in session.inbox.asks.values() if ask.call_id == call.id]
    return diff.Told(
        version=session.info.protocol_version or "",
        era=session.info.era or "",
        sent=len(out),
        received=len(came),
        sent_bytes=sum(each.size for each in out),
        received_bytes=sum(each.size for each in came),
        legs=len(call.legs),
        rounds=len(call.rounds),
        asks=tuple(ask.kind for ask in asked),
        origins=frozenset(ask.origin for ask in asked),
        state=call.state,
        result=await session.result(call),
        error="" if call.error is None else f"{call.error.code} {call.error.message}".strip(),
    )
