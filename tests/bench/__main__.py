"""The command: which sections, in which order, and the table at the end."""

import argparse
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime

from app import __version__
from tests.bench import (
    asks,
    calls,
    eras,
    floods,
    growth,
    lists,
    memory,
    models,
    page,
    recordings,
    recordings_read,
    results,
    start,
    tabs,
    team,
)
from tests.bench.table import Part, Say, render

SECTIONS: dict[str, Callable[[Say], Part]] = {
    "start": start.measure,
    "calls": calls.measure,
    "eras": eras.measure,
    "page": page.measure,
    "tabs": tabs.measure,
    "asks": asks.measure,
    "models": models.measure,
    "recordings": recordings.measure,
    "recordings_read": recordings_read.measure,
    "results": results.measure,
    "lists": lists.measure,
    "floods": floods.measure,
    "memory": memory.measure,
    "growth": growth.measure,
    "team": team.measure,
}


def machine() -> str:
    """Where this was measured, in one line."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = os.getloadavg()[0]
    return (
        f"{platform.system()} {platform.machine()}, {cores} cores, load {load:.2f} before the run, "
        f"{platform.python_implementation()} {platform.python_version()}"
    )


def progress(text: str) -> None:
    """One line that overwrites itself on a terminal, and a line each elsewhere. To stderr: stdout is the table."""
    sys.stderr.write(f"\r\x1b[K  {text}" if sys.stderr.isatty() else f"  {text}\n")
    sys.stderr.flush()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure what README.md claims.")
    parser.add_argument("section", nargs="*", help=f"which to measure: {', '.join(SECTIONS)} (all)")
    wanted = parser.parse_args(arguments).section or list(SECTIONS)
    if unknown := [name for name in wanted if name not in SECTIONS]:
        parser.error(f"there is no section {unknown[0]!r}, only {', '.join(SECTIONS)}")
    head = f"Parley {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine()}"
    began, parts, failed = time.monotonic(), list[Part](), list[str]()
    for name in dict.fromkeys(wanted):
        try:
            parts.append(SECTIONS[name](lambda text, name=name: progress(f"{name}: {text}")))  # type: ignore[misc]
        except Exception:  # a quarter of an hour of figures is not lost with one of them
            traceback.print_exc()
            failed.append(name)
    progress(f"done in {time.monotonic() - began:.0f} s")
    print(f"\n{head}\n\n{render(parts)}")
    if failed:
        print(f"\nNot measured, the reason is above: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
