"""A log one can work in: folds, numbers, local time, the way by keyboard, the opened message, sent again."""

import base64
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.parley import Parley

RAW = Path(__file__).parents[1] / "servers" / "raw.py"
JUNK = "Starting Acme server v1.2 on stdio ..."


class Acme:
    """A session with a server that prints a line of junk, as scripts see it."""

    def __init__(self, parley: Parley, path: str) -> None:
        self.parley, self.path, self.url = parley, path, parley.origin + path

    def call(self, method: str, quiet: bool = False, **params: Any) -> None:
        body = {"method": method, "params": params, "quiet": quiet}
        cid = self.parley.script("POST", f"{self.path}/calls", **body)["id"]
        assert self.parley.script("GET", f"{self.path}/calls/{cid}?wait=30")["state"] != "running"

    def tool(self, name: str, **arguments: Any) -> None:
        self.call("tools/call", name=name, arguments=arguments)

    def progress(self, count: int) -> None:
        self.tool("beat", count=count, every=0.001)

    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.parley.script("GET", f"{self.path}/log")["messages"]
        return found

    def seq(self, **wanted: Any) -> int:
        """The first message like that."""
        return int(next(one["seq"] for one in self.messages() if all(one[key] == wanted[key] for key in wanted)))


@pytest.fixture
def acme(parley: Parley) -> Acme:
    settings = {"first": [base64.b64encode(f"{JUNK}\n".encode()).decode()]}
    args = ["-I", "-S", str(RAW), "plain", "--with", json.dumps(settings)]
    target = {"transport": "stdio", "command": sys.executable, "args": args}
    path = parley.script("POST", "/s", target=target)["url"]
    assert parley.script("GET", f"{path}?wait=30")["connection"]["state"] == "ready"
    one = Acme(parley, path)
    one.tool("echo", message="hello")
    return one


@pytest.fixture
def berlin(chromium_browser: Browser, parley: Parley) -> Iterator[Callable[..., Page]]:
    """Opens a browser in Berlin, of any size."""
    contexts = []

    def open_page(width: int = 1440, height: int = 900) -> Page:
        context = chromium_browser.new_context(
            viewport={"width": width, "height": height}, timezone_id="Europe/Berlin", permissions=["clipboard-write"]
        )
        contexts.append(context)
        page = context.new_page()
        parley.login(page)
        return page

    yield open_page
    for context in contexts:
        context.close()


