"""Where the pixels go: the columns at every width, an inbox that is a strip until it is needed, asks that become lines,
what was typed and not sent, the log drawer, and the last word of a login.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.conftest import Watch
from tests.browser.desk import Desk, opened, recorded_pages, visit
from tests.browser.parley import Parley
from tests.browser.test_inbox import FORM, act, settled, the
from tests.browser.test_looks import PATHS
from tests.screenshots import pages

WIDTHS = (1024, 768, 390, 360)
STRIP = 40
SIDEWAYS = """() => [document.documentElement, ...document.querySelectorAll('main, .inbox, .rail-more')]
    .filter(one => one.scrollWidth > one.clientWidth && one.checkVisibility())
    .map(one => `${one.tagName}.${one.className} ${one.scrollWidth} of ${one.clientWidth}`)"""


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page that is nowhere yet: each test begins in its session."""
    return context.new_page()


@pytest.fixture
def by_hand(chromium_browser: Browser, context: BrowserContext) -> Iterator[Page]:
    """A page of the same person in a browser that runs no script: what it shows is what the server drew."""
    plain = chromium_browser.new_context(
        viewport={"width": 1440, "height": 900}, java_script_enabled=False, storage_state=context.storage_state()
    )
    yield plain.new_page()
    plain.close()


def width(locator: Locator) -> float:
    box = locator.bounding_box()
    return 0 if box is None else box["width"]


def height(locator: Locator) -> float:
    box = locator.bounding_box()
    return 0 if box is None else box["height"]


def ask(raw_desk: Desk, *names: str) -> list[str]:
    """Forms with these ids; the ids of their cards."""
    raw_desk.say(*({"id": name, "method": "elicitation/create", "params": FORM} for name in names))
    return [f"#ask-{one['id']}" for one in raw_desk.asks()][-len(names) :]


# ---- the columns


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.requirement("U-S10", "U-S11")
def test_no_page_scrolls_sideways_at_any_width(page: Page, desk: Desk, parley: Parley, watch: Watch):
    watch.allow("404")
    recording = desk.record(on=True)
    rule = {"name": "unbroken" * 8, "when": {"kind": "form", "tool": "never_*"}, "do": {"action": "decline"}}
    desk.parley.script("POST", f"{desk.base}/rules", **rule)
    rule_id = "r1"
    long = {"message": "unbroken" * 60, "note": "many words " * 40}
    calls = [desk.call("echo", **long), desk.call("tool_error"), desk.call("postcard"), desk.call("timetable")]
    calls.append(desk.call("preferences", as_task=True, ttl_ms=600_000))
    desk.call("three_at_once", ttl_ms=600_000)
    desk.get("/inbox?wait=20")
    for name in ("/tools", "/resources", "/prompts", "/resources/templates"):
        desk.get(name)
    seq = desk.get("/log")["messages"][-1]["seq"]
    desk.record(on=False)
    visit(page, desk)
    rail = [str(link.get_attribute("href")) for link in page.locator("#rail-nav a").all()]
    assert {f"/{one}" for one in ("models", "rules", "timeline")} <= {
        one.removeprefix(urlsplit(desk.url).path) for one in rail
    }
    tasks = [f"{desk.url}/tasks/{one['id']}" for one in desk.get("/tasks")["receiver"]]
    addresses = [
        *pages(desk.url, parley.origin, seq).values(),
        *(parley.server + one for one in rail),
        *(desk.url + one for one in (*PATHS, "/tools/echo", "/tools/three_at_once", "/rules/new", f"/rules/{rule_id}")),
        *(f"{desk.url}/calls/{one}" for one in calls),
        *(f"{desk.url}/asks/{one['id']}" for one in desk.asks()[:2]),
        f"{desk.url}/stage",
        f"{desk.url}/compare?left={calls[0]}&right={calls[3]}",
        *tasks,
        *(parley.origin + one for one in recorded_pages(recording).values()),
        f"{parley.origin}{recording}/calls/{calls[0]}",
    ]
    wide: dict[str, list[str]] = {}
    for address in dict.fromkeys(addresses):
        page.goto(address)
        for pixels in WIDTHS:
            page.set_viewport_size({"width": pixels, "height": 900})
            if found := page.evaluate(SIDEWAYS):
                wide[f"{pixels} {address.removeprefix(parley.origin)}"] = found
    assert wide == {}, json.dumps(wide, indent=1)


