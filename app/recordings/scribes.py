"""The one process that masks recordings, from this side: started by the first that records, ended after the last."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio

from app import bounds
from app.core.signal import Signal
from app.core.targets import StdioTarget
from app.protocol.links.base import LinkError, Outbound
from app.protocol.links.stdio import StdioLink, open_stdio
from app.recordings import scribe
from app.settings import Limits

logger = logging.getLogger("parley.recordings")

_HOME: Final = str(Path(__file__).resolve().parents[2])
_ENDED: Final = "the process that masks recordings has ended"
Counts = list[tuple[str, str, int]]


class ScribeGone(Exception):
    """The process is not there any more, or does not answer. Its words are the end of a sentence."""


class Scribe:
    """Sends portions to the process and takes its lines, one after the other."""

    def __init__(self, start_soon: Callable[..., None]) -> None:
        self._start_soon = start_soon
        self._link: StdioLink | None = None
        self._needed = Signal()
        self._over = Signal()
        self._over.set()
        self._one, self._doors = anyio.Lock(), anyio.Lock()
        self._users = 0

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
        # -S: it needs nothing but the standard library and what lies beside it.
        target = StdioTarget(command=sys.executable, args=("-S", "-m", "app.recordings.scribe"), cwd=_HOME)
        limits = Limits(message_bytes=bounds.SCRIBE_BYTES)
        try:
            async with open_stdio(target, limits, _complain) as link, anyio.create_task_group() as group:
                link.start(group)
                self._link = link
                started.set()
                await needed.wait()
                group.cancel_scope.cancel()
        except LinkError as no:
            logger.warning("no recording is possible: %s", no.message)
        finally:
            self._link = None
            started.set()
            over.set()

    async def ask(self, what: str, rid: str, given: Any) -> tuple[bytes, Counts | None]:
        """Have one portion done. Raises ScribeGone."""
        async with self._one:
            link = self._link
            if link is None:
                raise ScribeGone(_ENDED)
            try:
                with anyio.fail_after(bounds.RECORDING_ANSWER_SECONDS):
                    await link.send(scribe.packed((what, rid, given)), Outbound("request", 0))
                    answers = await link.receive()
            except BaseException as fault:
                # Half of a portion may be in the pipe: nobody can go on with it.
                self._needed.set()
                if isinstance(fault, (LinkError, TimeoutError)):
                    raise ScribeGone(_ENDED) from fault
                raise
        if answers is None or len(answers) != 1 or not isinstance(answers[0], bytes):
            self._needed.set()
            raise ScribeGone(_ENDED)
        lines, counts = scribe.unpacked(answers[0])
        if lines is None:
            raise ScribeGone(counts)
        return lines, counts


def _complain(line: bytes) -> None:
    logger.warning("the process that masks recordings: %s", line.decode(errors="replace")[:500])
