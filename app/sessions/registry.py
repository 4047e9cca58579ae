"""All sessions of this process: opening, finding, closing, the idle ones reaped; consent and the memory of targets."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Set
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import anyio
import anyio.abc
import anyio.to_thread

from app import bounds, garbage
from app.core.errors import Conflict, Full, NotAllowed
from app.core.lane import give_back_soon
from app.core.links import is_loopback
from app.core.options import Options
from app.core.revisions import Era
from app.core.signal import Signal
from app.core.targets import AnyTarget, StdioTarget, target_digest
from app.models.base import Model
from app.protocol import judge
from app.protocol.links import Opener, open_link
from app.remembered import Remembered
from app.sessions.answer_links import AnswerLinks
from app.sessions.attention import Attention
from app.sessions.closed import ClosedSessions
from app.sessions.identity import Identity, Level
from app.sessions.idled import IdledSessions
from app.sessions.session import Session
from app.sessions.sign_in import SignIns
from app.sessions.workspace import Workspace
from app.settings import Limits, Settings
from app.store import Server, Store, without_secrets
from app.store.servers import named as server_name
from app.store.vault import Vault

if TYPE_CHECKING:
    from app.egress import Egress
    from app.sessions.polls import Reach, RoomSettings
    from app.sessions.room import Room

_Role = TypeVar("_Role", bound=Workspace)

logger = logging.getLogger("parley.sessions")


class Gate(Protocol):
    """Decides where somebody may connect to. Local mode has none: a person connects to what they like."""

    allowed: Set[tuple[str, int]]
    """Names and ports that may lead inwards, at any moment."""

    def connects(self, by: Identity, target: AnyTarget) -> None:
        """Raise NotAllowed when somebody may not connect to this."""

    def dials(self, by: Identity, url: str) -> None:
        """The same of an address that is no server's, such as that of a model."""

    def typed(self, by: Identity, data: Mapping[str, Any]) -> None:
        """The same of a body that asks to connect, before anything of it is looked up."""

    def calls(self, by: Identity, what: str, target: AnyTarget | None) -> None:
        """Somebody calls something of a server. Raises TooMany when that is too often."""

    def answered(self, by: Identity, kind: str, how: str, target: AnyTarget | None) -> None:
        """Somebody has answered what a server asked, of this kind."""

    def idled(self, owner: str, target: AnyTarget | None) -> None:
        """A session was closed because nobody needed it."""

    def level(self, by: Identity, thing: str) -> Level:
        """What somebody else's session or recording is to somebody: what its owner shares with them."""


