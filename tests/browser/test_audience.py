"""A presenter and three phones: the vote decides, the server hears it once, who comes late is told, and a phone that
lost its network comes back to the same place. And the page behind an answer link."""

import re
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import _REPORT, Watch
from tests.browser.parley import Parley, running

PHONE = {"width": 390, "height": 844}
SIDEWAYS = "document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="module")
def hall() -> Iterator[Parley]:
    """A Parley with a place where phones come in."""
    with running("demo", "--room", "127.0.0.1:0") as parley:
        yield parley


@pytest.fixture
def watched(chromium_browser: Browser) -> Iterator[Any]:
    """New browsers, each with its own cookies; nothing may be complained about in any."""
    watch, opened = Watch(), list[BrowserContext]()

    def browser(width: int = 390, **more: Any) -> Page:
        context = chromium_browser.new_context(viewport={"width": width, "height": 844 if width < 500 else 900}, **more)
        context.add_init_script(_REPORT)
        context.on("page", watch.attach)
        opened.append(context)
        return context.new_page()

    browser.watch = watch  # type: ignore[attr-defined]
    yield browser
    for context in opened:
        context.close()
    assert watch.unexpected() == []


def called(hall: Parley, base: str, tool: str) -> str:
    hall.script("GET", f"{base}?wait=20")
    made = hall.script("POST", f"{base}/calls", method="tools/call", params={"name": tool, "arguments": {}})
    return f"{base}/calls/{made['id']}"


def session(hall: Parley) -> str:
    url: str = hall.script("POST", "/s", target={"transport": "demo"}, options={"era": "legacy"})["url"]
    return url


@pytest.mark.requirement("S01", "S39", "S41")
def test_a_presenter_and_three_phones(hall: Parley, watched: Any):
    base, stage = session(hall), watched(1440)
    stage.goto(hall.code())
    stage.goto(f"{hall.origin}{base}/stage")
    stage.get_by_text("Let the room answer").click()
    expect(stage.get_by_text("Only this machine reaches")).to_be_visible()
    stage.get_by_role("button", name="Open the room").click()
    address = hall.script("GET", f"{base}/room")["address"]
    expect(stage.get_by_text(address.partition("://")[2])).to_be_visible()
    expect(stage.get_by_role("img", name="QR code of the address")).to_be_visible()
    phones = [watched() for _ in range(3)]
    for phone in phones:
        phone.goto(address)
        expect(phone.get_by_role("heading", name="You are in the room")).to_be_visible()
    expect(stage.locator("#room-phones")).to_have_text("3")
    call = called(hall, base, "preferences")
    for phone, word in zip(phones[:2], ("markdown", "markdown"), strict=True):
        expect(phone.get_by_role("heading", name="How would you like the travel desk to write to you?")).to_be_visible()
        assert not phone.evaluate(SIDEWAYS)
        phone.get_by_label(word).check()
        phone.get_by_role("button", name="Send").click()
        expect(phone.get_by_role("heading", name="Thank you")).to_be_visible()
    # The third has chosen something, and its network is gone: what it chose stays.
    third = phones[2]
    watched.watch.allow("ERR_INTERNET_DISCONNECTED")
    watched.watch.allow("Failed to load resource")
    third.get_by_label("plain").check()
    third.context.set_offline(True)
    expect(third.locator("#left")).to_have_text("Waiting for the network")
    expect(third.get_by_label("plain")).to_be_checked()
    bars = stage.locator("#room .votes").first.locator("div")
    expect(bars.filter(has_text="markdown").locator("span")).to_have_text("2")
    expect(bars.filter(has_text="markdown").locator("progress")).to_have_class("lead")
    expect(stage.locator("#room-send")).to_have_text(re.compile("Accept the majority: markdown"))
    third.get_by_role("button", name="Send").click()
    stage.locator("#room-send").click()
    expect(stage.locator("#room[data-poll]")).to_have_count(0)
    third.context.set_offline(False)
    expect(third.get_by_role("heading", name="Too late for this one")).to_be_visible()
    expect(third.get_by_text("The room’s answer, markdown")).to_be_visible()
    expect(third.locator(".says")).to_contain_text("plain")
    told = hall.script("GET", f"{call}?wait=20")
    assert told["result"]["isError"] is False and "markdown" in str(told["result"]["content"])
    asks = hall.script("GET", f"{base}/inbox")["settled"]
    assert [one["answered_by"] for one in asks] == [{"kind": "room", "name": "majority of 2"}]
    for phone in phones:
        phone.reload()
        expect(phone.get_by_text("The next question appears").or_(phone.get_by_text("here by itself"))).to_be_visible()
    stage.locator("#room-close").click()
    expect(phones[0].get_by_role("heading", name="The room is closed")).to_be_visible()
    expect(stage.get_by_text("Let the room answer")).to_be_visible()
    with pytest.raises(ConnectionRefusedError):  # what listened there has ended with the room
        socket.create_connection((urlsplit(address).hostname or "", urlsplit(address).port or 0), 5)


