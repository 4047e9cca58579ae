"""The targets that people saved or used, and which era each command speaks.

Memory is the truth while Parley runs, the file follows it: reading never waits for a disk, and a broken disk costs only
the saving (F25). Secrets are never written: what is left out is asked for again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel

from app import bounds
from app.core.errors import Gone, Invalid, NotAllowed
from app.core.options import Options
from app.core.revisions import Era
from app.core.targets import AnyTarget, StdioTarget, target_digest
from app.settings import Limits
from app.store import recordings, requests, servers
from app.store import rules as answer_rules
from app.store.database import Database
from app.store.kept import COLUMNS, Kept, Row, named, of_row, plain_name, row_of, without_secrets
from app.store.servers import Server
from app.store.shared import SharedDatabase, touched

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.ext.asyncio import AsyncConnection

RECENT: Final = 10
"""Targets kept for each identity that nobody saved and that never led to a server."""
SAVED: Final = 500
_READ: Final = 10_000
"""Rows of a table that are read at the start."""
_CLOSE_SECONDS: Final = 2.0
_CALM_SECONDS: Final = 10.0
"""How long what need not be written at once waits for a calm moment."""
_TARGETS: Final = f"SELECT {', '.join(COLUMNS)} FROM targets ORDER BY used DESC"  # noqa: S608 (constants)
_ERAS: Final = f"SELECT command, era FROM eras ORDER BY at DESC LIMIT {_READ}"  # noqa: S608


# ------------------------------------------------------------------------------------------------------------- store


@dataclass(eq=False)
class Store:
    """Saved and recent targets. Without a directory it is memory only, and forgets with the process."""

    directory: Path | None
    wall: Callable[[], float] = time.time
    max_pages: int | None = None
    """For tests: how large the file may grow, in pages."""
    eras: int = 1_000
    """Commands whose era is remembered."""
    limits: Limits = field(default_factory=Limits)
    recordings_in: str = "files"
    url: str = field(default="", repr=False)
    """The PostgreSQL of a team; empty for a file of one's own."""
    calm: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    """Waits for a moment in which nobody minds that code is imported, which takes the interpreter from everything."""
    _kept: dict[str, Kept] = field(default_factory=dict)
    _eras: dict[str, Era] = field(default_factory=dict)
    """What commands spoke the last time, those that were learned first in front."""
    _plain: dict[str, tuple[AnyTarget, AnyTarget]] = field(default_factory=dict)
    """Each kept target with what of it may be written: one that is large is not searched at every connect."""
    _behind: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    """What waits for a calm moment to be written."""
    _forgotten: dict[str, tuple[float, Kept]] = field(default_factory=dict)
    """What was forgotten a moment ago, and when: it can be brought back."""
    _hurry: anyio.Event = field(default_factory=anyio.Event)
    _loaded: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self._database = (
            SharedDatabase(self.url, _scrub) if self.url else Database(self.directory, _scrub, self.max_pages)
        )
        self.requests = requests.SavedRequests(self._database, self.wall, lambda: self._kept)
        self.rules = answer_rules.SavedRules(self._database, self.wall, lambda: self._kept)
        self.recordings = recordings.Recordings(self._database, self.directory, self.wall, self.limits)
        self.recordings.kept_in, self.recordings.url = self.recordings_in, self.url

    @property
    def trouble(self) -> str:
        """Why nothing is written, as a sentence without its beginning; empty while it works."""
        return self._database.trouble

    @property
    def database(self) -> Database:
        """The file, for what else is kept in it."""
        return self._database

    # ---- life

    async def open(self) -> None:
        """Read what there is, and bring an older file up to date. Never raises: Parley works without it as well."""
        try:
            found = await self._database.look(_read)
            more = await self._database.look(
                lambda file: (requests.read(file), answer_rules.read(file), recordings.read(file))
            )
            (saved, stale), (ruled, stale_rules), recorded = more or (([], False), ([], False), [])
            if found is not None:
                self._take(found)
            self.requests.take(saved)
            self.rules.take(ruled)
            self.recordings.take(recorded)
        finally:
            self._loaded.set()
        if found is None:
            return
        if stale or stale_rules or not found.clean:
            await self._database.clean()
        if not found.current:
            await self._calm_moment()
            await self._database.bring_up()
        await self.recordings.tidy()

    async def refresh(self) -> None:
        """Read again what another replica of a team has changed; secrets that are known here stay known."""
        found = await self._database.look(_read)
        more = await self._database.look(lambda file: (requests.read(file)[0], answer_rules.read(file)[0]))
        if found is None or more is None:
            return
        before, self._kept = self._kept, {}
        for kept, plain in found.targets:
            known = before.get(kept.id)
            same = known is not None and without_secrets(known.target)[0] == plain
            mine = replace(known, name=kept.name, used=kept.used, server=kept.server) if known and same else kept
            self._kept[kept.id] = mine
        self.requests.renew(more[0])
        self.rules.renew(more[1])

    def _take(self, found: _Found) -> None:
        """Take over what the file has; what was learned meanwhile stays. A target that was used before the file was
        read is the one in the file, with all that is kept beside that."""
        early = list(self._kept.values())
        for known, plain in found.targets:
            kept = known
            same = next((one for one in early if one.owner == kept.owner and self._plain_of(one) == plain), None)
            if same is not None and same.id != kept.id:
                early.remove(same)
                del self._kept[same.id]
                kept = replace(same, id=kept.id, name=same.name or kept.name, server=same.server or kept.server)
            if self._kept.setdefault(kept.id, kept) is kept:
                self._plain[kept.id] = kept.target, plain
        self._eras = {**found.eras, **self._eras}

    async def loaded(self, seconds: float = 2.0) -> None:
        """Wait until the file was read, but not for ever: a disk may hang."""
        with anyio.move_on_after(seconds):
            await self._loaded.wait()

    async def close(self) -> None:
        """Write what is under way or waits, then let go of the file."""
        self._hurry.set()
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            while self._behind:
                await self._behind.pop(next(iter(self._behind)))()
            await self.recordings.close()
        await self._database.close()

    # ---- reading, from memory

    def of(self, owner: str) -> list[Kept]:
        """The targets of an identity, the last used first."""
        return sorted((one for one in self._kept.values() if one.owner == owner), key=lambda one: -one.used)

    def find(self, owner: str, key: str) -> Kept | None:
        """A target by its id; somebody else's is as unknown as one that never was (S15)."""
        found = self._kept.get(key)
        return found if found is not None and found.owner == owner else None

    # ---- which era a command speaks

    def era(self, owner: str, target: StdioTarget) -> Era | None:
        """What this command spoke the last time; None when that is not known."""
        return self._eras.get(_command(owner, target))

    async def learn(self, owner: str, target: StdioTarget, era: Era | None) -> None:
        """Remember what a command speaks, also over a restart; None forgets it. Never raises."""
        key = _command(owner, target)
        if self._eras.get(key) == era:
            return
        self._eras.pop(key, None)
        if era is not None:
            self._eras[key] = era
        while len(self._eras) > self.eras:
            del self._eras[next(iter(self._eras))]

        async def write() -> None:
            await self._database.work(lambda connection: self._put_era(connection, key))

        await self._follow(f"era {key}", write)

    async def _put_era(self, connection: AsyncConnection, key: str) -> None:
        """The era of a command as it is known now."""
        from sqlalchemy import delete, insert, select

        from app.store.tables import eras

        await connection.execute(delete(eras).where(eras.c.command == key))
        if (era := self._eras.get(key)) is not None:
            await connection.execute(insert(eras).values(command=key, era=era, at=self.wall()))
            known = select(eras.c.command).order_by(eras.c.at.desc()).limit(self.eras)
            await connection.execute(delete(eras).where(eras.c.command.not_in(known)))

    # ---- writing

    def used(self, owner: str, target: AnyTarget, options: Options) -> Kept:
        """A target is being connected to: remember it, in memory. `follow` brings it to disk."""
        kept = self._put(owner, target, options, name="")
        self._thin_out(owner)
        return kept

    def reached(self, owner: str, target: AnyTarget, server: Server) -> Kept | None:
        """A target led to a server, or the server was still there: remember what it is, in memory. None when the
        target is not kept any more."""
        same = self.same(owner, target)
        if same is None:
            return None
        kept = self._kept[same.id] = replace(same, server=server.after(same.server))
        self._thin_out(owner)
        return kept

    def _thin_out(self, owner: str) -> None:
        """What never led to a server makes room only for its like: a row of typing errors costs no server."""
        mine = [one for one in self.of(owner) if not one.saved]
        for old in [one for one in mine if one.server is None][RECENT:] + [one for one in mine if one.server][
            servers.MOST :
        ]:
            del self._kept[old.id]

    async def save(self, owner: str, target: AnyTarget, options: Options, name: str) -> Kept:
        """Keep a target under a name. Raises NotAllowed when there are too many."""
        if sum(one.saved for one in self.of(owner)) >= SAVED:
            raise NotAllowed(f"You have saved {SAVED} targets, which is the limit. Delete one first.")
        kept = self._put(owner, target, options, name=named(name or target.label))
        await self.write(kept)
        return kept

    async def rename(self, owner: str, key: str, name: str) -> Kept:
        """Give a target another name; one that was only remembered is saved by it."""
        old = self._mine(owner, key)
        if not name.strip():
            raise Invalid("A target needs a name.", {"/name": ["Type a name."]})
        kept = self._kept[key] = replace(old, name=named(name))
        await self.write(kept)
        return kept

    async def change(self, owner: str, key: str, target: AnyTarget, options: Options, name: str) -> Kept:
        """Let a kept target lead elsewhere, under the same id. What it led to before is not what it leads to now."""
        old = self._mine(owner, key)
        server = old.server if self._plain_of(old) == without_secrets(target)[0] else None
        name = named(name) or old.name or named(target.label)
        kept = self._kept[key] = replace(old, target=target, options=options, name=name, missing=(), server=server)
        await self.write(kept)
        return kept

    async def delete(self, owner: str, key: str, *, undo: bool = True) -> None:
        """Forget a target. With `undo` it can be brought back for a moment, from memory."""
        gone = self._mine(owner, key)
        del self._kept[key]
        self._forgotten = {one.id: (at, one) for at, one in self._still_forgotten()}
        if undo:
            self._forgotten[key] = self.wall(), gone
        await self._database.work(lambda connection: _delete(connection, key))

    async def restore(self, owner: str, key: str) -> Kept:
        """Bring back what was forgotten a moment ago. Raises Gone when that is too long ago."""
        found = next((one for _, one in self._still_forgotten() if (one.owner, one.id) == (owner, key)), None)
        if found is None:
            raise Gone("That was forgotten too long ago to be brought back.")
        del self._forgotten[key]
        kept = self._kept[key] = found
        await self.write(kept)
        return kept

    def knew(self, owner: str, key: str) -> bool:
        """Whether this was a target of this owner, as far as that is known; somebody else's never was one (S15)."""
        gone = self._forgotten.get(key)
        return self.find(owner, key) is not None or (gone is not None and gone[1].owner == owner)

    def forgotten(self, owner: str) -> list[tuple[float, Kept]]:
        """What an identity has forgotten a moment ago, with the seconds for which it can be brought back."""
        left = self.wall() - bounds.UNDO_SECONDS
        return [(at - left, one) for at, one in self._still_forgotten() if one.owner == owner]

    def _still_forgotten(self) -> list[tuple[float, Kept]]:
        now = self.wall()
        return [(at, one) for at, one in self._forgotten.values() if now - at < bounds.UNDO_SECONDS]

    async def write(self, kept: Kept) -> None:
        """Bring one target to disk, without its secrets. Never raises; `trouble` says what went wrong."""
        row = dict(zip(COLUMNS, row_of(kept), strict=True))
        await self._database.work(lambda connection: _put(connection, row, kept.server))

    async def follow(self, kept: Kept) -> None:
        """Bring one target to disk as `write` does, but behind whoever is connecting."""

        async def write() -> None:
            if (now := self._kept.get(kept.id)) is not None:
                await self.write(now)

        await self._follow(f"target {kept.id}", write)

    async def _follow(self, key: str, write: Callable[[], Awaitable[None]]) -> None:
        """Write now when what writes is loaded already, else at the next calm moment or when the store closes."""
        if self._database.idle:
            self._behind[key] = write
            await self._calm_moment()
            if self._behind.pop(key, None) is None:
                return
        await write()

    async def _calm_moment(self) -> None:
        async with anyio.create_task_group() as group:

            async def wait(wanted: Callable[[], Awaitable[object]]) -> None:
                await wanted()
                group.cancel_scope.cancel()

            group.cancel_scope.deadline = anyio.current_time() + _CALM_SECONDS
            group.start_soon(wait, self._hurry.wait)
            group.start_soon(wait, self.calm)

    def _put(self, owner: str, target: AnyTarget, options: Options, *, name: str) -> Kept:
        """A target that differs only by its secrets is the same one, with secrets that are known now."""
        same = self.same(owner, target)
        if same is None:
            kept = Kept(f"t{secrets.token_urlsafe(9)}", owner, target, options, self.wall(), name)
        else:
            kept = replace(same, target=target, options=options, used=self.wall(), name=name or same.name, missing=())
        self._kept[kept.id] = kept
        return kept

    def same(self, owner: str, target: AnyTarget) -> Kept | None:
        """The kept target that is this one, whatever its secrets are now."""
        plain = without_secrets(target)[0]
        return next((one for one in self.of(owner) if self._plain_of(one) == plain), None)

    def _plain_of(self, kept: Kept) -> AnyTarget:
        known = self._plain.get(kept.id)
        if known is None or known[0] is not kept.target:
            self._plain = {key: pair for key, pair in self._plain.items() if key in self._kept}
            known = self._plain[kept.id] = kept.target, without_secrets(kept.target)[0]
        return known[1]

    def _mine(self, owner: str, key: str) -> Kept:
        found = self.find(owner, key)
        if found is None:
            raise Gone("That target is no longer kept.")
        return found


