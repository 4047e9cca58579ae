"""The targets that people saved or used, and which era each command speaks.

Memory is the truth while Parley runs, the file follows it: reading never waits for a disk, and a broken disk costs only
the saving (F25). Secrets are never written: what is left out is asked for again.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel
from pydantic import TypeAdapter, ValidationError

from app import secrecy
from app.core.errors import Gone, Invalid, NotAllowed
from app.core.options import Options
from app.core.revisions import Era
from app.core.targets import AnyTarget, DemoTarget, StdioTarget, Target, target_digest
from app.core.times import LAST_MOMENT
from app.store.database import Database

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.ext.asyncio import AsyncConnection

logger = logging.getLogger("parley.store")

RECENT: Final = 10
"""Targets kept for each identity that nobody saved."""
SAVED: Final = 500
NAME: Final = 200
_READ: Final = 10_000
"""Rows of a table that are read at the start."""
_CLOSE_SECONDS: Final = 2.0
_CALM_SECONDS: Final = 10.0
"""How long what need not be written at once waits for a calm moment."""
_IN_LINE: Final = "the command line"
_IN_ADDRESS: Final = "the address"
_COLUMNS: Final = ("id", "owner", "name", "target", "missing", "options", "used")
_TARGETS: Final = f"SELECT {', '.join(_COLUMNS)} FROM targets ORDER BY used DESC"  # noqa: S608 (constants)
_ERAS: Final = f"SELECT command, era FROM eras ORDER BY at DESC LIMIT {_READ}"  # noqa: S608
_target: TypeAdapter[AnyTarget] = TypeAdapter(Target)


# ----------------------------------------------------------------------------------------------------------- secrets


def without_secrets(target: AnyTarget) -> tuple[AnyTarget, tuple[str, ...]]:
    """A target as it may be written down, and the names of what had to be left out."""
    if isinstance(target, DemoTarget):
        return target, ()
    left = target.secret_names
    missing = sorted(left)
    if isinstance(target, StdioTarget):
        env = {name: value for name, value in target.env.items() if name not in left}
        command, *args = target.shown_argv
        if target.shown_argv != target.argv:
            missing.append(_IN_LINE)
        return target.model_copy(update={"env": env, "command": command, "args": tuple(args)}), tuple(missing)
    headers = {name: value for name, value in target.headers.items() if name not in left}
    if target.shown_url != target.url:
        missing.append(_IN_ADDRESS)
    return target.model_copy(update={"headers": headers, "url": target.shown_url}), tuple(missing)


def _plain_options(options: Options) -> Options:
    extensions = {name: secrecy.without_secrets(value) for name, value in options.extensions.items()}
    return options.model_copy(update={"meta": secrecy.without_secrets(options.meta), "extensions": extensions})


def _plain_name(name: str, target: AnyTarget) -> str:
    """A name as it may be written down. One that was made of the target, by an older Parley, may hold its secrets."""
    if isinstance(target, StdioTarget) and name.startswith(target.command):
        return _named(secrecy.masked(name))
    return _named(secrecy.masked_url(name)) if "://" in name else name


# ------------------------------------------------------------------------------------------------------------- store


@dataclass(slots=True, frozen=True)
class Kept:
    """One target of one identity: saved under a name, or only remembered because it was used."""

    id: str
    owner: str
    target: AnyTarget
    options: Options
    used: float
    name: str = ""
    missing: tuple[str, ...] = ()
    """What was left out of the file and has to be typed again before connecting."""

    @property
    def missing_names(self) -> tuple[str, ...]:
        """The variables and headers among it; the rest stood inside of a command line or an address."""
        return tuple(name for name in self.missing if name not in (_IN_LINE, _IN_ADDRESS))

    @property
    def saved(self) -> bool:
        return bool(self.name)


@dataclass(eq=False)
class Store:
    """Saved and recent targets. Without a directory it is memory only, and forgets with the process."""

    directory: Path | None
    wall: Callable[[], float] = time.time
    max_pages: int | None = None
    """For tests: how large the file may grow, in pages."""
    eras: int = 1_000
    """Commands whose era is remembered."""
    calm: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    """Waits for a moment in which nobody minds that code is imported, which takes the interpreter from everything."""
    _kept: dict[str, Kept] = field(default_factory=dict)
    _eras: dict[str, Era] = field(default_factory=dict)
    """What commands spoke the last time, those that were learned first in front."""
    _plain: dict[str, tuple[AnyTarget, AnyTarget]] = field(default_factory=dict)
    """Each kept target with what of it may be written: one that is large is not searched at every connect."""
    _behind: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    """What waits for a calm moment to be written."""
    _hurry: anyio.Event = field(default_factory=anyio.Event)
    _loaded: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self._database = Database(self.directory, _scrub, self.max_pages)

    @property
    def trouble(self) -> str:
        """Why nothing is written, as a sentence without its beginning; empty while it works."""
        return self._database.trouble

    # ---- life

    async def open(self) -> None:
        """Read what there is, and bring an older file up to date. Never raises: Parley works without it as well."""
        try:
            found = await self._database.look(_read)
            if found is not None:
                self._take(found)
        finally:
            self._loaded.set()
        if found is None:
            return
        if not found.clean:
            await self._database.clean()
        if not found.current:
            await self._calm_moment()
            await self._database.bring_up()

    def _take(self, found: _Found) -> None:
        """Take over what the file has; what was learned meanwhile stays."""
        for kept, plain in found.targets:
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
        for old in [one for one in self.of(owner) if not one.saved][RECENT:]:
            del self._kept[old.id]
        return kept

    async def save(self, owner: str, target: AnyTarget, options: Options, name: str) -> Kept:
        """Keep a target under a name. Raises NotAllowed when there are too many."""
        if sum(one.saved for one in self.of(owner)) >= SAVED:
            raise NotAllowed(f"You have saved {SAVED} targets, which is the limit. Delete one first.")
        kept = self._put(owner, target, options, name=_named(name or target.label))
        await self.write(kept)
        return kept

    async def rename(self, owner: str, key: str, name: str) -> Kept:
        """Give a target another name; one that was only remembered is saved by it."""
        old = self._mine(owner, key)
        if not name.strip():
            raise Invalid("A target needs a name.", {"/name": ["Type a name."]})
        kept = self._kept[key] = replace(old, name=_named(name))
        await self.write(kept)
        return kept

    async def delete(self, owner: str, key: str) -> None:
        """Forget a target."""
        self._mine(owner, key)
        del self._kept[key]
        await self._database.work(lambda connection: _delete(connection, key))

    async def write(self, kept: Kept) -> None:
        """Bring one target to disk, without its secrets. Never raises; `trouble` says what went wrong."""
        row = dict(zip(_COLUMNS, _row(kept), strict=True))
        await self._database.work(lambda connection: _put(connection, row))

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
        plain = without_secrets(target)[0]
        same = next((one for one in self.of(owner) if self._plain_of(one) == plain), None)
        if same is None:
            kept = Kept(f"t{secrets.token_urlsafe(9)}", owner, target, options, self.wall(), name)
        else:
            kept = replace(same, target=target, options=options, used=self.wall(), name=name or same.name, missing=())
        self._kept[kept.id] = kept
        return kept

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


def _named(name: str) -> str:
    return " ".join(name.split())[:NAME]


_Row = tuple[str, str, str, str, str, str, float]


def _row(kept: Kept) -> _Row:
    plain, missing = without_secrets(kept.target)
    left_out = tuple(dict.fromkeys((*kept.missing, *missing)))
    return (
        kept.id,
        kept.owner,
        kept.name,
        plain.model_dump_json(),
        json.dumps(left_out),
        _plain_options(kept.options).model_dump_json(exclude_defaults=True),
        kept.used,
    )


def _command(owner: str, target: StdioTarget) -> str:
    """What an era is remembered by: a command with all that belongs to it but its secrets, as a digest."""
    return f"{owner} {target_digest(without_secrets(target)[0])}"


# -------------------------------------------------------------------------------------------------------- statements


async def _put(connection: AsyncConnection, row: dict[str, Any]) -> None:
    from sqlalchemy import delete, insert, select, update

    from app.store.tables import targets

    # A name that another Parley gave stays when this one only uses the target.
    new = {key: value for key, value in row.items() if key != "name" or value}
    changed = await connection.execute(update(targets).where(targets.c.id == row["id"]).values(new))
    if not changed.rowcount:
        await connection.execute(insert(targets).values(row))
    # By what stands in the file: another Parley may have written there what this one has never seen.
    mine = (targets.c.owner == row["owner"]) & (targets.c.name == "")
    newest = select(targets.c.id).where(mine).order_by(targets.c.used.desc()).limit(RECENT)
    await connection.execute(delete(targets).where(mine, targets.c.id.not_in(newest)))


async def _delete(connection: AsyncConnection, key: str) -> None:
    from sqlalchemy import delete

    from app.store.tables import targets

    await connection.execute(delete(targets).where(targets.c.id == key))


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
    for kept, plain, stale in _targets(sqlite.rows(file, "targets", f"{_TARGETS} LIMIT {_READ}")):
        found.append((kept, plain))
        clean = clean and stale is None
    eras = {key: era for key, era in reversed(sqlite.rows(file, "eras", _ERAS)) if era in ("legacy", "modern")}
    return _Found(found, eras, clean, sqlite.version(file.execute) == sqlite.VERSION)


def _scrub(file: sqlite3.Connection) -> bool:
    """Write rows again that hold what is a secret by today's table; whether there were any."""
    from app.store import sqlite

    rows = [stale for *_, stale in _targets(sqlite.rows(file, "targets", _TARGETS)) if stale is not None]
    query = "UPDATE targets SET name = ?, target = ?, missing = ?, options = ? WHERE id = ?"
    file.executemany(query, [(*row[2:6], row[0]) for row in rows])
    return bool(rows)


