"""What keeps the servers that a team starts away from the machine: which walls there are here, and how a child is
started behind them.

Off in local mode, where a person starts their own programs: nothing here is imported then. A wall is a program of the
system (`setpriv`, `prlimit`, `bwrap`), tried once with a program that does nothing; what does not work is missing, and
said. The order of the walls matters: another user first, then the sandbox of that user, and the limits innermost, so
that each sandbox counts its own processes. Knows no session, no catalogue and no page.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from app import team_bounds as bounds
from app.process import Start

PATH: Final = "/usr/local/bin:/usr/bin:/bin"
"""Where a command of the catalogue is looked for when its entry does not say."""
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SHARED: Final = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
"""What of a machine a program needs to run, and nothing that tells of its people."""
_SANDBOX_HOME: Final = "/home/server"
_SCRATCH: Final = ("/tmp", "/dev/shm", _SANDBOX_HOME)  # noqa: S108
_CGROUPS: Final = Path("/sys/fs/cgroup")
_TO_SWITCH: Final = (0, 1, 5, 6, 7)
"""The capabilities chown, dac_override, kill, setgid and setuid: to start as somebody else, to end and to tidy up."""
_PR_SET_DUMPABLE: Final = 4

State = Literal["on", "missing"]


@dataclass(slots=True, frozen=True)
class Room:
    """How much one child may take."""

    memory_bytes: int = bounds.CHILD_MEMORY
    """Of each of its processes: what it may write to, whatever it has reserved."""
    processes: int = bounds.CHILD_PROCESSES
    """Threads count."""
    open_files: int = bounds.CHILD_OPEN_FILES
    file_bytes: int = bounds.CHILD_FILE
    cpu_seconds: int = bounds.CHILD_CPU_SECONDS
    """Of each of its processes."""
    scratch_bytes: int = bounds.CHILD_SCRATCH
    """What it may keep in its HOME, in /tmp and in /dev/shm, each, where there is a sandbox."""


@dataclass(slots=True, frozen=True)
class Wanted:
    """A child that is to be started: all of it was written by an admin, but for the values in `env`."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    path: str = PATH
    reads: tuple[str, ...] = ()
    """Directories that it may read beside those of the system; the one of its command is among them."""
    network: bool = False
    room: Room = Room()


@dataclass(slots=True, frozen=True)
class Line:
    """One wall: what it is called, whether it stands, and what that means, in one sentence."""

    name: str
    state: State
    words: str


@dataclass(slots=True, frozen=True)
class User:
    """Whom a child runs as."""

    uid: int
    gid: int


class CannotConfine(Exception):
    """The walls cannot be put up as the settings want them. One sentence for whoever wrote them."""


class NoUserLeft(Exception):
    """Every user of the range runs a child already."""


class Users:
    """Whom children run as: one user for all, or a range of which each running child has one for itself."""

    def __init__(self, setting: str = "") -> None:
        self.setting = setting
        self._all = _read_users(setting)
        self._taken: set[User] = set()

    def __len__(self) -> int:
        return len(self._all)

    @contextlib.contextmanager
    def one(self) -> Iterator[User | None]:
        """Somebody to run as, while the block lasts; None where children run as Parley does."""
        if len(self._all) < 2:
            yield self._all[0] if self._all else None
            return
        free = next((each for each in self._all if each not in self._taken), None)
        if free is None:
            raise NoUserLeft(f"All {len(self._all)} users for servers are in use. Close a session, then connect again.")
        self._taken.add(free)
        try:
            yield free
        finally:
            self._taken.discard(free)


