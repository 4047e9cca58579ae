"""One PostgreSQL for all replicas of a team, with the interface of the one file of everybody else.

Nobody waits for it: who finds it gone is told so at once, and it is asked again once a second. What stands in memory
goes on (F26). Light by itself, as `database` is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import anyio
import anyio.to_thread

from app.store.database import Database

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy import URL
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from app.store.sqlite import Scrub

logger = logging.getLogger("parley.store")

_WAIT_SECONDS: Final = 8.0
"""How long one piece of work may take, with the wait for a connection."""
_OPEN_SECONDS: Final = 40.0
"""How long the first one may take: it imports what writes, and perhaps waits for another replica that makes tables."""
_REST_SECONDS: Final = 1.0
"""How long a store that did not answer is not asked again."""
_T = TypeVar("_T")


class SharedDatabase(Database):
    """The store of a team. No method raises for a fault of the store."""

    is_shared = True

    def __init__(self, url: str, scrub: Scrub, mono: Callable[[], float] = time.monotonic) -> None:
        super().__init__(None, scrub)
        self._url, self._mono = url, mono
        self._again = 0.0
        self._opening = anyio.Lock()
        self._up = False
        """Whether the tables are known to be those of this version."""

    @property
    def idle(self) -> bool:
        return self._engine is None and not self._closed

    async def look(self, look: Callable[[sqlite3.Connection], _T]) -> _T | None:
        def attempt() -> _T:
            from app.store import postgres

            with postgres.looked_into(self._address()) as reader:
                # Written as plain SQL for both: a reader takes the same statements as a file.
                return look(cast("sqlite3.Connection", reader))

        return await self._tried(lambda: anyio.to_thread.run_sync(attempt, abandon_on_cancel=True))

    async def clean(self) -> None:
        """Replace what is a secret by today's table."""
        await self.look(self._scrub)

    async def bring_up(self) -> None:
        await self._tried(self._opened_once)

    async def work(self, work: Callable[[AsyncConnection], Awaitable[_T]]) -> _T | None:
        async def attempt() -> _T:
            engine = await self._opened_once()
            from app.store import postgres
            from app.store.engine import plain_faults

            async def once() -> _T:
                with plain_faults():
                    async with engine.begin() as connection:
                        return await work(connection)

            try:
                return await once()
            except Exception as fault:
                if not postgres.same_moment(fault):
                    raise
            return await once()

        return await self._tried(attempt)

    async def _tried(self, attempt: Callable[[], Awaitable[_T]]) -> _T | None:
        if self._closed or (self.trouble and self._mono() < self._again):
            return None
        done: _T | None = None
        trouble = ""
        # A transaction that has begun is brought to its end, whoever stops waiting for it.
        with anyio.CancelScope(shield=True):
            try:
                with anyio.fail_after(_OPEN_SECONDS if self._engine is None else _WAIT_SECONDS):
                    done = await attempt()
            except Exception as fault:
                trouble = self._said(fault)
        if trouble and not self.trouble:
            logger.warning("saving is off: %s", trouble)
        elif self.trouble and not trouble:
            logger.warning("saving works again")
        self.trouble = trouble
        return done

    def _said(self, fault: Exception) -> str:
        from app.store import postgres

        said = postgres.words(fault)
        if said is None:
            raise fault
        self._again = self._mono() + _REST_SECONDS
        if not self.trouble:
            # The driver names the address and the user, and never the password.
            logger.info("the store: %s: %s", type(fault).__name__, str(fault).partition("\n")[0][:300])
        return said

    async def _opened_once(self) -> AsyncEngine:
        async with self._opening:
            if self._engine is None:
                self._engine = await anyio.to_thread.run_sync(self._made, abandon_on_cancel=True)
            return self._engine

    def _made(self) -> AsyncEngine:
        from app.store import postgres

        url = self._address()
        if not self._up:
            postgres.bring_up(url)
            self._up = True
        return postgres.connected(url)

    def _address(self) -> URL:
        from app.store import postgres

        return postgres.address(self._url)


async def touched(connection: AsyncConnection, what: str) -> None:
    """Tell the other replicas, with this transaction, that something of this kind is another one now."""
    if connection.dialect.name != "postgresql":
        return  # one process has the file for itself, or looks again by itself
    from app.store.team_tables import counters

    done = await connection.execute(counters.update().where(counters.c.name == what).values(value=counters.c.value + 1))
    if not done.rowcount:
        await connection.execute(counters.insert().values(name=what, value=1))


async def counted(connection: AsyncConnection) -> dict[str, Any]:
    """How often things of each kind were changed."""
    from app.store.team_tables import counters

    return {row.name: row.value for row in await connection.execute(counters.select())}
