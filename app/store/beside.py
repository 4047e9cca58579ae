"""What is kept beside a target, and goes with it: saved requests, answer rules.

As with targets, memory is the truth while Parley runs, and the file follows it. Who forgets a target may take that back
for a moment, so what belongs to it goes a moment later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from app import bounds
from app.core.errors import Gone
from app.store.database import Database
from app.store.shared import touched

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.ext.asyncio import AsyncConnection


class One(Protocol):
    """One of them."""

    @property
    def id(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def owner(self) -> str: ...


Kept = TypeVar("Kept", bound=One)


class Beside(Generic[Kept]):
    """All of one kind, of this installation."""

    table: ClassVar[str]
    gone: ClassVar[str]
    """What to say of one that is not there any more."""

    def __init__(self, database: Database, wall: Callable[[], float], targets: Callable[[], Iterable[str]]) -> None:
        self._database, self._wall, self._targets = database, wall, targets
        self._kept: dict[str, Kept] = {}
        self._alone: dict[str, float] = {}
        """Targets that are gone and have some, and since when that is known."""

    def row(self, one: Kept) -> dict[str, Any]:
        """What of one is written."""
        raise NotImplementedError

    def find(self, owner: str, target: str, key: str) -> Kept | None:
        """One of a target; somebody else's is as unknown as one that never was (S15)."""
        found = self._kept.get(key)
        return found if found is not None and (found.owner, found.target) == (owner, target) else None

    def mine(self, one: Kept) -> Kept:
        """The same as it is kept now. Raises Gone when it is not any more."""
        if one.id not in self._kept:
            raise Gone(self.gone)
        return self._kept[one.id]

    async def put(self, one: Kept) -> None:
        """Keep one, and bring it to disk."""
        self._kept[one.id] = one
        row = self.row(one)
        await self._database.work(lambda connection: _write(connection, self.table, row))

    async def delete(self, one: Kept) -> None:
        """Forget it. Raises Gone when it is not kept any more."""
        await self._forget([self.mine(one).id])

    async def sweep(self) -> None:
        """Forget those of targets that have been gone for a while: until then they could come back."""
        known, now = set(self._targets()), self._wall()
        alone = {one.target for one in self._kept.values()} - known
        self._alone = {target: self._alone.get(target, now) for target in alone}
        over = {target for target, since in self._alone.items() if now - since > bounds.REQUESTS_OUTLIVE_SECONDS}
        if gone := [one.id for one in self._kept.values() if one.target in over]:
            await self._forget(gone)

    async def _forget(self, keys: list[str]) -> None:
        for key in keys:
            del self._kept[key]
        await self._database.work(lambda connection: _delete(connection, self.table, keys))

    def renew(self, found: Iterable[Kept]) -> None:
        """What all replicas have, in the place of what was known here."""
        self._kept = {one.id: one for one in found}

    def take(self, found: Iterable[Kept]) -> None:
        """Take over what the file has; what was saved meanwhile stays."""
        for one in found:
            self._kept.setdefault(one.id, one)


Rows = Callable[[list[tuple[Any, ...]]], Iterator[tuple[Kept, bool]]]
"""Each row that makes sense, and whether it holds what is a secret by today's table; read in a thread."""


def read(file: sqlite3.Connection, table: str, query: str, rows: Rows[Kept]) -> tuple[list[Kept], bool]:
    """What a table has, without secrets; and whether any row held one. Nothing where a file has no such table."""
    from app.store import sqlite

    found = list(rows(sqlite.rows(file, table, query)))
    return [one for one, _ in found], any(stale for _, stale in found)


def scrub(file: sqlite3.Connection, query: str, stale: list[tuple[Any, ...]]) -> bool:
    """Write rows again that hold what is a secret by today's table; whether there were any."""
    if stale:
        file.executemany(query, stale)
    return bool(stale)


def pointers(text: str) -> tuple[str, ...]:
    """What a column of pointers says; nothing when it cannot be read."""
    try:
        return tuple(str(one) for one in json.loads(text))
    except (ValueError, TypeError):
        return ()


async def _write(connection: AsyncConnection, name: str, row: dict[str, Any]) -> None:
    from sqlalchemy import insert, update

    from app.store.tables import metadata

    table = metadata.tables[name]
    changed = await connection.execute(update(table).where(table.c.id == row["id"]).values(row))
    if not changed.rowcount:
        await connection.execute(insert(table).values(row))
    await touched(connection, name)


async def _delete(connection: AsyncConnection, name: str, keys: list[str]) -> None:
    from sqlalchemy import delete

    from app.store.tables import metadata

    table = metadata.tables[name]
    await connection.execute(delete(table).where(table.c.id.in_(keys)))
    await touched(connection, name)