def visit(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")


def numbers(page: Page, where: str = "#log") -> list[int]:
    return page.eval_on_selector_all(f"{where} > li .q", "cells => cells.map(cell => +cell.textContent)")


def opened(page: Page) -> Locator:
    return page.locator("#message")


def text(row: Locator) -> str:
    return row.inner_text()


@pytest.mark.requirement("U-S6")
@pytest.mark.parametrize("where", ["/log", "/tools/echo"], ids=["page", "drawer"])
def test_progress_is_one_line_while_it_streams_and_after_a_reload(page: Page, acme: Acme, where: str):
    visit(page, acme.url + where)
    before = len(acme.messages())
    acme.progress(50)
    line = page.locator("#log > .fold .foldrow")
    expect(line).to_contain_text("1 to 50")
    expect(line).to_contain_text("50 folded")
    expect(page.locator("#log > li").last).to_contain_text("tools/call")
    shown = numbers(page)
    first = before + 2  # after the request
    assert shown[-3:] == [first - 1, first, first + 50]
    expect(page.locator("#log > li[data-k=notification][data-fold]")).to_have_count(0)
    line.focus()
    page.keyboard.press("Enter")
    expect(line).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#log > li[data-in]")).to_have_count(50)
    expect(line).to_contain_text("50 shown")
    assert numbers(page)[-52:] == [first, *range(first, first + 51)]
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#log > li[data-in]")).to_have_count(0)
    page.reload()
    expect(line).to_contain_text("50 folded")
    assert numbers(page) == shown
    bar = line.locator("svg.dur rect")
    assert re.fullmatch(r"\d+%", bar.get_attribute("width") or "")


def test_the_line_grows_and_a_late_finding_leaves_it(page: Page, acme: Acme):
    visit(page, f"{acme.url}/log")
    for _ in range(4):
        acme.call("ping", quiet=True)
    line = page.locator("#log > .fold")
    expect(line).to_contain_text("4 times")
    acme.call("ping", quiet=True)
    expect(line).to_contain_text("5 times")
    expect(line).to_contain_text("10 folded")
    seq = int((line.get_attribute("id") or "p0")[1:])
    row = page.locator("#log > li", has_text="initialize").first.evaluate("row => row.outerHTML")
    # As the stream sends a row that is in a line: at the end, and here it finds its place.
    page.evaluate(
        "([html, seq]) => document.querySelector('#log').insertAdjacentHTML('beforeend', html.replace(/id=.m\\d+./,"
        " `id='m${seq + 1}'`))",
        [row.replace("initialize", "ping"), seq],
    )
    expect(line).to_contain_text("9 folded")
    expect(page.locator(f"#log > #p{seq} + #m{seq + 1}")).to_have_count(1)


@pytest.mark.requirement("U-S6")
def test_rows_are_numbered_and_times_are_local_with_a_switch(berlin: Callable[..., Page], acme: Acme):
    page = berlin()
    visit(page, f"{acme.url}/log")
    assert numbers(page) == list(range(1, len(acme.messages()) + 1))
    time = page.locator("#log time").first
    iso = time.get_attribute("datetime") or ""
    hour, rest = int(iso[11:13]), iso[13:23]
    local = page.evaluate("iso => String(new Date(iso).getHours()).padStart(2, '0')", iso)
    assert local != f"{hour:02}"
    expect(time).to_have_text(local + rest)
    expect(page.locator(".m.th")).to_contain_text("Time, local")
    time.hover()
    expect(time).to_have_attribute("title", f"{iso[:10]} {iso[11:23]} UTC")
    page.get_by_role("button", name="UTC").click()
    expect(time).to_have_text(iso[11:23])
    acme.tool("echo", message="in UTC too")
    expect(page.locator("#log > li", has_text="in UTC too")).to_have_count(2)  # asked and answered
    last = page.locator("#log > li", has_text="in UTC too").last.locator("time")
    expect(last).to_have_text((last.get_attribute("datetime") or "")[11:23])
    page.reload()
    expect(time).to_have_text(iso[11:23])
    acme.call("x/stderr", base64=base64.b64encode(b"a line\n").decode())
    visit(page, f"{acme.url}/stderr")
    line = page.locator("#stderr time").first
    expect(line).to_have_text((line.get_attribute("datetime") or "")[11:23])
    page.get_by_role("button", name="Local").click()
    expect(line).not_to_have_text((line.get_attribute("datetime") or "")[11:23])
    # Nowhere else is it another hour: not where an ask was answered, not on the overview.
    question = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
    asked = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question}
    acme.tool("say", lines=[json.dumps(asked), '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'])
    visit(page, acme.url)
    page.locator("#asks .ask").get_by_role("button", name="Decline").click()
    expect(page.locator("#last-settled")).to_contain_text(", last ")
    for place in map(page.locator, ("#settled summary time", "#last-settled time", ".sums time")):
        iso = place.first.get_attribute("datetime") or ""
        local = page.evaluate("iso => String(new Date(iso).getHours()).padStart(2, '0')", iso)
        expect(place.first).to_have_text(local + iso[13:19])


