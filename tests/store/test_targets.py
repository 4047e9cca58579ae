"""Saved targets outlive the process, secrets do not; and a broken disk costs only the saving (F25)."""

import errno
import math
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.errors import Conflict, Invalid
from app.core.options import Options
from app.core.targets import DemoTarget, HttpTarget, StdioTarget
from app.core.times import wire_time
from app.store import FILE, RECENT, Store, without_secrets
from app.web.kit import format, html

SERVER = StdioTarget(
    command="uv",
    args=("run", "desk.py"),
    env={"DESK_DB": "dev.db", "DESK_KEY": "canary-1", "PLAIN": "canary-2"},
    secret=("PLAIN",),
    cwd="/srv",
)
BILLING = HttpTarget(
    transport="http",
    url="https://mara:canary-3@mcp.example/mcp?token=canary-4&page=1",
    headers={"Authorization": "Bearer canary-5", "X-Team": "blue", "X-Odd": "canary-6"},
    secret=("x-odd",),
)


async def opened(directory: Path | None, **more: int) -> Store:
    store = Store(directory, **more)  # type: ignore[arg-type]
    await store.open()
    return store


async def again(store: Store) -> Store:
    """The same file in the next process."""
    await store.close()
    return await opened(store.directory)


def files(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def used(store: Store, target: StdioTarget | HttpTarget | DemoTarget, owner: str = "me") -> None:
    await store.write(store.used(owner, target, Options()))


# ----------------------------------------------------------------------------------------------------------- keeping


async def test_a_saved_target_comes_back(tmp_path: Path):
    store = await opened(tmp_path)
    kept = await store.save("me", SERVER, Options(sampling=False), "  Travel \n desk ")
    assert kept.name == "Travel desk"
    store = await again(store)
    (back,) = store.of("me")
    assert (back.id, back.name, back.saved) == (kept.id, "Travel desk", True)
    assert isinstance(back.target, StdioTarget)
    assert (back.target.command, back.target.args, back.target.cwd) == ("uv", ("run", "desk.py"), "/srv")
    assert back.options == Options(sampling=False)
    await store.rename("me", back.id, "Desk")
    store = await again(store)
    assert store.of("me")[0].name == "Desk"
    await store.delete("me", back.id)
    store = await again(store)
    assert store.of("me") == []
    await store.close()


async def test_recent_targets_are_few_and_saved_ones_stay(tmp_path: Path):
    store = await opened(tmp_path)
    saved = await store.save("me", SERVER, Options(), "Desk")
    for number in range(RECENT + 5):
        await used(store, HttpTarget(transport="http", url=f"http://host/{number}"))
    for each in (store, await again(store)):
        urls = [one.target.url for one in each.of("me") if isinstance(one.target, HttpTarget)]
        assert urls == [f"http://host/{number}" for number in range(RECENT + 4, 4, -1)]
        assert each.find("me", saved.id) is not None
        await each.close()


async def test_the_same_target_is_kept_once_and_keeps_its_name(tmp_path: Path):
    store = await again(await _saved(tmp_path, SERVER))
    (kept,) = store.of("me")
    assert kept.missing == ("DESK_KEY", "PLAIN")
    await used(store, SERVER)
    (now,) = store.of("me")
    assert (now.id, now.name, now.target, now.missing) == (kept.id, kept.name, SERVER, ())
    await store.close()


async def _saved(directory: Path, target: StdioTarget | HttpTarget) -> Store:
    store = await opened(directory)
    await store.save("me", target, Options(), "It")
    return store


@pytest.mark.requirement("S15")
async def test_one_identity_does_not_see_anothers(tmp_path: Path):
    store = await opened(tmp_path)
    kept = await store.save("me", SERVER, Options(), "Desk")
    assert store.of("mallory") == []
    assert store.find("mallory", kept.id) is None
    with pytest.raises(Conflict):
        await store.rename("mallory", kept.id, "Mine")
    with pytest.raises(Conflict):
        await store.delete("mallory", kept.id)
    with pytest.raises(Invalid):
        await store.rename("me", kept.id, "  ")
    await store.close()


async def test_without_a_directory_it_is_memory_only():
    store = await opened(None)
    await store.save("me", SERVER, Options(), "Desk")
    assert [one.name for one in store.of("me")] == ["Desk"]
    assert store.trouble == ""
    await store.close()


# ----------------------------------------------------------------------------------------------------------- secrets


@pytest.mark.parametrize("target", [SERVER, BILLING], ids=["process", "http"])
async def test_no_secret_reaches_the_disk(tmp_path: Path, target: StdioTarget | HttpTarget):
    store = await opened(tmp_path)
    await store.save("me", target, Options(meta={"api_token": "canary-7", "who": "me"}), "It")
    await used(store, target)
    await store.close()
    for file in files(tmp_path):
        assert b"canary" not in file.read_bytes(), file


def test_what_is_left_out_is_said():
    plain, missing = without_secrets(SERVER)
    assert isinstance(plain, StdioTarget)
    assert (plain.env, missing) == ({"DESK_DB": "dev.db"}, ("DESK_KEY", "PLAIN"))
    plain, missing = without_secrets(BILLING)
    assert isinstance(plain, HttpTarget)
    assert plain.url == "https://•••@mcp.example/mcp?token=•••&page=1"
    assert missing == ("Authorization", "X-Odd", "the address")
    command = StdioTarget(command="x", args=("--api-key", "a", "--token=b", "--verbose", "--port=1"))
    plain, missing = without_secrets(command)
    assert isinstance(plain, StdioTarget)
    assert plain.args == ("--api-key", "•••", "--token=•••", "--verbose", "--port=1")
    assert missing == ("the command line",)
    assert without_secrets(DemoTarget()) == (DemoTarget(), ())


@pytest.mark.of_sqlite
async def test_the_file_is_the_users_alone(tmp_path: Path):
    directory = tmp_path / "new" / "parley"
    await (await _saved(directory, SERVER)).close()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / FILE).stat().st_mode) == 0o600
    (directory / FILE).chmod(0o644)
    store = await opened(directory)
    assert stat.S_IMODE((directory / FILE).stat().st_mode) == 0o600
    await store.close()


