"""Several replicas of one team behind a proxy, and PostgreSQL below them: plain processes on loopback."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest
from cryptography.fernet import Fernet

from app.core.targets import HttpTarget
from tests.drive import ROOT, SERVERS
from tests.drive_http import Peer, started
from tests.drive_modern import TELLS, ask_form, modern_web, needs
from tests.drive_oauth import Harbour, protected
from tests.postgres import Postgres

WAIT = 60.0
HOST = "parley.example"
DEPLOY = ROOT / ".deploy"
PROXIES = ("nginx", "haproxy")
STATE = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJlLXNpZ25hdHVyZQ"
"""What a server of 2026-07-28 wants back to the byte; it looks like a secret, as such states do."""
SCRIPTS = {"ask": [needs(STATE, who=ask_form("Who sails?")), TELLS]}
_WAITS = {"status": "input_required", "pollIntervalMs": 500, "inputRequests": {"a": ask_form("Which way?")}}
TASKS = {"job": {"gets": [_WAITS, {"status": "completed", "result": {"$tell": True}}]}}
SECRET = "canary-client-secret-5b1f"
_T = TypeVar("_T")


def program(name: str) -> str:
    """Where a proxy is; the test says loudly that it is not."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip(
            f"THIS MACHINE LACKS {name}: install it (on Debian: apt install {name}); make test-team does as root"
        )
    return found


_GIVEN: set[int] = set()


def free() -> int:
    """A port that nobody listens on, and that was not given out before: whoever gets one opens it later."""
    while True:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = int(found.getsockname()[1])
        if port not in _GIVEN:
            _GIVEN.add(port)
            return port


def until(what: Callable[[], _T | None], why: str = "it", seconds: float = WAIT) -> _T:
    """What a question has for an answer, as soon as it has one."""
    deadline = time.monotonic() + seconds
    while True:
        with suppress(httpx2.TransportError):
            if found := what():
                return found
        assert time.monotonic() < deadline, f"{why} did not happen within {seconds:g} s"
        time.sleep(0.05)


