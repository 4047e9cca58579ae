"""How long until Parley is there, what it weighs while nobody needs it, and what the first page costs."""

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import CDPSession, Page, sync_playwright

from tests.bench.processes import PACE_TARGET, WAIT, busy, proportional, resident
from tests.bench.table import Part, Say, kib, mb, ms, p50
from tests.browser.parley import ROOT, TOKEN, Parley, launch, running

STARTS = 7
MOST_SECONDS = 0.5
MOST_MEMORY = 100e6
MOST_PAGE = 100_000


def measure(say: Say) -> Part:
    part = Part("start and first page")
    _starts(part, say)
    with running() as parley, sync_playwright() as playwright:
        say("memory when idle")
        _until_ready(urlsplit(parley.origin).port or 0)
        time.sleep(1)
        _idle(part, parley.process.pid)
        _saved(part, parley)
        say("the first page")
        browser = launch(playwright)
        page = browser.new_context().new_page()
        parley.login(page)
        _home(part, page, parley)
        browser.close()
    return part


# ---- start


def _starts(part: Part, say: Say) -> None:
    moments: dict[str, list[float]] = {}
    for number in range(STARTS + 1):
        say(f"start {number} of {STARTS}" if number else "start, to warm the disk cache")
        found = _start()
        if number:
            for name, seconds in found.items():
                moments.setdefault(name, []).append(seconds)
    for name, values in moments.items():
        if name == "answers /healthz":
            ok = p50(values) < MOST_SECONDS
            part.judge(f"start until it {name}", ms(p50(values)), f"< {MOST_SECONDS} s", ok, p95=ms(max(values)))
        else:
            part.add(f"start until it {name}", ms(p50(values)), p95=ms(max(values)))
    part.notes.append(f"median of {STARTS} starts, in the column p95 the slowest; compiled files and disk cache warm")


def _start() -> dict[str, float]:
    """One start: the moments at which a person or a script would notice something."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    data = tempfile.mkdtemp(prefix="parley-bench-")
    command = [sys.executable, "-m", "app", "--no-open", "--port", str(port), "--data-dir", data]
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PARLEY_TOKEN": TOKEN}, stdout=subprocess.DEVNULL
    ) as process:
        try:
            moments = {}
            _poll(lambda: _takes(port))
            moments["takes connections"] = time.perf_counter() - began
            _get(port, "/healthz")
            moments["answers /healthz"] = time.perf_counter() - began
            moments["answers /healthz, CPU"] = busy(process.pid)
            _get(port, "/")
            moments["has shown its home page"] = time.perf_counter() - began
            _until_ready(port)
            moments["is ready to connect"] = time.perf_counter() - began
            moments["is ready to connect, CPU"] = busy(process.pid)
        finally:
            process.terminate()
    return moments


def _poll(done: Callable[[], Any]) -> None:
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        try:
            if done():
                return
        except ConnectionError:
            pass
        time.sleep(0.001)
    raise TimeoutError("Parley did not start")


def _takes(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT):
        return True


def _get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}", "Accept": "text/html"})
        return connection.getresponse().read()
    finally:
        connection.close()


def _until_ready(port: int) -> None:
    _poll(lambda: b"true" in _get(port, "/healthz"))


# ---- memory


def _idle(part: Part, pid: int) -> None:
    found = resident(pid)
    part.judge("memory when idle, RSS", mb(found), f"< {MOST_MEMORY / 1e6:.0f} MB", found < MOST_MEMORY)
    shared = proportional(pid)
    if shared is not None:
        part.add("memory when idle, PSS", mb(shared))


def _saved(part: Part, parley: Parley) -> None:
    """What writes targets down is imported at the first save, which is also what follows the first connection."""
    parley.script("POST", "/targets", target={"transport": "demo"}, name="Bench")
    part.add("memory when idle, once something was saved, RSS", mb(resident(parley.process.pid)))


# ---- the first page


class Traffic:
    """What a tab transfers, counted by the browser itself."""

    def __init__(self, page: Page, origin: str) -> None:
        self._origin = origin
        self.bytes = self.requests = self.elsewhere = 0
        self._cdp: CDPSession = page.context.new_cdp_session(page)
        self._cdp.on("Network.requestWillBeSent", self._sent)
        self._cdp.on("Network.loadingFinished", self._finished)
        self._cdp.send("Network.enable")
        self._cdp.send("Network.clearBrowserCache")

    def _sent(self, event: dict[str, Any]) -> None:
        url = event["request"]["url"]
        if url.startswith(("data:", "blob:")):
            return
        self.requests += 1
        self.elsewhere += not url.startswith(self._origin + "/")

    def _finished(self, event: dict[str, Any]) -> None:
        self.bytes += int(event["encodedDataLength"])

    def stop(self) -> None:
        self._cdp.detach()


def _home(part: Part, page: Page, parley: Parley) -> None:
    home = _loaded(page, f"{parley.origin}/", parley.server)
    part.judge("home page, transferred", kib(home.bytes), f"< {MOST_PAGE // 1000} kB", home.bytes < MOST_PAGE)
    part.add("home page, requests", str(home.requests))
    body = {"target": PACE_TARGET}
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}
    opened = page.request.post(f"{parley.server}/s", data=body, headers=headers).json()
    session = _loaded(page, parley.origin + opened["url"], parley.server)
    part.add("page of a session, transferred", kib(session.bytes))
    part.add("page of a session, requests", str(session.requests))
    elsewhere = home.elsewhere + session.elsewhere
    part.judge("requests to other hosts", str(elsewhere), "0", elsewhere == 0)
    part.notes.append("transferred = headers and bodies as the browser counts them, nothing cached, signed in")


def _loaded(page: Page, url: str, origin: str) -> Traffic:
    traffic = Traffic(page, origin)
    page.goto(url, wait_until="load")
    page.wait_for_timeout(500)  # icons and the first messages of the stream come after the load
    traffic.stop()
    return traffic
