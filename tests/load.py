"""Many sessions on two replicas: `make load`, or `python -m tests.load --short` for a try.

200 sessions, each with a server that says something five times a second and two open tabs, for ten minutes, with
PostgreSQL gone for one of them; before, the same with 50, 100, 200 and 400 sessions for a minute each. Measured is the
time from the moment a message leaves the server until it is in a tab, of all of it and of the time before, without and
after the store apart; processor time and memory of the replicas; and that nothing is left of it at the end. Memory is
bounded by what a log keeps, and flat from then on: so logs keep less than by default here, to be full within minutes.
Everything runs on this machine, what drives it too, so the figures are upper bounds.
"""

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil

from tests.scale.drive import HOST, Client, Team, until

TABS = 2
RATE = 5
WEIGHED = 30
FLAT = 1.05
"""So much more than halfway may be in use at any later time."""
LIMITS: dict[str, Any] = {
    "sessions_per_identity": 1000, "sessions": 1000, "streams_per_browser": 4000, "streams": 4000, "connections": 8000,
    "open_files": 16384, "streams_per_identity": 4000, "requests_per_identity": 4000, "requests_per_minute": 0,
    "calls_per_minute": 0, "log_messages": 1000, "events": 2000, "recordings_bytes": 64 * 1024**3,
    "recordings_per_identity": 10000, "recordings_bytes_per_identity": 64 * 1024**3,
}  # fmt: skip
_SENT = re.compile(rb"t=(\d+\.\d{6})")


@dataclass
class Heard:
    """What tabs have heard, in seconds from the server to them."""

    delays: list[float] = field(default_factory=list)
    ended: int = 0

    def at(self, share: float) -> float:
        ordered = sorted(self.delays)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


@dataclass
class Costs:
    """What the replicas and the store have used."""

    cpu: float
    memory: int
    store_cpu: float
    files: int

    @classmethod
    def now(cls, team: Team) -> Self:
        ours = [psutil.Process(one.pid) for one in team.replicas.values()]
        store = [
            one for one in psutil.process_iter(["cmdline"]) if str(team.postgres.data) in (one.info["cmdline"] or [])
        ]
        return cls(
            sum(map(_cpu, ours)), sum(map(_memory, ours)), sum(map(_cpu, store)), sum(one.num_fds() for one in ours)
        )


def _family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _cpu(process: psutil.Process) -> float:
    found = 0.0
    for one in _family(process):
        with suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            found += times.user + times.system
    return found


def _memory(process: psutil.Process) -> int:
    found = 0
    for one in _family(process):
        with suppress(psutil.NoSuchProcess):
            found += one.memory_info().rss
    return found


async def _tab(port: int, cookie: str, sid: str, heard: Heard, over: asyncio.Event) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    head = f"GET /s/{sid}/events?page=overview&since=999999999 HTTP/1.1\r\nhost: {HOST}\r\nx-forwarded-proto: https\r\n"
    writer.write(f"{head}cookie: {cookie}\r\naccept: text/event-stream\r\n\r\n".encode())
    await writer.drain()
    try:
        while not over.is_set():
            line = await reader.readline()
            if not line:
                heard.ended += not over.is_set()
                return
            now = time.monotonic()
            heard.delays.extend(now - float(sent) for sent in _SENT.findall(line))
    except (ConnectionError, ValueError):
        heard.ended += not over.is_set()
    finally:
        writer.close()


@dataclass
class Listened:
    """What was heard, and seen meanwhile."""

    phases: dict[str, Heard] = field(default_factory=dict)
    statuses: set[int] = field(default_factory=set)
    memory: list[float] = field(default_factory=list)
    """Of the replicas in MiB, every half minute."""

    @property
    def all(self) -> Heard:
        return Heard(
            [one for heard in self.phases.values() for one in heard.delays],
            sum(heard.ended for heard in self.phases.values()),
        )


async def _listened(team: Team, client: Client, sids: list[str], seconds: float, store_gone: float) -> Listened:
    heard, over, found = Heard(), asyncio.Event(), Listened()
    cookie = client.headers["cookie"]
    async with asyncio.TaskGroup() as tabs:
        for sid in sids:
            for _ in range(TABS):
                tabs.create_task(_tab(team.ports[sid[:2]], cookie, sid, heard, over))
        await _looking(client, sids, found.statuses, 5)  # they are opening
        tabs.create_task(_weighing(team, found.memory, over))

        async def phase(name: str, lasts: float) -> None:
            heard.delays, heard.ended = [], 0
            await _looking(client, sids, found.statuses, lasts)
            found.phases[name] = Heard(heard.delays, heard.ended)

        if store_gone:
            await phase("before", (seconds - store_gone) / 2)
            await asyncio.to_thread(team.postgres.stop)
            await phase("without the store", store_gone)
            await asyncio.to_thread(team.postgres.start)
            await phase("after", (seconds - store_gone) / 2)
        else:
            await phase("all of it", seconds)
        over.set()
    return found


async def _weighing(team: Team, memory: list[float], over: asyncio.Event) -> None:
    while not over.is_set():
        memory.append((await asyncio.to_thread(Costs.now, team)).memory / 2**20)
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), WEIGHED)


