"""Parley before an audience as real processes: a public demo, a room, and nginx with the file to copy before them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.drive import ROOT

WAIT = 60.0
DEPLOYED = ROOT / ".deploy" / "nginx-demo.conf"


@contextmanager
def public_demo(*arguments: str, port: int = 0, data: Path | None = None) -> Iterator[tuple[int, int]]:
    """`parley demo --public` in a process of its own: its port, and its process id."""
    with tempfile.TemporaryDirectory(prefix="parley-public-") as folder:
        env = {**os.environ, "PYTHONUNBUFFERED": "1", "PARLEY_DATA_DIR": str(data or folder), "PARLEY_TOKEN": "x" * 20}
        command = [sys.executable, "-m", "app", "demo", "--public", "--port", str(port), *arguments]
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert "for anybody" in said, said
            yield port or int(said.partition("/ ")[0].rpartition(":")[2]), process.pid
        finally:
            process.terminate()
            process.wait(WAIT)
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def nginx(folder: Path, programs: tuple[str, str], room: int, public: int, plain: int, tls: int) -> Iterator[None]:
    """nginx with the file to copy, on ports of its own, before these two."""
    name, openssl = programs
    pair = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *pair, "-days", "2", "-subj", "/CN=audience"],
        check=True,
        capture_output=True,
        timeout=WAIT,
    )
    text = DEPLOYED.read_text(encoding="utf-8")
    for old, new in {
        "    listen [::]:80;\n": "",
        "    listen [::]:443 ssl http2;\n": "",
        "listen 80;": f"listen 127.0.0.1:{plain};",
        "listen 443 ssl http2;": f"listen 127.0.0.1:{tls} ssl http2;",
        "/etc/ssl/certs/room.example.pem": str(folder / "cert.pem"),
        "/etc/ssl/certs/try.example.pem": str(folder / "cert.pem"),
        "/etc/ssl/private/room.example.key": str(folder / "key.pem"),
        "/etc/ssl/private/try.example.key": str(folder / "key.pem"),
        "127.0.0.1:6282": f"127.0.0.1:{room}",
        "127.0.0.1:6280": f"127.0.0.1:{public}",
    }.items():
        assert old in text, old
        text = text.replace(old, new)
    places = "".join(f"{one}_temp_path {folder}/{one};" for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.geteuid() == 0 else ""
    head = f"daemon off; {user} pid {folder}/pid; error_log {folder}/error.log; worker_processes 1; events {{}}"
    config = folder / "nginx.conf"
    config.write_text(f"{head} http {{ access_log off; {places}\n{text}\n}}", encoding="utf-8")
    process = subprocess.Popen([name, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + WAIT
        while True:
            try:
                httpx2.get(f"http://127.0.0.1:{plain}/")
                break
            except httpx2.TransportError:
                assert process.poll() is None and time.monotonic() < deadline, (folder / "error.log").read_text()
        yield
    finally:
        process.terminate()
        process.wait(WAIT)


class Caller(httpx2.Client):
    """A browser from one address of this machine, which calls something by its outside name."""

    def __init__(self, base: str, name: str, source: str = "127.0.0.1", **headers: str) -> None:
        page = {"host": name, "origin": f"https://{name}", "sec-fetch-site": "same-origin", "accept": "text/html"}
        transport = httpx2.HTTPTransport(verify=False, local_address=source)
        super().__init__(base_url=base, transport=transport, timeout=WAIT, headers={**page, **headers})

    def send(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        """As a browser would that keeps no cookie, until it is told to."""
        answer = super().send(request, **more)
        self.cookies.clear()
        return answer

    def keep(self, answer: httpx2.Response) -> str:
        """Keep the cookie of an answer, as a browser does; what was said about it."""
        said: str = answer.headers["set-cookie"]
        self.headers["cookie"] = said.partition(";")[0]
        return said
