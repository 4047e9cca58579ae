"""A team behind nginx with the file of `.deploy`: TLS, HTTP/2, and somebody who is switched off in the middle.

Needs nginx (Debian: nginx-light) and openssl; where they are missing, the summary of the run says so."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Page, Playwright, expect

from tests.browser import team_house
from tests.browser.team_house import SERVER, WAIT
from tests.browser.test_looks import WIDTHS, axe
from tests.drive import SERVERS
from tests.drive_http import started
from tests.isolation.walls import PYTHON, lacks
from tests.team.test_oidc import SECRET, Provider

pytestmark = [pytest.mark.browser, pytest.mark.requirement("T07", "T08", "T01")]
CANARY = "canary-of-grace-77"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """The invitation of the admin, and the port of the proxy."""
    found = team_house.tools()
    if found is None:
        lacks("nginx, openssl or a python3 that another user could run: no team behind a proxy with TLS")
        return
    with team_house.proxy(tmp_path, *found) as (inner, tls), team_house.team(tmp_path, inner) as link:
        yield link, tls


def test_somebody_is_invited_works_and_is_switched_off_in_the_middle(house: tuple[str, int], playwright: Playwright):
    link, tls = house
    browser = team_house.browser(playwright, tls)
    boss, grace = (browser.new_context(ignore_https_errors=True).new_page() for _ in range(2))
    boss.goto(link)
    boss.get_by_role("button", name="Sign in").click()
    boss.wait_for_url("https://parley.example/")
    [cookie] = boss.context.cookies()
    assert (cookie["name"], cookie["secure"], cookie["httpOnly"], cookie["path"]) == (
        "__Host-parley",
        True,
        True,
        "/",
    )
    assert _looked_at(boss, "/", "/me", "/people", "/catalogue", "/catalogue/new", "/audit", "/isolation") == []
    # The admin lists a server and invites somebody.
    boss.goto("https://parley.example/catalogue/new")
    boss.get_by_label("Name", exact=True).first.fill("Release runner")
    boss.get_by_label("Command").fill(f"{PYTHON} -I -S {SERVER}")
    boss.get_by_text("Files and environment").click()
    boss.get_by_label("Directories it may read").fill(str(SERVER.parent))
    row = boss.get_by_role("group", name="Variable 1")
    row.get_by_label("Name").fill("REGION")
    row.get_by_label("Allowed values").fill("north, south")
    boss.get_by_role("button", name="Add variable").click()
    row = boss.get_by_role("group", name="Variable 2")
    row.get_by_label("Name").fill("API_KEY")
    row.get_by_label("Given by").select_option("secret")
    boss.get_by_role("button", name="Save entry").last.click()
    boss.wait_for_url("https://parley.example/catalogue/release-runner")
    boss.goto("https://parley.example/people")
    boss.get_by_label("Name", exact=True).fill("Grace")
    boss.get_by_role("button", name="Make invite link").click()
    link = boss.locator(".once code").inner_text()

    others = _children()
    # Who was invited picks it, fills in what it wants, and answers what it asks.
    grace.goto(link)
    grace.get_by_role("button", name="Sign in").click()
    grace.get_by_role("link", name="Connect… Release runner").click()
    grace.get_by_label("REGION").select_option("south")
    grace.get_by_label("API_KEY").fill(CANARY)
    grace.get_by_role("button", name="Connect", exact=True).click()
    grace.wait_for_url("https://parley.example/s/**")
    session = grace.url
    expect(grace.get_by_role("link", name="build").first).to_be_visible(timeout=WAIT * 1000)
    grace.goto(f"{session}/tools/build")
    grace.locator("#call-go").click()
    card = grace.locator(".ask").first
    expect(card.locator("p.says")).to_have_text("Which tag does the build in south get?", timeout=WAIT * 1000)
    card.get_by_label("Tag").fill("v2.1")
    card.get_by_role("button", name="Accept").click()
    expect(grace.get_by_text("tagged v2.1").first).to_be_visible(timeout=WAIT * 1000)
    children = _children() - others
    assert children
    # The next ask is open when they are switched off: nothing is answered in their name.
    call = {"method": "tools/call", "params": {"name": "build", "arguments": {}}}
    sent = """([address, call]) => fetch(address, {method: "POST", body: JSON.stringify(call),
        headers: {"content-type": "application/json"}}).then((answer) => answer.status)"""
    assert grace.evaluate(sent, [f"{session}/calls", call]) < 300
    expect(grace.locator(".ask").get_by_role("button", name="Accept")).to_be_visible(timeout=WAIT * 1000)

    boss.goto("https://parley.example/people")
    boss.locator("summary", has_text="Switch off…").click()
    expect(boss.get_by_text("Ends 1 session and every sign-in at once.")).to_be_visible()
    boss.get_by_role("button", name="Switch off", exact=True).click()
    expect(boss.get_by_text("switched off")).to_be_visible()
    expect(grace.get_by_text("You are signed out").first).to_be_visible(timeout=WAIT * 1000)
    end = time.monotonic() + WAIT
    while any(psutil.pid_exists(pid) for pid in children) and time.monotonic() < end:
        grace.wait_for_timeout(50)
    assert not [pid for pid in children if psutil.pid_exists(pid)]
    for gone in (session, "https://parley.example/"):
        answer = grace.goto(gone)
        assert answer is not None and answer.status == 401, gone
    expect(grace.get_by_text("You are not signed in")).to_be_visible()
    boss.goto("https://parley.example/audit")
    expect(boss.get_by_role("cell", name="switched off", exact=True)).to_be_visible()
    for page in ("audit", "catalogue", "isolation"):
        boss.goto(f"https://parley.example/{page}")
        assert CANARY not in boss.content(), page
    browser.close()


@pytest.mark.requirement("S16")
def test_somebody_signs_in_with_a_service_and_somebody_else_is_not_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, playwright: Playwright
):
    found = team_house.tools()
    if found is None:
        lacks("nginx, openssl or a python3 that another user could run: no team behind a proxy with TLS")
        return
    monkeypatch.setenv("OIDC_SECRET", SECRET)
    with started([sys.executable, str(SERVERS / "openid.py")]) as peer:
        provider = Provider(peer)
        more = f"""[oidc]
            issuer = "{provider.name}"
            client_id = "parley"
            client_secret_env = "OIDC_SECRET"
            label = "Example"
            allowed_domains = ["example.com"]
            admins = ["boss@example.com"]
        """
        with team_house.proxy(tmp_path, *found) as (inner, tls), team_house.team(tmp_path, inner, more):
            browser = team_house.browser(playwright, tls)
            grace, mallory = (browser.new_context(ignore_https_errors=True).new_page() for _ in range(2))
            grace.goto("https://parley.example/me")
            assert _axe(grace) == []
            grace.get_by_role("link", name="Sign in with Example").click()
            grace.get_by_role("button", name="Sign in as the test user").click()
            grace.wait_for_url("https://parley.example/")
            expect(grace.get_by_role("link", name="Me, Grace Hopper")).to_be_visible()
            provider.set(user={"sub": "u-9", "name": "M", "email": "m@elsewhere.example", "email_verified": True})
            mallory.goto("https://parley.example/")
            mallory.get_by_role("link", name="Sign in with Example").click()
            mallory.get_by_role("button", name="Sign in as the test user").click()
            expect(mallory.get_by_role("heading", name="You are not signed in.")).to_be_visible()
            expect(mallory.get_by_role("link", name="Sign in with Example")).to_be_visible()
            assert "__Host-parley" not in [one["name"] for one in mallory.context.cookies()]
            answer = mallory.goto("https://parley.example/")
            assert answer is not None and answer.status == 401
            browser.close()


def _looked_at(page: Page, *paths: str) -> list[str]:
    """What is wrong with these pages, wide and narrow."""
    found = []
    for path in paths:
        page.goto(f"https://parley.example{path}")
        found += [f"{path} {one}" for one in _axe(page)]
    return found


def _axe(page: Page) -> list[str]:
    return axe(page, widths=(WIDTHS[0], WIDTHS[-1]))


def _children() -> set[int]:
    return {one.pid for one in psutil.process_iter(["cmdline"]) if _is_child(one)}


def _is_child(process: psutil.Process) -> bool:
    words = process.info["cmdline"] or []
    return bool(words) and words[0] == PYTHON and str(SERVER) in words
