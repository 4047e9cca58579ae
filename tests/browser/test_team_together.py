"""Two people in two browsers, behind nginx: one shares, the other follows, claims and answers, until it is revoked.

With PARLEY_PICTURES=folder it takes the pictures of sharing, following and claims on its way."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Playwright, expect

from tests.browser import team_house
from tests.browser.team_house import WAIT
from tests.drive import SERVERS
from tests.isolation.walls import PYTHON, lacks
from tests.screenshots_team import SIZES

pytestmark = [pytest.mark.browser, pytest.mark.requirement("T30")]
AT = team_house.ORIGIN
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
FORM = (
    '{"jsonrpc":"2.0","id":"q%s","method":"elicitation/create","params":{"message":"Which traveller is this seat for?",'
    '"requestedSchema":{"type":"object","properties":{"full_name":{"type":"string"}},"required":["full_name"]}}}'
)
_POST = """([path, body]) => fetch(path, {method: 'POST', body: JSON.stringify(body),
    headers: {'content-type': 'application/json', accept: 'application/json'}}).then((answer) => answer.status)"""


def picture(page: Page, name: str) -> None:
    """At two widths, light and dark, when somebody wants to look."""
    if (folder := os.environ.get("PARLEY_PICTURES")) is None:
        return
    Path(folder).mkdir(exist_ok=True)
    for width, (across, down) in SIZES.items():
        for scheme in ("light", "dark"):
            page.set_viewport_size({"width": across, "height": down})
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            page.screenshot(path=Path(folder) / f"together-{name}-{width}-{scheme}.png")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1440, "height": 900})


RAW = (
    f'[catalogue.raw]\nname = "Raw"\ntransport = "stdio"\ncommand = "{PYTHON}"\nreads = ["{SERVERS}"]\n'
    f'args = ["-I", "-S", "{SERVERS}/raw.py", "plain"]\n'
)


@pytest.fixture
def two(tmp_path: Path, playwright: Playwright) -> Iterator[tuple[Page, Page]]:
    """An admin and somebody whom they invited, each in a browser of their own; nothing is complained about."""
    found = team_house.tools()
    if found is None:
        lacks("nginx, openssl or a python3 that another user could run: nobody shares a session behind a proxy")
        return
    said: list[str] = []
    with (
        team_house.proxy(tmp_path, *found) as (inner, tls),
        team_house.team(tmp_path, inner, RAW) as link,
    ):
        browser = team_house.browser(playwright, tls)
        size: Any = {"width": 1440, "height": 900}
        ada, grace = (browser.new_context(ignore_https_errors=True, viewport=size).new_page() for _ in range(2))
        for page in (ada, grace):
            page.set_default_timeout(WAIT * 1000)
            page.on("pageerror", lambda error: said.append(str(error)))
        ada.goto(link)
        ada.get_by_role("button", name="Sign in").click()
        ada.wait_for_url(f"{AT}/")
        ada.goto(f"{AT}/people")
        ada.get_by_label("Name", exact=True).fill("Grace Hopper")
        ada.get_by_role("button", name="Make invite link").click()
        grace.goto(ada.locator(".once code").inner_text())
        grace.get_by_role("button", name="Sign in").click()
        grace.wait_for_url(f"{AT}/")
        yield ada, grace
        browser.close()
    assert said == []


def test_one_shares_and_the_other_follows_claims_and_answers(two: tuple[Page, Page]):
    expect.set_options(timeout=WAIT * 1000)
    ada, grace = two
    ada.goto(f"{AT}/")
    ada.get_by_role("button", name="Connect Raw").click()
    ada.wait_for_url(f"{AT}/s/**")
    expect(ada.get_by_role("link", name="echo").first).to_be_visible()
    base = ada.url.removeprefix(AT)

    ada.get_by_role("link", name="Share", exact=True).click()
    ada.get_by_role("heading", name="Share this session").wait_for()
    links = ada.get_by_role("region", name="Links")
    links.get_by_text("Answer", exact=True).click()
    links.get_by_role("button", name="Make a link").click()
    link = ada.locator("#share-link").inner_text()
    assert link.startswith(f"{AT}/join/")
    picture(ada, "share")

    grace.goto(link)
    grace.get_by_role("button", name="Open the session").click()
    grace.wait_for_url(f"{AT}{base}")
    expect(grace.get_by_role("button", name="Disconnect")).to_have_count(0)
    expect(ada.locator("#here")).to_contain_text("2 here")
    grace.get_by_role("button", name="Follow admin").click()
    ada.goto(f"{AT}{base}/log")
    grace.wait_for_url(f"{AT}{base}/log")
    ada.get_by_role("link", name="Tools", exact=False).first.click()
    grace.wait_for_url(f"{AT}{base}/tools")
    expect(grace.get_by_role("button", name="Following admin")).to_be_visible()
    picture(grace, "follow")

    assert ada.evaluate(_POST, [f"{base}/calls", _say(1)]) == 202
    field = grace.get_by_label("full_name").first
    field.fill("Test Trav")
    expect(ada.get_by_text("Being answered by Grace Hopper")).to_be_visible()
    expect(grace.get_by_text("You are answering")).to_be_visible()
    expect(ada.get_by_label("full_name").first).to_be_disabled()
    picture(ada, "claim-other")
    picture(grace, "claim-mine")
    ada.get_by_role("button", name="Take over").click()
    expect(field).to_be_disabled()
    expect(field).to_have_value("Test Trav")
    grace.get_by_role("button", name="Take over").click()
    expect(field).to_be_enabled()
    field.fill("Test Traveller")
    grace.get_by_role("button", name="Accept", exact=True).click()
    expect(ada.locator("#inbox")).to_contain_text("Form accepted by Grace Hopper")
    answers = ada.evaluate(f"fetch('{base}/log.jsonl').then((answer) => answer.text())").count("Test Traveller")
    assert answers == 1, "the server gets one answer"

    # A step of one's own ends following.
    grace.goto(f"{AT}{base}/stderr")
    expect(grace.get_by_role("button", name="Follow admin")).to_have_attribute("aria-pressed", "false")
    ada.goto(f"{AT}{base}/share")
    ada.get_by_role("button", name="Revoke the link").click()
    expect(grace.get_by_text("This is no longer shared with you.")).to_be_visible()
    answer = grace.goto(f"{AT}{base}")
    assert answer is not None and answer.status == 404
    ada.goto(f"{AT}/audit")
    for who, act in (
        ("Grace Hopper", "joined"),
        ("Grace Hopper", "answered"),
        ("admin", "revoked a share"),
        ("admin", "shared"),
    ):
        row = ada.get_by_role("row").filter(has=ada.get_by_role("cell", name=act, exact=True)).first
        expect(row).to_contain_text(who)


def _say(number: int) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": "say", "arguments": {"lines": [FORM % number, DONE]}}}
