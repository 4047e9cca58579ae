"""First contact in a browser: a server that wants a token, one that does not start, one that is gone; the ways on."""

import base64
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests import peers
from tests.browser.conftest import Watch
from tests.browser.parley import Parley
from tests.browser.test_looks import axe
from tests.certificates import make
from tests.drive import SERVERS
from tests.drive_http import raw_web
from tests.moody import Moody

CHALLENGE = (
    'Bearer realm="kontor", scope="crm.read crm.write", error="invalid_token", error_description="token expired", '
    'resource_metadata="https://mcp.kontor.example/.well-known/oauth-protected-resource"'
)
TOKEN = "tok-en.that~nobody_may-see-0123456789"
NARROW = (360, 390, 768, 1024)


def opened(parley: Parley, target: Any, **options: Any) -> str:
    """A session for this target, once it is connected or is not; its path."""
    body = target if isinstance(target, dict) else target.model_dump(mode="json")
    path: str = parley.script("POST", "/s", target=body, options=options)["url"]
    parley.script("GET", f"{path}?wait=60")
    return path


def sideways(page: Page) -> list[int]:
    """The widths at which this page scrolls sideways."""
    found = []
    for width in NARROW:
        page.set_viewport_size({"width": width, "height": 844})
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(width)
    page.set_viewport_size({"width": 1440, "height": 900})
    return found


@pytest.mark.requirement("U-S7")
def test_s7_a_token_is_typed_where_the_401_stands(page: Page, parley: Parley):
    """By keyboard alone: the field has the focus, and Enter connects."""
    refusal = {"status": 401, "headers": {"www-authenticate": CHALLENGE}}
    with raw_web(http={"POST": refusal}) as peer:
        path = opened(parley, peer.target(auth={"kind": "none"}))
        page.goto(parley.origin + path)
        fault = page.locator("#trouble")
        expect(fault.get_by_role("heading")).to_have_text("401 Unauthorized: credentials needed")
        rows = dict(zip(fault.locator("dt").all_inner_texts(), fault.locator("dd").all_inner_texts(), strict=True))
        assert (
            rows["Scheme"] == "Bearer" and rows["Scope"] == "crm.read crm.write" and rows["Details"] == "token expired"
        )
        assert fault.get_by_role("link", name="Connection log, 1 message").is_visible()
        field = page.get_by_label("Bearer token")
        expect(field).to_be_focused()
        expect(field).to_have_attribute("type", "password")
        assert page.locator("main .btn.go").all_inner_texts() == ["Connect"], "one thing stands out"
        assert axe(page, around=False) == [] and sideways(page) == []
        page.keyboard.type(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("#trouble")).to_be_visible()
        parley.script("GET", f"{path}?wait=60")
        assert peer.requests()[-1].headers["authorization"] == f"Bearer {TOKEN}"
        page.goto(f"{parley.origin}{path}/log")
        assert TOKEN not in page.content()
        expect(page.locator("#log .chip.mk")).to_have_count(0)


def overview(page: Page, address: str) -> None:
    """The overview of a session that never connected. For a moment after it failed, a tab is led back to the form."""
    for _ in range(100):
        page.goto(address)
        page.wait_for_timeout(200)
        if page.url == address:
            return
    raise AssertionError(f"{address} cannot be looked at")


@pytest.mark.requirement("U-S4")
def test_s4_a_server_that_does_not_start_says_why_above_and_at_the_end(page: Page, parley: Parley, tmp_path: Path):
    broken = tmp_path / "broken.py"
    broken.write_text(
        "import sys\nfor n in range(60): print('starting step', n, file=sys.stderr)\nimport pandas_is_not_there\n"
    )
    path = opened(parley, {"transport": "stdio", "command": sys.executable, "args": [str(broken)]})
    page.goto(parley.origin + path)
    line = "ModuleNotFoundError: No module named 'pandas_is_not_there'"
    expect(page.locator("#trouble").get_by_role("heading")).to_have_text(f"The server did not start: {line}")
    words = page.locator("#trouble .words")
    box, last = words.bounding_box(), words.locator("pre").bounding_box()
    assert box is not None and last is not None
    assert last["height"] > box["height"], "there is more than fits"
    assert abs(last["y"] + last["height"] - box["y"] - box["height"]) < 3, "and its end is what is seen"
    overview(page, parley.origin + path)
    expect(page.locator("#where")).to_contain_text("did not start")
    expect(page.locator("#where")).not_to_contain_text("lost")
    first = page.locator("details.first")
    expect(first).not_to_have_attribute("open", "")
    expect(page.locator("#connection > .sec .life").last).not_to_contain_text("server/discover")
    first.locator("summary").click()
    expect(first).to_contain_text("server/discover")
    assert axe(page, around=False) == [] and sideways(page) == []


