"""Sessions for the tests of the page: opened by a script, with the demo server, a raw script or another; and calls."""

import json
import sys
import time
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.parley import Parley
from tests.drive import SERVERS


class Desk:
    """A session, and a script beside the page that calls its tools."""

    def __init__(self, parley: Parley, base: str) -> None:
        self.parley, self.base = parley, base
        self.url = parley.origin + base

    def call(self, name: str, **arguments: Any) -> str:
        params = {"name": name, "arguments": arguments}
        return str(self.parley.script("POST", f"{self.base}/calls", method="tools/call", params=params)["id"])

    def result(self, call: str) -> Any:
        """What a call came to; it must be done soon."""
        found: Any = None
        for _ in range(40):
            found = self.parley.script("GET", f"{self.base}/calls/{call}?wait=10")
            if found["state"] not in ("running", "waiting"):
                break
            time.sleep(0.05)
        assert found["state"] == "done", found
        return found["result"]

    def answer_of(self, call: str) -> Any:
        """What the server says that it was answered."""
        return self.result(call)["structuredContent"]["answer"]

    def say(self, *messages: dict[str, Any]) -> None:
        """Have the raw script write these messages; they have arrived when this returns."""
        lines = [json.dumps({"jsonrpc": "2.0", **message}) for message in messages]
        self.result(self.call("say", lines=[*lines, '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}']))

    def asks(self) -> list[dict[str, Any]]:
        return list(self.parley.script("GET", f"{self.base}/inbox")["open"])

    def get(self, path: str) -> Any:
        return self.parley.script("GET", self.base + path)

    def record(self, on: bool) -> str:
        """Begin to record this session, or end that; the path of its recording."""
        return f"/r/{self.parley.script('POST', f'{self.base}/record', on=on)['rid']}"


def recorded_pages(recording: str) -> dict[str, str]:
    """The pages that only recordings have, and those that differ most from what a session shows there, by the names of
    their pictures."""
    return {
        "recordings": "/recordings",
        "recorded": recording,
        "recorded-about": f"{recording}/about",
        "recorded-masks": f"{recording}/masks",
        "recorded-tool": f"{recording}/tools/echo",
        "recorded-calls": f"{recording}/calls",
        "recorded-inbox": f"{recording}/inbox",
        "recorded-log": f"{recording}/log",
        "recorded-timeline": f"{recording}/timeline",
    }


def opened(parley: Parley, target: dict[str, Any], **options: Any) -> Desk:
    """These asks are those of 2025-11-25, which a server sends as requests."""
    desk = Desk(parley, parley.script("POST", "/s", target=target, options={"era": "legacy", **options})["url"])
    assert desk.get("?wait=20")["connection"]["state"] == "ready"
    return desk


def script(name: str, *arguments: str) -> dict[str, Any]:
    """A server of ours that is one script, started without anything of this environment."""
    args = ["-I", "-S", str(SERVERS / name), *arguments]
    return {"transport": "stdio", "command": sys.executable, "args": args}


def visit(page: Page, desk: Desk, path: str = "") -> None:
    page.goto(desk.url + path)
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")


def at_home(page: Page, parley: Parley, target: dict[str, Any], tools: int) -> str:
    """The address of a session in which this page stands, once its tools are counted."""
    session: str = parley.script("POST", "/s", target=target)["url"]
    page.goto(parley.origin + session)
    expect(page.locator("#n-tools")).to_have_text(str(tools))
    return f"{parley.origin}{session}"


def called(page: Page, base: str, name: str, arguments: dict[str, object]) -> Locator:
    """Call a tool in the page, by JSON; the card of the call."""
    page.goto(f"{base}/tools/{name}?as=json")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    before = page.locator("#calls > article").count()
    page.fill("#arguments", json.dumps(arguments))
    page.click("#call-go")
    expect(page.locator("#calls > article")).to_have_count(before + 1)
    return page.locator("#calls > article").first
