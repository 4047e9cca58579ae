"""What large results take of a real Parley's memory, and that it comes back when their session is closed (H10)."""

import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from app.settings import MIB
from tests.bench.processes import saving
from tests.browser.parley import ROOT, TOKEN, Parley
from tests.floods import OVER_STDIO

pytestmark = pytest.mark.faults
DURING, AFTER = 128 * MIB, 40 * MIB
RAW = {
    "transport": "stdio",
    "command": sys.executable,
    "args": ["-I", "-S", str(ROOT / "tests" / "servers" / "raw.py"), "plain"],
}


class Weighed:
    """The memory of a process, looked at all the while."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.most = self.now()

    def now(self) -> int:
        return int(self._process.memory_info().rss)

    @contextmanager
    def watched(self) -> Iterator[None]:
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.005):
                self.most = max(self.most, self.now())

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def until_below(self, size: int, seconds: float = 20) -> int:
        """What it is once it is so small, or when the time is over."""
        end = time.monotonic() + seconds
        never = threading.Event()
        while self.now() > size and time.monotonic() < end:
            never.wait(0.05)
        return self.now()


def page(parley: Parley, path: str) -> int:
    headers = {"authorization": f"Bearer {TOKEN}", "accept": "text/html"}
    with urllib.request.urlopen(urllib.request.Request(parley.origin + path, headers=headers), timeout=60) as answer:
        return len(answer.read())


def called(parley: Parley, path: str, method: str, params: dict[str, Any]) -> str:
    cid = parley.script("POST", f"{path}/calls", method=method, params=params)["id"]
    done = parley.script("GET", f"{path}/calls/{cid}?wait=30")
    assert done["state"] == "done", done["error"]
    return f"{path}/calls/{cid}"


@pytest.mark.requirement("H10")
@pytest.mark.parametrize("flood", ["7.5 MB of []", "objects, as many as are read"])
def test_h10_what_large_results_took_comes_back(flood: str):
    """Four results, and eight pages at once, twice: 82 MB became 1.95 GB, and 794 MB stayed."""
    with saving() as parley, ThreadPoolExecutor(8) as eight:
        # What is paid once, by the first save, session, call and page, is not what is asked here.
        first = parley.script("POST", "/s", target=RAW, options={"era": "legacy"})["url"]
        parley.script("GET", f"{first}?wait=30")
        page(parley, called(parley, first, "tools/call", {"name": "echo", "arguments": {"message": "x" * 300_000}}))
        parley.script("POST", f"{first}/close")
        weighed = Weighed(parley.process.pid)
        before = weighed.now()
        with weighed.watched():
            path = parley.script("POST", "/s", target=RAW, options={"era": "legacy"})["url"]
            parley.script("GET", f"{path}?wait=30")
            calls = [called(parley, path, "x/torrent", OVER_STDIO[flood]) for _ in range(4)]
            assert len(list(eight.map(lambda call: page(parley, call), calls * 2))) == 8
            assert len(list(eight.map(lambda call: page(parley, call + "/shown"), calls * 2))) == 8
            parley.script("POST", f"{path}/close")
        after = weighed.until_below(before + AFTER)
        grown, kept = weighed.most - before, after - before
        print(f"{flood}: {before / MIB:.0f} MiB, during {grown / MIB:+.0f} MiB, after closing {kept / MIB:+.0f} MiB")
        assert grown <= DURING and kept <= AFTER