def _read_users(setting: str) -> tuple[User, ...]:
    if not setting:
        return ()
    first, dash, last = setting.partition("-")
    if first.isdecimal() and (last.isdecimal() if dash else True):
        low, high = int(first), int(last or first)
        if not 1 <= low <= high < 2**31 or high - low >= bounds.CHILD_USERS:
            raise CannotConfine(f"child_user = {setting!r} is no user: write a name, a number, or a range of at most "
                                f"{bounds.CHILD_USERS} like 61000-61199")  # fmt: skip
        found = tuple(User(number, number) for number in range(low, high + 1))
    else:
        try:
            entry = pwd.getpwnam(setting)
        except KeyError:
            how = f"make one with: useradd --system --no-create-home {setting[:60]}, or name a range of numbers"
            raise CannotConfine(f"child_user = {setting!r}: there is no such user here; {how}") from None
        found = (User(entry.pw_uid, entry.pw_gid),)
    if any(each.uid in (0, os.geteuid()) for each in found):
        raise CannotConfine(f"child_user = {setting!r} is root or the user that runs Parley: name another one")
    return found


# ---------------------------------------------------------------------------------------------------------- the walls


@dataclass(slots=True, frozen=True)
class Walls:
    """What works on this machine."""

    switch: bool = False
    """Children run as somebody else."""
    setpriv: str | None = None
    prlimit: str | None = None
    bwrap: str | None = None


class Isolation:
    """The walls of this process, found once, and everything that is started behind them."""

    def __init__(self, walls: Walls, lines: Sequence[Line], users: Users | None = None) -> None:
        self.walls, self.lines, self.users = walls, tuple(lines), users or Users()

    @property
    def missing(self) -> list[Line]:
        return [line for line in self.lines if line.state == "missing"]

    @property
    def refusal(self) -> str:
        """Why `isolation = "required"` does not start here, as one sentence; empty when nothing is missing."""
        if not self.missing:
            return ""
        lacks = "; ".join(f"{line.name.lower()}: {line.words.rstrip('.')}" for line in self.missing)
        return f'isolation = "required" refuses to start, because this machine lacks something ({lacks})'

    @contextlib.contextmanager
    def start(self, wanted: Wanted) -> Iterator[Start]:
        """How to start a child behind every wall that stands. Its home goes when the block ends.

        Raises OSError when there is no such program, NoUserLeft when too many run."""
        program = program_of(wanted)
        with self.users.one() if self.walls.switch else contextlib.nullcontext() as user, _home(user) as home:
            inside = _SANDBOX_HOME if self.walls.bwrap else home
            cwd = wanted.cwd or inside
            argv = [*self._outside(user), *self._sandbox(wanted, program, cwd), *self._limits(wanted.room, user)]
            # The names of ours come last: no variable of an entry takes their place.
            env = {**wanted.env, "HOME": inside, "PATH": wanted.path, "TMPDIR": "/tmp" if self.walls.bwrap else home}  # noqa: S108
            yield Start((*argv, program, *wanted.args), env | {"LANG": "C.UTF-8"}, home if self.walls.bwrap else cwd)

    def _outside(self, user: User | None) -> list[str]:
        if self.walls.setpriv is None:
            return []
        argv = [self.walls.setpriv, "--pdeathsig", "KILL", "--no-new-privs", "--inh-caps=-all"]
        if user is not None:
            argv += ["--ambient-caps=-all", "--reuid", str(user.uid), "--regid", str(user.gid), "--clear-groups"]
        return [*argv, "--"]

    def _sandbox(self, wanted: Wanted, program: str, cwd: str) -> list[str]:
        if self.walls.bwrap is None:
            return []
        argv = [self.walls.bwrap, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"]
        argv += ["--share-net"] if wanted.network else []
        for name in _SYSTEM:
            at = Path(name)
            if at.is_symlink():
                argv += ["--symlink", str(at.readlink()), name]
            elif at.is_dir():
                argv += ["--ro-bind", name, name]
        for name in _SHARED:
            argv += ["--ro-bind-try", name, name]
        argv += ["--proc", "/proc", "--dev", "/dev"]
        for name in _SCRATCH:
            argv += ["--size", str(wanted.room.scratch_bytes), "--tmpfs", name]
        named = (str(Path(program).parent), *wanted.reads, *([wanted.cwd] if wanted.cwd else []))
        for name in dict.fromkeys((*named, *wanted.path.split(":"))):
            if not _is_below(name, _SYSTEM):
                argv += ["--ro-bind" if name in named else "--ro-bind-try", name, name]
        # What is left of memory to write to without a limit: the ground that all of this stands on.
        return [*argv, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", cwd, "--"]

    def _limits(self, room: Room, user: User | None) -> list[str]:
        if self.walls.prlimit is None:
            return []
        # Where a user has other processes, the system counts them too.
        others = 0 if self.walls.bwrap or user is not None else _tasks_of(os.geteuid())
        found = {
            "nproc": room.processes + others,
            "data": room.memory_bytes,
            "nofile": room.open_files,
            "fsize": room.file_bytes,
            "cpu": room.cpu_seconds,
            "core": 0,
        }
        return [self.walls.prlimit, *(f"--{name}={most}:{most}" for name, most in found.items()), "--"]


def program_of(wanted: Wanted) -> str:
    """The file that the system will run. What it cannot run by itself `setpriv` would give to a shell (R5-72)."""
    name = wanted.command
    if "/" in name and not Path(name).is_absolute():
        name = str(Path(wanted.cwd or "/") / name)
    found = shutil.which(name, path=wanted.path)
    if found is None:
        code = errno.EACCES if "/" in name and Path(name).is_file() else errno.ENOENT
        raise OSError(code, os.strerror(code), wanted.command)
    with Path(found).open("rb") as file:
        head = file.read(4)
    if head != b"\x7fELF" and head[:2] != b"#!" and sys.platform == "linux":
        raise OSError(errno.ENOEXEC, os.strerror(errno.ENOEXEC), wanted.command)
    return found


@contextlib.contextmanager
def _home(user: User | None) -> Iterator[str]:
    """A directory for one child alone, empty at its start and gone at its end."""
    home = tempfile.mkdtemp(prefix="parley-server-")
    try:
        if user is not None:
            os.chown(home, user.uid, user.gid)
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _is_below(name: str, others: Sequence[str]) -> bool:
    return any(Path(name).is_relative_to(other) for other in others)


def _tasks_of(uid: int) -> int:
    """How many processes and threads a user has, as the limit of processes counts them."""
    found = 0
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError):
                said = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines() if ":" in line)
                if int(said["Uid"].split()[0]) == uid:
                    found += int(said["Threads"])
    return found


