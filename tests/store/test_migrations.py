"""A file of the first version is brought up to date once, whole or not at all, and a copy of it is kept."""

import contextlib
import logging
import signal
import sqlite3
import stat
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from app.core.options import Options
from app.core.targets import DemoTarget, HttpTarget, StdioTarget
from app.store import FILE, Store, engine, sqlite, tables
from tests.store.files import (
    CLEAN,
    ERAS,
    FIRST,
    LATER,
    NAMES,
    UNMARKED,
    WAL,
    asked,
    ended,
    old_file,
    program,
    schema,
)

pytestmark = pytest.mark.of_sqlite

BACKUP = f"{FILE}.v1.bak"
OLD = {"first": FIRST, "later": LATER + CLEAN, "in use": LATER + CLEAN + WAL, "unmarked": UNMARKED}


async def opened(directory: Path) -> Store:
    store = Store(directory)
    await store.open()
    return store


def names(store: Store) -> set[str]:
    return {kept.name for kept in store.of("local")}


def left(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def on_disk(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.iterdir())


# --------------------------------------------------------------------------------------------------------------- once


@pytest.mark.parametrize("script", OLD.values(), ids=OLD)
async def test_an_old_file_is_brought_up_to_date_and_kept_beside(
    tmp_path: Path, script: str, caplog: pytest.LogCaptureFixture
):
    path, kept = old_file(tmp_path, script), tmp_path / BACKUP
    before, form = asked(path, "SELECT * FROM targets ORDER BY id"), asked(path, "PRAGMA user_version")
    with caplog.at_level(logging.INFO, "parley.store"):
        store = await opened(tmp_path)
    assert (names(store), store.trouble) == (NAMES, "")
    assert f"it is kept as {BACKUP}" in caplog.text
    assert asked(path, "PRAGMA user_version") == [(sqlite.VERSION,)]
    assert asked(path, "SELECT version_num FROM alembic_version") == [(engine.REVISION,)]
    assert asked(path, "SELECT * FROM targets ORDER BY id") == before
    await store.save("local", DemoTarget(), Options(), "New")
    await store.close()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert asked(kept, "SELECT * FROM targets ORDER BY id") == before
    assert asked(kept, "PRAGMA user_version") == form
    assert asked(kept, "PRAGMA quick_check") == [("ok",)]
    assert left(tmp_path) == {FILE, BACKUP}

    caplog.clear()
    taken = kept.stat().st_mtime_ns
    store = await opened(tmp_path)
    assert names(store) == NAMES | {"New"}
    await store.close()
    assert (caplog.text, kept.stat().st_mtime_ns) == ("", taken), "the second start has nothing to do"


async def test_what_commands_spoke_is_kept(tmp_path: Path):
    target = StdioTarget(command="server")
    before = await opened(tmp_path)
    await before.learn("local", target, "legacy")
    await before.close()
    [(key, *_)] = asked(tmp_path / FILE, "SELECT * FROM eras")
    (tmp_path / FILE).unlink()
    old_file(tmp_path, LATER.replace("local 1f", key))
    store = await opened(tmp_path)
    assert store.era("local", target) == "legacy"
    await store.close()
    store = await opened(tmp_path)
    assert store.era("local", target) == "legacy"
    await store.close()


async def test_a_parley_of_before_refuses_the_file_and_takes_the_backup(tmp_path: Path):
    """The first version refuses every file whose mark is above 1."""
    path = old_file(tmp_path)
    await (await opened(tmp_path)).close()
    assert asked(path, "PRAGMA user_version")[0][0] > 1
    assert asked(tmp_path / BACKUP, "PRAGMA user_version") == [(1,)]
    # The way back that README.md tells: the backup takes the name of the file.
    (tmp_path / BACKUP).replace(path)
    store = await opened(tmp_path)
    assert (names(store), store.trouble) == (NAMES, "")
    await store.close()


async def test_a_file_of_a_newer_parley_is_not_touched(tmp_path: Path):
    path = old_file(tmp_path, LATER + CLEAN + f"PRAGMA user_version = {sqlite.VERSION + 1};")
    before = path.read_bytes()
    store = await opened(tmp_path)
    await store.save("me", DemoTarget(), Options(), "It")
    assert "was written by a newer Parley" in store.trouble
    await store.close()
    assert path.read_bytes() == before
    assert left(tmp_path) == {FILE}


async def test_a_file_whose_migrations_nobody_knows_is_read_and_left_as_it_is(tmp_path: Path):
    odd = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL); INSERT INTO alembic_version VALUES ('odd');"
    path = old_file(tmp_path, LATER + CLEAN + odd)
    form = schema(path)
    store = await opened(tmp_path)
    assert names(store) == NAMES
    assert "cannot be used: Can't locate revision" in store.trouble
    await store.close()
    assert (schema(path), asked(path, "PRAGMA user_version")) == (form, [(1,)])


