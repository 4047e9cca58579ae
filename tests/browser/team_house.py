"""A team in a process of its own, behind nginx with the file of `.deploy`, for the browser test and the pictures."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Playwright

from tests import chromium
from tests.drive import ROOT, SERVERS
from tests.drive_http import free_port
from tests.isolation.walls import PYTHON

WAIT = 60.0
SERVER = SERVERS / "release_runner.py"
ORIGIN = "https://parley.example"


def tools() -> tuple[str, str] | None:
    """nginx and openssl, when both are here."""
    nginx, openssl = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"), shutil.which("openssl")
    return None if nginx is None or openssl is None or not PYTHON else (nginx, openssl)


@contextmanager
def proxy(tmp_path: Path, nginx: str, openssl: str) -> Iterator[tuple[int, int]]:
    """The ports of Parley and of nginx before it, which listens with the deployed settings on ports of its own."""
    inner, plain, tls = free_port(), free_port(), free_port()
    pair = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *pair, "-days", "2", "-subj", "/CN=parley.example"],
        check=True,
        capture_output=True,
        timeout=WAIT,
    )
    text = (ROOT / ".deploy" / "nginx.conf").read_text(encoding="utf-8")
    for old, new in {
        "    listen [::]:80;\n": "",
        "    listen [::]:443 ssl http2;\n": "",
        "listen 80;": f"listen 127.0.0.1:{plain};",
        "listen 443 ssl http2;": f"listen 127.0.0.1:{tls} ssl http2;",
        "/etc/ssl/certs/parley.example.pem": str(tmp_path / "cert.pem"),
        "/etc/ssl/private/parley.example.key": str(tmp_path / "key.pem"),
        "127.0.0.1:6281": f"127.0.0.1:{inner}",
    }.items():
        assert old in text, old
        text = text.replace(old, new)
    temporary = "".join(
        f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    head = f"daemon off; {user} pid {tmp_path}/pid; error_log {tmp_path}/error.log; events {{}}"
    config = tmp_path / "nginx.conf"
    config.write_text(f"{head} http {{ access_log off; {temporary}\n{text}\n}}", encoding="utf-8")
    process = subprocess.Popen([nginx, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield inner, tls
    finally:
        process.terminate()
        process.wait(WAIT)


@contextmanager
def team(tmp_path: Path, port: int, more: str = "") -> Iterator[str]:
    """A team in a process of its own; the invitation of its admin."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    user = '"61700-61709"' if os.geteuid() == 0 else '""'
    (tmp_path / "team.toml").write_text(
        f'public_url = "https://parley.example"\ndata_dir = "{data}"\nport = {port}\nchild_user = {user}\n{more}',
        encoding="utf-8",
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    command = [sys.executable, "-m", "app", "team", "--config", str(tmp_path / "team.toml")]
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        link = ""
        for line in process.stdout:
            link = link or "".join(re.findall(r"https://parley\.example/invite/\S+", line))
            if line.startswith("Parley for a team is at"):
                break
        else:
            raise AssertionError("the team did not start; what it said is above")
        yield link
    finally:
        process.terminate()
        process.wait(WAIT)
        if process.stdout is not None:
            process.stdout.close()


def browser(playwright: Playwright, tls: int) -> Browser:
    """A Chromium for which the name of the team leads to its proxy on this machine."""
    rules = f"--host-resolver-rules=MAP parley.example 127.0.0.1:{tls}"
    return playwright.chromium.launch(
        executable_path=str(chromium.find()), args=[rules, "--no-sandbox", "--ignore-certificate-errors"]
    )
