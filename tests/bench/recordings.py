"""What recording costs: the same session calls `echo` in turns, recorded and not; and what a recording takes.

Each turn begins when the recorder has caught up with the log, so that only what it does beside the calls is measured.
"""

import tempfile
import time
from pathlib import Path

import anyio
import psutil

from app.core.options import Options
from app.core.targets import DemoTarget
from app.recordings.recorders import Recorders
from app.sessions import Identity, Session, SessionRegistry
from app.settings import local
from tests.bench.processes import WAIT
from tests.bench.table import Part, Say, mb, ms, p50, times, us

CALLS = 1_000
IN_FLIGHT = 20
TURNS = 5
MOST = 1.03
TEXT = "the quick brown fox"
ME = Identity("local", "you")


def measure(say: Say) -> Part:
    part = Part("recordings")
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as directory:
        anyio.run(_measure, part, Path(directory), say)
    return part


async def _measure(part: Part, directory: Path, say: Say) -> None:
    async with SessionRegistry(local(data_dir=directory)) as registry:
        session = registry.open(ME)
        session.connect(DemoTarget(), Options(era="legacy"), by=ME)
        await session.wait_connection(WAIT)
        await session.lists.refresh("tools")
        await _in_flight(session, 200)
        recorders = Recorders(registry)
        for name, how in (("one at a time", _one_by_one), (f"{IN_FLIGHT} in flight", _in_flight)):
            taken: dict[bool, list[float]] = {True: [], False: []}
            busy: dict[bool, list[float]] = {True: [], False: []}
            for turn in range(TURNS * 2):
                recorded = turn % 2 == (turn // 2) % 2
                say(f"echo, {name}, turn {turn + 1} of {TURNS * 2}, {'recorded' if recorded else 'not recorded'}")
                seconds, own = await _turn(session, recorders, how, recorded)
                taken[recorded].append(seconds)
                busy[recorded].append(own)
            ratio = p50(taken[True]) / p50(taken[False])
            part.add(f"echo, {name}, not recorded", f"{ms(p50(taken[False]) / CALLS)} a call")
            part.add(f"echo, {name}, recorded", f"{ms(p50(taken[True]) / CALLS)} a call")
            part.judge(f"echo, {name}, recorded / not", f"{ratio:.3f} ×", f"<= {MOST} ×", ratio <= MOST)
            ours = p50(busy[True]) / p50(busy[False])
            part.add(f"of that CPU of Parley's process, {name}", us(p50(busy[True]) / CALLS), ratio=times(ours))
        say("the process that masks")
        recorder = recorders.start(session)
        await _caught_up(session, recorder.recording.id, recorders)
        masks = psutil.Process(recorders.scribe_pid or 0)
        part.add("memory of the process that masks, while there is one", mb(masks.memory_info().rss))
        recording = await recorders.stop(session)
        per = recording.size / max(1, recording.messages)
        part.add("a recording of echoes", f"{per:.0f} bytes a message, calls included")


async def _turn(session: Session, recorders: Recorders, how: object, recorded: bool) -> tuple[float, float]:
    """How long all calls took, and how much of that this process was busy."""
    if recorded:
        recorder = recorders.start(session)
        await _caught_up(session, recorder.recording.id, recorders)
    began, busy = time.perf_counter(), time.process_time()
    await how(session, CALLS)  # type: ignore[operator]
    took = time.perf_counter() - began, time.process_time() - busy
    if recorded:
        await recorders.stop(session)
    return took


async def _caught_up(session: Session, rid: str, recorders: Recorders) -> None:
    with anyio.fail_after(WAIT):
        while (found := recorders.by_id(rid)) is not None and found.recording.messages < len(session.messages):
            await session.events.wait(session.events.seq)


async def _one_by_one(session: Session, calls: int) -> None:
    for _ in range(calls):
        call = session.start_call("tools/call", {"name": "echo", "arguments": {"message": TEXT}}, by=ME)
        await session.wait_call(call, WAIT)


async def _in_flight(session: Session, calls: int) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(IN_FLIGHT):
            group.start_soon(_one_by_one, session, calls // IN_FLIGHT)
