"""A child of a team that forks, fills memory, writes a large file, reads Parley's process or dials inwards
gets nowhere.

Each is tried behind the walls of this machine, and once without them, to see that it could."""

import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import psutil
import pytest

from app.isolation import Isolation, NoUserLeft, Users
from tests.drive import HANG
from tests.isolation.walls import PYTHON, ROOM, Said, lacks, nothing, python, run, started, switching, walls

pytestmark = pytest.mark.requirement("T01")
KINDS = ("sandbox", "users")

FORK = """
import os, time
children = 0
try:
    while children < 200:
        pid = os.fork()
        if not pid:
            time.sleep(60)
        children += 1
except OSError as fault:
    print(children, type(fault).__name__, flush=True)
else:
    print(children, "all", flush=True)
os.killpg(0, 9)
"""
MEMORY = """
try:
    held = [bytearray(2**20) for _ in range(400)]
    print("all")
except MemoryError:
    print("MemoryError")
"""
FILE = """
import pathlib, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
at = pathlib.Path(sys.argv[1]).expanduser() / "large"
try:
    with at.open("wb", buffering=0) as file:
        for _ in range(8):
            file.write(bytes(2**20))
    print("all")
except OSError as fault:
    print(type(fault).__name__, at.stat().st_size)
"""
SPREAD = """
import pathlib
try:
    for number in range(200):
        (pathlib.Path.home() / str(number)).write_bytes(bytes(2**19))
    print("all")
except OSError as fault:
    print(fault.errno)
"""
SPIN = """
import time
while True:
    pass
"""
LOOK = """
import sys
for name in ("environ", "mem", "maps", "fd/0", "cmdline"):
    try:
        with open(f"/proc/{sys.argv[1]}/{name}", "rb") as file:
            print(name, "read" if name != "mem" else "opened")
    except OSError as fault:
        print(name, type(fault).__name__)
"""
DIAL = """
import socket, sys
for kind, where in ((socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))), (socket.AF_UNIX, "\\0" + sys.argv[2])):
    try:
        with socket.socket(kind) as one:
            one.settimeout(5)
            one.connect(where)
        print("connected")
    except OSError as fault:
        print(type(fault).__name__)
"""
ABOUT = """
import os, pathlib, resource
print(sorted(os.environ))
print(os.environ["HOME"], pathlib.Path.home().exists(), os.access(os.environ["HOME"], os.W_OK))
print(next(line for line in open("/proc/self/status") if line.startswith("NoNewPrivs")).split()[1])
print(os.getuid(), os.geteuid(), os.getgroups())
print(resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.parametrize("kind", KINDS)
async def test_a_child_that_forks_comes_to_its_end(kind: str):
    isolation = walls(kind)
    if os.geteuid() == 0:
        switching(isolation)
    [line] = (await run(isolation, python(FORK))).lines
    forked, fault = line.split()
    assert fault == "BlockingIOError"
    assert int(forked) < ROOM.processes


@pytest.mark.parametrize("kind", KINDS)
async def test_a_child_that_fills_memory_has_its_own_alone(kind: str):
    assert (await run(walls(kind), python(MEMORY))).lines == ["MemoryError"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_child_writes_no_file_larger_than_it_may(kind: str):
    said = await run(walls(kind), python(FILE, "~"))
    assert said.lines == [f"OSError {ROOM.file_bytes}"]


async def test_a_child_in_the_sandbox_writes_no_more_in_many_files_and_nowhere_else():
    isolation = walls("sandbox")
    [full] = (await run(isolation, python(SPREAD))).lines
    assert full == str(28)  # ENOSPC
    code = "import os, sys; print(*(os.access(place, os.W_OK) for place in sys.argv[1:]))"
    said = await run(isolation, python(code, "/", "/dev", "/usr", "/etc", "/tmp"))
    assert said.lines == ["False False False False True"]


async def test_a_child_that_spins_is_ended_by_its_cpu_time():
    before = time.monotonic()
    said = await run(walls("users"), python(SPIN))
    assert said.exit_code not in (0, None)
    assert time.monotonic() - before < HANG


@pytest.mark.parametrize("kind", KINDS)
async def test_a_child_does_not_see_into_parley(kind: str, monkeypatch: pytest.MonkeyPatch):
    isolation = switching(walls(kind)) if kind == "users" else walls(kind)
    said = await run(isolation, python(LOOK, str(os.getpid())))
    expected = "FileNotFoundError" if kind == "sandbox" else "PermissionError"
    assert said.lines[:4] == [f"{name} {expected}" for name in ("environ", "mem", "maps", "fd/0")]


@pytest.mark.parametrize("hidden", [False, True])
async def test_no_process_of_the_same_user_sees_into_one_that_hides(hidden: bool):
    """Where Parley may not switch users its children are of the same user. Run as a user who is nobody special."""
    if not PYTHON:
        lacks("a python3 that another user could run")
    if os.geteuid() == 0:
        switching(walls("users"))
    code = f"""
import ctypes, os, subprocess, sys
if sys.argv[1] == "True":
    assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0  # as app/isolation.py does