@pytest.mark.requirement("U-S10")
def test_half_a_screen_has_two_columns_and_the_tools_at_hand(page: Page, raw_desk: Desk):
    page.set_viewport_size({"width": 1024, "height": 768})
    page.emulate_media(reduced_motion="reduce")
    visit(page, raw_desk, "/tools")
    assert width(page.locator("#inbox")) == STRIP
    [card] = ask(raw_desk, "q")
    expect(page.locator(card)).to_be_visible()
    main, inbox = page.locator("#main").bounding_box(), page.locator("#inbox").bounding_box()
    assert main is not None and inbox is not None
    assert inbox["x"] >= main["x"] + main["width"] - 1 and inbox["y"] == main["y"], "beside it, not above"
    assert inbox["width"] == 320 and main["width"] > 650
    expect(page.locator("#rail-list")).to_be_hidden()
    page.locator(".rail-pick").click()
    page.locator("#rail-list").get_by_role("link", name="echo", exact=True).click()
    page.wait_for_url("**/tools/echo")
    expect(page.locator(".rail-pick")).to_have_text("echo")


# ---- the strip


@pytest.mark.requirement("U-S1", "U-S2")
def test_an_empty_inbox_is_a_strip_that_an_ask_opens_and_the_last_answer_folds(
    page: Page, raw_desk: Desk, by_hand: Page
):
    visit(page, raw_desk, "/tools/echo")
    strip = page.locator("#inbox-open")
    assert width(page.locator("#inbox")) == STRIP and height(strip) > 500
    expect(strip).to_have_text(re.compile("Inbox 0"))
    by_hand.goto(raw_desk.url)
    assert width(by_hand.locator("#inbox")) == STRIP, "as it comes, before any script runs"
    field = page.locator("#logfilter")
    field.focus()
    first, second = ask(raw_desk, "q", "r")
    expect(page.locator(second)).to_be_visible()
    expect(page.locator("#inbox")).to_have_css("width", "384px")
    expect(strip).to_be_hidden()
    expect(field).to_be_focused()
    by_hand.goto(raw_desk.url)
    assert width(by_hand.locator("#inbox")) == 384
    page.locator(first).get_by_label("Full name").fill("Ines")
    act(page.locator(first), "Accept")
    settled(page.locator(first), "answered")
    expect(page.locator(f"#asks > {first}.line > details > summary")).to_have_text(
        re.compile(r"Form accepted\s+name: Ines\s*\d\d:\d\d:\d\d")
    )
    expect(page.locator(second).get_by_label("Full name")).to_be_focused()
    expect(page.locator(first)).to_have_css("height", "34px")
    expect(page.locator(f"#settled > {first}")).to_be_attached()
    expect(page.locator("#n-settled")).to_have_text("1")
    page.locator(f"{second} .failing > summary").focus()
    act(page.locator(second), "Decline")
    expect(page.locator("#settled > .ask")).to_have_count(2)
    expect(strip).to_have_text(re.compile("Inbox 0\\s*2 done"))
    assert width(page.locator("#inbox")) == STRIP
    expect(strip).to_be_focused()
    assert [one["id"] for one in raw_desk.get("/inbox")["settled"]] == [second[5:], first[5:]]


@pytest.mark.requirement("U-S1")
def test_an_empty_inbox_can_be_opened_and_folded_and_the_browser_remembers(page: Page, desk: Desk):
    visit(page, desk)
    desk.result(desk.call("list_roots"))
    expect(page.locator("#inbox-open")).to_contain_text("1 done")
    page.locator("#inbox-open").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#inbox-title")).to_be_focused()
    page.locator("#past > summary").click()
    expect(page.locator("#settled .kind")).to_have_text("Roots sent")
    page.reload()
    expect(page.locator("#past > summary")).to_be_visible()
    page.get_by_role("button", name="Fold", exact=True).and_(page.locator("#inbox-fold")).click()
    expect(page.locator("#inbox-open")).to_be_focused()
    page.reload()
    expect(page.locator("#inbox-open")).to_be_visible()
    assert width(page.locator("#inbox")) == STRIP
    page.locator("#waiting").click()
    expect(page.locator("#past > summary")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("#inbox")).to_be_hidden()


# ---- asks


