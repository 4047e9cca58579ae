"""What outlives a process, with real ones: stopped in order, killed, and two at the same time."""

import json
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlencode

import pytest

from app.remembered import FILE
from tests.cli.test_command_line import Parley
from tests.drive import SERVERS
from tests.web.asgi import TOKEN

pytestmark = pytest.mark.requirement("U-S8")


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found: int = taken.getsockname()[1]
        return found


class House:
    """One data directory, and the Parleys that use it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.all: list[Parley] = []

    def start(self, port: int) -> Parley:
        arguments = ("--no-open", "--port", str(port), "--data-dir", str(self.directory))
        one = Parley(*arguments, PARLEY_TOKEN=TOKEN)
        self.all.append(one)
        assert one.port == port
        return one


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "data")
    yield made
    for one in made.all:
        one.close()


class Browser:
    """A cookie, and what it is sent to."""

    used: ClassVar[list[str]] = []

    def __init__(self, parley: Parley) -> None:
        # A code serves once, and the next one is printed when it was used: never one that a browser had already.
        code = parley.says(rf"login\?code=(?!{'|'.join(self.used) or ' '})(\S+)$")[1]
        self.used.append(re.escape(code))
        _, headers, _ = parley.ask("GET", f"/login?code={code}")
        self.root = headers["location"].rstrip("/")
        self.cookie = headers["set-cookie"].partition(";")[0]

    def get(self, parley: Parley, path: str = "/") -> int:
        return parley.ask("GET", self.root + path, cookie=self.cookie)[0]

    def post(self, parley: Parley, path: str, **fields: str) -> tuple[int, dict[str, str], str]:
        return parley.ask(
            "POST",
            self.root + path,
            urlencode(fields),
            cookie=self.cookie,
            origin=f"http://127.0.0.1:{parley.port}",
            content_type="application/x-www-form-urlencoded",
        )


NEW = "You have not started this command from Parley before"


@pytest.mark.requirement("S13")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_login_consent_and_saved_requests_outlive_the_process(number: signal.Signals, house: House, port: int):
    first = house.start(port)
    browser = Browser(first)
    assert browser.get(first) == 200
    program = str(SERVERS / "raw.py")
    line = {"transport": "stdio", "command_line": f"python3 {program} plain", "env_name": "API_KEY", "env_value": "k-1"}
    status, _, text = browser.post(first, "/s", **line)
    assert (status, NEW in text) == (200, True)
    digest = re.search(r'name="confirm" value="([0-9a-f]{64})"', text)
    assert digest is not None
    status, headers, _ = browser.post(first, "/s", confirm=digest[1])
    assert status == 303
    sid = headers["location"].rpartition("/")[2]
    assert first.script("GET", f"/s/{sid}?wait=20")["connection"]["state"] == "ready"
    (target,) = first.script("GET", "/")["targets"]
    body = json.dumps({"name": "Ping it", "method": "ping"})
    saved = first.script("POST", f"/targets/{target['id']}/requests", body)
    first.children()
    first.end(number)

    later = house.start(port)
    assert browser.get(later) == 200, "logged in as before"
    assert browser.get(later, f"/s/{sid}") == 404, "sessions end with the process"
    assert later.script("GET", f"/targets/{target['id']}/requests")["requests"] == [saved]
    status, _, text = browser.post(later, "/s", **line)
    assert status == 303, text
    status, _, text = browser.post(later, "/s", **{**line, "env_value": "k-2"})
    assert (status, NEW in text) == (200, True), "another value is another one"
    on_disk = b"".join(path.read_bytes() for path in house.directory.iterdir() if path.is_file())
    for secret in (browser.cookie.partition("=")[2], "k-1", digest[1]):
        assert secret.encode() not in on_disk
    later.script("POST", f"/targets/{target['id']}/delete")
    status, _, text = browser.post(later, "/s", **line)
    assert (status, NEW in text) == (200, True), "forgotten with its server"


@pytest.mark.requirement("S13")
def test_two_at_the_same_time_and_who_is_signed_out_by_one_is_out_of_both_for_good(house: House, port: int):
    first = house.start(port)
    browser, other = Browser(first), Browser(first)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        second_port = taken.getsockname()[1]
    second = house.start(second_port)
    elsewhere = Browser(second)
    assert browser.root == elsewhere.root
    assert (browser.get(first), other.get(first), elsewhere.get(second)) == (200, 200, 200)
    assert browser.post(first, "/logout")[0] == 303
    # The second one writes what it knows: a new login.
    another = Browser(second)
    assert (browser.get(first), other.get(first)) == (401, 200)
    assert elsewhere.post(second, "/logout", everywhere="1")[0] == 303
    assert [other.get(first), elsewhere.get(second), another.get(second)] == [401, 401, 401]
    for one in (first, second):
        one.end(signal.SIGKILL)
    again = house.start(port)
    assert [browser.get(again), other.get(again)] == [401, 401]


@pytest.mark.requirement("S13")
def test_a_damaged_file_costs_the_logins_and_nothing_else(house: House, port: int):
    first = house.start(port)
    browser = Browser(first)
    first.end()
    (house.directory / FILE).write_text("not JSON")
    later = house.start(port)
    assert browser.get(later) == 401
    later.says(r"is damaged; it is not used", later.err)
    assert Browser(later).get(later) == 200
    assert first.err == []
