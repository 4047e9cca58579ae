"""Finding the way by pointer and keyboard: the switch between sessions, the palette's acts, the rail, the keys."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.parley import Parley
from tests.browser.test_looks import axe


@pytest.mark.requirement("U-M15")
def test_the_overview_counts_everything_without_a_visit(page: Page, demo: Callable[[], str]):
    demo()
    for name in ("n-tools", "n-resources", "n-prompts"):
        expect(page.locator(f"#{name}")).to_have_text(re.compile(r"^\d+$"))
    following = page.locator(".next")
    expect(following).to_contain_text(re.compile(r"All \d+ resources"))
    assert axe(page) == []
    following.get_by_role("link", name="echo", exact=True).click()
    page.wait_for_url("**/tools/echo")


@pytest.mark.requirement("U-M16")
def test_the_header_leads_to_another_session(page: Page, demo: Callable[[], str], parley: Parley):
    first = demo()
    second = demo()
    switch = page.locator("#where .who")
    switch.focus()
    page.keyboard.press("Enter")
    menu = page.locator("#switch")
    expect(menu).to_be_visible()
    expect(menu.locator("li")).to_have_count(2)
    expect(menu.locator("[aria-current=page]")).to_have_attribute(
        "href", re.compile(re.escape(second.removeprefix(parley.server)))
    )
    assert axe(page) == []
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(switch).to_be_focused()
    page.keyboard.press("Enter")
    menu.locator("li a:not([aria-current])").click()
    page.wait_for_url(first)
    page.goto(f"{first}/stage")  # the stage has a header of its own
    switch.click()
    expect(menu.locator("li")).to_have_count(2)


@pytest.mark.requirement("U-M16")
def test_the_selected_tool_is_in_view(page: Page, demo: Callable[[], str]):
    base = demo()
    page.set_viewport_size({"width": 1440, "height": 600})
    last = page.locator("#rail-list a").last.get_attribute("href")
    assert last is not None
    page.goto(base + "/tools/" + last.rsplit("/", 1)[-1])
    expect(page.locator("#rail-list [aria-current]")).to_be_in_viewport()


@pytest.mark.requirement("U-M16")
def test_the_palette_does_what_it_offers(page: Page, demo: Callable[[], str]):
    base = demo()
    page.keyboard.press("Control+k")
    page.keyboard.type("theme")
    expect(page.locator("#palette-list [aria-selected=true]")).to_contain_text("Switch the theme")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.keyboard.press("Control+k")
    page.keyboard.type("disconnect")
    expect(page.locator("#palette-list [aria-selected=true]")).to_contain_text("Disconnect")
    page.keyboard.press("Enter")
    expect(page.locator("#where .lamp")).not_to_have_attribute("data-s", "ready")
    page.wait_for_url(base)
    page.keyboard.press("Control+k")
    page.keyboard.type("reconnect")
    expect(page.locator("#palette-list [aria-selected=true]")).to_contain_text("Reconnect")
    page.keyboard.press("Enter")
    expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")


@pytest.mark.requirement("U-M16")
def test_the_palette_leads_to_a_message(page: Page, demo: Callable[[], str]):
    base = demo()
    page.keyboard.press("Control+k")
    page.keyboard.type("initialize message sent")
    expect(page.locator("#palette-list [aria-selected=true] .k")).to_have_text("message")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(re.escape(base) + r"/log/\d+"))


@pytest.mark.requirement("U-M17")
def test_who_comes_by_the_palette_is_in_the_first_field(page: Page, demo: Callable[[], str]):
    base = demo()
    page.keyboard.press("Control+k")
    page.keyboard.type("echo")
    expect(page.locator("#palette-list [aria-selected=true]")).to_contain_text("echo")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{base}/tools/echo")
    field = page.locator("#main form :is(input:not([type=hidden]), textarea)").first
    expect(field).to_be_focused()
    page.keyboard.type("typed at once")
    expect(field).to_have_value("typed at once")
    page.reload()
    expect(page.locator("body")).to_be_focused()


@pytest.mark.requirement("U-M17")
def test_the_page_says_how_to_see_the_keys(page: Page, demo: Callable[[], str]):
    demo()
    page.get_by_role("button", name="Keys").click()
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Keys")).to_be_focused()