# ------------------------------------------------------------------------------------------------------------ looking


def look(child_user: str = "", tools: str | None = None) -> Isolation:
    """Try every wall once and say which stand. Blocks for some milliseconds; `tools` is where the programs are looked
    for. Raises CannotConfine when the setting names nobody who could run children."""
    users = Users(child_user)
    setpriv, prlimit, bwrap = (shutil.which(name, path=tools) for name in ("setpriv", "prlimit", "bwrap"))
    setpriv = setpriv if setpriv and works(Isolation(Walls(setpriv=setpriv), ())) else None
    prlimit = prlimit if prlimit and works(Isolation(Walls(prlimit=prlimit), ())) else None
    switch = bool(setpriv and len(users) and _may_switch())
    switch = switch and works(Isolation(Walls(switch, setpriv), (), users))
    found = bwrap is not None
    with_bwrap = Walls(switch, setpriv, prlimit, bwrap)
    bwrap = bwrap if bwrap and works(Isolation(with_bwrap, (), users)) else None
    walls = Walls(switch, setpriv, prlimit, bwrap)
    return Isolation(walls, list(_lines(walls, users, bwrap_found=found)), users)


def works(isolation: Isolation, wanted: Wanted | None = None) -> bool:
    """Whether a program, one that does nothing unless told, comes to a good end behind these walls. Blocks."""
    true = shutil.which("true", path=PATH)
    if true is None:
        return False
    with contextlib.suppress(OSError, subprocess.SubprocessError), isolation.start(wanted or Wanted(true)) as start:
        done = subprocess.run(
            start.argv, env=start.env, cwd=start.cwd, check=False, capture_output=True, timeout=bounds.WALL_SECONDS
        )
        return done.returncode == 0
    return False


def _may_switch() -> bool:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return False
    effective = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
    return all(effective >> number & 1 for number in _TO_SWITCH)


