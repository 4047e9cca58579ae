"""What outlives the process: the targets that people saved or used, and which era each command speaks, in one SQLite
file of the user.

Memory is the truth while Parley runs, the file follows it: reading never waits for a disk, and a disk that is full,
read-only or damaged costs only the saving (F25), which `trouble` says in words. Secrets are never written: what is
left out is asked for again. One thread at a time touches the file; `sqlite3` is imported by the first that does.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import secrets
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import anyio.to_thread
from pydantic import TypeAdapter, ValidationError

from app import secrecy
from app.core.errors import Gone, Refused
from app.core.options import Options
from app.core.revisions import Era
from app.core.targets import AnyTarget, DemoTarget, StdioTarget, Target, target_digest
from app.core.times import LAST_MOMENT

if TYPE_CHECKING:
    import sqlite3

logger = logging.getLogger("parley.store")

FILE: Final = "parley.db"
RECENT: Final = 10
"""Targets kept for each identity that nobody saved."""
SAVED: Final = 500
NAME: Final = 200
_VERSION: Final = 1
_CLEANED: Final = 0x5061726C
"""The application id of a file in which nothing of what was once deleted can be read."""
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS targets (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, target TEXT NOT NULL, missing TEXT NOT NULL,
    options TEXT NOT NULL, used REAL NOT NULL
) STRICT
"""
_PUT: Final = """
INSERT INTO targets VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
    name = iif(excluded.name = '', name, excluded.name), target = excluded.target, missing = excluded.missing,
    options = excluded.options, used = excluded.used
"""
_TRIM: Final = """
DELETE FROM targets WHERE owner = :owner AND name = '' AND id NOT IN (
    SELECT id FROM targets WHERE owner = :owner AND name = '' ORDER BY used DESC LIMIT :recent
)
"""
_ERAS: Final = """
CREATE TABLE IF NOT EXISTS eras (command TEXT PRIMARY KEY, era TEXT NOT NULL, at REAL NOT NULL) STRICT, WITHOUT ROWID
"""
_target: TypeAdapter[AnyTarget] = TypeAdapter(Target)
_T = TypeVar("_T")


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
            missing.append("the command line")
        return target.model_copy(update={"env": env, "command": command, "args": tuple(args)}), tuple(missing)
    headers = {name: value for name, value in target.headers.items() if name not in left}
    if target.shown_url != target.url:
        missing.append("the address")
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
    def saved(self) -> bool:
        return bool(self.name)