class SessionRegistry:
    """All sessions of this process. An async context manager: it owns the task group that everything runs in."""

    def __init__(
        self,
        settings: Settings,
        *,
        wall: Callable[[], float] = time.time,
        mono: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        open_link: Opener = open_link,
        remembered: Remembered | None = None,
        gate: Gate | None = None,
    ) -> None:
        self.settings, self.wall, self.mono, self.sleep = settings, wall, mono, sleep
        self.open_link, self.gate = open_link, gate
        self.group: anyio.abc.TaskGroup
        self.closing = False
        self.attention = Attention(mono)
        """For which sessions somebody waits right now."""
        self._sessions: dict[str, Workspace] = {}
        self._numbers = itertools.count(1)
        self._loaded = Signal()
        self.remembered = remembered or Remembered(settings.data_dir)
        """Which commands a person has agreed to start."""
        self._frozen: set[str] = set()
        """Sessions that were open when everything was set aside for good: the collector does not see them."""
        self.run = secrets.token_hex(4)
        """Tells this process from the next: a page may outlive both."""
        self.closed = ClosedSessions(settings.limits, mono, self._forget)
        """Those that were closed a moment ago and may come back."""
        self.store = Store(
            settings.data_dir,
            wall,
            eras=settings.limits.known_eras,
            limits=settings.limits,
            recordings_in=settings.recordings_in,
            url=settings.store_url or "",
            calm=self._calm,
        )
        self._stack = contextlib.AsyncExitStack()
        self.models = {name: Model.model_validate(one) for name, one in settings.models.items()}
        """What the settings name; the key of each stands in the environment."""
        self.egress: Egress
        self.vault = Vault(settings.data_dir, keep=settings.keep_sign_ins, key=settings.sign_ins_key or "")
        """What signing in to servers has brought, by person, server and issuer."""
        self.links = AnswerLinks(wall, settings.owner_mark)
        """What lets a guest answer one ask."""
        self.rooms: dict[str, Room] = {}
        """Rooms full of phones, by the code that these know."""
        self.reach: Reach | None = None
        """Where these phones come in."""
        self.callbacks: dict[str, SignIns] = {}
        """Which sign-in waits for an answer of a browser, by its `state`, once (S19)."""
        self.before_end: list[Callable[[], Awaitable[None]]] = []
        """What has to be done when every session is closed, before the store is."""
        self.when_connecting: list[Callable[[Workspace], None]] = []
        """Who wants to know that a session begins a connection."""
        self.idled = IdledSessions(wall)
        """Those that were closed because nobody needed them: their owner is told."""
        self.elsewhere: Callable[[str], int] = lambda owner: 0
        """How many sessions somebody has on other replicas of a team."""
        self.degraded = ""
        """Why nothing of a team is saved at the moment, as a sentence without its beginning."""
        self.own_ports: set[int] = {settings.port} - {0}
        """Where this Parley listens; it is never its own target (S22)."""

    async def __aenter__(self) -> Self:
        self.group = await self._stack.enter_async_context(anyio.create_task_group())
        self.group.start_soon(self._load)
        self.start_soon(self._reap)
        self.start_soon(self.store.open)
        return self

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> None:
        """Run something beside the sessions; a fault in it is logged, and ends none of them (H12)."""
        self.group.start_soon(_guarded, function, arguments)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> bool | None:
        with anyio.CancelScope(shield=True):
            await self.close_all()
            for work in self.before_end:
                await work()
            await self.store.close()
            if self.ready:
                await self.egress.aclose()
        self.group.cancel_scope.cancel()
        return await self._stack.__aexit__(exc_type, exc, tb)

    # ---- what is slow to load

    @property
    def ready(self) -> bool:
        """Whether all that a connection needs is loaded."""
        return self._loaded.is_set()

    async def until_ready(self) -> None:
        """Wait for what a connection needs."""
        await self._loaded.wait()

    async def _load(self) -> None:
        """Import the HTTP client and the tables of types in a thread: they take longer than all else together."""

        def load() -> Egress:
            import app.protocol.connection  # noqa: F401
            from app.egress import Egress
            from app.policy import Policy

            judge.load()

            # What is loaded now stays for ever: the collector need not walk it again, 100 ms at a time in a flood.
            gc.collect()
            self._frozen = set(self._sessions)
            gc.freeze()
            allowed = frozenset[tuple[str, int]]() if self.gate is None else self.gate.allowed
            return Egress(Policy(self.settings.mode, self.own_ports, allowed=allowed))

        self.egress = await anyio.to_thread.run_sync(load)
        self._loaded.set()

    # ---- sessions

    def open(self, identity: Identity) -> Session:
        """A new session of the client's role. Raises NotAllowed over a limit, or while shutting down."""
        return self.open_as(Session, identity)

    def open_as(self, role: type[_Role], identity: Identity) -> _Role:
        """A new workspace that this role fills. Raises NotAllowed as `open` does."""
        self._room(identity)
        session = role(f"{self.settings.replica}-{secrets.token_urlsafe(12)}", next(self._numbers), identity, self)
        self._sessions[session.id] = session
        return session

    def _room(self, identity: Identity) -> None:
        limits: Limits = self.settings.limits
        if self.closing:
            raise NotAllowed("Parley is shutting down.")
        mine = self.of(identity)
        if sum(one.counts for one in mine) + self.elsewhere(identity.id) >= limits.sessions_per_identity:
            raise Full(f"You have {limits.sessions_per_identity} sessions open, which is the limit. Close one first.")
        self._make_room([one for one in mine if not one.counts])
        if len(self._sessions) >= limits.sessions:
            raise NotAllowed("This Parley has no room for another session. Try again later.")

    def _make_room(self, over: list[Workspace]) -> None:
        """Of the sessions that do not count, those that failed or were lost, let go of the ones that nobody has looked
        at for the longest time: first of those that never had a connection."""
        many = len(over) + 1 - self.settings.limits.sessions_over
        for session in sorted(over, key=lambda one: (not one.never_connected, -one.idle_for()))[: max(0, many)]:
            del self._sessions[session.id]
            self.start_soon(self.close, session)

    def find(self, identity: Identity, sid: str) -> Workspace | None:
        """A session of this identity; somebody else's is as unknown as one that never was (S15)."""
        session = self._sessions.get(sid)
        return session if session is not None and session.owner == identity.id else None

    def visible(self, identity: Identity, sid: str) -> tuple[Workspace | None, Level]:
        """A session that somebody may know of, theirs or shared with them, and what they have of it."""
        session = self._sessions.get(sid)
        level: Level = "" if session is None else self.level(identity, session.owner, sid)
        return (session, level) if level else (None, "")

    def level(self, identity: Identity, owner: str, thing: str) -> Level:
        """What somebody has of a thing of this owner."""
        if owner == identity.id:
            return "own"
        return "" if self.gate is None else self.gate.level(identity, thing)

    def of(self, identity: Identity) -> list[Workspace]:
        """The open sessions of an identity, oldest first."""
        return [session for session in self._sessions.values() if session.owner == identity.id]

    def everybodys(self) -> list[Workspace]:
        """The open sessions of all."""
        return list(self._sessions.values())

    async def close(self, session: Workspace, *, undo: bool = False, shown: bool = False) -> None:
        """End a session. It cannot be found from the first moment on; with `undo` it can be brought back for a while,
        and with `shown` the first page offers that."""
        self._sessions.pop(session.id, None)
        kept = self.closed.keep(session, shown=shown) if undo and not self.closing else None
        try:
            await session.close()
        finally:  # whoever brings it back waits for this
            if kept is None:
                self._forget(session)
            else:
                self.closed.over(kept)
                if not self.closing:
                    # What belongs to all sessions is not held by this one.
                    shared = [self, *vars(self).values(), *self._sessions.values()]
                    self.start_soon(self.closed.weigh, kept, shared)

    async def reopen(self, identity: Identity, sid: str) -> Workspace | None:
        """Bring back a session that was closed a moment ago, without its connection; None when that is too late. Raises
        NotAllowed as `open` does."""
        kept = self.closed.find(identity.id, sid)
        if kept is None:
            return None
        await kept.ended.wait()
        if self.closed.find(identity.id, sid) is not kept:
            return self.find(identity, sid)
        self._room(identity)
        self.closed.take(kept)
        self._sessions[sid] = kept.session
        kept.session.reopened()
        return kept.session

    def _forget(self, session: Workspace) -> None:
        """Nobody will look at it any more."""
        if session.id in self._frozen:
            self._frozen.discard(session.id)
            session.let_go()
        give_back_soon(cycles=True)

    async def close_all(self) -> None:
        """End every session, all at the same time."""
        self.closing = True
        self.closed.clear()
        async with anyio.create_task_group() as group:
            for session in list(self._sessions.values()):
                group.start_soon(_guarded, self.close, (session,))

    async def _reap(self) -> None:
        """Close sessions that nobody has needed for the idle time."""
        limits = self.settings.limits
        while True:
            await anyio.sleep(min(bounds.REAP_SECONDS, limits.idle_seconds / 4))
            self._look_at_all(limits.idle_seconds)
            if garbage.is_due():
                give_back_soon(cycles=True)
            self.closed.sweep()
            if self.vault.elsewhere is not None and self.vault.elsewhere.waits:
                self.start_soon(self.vault.elsewhere.again)
            self.start_soon(self.store.requests.sweep)
            self.start_soon(self.store.rules.sweep)

    def _look_at_all(self, seconds: float) -> None:
        """Not in the loop above: while it sleeps, its variable would keep a session alive that was closed meanwhile."""
        for session in list(self._sessions.values()):
            self.start_soon(self._close_idle, session, seconds)

    async def _close_idle(self, session: Workspace, seconds: float) -> None:
        if not session.closed and session.idle_for() >= seconds:
            logger.info("session %s was idle and is closed", session.id)
            self.idled.note(session, seconds)
            if self.gate is not None:
                self.gate.idled(session.owner, session.target)
            await self.close(session)

    def idle_left(self, session: Workspace) -> float | None:
        """Seconds until a session is closed because nobody needs it, when that is soon."""
        limits = self.settings.limits
        left = limits.idle_seconds - session.idle_for()
        return max(0.0, left) if left <= min(limits.idle_notice_seconds, limits.idle_seconds / 2) else None

    def open_asks(self, owner: str) -> int:
        """What waits for somebody, over all of their sessions."""
        return sum(one.open_asks for one in self._sessions.values() if one.owner == owner)

    # ---- signing in to servers

    @property
    def redirect_uri(self) -> str:
        """Where an authorization server sends a browser back to: here, as browsers know us."""
        host = self.settings.host if is_loopback(self.settings.host) else "127.0.0.1"
        host = f"[{host}]" if ":" in host else host
        return f"{self.settings.public_url or f'http://{host}:{self.settings.port}'}/oauth/callback"

    def write_vault(self, owner: str, server: str) -> None:
        """Bring what is kept of sign-ins up to date, where something is."""
        self.vault.changed(owner, server)
        if not self.closing:
            self.start_soon(self.vault.keep, owner, server)

    # ---- consent and memory

    def open_room(self, session: Workspace, settings: RoomSettings) -> Room:
        """Let a room full of phones answer what the server of a session asks; the one that there is, if there is one.
        What is open already is put to it too. Raises Conflict when phones cannot reach it."""
        from app.sessions.room import Room

        audience, reach = session.asks.audience, self.reach
        if audience.room is not None:
            audience.room.change(settings)
            return audience.room
        if reach is None:
            raise Conflict("No phone can reach this Parley. Start it with: parley demo --room ADDRESS")
        reach.opened()

        def ended(room: Room) -> None:
            self.rooms.pop(room.code, None)
            audience.room = None
            if not self.rooms:
                reach.ended()

        audience.room = made = Room(session, settings, ended, self.settings.owner_mark)
        made.address = reach.address(made.code)
        self.rooms[made.code] = made
        for ask in session.inbox.open:
            if made.takes(ask):
                session.asks.consider(ask)
        session.changed("room.changed", "room")
        return made

    def consented(self, identity: Identity, target: AnyTarget) -> bool:
        """Whether this identity has agreed to start exactly this process (R5-71)."""
        return not isinstance(target, StdioTarget) or self.remembered.agreed(identity.id, target_digest(target))

    def consent(self, identity: Identity, target: AnyTarget) -> None:
        """Remember that it has, also over a restart."""
        if isinstance(target, StdioTarget):
            self.remembered.agree(identity.id, target_digest(target), _without_secrets(target))

    def forget_consent(self, identity: Identity, target: AnyTarget) -> None:
        """Ask again before this command is started, whatever its secrets are."""
        if isinstance(target, StdioTarget):
            self.remembered.disagree(identity.id, _without_secrets(target))

    async def known_era(self, owner: str, target: AnyTarget) -> Era | None:
        """Which era a command was found to speak, so that it need not be probed. An address is probed each time."""
        if not isinstance(target, StdioTarget):
            return None
        await self.store.loaded()
        return self.store.era(owner, target)

    def learned_era(self, owner: str, target: AnyTarget, era: Era | None) -> None:
        """Remember what a probe found, or that it was wrong; None forgets it."""
        if isinstance(target, StdioTarget):
            self.start_soon(self.store.learn, owner, target, era)

    def reached(self, owner: str, target: AnyTarget, name: str, revision: str, tools: int | None) -> None:
        """A target led to a server: remember what it is; the disk follows when it can."""
        server = Server(self.wall(), server_name(name), revision, tools)
        kept = self.store.reached(owner, target, server)
        if kept is not None and not self.closing:
            self.start_soon(self.store.follow, kept)

    def remember(self, identity: Identity, target: AnyTarget, options: Options | None = None) -> None:
        """Keep a target among the recent ones; the disk follows when it can."""
        self.start_soon(self.store.follow, self.store.used(identity.id, target, options or Options()))

    async def _calm(self) -> None:
        """Wait until nobody connects: what is imported then, in a thread, takes the interpreter from no handshake."""
        await self.until_ready()
        for session in list(self._sessions.values()):
            await session.wait_connection(bounds.CALM_SECONDS)
        await self.sleep(bounds.CALM_REST_SECONDS)


def _without_secrets(target: StdioTarget) -> str:
    return target_digest(without_secrets(target)[0])


async def _guarded(function: Callable[..., Coroutine[Any, Any, Any]], arguments: tuple[Any, ...]) -> None:
    try:
        await function(*arguments)
    except Exception:
        logger.exception("%s failed inside Parley", function.__qualname__)
