"""The way in, in a real Chromium: what other ports of the host are sent, and how the browser is opened."""

import http.server
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from app import opening
from tests.browser.conftest import Watch
from tests.browser.parley import ROOT, Parley
from tests.drive import HANG

# ------------------------------------------------------------------------------------ another web server of the machine


class Other:
    """A web server on another port of the host that notes what it is sent."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.come = threading.Condition()
        other = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with other.come:
                    named = {name.lower(): value for name, value in self.headers.items()}
                    other.seen.append((f"{self.command} {self.path}", named))
                    other.come.notify_all()
                self.rfile.read(int(self.headers.get("content-length") or 0))
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("access-control-allow-origin", "*")
                self.end_headers()
                self.wfile.write(b"<!doctype html><title>another</title><body>another server")

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def wait_for(self, start: str) -> dict[str, str]:
        """The headers of the first request that begins like this."""
        with self.come:
            found = self.come.wait_for(lambda: next((h for line, h in self.seen if line.startswith(start)), None), HANG)
        assert found is not None, (start, [line for line, _ in self.seen])
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def other() -> Iterator[Other]:
    server = Other()
    yield server
    server.close()


@pytest.mark.requirement("H01")
def test_h01_no_other_port_of_the_host_is_sent_the_cookie(
    chromium_browser: Browser, parley: Parley, other: Other, demo_url: str
):
    """Signed in, the browser visits a server on another port in every way there is. It may see that somebody came,
    and nothing of ours: no cookie, no address."""
    context = chromium_browser.new_context()
    page = context.new_page()
    parley.login(page)
    page.get_by_role("heading", level=1).wait_for()
    session = parley.script("POST", "/s", target={"transport": "http", "url": demo_url})["url"]
    page.goto(parley.origin + session)
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    there = f"http://127.0.0.1:{other.port}"
    mine = [one for one in context.cookies() if one["name"].startswith("parley_")]
    assert mine, "the browser is signed in"

    # by a link of ours, which is how Open and accept goes
    with context.expect_page() as opened:
        page.evaluate(
            """address => { const link = document.createElement('a');
            Object.assign(link, { href: address, target: '_blank', rel: 'noopener noreferrer' });
            document.body.append(link); link.click(); }""",
            f"{there}/link",
        )
    other.wait_for("GET /link")
    opened.value.close()
    # by its address, by an image, by fetch, by a form, by a frame, each from its own page and from one of its pages
    for path in ("/", "/s", f"{session}/log", "/login", "/~guess/", "/~/", "/favicon.ico", "/static/app.css"):
        page.goto(f"{there}{path}?visit")
        other.wait_for(f"GET {path}?visit")
    page.evaluate("() => { new Image().src = '/image'; }")
    page.evaluate("() => fetch('/fetch', { credentials: 'include', method: 'POST', body: 'x' })")
    page.evaluate("() => { const f = document.createElement('iframe'); f.src = '/frame'; document.body.append(f); }")
    page.evaluate("() => navigator.sendBeacon('/beacon', 'x')")
    page.evaluate(
        """() => { const f = document.createElement('form'); f.method = 'post'; f.action = '/form';
        document.body.append(f); f.submit(); }"""
    )
    for line in ("GET /image", "POST /fetch", "GET /frame", "POST /beacon", "POST /form"):
        other.wait_for(line)
    key = parley.origin.rpartition("/")[2]
    for line, headers in other.seen:
        cookies = dict(one.strip().split("=", 1) for one in headers.get("cookie", "").split(";") if "=" in one)
        assert not any(cookies.get(one["name"]) == one["value"] for one in mine if one["path"] != "/login"), line
        assert key not in json.dumps(headers), line
        assert "referer" not in headers or urlsplit(headers["referer"]).port == other.port, line
    context.close()


@pytest.mark.requirement("H01")
def test_h01_what_that_server_knows_gets_it_nowhere(chromium_browser: Browser, parley: Parley, other: Other):
    """It takes whatever cookies it was sent, forges our Origin, and posts: that starts no program."""
    context = chromium_browser.new_context()
    page = context.new_page()
    parley.login(page)
    page.goto(f"http://127.0.0.1:{other.port}/login?visit")
    sent = other.wait_for("GET /login?visit").get("cookie", "")
    body = json.dumps({"target": {"transport": "stdio", "command": sys.executable, "args": ["-c", "pass"]}}).encode()
    port = urlsplit(parley.server).port
    values = {sent, re.sub(r"parley_\d+_in", f"parley_{port}", sent), ""}
    for cookie in values:
        for path in ("/s", f"/~{'x' * 22}/s", f"{urlsplit(parley.origin).path}/s"):
            headers = {"origin": parley.server, "sec-fetch-site": "same-origin", "content-type": "application/json"}
            asked = Request(parley.server + path, body, {**headers, **({"cookie": cookie} if cookie else {})})
            assert _status(asked) == 401, (path, cookie)
    # And its own page, in the browser that is signed in, cannot read or post either.
    answers = page.evaluate(
        """async (origin) => { const found = [];
        for (const path of ['/', '/s', '/healthz']) for (const method of ['GET', 'POST']) {
          try { found.push((await fetch(origin + path, { method, credentials: 'include' })).status); }
          catch { found.push('refused'); }
        } return found; }""",
        parley.server,
    )
    assert set(answers) == {"refused"}
    assert parley.script("GET", "/")["sessions"] == []
    context.close()


def _status(asked: Request) -> int:
    try:
        with urlopen(asked, timeout=HANG) as answer:
            return int(answer.status)
    except OSError as fault:
        return int(getattr(fault, "code", 0))


@pytest.mark.requirement("H01")
def test_h01_a_bookmark_opens_again_and_an_address_without_the_key_does_not(page: Page, parley: Parley, watch: Watch):
    watch.allow("401")
    assert page.url == f"{parley.origin}/"
    expect(page.get_by_role("heading", level=1)).not_to_have_text("You are not signed in.")
    answer = page.goto(f"{parley.server}/")
    assert answer is not None
    assert answer.status == 401
    expect(page.get_by_role("main")).to_contain_text("open a bookmark of it")
    answer = page.goto(f"{parley.origin}/about")
    assert answer is not None
    assert answer.status == 200
    for link in page.locator("a[href^='/']").all():
        assert str(link.get_attribute("href")).startswith(urlsplit(parley.origin).path + "/")


# ------------------------------------------------------------------------------------------------- how it is opened

FAKE = """#!{python}
import json, os, sys, time
with open({record!r} + ".part", "w") as file:
    json.dump({{"argv": sys.argv, "pid": os.getpid()}}, file)
