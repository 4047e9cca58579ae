"""The bytes of recordings, behind one small interface: files below the data directory, or chunks in the database.

A body is only ever added to, read at any place, replaced as a whole by another one, or deleted. Everything blocks, and
runs in a thread; a fault of the disk is an `Unwritable`, which says in words what to do. Knows no line of a recording.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from app import bounds

if TYPE_CHECKING:
    import sqlite3

logger = logging.getLogger("parley.store")

FOLDER: Final = "recordings"
_SUFFIX: Final = ".jsonl"


class Unwritable(Exception):
    """Nothing can be written or read there. Its words are a sentence without its beginning."""


class Body(Protocol):
    """The bytes of one recording."""

    @property
    def size(self) -> int:
        """How many there are now."""

    @property
    def behind(self) -> int:
        """How many of them wait for a store that does not answer."""

    def read(self, offset: int, size: int) -> bytes:
        """Up to so many from there; nothing at the end."""

    def append(self, data: bytes) -> None:
        """Add bytes at the end, all or, when it fails, none that count."""

    def sync(self) -> None:
        """Have the disk keep what it was given."""

    def close(self) -> None:
        """Let go of it."""


class Bodies(Protocol):
    """All bodies of one installation."""

    where: str
    """For people: where they lie."""

    def create(self, rid: str) -> Body:
        """A new one, empty. Raises Unwritable."""

    def open(self, rid: str) -> Body:
        """One to be read. Raises KeyError when there is none, Unwritable when it cannot be read."""

    def add(self, adding: Adding) -> None:
        """Add bytes to several of them in one go."""

    def late(self) -> Unwritable | None:
        """What to say of one that nobody waits for any longer; nothing where bytes wait here and are added later."""

    def replace(self, rid: str, by: str) -> None:
        """Put one in the place of another; nothing is left of that one."""

    def delete(self, rid: str) -> None:
        """Nothing is left of it; also when there was none."""

    def close(self) -> None:
        """Let go of where they are kept."""


def open_bodies(directory: Path, kept_in: str, url: str = "") -> Bodies:
    """Where the bodies of this installation are kept."""
    if kept_in == "database" and url:
        from app.store.shared_bodies import SharedBodies

        return SharedBodies(url)
    if kept_in == "database":
        from app.store.database import FILE

        return ChunkBodies(directory / FILE)
    return FileBodies(directory / FOLDER)


@dataclass(slots=True)
class Adding:
    """Bytes for several bodies, and how far they are."""

    many: Sequence[tuple[Body, bytes]]
    done: list[Unwritable | None] = field(default_factory=list)
    """Of each that is done, in order, why it could not be."""
    begun: int = 0
    """How many were begun, the one that hangs with them."""
    left: bool = False
    """Nobody waits for it any longer: what is not begun is not done."""


def add_each(adding: Adding) -> None:
    """Add bytes to several bodies, one after the other: where one fails, the others go on."""
    for body, data in adding.many:
        if adding.left:
            return
        adding.begun += 1
        try:
            body.append(data)
            adding.done.append(None)
        except Unwritable as fault:
            adding.done.append(fault)
        except Exception as fault:  # of ours, or no memory: it costs this one
            logger.exception("adding to a recording failed inside Parley")
            adding.done.append(Unwritable(f"Parley itself failed: {type(fault).__name__}"))


def words(where: Path, fault: OSError) -> str:
    """What is wrong with the disk, and what to do."""
    if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"the disk that holds {where} is full"
    if fault.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{where} cannot be written: check its permissions, or start Parley with another --data-dir"
    if fault.errno in (errno.ENOENT, errno.ESTALE, errno.ENOTDIR):
        return f"{where} is gone"
    return f"{where} cannot be used: {fault.strerror or fault}"


# -------------------------------------------------------------------------------------------------------------- files


class FileBodies:
    """One file for each recording, for its owner alone."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.where = folder, str(folder)

    def _path(self, rid: str) -> Path:
        if not rid or not set(rid) <= _NAME:
            raise KeyError(rid)
        return self._folder / f"{rid}{_SUFFIX}"

    def create(self, rid: str) -> FileBody:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            return FileBody(self._path(rid), os.open(self._path(rid), flags, 0o600))
        except OSError as fault:
            raise Unwritable(words(self._folder, fault)) from fault

    def open(self, rid: str) -> FileBody:
        path = self._path(rid)
        try:
            opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise KeyError(rid) from None
        except OSError as fault:
            raise Unwritable(words(path, fault)) from fault
        return FileBody(path, opened)

    def add(self, adding: Adding) -> None:
        add_each(adding)

    def late(self) -> Unwritable | None:
        return Unwritable(f"{self.where} does not answer")

    def replace(self, rid: str, by: str) -> None:
        try:
            self._path(by).replace(self._path(rid))
        except OSError as fault:
            raise Unwritable(words(self._folder, fault)) from fault

    def delete(self, rid: str) -> None:
        try:
            self._path(rid).unlink(missing_ok=True)
        except OSError as fault:
            raise Unwritable(words(self._folder, fault)) from fault

    def close(self) -> None:
        """Nothing is held here."""


