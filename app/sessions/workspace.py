"""A workspace: everything that a session has seen, keeps and shows, whoever fills it.

It holds the log with its findings and HTTP exchanges, the events, the server's stderr, the inbox, and by noun what
came of it: calls, lists, tasks, subscriptions. It has an owner and an idle clock, and is bounded. A role fills it: a
live connection (session.py), or a list of frames (app/recordings). Pages read a workspace; only what acts needs a role.
Whoever asks a workspace without a connection to do something hears that it is not connected.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio

from app.core.calls import Call
from app.core.connection import ConnectionInfo
from app.core.errors import NotConnected, Trouble, own_fault
from app.core.events import EventKind, EventLog
from app.core.inbox import Inbox
from app.core.lists import Listing
from app.core.log import MessageLog
from app.core.options import Options, Root
from app.core.revisions import Wire
from app.core.stderr import StderrLog
from app.core.targets import AnyTarget, target_digest
from app.protocol.connection import Connection
from app.sessions.asks import Asks
from app.sessions.calls import Calls
from app.sessions.compare import Comparisons
from app.sessions.identity import Identity, Right, rights_at
from app.sessions.kept_rules import KeptRules
from app.sessions.leftovers import Leftovers
from app.sessions.lists import Lists
from app.sessions.models import Models
from app.sessions.ping import Pings
from app.sessions.resources import Resources
from app.sessions.rounds import Rounds
from app.sessions.saved import Saved
from app.sessions.server_log import ServerLog
from app.sessions.sign_in import SignIns
from app.sessions.subscriptions import Subscriptions
from app.sessions.tasks.running import ClientTasks
from app.store import without_secrets

if TYPE_CHECKING:
    from app.sessions.registry import Gate, SessionRegistry
    from app.sessions.tour import Tour

logger = logging.getLogger("parley.sessions")


class Recording(Protocol):
    """Somebody who records a session, for its page."""

    trouble: str
    """Why it ended, as a sentence, when nobody wanted it to."""

    @property
    def rid(self) -> str:
        """What the recording is called in addresses."""

    @property
    def began(self) -> float:
        """When it began."""

    @property
    def live(self) -> bool:
        """Whether it goes on."""

    @property
    def size(self) -> int:
        """Bytes so far."""


UNTITLED: Final = "New session"
"""What a session is called before anything is known of it."""


class Workspace:
    """What every kind of session shares, shows and records."""

    read_only = False
    """Whether nothing can be done here, by nobody: pages then have no acts."""

    def __init__(
        self,
        sid: str,
        number: int,
        owner: Identity,
        registry: SessionRegistry,
        *,
        wall: Callable[[], float] | None = None,
        mono: Callable[[], float] | None = None,
    ) -> None:
        self._registry = registry
        self.limits = limits = registry.settings.limits
        self.wall = wall or registry.wall
        self.mono = mono or registry.mono
        self.sleep = registry.sleep
        self.task_ids = itertools.count(1)
        """Tasks of both kinds are numbered together: one address, one task."""
        self.id, self.number, self.owner = sid, number, owner.id
        self.created_at = self.wall()
        self.events = EventLog(limits.events)
        self.messages = self._new_log()
        self.messages.referred = self._referred
        self.stderr = StderrLog(limits, self.events, self.wall)
        self.target: AnyTarget | None = None
        self._target_key: tuple[AnyTarget, str] | None = None
        self.options = Options()
        self.roots: list[Root] = [Root(uri=uri) for uri in registry.settings.roots]
        self.info = ConnectionInfo()
        self.connection: Connection | None = None
        """The one that is open, or is being opened."""
        self.inbox = Inbox(limits, self.events, self.wall)
        """The open asks, and the recent settled ones."""
        self.calls = self._new_calls()
        """What the people here ask of the server."""
        self.start_call, self.cancel_call = self.calls.start, self.calls.cancel
        self.result = self.calls.result
        self.client_tasks = ClientTasks(self)
        """Which of that runs on the server as a task."""
        self.rounds = Rounds(self)
        """What the server wants to know before it answers them (2026-07-28)."""
        self.lists = Lists(self)
        """What the server says it has."""
        self.subscriptions = Subscriptions(self)
        """What the server was asked to tell of (2026-07-28)."""
        self.comparisons = Comparisons(self, registry)
        """Which calls were run in the other era too."""
        self.resources = Resources(self)
        """Which resources are watched, and which have changed."""
        self.pings = Pings(self)
        self.server_log = ServerLog()
        self.models = Models(self, registry.models, lambda: registry.egress)
        """Who may draft what a server asks of a model."""
        self.sign_in = SignIns(self, registry)
        """Whether its server wants to know who it is."""
        self.saved = Saved(self, registry)
        """Requests of this server that people saved."""
        self.asks = Asks(self)
        """What the server asks of the people here."""
        self.kept_rules = KeptRules(self, registry)
        """Which answer rules are kept with this server."""
        self.leftovers = Leftovers(self)
        """What the session had not finished that this one took the place of."""
        self.made_for: tuple[str, str] | None = None
        """The session and the call that it was opened for, to compare; it ends with that session."""
        self.tour: Tour | None = None
        """Where somebody is on the tour, once they are."""
        self.recorder: Recording | None = None
        """Who records it, or was the last to do so and has something to say."""
        self.closed = False
        self._streams = 0
        self._seen = registry.mono()

    def _new_log(self) -> MessageLog:
        """Where the messages are."""
        return MessageLog(self.limits, self.events, self.wall, self.mono)

    def _new_calls(self) -> Calls:
        """Where the calls are."""
        return Calls(self)

    # ---- who it is

    @property
    def label(self) -> str:
        """The server's name when it is known, else the target, else that there is none yet; and what it is for, when it
        is here for a comparison only."""
        return self._called if self.made_for is None else f"{self._called}, compared with call {self.made_for[1][1:]}"

    @property
    def _called(self) -> str:
        return self.info.calls_itself or (self.target.label if self.target is not None else UNTITLED)

    @property
    def base(self) -> str:
        """Where its addresses begin."""
        return f"/s/{self.id}"

    @property
    def degraded(self) -> str:
        """Why nothing of it is saved at the moment, as a sentence without its beginning; empty while it is."""
        return self._registry.degraded

    @property
    def run(self) -> str:
        """The process that it belongs to."""
        return self._registry.run

    @property
    def own_ports(self) -> set[int]:
        """Where this Parley listens."""
        return self._registry.own_ports

    @property
    def visited(self) -> bool:
        """Whether it belongs to a visitor of a public demo, who can do less."""
        return self._registry.settings.mode == "demo"

    @property
    def reach(self) -> str:
        """Who could reach a room of this session, in a sentence; empty when nobody could."""
        found = self._registry.reach
        return "" if found is None else found.words

    @property
    def recorded_to(self) -> str:
        """Where a recording of it goes, for people."""
        store = self._registry.store.recordings
        return store.bodies.where if store.possible else "nowhere: this Parley keeps nothing on disk"

    @property
    def target_key(self) -> str:
        """What its target is known by also after a restart: the digest of what of it may be written down."""
        lasting = self.lasting_target
        if lasting is None:
            return ""
        if self._target_key is None or self._target_key[0] is not lasting:
            self._target_key = lasting, target_digest(without_secrets(lasting)[0])
        return self._target_key[1]

    @property
    def lasting_target(self) -> AnyTarget | None:
        """Its target as it is remembered: without what belongs to this session alone."""
        return self.target

    @property
    def never_connected(self) -> bool:
        """Whether all that it has is an attempt that failed: the next attempt uses it again, and no list shows it."""
        return False

    @property
    def dials(self) -> bool:
        """Whether it reaches a server at all; a recording does not."""
        return False

    @property
    def counts(self) -> bool:
        """Whether it is one of the sessions of which an identity may have so many."""
        return True

    @property
    def open_asks(self) -> int:
        """How many asks wait for an answer."""
        return sum(ask.state != "held" for ask in self.inbox.open)

    @property
    def wire(self) -> Wire:
        """What the revision of the connection has."""
        return self.info.wire

    @property
    def tools(self) -> Listing:
        """The tools of the server."""
        return self.lists["tools"]

    def listed(self, name: str, count: int) -> None:
        """A list of the server is known now."""

    def signed_in(self) -> None:
        """There is a token for the server."""

    def live(self, then: str) -> Connection:
        """The connection, to do something with. Raises NotConnected, which says what to do `then`, while it is not
        ready."""
        if self.connection is None or self.info.state != "ready":
            raise NotConnected(then)
        return self.connection

    @property
    def gate(self) -> Gate | None:
        """What a team asks before something is done; local mode has none."""
        return self._registry.gate

    def crowded(self) -> bool:
        """Whether so much waits for its owner, in all of their sessions, that nothing more may."""
        return self._registry.open_asks(self.owner) >= self.limits.open_asks_per_identity

    def rights_of(self, identity: Identity) -> frozenset[Right]:
        """What somebody may do here: its owner everything, others what is shared with them; a viewer of a team only
        looks."""
        return rights_at(self._registry.level(identity, self.owner, self.id), identity)

    # ---- idle clock

    def touch(self) -> None:
        """A request named this session."""
        self._seen = self._registry.mono()

    def stream_opened(self) -> None:
        """A tab watches."""
        self._streams += 1
        self.touch()

    def stream_closed(self) -> None:
        """A tab stopped watching."""
        self._streams -= 1
        self.touch()

    def idle_for(self) -> float:
        """Seconds since anything needed this session; 0 while something does."""
        oldest = self.wall() - self.limits.ask_seconds
        if self._streams or self.calls.running or any(ask.asked_at > oldest for ask in self.inbox.open):
            self.touch()
            return 0.0
        return self._registry.mono() - self._seen

    # ---- waiting

    def moment(self) -> None:
        """Something happens here that somebody waits for: the bulk of other sessions rests for a moment."""
        self._registry.attention.moment(self.id)

    def waited_for(self) -> AbstractContextManager[None]:
        """The same for all that is done in this context, while it is young."""
        return self._registry.attention.waiting(self.id)

    async def wait_connection(self, seconds: float) -> None:
        """Return when the connection is no longer connecting, or the time is over."""
        await self.until(lambda: self.info.state != "connecting", seconds, "connection")

    async def wait_call(self, call: Call, seconds: float) -> None:
        """Return when the call is settled or waits for an answer, or the time is over."""
        await self.until(lambda: call.state != "running", seconds, call.id)

    async def until(self, true: Callable[[], bool], seconds: float | None, subject: str | None = None) -> None:
        """Look whenever anything changed, or only when the subject did that decides it."""
        with anyio.move_on_after(seconds):
            while not true():
                if subject is None:
                    await self.events.wait(self.events.seq)
                else:
                    await self.events.next_of(subject)

    def _referred(self) -> Iterator[int | str]:
        """Every message, and everything with a name of its own, whose findings somebody may look at here."""
        for call in self.calls.values():
            yield call.id
            yield from call.seqs
        for task in self.client_tasks.tasks.values():
            yield task.id
            yield from task.beside
        for ask in self.inbox.asks.values():
            if ask.message_seq is not None:
                yield ask.message_seq
        for one in self.subscriptions.all.values():
            yield from one.beside
        for listing in self.lists.known_of:
            yield from listing.seqs if listing.restless is None else (*listing.seqs, listing.restless)
        yield from self.client_tasks.listing.seqs

    # ---- end

    async def close(self) -> None:
        """Afterwards nobody finds it; what a reader still holds is not forgotten."""
        self.closed = True
        if self.asks.audience.room is not None:
            self.asks.audience.room.close()
        self.comparisons.close()
        self.changed("session.closed", "session")

    def reopened(self) -> None:
        """It was closed a moment ago, and is found again: everything but its connection."""
        self.closed = False
        self.touch()
        self.changed("session.reopened", "session")

    def let_go(self) -> None:
        """Forget what is large. For a closed session that nobody will collect."""
        self.messages.forget_bodies()
        for call in self.calls.values():
            call.reply = None

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> None:
        """Run something in the registry's task group, which carries every session: a fault of ours ends at most the
        connection of this one (H12)."""
        self._registry.group.start_soon(self._guarded, function, arguments)

    async def _guarded(self, function: Callable[..., Coroutine[Any, Any, Any]], arguments: tuple[Any, ...]) -> None:
        try:
            await function(*arguments)
        except Exception as fault:
            logger.exception("session %s failed inside Parley, in %s", self.id, function.__qualname__)
            self._failed(own_fault(fault))

    def _failed(self, trouble: Trouble) -> None:
        """Say that Parley failed here."""
        self.info.trouble = trouble
        self.changed("connection.changed", "connection")

    def changed(self, kind: EventKind, subject: str) -> None:
        """Tell everybody who watches that something changed."""
        self.events.append(kind, subject, self.wall())
