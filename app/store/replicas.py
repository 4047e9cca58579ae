"""The processes that serve one team, and which sessions each of them holds.

A replica has a name and renews its row every few seconds; one that has not for a while is dead, and what it held is
lost: others show that, with its history, and never act in its place. All by the clock of the store. Imported by team
mode alone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from app import team_bounds as bounds
from app.core.options import Options
from app.core.targets import AnyTarget, Target
from app.store.database import Database
from app.store.kept import without_secrets
from app.store.people import NotSaved
from app.store.shared import counted
from app.store.used import Used

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

logger = logging.getLogger("parley.store")
_target: TypeAdapter[AnyTarget] = TypeAdapter(Target)
_T = TypeVar("_T")
Taking = Literal["taken", "again", "alive", "gone"]
"""What came of taking up something of a lost session: it is ours to go on with, somebody else has it already, the
session may still live, nobody knows of it."""


@dataclass(slots=True, frozen=True)
class Replica:
    """One process."""

    name: str
    run: str
    """Tells it from the one before with the same name."""
    state: str
    """`serving`, `draining` or `ended`."""
    version: str
    began: float
    renewed: float
    sessions: int = 0
    wanted: str = ""
    """`drain` when an admin wants it to take in nobody."""
    alive: bool = True


@dataclass(slots=True, frozen=True)
class HeldSession:
    """One session of some replica, as all of them know it."""

    id: str
    owner: str
    replica: str
    run: str
    label: str
    state: str
    target: str
    options: str
    missing: str
    recording: str
    asks: int
    calls: int
    messages: int
    began: float
    changed: float
    lost: float | None = None
    """When its replica was last heard of; None while that lives."""
    unfinished: str = field(default="", repr=False)
    """What was under way in it and can go on elsewhere, sealed; empty for nothing."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Secrets that have to be typed again before somebody connects anew."""
        return tuple(str(one) for one in json.loads(self.missing))

    def aim(self) -> tuple[AnyTarget, Options] | None:
        """Where it led, without secrets; None when that cannot be read any more."""
        try:
            return _target.validate_json(self.target), Options.model_validate_json(self.options)
        except ValidationError:
            return None


def aimed(target: AnyTarget, options: Options) -> tuple[str, str, str]:
    """What of a target stands in the row of a session: itself, its options, and what was left out."""
    plain, missing = without_secrets(target)
    said = options.model_dump_json(exclude_defaults=True, exclude={"meta"})
    return plain.model_dump_json(), said, json.dumps(missing)