# ------------------------------------------------------------------------------------------------------------ faults


@pytest.mark.of_sqlite
@pytest.mark.requirement("F25")
async def test_a_damaged_file_costs_only_the_saving(tmp_path: Path):
    (tmp_path / FILE).write_bytes(b"this is no database" * 500)
    store = await opened(tmp_path)
    assert "is damaged" in store.trouble
    await store.save("me", SERVER, Options(), "Desk")
    assert "is damaged" in store.trouble
    assert [one.name for one in store.of("me")] == ["Desk"]
    (tmp_path / FILE).unlink()
    await used(store, SERVER)
    assert store.trouble == ""
    store = await again(store)
    assert [one.name for one in store.of("me")] == ["Desk"]
    await store.close()


@pytest.mark.of_sqlite
@pytest.mark.requirement("F25")
async def test_a_file_that_is_damaged_in_the_middle(tmp_path: Path):
    store = await opened(tmp_path)
    for number in range(60):
        await store.save("me", HttpTarget(transport="http", url=f"http://host/{number}/{'x' * 400}"), Options(), "It")
    await store.close()
    with (tmp_path / FILE).open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(4096 * 3))
    store = await opened(tmp_path)
    assert "is damaged" in store.trouble
    await store.close()


@pytest.mark.of_sqlite
@pytest.mark.requirement("F25")
async def test_a_full_disk_costs_only_the_saving(tmp_path: Path):
    store = await opened(tmp_path, max_pages=30)
    assert store.trouble == ""
    for number in range(60):
        await store.save("me", HttpTarget(transport="http", url=f"http://host/{number}/{'x' * 900}"), Options(), "It")
    assert "is full" in store.trouble
    assert len(store.of("me")) == 60
    for kept in store.of("me")[10:]:
        await store.delete("me", kept.id)
    assert store.trouble == ""
    await store.close()


