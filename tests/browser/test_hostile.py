"""A server that attacks the page stays text on every page of it (S29-S32)."""

import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Watch
from tests.browser.parley import Parley

SERVER = Path(__file__).parents[1] / "servers" / "hostile.py"
ODD_NAMES = {"": "~14", ".": "~15", "..": "~16", "~1": "~17", "same": "~19", "../../about": "~22"}


@pytest.fixture
def hostile(page: Page, parley: Parley) -> str:
    target = {"transport": "stdio", "command": sys.executable, "args": ["-I", "-S", str(SERVER)]}
    session = parley.script("POST", "/s", target=target)["url"]
    page.goto(parley.origin + session)
    expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")
    expect(page.locator("#n-tools")).not_to_be_empty()
    return page.url


def harmless(page: Page) -> None:
    """Nothing ran, nothing was replaced, nothing of the server became an element with powers."""
    assert page.evaluate("window.pwned") is None
    assert page.locator("main").count() == 1
    assert "stolen" not in page.title().split(" ")
    powers = "[onerror], [onload], [onfocus], [srcdoc], iframe, main script, [href^=javascript], main [autofocus]"
    assert page.locator(powers).count() == 0
    assert page.locator("[hx-get='/about'], [data-hx-get], [hx-on\\:load]").count() == 0


@pytest.mark.requirement("S29", "S30", "R5-74")
def test_hostile_text_is_inert_on_every_page(page: Page, hostile: str, parley: Parley, context: BrowserContext):
    harmless(page)
    keys = parley.script("GET", hostile.removeprefix(parley.origin) + "/tools")["keys"]
    assert len(keys) == 27
    for path in ("", "/tools", "/calls", "/log", "/stderr", "/roots", "/connect"):
        page.goto(hostile + path)
        expect(page.locator("#pill")).to_have_attribute("data-state", "live")
        harmless(page)
    for key in keys:
        answer = page.goto(f"{hostile}/tools/{quote(key, safe='~')}")
        assert answer is not None
        assert answer.status == 200, key
        harmless(page)
    page.goto(f"{parley.origin}/")
    harmless(page)


@pytest.mark.requirement("S29", "S30")
@pytest.mark.slow
def test_hostile_results_arrive_live_and_stay_text(page: Page, hostile: str, parley: Parley, watch: Watch):
    watch.allow("422")
    base = hostile.removeprefix(parley.origin)
    keys = parley.script("GET", f"{base}/tools")["keys"]
    other = page.context.new_page()
    other.goto(f"{hostile}/calls")
    page.bring_to_front()  # the browser lets a tab behind another one draw once a second
    for key in keys[:3]:
        page.goto(f"{hostile}/tools/{quote(key, safe='~')}")
        expect(page.locator("#pill")).to_have_attribute("data-state", "live")
        harmless(page)
        page.click("#as-json")
        page.fill("#arguments", "{}")
        page.click("#call-go")
        harmless(page)
        page.click("#call-anyway")
        expect(page.locator("#calls > article .st").first).to_have_text("Failed" if key == keys[1] else "Done")
        harmless(page)
    expect(other.locator("#calls > li")).to_have_count(3)
    harmless(other)
    page.goto(f"{hostile}/calls/c1")
    harmless(page)
    log = parley.script("GET", f"{base}/log")["messages"]
    for message in log[-6:]:
        page.goto(f"{hostile}/log/{message['seq']}")
        harmless(page)


def test_the_address_of_an_odd_name_leads_to_its_tool(page: Page, hostile: str, watch: Watch):
    watch.allow("404")
    page.goto(f"{hostile}/tools")
    for key in ODD_NAMES.values():
        assert page.locator(f"#tool-list a[href$='/tools/{key}']").count() == 1
        answer = page.goto(f"{hostile}/tools/{key}")
        assert answer is not None
        assert answer.status == 200
        page.goto(f"{hostile}/tools")
    answer = page.goto(f"{hostile}/tools/~999")
    assert answer is not None
    assert answer.status == 404