class FileBody:
    """One file. It is asked for by its name at each write: a file that was moved away would take what nobody finds."""

    behind = 0

    def __init__(self, path: Path, opened: int) -> None:
        self._path, self._opened = path, opened
        self._known = os.fstat(opened)

    @property
    def size(self) -> int:
        return os.fstat(self._opened).st_size

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._opened, size, offset)

    def append(self, data: bytes) -> None:
        whole = None
        try:
            there = self._path.stat()
            if not stat.S_ISREG(there.st_mode) or (there.st_ino, there.st_dev) != (
                self._known.st_ino,
                self._known.st_dev,
            ):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            whole = self.size
            left = memoryview(data)
            while left:
                left = left[os.write(self._opened, left) :]
        except OSError as fault:
            if whole is not None:
                with contextlib.suppress(OSError):  # half a line is no line
                    os.ftruncate(self._opened, whole)
            raise Unwritable(words(self._path, fault)) from fault

    def sync(self) -> None:
        try:
            os.fdatasync(self._opened) if hasattr(os, "fdatasync") else os.fsync(self._opened)
        except OSError as fault:
            raise Unwritable(words(self._path, fault)) from fault

    def close(self) -> None:
        opened, self._opened = self._opened, -1  # its number may soon be another file's
        with contextlib.suppress(OSError):
            os.close(opened)


_NAME: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


# ------------------------------------------------------------------------------------------------------------- chunks


class ChunkBodies:
    """Chunks in the database. Whoever opens this has brought the file up to date before."""

    def __init__(self, path: Path) -> None:
        self._path, self.where = path, str(path)

    def _connected(self) -> sqlite3.Connection:
        import sqlite3

        from app.store import sqlite

        with _plain(self._path):
            if not self._path.exists():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            # One thread at a time uses it, but not always the same.
            file = sqlite3.connect(
                self._path, timeout=sqlite.WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            for pragma in sqlite.pragmas(None):
                file.execute(pragma)
        return file

    def create(self, rid: str) -> ChunkBody:
        file = self._connected()
        return ChunkBody(self._path, file, rid)

    def open(self, rid: str) -> ChunkBody:
        file = self._connected()
        with _plain(self._path):
            found = file.execute("SELECT 1 FROM recording_chunks WHERE recording = ? LIMIT 1", (rid,)).fetchone()
            if found is None:
                file.close()
                raise KeyError(rid)
        return ChunkBody(self._path, file, rid)

    def add(self, adding: Adding) -> None:
        add_each(adding)

    def late(self) -> Unwritable | None:
        return Unwritable(f"{self.where} does not answer")

    def replace(self, rid: str, by: str) -> None:
        with contextlib.closing(self._connected()) as file, _plain(self._path):
            file.execute("BEGIN IMMEDIATE")
            file.execute("DELETE FROM recording_chunks WHERE recording = ?", (rid,))
            file.execute("UPDATE recording_chunks SET recording = ? WHERE recording = ?", (rid, by))
            file.execute("COMMIT")

    def delete(self, rid: str) -> None:
        with contextlib.closing(self._connected()) as file, _plain(self._path):
            file.execute("DELETE FROM recording_chunks WHERE recording = ?", (rid,))

    def close(self) -> None:
        """Nothing is held here."""


class ChunkBody:
    """The chunks of one recording; what is added is a chunk of its own, or several."""

    behind = 0

    def __init__(self, path: Path, file: sqlite3.Connection, rid: str) -> None:
        self._path, self._file, self._rid = path, file, rid

    @property
    def size(self) -> int:
        with _plain(self._path):
            query = "SELECT start + length(data) FROM recording_chunks WHERE recording = ? ORDER BY start DESC LIMIT 1"
            found = self._file.execute(query, (self._rid,)).fetchone()
        return 0 if found is None else int(found[0])

    def read(self, offset: int, size: int) -> bytes:
        parts, end = [], offset + size
        query = (
            "SELECT start, data FROM recording_chunks WHERE recording = ? AND start < ? AND start + length(data) > ?"
            " AND start >= ? ORDER BY start"
        )
        with _plain(self._path):
            least = offset - bounds.RECORDING_CHUNK
            for start, data in self._file.execute(query, (self._rid, end, offset, least)):
                parts.append(data[max(0, offset - start) : max(0, end - start)])
        return b"".join(parts)

    def append(self, data: bytes) -> None:
        with _plain(self._path):
            start, step = self.size, bounds.RECORDING_CHUNK
            rows = [(self._rid, start + at, data[at : at + step]) for at in range(0, len(data), step)]
            self._file.execute("BEGIN IMMEDIATE")
            try:
                self._file.executemany("INSERT INTO recording_chunks (recording, start, data) VALUES (?, ?, ?)", rows)
                self._file.execute("COMMIT")
            except BaseException:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
                raise

    def sync(self) -> None:
        """A transaction that was brought to its end is kept."""

    def close(self) -> None:
        self._file.close()


@contextlib.contextmanager
def _plain(path: Path) -> Iterator[None]:
    """Faults of SQLite and of the disk as one kind, in words."""
    import sqlite3

    from app.store import sqlite

    try:
        yield
    except sqlite3.Error as fault:
        raise Unwritable((sqlite.words(path, fault) or str(fault)).rstrip(".")) from fault
    except OSError as fault:
        raise Unwritable(words(path, fault)) from fault
