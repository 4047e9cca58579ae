"""What people of a team share with each other: grants by name, and links with an end.

Memory answers for every request; the file is written first, and what could not be written did not happen, except for
what is taken away: that ends at once, whatever the disk says. Of a link the file has a digest only. Imported by team
mode alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from app import team_bounds as bounds
from app.core.errors import Gone, NotAllowed
from app.core.people import digest, new_secret
from app.core.shares import May, Share, Thing
from app.store.database import Database
from app.store.people import NotSaved
from app.store.shared import touched

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.ext.asyncio import AsyncConnection


class Shares:
    """All of them."""

    def __init__(self, database: Database, wall: Callable[[], float]) -> None:
        self._database, self._wall = database, wall
        self._kept: dict[str, Share] = {}
        self._late: set[str] = set()
        """What was taken away and could not be written yet."""

    async def open(self) -> None:
        """Read what there is."""
        found = await self._database.look(_read)
        if found is not None:
            self._kept = {one.id: one for one in found if one.id not in self._late}

    async def learn(self, *, thing: str = "", code: str = "") -> None:
        """Somebody comes for a thing, or by a link, that another replica has perhaps shared a moment ago."""
        if not self._database.is_shared:
            return

        async def read(connection: AsyncConnection) -> list[Share]:
            from app.store.team_tables import shares

            wanted = shares.c.digest == digest(code) if code else shares.c.thing == thing
            rows = (
                await connection.execute(shares.select().where(wanted).limit(bounds.SHARES_PER_THING * 2))
            ).mappings()
            return [Share(**{name: row[name] for name in Share.__dataclass_fields__}) for row in rows]

        found = await self._database.work(read)
        self._kept |= {one.id: one for one in found or () if one.id not in self._late}

    # ---- what there is

    def may(self, person: str, thing: str) -> May | None:
        """What somebody may do with a thing that is not theirs; the most of several."""
        now = self._wall()
        found = {one.may for one in self._kept.values() if (one.thing, one.person) == (thing, person) and one.open(now)}
        return "answer" if "answer" in found else "watch" if found else None

    def of(self, thing: str) -> list[Share]:
        """The grants and links of a thing, in the order in which they were made; also links that were over lately."""
        since = self._wall() - bounds.SHARES_KEPT_SECONDS
        mine = (one for one in self._kept.values() if one.thing == thing)
        return sorted((one for one in mine if _shown(one, self._wall(), since)), key=lambda one: one.made)

    def with_person(self, person: str) -> list[Share]:
        """What others share with somebody, the newest first."""
        now = self._wall()
        mine = (one for one in self._kept.values() if one.person == person and one.open(now))
        return sorted(mine, key=lambda one: -one.made)

    def by_code(self, code: str) -> Share | None:
        """The link that has this code, while it lets somebody in."""
        key = digest(code)
        return next((one for one in self._kept.values() if one.digest == key and one.open(self._wall())), None)

    # ---- giving

    async def give(
        self, kind: Thing, thing: str, may: May, person: str, by: str, *, link: Share | None = None
    ) -> Share:
        """Let somebody look, or answer; what they were given before in the same way is replaced. Raises NotAllowed,
        NotSaved."""
        came = "" if link is None else link.id
        before = [one for one in self._kept.values() if (one.thing, one.person, one.link) == (thing, person, came)]
        expires = None if link is None else link.expires
        known = before[0] if before else self._new(kind, thing, may, person, by)
        made = replace(known, may=may, by=by, link=came, expires=expires)
        await self._put(made)
        return made

    async def make_link(self, kind: Thing, thing: str, may: May, by: str, seconds: float) -> tuple[str, Share]:
        """A link for anybody of the team: its code, which is shown once, and what is kept of it. Raises NotAllowed,
        NotSaved."""
        code, made = new_secret(), self._new(kind, thing, may, "", by)
        made = replace(made, digest=digest(code), expires=made.made + seconds)
        await self._put(made)
        return code, made

    def _new(self, kind: Thing, thing: str, may: May, person: str, by: str) -> Share:
        many = sum(one.thing == thing for one in self._kept.values())
        if many >= bounds.SHARES_PER_THING or len(self._kept) >= bounds.SHARES:
            raise NotAllowed("It is shared in as many ways as there may be. Revoke one first.")
        return Share("h" + secrets.token_urlsafe(9), thing, kind, may, person, "", "", by, self._wall())

    # ---- taking away

    async def revoke(self, thing: str, key: str) -> list[Share]:
        """Take something away at once; of a link also from everybody who came by it. What ended. Raises Gone."""
        found = self._kept.get(key)
        if found is None or found.thing != thing or found.revoked is not None:
            raise Gone("That was revoked already, or its time is over.")
        ended = [found, *(one for one in self._kept.values() if one.link == key)]
        for one in ended:
            if one.is_link:
                self._kept[one.id] = replace(one, revoked=self._wall())
            else:
                del self._kept[one.id]
        await self._follow([one.id for one in ended])
        return ended

    async def forget(self, thing: str, person: str | None = None) -> list[Share]:
        """Take away all that was shared of a thing, or with one person; what that was."""
        ended = [one for one in self._kept.values() if one.thing == thing and person in {None, one.person}]
        for one in ended:
            del self._kept[one.id]
        await self._follow([one.id for one in ended])
        return ended

    async def over(self) -> list[Share]:
        """Let go of grants whose time is over, and of what nobody is shown any more; the grants that ended now."""
        now = self._wall()
        since = now - bounds.SHARES_KEPT_SECONDS
        gone = [one for one in self._kept.values() if not _shown(one, now, since)]
        for one in gone:
            del self._kept[one.id]
        if gone or self._late:
            await self._follow([*(one.id for one in gone), *self._late])
        return [one for one in gone if not one.is_link]

    # ---- the file

    async def _put(self, share: Share) -> None:
        row = asdict(share)

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import shares

            changed = await connection.execute(shares.update().where(shares.c.id == share.id).values(row))
            if not changed.rowcount:
                await connection.execute(shares.insert().values(row))
            await touched(connection, "shares")
            return True

        if not await self._database.work(write):
            raise NotSaved(f"This could not be saved: {self._database.trouble or 'there is no data directory.'}")
        self._kept[share.id] = share

    async def _follow(self, keys: list[str]) -> None:
        """Bring to the file what has become of these."""
        rows: dict[str, dict[str, Any]] = {key: asdict(self._kept[key]) for key in keys if key in self._kept}

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import shares

            await connection.execute(shares.delete().where(shares.c.id.in_(keys)))
            if rows:
                await connection.execute(shares.insert(), list(rows.values()))
            await touched(connection, "shares")
            return True

        if await self._database.work(write):
            self._late -= {*keys}
        else:
            self._late |= {*keys}


def _shown(one: Share, now: float, since: float) -> bool:
    """Whether it is still listed: a grant while it works, a link for a while longer."""
    if one.kind == "session" and one.made < now - bounds.SESSION_SHARES_SECONDS:
        return False
    ended = one.revoked if one.revoked is not None else one.expires
    return one.open(now) or (one.is_link and ended is not None and ended > since)


def _read(file: sqlite3.Connection) -> list[Share]:
    from app.store import sqlite

    names = list(Share.__dataclass_fields__)
    columns = ", ".join('"' + name + '"' for name in names)
    query = f"SELECT {columns} FROM shares LIMIT 100000"  # noqa: S608
    return [Share(**dict(zip(names, row, strict=True))) for row in sqlite.rows(file, "shares", query)]
