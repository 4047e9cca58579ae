"""The index of one recording: its rows, the last state of each noun, and the bytes of its messages, to be read in any
order without the recording.

Two files: a database with rows, and beside it the bytes of all messages, one after the other. Both can be made again
from the recording at any time, so nothing here is worth a backup, and a fault of the disk is only a reason to begin
anew. One writes, many read; everything blocks, for a thread or for a look of a millisecond.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from app import bounds
from app.core.found import Search, row_words
from app.core.wire import Message
from app.store import sqlite
from app.store.bodies import Unwritable

SUFFIX: Final = ".idx"
FORM: Final = 1
"""Of an index. One of another form is made again."""
_SELECT: Final = (
    "SELECT seq, number, direction, at, size, kind, method, rpc_id, gist, answers, latency_ms, problem, quiet, unread,"
    " fold, step, by FROM messages"
)
_AMONG: Final = "SELECT seq FROM messages, json_each(?) WHERE seq = json_each.value"
_INSERT: Final = "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_UPSERT: Final = (
    "INSERT INTO states (kind, id, seq, at, line, words) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (kind, id) DO UPDATE SET"
    " seq = excluded.seq, at = excluded.at, line = excluded.line, words = excluded.words"
)
_SCHEMA: Final = """
CREATE TABLE messages (
  seq INTEGER PRIMARY KEY, number INTEGER, direction TEXT, at REAL, size INTEGER, kind TEXT, method TEXT, rpc_id TEXT,
  gist TEXT, answers INTEGER, latency_ms REAL, problem TEXT, quiet INTEGER, unread TEXT, fold TEXT, step TEXT,
  by TEXT, exchange INTEGER, place INTEGER, length INTEGER, span INTEGER);
