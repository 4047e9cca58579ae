"""The tour, by keyboard alone, in both eras: ten steps, each one button, and what to look at marked."""

import pytest
from playwright.sync_api import Page, expect

from app.sessions.tour import STEPS
from tests.browser.parley import Parley


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_tour_by_keyboard(era: str, page: Page, parley: Parley, demo_url: str):
    target = {"transport": "http", "url": demo_url}
    base = parley.script("POST", "/s", target=target, options={"era": era})["url"]
    assert parley.script("GET", f"{base}?wait=20")["connection"]["state"] == "ready"
    page.goto(f"{parley.origin}{base}/tour")
    go, strip = page.locator("#tour-go"), page.locator("#tour")
    for number, step in enumerate(STEPS, 1):
        expect(strip).to_contain_text(f"{number} of 10")
        expect(strip).to_contain_text(step.before)
        expect(go).to_have_text(step.button)
        expect(go).to_be_focused()
        page.keyboard.press("Enter")
        expect(strip).to_contain_text(step.after)
        expect(page.locator(".toured")).to_have_count(1)
        expect(go).to_be_focused()
        if step.key == "call":
            page.reload()  # it goes on where it was
            expect(strip).to_contain_text(step.after)
        if step.key == "log":
            page.keyboard.press("Tab")
            page.keyboard.press("Tab")
            expect(page.get_by_role("button", name="Later")).to_be_focused()
            page.keyboard.press("Enter")
            expect(strip).to_have_count(0)
            page.goto(f"{parley.origin}{base}/tour")
            assert parley.script("GET", f"{base}/tour")["left"]
            page.get_by_role("button", name="4. The log").press("Enter")
            expect(strip).to_contain_text(step.after)
            expect(go).to_be_focused()
        if number < len(STEPS):
            page.keyboard.press("Enter")
    expect(go).to_have_text("Begin again")
    settled = parley.script("GET", f"{base}/inbox")["settled"]
    assert [one["kind"] for one in settled] == ["sampling", "form"]
    calls = {
        one["subject"] if "subject" in one else one["params"]["name"]: one["state"]
        for one in parley.script("GET", f"{base}/calls")["calls"]
    }
    assert calls["preferences"] == calls["write_caption"] == calls["add"] == "done"
