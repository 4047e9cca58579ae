"""The recordings that somebody reads: each is opened once, for every tab and everybody who may, and let go of when
nobody has looked at it for a while.

Opening reads it into its index, portion by portion in a thread: the first rows can be seen at once, and whoever looks
hears how far it is. One that is still being written is read on whenever somebody opens a page of it.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from app import bounds
from app.core.errors import NotAllowed
from app.core.lane import give_back_soon
from app.core.signal import Signal
from app.recordings.indexing import Reader
from app.recordings.recording import RecordedSession
from app.sessions.identity import Identity
from app.store.bodies import FOLDER, Body, Unwritable
from app.store.index_file import SUFFIX, IndexFile, remove, trim
from app.store.recordings import Recording

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry

logger = logging.getLogger("parley.recordings")


@dataclass(slots=True, eq=False)
class _Open:
    """One recording that is open."""

    session: RecordedSession
    body: Body
    index: IndexFile
    first: Signal = field(default_factory=Signal)
    """Its first rows can be seen."""
    done: Signal = field(default_factory=Signal)
    """It is read to its end."""
    trouble: str = ""
    """Why it could not be read any further."""


class Shelf:
    """The open recordings of this process."""

    def __init__(self, registry: SessionRegistry) -> None:
        self._registry = registry
        self._open: dict[str, _Open] = {}
        self._opening = anyio.Lock()
        self._lane = anyio.CapacityLimiter(1)
        """One recording is read after the other."""
        self._swept = False
        registry.before_end.append(self.close)
        registry.store.recordings.when_changed.append(self.forget)

    def __len__(self) -> int:
        return len(self._open)

    def path(self, rid: str) -> Path:
        """Where the index of a recording stands. Raises NotAllowed where nothing is kept."""
        directory = self._registry.settings.data_dir
        if directory is None:
            raise NotAllowed("This Parley keeps nothing on disk. Start it with --data-dir to have recordings.")
        return directory / FOLDER / f"{rid}{SUFFIX}"

    async def open(self, identity: Identity, row: Recording, *, whole: bool = False) -> RecordedSession:
        """A recording of this identity, at least its beginning; `whole` waits for all of it. Raises NotAllowed when it
        cannot be read."""
        rid = row.id
        async with self._opening:
            found = self._open.get(rid)
            if found is None:
                found = self._open[rid] = await self._opened(identity, row)
                self._registry.start_soon(self._read, found)
            elif found.done.is_set() and not found.trouble and found.session.reader.progress.read < found.body.size:
                found.done = Signal()  # it is still being written
                self._registry.start_soon(self._read, found)
        found.session.row = row
        found.session.touch()
        await found.first.wait()
        with anyio.move_on_after(None if whole else bounds.RECORDING_WAIT_SECONDS):
            await found.done.wait()
        if found.trouble:
            self._drop(rid)
            raise NotAllowed(f"This recording cannot be read: {found.trouble}.")
        return found.session

    async def _opened(self, identity: Identity, row: Recording) -> _Open:
        path = self.path(row.id)
        owner = replace(identity, id=row.owner)  # whoever opens it first

        def opened() -> _Open:
            body = self._registry.store.recordings.bodies.open(row.id)
            for again in (False, True):
                index = IndexFile(path)
                with contextlib.suppress(ValueError):
                    return _Open(RecordedSession(row, owner, self._registry, index, Reader(body, index)), body, index)
                index.close()
                if not again:
                    remove(path)
            raise Unwritable("its index cannot be made")

        self._make_room()
        if not self._swept:
            self._swept = True
            self._registry.start_soon(self._sweep)
        try:
            return await anyio.to_thread.run_sync(opened)
        except KeyError:
            raise NotAllowed("The file of this recording is gone. Delete the recording from the list.") from None
        except (Unwritable, OSError) as fault:
            raise NotAllowed(f"This recording cannot be read: {fault}.") from None

    async def _read(self, one: _Open) -> None:
        """Read it to its end, and show what there is meanwhile."""
        session, reader = one.session, one.session.reader
        try:
            more = True
            while more and not session.closed:
                more = await anyio.to_thread.run_sync(self._portions, reader, limiter=self._lane)
                made = await anyio.to_thread.run_sync(session.refresh, not more or not one.first.is_set())
                session.put(made)
                one.first.set()
                session.progressed(over=not more)
                if not more:
                    await anyio.to_thread.run_sync(self._trim_indexes)
                if more and self._registry.attention.beside(session.id):
                    await anyio.sleep(bounds.RECORDING_REST_SECONDS)
            await self._counted(one)
        except (Unwritable, OSError) as fault:
            logger.warning("a recording could not be read: %s", fault)
            one.trouble = str(fault).rstrip(".")
        except Exception:
            logger.exception("a recording could not be read")
            one.trouble = "Parley failed over it, and the terminal that runs it shows why"
        finally:
            one.first.set()
            one.done.set()
            give_back_soon()

    def _portions(self, reader: Reader) -> bool:
        """So much that a tab has something new to show."""
        until = self._registry.mono() + bounds.RECORDING_PORTION_SECONDS
        while reader.portion():
            if self._registry.mono() > until:
                return True
        return False

    def _trim_indexes(self) -> None:
        """All indexes together take so much of the disk and no more: each can be made again."""
        trim(self.path("").parent, bounds.INDEX_BYTES, {one.index.path for one in list(self._open.values())})

    async def _counted(self, one: _Open) -> None:
        """A file that somebody brought says only now how much is in it."""
        row, session = one.session.row, one.session
        if row.origin == "recorded" or row.messages:
            return
        began, ended = one.index.span()
        known = replace(
            row,
            messages=session.messages.count,
            calls=one.index.many("call"),
            asks=one.index.many("ask"),
            findings=session.messages.findings_total,
            began=row.began if began is None else began,
            ended=session.ended_at if ended is None else ended,
        )
        store = self._registry.store.recordings
        if store.find(row.owner, row.id) is not None:
            session.row = known
            await store.put(known)

    # ---- letting go

    def _make_room(self) -> None:
        idle = sorted(self._open.values(), key=lambda one: -one.session.idle_for())
        for one in idle[: max(0, len(self._open) + 1 - bounds.RECORDINGS_OPEN)]:
            self._drop(one.session.id)

    async def _sweep(self) -> None:
        """Let go of what nobody looks at. Runs until cancelled."""
        while True:
            await anyio.sleep(bounds.REAP_SECONDS)
            for rid in [rid for rid, one in self._open.items() if _is_idle(one)]:
                self._drop(rid)

    def _drop(self, rid: str) -> None:
        found = self._open.pop(rid, None)
        if found is not None:
            found.session.end_of_reading()
            found.index.close()
            found.body.close()
            give_back_soon(cycles=True)

    async def forget(self, rid: str) -> None:
        """It was deleted, or its bytes are others now: nothing is left of its index."""
        self._drop(rid)
        with contextlib.suppress(NotAllowed, OSError):
            await anyio.to_thread.run_sync(remove, self.path(rid))

    async def close(self) -> None:
        """Let go of all of them."""
        for rid in list(self._open):
            self._drop(rid)


def _is_idle(one: _Open) -> bool:
    return one.done.is_set() and one.session.idle_for() > bounds.RECORDING_IDLE_SECONDS