@pytest.mark.requirement("U-S6")
def test_keys_walk_open_and_close(page: Page, acme: Acme):
    visit(page, f"{acme.url}/log")
    messages = acme.messages()
    count = len(messages)
    page.locator("#logscroll").focus()
    page.keyboard.press("Tab")
    expect(page.locator("#log .m:focus .q")).to_have_text(str(count))
    visit(page, f"{acme.url}/log")
    asked = next(one["number"] for one in messages if one["seq"] == messages[-1]["answers"])
    focused = page.locator("#log .m:focus")
    page.keyboard.press("k")
    expect(focused.locator(".q")).to_have_text(str(count))
    page.keyboard.press("ArrowUp")
    page.keyboard.press("k")
    expect(focused.locator(".q")).to_have_text(str(count - 2))
    page.keyboard.press("j")
    page.keyboard.press("Home")
    expect(focused.locator(".q")).to_have_text("1")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(opened(page)).to_contain_text("received")
    expect(page.locator("#log .m[aria-current] .q")).to_have_text(str(count))
    expect(page.locator("#log .m.pair .q")).to_have_text(str(asked))
    page.keyboard.press("k")
    expect(page.locator("#log .m[aria-current] .q")).to_have_text(str(count - 1))
    page.get_by_role("button", name="Previous message").click()
    expect(page.locator("#log .m[aria-current] .q")).to_have_text(str(count - 2))
    page.keyboard.press("Escape")
    expect(opened(page)).to_have_count(0)
    expect(focused.locator(".q")).to_have_text(str(count - 2))
    assert page.locator("#log .m[tabindex='0']").count() == 1
    page.keyboard.press("/")
    expect(page.locator("#logfilter")).to_be_focused()
    page.keyboard.type("jk")
    expect(page.locator("#logfilter")).to_have_value("jk")


@pytest.mark.requirement("U-S6")
def test_from_a_message_to_its_call_to_the_clipboard_and_once_more(berlin: Callable[..., Page], acme: Acme):
    page = berlin()
    seq = acme.seq(method="tools/call", kind="request")
    visit(page, f"{acme.url}/log")
    page.locator(f"#m{seq} > a").click()
    head = opened(page).locator("header")
    expect(head.get_by_role("link", name=re.compile(r"Open call \d+"))).to_be_visible()
    opened(page).get_by_role("button", name=re.compile("Copy message")).first.click()
    expect(opened(page).locator("[data-copy-message] span").first).to_have_text("Copied")
    before = len(acme.messages())
    head.get_by_role("button", name="Resend").click()
    expect(page.locator("#resent")).to_contain_text("Sent as call")
    expect(page.locator("#log > li")).to_have_count(before + 2)
    newest = acme.messages()[-1]
    assert newest["method"] == "tools/call" and "hello" in newest["raw"]
    head.get_by_role("link", name="Edit and resend").click()
    expect(page.locator("#method")).to_have_value("tools/call")
    expect(page.locator("#params")).to_have_value(re.compile('"message": "hello"'))
    assert "progressToken" not in page.locator("#params").input_value()
    visit(page, f"{acme.url}/log/{acme.seq(method='initialize', kind='request')}")
    expect(opened(page)).to_contain_text("Reconnect to send it again.")
    expect(opened(page).get_by_role("button", name="Resend")).to_have_count(0)


@pytest.mark.requirement("U-S6")
def test_the_message_stands_beside_the_rows_with_room(page: Page, acme: Acme):
    visit(page, f"{acme.url}/log")
    page.locator("#log .m").last.click()
    expect(opened(page)).to_be_visible()
    for width, height in ((1800, 1000), (1440, 900), (1024, 768), (900, 700)):
        page.set_viewport_size({"width": width, "height": height})
        box = page.locator("#detail").bounding_box()
        rows = page.locator("#logscroll").bounding_box()
        assert box and rows
        wide = {1800: 576, 1440: 432}.get(width, 368)
        assert abs(box["width"] - wide) < 3 and box["height"] > height * 0.6, box
        assert box["x"] >= rows["x"] + rows["width"] - 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator("#detail").evaluate("box => box.scrollTo(0, 5000)")
        head = opened(page).locator("header").bounding_box()
        assert head and abs(head["y"] - box["y"]) < 2, "the head stays"


