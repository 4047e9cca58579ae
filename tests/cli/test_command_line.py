"""The command line with real processes: how it starts, what it says when it cannot, and how it ends."""

import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from app import __version__
from tests.drive import ROOT, raw_target
from tests.drive_http import free_port
from tests.web.asgi import TOKEN

WAIT = 60.0
"""A guard against hanging, many times what a start takes on a busy machine."""


class Parley:
    """A process of its own, with what it prints."""

    def __init__(self, *arguments: str, cwd: Path = ROOT, under: Sequence[str] = (), **env: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
        for name in ("DISPLAY", "WAYLAND_DISPLAY"):
            clean.pop(name, None)
        command = [*under, sys.executable, "-m", "app", *arguments]
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**clean, "PYTHONPATH": str(ROOT), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.out: list[str] = []
        self.err: list[str] = []
        self._children: set[psutil.Process] = set()
        self._said = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, args=[stream, lines], daemon=True)
            for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, lines: list[str]) -> None:
        for line in stream:
            with self._said:
                lines.append(line)
                self._said.notify_all()

    def says(self, pattern: str, lines: list[str] | None = None, *, after: int = 0) -> "re.Match[str]":
        """Wait for a line."""
        seen = self.out if lines is None else lines

        def found() -> "re.Match[str] | None":
            return next((match for line in seen[after:] if (match := re.search(pattern, line))), None)

        with self._said:
            self._said.wait_for(lambda: found() is not None or self.process.poll() is not None, WAIT)
            match = found()
        assert match is not None, (pattern, self.out, self.err)
        return match

    @property
    def port(self) -> int:
        return int(self.says(r"http://127\.0\.0\.1:(\d+)/login")[1])

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            first = {name.lower(): value for name, value in reversed(answer.getheaders())}
            return answer.status, first, answer.read().decode()
        finally:
            connection.close()

    def script(self, method: str, path: str, body: str | None = None) -> Any:
        status, _, text = self.ask(
            method,
            path,
            body,
            authorization=f"Bearer {TOKEN}",
            accept="application/json",
            content_type="application/json",
        )
        assert 200 <= status < 300, (status, text)
        return json.loads(text)

    def children(self) -> list[psutil.Process]:
        found = psutil.Process(self.process.pid).children(recursive=True)
        self._children.update(found)
        return found

    def end(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Send a signal; the exit code, and how many seconds it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(WAIT)
        return code, time.monotonic() - began

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT)
        for child in self._children:
            with suppress(psutil.NoSuchProcess):
                child.kill()  # only a test that has failed leaves one
        for reader in self._readers:
            reader.join(5)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()


Start = Callable[..., Parley]


@pytest.fixture
def parley() -> Iterator[Start]:
    started: list[Parley] = []

    def start(*arguments: str, **env: Any) -> Parley:
        options = [] if "--port" in arguments or "PARLEY_PORT" in env or "PARLEY_CONFIG" in env else ["--port", "0"]
        started.append(Parley("--no-open", *options, *arguments, **env))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(scope="module")
def plain() -> Iterator[Parley]:
    """One that was started without anything; tests that only ask it something share it."""
    one = Parley("--no-open", "--port", "0")
    yield one
    one.close()