def test_what_helps_a_presenter(hall: Parley, watched: Any):
    base, stage = session(hall), watched(1440)
    asked: list[str] = []
    stage.on("request", lambda request: asked.append(request.url))
    stage.goto(hall.code())
    stage.goto(f"{hall.origin}{base}/stage")
    expect(stage.locator("#stage-clock")).to_have_text(re.compile(r"\d.* 0 min"))
    before = stage.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)")
    stage.keyboard.press("+")
    assert stage.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)") > before
    stage.keyboard.press("-")
    stage.keyboard.press("=")  # without Shift
    assert stage.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)") > before
    stage.get_by_text("Let the room answer").click()
    stage.get_by_label("ask for names").check()  # it keeps the focus, and is nothing to type in
    stage.keyboard.press("h")
    expect(stage.locator("html")).to_have_class(re.compile("nameless"))
    stage.evaluate("sessionStorage.setItem('parley-began ' + location.pathname, String(Date.now() - 125_000))")
    stage.reload()
    expect(stage.locator("#stage-clock")).to_have_text(re.compile(r"\d.* 2 min"))
    expect(stage.locator("html")).to_have_attribute("data-stage", "l")
    expect(stage.get_by_role("button", name="Names")).to_have_attribute("aria-pressed", "true")
    ground = "getComputedStyle(document.body).color"
    grounds = [stage.evaluate(ground)]
    for _ in range(3):
        stage.keyboard.press("d")
        grounds.append(stage.evaluate(ground))
    assert grounds[0] == grounds[2] != grounds[1] == grounds[3], "one press, the other one"
    hall.script("GET", f"{base}?wait=20")
    called(hall, base, "preferences")
    expect(stage.locator("#asks > .ask")).to_have_count(1)
    watched.watch.allow("status of 404")  # the stream of the session that is gone
    stage.keyboard.press("r")
    stage.wait_for_url(lambda url: url.endswith("/stage") and base not in url)
    expect(stage.locator("#stage-clock")).to_have_text(re.compile(r"\d.* 0 min"))
    expect(stage.locator("#asks > .ask")).to_have_count(0)
    expect(stage.get_by_role("button", name="Start the parade")).to_be_visible()
    assert {re.match(r"(http://[^/]+|data:)", url)[0] for url in asked} <= {hall.server, "data:"}  # type: ignore[index]


@pytest.mark.requirement("S15", "S39")
def test_a_phone_answers_by_a_link_once(hall: Parley, watched: Any):
    base = session(hall)
    called(hall, base, "preferences")
    ask = hall.script("GET", f"{base}/inbox?wait=20")["open"][0]
    owner = watched(1440)
    owner.goto(hall.code())
    owner.goto(f"{hall.origin}{base}/asks/{ask['id']}")
    owner.get_by_role("link", name="answer link").click()
    owner.get_by_role("button", name="Make an answer link").click()
    url = owner.locator(".addr").inner_text()
    expect(owner.get_by_role("img", name="QR code of the address")).to_be_visible()
    phone, other = watched(java_script_enabled=False), watched()
    for one in (phone, other):
        one.goto(url)
        expect(one.get_by_text("this link works once")).to_be_visible()
    phone.get_by_label("plain").check()
    phone.get_by_role("button", name="Accept").click()
    expect(phone.get_by_role("heading", name="Thank you")).to_be_visible()
    watched.watch.allow("status of 409")
    other.get_by_label("json").check()
    other.get_by_role("button", name="Accept").click()
    expect(other.get_by_role("heading", name="Already answered")).to_be_visible()
    told = hall.script("GET", f"{base}/asks/{ask['id']}")
    assert told["answered_by"]["kind"] == "guest" and "plain" in str(told["outcome"])
