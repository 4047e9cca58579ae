"""SQLAlchemy: the engine that works on a file, and how a file gets the tables of this version.

It is imported by the first that writes, in a thread, because that takes 170 ms; Alembic is imported only when there is
an older file to bring up to date.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from app.store import sqlite, tables, team_tables  # noqa: F401 (the tables of a team are there once they are named)

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection

logger = logging.getLogger("parley.store")

REVISION: Final = f"{sqlite.VERSION:04d}"
MIGRATIONS: Final = Path(__file__).with_name("migrations")


def connected(path: Path, max_pages: int | None) -> AsyncEngine:
    """The engine of a file that is up to date. It has one connection: one transaction follows the other."""
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(path)),
        pool_size=1,
        max_overflow=0,
        connect_args={"timeout": sqlite.WAIT_SECONDS},
    )
    _set_up(engine.sync_engine, max_pages)
    return engine


def _set_up(engine: Engine, max_pages: int | None) -> None:
    @event.listens_for(engine, "connect")
    def connects(connection: DBAPIConnection, _: object) -> None:
        # Python's own transactions leave out what makes tables; ours begin below, and hold for everything.
        setattr(connection, "isolation_level", None)  # noqa: B010 (the interface of all drivers has no such name)
        cursor = connection.cursor()
        for pragma in sqlite.pragmas(max_pages):
            cursor.execute(pragma)
        cursor.close()

    @event.listens_for(engine, "begin")
    def begins(connection: Connection) -> None:
        connection.exec_driver_sql(sqlite.BEGIN)


@contextlib.contextmanager
def plain_faults() -> Iterator[None]:
    """Let the faults of a driver through as the driver raised them, and give other ones a name of ours."""
    try:
        yield
    except DBAPIError as fault:
        if isinstance(fault.orig, Exception):
            raise fault.orig from fault
        raise
    except SQLAlchemyError as fault:
        raise sqlite.Unusable(str(fault)) from fault


# ---- bringing a file up to date


def bring_up(path: Path, scrub: sqlite.Scrub, max_pages: int | None = None) -> None:
    """Give a file the tables of this version; one of an older form is kept as a backup before. Blocks.

    It is one transaction that holds the file from its beginning: whoever is killed in the middle leaves the old form,
    and another Parley that starts at the same time waits here and then finds nothing to do."""
    address = URL.create("sqlite", database=str(path))
    wait: dict[str, Any] = {"timeout": sqlite.MIGRATION_WAIT_SECONDS}
    engine = create_engine(address, poolclass=NullPool, connect_args=wait)
    _set_up(engine, max_pages)
    kept: Path | None = None
    with plain_faults(), engine.begin() as connection:
        old = sqlite.version(connection.exec_driver_sql)
        if old > sqlite.VERSION:
            raise sqlite.Newer
        if old == sqlite.VERSION:
            return
        if sqlite.is_empty(connection.exec_driver_sql):
            create(connection)
            connection.exec_driver_sql(sqlite.MARK_CLEAN)
        else:
            kept = sqlite.back_up(path, old, scrub)
            migrate(connection)
        connection.exec_driver_sql(sqlite.MARK_VERSION)
    if kept is not None:
        logger.info("%s has the form of this version now; as it was, it is kept as %s", path, kept.name)


def create(connection: Connection) -> None:
    """All tables at once, with the mark that no migration is missing."""
    tables.metadata.create_all(connection)
    connection.execute(insert(tables.revisions).values(version_num=REVISION))


def migrate(connection: Connection) -> None:
    """Run the migrations that a file has not seen, inside the transaction of this connection."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as fault:
        raise sqlite.Unusable(str(fault)) from fault
