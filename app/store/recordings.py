"""The recordings that people have: what each is, whose, how large; their bytes are bodies, kept apart.

As with targets, memory is the truth while Parley runs and the file follows it. A recording that nobody is writing any
more and that was never ended is `cut`: Parley was killed. What is older than the limit is deleted at the start, and
that is said.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import anyio.to_thread

from app import bounds
from app.core.errors import Gone, Invalid, NotAllowed
from app.core.times import LAST_MOMENT
from app.settings import MIB, Limits
from app.store.bodies import Adding, Bodies, Body, Unwritable, open_bodies
from app.store.database import Database

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.ext.asyncio import AsyncConnection

logger = logging.getLogger("parley.store")

RecordingState = Literal["recording", "complete", "cut"]
Origin = Literal["recorded", "opened", "moment"]

_COLUMNS: Final = ("id", "owner", "title", "state", "began", "ended", "size", "facts")
_ROWS: Final = f"SELECT {', '.join(_COLUMNS)} FROM recordings ORDER BY began DESC"  # noqa: S608 (constants)
_DAY: Final = 86_400.0
_KILLED: Final = "Parley ended while it was recording."


@dataclass(slots=True, frozen=True)
class Recording:
    """One recording, as a list shows it."""

    id: str
    owner: str
    title: str
    state: RecordingState
    began: float
    """When the recording began; once it is over, when its first message was."""
    ended: float | None = None
    """When its last message was."""
    size: int = 0
    label: str = ""
    """What the target is called, without secrets."""
    target: str = ""
    """What the target is known by: the digest of what of it may be written down."""
    session: str = ""
    """The session that it was recorded from."""
    revision: str = ""
    messages: int = 0
    calls: int = 0
    asks: int = 0
    findings: int = 0
    notes: str = ""
    tags: tuple[str, ...] = ()
    masked: tuple[dict[str, Any], ...] = ()
    """What was masked: `pointer`, `name`, `count`."""
    words: str = ""
    """Why it ended, where there is more to say than that somebody stopped it."""
    origin: Origin = "recorded"
    writer: str = ""
    """The process that writes it."""

    @property
    def seconds(self) -> float | None:
        """How long it goes on, once it is over."""
        return None if self.ended is None else max(0.0, self.ended - self.began)


_FACTS: Final = frozenset(each.name for each in fields(Recording)) - set(_COLUMNS)


def new_id() -> str:
    """What a recording is called in addresses: nobody guesses it."""
    return f"rec-{secrets.token_urlsafe(12)}"


class Arriving:
    """Bytes of files that are being brought and are no recordings yet, by whose they are. For threads."""

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()
        self._one = Lock()

    def take(self, owner: str, size: int, left: tuple[int, int]) -> None:
        """So much more arrives. Raises NotAllowed when that is more than is left for them, or for all together."""
        with self._one:
            mine, everybodys = self._bytes[owner] + size, self._bytes.total() + size
            if mine > left[0]:
                raise NotAllowed("Your recordings together would be more than the limit. Delete one first.")
            if everybodys > left[1]:
                raise NotAllowed("All recordings together would be more than the limit. Delete one first.")
            self._bytes[owner] = mine

    def over(self, owner: str, size: int) -> None:
        """They are a recording now, or nothing."""
        with self._one:
            self._bytes[owner] -= size
            self._bytes += Counter()  # only what is more than nothing stays


class Recordings:
    """Every recording of this installation."""

    def __init__(self, database: Database, directory: Path | None, wall: Callable[[], float], limits: Limits) -> None:
        self._database, self._directory, self._wall, self._limits = database, directory, wall, limits
        self._kept: dict[str, Recording] = {}
        self._bodies: Bodies | None = None
        self._lane = anyio.CapacityLimiter(4)
        """A disk that hangs holds these threads and no others."""
        self.kept_in = "files"
        self.url = ""
        """The PostgreSQL of a team, where there is one."""
        self.when_changed: list[Callable[[str], Awaitable[None]]] = []
        """Who wants to know that the bytes of a recording are other ones, or gone: whoever keeps an index of them."""
        self.arriving = Arriving()
        self.too_old: list[str] = []
        """The titles of what was deleted at the start because of its age."""

    @property
    def possible(self) -> bool:
        """Whether there is anywhere to keep a recording."""
        return self._directory is not None

    @property
    def bodies(self) -> Bodies:
        """Where their bytes are. Raises NotAllowed where nothing is kept."""
        if self._directory is None:
            raise NotAllowed("This Parley keeps nothing on disk. Start it with --data-dir to have recordings.")
        if self._bodies is None:
            self._bodies = open_bodies(self._directory, self.kept_in, self.url)
        return self._bodies

    # ---- reading, from memory

    def of(self, owner: str) -> list[Recording]:
        """The recordings of an identity, the newest first."""
        mine = (one for one in self._kept.values() if one.owner == owner)
        return sorted(mine, key=lambda one: -one.began)

    def find(self, owner: str, rid: str) -> Recording | None:
        """One of them; somebody else's is as unknown as one that never was (S15)."""
        found = self._kept.get(rid)
        return found if found is not None and found.owner == owner else None

    def anybodys(self, rid: str) -> Recording | None:
        """The same whoever's it is: who may know of it is for the caller to ask."""
        return self._kept.get(rid)

    @property
    def bytes_total(self) -> int:
        """What all of them take."""
        return sum(one.size for one in self._kept.values())

    def room(self, owner: str) -> None:
        """Raises NotAllowed, with what to do, when there is no room for one more of somebody."""
        limits, mine = self._limits, self.of(owner)
        if len(mine) >= limits.recordings_per_identity:
            most = limits.recordings_per_identity
            raise NotAllowed(f"You have {most:,} recordings, which is the limit. Delete one first.")
        if sum(one.size for one in mine) >= limits.recordings_bytes_per_identity:
            most = limits.recordings_bytes_per_identity // MIB
            raise NotAllowed(f"Your recordings together are {most:,} MiB, which is the limit. Delete one first.")
        if len(self._kept) >= bounds.RECORDINGS:
            raise NotAllowed(f"There are {bounds.RECORDINGS:,} recordings, which is the limit. Delete one first.")
        if self.bytes_total >= limits.recordings_bytes:
            most = limits.recordings_bytes // MIB
            raise NotAllowed(f"All recordings together are {most:,} MiB, which is the limit. Delete one first.")

    def left(self, owner: str) -> tuple[int, int]:
        """Bytes that somebody may still bring, and all together."""
        mine, limits = sum(one.size for one in self.of(owner)), self._limits
        return limits.recordings_bytes_per_identity - mine, limits.recordings_bytes - self.bytes_total

    # ---- writing

    async def prepare(self) -> None:
        """Have the file in the form of this version, where bytes are kept in it."""
        if self.kept_in == "database":
            await self._database.bring_up()

    async def put(self, recording: Recording) -> None:
        """Keep a recording, or what has become of it. A disk that is full costs the row, not the recording."""
        if recording.id not in self._kept:
            self.room(recording.owner)
        self._kept[recording.id] = recording
        row = dict(zip(_COLUMNS, _row(recording), strict=True))
        await self._database.work(lambda connection: _write(connection, row))

    def note(self, recording: Recording, *, new: bool = False) -> Recording:
        """What has become of one while it is being written; the file follows later. What people said of it meanwhile
        stays, and one that was deleted stays so."""
        kept = self._kept.get(recording.id)
        if kept is not None:
            recording = replace(recording, title=kept.title, notes=kept.notes, tags=kept.tags)
        if new or kept is not None:
            self._kept[recording.id] = recording
        return recording

    def rename(self, recording: Recording, title: str) -> None:
        """It has a better title now, and nobody gave it one."""
        kept = self._kept.get(recording.id)
        if kept is not None and kept.title == recording.title:
            self._kept[recording.id] = replace(kept, title=title)

    async def change(
        self,
        recording: Recording,
        *,
        title: str | None = None,
        notes: str | None = None,
        tags: Iterable[str] | None = None,
    ) -> Recording:
        """Give it another title, notes, tags. Raises Invalid, or Gone when it was deleted."""
        wrong: dict[str, list[str]] = {}
        made = self._mine(recording)
        if title is not None:
            made = replace(made, title=" ".join(title.split()))
            if not made.title or len(made.title) > bounds.RECORDING_TITLE:
                wrong["/title"] = [f"Type a title of at most {bounds.RECORDING_TITLE} characters."]
        if notes is not None:
            made = replace(made, notes=notes.strip())
            if len(made.notes) > bounds.RECORDING_NOTES:
                wrong["/notes"] = [f"At most {bounds.RECORDING_NOTES:,} characters."]
        if tags is not None:
            made = replace(made, tags=tuple(dict.fromkeys(one for tag in tags if (one := " ".join(tag.split())))))
            if len(made.tags) > bounds.RECORDING_TAGS or any(len(one) > bounds.RECORDING_TAG for one in made.tags):
                wrong["/tags"] = [
                    f"At most {bounds.RECORDING_TAGS} tags of at most {bounds.RECORDING_TAG} characters each."
                ]
        if wrong:
            raise Invalid("These cannot be kept.", wrong)
        await self.put(made)
        return made

    async def delete(self, recording: Recording) -> None:
        """Delete it: its row and its bytes. Raises Gone when it is gone, NotAllowed when the disk refuses."""
        one = self._mine(recording)
        try:
            await self.in_thread(self.bodies.delete, one.id)
        except Unwritable as no:
            raise NotAllowed(f"The recording is still there: {no}.") from None
        self._kept.pop(one.id, None)
        await self._database.work(lambda connection: _delete(connection, [one.id]))
        await self.changed(one.id)

    async def changed(self, rid: str) -> None:
        """The bytes of a recording are other ones now, or gone."""
        for told in self.when_changed:
            await told(rid)

    async def in_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do something with a body. Whoever stops waiting leaves it behind: a disk may hang."""
        return await anyio.to_thread.run_sync(lambda: work(*arguments), abandon_on_cancel=True, limiter=self._lane)

    async def add(self, many: list[tuple[Body, bytes]]) -> list[Unwritable | None]:
        """Add bytes to several bodies; of each, why it could not be done. One that hangs is left behind, and costs the
        others a moment."""
        faults: list[Unwritable | None] = []
        while len(faults) < len(many):
            adding = Adding(many[len(faults) :])
            with anyio.move_on_after(bounds.RECORDING_KEEP_SECONDS) as late:
                await self.in_thread(self.bodies.add, adding)
            adding.left = late.cancelled_caught
            done = list(adding.done)
            faults += done
            if late.cancelled_caught:
                fault = self.bodies.late()
                if fault is None:
                    return [None] * len(many)
                if adding.begun > len(done):
                    faults.append(fault)
        return faults

    async def close(self) -> None:
        """Let go of where their bytes are."""
        if self._bodies is not None:
            await self.in_thread(self._bodies.close)

    def _mine(self, recording: Recording) -> Recording:
        if recording.id not in self._kept:
            raise Gone("That recording was deleted.")
        return self._kept[recording.id]

    # ---- the start

    def take(self, found: Iterable[Recording]) -> None:
        """Take over what the file has; what began meanwhile stays."""
        for one in found:
            mine = self._database.is_shared or one.writer == writer()
            dead = one.state == "recording" and not mine and not _lives(one.writer)
            self._kept.setdefault(one.id, replace(one, state="cut", words=_KILLED) if dead else one)

    async def refresh(self, owner: str) -> None:
        """Have the recordings that somebody made on other replicas of a team. What is written here is known here."""
        if not self._database.is_shared:
            return

        async def read(connection: AsyncConnection) -> list[Recording]:
            from app.store.tables import recordings

            query = recordings.select().where(recordings.c.owner == owner).limit(bounds.RECORDINGS)
            rows = (await connection.execute(query)).mappings()
            return list(_recordings([tuple(row[name] for name in _COLUMNS) for row in rows]))

        found = await self._database.work(read)
        if found is None:
            return
        me, there = writer(), {one.id for one in found}
        for one in found:
            if one.writer != me:
                self._kept[one.id] = one
        over = self._wall() - 60  # one that ended a moment ago may not be written yet
        for one in self.of(owner):
            if one.id not in there and one.ended is not None and one.ended < over:
                del self._kept[one.id]

    async def tidy(self) -> None:
        """Look at what an earlier Parley left: recordings that were cut, and those that are too old."""
        for one in list(self._kept.values()):
            if one.state == "cut" and one.writer:
                await self._cut(one)
        before = self._wall() - self._limits.recording_days * _DAY
        for one in [
            one for one in self._kept.values() if (one.ended or one.began) < before and one.state != "recording"
        ]:
            with contextlib.suppress(NotAllowed, Gone):
                await self.delete(one)
                self.too_old.append(one.title)
        if self.too_old:
            days = self._limits.recording_days
            logger.info("%d recordings older than %g days were deleted", len(self.too_old), days)

    async def _cut(self, one: Recording) -> None:
        """Parley was killed while it wrote this one; how large it is, its body knows."""

        def measured() -> int:
            body = self.bodies.open(one.id)
            try:
                return body.size
            finally:
                body.close()

        size = one.size
        with contextlib.suppress(Unwritable, KeyError):
            size = await self.in_thread(measured)
        await self.put(replace(one, state="cut", size=size, writer="", words=_KILLED))


# -------------------------------------------------------------------------------------------- which process writes one


def writer() -> str:
    """This process, so that another one can tell whether it still lives."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def _lives(one: str) -> bool:
    """Whether the process that writes a recording is still there, as far as can be told from here."""
    host, number, began = ("", "", *one.rsplit(":", 2))[-3:]
    return bool(began) and host == socket.gethostname() and number.isdigit() and _started(int(number)) == began


