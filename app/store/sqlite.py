"""The one place that knows what only SQLite has: the look at a file, its pragmas, its cleaning, its backup, its faults.

Everything here blocks and runs in a thread. It uses the `sqlite3` of Python alone, which is there in 2 ms: a file is
read at the start without waiting for SQLAlchemy, which takes a hundred times as long.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

logger = logging.getLogger("parley.store")

VERSION: Final = 11
"""The form of the file, as its `user_version`: the number of the last migration. An older Parley refuses a higher one.
Files with 1 were written before there were migrations."""
_CLEANED: Final = 0x5061726C
"""The application id of a file in which nothing of what was once deleted can be read."""
WAIT_SECONDS: Final = 2.0
MIGRATION_WAIT_SECONDS: Final = 10.0
"""How long to wait for another Parley that is bringing the same file up to date."""

Scrub = Callable[[sqlite3.Connection], bool]
"""Replaces what must not stand in a file, and says whether there was anything."""


class Newer(Exception):
    """The file has a form that this Parley does not know."""


class Unusable(Exception):
    """The file cannot be used, for a reason that is neither the disk's nor SQLite's."""


# ----------------------------------------------------------------------------------------------------------- looking


@contextlib.contextmanager
def looked_into(path: Path) -> Iterator[sqlite3.Connection]:
    """A file that is whole and of a known form, for plain statements. Raises Newer, or what SQLite says of it."""
    with _connected(path) as file:
        if file.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("malformed")
        if version(file.execute) > VERSION:
            raise Newer
        yield file


@contextlib.contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)) as file:
        file.execute("PRAGMA secure_delete = ON")
        yield file


def rows(file: sqlite3.Connection, table: str, query: str) -> list[tuple[Any, ...]]:
    """What a query finds; nothing when its table is younger than the file."""
    return file.execute(query).fetchall() if has(file, table) else []


def has(file: sqlite3.Connection, table: str) -> bool:
    """Whether a file has a table of this name."""
    if not isinstance(file, sqlite3.Connection):  # the reader of another kind of store
        return bool(file.has(table))
    known = file.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    return known is not None


def version(execute: Callable[[str], Any]) -> int:
    """The form of a file, asked through any kind of connection."""
    return int(execute("PRAGMA user_version").fetchone()[0])


def is_latest(file: sqlite3.Connection) -> bool:
    """Whether a store has the form of this version; one of several replicas sees to that itself."""
    if not isinstance(file, sqlite3.Connection):
        return True
    return version(file.execute) == VERSION


def is_empty(execute: Callable[[str], Any]) -> bool:
    """Whether a file has no table yet."""
    return execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def is_current(path: Path) -> bool:
    """Whether a file can be written as it is. Raises as `looked_into` does."""
    with looked_into(path) as file:
        return version(file.execute) == VERSION


def is_clean(file: sqlite3.Connection) -> bool:
    """Whether nothing of what was once deleted can be read in a file."""
    if not isinstance(file, sqlite3.Connection):  # a store that no older Parley wrote to
        return True
    return bool(file.execute("PRAGMA application_id").fetchone()[0] == _CLEANED)


# ------------------------------------------------------------------------------------------------- for the engine


def pragmas(max_pages: int | None) -> Iterator[str]:
    """What each connection of an engine begins with."""
    yield "PRAGMA journal_mode = WAL"
    yield "PRAGMA synchronous = NORMAL"
    yield "PRAGMA secure_delete = ON"
    if max_pages is not None:
        yield f"PRAGMA max_page_count = {max_pages:d}"


BEGIN: Final = "BEGIN IMMEDIATE"
"""Takes the file for writing at once: two Parleys wait for each other here, and never in the middle."""
MARK_VERSION: Final = f"PRAGMA user_version = {VERSION:d}"
MARK_CLEAN: Final = f"PRAGMA application_id = {_CLEANED:d}"


# ------------------------------------------------------------------------------------------------ cleaning, copying


def clean(path: Path, scrub: Scrub) -> None:
    """Replace what is a secret by today's table, and free the file of what stood there before."""
    with looked_into(path) as file:
        if not _scrubbed(file, scrub) and is_clean(file):
            return
        try:
            file.execute("VACUUM")
            file.execute(MARK_CLEAN)
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as fault:
            # Another Parley reads it, or there is no room for a second copy: the next start tries again.
            logger.warning("secrets that an older Parley wrote may still be found in the file: %s", fault)


