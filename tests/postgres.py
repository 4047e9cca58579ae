"""A PostgreSQL of Debian's packages, as a plain process of a user who is not root, on a socket of its own.

It is started by the first test that wants it, once for each worker, and ends with it; each test has a place of its own
in it.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

HANG = 60.0
_numbers = itertools.count(1)
_WANTED = "THIS MACHINE LACKS PostgreSQL: install it (on Debian: apt install postgresql); make test-team does as root"


def programs() -> Path | None:
    """Where initdb and postgres are; None where they are not."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda one: int(one.parts[-3]))
    if found:
        return found[-1].parent
    here = shutil.which("postgres")
    return None if here is None else Path(here).parent


def _user() -> str | None:
    """Whom it runs as: it refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    return None


class Postgres:
    """One server. It can be stopped and started again, and let hang."""

    def __init__(self) -> None:
        bin_ = programs()
        assert bin_ is not None
        self._bin, self._user = bin_, _user()
        # Sockets have short names: this must not lie deep.
        self.home = Path(tempfile.mkdtemp(prefix="parley-pg-", dir="/tmp"))
        self.data = self.home / "data"
        if self._user is not None:
            shutil.chown(self.home, self._user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(self.data), "-U", "parley", "-A", "trust", "-E", "UTF8", "--no-sync",
                  "--locale=C")  # fmt: skip
        more = {
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "16MB",
            "listen_addresses": "'127.0.0.1'",
            "port": self.port,
            "unix_socket_directories": f"'{self.home}'",
            "max_connections": 200,
            "wal_level": "minimal",
            "max_wal_senders": 0,
            "autovacuum": "off",
        }
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{key} = {value}\n" for key, value in more.items())
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._bin / program, *arguments], user=self._user, capture_output=True, text=True, cwd="/", check=False
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Have it answer."""
        said = self._said()
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.data],
                user=self._user, cwd="/", stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + HANG
        while self._said() == said:
            assert time.monotonic() < deadline and self._process.poll() is None, (self.home / "log").read_text()
            time.sleep(0.02)

    def _said(self) -> int:
        """How often it said that it is there."""
        log = self.home / "log"
        return log.read_text(errors="replace").count("ready to accept connections") if log.exists() else 0

    def address(self, name: str) -> str:
        """The address of a database."""
        return f"postgresql://parley@127.0.0.1:{self.port}/{name}"

    def database(self) -> str:
        """The address of a new place with nothing in it: a schema, which is there at once."""
        import psycopg

        name = f"test{next(_numbers)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.address('postgres')}?options=-csearch_path%3D{name}"

    def stop(self) -> None:
        """Gone, at once: everybody's connection breaks."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(HANG)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)


def needed() -> None:
    """Skip, loudly, where there is none."""
    if programs() is None:
        pytest.skip(_WANTED)
