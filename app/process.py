"""What Parley is to the operating system: how many files it may have open, what stands in its environment, and which
processes came of its children, wherever they went.

A server that Parley started may leave its process group and its session, and its parent may end before it: then it is
nobody's child any more. On Linux such an orphan becomes ours (we are their reaper), and it is known by the variable
that its connection put into its environment; one that cleared it is ended with us. Nothing here happens on import:
only the process that serves calls `adopt_orphans` and `raise_file_limit`. Knows no session and no page.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

VARIABLE: Final = "STARTED_BY_PARLEY"
"""What a child's environment holds beside what the person set, so that its descendants are known as its own."""
OPENED: Final = "OPENED_BY_PARLEY"
"""What the environment of the person's browser holds, which outlives us."""
_PR_SET_CHILD_SUBREAPER: Final = 36
_ROUNDS: Final = 20
"""How often those that are killed at once are looked for again: they may start others meanwhile."""


@dataclass(slots=True)
class _State:
    """What the serving process asked for. Everywhere else all of it is off."""

    adopting: bool = False
    """Whether orphans are to become ours."""
    reaper: bool | None = None
    """Whether they do; None until the first child is about to start."""
    children_files: int | None = None
    """How many files a child may have open, where that is less than we may."""
    zombies: set[Process] = field(default_factory=set)
    """Ended children of ours that nobody had waited for when `reap` last looked."""


_state = _State()


class Start(NamedTuple):
    """How a child is started when somebody else than its link decides that: behind walls, with their environment."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str


# ------------------------------------------------------------------------------------------------------ environment


def take_variable(name: str) -> str | None:
    """The value of a variable, which from now on nobody can read in our environment: not by asking the system either.

    A process shows others its environment as it was at its start. So the value is overwritten where it stood then."""
    value = os.environ.get(name)
    if value:
        with suppress(OSError, ValueError, AttributeError):  # a system that hides where it stands
            _overwrite(os.fsencode(name))
    os.environ.pop(name, None)
    return value or None


def _overwrite(name: bytes) -> None:
    import ctypes

    system = ctypes.CDLL(None)
    entries = ctypes.POINTER(ctypes.c_void_p)
    if sys.platform == "darwin":
        system._NSGetEnviron.restype = ctypes.POINTER(entries)
        environment = system._NSGetEnviron().contents
    else:
        environment = entries.in_dll(system, "environ")
    at = 0
    while (entry := environment[at]) is not None:
        text = ctypes.string_at(entry)
        if text.startswith(name + b"="):
            ctypes.memset(entry + len(name) + 1, 0, len(text) - len(name) - 1)
        at += 1


# ------------------------------------------------------------------------------------------------------- open files


def raise_file_limit(wanted: int) -> int:
    """Let this process have as many files open as it wants and may; how many that is.

    Only where the children can be given the old limit back: programs that use `select` break above 1024."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= most or not sys.platform.startswith("linux") or _prlimit() is None:
        return wanted if soft == resource.RLIM_INFINITY else soft
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        _state.children_files = soft
        return most
    return soft


def with_old_file_limit(argv: list[str]) -> list[str]:
    """A command that gives its program the limit of open files that we had at our start."""
    prlimit = _prlimit() if _state.children_files is not None else None
    return argv if prlimit is None else [prlimit, f"--nofile={_state.children_files}:", "--", *argv]


def _prlimit() -> str | None:
    """The command that gives it back; children are started by way of its sister (`transports`), or without it."""
    return shutil.which("prlimit") if shutil.which("setpriv") else None


# ----------------------------------------------------------------------------------------------------- descendants


@dataclass(slots=True, frozen=True)
class Process:
    """One process that lives. Its number may be another's later, together with the time of its start it is not."""

    pid: int
    started: int


def adopt_orphans() -> None:
    """From the first child on, whoever descends from us and loses its parent becomes our child (Linux only)."""
    _state.adopting = True


