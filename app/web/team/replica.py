"""This process among those of its team: that it lives, what it holds, what the others changed, and how it is replaced.

Runs beside everything and in nobody's way: a store that is gone makes it say `degraded`, and nothing else (F26).
"""

from __future__ import annotations

import logging
import os
import signal
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import anyio

from app import team_bounds as bounds
from app.sessions import SessionRegistry, Workspace
from app.sessions.leftovers import go_on_elsewhere
from app.store.replicas import HeldSession, Replica, Replicas, aimed
from app.web.team.unfinished import Kept

if TYPE_CHECKING:
    from app.web.team.house import House

logger = logging.getLogger("parley.replica")

_SOON = ("state", "label", "recording", "asks", "target", "unfinished")
"""What of a session others should know at once; counts may follow."""


def own_version() -> str:
    """What is installed, for the page of replicas."""
    try:
        return version("mcp-parley")
    except PackageNotFoundError:
        return "source"


class Keeper:
    """Keeps the row of this replica and those of its sessions."""

    def __init__(self, house: House, registry: SessionRegistry) -> None:
        self._house, self._registry = house, registry
        self.replicas = Replicas(house.database, registry.settings.replica, registry.run, own_version(), registry.wall)
        self.known: list[Replica] = []
        """All of them, as of the last look."""
        self.draining = False
        self._drained_at = 0.0
        self._written: dict[str, HeldSession] = {}
        self._kept = Kept(house.sealed)
        self._news: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._renewed = self._swept = self._counted = self._swept_counts = float("-inf")
        self._was_degraded = False
        self._wake = anyio.Event()
        self._began = registry.wall()
        registry.elsewhere = self.counted
        registry.when_connecting.append(self._begins)

    def _begins(self, session: Workspace) -> None:
        """A session begins: others should know of it before it can be lost."""
        self._wake.set()

    # ---- what others ask

    @property
    def name(self) -> str:
        return self.replicas.name

    @property
    def degraded(self) -> str:
        """Why nothing is saved at the moment, as a sentence without its beginning; empty while it works."""
        return self._house.database.trouble or self._registry.store.trouble

    def counted(self, owner: str) -> int:
        """How many sessions somebody has on other replicas: they count here too."""
        return self._counts.get(owner, 0)

    def others(self) -> list[Replica]:
        """Those that could serve in the place of this one."""
        return [one for one in self.known if one.alive and one.state == "serving" and one.name != self.name]

    # ---- its life

    async def run(self) -> None:
        """Once a second, until cancelled."""
        while True:
            try:
                await self.tick()
            except Exception:  # a fault of ours costs one turn, never the replica
                logger.exception("keeping the rows of this replica failed")
            with anyio.move_on_after(bounds.TICK_SECONDS):
                await self._wake.wait()
            self._wake = anyio.Event()

    async def tick(self) -> None:
        """Say what there is, and hear what others say."""
        now = self._registry.mono()
        if now - self._renewed >= bounds.RENEW_SECONDS or self._was_degraded:
            await self._renew(now)
        await self._write_sessions(now)
        await self._share_counts(now)
        await self._hear()
        self._mark()
        if self.draining:
            self._leave(now)

    async def _renew(self, now: float) -> None:
        state = "draining" if self.draining else "serving"
        held = len(self._registry.everybodys())
        found = await self.replicas.renew(state, held, self._began)
        if found is None:
            return
        if now - self._renewed >= bounds.LEASE_SECONDS:  # others took us for dead, and what we hold for lost
            self._written = {sid: replace(one, state="") for sid, one in self._written.items()}
            taken = await self.replicas.taken()
            for session in self._registry.everybodys():
                go_on_elsewhere(session, taken.get(session.id, ()))
        self._renewed, self.known = now, found
        self._counts = await self.replicas.counts()
        mine = next((one for one in found if one.name == self.name), None)
        if mine is not None and mine.wanted == "drain" and not self.draining:
            self.draining, self._drained_at = True, now
            logger.warning("this replica is drained: it opens no session any more, and ends when it has none")
        if now - self._swept > 3600:
            self._swept = now
            await self.replicas.sweep()

    async def _write_sessions(self, now: float) -> None:
        if self._registry.closing:
            return  # what ends with the process is lost, not closed
        held = {one.id: one for session in self._registry.everybodys() if (one := self._row(session)) is not None}
        changed = [one for one in held.values() if self._is_news(one)]
        gone = [sid for sid in self._written if sid not in held]
        if await self.replicas.put(changed, gone):
            self._written.update((one.id, one) for one in changed)
            for sid in gone:
                del self._written[sid]
                self._kept.forget(sid)

    def _row(self, session: Workspace) -> HeldSession | None:
        if session.target is None or session.made_for is not None or session.never_connected:
            return None
        recorder = session.recorder
        plain, options, missing = aimed(session.target, session.options)
        return HeldSession(
            id=session.id,
            owner=session.owner,
            replica=self.name,
            run=self._registry.run,
            label=" ".join(session.label.split())[: bounds.AUDIT_TEXT],
            state=session.info.state,
            recording="" if recorder is None else recorder.rid,
            asks=session.open_asks,
            calls=len(session.calls),
            messages=session.messages.count,
            began=session.created_at,
            changed=self._registry.wall(),
            target=plain,
            options=options,
            missing=missing,
            unfinished=self._kept.text(session),
        )

    def _is_news(self, one: HeldSession) -> bool:
        before = self._written.get(one.id)
        if before is None or any(getattr(before, name) != getattr(one, name) for name in _SOON):
            return True
        counts: Any = replace(one, changed=before.changed)
        return counts != before and one.changed - before.changed >= bounds.COUNTS_SECONDS

    async def _share_counts(self, now: float) -> None:
        """What people used up here counts on other replicas too, and the other way round. Once a second and no oftener,
        for sessions wake this one."""
        if not self._house.database.is_shared or now - self._counted < bounds.TICK_SECONDS * 0.9:
            return
        self._counted, sweep = now, now - self._swept_counts > 60
        if await self.replicas.used.exchange(self._house.rates, self.replicas.now, sweep=sweep) and sweep:
            self._swept_counts = now

    async def _hear(self) -> None:
        """Read again what another replica changed."""
        if not self._house.database.is_shared:
            return
        news = await self.replicas.news()
        if news is None or news == self._news:
            return
        before, self._news = self._news, news
        told = {name for name, value in news.items() if before.get(name) != value}
        if before and not self._was_degraded:
            logger.debug("another replica changed %s", ", ".join(sorted(told)))
        if "people" in told:
            await self._house.people.refresh()
            await self._end_switched_off()
        if "catalogue" in told:
            await self._house.refresh()
        if "shares" in told:
            await self._house.shares.open()
            self._house.together.look_again()
        if told & {"targets", "requests", "rules"}:
            await self._registry.store.refresh()

    async def _end_switched_off(self) -> None:
        """Whoever was switched off on another replica has no session here either; streams end by themselves."""
        for session in self._registry.everybodys():
            person = self._house.people.find(session.owner)
            if person is not None and person.off is not None:
                await self._registry.close(session)

    def _mark(self) -> None:
        """Every open page says that nothing is saved, and that it is again."""
        is_degraded = bool(self.degraded)
        self._registry.degraded = self.degraded
        if is_degraded == self._was_degraded:
            return
        self._was_degraded = is_degraded
        for session in self._registry.everybodys():
            session.changed("recording.changed", "store")

    def _leave(self, now: float) -> None:
        """Drained: end when nobody has a session here, or when that takes too long."""
        late = now - self._drained_at > self._house.settings.drain_minutes * 60
        if late or not self._registry.everybodys():
            logger.warning("this replica is drained and ends%s", ", with sessions still open" if late else "")
            os.kill(os.getpid(), signal.SIGTERM)

    async def end(self) -> None:
        """The process ends: what it still held is lost now, and others say so at once."""
        await self.replicas.end(self._written.values())


async def until_free(replicas: Replicas, say: Any) -> bool:
    """Wait for the lease of a process of the same name that died a moment ago; whether the name is free."""
    told = False
    for _ in range(int(bounds.LEASE_SECONDS) + 3):
        if await replicas.holder() is None:
            return True
        if not told:
            told = True
            say(f"{replicas.name} was served by another process a moment ago; waiting until that is surely gone")
        await anyio.sleep(1)
    return False