def fails(*arguments: str, **env: str) -> tuple[int, str]:
    """Start what cannot start: its exit code and its one sentence."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    done = subprocess.run(
        [sys.executable, "-m", "app", "--no-open", *arguments],
        cwd=ROOT,
        env={**clean, **env},
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert done.stdout == ""
    assert done.stderr.startswith("parley: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.returncode, done.stderr


# ------------------------------------------------------------------------------------------------- what cannot start


def test_a_taken_port_is_said_in_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = fails("--port", str(port))
    assert code == 1
    assert f"port {port} is taken" in said
    assert "--port" in said


@pytest.mark.requirement("S07")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_another_host_needs_an_explicit_flag(host: str):
    for arguments, env in ((["--host", host], {}), ([], {"PARLEY_HOST": host})):
        code, said = fails(*arguments, **env)
        assert code == 2
        assert "--published-on-loopback" in said


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--frobnicate"], 2, "--frobnicate"),
        (["--port", "many"], 2, "--port must be a whole number"),
        (["--port", "70000"], 2, "--port must be at most 65535"),
        (["--port", "-1"], 2, "--port must be at least 0"),
        (["--host", "example.com"], 2, "--host"),
        (["frobnicate"], 2, "neither 'demo' nor a URL"),
        (["localhost:8000/mcp"], 2, "begins with http://"),
        (["http://"], 2, "no host"),
        (["http://localhost:99999/mcp"], 2, "no host and port"),
        (["python", "server.py", "-v"], 2, "parley -- python server.py"),
        (["x" * 50_000], 2, "x…'"),
        (["--"], 2, "missing"),
        (["demo", "--", "x"], 2, "not both"),
        (["--", "no-such-command-anywhere"], 1, "no-such-command-anywhere"),
        (["--", "./no/such/file"], 1, "./no/such/file"),
        (["--", "./pyproject.toml"], 1, "what runs it"),
        (["--", "x" * 5_000], 1, "no program"),
        (["--", "python3", "a\udcffb"], 2, "not UTF-8 text"),
        (["--config", "/no/such/file"], 1, "/no/such/file"),
        (["--config", "/"], 1, "cannot be read"),
        (["--token-file", "/no/such/file"], 1, "/no/such/file"),
        (["--config"], 2, "--config"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(arguments: list[str], code: int, said: str):
    got, sentence = fails(*arguments)
    assert got == code, sentence
    assert said in sentence
    assert len(sentence) < 400


def test_a_config_file_with_a_mistake(tmp_path: Path):
    file = tmp_path / "parley.toml"
    for text, code, said in (
        ("port = = 3", 1, "not TOML"),
        ("colour = 'blue'", 2, f"no setting colour in {file}"),
        ('"\\u001b[31m" = 1', 2, r"\x1b[31m"),
        ("[limits]\nmessages = 3", 2, "limits.messages"),
        ("[limits]\ncalls = 0", 2, f"limits.calls in {file} must be more than 0"),
        ("port = 'x'", 2, f"port in {file} must be a whole number"),
        ("host = '[::1]'", 2, f"host in {file} takes an address"),
        ("[models.mine]\nprovider = 'openai'", 2, "'models.mine' cannot be used: say which model"),
        ("[models.mine]\nprovider = 'openai'\nmodel = 'm'\nkey = 'sk-1'", 2, "'models.mine.key' cannot be used"),
        ("roots = ['project']", 2, "the root 'project' cannot be used: a root is a file:// URI"),
        ("token = 'short'", 2, "token"),
    ):
        file.write_text(text)
        got, sentence = fails("--config", str(file))
        assert (got, said in sentence) == (code, True), sentence
    got, sentence = fails(PARLEY_PORT="x")
    assert (got, "PARLEY_PORT must be a whole number" in sentence) == (2, True), sentence


@pytest.mark.parametrize("token", ["short", "with a space in it", "täglich-ein-anderes-token"])
def test_a_token_that_nobody_could_send(token: str, tmp_path: Path):
    file = tmp_path / "token"
    file.write_text(token)
    for arguments, env in (([], {"PARLEY_TOKEN": token}), (["--token-file", str(file)], {})):
        code, said = fails(*arguments, **env)
        assert code == 2
        assert "token" in said
        assert token not in said


def test_help_and_version():
    for option, wanted in (("--help", "usage: parley"), ("--version", f"parley {__version__}")):
        done = subprocess.run(
            [sys.executable, "-m", "app", option],
            cwd=ROOT,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            text=True,
            timeout=WAIT,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(wanted)


# ------------------------------------------------------------------------------------------------------------- starting


@pytest.mark.requirement("S11", "S08", "S13")
def test_the_printed_address_works_once_and_the_next_one_is_printed(parley: Start):
    one = parley()
    code = one.says(r"^Parley is at http://127\.0\.0\.1:\d+/login\?code=(\S+)$")[1]
    assert len(one.out) == 1
    status, headers, _ = one.ask("GET", f"/login?code={code}")
    assert status == 303
    root = re.fullmatch(r"(/~[\w-]{22})/", headers["location"])[1]  # type: ignore[index]
    assert "server" not in headers
    cookie = headers["set-cookie"].split(";")[0]
    assert cookie.startswith(f"parley_{one.port}=")
    assert one.ask("GET", f"{root}/", cookie=cookie)[0] == 200
    assert one.ask("GET", "/", cookie=cookie)[0] == 401
    following = one.says(r"login\?code=(\S+)$", after=1)[1]
    assert following != code
    assert one.ask("GET", f"/login?code={code}")[0] == 401
    assert one.ask("GET", f"/login?code={following}")[0] == 303
    other = parley()
    status, headers, _ = other.ask("GET", f"{root}/", cookie=cookie.replace(str(one.port), str(other.port)))
    assert status == 401, "a cookie of another process opens nothing"
    assert "Max-Age=0" in headers["set-cookie"]
    assert one.err == []


def test_it_listens_before_it_has_loaded_the_sdk(parley: Start):
    one = parley()
    status, _, text = one.ask("GET", "/healthz")
    assert status == 200
    assert text in {'{"ready":false}', '{"ready":true}'}


def test_what_is_slow_to_import_comes_after_the_port_is_open():
    program = "import sys, app.cli, app.server, app.web.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded & {"starlette.applications", "uvicorn"}
    assert not loaded & {"mcp", "mcp_types", "httpx2", "jinja2", "sse_starlette", "jsonschema_rs", "app.sessions"}


def test_every_loopback_address_that_this_machine_has_answers(plain: Parley):
    hosts = ["127.0.0.1"]
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        hosts.append("::1")
    except OSError:
        print("this machine has no IPv6 loopback")
    for host in hosts:
        connection = http.client.HTTPConnection(host, plain.port, timeout=WAIT)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()


@pytest.mark.requirement("S02", "S09")
def test_what_is_not_http_gets_the_same_headers(plain: Parley):
    for raw in (
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 263_000,
    ):
        with socket.create_connection(("127.0.0.1", plain.port), timeout=WAIT) as sock:
            sock.sendall(raw)
            answer = b""
            while chunk := sock.recv(65536):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"frame-ancestors 'none'" in answer
        assert b"very large cookies" in answer
        assert b"server:" not in answer.lower()


@pytest.mark.requirement("S11", "R5-73")
def test_no_secret_is_in_the_output_but_the_codes(parley: Start, tmp_path: Path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o640)
    one = parley("--token-file", str(file))
    one.says(f"chmod 600 {file}", one.err)
    opened = one.script("POST", "/s", '{"target": {"transport": "demo"}}')
    assert one.script("GET", f"{opened['url']}?wait=30")["connection"]["state"] == "ready"
    assert one.ask("GET", "/", authorization="Bearer wrong-wrong-wrong-wrong")[0] == 401
    one.says("starts the demo server", one.err)
    one.end()
    said = "".join(one.out + one.err)
    assert TOKEN not in said
    assert "wrong-wrong" not in said
    assert "GET /" not in said


def test_the_token_of_the_environment_is_hidden_from_children(parley: Start):
    one = parley(PARLEY_TOKEN=TOKEN)
    target = raw_target().model_dump_json()
    path = one.script("POST", "/s", f'{{"target": {target}}}')["url"]
    assert one.script("GET", f"{path}?wait=30")["connection"]["state"] == "ready"
    cid = one.script("POST", f"{path}/calls", '{"method": "x/about"}')["id"]
    env = one.script("GET", f"{path}/calls/{cid}?wait=30")["result"]["env"]
    assert not [name for name in env if name.startswith("PARLEY_")]
    assert TOKEN not in str(env)


def test_without_a_token_scripts_stay_outside(plain: Parley):
    assert plain.ask("GET", "/", authorization=f"Bearer {TOKEN}")[0] == 401


def test_command_line_before_environment_before_file(parley: Start, tmp_path: Path):
    by_file, by_environment, by_option = free_port(), free_port(), free_port()
    file = tmp_path / "parley.toml"
    file.write_text(f"port = {by_file}\ntoken = '{TOKEN}'\n[limits]\ncalls = 7\n")
    one = parley(PARLEY_CONFIG=str(file))
    assert one.port == by_file
    assert one.script("GET", "/about")["limits"]["calls"] == 7
    one.end()
    two = parley("--config", str(file), PARLEY_PORT=str(by_environment))
    assert two.port == by_environment
    two.end()
    three = parley("--port", str(by_option), "--config", str(file), PARLEY_PORT=str(by_environment))
    assert three.port == by_option
    other = "another-token-than-the-one-in-the-file"
    four = parley("--config", str(file), PARLEY_PORT="0", PARLEY_TOKEN=other)
    assert four.ask("GET", "/", authorization=f"Bearer {TOKEN}")[0] == 401
    assert four.ask("GET", "/", authorization=f"Bearer {other}")[0] == 200


@pytest.mark.requirement("S07")
def test_in_a_container_it_may_listen_elsewhere_and_still_answers_to_loopback_names_only(parley: Start):
    one = parley("--host", "0.0.0.0", "--published-on-loopback")
    assert one.ask("GET", "/healthz")[0] == 200
    assert one.ask("GET", "/healthz", host="127.0.0.1:9999")[0] == 200
    assert one.ask("GET", "/healthz", host="10.0.0.1:6280")[0] == 400


@pytest.mark.parametrize("gone", ["at once", "after the first line"])
def test_it_goes_on_when_nobody_reads_its_output(gone: str):
    """As in `parley | head -1`: the next launch code cannot be printed, and that must not cost the login."""
    port = free_port()
    reader, writer = os.pipe()
    if gone == "at once":
        os.close(reader)
    command = [sys.executable, "-m", "app", "--no-open", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True) as process:
        os.close(writer)
        try:
            if gone == "at once":
                assert process.stderr is not None
                assert "cannot be shown" in process.stderr.readline()
                path, status = "/healthz", 200
            else:
                with os.fdopen(reader) as output:
                    path, status = output.readline().rpartition(str(port))[2].strip(), 303
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
            connection.request("GET", path)
            assert connection.getresponse().status == status
            connection.close()
            process.terminate()
            assert (process.communicate(timeout=WAIT)[1], process.returncode) == ("", 0)
        finally:
            process.kill()


# ------------------------------------------------------------------------------------------------- a session at once


@pytest.mark.requirement("R5-71")
@pytest.mark.parametrize("how", ["demo", "command"])
def test_a_session_is_already_connected(how: str, parley: Start):
    target = raw_target()
    arguments = ["demo"] if how == "demo" else ["--", target.command, *target.args]
    one = parley(*arguments, PARLEY_TOKEN=TOKEN)
    path, stage = one.says(r"login\?code=\S+&next=(/s/[^/\s]+)(/stage)?$").groups()
    assert bool(stage) is (how == "demo"), "the demo begins where its parade is"
    overview = one.script("GET", f"{path}?wait=30")
    assert overview["connection"]["state"] == "ready"
    if how == "command":
        assert overview["connection"]["server_info"]["name"] == "raw"
    code = one.says(r"code=([^&\s]+)")[1]
    status, headers, _ = one.ask("GET", f"/login?code={code}&next={path}")
    assert status == 303
    assert re.fullmatch(rf"/~[\w-]{{22}}{path}", headers["location"])


def test_a_command_that_dies_leaves_a_session_that_says_so(parley: Start):
    one = parley("--", sys.executable, "-c", "raise SystemExit(3)", PARLEY_TOKEN=TOKEN)
    path = one.says(r"next=(/s/\S+)$")[1]
    assert one.script("GET", f"{path}?wait=30")["connection"]["state"] == "lost"


# ----------------------------------------------------------------------------------------------------------------- end


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """A shell starts what is to run in the background deaf to Ctrl-C, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_before_it_listens_ends_it_without_a_traceback(tmp_path: Path):
    fifo = tmp_path / "parley.toml"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "app", "--no-open", "--port", "0", "--config", str(fifo)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            with fifo.open("w"):  # returns when Parley has opened it too, and now waits for what stands in it
                process.send_signal(signal.SIGINT)
                assert process.communicate(timeout=WAIT) == ("", "")
            assert process.returncode == -signal.SIGINT
        finally:
            process.kill()


