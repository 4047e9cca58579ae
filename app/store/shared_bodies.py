"""The bytes of recordings in the PostgreSQL of a team: any replica reads what another one writes.

What several sessions have to add is one transaction. A store that is gone for a while costs nothing: what was to be
added waits here, up to a bound, and is added when it is back; who asks meanwhile is told so without another try.
Beyond the bound the writer waits, and its log says later what it had to let go of. Everything blocks, in a thread.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from app import bounds
from app.store import postgres
from app.store.bodies import Adding, Unwritable, add_each

_SIZE = "SELECT start + octet_length(data) FROM recording_chunks WHERE recording = %s ORDER BY start DESC LIMIT 1"
_READ = """SELECT start, data FROM recording_chunks
 WHERE recording = %s AND start < %s AND start + octet_length(data) > %s AND start >= %s ORDER BY start"""

_ADD = "INSERT INTO recording_chunks (recording, start, data) VALUES (%s, %s, %s)"


class SharedBodies:
    """Chunks in the store. Whoever opens this has brought its tables up to date before."""

    def __init__(self, url: str) -> None:
        self._connections = postgres.Connections(postgres.address(url))
        self.where = postgres.shown(postgres.address(url))
        self._not_before = 0.0
        self.lost = 0
        """How often the store was gone: another one may answer in its place, which has less."""

    def create(self, rid: str) -> SharedBody:
        return SharedBody(self, self._connections, rid, new=True)

    def open(self, rid: str) -> SharedBody:
        with _plain(), self._connections.one() as connection:
            query = "SELECT 1 FROM recording_chunks WHERE recording = %s LIMIT 1"
            if connection.execute(query, (rid,)).fetchone() is None:
                raise KeyError(rid)
        return SharedBody(self, self._connections, rid)

    def add(self, adding: Adding) -> None:
        """Add bytes to several, in one transaction; where that fails, to each by itself. They wait here before the
        store is asked: one that does not answer costs nothing but that."""
        bodies = [body for body, _ in adding.many if isinstance(body, SharedBody)]
        for body, data in adding.many:
            if isinstance(body, SharedBody):
                body.wait(data)
        try:
            self._together(bodies)
        except Away:
            pass
        except Unwritable:
            each = Adding([(body, b"") for body in bodies])
            add_each(each)
            adding.done += each.done
            return
        adding.done += [None] * len(bodies)

    def late(self) -> Unwritable | None:
        """They wait, and are added when the store answers."""
        return None

    def _together(self, bodies: Sequence[SharedBody]) -> None:
        """Of those that are not in another transaction, as many as are good in one; the others go with the next."""
        with contextlib.ExitStack() as held:
            mine, size = list[SharedBody](), 0
            for body in bodies:
                if size < bounds.SCRIBE_BATCH and body not in mine and body.one.acquire(blocking=False):
                    held.callback(body.one.release)
                    mine.append(body)
                    size += body.behind
            self.write(mine)

    def write(self, bodies: Sequence[SharedBody]) -> None:
        """Have the store take what waits of these, in one transaction. Whoever asks holds the `one` of each."""
        with self.transaction() as connection:
            rows = [row for body in bodies for row in body.rows(connection)]
            if rows:
                connection.cursor().executemany(_ADD, rows)
        for body in bodies:
            body.added()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """One transaction. A store that was away a moment ago is not asked again at once: each try takes its time, and
        a hundred sessions would do nothing else. Raises Unwritable."""
        if time.monotonic() < self._not_before:
            raise Away("the store does not answer")
        try:
            with _plain(), self._connections.one() as connection:
                yield connection
        except Away:
            self._not_before = time.monotonic() + bounds.STORE_RETRY_SECONDS
            self.lost += 1
            raise

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

    def __init__(self, home: SharedBodies, connections: postgres.Connections, rid: str, *, new: bool = False) -> None:
        self._home, self._connections, self._rid = home, connections, rid
        self._written: int | None = 0 if new else None
        """How many bytes the store has, where this process writes them."""
        self._certain: int | None = home.lost if new else None
        """Whether the store has just that, unless it was gone since: a transaction may have come to its end without our
        hearing of it."""
        self._waiting = bytearray()
        self._offered = 0
        """How many of those that wait are in the transaction that is under way."""
        self._filling = threading.Lock()
        self.one = threading.Lock()
        """Whoever writes to the store holds it. To wait here takes none of it."""

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
        self.wait(data)
        with self.one, contextlib.suppress(Away):
            self._add()

    def wait(self, data: bytes) -> None:
        """These are to be added."""
        with self._filling:
            self._waiting += data

    def rows(self, connection: psycopg.Connection[Any]) -> list[tuple[str, int, bytes]]:
        """What waits, as rows that follow what the store has. Whoever asks holds `one`, until it was told `added`."""
        if self._certain != self._home.lost:
            there = self._in(connection)
            with self._filling:
                if self._written is not None and there > self._written:
                    del self._waiting[: there - self._written]
                self._written = there
        self._certain = None
        with self._filling:
            start, data, step = self._written or 0, bytes(self._waiting), bounds.RECORDING_CHUNK
        self._offered = len(data)
        return [(self._rid, start + at, data[at : at + step]) for at in range(0, len(data), step)]

    def added(self) -> None:
        """The transaction came to its end: the store has these rows."""
        with self._filling:
            self._written = (self._written or 0) + self._offered
            del self._waiting[: self._offered]
        self._certain = self._home.lost

    def _add(self) -> None:
        if self._waiting:
            self._home.write([self])

    def sync(self) -> None:
        """A transaction that was brought to its end is kept; what waits is tried again, and may go on waiting."""
        with self.one, contextlib.suppress(Away):
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
