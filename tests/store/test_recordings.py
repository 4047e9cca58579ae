"""Rows and bodies of recordings: kept over a restart, in files or in the database alike, deleted, and too old."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app import bounds
from app.core.errors import Gone, Invalid, NotAllowed
from app.settings import Limits
from app.store import Store
from app.store.bodies import Bodies, Unwritable
from app.store.index_file import IndexFile, trim
from app.store.recordings import Recording, Recordings, new_id, writer

KINDS = ["files", "database"]


@asynccontextmanager
async def opened(directory: Path | None, kept_in: str = "files", **limits: Any) -> AsyncIterator[Recordings]:
    store = Store(directory, recordings_in=kept_in, limits=Limits(**limits))
    await store.open()
    try:
        await store.recordings.prepare()
        yield store.recordings
    finally:
        await store.close()


def a_recording(rid: str = "", **more: Any) -> Recording:
    made = Recording(id=rid or new_id(), owner="me", title="One", state="complete", began=5e9, ended=5e9)
    return replace(made, **more)


@pytest.mark.requirement("U-C04")
@pytest.mark.parametrize("kept_in", KINDS)
async def test_a_body_is_added_to_read_at_any_place_replaced_and_deleted(tmp_path: Path, kept_in: str):
    async with opened(tmp_path, kept_in) as store:
        bodies: Bodies = store.bodies
        with pytest.raises(KeyError):
            bodies.open("rec-none")
        body = bodies.create("rec-1")
        big = os.urandom(bounds.RECORDING_CHUNK * 2 + 17)
        body.append(b"one\n")
        body.append(big)
        body.append(b"end\n")
        body.sync()
        whole = b"one\n" + big + b"end\n"
        assert body.size == len(whole)
        read = bodies.open("rec-1")
        assert read.size == len(whole)
        for at, size in [(0, 4), (0, len(whole)), (3, 9), (bounds.RECORDING_CHUNK - 5, 20), (len(whole) - 2, 99)]:
            assert read.read(at, size) == whole[at : at + size]
        assert read.read(len(whole), 10) == b""
        read.close()
        other = bodies.create("rec-2")
        other.append(b"two\n")
        other.close()
        body.close()
        bodies.replace("rec-1", "rec-2")
        again = bodies.open("rec-1")
        assert again.read(0, 99) == b"two\n"
        again.close()
        with pytest.raises(KeyError):
            bodies.open("rec-2")
        bodies.delete("rec-1")
        bodies.delete("rec-1")
        with pytest.raises(KeyError):
            bodies.open("rec-1")


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a.b", "é", "rec-1\0"])
async def test_no_name_leads_out_of_the_directory(tmp_path: Path, name: str):
    async with opened(tmp_path) as store:
        for use in (store.bodies.open, store.bodies.create, store.bodies.delete):
            with pytest.raises(KeyError):
                use(name)


async def test_a_body_is_for_its_owner_alone_and_follows_no_link(tmp_path: Path):
    async with opened(tmp_path) as store:
        store.bodies.create("rec-1").close()
        path = tmp_path / "recordings" / "rec-1.jsonl"
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        (tmp_path / "secret").write_text("no")
        (path.parent / "rec-2.jsonl").symlink_to(tmp_path / "secret")
        with pytest.raises(Unwritable):
            store.bodies.open("rec-2")
        with pytest.raises(Unwritable):
            store.bodies.create("rec-1")


async def test_rows_outlive_the_process_and_belong_to_their_owner(tmp_path: Path):
    async with opened(tmp_path) as store:
        kept = a_recording(label="demo", tags=("a", "b"), masked=({"pointer": "/x", "name": "y", "count": 2},), asks=3)
        await store.put(kept)
        changed = await store.change(kept, title="  Two  words ", notes="n\nm ", tags=[" x  y ", "", "x y", "z"])
        assert (changed.title, changed.notes, changed.tags) == ("Two words", "n\nm", ("x y", "z"))
        for wrong in ({"title": " "}, {"title": "x" * 201}, {"tags": ["x"] * 2 + ["y" * 41]}, {"notes": "n" * 10_001}):
            with pytest.raises(Invalid):
                await store.change(kept, **wrong)
    async with opened(tmp_path) as store:
        assert store.of("me") == [changed]
        assert store.of("you") == []
        assert store.find("you", changed.id) is None
        await store.delete(changed)
        with pytest.raises(Gone):
            await store.delete(changed)
    async with opened(tmp_path) as store:
        assert store.of("me") == []


@pytest.mark.of_sqlite  # a lease says who still writes there
@pytest.mark.parametrize("kept_in", KINDS)
async def test_what_nobody_writes_any_more_is_cut_and_as_large_as_it_is(tmp_path: Path, kept_in: str):
    async with opened(tmp_path, kept_in) as store:
        dead = a_recording("rec-dead", state="recording", ended=None, writer="elsewhere:1:1")
        mine = a_recording("rec-mine", state="recording", ended=None, writer=writer())
        for one in (dead, mine):
            body = store.bodies.create(one.id)
            body.append(b"12345\n")
            body.close()
            await store.put(one)
    async with opened(tmp_path, kept_in) as store:
        found = {one.id: one for one in store.of("me")}
        assert (found["rec-dead"].state, found["rec-dead"].size) == ("cut", 6)
        assert found["rec-mine"].state == "recording", "another Parley of the same directory writes it"


async def test_what_is_older_than_the_limit_is_deleted_at_the_start_and_said(tmp_path: Path):
    async with opened(tmp_path) as store:
        for rid, began in (("rec-old", 1e9), ("rec-new", 5e9)):
            store.bodies.create(rid).close()
            await store.put(a_recording(rid, title=rid, began=began, ended=began + 5))
    async with opened(tmp_path, recording_days=30) as store:
        assert [one.id for one in store.of("me")] == ["rec-new"]
        assert store.too_old == ["rec-old"]
        assert sorted(path.name for path in (tmp_path / "recordings").iterdir()) == ["rec-new.jsonl"]


async def test_there_is_room_until_there_is_none(tmp_path: Path):
    async with opened(tmp_path, recordings_bytes=10) as store:
        store.room("me")
        await store.put(a_recording(size=10))
        with pytest.raises(NotAllowed, match="which is the limit"):
            store.room("me")
    async with opened(None) as store:
        assert not store.possible
        with pytest.raises(NotAllowed, match="--data-dir"):
            _ = store.bodies


@pytest.mark.requirement("U-C04")
def test_indexes_take_so_much_of_the_disk_and_the_oldest_go_first(tmp_path: Path):
    paths = [tmp_path / f"rec-{name}.idx" for name in "abcd"]
    for at, path in enumerate(paths):
        index = IndexFile(path)
        index.close()
        path.with_suffix(".texts").write_bytes(b"x" * 100_000)
        os.utime(path, (1_000 + at, 1_000 + at))
    trim(tmp_path, 1_000_000, set())
    assert all(path.exists() for path in paths)
    trim(tmp_path, 300_000, {paths[0]})  # two of them fit, and one is open
    assert [path.exists() for path in paths] == [True, False, False, True]
    assert sorted(one.name for one in tmp_path.iterdir() if one.suffix == ".texts") == ["rec-a.texts", "rec-d.texts"]


async def test_whoever_keeps_an_index_hears_of_a_deletion(tmp_path: Path):
    async with opened(tmp_path) as store:
        heard: list[str] = []

        async def told(rid: str) -> None:
            heard.append(rid)

        store.when_changed.append(told)
        kept = a_recording("rec-1")
        await store.put(kept)
        await store.delete(kept)
        assert heard == ["rec-1"]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda path: (path / "recordings" / "rec-1.jsonl").unlink(), "is gone"),
        (lambda path: (path / "recordings").rename(path / "away"), "is gone"),
    ],
)
async def test_a_file_that_was_taken_away_takes_nothing_more(
    tmp_path: Path, broken: Callable[[Path], object], words: str
):
    async with opened(tmp_path) as store:
        body = store.bodies.create("rec-1")
        body.append(b"one\n")
        broken(tmp_path)
        with pytest.raises(Unwritable, match=words):
            body.append(b"two\n")
        body.close()
