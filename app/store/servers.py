"""What a target led to the last time: the name of the server, its tools, its revision, when it was seen.

It stands in a table of its own, by the id of the target: what never led to a server has no row there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from app.core.times import LAST_MOMENT

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.ext.asyncio import AsyncConnection

MOST: Final = 100
"""Targets kept for each identity that nobody saved and that led to a server."""
NAME: Final = 200
_QUERY: Final = "SELECT target, name, tools, revision, seen FROM servers ORDER BY seen DESC LIMIT 10000"


@dataclass(slots=True, frozen=True)
class Server:
    """What a target led to. What is not known is empty."""

    seen: float
    name: str = ""
    revision: str = ""
    tools: int | None = None

    def after(self, before: Server | None) -> Server:
        """This, with what was known before in the place of what is not known now."""
        if before is None:
            return self
        tools = before.tools if self.tools is None else self.tools
        return replace(self, name=self.name or before.name, revision=self.revision or before.revision, tools=tools)


def named(value: object) -> str:
    """The name that a server gives itself, on one line and not longer than a row."""
    return " ".join(value[: 4 * NAME].split())[:NAME] if isinstance(value, str) else ""


# -------------------------------------------------------------------------------------------------------- statements


async def put(connection: AsyncConnection, target: str, server: Server | None) -> None:
    """What a target led to; None for nothing, or for a target that is gone."""
    from sqlalchemy import delete, insert

    from app.store.tables import servers

    await connection.execute(delete(servers).where(servers.c.target == target))
    if server is not None:
        row = {"name": server.name, "tools": server.tools, "revision": server.revision, "seen": server.seen}
        await connection.execute(insert(servers).values(target=target, **row))


async def thin_out(connection: AsyncConnection, owner: str, recent: int) -> None:
    """Leave the newest of what nobody saved: so many that led to a server, so many that did not. By what stands in the
    file: another Parley may have written there what this one has never seen."""
    from sqlalchemy import delete, select

    from app.store.tables import servers, targets

    mine = (targets.c.owner == owner) & (targets.c.name == "")
    reached = targets.c.id.in_(select(servers.c.target))
    for which, most in ((mine & reached, MOST), (mine & ~reached, recent)):
        newest = select(targets.c.id).where(which).order_by(targets.c.used.desc()).limit(most)
        await connection.execute(delete(targets).where(which, targets.c.id.not_in(newest)))
    await connection.execute(delete(servers).where(servers.c.target.not_in(select(targets.c.id))))


# -------------------------------------------------------------------------------- the file as it is found, in a thread


def read(file: sqlite3.Connection) -> dict[str, Server] | None:
    """What each target of a file led to. None for a file that is older than the table: there each one may have."""
    from app.store import sqlite

    if not sqlite.has(file, "servers"):
        return None
    return {
        target: Server(seen if 0 <= seen <= LAST_MOMENT else 0.0, named(name), named(revision), tools)
        for target, name, tools, revision, seen in file.execute(_QUERY).fetchall()
    }