# -------------------------------------------------------------------------------------------------------- the same form


async def test_a_new_file_an_old_one_and_migrations_from_nothing_give_the_same_tables(tmp_path: Path):
    for name in ("new", "first", "later"):
        (tmp_path / name).mkdir()
    new = tmp_path / "new" / FILE
    store = await opened(new.parent)
    await store.save("me", DemoTarget(), Options(), "It")
    await store.close()
    found = {"new": schema(new)}
    for name, script in (("first", FIRST), ("later", FIRST + ERAS)):
        path = old_file(tmp_path / name, script)
        await (await opened(path.parent)).close()
        found[name] = schema(path)
    migrated(tmp_path / "empty.db")
    found["migrations"] = schema(tmp_path / "empty.db")
    assert set(found["new"]) == set(tables.metadata.tables)
    for name in ("first", "later", "migrations"):
        assert found[name] == found["new"], name


def migrated(path: Path) -> None:
    """Make a file by the migrations alone."""
    with create_engine(f"sqlite:///{path}", poolclass=NullPool).begin() as connection:
        engine.migrate(connection)


def test_the_last_migration_has_the_number_of_this_version(tmp_path: Path):
    config = Config()
    config.set_main_option("script_location", str(engine.MIGRATIONS))
    script = ScriptDirectory.from_config(config)
    assert script.get_heads() == [engine.REVISION]
    assert [int(each.revision) for each in script.walk_revisions()] == list(range(sqlite.VERSION, 1, -1))
    migrated(tmp_path / "it.db")
    assert asked(tmp_path / "it.db", "SELECT version_num FROM alembic_version") == [(engine.REVISION,)]


# ------------------------------------------------------------------------------------------------------------- secrets


def with_secrets(directory: Path) -> Path:
    """A file that a Parley before the table of secrets wrote, with rows that were deleted in the open."""
    path = old_file(directory)
    process = StdioTarget(command="server", args=("postgres://u:canary-1@h/db",), env={"DB_PASS": "canary-2"})
    http = HttpTarget(transport="http", url="http://h/?sig=canary-3", headers={"X-Session": "canary-4"})
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA secure_delete = OFF")
        file.execute("PRAGMA application_id = 0")
        update = "UPDATE targets SET target = ? WHERE name = ?"
        file.execute(update, (process.model_dump_json(), "My server"))
        file.execute(update, (http.model_dump_json(), "Over HTTP"))
        file.execute("INSERT INTO targets VALUES ('gone', 'me', '', ?, '[]', '{}', 0)", ("canary-5" * 500,))
        file.commit()
        file.execute("DELETE FROM targets WHERE id = 'gone'")
        file.commit()
    assert b"canary-3" in path.read_bytes()
    assert b"canary-5" in path.read_bytes()
    return path


async def test_a_backup_holds_no_secret_that_an_older_parley_wrote(tmp_path: Path):
    with_secrets(tmp_path)
    store = await opened(tmp_path)
    assert b"canary" not in on_disk(tmp_path)
    await store.close()
    assert b"canary" not in on_disk(tmp_path)
    assert {row[0] for row in asked(tmp_path / BACKUP, "SELECT name FROM targets")} == NAMES


