"""A session that is recorded: all of it, from its first byte, masked, and never in its way."""

import gc
import os
import signal
import threading
import weakref
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from app import bounds
from app.core.errors import Conflict, NotAllowed
from app.recordings import codec, states
from app.recordings.lines import Gap, ListState, message_of
from app.recordings.recorder import Recorder
from app.recordings.recorders import Recorders
from app.sessions import Session, SessionRegistry
from app.settings import Limits, local
from app.store.bodies import Adding, FileBodies, FileBody, Unwritable
from tests.conftest import Processes
from tests.drive import HANG, ME, call_tool, connected, echoes, raw_target
from tests.drive_http import raw_peer
from tests.recordings.drive import Read, keeping, lived, read_back

pytestmark = pytest.mark.usefixtures("processes")


def agrees(session: Session, read: Read) -> None:
    """Every message and every noun of a session is in its recording, as it is."""
    rows = session.messages.last(100_000)
    assert [message_of(frame) for frame in read.frames] == rows
    assert [frame.raw for frame in read.frames] == [session.messages.raw(row.seq) for row in rows]
    for key, noun in states.everything(session):
        kind = next(kind for kind, each in states_kinds().items() if isinstance(noun, each))
        state = read.of(kind)[key]
        if isinstance(noun, ListState) and isinstance(state.noun, ListState):
            assert state.noun.items_from == noun.items_from
            assert state.noun.listing.seqs == noun.listing.seqs
        else:
            assert codec.write(state.noun) == codec.write(noun)
    assert [codec.write(line) for line in session.stderr.lines()] == [
        codec.write(state.noun) for state in read.of("stderr").values()
    ]


async def recorded(recorders: Recorders, session: Session) -> Recorder:
    """The recording of a session that is connected, begun."""
    recorder = recorders.start(session)
    await connected(session, raw_target())
    await recorder.begun.wait()
    return recorder


def states_kinds() -> dict[str, Any]:
    from app.recordings.lines import NOUNS

    return dict(NOUNS)


@pytest.mark.parametrize(("era", "late"), [("legacy", False), ("modern", True)])
async def test_it_is_the_session_to_the_last_noun(tmp_path: Path, era: str, late: bool, processes: Processes):
    async with keeping(tmp_path) as registry:
        recorders, session = Recorders(registry), registry.open(ME)
        if not late:
            recorders.start(session)
        await lived(session, era=era)
        if late:
            recorders.start(session)
        await session.disconnect()
        recording = await recorders.stop(session)
        assert recording.words == ""
        assert recorders.scribe_pid is None
        store = registry.store.recordings
        read = read_back(store, recording.id)
        agrees(session, read)
        assert read.end is not None
        assert read.end.why == "stopped"
        assert (recording.state, recording.messages, recording.size) == (
            "complete",
            session.messages.count,
            len((tmp_path / "recordings" / f"{recording.id}.jsonl").read_bytes()),
        )
        assert recording.calls == sum(not call.quiet for call in session.calls.values())
        assert recording.asks == len(session.inbox.asks)
        path = tmp_path / "recordings" / f"{recording.id}.jsonl"
        assert path.stat().st_mode & 0o077 == 0
    async with keeping(tmp_path) as registry:
        await registry.store.loaded()
        assert registry.store.recordings.of(ME.id) == [recording]


async def test_over_http_every_exchange_is_there_with_what_became_of_it(tmp_path: Path):
    async with keeping(tmp_path) as registry, raw_peer() as peer:
        recorders, session = Recorders(registry), registry.open(ME)
        recorders.start(session)
        await connected(session, peer.target())
        await session.disconnect()
        recording = await recorders.stop(session)
        read = read_back(registry.store.recordings, recording.id)
        exchanges = session.messages.exchanges()
        assert exchanges
        for one in exchanges:
            assert codec.write(read.of("exchange")[str(one.seq)].noun) == codec.write(one)
        carried = {frame.seq: frame.exchange for frame in read.frames if frame.exchange is not None}
        assert carried == {
            row.seq: found.seq
            for row in session.messages.last(1000)
            if (found := session.messages.exchange(row.seq)) is not None
        }


async def test_the_limit_of_its_size_ends_it_and_says_so(tmp_path: Path):
    async with keeping(tmp_path, limits=Limits(recording_bytes=30_000)) as registry:
        recorders, session = Recorders(registry), registry.open(ME)
        recorder = recorders.start(session)
        await connected(session, raw_target())
        while recorder.live:
            await call_tool(session, "echo", {"message": "x" * 2_000})
        await recorder.over.wait()
        assert "which is the limit. The session goes on." in recorder.trouble
        read = read_back(registry.store.recordings, recorder.rid)
        assert read.end is not None
        assert (read.end.why, read.end.words) == ("full", recorder.trouble)
        assert recorder.recording.state == "complete"
        await echoes(session)