@pytest.mark.requirement("U-S6")
def test_without_room_it_is_a_sheet_with_its_row_above_it(page: Page, acme: Acme):
    acme.progress(3)
    for _ in range(8):
        acme.tool("echo", message="more")
    for width, height in ((768, 1024), (390, 844), (360, 740)):
        page.set_viewport_size({"width": width, "height": height})
        visit(page, f"{acme.url}/log")
        row = page.locator("#log > li", has_text="more").last.locator(".m")
        row.click()
        expect(opened(page)).to_be_visible()
        expect(page.locator("#detail")).to_be_focused()
        sheet, place = page.locator("#detail").bounding_box(), row.bounding_box()
        assert sheet and place
        assert abs(sheet["y"] - 0.34 * height) < 2 and abs(sheet["width"] - width) < 1
        assert place["y"] + place["height"] <= sheet["y"] + 1
        if width < 700:
            assert place["height"] >= 44
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="Previous message").click()
        expect(page.locator("#log .m[aria-current]")).to_contain_text("tools/call")
        page.keyboard.press("Escape")
        expect(opened(page)).to_have_count(0)
        expect(page.locator("#log .m:focus")).to_have_count(1)


@pytest.mark.requirement("U-S6")
def test_a_filter_without_a_match_says_so_and_is_cleared(page: Page, acme: Acme):
    visit(page, f"{acme.url}/log")
    page.get_by_text("Notifications", exact=True).click()
    page.fill("#logfilter", "nothing has this")
    empty = page.locator("#found-empty")
    expect(empty).to_be_visible()
    expect(empty).to_contain_text("No message matches this filter.")
    empty.get_by_role("link", name="Clear").click()
    expect(page.locator("#log > li").first).to_be_visible()
    expect(empty).to_be_hidden()
    expect(page.locator("#logfilter")).to_have_value("")
    assert page.url.endswith("/log")
    visit(page, f"{acme.url}/tools/echo")
    page.fill("#logfilter", "nothing has this")
    page.locator("#filter-clear").click()
    expect(page.locator("#log > li").first).to_be_visible()


@pytest.mark.requirement("U-S6")
def test_junk_is_shown_as_the_junk_and_said_once(page: Page, acme: Acme):
    visit(page, f"{acme.url}/log")
    row = page.locator("#log > li", has_text=JUNK)
    expect(row).to_contain_text("Invalid line")
    expect(page.locator("#log-invalid")).to_have_text("1")
    row.locator("a").click()
    expect(opened(page)).to_contain_text(JUNK)
    assert text(opened(page)).count("Not JSON") == 1


def test_polls_push_nothing_out_and_the_way_to_earlier_rows_is_whole(page: Page, acme: Acme):
    acme.tool("beat", count=3000, every=0)
    visit(page, f"{acme.url}/log")
    expect(page.locator("#log > li .q").first).to_have_text("1")
    fold = page.locator("#log > .fold")
    expect(fold).to_contain_text("3000 folded")
    expect(fold).to_contain_text("1 to 3000")
    assert page.locator("#log > li").count() < 30
    # What stands before the rows has no sign in its lane.
    assert page.locator("#earlier .lane").count() == 0
    fold.locator("button").click()
    expect(page.locator("#log > li[data-in]")).to_have_count(500)


def test_earlier_rows_join_the_line_that_they_belong_to(page: Page, acme: Acme):
    acme.tool("beat", count=6000, every=0)
    visit(page, f"{acme.url}/log")
    fold = page.locator("#log > .fold")
    expect(fold).to_have_count(1)
    expect(fold).not_to_contain_text("6000 folded")
    page.get_by_role("button", name="Show earlier messages").click()
    expect(fold).to_contain_text("6000 folded")
    expect(fold).to_have_count(1)
    expect(page.locator("#log > li .q").first).to_have_text("1")