@pytest.mark.requirement("U-S4")
@pytest.mark.peers
def test_s4_the_noise_of_our_version_check_is_folded_and_not_counted(page: Page, parley: Parley):
    target = {"transport": "stdio", "command": peers.mcp1_python(), "args": [str(SERVERS / "sdk1.py")]}
    path = opened(parley, target)
    page.goto(f"{parley.origin}{path}/stderr")
    fold = page.locator("#by-probe")
    expect(fold.locator("summary")).to_contain_text("lines caused by Parley's version check")
    counts = parley.script("GET", path)["counts"]
    by_probe, own = counts["stderr_lines_by_probe"], counts["stderr_lines"] - counts["stderr_lines_by_probe"]
    assert by_probe > 20 and counts["findings"] == 0
    expect(page.locator("#n-stderr")).to_have_text(str(own) if own else "")
    expect(fold.locator("li").first).to_be_hidden()
    fold.locator("summary").click()
    expect(fold.locator("li").first).to_be_visible()
    expect(page.locator("#stderr > li", has_text="validation error")).to_have_count(0)
    assert axe(page, around=False) == [] and sideways(page) == []
    page.goto(parley.origin + path)
    refused = page.locator(".life > li.old")
    expect(refused).to_contain_text("older server, as expected")
    grey = page.locator(".life > li > time").first.evaluate("one => getComputedStyle(one).color")
    assert refused.locator(".what").evaluate("one => getComputedStyle(one).color") == grey


def crash(parley: Parley, path: str, page: Page) -> None:
    """Let the server write its last words and end, and wait until the page says so."""
    words = base64.b64encode(b"loading\nconnecting to the database\nConfigError: no database\n").decode()
    parley.script("POST", f"{path}/calls", method="x/stderr", params={"base64": words})
    parley.script("POST", f"{path}/calls", method="x/exit", params={"code": 3})
    expect(page.locator("#notice")).to_contain_text("ended with code 3: ConfigError: no database")


@pytest.mark.requirement("U-S12")
def test_s12_the_banner_reconnects_on_the_page_it_stands_on(page: Page, parley: Parley, tmp_path: Path):
    moody = Moody(tmp_path)
    path = opened(parley, moody.target, era="legacy")
    page.goto(f"{parley.origin}{path}/tools/echo")
    expect(page.locator("#call-go")).to_have_text("Call echo", use_inner_text=True)
    crash(parley, path, page)
    assert page.locator("#notice pre").inner_text().splitlines() == [
        "loading",
        "connecting to the database",
        "ConfigError: no database",
    ]
    expect(page.locator("#call-go")).to_have_text("Reconnect and call", use_inner_text=True)
    assert axe(page, around=False) == [] and sideways(page) == []
    page.locator("#notice").get_by_role("button", name="Reconnect").click()
    expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")
    assert page.url.endswith("/tools/echo")
    expect(page.locator("#notice > *")).to_have_count(0)
    expect(page.locator("#call-go")).to_have_text("Call echo", use_inner_text=True)


@pytest.mark.requirement("U-S12")
def test_s12_reconnect_and_call_keeps_what_is_typed_until_the_server_is_back(
    page: Page, parley: Parley, tmp_path: Path, watch: Watch
):
    moody = Moody(tmp_path)
    path = opened(parley, moody.target, era="legacy")
    page.goto(f"{parley.origin}{path}/tools/echo?as=json")
    box = page.locator("#arguments")
    box.fill('{"message": "typed with care"}')
    crash(parley, path, page)
    moody.breaks("ConfigError: still no database")
    page.get_by_role("button", name="Reconnect and call").click()
    expect(page.locator("#notice")).to_contain_text("The server did not start: ConfigError: still no database")
    expect(box).to_have_value('{"message": "typed with care"}')
    assert moody.received("tools/call") == 0
    moody.mends()
    page.get_by_role("button", name="Reconnect and call").click()
    card = page.locator("#calls > article").first
    expect(card.locator(".st")).to_have_text("Done")
    expect(card).to_contain_text("typed with care")
    assert moody.received("tools/call") == 1


@pytest.mark.requirement("U-M13")
def test_m13_a_redirect_and_then_a_certificate_are_followed_and_trusted_by_hand(
    page: Page, parley: Parley, tmp_path: Path
):
    leaf = make("crm.kontor.example")
    with raw_web(tls=leaf.files(tmp_path)) as there:
        url = f"https://127.0.0.1:{there.port}/mcp"
        with raw_web(http={"POST": {"status": 301, "headers": {"location": url}}}) as here:
            path = opened(parley, here.target())
            page.goto(parley.origin + path)
            go_there = page.get_by_role("button", name=f"Connect to {url}")
            expect(go_there.locator("b")).to_have_text("127.0.0.1")
            expect(go_there).to_be_focused()
            assert axe(page, around=False) == [] and sideways(page) == []
            go_there.click()
        fault = page.locator("#trouble")
        expect(fault).to_contain_text("Certificate not trusted: self-signed certificate")
        assert fault.inner_text().count("self-signed") == 1
        expect(fault.get_by_role("button", name="Trust this certificate")).to_be_focused()
        expect(fault).to_contain_text("O=Kontor, CN=crm.kontor.example")
        assert there.requests() == []
        assert axe(page, around=False) == [] and sideways(page) == []
        fault.get_by_role("button", name="Trust this certificate").click()
        expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")
        page.goto(f"{parley.origin}{path}/connect")
        expect(page.get_by_label("Certificate fingerprint")).to_have_value(leaf.fingerprint)
        assert axe(page, around=False) == [] and sideways(page) == []
