"""A round of 2026-07-28 answered in the page: three asks, any order, by phone; and what the call's page says of it."""

import contextlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests import peers
from tests.browser.desk import opened, visit
from tests.browser.parley import Parley
from tests.browser.test_inbox import act, cards, settled
from tests.browser.test_looks import axe
from tests.drive import SERVERS
from tests.drive_http import started
from tests.drive_modern import TELLS, Modern, ask_form, ask_sampling, needs

STATE = 'opaque é\u2028 "quoted" \\ 🛳 ' + "x" * 300


@pytest.mark.requirement("R6-31", "R6-32", "R6-35")
def test_three_asks_of_one_round_are_answered_by_phone(page: Page, parley: Parley, tmp_path: Path) -> None:
    first = needs(STATE, who=ask_form("Who travels?"), word=ask_sampling(), sure=ask_form("Really?"))
    record = tmp_path / "record"
    record.touch()
    settings = json.dumps({"scripts": {"ask": [first, TELLS]}, "tools": [{"name": "ask", "inputSchema": {}}]})
    args = ["-I", "-S", str(SERVERS / "raw_modern.py"), "--record", str(record), "--with", settings]
    desk = opened(parley, {"transport": "stdio", "command": sys.executable, "args": args}, era="auto")
    peer = Modern(None, record)  # type: ignore[arg-type]
    page.set_viewport_size({"width": 360, "height": 740})
    visit(page, desk, "/inbox")
    call = desk.call("ask")
    expect(cards(page)).to_have_count(3)
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
    really = cards(page).filter(has_text="Really?")
    act(really, "Decline")
    settled(really, "held")
    expect(really).to_contain_text("It leaves together with the other answers of its round.")
    page.wait_for_function("() => document.querySelector('.ask[data-s=held]').offsetHeight < 50")  # one line
    really.locator("summary").click()
    act(really, "Change the answer")
    really = cards(page).filter(has_text="Really?")
    settled(really, "open")
    act(really, "Cancel")
    settled(really, "held")
    sampling = cards(page, "Sampling")
    sampling.get_by_label("Your answer").fill("Ahoy")
    act(sampling, "Approve and send")
    settled(sampling, "held")
    page.reload()  # nothing is lost: two answers wait for the third
    expect(page.locator("#asks > .ask[data-s=held]")).to_have_count(2)
    assert len(peer.received("tools/call")) == 1
    form = cards(page).filter(has_text="Who travels?")
    form.get_by_label(re.compile("name")).fill("Ann")
    act(form, "Accept")
    settled(form, "answered")
    expect(page.locator("#asks > .ask[data-s=held]")).to_have_count(0)  # they have left with it, and say so
    told = json.loads(desk.result(call)["content"][0]["text"])
    assert told["requestState"].encode() == STATE.encode()
    assert told["inputResponses"]["who"] == {"action": "accept", "content": {"name": "Ann"}}
    assert told["inputResponses"]["sure"] == {"action": "cancel"}
    assert told["inputResponses"]["word"]["content"]["text"] == "Ahoy"
    visit(page, desk, f"/calls/{call}")
    rounds = page.locator(".rounds")
    expect(rounds).to_contain_text("Round 1")
    expect(rounds).to_contain_text(f"same {len(STATE.encode())} B echoed")
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
    assert axe(page) == []


@pytest.mark.requirement("R7-20", "R7-10", "R7-42")
@pytest.mark.parametrize("way", ["stdio", "http"])
def test_an_asking_task_of_fastmcp_is_answered_across_a_reload(page: Page, parley: Parley, way: str) -> None:
    argv = [peers.fastmcp_python(), str(SERVERS / "tables.py")]
    with contextlib.ExitStack() as stack:
        target: dict[str, Any] = {"transport": "stdio", "command": argv[0], "args": argv[1:]}
        if way == "http":
            target = {"transport": "http", "url": stack.enter_context(started([*argv, "http"])).url()}
        desk = opened(parley, target, era="auto")
        assert desk.get("")["connection"]["era"] == "modern"
        visit(page, desk)
        params = {"name": "book_table", "arguments": {"name": "Ida"}}
        call = str(parley.script("POST", f"{desk.base}/calls", method="tools/call", params=params)["id"])
        form = cards(page, "Form")
        expect(form).to_contain_text("input of a task")
        form.get_by_label(re.compile("time")).fill("19:00")
        page.reload()
        form = cards(page, "Form")
        expect(form.get_by_label(re.compile("time"))).to_have_value("19:00")  # what was typed came back
        act(form, "Accept")
        settled(form, "answered")
        assert "19:00" in desk.result(call)["content"][0]["text"]
        (task,) = desk.get("/tasks")["client"]
        page.goto(f"{desk.url}/tasks/{task['id']}")
        expect(page.locator("main")).to_contain_text("completed")
        assert task["taskId"] not in page.url and len(desk.get("/inbox")["settled"]) == 1
        desk.parley.script("POST", f"{desk.base}/disconnect")


@pytest.mark.requirement("R6-10")
def test_one_button_runs_the_call_in_the_other_era_and_shows_both(page: Page, parley: Parley) -> None:
    desk = opened(parley, {"transport": "demo"}, era="modern")
    visit(page, desk)
    call = desk.call("preferences")
    form = cards(page, "Form")
    form.get_by_label("outputFormat").select_option(label="markdown")
    act(form, "Accept")
    settled(form, "answered")
    desk.result(call)
    visit(page, desk, f"/calls/{call}")
    page.locator(".compare-link > summary").click()
    page.get_by_role("button", name="Run it in 2025-11-25").click()
    expect(page.locator("h1")).to_contain_text("Compare preferences")
    form = page.locator("#compare .in-place .ask")  # of the other session, in this page
    form.get_by_label("outputFormat").select_option(label="plain")
    act(form, "Accept")
    expect(page.locator("#differs")).to_be_visible()
    page.locator("#differs > summary").click()
    expect(page.locator("#compare")).to_contain_text("in 1 round against as requests of the server")
    page.locator("#compare .r summary", has_text="4,").click()
    expect(page.locator("#compare .wire-list").nth(1)).to_contain_text("elicitation/create")
    assert axe(page, around=False) == []
