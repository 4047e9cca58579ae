"""Database code is imported by the first that needs it, in a thread, and behind whoever is connecting."""

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from app.core.options import Options
from app.core.targets import DemoTarget, HttpTarget, StdioTarget
from app.sessions import Identity, SessionRegistry
from app.settings import local
from app.store import FILE, Store
from tests.drive import raw_target
from tests.store.files import asked, ended, old_file, program

pytestmark = pytest.mark.of_sqlite

HANG = 30
LOADED = """
import importlib.abc, json, sys, threading

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in NAMES and name not in found:
            found[name] = threading.current_thread() is threading.main_thread()

NAMES, found = {"sqlite3", "sqlalchemy", "aiosqlite", "alembic"}, {}
sys.meta_path.insert(0, Watch())

import anyio
from pathlib import Path
from app.core.options import Options
from app.core.targets import DemoTarget
from app.sessions import SessionRegistry
from app.settings import local
from app.store import Store

import app.web.app

def stage(name):
    print(json.dumps([name, {key: found[key] for key in sorted(found)}]))

async def main():
    async with SessionRegistry(local(data_dir=Path(sys.argv[1]))) as registry:
        await registry.until_ready()
        await registry.store.loaded(30)
        stage("start")
        if sys.argv[2] == "save":
            await registry.store.save("local", DemoTarget(), Options(), "It")
            assert not registry.store.trouble, registry.store.trouble
            stage("saved")
    stage("end")

anyio.run(main)
"""


def loaded(directory: Path, then: str = "") -> dict[str, dict[str, bool]]:
    """What of a database a process has imported at each stage, and whether that was in its main thread."""
    with program(LOADED, str(directory), then, measured=False) as process:
        return dict(json.loads(line) for line in ended(process).splitlines())


async def test_without_a_file_nothing_of_a_database_is_imported_before_the_first_save(tmp_path: Path):
    assert loaded(tmp_path / "new") == {"start": {}, "end": {}}
    stages = loaded(tmp_path / "new", "save")
    assert stages["start"] == {}
    assert stages["saved"] == {"sqlite3": False, "sqlalchemy": False, "aiosqlite": False}


async def test_a_file_is_read_without_what_writes(tmp_path: Path):
    store = Store(tmp_path)
    await store.save("local", DemoTarget(), Options(), "It")
    await store.close()
    assert loaded(tmp_path) == {"start": {"sqlite3": False}, "end": {"sqlite3": False}}


async def test_alembic_is_imported_for_an_old_file_alone(tmp_path: Path):
    old_file(tmp_path)
    assert loaded(tmp_path, "save")["saved"] == dict.fromkeys(("sqlite3", "sqlalchemy", "aiosqlite", "alembic"), False)
    assert "alembic" not in loaded(tmp_path, "save")["saved"]


# --------------------------------------------------------------------------------------------------------- write behind


def names(directory: Path) -> list[str]:
    path = directory / FILE
    return [json.loads(row[0])["url"] for row in asked(path, "SELECT target FROM targets")] if path.exists() else []


def http(number: int) -> HttpTarget:
    return HttpTarget(transport="http", url=f"http://h/{number}")


async def test_what_was_used_is_written_at_a_calm_moment(tmp_path: Path):
    calm = anyio.Event()
    store = Store(tmp_path, calm=calm.wait)
    await store.open()
    async with anyio.create_task_group() as group:
        group.start_soon(store.follow, store.used("me", http(1), Options()))
        group.start_soon(store.learn, "me", StdioTarget(command="x"), "legacy")
        await anyio.wait_all_tasks_blocked()
        assert (tmp_path / FILE).stat().st_size == 0
        assert store.era("me", StdioTarget(command="x")) == "legacy", "memory knows it at once"
        calm.set()
    assert names(tmp_path) == ["http://h/1"]
    assert asked(tmp_path / FILE, "SELECT era FROM eras") == [("legacy",)]
    store.calm = anyio.sleep_forever
    with anyio.fail_after(HANG):
        await store.follow(store.used("me", http(2), Options()))
    assert sorted(names(tmp_path)) == ["http://h/1", "http://h/2"], "what is loaded need not wait again"
    await store.close()


async def test_a_save_waits_for_no_calm_moment(tmp_path: Path):
    store = Store(tmp_path, calm=anyio.sleep_forever)
    with anyio.fail_after(HANG):
        await store.save("me", http(1), Options(), "It")
    assert names(tmp_path) == ["http://h/1"]
    await store.close()


async def test_what_waits_is_written_when_the_store_closes(tmp_path: Path):
    store = Store(tmp_path, calm=anyio.sleep_forever)
    await store.open()
    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as group:
            for number in (1, 2):
                group.start_soon(store.follow, store.used("me", http(number), Options()))
            group.start_soon(store.learn, "me", StdioTarget(command="x"), "modern")
            await anyio.wait_all_tasks_blocked()
            await store.close()
    assert sorted(names(tmp_path)) == ["http://h/1", "http://h/2"]
    assert asked(tmp_path / FILE, "SELECT era FROM eras") == [("modern",)]


async def test_what_was_deleted_before_it_was_written_is_not_written(tmp_path: Path):
    calm = anyio.Event()
    store = Store(tmp_path, calm=calm.wait)
    await store.open()
    async with anyio.create_task_group() as group:
        kept = store.used("me", http(1), Options())
        group.start_soon(store.follow, kept)
        await anyio.wait_all_tasks_blocked()
        await store.delete("me", kept.id)
        calm.set()
    assert names(tmp_path) == []
    await store.close()


@pytest.mark.parametrize("ends", ["ready", "lost"])
async def test_nothing_is_imported_while_a_session_connects(tmp_path: Path, ends: str, me: Identity):
    target = raw_target("plain") if ends == "ready" else StdioTarget(command=str(tmp_path / "missing"))
    async with SessionRegistry(local(data_dir=tmp_path / "data")) as registry:
        await registry.until_ready()
        await registry.store.loaded(HANG)
        session = registry.open(me)
        idle: list[bool] = []

        async def watch() -> None:
            while session.info.state == "connecting":
                idle.append(registry.store._database.idle)
                await session.events.wait(session.events.seq)

        session.connect(target, Options(era="legacy"), by=me)
        with anyio.fail_after(HANG):
            await watch()
            assert session.info.state == ends
            assert idle and all(idle)
            await registry._calm()
    assert len(asked(tmp_path / "data" / FILE, "SELECT 1 FROM targets")) == 1


def test_without_a_file_left_what_cannot_be_saved_says_so(tmp_path: Path):
    """In a process of its own: SQLite and imports know only that this file cannot be opened."""
    code = (
        "import resource, sqlite3, sys; from pathlib import Path; from app.store import sqlite\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "path = Path(sys.argv[1])\n"
        "for attempt in (lambda: sqlite3.connect(path), lambda: __import__('wave')):\n"
        "    try: attempt()\n"
        "    except Exception as fault: print(sqlite.words(path, fault))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.db")], capture_output=True, text=True, check=True
    )
    said = f"{tmp_path / 'x.db'} cannot be opened: Parley has too many files open. The next save tries again."
    assert done.stdout.splitlines() == [said] * 2
