"""H09: whatever ends Parley or a session, nothing is left of its servers. M06: nor do they learn the token."""

import http.client
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.test_command_line import Parley
from tests.drive import HANG, ROOT, SERVERS, raw_target
from tests.web.asgi import TOKEN

Start = Callable[..., Parley]
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to whoever wants them")
STRAYS = ("daemon", "deaf", "apart", "bare") if sys.platform == "linux" else ()


@pytest.fixture
def parley() -> Iterator[Start]:
    started: list[Parley] = []

    def start(*arguments: str, **more: Any) -> Parley:
        started.append(Parley("--no-open", "--port", "0", *arguments, PARLEY_TOKEN=TOKEN, **more))
        return started[-1]

    yield start
    for one in started:
        one.children() if one.process.poll() is None else None
        one.close()


def open_session(one: Parley, command: str, *args: str) -> str:
    target = json.dumps({"target": {"transport": "stdio", "command": command, "args": args}})
    path: str = one.script("POST", "/s", target)["url"]
    state = one.script("GET", f"{path}?wait=30")["connection"]
    assert state["state"] == "ready", state
    return path


def with_stray(one: Parley, kind: str, folder: Path, name: str = "") -> tuple[str, psutil.Process]:
    """A session whose server started a process that left it."""
    file = folder / f"{kind}{name}"
    path = open_session(one, sys.executable, "-I", "-S", str(SERVERS / "strays.py"), kind, str(file))
    return path, psutil.Process(int(file.read_text()))


def call(one: Parley, path: str, method: str) -> Any:
    cid = one.script("POST", f"{path}/calls", json.dumps({"method": method}))["id"]
    done = one.script("GET", f"{path}/calls/{cid}?wait=30")
    assert done["state"] == "done", done
    return done["result"]


def everybody(one: Parley, folder: Path) -> list[psutil.Process]:
    """One server of each kind that is hard to end; all processes that came of them."""
    raw = raw_target()
    open_session(one, "/bin/sh", "-c", '"$@"; true', "sh", raw.command, *raw.args)
    call(one, open_session(one, raw.command, *raw.args), "x/deafen")
    strays = [with_stray(one, kind, folder)[1] for kind in STRAYS]
    found = {*one.children(), *strays}
    assert len(found) >= 3 + 2 * len(STRAYS)
    assert all(each.is_running() for each in found)
    return list(found)