CREATE INDEX replies ON messages (answers) WHERE answers IS NOT NULL;
CREATE INDEX methods ON messages (method);
CREATE TABLE states (
  place INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER, at REAL, line BLOB, words TEXT,
  UNIQUE (kind, id));
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT);
"""


class Row(NamedTuple):
    """A message with its bytes, and the seq of what carried it."""

    message: Message
    raw: bytes | None
    exchange: int | None = None


class StateRow(NamedTuple):
    """The line with the last state of a noun, and what of it can be searched."""

    kind: str
    id: str
    seq: int
    at: float
    line: bytes
    words: str = ""


class IndexFile:
    """One index, for whoever writes it and whoever reads it."""

    def __init__(self, path: Path) -> None:
        """Open it; what is there in another form, or broken, is begun anew. Raises Unwritable when the disk does not
        let us."""
        self.path, self._texts_path = path, path.with_suffix(".texts")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock, self._searching = threading.Lock(), threading.Lock()
        with _plain(path):
            self._reader, self._writer = self._opened()
            self._searcher = self._connect()
        """Whoever looks for something keeps nobody waiting who opens a page."""
        self._texts: BinaryIO = self._texts_path.open("rb")
        self._appended: BinaryIO = self._texts_path.open("ab")
        self._end = self._appended.tell()
        with contextlib.suppress(OSError):  # the time at which it was last opened: whoever makes room goes by it
            os.utime(path)
        self._places: tuple[int, array[int], array[int]] | None = None
        self.closed = False

    def _opened(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        with contextlib.suppress(sqlite3.Error, OSError):
            found = self._connected()
            with contextlib.suppress(sqlite3.Error):
                at = int(found[1].execute("SELECT value FROM facts WHERE name = 'texts'").fetchone()[0])
                form = found[1].execute("PRAGMA user_version").fetchone()[0]
                if form == FORM and self._texts_path.stat().st_size >= at:
                    with self._texts_path.open("r+b") as texts:
                        texts.truncate(at)  # what was appended after the last commit belongs to nobody
                    return found
            for each in found:
                each.close()
        remove(self.path)
        found = self._connected()
        found[1].executescript(f"{_SCHEMA}PRAGMA user_version = {FORM};")
        found[1].execute("INSERT INTO facts VALUES ('texts', '0')")
        self._texts_path.touch(mode=0o600)
        return found

    def _connected(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        self.path.touch(mode=0o600)
        return self._connect(), self._connect()

    def _connect(self) -> sqlite3.Connection:
        made = sqlite3.connect(self.path, timeout=5, isolation_level=None, check_same_thread=False)
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("PRAGMA synchronous = OFF")  # it can be made again
        return made

    def close(self) -> None:
        """Let go of the files; they stay."""
        with self._lock, self._searching:
            if not self.closed:
                self.closed = True
                for each in (self._reader, self._writer, self._searcher, self._texts, self._appended):
                    each.close()

    # ---- writing

    def add(self, rows: Sequence[Row], states: Iterable[StateRow], facts: dict[str, str]) -> int:
        """Keep a portion, all of it or nothing. Of two messages with one seq the first counts, of a noun the last
        state. Says how many messages had a seq that was there."""
        known = {one[0] for one in self._all(_AMONG, json.dumps([row.message.seq for row in rows]))} if rows else set()
        new = {row.message.seq: row for row in reversed(rows) if row.message.seq not in known}
        try:
            end, values = self._end, []
            for row in reversed(new.values()):
                # What its row says stands behind the bytes of each message, so that one look finds both.
                text = (row.raw or b"") + b"\n" + row_words(row.message).encode(errors="backslashreplace")
                self._appended.write(text)
                values.append(_values(row, (end, None if row.raw is None else len(row.raw), len(text))))
                end += len(text)
            self._appended.flush()
            self._write(values, states, {**facts, "texts": str(end)})
        except BaseException:
            with contextlib.suppress(OSError):
                self._appended.truncate(self._end)
            raise
        self._end = end
        return len(rows) - len(new)

    def _write(self, messages: list[tuple[Any, ...]], states: Iterable[StateRow], facts: dict[str, str]) -> None:
        with _plain(self.path):
            self._transaction(messages, states, facts)

    def _transaction(self, messages: list[tuple[Any, ...]], states: Iterable[StateRow], facts: dict[str, str]) -> None:
        file = self._writer
        file.execute("BEGIN IMMEDIATE")
        try:
            file.executemany(_INSERT, messages)
            file.executemany(_UPSERT, states)
            file.executemany(
                "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", facts.items()
            )
            file.execute("COMMIT")
        except BaseException:
            file.execute("ROLLBACK")
            raise

    # ---- reading

    def _all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock, _plain(self.path):
            return [] if self.closed else self._reader.execute(query, values).fetchall()

    def _look(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._searching, _plain(self.path):
            return [] if self.closed else self._searcher.execute(query, values).fetchall()

    def fact(self, name: str) -> str | None:
        found = self._all("SELECT value FROM facts WHERE name = ?", name)
        return None if not found else found[0][0]

    def message(self, seq: int) -> Message | None:
        found = self._all(f"{_SELECT} WHERE seq = ?", seq)
        return _message(found[0]) if found else None

    def reply_to(self, seq: int) -> Message | None:
        found = self._all(f"{_SELECT} WHERE answers = ? ORDER BY seq DESC LIMIT 1", seq)
        return _message(found[0]) if found else None

    def exchange_of(self, seq: int) -> int | None:
        found = self._all("SELECT exchange FROM messages WHERE seq = ?", seq)
        return found[0][0] if found else None

    def newer(self, seq: int, limit: int) -> list[Message]:
        """Up to `limit` messages after one, oldest first."""
        query = f"{_SELECT} WHERE seq > ? ORDER BY seq LIMIT ?"
        return [_message(one) for one in self._all(query, seq, limit)]

    def older(self, seq: int | None, limit: int) -> list[Message]:
        """Up to `limit` messages before one, or of all, newest first."""
        query = f"{_SELECT} WHERE seq < ? ORDER BY seq DESC LIMIT ?"
        return [_message(one) for one in self._all(query, bounds.LARGEST_SEQ if seq is None else seq, limit)]

    def some(self, seqs: Sequence[int]) -> dict[int, Message]:
        """These messages, by their seq."""
        query = f"{_SELECT}, json_each(?) WHERE seq = json_each.value"
        return {one[0]: _message(one) for one in self._all(query, json.dumps(list(seqs)))}

    def raw(self, seq: int) -> bytes | None:
        """The bytes of a message; None when it is not there, or they are not."""
        found = self._all("SELECT place, length FROM messages WHERE seq = ?", seq)
        return None if not found or found[0][1] is None else self._bytes(*found[0])

    def _bytes(self, place: int, length: int) -> bytes:
        with self._lock:
            if self.closed:
                return b""
            self._texts.seek(place)
            return self._texts.read(length)

    def methods(self, newest: int) -> set[str]:
        query = "SELECT DISTINCT method FROM (SELECT method FROM messages ORDER BY seq DESC LIMIT ?) WHERE method != ''"
        return {one[0] for one in self._all(query, newest)}

    def counts(self) -> tuple[int, int, int, int, int]:
        """Messages, invalid ones, bytes, those that came in, those that went out."""
        query = "SELECT count(*), sum(kind = 'invalid'), sum(size), sum(direction = 'in') FROM messages"
        many, invalid, size, came = self._all(query)[0] if not self.closed else (0,) * 4
        return many, invalid or 0, size or 0, came or 0, many - (came or 0)

    def ends(self) -> tuple[int | None, int | None]:
        """The first and the last seq of a message."""
        found = self._all("SELECT min(seq), max(seq) FROM messages")
        return found[0] if found else (None, None)

    def span(self) -> tuple[float | None, float | None]:
        """When the first and the last message were."""
        first = self._all("SELECT at FROM messages ORDER BY seq LIMIT 1")
        last = self._all("SELECT at FROM messages ORDER BY seq DESC LIMIT 1")
        return (first[0][0], last[0][0]) if first and last else (None, None)

    def state(self, kind: str, key: str = "") -> bytes | None:
        """The line with the last state of a noun."""
        found = self._all("SELECT line FROM states WHERE kind = ? AND id = ?", kind, key)
        return found[0][0] if found else None

    def states(self, kind: str, newest: int, most: int = bounds.STATE_BYTES) -> list[bytes]:
        """The last states of the newest nouns of a kind, in the order in which they came to be; no more of them than
        `most` bytes."""
        query = "SELECT place, length(line) FROM states WHERE kind = ? ORDER BY place DESC LIMIT ?"
        first, held = 0, 0
        for place, length in self._all(query, kind, newest):
            held += length
            if held > most and first:
                break
            first = place
        lines = "SELECT line FROM states WHERE kind = ? AND place >= ? ORDER BY place"
        return [one[0] for one in self._all(lines, kind, first)] if first else []

    def named(self, kind: str, says: str, newest: int) -> list[tuple[str, str]]:
        """The newest nouns of a kind that say this, each with all that can be searched of it."""
        query = "SELECT id, words FROM states WHERE kind = ? AND instr(words, ?) ORDER BY place DESC LIMIT ?"
        return [(one[0], one[1]) for one in self._look(query, kind, says, newest)]

    def ids(self, kind: str) -> list[str]:
        return [one[0] for one in self._all("SELECT id FROM states WHERE kind = ? ORDER BY place", kind)]

    def many(self, kind: str) -> int:
        return int(self._all("SELECT count(*) FROM states WHERE kind = ?", kind)[0][0]) if not self.closed else 0

    def last_moment(self) -> tuple[int, float]:
        """The seq and the time of the newest state or message."""
        rows = self._all("SELECT max(seq), max(at) FROM states UNION ALL SELECT max(seq), max(at) FROM messages")
        return max((one[0] or 0 for one in rows), default=0), max((one[1] or 0.0 for one in rows), default=0.0)

    def notified(self, method: str, newest: int) -> list[tuple[Message, bytes]]:
        """The newest messages of the server with this method, oldest first, as far as their bytes are there."""
        query = f"{_SELECT} WHERE method = ? AND direction = 'in' ORDER BY seq DESC LIMIT ?"
        found = [_message(one) for one in self._all(query, method, newest)][::-1]
        return [(one, raw) for one in found if (raw := self.raw(one.seq)) is not None]

    # ---- searching

    def seqs(self, wanted: Search, remarked: Callable[[int], bool]) -> array[int]:
        """The seqs of the messages that fit, in order. Reads every body when a word is not in the rows."""
        query, values = "SELECT seq FROM messages WHERE 1", list[Any]()
        if wanted.direction is not None:
            query, values = f"{query} AND direction = ?", [*values, wanted.direction]
        if wanted.kinds is not None:
            query, values = f"{query} AND kind IN ({', '.join('?' * len(wanted.kinds))})", [*values, *wanted.kinds]
        if wanted.method:
            query, values = f"{query} AND substr(method, 1, ?) = ?", [*values, len(wanted.method), wanted.method]
        narrowed = bool(values) or wanted.findings
        found = array("q", (one[0] for one in self._look(f"{query} ORDER BY seq", *values))) if narrowed else array("q")
        if wanted.findings:
            found = array("q", (seq for seq in found if remarked(seq)))
        if not wanted.words:
            return found
        saying = self._saying([word.encode("utf-8", "surrogatepass") for word in wanted.words])
        if not narrowed:
            return saying
        said = set(saying)
        return array("q", (seq for seq in found if seq in said))

    def _saying(self, words: list[bytes]) -> array[int]:
        """The messages that say every word, in their row or in their bytes."""
        seqs, ends = self._where()
        found, first = array("q"), 0
        while first < len(seqs):
            begin = ends[first - 1] if first else 0
            last = max(first + 1, bisect_right(ends, begin + bounds.SEARCHED_BYTES))
            text = self._bytes(begin, ends[last - 1] - begin).lower()
            hits: Iterable[int] = range(first, last)
            for word in words:
                hits = _hits(text, word, begin, ends, hits)
            found.extend(seqs[at] for at in hits)
            first = last
        if any(after < before for before, after in pairwise(found)):
            found = array("q", sorted(found))
        return found

    def _where(self) -> tuple[array[int], array[int]]:
        """The messages in the order in which they were written, and where each ends; kept while nothing is added."""
        end = self._end
        if self._places is None or self._places[0] != end:
            seqs, ends = array("q"), array("q")
            for seq, after in self._look("SELECT seq, place + span FROM messages ORDER BY place"):
                seqs.append(seq)
                ends.append(after)
            self._places = (end, seqs, ends)
        return self._places[1], self._places[2]


def _hits(text: bytes, word: bytes, begin: int, ends: array[int], among: Iterable[int]) -> list[int]:
    """Those of the messages that say a word; the text holds them all, and begins at `begin`."""
    if isinstance(among, range):
        found, at = list[int](), text.find(word)
        while at >= 0:
            one = bisect_right(ends, begin + at, among.start, among.stop)
            found.append(one)
            at = text.find(word, ends[one] - begin)
        return found
    starts = ((one, ends[one - 1] if one else 0) for one in among)
    return [one for one, start in starts if text.find(word, start - begin, ends[one] - begin) >= 0]


@contextlib.contextmanager
def _plain(path: Path) -> Iterator[None]:
    """Faults of SQLite in words."""
    try:
        yield
    except sqlite3.Error as fault:
        raise Unwritable((sqlite.words(path, fault) or str(fault)).rstrip(".")) from fault


def remove(path: Path) -> None:
    """Delete an index."""
    for each in _files(path):
        each.unlink(missing_ok=True)


def trim(folder: Path, most: int, held: set[Path]) -> None:
    """Delete the indexes that nobody has opened for longest, until all of them take no more than `most` bytes; those
    that are `held` stay."""
    found = []
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):
            size = sum(each.stat().st_size for each in _files(path) if each.exists())
            found.append((path.stat().st_mtime_ns, size, path))
    taken = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if taken <= most:
            return
        if path not in held:
            with contextlib.suppress(OSError):
                remove(path)
                taken -= size


def _files(path: Path) -> tuple[Path, ...]:
    return path, path.with_suffix(".texts"), Path(f"{path}-wal"), Path(f"{path}-shm")


def _text(text: str | None) -> str | None:
    """As a database takes it: half of a character, which JSON can say, is written out."""
    if text is None or text.isascii():
        return text
    return text.encode(errors="backslashreplace").decode()


def _values(row: Row, place: tuple[int, int | None, int]) -> tuple[Any, ...]:
    one = row.message
    return (
        one.seq,
        one.number,
        one.direction,
        one.at,
        one.size,
        one.kind,
        _text(one.method),
        None if one.rpc_id is None else json.dumps(one.rpc_id),
        _text(one.gist),
        one.answers,
        one.latency_ms,
        _text(one.problem),
        one.quiet,
        _text(one.unread),
        _text(one.fold),
        _text(one.step),
        _text(one.by),
        row.exchange,
        *place,
    )


def _message(row: tuple[Any, ...]) -> Message:
    seq, number, direction, at, size, kind, method, rpc_id, *said, quiet, unread, fold, step, by = row
    gist, answers, latency, problem = said
    known, left = None if rpc_id is None else json.loads(rpc_id), (bool(quiet), unread, number, fold, step, by or "")
    return Message(seq, direction, at, size, kind, method, known, gist, answers, latency, problem, *left)
