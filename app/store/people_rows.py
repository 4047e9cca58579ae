"""The rows of people, invitations, logins and tokens: as the file has them, and as the rest of the program does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

from app.core.people import Invitation, Login, Person, Token
from app.store.shared import touched

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.ext.asyncio import AsyncConnection

_T = TypeVar("_T")
_READ = "SELECT * FROM {} LIMIT 100000"


def row_of(one: Person | Login | Token | Invitation) -> dict[str, Any]:
    row = asdict(one)
    return {**row, "revoked": int(row["revoked"])} if isinstance(one, Invitation) else row


def invitation_of(row: Mapping[Any, Any]) -> Invitation:
    return _known(Invitation, {**row, "revoked": bool(row["revoked"])})


async def drop(connection: AsyncConnection, table: str, keys: Iterable[str]) -> bool:
    from app.store.tables import metadata

    where = metadata.tables[table]
    await connection.execute(where.delete().where(where.c.id.in_(list(keys))))
    await touched(connection, "people")
    return True


async def people_of(connection: AsyncConnection) -> list[Person]:
    """Everybody, as this transaction sees them."""
    from app.store.team_tables import people

    return [_known(Person, dict(row)) for row in (await connection.execute(people.select())).mappings()]


async def nothing(connection: AsyncConnection) -> bool:
    return True


# -------------------------------------------------------------------------------- the file as it is found, in a thread


def _rows(file: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    found = file.execute(_READ.format(table))
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def _known(kind: type[_T], row: dict[str, Any]) -> _T:
    """One of a kind; a column that a later version has added is left to that one."""
    return kind(**{each.name: row[each.name] for each in fields(kind)})  # type: ignore[arg-type]


def everything(file: sqlite3.Connection) -> tuple[list[Person], list[Login], list[Token]]:
    return (
        [_known(Person, row) for row in _rows(file, "people")],
        [_known(Login, row) for row in _rows(file, "logins")],
        [_known(Token, row) for row in _rows(file, "tokens")],
    )


def invitations_of(file: sqlite3.Connection) -> list[Invitation]:
    return [invitation_of(row) for row in _rows(file, "invitations")]