def _scrubbed(file: sqlite3.Connection, scrub: Scrub) -> bool:
    file.execute(BEGIN)
    try:
        changed = scrub(file)
    except BaseException:
        file.execute("ROLLBACK")
        raise
    file.execute("COMMIT")
    return changed


def backup_of(path: Path, old: int) -> Path:
    """Where a file of an older form is kept when it is brought up to date."""
    return path.with_name(f"{path.name}.v{max(old, 1)}.bak")


def back_up(path: Path, old: int, scrub: Scrub) -> Path:
    """Keep a copy of a file, for its owner alone and without the secrets that an older Parley may have written.

    The caller holds the file for writing, so this is what will be migrated, and nobody else makes the same copy. It
    appears under its name when it is complete."""
    kept = backup_of(path, old)
    draft = kept.with_name(f"{kept.name}.new")
    draft.unlink(missing_ok=True)
    try:
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with _connected(path) as file:
            # A copy by content: what was deleted in the file does not come along.
            file.execute("VACUUM INTO ?", (str(draft),))
        with _connected(draft) as copy:
            # No second file may hold what is replaced here, not even for a moment.
            copy.execute("PRAGMA journal_mode = MEMORY")
            copy.execute("PRAGMA temp_store = MEMORY")
            if _scrubbed(copy, scrub):
                copy.execute("VACUUM")
            copy.execute(MARK_CLEAN)
        _synced(draft)
        draft.replace(kept)
        _synced(kept.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    return kept


def _synced(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


# ------------------------------------------------------------------------------------------------------------- faults


def is_full(fault: Exception) -> bool:
    """Whether there is no room: the file itself is fine, and stays open."""
    return "is full" in str(fault) or (isinstance(fault, OSError) and fault.errno in {errno.ENOSPC, errno.EDQUOT})


def _no_file_left() -> bool:
    """Whether no file can be opened at all: SQLite and imports say then that this one cannot be."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as fault:
        return fault.errno in {errno.EMFILE, errno.ENFILE}
    return False


def words(path: Path, fault: Exception) -> str | None:
    """Why nothing is written, as a sentence without its beginning; None for a fault that is none of the disk."""
    if isinstance(fault, Newer):
        return f"{path} was written by a newer Parley."
    if not isinstance(fault, (sqlite3.Error, OSError, ImportError, Unusable)):
        return None
    if _no_file_left():
        return f"{path} cannot be opened: Parley has too many files open. The next save tries again."
    if isinstance(fault, ImportError):
        return f"what writes {path} cannot be loaded: {fault}. Install Parley's dependencies again."
    if is_full(fault):
        return f"the disk that holds {path} is full. Make room; the next save tries again."
    read_only = isinstance(fault, OSError) and fault.errno in {errno.EROFS, errno.EACCES, errno.EPERM}
    if read_only or "readonly" in str(fault) or "unable to open" in str(fault):
        return f"{path} cannot be written. Check its permissions, or start Parley with another --data-dir."
    if isinstance(fault, sqlite3.DatabaseError) and not isinstance(fault, sqlite3.OperationalError):
        return f"{path} is damaged. Move it away, and the next save begins a new one."
    reason = fault.strerror if isinstance(fault, OSError) else str(fault)
    return f"{path} cannot be used: {reason}. See what stands there, or start Parley with another --data-dir."
