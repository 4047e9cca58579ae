"""What a team has and one person has not: people, a catalogue, an audit log, and the gate before a connection."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from app import team_bounds as bounds
from app.core.catalogue import OFF, PREFIX, Catalogue, Entry, Role, merged, origin_of
from app.core.errors import NotAllowed, TooMany
from app.core.people import Person
from app.core.rate import Rate, SharedRate
from app.core.targets import AnyTarget, HttpTarget, StdioTarget
from app.isolation import Isolation
from app.sessions.identity import Identity, Level
from app.sessions.workspace import Workspace
from app.store import Store
from app.store.audit import Act, Audit
from app.store.entries import Entries
from app.store.people import NotSaved, People
from app.store.sealed import HOUSE, KEY_FILE, Sealed, read_key
from app.store.shares import Shares
from app.store.spent import Spent
from app.team_settings import TeamSettings
from app.web.team.figures import Figures
from app.web.team.together import Together

_FLUSH_SECONDS = 1.0
_SWEEP_SECONDS = 3_600.0
_WHILE_TYPING = "completion/complete"
_TYPED = frozenset(("stdio", "mcpjson"))
"""Ways to write a command."""


class House:
    """The team of this process."""

    def __init__(
        self,
        settings: TeamSettings,
        walls: Isolation,
        wall: Callable[[], float] = time.time,
        mono: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings, self.walls, self.wall = settings, walls, wall
        self.looked = wall()
        """When the walls were tried."""
        self._fixed = settings.entries
        database = self.database = self._database = Store(
            settings.data_dir, url=settings.process().store_url or ""
        ).database
        self.people = People(
            database,
            wall,
            login_seconds=settings.login_hours * 3600,
            idle_seconds=settings.login_idle_hours * 3600,
        )
        self.entries = Entries(database, wall)
        self.sealed = Sealed(database, wall)
        self.audit = Audit(database, wall, days=settings.audit_days)
        self.shares = Shares(database, wall)
        self.spent = Spent(database, wall)
        self.together = Together(self.people, self.shares, wall)
        self.allowed: Set[tuple[str, int]] = _Dialled(self)
        self.figures = Figures()
        self._tools: dict[str, int] = {}
        self._opened = False
        most = settings.limits.calls_per_minute
        self.call_rate = SharedRate(most, 60.0, mono) if most else None
        self.rates: dict[str, SharedRate] = {} if self.call_rate is None else {"calls": self.call_rate}
        """What counts for somebody on all replicas together."""
        self._typing = Rate(10 * most, 60.0, mono) if most else None
        self._refusals = Rate(bounds.REFUSALS_PER_MINUTE, 60.0, mono)

    async def open(self) -> None:
        """Read everybody and everything. Raises NotSaved when the file cannot be used."""
        await self.people.open()
        await self.entries.open()
        await self.shares.open()
        await self.sealed.open(await anyio.to_thread.run_sync(self.key))
        self._opened = True

    @property
    def ready(self) -> bool:
        """Whether everybody is read, and the file can be written. A store that all replicas share is gone for all of
        them: that none were ready would take away what still works."""
        return self._opened and (self._database.is_shared or not self._database.trouble)

    def key(self) -> str:
        """What encrypts secrets of people. Blocks. Raises NotSaved: what cannot be kept safely is not begun."""
        given = self.settings.key_file
        try:
            return read_key(Path(given) if given else self.settings.data_dir / KEY_FILE, make=not given)
        except (OSError, ValueError) as fault:
            raise NotSaved(f"The key of secrets cannot be used: {getattr(fault, 'strerror', '') or fault}") from fault

    async def refresh(self) -> None:
        """Read the catalogue again, and what people gave for it: another replica changed it."""
        await self.entries.open()
        await self.sealed.refresh()

    async def keep(self, changed: deque[str]) -> None:
        """Bring to the file what waits, once a second, these logins too, and forget what is old. Runs until
        cancelled."""
        swept = 0.0
        while True:
            await self.audit.flush()
            await self._tell(changed)
            if anyio.current_time() - swept > _SWEEP_SECONDS:
                swept = anyio.current_time()
                with suppress(NotSaved):  # the next time will do
                    await self.audit.sweep()
                    await self.people.sweep()
            await anyio.sleep(_FLUSH_SECONDS)

    async def _tell(self, changed: deque[str]) -> None:
        """Bring logins to the file; those that could not be written wait for the next time."""
        while changed:
            try:
                await self.people.keep(changed[0])
            except NotSaved:
                return
            changed.popleft()

    async def close(self) -> None:
        """The last entries, then let go of the file."""
        self._opened = False
        await self.audit.flush()
        await self._database.close()

    # ---- the catalogue

    def catalogue(self) -> Catalogue:
        """As it is now: what the file lists, then what admins keep on the page."""
        entries = merged(self._fixed, self.entries.all())
        return Catalogue(entries, self.settings.allowed, self.settings.free_http)

    def is_fixed(self, entry: Entry) -> bool:
        """Whether the settings file lists it: then only that file changes it."""
        return any(one.id == entry.id for one in self._fixed)

    def secret(self, entry: str, name: str) -> str | None:
        """What an admin typed for a variable of an entry."""
        return self.sealed.values(HOUSE, entry).get(name)

    # ---- the gate

    def connects(self, by: Identity, target: AnyTarget) -> None:
        """Raise NotAllowed when somebody may not connect to this; else write down that they do."""
        why = self.catalogue().refusal(role_of(by), target)
        if isinstance(target, HttpTarget) and origin_of(target.url) == origin_of(self.settings.public_url):
            why = "That address is this Parley itself."
        self.note(by, "was refused" if why else "connected", self.named(target), refused=why is not None)
        if why is not None:
            raise NotAllowed(why)

    def dials(self, by: Identity, url: str) -> None:
        """Raise NotAllowed for an address of a host that is reached by the catalogue alone, or by nobody."""
        if (why := self.catalogue().refused_address(url)) is not None:
            self.note(by, "was refused", "an address of their own", refused=True)
            raise NotAllowed(why)

    def typed(self, by: Identity, data: Mapping[str, Any]) -> None:
        """Raise NotAllowed for a command, before anything of it is looked up on this machine (S25)."""
        target = data.get("target")
        inner = target if isinstance(target, dict) else {}
        command = inner.get("command", data.get("command"))
        if isinstance(command, str) and command.startswith(PREFIX):
            return
        ways = [way for way in (inner.get("transport"), data.get("transport")) if isinstance(way, str)]
        if command or _TYPED.intersection(ways) or data.get("mcp_json"):
            self.note(by, "was refused", "a command of their own", refused=True)
            raise NotAllowed(OFF)

    def calls(self, by: Identity, what: str, target: AnyTarget | None) -> None:
        """Somebody calls a tool. Raises TooMany over their number of calls a minute: theirs alone, by whichever
        browser, script or address (S41)."""
        if what == _WHILE_TYPING:
            # Parley asks while somebody types: that is no call of theirs to be told of, and has room of its own.
            if self._typing is not None and (wait := self._typing.take(by.id)):
                raise TooMany("Too many suggestions were asked for. They go on in a while.", wait)
            return
        wait = 0 if self.call_rate is None else self.call_rate.take(by.id)
        if wait:
            self.figures.over += 1
            self.note(by, "was refused", "too many calls in a minute", refused=True)
            most = self.settings.limits.calls_per_minute
            raise TooMany(f"You made {most} calls in a minute, which is the limit. Call again in {wait} seconds.", wait)
        self.figures.calls += 1
        self.note(by, "called", self._of(what, target))

    def answered(self, by: Identity, kind: str, how: str, target: AnyTarget | None) -> None:
        """Somebody answered an ask: of what kind, and how; not what they said."""
        self.note(by, "answered", f"{self._of(kind, target)}, {how}")

    def idled(self, owner: str, target: AnyTarget | None) -> None:
        """A session ended because nobody needed it."""
        person = self.people.find(owner)
        if person is not None:
            self.note(person, "disconnected", self._of("idle", target))

    def _of(self, what: str, target: AnyTarget | None) -> str:
        return what if target is None else f"{what} in {self.named(target)}"

    def level(self, by: Identity, thing: str) -> Level:
        """What a session or a recording that is not theirs is to somebody."""
        return self.shares.may(by.id, thing) or ""

    def named(self, target: AnyTarget) -> str:
        """What the audit log calls a target."""
        if isinstance(target, StdioTarget):
            key = target.command.removeprefix(PREFIX)
            return next((one.name for one in self.catalogue().entries if one.id == key), "a command of their own")
        address = target.url if isinstance(target, HttpTarget) else ""
        same = (one for one in self.catalogue().entries if one.transport == target.transport and one.url == address)
        return next((one.name for one in same), target.label)

    def tools(self, sessions: Iterable[Workspace]) -> dict[str, int]:
        """How many tools each server of the catalogue has, by its id, as far as one of these sessions, or one before,
        knows. Not of servers to which everybody comes with a secret of their own: they may have more for some."""
        listed = self.catalogue()
        for session in sessions:
            entry = None if session.target is None else listed.entry_of(session.target)
            alike = entry is not None and not any(one.secret for one in entry.wanted)
            if entry is not None and alike and (tools := session.lists["tools"]).state == "ready":
                self._tools[entry.id] = len(tools.items)
        return {one.id: self._tools[one.id] for one in listed.entries if one.id in self._tools}

    def name_of(self, person: str) -> str:
        """What a page calls somebody."""
        found = self.people.find(person)
        return "somebody" if found is None else found.name

    def note(self, by: Identity | Person, act: Act, what: str = "", *, refused: bool = False) -> None:
        """Write down who did what. Of what is refused again and again, nobody fills the log."""
        if not refused or self.may_note(by.id):
            self.audit.note(by.id, by.name, act, what, refused=refused)

    def may_note(self, key: str) -> bool:
        """Whether one more refusal of this person, or from this address, is written down in this minute."""
        return self._refusals.take(key) == 0


def role_of(identity: Identity) -> Role:
    """The role that decides; whoever has none is taken for the least."""
    return identity.role or "viewer"


def role_of_owner(house: House, owner: str) -> Role:
    """The role of whoever a session belongs to, as it is now."""
    person = house.people.find(owner)
    return "viewer" if person is None else person.role


class _Dialled(Set[tuple[str, int]]):
    """Names and ports that may lead inwards, by the catalogue as it is at that moment."""

    def __init__(self, house: House) -> None:
        self._house = house

    def __contains__(self, pair: object) -> bool:
        return pair in self._house.catalogue().dialled()

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._house.catalogue().dialled())

    def __len__(self) -> int:
        return len(self._house.catalogue().dialled())