def new_mark() -> str:
    """What a new child is to have in its environment as `VARIABLE`; empty where orphans do not come to us."""
    if _state.reaper is None and _state.adopting:
        _state.reaper = sys.platform.startswith("linux") and _become_reaper()
    return f"{os.getpid()}.{secrets.token_hex(8)}" if _state.reaper else ""


def _become_reaper() -> bool:
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def descendants_of(child: int, mark: str, known: Iterable[Process] = ()) -> frozenset[Process]:
    """Who lives of those that came of a child, without itself: its descendants, whoever carries the mark, those that
    were known before, and their descendants. Reads the process table, so call it in a thread."""
    if not mark:
        return frozenset()
    table, known = _table(), set(known)
    for each, row in table.items():
        # Nobody else waits for those. Unburied, they would count as members of the group.
        if row.dead and row.parent == os.getpid() and each.pid != child and (each in known or row.group == child):
            _bury(each.pid)
    found = _ours(table)
    belong = {each for each in found if each.pid == child or each in known or _carries(each.pid, f"{mark}\0")}
    return frozenset(each for each in _with_descendants(found, belong) if each.pid != child)


def kill_descendants() -> None:
    """Kill whoever came of any child of ours, now, also who cleared its environment: everybody but the browser that we
    opened. The end of a process that nobody waits for any more."""
    for _ in range(_ROUNDS if _state.reaper else 0):
        found = _ours(_table())
        spared = {each for each in found if _is_the_persons(each.pid)}
        belong = set(found) - _with_descendants(found, spared)
        if not belong:
            return
        tell(belong, signal.SIGKILL)


def tell(processes: Iterable[Process], number: signal.Signals) -> None:
    """Send a signal to each."""
    for each in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(each.pid, number)


def reap() -> None:
    """Bury the orphans that ended as our children. Whoever started a process waits for it, and does so at once: what
    nobody has waited for between two of these calls is waited for by nobody."""
    if not _state.reaper:
        return
    try:
        seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        seen = None
    dead = set() if seen is None else {each for each, row in _table().items() if row.dead and row.parent == os.getpid()}
    for each in dead & _state.zombies:
        _bury(each.pid)
    _state.zombies = dead - _state.zombies


def _bury(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


class _Row(NamedTuple):
    """What the system says of a process."""

    dead: bool
    parent: int
    group: int


def _table() -> dict[Process, _Row]:
    """Every process of the system."""
    table: dict[Process, _Row] = {}
    try:
        entries = [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    except OSError:  # no file is left to look with; there will be another look
        return table
    for entry in entries:
        try:
            # The second field is a name in brackets, in which anything may stand.
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:  # it has just ended
            continue
        row = _Row(fields[0] in (b"Z", b"X"), int(fields[1]), int(fields[2]))
        table[Process(int(entry.name), int(fields[19]))] = row
    return table


def _ours(table: dict[Process, _Row]) -> dict[Process, int]:
    """Our living descendants, each with its parent."""
    living = {each: row.parent for each, row in table.items() if not row.dead}
    ours = _with_descendants(living, {each for each, parent in living.items() if parent == os.getpid()})
    return {each: living[each] for each in ours}


def _with_descendants(found: dict[Process, int], some: set[Process]) -> set[Process]:
    everybody, level = set(some), {each.pid for each in some}
    while level:
        below = {each for each, parent in found.items() if parent in level} - everybody
        everybody |= below
        level = {each.pid for each in below}
    return everybody


def _carries(pid: int, mark: str) -> bool:
    """Whether this stands in the environment of a process, as it was at its start."""
    return f"\0{VARIABLE}={mark}".encode() in b"\0" + (_environment(pid) or b"")


def _is_the_persons(pid: int) -> bool:
    """Whether a process is of the browser that we opened. One that hides its environment may be."""
    environment = _environment(pid)
    return environment is None or f"\0{OPENED}=".encode() in b"\0" + environment


def _environment(pid: int) -> bytes | None:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
