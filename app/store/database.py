"""One file for everything that outlives the process: who may touch it, one at a time, and what is wrong with it.

Light by itself: the code that reads a file is imported by the first that reads, the code that writes one by the first
that writes, both in a thread. A disk that is full, read-only or damaged costs only the saving (F25), which `trouble`
says in words.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from app.store.sqlite import Scrub

logger = logging.getLogger("parley.store")

FILE: Final = "parley.db"
_CLOSE_SECONDS: Final = 2.0
_T = TypeVar("_T")


class Database:
    """The file below a directory; without a directory nothing is kept. No method raises for a fault of the disk."""

    is_shared = False
    """Whether other replicas write there too."""

    def __init__(self, directory: Path | None, scrub: Scrub, max_pages: int | None = None) -> None:
        self.path = None if directory is None else directory / FILE
        self.trouble = ""
        """Why nothing is written, as a sentence without its beginning; empty while it works."""
        self._scrub, self._max_pages = scrub, max_pages
        self._engine: AsyncEngine | None = None
        self._one = anyio.Lock()
        self._closed = False

    @property
    def idle(self) -> bool:
        """Whether the next write would have to import and open what writes."""
        return self._engine is None and self.path is not None and not self._closed

    async def look(self, look: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """Read, in a thread and by plain statements, what the file has. None when it is empty, or did not work."""

        def attempt(path: Path) -> _T | None:
            if not _made(path):
                return None
            from app.store import sqlite

            with sqlite.looked_into(path) as file:
                return look(file)

        return await self._attempt(lambda path: anyio.to_thread.run_sync(attempt, path))

    async def clean(self) -> None:
        """Free the file of secrets that an older Parley wrote."""

        def attempt(path: Path) -> None:
            from app.store import sqlite

            sqlite.clean(path, self._scrub)

        await self._attempt(lambda path: anyio.to_thread.run_sync(attempt, path))

    async def bring_up(self) -> None:
        """Have the file in the form of this version before anybody writes."""
        await self._attempt(self._ready)

    async def work(self, work: Callable[[AsyncConnection], Awaitable[_T]]) -> _T | None:
        """Do something in one transaction. None when it did not work; then `trouble` has the reason."""

        async def attempt(path: Path) -> _T:
            engine = await self._ready(path)
            from app.store.engine import plain_faults

            with plain_faults():
                async with engine.begin() as connection:
                    return await work(connection)

        return await self._attempt(attempt)

    async def close(self) -> None:
        """Wait for what is under way, then let go of the file."""
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            async with self._one:
                await self.let_go()
        self._closed = True

    async def let_go(self) -> None:
        """Close the file; the next write opens it again."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.dispose()

    # ---- one at a time

    async def _attempt(self, attempt: Callable[[Path], Awaitable[_T]]) -> _T | None:
        if self.path is None or self._closed:
            return None
        done: _T | None = None
        # A transaction that has begun is brought to its end, whoever stops waiting for it.
        with anyio.CancelScope(shield=True):
            async with self._one:
                try:
                    done, trouble = await attempt(self.path), ""
                except Exception as fault:
                    trouble = await self._words(self.path, fault)
        if trouble and trouble != self.trouble:
            logger.warning("saving is off: %s", trouble)
        self.trouble = trouble
        return done

    async def _words(self, path: Path, fault: Exception) -> str:
        from app.store import sqlite

        trouble = sqlite.words(path, fault)
        if trouble is None or not sqlite.is_full(fault):
            await self.let_go()
        if trouble is None:
            raise fault
        return trouble

    async def _ready(self, path: Path) -> AsyncEngine:
        if self._engine is None:
            self._engine = await anyio.to_thread.run_sync(self._opened, path)
        return self._engine

    def _opened(self, path: Path) -> AsyncEngine:
        """In a thread, because of the imports and of the disk."""
        from app.store import engine, sqlite

        _made(path)
        if not sqlite.is_current(path):
            engine.bring_up(path, self._scrub, self._max_pages)
        return engine.connected(path, self._max_pages)


def _made(path: Path) -> bool:
    """Have a file, for its owner alone; whether anything is in it. Raises OSError where none can be."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        # Made here, so that it is never readable for others, not even for a moment.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_IMODE(mode) & 0o077:
        path.chmod(0o600)
    # Asked, not tried: to close any handle of a file gives up what SQLite has locked in this process.
    if not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return path.stat().st_size > 0
