"""What a newcomer stumbled over: the keyboard after an answer, a page that has ended, two calls of the same name."""

import os
import re
import signal
import tempfile
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.desk import Desk, called, opened, script, visit
from tests.browser.parley import Parley, running
from tests.browser.test_inbox import settled, the
from tests.browser.test_looks import axe
from tests.browser.test_tomorrow import port_of, started
from tests.drive import SERVERS

CRM = f"python3 {SERVERS / 'crm.py'}"


# ----------------------------------------------------------------------------------------- the keyboard after an answer


@pytest.mark.requirement("U-S2")
def test_the_keyboard_goes_on_to_the_next_ask_of_the_same_call_that_comes_a_moment_later(page: Page, desk: Desk):
    visit(page, desk)
    desk.call("parade")
    first = the(page)
    first.get_by_role("button", name="Decline").focus()
    page.keyboard.press("Enter")
    settled(first, "answered")
    second = the(page)
    expect(second).to_have_attribute("data-s", "open")
    page.wait_for_function("id => document.activeElement.closest('.ask')?.id === id", arg=second.get_attribute("id"))


@pytest.mark.requirement("U-S2")
def test_it_stays_with_whoever_has_gone_on_to_something_else(page: Page, desk: Desk):
    visit(page, desk)
    desk.call("parade")
    first = the(page)
    page.evaluate(
        """id => new MutationObserver(() => {
            if (document.getElementById(id)?.dataset.s === 'answered') document.querySelector('#theme').focus();
        }).observe(document.querySelector('#asks'), { childList: true })""",
        first.get_attribute("id"),
    )
    first.get_by_role("button", name="Decline").focus()
    page.keyboard.press("Enter")
    settled(first, "answered")
    second = the(page)
    expect(second).to_have_attribute("data-s", "open")
    expect(page.locator("#theme")).to_be_focused()


@pytest.mark.requirement("U-S2")
def test_an_answer_that_waits_for_its_round_is_a_line_in_every_tab(page: Page, context: BrowserContext, parley: Parley):
    desk = opened(parley, {"transport": "demo"}, era="modern")
    visit(page, desk)
    desk.call("three_at_once")
    expect(page.locator("#asks > .ask[data-s=open]")).to_have_count(3)
    other = context.new_page()
    visit(other, desk, "/inbox")
    other.locator("#asks > .ask[data-s=open]").first.get_by_role("button", name="Decline").click()
    for tab in (page, other):
        held = tab.locator("#asks > .ask[data-s=held]")
        expect(held.locator("summary")).to_contain_text("declined, not sent yet")
        expect(held.locator("> details")).not_to_have_attribute("open", "")
        expect(tab.locator("#asks > .ask[data-s=open]")).to_have_count(2)


# ------------------------------------------------------------------------------------------------ a page that has ended


@pytest.mark.requirement("U-S8", "U-S12")
def test_where_a_call_was_sent_from_a_restarted_parley_offers_the_same_server(chromium_browser: Browser):
    context = chromium_browser.new_context(viewport={"width": 1440, "height": 900})
    tab = context.new_page()
    with tempfile.TemporaryDirectory(prefix="parley-newcomer-") as data:
        with running("--data-dir", data) as first:
            first.login(tab)
            started(tab, CRM)
            base = tab.url
            tab.goto(f"{base}/tools/search_accounts")
            expect(tab.locator("#pill")).to_have_attribute("data-state", "live")
            # The server goes first, so the button says what it would do, and then there is nobody to do it.
            os.kill(first.script("GET", base.removeprefix(first.origin))["connection"]["pid"], signal.SIGKILL)
            expect(tab.locator("#call-go")).to_have_text(re.compile("Reconnect and call"), use_inner_text=True)
            port = port_of(first)
        expect(tab.locator("#call-go")).to_be_disabled()
        expect(tab.locator(".callbar .instead")).to_have_text("Parley has stopped.")
        with running("--data-dir", data, "--port", port):
            instead = tab.locator(".callbar .instead")
            expect(instead).to_contain_text("Parley was restarted.")
            expect(tab.locator("#call-go")).to_be_disabled()
            expect(tab.locator("#call-go")).to_have_attribute("title", "Parley was restarted.")
            assert "Reconnect" not in tab.locator("#call-go").inner_text()
            instead.get_by_role("button", name="Connect to the same server again").click()
            expect(tab.locator("#where .lamp")).to_have_attribute("data-s", "ready")
    context.close()


