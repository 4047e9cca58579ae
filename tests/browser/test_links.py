"""The host that a card stresses is the one that the browser opens; only a browser can say which that is."""

import json
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app.core import links
from tests.browser.parley import Parley
from tests.unit.addresses import ADDRESSES

SERVER = Path(__file__).parents[1] / "servers" / "raw.py"
_OPENED = """addresses => addresses.map(one => {
    const link = document.createElement('a');
    link.href = one;
    try { return [new URL(one, location.href).hostname, link.hostname, new URL(one).href]; } catch { return null; }
})"""
_CARDS = """cards => cards.map(card => {
    const link = card.querySelector('a[data-accept]'), url = card.querySelector('.url');
    const same = link && url.textContent === link.getAttribute('href');
    return [url.querySelector('b')?.textContent ?? null, link?.hostname ?? null, same];
})"""


@pytest.mark.requirement("H07")
def test_h07_the_browser_opens_the_host_that_was_read(page: Page):
    addresses = [address for address, _ in ADDRESSES]
    accepted = [link for link in map(links.read, addresses) if link is not None]
    assert len(accepted) > 20
    for link, opened in zip(accepted, page.evaluate(_OPENED, [link.href for link in accepted]), strict=True):
        assert opened is not None, link.href
        assert opened[:2] == [link.host, link.host], link.href
    for address, opened in zip(addresses, page.evaluate(_OPENED, addresses), strict=True):
        read = links.read(address)
        assert read is None or opened[:2] == [read.host, read.host], address


@pytest.mark.requirement("H07", "R4-42", "R4-44")
def test_h07_the_card_stresses_the_host_that_the_browser_opens(page: Page, parley: Parley):
    chosen = [one for one in ADDRESSES if "evil" in one[0] or "xn--" in (one[1] or "") or "127" in one[0]][:40]
    asks = [
        {
            "jsonrpc": "2.0",
            "id": f"q{at}",
            "method": "elicitation/create",
            "params": {"mode": "url", "elicitationId": f"e{at}", "url": address, "message": "Sign in"},
        }
        for at, (address, _) in enumerate(chosen)
    ]
    settings = json.dumps({"then": [json.dumps(one) for one in asks]})
    target = {"transport": "stdio", "command": sys.executable, "args": [str(SERVER), "plain", "--with", settings]}
    session = parley.script("POST", "/s", target=target, options={"era": "legacy"})["url"]
    page.goto(f"{parley.origin}{session}/inbox")
    expect(page.locator("#asks > li")).to_have_count(len(chosen))
    told = page.locator("#asks > li").evaluate_all(_CARDS)
    for (address, host), (stressed, opened, same) in zip(chosen, told, strict=True):
        assert (stressed, opened) == (host, host), address
        assert same is (None if host is None else True), address
