"""Answer rules in the page: one made from an answered ask, tried, switched on, seen answering; moved by keys, paused by
the header, and never before a person who types."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watch
from tests.browser.desk import Desk, opened, visit
from tests.browser.parley import Parley
from tests.browser.test_compare import fits, waiting
from tests.browser.test_looks import axe

PLAIN = {"action": "accept", "content": {"outputFormat": "plain"}}


@pytest.fixture
def demo(parley: Parley) -> Desk:
    return opened(parley, {"transport": "demo"})


@pytest.mark.requirement("S001 Q3")
@pytest.mark.requirement("U-M24")
@pytest.mark.parametrize("width", [1440, 390])
def test_a_rule_is_made_from_an_answer_tried_switched_on_and_seen_answering(
    page: Page, demo: Desk, watch: Watch, width: int
) -> None:
    watch.allow("422")
    page.set_viewport_size({"width": width, "height": 900})
    visit(page, demo, "/tools/preferences")
    expect(page.locator("#rules-on")).to_be_hidden()
    first = demo.call("preferences")
    card = page.locator("#asks > .ask")
    card.locator("select").first.select_option("plain")
    card.get_by_role("button", name="Accept", exact=True).click()
    demo.result(first)
    # The line of the answer opens, and below what was sent a rule can be made.
    line = page.locator(".ask.line").first
    line.locator("summary").first.click()
    line.get_by_text("Make a rule").click()
    made = line.locator(".made")
    expect(made).to_contain_text("would have answered 1 of 1")
    expect(made).to_contain_text("accept with")
    expect(made.get_by_role("button", name="Save rule")).to_be_in_viewport()
    made.get_by_label("Name").fill("Plain, please")
    made.get_by_role("button", name="Save rule").click()
    expect(line.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    expect(page.locator("#rules-on")).to_be_hidden()
    line.get_by_role("link", name="Open in editor").click()
    # On its own page it is tried while somebody types.
    expect(page.locator("#rule-trial")).to_contain_text("Would have answered 1 of 1")
    page.get_by_label("Message", exact=True).fill("something else")
    expect(page.locator("#rule-trial")).to_contain_text("Would have answered 0 of 1")
    expect(page.locator("#rule-trial")).to_contain_text("other words")
    page.get_by_label("Message", exact=True).fill("how would you*")
    expect(page.locator("#rule-trial")).to_contain_text("Would have answered 1 of 1")
    expect(page.locator("#rule-trial .a")).to_contain_text("outputFormat")
    fits(page)
    assert axe(page) == []
    page.get_by_label("Content", exact=True).fill("{")
    page.get_by_role("button", name="Save and switch on").click()
    expect(page.get_by_label("Content", exact=True)).to_be_focused()
    expect(page.locator("#rule-content-e")).to_contain_text("JSON")
    page.get_by_label("Content", exact=True).fill('{"outputFormat": "json"}')
    page.get_by_role("button", name="Save and switch on").click()
    expect(page.get_by_text("Saved, and on")).to_be_visible()
    badge = page.locator("#rules-on")
    expect(badge).to_contain_text("on")
    # It answers, says so everywhere, and the list counts.
    second = demo.call("preferences")
    assert demo.answer_of(second)["content"] == {"outputFormat": "json"}
    expect(page.locator("#rule-trial")).to_contain_text("of 2")
    page.goto(f"{demo.url}/rules")
    expect(page.locator("#rules")).to_contain_text("answered 1")
    fits(page)
    visit(page, demo, f"/calls/{second}")
    expect(page.locator(".asks .chip.on")).to_have_text("rule Plain, please")
    expect(page.locator("#log .chip.on").last).to_have_text("rule Plain, please")
    page.goto(f"{demo.url}/inbox")
    page.locator("#past > summary").click()
    expect(page.locator("#settled .kind").first).to_have_text("Form accepted by rule Plain, please")
    # The header pauses it, and a person is asked again.
    page.locator("#rules-switch").uncheck()
    expect(badge).to_contain_text("paused")
    third = demo.call("preferences")
    (ask,) = waiting(demo)
    page.locator("#rules-switch").check()
    expect(badge).not_to_contain_text("paused")
    demo.parley.script("POST", f"{demo.base}/asks/{ask['id']}/answer", **PLAIN)
    demo.result(third)


def test_rules_are_moved_by_keys_and_switched_in_every_tab(page: Page, demo: Desk) -> None:
    for name in ("one", "two", "three"):
        rule = {"name": name, "when": {"kind": "form"}, "do": {"action": "decline"}}
        demo.parley.script("POST", f"{demo.base}/rules", **rule)
    visit(page, demo, "/rules")
    other = page.context.new_page()
    visit(other, demo, "/tools")
    assert axe(page) == []
    names = page.locator("#rules-order a")
    expect(names).to_have_text(["one", "two", "three"])
    page.get_by_role("link", name="three", exact=True).focus()
    page.keyboard.press("Alt+ArrowUp")
    expect(names).to_have_text(["one", "three", "two"])
    expect(page.get_by_role("link", name="three", exact=True)).to_be_focused()
    page.keyboard.press("Alt+ArrowUp")
    expect(names).to_have_text(["three", "one", "two"])
    expect(page.get_by_role("link", name="three", exact=True)).to_be_focused()
    # Moved by hand here, a switch follows what is done there.
    visit(other, demo, "/rules")
    mine, theirs = (tab.get_by_role("switch", name="three on") for tab in (page, other))
    mine.check()
    expect(theirs).to_be_checked()
    theirs.uncheck()
    expect(mine).not_to_be_checked()
    theirs.check()
    expect(mine).to_be_checked()
    expect(other.locator("#rules-on")).to_contain_text("on")
    expect(page.locator("#n-rules")).to_have_text("1 on")
    other.locator("#rules-switch").uncheck()
    expect(page.locator("#rules-on")).to_contain_text("paused")
    expect(page.locator("#rules-switch")).not_to_be_checked()
    page.get_by_role("button", name="Go on").click()
    expect(other.locator("#rules-switch")).to_be_checked()
    # What a rule does follows the kind of ask.
    page.goto(f"{demo.url}/rules/new")
    page.get_by_label("Kind").select_option("sampling")
    expect(page.locator("#rule-action-cancel")).to_be_disabled()
    expect(page.locator("#rule-action-respond")).to_be_checked()
    other.close()


def test_a_rule_with_a_delay_says_so_and_leaves_the_ask_to_who_types(page: Page, demo: Desk) -> None:
    rule = {"name": "slow", "on": True, "when": {"kind": "form"}, "do": PLAIN, "delay_ms": 600_000}
    made = demo.parley.script("POST", f"{demo.base}/rules", **rule)["added"][0]
    visit(page, demo, "/tools/preferences")
    call = demo.call("preferences")
    card = page.locator("#asks > .ask")
    expect(card.locator("[data-promise]")).to_contain_text(re.compile(r"Rule slow answers in\s+\d+:\d\d"))
    card.locator("select").first.focus()
    expect(card.locator("[data-promise]")).to_contain_text("waits for a minute of silence")
    expect(card.locator("select").first).to_be_focused()
    card.get_by_role("button", name="Answer it myself").click()
    expect(card.locator("[data-promise]")).to_contain_text("leaves this to you")
    demo.parley.script("POST", f"{demo.base}/rules/{made}", on=False)
    expect(card.locator("[data-promise]")).to_have_count(0)
    card.locator("select").first.select_option("json")
    card.get_by_role("button", name="Accept", exact=True).click()
    assert demo.answer_of(call)["content"]["outputFormat"] == "json"
