"""What recording costs: two sessions call `echo` in turns, of which one is recorded; and what a recording takes.

A turn is two beats of the recorder long, and the next one begins when it has written all of it. A machine that is used
by others goes faster and slower from one second to the next, by more than is to be measured here. So two turns that
follow each other are compared with each other, the middle half of all these pairs counts, every dozen pairs the two
sessions change places, and there are as many pairs as it takes to know the figure to half a percent, up to a limit.
"""

import gc
import tempfile
import time
from math import sqrt
from pathlib import Path
from statistics import mean, quantiles

import anyio
import psutil

from app import bounds
from app.core.options import Options
from app.core.targets import DemoTarget
from app.recordings.recorder import Recorder
from app.recordings.recorders import Recorders
from app.sessions import Identity, Session, SessionRegistry
from app.settings import local
from tests.bench.processes import WAIT
from tests.bench.table import Part, Say, mb, ms, p50, times, us

IN_FLIGHT = 20
PAIRS, AT_A_TIME = (24, 72), 12
SURE = 0.005
"""How far off the figure may be, as one standard error."""
TURN_SECONDS = bounds.RECORDING_TICK_SECONDS * 2.1
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
        recorders = Recorders(registry)
        pair = [registry.open(ME), registry.open(ME)]
        for session in pair:
            session.connect(DemoTarget(), Options(era="legacy"), by=ME)
            await session.wait_connection(WAIT)
            await session.lists.refresh("tools")
            await _calls(session, IN_FLIGHT, 2.0)
        for name, in_flight in (("one at a time", 1), (f"{IN_FLIGHT} in flight", IN_FLIGHT)):
            plain, recorded = list[Turn](), list[Turn]()
            while len(plain) < PAIRS[0] or (len(plain) < PAIRS[1] and _error(plain, recorded) > SURE):
                half = len(plain) // AT_A_TIME % 2
                recorder = recorders.start(pair[half])
                for at in range(AT_A_TIME):
                    say(f"echo, {name}, pair {len(plain) + 1}")
                    for which in ((half, 1 - half), (1 - half, half))[at % 2]:
                        await _caught_up(pair[half], recorder)
                        turn = await _calls(pair[which], in_flight, TURN_SECONDS)
                        (recorded if which == half else plain).append(turn)
                await recorders.stop(pair[half])
            took = [one[0] / other[0] for one, other in zip(recorded, plain, strict=True)]
            busy = [one[1] / other[1] for one, other in zip(recorded, plain, strict=True)]
            ratio = _middle(took)
            low, _, high = quantiles(took)
            part.add(f"echo, {name}, not recorded", f"{ms(p50([one[0] for one in plain]))} a call")
            part.judge(f"echo, {name}, recorded / not", f"{ratio:.3f} ×", f"<= {MOST} ×", ratio <= MOST)
            sure = f"± {_error(plain, recorded):.3f}"
            part.add(f"half of its {len(took)} pairs are between", f"{low:.3f} and {high:.3f} ×", ratio=sure)
            part.add(
                f"of that CPU of Parley's process, {name}",
                us(p50([one[1] for one in recorded])),
                ratio=times(_middle(busy)),
            )
        session = pair[0]
        say("the process that masks")
        recorder = recorders.start(session)
        await _caught_up(session, recorder)
        masks = psutil.Process(recorders.scribe_pid or 0)
        part.add("memory of the process that masks, while there is one", mb(masks.memory_info().rss))
        recording = await recorders.stop(session)
        per = recording.size / max(1, recording.messages)
        part.add("a recording of echoes", f"{per:.0f} bytes a message, calls included")


Turn = tuple[float, float]
"""How long one call took, and how long of that this process was busy, in seconds."""


async def _calls(session: Session, in_flight: int, seconds: float) -> Turn:
    """As many calls as there is time for."""
    made = 0
    gc.collect()
    began, busy = time.perf_counter(), time.process_time()

    async def one_by_one() -> None:
        nonlocal made
        while time.perf_counter() < began + seconds:
            call = session.start_call("tools/call", {"name": "echo", "arguments": {"message": TEXT}}, by=ME)
            await session.wait_call(call, WAIT)
            made += 1

    async with anyio.create_task_group() as group:
        for _ in range(in_flight):
            group.start_soon(one_by_one)
    return (time.perf_counter() - began) / made, (time.process_time() - busy) / made


def _error(plain: list[Turn], recorded: list[Turn]) -> float:
    """The standard error of the figure, as that of a median: the middle of some hundred figures is about as sure."""
    low, _, high = quantiles([one[0] / other[0] for one, other in zip(recorded, plain, strict=True)])
    return 0.93 * (high - low) / sqrt(len(plain))


def _middle(ratios: list[float]) -> float:
    """The mean of the middle half."""
    quarter = len(ratios) // 4
    return mean(sorted(ratios)[quarter : len(ratios) - quarter])


async def _caught_up(session: Session, recorder: Recorder) -> None:
    """Wait until all of it is written, and for a moment in which nothing is done."""
    last = session.messages.last(1)[0].seq
    with anyio.fail_after(WAIT):
        while recorder._place.events < last:  # noqa: ASYNC110 (nothing says so)
            await anyio.sleep(0.02)
    await anyio.sleep(0.05)
