"""The one process that masks recordings, from this side: started by the first that records, ended after the last.

What several sessions have for it goes there together, and what comes of it goes to the disk together: to wake another
process, a thread, or a store over the network costs more than what one session has to say in a moment.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, Final

import anyio

from app import bounds
from app.core.signal import Signal
from app.core.targets import StdioTarget
from app.protocol.links.base import LinkError
from app.protocol.links.stdio import StdioLink, open_stdio
from app.recordings import scribe
from app.recordings.portions import Portion
from app.settings import Limits
from app.store.bodies import Body, Unwritable
from app.store.recordings import Recordings

logger = logging.getLogger("parley.recordings")

_HOME: Final = str(Path(__file__).resolve().parents[2])
_ENDED: Final = "the process that masks recordings has ended"
Counts = list[tuple[str, str, int]]


class ScribeGone(Exception):
    """The process is not there any more, or does not answer. Its words are the end of a sentence."""


class _Job:
    """One portion for the process, and what came of it."""

    __slots__ = ("body", "counts", "done", "fault", "left", "lines", "portion", "size")

    def __init__(self, portion: scribe.Portion, body: Body | None) -> None:
        self.portion, self.body = portion, body
        """Where its lines are to be added."""
        given = portion[2]
        self.size = len(given) if isinstance(given, bytes) else sum(map(len, given or ()))
        self.done = Signal()
        self.left = False
        """Whether nobody waits for it any more."""
        self.lines = b""
        self.counts: Counts | None = None
        self.fault: Exception | None = None

    def end(self, fault: Exception | None = None) -> None:
        self.fault = self.fault or fault
        self.done.set()


class Scribe:
    """Takes portions to the process and its lines to where they are kept, in the order in which they came."""

    def __init__(self, start_soon: Callable[..., None], recordings: Recordings) -> None:
        self._start_soon, self._recordings = start_soon, recordings
        self._link: StdioLink | None = None
        self._needed = Signal()
        self._over = Signal()
        self._over.set()
        self._doors = anyio.Lock()
        self._users = 0
        self._jobs: deque[_Job] = deque()
        self._more = Signal()
        self._to_keep: deque[list[_Job]] = deque()
        """What is masked, and not yet where it belongs."""
        self._masked = Signal()

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return None if self._link is None else self._link.pid

    async def enter(self) -> None:
        """Somebody records: the process is needed. Raises ScribeGone when it cannot be started."""
        async with self._doors:
            if self._link is None:
                started = Signal()
                self._needed, self._over = Signal(), Signal()
                self._start_soon(self._serve, started, self._needed, self._over)
                await started.wait()
            if self._link is None:
                raise ScribeGone("the process that masks recordings cannot be started")
            self._users += 1

    async def leave(self) -> None:
        """Somebody has stopped recording; the process ends with the last."""
        async with self._doors:
            self._users -= 1
            if self._users <= 0:
                self._users = 0
                self._needed.set()
                await self._over.wait()

    async def _serve(self, started: Signal, needed: Signal, over: Signal) -> None:
        """Holds the process until nobody needs it."""
        # -S: it needs nothing but the standard library, what lies beside it, and one library.
        args, env = ("-S", "-m", "app.recordings.scribe"), {"PYTHONPATH": _libraries()}
        target = StdioTarget(command=sys.executable, args=args, env=env, cwd=_HOME)
        try:
            async with open_stdio(target, Limits(), _complain) as link, anyio.create_task_group() as group:
                link.start(group)
                self._link = link
                group.start_soon(self._carry, link, needed)
                group.start_soon(self._keeping)
                started.set()
                await needed.wait()
                group.cancel_scope.cancel()
        except LinkError as no:
            logger.warning("no recording is possible: %s", no.message)
        finally:
            self._link = None
            while self._jobs:
                self._jobs.popleft().end(ScribeGone(_ENDED))
            started.set()
            over.set()

    async def ask(self, what: str, rid: str, given: Any) -> tuple[bytes, Counts | None]:
        """Have one portion done. Raises ScribeGone."""
        job = await self._done(_Job((what, rid, given), None))
        return job.lines, job.counts

    async def write(self, rid: str, portion: Portion, body: Body) -> tuple[int, Counts | None]:
        """Have one portion masked and added to a body: by how many bytes, and all that was masked so far when that has
        changed. Raises ScribeGone, or Unwritable."""
        job = await self._done(_Job(("write", rid, portion), body))
        return len(job.lines), job.counts

    async def _done(self, job: _Job) -> _Job:
        if self._link is None:
            raise ScribeGone(_ENDED)
        self._jobs.append(job)
        self._more.set()
        try:
            await job.done.wait()
        finally:
            job.left = True
        if job.fault is not None:
            raise job.fault
        return job

    async def _carry(self, link: StdioLink, needed: Signal) -> None:
        """Takes what waits, as much as is good at once, until the process is gone."""
        batch = list[_Job]()
        try:
            while True:
                await self._more.wait()
                self._more, batch = Signal(), self._next()
                while batch:
                    with anyio.fail_after(bounds.RECORDING_ANSWER_SECONDS):
                        await link.child.write(scribe.packed([job.portion for job in batch]))
                        answers = scribe.unpacked(await _answer(link))
                    self._take(batch, answers)
                    batch = self._next()
        except (OSError, EOFError, TimeoutError):
            needed.set()
        finally:
            for job in batch:
                job.end(ScribeGone(_ENDED))

    def _next(self) -> list[_Job]:
        batch, size = list[_Job](), 0
        while self._jobs and size < bounds.SCRIBE_BATCH:
            job = self._jobs.popleft()
            if not job.left:
                batch.append(job)
                size += job.size
        return batch

    def _take(self, batch: list[_Job], answers: list[Any]) -> None:
        """Give each what came of it; lines that belong somewhere are added there first."""
        adding = list[_Job]()
        for job, (lines, counts) in zip(batch, answers, strict=True):
            if lines is None:
                job.end(ScribeGone(counts))
                continue
            job.lines, job.counts = lines, counts
            if lines and job.body is not None:
                adding.append(job)
            else:
                job.end()
        if adding:
            self._to_keep.append(adding)
            self._masked.set()

    async def _keeping(self) -> None:
        """Adds lines to where they belong, beside the masking: a disk that hangs stops neither that nor who begins."""
        batch = list[_Job]()
        try:
            while True:
                await self._masked.wait()
                self._masked = Signal()
                while self._to_keep:
                    batch = self._to_keep.popleft()
                    await self._keep([job for job in batch if not job.left])
        finally:
            for job in (*batch, *chain.from_iterable(self._to_keep)):
                job.end(ScribeGone(_ENDED))
            self._to_keep.clear()

    async def _keep(self, batch: list[_Job]) -> None:
        try:
            faults = await self._recordings.add([(job.body, job.lines) for job in batch if job.body is not None])
            for job, fault in zip(batch, faults, strict=True):
                job.end(fault)
        except Exception as fault:  # of ours: it costs those whose lines these were
            logger.exception("adding to recordings failed inside Parley")
            for job in batch:
                job.end(Unwritable(f"Parley itself failed: {type(fault).__name__}"))


async def _answer(link: StdioLink) -> memoryview:
    """All bytes of one answer. Raises EOFError when the process ends before the last."""
    chunks, size, whole = list[bytes](), 0, scribe.LENGTH
    while size < whole:
        chunk = await link.child.read(1)
        if chunk is None:
            raise EOFError
        chunks.append(chunk)
        size += len(chunk)
        if whole == scribe.LENGTH <= size:
            whole += int.from_bytes(b"".join(chunks)[: scribe.LENGTH])
    return memoryview(b"".join(chunks))[scribe.LENGTH :]


@cache
def _libraries() -> str:
    """Where what `quick` imports is installed."""
    found = find_spec("orjson")
    return "" if found is None or found.origin is None else str(Path(found.origin).resolve().parents[1])


def _complain(line: bytes) -> None:
    logger.warning("the process that masks recordings: %s", line.decode(errors="replace")[:500])