async def test_a_backup_is_clean_also_when_somebody_saves_before_the_file_was_cleaned(tmp_path: Path):
    with_secrets(tmp_path)
    store = Store(tmp_path)
    await store.save("me", DemoTarget(), Options(), "Early")
    assert store.trouble == ""
    assert b"canary" not in (tmp_path / BACKUP).read_bytes()
    await store.open()
    await store.close()
    assert b"canary" not in on_disk(tmp_path)


# -------------------------------------------------------------------------------------------------------- in the middle

HELD = """
import sys, anyio, logging
from pathlib import Path
from sqlalchemy import Engine, event
from app.store import Store, sqlite
from app.core.options import Options
from app.core.targets import DemoTarget

folder, place = Path(sys.argv[1]), sys.argv[2]
logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.getLogger("parley").setLevel("INFO")

def hold(at):
    if at.strip().startswith(place):
        print("held", flush=True)
        sys.stdin.readline()

def tell(statement):
    if place == "nowhere" and statement == sqlite.BEGIN:
        print("asks", flush=True)

synced = sqlite._synced
def syncing(path):
    hold(path.name)
    synced(path)

sqlite._synced = syncing
event.listen(Engine, "after_cursor_execute", lambda _, __, statement, *more: hold(statement))
event.listen(Engine, "before_cursor_execute", lambda _, __, statement, *more: tell(statement))

async def main():
    store = Store(folder)
    await store.open()
    await store.save("local", DemoTarget(), Options(), "Mine")
    print("trouble", repr(store.trouble), flush=True)
    await store.close()

anyio.run(main)
"""
PLACES = [
    "BEGIN IMMEDIATE",
    "parley.db.v1.bak.new",
    "CREATE TABLE alembic_version",
    "CREATE TABLE eras",
    "INSERT INTO alembic_version",
    "PRAGMA user_version = ",
]


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
async def test_whoever_is_killed_in_the_middle_leaves_the_old_file(tmp_path: Path, place: str):
    path = old_file(tmp_path, FIRST + CLEAN)
    before, form = asked(path, "SELECT * FROM targets"), schema(path)
    with program(HELD, str(tmp_path), place) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert (asked(path, "PRAGMA user_version"), schema(path)) == ([(1,)], form)
    assert asked(path, "SELECT * FROM targets") == before
    store = await opened(tmp_path)
    assert (names(store), store.trouble) == (NAMES, "")
    await store.close()
    assert asked(path, "PRAGMA user_version") == [(sqlite.VERSION,)]
    assert asked(tmp_path / BACKUP, "SELECT * FROM targets") == before
    assert left(tmp_path) == {FILE, BACKUP}


@pytest.mark.slow
@pytest.mark.requirement("M05")
def test_m05_of_two_parleys_that_start_together_one_migrates_and_the_other_waits(tmp_path: Path):
    path = old_file(tmp_path, LATER + CLEAN + WAL)
    with program(HELD, str(tmp_path), "INSERT INTO alembic_version") as first:
        assert first.stdout is not None and first.stdin is not None
        assert first.stdout.readline() == "held\n"
        with program(HELD, str(tmp_path), "nowhere") as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "asks\n"
            assert asked(path, "PRAGMA user_version") == [(1,)]
            first.stdin.write("\n")
            first.stdin.flush()
            said = [ended(first), ended(second)]
    assert ["kept as" in each for each in said] == [True, False]
    assert all("trouble ''" in each for each in said), said
    assert len(asked(path, "SELECT * FROM targets WHERE name = 'Mine'")) == 2
    assert asked(tmp_path / BACKUP, "SELECT name FROM targets WHERE name = 'Mine'") == []


NO_ROOM = """
import resource, sys, anyio
from pathlib import Path
from app.store import Store

async def main():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    store = Store(Path(sys.argv[1]))
    await store.open()
    print(sorted(kept.name for kept in store.of("local")), store.trouble)
    await store.close()

anyio.run(main)
"""


@pytest.mark.requirement("F25")
def test_an_old_file_that_cannot_be_copied_is_read_and_left_as_it_is(tmp_path: Path):
    path = old_file(tmp_path)
    before = path.read_bytes()
    with program(NO_ROOM, str(tmp_path)) as process:
        said = ended(process)
    assert str(sorted(NAMES)) in said
    assert "cannot be used" in said or "is full" in said
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.bak*"))
