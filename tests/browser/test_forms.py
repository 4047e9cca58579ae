"""The form of a tool in a real tab: filled, switched, refused, sent anyway, and never disturbed."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watch
from tests.browser.parley import Parley

SERVER = Path(__file__).parents[1] / "servers" / "big.py"


@pytest.fixture
def fields(page: Page, parley: Parley) -> str:
    """The page of a tool with many kinds of fields; its address."""
    target = {"transport": "stdio", "command": sys.executable, "args": ["-I", "-S", str(SERVER)]}
    session = parley.script("POST", "/s", target=target)["url"]
    page.goto(parley.origin + session)
    expect(page.locator("#n-tools")).to_have_text("4")
    page.goto(f"{parley.origin}{session}/tools/fields")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    return f"{parley.origin}{session}"


def as_json(page: Page) -> Any:
    if page.get_attribute("#as-json", "aria-pressed") != "true":
        page.click("#as-json")
    expect(page.locator("#arguments")).to_be_visible()
    return json.loads(page.input_value("#arguments"))


def test_a_form_is_filled_and_its_call_is_made(page: Page, fields: str):
    page.get_by_label("title").fill("A seat")
    page.get_by_label("count").fill("3")
    page.get_by_role("button", name="Add tag").click()
    expect(page.locator("li.part")).to_have_count(1)
    page.locator("li.part input:not([type=hidden])").fill("window")
    page.get_by_role("button", name="Add tag").click()
    page.locator("li.part input:not([type=hidden])").nth(1).fill("aisle")
    page.get_by_role("button", name="Place of tag 1").click()
    page.get_by_role("button", name=re.compile("Move up")).click()
    expect(page.locator("li.part input:not([type=hidden])").first).to_have_value("aisle")
    page.get_by_label("Which kind of place").select_option(label="Point")
    page.get_by_label("lat").fill("1.5")
    page.locator("input[type=file]").set_input_files({"name": "x", "mimeType": "text/plain", "buffer": b"hello"})
    expect(page.locator("textarea[name='/file']")).to_have_value("aGVsbG8=")
    expected = {"title": "A seat", "count": 3, "tags": ["aisle", "window"], "place": {"lat": 1.5}, "file": "aGVsbG8="}
    page.click("#call-go")
    card = page.locator("#calls > article").first
    expect(card.locator(".st")).to_have_text("Done")
    card.get_by_role("link", name="Edit").first.click()
    assert as_json(page) == expected
    page.click("#as-form")
    expect(page.get_by_label("lat")).to_have_value("1.5")
    assert as_json(page) == expected


def test_what_does_not_fit_is_said_beside_the_field_and_can_be_sent_anyway(page: Page, fields: str, watch: Watch):
    watch.allow("422")
    page.get_by_label("title").fill("x")
    page.get_by_label("count").fill("99")
    page.click("#call-go")
    expect(page.locator("#arg-_2f_count-e")).to_contain_text("10")
    expect(page.locator("#arg-_2f_title")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#arg-_2f_title")).to_be_focused()
    expect(page.get_by_label("count")).to_have_value("99")
    assert page.locator("#calls > article").count() == 0
    page.click("#call-anyway")
    expect(page.locator("#calls > article .st")).to_have_text("Done")
    expect(page.locator("#calls > article .finding").first).to_contain_text("on purpose")
    expect(page.locator("#tool-form .err")).to_have_count(0)
    expect(page.get_by_label("count")).to_have_value("99")


def test_json_is_checked_while_it_is_typed_with_its_place(page: Page, fields: str):
    page.click("#as-json")
    page.fill("#arguments", '{"title": "ok",\n "count" 3}')
    expect(page.locator("#args-said")).to_contain_text("line 2, column 10")
    page.get_by_role("button", name="Show the place").click()
    assert page.evaluate("document.querySelector('#arguments').selectionStart") == 25
    page.fill("#arguments", '{"title": "ok", "count": 30}')
    expect(page.locator("#args-said")).to_contain_text("/count")
    page.fill("#arguments", '{"title": "ok", "count": 3}')
    expect(page.locator("#args-said")).to_contain_text("Fits the input schema")
    expect(page.locator("#arguments")).to_be_focused()


def test_a_pasted_object_fills_the_form(page: Page, fields: str):
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.setData('text/plain', text);
            const how = { clipboardData: data, bubbles: true, cancelable: true };
            document.body.dispatchEvent(new ClipboardEvent('paste', how));
        }""",
        '{"title": "pasted", "count": 7, "tags": ["one", "two"]}',
    )
    expect(page.get_by_label("title")).to_have_value("pasted")
    expect(page.get_by_label("count")).to_have_value("7")
    expect(page.locator("li.part")).to_have_count(2)
    page.click("#call-go")
    expect(page.locator("#calls > article .st")).to_have_text("Done")