@pytest.mark.requirement("F23")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("watched", [False, True], ids=["alone", "with an open stream"])
def test_a_signal_ends_it_with_all_children(number: int, watched: bool, parley: Start):
    raw = raw_target()
    one = parley(*(["demo"] if watched else ["--", raw.command, *raw.args]), PARLEY_TOKEN=TOKEN)
    path = one.says(r"next=(/s/[^/\s]+)(?:/stage)?$")[1]
    assert one.script("GET", f"{path}?wait=30")["connection"]["state"] == "ready"
    children = one.children()
    assert children
    stream = answer = None
    if watched:
        stream = http.client.HTTPConnection("127.0.0.1", one.port, timeout=WAIT)
        stream.request("GET", f"{path}/events", headers={"Authorization": f"Bearer {TOKEN}"})
        answer = stream.getresponse()
        assert answer.getheader("content-type", "").startswith("text/event-stream")
        assert answer.getheader("content-encoding") is None
        assert "frame-ancestors 'none'" in answer.getheader("content-security-policy", "")
    code, seconds = one.end(number)
    assert code == 0, one.err
    assert seconds < 50, "ten times the figure"
    if stream is not None and answer is not None:
        assert b"event: bye\ndata: shutdown\n" in answer.read()
        stream.close()
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    assert not [line for line in one.err if "Traceback" in line or "ERROR" in line], one.err


