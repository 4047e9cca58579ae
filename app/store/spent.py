"""What counts once, on whichever replica it comes first. Of each only a digest is kept, for as long as somebody could
come with it again. Imported by team mode alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.core.people import digest
from app.store.database import Database
from app.store.people import NotSaved

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection


class Spent:
    """All of it."""

    def __init__(self, database: Database, wall: Callable[[], float]) -> None:
        self._database, self._wall = database, wall

    async def once(self, what: str, seconds: float) -> bool:
        """Whether this comes for the first time; what is older than so many seconds is forgotten. Raises NotSaved when
        that cannot be known."""
        key, now = digest(what), self._wall()

        async def write(connection: AsyncConnection) -> bool:
            from sqlalchemy import select

            from app.store.team_tables import spent

            # Clocks of replicas differ a little: nothing is forgotten too early for that.
            await connection.execute(spent.delete().where(spent.c.at < now - 2 * seconds))
            if (await connection.execute(select(spent.c.at).where(spent.c.digest == key))).first() is not None:
                return False
            # Of two replicas at the same moment one is refused here, tries again, and finds it spent.
            await connection.execute(spent.insert().values(digest=key, at=now))
            return True

        done = await self._database.work(write)
        if done is None:
            raise NotSaved(f"Nobody can sign in now: {self._database.trouble}")
        return done