async def test_what_a_slow_disk_could_not_keep_up_with_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stuck, go_on = threading.Event(), threading.Event()
    append = FileBody.append

    def slow(self: FileBody, data: bytes) -> None:
        append(self, data)
        if b"the last before" in data:
            stuck.set()
            assert go_on.wait(HANG)

    monkeypatch.setattr(FileBody, "append", slow)
    async with keeping(tmp_path, limits=Limits(log_messages=40)) as registry:
        recorders, session = Recorders(registry), registry.open(ME)
        recorder = recorders.start(session)
        await connected(session, raw_target())
        await call_tool(session, "echo", {"message": "the last before"})
        assert await anyio.to_thread.run_sync(stuck.wait, HANG)
        for _ in range(60):
            await echoes(session)
        go_on.set()
        await recorders.stop(session)
        read = read_back(registry.store.recordings, recorder.rid)
        missing = session.messages.count - len(read.frames)
        gaps = [state.noun for state in read.of("gap").values() if isinstance(state.noun, Gap)]
        assert missing > 0
        assert sum(gap.messages for gap in gaps) == missing
        assert "too slow" in gaps[0].why


async def test_what_several_sessions_have_goes_to_the_masks_and_to_the_disk_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    taken = list[int]()
    add = FileBodies.add

    def counted(self: FileBodies, adding: Adding) -> None:
        taken.append(len(adding.many))
        add(self, adding)

    monkeypatch.setattr(FileBodies, "add", counted)
    monkeypatch.setattr(bounds, "RECORDING_TURNS", 1)
    async with keeping(tmp_path) as registry:
        recorders, sessions = Recorders(registry), [registry.open(ME) for _ in range(6)]
        for session in sessions:
            recorders.start(session)
            await connected(session, raw_target())
        for _ in range(8):
            for session in sessions:
                await echoes(session)
            await anyio.sleep(0.1)
        found = [await recorders.stop(session) for session in sessions]
        assert max(taken) > 1, "several in one go"
        for session, recording in zip(sessions, found, strict=True):
            agrees(session, read_back(registry.store.recordings, recording.id))


async def test_one_that_cannot_be_written_does_not_end_those_beside_it(tmp_path: Path):
    async with keeping(tmp_path) as registry:
        recorders, sessions = Recorders(registry), [registry.open(ME) for _ in range(3)]
        at_work = [await recorded(recorders, session) for session in sessions]
        (tmp_path / "recordings" / f"{at_work[1].rid}.jsonl").unlink()
        with anyio.fail_after(HANG):
            while at_work[1].live:
                for session in sessions:
                    await echoes(session)
        await at_work[1].over.wait()
        assert "is gone" in at_work[1].trouble
        for at in (0, 2):
            recording = await recorders.stop(sessions[at])
            assert recording.words == ""
            agrees(sessions[at], read_back(registry.store.recordings, recording.id))


async def test_a_process_that_masks_and_ends_ends_every_recording_with_a_sentence(tmp_path: Path):
    async with keeping(tmp_path) as registry:
        recorders, sessions = Recorders(registry), [registry.open(ME) for _ in range(2)]
        at_work = [await recorded(recorders, session) for session in sessions]
        assert recorders.scribe_pid is not None
        os.kill(recorders.scribe_pid, signal.SIGKILL)
        with anyio.fail_after(HANG):
            for session, recorder in zip(sessions, at_work, strict=True):
                while recorder.live:
                    await echoes(session)
                await recorder.over.wait()
                assert recorder.trouble.endswith("has ended. The session goes on.")
        again = recorders.start(sessions[0])
        await echoes(sessions[0])
        recording = await recorders.stop(sessions[0])
        assert (recording.words, again.trouble) == ("", "")
        agrees(sessions[0], read_back(registry.store.recordings, recording.id))