def _started(pid: int) -> str:
    """When a process began, in the system's own count; "" where that cannot be known, or there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except OSError:
        return ""
    return "alive"


# -------------------------------------------------------------------------------------------------------- statements


def _row(one: Recording) -> tuple[Any, ...]:
    facts = {name: value for name, value in asdict(one).items() if name in _FACTS}
    return one.id, one.owner, one.title, one.state, one.began, one.ended, one.size, json.dumps(facts)


async def _write(connection: AsyncConnection, row: dict[str, Any]) -> None:
    from sqlalchemy import insert, update

    from app.store.tables import recordings

    changed = await connection.execute(update(recordings).where(recordings.c.id == row["id"]).values(row))
    if not changed.rowcount:
        await connection.execute(insert(recordings).values(row))


async def _delete(connection: AsyncConnection, keys: list[str]) -> None:
    from sqlalchemy import delete

    from app.store.tables import recordings

    await connection.execute(delete(recordings).where(recordings.c.id.in_(keys)))


def read(file: sqlite3.Connection) -> list[Recording]:
    """Each row of the file that makes sense."""
    from app.store import sqlite

    return list(_recordings(sqlite.rows(file, "recordings", f"{_ROWS} LIMIT {bounds.RECORDINGS}")))


def _recordings(rows: list[tuple[Any, ...]]) -> Iterator[Recording]:
    for key, owner, title, state, began, ended, size, text in rows:
        try:
            given = json.loads(text)
            facts = {name: given[name] for name in _FACTS & given.keys()}
            facts |= {"tags": tuple(map(str, facts.get("tags", ()))), "masked": tuple(facts.get("masked", ()))}
            sound = state in ("recording", "complete", "cut") and 0 <= began <= LAST_MOMENT
            if not sound:
                raise ValueError(state)
            yield Recording(key, owner, title, state, began, ended, size, **facts)
        except (ValueError, TypeError, AttributeError):
            logger.warning("a recording cannot be read and is left where it is")
