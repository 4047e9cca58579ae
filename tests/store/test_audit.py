"""Who did what: found by words, kept as long as it may, exported by line; and the catalogue that is kept beside it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app import team_bounds as bounds
from app.core.catalogue import Entry as Listed
from app.core.errors import NotAllowed
from app.store import FILE, Store
from app.store.audit import ACTS, Audit
from app.store.entries import Entries
from app.store.people import NotSaved
from tests.conftest import Clock
from tests.store.files import asked, on_disk

pytestmark = pytest.mark.requirement("T05")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    found = Store(tmp_path)
    yield found
    await found.close()


@pytest.fixture
def audit(store: Store, clock: Clock) -> Audit:
    return Audit(store.database, clock.wall)


async def test_it_is_searched_by_person_thing_and_act(audit: Audit, clock: Clock):
    audit.note("p1", "Grace", "connected", "Nordwind Travel Desk")
    audit.note("p2", "Ada", "called", "write_caption in Nordwind Travel Desk")
    audit.note("", "somebody", "was refused", "100% wrong_code", refused=True)
    found = await audit.search()
    assert [(one.who, one.act, one.refused) for one in found] == [
        ("somebody", "was refused", True),
        ("Ada", "called", False),
        ("Grace", "connected", False),
    ]
    assert [one.who for one in await audit.search("nordwind GRACE")] == ["Grace"]
    assert [one.who for one in await audit.search(act="called")] == ["Ada"]
    assert [one.who for one in await audit.search("100%")] == ["somebody"], "a sign of LIKE is a character"
    assert await audit.search("wrong%code") == []
    assert await audit.search(since=clock.wall() + 1) == []
    assert [one.who for one in await audit.search(before=found[1].id)] == ["Grace"]


async def test_the_export_has_all_of_it_as_lines(audit: Audit):
    for number in range(bounds.AUDIT_AT_ONCE + 3):
        audit.note("p1", "Grace", "called", f"tool {number}")
    while not await audit.flush():
        pass
    lines = [json.loads(line) async for line in audit.export()]
    assert [line["what"] for line in lines] == [
        f"tool {number}" for number in reversed(range(bounds.AUDIT_AT_ONCE + 3))
    ]
    assert set(lines[0]) == {"at", "person", "who", "act", "what", "refused"}
    assert lines[0]["at"].endswith("Z")


async def test_a_name_that_a_server_chose_is_one_line_without_a_secret(audit: Audit, tmp_path: Path):
    audit.note("p1", "Gr\nace\x1b[31m", "called", 'a\r\n{"fake": 1}\u2028 ghp_' + "a1B2" * 9 + " " + "x" * 5000)
    [one] = await audit.search()
    assert (one.who, "\n" in one.what, len(one.what) <= bounds.AUDIT_TEXT) == ("Gr ace [31m", False, True)
    assert "ghp_a1B2" not in one.what
    assert b"ghp_a1B2" not in on_disk(tmp_path)


async def test_old_entries_go_and_the_newest_of_too_many_stay(
    audit: Audit, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    audit.note("p1", "Grace", "signed in")
    await audit.flush()
    clock.wall_shift = bounds.AUDIT_DAYS * 86_400 + 1
    for number in range(5):
        audit.note("p1", "Grace", "called", str(number))
    await audit.flush()
    await audit.sweep()
    assert [one.what for one in await audit.search()] == ["4", "3", "2", "1", "0"]
    monkeypatch.setattr(bounds, "AUDIT_ROWS", 2)
    await audit.sweep()
    assert [one.what for one in await audit.search()] == ["4", "3"]


@pytest.mark.of_sqlite
async def test_what_cannot_be_written_waits_and_what_was_lost_is_said(
    store: Store, audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bounds, "AUDIT_WAITING", 3)
    path, store.database.path = store.database.path, tmp_path / "not" / "a" / "folder"
    (tmp_path / "not").write_text("x")
    for number in range(5):
        audit.note("p1", "Grace", "called", str(number))
    assert not await audit.flush()
    store.database.path = path
    assert await audit.flush()
    await audit.flush()
    assert [one.what for one in await audit.search()] == ["2 could not be written", "2", "1", "0"]


def test_every_act_has_a_word():
    assert len(set(ACTS)) == len(ACTS) and all(act == act.strip() for act in ACTS)


# -------------------------------------------------------------------------------------------------------- the catalogue


async def test_the_catalogue_of_the_page_is_there_after_a_restart(
    store: Store, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    entries = Entries(store.database, clock.wall)
    one = Listed(id="one", name="One", transport="stdio", command="/opt/one", memory_mib=256)
    await entries.put(one, "p1")
    await entries.put(one.model_copy(update={"description": "Better"}), "p2")
    await entries.put(Listed(id="two", name="Two", transport="demo"), "p1")
    assert not await entries.delete("none")
    assert await entries.delete("two")
    again = Entries(Store(tmp_path).database, clock.wall)
    await again.open()
    assert again.all() == entries.all() and again.all()[0].description == "Better"
    monkeypatch.setattr(bounds, "ENTRIES", 1)
    with pytest.raises(NotAllowed, match="limit"):
        await entries.put(Listed(id="three", name="Three", transport="demo"), "p1")
    assert asked(tmp_path / FILE, "SELECT by FROM catalogue") == [("p2",)]


async def test_an_entry_that_cannot_be_kept_is_not_there(clock: Clock):
    entries = Entries(Store(None).database, clock.wall)
    with pytest.raises(NotSaved):
        await entries.put(Listed(id="one", name="One", transport="demo"), "p1")
    assert entries.all() == []
