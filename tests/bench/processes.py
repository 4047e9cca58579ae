"""The processes that are measured, and the script that drives a Parley over its JSON interface."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from tests.browser.parley import ROOT, TOKEN, Parley, running

SERVERS = Path(__file__).with_name("servers")
PACE_TARGET = {"transport": "stdio", "command": sys.executable, "args": ["-I", "-S", str(SERVERS / "pace.py")]}
WAIT = 30
"""Seconds after which something here has failed: a guard, far above every figure."""


def demo_over_http() -> AbstractContextManager[str]:
    """The demo server as a process of its own; its address."""
    return _serving("-m", "app.demo.server", "--http", "--port", "0")


def bare_over_http() -> AbstractContextManager[str]:
    """A server that offers nothing; its address."""
    return _serving("-I", "-S", str(SERVERS / "bare.py"))


@contextmanager
def _serving(*arguments: str) -> Iterator[str]:
    """A Python program that prints its address first, ended with the block."""
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def busy(pid: int) -> float:
    """Seconds that a process has used so far, which a busy machine hardly changes."""
    used = psutil.Process(pid).cpu_times()
    return used.user + used.system


def resident(pid: int) -> int:
    """Bytes of a process in memory, shared ones included."""
    return psutil.Process(pid).memory_info().rss


def proportional(pid: int) -> int | None:
    """The same with shared pages divided among those who share them; None where the system does not say."""
    return getattr(psutil.Process(pid).memory_full_info(), "pss", None)


@contextmanager
def saving(*arguments: str) -> Iterator[Parley]:
    """A Parley that has saved something: what it imports for that does not fall into what is measured."""
    with running(*arguments) as parley:
        saved = parley.script("POST", "/targets", target={"transport": "demo"}, name="Bench")
        parley.script("POST", f"/targets/{saved['id']}/delete")
        yield parley


class Failed(Exception):
    """Parley did not do what the benchmark needs; nothing was measured."""


class Script:
    """One keep-alive connection to a Parley, with the bearer token."""

    def __init__(self, origin: str, token: str = TOKEN, proxied_as: str = "") -> None:
        self._host = urlsplit(origin)
        through = f"{proxied_as}\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 203.0.113.7"
        self._who = f"Host: {through if proxied_as else self._host.netloc}\r\nAuthorization: Bearer {token}\r\n"
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def __aenter__(self) -> "Script":
        await self._connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def _connect(self) -> None:
        assert self._host.hostname is not None
        self._reader, self._writer = await asyncio.open_connection(self._host.hostname, self._host.port, limit=1 << 24)

    async def send(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> bytes:
        """One request; the body of its answer. Failed unless that is a success."""
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\n{self._who}"
            f"Accept: {accept}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        if self._reader.at_eof():  # Parley closes a connection that nobody has used for a while
            self._writer.close()
            await self._connect()
        self._writer.write(head.encode() + content)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(answer.split("content-length: ")[1].split("\r\n")[0])
        found = await self._reader.readexactly(length)
        if not 200 <= int(answer[9:12]) < 300:
            raise Failed(f"{method} {path}: {answer[9:12]} {found[:300]!r}")
        return found

    async def get(self, path: str) -> Any:
        return json.loads(await self.send("GET", path))

    async def post(self, path: str, body: Any = None) -> Any:
        return json.loads(await self.send("POST", path, body))

    async def session(self, target: Mapping[str, Any]) -> str:
        """Open a session, connect it in the era of the raw client, wait until its tools are listed; its path."""
        path: str = (await self.post("/s", {"target": target, "options": {"era": "legacy"}}))["url"]
        opened = await self.get(f"{path}?wait={WAIT}")
        if opened["connection"]["state"] != "ready":
            raise Failed(f"the session did not connect: {opened['connection']['error']}")
        await self.post(f"{path}/tools/refresh", {})
        return path

    async def call(self, session: str, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool and wait for its end: two requests, as every script does it."""
        body = {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
        cid = (await self.post(f"{session}/calls", body))["id"]
        done = await self.get(f"{session}/calls/{cid}?wait={WAIT}")
        if done["state"] != "done":
            raise Failed(f"the call of {name} ended {done['state']}: {done['error']}")
        return done["result"]