async def _looking(client: Client, sids: list[str], statuses: set[int], seconds: float) -> None:
    """Somebody opens one page after the other meanwhile."""
    deadline, number = time.monotonic() + seconds, 0
    pause = asyncio.Event()
    while time.monotonic() < deadline:
        path = f"/s/{sids[number % len(sids)]}" if number % 4 else "/"
        statuses.add((await asyncio.to_thread(client.get, path)).status_code)
        number += 1
        with suppress(TimeoutError):
            await asyncio.wait_for(pause.wait(), min(0.5, max(0.0, deadline - time.monotonic())))


def _opened(team: Team, client: Client, many: int, sids: list[str]) -> None:
    direct = {name: team.past(name, client) for name in team.names}
    while len(sids) < many:
        name = team.names[len(sids) % len(team.names)]
        made = direct[name].post("/catalogue/load/connect", json={})
        assert made.status_code == 201, made.text
        sids.append(made.json()["id"])
    last = sids[-1]
    until(lambda: client.get(f"/s/{last}").json()["connection"]["state"] == "ready", "the last connection")


def _closed(client: Client, sids: list[str]) -> None:
    for sid in sids:
        client.post(f"/s/{sid}/close", json={})


def _measured(team: Team, client: Client, sids: list[str], seconds: float, store_gone: float = 0) -> dict[str, float]:
    before, began = Costs.now(team), time.monotonic()
    listened = asyncio.run(_listened(team, client, sids, seconds, store_gone))
    took, after, heard = time.monotonic() - began, Costs.now(team), listened.all
    found = {
        "sessions": len(sids),
        "events/s": len(heard.delays) / TABS / seconds,
        "p50 ms": heard.at(0.5),
        "p95 ms": heard.at(0.95),
        "p99 ms": heard.at(0.99),
        "cpu %": 100 * (after.cpu - before.cpu) / took,
        "store cpu %": 100 * max(0.0, after.store_cpu - before.store_cpu) / took,
        "MiB": after.memory / 2**20,
        "grew MiB": (after.memory - before.memory) / 2**20,
        "tabs lost": heard.ended,
        "5xx": sum(status >= 500 for status in listened.statuses),
    }
    print(
        "  ".join(f"{name} {value:,.1f}" if value % 1 else f"{name} {value:,.0f}" for name, value in found.items()),
        flush=True,
    )
    if store_gone:
        for name, one in listened.phases.items():
            print(f"  {name}: p50 {one.at(0.5):,.1f}  p95 {one.at(0.95):,.1f}  p99 {one.at(0.99):,.1f} ms")
        told = listened.memory
        print(f"  memory, every {WEIGHED} s: {', '.join(f'{one:,.0f}' for one in told)} MiB")
        half = len(told) // 2
        found["flat"] = max(told[half:]) / max(told[half - 1], 1.0) if half else 1.0
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make load", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--short", action="store_true", help="a try: 40 sessions for 20 s, the store gone for 6 of them"
    )
    parser.add_argument("--sessions", type=int, default=0, help="only so many sessions")
    parser.add_argument("--seconds", type=float, default=0, help="for so long")
    given = parser.parse_args()
    many = given.sessions or (40 if given.short else 200)
    seconds = given.seconds or (20 if given.short else 600)
    gone = min(60.0, seconds * 0.3)
    steps = [10, 20, 40, 80] if given.short else [50, 100, 200, 400]
    with tempfile.TemporaryDirectory(prefix="parley-load-") as folder, Team(Path(folder), **LIMITS) as team:
        client = team.enter("Load")
        empty = Costs.now(team)
        print(f"{os.cpu_count()} cores; two replicas, empty: {empty.memory / 2**20:,.0f} MiB, {empty.files} files")
        sids: list[str] = []
        rows = []
        if not given.sessions:
            print(f"Growth, {10 if given.short else 60} s each:")
            for step in steps:
                _opened(team, client, step, sids)
                rows.append(_measured(team, client, sids, 10 if given.short else 60))
            _closed(client, sids[many:])
            del sids[many:]
        print(f"{many} sessions for {seconds:g} s, the store gone for {gone:g} s of them:")
        _opened(team, client, many, sids)
        main_row = _measured(team, client, sids, seconds, gone)
        _closed(client, sids)
        until(lambda: Costs.now(team).files <= empty.files + 60, "letting go of every file")
        left = Costs.now(team)
        print(f"afterwards: {left.memory / 2**20:,.0f} MiB, {left.files} files")
        if rows:
            first, last = rows[0], rows[-1]
            per = (last["sessions"] - first["sessions"]) or 1
            print(f"a session more: {(last['cpu %'] - first['cpu %']) / per:.2f} % of a core, "
                  f"{(last['MiB'] - first['MiB']) / per:.2f} MiB")  # fmt: skip
    wrong = [
        sentence
        for fault, sentence in (
            (main_row["p95 ms"] >= 300, "p95 is 300 ms or more"),
            (main_row["5xx"] > 0, "a page answered 5xx"),
            (main_row["tabs lost"] > 0, "a tab lost its stream"),
            (main_row["flat"] > FLAT, "memory is not flat"),
            (main_row["events/s"] < 0.9 * many * RATE, "not every event arrived"),
        )
        if fault
    ]
    print("; ".join(wrong) or "as it should be")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
