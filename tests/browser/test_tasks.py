"""A tool called as a task, from the page: progress, a question in the middle, a reload, and the result on screen.

The server announces nothing: every status comes by polling. `PARLEY_TASK_SECONDS=30` (`make long-task`) makes it the
task of 30 seconds that the product promises; by default it is a short one.
"""

import os
import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.parley import Parley
from tests.browser.test_looks import axe
from tests.drive_tasks import DONE, task_peer

SECONDS = float(os.environ.get("PARLEY_TASK_SECONDS", "2"))
PATIENCE = (40 + SECONDS) * 1000


@pytest.mark.timeout(120 + SECONDS)
@pytest.mark.requirement("R2-12", "R2-20", "R2-32", "R2-30", "S003 Elicitation & sampling integration")
def test_a_task_with_progress_a_question_and_a_reload_ends_with_its_result_on_screen(parley: Parley, page: Page):
    third = SECONDS / 3
    script = [
        ["wait", third],
        ["progress", 1, 3],
        ["status", "working", "A first step"],
        ["wait", third / 2],
        ["progress", 2, 3],
        ["elicit"],
        ["wait", third],
        ["progress", 3, 3],
        ["wait", third / 2],
        ["finish", DONE],
    ]
    with task_peer("http", script=script, poll=500, ttl=600_000) as peer:
        target = {"transport": "http", "url": peer.target.url}  # type: ignore[union-attr]
        made = parley.script("POST", "/s", target=target, options={"era": "legacy"})
        parley.script("GET", f"{made['url']}?wait=30")
        page.goto(f"{parley.origin}{made['url']}")
        expect(page.locator("#n-tools")).to_have_text("2")
        page.goto(f"{parley.origin}{made['url']}/tools/work")
        expect(page.get_by_role("button", name="Call as a task")).to_be_enabled()
        page.fill("#ttl", "600000")
        page.get_by_role("button", name="Call as a task").click()
        card = page.locator("article.call")
        expect(card).to_contain_text("as a task")
        expect(card.locator("progress.big")).to_be_visible(timeout=PATIENCE)
        page.reload()
        expect(page.locator(".ask[data-s=open]")).to_be_visible(timeout=PATIENCE)
        expect(card.locator(".st")).to_have_text("Waiting for you")
        expect(card).to_contain_text("2 of 3")

        card.get_by_role("link", name=re.compile(r"^task \d")).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"Task \d+"))
        expect(page.locator("main")).to_contain_text("needs an answer")
        page.get_by_text("Sequence diagram").click()
        drawing = page.get_by_role("img", name=re.compile("as a sequence"))
        expect(drawing).to_be_visible()
        expect(drawing.locator(".now")).to_have_count(1)
        page.get_by_text("The same as a list").click()
        expect(page.locator(".steps [aria-current=step]")).to_have_count(1)
        assert axe(page) == []
        page.emulate_media(color_scheme="dark")
        assert axe(page) == []
        page.get_by_label("name").fill("Ines")
        page.get_by_role("button", name="Accept", exact=True).click()
        expect(page.locator("main .sums")).to_contain_text("completed", timeout=PATIENCE)
        expect(drawing).to_be_visible()  # what was opened stays open while it is patched
        expect(drawing.locator(".now")).to_have_count(0)
        page.get_by_role("link", name=re.compile("with its result")).click()
        expect(card.locator(".st")).to_have_text("Done")
        expect(card).to_contain_text("done for Ines")
        polls = peer.times("tasks/get")
        assert len(polls) >= 2 and not [
            each for each in peer.messages(">") if each.get("method") == "notifications/tasks/status"
        ]
        lasted = polls[-1] - peer.times("tools/call")[0]
        assert lasted >= SECONDS * 0.8, "the task was shorter than it should be"

        page.goto(f"{parley.origin}{made['url']}/tasks")
        page.get_by_role("button", name="Refresh").click()
        expect(page.locator("#running")).to_contain_text("Server list: 1 task")
        assert axe(page) == []
