"""The entries of the catalogue that admins keep on the page. What the settings file lists is not here.

No secret is among them: a value that an admin gives stands in a file of its own, or encrypted beside them. Imported by
team mode alone.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pydantic import ValidationError

from app import team_bounds as bounds
from app.core.catalogue import Entry
from app.core.errors import NotAllowed
from app.store.database import Database
from app.store.people import NotSaved
from app.store.shared import touched

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.ext.asyncio import AsyncConnection

_QUERY = "SELECT id, entry FROM catalogue ORDER BY position, id LIMIT 10000"
logger = logging.getLogger("parley.store")


class Entries:
    """All of them."""

    def __init__(self, database: Database, wall: Callable[[], float]) -> None:
        self._database, self._wall = database, wall
        self._kept: dict[str, Entry] = {}

    async def open(self) -> None:
        """Read what there is."""
        self._kept = {one.id: one for one in await self._database.look(_read) or ()}

    def all(self) -> list[Entry]:
        return list(self._kept.values())

    async def put(self, entry: Entry, by: str) -> None:
        """Keep an entry, in the place of the one with its id, else as the last. Raises NotAllowed, NotSaved."""
        if entry.id not in self._kept and len(self._kept) >= bounds.ENTRIES:
            raise NotAllowed(f"The catalogue has {bounds.ENTRIES} entries, which is the limit. Delete one first.")
        row = {"id": entry.id, "entry": entry.model_dump_json(exclude_unset=True), "by": by, "changed": self._wall()}
        last = len(self._kept)

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import catalogue

            changed = await connection.execute(catalogue.update().where(catalogue.c.id == entry.id).values(row))
            if not changed.rowcount:
                await connection.execute(catalogue.insert().values({**row, "position": last}))
            await touched(connection, "catalogue")
            return True

        await self._done(write)
        self._kept[entry.id] = entry

    async def delete(self, key: str) -> bool:
        """Take an entry out; whether it was there. Raises NotSaved."""

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import catalogue

            await connection.execute(catalogue.delete().where(catalogue.c.id == key))
            await touched(connection, "catalogue")
            return True

        if key not in self._kept:
            return False
        await self._done(write)
        del self._kept[key]
        return True

    async def move(self, key: str, by: int) -> bool:
        """Let an entry stand so many places further down, or up; whether that changed anything. Raises NotSaved."""
        order = list(self._kept)
        if key not in order:
            return False
        at = order.index(key)
        to = min(max(at + by, 0), len(order) - 1)
        order.insert(to, order.pop(at))

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import catalogue

            for position, each in enumerate(order):
                await connection.execute(catalogue.update().where(catalogue.c.id == each).values(position=position))
            await touched(connection, "catalogue")
            return True

        if to == at:
            return False
        await self._done(write)
        self._kept = {each: self._kept[each] for each in order}
        return True

    async def _done(self, write: Callable[[AsyncConnection], Awaitable[bool]]) -> None:
        if not await self._database.work(write):
            raise NotSaved(f"This could not be saved: {self._database.trouble}")


def _read(file: sqlite3.Connection) -> list[Entry]:
    from app.store import sqlite

    found = []
    for key, text in sqlite.rows(file, "catalogue", _QUERY):
        try:
            found.append(Entry.model_validate_json(text))
        except ValidationError as fault:
            words = fault.errors(include_url=False, include_input=False)[0]["msg"]
            logger.warning("the entry %s of the catalogue cannot be used and is left out: %s", key, words)
    return found
