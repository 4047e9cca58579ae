"""Every page at three widths, light and dark: axe-core finds nothing, the text stands out, nothing scrolls sideways.

A page is loaded once. Width and scheme change on the page that is there: axe-core runs whole the first time, and then
only the rules that a width or a scheme can change. What is the same on every page is looked at on the first one. The
contrast of every text is measured each time, also where axe-core cannot tell a colour.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import peers
from tests.browser.conftest import Watch
from tests.browser.desk import Desk, recorded_pages
from tests.browser.parley import Parley

ALIKE = [
    ["#log > li:nth-child(n+4)"],
    ["#rail-list > li:nth-child(n+3)"],
    [".json > details > div > :nth-child(n+4)"],
    # What is inside a sandboxed frame is the server's, and no script looks into it.
    [".framed iframe"],
]
"""Rows are all alike: three of them say as much as two hundred, in a fraction of the time."""
AROUND = [[".top"], [".rail"], [".inbox"], ["#drawer"]]
"""What stands around the main part of every page of a session."""
EVERYTHING = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
BY_WIDTH = ["target-size", "scrollable-region-focusable", "aria-hidden-focus", "button-name", "label"]
BY_SCHEME = ["color-contrast"]
WIDTHS = (1440, 900, 360)
MEASURED = {(1440, "light"), (1440, "dark"), (360, "dark")}
"""Where contrast is measured by ourselves: the colours do not change with the width, what stands on what does."""
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LEAST_CONTRAST = 4.5
CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
SIZES = """() => Object.fromEntries(
    ['navigation', 'resource'].flatMap(kind => performance.getEntriesByType(kind))
        .map(entry => [entry.name, entry.encodedBodySize]))"""
PATHS = (
    "/tools/every_field",
    "/tools/add?as=json",
    "/inbox",
    "/connect",
    "/prompts/plan_weekend",
    "/resources/one?uri=desk%3A%2F%2Fguide",
    "/compose?method=initialize",
)


def axe(page: Page, *, around: bool = True, widths: tuple[int, ...] = WIDTHS) -> list[str]:
    """What is wrong with this page: at these widths, light and dark. Leaves it wide and light."""
    page.evaluate(peers.axe_script().read_text(encoding="utf-8"))
    where = {"exclude": ALIKE if around else ALIKE + AROUND}
    complaints: list[str] = []

    def run(name: str, rules: dict[str, Any]) -> None:
        how = {**rules, "resultTypes": ["violations"], "preload": False}
        found = page.evaluate("([where, how]) => axe.run(where, how)", [where, how])
        complaints.extend(
            f"{name} {one['id']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"]
        )

    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in SCHEMES:
            name = f"{width} {scheme}"
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            if (width, scheme) == (WIDTHS[0], "light"):
                run(name, {"runOnly": EVERYTHING})
            elif (width, scheme) == (WIDTHS[1], "dark"):
                run(name, {"runOnly": BY_WIDTH})
            elif (width, scheme) == (WIDTHS[2], "dark"):
                run(name, {"runOnly": BY_WIDTH + BY_SCHEME})
            if (width, scheme) in MEASURED:
                measured = page.evaluate(CONTRAST, LEAST_CONTRAST)
                assert measured["texts"] > 3
                complaints.extend(f"{name} contrast {value:.2f}: {html}" for value, html in measured["weak"])
    if (wide := page.evaluate("document.documentElement.scrollWidth")) > widths[-1]:
        complaints.append(f"{widths[-1]} scrolls sideways: {wide}")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    return complaints


@pytest.fixture
def addresses(page: Page, demo: Callable[[], str], parley: Parley) -> list[str]:
    """Every page of a session that has calls, findings and open asks: what the rail leads to, and more."""
    base = demo()
    path = base.removeprefix(parley.origin)
    desk = Desk(parley, path)
    recording = desk.record(on=True)

    def call(name: str, **arguments: Any) -> str:
        params = {"name": name, "arguments": arguments}
        cid: str = parley.script("POST", f"{path}/calls", method="tools/call", params=params)["id"]
        parley.script("GET", f"{path}/calls/{cid}?wait=20")
        return cid

    wrong, shown = call("tool_error"), call("postcard")
    text = call(
        "echo", message="# Head\n\n**bold** `code` [a link](https://example.org/)\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    call("three_at_once")
    asks = parley.script("GET", f"{path}/inbox?wait=20")["open"]
    desk.record(on=False)
    log = parley.script("GET", f"{path}/log")["messages"]
    rail = [str(link.get_attribute("href")) for link in page.locator(".rail nav[aria-label=Session] a").all()]
    calls = [f"/calls/{cid}" for cid in (wrong, shown, text)]
    own = [base + one for one in (*PATHS, *calls, f"/log/{log[1]['seq']}")]
    own += [f"{base}/asks/{ask['id']}" for ask in asks[:1]]
    own += [parley.origin + one for one in recorded_pages(recording).values()]
    return [f"{parley.origin}/", f"{parley.origin}/about", *(parley.server + one for one in rail), *own]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_page_is_accessible_at_every_width_light_and_dark(
    page: Page, addresses: list[str], parley: Parley, watch: Watch
):
    watch.allow("404")
    complaints: dict[str, list[str]] = {}

    def look(name: str, *, around: bool = False) -> None:
        if found := axe(page, around=around):
            complaints[name] = found

    for address in dict.fromkeys([*addresses, f"{parley.origin}/s/nothing"]):
        page.goto(address)
        for button in page.locator(".as button:not([data-as=text])").all():
            button.click()
            expect(button).to_have_attribute("aria-pressed", "true")
        look(address, around=address == addresses[2])
    page.goto(addresses[2])
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-list [role=option]").first).to_be_visible()
    look("the palette", around=True)
    page.goto(f"{parley.origin}/")
    page.fill("#command_line", "env sudo rm -rf /tmp/x")
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_role("heading", name="Start this command?")).to_be_visible()
    look("consent")
    assert complaints == {}, json.dumps(complaints, indent=1)


def tab_to(page: Page, selector: str, most: int = 60) -> None:
    """Press Tab until the focus is there: nothing is reached that a keyboard does not reach."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} is not reached by {most} steps of Tab")


