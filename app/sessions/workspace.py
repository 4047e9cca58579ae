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
from typing import TYPE_CHECKING, Any

import anyio

from app.core.calls import Call
from app.core.connection import ConnectionInfo
from app.core.errors import NotConnected, Trouble, own_fault
from app.core.events import EventKind, EventLog
from app.core.inbox import Inbox
from app.core.lists import Listing
from app.core.log import MessageLog, StderrLog
from app.core.options import Options, Root
from app.core.revisions import Wire
from app.core.targets import AnyTarget
from app.protocol.connection import Connection
from app.sessions.asks import Asks
from app.sessions.calls import Calls
from app.sessions.compare import Comparisons
from app.sessions.identity import ALL_RIGHTS, Identity, Right
from app.sessions.lists import Lists
from app.sessions.ping import Pings
from app.sessions.resources import Resources
from app.sessions.rounds import Rounds
from app.sessions.server_log import ServerLog
from app.sessions.subscriptions import Subscriptions
from app.sessions.tasks.running import ClientTasks

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry

logger = logging.getLogger("parley.sessions")


class Workspace:
    """What every kind of session shares, shows and records."""

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
        self.messages = MessageLog(limits, self.events, self.wall, self.mono)
        self.messages.referred = self._referred
        self.stderr = StderrLog(limits, self.events, self.wall)
        self.target: AnyTarget | None = None
        self.options = Options()
        self.roots: list[Root] = [Root(uri=uri) for uri in registry.settings.roots]
        self.info = ConnectionInfo()
        self.connection: Connection | None = None
        """The one that is open, or is being opened."""
        self.inbox = Inbox(limits, self.events, self.wall)
        """The open asks, and the recent settled ones."""
        self.calls = Calls(self)
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
        self.asks = Asks(self)
        """What the server asks of the people here."""
        self.closed = False
        self._streams = 0
        self._seen = registry.mono()

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

    def live(self, then: str) -> Connection:
        """The connection, to do something with. Raises NotConnected, which says what to do `then`, while it is not
        ready."""
        if self.connection is None or self.info.state != "ready":
            raise NotConnected(then)
        return self.connection

    def rights_of(self, identity: Identity) -> frozenset[Right]:
        """What somebody may do here: its owner everything, everybody else nothing."""
        return ALL_RIGHTS if identity.id == self.owner else frozenset()

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
        self.changed("session.closed", "session")

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
