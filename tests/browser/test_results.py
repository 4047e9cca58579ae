"""Results in a real tab: media from their own address, large trees in parts, and nothing of a server that runs."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watch
from tests.browser.desk import at_home, called, script
from tests.browser.parley import Parley


@pytest.fixture
def big(page: Page, parley: Parley) -> str:
    return at_home(page, parley, script("big.py"), tools=4)


def test_images_and_sound_are_shown_from_their_own_address(page: Page, demo: Callable[[], str]):
    base = demo()
    page.goto(f"{base}/tools/postcard")
    page.click("#call-go")
    image = page.locator("#calls article img")
    expect(image).to_be_visible()
    page.wait_for_function("() => document.querySelector('#calls article img')?.naturalWidth > 0")
    assert re.search(r"/blobs/[0-9a-f]{64}", image.get_attribute("src") or "")
    loaded = "one => new Promise(done => { one.onloadedmetadata = () => done(one.duration); one.load(); })"
    assert page.locator("#calls article audio").evaluate(loaded) > 0


@pytest.mark.parametrize("how", ["text", "structured"])
def test_a_large_result_opens_in_the_card_and_comes_in_parts(page: Page, big: str, how: str):
    card = called(page, big, "big", {"n": 20_000, "how": how})
    expect(card.locator(".tbl")).to_be_visible()
    card.locator(".views [data-view=tree]").click()
    tree = card.locator(".block > .json").first
    expect(tree).to_be_visible()
    assert card.locator(".json [data-k]").count() < 3_000
    items = tree.locator("details > div > details")
    more = tree.locator("button[data-more]").first
    expect(more).to_contain_text("more items")
    shown = items.count()
    more.click()
    expect(items.nth(shown + 20)).to_be_attached()
    lazy = tree.locator("details[data-lazy]").first
    if lazy.count():
        lazy.evaluate("""one => {
            one.id = 'opened';
            for (let at = one; at; at = at.parentElement) if (at.matches('details')) at.open = true;
        }""")
        expect(page.locator("#opened > div > *").first).to_be_attached()
    card.get_by_label("Find in result").fill("item 19999")
    expect(card.locator(".hits")).to_contain_text("/19999/name")
    card.get_by_label("Find in result").press("Escape")
    line = tree.locator(".l[data-k=name]").first
    line.click()
    expect(page.locator("#jbar code")).to_have_text("/0/name" if how == "text" else "/items/0/name")
    assert page.evaluate("window.pwned") is None


def test_a_value_and_a_whole_result_are_copied(page: Page, big: str):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    card = called(page, big, "big", {"n": 3})
    card.locator(".views [data-view=tree]").click()
    expect(card.locator(".block > .json")).to_be_visible()
    line = card.locator(".l[data-k=price]").nth(2)
    line.scroll_into_view_if_needed()
    # Branches out of sight have a guessed height: drawn a frame after they came in sight, they move the others.
    page.evaluate("() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    line.click()
    page.get_by_role("button", name="Copy value").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "3.0"
    page.get_by_role("button", name="Copy path").click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(2)
    assert page.evaluate("navigator.clipboard.readText()") == "/2/price"
    tree = card.locator(".block > .json")
    tree.focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#jbar code")).to_have_text("/2/ok")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    assert page.evaluate("navigator.clipboard.readText()") == "true"
    page.keyboard.press("Escape")
    expect(tree).to_be_focused()
    card.locator("header button.copy").click()
    expect(card.locator("header button.copy")).to_have_text("Copied")
    assert "content" in json.loads(page.evaluate("navigator.clipboard.readText()"))
    with page.expect_download() as download:
        card.locator(".dots > summary").click()
        card.get_by_role("link", name="Download the result").click()
    assert download.value.suggested_filename.endswith(".json")


@pytest.mark.requirement("S29", "S30", "S32", "S33")
def test_hostile_content_is_text_a_download_or_harmless(page: Page, big: str, watch: Watch):
    # What the frame tries is refused, and Chromium says so.
    watch.allow("sandboxed|Content Security Policy|CSP ")
    elsewhere: list[str | None] = []
    page.on("requestfailed", lambda one: elsewhere.append(one.failure) if "tracker" in one.url else None)
    card = called(page, big, "kinds", {})
    expect(card.locator(".st")).to_have_text("Done")
    expect(card.locator(".json")).to_be_visible()
    assert card.locator("img, audio, script, iframe").count() == 0
    assert card.locator("a[href^='javascript']").count() == 0
    link = card.locator("a[href^='https://example.org']")
    assert link.get_attribute("rel") == "noopener noreferrer"
    expect(card.get_by_role("link", name="Download", exact=True)).to_have_count(2)
    switch = card.get_by_role("button", name="Markdown").last
    switch.click()
    laid_out = card.locator(".md:visible")
    expect(laid_out.locator("strong")).to_have_text("bold")
    expect(switch).to_have_attribute("aria-pressed", "true")
    assert laid_out.locator("img, script, [onerror], a[href^='javascript']").count() == 0
    card.get_by_role("button", name="Text", exact=True).last.click()
    expect(laid_out).to_have_count(0)
    card.get_by_role("button", name="In a frame").click()
    frame = card.locator("iframe")
    assert frame.get_attribute("sandbox") == ""
    inside = frame.content_frame.locator("p")
    expect(inside).to_have_text("A page")
    assert inside.evaluate("one => getComputedStyle(one).color") == "rgb(1, 2, 3)"
    assert inside.evaluate("() => self.origin") == "null"
    failed = called(page, big, "fails", {})
    expect(failed.locator(".fault")).to_contain_text("Invalid params")
    expect(failed.locator(".fault")).to_contain_text("-32602")
    assert page.evaluate("window.pwned") is None
    # The image in the frame alone was tried, and never left the browser.
    assert elsewhere == ["csp"]


def test_polls_are_one_line_of_the_log_until_it_is_opened(page: Page, big: str, parley: Parley):
    path = big.removeprefix(parley.origin)
    page.goto(f"{big}/log")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")

    def ping(times: int) -> None:
        for _ in range(times):
            cid = parley.script("POST", f"{path}/calls", method="ping", quiet=True)["id"]
            parley.script("GET", f"{path}/calls/{cid}?wait=20")

    ping(2)
    rows = page.locator("#log > li:not(.fold)[data-fold=ping]")
    expect(rows).to_have_count(4)
    expect(page.locator("#log .fold")).to_have_count(0)
    ping(3)
    line = page.locator("#log .fold button")
    expect(line).to_contain_text("5 times")
    expect(line).to_contain_text("10 folded")
    expect(rows).to_have_count(0)
    line.press("Enter")
    expect(line).to_have_attribute("aria-expanded", "true")
    expect(rows).to_have_count(10)
    ping(1)
    expect(line).to_contain_text("6 times")
    page.reload()
    expect(line).to_contain_text("6 times")
    page.locator("#log a.m").first.click()
    expect(page.locator("#message")).to_be_visible()
    assert re.search(r"/log/\d+$", page.url)
    page.go_back()
    expect(page.locator("#message")).to_have_count(0)
    page.go_forward()
    expect(page.locator("#message")).to_be_visible()
    page.reload()
    expect(page.locator("#message")).to_be_visible()
    expect(page).to_have_title(re.compile(r"^Message \d+ · "))


def test_the_tab_stays_responsive_while_a_large_result_is_read(page: Page, big: str):
    page.goto(f"{big}/tools/big?as=json")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    page.fill("#arguments", '{"n": 40000}')
    page.click("#call-go")
    page.fill("#logfilter", "tools")
    expect(page.locator("#calls article .tbl").first).to_be_visible()
    expect(page.locator("#logfilter")).to_be_focused()
    page.locator("#calls article header a").first.click()
    expect(page.locator("main .tbl").first).to_be_visible()