class Provider(Harbour):
    """A sign-in service for people that runs; `allow` is what somebody does there."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.name: str = self.set()["issuer"]


class Client(httpx2.Client):
    """A browser or a script of somebody, through the proxy or, past it, to one replica."""

    def __init__(self, base: str, **headers: str) -> None:
        super().__init__(
            base_url=base, verify=False, timeout=WAIT, headers={"host": HOST, "accept": "application/json", **headers}
        )


class Team:
    """Everything of one team on this machine."""

    def __init__(
        self, folder: Path, proxy: str = "nginx", names: tuple[str, ...] = ("r1", "r2"), **limits: int
    ) -> None:
        self.folder, self.proxy_name, self.names = folder, proxy, names
        self._stack = ExitStack()
        self.replicas: dict[str, subprocess.Popen[str]] = {}
        self.ports = {name: free() for name in names}
        self.tls = free()
        self.limits = {
            "sessions_per_identity": 50,
            "streams_per_browser": 50,
            "calls_per_minute": 0,
            "requests_per_minute": 0,
            **limits,
        }
        self.link = ""
        self.logs: dict[str, Path] = {}
        self._clients: list[Client] = []
        self._direct: dict[str, Client] = {}

    def __enter__(self) -> Team:
        with ExitStack() as stack:
            self.postgres = Postgres()
            stack.callback(self.postgres.remove)
            self.peer = stack.enter_context(peer())
            self.modern = stack.enter_context(modern_web(self.folder / "modern", scripts=SCRIPTS, task=TASKS))
            self.harbour = stack.enter_context(protected())
            self.provider = Provider(stack.enter_context(started([sys.executable, str(SERVERS / "openid.py")])))
            self.url = self.postgres.database()
            self._configure()
            stack.callback(self._end_all)
            stack.callback(self._close_clients)
            for name in self.names:
                self.start(name)
            stack.enter_context(self._proxy())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _configure(self) -> None:
        secret = self.folder / "store-url"
        secret.write_text(self.url)
        secret.chmod(0o600)
        key = self.folder / "key"
        key.write_bytes(Fernet.generate_key())
        key.chmod(0o600)
        limits = "".join(f"{name} = {value}\n" for name, value in self.limits.items())
        assert isinstance(self.modern.target, HttpTarget)
        user = '"61700-61719"' if os.geteuid() == 0 else '""'
        inside = sorted({urlsplit(one).netloc for one in (self.harbour.resource, *self.harbour.issuers.values())})
        for name in self.names:
            data = self.folder / name
            data.mkdir(mode=0o700)
            # Two that were started one after the other share a file but for their port: here each has its own.
            (self.folder / f"{name}.toml").write_text(
                f'public_url = "https://{HOST}"\ndata_dir = "{data}"\nport = {self.ports[name]}\nchild_user = {user}\n'
                f'replica = "{name}"\nkey_file = "{key}"\nallow = {json.dumps(inside)}\n'
                f'[oidc]\nissuer = "{self.provider.name}"\nclient_id = "parley"\neverybody = true\n'
                'admins = ["boss@example.com"]\n'
                f'client_secret_env = "OIDC_SECRET"\n[store]\nurl_file = "{secret}"\n'
                f'[catalogue.scale]\nname = "Scale"\ntransport = "http"\nurl = "{self.peer}/mcp"\n'
                f'[catalogue.modern]\nname = "Modern"\ntransport = "http"\nurl = "{self.modern.target.url}"\n'
                f'[catalogue.load]\nname = "Load"\ntransport = "http"\nurl = "{self.peer}/mcp?rate=5"\n'
                f"[limits]\n{limits}"
            )

    # ---- replicas

    def command(self, *words: str, of: str) -> list[str]:
        return [sys.executable, "-m", "app", *words, "--config", str(self.folder / f"{of}.toml")]

    def start(self, name: str) -> None:
        """Start one and wait until it listens."""
        log = self.logs[name] = self.folder / f"{name}.log"
        with log.open("a") as errors:
            process = self.replicas[name] = subprocess.Popen(
                self.command("team", of=name),
                cwd=ROOT,
                env=_environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert process.stdout is not None
        for line in process.stdout:
            self.link = self.link or "".join(re.findall(rf"https://{HOST}/invite/\S+", line))
            if line.startswith("Parley for a team is at"):
                break
        if process.poll() is not None:
            process.stdout.close()
            raise AssertionError(log.read_text())
        until(lambda: self.direct(name).get("/readyz").status_code == 200, f"{name} being ready")

    def verb(self, *words: str, of: str = "r1") -> str:
        done = subprocess.run(
            self.command(*words, of=of), cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kill(self, name: str) -> None:
        """As the power does it."""
        self.replicas[name].send_signal(signal.SIGKILL)
        self._over(name)

    def end(self, name: str) -> None:
        """As a supervisor does it."""
        with suppress(ProcessLookupError):
            self.replicas[name].terminate()
        self._over(name)

    def _close_clients(self) -> None:
        for one in self._clients:
            one.close()

    def client(self, base: str, **headers: str) -> Client:
        """One that is closed at the end."""
        made = Client(base, **headers)
        self._clients.append(made)
        return made

    def _over(self, name: str) -> None:
        process = self.replicas.pop(name)
        process.wait(WAIT)
        if process.stdout is not None:
            process.stdout.close()

    def _end_all(self) -> None:
        for name in list(self.replicas):
            self.end(name)

    def said(self, name: str) -> str:
        return self.logs[name].read_text()

    # ---- people

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self.tls}"

    def direct(self, name: str) -> Client:
        """Past the proxy, as the proxy would ask."""
        if name not in self._direct:
            self._direct[name] = self.client(f"http://127.0.0.1:{self.ports[name]}", **{"x-forwarded-proto": "https"})
        return self._direct[name]

    def past(self, name: str, client: Client) -> Client:
        """The same person past the proxy, at one replica."""
        same = {"cookie": client.headers["cookie"], "origin": f"https://{HOST}", "x-forwarded-proto": "https"}
        return self.client(f"http://127.0.0.1:{self.ports[name]}", **same)

    def invite(self, person: str, role: str = "user") -> str:
        printed = self.verb("invite", person, "--role", role, of=self.names[0])
        return re.findall(r"/invite/(\S+)", printed)[0]

    def enter(self, person: str, role: str = "user") -> Client:
        """Somebody who came in by an invitation."""
        client = self.client(self.address, origin=f"https://{HOST}")
        answer = client.post(f"/invite/{self.invite(person, role)}")
        assert answer.status_code == 303, answer.text
        client.headers["cookie"] = answer.headers["set-cookie"].partition(";")[0]
        client.cookies.clear()
        return client

    def session(self, client: Client, on: str | None = None, entry: str = "scale") -> str:
        """A new session that is connected; `on` the replica of this name, past the proxy."""
        here = client if on is None else self.past(on, client)
        made = here.post(f"/catalogue/{entry}/connect", json={})
        assert made.status_code == 201, made.text
        sid = str(made.json()["id"])
        until(lambda: client.get(f"/s/{sid}").json()["connection"]["state"] == "ready", "the connection")
        return sid

    def ask(self, client: Client, sid: str, tool: str = "ask", **arguments: str) -> str:
        """Let the server ask something; the id of the ask."""
        before = set(self.asks(client, sid))
        done = client.post(
            f"/s/{sid}/calls", json={"method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        )
        assert done.status_code < 300, done.text
        return until(lambda: next(iter(set(self.asks(client, sid)) - before), None), "the ask")

    def asks(self, client: Client, sid: str) -> list[str]:
        return [one["id"] for one in client.get(f"/s/{sid}/inbox").json()["open"]]

    def answer(self, client: Client, sid: str, aid: str, word: str = "x") -> httpx2.Response:
        return client.post(f"/s/{sid}/asks/{aid}/answer", json={"action": "accept", "content": {"word": word}})

    def kept(self, sid: str) -> str:
        """All that the store has of a session, as text; empty before it has something that is under way."""
        with psycopg.connect(self.url) as connection:
            row = connection.execute("SELECT row_to_json(sessions) FROM sessions WHERE id = %s", (sid,)).fetchone()
        return str(row[0]) if row is not None and row[0]["unfinished"] else ""

    def state(self) -> dict[str, list[Any]]:
        """Every question that the server asked, with each answer that it got."""
        found: dict[str, list[Any]] = httpx2.get(f"{self.peer}/state").json()["asked"]
        return found

    # ---- proxies

    @contextmanager
    def _proxy(self) -> Iterator[None]:
        files = _certificate(self.folder / "tls")
        home = self.folder / "proxy"
        home.mkdir()
        made = {"nginx": self._nginx, "haproxy": self._haproxy}[self.proxy_name](home, files)
        with (home / "log").open("ab") as log:
            process = subprocess.Popen(made, stdout=log, stderr=log)
        self.proxy = process
        try:
            looking = self.client(self.address)
            until(lambda: looking.get("/healthz").status_code == 200, "the proxy")
            yield
        finally:
            process.terminate()
            process.wait(WAIT)

    def _nginx(self, home: Path, files: tuple[Path, Path]) -> list[str]:
        text = (DEPLOY / "nginx-replicas.conf").read_text(encoding="utf-8")
        for old, new in {
            "    listen [::]:80;\n": "",
            "    listen [::]:443 ssl http2;\n": "",
            "listen 80;": f"listen 127.0.0.1:{free()};",
            "listen 443 ssl http2;": f"listen 127.0.0.1:{self.tls} ssl http2;",
            "/etc/ssl/certs/parley.example.pem": str(files[0]),
            "/etc/ssl/private/parley.example.key": str(files[1]),
            "127.0.0.1:6281": f"127.0.0.1:{self.ports['r1']}",
            "127.0.0.1:6282": f"127.0.0.1:{self.ports['r2']}",
        }.items():
            assert old in text, old
            text = text.replace(old, new)
        places = "".join(
            f"{one}_temp_path {home}/{one};" for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;" if os.geteuid() == 0 else ""
        head = f"daemon off; {user} pid {home}/pid; error_log {home}/error.log; worker_processes 1;"
        config = home / "nginx.conf"
        config.write_text(
            f"{head} worker_rlimit_nofile 8192; events {{ worker_connections 4000; }} "
            f"http {{ access_log off; {places}\n{text}\n}}"
        )
        return [program("nginx"), "-c", str(config)]

    def _haproxy(self, home: Path, files: tuple[Path, Path]) -> list[str]:
        both = home / "both.pem"
        both.write_text(files[0].read_text() + files[1].read_text())
        text = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
        for old, new in {
            "bind :443 ssl crt /etc/haproxy/parley.example.pem": f"bind 127.0.0.1:{self.tls} ssl crt {both}",
            "127.0.0.1:6281": f"127.0.0.1:{self.ports['r1']}",
            "127.0.0.1:6282": f"127.0.0.1:{self.ports['r2']}",
        }.items():
            assert old in text, old
            text = text.replace(old, new)
        config = home / "haproxy.cfg"
        config.write_text(text)
        return [program("haproxy"), "-db", "-f", str(config)]


def _environment() -> dict[str, str]:
    ours = {key: value for key, value in os.environ.items() if not key.startswith("PARLEY_")}
    return {**ours, "OIDC_SECRET": SECRET}


def _certificate(folder: Path) -> tuple[Path, Path]:
    folder.mkdir()
    pair = folder / "cert.pem", folder / "key.pem"
    openssl = program("openssl")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", pair[1], "-out", pair[0], "-days", "2",
         "-subj", f"/CN={HOST}"],
        check=True, capture_output=True, timeout=WAIT,
    )  # fmt: skip
    return pair


@contextmanager
def peer() -> Iterator[str]:
    """The MCP server of these tests; where it is."""
    command = [sys.executable, str(SERVERS / "scale_peer.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def stream(client: Client, sid: str, seconds: float = WAIT) -> list[str]:
    """What a stream says until it ends: its lines."""
    with client.stream("GET", f"/s/{sid}/events", headers={"accept": "text/event-stream"}, timeout=seconds) as answer:
        return [line for line in answer.iter_lines() if line]
