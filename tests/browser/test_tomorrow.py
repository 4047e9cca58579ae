"""Tomorrow: what a tab says and offers after a restart, closing that can be taken back, requests that were saved."""

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.parley import Parley, running
from tests.browser.test_looks import WIDTHS, axe
from tests.drive import SERVERS

pytestmark = pytest.mark.requirement("U-S8")
COMMAND = f"python3 {SERVERS / 'raw.py'} plain"


@pytest.fixture
def data() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="parley-tomorrow-") as directory:
        yield Path(directory)


@pytest.fixture
def tab(chromium_browser: Browser) -> Iterator[Page]:
    """A tab of a browser that nobody has logged in yet."""
    context = chromium_browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def port_of(parley: Parley) -> str:
    return parley.server.rpartition(":")[2]


def started(page: Page, line: str) -> None:
    """Start a command from the form, with the consent that its first start takes."""
    page.locator("#command_line").fill(line)
    page.get_by_role("button", name="Connect", exact=True).click()
    page.get_by_role("button", name="Start it").click()
    expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")


# ------------------------------------------------------------------------------------------------------------- restart


@pytest.mark.requirement("S13")
@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_after_a_restart_an_open_tab_offers_the_same_server_in_one_click(tab: Page, data: Path, kill: bool):
    with running("--data-dir", str(data)) as first:
        first.login(tab)
        started(tab, COMMAND)
        tab.goto(f"{tab.url}/tools")
        expect(tab.locator("#pill")).to_have_attribute("data-state", "live")
        port = port_of(first)
        # A target is written at a calm moment; saving it is one, and does not end before it is on disk.
        target = {"transport": "stdio", "command": "python3", "args": COMMAND.split()[1:]}
        first.script("POST", "/targets", name="Plain", target=target)
        if kill:
            first.process.kill()
    with running("--data-dir", str(data), "--port", port):
        strip = tab.locator(".ended")
        expect(strip).to_contain_text("Parley was restarted.")
        expect(strip.get_by_role("link", name="Home")).to_be_visible()
        strip.get_by_role("button", name="Connect to the same server again").focus()
        tab.keyboard.press("Enter")
        # Logged in as before, and nobody is asked again about a command that was started before.
        expect(tab.locator("#where .lamp")).to_have_attribute("data-s", "ready")
        expect(tab).to_have_url(re.compile(r"/s/r0-[\w-]+$"))


def test_what_was_not_kept_is_asked_for_by_the_form(tab: Page, data: Path):
    with running("--data-dir", str(data)) as first:
        first.login(tab)
        started(tab, f"{COMMAND} --api-key canary-1234")
        expect(tab.locator("#pill")).to_have_attribute("data-state", "live")
        port = port_of(first)
    with running("--data-dir", str(data), "--port", port):
        tab.locator(".ended").get_by_role("button", name="Connect to the same server again").click()
        expect(tab.locator("body")).to_contain_text("Type again what is not kept on disk")
        assert "canary-1234" not in tab.content()


def test_without_a_login_the_tab_says_so(tab: Page, data: Path):
    with running("--data-dir", str(data)) as first:
        first.login(tab)
        tab.get_by_role("button", name="Start the demo server").click()
        expect(tab.locator("#pill")).to_have_attribute("data-state", "live")
        port = port_of(first)
    (data / "remembered").unlink()
    with running("--data-dir", str(data), "--port", port):
        expect(tab.locator(".ended")).to_contain_text("You are signed out.")


def test_signing_out_closes_the_open_pages(
    context: BrowserContext, page: Page, demo: Callable[[], str], parley: Parley
):
    demo()
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    other = context.new_page()
    other.goto(f"{parley.origin}/about")
    expect(other.get_by_role("heading", name="Signed in")).to_be_visible()
    other.get_by_role("button", name="Sign out", exact=True).click()
    expect(other.get_by_role("heading", level=1)).to_have_text("You are not signed in.")
    expect(page.locator(".ended")).to_contain_text("You are signed out.")


@pytest.fixture(autouse=True)
def _expected(request: pytest.FixtureRequest) -> None:
    """A page that is signed out says 401 in the console, as it should."""
    if "context" in request.fixturenames:
        request.getfixturevalue("watch").allow(r"the server responded with a status of 401")


# ------------------------------------------------------------------------------------------------------ close and undo


def test_close_can_be_taken_back_on_the_home_page(page: Page, demo: Callable[[], str]):
    base = demo()
    label = page.locator("#where b").inner_text()
    page.goto(f"{base}/tools/echo?as=json")
    page.fill("#arguments", '{"message": "ahoy"}')
    page.click("#call-go")
    expect(page.locator("#calls > article .st")).to_have_text("Done")
    page.goto(base)
    page.get_by_role("button", name="Close").first.click()
    strip = page.locator(".undo > div")
    expect(strip).to_contain_text(f"Closed {label}.")
    expect(strip.locator(".sec-left")).to_have_text(re.compile(r"^(30|2\d)$"))
    assert axe(page) == []
    strip.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(base)
    page.goto(f"{base}/calls")
    expect(page.locator("main")).to_contain_text("echo")


