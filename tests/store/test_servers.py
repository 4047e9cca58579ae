"""What a target led to is kept with it; what failed costs no server; what was forgotten comes back for a moment."""

import sqlite3
from pathlib import Path

import pytest

from app import bounds
from app.core.errors import Conflict
from app.core.options import Options
from app.core.targets import HttpTarget, StdioTarget
from app.store import FILE, RECENT, Server, Store
from app.store.servers import MOST
from tests.store.files import asked, old_file

pytestmark = pytest.mark.requirement("U-S3")
NOW = 1_794_900_000.0


class Clock:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        self.now += 1
        return self.now


async def opened(directory: Path | None, clock: Clock | None = None) -> Store:
    store = Store(directory, clock or Clock())
    await store.open()
    return store


def command(name: str) -> StdioTarget:
    return StdioTarget(command=name)


async def test_what_a_target_led_to_comes_back(tmp_path: Path):
    store = await opened(tmp_path)
    store.used("me", command("crm"), Options())
    kept = store.reached("me", command("crm"), Server(NOW, "acme-crm", "2025-11-25"))
    assert kept is not None
    kept = store.reached("me", command("crm"), Server(NOW + 1, tools=9))
    assert kept is not None
    assert kept.server == Server(NOW + 1, "acme-crm", "2025-11-25", 9), "what is not known now is as it was before"
    await store.write(kept)
    await store.close()
    later = await opened(tmp_path)
    assert [one.server for one in later.of("me")] == [kept.server]
    assert later.reached("me", command("other"), Server(NOW)) is None, "what is not kept leads nowhere"
    await later.close()


async def test_ten_failures_cost_no_server(tmp_path: Path):
    store = await opened(tmp_path)
    store.used("me", command("crm"), Options())
    kept = store.reached("me", command("crm"), Server(NOW, "acme-crm"))
    assert kept is not None
    await store.write(kept)
    for number in range(RECENT + 5):
        await store.write(store.used("me", command(f"typo{number}"), Options()))
    for _ in range(2):
        assert [one.target.command for one in store.of("me") if one.server] == ["crm"]  # type: ignore[union-attr]
        assert sum(one.server is None for one in store.of("me")) == RECENT
        await store.close()
        store = await opened(tmp_path)
    await store.close()


async def test_servers_are_bounded_too(tmp_path: Path):
    store = await opened(tmp_path)
    kept = None
    for number in range(MOST + 3):
        store.used("me", command(f"s{number}"), Options())
        kept = store.reached("me", command(f"s{number}"), Server(NOW))
    assert kept is not None
    await store.write(kept)
    assert len(store.of("me")) == MOST
    await store.close()


async def test_what_was_forgotten_comes_back_for_a_moment(tmp_path: Path):
    clock = Clock()
    store = await opened(tmp_path, clock)
    kept = await store.save("me", command("crm"), Options(), "CRM")
    store.reached("me", command("crm"), Server(NOW, "acme-crm"))
    await store.delete("me", kept.id)
    assert store.of("me") == []
    assert asked(tmp_path / FILE, "SELECT * FROM targets") == [], "what is forgotten is not on the disk"
    assert asked(tmp_path / FILE, "SELECT * FROM servers") == []
    ((left, gone),) = store.forgotten("me")
    assert (gone.name, 0 < left <= bounds.UNDO_SECONDS) == ("CRM", True)
    assert store.forgotten("somebody") == []
    with pytest.raises(Conflict):
        await store.restore("somebody", kept.id)
    back = await store.restore("me", kept.id)
    assert back.server == Server(NOW, "acme-crm")
    assert asked(tmp_path / FILE, "SELECT name FROM servers") == [("acme-crm",)]
    await store.delete("me", kept.id)
    clock.now += bounds.UNDO_SECONDS
    assert store.forgotten("me") == []
    with pytest.raises(Conflict):
        await store.restore("me", kept.id)
    await store.close()


async def test_a_target_that_is_changed_keeps_its_id_and_not_its_server(tmp_path: Path):
    store = await opened(tmp_path)
    kept = await store.save("me", command("crm"), Options(), "CRM")
    store.reached("me", command("crm"), Server(NOW, "acme-crm"))
    same = await store.change("me", kept.id, command("crm"), Options(), "Customers")
    assert (same.id, same.name, same.server) == (kept.id, "Customers", Server(NOW, "acme-crm"))
    other = await store.change("me", kept.id, HttpTarget(transport="http", url="http://h/"), Options(), "")
    assert (other.id, other.name, other.server) == (kept.id, "Customers", None)
    assert len(store.of("me")) == 1
    await store.close()


SECOND = """
CREATE TABLE eras (command TEXT PRIMARY KEY, era TEXT NOT NULL, at REAL NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES ('0002');
PRAGMA application_id = 1348563564;
PRAGMA user_version = 2;
"""
"""What makes a file of the first version one of the second."""


@pytest.mark.of_sqlite
async def test_a_file_of_the_form_before_loses_no_row_of_the_list(tmp_path: Path):
    from tests.store.files import FIRST

    path = old_file(tmp_path, FIRST + SECOND)
    before = asked(path, "SELECT id, used FROM targets ORDER BY id")
    store = await opened(tmp_path)
    found = sorted((one.id, one.server.seen) for one in store.of("local") if one.server is not None)
    assert found == before, "nobody knows which of them failed: each is listed"
    await store.close()
    assert asked(path, "SELECT target, seen FROM servers ORDER BY target") == before
    assert asked(tmp_path / f"{FILE}.v2.bak", "PRAGMA user_version") == [(2,)]


@pytest.mark.of_sqlite
async def test_odd_rows_break_nothing(tmp_path: Path):
    store = await opened(tmp_path)
    await store.save("me", command("crm"), Options(), "CRM")
    await store.close()
    with sqlite3.connect(tmp_path / FILE) as file:
        file.execute("INSERT INTO servers SELECT id, ?, 3, '', 9e999 FROM targets", ("x" * 5000,))
        file.execute("INSERT INTO servers VALUES ('gone', 'y', NULL, '', 1.0)")
    file.close()
    store = await opened(tmp_path)
    (kept,) = store.of("me")
    assert kept.server is not None
    assert (len(kept.server.name), kept.server.seen) == (200, 0.0)
    await store.close()
