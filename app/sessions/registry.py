"""All sessions of this process: opening, finding, closing, the idle ones reaped; consent and the memory of targets."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio
import anyio.abc
import anyio.to_thread

from app import bounds
from app.core.errors import NotAllowed
from app.core.lane import give_back_soon
from app.core.options import Options
from app.core.revisions import Era
from app.core.signal import Signal
from app.core.targets import AnyTarget, StdioTarget, target_digest
from app.protocol import judge
from app.protocol.links import Opener, open_link
from app.sessions.attention import Attention
from app.sessions.identity import Identity
from app.sessions.session import Session
from app.sessions.workspace import Workspace
from app.settings import Limits, Settings
from app.store import Store

if TYPE_CHECKING:
    from app.egress import Egress

_Role = TypeVar("_Role", bound=Workspace)

logger = logging.getLogger("parley.sessions")


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
    ) -> None:
        self.settings, self.wall, self.mono, self.sleep = settings, wall, mono, sleep
        self.open_link = open_link
        self.group: anyio.abc.TaskGroup
        self.closing = False
        self.attention = Attention(mono)
        """For which sessions somebody waits right now."""
        self._sessions: dict[str, Workspace] = {}
        self._numbers = itertools.count(1)
        self._loaded = Signal()
        self._consents: dict[str, set[str]] = {}
        self._frozen: set[str] = set()
        """Sessions that were open when everything was set aside for good: the collector does not see them."""
        self.store = Store(settings.data_dir, wall, eras=settings.limits.known_eras, calm=self._calm)
        self._stack = contextlib.AsyncExitStack()
        self.egress: Egress
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
            from app.egress import Egress, Policy

            judge.load()

            # What is loaded now stays for ever: the collector need not walk it again, 100 ms at a time in a flood.
            gc.collect()
            self._frozen = set(self._sessions)
            gc.freeze()
            return Egress(Policy(self.settings.mode, self.own_ports))

        self.egress = await anyio.to_thread.run_sync(load)
        self._loaded.set()

    # ---- sessions

    def open(self, identity: Identity) -> Session:
        """A new session of the client's role. Raises NotAllowed over a limit, or while shutting down."""
        return self.open_as(Session, identity)

    def open_as(self, role: type[_Role], identity: Identity) -> _Role:
        """A new workspace that this role fills. Raises NotAllowed as `open` does."""
        limits: Limits = self.settings.limits
        if self.closing:
            raise NotAllowed("Parley is shutting down.")
        if len(self.of(identity)) >= limits.sessions_per_identity:
            raise NotAllowed(
                f"You have {limits.sessions_per_identity} sessions open, which is the limit. Close one first."
            )
        if len(self._sessions) >= limits.sessions:
            raise NotAllowed("This Parley has no room for another session. Try again later.")
        session = role(f"r0-{secrets.token_urlsafe(12)}", next(self._numbers), identity, self)
        self._sessions[session.id] = session
        return session

    def find(self, identity: Identity, sid: str) -> Workspace | None:
        """A session of this identity; somebody else's is as unknown as one that never was (S15)."""
        session = self._sessions.get(sid)
        return session if session is not None and session.owner == identity.id else None

    def of(self, identity: Identity) -> list[Workspace]:
        """The open sessions of an identity, oldest first."""
        return [session for session in self._sessions.values() if session.owner == identity.id]

    async def close(self, session: Workspace) -> None:
        """End a session. It cannot be found from the first moment on."""
        self._sessions.pop(session.id, None)
        await session.close()
        if session.id in self._frozen:
            self._frozen.discard(session.id)
            session.let_go()
        give_back_soon(cycles=True)

    async def close_all(self) -> None:
        """End every session, all at the same time."""
        self.closing = True
        async with anyio.create_task_group() as group:
            for session in list(self._sessions.values()):
                group.start_soon(_guarded, self.close, (session,))

    async def _reap(self) -> None:
        """Close sessions that nobody has needed for the idle time."""
        limits = self.settings.limits
        while True:
            await anyio.sleep(min(bounds.REAP_SECONDS, limits.idle_seconds / 4))
            self._look_at_all(limits.idle_seconds)

    def _look_at_all(self, seconds: float) -> None:
        """Not in the loop above: while it sleeps, its variable would keep a session alive that was closed meanwhile."""
        for session in list(self._sessions.values()):
            self.start_soon(self._close_idle, session, seconds)

    async def _close_idle(self, session: Workspace, seconds: float) -> None:
        if not session.closed and session.idle_for() >= seconds:
            logger.info("session %s was idle and is closed", session.id)
            await self.close(session)

    # ---- consent and memory

    def consented(self, identity: Identity, target: AnyTarget) -> bool:
        """Whether this identity has agreed to start exactly this process (R5-71)."""
        return not isinstance(target, StdioTarget) or target_digest(target) in self._consents.get(identity.id, set())

    def consent(self, identity: Identity, target: AnyTarget) -> None:
        """Remember that it has."""
        agreed = self._consents.setdefault(identity.id, set())
        if len(agreed) < bounds.CONSENTS:
            agreed.add(target_digest(target))

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

    def remember(self, identity: Identity, target: AnyTarget, options: Options | None = None) -> None:
        """Keep a target among the recent ones; the disk follows when it can."""
        self.start_soon(self.store.follow, self.store.used(identity.id, target, options or Options()))

    async def _calm(self) -> None:
        """Wait until nobody connects: what is imported then, in a thread, takes the interpreter from no handshake."""
        await self.until_ready()
        for session in list(self._sessions.values()):
            await session.wait_connection(bounds.CALM_SECONDS)
        await self.sleep(bounds.CALM_REST_SECONDS)


async def _guarded(function: Callable[..., Coroutine[Any, Any, Any]], arguments: tuple[Any, ...]) -> None:
    try:
        await function(*arguments)
    except Exception:
        logger.exception("%s failed inside Parley", function.__qualname__)