def _command(owner: str, target: StdioTarget) -> str:
    """What an era is remembered by: a command with all that belongs to it but its secrets, as a digest."""
    return f"{owner} {target_digest(without_secrets(target)[0])}"


# -------------------------------------------------------------------------------------------------------- statements


async def _put(connection: AsyncConnection, row: dict[str, Any], server: Server | None) -> None:
    from sqlalchemy import insert, update

    from app.store.tables import targets

    # A name that another Parley gave stays when this one only uses the target.
    new = {key: value for key, value in row.items() if key != "name" or value}
    changed = await connection.execute(update(targets).where(targets.c.id == row["id"]).values(new))
    if not changed.rowcount:
        await connection.execute(insert(targets).values(row))
    await servers.put(connection, row["id"], server)
    await servers.thin_out(connection, row["owner"], RECENT)
    await touched(connection, "targets")


async def _delete(connection: AsyncConnection, key: str) -> None:
    from sqlalchemy import delete

    from app.store.tables import targets

    await connection.execute(delete(targets).where(targets.c.id == key))
    await servers.put(connection, key, None)
    await touched(connection, "targets")


# -------------------------------------------------------------------------------- the file as it is found, in a thread


@dataclass(slots=True, frozen=True)
class _Found:
    targets: list[tuple[Kept, AnyTarget]]
    """Each with what of it may be written."""
    eras: dict[str, Era]
    clean: bool
    """Whether nothing in it is a secret by today's table, or was one."""
    current: bool