@pytest.mark.requirement("F23", "F28")
def test_a_child_that_ignores_everything_is_gone_within_five_seconds(parley: Start):
    one = parley(PARLEY_TOKEN=TOKEN)
    children = stubborn(one)
    code, seconds = one.end()
    assert code == 0, one.err
    assert seconds < 50, "ten times the figure"
    assert not [child for child in children if child.is_running()]


@pytest.mark.requirement("F23")
def test_a_second_signal_ends_it_at_once_and_kills_the_children(parley: Start):
    one = parley(PARLEY_TOKEN=TOKEN)
    children = stubborn(one)
    one.process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        one.process.wait(0.5)
    code, seconds = one.end()
    assert (code, seconds < 10) == (1, True)
    psutil.wait_procs(children, timeout=WAIT)
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


def stubborn(one: Parley) -> list[psutil.Process]:
    """A session whose server ignores a closed stdin and SIGTERM."""
    path = one.script("POST", "/s", f'{{"target": {raw_target().model_dump_json()}}}')["url"]
    assert one.script("GET", f"{path}?wait=30")["connection"]["state"] == "ready"
    cid = one.script("POST", f"{path}/calls", '{"method": "x/deafen"}')["id"]
    assert one.script("GET", f"{path}/calls/{cid}?wait=30")["state"] == "done"
    return one.children()