def test_the_whole_journey_by_keyboard_alone(page: Page):
    tab_to(page, "form:has(> [type=hidden][value=demo]) button")
    page.keyboard.press("Enter")
    expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")
    expect(page.locator("#n-tools")).to_have_text(re.compile(r"\d"))
    page.keyboard.press("Control+k")
    page.keyboard.type("echo")
    expect(page.locator("#palette-list [aria-selected=true]")).to_contain_text("echo")
    page.keyboard.press("Enter")
    page.wait_for_url("**/tools/echo")
    expect(page).to_have_title(re.compile("^echo · "))
    expect(page.locator("#tool-form :is(input, textarea):focus")).to_have_count(1)
    page.keyboard.type("typed")
    page.keyboard.press("Control+Enter" if page.evaluate("document.activeElement.matches('textarea')") else "Enter")
    expect(page.locator("#calls > article pre.text").first).to_have_text("typed")
    tab_to(page, "#calls pre.text")
    tab_to(page, "#grip")
    page.keyboard.press("/")
    expect(page.locator("#logfilter")).to_be_focused()
    page.keyboard.type("tools/call")
    expect(page.locator("#found > li")).to_have_count(2)
    tab_to(page, "#found a.m")
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_contain_text("typed")
    page.keyboard.press("Escape")
    expect(page.locator("#message")).to_have_count(0)
    expect(page.locator("#found a.m:focus")).to_have_count(1)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.go_back()
    expect(page.locator("#connection")).to_be_visible()
    page.go_forward()
    expect(page.locator("#calls > article pre.text").first).to_have_text("typed")


def test_the_first_page_is_small(page: Page, parley: Parley):
    page.goto(f"{parley.origin}/")
    page.wait_for_load_state("load")
    sizes = page.evaluate(SIZES)
    assert sum(sizes.values()) < 60_000, sizes
    assert all(address.startswith(parley.server) for address in sizes)


def test_the_page_of_a_stranger_says_what_to_do(chromium_browser: Browser, parley: Parley):
    stranger = chromium_browser.new_context()
    page = stranger.new_page()
    answer = page.goto(parley.server)
    assert answer is not None
    assert answer.status == 401
    expect(page.get_by_role("heading", level=1)).to_have_text("You are not signed in.")
    expect(page.get_by_role("main")).to_contain_text("Open the address that its terminal shows.")
    stranger.close()
