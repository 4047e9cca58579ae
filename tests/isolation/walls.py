"""Children behind walls, for tests: what one of them says before it ends, and what this machine has to hold it with."""

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import anyio
import pytest

from app.core.targets import StdioTarget
from app.isolation import PATH, Isolation, Room, Walls, Wanted, look
from app.protocol.links.stdio import StdioLink, open_stdio
from app.settings import Limits
from tests.drive import HANG

USERS = "61700-61709"
ROOM = Room(memory_bytes=96 * 2**20, processes=24, file_bytes=2**20, cpu_seconds=1, scratch_bytes=2 * 2**20)
PYTHON = shutil.which("python3", path=PATH) or ""
LACKS = "THIS MACHINE LACKS"


def lacks(what: str) -> None:
    """Not shown here, and the summary of the run says so."""
    pytest.skip(f"{LACKS} {what}")


def walls(kind: str) -> Isolation:
    """The walls of this machine: all of them, or without the sandbox. Says loudly what is not here."""
    if not PYTHON:
        lacks(f"a python3 below {PATH}, in which children of other users could run")
    found = look(USERS if os.geteuid() == 0 else "")
    if found.walls.prlimit is None or found.walls.setpriv is None:
        lacks("prlimit and setpriv of util-linux: nothing bounds a child")
    if kind == "sandbox":
        if found.walls.bwrap is None:
            lacks("bwrap that works (Debian: bubblewrap): no sandbox around a child")
        return found
    without = replace(found.walls, bwrap=None)
    return Isolation(without, found.lines, found.users)


def switching(isolation: Isolation) -> Isolation:
    if not isolation.walls.switch:
        lacks("the right to switch users: children run as whoever runs the tests")
    return isolation


@dataclass
class Said:
    """What a child wrote before it ended, and how it ended."""

    lines: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    exit_code: int | None = None


@asynccontextmanager
async def started(isolation: Isolation, wanted: Wanted, said: Said | None = None) -> AsyncGenerator[StdioLink, None]:
    stderr = (said or Said()).stderr
    target = StdioTarget(command=wanted.command, args=wanted.args)
    limits = Limits(stdin_close_seconds=0.2, terminate_seconds=0.2)
    with anyio.fail_after(HANG), isolation.start(wanted) as start:
        async with open_stdio(target, limits, lambda line: stderr.append(line.decode()), start) as link:
            yield link


def python(code: str, *args: str, **more: object) -> Wanted:
    return replace(Wanted(PYTHON, ("-c", code, *args), room=ROOM), **more)  # type: ignore[arg-type]


async def run(isolation: Isolation, wanted: Wanted) -> Said:
    """Let a child run to its end."""
    said = Said()
    async with started(isolation, wanted, said) as link, anyio.create_task_group() as group:
        link.start(group)
        while (items := await link.receive()) is not None:
            said.lines += [item.decode() for item in items if isinstance(item, bytes)]
        said.exit_code = (await link.ended()).exit_code
        group.cancel_scope.cancel()
    return said


def nothing() -> Isolation:
    """No wall at all: what a child could do without them, so that a test shows that it can fail."""
    return Isolation(Walls(), ())
