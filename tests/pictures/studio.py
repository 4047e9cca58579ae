"""Where the pictures are taken: a frozen Parley, a server that sits still, a browser, and the clock of all three."""

import fcntl
import json
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import BrowserContext, Page, sync_playwright

from tests.browser.parley import Parley, launch, running
from tests.drive import SERVERS

PLACE = Path(tempfile.gettempdir()) / "parley-pictures"
"""Where everything is that has a path; pages show such paths, so it is the same folder each time."""
PORT, SERVER_PORT = 62800, 62801
"""Beyond the ports that a system gives out by itself."""
NOON = datetime(2026, 1, 15, 12, 0, tzinfo=UTC).timestamp()
SIZES = {"1440": (1440, 1400), "390": (390, 844)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SETTLED = 0.6
"""Longer than a page waits with what it does by itself, and than the server waits with an answer."""
UNFREEZABLE = {r"\bpid \d+": "pid 4711"}
"""What stands in a page and cannot be frozen: the id that the system gives to a process. Written over before each
picture, by a regular expression of JavaScript."""
_WRITE_OVER = """(rules) => {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        let text = node.data;
        for (const [pattern, words] of Object.entries(rules)) text = text.replace(new RegExp(pattern, 'g'), words);
        if (text !== node.data) node.data = text;
    }
}"""
_LOADED = """() => document.readyState === 'complete' && document.fonts.status === 'loaded'
    && [...document.images].every((image) => image.complete || image.loading === 'lazy')
    && document.querySelector('#pill')?.dataset.state !== 'wait'"""
_STILL = """(milliseconds) => new Promise((done, give_up) => {
    let timer;
    const end = () => { watch.disconnect(); clearTimeout(last); done(); };
    const again = () => { clearTimeout(timer); timer = setTimeout(end, milliseconds); };
    const moved = (one) => one.type === 'childList' || one.oldValue !== (one.type === 'attributes'
        ? one.target.getAttribute(one.attributeName) : one.target.data);
    const watch = new MutationObserver((records) => { if (records.some(moved)) again(); });
    const last = setTimeout(() => { watch.disconnect(); give_up(new Error('the page does not hold still')); }, 20000);
    const all = { subtree: true, childList: true, attributes: true, characterData: true };
    watch.observe(document, { ...all, attributeOldValue: true, characterDataOldValue: true });
    again();
})"""


class Clock:
    """The time of everybody, as eight bytes in a file."""

    def __init__(self, path: Path) -> None:
        self.path, self.now = path, NOON
        self.path.write_bytes(struct.pack("<d", self.now))

    def move(self, seconds: float) -> None:
        """Go on. Eight bytes are written at once, so nobody reads half of them."""
        self.now += seconds
        with self.path.open("r+b") as file:
            file.write(struct.pack("<d", self.now))


class Studio:
    """Takes the pictures."""

    def __init__(self, folder: Path, parley: Parley, context: BrowserContext, clock: Clock, only: str) -> None:
        self.folder, self.parley, self.context, self.clock, self.only = folder, parley, context, clock, only
        self.page = context.new_page()
        self.taken: set[str] = set()
        context.clock.set_fixed_time(self.clock.now)

    # --- what happens between the pictures

    def later(self, seconds: float = 1.25) -> None:
        """It is later now: for Parley, for the server and for the browser."""
        self.clock.move(seconds)
        self.context.clock.set_fixed_time(self.clock.now)

    def open(self, target: dict[str, Any], **options: Any) -> "Desk":
        """A session that is ready."""
        patient = {"request_timeout_ms": 3_600_000, **options}  # a picture takes as long as it takes
        opened = self.parley.script("POST", "/s", target=target, options=patient)
        desk = Desk(self, f"/s/{opened['id']}")
        told = desk.get("?wait=50")
        assert told["connection"]["state"] == "ready", told["connection"]
        desk.quiet()
        return desk

    # --- the pictures

    def shot(
        self,
        name: str,
        address: str,
        act: Callable[[Page], None] | None = None,
        *,
        page: Page | None = None,
    ) -> None:
        """The page at this address, after `act` has done something with it: in both widths, light and dark."""
        assert name not in self.taken, f"there are two pictures {name}"
        self.taken.add(name)
        if self.only not in name:
            return
        page = self.page if page is None else page
        for width, (across, down) in SIZES.items():
            page.set_viewport_size({"width": across, "height": down})
            page.emulate_media(color_scheme="light", reduced_motion="reduce")
            page.mouse.move(0, 0)
            page.goto(address if address.startswith("http") else self.parley.origin + address)
            page.wait_for_function(_LOADED)
            if act is not None:
                act(page)
            page.evaluate(_STILL, SETTLED * 1000)
            page.evaluate(_WRITE_OVER, UNFREEZABLE)
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                path = self.folder / f"{name}-{width}-{scheme}.png"
                page.screenshot(path=path, full_page=width == "390", animations="disabled", caret="hide")


class Desk:
    """One session, as a script sees it."""

    def __init__(self, studio: Studio, base: str) -> None:
        self.studio, self.base = studio, base

    def get(self, path: str) -> Any:
        return self.studio.parley.script("GET", self.base + path)

    def post(self, path: str, **body: Any) -> Any:
        """Do something, and wait until the log has come to rest; then it is a little later."""
        try:
            answer = self.studio.parley.script("POST", self.base + path, **body)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"POST {path}: {error.read().decode()}") from None
        self.quiet()
        self.studio.later()
        return answer

    def tool(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> str:
        """Call a tool; the path of the call."""
        params = {"name": name, "arguments": arguments or {}}
        return "/calls/" + str(self.post("/calls", method="tools/call", params=params, **more)["id"])

    def asks(self) -> dict[str, list[str]]:
        """The paths of the open asks, by kind, the oldest first."""
        found: dict[str, list[str]] = {}
        for ask in sorted(self.get("/inbox")["open"], key=lambda each: each["message_seq"]):
            found.setdefault(ask["kind"], []).append(f"/asks/{ask['id']}")
        return found

    def quiet(self) -> None:
        """Return once nothing more has crossed the wire for a while."""
        before, since = -1, time.monotonic()
        while time.monotonic() - since < SETTLED:
            last = self.get("/log?after=0")["next"]
            if last != before:
                before, since = last, time.monotonic()
            time.sleep(0.05)

    def shot(self, name: str, path: str, act: Callable[[Page], None] | None = None) -> None:
        self.studio.shot(name, self.base + path, act)


@contextmanager
def open_studio(folder: Path, checkout: Path, only: str) -> Iterator[Studio]:
    """Everything that pictures need; put away with the block. There is one place, so a second one waits."""
    with (PLACE.with_suffix(".lock")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(PLACE, ignore_errors=True)
        PLACE.mkdir()
        clock = Clock(PLACE / "clock")
        program = PLACE / "harbour"
        command = [sys.executable, str(SERVERS / "harbour.py"), str(clock.path)]
        program.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n", encoding="utf-8")
        program.chmod(0o755)
        frozen = [str(Path(__file__).with_name("frozen.py")), str(clock.path), "app"]
        arguments = ["--port", str(PORT), "--data-dir", str(PLACE / "data")]
        remote = subprocess.Popen(
            [*command, "--http", str(SERVER_PORT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert remote.stdin is not None and remote.stdout is not None
        try:
            assert remote.stdout.readline() == "ready\n", "the server over HTTP did not start"
            with running(*arguments, program=frozen, checkout=checkout) as parley, sync_playwright() as playwright:
                browser = launch(playwright)
                context = browser.new_context(timezone_id="UTC", locale="en-GB")
                context.set_default_timeout(20_000)
                yield Studio(folder, parley, context, clock, only)
                browser.close()
        finally:
            remote.stdin.close()
            remote.wait(10)
            remote.stdout.close()
            shutil.rmtree(PLACE, ignore_errors=True)


STDIO = {"transport": "stdio", "command": str(PLACE / "harbour"), "args": ["--pier", "2"], "cwd": str(PLACE)}
HTTP = {"transport": "http", "url": f"http://127.0.0.1:{SERVER_PORT}/mcp", "headers": {"x-visit": "1"}}


def first_seq(desk: Desk) -> int:
    """The oldest message."""
    return int(desk.get("/log?after=0")["messages"][0]["seq"])


def last_seq(desk: Desk, method: str) -> int:
    """The newest message of a method."""
    found = [each["seq"] for each in desk.get("/log?after=0")["messages"] if each["method"] == method]
    assert found, f"no {method} in {json.dumps(desk.base)}"
    return int(found[-1])
