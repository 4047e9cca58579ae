"""What each HTTP connection and each session weighs, with a hundred of them in one process."""

import json
import subprocess
import sys
from typing import Any

from tests.bench.processes import WAIT, demo_over_http
from tests.bench.table import Part, Say, kib, p50, times
from tests.browser.parley import ROOT

MANY = 100
RUNS = 3
KINDS = {
    "sdk": ("raw SDK client, connected", None),
    "connection": ("Parley's connection alone", 110 * 1024),
    "session": ("Parley session with the tools listed", 300 * 1024),
}


def measure(say: Say) -> Part:
    part = Part(f"memory of each of {MANY} (HTTP, demo server)")
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for number in range(RUNS):
        for kind, (name, _) in KINDS.items():
            say(f"{name}, run {number + 1} of {RUNS}")
            found[kind].append(_weigh(kind))
    base = p50([one["each"] for one in found["sdk"]])
    for kind, (name, most) in KINDS.items():
        each = p50([one["each"] for one in found[kind]])
        ratio = times(each / base)
        if most is None:
            part.add(name, kib(each), ratio=ratio)
        else:
            part.judge(name, kib(each), f"<= {kib(most)}", each <= most, ratio=ratio)
        trimmed = [one["each_trimmed"] for one in found[kind] if one["each_trimmed"] is not None]
        if trimmed:
            part.add(f"{name}, after malloc_trim", kib(p50(trimmed)))
    part.notes.append(
        f"growth of RSS / {MANY} after a garbage collection, median of {RUNS} processes each; a few connections come "
        "first and are not counted. RSS moves in pages and arenas: free holes of the allocator count until malloc_trim"
    )
    return part


def _weigh(kind: str) -> dict[str, Any]:
    """In a process of its own, with a server of its own."""
    with demo_over_http() as url:
        command = [sys.executable, "-m", "tests.bench.hosting", kind, url, str(MANY)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=4 * WAIT, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
