"""Values that people give to servers of the catalogue and want to give once: encrypted, each for one person.

What is sealed names whose it is and where it may go, so a row that somebody moves to another person in the file opens
nothing, and an entry that leads elsewhere now gets nothing that was given to the old one. The key
stands in a file of its own; whoever has the database without it has nothing, and a key that is lost costs the values
and nothing else: they are asked for again. What an admin types for an entry belongs to nobody, under an empty name.
Imported by team mode alone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app import team_bounds as bounds
from app.core.errors import NotAllowed
from app.store.database import Database
from app.store.people import NotSaved
from app.store.shared import touched
from app.store.vault import cipher, write_private

if TYPE_CHECKING:
    import sqlite3

    from cryptography.fernet import MultiFernet
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

logger = logging.getLogger("parley.store")

KEY_FILE: Final = "people.key"
HOUSE: Final = ""
"""Whose the values of admins are."""


def read_key(file: Path, *, make: bool = False) -> str:
    """The keys in a file, the first of which encrypts; with `make` it is made when there is none, for its owner alone.
    Blocks. Raises OSError, and ValueError when these are no keys."""
    if make and not file.exists():
        from cryptography.fernet import Fernet

        write_private(file, Fernet.generate_key() + b"\n")
    text = file.read_text(encoding="ascii")
    cipher(text)
    return text


class Sealed:
    """All values of this installation."""

    def __init__(self, database: Database, wall: Callable[[], float]) -> None:
        self._database, self._wall = database, wall
        self._kept: dict[tuple[str, str, str], str] = {}
        self._cipher: MultiFernet | None = None

    async def open(self, key: str) -> None:
        """Read what there is, and how to open it."""
        self._cipher = cipher(key)
        self._kept = dict(await self._database.look(_read) or ())

    async def refresh(self) -> bool:
        """Read again what another replica has changed; whether that could be done."""
        found = await self._database.look(_read)
        self._kept = self._kept if found is None else dict(found)
        return found is not None

    def names(self, person: str, entry: str, where: str = "") -> frozenset[str]:
        """What of an entry's variables somebody has given already."""
        return frozenset(self.values(person, entry, where))

    def values(self, person: str, entry: str, where: str = "") -> dict[str, str]:
        """These values. What was encrypted with a key that is gone, for somebody else, or for another place than
        `where`, is not among them."""
        names = [name for whose, of, name in self._kept if (whose, of) == (person, entry)]
        found = {name: self._opened(person, entry, name, where) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    async def put(self, person: str, entry: str, values: Mapping[str, str], where: str = "") -> None:
        """Keep values, each in the place of the one before; `where` is the place they may go to. Raises NotAllowed,
        NotSaved."""
        new = {
            (person, entry, name): self._closed([person, entry, name, where, value]) for name, value in values.items()
        }
        mine = {key for key in self._kept if key[0] == person} | set(new)
        if person and len(mine) > bounds.SEALED_PER_PERSON:
            raise NotAllowed(f"You keep {bounds.SEALED_PER_PERSON} values, which is the limit. Forget some first.")
        rows = [
            {"person": whose, "entry": where, "name": name, "sealed": text, "changed": self._wall()}
            for (whose, where, name), text in new.items()
        ]

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import sealed

            for row in rows:
                same = (sealed.c[key] == row[key] for key in ("person", "entry", "name"))
                await connection.execute(sealed.delete().where(*same))
                await connection.execute(sealed.insert().values(row))
            await touched(connection, "catalogue")
            return True

        if rows and not await self._database.work(write):
            raise NotSaved(f"This could not be saved: {self._database.trouble}")
        self._kept |= new

    async def forget(self, person: str | None, entry: str, names: frozenset[str] | None = None) -> int:
        """Let go of what somebody, or everybody, gave to an entry, or of some of it; how many values that were."""

        async def write(connection: AsyncConnection) -> bool:
            from app.store.team_tables import sealed

            where: list[ColumnElement[bool]] = [sealed.c.entry == entry]
            where += [] if person is None else [sealed.c.person == person]
            where += [] if names is None else [sealed.c.name.in_(names)]
            await connection.execute(sealed.delete().where(*where))
            await touched(connection, "catalogue")
            return True

        gone = [
            key
            for key in self._kept
            if key[1] == entry and person in (None, key[0]) and (names is None or key[2] in names)
        ]
        if gone and not await self._database.work(write):
            raise NotSaved(f"This could not be saved: {self._database.trouble}")
        for key in gone:
            self._kept.pop(key, None)
        return len(gone)

    def text(self, whose: str, what: str) -> str:
        """A text that opens for this name alone. Raises NotSaved while Parley is starting."""
        return self._closed([whose, what])

    def read(self, whose: str, sealed: str) -> str | None:
        """What `text` has sealed; None for what was sealed for another name, or with a key that is gone."""
        from cryptography.fernet import InvalidToken

        try:
            told = None if self._cipher is None else json.loads(self._cipher.decrypt(sealed.encode("ascii")))
        except (InvalidToken, ValueError):
            return None
        return told[1] if isinstance(told, list) and len(told) == 2 and told[0] == whose else None

    def _closed(self, told: list[str]) -> str:
        if self._cipher is None:
            raise NotSaved("Nothing can be kept yet: Parley is starting.")
        return self._cipher.encrypt(json.dumps(told).encode()).decode("ascii")

    def _opened(self, person: str, entry: str, name: str, where: str) -> str | None:
        from cryptography.fernet import InvalidToken

        text = self._kept.get((person, entry, name))
        if text is None or self._cipher is None:
            return None
        try:
            *whose, value = json.loads(self._cipher.decrypt(text.encode("ascii")))
        except (InvalidToken, ValueError):
            logger.warning("a kept value was encrypted with another key: it is asked for again")
            return None
        return str(value) if whose == [person, entry, name, where] else None


def _read(file: sqlite3.Connection) -> list[tuple[tuple[str, str, str], str]]:
    from app.store import sqlite

    rows = sqlite.rows(file, "sealed", "SELECT person, entry, name, sealed FROM sealed LIMIT 1000000")
    return [((person, entry, name), text) for person, entry, name, text in rows]
