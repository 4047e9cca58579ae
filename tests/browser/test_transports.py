"""Servers over HTTP, written by others, used from the page: typed into the form of addresses, called, answered.

`server-everything`, mcp 1.30 and mcp 2.3 in its 2025 era, each over streamable HTTP and over the older SSE.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.parley import Parley
from tests.drive_http import Peer, everything_web, sdk_web

pytestmark = [pytest.mark.peers, pytest.mark.requirement("R5-41", "R5-42", "R5-47")]

Transport = Literal["http", "sse"]
Start = Callable[[str, Transport], Peer]


@pytest.fixture(scope="module")
def start() -> Iterator[Start]:
    """Starts a server; all of them end with the module."""
    with ExitStack() as running:

        def begin(name: str, transport: Transport) -> Peer:
            if name == "everything":
                return running.enter_context(everything_web(transport))
            return running.enter_context(sdk_web("sdk1" if name == "mcp 1.30" else "sdk2", transport))

        yield begin


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("name", ["everything", "mcp 1.30", "mcp 2.3"])
def test_a_server_is_reached_by_its_address_and_called(
    page: Page, parley: Parley, start: Start, name: str, transport: Transport
):
    peer = start(name, transport)
    page.locator(".seg label", has_text="URL").click()
    page.locator("input[name=url]").fill(peer.url("/mcp" if transport == "http" else "/sse"))
    if transport == "sse":
        page.get_by_label("HTTP with SSE").check()
    if name == "mcp 2.3":  # it speaks both eras
        page.locator("#option-era").select_option("legacy")
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")
    base = page.url.removeprefix(parley.origin)
    connection = parley.script("GET", base)["connection"]
    assert connection["protocol_version"] == "2025-11-25"
    expect(page.locator("#rail-tools")).to_contain_text("echo")
    page.goto(f"{page.url}/tools/echo")
    page.locator("main [name=message], main [name='/message'], main #arguments").first.wait_for()
    said = f"Grüße an {name} über {transport}"
    box = page.locator("#arguments")
    if box.count() and box.is_visible():
        box.fill(f'{{"message": "{said}"}}')
    else:
        page.locator("main [name='/message']").fill(said)
    page.locator("#call-go").click()
    card = page.locator("#calls > article").first
    expect(card.locator(".st")).to_have_text("Done")
    expect(card.locator("pre.text").first).to_contain_text(said)
    [call] = parley.script("GET", f"{base}/calls")["calls"]
    assert call["state"] == "done"