@pytest.mark.requirement("U-S12")
def test_a_call_is_repeated_on_a_connection_that_is_made_again_first(page: Page, parley: Parley):
    desk = opened(parley, script("crm.py"))
    called(page, desk.url, "wrapped", {"value": "once"})
    expect(page.locator("#calls .st").first).to_have_text("Done")
    os.kill(desk.get("")["connection"]["pid"], signal.SIGKILL)
    again = page.locator("#calls > .call:first-child .argline .go")
    expect(again).to_have_text(re.compile("Reconnect and call"), use_inner_text=True)
    again.click()
    expect(page.locator("#calls > article")).to_have_count(2)
    expect(page.locator("#calls .st").first).to_have_text("Done")
    expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")


# ------------------------------------------------------------------------------------------------------------- compare


@pytest.mark.requirement("U-S9")
def test_the_older_call_stands_left_and_the_menus_say_in_what_calls_differ(page: Page, parley: Parley):
    desk = opened(parley, script("crm.py"))
    for limit in (3, 5):
        called(page, desk.url, "search_accounts", {"query": "energy", "limit": limit})
        expect(page.locator("#calls .st").first).to_have_text("Done")
    earlier = page.locator("#calls > .earlier")
    expect(earlier.locator(".args")).to_have_text(re.compile(r'query\s+"energy"\s+limit\s+3'))
    earlier.get_by_role("link", name="Compare").click()
    expect(page.locator("#compare .l.hd")).to_contain_text("Call 1")
    expect(page.locator("#compare .r.hd")).to_contain_text("Call 2")
    expect(page.locator("#compare .mid", has_text="Result")).to_contain_text("≠ 2 changes")
    expect(page.locator("#diff-at")).to_have_text("2 differences")
    # From the page of the older call the older one stands left, too.
    visit(page, desk, "/calls/c1")
    page.locator(".compare-link > summary").click()
    other = page.locator(".compare-link .menu a", has_text="Call 2")
    expect(other).to_contain_text("limit 5")
    expect(other).to_contain_text(re.compile(r"\d\d:\d\d:\d\d, done in "))
    other.click()
    expect(page.locator("#compare .l.hd")).to_contain_text("Call 1")
    page.locator(".l .pick-call > summary").click()
    expect(page.locator(".l .menu a", has_text="Call 1").first).to_contain_text("limit 3")


@pytest.mark.requirement("U-S9")
def test_calls_of_two_sessions_have_two_names(page: Page, parley: Parley):
    one, two = (opened(parley, script("crm.py")) for _ in range(2))
    for desk in (one, two):
        desk.result(desk.call("wrapped", value="x"))
    there = two.base.rpartition("/")[2]
    visit(page, one, f"/compare?left=c1&right={there}:c1")
    expect(page.locator("#compare .l.hd summary")).to_contain_text("Call 1 (this session)")
    expect(page.locator("#compare .r.hd summary")).to_contain_text("Call 1 (other session)")
    assert axe(page, around=False) == []


# --------------------------------------------------------------------------------------------------- what has no room


@pytest.mark.requirement("U-S3")
def test_a_long_command_shows_its_end_and_all_of_it_to_the_keyboard(page: Page, parley: Parley):
    path = f"/home/me/{'deep/' * 20}the_server.py"
    target = {"transport": "stdio", "command": "python3", "args": [path]}
    parley.script("POST", "/targets", name="Long", target=target)
    page.goto(f"{parley.origin}/")
    shown = page.locator(".srv .nm code[title*=the_server]")
    expect(shown).to_have_attribute("title", f"python3 {path}")
    tail, box = shown.locator(".tail-of").bounding_box(), shown.bounding_box()
    assert tail is not None and box is not None and tail["x"] + tail["width"] <= box["x"] + box["width"] + 1
    expect(shown.locator(".tail-of")).to_have_text(re.compile(r"the_server\.py$"))
    page.get_by_role("link", name="Edit Long").focus()
    page.keyboard.press("Shift+Tab")  # by keyboard, so that the focus is seen
    assert shown.evaluate("one => one.scrollWidth <= one.clientWidth || getComputedStyle(one).display === 'inline'")


@pytest.mark.requirement("U-S11")
def test_on_a_phone_the_header_has_room_for_the_name_of_the_server(page: Page, demo: Callable[[], str]):
    demo()
    for width in (390, 360):
        page.set_viewport_size({"width": width, "height": 800})
        name = page.locator("#where .lamp b")
        assert name.evaluate("one => one.scrollWidth <= one.clientWidth"), "the name is not cut"
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    expect(page.locator("#waiting")).to_have_text(re.compile("0 waiting"))  # for who does not see the sign
