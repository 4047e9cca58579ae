"""Subscriptions of 2026-07-28: `subscriptions/listen`, whose answer is a stream of what changes (R6.D).

The person chooses what to hear of; the server says what of that it grants, and the two are compared. Every event names
its subscription, and is then what it always was: a list to read again, a resource that changed, a task that moved. The
server may end it by a result, by a cancellation, or not at all: only the last is a loss, and after a new connection a
lost one is asked for again. Knows the session it serves; knows nothing of the web.
"""

from __future__ import annotations

import itertools
import json
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import anyio

from app import bounds
from app.core.errors import Conflict, Invalid, NotAllowed
from app.core.rules import catalogue, stateless
from app.core.wire import NO_FINDINGS, Finding, Findings, Message, RpcId
from app.protocol.connection import Connection
from app.protocol.links.base import LinkError, RequestLost
from app.protocol.requests import Outgoing
from app.protocol.timeout import CallTimeout, OutOfTime

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace

SubscriptionState = Literal["opening", "open", "ended", "lost", "stopped", "refused"]
LIVE: frozenset[SubscriptionState] = frozenset({"opening", "open"})
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED, TASK = "notifications/resources/updated", "notifications/tasks"
HEARD = frozenset({*stateless.FLAGS.values(), UPDATED, TASK})


@dataclass(slots=True, frozen=True)
class Heard:
    """One event of a subscription."""

    at: float
    method: str
    about: str
    seq: int


@dataclass(slots=True)
class Subscription:
    """One `subscriptions/listen`, from the request to its end."""

    id: str
    asked: dict[str, Any]
    at: float
    connection: int
    by_task: bool = False
    """Parley opened it to follow tasks, rather than a person."""
    state: SubscriptionState = "opening"
    granted: dict[str, Any] | None = None
    rpc_id: RpcId = None
    request_seq: int | None = None
    words: str = ""
    """How it ended."""
    events: deque[Heard] = field(default_factory=lambda: deque(maxlen=bounds.SUBSCRIPTION_EVENTS))
    heard: int = 0
    log: Findings = field(default=NO_FINDINGS, repr=False, compare=False)
    """Who knows what was remarked about it."""
    beside: set[int] = field(default_factory=set)
    """The messages that were remarked on for its sake."""
    wanted: Outgoing = field(default_factory=Outgoing, repr=False, compare=False)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope, repr=False, compare=False)
    """Its request, which is over when this is cancelled."""

    @property
    def findings(self) -> list[Finding]:
        """What was remarked about it."""
        return self.log.findings_of(self.beside, about=self.id)

    @property
    def live(self) -> bool:
        return self.state in LIVE

    @property
    def refused(self) -> list[str]:
        """What was asked for and not granted (R6-41)."""
        return [] if self.granted is None else stateless.not_granted(self.asked, self.granted)


