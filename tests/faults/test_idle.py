"""H06: connections that say nothing, or nearly nothing, keep nobody out, and cost neither a core nor a disk."""

import http.client
import re
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.test_command_line import Parley
from tests.drive import HANG, raw_target
from tests.web.asgi import TOKEN

pytestmark = pytest.mark.requirement("H06")

Start = Callable[..., Parley]
FEW_FILES = ("prlimit", "--nofile=256:256", "--")
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
linux = pytest.mark.skipif(sys.platform != "linux", reason="prlimit is a command of Linux")


@pytest.fixture
def parley(tmp_path: Path) -> Iterator[Start]:
    started: list[Parley] = []

    def start(limits: str = "", **more: Any) -> Parley:
        config = tmp_path / "parley.toml"
        config.write_text(f"token = '{TOKEN}'\n[limits]\n{limits}")
        started.append(Parley("--no-open", "--port", "0", "--config", str(config), **more))
        assert started[-1].script("GET", "/about")
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """The sockets of the attacker are files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def silent(one: Parley, many: int, said: bytes = b"") -> Iterator[list[socket.socket]]:
    """Connections that say this, and then nothing."""
    with ExitStack() as stack:
        sockets = []
        for _ in range(many):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", one.port), HANG))
            if said:
                try:
                    sock.sendall(said)
                except OSError:
                    continue  # sent away already
            sockets.append(sock)
        yield sockets


def closed(sock: socket.socket) -> bool:
    """Wait for the other side to close it. False when it says something instead."""
    sock.settimeout(HANG)
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True


def cpu(one: Parley) -> float:
    times = psutil.Process(one.process.pid).cpu_times()
    return times.user + times.system


@pytest.mark.parametrize(
    ("many", "said", "under"),
    [
        (650, b"", ()),
        (1000, HALF_A_HEAD, ()),
        pytest.param(650, HALF_A_HEAD, FEW_FILES, marks=linux),
        pytest.param(1000, b"", FEW_FILES, marks=linux),
    ],
    ids=["650", "1000, half a head", "650, half a head, 256 files", "1000, 256 files"],
)
def test_h06_silent_connections_keep_nobody_out(parley: Start, many: int, said: bytes, under: tuple[str, ...]):
    one = parley(under=under)
    path = one.script("POST", "/s", f'{{"target": {raw_target().model_dump_json()}}}')["url"]
    assert one.script("GET", f"{path}?wait=30")["connection"]["state"] == "ready"
    before = cpu(one)
    with silent(one, many, said):
        for _ in range(5):
            began = time.monotonic()
            assert one.ask("GET", "/healthz")[0] == 200
            cid = one.script("POST", f"{path}/calls", '{"method": "ping"}')["id"]
            assert one.script("GET", f"{path}/calls/{cid}?wait=30")["state"] == "done"
            assert time.monotonic() - began < 10, "ten times the figure"
        began, worked = time.monotonic(), cpu(one)
        while time.monotonic() - began < 3:
            assert one.ask("GET", "/healthz")[0] == 200
            time.sleep(0.1)  # what is measured is the cost of this time, not an order of events
        assert cpu(one) - worked < 1.5, "half a core; 0.1 s are usual"
        opened = one.script("POST", "/s", f'{{"target": {raw_target().model_dump_json()}}}')["url"]
        assert one.script("GET", f"{opened}?wait=30")["connection"]["state"] == "ready", "children need files too"
    assert cpu(one) - before < 15
    assert one.script("GET", path)["connection"]["state"] == "ready"
    assert one.end()[0] == 0
    assert sum(map(len, one.err)) < 20_000, "".join(one.err)[:3000]


def test_h06_a_connection_that_sends_no_head_is_closed(parley: Start):
    one = parley("head_seconds = 1")
    began = time.monotonic()
    with silent(one, 3) as quiet, silent(one, 3, b"GET / HT") as half:
        assert all(closed(sock) for sock in quiet + half)
    assert 0.9 < time.monotonic() - began < 20


def test_h06_a_byte_now_and_then_gains_no_time(parley: Start):
    one = parley("head_seconds = 1")
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", one.port), HANG) as sock, pytest.raises(ConnectionError):
        while time.monotonic() - began < HANG:
            sock.sendall(b"G")
            time.sleep(0.2)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("who", ["somebody", "a stranger"])
def test_h06_a_body_that_trickles_is_closed_and_a_slow_upload_is_not(parley: Start, who: str):
    one = parley("body_seconds = 1\nbody_bytes_per_second = 1000")
    token = f"Authorization: Bearer {TOKEN}\r\n" if who == "somebody" else ""
    head = (
        f"POST /s HTTP/1.1\r\nHost: 127.0.0.1\r\n{token}Content-Type: application/json\r\nContent-Length: 4000\r\n\r\n"
    )
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", one.port), HANG) as sock:
        sock.sendall(head.encode())
        with pytest.raises(ConnectionError):
            while time.monotonic() - began < HANG:
                sock.sendall(b" ")
                time.sleep(0.2)
    assert time.monotonic() - began < 20
    with socket.create_connection(("127.0.0.1", one.port), HANG) as sock:
        sock.sendall(head.encode())
        for _ in range(8):  # twice as long as a body that does not move may take
            sock.sendall(b" " * 499)
            time.sleep(0.25)
        sock.sendall(b" " * 6 + b"{}")
        assert sock.recv(20).startswith(b"HTTP/1.1 201" if who == "somebody" else b"HTTP/1.1 401")


def test_h06_a_connection_waits_for_the_next_request_as_long_as_before(parley: Start):
    one = parley("head_seconds = 1\nkeep_alive_seconds = 4")
    connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=HANG)
    used = set()
    for _ in range(2):
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        assert (answer.status, answer.read()[:9]) == (200, b'{"ready":')
        used.add(connection.sock.getsockname())
        time.sleep(2.5)  # longer than a head may take, shorter than the time between two requests
    assert len(used) == 1, "http.client opens a new one when the old one was closed"
    began = time.monotonic()
    assert closed(connection.sock)
    assert time.monotonic() - began < 20
    connection.close()


def test_h06_a_silent_byte_after_an_answer_ends_the_wait_for_the_next_request(parley: Start):
    one = parley("head_seconds = 1\nkeep_alive_seconds = 600")
    with socket.create_connection(("127.0.0.1", one.port), HANG) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        while not sock.recv(65536).endswith(b"}"):
            pass
        sock.sendall(b"G")
        assert closed(sock)


def test_h06_who_takes_nothing_of_an_answer_is_closed(parley: Start):
    one = parley("unread_seconds = 1")
    asked = b"GET /static/app.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 2000
    with socket.create_connection(("127.0.0.1", one.port), HANG) as sock:
        sock.settimeout(HANG)
        with pytest.raises(ConnectionError):
            while True:
                sock.sendall(asked)
    assert one.ask("GET", "/healthz")[0] == 200


def test_h06_a_waiting_script_and_a_stream_are_never_taken_for_silent(parley: Start):
    one = parley("connections = 32\nhead_seconds = 1\nbody_seconds = 1")
    path = one.script("POST", "/s")["url"]
    token = {"Authorization": f"Bearer {TOKEN}"}
    stream = http.client.HTTPConnection("127.0.0.1", one.port, timeout=HANG)
    stream.request("GET", f"{path}/events?format=json", headers=token)
    heard = stream.getresponse()
    waiting = http.client.HTTPConnection("127.0.0.1", one.port, timeout=HANG)
    waiting.request("GET", f"{path}/inbox?wait=4", headers=token)
    with silent(one, 200):
        assert waiting.getresponse().status == 200
    waiting.close()
    one.end()
    assert b"event: bye\ndata: shutdown\n" in heard.read()
    stream.close()


def test_h06_who_comes_while_all_are_busy_is_told_so(parley: Start):
    one = parley("connections = 32")
    path = one.script("POST", "/s")["url"]
    asked = f"GET {path}/inbox?wait=60 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with silent(one, 31, asked.encode()):
        status, headers, text = one.ask("GET", "/healthz")
        while status == 200:  # the last of the others are not heard yet
            status, headers, text = one.ask("GET", "/healthz")
        assert (status, text[:14], headers["x-content-type-options"]) == (503, "Parley is busy", "nosniff")
    began = time.monotonic()
    while one.ask("GET", "/healthz")[0] != 200:  # until it has seen that they are gone
        assert time.monotonic() - began < HANG


@linux
def test_h06_parley_may_open_more_files_than_before_and_its_children_may_not(parley: Start):
    one = parley(under=("prlimit", "--nofile=300:2000", "--"))
    assert psutil.Process(one.process.pid).rlimit(psutil.RLIMIT_NOFILE) == (2000, 2000)
    path = one.script("POST", "/s", f'{{"target": {raw_target().model_dump_json()}}}')["url"]
    assert one.script("GET", f"{path}?wait=30")["connection"]["state"] == "ready"
    (child,) = one.children()
    assert child.rlimit(psutil.RLIMIT_NOFILE) == (300, 2000)
    few = parley(under=("prlimit", "--nofile=128:128", "--"))
    assert psutil.Process(few.process.pid).rlimit(psutil.RLIMIT_NOFILE) == (128, 128)


@linux
def test_h06_without_a_file_left_it_neither_spins_nor_floods_the_log(parley: Start):
    """The files are used up by others than connections, so that nobody can be sent away for them."""
    one = parley(under=FEW_FILES)
    path = one.script("POST", "/s", f'{{"target": {raw_target().model_dump_json()}}}')["url"]
    assert one.script("GET", f"{path}?wait=30")["connection"]["state"] == "ready"
    used = psutil.Process(one.process.pid).num_fds()
    resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE, (used, 256))
    with silent(one, 50):
        one.says("no connection can be taken in for a moment: Too many open files", one.err)
        began, worked, lines = time.monotonic(), cpu(one), len(one.err)
        time.sleep(3)  # what is measured is the cost of this time
        assert cpu(one) - worked < 0.5 * (time.monotonic() - began)
        assert len(one.err) - lines < 30, one.err[lines:][:40]
        assert not any("Traceback" in line for line in one.err), "what could not be saved is a sentence"
    resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE, (256, 256))
    assert one.ask("GET", "/healthz")[0] == 200
    assert one.end()[0] == 0
    assert sum(map(len, one.err)) < 20_000


def test_h06_a_line_that_repeats_is_braked_and_counted(parley: Start):
    one = parley("log_repeats_per_minute = 5")
    for _ in range(40):
        with socket.create_connection(("127.0.0.1", one.port), HANG) as sock:
            sock.sendall(b"nonsense\r\n\r\n")
            assert sock.recv(20).startswith(b"HTTP/1.1 400")
    assert one.end()[0] == 0
    one.says(r"… repeated 35 times: uvicorn\.error: Invalid HTTP request received\.", one.err)
    assert len([line for line in one.err if re.search(r"uvicorn\.error: Invalid HTTP", line)]) == 6, one.err
