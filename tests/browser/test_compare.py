"""Two calls side by side in the page: what differs, what either asks is answered there, and rounds as a ladder."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.desk import Desk, opened, visit
from tests.browser.parley import Parley
from tests.browser.test_inbox import act
from tests.browser.test_looks import axe
from tests.drive import SERVERS
from tests.drive_modern import TELLS, ask_form, ask_sampling, needs

pytestmark = pytest.mark.requirement("U-S9")
JSON = {"outputFormat": "json", "includeTimestamps": True}


@pytest.fixture
def demo(parley: Parley) -> Desk:
    return opened(parley, {"transport": "demo"})


def waiting(desk: Desk) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = desk.get("/inbox?wait=30")["open"]
    return found


def answered(desk: Desk, **content: Any) -> str:
    """A call of `preferences` that was answered with this."""
    call = desk.call("preferences")
    (ask,) = waiting(desk)
    desk.parley.script("POST", f"{desk.base}/asks/{ask['id']}/answer", action="accept", content=content)
    desk.result(call)
    return call


def said(desk: Desk, **content: Any) -> str:
    """A call of the raw script that brings this."""
    line = json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"content": [], "structuredContent": content}})
    call = desk.call("say", lines=[line.replace('"id": 0', '"id": $ID', 1)])
    desk.result(call)
    return call


def verdict(page: Page, step: str) -> Locator:
    return page.locator("#compare .mid", has=page.locator("b", has_text=step))


def fits(page: Page) -> None:
    """Nothing scrolls sideways."""
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_the_ask_of_the_other_call_is_answered_in_the_page(page: Page, demo: Desk) -> None:
    first = answered(demo, **JSON)
    second = demo.call("preferences")
    (ask,) = waiting(demo)
    visit(page, demo, f"/compare?left={first}&right={second}")
    expect(page.locator("#inbox")).to_have_count(0)
    expect(verdict(page, "Ask 1")).to_contain_text("waiting")
    form = page.locator(f"#ask-{ask['id']}")
    expect(form).to_have_count(1)
    expect(page.locator(".as-in")).to_contain_text(f"Filled in as in call {first[1:]}")
    expect(form.get_by_label("outputFormat")).to_have_value("0")  # json, as in the call before
    assert demo.asks()  # nothing is sent until somebody presses
    form.get_by_label("outputFormat").select_option(label="plain")
    assert axe(page, around=False) == []
    act(form, "Accept")
    expect(verdict(page, "Ask 1")).to_contain_text("≠ answer")
    expect(page.locator("#compare .r mark", has_text="plain")).to_be_visible()
    expect(verdict(page, "Result")).to_contain_text("≠")
    expect(page.locator(".diff .changed", has_text='"plain"')).to_be_visible()
    outcome = demo.get(f"/asks/{ask['id']}")
    assert outcome["outcome"]["content"]["outputFormat"] == "plain" and outcome["answered_by"]["kind"] == "person"


def test_the_same_answers_are_given_by_one_press(page: Page, demo: Desk) -> None:
    first = answered(demo, **JSON)
    second = demo.call("preferences")
    (ask,) = waiting(demo)
    visit(page, demo, f"/compare?left={first}&right={second}")
    banner = page.locator(".same")
    expect(banner).to_contain_text(f"Call {second[1:]} waits for you")
    expect(banner).to_contain_text("outputFormat json, verbosity not set, includeTimestamps true")
    banner.get_by_role("button", name="Give the same answers").click()
    expect(verdict(page, "Ask 1")).to_contain_text("equal")
    expect(banner).to_have_count(0)
    outcome = demo.get(f"/asks/{ask['id']}")
    assert outcome["outcome"]["content"] == JSON and outcome["answered_by"]["kind"] == "person"
    assert axe(page, around=False) == []


def test_both_are_called_again_and_later_asks_answered_too(page: Page, parley: Parley, demo: Desk) -> None:
    first, second = answered(demo, **JSON), answered(demo, **JSON)
    visit(page, demo, f"/compare?left={first}&right={second}")
    page.get_by_role("button", name="Call both again").click()
    expect(page.locator(".notice")).to_contain_text("is called again once call")
    page.get_by_role("button", name="Give the same answers").click()
    # The right one is sent by itself, and its ask stands in the page, to be answered as in the left one.
    expect(page.locator(".r .in-place")).to_be_visible()
    page.get_by_label("Later asks too").check()
    page.get_by_role("button", name="Give the same answers").click()
    expect(verdict(page, "Ask 1")).to_contain_text("equal")
    expect(page.locator("#compare .st[data-s=done]")).to_have_count(2)


def test_one_call_in_both_versions_with_its_asks_in_the_page(page: Page, parley: Parley) -> None:
    desk = opened(parley, {"transport": "demo"}, era="modern")
    call = answered(desk, **JSON)
    visit(page, desk, f"/calls/{call}")
    page.locator(".compare-link > summary").click()
    page.get_by_role("button", name="Run it in 2025-11-25").click()
    expect(page.locator("h1")).to_contain_text("Compare preferences")
    # Both sessions know an ask a1: this one has a name of its own, and its form leads to its session.
    expect(page.locator(".r .in-place .ask")).to_be_visible()
    page.get_by_role("button", name="Give the same answers").click()
    expect(verdict(page, "Ask 1")).to_contain_text("equal")
    expect(verdict(page, "Protocol")).to_contain_text("≠ version")
    expect(page.locator("#differs")).to_be_visible()
    page.locator("#differs > summary").click()
    expect(page.locator("#compare")).to_contain_text("in 1 round against as requests of the server")
    assert axe(page, around=False) == []
    other = desk.get(f"/calls/{call}/compare")["other_session"]
    labels = {one["id"]: one["label"] for one in parley.script("GET", "/")["sessions"]}
    assert labels[other].endswith(f"compared with call {call[1:]}")
    page.get_by_role("link", name="Swap").click()
    expect(page.locator("#compare .l.hd")).to_contain_text("2025-11-25")
    page.get_by_role("button", name="Close it").click()
    expect(page.locator("h1")).to_contain_text("preferences")
    assert other not in {one["id"] for one in parley.script("GET", "/")["sessions"]}


def test_lines_are_folded_walked_through_and_filtered(page: Page, raw_desk: Desk) -> None:
    rows = {f"k{number:02}": number for number in range(30)}
    first = said(raw_desk, **rows, order_id="x1")
    second = said(raw_desk, **{**rows, "k05": "other", "k20": 99}, order_id="x2", note="<b>new</b>")
    visit(page, raw_desk, f"/compare?left={first}&right={second}")
    shown = page.locator(".diff tr:visible")
    expect(page.locator(".diff .eq button")).to_have_count(3)
    page.get_by_role("button", name="equal lines").first.click()
    expect(page.locator(".diff tr", has_text="k00: 0")).to_be_visible()
    page.get_by_role("button", name="All 32 lines").click()
    expect(page.locator(".diff tr", has_text="k12: 12")).to_be_visible()
    page.get_by_role("button", name="Changes").click()
    expect(page.locator(".diff tr", has_text="k12: 12")).to_be_hidden()
    expect(shown.filter(has_text="<b>new</b>")).to_have_count(1)  # a text, no markup
    page.locator("h1").click()
    page.keyboard.press("j")
    expect(page.locator("#diff-at")).to_have_text("1 of 3")
    expect(page.locator(".diff tr:focus")).to_contain_text("other")
    page.keyboard.press("k")
    expect(page.locator("#diff-at")).to_have_text("3 of 3")
    expect(verdict(page, "Result")).to_contain_text("≠ 3 changes")
    page.get_by_label("Ignore ids and times").uncheck()
    expect(verdict(page, "Result")).to_contain_text("≠ 4 changes")
    expect(page.locator(".diff .changed", has_text="x2")).to_be_visible()
    assert axe(page, around=False) == []
    with page.expect_download() as kept:
        page.get_by_role("link", name="Export").click()
    assert json.loads(Path(kept.value.path()).read_text())["result"]["different"] == 3


def test_another_call_is_chosen_from_the_list(page: Page, raw_desk: Desk) -> None:
    calls = [said(raw_desk, n=number) for number in range(3)]
    visit(page, raw_desk, f"/calls/{calls[2]}")
    page.locator(".compare-link > summary").click()
    page.get_by_role("link", name=f"Call {calls[0][1:]}").click()
    expect(page.locator("#compare .l.hd")).to_contain_text(f"Call {calls[0][1:]}")
    expect(page.locator("#compare .r.hd")).to_contain_text(f"Call {calls[2][1:]}")
    page.locator(".l .pick-call > summary").click()
    page.keyboard.press("Escape")
    expect(page.locator(".l .pick-call > .menu")).to_be_hidden()
    expect(page.locator(".l .pick-call > summary")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("link", name=f"Call {calls[1][1:]}").click()
    expect(page.locator("#compare .l.hd")).to_contain_text(f"Call {calls[1][1:]}")


def test_it_fits_and_says_of_which_call_each_part_is(page: Page, demo: Desk) -> None:
    first, second = answered(demo, **JSON), answered(demo, outputFormat="plain")
    widths = (1440, 1024, 768, 390, 360)
    visit(page, demo, f"/compare?left={first}&right={second}")
    names = page.locator("#compare .who:visible")
    for width in widths:
        page.set_viewport_size({"width": width, "height": 844})
        fits(page)
        if width < 896:
            expect(names.filter(has_text=f"Call {second[1:]}").first).to_be_visible()
            line = page.locator(".diff .changed", has_text='"plain"')
            expect(line.locator(".lft .who")).to_have_text(first[1:])
            expect(line.locator(".rgt .who")).to_have_text(second[1:])
        else:
            expect(names).to_have_count(0)
    third = demo.call("preferences")
    waiting(demo)
    visit(page, demo, f"/compare?left={first}&right={third}")
    for width in widths:
        page.set_viewport_size({"width": width, "height": 844})
        fits(page)
    assert axe(page, around=False) == []


def asks_in_rounds(parley: Parley, tmp_path: Path, rounds: list[dict[str, Any]] | None = None) -> Desk:
    steps = rounds or [
        needs("state-1", name=ask_form("Which name is right?")),
        needs("state-two", note=ask_sampling("Write a note")),
        TELLS,
    ]
    record = tmp_path / "record"
    record.touch()
    settings = json.dumps({"scripts": {"ask": steps}, "tools": [{"name": "ask", "inputSchema": {}}]})
    args = ["-I", "-S", str(SERVERS / "raw_modern.py"), "--record", str(record), "--with", settings]
    return opened(parley, {"transport": "stdio", "command": sys.executable, "args": args}, era="auto")


@pytest.mark.parametrize("width", [390, 1440])
def test_rounds_are_a_ladder_and_answered_on_it(page: Page, parley: Parley, tmp_path: Path, width: int) -> None:
    desk = asks_in_rounds(parley, tmp_path)
    page.set_viewport_size({"width": width, "height": 900})
    call = desk.call("ask", colour="blue")
    waiting(desk)
    visit(page, desk, f"/calls/{call}")
    expect(page.locator("#inbox")).to_have_count(0)
    rungs = page.locator(".rung:not(.hdr)")
    expect(rungs).to_have_count(1)
    expect(rungs.first.locator("> .us")).to_contain_text("tools/call with 1 argument")
    expect(rungs.first.locator("> .th")).to_contain_text("input_required with 1 ask, state 7 B")
    expect(page.locator(".sums")).to_contain_text("1, 1 open")
    form = rungs.first.locator(".ask")
    page.keyboard.press("n")  # the next ask, wherever it stands
    expect(form.get_by_label("name")).to_be_focused()
    page.keyboard.type("Alster Energy")
    act(form, "Accept")
    # The next round comes by itself: the answer in words on the left, the next question on the right.
    expect(rungs).to_have_count(2)
    expect(rungs.nth(0).locator("> .th")).to_contain_text("accepted in")
    sent = rungs.nth(1).locator("> .us")
    expect(sent).to_contain_text("again with 1 answer")
    expect(sent.locator("dt")).to_have_text("Which name is right?")
    expect(sent.locator("dd")).to_contain_text("Alster Energy")
    expect(sent).to_contain_text("same 7 B echoed")
    fits(page)
    assert axe(page, around=False) == []
    sampling = rungs.nth(1).locator(".ask")
    sampling.get_by_label("Your answer").fill("Kept the older one.")
    act(sampling, "Approve and send")
    expect(rungs).to_have_count(3)
    expect(rungs.nth(2).locator("> .us dd")).to_contain_text("“Kept the older one.”")
    expect(page.locator(".sums")).to_contain_text("echoed unchanged, twice")
    expect(rungs.nth(2).locator("> .th")).to_contain_text("Done")
    page.get_by_text("Send this round again…").first.click()
    expect(page.get_by_role("button", name="Send again").first).to_be_visible()


def test_a_held_answer_is_changed_on_the_ladder_and_a_lost_one_can_be_read(
    page: Page, parley: Parley, tmp_path: Path
) -> None:
    desk = asks_in_rounds(parley, tmp_path, [needs("s", one=ask_form("First?"), two=ask_form("Second?")), TELLS])
    call = desk.call("ask")
    waiting(desk)
    visit(page, desk, f"/calls/{call}")
    open_asks = page.locator(".rung .in-place > .ask")
    expect(open_asks).to_have_count(2)
    act(open_asks.filter(has_text="First?"), "Decline")
    held = page.locator(".slot[data-s=held]")
    expect(held).to_contain_text("declined")
    expect(held).to_contain_text("Sent with the other answers of this round.")
    held.get_by_role("button", name="Change the answer").click()
    expect(open_asks).to_have_count(2)
    open_asks.filter(has_text="First?").get_by_label("name").fill("Ann")
    page.get_by_role("button", name="Cancel the call").click()
    gone = page.locator(".slot", has_text="First?")
    expect(gone).to_contain_text("withdrawn")
    gone.get_by_role("link", name="withdrawn").click()
    expect(page.locator(".ask [data-typed]")).to_contain_text("Ann")  # what was typed is not lost