os.rename({record!r} + ".part", {record!r})
time.sleep(600)
"""


@contextmanager
def started(tmp_path: Path, *arguments: str, **env: str) -> Iterator[tuple[Parley, Path]]:
    """A Parley that believes in a screen and in a browser of ours, which notes what it was given and stays."""
    record, fake, home = tmp_path / "record.json", tmp_path / "browser", tmp_path / "tmp"
    home.mkdir(exist_ok=True)
    fake.write_text(FAKE.format(python=sys.executable, record=str(record)))
    fake.chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "--port", "0", "--data-dir", str(tmp_path / "data"), *arguments],
        cwd=ROOT,
        env={**clean, "DISPLAY": ":77", "BROWSER": str(fake), "TMPDIR": str(home), "PYTHONUNBUFFERED": "1", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    parley = None
    try:
        parley = Parley(process, enter=False)
        yield parley, record
    finally:
        process.terminate()
        process.wait(HANG)
        if record.exists():
            with suppress(psutil.NoSuchProcess):
                psutil.Process(json.loads(record.read_text())["pid"]).kill()  # it holds what we read from
        if parley is not None:
            parley.stop()


def given(record: Path, wait: Callable[[Callable[[], bool]], None]) -> tuple[str, int]:
    """The one argument that the browser got, and its process."""
    wait(record.exists)
    noted = json.loads(record.read_text())
    (argument,) = noted["argv"][1:]
    return argument, noted["pid"]


@pytest.fixture
def wait() -> Callable[[Callable[[], bool]], None]:
    """Until something outside of us is so; looks again and again, and fails when it never is."""

    def until(true: Callable[[], bool]) -> None:
        tick = threading.Event()
        for _ in range(int(HANG / 0.02)):
            if true():
                return
            tick.wait(0.02)
        raise AssertionError("it never came to that")

    return until


@pytest.mark.requirement("H04")
def test_h04_the_code_stands_in_no_argument_and_the_file_leads_in(
    chromium_browser: Browser, tmp_path: Path, wait: Callable[[Callable[[], bool]], None]
):
    with started(tmp_path, "demo") as (parley, record):
        way_in = parley.login_url()
        code = re.search(r"code=([^&]+)", way_in)[1]  # type: ignore[index]
        argument, pid = given(record, wait)
        everybody = [" ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
        assert not any(code in line for line in everybody), "another user would read it there"
        assert argument in " ".join(psutil.Process(pid).cmdline())
        file = Path(unquote(urlsplit(argument).path))
        assert argument.startswith("file:///")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        context = chromium_browser.new_context()
        page = context.new_page()
        page.goto(argument)
        page.wait_for_url(re.compile(r"/~[\w-]+/s/[^/]+/stage$"))
        expect(page.locator("#stage")).to_be_visible()
        wait(lambda: not file.parent.exists())  # the code is worth nothing any more
        context.close()


@pytest.mark.requirement("H04")
def test_h04_the_file_goes_when_the_code_expires(tmp_path: Path, wait: Callable[[Callable[[], bool]], None]):
    config = tmp_path / "parley.toml"
    config.write_text("[limits]\nlaunch_code_seconds = 0.5\n")
    with started(tmp_path, "--config", str(config)) as (_, record):
        file = Path(unquote(urlsplit(given(record, wait)[0]).path))
        wait(lambda: not file.parent.exists())


@pytest.mark.requirement("H04")
def test_h04_the_file_goes_with_parley(tmp_path: Path, wait: Callable[[Callable[[], bool]], None]):
    with started(tmp_path) as (parley, record):
        file = Path(unquote(urlsplit(given(record, wait)[0]).path))
        assert file.exists()
        parley.process.terminate()
        assert parley.process.wait(HANG) == 0
        assert not file.parent.exists()


@pytest.mark.requirement("H04")
@pytest.mark.parametrize("why", ["a snap", "a script that starts a snap", "a script that starts a flatpak"])
def test_h04_what_cannot_read_the_file_is_not_opened_at_all(why: str, tmp_path: Path):
    """Never by the code in an argument instead: the terminal has the address."""
    browser = tmp_path / "browser-of-a-store"
    if why == "a snap":
        real = tmp_path / "snap" / "bin" / "browser"
        real.parent.mkdir(parents=True)
        real.write_text("x")
        real.chmod(0o755)
        browser.symlink_to(real)
    else:
        line = "/snap/bin/chromium" if "snap" in why else "flatpak run org.example.Browser"
        browser.write_text(f'#!/bin/sh\ntouch {tmp_path}/record.json\nexec {line} "$@"\n')
        browser.chmod(0o755)
    with started(tmp_path, BROWSER=str(browser)) as (parley, record):
        assert "/login?code=" in parley.login_url()
        parley.process.terminate()
        assert parley.process.wait(HANG) == 0
        assert not record.exists()
        assert not list((tmp_path / "tmp").glob("parley-*"))


@pytest.mark.requirement("H04")
def test_h04_without_a_place_for_the_file_nothing_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    monkeypatch.setattr("webbrowser.get", lambda: pytest.fail("a browser was opened"))
    assert opening.open_browser("http://127.0.0.1:6280/login?code=secret") is None


@pytest.mark.requirement("H04")
def test_h04_the_preferred_browser_is_known_by_where_its_entry_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entries = tmp_path / ".local/share/flatpak/exports/share/applications"
    entries.mkdir(parents=True)
    (entries / "org.example.Browser.desktop").touch()
    program = tmp_path / "xdg-open"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert opening._confined(str(program), "org.example.Browser.desktop")
    for other in ("firefox.desktop", "", "../applications/org.example.Browser.desktop"):
        assert not opening._confined(str(program), other)
    assert not opening._confined("no-such-program", "org.example.Browser.desktop")