def _read(file: sqlite3.Connection) -> _Found:
    from app.store import sqlite

    found, clean = list[tuple[Kept, AnyTarget]](), sqlite.is_clean(file)
    reached = servers.read(file)
    for kept, plain, stale in _targets(sqlite.rows(file, "targets", f"{_TARGETS} LIMIT {_READ}")):
        found.append((replace(kept, server=Server(kept.used) if reached is None else reached.get(kept.id)), plain))
        clean = clean and stale is None
    eras = {key: era for key, era in reversed(sqlite.rows(file, "eras", _ERAS)) if era in ("legacy", "modern")}
    return _Found(found, eras, clean, sqlite.is_latest(file))


def _scrub(file: sqlite3.Connection) -> bool:
    """Write rows again that hold what is a secret by today's table; whether there were any."""
    from app.store import sqlite

    rows = [stale for *_, stale in _targets(sqlite.rows(file, "targets", _TARGETS)) if stale is not None]
    query = "UPDATE targets SET name = ?, target = ?, missing = ?, options = ? WHERE id = ?"
    file.executemany(query, [(*row[2:6], row[0]) for row in rows])
    return any([requests.scrub(file), answer_rules.scrub(file), bool(rows)])


def _targets(rows: list[tuple[Any, ...]]) -> Iterator[tuple[Kept, AnyTarget, Row | None]]:
    """Each row that makes sense, what of it may be written, and the row that has to replace it, if it must."""
    for row in rows:
        kept = of_row(row)
        if kept is not None:
            kept = replace(kept, name=plain_name(kept.name, kept.target))
            clean = row_of(kept)
            yield kept, without_secrets(kept.target)[0], clean if clean[2:6] != row[2:6] else None
