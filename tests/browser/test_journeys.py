"""What people do: connect, call, watch, come back, by mouse and by keyboard."""

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests import peers
from tests.browser.conftest import Watch
from tests.browser.parley import Parley

SERVERS = Path(__file__).parents[1] / "servers"


def call(page: Page, arguments: str) -> None:
    if page.locator(".bench[data-folded]").count():
        page.locator("[data-edit]").first.click()
    if page.get_attribute("#as-json", "aria-pressed") != "true":
        page.click("#as-json")
    page.fill("#arguments", arguments)
    page.click("#call-go")


def rows(page: Page) -> list[str]:
    return page.eval_on_selector_all("#log > li", "rows => rows.map(row => row.id)")


def connect_to(page: Page, *argv: str) -> None:
    """By the form, with the consent card in between."""
    page.fill("#command_line", shlex.join(argv))
    page.get_by_role("button", name="Connect", exact=True).click()
    page.get_by_role("button", name="Start it").click()


def test_one_click_connects_to_the_demo_and_the_page_needs_no_reload(page: Page, own_demo: Callable[[], str]):
    loads: list[str] = []
    page.on("framenavigated", lambda frame: loads.append(frame.url))
    own_demo()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nordwind Travel Desk")
    expect(page.get_by_text("Connection log")).to_be_visible()
    expect(page.locator("#log > li").first).to_contain_text("initialize")
    assert len(loads) == 1


def test_a_call_settles_in_place_with_its_result(page: Page, demo: Callable[[], str]):
    page.goto(f"{demo()}/tools/echo")
    call(page, '{"message": "Hello, server"}')
    card = page.locator("#calls > article").first
    expect(card.locator(".st")).to_have_text("Done")
    expect(card.locator("pre.text")).to_have_text("Hello, server")
    expect(page.locator("#announce")).to_have_text(re.compile("done"))
    page.set_viewport_size({"width": 390, "height": 500})
    page.evaluate("scrollTo(0, 0)")
    expect(card.locator("header")).to_be_in_viewport()  # the form is folded, also on a phone
    call(page, '{"message": "Once more"}')
    expect(page.locator("#calls > article", has_text="Once more").locator("header")).to_be_in_viewport()


def test_the_argument_box_begins_with_what_the_schema_wants(page: Page, demo: Callable[[], str]):
    page.goto(f"{demo()}/tools/slow_count?as=json")
    assert page.input_value("#arguments") == '{\n  "steps": 5,\n  "delay": 0.5\n}'


def test_a_running_call_shows_progress_and_can_be_cancelled(page: Page, demo: Callable[[], str]):
    page.goto(f"{demo()}/tools/slow_count")
    call(page, '{"steps": 500, "delay": 0.05}')
    card = page.locator("#calls > article").first
    expect(card.locator("progress")).to_have_attribute("max", re.compile("500"))
    expect(card.locator("time[data-deadline]")).to_contain_text("left")
    card.get_by_role("button", name="Cancel the call").click()
    expect(card.locator(".st")).to_have_text("Cancelled")


def test_arguments_that_are_no_json_are_refused_beside_the_form(page: Page, demo: Callable[[], str], watch: Watch):
    watch.allow("422")
    page.goto(f"{demo()}/tools/echo")
    call(page, '{"message": ')
    expect(page.locator("#tool-form")).to_contain_text("Not JSON: line 1, column 13")
    assert page.input_value("#arguments") == '{"message": '
    call(page, '{"message": "now it is"}')
    expect(page.locator("#calls > article .st").first).to_have_text("Done")
    expect(page.locator("#tool-form .err")).to_have_count(0)


def test_two_tabs_agree_and_a_reload_shows_the_same(page: Page, context: BrowserContext, demo: Callable[[], str]):
    base = demo()
    page.goto(f"{base}/tools/slow_count")
    other = context.new_page()
    other.goto(f"{base}/tools/slow_count")
    expect(other.locator("#pill")).to_have_attribute("data-state", "live")
    page.bring_to_front()
    call(page, '{"steps": 60, "delay": 0.05}')
    for tab in (page, other):
        expect(tab.locator("#calls > article .st")).to_have_text("Running")
    third = context.new_page()
    third.goto(f"{base}/tools/slow_count")
    expect(third.locator("#calls > article .st")).to_have_text("Running")
    for tab in (page, other, third):
        expect(tab.locator("#calls > article .st")).to_have_text("Done")
    for tab in (other, third):
        expect(tab.locator("#log-count")).to_have_text(page.locator("#log-count").inner_text())
    assert rows(page) == rows(other) == rows(third)
    assert len(rows(page)) == len(set(rows(page)))
    before = rows(page)
    page.reload()
    assert rows(page) == before
    expect(page.locator("#calls > article pre.text")).to_have_text("Counted 60 waves.")