@pytest.mark.parametrize("how", ["hangs", "fails in a way that nobody knows"])
async def test_one_whose_disk_hangs_or_fails_costs_the_others_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
):
    append, go_on, first = FileBody.append, threading.Event(), list[FileBody]()

    def stuck(self: FileBody, data: bytes) -> None:
        if b"from here on" in data and (not first or self in first):
            first.append(self)
            if how != "hangs":
                raise MemoryError
            assert go_on.wait(HANG)
        append(self, data)

    monkeypatch.setattr(FileBody, "append", stuck)
    monkeypatch.setattr(bounds, "RECORDING_KEEP_SECONDS", 0.2)
    async with keeping(tmp_path) as registry:
        recorders, sessions = Recorders(registry), [registry.open(ME) for _ in range(3)]
        at_work = [await recorded(recorders, session) for session in sessions]
        await call_tool(sessions[0], "echo", {"message": "from here on"})
        with anyio.fail_after(HANG):
            while at_work[0].live:
                for session in sessions[1:]:
                    await echoes(session)
            late = recorders.start(registry_session := registry.open(ME))
            await late.begun.wait()
            assert late.live
            await recorders.stop(registry_session)
            for at in (1, 2):
                recording = await recorders.stop(sessions[at])
                assert recording.words == ""
                agrees(sessions[at], read_back(registry.store.recordings, recording.id))
            go_on.set()
            await at_work[0].over.wait()
        assert "The session goes on." in at_work[0].trouble
        for at in (1, 2):
            agrees(sessions[at], read_back(registry.store.recordings, at_work[at].rid))


def test_a_file_that_was_let_go_of_takes_nothing_more(tmp_path: Path):
    bodies = FileBodies(tmp_path)
    body = bodies.create("one")
    body.close()
    other = bodies.create("two")  # has the number that the first one had
    with pytest.raises(Unwritable):
        body.append(b"for the first")
    assert other.size == 0
    other.close()


async def test_each_session_is_recorded_from_its_connection_on_when_that_is_set(tmp_path: Path):
    async with keeping(tmp_path, record="always") as registry:
        recorders = Recorders(registry)
        registry.when_connecting.append(recorders.connects)
        session = registry.open(ME)
        await connected(session, raw_target())
        recorder = recorders.live(session)
        assert recorder is not None
        await session.close()
        await recorder.over.wait()
        read = read_back(registry.store.recordings, recorder.rid)
        assert read.end is not None
        assert read.end.why == "closed"
        assert read.frames[0].number == 1
        (row,) = registry.store.recordings.of(ME.id)
        assert row.title == session.label, "as the server calls itself, once that is known"


@pytest.mark.requirement("U-C03")
async def test_closing_ends_it_with_its_last_line_and_a_session_that_comes_back_is_recorded_anew(tmp_path: Path):
    async with keeping(tmp_path) as registry:
        recorders, session = Recorders(registry), registry.open(ME)
        first = recorders.start(session)
        await connected(session, raw_target())
        await registry.close(session, undo=True)
        with anyio.fail_after(HANG):
            await first.over.wait()
        assert recorders.scribe_pid is None
        again = await registry.reopen(ME, session.id)
        assert again is session
        assert recorders.live(session) is None
        second = recorders.start(session)
        await connected(session, raw_target())
        await registry._close_idle(session, 0.0)
        with anyio.fail_after(HANG):
            await second.over.wait()
        assert recorders.scribe_pid is None
        told = [read_back(registry.store.recordings, one.rid) for one in (first, second)]
        assert [one.end is not None and one.end.why for one in told] == ["closed", "closed"]
        assert len(told[1].frames) == session.messages.count, "with all that was there before it was closed"


async def test_a_session_that_was_recorded_is_let_go_of(tmp_path: Path):
    async with keeping(tmp_path) as registry:
        recorders, session = Recorders(registry), registry.open(ME)
        recorders.start(session)
        await connected(session, raw_target())
        await recorders.stop(session)
        await registry.close(session)
        gone = weakref.ref(session)
        del session
        with anyio.fail_after(HANG):
            while gone() is not None:  # tasks of it may have a last step before them
                gc.collect()
                await anyio.lowlevel.checkpoint()


async def test_who_cannot_record_hears_why(tmp_path: Path):
    async with keeping(tmp_path, limits=Limits(recordings_bytes=1)) as registry:
        recorders, session = Recorders(registry), registry.open(ME)
        recorder = recorders.start(session)
        with pytest.raises(Conflict, match="already"):
            recorders.start(session)
        await recorders.stop(session)
        assert recorder.size > 1
        with pytest.raises(NotAllowed, match="Delete one first"):
            recorders.start(session)
        with pytest.raises(Conflict, match="not being recorded"):
            await recorders.stop(session)
        await session.close()
        with pytest.raises(Conflict, match="closed"):
            recorders.start(session)
    async with SessionRegistry(local()) as registry:
        with pytest.raises(NotAllowed, match="--data-dir"):
            Recorders(registry).start(registry.open(ME))
