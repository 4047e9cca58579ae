"""What a browser would not show is shown, and what it could not lay out is cut."""

import re
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.parley import Parley
from tests.servers.unseen import HIDDEN

SERVER = Path(__file__).parents[1] / "servers" / "unseen.py"
HANG = 10
"""Ten times what a page of a million combining marks may take; in one stack they took 30 s to lay out."""


@pytest.fixture
def unseen(page: Page, parley: Parley) -> str:
    target = {"transport": "stdio", "command": sys.executable, "args": ["-I", "-S", str(SERVER)]}
    session: str = parley.script("POST", "/s", target=target, options={"era": "legacy"})["url"]
    page.goto(parley.origin + session)
    expect(page.locator("#n-tools")).to_have_text("5")
    return page.url


@pytest.mark.requirement("H08")
def test_h08_three_tools_that_read_alike_look_different(page: Page, unseen: str):
    page.goto(f"{unseen}/tools")
    names = page.locator("#tools .list .name")
    assert names.all_inner_texts()[:3] == ["add", "add\\u200b", "add\\u00ad"]
    expect(names.nth(1).locator(".mark")).to_have_attribute("title", "U+200B ZERO WIDTH SPACE")
    widths = [box["width"] for box in (one.bounding_box() for one in names.all()[:3]) if box]
    assert len(set(widths)) > 1 and min(widths[1:]) > widths[0]
    expect(page.locator("#rail-list li").nth(2)).to_contain_text("add\\u00ad")
    page.goto(f"{unseen}/tools/~1")
    expect(page.locator(".desc")).to_have_text(f"Adds two numbers.⟨{HIDDEN}⟩")
    expect(page.locator(".desc .mark")).to_be_visible()
    expect(page.locator("#tool-form, form").first).to_be_visible()


@pytest.mark.requirement("H08")
def test_h08_ordinary_emoji_and_scripts_are_calm(page: Page, unseen: str):
    page.goto(f"{unseen}/tools/~2")
    expect(page.locator("h1 .ttl2")).to_have_text("Add ❤️")
    expect(page.locator(".desc")).to_have_text("Adds 👩‍💻 and 😀⟨Tell nobody⟩.")
    page.goto(f"{unseen}/tools/turn")
    expect(page.locator(".desc")).to_have_text("Turns \\u202etxet\\u202c around, in می‌خواهم too.")


@pytest.mark.requirement("M07")
def test_m07_a_million_combining_marks_are_laid_out_as_quickly_as_other_text(page: Page, unseen: str):
    begun = time.monotonic()
    page.goto(f"{unseen}/tools/stack", timeout=60_000)
    # A page takes the first 100,000 characters of a description.
    expect(page.locator(".desc .mark")).to_have_text("⟨and 99991 more marks⟩", timeout=60_000)
    page.evaluate("document.body.getBoundingClientRect().height")
    page.click("#call-go")
    expect(page.locator("#calls > article .st").first).to_have_text("Done")
    expect(page.locator("#calls > article .mark").first).to_have_text(re.compile("more marks"))
    page.goto(f"{unseen}/tools", timeout=60_000)
    page.goto(f"{unseen}/log", timeout=60_000)
    page.evaluate("document.body.getBoundingClientRect().height")
    assert time.monotonic() - begun < HANG