@pytest.mark.requirement("U-S2")
def test_the_third_ask_of_the_parade_is_in_sight_without_scrolling(page: Page, parley: Parley):
    page.emulate_media(reduced_motion="reduce")
    desk = opened(parley, {"transport": "demo"})
    visit(page, desk, "/tools/parade")
    desk.call("parade")
    for button in ("Decline", "Decline"):
        act(the(page), button)
        expect(page.locator("#asks > .ask[data-s=open]")).to_have_count(1)
    third = the(page, "Sampling")
    expect(third.get_by_role("button", name="Approve and send")).to_be_visible()
    box = third.bounding_box()
    assert box is not None
    assert box["y"] >= 44 and box["y"] + box["height"] <= 900, box
    assert page.locator("#inbox").evaluate("one => one.scrollTop") == 0
    expect(third.get_by_label("Your answer")).to_be_in_viewport(ratio=1)


@pytest.mark.requirement("U-S2")
def test_of_more_than_three_asks_one_is_open_and_open_ones_stand_first(page: Page, raw_desk: Desk):
    visit(page, raw_desk)
    cards = ask(raw_desk, "a", "b", "c")
    expect(page.locator("#asks > .ask > details[open]")).to_have_count(3)
    page.locator(cards[1]).get_by_label("Full name").fill("half")
    cards += ask(raw_desk, "d")
    expect(page.locator("#asks > .ask > details[open]")).to_have_count(1)
    expect(page.locator(cards[1]).get_by_label("Full name")).to_be_focused()
    page.locator(f"{cards[3]} summary").first.click()
    expect(page.locator(f"{cards[3]} > details[open]")).to_have_count(1)
    expect(page.locator("#asks > .ask > details[open]")).to_have_count(1)
    raw_desk.say({"method": "notifications/cancelled", "params": {"requestId": "b", "reason": "too late"}})
    expect(page.locator(f"#kept > {cards[1]}")).to_be_visible()
    cards += ask(raw_desk, "e")
    expect(page.locator(cards[4])).to_be_attached()
    order = page.locator("#inbox .ask").evaluate_all("all => all.map(one => '#' + one.id)")
    assert order == [cards[0], cards[2], cards[3], cards[4], cards[1]], "oldest first, then what was kept"


@pytest.mark.requirement("U-S2", "U-M14")
def test_what_was_typed_and_not_sent_is_kept_with_its_own_mark_until_it_is_dismissed(page: Page, raw_desk: Desk):
    visit(page, raw_desk)
    first, second, third = ask(raw_desk, "a", "b", "c")
    for card in (first, second):
        page.locator(card).get_by_label("Full name").fill(f"typed in {card}")
    for rpc_id in ("a", "c"):
        raw_desk.say({"method": "notifications/cancelled", "params": {"requestId": rpc_id, "reason": "fare expired"}})
    expect(page.locator(f"#kept > {first}")).to_contain_text("“fare expired”. Nothing was sent.")
    expect(page.locator(f"{first} .kind")).to_have_text("Form, withdrawn")
    expect(page.locator(f"#asks > {third}.line .kind")).to_have_text("Form withdrawn")
    for card in (first, third):
        expect(page.locator(f"{card} summary use").first).to_have_attribute("href", re.compile("#back$"))
    expect(page.get_by_role("button", name="Dismiss all")).to_be_hidden()
    raw_desk.parley.script("POST", f"{raw_desk.base}/disconnect")
    expect(page.locator(f"{second} .kind")).to_have_text("Form, lost")
    expect(page.locator(f"{second} summary use").first).to_have_attribute("href", re.compile("#x$"))
    expect(page.locator(second).get_by_label("Full name")).to_be_disabled()
    page.get_by_role("button", name="Dismiss all").click()
    expect(page.locator("#kept > .ask")).to_have_count(0)
    expect(page.locator("#settled > .ask")).to_have_count(3)
    page.reload()
    expect(page.locator("#inbox-open")).to_contain_text("3 done")
    expect(page.locator("#kept > .ask")).to_have_count(0)


@pytest.mark.requirement("U-S2")
def test_whoever_types_on_when_an_ask_is_withdrawn_gives_no_command(page: Page, raw_desk: Desk):
    visit(page, raw_desk)
    first, second = ask(raw_desk, "a", "b")
    page.locator(first).get_by_label("Full name").press_sequentially("Ma")
    raw_desk.say({"method": "notifications/cancelled", "params": {"requestId": "a"}})
    expect(page.locator(f"#kept > {first}")).to_be_visible()
    page.keyboard.type("n/n ? nn")
    expect(page.locator(second).get_by_label("Full name")).to_have_value("")
    expect(page.locator("#logfilter")).not_to_be_focused()
    expect(page.locator(second).get_by_label("Full name")).not_to_be_focused()


