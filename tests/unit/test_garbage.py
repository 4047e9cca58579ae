"""When everything is looked through for garbage: not by itself while logs go round, and not again and again."""

import gc
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio.to_thread
import pytest

from app import bounds, garbage
from app.core import lane

ROUND = """
import gc
from collections import deque
from app import garbage

class Row:
    __slots__ = ()

looked = []
gc.callbacks.append(lambda phase, info: looked.append(info["generation"]) if phase == "stop" else None)
{begin}
log = deque(maxlen=50_000)
for _ in range(200):
    log.extend([Row() for _ in range(5_000)])
print(looked.count(2))
"""


@pytest.mark.parametrize(("begin", "often"), [("gc.enable()", True), ("garbage.begin()", False)])
def test_a_log_that_goes_round_is_not_looked_through_again_and_again(begin: str, often: bool):
    done = subprocess.run(
        [sys.executable, "-c", ROUND.format(begin=begin)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (int(done.stdout) > 2) is often, "as Python would do it by itself"


def test_it_is_due_when_the_process_has_grown_by_much(monkeypatch: pytest.MonkeyPatch):
    sizes = iter([100, 150, 158, 90, 150, 150, 150])
    monkeypatch.setattr(garbage, "_resident", lambda: next(sizes) * 2**20)
    garbage.collect()
    assert [garbage.is_due() for _ in range(4)] == [False, True, False, True]
    garbage.collect()
    assert not garbage.is_due()


async def test_whoever_lets_go_of_much_again_and_again_does_not_stop_the_others_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
):
    looked, came = list[float](), threading.Semaphore(0)

    def slow() -> None:
        began = time.monotonic()
        while time.monotonic() < began + 0.05:
            gc.get_count()
        looked.append(time.monotonic())
        came.release()

    monkeypatch.setattr(garbage, "collect", slow)
    monkeypatch.setattr(bounds, "GIVE_BACK_SECONDS", 0.01)
    monkeypatch.setattr(lane, "_pace", lane._Pace())
    for _ in range(2):
        lane.give_back_soon(cycles=True)
        assert await anyio.to_thread.run_sync(came.acquire, True, 20)
    assert looked[1] - looked[0] >= 0.05 * bounds.GIVE_BACK_REST
