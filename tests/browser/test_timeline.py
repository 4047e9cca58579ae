"""The timeline in the page: bars that follow a call, zoom by keys and pointer, the table, and a thousand calls."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.desk import Desk, opened, visit
from tests.browser.parley import Parley
from tests.browser.test_compare import answered, fits, waiting
from tests.browser.test_looks import axe

ZOOM = "getComputedStyle(document.querySelector('#tl-wf')).getPropertyValue('--tl-zoom')"


@pytest.fixture
def demo(parley: Parley) -> Desk:
    return opened(parley, {"transport": "demo"})


def spread(page: Page) -> float:
    """How far the drawings are stretched."""
    return float(page.evaluate(ZOOM))


def test_a_call_that_asks_is_drawn_while_it_happens(page: Page, demo: Desk) -> None:
    answered(demo, outputFormat="json")
    visit(page, demo, "/timeline")
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    expect(page.locator("#tl-head")).to_contain_text("1 call, 1 ask")
    expect(page.locator("#tl-c1 tr")).to_have_count(2)
    expect(page.locator("#tl-c1 .t-p").first).to_be_attached()
    call = demo.call("preferences")
    (ask,) = waiting(demo)
    row = page.locator(f"#tl-{call}")
    expect(row.locator(".t-o").first).to_be_attached()
    wide = float(row.locator(".t-o").first.get_attribute("width").rstrip("%"))  # type: ignore[union-attr]
    expect(row.locator(".t-o").first).not_to_have_attribute("width", f"{wide}%")
    expect(row.locator(".sub")).to_contain_text("waiting")
    demo.parley.script("POST", f"{demo.base}/asks/{ask['id']}/answer", action="decline")
    demo.result(call)
    expect(row.locator(".t-o")).to_have_count(0)
    expect(row.locator(".sub")).to_contain_text("a script")
    # Every bar leads to its call or ask.
    row.locator("tr.sub .bl").click()
    expect(page).to_have_url(re.compile(rf"/asks/{ask['id']}$"))


def test_keys_and_pointer_choose_a_window_and_what_is_summed_up_follows(page: Page, demo: Desk) -> None:
    for _ in range(4):
        answered(demo, outputFormat="json")
    visit(page, demo, "/timeline")
    expect(page.locator("[data-sum=calls]")).to_have_text("4")
    before = spread(page)
    page.keyboard.press("+")
    assert spread(page) == pytest.approx(2 * before, rel=0.01)
    expect(page.locator("[data-sum=calls]")).to_contain_text("of 4")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("-")
    page.keyboard.press("0")
    assert spread(page) == pytest.approx(before, rel=0.01)
    box = page.locator("#tl-mini").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 8, box["y"] + 20, steps=3)
    page.mouse.up()
    assert spread(page) > 2 * before
    expect(page.locator("[data-sum=calls]")).to_contain_text("of 4")
    page.get_by_role("button", name="Show all").click()
    # By keys from row to row; the foot says what it is.
    page.locator("#tl-c2 .nm").first.focus()
    expect(page.locator("#tl-read")).to_contain_text("preferences")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#tl-c2 tr.sub")).to_have_class(re.compile("sel"))
    expect(page.locator("#tl-read")).to_contain_text("person")


def test_what_goes_on_is_counted_on_and_outgrows_its_scale(page: Page, demo: Desk) -> None:
    call = demo.call("preferences")
    (ask,) = waiting(demo)
    visit(page, demo, "/timeline")
    total, timeline = page.locator(f"#tl-{call} [data-total]").first, page.locator("#timeline")
    first, scale = total.inner_text(), str(timeline.get_attribute("data-scale"))
    expect(total).not_to_have_text(first)
    # Nothing happens: no event redraws it, and it is drawn over more all the same.
    expect(timeline).not_to_have_attribute("data-scale", scale)
    seconds = re.compile(r"^\d+(\.\d)? s$")
    expect(total).to_have_text(seconds)
    expect(page.locator("[data-sum=person]")).to_have_text(seconds)
    page.locator(f"#tl-{call} .nm").first.focus()
    read = page.locator("#tl-read").inner_text()
    expect(page.locator("#tl-read")).not_to_have_text(read)
    demo.parley.script("POST", f"{demo.base}/asks/{ask['id']}/answer", action="decline")
    demo.result(call)
    expect(page.locator(f"#tl-{call} [data-grows-in]")).to_have_count(0)


BUSY = """() => {
  const field = document.querySelector('#tl-axis').parentElement.getBoundingClientRect();
  return [...document.querySelectorAll('#tl-rows tr.sel rect')].some((bar) => {
    const { left, right } = bar.getBoundingClientRect();
    return right >= field.left && left <= field.right;
  });
}"""


def test_a_zoom_stays_with_the_row_that_is_read_and_the_strip_is_full(page: Page, demo: Desk) -> None:
    for _ in range(4):
        answered(demo, outputFormat="json")
    visit(page, demo, "/timeline")
    page.locator("#tl-c1 .nm").first.focus()
    for _ in range(4):
        page.keyboard.press("+")
        assert page.evaluate(BUSY)
    page.locator("#tl-c4 .nm").first.focus()  # which lies outside of the window
    expect(page.locator("#tl-c4 tr").first).to_have_class(re.compile("sel"))
    assert page.evaluate(BUSY)
    page.keyboard.press("0")
    ends = """() => Math.max(...[...document.querySelectorAll('#tl-all rect')]
      .map((bar) => bar.getBoundingClientRect().right))
      / document.querySelector('#tl-mini').getBoundingClientRect().right"""
    assert page.evaluate(ends) > 0.97
    cut = """() => document.querySelector('#tl-axis').parentElement.getBoundingClientRect().right
      - document.querySelector('#tl-c4 rect:last-of-type').getBoundingClientRect().right"""
    assert page.evaluate(cut) >= 1, "the edge of the last bar is seen"


def test_on_a_phone_what_reads_a_row_hides_none(page: Page, demo: Desk) -> None:
    for _ in range(8):
        answered(demo, outputFormat="json")
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, demo, "/timeline")
    expect(page.locator(".read")).to_be_in_viewport(ratio=1)
    page.locator("#tl-rows .nm").last.focus()
    boxes = [page.locator(one).bounding_box() for one in ("#tl-rows tr >> nth=-1", ".read")]
    last, read = (one for one in boxes if one is not None)
    assert last["y"] + last["height"] <= read["y"] + 1, "the last row is above it"
    fits(page)


def test_the_same_as_a_table_is_remembered(page: Page, demo: Desk) -> None:
    answered(demo, outputFormat="json")
    visit(page, demo, "/timeline")
    expect(page.locator("#tl-c1 .fig").first).to_be_hidden()
    page.get_by_role("button", name="Table").click()
    expect(page.locator("#tl-c1 .fig").first).to_be_visible()
    expect(page.locator("#tl-c1 .b").first).to_be_hidden()
    page.reload()
    expect(page.get_by_role("button", name="Table")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#tl-c1 .fig").first).to_be_visible()


def test_nothing_is_wrong_with_it_at_any_width(page: Page, demo: Desk) -> None:
    visit(page, demo, "/timeline")
    expect(page.get_by_text("No calls yet.")).to_be_visible()
    answered(demo, outputFormat="json")
    for view in ("Bars", "Table"):
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            expect(page.locator("#tl-c1")).to_be_visible()
            page.get_by_role("button", name=view).click()
            fits(page)
            # who was waited for stands in the table of a phone too
            expect(page.locator("#tl-c1 .fig").nth(2)).to_be_visible(visible=view == "Table")
        assert axe(page) == []


def test_a_thousand_calls_are_drawn_and_the_page_goes_on(page: Page, demo: Desk) -> None:
    found: list[dict[str, Any]] = []
    for number in range(1_000):
        call = demo.parley.script("POST", f"{demo.base}/calls", method="ping")["id"]
        if number % 100 == 99:  # so many run at the same time and no more
            demo.result(call)
    demo.parley.script("GET", f"{demo.base}/timeline")
    visit(page, demo, "/timeline")
    expect(page.locator("#tl-rows > tbody").last).to_be_attached()
    found = demo.get("/timeline")["bars"]
    assert page.locator("#tl-rows > tbody").count() == min(1_000, len(found))
    call = demo.call("timetable")
    demo.result(call)
    expect(page.locator(f"#tl-{call}")).to_be_attached()
    page.keyboard.press("+")
    page.wait_for_function(f"() => +({ZOOM}) > 1.5")
