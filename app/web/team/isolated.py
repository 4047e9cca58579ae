"""The page of isolation: which walls stand around the servers people start, and which of these run now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from app import team_bounds as bounds
from app.core.errors import Gone, Trouble
from app.isolation import Line, look
from app.protocol.links.confined import cannot_start
from app.sessions import Session
from app.web.kit import request_bodies
from app.web.kit.responses import back, show
from app.web.team.house import House
from app.web.team.pages import house_of
from app.web.team.people import Admin

_ENDED = Trouble("withdrawn", "An admin has ended this server.", "Connect again, or ask them why.")


@dataclass(slots=True)
class Child:
    """A server that runs."""

    session: str
    name: str
    who: str
    pid: int
    memory: str
    """Of all its processes together, in MiB; a dash where the system does not say."""
    cpu: str
    most_memory: int
    """Of each of its processes; 0 when nothing is said of it."""
    most_cpu: int


@dataclass(slots=True)
class IsolationPage(Admin):
    template: ClassVar[str] = "team/isolation.html"

    lines: tuple[Line, ...]
    missing: list[str]
    setting: str
    looked: float
    children: list[Child]
    cannot: list[tuple[str, str]]
    """Servers of the catalogue that cannot start here, each with why."""


async def isolation(request: Request) -> Response:
    """What keeps the servers people start away from this machine."""
    house = house_of(request)
    children = await anyio.to_thread.run_sync(_children, request)
    cannot = await anyio.to_thread.run_sync(_cannot, house)

    def page() -> IsolationPage:
        missing = [one.name.lower() for one in house.walls.missing]
        said = house.walls.lines, missing, house.settings.isolation, house.looked, children
        return IsolationPage(*Admin.around(house, "isolation"), *said, cannot=cannot)

    def json() -> dict[str, Any]:
        lines = [{"name": one.name, "state": one.state, "words": one.words} for one in house.walls.lines]
        running = [{"session": one.session, "server": one.name, "by": one.who, "pid": one.pid} for one in children]
        broken = [{"server": name, "words": words} for name, words in cannot]
        return {"isolation": house.settings.isolation, "lines": lines, "children": running, "cannot_start": broken}

    return await show(request, page, json)


async def check_again(request: Request) -> Response:
    """Try every wall once more: something may have been installed. What runs stays behind the walls that it has."""
    house = house_of(request)
    await request_bodies.nothing(request)
    found = await anyio.to_thread.run_sync(look, house.settings.child_user)
    house.walls.walls, house.walls.lines = found.walls, found.lines
    house.looked = house.wall()
    return await back(request, "/isolation", lambda: {"missing": [one.name for one in found.missing]})


async def end(request: Request) -> Response:
    """End a server that somebody started. Their session stays, and says so."""
    house = house_of(request)
    await request_bodies.nothing(request)
    key = request.path_params["child"]
    session = next((one for one in request.app.state.registry.everybodys() if one.id == key), None)
    if not isinstance(session, Session) or session.info.pid is None or session.target is None:
        raise Gone("That server does not run any more.")
    name = house.named(session.target)
    await session.disconnect(_ENDED)
    house.note(request.state.identity, "disconnected", f"{name} of {house.name_of(session.owner)}")
    return await back(request, "/isolation", lambda: {"ended": key})


def _cannot(house: House) -> list[tuple[str, str]]:
    """In a thread: files are looked at."""
    found = [(one.name or one.id, cannot_start(one, house.walls)) for one in house.catalogue().entries]
    return [(name, why) for name, why in found if why]


def _children(request: Request) -> list[Child]:
    """In a thread: the system is asked about each."""
    house, found = house_of(request), []
    listed, tree = house.catalogue(), _parents()
    for session in request.app.state.registry.everybodys():
        pid, target = session.info.pid, session.target
        if pid is None or target is None:
            continue
        entry = listed.entry_of(target)
        limits = (entry.memory_mib, entry.cpu_seconds) if entry is not None and house.walls.walls.prlimit else (0, 0)
        used = _used([pid, *_below(pid, tree)])
        found.append(Child(session.id, house.named(target), house.name_of(session.owner), pid, *used, *limits))
    return found


def _parents() -> dict[int, list[int]]:
    """Which processes each process has started, as far as the system says."""
    found: dict[int, list[int]] = {}
    with suppress(OSError):
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with suppress(OSError, ValueError, IndexError):
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    found.setdefault(parent, []).append(int(entry.name))
    return found


def _below(pid: int, tree: Mapping[int, list[int]]) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        below = tree.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _used(pids: list[int]) -> tuple[str, str]:
    """Memory in MiB and seconds of CPU time of these processes together."""
    memory = cpu = 0.0
    seen = False
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            cpu += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            memory += int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / bounds.MIB
            seen = True
    return (f"{memory:.0f}", f"{cpu:.1f}") if seen else ("–", "–")
