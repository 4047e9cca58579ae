"""The room of a result: the form folds once its call is sent, and what came back is a table, a tree, a text."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser import desk
from tests.browser.desk import at_home, script
from tests.browser.parley import Parley
from tests.browser.test_looks import axe

SIX = {"query": "energy", "stage": "customer", "country": "DE", "min_value": 10000, "sort": "-value", "limit": 20}
VISIBLE = """() => {
  const [main, result] = ['#main', '#calls .result'].map((one) => document.querySelector(one).getBoundingClientRect());
  return Math.min(main.bottom, result.bottom, innerHeight) - Math.max(main.top, result.top, 0);
}"""


@pytest.fixture
def crm(page: Page, parley: Parley) -> str:
    return at_home(page, parley, script("crm.py"), tools=6)


def called(page: Page, base: str, name: str, arguments: dict[str, object]) -> Locator:
    card = desk.called(page, base, name, arguments)
    expect(card.locator(".st").first).to_have_text("Done")
    return card


@pytest.mark.requirement("U-S1")
def test_a_call_with_six_arguments_shows_its_result_and_folds_its_form(page: Page, crm: str):
    card = called(page, crm, "search_accounts", SIX)
    expect(card.locator(".tbl")).to_be_visible()
    line = card.locator(".argline")
    expect(line).to_be_visible()
    expect(page.locator("#tool-form")).to_be_hidden()
    assert line.evaluate("one => one.getBoundingClientRect().height") <= 44
    for name, value in SIX.items():
        expect(line).to_contain_text(f"{name} {json.dumps(value)}")
    assert page.evaluate(VISIBLE) >= 400
    # Nothing scrolls inside of what scrolls.
    boxes = """() => [...document.querySelectorAll('#calls .result, #calls .result *')].filter((one) =>
        /auto|scroll/.test(getComputedStyle(one).overflowY) && one.scrollHeight > one.clientHeight + 1).length"""
    assert page.evaluate(boxes) == 0
    line.get_by_role("button", name="Call again").click()
    expect(page.locator("#calls > article")).to_have_count(2)
    expect(page.locator("#calls > .earlier")).to_have_count(1)
    expect(page.locator("#tool-form")).to_be_hidden()
    page.locator("#calls > .call").first.get_by_role("link", name="Edit").first.click()
    expect(page.locator("#arguments")).to_be_focused()
    assert json.loads(page.input_value("#arguments")) == SIX


@pytest.mark.requirement("U-S1")
def test_a_fold_outlives_a_reload_and_a_page_that_is_opened_anew_shows_its_form(page: Page, crm: str):
    page.goto(f"{crm}/tools/notes")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    page.click("#call-go")
    expect(page.locator("#tool-form")).to_be_hidden()
    expect(page.locator("#calls > .call .argline")).to_contain_text("no arguments")
    page.reload()
    expect(page.locator("#calls > .call .argline")).to_be_visible()
    expect(page.locator("#tool-form")).to_be_hidden()
    other = page.context.new_page()
    other.goto(f"{crm}/tools/notes")
    expect(other.locator("#tool-form")).to_be_visible()
    expect(other.locator("#calls > .call .argline")).to_be_hidden()


@pytest.mark.requirement("U-S1")
def test_a_form_that_is_typed_into_while_its_call_leaves_stays_open(page: Page, crm: str):
    page.goto(f"{crm}/tools/search_accounts?as=json")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    page.fill("#arguments", '{"query": "a"}')

    def meanwhile(route: Route) -> None:
        page.locator("#arguments").fill('{"query": "ab"}')
        route.continue_()

    page.route("**/tools/call/**", meanwhile)
    page.click("#call-go")
    expect(page.locator("#calls > .call .st").first).to_have_text("Done")
    expect(page.locator("#arguments")).to_be_visible()
    assert page.input_value("#arguments") == '{"query": "ab"}'


@pytest.mark.requirement("U-S1")
def test_a_wide_page_has_form_and_result_side_by_side(page: Page, crm: str):
    page.set_viewport_size({"width": 1720, "height": 1000})
    card = called(page, crm, "search_accounts", SIX)
    form, result = page.locator("#tool-form").bounding_box(), card.locator(".result").bounding_box()
    assert form is not None and result is not None
    assert form["x"] + form["width"] < result["x"]
    expect(card.locator(".argline")).to_be_hidden()
    assert page.evaluate("document.querySelector('#main').scrollWidth <= document.querySelector('#main').clientWidth")


@pytest.mark.requirement("U-S11")
def test_no_result_makes_the_page_scroll_sideways(page: Page, crm: str):
    card = called(page, crm, "search_accounts", SIX)
    for view in ("table", "tree", "text", "raw"):
        card.locator(f".views [data-view={view}]").click()
        expect(card.locator(f".result[data-view={view}]")).to_be_visible()
        for width in (360, 390, 768, 1024):
            page.set_viewport_size({"width": width, "height": 844})
            wide = page.evaluate("document.documentElement.scrollWidth")
            over = page.evaluate("(({scrollWidth: a, clientWidth: b}) => a - b)(document.querySelector('#main'))")
            assert (wide <= width, over <= 0) == (True, True), f"{view} at {width}"


@pytest.mark.requirement("U-S5")
def test_a_table_is_sorted_widened_and_copied_from(page: Page, crm: str):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    card = called(page, crm, "search_accounts", SIX)
    expect(card.locator(".outside")).to_contain_text("/accounts")
    expect(card.locator(".outside")).to_contain_text("total 143")
    first = card.locator("tbody tr").first
    card.get_by_role("button", name="value", exact=True).click()
    expect(card.locator("th[aria-sort=ascending]")).to_have_text("value")
    expect(first.locator("td").first).to_have_text("18")
    page.keyboard.press("Enter")  # the focus stays on the head that was pressed
    expect(card.locator("th[aria-sort=descending]")).to_have_text("value")
    expect(first.locator("td").first).to_have_text("0")
    first.locator("td").nth(2).click()
    expect(page.locator("#jbar code")).to_have_text("/accounts/0/name")
    page.get_by_role("button", name="Copy value").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == '"Alster Energy"'
    many = called(page, crm, "many", {})
    expect(many.locator("thead th")).to_have_count(13)
    many.get_by_role("button", name="+ 4 columns").click()
    expect(many.locator("thead th")).to_have_count(17)
    large = called(page, crm, "search_accounts", {"query": "a", "limit": 20_000})
    expect(large.locator("tbody tr")).to_have_count(100)
    large.get_by_role("button", name=re.compile("Show 500 more of 19")).click()
    expect(large.locator("tbody tr")).to_have_count(600)


@pytest.mark.requirement("U-M14")
def test_a_hit_is_shown_where_it_stands_also_far_down_a_large_tree(page: Page, crm: str):
    card = called(page, crm, "search_accounts", {"query": "a", "limit": 20_000})
    card.locator(".views [data-view=tree]").click()
    tree = card.locator(".result .json")
    expect(tree).to_be_visible()
    card.get_by_label("Find in result").fill("acc_703967")
    hit = card.locator(".hits button")
    expect(hit).to_contain_text("/accounts/18998/id")
    hit.click()
    line = tree.locator(".jp")
    expect(line).to_contain_text("acc_703967")
    expect(line).to_be_in_viewport()
    expect(page.locator("#jbar code")).to_have_text("/accounts/18998/id")
    # What stands between is still to be had, and comes once.
    between = tree.locator("button[data-until]").first
    expect(between).to_contain_text("more items")
    assert tree.locator("[data-k='18998']").count() == 1
    card.get_by_role("button", name="Collapse all").click()
    expect(line).to_be_hidden()
    card.get_by_role("button", name="Expand all").click()
    expect(line).to_be_visible()


@pytest.mark.requirement("U-M14")
def test_a_tree_is_one_stop_of_the_tab_key(page: Page, crm: str):
    card = called(page, crm, "search_accounts", SIX)
    card.locator(".views [data-view=tree]").click()
    tree = card.locator(".result .json")
    tree.focus()
    page.keyboard.press("Tab")
    assert not tree.evaluate("one => one.contains(document.activeElement)")
    page.keyboard.press("Shift+Tab")
    expect(tree).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#jbar code")).to_have_text("/accounts")
    page.keyboard.press("ArrowLeft")
    expect(tree.locator("details > div > details").first).not_to_have_attribute("open", "")


@pytest.mark.requirement("U-M14")
def test_the_chosen_view_is_remembered_for_each_tool(page: Page, crm: str):
    card = called(page, crm, "search_accounts", SIX)
    card.locator(".views [data-view=tree]").click()
    expect(card.locator(".result .json")).to_be_visible()
    card.locator(".argline").get_by_role("button", name="Call again").click()
    expect(page.locator("#calls > article")).to_have_count(2)
    newest = page.locator("#calls > .call").first
    expect(newest.locator(".result .json")).to_be_visible()
    expect(newest.locator(".views [aria-pressed=true]")).to_have_text("Tree")
    page.reload()
    expect(newest.locator(".result .json")).to_be_visible()
    expect(called(page, crm, "many", {}).locator(".tbl")).to_be_visible()  # another tool, another choice
    notes = called(page, crm, "notes", {})
    expect(notes.locator(".md strong")).to_have_text("more")
    notes.get_by_role("button", name="Source").click()
    expect(notes.locator(".md")).to_be_hidden()
    again = called(page, crm, "notes", {})
    expect(again.locator("pre.text")).to_contain_text("They want **more**")


@pytest.mark.requirement("U-M14")
def test_a_finding_leads_to_the_cell_that_it_speaks_of(page: Page, crm: str):
    card = called(page, crm, "search_accounts", SIX)
    expect(card.locator("td.jh")).to_contain_text('""')
    card.get_by_role("button", name="Show", exact=True).click()
    expect(card.locator("td.jp.jh")).to_be_in_viewport()
    card.locator(".views [data-view=text]").click()
    expect(card.locator(".result[data-view=text]")).to_be_visible()
    card.get_by_role("button", name="Show", exact=True).click()
    expect(card.locator(".json .jp")).to_contain_text("renews")


@pytest.mark.requirement("U-P19")
def test_copied_does_not_move_its_neighbours(page: Page, crm: str):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    card = called(page, crm, "lines", {"value": "300"})
    assert card.locator("pre.text").evaluate("one => one.scrollHeight <= one.clientHeight + 1")
    copy, dots = card.locator("button.copy"), card.locator(".dots > summary")
    before = [copy.bounding_box(), dots.bounding_box()]
    copy.click()
    expect(copy).to_have_text("Copied")
    assert [copy.bounding_box(), dots.bounding_box()] == before
    expect(copy).to_have_text(re.compile(r"^\s*Copy$"))
    dots.click()
    expect(card.get_by_role("link", name="Edit and call again")).to_be_visible()
    page.keyboard.press("Escape")
    expect(card.get_by_role("link", name="Edit and call again")).to_be_hidden()
    expect(dots).to_be_focused()


@pytest.mark.requirement("U-M14")
def test_a_call_lists_what_was_asked_with_answers_in_words(page: Page, demo: Callable[[], str]):
    base = demo()
    page.goto(f"{base}/tools/preferences")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    page.click("#call-go")
    row = page.locator("#calls .asks tbody tr").first
    expect(row).to_contain_text("waiting")
    expect(row).to_contain_text("none yet")
    expect(row.locator("a")).to_have_attribute("data-to-ask", re.compile("a"))
    expect(row.locator("time")).to_have_text(re.compile(r"^\d+:\d\d$"))
    page.locator("#asks .ask button", has_text="Decline").first.click()
    expect(page.locator("#calls > .call .st").first).to_have_text("Done")
    expect(row).to_contain_text("declined")
    expect(page.locator("#calls .asks th").last).to_have_text("Took")


@pytest.mark.requirement("U-M14")
def test_the_time_of_a_running_call_is_never_set_back_by_progress(page: Page, demo: Callable[[], str]):
    base = demo()
    page.goto(f"{base}/tools/slow_count?as=json")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    page.fill("#arguments", '{"steps": 40, "delay": 0.05}')
    page.evaluate("""() => {
        window.said = new Set();
        new MutationObserver(() => {
            for (const one of document.querySelectorAll('#calls .call > header time')) window.said.add(one.textContent);
        }).observe(document.querySelector('#calls'), { childList: true, subtree: true, characterData: true });
    }""")
    page.click("#call-go")
    expect(page.locator("#calls > .call .st").first).to_have_text("Done")
    said = page.evaluate("[...window.said]")
    assert said and all(re.fullmatch(r"\d+:\d\d( left)?", one) for one in said), said


@pytest.mark.requirement("U-S1")
def test_a_result_is_accessible_in_every_view(page: Page, crm: str):
    card = called(page, crm, "search_accounts", SIX)
    expect(card.locator(".tbl")).to_be_visible()
    assert axe(page) == []
    card.locator(".dots > summary").click()
    card.locator(".views [data-view=tree]").click()
    expect(card.locator(".json")).to_be_visible()
    card.get_by_label("Find in result").fill("Isar")
    expect(card.locator(".hits button").first).to_be_visible()
    page.keyboard.press("Escape")
    page.emulate_media(color_scheme="dark")
    found = axe(page)
    assert found == [], "\n".join(found)
    page.goto(f"{crm}/calls/c1")
    expect(page.locator(".tbl, .json").first).to_be_visible()
    assert axe(page) == []
