"""How often people did something on each replica, so that a limit of a minute holds for all of them together.

Told and asked once a second, behind everything: no call waits for it, and when the store does not answer each replica
counts for itself. Times are those of the store, in slots of some seconds; one counts until its last moment is over.
Imported by team mode alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from app import team_bounds as bounds
from app.core.rate import SharedRate
from app.store.database import Database

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection


class Used:
    """The counts of one replica, and those of the others."""

    def __init__(self, database: Database, replica: str, seconds: float = 60.0) -> None:
        self._database, self._replica, self._seconds = database, replica, seconds

    async def exchange(
        self,
        rates: Mapping[str, SharedRate],
        now: Callable[[AsyncConnection], Awaitable[float]],
        *,
        sweep: bool = False,
    ) -> bool:
        """Tell what was done here, and hear what was done elsewhere; whether that worked. `now` is the clock of all."""
        untold = {kind: rate.untold() for kind, rate in rates.items()}

        async def write(connection: AsyncConnection) -> list[tuple[str, str, float, int]]:
            from sqlalchemy import func, select

            from app.store.team_tables import used

            moment = await now(connection)
            counts = Counter((kind, key, _slot(moment - age)) for kind, done in untold.items() for age, key in done)
            for (kind, key, slot), many in sorted(counts.items()):
                mine = (used.c.kind == kind) & (used.c.key == key) & (used.c.slot == slot)
                mine &= used.c.replica == self._replica
                done = await connection.execute(used.update().where(mine).values(many=used.c.many + many))
                if not done.rowcount:
                    row = {"kind": kind, "key": key, "replica": self._replica, "slot": slot, "many": many}
                    await connection.execute(used.insert().values(row))
            oldest = _slot(moment - self._seconds)
            if sweep:
                await connection.execute(used.delete().where(used.c.slot < oldest - 1))
            query = (
                select(used.c.kind, used.c.key, used.c.slot, func.sum(used.c.many))
                .where(used.c.replica != self._replica, used.c.slot >= oldest)
                .group_by(used.c.kind, used.c.key, used.c.slot)
                .limit(bounds.USED_ROWS)
            )
            rows = (await connection.execute(query)).all()
            return [
                (kind, key, (slot + 1) * bounds.USED_SLOT + self._seconds - moment, int(many))
                for kind, key, slot, many in rows
            ]

        found = await self._database.work(write)
        if found is None:
            return False
        for kind, rate in rates.items():
            rate.told(len(untold[kind]))
            rate.hear((key, left, many) for of, key, left, many in found if of == kind)
        return True


def _slot(moment: float) -> int:
    return int(moment // bounds.USED_SLOT)
