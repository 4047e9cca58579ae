"""Who did what, and when, in a team. No payloads: an entry has the name of a person, an act, and names of things.

Written a moment later, many at once, so that nobody waits for it; what could not be written stays in memory up to a
bound, and how many entries were lost then is an entry itself. Imported by team mode alone.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

import anyio

from app import secrecy
from app import team_bounds as bounds
from app.core.times import wire_time
from app.store.database import Database

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

Act = Literal[
    "signed in",
    "signed out",
    "was refused",
    "invited",
    "revoked an invitation",
    "changed a role",
    "switched off",
    "switched on",
    "connected",
    "disconnected",
    "called",
    "answered",
    "changed the catalogue",
    "shared",
    "joined",
    "revoked a share",
    "handed over",
    "made a token",
    "revoked a token",
    "lost entries",
]
ACTS: Final[tuple[Act, ...]] = get_args(Act)


@dataclass(slots=True, frozen=True)
class Entry:
    """One line."""

    at: float
    person: str
    """The id; empty for nobody we know."""
    who: str
    act: Act
    what: str
    refused: bool = False
    id: int = 0

    def line(self) -> str:
        """As a line of JSON."""
        return json.dumps({"at": wire_time(self.at), **{key: value for key, value in asdict(self).items() if key not in
                           ("at", "id")}}, ensure_ascii=False)  # fmt: skip


class Audit:
    """The log of one installation."""

    def __init__(self, database: Database, wall: Callable[[], float], *, days: float = bounds.AUDIT_DAYS) -> None:
        self._database, self._wall, self._days = database, wall, days
        self._waiting: deque[Entry] = deque()
        self._lost = 0
        self._one = anyio.Lock()
        """One at a time brings what waits to the file."""

    def note(self, person: str, who: str, act: Act, what: str = "", *, refused: bool = False) -> None:
        """Write something down. `what` has names; a name that a server chose is one line, and holds no secret."""
        if len(self._waiting) >= bounds.AUDIT_WAITING:
            self._lost += 1
            return
        self._waiting.append(Entry(self._wall(), person, plain(who), act, plain(what), refused))

    async def flush(self) -> bool:
        """Bring to the file what waits; whether all of it is there."""
        async with self._one:
            return await self._flush()

    async def _flush(self) -> bool:
        if self._lost and len(self._waiting) < bounds.AUDIT_WAITING:
            lost, self._lost = self._lost, 0
            self._waiting.append(Entry(self._wall(), "", "Parley", "lost entries", f"{lost} could not be written"))
        rows = [_row(one) for one in list(self._waiting)[: bounds.AUDIT_AT_ONCE]]
        if not rows:
            return True

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import audit

            await connection.execute(audit.insert(), rows)
            return True

        if not await self._database.work(write):
            return False
        for _ in rows:
            self._waiting.popleft()
        return not self._waiting

    async def sweep(self) -> None:
        """Forget what is older than the time that entries are kept, and the oldest of too many."""
        before = self._wall() - self._days * 86_400

        async def write(connection: AsyncConnection) -> bool:
            from sqlalchemy import delete, func, select

            from app.store.team_tables import audit

            await connection.execute(delete(audit).where(audit.c.at < before))
            newest = (await connection.execute(select(func.max(audit.c.id)))).scalar() or 0
            await connection.execute(delete(audit).where(audit.c.id <= newest - bounds.AUDIT_ROWS))
            return True

        await self._database.work(write)

    async def search(
        self, words: str = "", act: str = "", since: float = 0.0, before: int = 0, most: int = bounds.AUDIT_PAGE
    ) -> list[Entry]:
        """What matches, the newest first: each of the words in a name, an act or a thing. `before` goes on after the
        last one that was shown."""
        await self.flush()

        async def read(connection: AsyncConnection) -> list[Entry]:
            from sqlalchemy import select

            from app.store.team_tables import audit

            where = _matching(words, act, since)
            where += [audit.c.id < before] if before else []
            query = select(audit).where(*where).order_by(audit.c.id.desc()).limit(most)
            rows = (await connection.execute(query)).mappings()
            return [Entry(**{**row, "refused": bool(row["refused"])}) for row in rows]

        return await self._database.work(read) or []

    async def count(self, words: str = "", act: str = "", since: float = 0.0) -> int:
        """How many entries match."""

        async def read(connection: AsyncConnection) -> int:
            from sqlalchemy import func, select

            from app.store.team_tables import audit

            query = select(func.count()).select_from(audit).where(*_matching(words, act, since))
            return int((await connection.execute(query)).scalar_one())

        return await self._database.work(read) or 0

    async def used(self, person: str, most: int = bounds.RECENT_SERVERS) -> list[str]:
        """The names of the servers that somebody connected to, the last one first."""
        await self.flush()

        async def read(connection: AsyncConnection) -> list[str]:
            from sqlalchemy import func, select

            from app.store.team_tables import audit

            since = self._wall() - bounds.RECENT_DAYS * 86_400
            mine = (audit.c.at >= since, audit.c.person == person, audit.c.act == "connected")
            last = func.max(audit.c.id)
            query = select(audit.c.what).where(*mine).group_by(audit.c.what).order_by(last.desc()).limit(most)
            return list((await connection.execute(query)).scalars())

        return await self._database.work(read) or []

    async def export(self, words: str = "", act: str = "", since: float = 0.0) -> AsyncIterator[str]:
        """All that matches as lines of JSON, the newest first, page by page."""
        before = 0
        while found := await self.search(words, act, since, before, bounds.AUDIT_AT_ONCE):
            for one in found:
                yield one.line() + "\n"
            before = found[-1].id


def _matching(words: str, act: str, since: float) -> list[ColumnElement[bool]]:
    from sqlalchemy import or_

    from app.store.team_tables import audit

    where: list[ColumnElement[bool]] = [audit.c.at >= since]
    where += [audit.c.act == act] if act else []
    for word in words.split()[: bounds.AUDIT_WORDS]:
        found = (column.icontains(word, autoescape=True) for column in (audit.c.who, audit.c.act, audit.c.what))
        where.append(or_(*found))
    return where


def plain(text: str) -> str:
    """A name as it may be written down: one line, nothing that a terminal would obey, no secret."""
    shown = "".join(char if char.isprintable() else " " for char in text[: 4 * bounds.AUDIT_TEXT])
    return secrecy.masked(" ".join(shown.split()))[: bounds.AUDIT_TEXT]


def _row(one: Entry) -> dict[str, object]:
    return {key: value for key, value in asdict(one).items() if key not in ("id", "refused")} | {
        "refused": int(one.refused)
    }
