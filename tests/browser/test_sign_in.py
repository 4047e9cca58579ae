"""Signing in to a protected server in a browser: the card, the page of the authorization server, the steps."""

import re

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Watch
from tests.browser.parley import Parley
from tests.browser.test_contact import sideways
from tests.browser.test_looks import axe
from tests.drive_oauth import Harbour, protected

BOTH = (1440, 390)


def agree(page: Page) -> None:
    """What a person does: open the sign-in page, which is a window of its own, and allow."""
    with page.context.expect_page() as opened:
        page.locator("#sign-in").get_by_role("link", name="Open sign-in page").click()
    window = opened.value
    expect(window.get_by_role("heading", name="Harbour office")).to_be_visible()
    assert window.evaluate("window.opener") is None, "it cannot see Parley"
    window.get_by_role("button", name="Allow").click()
    expect(window.locator("body")).to_contain_text("You can close this window")
    assert "canary" not in window.inner_text("body")
    window.close()


def called(page: Page, parley: Parley, path: str, tool: str) -> None:
    page.goto(f"{parley.origin}{path}/tools/{tool}")
    page.click("#call-go")


def connected(page: Page, harbour: Harbour) -> str:
    """By the form of the home page; the path of the session."""
    page.locator("#by-http").check(force=True)
    page.fill("#url", harbour.resource)
    page.locator("form.connect .btn").get_by_text("Connect", exact=True).click()
    expect(page).to_have_url(re.compile(r"/s/[^/]+$"))
    return "/s/" + page.url.rsplit("/", 1)[1]


def test_a_person_signs_in_calls_is_stepped_up_and_sees_the_token_refresh(
    page: Page, context: BrowserContext, parley: Parley
):
    with protected(jwt=True) as harbour:
        path = connected(page, harbour)
        card = page.locator("#inbox #sign-in")
        expect(card.get_by_role("heading", name="Sign in to this server")).to_be_visible()
        for words in (harbour.resource, harbour.issuer, "tide:read", "Use a token instead"):
            expect(card).to_contain_text(words)
        expect(page.locator("#signing")).to_contain_text("Sign in")
        link = card.get_by_role("link", name="Open sign-in page")
        address = link.get_attribute("href")
        assert address is not None and address.startswith(f"{harbour.issuer}/authorize?")
        assert card.locator(".url").inner_text() == address, "the whole address can be read and copied"
        assert link.get_attribute("rel") == "noopener noreferrer" and link.get_attribute("target") == "_blank"
        assert sideways(page) == [] and axe(page, widths=BOTH) == []

        # A second tab shows the same; a reload in the middle changes nothing.
        other = context.new_page()
        other.goto(f"{parley.origin}{path}/sign-in")
        expect(other.locator("#sign-in .url")).to_have_text(address)
        expect(other.locator("#step-authorization")).to_have_attribute("data-s", "waiting")
        page.reload()
        expect(link).to_have_attribute("href", address)
        agree(page)
        for tab in (page, other):
            expect(tab.locator("#sign-in")).to_be_hidden()
            expect(tab.locator("#signing")).to_contain_text("signed in")
            expect(tab.locator("#where .lamp")).to_have_attribute("data-s", "ready")
        expect(page.locator(".tokenline")).to_contain_text("Signed in at " + harbour.issuer.removeprefix("http://"))
        expect(page.locator(".tokenline time")).to_have_text(re.compile(r"^(59|1:00):\d\d"))
        expect(page.locator("#inbox-open")).to_be_visible()  # nothing waits: the inbox is a strip again

        called(page, parley, path, "read_tide")
        expect(page.locator(".call .st").first).to_have_attribute("data-s", "done")
        expect(page.locator(".call").first).to_contain_text("The tide is at 2.4 m.")

        # The second tool wants more: the call waits, and goes on by itself.
        called(page, parley, path, "move_boat")
        expect(card.get_by_role("heading", name="More scopes needed")).to_be_visible()
        expect(card).to_contain_text("One request waits.")
        expect(card.locator(".kv")).to_contain_text("boat:write")
        expect(other.locator("#sign-in").get_by_role("heading", name="More scopes needed")).to_be_visible()
        agree(page)
        expect(page.locator(".call .st").first).to_have_attribute("data-s", "done")
        expect(page.locator(".call").first).to_contain_text("The boat lies at berth 4.")

        # The token is refreshed, first because the server takes it no longer, then because somebody wants it.
        steps = other.locator(".stp")
        expect(other.locator("#signing-in")).to_contain_text("boat:write")
        expect(steps).to_have_count(7)
        harbour.set(now="outdate")
        page.get_by_role("button", name="Call again").click()
        expect(page.locator(".call")).to_have_count(2)
        expect(page.locator(".call .st").first).to_have_attribute("data-s", "done")
        expect(other.locator("#step-refresh")).to_have_attribute("data-s", "done")
        many = len(harbour.tokens)
        other.get_by_role("button", name="Refresh now").click()
        expect(other.locator("#step-refresh")).to_have_attribute("data-s", "done")
        for _ in range(200):
            if len(harbour.tokens) > many:
                break
            other.wait_for_timeout(50)
        assert len(harbour.tokens) == many + 1 and [one["good"] for one in harbour.tokens][-1]

        # The steps by keyboard; what was opened stays open; the log and the steps lead to one another.
        other.locator("#step-token summary").focus()
        other.keyboard.press("Enter")
        token = other.locator("#step-token .inside")
        expect(token).to_contain_text("grant_type")
        expect(token.get_by_role("heading", name="Checked")).to_be_visible()
        other.get_by_role("button", name="Refresh now").click()
        expect(other.locator(".claims")).to_contain_text("this server")
        expect(token).to_be_visible()
        assert sideways(other) == [] and axe(other, widths=BOTH) == []
        token.get_by_role("link", name="In the log").click()
        expect(other).to_have_url(re.compile(r"/log#http-\d+$"))
        there = other.locator(f"[id='{other.url.rpartition('#')[2]}']")
        expect(there).to_be_visible()
        there.locator("summary").click()
        there.get_by_role("link", name="Sign-in: Token request").click()
        expect(other.locator("#step-token .inside")).to_be_visible()
        shown = page.content() + other.content()
        assert not [one for one in harbour.secrets if one in shown]

        # Forgotten: the next request asks to sign in again.
        other.get_by_role("button", name="Forget").click()
        expect(other.locator("#sign-in").get_by_role("button", name="Sign in", exact=True).first).to_be_visible()