class Subscriptions:
    """The subscriptions of one session."""

    def __init__(self, session: Workspace) -> None:
        self._session = session
        self.all: OrderedDict[str, Subscription] = OrderedDict()
        self._ids = itertools.count(1)

    @property
    def live(self) -> list[Subscription]:
        return [one for one in self.all.values() if one.live]

    # ---- what a person does

    def open(self, asked: dict[str, Any], *, by_task: bool = False) -> Subscription:
        """Ask the server to tell of these things. Raises NotConnected without a connection,
        NotAllowed in the older era."""
        session = self._session
        connection = session.live(then="subscribe")
        if not session.wire.listens:
            raise NotAllowed(f"Subscriptions begin with {stateless.VERSION}; this connection is older.")
        if len(self.live) >= bounds.SUBSCRIPTIONS_OPEN:
            raise NotAllowed(f"{bounds.SUBSCRIPTIONS_OPEN} subscriptions are open already. Stop one first.")
        one = Subscription(f"l{next(self._ids)}", stateless.clean_filter(asked), session.wall(), session.info.number)
        one.by_task, one.log = by_task, session.messages
        if not one.asked:
            raise Invalid("Choose at least one thing to hear of.", {"/notifications": ["Choose something."]})
        self.all[one.id] = one
        while len(self.all) > bounds.SUBSCRIPTIONS_KEPT:
            over = next((each.id for each in self.all.values() if not each.live), None)
            if over is None:
                break
            del self.all[over]
        self._changed(one)
        session.start_soon(self._run, one, connection)
        return one

    def stop(self, one: Subscription) -> None:
        """Stop listening: by closing the stream, or by saying so on a pipe (R6-43). Raises Conflict when
        it is over."""
        if not one.live:
            raise Conflict(f"This subscription is {one.state} already.")
        self._end(one, "stopped", "You stopped it.")
        one.scope.cancel()

    def again(self, one: Subscription) -> Subscription:
        """Ask for the same once more, after it ended."""
        if one.live:
            raise Conflict("This subscription is open.")
        return self.open(one.asked, by_task=one.by_task)

    # ---- the stream

    async def _run(self, one: Subscription, connection: Connection) -> None:
        def sent(rpc_id: RpcId, seq: int) -> None:
            one.rpc_id, one.request_seq = rpc_id, seq

        one.wanted.on_sent = sent
        timeout = CallTimeout(bounds.SUBSCRIPTION_SECONDS, at_most=bounds.SUBSCRIPTION_SECONDS)
        with one.scope:
            try:
                params = {"notifications": one.asked}
                reply = await connection.call("subscriptions/listen", params, one.wanted, timeout)
            except (RequestLost, OutOfTime) as fault:
                words = fault.message if isinstance(fault, RequestLost) else ""
                self._end(one, "lost", f"The stream ended without a word. {words}".strip())
            except LinkError:
                self._end(one, "lost", "The connection ended.")
            else:
                if reply.is_error:
                    error = reply.value["error"]
                    fields = error if isinstance(error, dict) else {}
                    self._end(one, "refused", f"{fields.get('code')} {fields.get('message')}"[:300])
                    for finding in stateless.error_findings(stateless.error_code(error), error):
                        self._remark(one, reply.seq, finding)
                else:
                    self._end(one, "ended", "The server ended it.")

    def _end(self, one: Subscription, state: SubscriptionState, words: str) -> None:
        if one.live:
            one.state, one.words = state, words
            self._changed(one)

    # ---- from the connection

    def notified(self, method: str, params: dict[str, Any], message: Message) -> bool:
        """A notification: whether it belongs to a subscription, which takes note of it. The rest goes on as ever."""
        if not self._session.wire.listens:
            return False
        if method == "notifications/cancelled":
            return self._cancelled(params)
        meta = params.get("_meta")
        number = meta.get(stateless.META_SUBSCRIPTION) if isinstance(meta, dict) else None
        if number is None:
            if method in HEARD or method == ACKNOWLEDGED:
                self._session.messages.remark(message.seq, catalogue.no_subscription(method=method))
            return False
        present = self._session.info.number  # each connection counts its requests from the beginning
        one = next((each for each in self.all.values() if (each.connection, each.rpc_id) == (present, number)), None)
        if one is None:
            self._session.messages.remark(message.seq, catalogue.unknown_subscription(number=json.dumps(number)))
            return False
        if method == ACKNOWLEDGED:
            self._acknowledged(one, params, message)
            return True
        if one.state == "opening":
            self._remark(one, message.seq, catalogue.before_acknowledgement(method=method))
        elif not one.live:
            self._remark(one, message.seq, catalogue.after_the_end(method=method))
        if method in ("notifications/progress", "notifications/message"):
            self._remark(one, message.seq, catalogue.not_on_this_stream(method=method))
            return False
        about = params.get("uri") if method == UPDATED else params.get("taskId") if method == TASK else ""
        if not stateless.asked_for(one.asked, method, about):
            self._remark(one, message.seq, catalogue.not_asked_for(method=method))
        one.heard += 1
        # The ids of tasks may be secrets, and are not shown here (R7-42).
        one.events.append(
            Heard(self._session.wall(), method, str(about)[:300] if method == UPDATED else "", message.seq)
        )
        self._changed(one)
        return False

    def _acknowledged(self, one: Subscription, params: dict[str, Any], message: Message) -> None:
        granted = params.get("notifications")
        one.granted = granted if isinstance(granted, dict) else {}
        if one.state == "opening":
            one.state = "open"
        if one.refused:
            self._remark(one, message.seq, catalogue.granted_less(missing=", ".join(one.refused)))
        self._changed(one)

    def _cancelled(self, params: dict[str, Any]) -> bool:
        """The other way for a server to end a subscription; both are clean (R6-44)."""
        number = params.get("requestId")
        one = next((each for each in self.live if each.rpc_id == number and number is not None), None)
        if one is None:
            return False
        self._end(one, "ended", "The server cancelled it.")
        one.wanted.says_cancelled = False  # it knows already
        one.scope.cancel()
        return True

    def connected(self) -> None:
        """A new connection is ready: what the one before lost is asked for again (R6-44)."""
        if not self._session.wire.listens:
            return
        before = self._session.info.number - 1
        lost: list[Subscription] = []
        for one in self.all.values():
            again = any(one.asked == other.asked for other in lost)  # the same may have been lost more than once
            if one.state == "lost" and one.connection == before and not one.by_task and not again:
                lost.append(one)
        for one in lost[-bounds.SUBSCRIPTIONS_OPEN :]:
            one.words += " Asked for again after the new connection."
            self.open(one.asked)

    def connection_ended(self, by_person: bool) -> None:
        """Nothing comes any more."""
        for one in self.live:
            self._end(one, "stopped" if by_person else "lost", "The connection ended.")

    def _remark(self, one: Subscription, seq: int, finding: Finding) -> None:
        """Beside the message always, and with the subscription once: a server may do the same wrong a million times."""
        before = one.findings
        said = any((each.id, each.text) == (finding.id, finding.text) for each in before)
        if said or len(before) >= self._session.limits.findings_per_message:
            self._session.messages.remark(seq, finding)
        else:
            self._session.messages.remark(seq, finding, about=one.id)
            one.beside.add(seq)

    def _changed(self, one: Subscription) -> None:
        self._session.changed("subscription.changed", one.id)