def test_arguments_come_back_and_can_be_loaded_again(page: Page, fields: str):
    for title in ("first", "second"):
        if title == "second":
            page.locator("[data-edit]").first.click()
        page.get_by_label("title").fill(title)
        page.click("#call-go")
        expect(page.locator("#calls > article").first).to_contain_text(title)
        expect(page.locator("#calls > article .st").first).to_have_text("Done")
    page.goto(f"{fields}/tools/fields")
    expect(page.get_by_label("title")).to_have_value("second")
    page.locator("#calls > article").nth(1).get_by_role("link", name="Edit").click()
    expect(page.get_by_label("title")).to_have_value("first")
    assert "?from=" in page.url
    page.click("#fill-last")
    expect(page.get_by_label("title")).to_have_value("second")
    page.click("#fill-new")
    expect(page.get_by_label("title")).to_have_value("")


def test_a_half_filled_form_survives_a_thousand_messages(page: Page, demo: Callable[[], str], parley: Parley):
    base = demo()
    page.goto(f"{base}/tools/slow_count")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    steps = page.get_by_label("steps")
    steps.fill("12345")
    steps.evaluate("one => { one.setSelectionRange(2, 2); one.dataset.same = 'yes'; }")
    page.set_viewport_size({"width": 1440, "height": 420})
    page.evaluate("document.querySelector('main').scrollTop = 40")
    place = "Math.round(document.querySelector('main').scrollTop)"
    assert page.evaluate(place) == 40
    path = base.removeprefix(parley.origin)
    for _ in range(2):
        params = {"name": "slow_count", "arguments": {"steps": 500, "delay": 0}}
        parley.script("POST", f"{path}/calls", method="tools/call", params=params)
        page.keyboard.type("0", delay=20)
    expect(page.locator("#calls > article .st").first).to_have_text("Done")
    expect(page.locator("#calls > article .st").nth(1)).to_have_text("Done")
    page.keyboard.type("9")
    expect(steps).to_have_value("12009345")
    expect(steps).to_be_focused()
    assert steps.evaluate("one => [one.selectionStart, one.dataset.same]") == [5, "yes"]
    assert page.evaluate(place) == 40
    assert int(re.sub(r"\D", "", page.locator("#log-count").inner_text())) > 1000


def test_every_field_of_the_demo_goes_to_json_and_back(page: Page, demo: Callable[[], str]):
    base = demo()
    for name in ("every_field", "plan_trip", "postcard"):
        page.goto(f"{base}/tools/{name}")
        first = as_json(page)
        page.click("#as-form")
        expect(page.locator("#as-form")).to_have_attribute("aria-pressed", "true")
        assert as_json(page) == first


def test_the_form_works_by_keyboard_alone(page: Page, fields: str):
    page.get_by_label("title").focus()
    page.keyboard.type("by keyboard")
    page.keyboard.press("Enter")
    expect(page.locator("#calls > article .st")).to_have_text("Done")
    expect(page.locator("[data-edit]").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("title")).to_be_focused()
    page.get_by_role("button", name="Add tag").focus()
    page.keyboard.press("Enter")
    expect(page.locator("li.part")).to_have_count(1)
    expect(page.get_by_label("tags 0")).to_be_focused()
    page.keyboard.type("aisle")
    page.locator("#call-go").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#calls > article")).to_have_count(2)
    expect(page.locator("[data-edit]").first).to_be_focused()