@pytest.mark.requirement("U-M18")
def test_an_answer_of_another_tab_is_told_apart_from_what_is_typed_here(
    page: Page, context: BrowserContext, raw_desk: Desk
):
    other = context.new_page()
    for tab in (page, other):
        visit(tab, raw_desk)
    page.bring_to_front()
    typed, untouched = ask(raw_desk, "a", "b")
    other.locator(typed).get_by_label("Full name").fill("half of it")
    for card in (typed, untouched):
        page.locator(card).get_by_label("Full name").fill("Ines")
        act(page.locator(card), "Accept")
    expect(other.locator(f":is(#asks, #settled) > {untouched}.line")).to_be_attached()
    kept = other.locator(f"#kept > {typed}")
    expect(kept.get_by_text(re.compile(r"Answered in another tab at \d\d:\d\d:\d\d:"))).to_be_visible()
    expect(kept.locator(".says.us")).to_have_text("name: Ines")
    expect(kept.locator(".tail", has_text="Not sent, typed here:")).to_be_visible()
    expect(kept.get_by_label("Full name")).to_have_value("half of it")
    expect(kept.get_by_text("You accepted.")).to_be_hidden()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    other.bring_to_front()
    act(kept, "Copy")
    expect(kept.get_by_role("button", name="Copied")).to_be_visible()
    assert other.evaluate("navigator.clipboard.readText()") == "Full name: half of it"


@pytest.mark.requirement("U-S2")
def test_a_text_for_a_model_is_answered_as_text_or_as_json_whichever_is_chosen(page: Page, desk: Desk):
    visit(page, desk)
    call = desk.call("write_caption")
    card = the(page, "Sampling")
    card.get_by_label("JSON", exact=True).check()
    expect(card.get_by_label("Your answer")).to_be_hidden()
    card.get_by_label("The whole result").fill('{"role": "half')
    page.reload()
    expect(card.get_by_label("The whole result")).to_have_value('{"role": "half')
    card.get_by_label("Text", exact=True).check()
    card.get_by_label("Your answer").fill("A quiet harbour.")
    act(card, "Approve and send")
    assert desk.answer_of(call)["content"]["text"] == "A quiet harbour."


# ---- the drawer, the header, the login


@pytest.mark.requirement("U-S1")
def test_the_log_has_three_rows_and_every_tab_of_the_browser_remembers_its_height(page: Page, desk: Desk):
    visit(page, desk)
    drawer = page.locator("#drawer")
    assert height(drawer) == 116
    page.locator("#grip").focus()
    page.keyboard.press("PageUp")
    assert height(drawer) == 236
    other = page.context.new_page()
    visit(other, desk, "/tools")
    assert height(other.locator("#drawer")) == 236
    other.locator("#fold").click()
    assert height(other.locator("#drawer")) < 60
    page.reload()
    expect(page.locator("#fold")).to_have_attribute("aria-expanded", "false")
    assert height(drawer) < 60
    page.locator("#fold").click()
    assert height(drawer) == 236


@pytest.mark.requirement("U-S12")
def test_the_header_has_a_word_about_the_stream_only_when_it_is_down(
    page: Page, context: BrowserContext, desk: Desk, watch: Watch
):
    watch.allow("ERR_INTERNET_DISCONNECTED|ERR_FAILED|Failed to fetch|network")
    visit(page, desk)
    assert width(page.locator("#pill")) <= 1
    assert "live" not in page.locator(".top").inner_text()
    context.set_offline(True)
    page.evaluate("document.querySelector('#stream')._htmx.sse.reader.cancel()")
    expect(page.locator("#pill")).to_have_text("reconnecting")
    assert width(page.locator("#pill")) > 30
    context.set_offline(False)
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")


@pytest.mark.requirement("U-M18")
def test_an_expired_login_is_said_until_somebody_signs_in_again(
    page: Page, context: BrowserContext, desk: Desk, watch: Watch
):
    watch.allow("401")
    visit(page, desk, "/tools/echo")
    kept: list[Any] = context.cookies()
    context.clear_cookies()
    page.locator("#tool-form :is(input:not([type=hidden]), textarea)").first.fill("hello")
    page.locator("#call-go").click()
    banner = page.locator(".ended[data-why=out]")
    expect(banner).to_contain_text("You are signed out.")
    expect(page.locator("#pill")).to_have_text("signed out")
    expect(page.locator(".toast")).to_have_count(0)
    context.add_cookies(kept)
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(banner).to_have_count(0)
    page.locator("#call-go").click()
    expect(page.locator("#calls > article pre.text").first).to_have_text("hello")