def _lines(walls: Walls, users: Users, *, bwrap_found: bool) -> Iterator[Line]:
    yield _own_user(walls, users)
    if walls.bwrap:
        words = f"{walls.bwrap} works: a child sees the system's programs, its own and its scratch space."
        yield Line("Sandbox", "on", words)
    elif bwrap_found:
        yield Line("Sandbox", "missing", "bwrap is here and does not work: user namespaces are probably switched off.")
    else:
        yield Line("Sandbox", "missing", "bwrap is not installed (the package is called bubblewrap).")
    if walls.setpriv:
        yield Line("No new privileges", "on", "Set for every child, which dies with Parley.")
    else:
        yield Line("No new privileges", "missing", "setpriv of util-linux is not installed or does not work.")
    yield from _limit_lines(walls)
    if walls.bwrap:
        words = "Children have no network, but for entries of the catalogue that say network = true."
        yield Line("Network", "on", words)
    else:
        words = "Children reach what this machine reaches: without bwrap only a firewall can keep them from it."
        yield Line("Network", "missing", words)
    yield Line("Environment", "on", "Own HOME, PATH of the catalogue, nothing inherited.")


def _own_user(walls: Walls, users: Users) -> Line:
    if walls.switch:
        many = f"users {users.setting}, one for each" if len(users) > 1 else f"{users.setting}, all of them"
        return Line("Own user", "on", f"Children run as {many}.")
    if not len(users):
        why = "child_user names nobody, so children run as the user of Parley."
    elif not _may_switch():
        why = "Parley may not switch users: it is not root and lacks the capabilities for it."
    else:
        why = "setpriv does not switch users here."
    return Line("Own user", "missing", why)


def _limit_lines(walls: Walls) -> Iterator[Line]:
    room = Room()
    together = memory_of_all()
    if together is None:
        words = "Shared memory is not counted. Give Parley a limit: MemoryMax= of systemd, mem_limit of a container."
        yield Line("Memory of all", "missing", words)
    else:
        yield Line("Memory of all", "on", f"Parley and its children have {together // bounds.MIB:,} MiB together.")
    if not walls.prlimit:
        yield Line("Memory of a process", "missing", "prlimit of util-linux is not installed or does not work.")
        yield Line("Processes, files, CPU", "missing", "prlimit of util-linux is not installed or does not work.")
        return
    most = f"{room.memory_bytes // bounds.MIB} MiB"
    yield Line("Memory of a process", "on", f"{most} for each process of a child, unless its entry says otherwise.")
    if os.geteuid() == 0 and not walls.switch:
        words = "Children run as root, whose processes the system does not count."
        yield Line("Processes, files, CPU", "missing", words)
        return
    file = f"files of {room.file_bytes // bounds.MIB} MiB"
    words = f"{room.processes} processes and threads, {room.open_files} open files, {file}, {room.cpu_seconds} s."
    yield Line("Processes, files, CPU", "on", words)


def memory_of_all(root: Path = _CGROUPS, said: str | None = None) -> int | None:
    """The memory that this process and all that it starts may take together, as its control group says; None when
    nothing limits it. Both kinds of groups name it; a limit of a group holds for all below."""
    try:
        said = Path("/proc/self/cgroup").read_text(encoding="ascii") if said is None else said
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
    found: list[int] = []
    for line in said.splitlines():
        number, controllers, group = line.split(":", 2)
        old = "memory" in controllers.split(",")
        if number != "0" and not old:
            continue
        at, file = (root / "memory", "memory.limit_in_bytes") if old else (root, "memory.max")
        places = [at / group.strip("/"), *(at / group.strip("/")).parents]
        for place in places[: places.index(at) + 1]:
            with contextlib.suppress(OSError, ValueError):
                found.append(int((place / file).read_text(encoding="ascii")))
    # A group without a limit says "max", or a number that no machine has.
    return min((most for most in found if most < machine), default=None)


def hide_process() -> bool:
    """Let no process of the same user look into this one: not into its memory, its environment or its files."""
    if sys.platform != "linux":
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False
