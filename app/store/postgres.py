"""The one place that knows what only PostgreSQL has: its address, its engines, its forms side by side, its faults.

Imported, with the driver, where a team names a store in its settings, and nowhere else. The statements are those that
serve SQLite: SQLAlchemy's for whoever writes, plain ones, by a `Reader`, for what is read at the start.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo
from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, make_url, text
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from app.store import engine as engines
from app.store import sqlite, tables, team_tables

logger = logging.getLogger("parley.store")

CONNECTIONS: Final = 4
"""Of each of the two pools that write, and of the bodies of recordings: a replica holds twelve at most."""
_CONNECT_SECONDS: Final = 3
_LOCK: Final = 0x5061726C6579
"""Who brings the tables up to date holds this; replicas that start at the same moment wait for each other."""
_OPTIONS: Final = "-c statement_timeout=5000 -c lock_timeout=4000 -c idle_in_transaction_session_timeout=30000"
_NETWORK: Final = {"tcp_user_timeout": 10_000, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 2}
"""A machine that is gone without a word is noticed within seconds."""
_PATIENT: Final = "-c statement_timeout=0 -c lock_timeout=60000"
"""Of whoever brings tables up to date."""
OLDEST: Final = 10
"""The oldest form whose Parley can work with the tables of this version. A migration that only adds leaves it as it is,
and then both versions serve side by side while replicas are replaced one after the other."""


# ------------------------------------------------------------------------------------------------------------ address


class BadAddress(Exception):
    """That is no address of a store. Says what one looks like, and nothing of what it was."""


def address(url: str) -> URL:
    """The address of a store. Raises BadAddress."""
    try:
        found = make_url(url.strip())
    except ArgumentError:
        raise BadAddress("the store wants an address like postgresql://parley@db.internal/parley") from None
    if found.drivername not in {"postgresql", "postgres", "postgresql+psycopg"} or not found.database:
        raise BadAddress("the store wants an address like postgresql://parley@db.internal/parley")
    return found.set(drivername="postgresql+psycopg")


def shown(url: URL) -> str:
    """Where that is, for people: no user, no password, no options."""
    host = url.host or url.query.get("host") or "this machine"
    return f"PostgreSQL at {host if isinstance(host, str) else host[0]}"


def _arguments(url: URL, options: str = _OPTIONS) -> dict[str, Any]:
    given = url.query.get("options", "")
    return {
        "connect_timeout": _CONNECT_SECONDS,
        "options": f"{given} {options}".strip(),
        "application_name": "parley",
        **_NETWORK,
    }


# ------------------------------------------------------------------------------------------------------------ writing


def connected(url: URL) -> AsyncEngine:
    """The engine of whoever writes. A connection that died is found before it is used."""
    engine = create_async_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=_CONNECT_SECONDS,
        pool_pre_ping=True,
        pool_recycle=1800,
        connect_args=_arguments(url),
        hide_parameters=True,
    )
    _set_up(engine.sync_engine)
    return engine


def _set_up(engine: Engine) -> None:
    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def executes(_c: object, _k: object, statement: str, given: Any, _x: object, many: bool) -> tuple[str, Any]:
        return statement, [_plain(one) for one in given] if many else _plain(given)


def _plain(given: Any) -> Any:
    """Texts as PostgreSQL takes them: it knows no NUL, and no half of a character."""
    if isinstance(given, dict):
        return {key: _plain_text(value) for key, value in given.items()}
    return [_plain_text(value) for value in given] if isinstance(given, (list, tuple)) else given


def _plain_text(value: Any) -> Any:
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


# ------------------------------------------------------------------------------------------------------------- reading


class Reader:
    """A connection for plain statements, written as SQLite has them."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, query: str, parameters: Any = ()) -> Any:
        return self._connection.execute(query.replace("?", "%s").encode(), parameters or None)

    def executemany(self, query: str, parameters: Any) -> Any:
        cursor = self._connection.cursor()
        cursor.executemany(query.replace("?", "%s").encode(), [_plain(tuple(one)) for one in parameters])
        return cursor

    def has(self, table: str) -> bool:
        """Whether there is a table of this name."""
        found = self._connection.execute("SELECT to_regclass(%s) IS NOT NULL", (f'"{table}"',)).fetchone()
        return bool(found and found[0])

    def form(self) -> tuple[int, int]:
        """The form of the tables, and the oldest that can work with them; zeros where there are none."""
        if not self.has("alembic_version"):
            return 0, 0
        row = self.execute("SELECT version_num FROM alembic_version").fetchone()
        known = self.has("forms") and self.execute("SELECT needs FROM forms").fetchone()
        return (0 if row is None else int(row[0])), (known[0] if known else 0)