print(subprocess.run([sys.executable, "-c", {LOOK!r}, str(os.getpid())], capture_output=True, text=True).stdout)
"""
    isolation = walls("users")
    said = await run(isolation, python(code, str(hidden)))
    seen = dict(line.split() for line in said.lines if line)
    assert (seen["environ"], seen["mem"]) == (("PermissionError",) * 2 if hidden else ("read", "opened"))


def test_parley_hides_itself_when_it_is_told_to():
    """In a process of its own: it cannot be undone."""
    asked = "ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)"
    code = f"import ctypes; from app.isolation import hide_process; print(hide_process(), {asked})"
    done = psutil.Popen([sys.executable, "-c", code], stdout=-1, text=True, cwd=Path(__file__).parents[2])
    assert done.communicate(timeout=HANG)[0].split() == ["True", "0"]


async def test_a_child_without_network_dials_nobody():
    isolation = walls("sandbox")
    with socket.socket() as inward, socket.socket(socket.AF_UNIX) as abstract:
        inward.bind(("127.0.0.1", 0))
        inward.listen()
        name = f"parley-test-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        dial = python(DIAL, str(inward.getsockname()[1]), name)
        assert (await run(isolation, dial)).lines == ["ConnectionRefusedError"] * 2
        assert (await run(isolation, replace(dial, network=True))).lines == ["connected"] * 2
        assert (await run(nothing(), dial)).lines == ["connected"] * 2, "without walls it could"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("S28")
async def test_a_child_has_an_environment_and_a_home_of_its_own(kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PARLEY_CANARY", "a secret of the parent")
    isolation = walls(kind)
    wanted = python(ABOUT, env={"REGION": "north", "HOME": "/root", "PATH": "/evil"}, path="/usr/bin:/bin")
    said = await run(isolation, wanted)
    names, home, no_new, who, core = said.lines
    ours = {"HOME", "LANG", "PATH", "REGION", "TMPDIR"}
    assert set(eval(names)) - {"PWD", "LC_CTYPE", "STARTED_BY_PARLEY"} == ours
    place, exists, writable = home.split()
    assert (place != "/root", exists, writable, no_new, core) == (True, "True", "True", "1", "(0, 0)")
    if isolation.walls.switch:
        uid, euid = who.split()[:2]
        assert uid == euid and 61700 <= int(uid) <= 61709
    assert not os.path.exists(place), "it goes with the child"  # noqa: ASYNC240, PTH110


def alive(mark: str) -> bool:
    return any(mark in " ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"]))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_child_and_what_it_forked_die_with_their_link(kind: str):
    code = "import os, time; os.fork(); os.fork(); print(1, flush=True); time.sleep(600)"
    mark = f"parley-test-{os.getpid()}-{kind}"
    async with started(walls(kind), python(code, mark)) as link:
        assert await link.receive()
        assert alive(mark)
    with anyio.fail_after(HANG):
        while alive(mark):  # noqa: ASYNC110 - they are not ours to wait for
            await anyio.sleep(0.02)


@pytest.fixture
def folders() -> Iterator[tuple[Path, Path]]:
    """Two directories that everybody could reach, the second for its owner alone."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        found = place / "mine", place / "other"
        for folder in found:
            folder.mkdir(mode=0o755)
            (folder / "file").write_text("x")
        found[1].chmod(0o700)
        yield found


@pytest.mark.parametrize("kind", KINDS)
async def test_a_child_reads_its_own_directory_and_not_that_of_others(kind: str, folders: tuple[Path, Path]):
    isolation = switching(walls(kind)) if kind == "users" else walls(kind)
    mine, other = folders
    code = "import os, sys; print(*(os.access(one, os.R_OK) for one in sys.argv[1:]))"
    wanted = python(code, str(mine / "file"), str(other / "file"), reads=(str(mine),))
    assert (await run(isolation, wanted)).lines == ["True False"]


async def test_each_child_of_a_range_runs_as_somebody_else(monkeypatch: pytest.MonkeyPatch):
    isolation = switching(walls("users"))
    monkeypatch.setattr(isolation, "users", Users("61700-61701"))
    ask = python("import os, time; print(os.getuid(), flush=True); time.sleep(600)")
    async with started(isolation, ask) as one, started(isolation, ask) as two:
        assert {*(await one.receive() or ()), *(await two.receive() or ())} == {b"61700", b"61701"}
        with pytest.raises(NoUserLeft, match="All 2 users"), isolation.start(ask):
            pass
    async with started(isolation, ask) as again:
        assert await again.receive() == [b"61700"]


async def test_without_any_wall_all_of_it_would_go_through():
    """What the tests above refuse is possible: they can fail."""
    bare: Isolation = nothing()
    memory, file, looked = [
        await run(bare, python(code, *args))
        for code, args in ((MEMORY, ()), (FILE, ("~",)), (LOOK, (str(os.getpid()),)))
    ]
    assert (memory.lines, file.lines, looked.lines[0]) == (["all"], ["all"], "environ read")
    assert isinstance(memory, Said)