def _targets(rows: list[tuple[Any, ...]]) -> Iterator[tuple[Kept, AnyTarget, _Row | None]]:
    """Each row that makes sense, what of it may be written, and the row that has to replace it, if it must."""
    for row in rows:
        kept = _of_row(row)
        if kept is not None:
            kept = replace(kept, name=_plain_name(kept.name, kept.target))
            clean = _row(kept)
            yield kept, without_secrets(kept.target)[0], clean if clean[2:6] != row[2:6] else None


def _options(text: str) -> Options:
    """Options as they were kept. One that is not allowed any more counts as not said."""
    try:
        return Options.model_validate_json(text)
    except ValidationError as fault:
        wrong = {error["loc"][0] for error in fault.errors() if error["loc"]}
        return Options.model_validate({key: value for key, value in json.loads(text).items() if key not in wrong})


def _of_row(row: tuple[Any, ...]) -> Kept | None:
    """A row of the file, when it still makes sense."""
    key, owner, name, target, missing, options, used = row
    try:
        return Kept(
            id=key,
            owner=owner,
            target=_target.validate_json(target),
            options=_options(options),
            used=used if 0 <= used <= LAST_MOMENT else 0.0,
            name=name,
            missing=tuple(str(one) for one in json.loads(missing)),
        )
    except (ValidationError, ValueError, TypeError):
        logger.warning("a saved target cannot be read and is left where it is")
        return None