class Replicas:
    """All of them, seen by one."""

    def __init__(self, database: Database, name: str, run: str, version: str, wall: Callable[[], float]) -> None:
        self._database, self.name, self.run, self._version, self._wall = database, name, run, version, wall
        self.used = Used(database, name)

    async def now(self, connection: AsyncConnection) -> float:
        """The clock that all of them share."""
        if connection.dialect.name != "postgresql":
            return self._wall()
        from sqlalchemy import func, select

        return float((await connection.execute(select(func.extract("epoch", func.clock_timestamp())))).scalar_one())

    # ---- leases

    async def holder(self) -> Replica | None:
        """Another process that has this name and lives. One file serves one process, which has its port."""
        if not self._database.is_shared:
            return None
        found = await self.all()
        return next((one for one in found or () if one.name == self.name and one.run != self.run and one.alive), None)

    async def all(self) -> list[Replica] | None:
        """Every replica that was ever heard of; None when the store does not answer."""

        async def read(connection: AsyncConnection) -> list[Replica]:
            return await self._read(connection, await self.now(connection))

        return await self._database.work(read)

    async def _read(self, connection: AsyncConnection, now: float) -> list[Replica]:
        from app.store.team_tables import replicas

        rows = (await connection.execute(replicas.select().order_by(replicas.c.name))).mappings()
        return [
            _known(Replica, {**row, "alive": row["state"] != "ended" and now - row["renewed"] < bounds.LEASE_SECONDS})
            for row in rows
        ]

    async def renew(self, state: str, sessions: int, began: float) -> list[Replica] | None:
        """Live on; and of those who do not any more, say that their sessions are lost. None as with `all`."""

        async def write(connection: AsyncConnection) -> list[Replica]:
            from app.store.team_tables import replicas

            now = await self.now(connection)
            row = {"run": self.run, "state": state, "version": self._version, "renewed": now, "sessions": sessions}
            mine = replicas.c.name == self.name
            done = await connection.execute(
                replicas.update().where(mine, replicas.c.run == self.run).values(**row, began=began)
            )
            if not done.rowcount:  # a new process of this name; what was wanted of the last one is over
                changed = await connection.execute(replicas.update().where(mine).values(**row, began=began, wanted=""))
                if not changed.rowcount:
                    await connection.execute(replicas.insert().values(name=self.name, **row, began=began, wanted=""))
            await self._lose(connection, now)
            return await self._read(connection, now)

        return await self._database.work(write)

    async def _lose(self, connection: AsyncConnection, now: float) -> None:
        """Sessions whose process is gone are lost, since it was last heard of; so are recordings of theirs cut."""
        from sqlalchemy import case, func, select

        from app.store.tables import recordings
        from app.store.team_tables import replicas, sessions

        living = select(replicas.c.name).where(
            replicas.c.name == sessions.c.replica,
            replicas.c.run == sessions.c.run,
            replicas.c.state != "ended",
            replicas.c.renewed > now - bounds.LEASE_SECONDS,
        )
        heard = (
            select(func.max(replicas.c.renewed))
            .where(replicas.c.name == sessions.c.replica, replicas.c.run == sessions.c.run)
            .scalar_subquery()
        )
        gone = sessions.c.lost.is_(None) & ~living.exists()
        rows = (await connection.execute(select(sessions.c.id, sessions.c.recording).where(gone))).all()
        if not rows:
            return
        await connection.execute(
            sessions.update()
            .where(sessions.c.id.in_([row.id for row in rows]), sessions.c.lost.is_(None))
            .values(state="lost", lost=case((heard > sessions.c.changed, heard), else_=sessions.c.changed))
        )
        cut = [row.recording for row in rows if row.recording]
        await connection.execute(
            recordings.update().where(recordings.c.id.in_(cut), recordings.c.state == "recording").values(state="cut")
        )
        logger.warning("%d sessions of replicas that are gone are lost", len(rows))

    async def end(self, lost: Iterable[HeldSession]) -> None:
        """This process ends in order: what it still held is lost now."""
        held = [one.id for one in lost]

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import replicas, sessions

            now = await self.now(connection)
            mine = (replicas.c.name == self.name) & (replicas.c.run == self.run)
            await connection.execute(replicas.update().where(mine).values(state="ended", renewed=now, sessions=0))
            if held:
                await connection.execute(
                    sessions.update().where(sessions.c.id.in_(held)).values(state="lost", lost=now)
                )
            return True

        await self._database.work(write)

    async def want(self, name: str, wanted: str) -> bool:
        """Ask a replica for something, `drain`; whether there is one of this name. Raises NotSaved."""

        async def write(connection: AsyncConnection) -> int:
            from app.store.team_tables import replicas

            living = (replicas.c.name == name) & (replicas.c.state != "ended")
            return int((await connection.execute(replicas.update().where(living).values(wanted=wanted))).rowcount)

        done = await self._database.work(write)
        if done is None:
            raise NotSaved(f"This could not be saved: {self._database.trouble}")
        return done > 0

    # ---- sessions

    async def put(self, held: list[HeldSession], gone: list[str]) -> bool:
        """Write down what changed of the sessions of this replica, and forget those that were closed."""

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import sessions

            for one in held:
                row = asdict(one)
                done = await connection.execute(sessions.update().where(sessions.c.id == one.id).values(row))
                if not done.rowcount:
                    await connection.execute(sessions.insert().values(row))
            if gone:
                await connection.execute(sessions.delete().where(sessions.c.id.in_(gone)))
            return True

        return bool(await self._database.work(write)) if held or gone else True

    async def of(self, owner: str) -> list[HeldSession]:
        """The sessions of somebody on other replicas, the newest first; nothing when the store does not answer."""
        from app.store.team_tables import sessions

        # One that somebody has reconnected is lost too, and they know.
        listed = sessions.c.lost.is_(None) | (sessions.c.taken == "")
        found = await self._held((sessions.c.owner == owner) & listed)
        return sorted((one for one in found or () if not self.is_mine(one)), key=lambda one: -one.began)

    async def find(self, sid: str) -> HeldSession | None:
        """One session, whoever holds it."""
        from app.store.team_tables import sessions

        return next(iter(await self._held(sessions.c.id == sid) or ()), None)

    async def some(self, sids: Iterable[str]) -> list[HeldSession]:
        """Those of these sessions that live on other replicas."""
        from app.store.team_tables import sessions

        wanted = list(sids)
        found = await self._held(sessions.c.id.in_(wanted) & sessions.c.lost.is_(None)) if wanted else []
        return [one for one in found or () if not self.is_mine(one)]

    def is_mine(self, one: HeldSession) -> bool:
        """Whether this process holds it."""
        return one.lost is None and (one.replica, one.run) == (self.name, self.run)

    async def counts(self) -> dict[str, int]:
        """How many sessions of each person live on other replicas."""
        from app.store.team_tables import sessions

        found: dict[str, int] = {}
        for one in await self._held(sessions.c.lost.is_(None)) or ():
            if not self.is_mine(one):
                found[one.owner] = found.get(one.owner, 0) + 1
        return found

    async def _held(self, where: ColumnElement[bool]) -> list[HeldSession] | None:
        async def read(connection: AsyncConnection) -> list[HeldSession]:
            from app.store.team_tables import sessions

            query = sessions.select().where(where).order_by(sessions.c.began.desc()).limit(bounds.HELD_SESSIONS)
            return [_known(HeldSession, row) for row in (await connection.execute(query)).mappings()]

        return await self._database.work(read)

    async def forget(self, sid: str) -> None:
        """Nobody needs the row of a lost session any more."""

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import sessions

            await connection.execute(sessions.delete().where(sessions.c.id == sid, sessions.c.lost.is_not(None)))
            return True

        await self._database.work(write)

    async def reopened(self, sid: str) -> None:
        """Somebody has opened another session in its place: it is listed no more, and what it had may go on there."""

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import sessions

            there = (sessions.c.id == sid) & (sessions.c.taken == "")
            await connection.execute(sessions.update().where(there).values(taken="[]"))
            return True

        await self._database.work(write)

    async def take(self, sid: str, key: str, *, back: bool = False) -> tuple[Taking, HeldSession | None] | None:
        """Take up one call of a lost session, or give it `back`: once, whoever asks on which replica, and not before it
        is certain that the process which held it is gone. With it the session as that process left it. None when the
        store does not answer."""

        async def write(connection: AsyncConnection) -> tuple[Taking, HeldSession | None]:
            from sqlalchemy import select

            from app.store.team_tables import sessions

            query = select(sessions).where(sessions.c.id == sid).with_for_update()
            row = (await connection.execute(query)).mappings().first()
            if row is None:
                return "gone", None
            held, known = _known(HeldSession, row), await self._read(connection, await self.now(connection))
            # Also of a session that was said to be lost: its process may have been away from the store for a while.
            if any(one.alive and (one.name, one.run) == (held.replica, held.run) for one in known):
                return "alive", held
            taken = json.loads(row["taken"] or "[]")
            if back == (key not in taken):
                return "again", held
            said = json.dumps([one for one in taken if one != key] if back else [*taken, key])
            await connection.execute(sessions.update().where(sessions.c.id == sid).values(taken=said))
            return "taken", held

        return await self._database.work(write)

    async def taken(self) -> dict[str, list[str]]:
        """Which calls of the sessions of this process go on elsewhere, while it was taken for dead."""

        async def read(connection: AsyncConnection) -> dict[str, list[str]]:
            from sqlalchemy import select

            from app.store.team_tables import sessions

            mine = (sessions.c.replica == self.name, sessions.c.run == self.run, sessions.c.taken != "")
            rows = (await connection.execute(select(sessions.c.id, sessions.c.taken).where(*mine))).all()
            return {row.id: json.loads(row.taken) for row in rows}

        return await self._database.work(read) or {}

    async def sweep(self) -> None:
        """Forget what was lost long ago."""

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import sessions

            before = await self.now(connection) - bounds.LOST_SECONDS
            await connection.execute(sessions.delete().where(sessions.c.lost < before))
            return True

        await self._database.work(write)

    async def news(self) -> dict[str, int] | None:
        """How often things were changed by anybody, by their kind; None when the store does not answer."""
        return await self._database.work(counted)


def _known(kind: type[_T], row: Any) -> _T:
    """A row; a column that a later version has added is left to that one."""
    return kind(**{each.name: row[each.name] for each in fields(kind)})  # type: ignore[arg-type]


def lost_now(one: HeldSession, at: float) -> HeldSession:
    """The same session, as it is shown before its replica's lease is over: nobody answers there."""
    return replace(one, state="lost", lost=at)
