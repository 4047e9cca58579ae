"""What each HTTP connection and each session weighs, with a hundred of them in one process."""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tests.bench.processes import WAIT, bare_over_http, demo_over_http
from tests.bench.table import Part, Say, kib, p50, times
from tests.browser.parley import ROOT

MANY = 100
RUNS = 3


@dataclass(slots=True, frozen=True)
class Weighed:
    """One thing to hold a hundred of."""

    name: str
    kind: str
    server: Callable[[], AbstractContextManager[str]]
    most: int | None = None


THINGS = (
    Weighed("raw SDK client, connected", "sdk", bare_over_http),
    Weighed("Parley session, bare connection", "parley", bare_over_http, 110 * 1024),
    Weighed("Parley session, the demo's lists listed", "parley", demo_over_http, 300 * 1024),
)


def measure(say: Say) -> Part:
    part = Part(f"memory of each of {MANY} (HTTP)")
    found: dict[str, list[dict[str, Any]]] = {thing.name: [] for thing in THINGS}
    for number in range(RUNS):
        for thing in THINGS:
            say(f"{thing.name}, run {number + 1} of {RUNS}")
            found[thing.name].append(_weigh(thing))
    base = p50([one["each"] for one in found[THINGS[0].name]])
    for thing in THINGS:
        each = p50([one["each"] for one in found[thing.name]])
        ratio = times(each / base)
        if thing.most is None:
            part.add(thing.name, kib(each), ratio=ratio)
        else:
            part.judge(thing.name, kib(each), f"<= {kib(thing.most)}", each <= thing.most, ratio=ratio)
        trimmed = [one["trimmed"] for one in found[thing.name] if one["trimmed"] is not None]
        if trimmed:
            part.add(f"{thing.name}, after malloc_trim", kib(p50(trimmed)))
    part.notes.append(
        f"growth of RSS / {MANY} after a garbage collection, median of {RUNS} processes each; a few connections come "
        "first and are not counted"
    )
    part.notes.append(
        "RSS moves in pages and arenas, and holes that the allocator keeps count until malloc_trim; the logs are "
        "young, and what is in them comes on top"
    )
    return part


def _weigh(thing: Weighed) -> dict[str, Any]:
    """In a process of its own, with a server of its own."""
    with thing.server() as url:
        command = [sys.executable, "-m", "tests.bench.hosting", thing.kind, url, str(MANY)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=4 * WAIT, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
