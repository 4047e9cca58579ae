"""How often people did something on each replica, so that a limit of a minute holds for all of them together.

Told and asked once a second, behind everything: no call waits for it, and when the store does not answer each replica
counts for itself. Times are those of the store, in slots of some seconds; one counts until its last moment is over.
Imported by team mode alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from app import team_bounds as bounds
from app.core.rate import SharedRate
from app.store.database import Database

if TYPE_CHECKING:
    from sqlalchemy import Executable
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
            rows = [
                {"kind": kind, "key": key, "replica": self._replica, "slot": slot, "many": many}
                for kind, done in untold.items()
                for (key, slot), many in _most((key, _slot(moment - age)) for age, key in done)
            ]
            for at in range(0, len(rows), bounds.USED_TOLD):
                await connection.execute(_added(connection.dialect.name, rows[at : at + bounds.USED_TOLD]))
            oldest = _slot(moment - self._seconds)
            if sweep:
                await connection.execute(used.delete().where(used.c.slot < oldest - 1))
            query = (
                select(used.c.kind, used.c.key, used.c.slot, func.sum(used.c.many))
                .where(used.c.replica != self._replica, used.c.slot >= oldest)
                .group_by(used.c.kind, used.c.key, used.c.slot)
                .order_by(func.sum(used.c.many).desc())
                .limit(bounds.USED_ROWS)
            )
            return [
                (kind, key, (slot + 1) * bounds.USED_SLOT + self._seconds - moment, int(many))
                for kind, key, slot, many in (await connection.execute(query)).all()
            ]

        found = await self._database.work(write)
        if found is None:
            return False
        for kind, rate in rates.items():
            rate.told(len(untold[kind]))
            rate.hear((key, left, many) for of, key, left, many in found if of == kind)
        return True


def _most(done: Iterable[tuple[str, int]]) -> list[tuple[tuple[str, int], int]]:
    """How often each was done, of those that matter for a limit: a crowd that does little is not worth a row each."""
    return sorted(Counter(done).most_common(bounds.USED_TOLD))


def _added(dialect: str, rows: list[dict[str, Any]]) -> Executable:
    """Add these counts to those that are there, all at once: a statement for each would hold the store up."""
    from sqlalchemy.dialects import postgresql, sqlite

    from app.store.team_tables import used

    insert = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(used).values(rows)
    return insert.on_conflict_do_update(
        index_elements=["kind", "key", "replica", "slot"], set_={"many": used.c.many + insert.excluded.many}
    )


def _slot(moment: float) -> int:
    return int(moment // bounds.USED_SLOT)
