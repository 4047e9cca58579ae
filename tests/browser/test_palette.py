"""The command palette and the list of keys, by keyboard alone; the log's filter, follow and height."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.parley import Parley
from tests.browser.test_looks import axe


def selected(page: Page) -> str:
    return page.locator("#palette-list [aria-selected=true]").inner_text()


def test_the_palette_goes_to_a_tool_by_keyboard(page: Page, demo: Callable[[], str]):
    base = demo()
    page.locator(".skip").focus()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-box")).to_be_focused()
    expect(page.locator("#palette-list [role=option]").first).to_be_visible()
    page.keyboard.type("echo")
    expect(page.locator("#palette-list [aria-selected=true]")).to_contain_text("echo")
    active = page.locator("#palette-box").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    page.wait_for_url(f"{base}/tools/echo")


def test_arrows_move_escape_closes_and_the_focus_returns(page: Page, demo: Callable[[], str]):
    demo()
    page.get_by_role("button", name="Go to anything").click()
    expect(page.locator("#palette-list [role=option]").first).to_be_visible()
    first = selected(page)
    page.keyboard.press("ArrowDown")
    assert selected(page) != first
    page.keyboard.press("ArrowUp")
    assert selected(page) == first
    page.keyboard.press("ArrowUp")
    assert page.locator("#palette-list [role=option]").last.get_attribute("aria-selected") == "true"
    page.keyboard.type("nothing is called so")
    expect(page.locator("#palette-say")).to_have_text("No results.")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    expect(page.locator("#find")).to_be_focused()


def test_the_palette_knows_pages_calls_and_asks(page: Page, demo: Callable[[], str], parley: Parley):
    base = demo()
    path = base.removeprefix(parley.origin)
    params = {"name": "echo", "arguments": {"message": "<img src=x>"}}
    parley.script("POST", f"{path}/calls", method="tools/call", params=params)
    items = parley.script("GET", f"{path}/palette")["items"]
    assert {"page", "tool", "call"} <= {one["kind"] for one in items}
    assert all(one["href"].startswith("/") for one in items)
    page.keyboard.press("Control+k")
    page.keyboard.type("stderr")
    expect(page.locator("#palette-list [aria-selected=true]")).to_contain_text("Stderr")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{base}/stderr")


def test_the_keys_are_listed(page: Page, demo: Callable[[], str]):
    demo()
    page.locator("#find").focus()
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    expect(page.locator("#help")).to_contain_text("The next ask")
    page.keyboard.press("/")
    expect(page.locator("#logfilter")).not_to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    expect(page.locator("#find")).to_be_focused()
    page.locator("#logfilter").focus()
    page.keyboard.type("?")
    expect(page.locator("#help")).to_be_hidden()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_axe_finds_nothing_in_the_overlays(page: Page, demo: Callable[[], str]):
    demo()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-list [role=option]").first).to_be_visible()
    assert axe(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert axe(page) == []


# --------------------------------------------------------------------------------------------------------------- log


def talk(parley: Parley, path: str, message: str) -> None:
    params = {"name": "echo", "arguments": {"message": message}}
    call = parley.script("POST", f"{path}/calls", method="tools/call", params=params)["id"]
    parley.script("GET", f"{path}/calls/{call}?wait=20")


def test_the_filter_holds_while_messages_arrive(page: Page, demo: Callable[[], str], parley: Parley):
    base = demo()
    path = base.removeprefix(parley.origin)
    talk(parley, path, "needle one")
    page.goto(f"{base}/log")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    page.fill("#logfilter", "needle")
    expect(page.locator("#found > li")).to_have_count(2)
    expect(page.locator("#log-matching")).to_have_text(re.compile(r"^2 of \d+$"))
    page.locator("label", has_text="Sent").click()
    expect(page.locator("#found > li")).to_have_count(1)
    assert "dir=out" in page.url
    for number in range(3):
        talk(parley, path, f"hay {number}")
    talk(parley, path, "needle two")
    expect(page.locator("#found > li")).to_have_count(2)
    expect(page.locator("#found > li").last).to_contain_text("needle two")
    expect(page.locator("#found > li", has_text="hay")).to_have_count(0)
    expect(page.locator("#log > li").first).to_be_hidden()
    page.reload()
    expect(page.locator("#found > li")).to_have_count(2)
    page.locator("#found a.m").first.click()
    expect(page.locator("#detail")).to_contain_text("needle one")
    expect(page.locator("#found a.m[aria-current]")).to_have_count(1)
    page.fill("#logfilter", "")
    page.locator("label", has_text="Both").click()
    expect(page.locator("#log > li").first).to_be_visible()
    expect(page.locator("#found")).to_be_hidden()
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids)), [one for one in ids if ids.count(one) > 1]


def test_following_can_be_switched_off(page: Page, demo: Callable[[], str], parley: Parley):
    base = demo()
    path = base.removeprefix(parley.origin)
    for number in range(15):
        talk(parley, path, f"word {number}")
    page.set_viewport_size({"width": 1440, "height": 500})
    page.goto(f"{base}/log")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    page.get_by_role("button", name="Following").click()
    expect(page.locator("#follow")).to_have_attribute("aria-pressed", "false")
    top = page.evaluate("document.querySelector('#logscroll').scrollTop")
    talk(parley, path, "the newest")
    expect(page.locator("#log > li", has_text="the newest").first).to_be_attached()
    assert page.evaluate("document.querySelector('#logscroll').scrollTop") == top
    page.locator("#follow").click()
    expect(page.locator("#log > li").last).to_be_in_viewport()


def test_the_log_is_exported(page: Page, demo: Callable[[], str]):
    page.goto(f"{demo()}/log")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 3
    assert download.value.suggested_filename.endswith(".jsonl")


def test_the_drawer_grows_by_keyboard_and_stays_so(page: Page, demo: Callable[[], str]):
    base = demo()
    before = page.locator("#drawer").bounding_box()
    page.locator("#grip").focus()
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    after = page.locator("#drawer").bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] > before["height"] + 80
    page.goto(f"{base}/tools")
    again = page.locator("#drawer").bounding_box()
    assert again is not None
    assert again["height"] == after["height"]


def test_typing_on_while_the_filter_asks_is_no_failure(page: Page, demo: Callable[[], str], parley: Parley):
    base = demo()
    talk(parley, base.removeprefix(parley.origin), "needle one")
    page.goto(f"{base}/log")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    held: list[Route] = []
    page.route(re.compile(r"/log\?q=need&"), lambda route: held.append(route))
    page.evaluate("() => { window.asked = 0; document.addEventListener('htmx:config:request', () => window.asked++); }")
    with page.expect_request(re.compile(r"/log\?q=need&")):
        page.fill("#logfilter", "need")
    page.fill("#logfilter", "no such needle")
    page.wait_for_function("() => window.asked === 2")
    held[0].continue_()
    expect(page.locator("#log-matching")).to_have_text(re.compile("^0 of"))
    expect(page.locator("#found > li")).to_have_count(0)
    expect(page.locator(".toast")).to_have_count(0)
