"""Where people are kept: memory, which answers who somebody is, and below it the file or the store of all replicas.

`app/store/people.py` says what happens to them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import anyio

from app.core.errors import ParleyError, Unavailable
from app.core.people import Login, Person, Token, digest
from app.store.database import Database
from app.store.people_rows import drop, everything, nothing, people_of, row_of
from app.store.shared import touched

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

_T = TypeVar("_T")


class NotSaved(Unavailable):
    """The file could not be written, so nothing happened."""


class Kept:
    """Everybody of this installation, as they are kept."""

    def __init__(
        self, database: Database, wall: Callable[[], float], *, login_seconds: float, idle_seconds: float
    ) -> None:
        self._database, self._wall = database, wall
        self._login_seconds, self._idle_seconds = login_seconds, idle_seconds
        self._people: dict[str, Person] = {}
        self._logins: dict[str, Login] = {}
        self._tokens: dict[str, Token] = {}
        self._by_digest: dict[str, str] = {}
        """The login or token that a digest belongs to."""
        self._revoked: OrderedDict[str, None] = OrderedDict()
        """Digests of tokens that were revoked lately, so that their scripts are told so."""
        self._ended: set[str] = set()
        """Logins that ended here while the store did not answer: nothing brings them back."""
        self._changing = anyio.Lock()
        """One at a time changes somebody here; with other replicas the store keeps them in turn."""

    async def open(self) -> None:
        """Read everybody. Raises NotSaved when the file cannot be used: a team that nobody can enter is no team."""
        await self._done(nothing)  # brings an older file up to date
        found = await self._database.look(everything)
        if found is None:
            raise NotSaved(f"The people of this team cannot be read: {self._database.trouble}")
        self._take(*found)

    async def refresh(self) -> bool:
        """Read everybody again: another replica changed something. Whether that worked."""
        ended = list(self._ended)
        dropped = await self._database.work(lambda connection: drop(connection, "logins", ended)) if ended else False
        if dropped:
            self._ended.difference_update(ended)
        found = await self._database.look(everything)
        if found is not None:
            self._take(*found)
        return found is not None

    async def learn(self, secrets: list[str]) -> None:
        """Somebody comes with secrets that nobody here knows: they may have come in by another replica a moment ago."""
        keys = [key for key in map(digest, secrets[:4]) if key not in self._by_digest]
        if not self._database.is_shared or len(keys) < len(secrets[:4]) or not keys:
            return

        async def read(connection: AsyncConnection) -> bool:
            from sqlalchemy import select

            from app.store.team_tables import logins, tokens

            first = select(logins.c.id).where(logins.c.digest.in_(keys) | logins.c.before.in_(keys))
            second = select(tokens.c.id).where(tokens.c.digest.in_(keys))
            return (await connection.execute(first.union_all(second).limit(1))).first() is not None

        if await self._database.work(read):
            await self.refresh()

    def _take(self, people: list[Person], logins: list[Login], tokens: list[Token]) -> None:
        """What the store has; of a login it knows when it was seen here."""
        seen = {key: one.seen for key, one in self._logins.items()}
        logins = [
            replace(one, seen=max(one.seen, seen.get(one.id, 0.0))) for one in logins if one.id not in self._ended
        ]
        self._people = {one.id: one for one in people}
        now = self._wall()
        self._logins = {one.id: one for one in logins if one.expires > now and one.person in self._people}
        self._tokens = {one.id: one for one in tokens if one.expires > now and one.person in self._people}
        self._by_digest = {one.digest: one.id for one in self._logins.values()}
        self._by_digest |= {one.before: one.id for one in self._logins.values() if one.before}
        self._by_digest |= {one.digest: one.id for one in self._tokens.values()}

    # ---- the file

    async def _decide(self, decide: Callable[[Mapping[str, Person]], Person]) -> Person:
        """Make or change somebody by what the store has at this moment: another replica may have changed the same
        person a moment ago, or the last other admin. Only what `decide` changes is written. Raises what it raises."""

        async def write(connection: AsyncConnection) -> tuple[dict[str, Person], Person | ParleyError]:
            from app.store.team_tables import people

            await touched(connection, "people")  # whoever else changes somebody waits here
            found = {one.id: one for one in await people_of(connection)}
            try:
                made = decide(found)
            except ParleyError as no:
                return found, no
            row, before = row_of(made), found.get(made.id)
            if before is None:
                await connection.execute(people.insert().values(row))
            elif new := {key: value for key, value in row.items() if value != getattr(before, key)}:
                await connection.execute(people.update().where(people.c.id == made.id).values(new))
            return {**found, made.id: made}, made

        async with self._changing:
            found, made = await self._done(write)
            seen = {key: one.seen for key, one in self._people.items()}
            self._people = {key: replace(one, seen=max(one.seen, seen.get(key, 0.0))) for key, one in found.items()}
        if isinstance(made, ParleyError):
            raise made
        return made

    def _forget(self, one: Login | Token | None) -> None:
        if one is not None:
            self._by_digest.pop(one.digest, None)
            if isinstance(one, Login):
                self._by_digest.pop(one.before, None)

    async def _write(self, table: str, one: Login | Token) -> None:
        row = row_of(one)

        async def write(connection: AsyncConnection) -> bool:
            from app.store.tables import metadata

            where = metadata.tables[table]
            changed = await connection.execute(where.update().where(where.c.id == row["id"]).values(row))
            if not changed.rowcount:
                await connection.execute(where.insert().values(row))
            await touched(connection, "people")
            return True

        await self._done(write)

    async def _seen(self, table: str, key: str, at: float) -> None:
        """When somebody was seen is nothing that other replicas have to hear of."""

        async def write(connection: AsyncConnection) -> bool:
            from app.store.tables import metadata

            where = metadata.tables[table]
            await connection.execute(where.update().where(where.c.id == key).values(seen=at))
            return True

        await self._done(write)

    async def _drop(self, table: str, keys: list[str]) -> None:
        if await self._done(lambda connection: drop(connection, table, keys)) and table == "logins":
            self._ended.difference_update(keys)

    async def _done(self, work: Callable[[AsyncConnection], Awaitable[_T]]) -> _T:
        done = await self._database.work(work)
        if done is None:
            raise NotSaved(f"This could not be saved: {self._database.trouble or 'there is no data directory.'}")
        return done