def test_a_failed_sign_in_says_why_at_every_width_and_a_pasted_address_is_read(
    page: Page, parley: Parley, watch: Watch
):
    watch.allow("422")
    with protected(fault="wrong issuer") as harbour:
        path = connected(page, harbour)
        card = page.locator("#sign-in")
        expect(card).to_contain_text("The metadata belongs to another issuer: it says https://login.example")
        page.goto(f"{parley.origin}{path}/sign-in")
        failed = page.locator("#step-server-metadata")
        expect(failed).to_have_attribute("data-s", "failed")
        expect(failed.locator(".inside")).to_be_visible()
        expect(page.locator("#step-registration .inside")).to_be_hidden()
        assert sideways(page) == [] and axe(page, widths=BOTH) == []

        # It is put right, and that step runs alone; then the rest.
        harbour.set(fault=None)
        failed.get_by_role("button", name="Run again").click()
        expect(failed).to_have_attribute("data-s", "done")
        expect(page.locator("#step-registration")).to_have_attribute("data-s", "todo")
        page.locator("#step-registration summary").click()
        page.locator("#step-registration").get_by_role("button", name="Run from here").click()
        expect(page.locator("#step-authorization")).to_have_attribute("data-s", "waiting")

        # A Parley that the browser cannot reach is told where it ended; what is typed stays while the page lives on.
        card.get_by_text("Paste the final address").click()
        field = card.get_by_label("Final address")
        field.fill("https://example.com/?code=1&state=not-ours")
        card.get_by_role("button", name="Go on").click()
        expect(card.get_by_role("alert")).to_be_visible()
        address = card.get_by_role("link", name="Open sign-in page").get_attribute("href")
        assert address is not None
        field.fill(harbour.allow(address))
        card.get_by_role("button", name="Go on").click()
        expect(page.locator(".tokenline")).to_be_visible()
        expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")
