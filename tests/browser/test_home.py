"""Home as a person meets it who has tried a few things: servers in one list, failures that cost nothing."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watch
from tests.browser.desk import opened, script
from tests.browser.parley import Parley
from tests.browser.test_looks import axe
from tests.drive import raw_target

ASKED = {"message": "Where to?", "requestedSchema": {"type": "object", "properties": {}}}
NOBODY = "http://127.0.0.1:9/mcp"
WIDTHS = (360, 390, 768, 1024, 1440)


def some(parley: Parley) -> str:
    """A server that is open, one that is saved, and a failure; the address of the open session."""
    opened: str = parley.script("POST", "/s", target=raw_target().model_dump(mode="json"))["url"]
    parley.script("GET", f"{opened}?wait=20")
    parley.script("POST", "/targets", name="Far away", target={"transport": "http", "url": NOBODY})
    tried = parley.script("POST", "/s", target={"transport": "http", "url": "http://127.0.0.1:9/other"})["url"]
    parley.script("GET", f"{tried}?wait=20")
    return opened


@pytest.mark.requirement("U-S3")
def test_a_failure_costs_nothing_and_the_form_comes_back(page: Page, parley: Parley):
    page.locator(".seg label", has_text="URL").click()
    page.fill("#url", "127.0.0.1:9/mcp")
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.locator(".conn #trouble")).to_contain_text("refused")
    expect(page.locator("#url")).to_be_focused()
    expect(page.locator("#url")).to_have_value(NOBODY)
    page.locator(".seg label", has_text="Command").click()
    target = raw_target()
    page.fill("#command_line", " ".join([target.command, *target.args]))
    page.get_by_role("button", name="Connect", exact=True).click()
    page.get_by_role("button", name="Start it", exact=True).click()
    expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")
    assert len(parley.script("GET", "/")["sessions"]) == 1, "the second attempt used the session of the first"
    page.goto(f"{parley.origin}/")
    expect(page.locator(".srv").first.locator("li")).to_have_count(1)
    expect(page.locator(".srv").first).to_contain_text("open now")


@pytest.mark.requirement("U-S3")
def test_a_slow_failure_leads_back_too(page: Page, parley: Parley):
    page.fill("#command_line", f"{sys.executable} -c 'import time; time.sleep(1.5); raise SystemExit(3)'")
    page.get_by_role("button", name="Connect", exact=True).click()
    page.get_by_role("button", name="Start it", exact=True).click()
    expect(page.locator(".conn #trouble")).to_be_visible()
    expect(page.locator("#command_line")).to_be_focused()
    expect(page.locator(".srv")).to_have_count(0)


@pytest.mark.requirement("U-S3")
def test_sessions_are_closed_from_home_and_what_is_typed_stays(page: Page, parley: Parley):
    some(parley)
    page.goto(f"{parley.origin}/")
    expect(page.locator("#sessions-title")).to_contain_text("1 of 20")
    page.fill("#command_line", "half a thought")
    page.get_by_role("button", name="Close raw").click()
    expect(page.locator(".srv.open")).to_have_count(0)
    expect(page.locator("#command_line")).to_have_value("half a thought")
    page.get_by_role("button", name="Connect raw").click()
    page.get_by_role("button", name="Start it", exact=True).or_(page.locator("#where")).first.wait_for()


@pytest.mark.requirement("U-M13")
def test_an_empty_form_is_put_right_without_another_page(page: Page):
    address = page.url
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.locator("#command_line-error")).to_have_text("Type the command that starts the server.")
    expect(page.locator("#command_line")).to_be_focused()
    page.keyboard.type("x")
    expect(page.locator("#command_line-error")).to_be_empty()
    assert page.url == address


@pytest.mark.requirement("U-M13")
def test_a_line_for_a_shell_is_offered_without_one(page: Page):
    page.fill("#command_line", "cd /srv && API_KEY=canary python3 crm.py")
    expect(page.locator("#argv")).to_contain_text("Working directory /srv, variable API_KEY, command python3 crm.py?")
    page.get_by_role("button", name="Use this").click()
    expect(page.locator("#command_line")).to_have_value("python3 crm.py")
    expect(page.locator("#cwd")).to_have_value("/srv")
    row = page.locator(".by-stdio .trio").first
    expect(row.locator("[name=env_name]")).to_have_value("API_KEY")
    expect(row.locator("[name=env_value]")).to_have_value("canary")
    expect(row.locator("[name=env_value]")).to_have_attribute("type", "password")
    expect(page.locator("#argv")).to_contain_text("runs as")
    row.get_by_role("button", name="Remove the variable").click()
    expect(row.locator("[name=env_name]")).to_have_value("")


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.requirement("U-S3")
def test_home_scrolls_sideways_nowhere_and_axe_finds_nothing(page: Page, parley: Parley):
    for state in ("new", "full", "failed"):
        if state == "full":
            some(parley)
            page.goto(f"{parley.origin}/")
        if state == "failed":
            failed = next(one for one in parley.script("GET", "/")["sessions"] if not one["listed"])
            page.goto(f"{parley.origin}/?session={failed['id']}")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (state, width)
        assert axe(page) == [], state
        page.set_viewport_size({"width": 390, "height": 844})
        assert axe(page) == [], state


APART = """() => [...document.querySelectorAll('.srv li')].flatMap((row) => {
  const acts = row.querySelector('.acts').getBoundingClientRect();
  const said = [...row.querySelectorAll('.nm > *, .facts, .seen')].filter((one) => one.textContent.trim());
  return said.map((one) => [one.textContent.trim(), one.getBoundingClientRect()])
    .filter(([, box]) => !box.width || (box.right > acts.left + 1 && box.bottom > acts.top && box.top < acts.bottom))
    .map(([words]) => words);
})"""
"""What of the rows is not seen, or lies under a button."""


@pytest.mark.requirement("U-S3")
def test_nothing_in_a_row_lies_under_its_buttons(page: Page, parley: Parley):
    some(parley)
    desk = opened(parley, script("raw.py", "plain"))
    desk.say({"id": "a1", "method": "elicitation/create", "params": ASKED})
    lost = opened(parley, script("raw.py", "plain"))
    os.kill(lost.get("")["connection"]["pid"], signal.SIGKILL)
    lost.get("?wait=20")
    page.goto(f"{parley.origin}/")
    expect(page.locator(".srv.open .seen", has_text="1 waiting")).to_be_visible()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate(APART) == [], width


def test_a_file_that_is_no_recording_says_so_and_can_be_chosen_again(page: Page, watch: Watch, tmp_path: Path):
    watch.allow("422")
    file = tmp_path / "picture.jsonl"
    file.write_bytes(b"\x89PNG\r\n")
    page.mouse.move(200, 200)  # what opens a file comes with the first sign of a person
    page.set_input_files("#recording-file", file)
    said = page.locator("#open-file-said")
    expect(said).to_contain_text("This is no recording")
    expect(said).to_have_class(re.compile(r"\berr\b"))
    expect(page.locator("#recording-file")).to_have_value("")


@pytest.mark.requirement("U-P19")
def test_placeholders_are_lighter_than_values_and_the_door_stands_in_the_middle(
    page: Page, parley: Parley, watch: Watch
):
    colours = page.evaluate(
        "[getComputedStyle(document.querySelector('#command_line'), '::placeholder').color,"
        " getComputedStyle(document.querySelector('#command_line')).color]"
    )
    assert colours[0] != colours[1]
    watch.allow("401")
    page.context.clear_cookies()
    page.goto(f"{parley.server}/nothing-here")
    box = page.locator(".centred .narrow").bounding_box()
    size = page.viewport_size
    assert box is not None
    assert size is not None
    assert abs(box["x"] + box["width"] / 2 - size["width"] / 2) < 2
