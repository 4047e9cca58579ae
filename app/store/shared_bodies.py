"""The bytes of recordings in the PostgreSQL of a team: any replica reads what another one writes.

A store that is gone for a while costs nothing: what was to be added waits here, up to a bound, and is added when it is
back. Beyond that the writer waits, and its log says later what it had to let go of. Everything blocks, in a thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import psycopg

from app import bounds
from app.store import postgres
from app.store.bodies import Unwritable

_SIZE = "SELECT start + octet_length(data) FROM recording_chunks WHERE recording = %s ORDER BY start DESC LIMIT 1"
_READ = """SELECT start, data FROM recording_chunks
 WHERE recording = %s AND start < %s AND start + octet_length(data) > %s AND start >= %s ORDER BY start"""


class SharedBodies:
    """Chunks in the store. Whoever opens this has brought its tables up to date before."""

    def __init__(self, url: str) -> None:
        self._connections = postgres.Connections(postgres.address(url))
        self.where = postgres.shown(postgres.address(url))

    def create(self, rid: str) -> SharedBody:
        return SharedBody(self._connections, rid, new=True)

    def open(self, rid: str) -> SharedBody:
        with _plain(), self._connections.one() as connection:
            query = "SELECT 1 FROM recording_chunks WHERE recording = %s LIMIT 1"
            if connection.execute(query, (rid,)).fetchone() is None:
                raise KeyError(rid)
        return SharedBody(self._connections, rid)

    def replace(self, rid: str, by: str) -> None:
        with _plain(), self._connections.one() as connection:
            connection.execute("DELETE FROM recording_chunks WHERE recording = %s", (rid,))
            connection.execute("UPDATE recording_chunks SET recording = %s WHERE recording = %s", (rid, by))

    def delete(self, rid: str) -> None:
        with _plain(), self._connections.one() as connection:
            connection.execute("DELETE FROM recording_chunks WHERE recording = %s", (rid,))

    def close(self) -> None:
        """Let go of the store."""
        self._connections.close()


class SharedBody:
    """The chunks of one recording, and what of it still waits for the store."""

    def __init__(self, connections: postgres.Connections, rid: str, *, new: bool = False) -> None:
        self._connections, self._rid = connections, rid
        self._written: int | None = 0 if new else None
        """How many bytes the store has, where this process writes them."""
        self._waiting = bytearray()
        self._one = threading.Lock()

    @property
    def behind(self) -> int:
        """How many bytes wait for a store that does not answer."""
        return len(self._waiting)

    @property
    def size(self) -> int:
        if self._written is not None:
            return self._written + len(self._waiting)
        with _plain(), self._connections.one() as connection:
            return self._in(connection)

    def _in(self, connection: psycopg.Connection[Any]) -> int:
        found = connection.execute(_SIZE, (self._rid,)).fetchone()
        return 0 if found is None else int(found[0])

    def read(self, offset: int, size: int) -> bytes:
        end = offset + size
        with _plain(), self._connections.one() as connection:
            found = connection.execute(_READ, (self._rid, end, offset, offset - bounds.RECORDING_CHUNK)).fetchall()
        parts = [bytes(data)[max(0, offset - start) : max(0, end - start)] for start, data in found]
        return b"".join(parts)

    def append(self, data: bytes) -> None:
        """Add bytes at the end, now or when the store is back."""
        with self._one:
            self._waiting += data
            try:
                self._add()
            except Unwritable as no:
                if not isinstance(no, Away):
                    raise

    def _add(self) -> None:
        step = bounds.RECORDING_CHUNK
        with _plain(), self._connections.one() as connection:
            # A transaction may have come to its end without our hearing of it: the store knows how far it is.
            there = self._in(connection)
            if self._written is not None and there > self._written:
                del self._waiting[: there - self._written]
            data = bytes(self._waiting)
            rows = [(self._rid, there + at, data[at : at + step]) for at in range(0, len(data), step)]
            if rows:
                query = "INSERT INTO recording_chunks (recording, start, data) VALUES (%s, %s, %s)"
                connection.cursor().executemany(query, rows)
        self._written = there + len(data)
        self._waiting.clear()

    def sync(self) -> None:
        """A transaction that was brought to its end is kept; what waits is tried again, and may go on waiting."""
        with self._one, contextlib.suppress(Away):
            if self._waiting:
                self._add()

    def close(self) -> None:
        """Nothing is held here."""


class Away(Unwritable):
    """The store does not answer; it may come back."""


@contextlib.contextmanager
def _plain() -> Iterator[None]:
    """Faults of the driver as one kind, in words."""
    try:
        yield
    except (psycopg.Error, OSError) as fault:
        said = (postgres.words(fault) or "").partition(".")[0] or "the store failed"
        raise (Away if postgres.is_away(fault) else Unwritable)(said) from fault
