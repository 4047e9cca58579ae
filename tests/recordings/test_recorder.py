"""A session that is recorded: all of it, from its first byte, masked, and never in its way."""

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from app.core.errors import Conflict, NotAllowed
from app.recordings import codec, states
from app.recordings.lines import Gap, ListState, message_of
from app.recordings.recorders import Recorders
from app.sessions import Session, SessionRegistry
from app.settings import Limits, local
from app.store.bodies import FileBody
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