@contextlib.contextmanager
def looked_into(url: URL) -> Iterator[Reader]:
    """The store, for plain statements in one transaction. Raises Newer, or what PostgreSQL says."""
    with psycopg.connect(conninfo(url), **_arguments(url)) as connection:
        reader = Reader(connection)
        check(*reader.form())
        yield reader


def conninfo(url: URL) -> str:
    """The address as the driver alone has it."""
    return make_conninfo(url.set(drivername="postgresql").render_as_string(hide_password=False))


def check(form: int, needs: int) -> None:
    """Raise Newer when tables have a form that this Parley cannot work with."""
    if form > sqlite.VERSION and needs > sqlite.VERSION:
        raise sqlite.Newer


# ----------------------------------------------------------------------------------------------- tables of this version


def bring_up(url: URL) -> None:
    """Give the store the tables of this version. Blocks. It is one transaction that nobody else begins meanwhile."""
    engine = create_engine(url, poolclass=NullPool, connect_args=_arguments(url, _PATIENT), hide_parameters=True)
    with engines.plain_faults(), engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        form, needs = _form(connection)
        check(form, needs)
        if form >= sqlite.VERSION:
            return
        if form == 0:
            engines.create(connection)
        else:
            engines.migrate(connection)
        connection.execute(team_tables.forms.delete())
        connection.execute(insert(team_tables.forms).values(id=1, needs=OLDEST))
    logger.info("the store has the form %d now", sqlite.VERSION)


def _form(connection: Connection) -> tuple[int, int]:
    known = inspect(connection).get_table_names()
    if tables.revisions.name not in known:
        return 0, 0
    row = connection.execute(tables.revisions.select()).first()
    needs = connection.execute(team_tables.forms.select()).first() if team_tables.forms.name in known else None
    return (0 if row is None else int(row.version_num)), (0 if needs is None else needs.needs)


# -------------------------------------------------------------------------------------------------------------- faults


def is_away(fault: BaseException) -> bool:
    """Whether nobody answers there: what is written then may be written later."""
    return isinstance(fault, (psycopg.OperationalError, psycopg.InterfaceError, TimeoutError, OSError))


def words(fault: Exception) -> str | None:
    """Why nothing is written, as a sentence without its beginning; None for a fault that is none of the store."""
    if isinstance(fault, sqlite.Newer):
        return "the database of this team was brought to a form that this version of Parley does not know."
    if is_away(fault):
        return "the database of this team does not answer. Parley tries again by itself."
    if isinstance(fault, (psycopg.Error, sqlite.Unusable)):
        return "the database of this team refused it."
    return None


def same_moment(fault: Exception) -> bool:
    """Whether another replica did the same thing at the same moment: then trying again finds it done."""
    return isinstance(
        fault, (psycopg.errors.UniqueViolation, psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
    )


# -------------------------------------------------------------------------------------------- connections of bodies


class Connections:
    """A few connections that threads share, each with one at a time. One that broke is not used again."""

    def __init__(self, url: URL) -> None:
        self._url = url
        self._idle: list[psycopg.Connection[Any]] = []
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def one(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection, and a transaction on it."""
        connection, fresh = self._taken()
        try:
            try:
                with connection.transaction():
                    yield connection
            except (psycopg.OperationalError, psycopg.InterfaceError):
                if not fresh:  # the others are as old as this one
                    self.close()
                raise
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if len(self._idle) < CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _taken(self) -> tuple[psycopg.Connection[Any], bool]:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection, False
        return psycopg.connect(conninfo(self._url), autocommit=True, **_arguments(self._url)), True

    def close(self) -> None:
        """Let go of all that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def read_secret_file(path: Path) -> str:
    """The first line of a file."""
    return path.read_text(encoding="utf-8").partition("\n")[0].strip()
