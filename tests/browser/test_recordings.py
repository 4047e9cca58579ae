"""A session of yesterday: recorded in the page, read after a restart, a moment of it dropped on another Parley."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Watch
from tests.browser.desk import Desk, opened, visit
from tests.browser.parley import Parley, running
from tests.browser.test_compare import fits
from tests.browser.test_looks import WIDTHS, axe

pytestmark = pytest.mark.requirement("U-C05", "U-C06")

DROP = """([name, content]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(content), (one) => one.charCodeAt(0))], name));
  for (const kind of ['dragover', 'drop'])
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
def browser(chromium_browser: Browser, watch: Watch) -> Iterator[BrowserContext]:
    """A browser of somebody who has logged in nowhere; nothing may be complained about in it."""
    context = chromium_browser.new_context(viewport={"width": 1440, "height": 900}, accept_downloads=True)
    context.set_default_timeout(20_000)
    context.on("page", watch.attach)
    yield context
    context.close()
    assert watch.unexpected() == []


def sound(page: Page, name: str) -> None:
    """Everybody can read this page, on a wide and on a narrow screen, and nothing scrolls sideways."""
    assert axe(page, around=False) == [], name
    for width in (390, WIDTHS[0]):
        page.set_viewport_size({"width": width, "height": 900})
        fits(page)


def lived(tab: Page, parley: Parley) -> Desk:
    """A session that is recorded from the header on, with a call that asked and was answered."""
    desk = opened(parley, {"transport": "demo"})
    visit(tab, desk)
    tab.get_by_role("button", name="Record", exact=True).click()
    stop = tab.get_by_role("button", name=re.compile("^Recording, .*Stop$"))
    expect(stop).to_contain_text("Stop")
    call = desk.call("preferences")
    tab.goto(f"{parley.origin}{desk.base}/inbox")
    card = tab.locator("#inbox .ask, main .ask").first
    expect(card).to_be_visible()
    ask = desk.asks()[0]
    parley.script("POST", f"{desk.base}/asks/{ask['id']}/answer", action="decline")
    desk.result(call)
    desk.result(desk.call("echo", message="a needle", password="canary-of-the-harbour"))
    return desk


def test_yesterday_is_read_and_a_moment_of_it_shared(browser: BrowserContext, watch: Watch, tmp_path: Path) -> None:
    data, tab = tmp_path / "data", browser.new_page()
    watch.allow("ERR_")  # of a page whose Parley has ended
    with running("--data-dir", str(data)) as parley:
        parley.login(tab)
        desk = lived(tab, parley)
        tab.get_by_role("button", name=re.compile("Stop$")).click()
        strip = tab.locator("#recorded")
        expect(strip).to_contain_text("Recorded,")
        expect(strip.get_by_role("link", name="Open")).to_be_visible()
        for width in (390, 1024, 1440):
            tab.set_viewport_size({"width": width, "height": 900})
            boxes = [tab.locator(one).bounding_box() for one in ("#recorded", "main")]
            above, below = (one for one in boxes if one is not None)
            assert above["height"] > 20 and above["y"] + above["height"] <= below["y"] + 1, "it hides nothing"
        rid = parley.script("GET", desk.base)["recording"]["rid"]

    with running("--data-dir", str(data)) as parley:  # the next day
        parley.login(tab)
        earlier = tab.locator(f'a[href$="/r/{rid}"]').first
        expect(earlier).to_be_visible()
        tab.goto(f"{parley.origin}/recordings")
        sound(tab, "recordings")
        tab.locator(f'main a[href$="/r/{rid}"]').first.click()
        expect(tab.locator(".tape")).to_contain_text("Read-only")
        sound(tab, "recording")
        tab.get_by_role("navigation").get_by_role("link", name="Timeline").first.click()
        expect(tab.locator("#tl-head")).to_contain_text("2 calls, 1 ask")
        sound(tab, "timeline")
        tab.get_by_role("navigation").get_by_role("link", name="Log").first.click()
        tab.locator("main").get_by_text("a needle").first.click()
        tab.get_by_role("link", name="Share this moment").first.click()
        expect(tab.get_by_role("heading", name="Share this moment")).to_be_visible()
        tab.get_by_label("Note").fill("Look at the needle.")
        preview = tab.locator("#moment")
        expect(preview).to_contain_text("Look at the needle.")
        expect(preview).not_to_contain_text("canary")
        tab.get_by_label("Redact also").fill("serverinfo\n" + 80 * "x")
        expect(preview).to_contain_text("Matches nothing")
        sound(tab, "moment")
        tab.get_by_label("Redact also").fill("")
        expect(preview).not_to_contain_text("Matches nothing")
        tab.get_by_role("button", name="Save moment").click()
        expect(tab.locator(".tape")).to_contain_text("Look at the needle.")
        with tab.expect_download() as waiting:
            tab.get_by_role("link", name="Download").first.click()
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)

    with running("--data-dir", str(tmp_path / "other")) as other:  # somebody else
        theirs = browser.new_page()
        other.login(theirs)
        expect(theirs.locator("#open-file")).to_be_attached()
        theirs.mouse.move(200, 200)  # what opens a file comes with the first sign of a person
        theirs.wait_for_function(
            "() => performance.getEntriesByType('resource').some((one) => one.name.includes('opening'))"
        )
        theirs.wait_for_load_state("networkidle")
        theirs.evaluate(DROP, [file.name, base64.b64encode(file.read_bytes()).decode()])
        expect(theirs.locator(".tape")).to_contain_text("Look at the needle.")
        expect(theirs.locator("main")).to_contain_text("a needle")
        assert b"canary" not in file.read_bytes()
        masked = theirs.locator(".js.mask").first
        expect(masked).to_be_attached()
        assert masked.evaluate("one => getComputedStyle(one, '::after').content") == '"masked"'
        sound(theirs, "dropped")