@pytest.mark.of_sqlite
@pytest.mark.requirement("F25")
@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EIO])
async def test_a_directory_that_is_read_only(tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch):
    """Root may write anywhere, so the system's answer is played here."""

    def refuse(*arguments: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr("app.store.database.os.open", refuse)
        store = await opened(tmp_path)
        await store.save("me", SERVER, Options(), "Desk")
        assert "cannot be" in store.trouble
        assert str(tmp_path) in store.trouble
        assert [one.name for one in store.of("me")] == ["Desk"]
    await used(store, SERVER)
    assert store.trouble == ""
    await store.close()


@pytest.mark.of_sqlite
@pytest.mark.requirement("F25")
async def test_a_directory_that_cannot_be(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    store = await opened(tmp_path / "file")
    await store.save("me", SERVER, Options(), "Desk")
    assert store.trouble
    assert [one.name for one in store.of("me")] == ["Desk"]
    await store.close()


@pytest.mark.of_sqlite
async def test_a_directory_in_the_place_of_the_file_is_named_and_left_alone(tmp_path: Path):
    """Its permissions too: without the right to enter it, whatever is below would be out of reach."""
    (tmp_path / FILE).mkdir(mode=0o755)
    store = await opened(tmp_path)
    await store.save("me", SERVER, Options(), "Desk")
    assert "Is a directory" in store.trouble
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o755
    await store.close()


@pytest.mark.of_sqlite
async def test_a_file_of_a_newer_parley_is_left_alone(tmp_path: Path):
    await (await _saved(tmp_path, SERVER)).close()
    file = sqlite3.connect(tmp_path / FILE)
    file.execute("PRAGMA user_version = 99")
    file.close()
    store = await opened(tmp_path)
    assert "newer Parley" in store.trouble
    await store.close()


@pytest.mark.of_sqlite
async def test_a_row_that_makes_no_sense_is_passed_over(tmp_path: Path):
    store = await opened(tmp_path)
    first = await store.save("me", SERVER, Options(), "Desk")
    await store.save("me", BILLING, Options(), "Billing")
    await store.close()
    file = sqlite3.connect(tmp_path / FILE)
    with file:
        file.execute('UPDATE targets SET target = \'{"transport": "pigeon"}\' WHERE id = ?', (first.id,))
    file.close()
    store = await opened(tmp_path)
    assert [one.name for one in store.of("me")] == ["Billing"]
    await store.close()


# --- two Parleys, and what a file may say ---------------------------------------------------------------------------


@pytest.mark.requirement("M05")
async def test_m05_two_parleys_on_one_directory_keep_each_others_recent_targets(tmp_path: Path):
    one, two = await opened(tmp_path), await opened(tmp_path)
    for number in range(3):
        await used(one, HttpTarget(transport="http", url=f"http://one/{number}"))
        await used(two, HttpTarget(transport="http", url=f"http://two/{number}"))
    await one.close()
    store = await again(two)
    urls = {kept.target.url for kept in store.of("me") if isinstance(kept.target, HttpTarget)}
    assert urls == {f"http://{host}/{number}" for host in ("one", "two") for number in range(3)}
    await store.close()


@pytest.mark.requirement("M05")
async def test_m05_the_file_still_holds_no_more_than_the_most_recent_ones(tmp_path: Path):
    one, two = await opened(tmp_path), await opened(tmp_path)
    for number in range(RECENT):
        await used(one, HttpTarget(transport="http", url=f"http://one/{number}"))
        await used(two, HttpTarget(transport="http", url=f"http://two/{number}"))
    await one.close()
    store = await again(two)
    urls = [kept.target.url for kept in store.of("me") if isinstance(kept.target, HttpTarget)]
    newest = [f"http://{host}/{number}" for number in reversed(range(RECENT)) for host in ("two", "one")]
    assert urls == newest[:RECENT]
    await store.close()


@pytest.mark.requirement("M05")
async def test_m05_using_a_target_does_not_take_the_name_that_another_parley_gave_it(tmp_path: Path):
    one = await opened(tmp_path)
    await used(one, SERVER)
    two = await opened(tmp_path)
    await one.rename("me", one.of("me")[0].id, "Desk")
    await used(two, SERVER)
    await one.close()
    store = await again(two)
    assert [kept.name for kept in store.of("me")] == ["Desk"]
    await store.close()


@pytest.mark.requirement("M05")
def test_m05_many_processes_write_at_the_same_time_and_none_loses_a_saved_target(tmp_path: Path):
    program = """
import sys, anyio
from pathlib import Path
from app.core.options import Options
from app.core.targets import HttpTarget
from app.store import Store

async def main():
    store = Store(Path(sys.argv[1]))
    await store.open()
    for number in range(20):
        target = HttpTarget(transport="http", url=f"http://{sys.argv[2]}/{number}")
        await store.save("me", target, Options(), f"{sys.argv[2]} {number}")
        assert store.trouble == "", store.trouble
        recent = HttpTarget(transport="http", url=f"http://recent/{sys.argv[2]}/{number}")
        await store.write(store.used("me", recent, Options()))
        assert store.trouble == "", store.trouble
    await store.close()

anyio.run(main)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    writers = [subprocess.Popen([*command, f"w{number}"], stderr=subprocess.PIPE, text=True) for number in range(3)]
    for writer in writers:
        assert (writer.communicate(timeout=60)[1], writer.returncode) == ("", 0)
    file = sqlite3.connect(tmp_path / FILE)
    assert file.execute("SELECT count(*) FROM targets WHERE name != ''").fetchone() == (60,)
    assert file.execute("SELECT count(*) FROM targets WHERE name = ''").fetchone() == (RECENT,)
    file.close()


@pytest.mark.of_sqlite
@pytest.mark.requirement("M04")
@pytest.mark.parametrize("number", ["9e999", "-9e999", "1e300", "-1", "253402300800"])
async def test_m04_a_stored_time_that_is_no_time_is_read_as_none(tmp_path: Path, number: str):
    await (await _saved(tmp_path, SERVER)).close()
    file = sqlite3.connect(tmp_path / FILE)
    with file:
        file.execute(f"UPDATE targets SET used = {number}")
    file.close()
    store = await opened(tmp_path)
    assert [(kept.name, kept.used) for kept in store.of("me")] == [("It", 0.0)]
    await store.close()


@pytest.mark.requirement("M04")
@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (math.inf, "9999-12-31T23:59:59.000Z"),
        (1e300, "9999-12-31T23:59:59.000Z"),
        (-math.inf, "1970-01-01T00:00:00.000Z"),
        (-1e300, "1970-01-01T00:00:00.000Z"),
        (math.nan, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000.25, "2023-11-14T22:13:20.250Z"),
    ],
)
def test_m04_every_number_can_be_shown_as_a_time(at: float, shown: str):
    assert wire_time(at) == shown
    assert format.clock(at) == shown[11:23]
    assert html.time_of_day(at) == f'<time datetime="{shown}">{shown[11:19]}</time>'


async def test_a_target_that_is_used_before_the_file_is_read_is_the_one_in_it(tmp_path: Path):
    target = StdioTarget(command="server")
    before = Store(tmp_path)
    await before.open()
    kept = await before.save("me", target, Options(), "It")
    await before.close()
    store = Store(tmp_path)
    used = store.used("me", target, Options())
    await store.open()
    assert [(one.id, one.name, one.used) for one in store.of("me")] == [(kept.id, "It", used.used)]
    await store.close()