@pytest.mark.requirement("M13")
def test_m13_a_refused_upgrade_leaves_nothing_in_the_log(parley: Start):
    one = parley()
    paths = ("/", "/s/x/events", "/healthz", "/nothing")
    for protocol, path in itertools.product(("websocket", "h2c"), paths):
        for _ in range(10):
            headers = {"Connection": "Upgrade", "Upgrade": protocol, "Sec-WebSocket-Key": "x" * 22 + "==",
                       "Sec-WebSocket-Version": "13"}  # fmt: skip
            status, _, _ = one.ask("GET", path, **headers)
            assert status == (200 if path == "/healthz" else 401), "it is the request that it is, and becomes nothing"
    assert one.end()[0] == 0
    for reader in one._readers:
        reader.join(WAIT)
    assert one.err == []


def test_a_waiting_script_does_not_hold_up_the_end(parley: Start):
    one = parley(PARLEY_TOKEN=TOKEN)
    path = one.script("POST", "/s")["url"]
    waiting = http.client.HTTPConnection("127.0.0.1", one.port, timeout=WAIT)
    waiting.request("GET", f"{path}/inbox?wait=60", headers={"Authorization": f"Bearer {TOKEN}"})
    code, seconds = one.end()
    waiting.close()
    assert (code, seconds < 50) == (0, True)