def left(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Who is not gone after a while that nothing should need."""
    _, alive = psutil.wait_procs(processes, timeout=10)
    found = [each for each in alive if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    for each in found:
        each.kill()
    return found


# ------------------------------------------------------------------------------------------------------ the process


@pytest.mark.requirement("H09", "F23")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGINT])
def test_h09_every_signal_ends_everything_in_order(parley: Start, tmp_path: Path, number: signal.Signals):
    one = parley()
    path = one.script("POST", "/s")["url"]
    processes = everybody(one, tmp_path)
    stream = http.client.HTTPConnection("127.0.0.1", one.port, timeout=HANG)
    stream.request("GET", f"{path}/events?format=json", headers={"Authorization": f"Bearer {TOKEN}"})
    heard = stream.getresponse()
    code, seconds = one.end(number)
    assert (code, seconds < 50) == (0, True), one.err
    assert b"event: bye\ndata: shutdown\n" in heard.read()
    stream.close()
    assert left(processes) == []
    assert not [line for line in one.err if "Traceback" in line or "ERROR" in line], one.err


@pytest.mark.requirement("H09", "F23")
@pytest.mark.parametrize("first", [signal.SIGHUP, signal.SIGQUIT])
def test_h09_a_second_signal_ends_everything_at_once(parley: Start, tmp_path: Path, first: signal.Signals):
    one = parley()
    processes = everybody(one, tmp_path)
    one.process.send_signal(first)
    with pytest.raises(subprocess.TimeoutExpired):
        one.process.wait(0.5)
    code, seconds = one.end(signal.SIGINT)
    assert (code, seconds < 10) == (1, True)
    assert left(processes) == []


@pytest.mark.requirement("H09")
def test_h09_a_hangup_that_is_said_twice_is_one(parley: Start, tmp_path: Path):
    one = parley()
    processes = everybody(one, tmp_path)
    one.process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        one.process.wait(0.5)
    assert one.end(signal.SIGHUP)[0] == 0, "in order"
    assert left(processes) == []


@pytest.mark.requirement("H09")
def test_h09_what_nohup_ignores_stays_ignored(parley: Start):
    one = parley(under=("nohup",))
    assert one.ask("GET", "/healthz")[0] == 200
    one.process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        one.process.wait(1)
    assert one.ask("GET", "/healthz")[0] == 200
    assert one.end()[0] == 0


@pytest.mark.requirement("H09")
@pytest.mark.parametrize("shell", [(), ("/bin/sh", "-c", '"$@"; true', "sh")], ids=["alone", "below a shell"])
def test_h09_a_terminal_that_is_closed_leaves_nobody(tmp_path: Path, shell: tuple[str, ...]):
    raw = raw_target()
    server = ["/bin/sh", "-c", '"$@"; true', "sh", raw.command, *raw.args]
    if STRAYS:
        server = [sys.executable, "-I", "-S", str(SERVERS / "strays.py"), "deaf", str(tmp_path / "stray")]
    command = [*shell, sys.executable, "-m", "app", "--no-open", "--port", "0", "--", *server]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execvp(command[0], command)
    said, began = b"", time.monotonic()
    while b"/login?code=" not in said:
        said += os.read(terminal, 65536)
    root = psutil.Process(pid)
    while len(root.children(recursive=True)) < len(shell[:1]) + 1 or (STRAYS and not (tmp_path / "stray").exists()):
        assert time.monotonic() - began < HANG, said
        time.sleep(0.05)
    processes = [root, *root.children(recursive=True)]
    if STRAYS:
        while not (number := (tmp_path / "stray").read_text()):
            assert time.monotonic() - began < HANG
        processes.append(psutil.Process(int(number)))
    os.close(terminal)
    os.waitpid(pid, 0)
    assert left(processes) == []


# --------------------------------------------------------------------------------------------------------- a session


@linux
@pytest.mark.requirement("H09")
@pytest.mark.parametrize("kind", ["daemon", "deaf", "apart"])
def test_h09_closing_a_session_ends_what_left_it_and_nobody_else(parley: Start, tmp_path: Path, kind: str):
    one = parley()
    path, mine = with_stray(one, kind, tmp_path)
    other, neighbour = with_stray(one, kind, tmp_path, "-of-another")
    began = time.monotonic()
    one.script("POST", f"{path}/close", "{}")
    assert left([mine]) == []
    assert time.monotonic() - began < 40, "ten times the figure"
    assert neighbour.is_running()
    assert call(one, other, "ping") == {}
    assert not [each for each in one.children() if each.status() == psutil.STATUS_ZOMBIE]
    one.script("POST", f"{other}/disconnect", "{}")
    assert left([neighbour]) == []


@linux
@pytest.mark.requirement("H09")
def test_h09_a_server_that_ends_by_itself_takes_its_daemon_along(parley: Start, tmp_path: Path):
    one = parley()
    path, stray = with_stray(one, "daemon", tmp_path)
    server = next(each for each in one.children() if each != stray)
    server.kill()
    assert left([stray]) == []
    assert one.script("GET", f"{path}?wait=30")["connection"]["error"]["exit_code"] == -signal.SIGKILL


@linux
@pytest.mark.requirement("H09")
def test_h09_orphans_that_end_are_buried_and_no_exit_code_is_stolen(parley: Start, tmp_path: Path):
    one = parley()
    path, stray = with_stray(one, "quick", tmp_path)
    assert stray.ppid() == one.process.pid, "the orphan is ours"
    (tmp_path / "quick").unlink()
    for number in range(1, 12):
        target = {"transport": "stdio", "command": "/bin/sh", "args": ["-c", f"exit {number}"]}
        gone = one.script("POST", "/s", json.dumps({"target": target, "options": {"era": "legacy"}}))["url"]
        state = one.script("GET", f"{gone}?wait=30")["connection"]
        assert state["error"]["exit_code"] == number, state
        one.script("POST", f"{gone}/close", "{}")
    began = time.monotonic()
    while stray.is_running():
        assert time.monotonic() - began < HANG, "a zombie"
        time.sleep(0.1)
    assert call(one, path, "ping") == {}


# ---------------------------------------------------------------------------------------------------------- the token


LOOK = """
import json, os
seen, pid = {}, os.getpid()
while pid > 1:
    with open(f"/proc/{pid}/stat") as file:
        parent = int(file.read().rpartition(")")[2].split()[1])
    with open(f"/proc/{pid}/environ", "rb") as file:
        seen[pid] = file.read().decode("latin-1")
    pid = parent
with open(os.environ["SEEN"], "w") as file:
    json.dump(seen, file)
"""


@linux
@pytest.mark.requirement("M06")
def test_m06_a_child_finds_the_token_in_no_environment(parley: Start, tmp_path: Path):
    one = parley()
    assert one.script("GET", "/about"), "the token opens the door"
    look = {"command": sys.executable, "args": ["-c", LOOK], "env": {"SEEN": str(tmp_path / "seen")}}
    target = {"transport": "stdio", **look}
    path = one.script("POST", "/s", json.dumps({"target": target, "options": {"era": "legacy"}}))["url"]
    assert one.script("GET", f"{path}?wait=30")["connection"]["error"]["exit_code"] == 0
    seen = json.loads((tmp_path / "seen").read_text())
    assert "\0PATH=" in "\0" + seen[str(one.process.pid)], "it did see our environment"
    # Above us are processes that were started before us, with whatever they were given.
    ours = [text for pid, text in seen.items() if int(pid) not in {os.getpid(), *map(_pid, psutil.Process().parents())}]
    assert len(ours) == 2
    assert not [text for text in ours if TOKEN in text]
    assert "PARLEY_TOKEN=\0" in seen[str(one.process.pid)]


def _pid(process: psutil.Process) -> int:
    return process.pid