def test_a_message_opens_beside_the_rows_with_its_pair(page: Page, demo: Callable[[], str]):
    page.goto(f"{demo()}/log")
    page.locator("#log a.m", has_text="initialize").first.click()
    expect(page.locator("#detail section")).to_have_count(2)
    expect(page.locator("#detail")).to_contain_text("protocolVersion")
    expect(page.locator("#log a.m[aria-current]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("#detail")).to_be_empty()


def test_the_filter_finds_rows_and_new_rows_obey_it(page: Page, demo: Callable[[], str]):
    page.goto(f"{demo()}/tools/echo")
    page.keyboard.press("/")
    expect(page.locator("#logfilter")).to_be_focused()
    page.keyboard.type("initialize")
    expect(page.locator("#log > li:visible", has_text="tools/list")).to_have_count(0)
    call(page, '{"message": "hidden from the filter"}')
    expect(page.locator("#calls > article .st").first).to_have_text("Done")
    expect(page.locator("#log > li", has_text="hidden from the filter").first).to_be_hidden()
    page.fill("#logfilter", "")
    expect(page.locator("#log > li", has_text="hidden from the filter").first).to_be_visible()


@pytest.mark.requirement("R5-71")
def test_a_command_is_shown_in_full_before_it_starts(page: Page, parley: Parley):
    page.fill("#command_line", "env sudo -n 'a b' --flag=\"x y\"")
    expect(page.locator("#argv")).to_contain_text("runs as")
    page.locator("[name=env_name]").first.fill("SECRET_TOKEN")
    page.locator("[name=env_value]").first.fill("do-not-show-me")
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Start this command?")
    assert page.locator(".argv code").all_inner_texts() == ["env", "sudo", "-n", "a b", "--flag=x y"]
    expect(page.locator(".argv .risky")).to_contain_text("another user")
    expect(page.locator("dl")).to_contain_text("SECRET_TOKEN")
    assert "do-not-show-me" not in page.content()
    page.get_by_role("link", name="Do not start it").click()
    assert parley.script("GET", "/")["sessions"] == []


def test_a_command_that_fails_says_why_and_what_to_do(page: Page):
    connect_to(page, sys.executable, "-c", "import sys; sys.exit('No such file: travel.py')")
    trouble = page.locator("#trouble")
    expect(trouble).to_contain_text("code 1")
    expect(trouble).to_contain_text("No such file: travel.py")
    expect(page.locator("#command_line")).to_be_focused()


def test_connecting_can_be_cancelled(page: Page):
    connect_to(page, sys.executable, "-c", "import time; time.sleep(60)")
    expect(page.locator("time[data-deadline]")).to_contain_text("left")
    page.get_by_role("button", name="Cancel connecting").click()
    # Nothing was ever connected: the form is there again, as it was typed.
    expect(page.locator("#command_line")).to_have_value(re.compile(r"time\.sleep"))


def test_a_crash_is_seen_said_and_offered_a_reconnect(page: Page, own_demo: Callable[[], str], parley: Parley):
    import os
    import signal

    base = own_demo()
    page.goto(f"{base}/tools/echo")
    pid = parley.script("GET", page.url.removeprefix(parley.origin).split("/tools")[0])["connection"]["pid"]
    os.kill(pid, signal.SIGKILL)
    expect(page.locator("#notice .fault")).to_be_visible()
    page.locator("#notice").get_by_role("button", name="Reconnect").click()
    expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")
    expect(page.locator("#log > li", has_text="initialize")).not_to_have_count(2)


@pytest.mark.peers
def test_a_tool_of_server_everything_is_called_from_the_page(page: Page):
    connect_to(page, *peers.everything_stdio())
    expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")
    page.get_by_role("link", name="Tools", exact=False).first.click()
    page.locator("#tool-list a", has=page.get_by_text("echo", exact=True)).click()
    call(page, '{"message": "from the page"}')
    expect(page.locator("#calls > article pre.text")).to_contain_text("from the page")


def test_roots_are_changed_by_the_form(page: Page, demo: Callable[[], str]):
    page.goto(f"{demo()}/roots")
    page.locator("[name=root_uri]").last.fill("file:///tmp/project")
    page.get_by_role("button", name="Save and tell the server").click()
    expect(page.locator("#roots")).to_contain_text("file:///tmp/project")
    expect(page.locator("#log")).to_contain_text("roots/list_changed")
    page.locator("[name=root_uri]").last.fill("http://not-a-file")


def test_the_theme_is_kept(page: Page):
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.click("#theme")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") is None


def test_a_closed_session_says_so_in_its_other_tab(page: Page, context: BrowserContext, demo: Callable[[], str]):
    base = demo()
    other = context.new_page()
    other.goto(base)
    expect(other.locator("#pill")).to_have_attribute("data-state", "live")
    page.bring_to_front()
    page.get_by_role("button", name="Close the session").click()
    expect(page.get_by_role("heading", name="Connect to a server")).to_be_visible()
    expect(other.locator("#pill")).to_have_text("closed")
    expect(other.get_by_role("alert")).to_contain_text("This session is closed.")
    other.get_by_role("link", name="Home").click()
    expect(other.get_by_role("heading", name="Connect to a server")).to_be_visible()


def test_the_row_of_the_other_half_keeps_its_columns(page: Page, demo: Callable[[], str]):
    page.goto(f"{demo()}/tools/echo")
    call(page, '{"message": "Hello, columns"}')
    expect(page.locator("#calls > article .st").first).to_have_text("Done")
    page.goto(str(page.locator("#calls > article .menu a", has_text="received").first.evaluate("link => link.href")))
    expect(page.locator("#log > li > .m.pair")).to_have_count(1)
    lefts = (
        "rows => rows.map(row => [...row.children].slice(0, 5).map(cell => Math.round(cell.getBoundingClientRect().x)))"
    )
    pair, current = page.eval_on_selector_all("#log > li > :is(.m.pair, .m[aria-current])", lefts)
    assert pair == current
