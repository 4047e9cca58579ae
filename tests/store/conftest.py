"""The store over both of its databases: a file of SQLite, and with `--store postgres` a PostgreSQL of this machine.

The tests are the same ones, and so is the code: what would be the file of a folder is a database of its own there."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.store import recordings, targets
from app.store.database import Database
from app.store.shared import SharedDatabase
from tests import postgres
from tests.store import files


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Postgres]:
    postgres.needed()
    made = postgres.Postgres()
    yield made
    made.remove()


@pytest.fixture(autouse=True)
def kept_where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Where what a test keeps in a folder is."""
    if request.config.getoption("--store") == "sqlite":
        if request.node.get_closest_marker("of_postgres") is not None:
            pytest.skip("about PostgreSQL: make test-team")
        yield
        return
    if request.node.get_closest_marker("of_sqlite") is not None:
        pytest.skip("about the file of SQLite itself")
    server: postgres.Postgres = request.getfixturevalue("server")
    made: dict[Path, str] = {}

    def url(folder: Path) -> str:
        return made.get(folder) or made.setdefault(folder, server.database())

    def database(directory: Path | None, scrub: Any, max_pages: int | None = None) -> Database:
        return Database(None, scrub) if directory is None else SharedDatabase(url(directory), scrub)

    open_bodies: Callable[..., Any] = vars(recordings)["open_bodies"]
    monkeypatch.setattr(targets, "Database", database)

    def bodies(directory: Path, kept_in: str, _: str = "") -> Any:
        return open_bodies(directory, kept_in, url(directory) if kept_in == "database" else "")

    monkeypatch.setattr(recordings, "open_bodies", bodies)
    monkeypatch.setattr(files, "elsewhere", url)
    yield