@dataclass(eq=False)
class Store:
    """Saved and recent targets. Without a directory it is memory only, and forgets with the process."""

    directory: Path | None
    wall: Callable[[], float] = time.time
    max_pages: int | None = None
    """For tests: how large the file may grow, in pages."""
    trouble: str = ""
    """Why nothing is written, as a sentence without its beginning; empty while it works."""
    eras: int = 1_000
    """Commands whose era is remembered."""
    _kept: dict[str, Kept] = field(default_factory=dict)
    _eras: dict[str, Era] = field(default_factory=dict)
    """What commands spoke the last time, those that were learned first in front."""
    _plain: dict[str, tuple[AnyTarget, AnyTarget]] = field(default_factory=dict)
    """Each kept target with what of it may be written: one that is large is not searched at every connect."""
    _file: sqlite3.Connection | None = None
    _one: anyio.CapacityLimiter | None = None
    _loaded: anyio.Event = field(default_factory=anyio.Event)
    _closed: bool = False

    # ---- life

    async def open(self) -> None:
        """Read what there is. Never raises: without it Parley works all the same."""
        try:
            found = await self._work(_read)
            for kept, plain, _ in found or ():
                if self._kept.setdefault(kept.id, kept) is kept:
                    self._plain[kept.id] = kept.target, plain
            known = await self._work(_read_eras)
            self._eras = {**{key: era for key, era in known or () if era in ("legacy", "modern")}, **self._eras}
        finally:
            self._loaded.set()
        if found is not None:
            await self._work(partial(_clean, rows=[row for *_, row in found if row is not None]))

    async def loaded(self, seconds: float = 2.0) -> None:
        """Wait until the file was read, but not for ever: a disk may hang."""
        with anyio.move_on_after(seconds):
            await self._loaded.wait()

    async def close(self) -> None:
        """Write what is under way, then let go of the file."""
        self._closed = True
        if self._one is not None:
            with anyio.move_on_after(2, shield=True):
                await anyio.to_thread.run_sync(self._close, limiter=self._one, abandon_on_cancel=True)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

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

        def put(file: sqlite3.Connection) -> None:
            file.execute("DELETE FROM eras WHERE command = ?", (key,))
            if era is not None:
                file.execute("INSERT INTO eras VALUES (?, ?, ?)", (key, era, self.wall()))
                file.execute(
                    "DELETE FROM eras WHERE command NOT IN (SELECT command FROM eras ORDER BY at DESC LIMIT ?)",
                    (self.eras,),
                )

        await self._work(put)

    # ---- writing

    def used(self, owner: str, target: AnyTarget, options: Options) -> Kept:
        """A target is being connected to: remember it, in memory. `write` follows."""
        kept = self._put(owner, target, options, name="")
        for old in [one for one in self.of(owner) if not one.saved][RECENT:]:
            del self._kept[old.id]
        return kept

    async def save(self, owner: str, target: AnyTarget, options: Options, name: str) -> Kept:
        """Keep a target under a name. Refused when there are too many."""
        if sum(one.saved for one in self.of(owner)) >= SAVED:
            raise Refused(f"You have saved {SAVED} targets, which is the limit. Delete one first.")
        kept = self._put(owner, target, options, name=_named(name or target.label))
        await self.write(kept)
        return kept

    async def rename(self, owner: str, key: str, name: str) -> Kept:
        """Give a target another name; one that was only remembered is saved by it."""
        old = self._mine(owner, key)
        if not name.strip():
            raise Refused("A target needs a name.", {"/name": ["Type a name."]})
        kept = self._kept[key] = replace(old, name=_named(name))
        await self.write(kept)
        return kept

    async def delete(self, owner: str, key: str) -> None:
        """Forget a target."""
        self._mine(owner, key)
        del self._kept[key]

        def gone(file: sqlite3.Connection) -> None:
            file.execute("DELETE FROM targets WHERE id = ?", (key,))

        await self._work(gone)

    async def write(self, kept: Kept) -> None:
        """Bring one target to disk, without its secrets. Never raises; `trouble` says what went wrong."""
        row = _row(kept)

        def put(file: sqlite3.Connection) -> None:
            file.execute(_PUT, row)
            # By what stands in the file: another Parley may have written there what this one has never seen.
            file.execute(_TRIM, {"owner": kept.owner, "recent": RECENT})

        await self._work(put)

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

    # ---- the file, in a thread

    async def _work(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """Do something with the file. None when it did not work; then `trouble` has the reason."""
        if self.directory is None or self._closed:
            return None
        if self._one is None:
            self._one = anyio.CapacityLimiter(1)
        done, trouble = await anyio.to_thread.run_sync(self._attempt, work, limiter=self._one)
        if trouble and trouble != self.trouble:
            logger.warning("saving is off: %s", trouble)
        self.trouble = trouble
        return done

    def _attempt(self, work: Callable[[sqlite3.Connection], _T]) -> tuple[_T | None, str]:
        import sqlite3

        try:
            if self._file is None:
                self._file = self._opened()
            with self._file:
                return work(self._file), ""
        except (sqlite3.Error, OSError, _Newer) as fault:
            trouble = self._words(fault)
            if self._file is not None and not _is_full(fault):
                self._file.close()
                self._file = None
            return None, trouble

    def _opened(self) -> sqlite3.Connection:
        import sqlite3

        directory = self.directory
        assert directory is not None  # noqa: S101 (`_work` has looked)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = directory / FILE
        # Made here, so that it is never readable for others, not even for a moment.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
        file = sqlite3.connect(path, timeout=2, check_same_thread=False)
        try:
            if file.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError("malformed")
            if file.execute("PRAGMA user_version").fetchone()[0] > _VERSION:
                raise _Newer
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            file.execute("PRAGMA secure_delete = ON")
            if self.max_pages is not None:
                file.execute(f"PRAGMA max_page_count = {self.max_pages:d}")
            is_new = file.execute("PRAGMA page_count").fetchone()[0] <= 1
            with file:
                file.execute(_TABLE)
                file.execute(_ERAS)
                if is_new:
                    file.execute(f"PRAGMA application_id = {_CLEANED:d}")
                file.execute(f"PRAGMA user_version = {_VERSION:d}")
        except BaseException:
            file.close()
            raise
        return file

    def _words(self, fault: Exception) -> str:
        import sqlite3

        path = None if self.directory is None else self.directory / FILE
        if isinstance(fault, _Newer):
            return f"{path} was written by a newer Parley."
        if _is_full(fault):
            return f"the disk that holds {path} is full. Make room; the next save tries again."
        read_only = isinstance(fault, OSError) and fault.errno in {errno.EROFS, errno.EACCES, errno.EPERM}
        if read_only or "readonly" in str(fault) or "unable to open" in str(fault):
            return f"{path} cannot be written. Check its permissions, or start Parley with another --data-dir."
        if isinstance(fault, sqlite3.DatabaseError) and not isinstance(fault, sqlite3.OperationalError):
            return f"{path} is damaged. Move it away, and the next save begins a new one."
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        return f"{path} cannot be used: {reason}. See what stands there, or start Parley with another --data-dir."


class _Newer(Exception):
    """The file has a form that this Parley does not know."""


def _is_full(fault: Exception) -> bool:
    return "is full" in str(fault) or (isinstance(fault, OSError) and fault.errno in {errno.ENOSPC, errno.EDQUOT})


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


def _read_eras(file: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return list(file.execute("SELECT command, era FROM eras ORDER BY at LIMIT 10000"))


def _read(file: sqlite3.Connection) -> list[tuple[Kept, AnyTarget, _Row | None]]:
    """What the file has, each with what of it may be written, and with a row that has to replace the one there."""
    query = "SELECT id, owner, name, target, missing, options, used FROM targets ORDER BY used DESC LIMIT 10000"
    found: list[tuple[Kept, AnyTarget, _Row | None]] = []
    for row in file.execute(query):
        kept = _of_row(row)
        if kept is not None:
            kept = replace(kept, name=_plain_name(kept.name, kept.target))
            clean = _row(kept)
            found.append((kept, without_secrets(kept.target)[0], clean if clean[2:6] != row[2:6] else None))
    return found


def _clean(file: sqlite3.Connection, rows: list[_Row]) -> None:
    """Write rows again that hold what is a secret by today's table, and free the file of what stood there before."""
    import sqlite3

    if not rows and file.execute("PRAGMA application_id").fetchone()[0] == _CLEANED:
        return
    query = "UPDATE targets SET name = ?, target = ?, missing = ?, options = ? WHERE id = ?"
    file.executemany(query, [(*row[2:6], row[0]) for row in rows])
    file.commit()
    try:
        file.execute("VACUUM")
        file.execute(f"PRAGMA application_id = {_CLEANED:d}")
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as fault:
        # Another Parley reads it, or there is no room for a second copy: the next start tries again.
        logger.warning("secrets that an older Parley wrote may still be found in the file: %s", fault)


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
