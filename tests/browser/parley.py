"""One real Parley process for the browser tests, the screenshots and whoever else needs a page to look at."""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Playwright

from tests import chromium

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-for-the-browser-tests"
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--process-per-site",
]


class Parley:
    """A running Parley: its address, and each launch code that it prints."""

    def __init__(self, process: "subprocess.Popen[str]", *, enter: bool = True) -> None:
        self.process = process
        self.output: list[str] = []
        self._used: set[str] = set()
        self._printed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.server = re.match(r"http://[^/]+", self.login_url())[0]  # type: ignore[index]
        """Its address, for scripts."""
        self.origin = self._entered() if enter else self.server
        """Where browsers live, below a path of their own: what stands before the path of every page. Learned by a
        launch code, which is used up by that."""

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._printed:
                self.output.append(line)
                self._printed.notify_all()

    def _entered(self) -> str:
        """Where a launch code leads."""
        address = urlsplit(self.code())
        connection = http.client.HTTPConnection(address.netloc, timeout=60)
        try:
            connection.request("GET", f"{address.path}?{address.query.partition('&')[0]}")
            answer = connection.getresponse()
            assert answer.status == 303, answer.read()
            return self.server + (answer.getheader("location") or "").rstrip("/")
        finally:
            connection.close()

    def login_url(self, seconds: float = 60) -> str:
        """The newest address with a code that was not used yet."""

        def found() -> str | None:
            lines = [re.search(r"http://\S+/login\?code=\S+", line) for line in self.output]
            return next((match[0] for match in reversed(lines) if match and match[0] not in self._used), None)

        with self._printed:
            self._printed.wait_for(lambda: found() is not None or self.process.poll() is not None, seconds)
            address = found()
        assert address is not None, "Parley printed no address:\n" + "".join(self.output)
        return address

    def login(self, page: Page) -> None:
        """Come in by the launch code, like a person."""
        page.goto(self.code())

    def code(self) -> str:
        """An address that lets somebody in once."""
        address = self.login_url()
        self._used.add(address)
        return address

    def script(self, verb: str, path: str, **body: Any) -> Any:
        """One request of a script, with the bearer token; the parsed answer."""
        data = json.dumps(body).encode() if verb == "POST" else None
        headers = {"authorization": f"Bearer {TOKEN}", "accept": "application/json", "content-type": "application/json"}
        request = urllib.request.Request(self.server + path, data=data, method=verb, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def close_sessions(self) -> None:
        """Back to how it was started."""
        known = self.script("GET", "/")
        for session in known["sessions"]:
            self.script("POST", f"{session['url']}/close")
        for target in known["targets"]:
            self.script("POST", f"/targets/{target['id']}/delete")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(50)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
        self._reader.join(5)
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def running(*arguments: str, program: Sequence[str] = ("-m", "app"), checkout: Path = ROOT) -> Iterator[Parley]:
    """A Parley on a free port, ended with the block. What it saves goes with it, unless --data-dir says where."""
    data = tempfile.TemporaryDirectory(prefix="parley-data-")
    process = subprocess.Popen(
        [sys.executable, *program, "--no-open", "--port", "0", *arguments],
        cwd=checkout,
        env={**os.environ, "PARLEY_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1", "PARLEY_DATA_DIR": data.name},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    parley = None
    try:
        parley = Parley(process)
        yield parley
    finally:
        if parley is not None:
            parley.stop()
        else:
            process.kill()
            process.wait(5)
        data.cleanup()


def launch(playwright: Playwright) -> Browser:
    """The Chromium of this machine, without a window."""
    return playwright.chromium.launch(executable_path=str(chromium.find()), args=_FLAGS, timeout=120_000)
