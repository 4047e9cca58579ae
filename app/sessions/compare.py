"""The same call on both eras: a second session on the other one, linked to the first, that runs the call again.

The other session is an ordinary one: it has its page, its inbox and its log, and its asks are answered there. Both
conversations are read side by side. Knows sessions and their registry; knows nothing of the web.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import anyio

from app import bounds
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
    words: str = "Connecting to the same server in the other era."
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


class Comparisons:
    """The comparisons that began in one session."""

    def __init__(self, session: Workspace, registry: SessionRegistry) -> None:
        self._session, self._registry = session, registry
        self.by_call: dict[str, Comparison] = {}
        self.linked_to: tuple[str, str] | None = None
        """The session and the call that this session was opened to be compared with."""

    def begin(self, call: Call, by: Identity) -> Comparison:
        """Open the other session and run the call there. Raises Conflict while this one is
        not connected, NotAllowed over a limit."""
        session = self._session
        if session.target is None or session.info.state != "ready" or session.info.era is None:
            raise NotConnected("compare")
        if session.info.transport == "sse":
            raise NotAllowed("HTTP with SSE exists only in the older era, so there is nothing to compare with.")
        if not call.settled or call.notification:
            raise Conflict("Wait until this call is settled, then compare it.")
        self.by_call = {cid: one for cid, one in self.by_call.items() if cid in session.calls}
        before = self.by_call.pop(call.id, None)
        if before is not None and before.open is not None:
            self._registry.start_soon(self._registry.close, before.open)
        era: Literal["legacy", "modern"] = "modern" if session.wire is HANDSHAKE else "legacy"
        other = self._registry.open(by)
        other.roots = list(session.roots)
        other.comparisons.linked_to = (session.id, call.id)
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
        self._say(found, "The same call runs in the other era.")
        while not again.settled and not other.closed:
            await other.events.next_of(again.id)
            self._changed(found)
            await anyio.sleep(bounds.COMPARED_SECONDS)
        found.differences = diff.differences(await told(self._session, call), await told(other, again))
        self._say(found, "Both calls are settled.")

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
