"""Every page at two widths, light and dark: axe-core finds nothing, and nothing scrolls sideways."""

from collections.abc import Callable
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import peers
from tests.browser.conftest import Watch
from tests.browser.parley import Parley

WHERE = {"exclude": [["#log > li:nth-child(n+4)"], ["#rail-list > li:nth-child(n+3)"]]}
"""Rows are all alike: three of them say as much as two hundred, in a fraction of the time."""
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SIZES = """() => Object.fromEntries(
    ['navigation', 'resource'].flatMap(kind => performance.getEntriesByType(kind))
        .map(entry => [entry.name, entry.encodedBodySize]))"""
PATHS = ("", "/tools", "/tools/add", "/tools/plan_trip", "/calls", "/calls/c2", "/log", "/stderr", "/roots", "/connect")


@pytest.fixture
def addresses(page: Page, demo: Callable[[], str], parley: Parley) -> list[str]:
    base = demo()
    for name, arguments in (("add", '{"a": 1, "b": 2}'), ("tool_error", "{}"), ("postcard", "{}")):
        page.goto(f"{base}/tools/{name}?as=json")
        page.fill("#arguments", arguments)
        page.click("#call-go")
        expect(page.locator("#calls > article .st").first).not_to_have_text("Running")
    log = parley.script("GET", base.removeprefix(parley.origin) + "/log")["messages"]
    message = f"{base}/log/{log[1]['seq']}"
    return [parley.origin, *(base + path for path in PATHS), message, f"{parley.origin}/about"]


def axe(page: Page) -> list[str]:
    """What axe-core finds on this page, wide and narrow, light and dark."""
    page.evaluate(peers.axe_script().read_text(encoding="utf-8"))
    complaints = []
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            found = page.evaluate("([where, rules]) => axe.run(where, rules)", [WHERE, RULES])
            complaints += [
                f"{width} {scheme} {one['id']}: {node['html'][:200]}"
                for one in found["violations"]
                for node in one["nodes"]
            ]
    page.set_viewport_size({"width": 1440, "height": 900})
    return complaints


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_axe_finds_nothing_on_any_page(page: Page, addresses: list[str], parley: Parley, watch: Watch):
    watch.allow("404")
    complaints = {}
    for address in [*addresses, f"{parley.origin}/s/nothing"]:
        page.goto(address)
        page.wait_for_load_state("load")
        if found := axe(page):
            complaints[address] = found
    page.goto(parley.origin)
    page.fill("#command_line", "sudo rm -rf /tmp/x")
    page.get_by_role("button", name="Connect", exact=True).click()
    if found := axe(page):
        complaints["consent"] = found
    assert complaints == {}


def test_nothing_scrolls_sideways_on_a_narrow_phone(page: Page, addresses: list[str]):
    page.set_viewport_size({"width": 360, "height": 740})
    too_wide = {}
    for address in addresses:
        page.goto(address)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 360:
            too_wide[address] = width
    assert too_wide == {}


def test_the_first_page_is_small(page: Page, parley: Parley):
    page.goto(parley.origin)
    page.wait_for_load_state("load")
    sizes = page.evaluate(SIZES)
    assert sum(sizes.values()) < 100_000, sizes


def test_the_page_of_a_stranger_says_what_to_do(chromium_browser: Browser, parley: Parley):
    stranger = chromium_browser.new_context()
    page = stranger.new_page()
    answer = page.goto(parley.origin)
    assert answer is not None
    assert answer.status == 401
    expect(page.get_by_role("heading", level=1)).to_contain_text("Open the address that the terminal printed")
    stranger.close()