def test_close_in_the_list_of_the_home_page_is_taken_back_there(page: Page, demo: Callable[[], str], parley: Parley):
    base = demo()
    page.goto(f"{parley.origin}/")
    page.fill("#command_line", "half typed")
    page.get_by_role("button", name="Close").first.click()
    undo = page.locator("#lists .undo").get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    expect(page.locator("#lists .sec-left")).to_have_text(re.compile(r"^2\d$"))  # it counts
    expect(page.locator("#command_line")).to_have_value("half typed")
    undo.press("Enter")
    expect(page).to_have_url(base)


def test_a_tab_that_showed_it_offers_undo_too(
    context: BrowserContext, page: Page, demo: Callable[[], str], parley: Parley
):
    base = demo()
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    parley.script("POST", f"/s/{base.rpartition('/')[2]}/close")
    strip = page.locator(".ended")
    expect(strip).to_contain_text("This session is closed.")
    expect(strip.get_by_role("button", name=re.compile(r"^Undo \(\d+ s\)$"))).to_be_visible()
    assert axe(page) == []
    strip.get_by_role("button", name="Undo").click()
    expect(page).to_have_url(base)
    expect(page.get_by_role("button", name="Reconnect").first).to_be_visible()


# ------------------------------------------------------------------------------------------------------ saved requests


def test_a_request_is_saved_found_in_the_menu_and_in_the_palette(page: Page, demo: Callable[[], str]):
    base = demo()
    page.goto(f"{base}/tools/echo?as=json")
    page.fill("#arguments", '{"message": "ahoy from yesterday"}')
    page.locator("#save-request-box > summary").click()
    expect(page.locator("#save-name")).to_be_focused()
    # Playwright also fills what nobody can see.
    assert page.locator("#save-name").evaluate("one => getComputedStyle(one).opacity") == "1"
    page.keyboard.type("Yesterday")
    page.keyboard.press("Enter")
    expect(page.locator("#save-said")).to_have_text("Saved as Yesterday.")
    expect(page.locator("#calls > article")).to_have_count(0)  # Enter saved, and did not call
    expect(page.locator("#arguments")).to_have_value('{"message": "ahoy from yesterday"}')
    page.goto(f"{base}/tools/echo")
    menu = page.locator("#saved-requests")
    expect(menu.locator("summary")).to_have_text("Saved (1)")
    menu.locator("summary").click()
    assert axe(page) == []
    menu.get_by_role("link", name="Yesterday").click()
    expect(page.locator("#saved-from")).to_have_text("as saved: Yesterday")
    expect(page.locator("#tool-form")).to_contain_text(re.compile("message"))
    expect(page.locator("#tool-form [name$=message]").first).to_have_value("ahoy from yesterday")

    page.goto(base)
    page.keyboard.press("Control+k")
    page.locator("#palette-box").fill("yesterday")
    expect(page.locator("#palette-list [aria-selected=true]")).to_contain_text("Yesterday")
    page.keyboard.press("Enter")
    expect(page.locator("#saved-from")).to_have_text("as saved: Yesterday")

    page.locator("#saved-requests > summary").click()
    page.get_by_role("link", name="Rename or delete").click()
    page.get_by_label("Rename Yesterday").click()
    page.get_by_label("New name of Yesterday").fill("Today")
    page.keyboard.press("Enter")
    expect(page.locator(".requests")).to_contain_text("Today")
    page.get_by_role("link", name="Open in session").click()
    expect(page.locator("#saved-from")).to_have_text("as saved: Today")
    page.go_back()
    page.get_by_role("button", name="Delete Today").click()
    expect(page.locator("main")).to_contain_text("No saved requests.")


def test_no_page_of_it_scrolls_sideways(page: Page, demo: Callable[[], str], parley: Parley):
    base = demo()
    target = parley.script("GET", "/")["targets"][0]["id"]
    for index in range(3):
        long = {"name": "echo", "arguments": {"message": "a long word " * 30}}
        parley.script(
            "POST", f"/targets/{target}/requests", name=f"{'Long' * 20} {index}", method="tools/call", params=long
        )
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        for path in (f"{base}/tools/echo", f"{parley.origin}/targets/{target}/requests", f"{parley.origin}/about"):
            page.goto(path)
            for summary in page.locator("details.menu > summary").all():
                summary.click()
                over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert over <= 0, (path, width)
                page.keyboard.press("Escape")
