"""Everything that npm's server-everything offers works from the page: its tools, resources, templates and prompts."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Watch
from tests.browser.parley import Parley
from tests.drive_http import everything_by

pytestmark = pytest.mark.peers

ARGUMENTS: dict[str, dict[str, Any]] = {
    "echo": {"message": "hello"},
    "get-annotated-message": {"messageType": "success", "includeImage": True},
    "get-env": {},
    "get-resource-links": {"count": 2},
    "get-resource-reference": {"resourceType": "Blob", "resourceId": 3},
    "get-structured-content": {"location": "Chicago"},
    "get-sum": {"a": 2, "b": 40},
    "get-tiny-image": {},
    "gzip-file-as-resource": {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"},
    "toggle-simulated-logging": {},
    "toggle-subscriber-updates": {},
    "trigger-long-running-operation": {"duration": 1, "steps": 2},
    "get-roots-list": {},
    "trigger-elicitation-request": {},
    "trigger-url-elicitation": {"url": "https://example.test/in"},
    "trigger-sampling-request": {"prompt": "Say something"},
    "simulate-research-query": {"topic": "ferries"},
    "trigger-sampling-request-async": {"prompt": "Say something"},
    "trigger-elicitation-request-async": {},
}
SHOWS: dict[str, str] = {
    "echo": "hello",
    "get-sum": "42",
    "get-structured-content": "conditions",
    "get-resource-links": "To the resource",
    "get-tiny-image": "Image",
    "get-annotated-message": "Image",
    "get-resource-reference": "demo://resource/dynamic/blob/3",
    "trigger-long-running-operation": "completed",
    "trigger-sampling-request": "A quiet harbour",
    "trigger-sampling-request-async": "A quiet harbour",
}
BY_TASK = {"simulate-research-query"}
"""Only to be had as a task."""
SLOW = ("simulate-research-query", "trigger-long-running-operation")
"""These take seconds, so the others are called meanwhile."""


@pytest.fixture(params=["stdio", "http"])
def base(request: pytest.FixtureRequest, parley: Parley) -> Iterator[str]:
    """The address of a session with the server."""
    with everything_by(request.param) as target:
        path = parley.script("POST", "/s", target=target.model_dump(), options={"poll_interval_ms": 100})["url"]
        told = parley.script("GET", f"{path}?wait=20")
        assert told["connection"]["state"] == "ready", told["connection"]
        yield parley.origin + path
        parley.script("POST", f"{path}/close")


def ready(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")


def newest(page: Page) -> Locator:
    return page.locator("#calls > article").first


def came(page: Page, name: str) -> None:
    """What the tool said is there."""
    expect(newest(page).locator(".st").first, name).to_have_text("Done", timeout=45_000)
    expect(newest(page), name).to_contain_text(SHOWS.get(name, ""))


def answer(page: Page, name: str) -> None:
    """The ask that a tool causes, answered in the inbox."""
    card = page.locator("#asks > .ask").last
    if "sampling" in name:
        card.get_by_label("Your answer").fill("A quiet harbour")
        card.get_by_role("button", name="Approve and send", exact=True).click()
    else:
        card.get_by_role("button", name="Decline", exact=True).click()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_everything_it_offers_works_from_the_page(page: Page, base: str, parley: Parley, watch: Watch):
    path = base.removeprefix(parley.origin)
    ready(page, f"{base}/tools")
    # Some of its tools appear only once it has heard what this client can do.
    expect(page.locator("#tool-list li")).to_have_count(len(ARGUMENTS))
    listed = [each["name"] for each in parley.script("GET", f"{path}/tools")["tools"]]
    assert sorted(listed) == sorted(ARGUMENTS)
    # Neither a long name nor a long command widens the rail.
    assert page.locator(".rail").evaluate("rail => rail.scrollWidth <= rail.clientWidth")
    for name in sorted(listed, key=lambda one: one not in SLOW):
        ready(page, f"{base}/tools/{name}?as=json")
        page.locator("#arguments").fill(json.dumps(ARGUMENTS[name]))
        page.locator("#call-task" if name in BY_TASK else "#call-go").click()
        if name in SLOW:
            expect(newest(page).locator(".st").first, name).to_be_visible()
            continue
        if name.startswith("trigger-"):
            expect(page.locator("#asks > .ask[data-s=open]")).to_have_count(1)
            answer(page, name)
        came(page, name)
    for name in SLOW:
        ready(page, f"{base}/tools/{name}")
        came(page, name)

    walk_resources(page, base, path, parley)
    walk_templates(page, base)
    walk_prompts(page, base)
    # The logging was switched on by its tool: wait for a line of it, and see that a filter leaves it out or in.
    ready(page, f"{base}/logging")
    page.locator("#ask-level").select_option("debug")
    ready(page, base)
    page.get_by_role("button", name="Ping").click()
    expect(page.locator("#ping b")).to_have_text(re.compile(r"\d+(\.\d+)? m?s"))


def walk_resources(page: Page, base: str, path: str, parley: Parley) -> None:
    ready(page, f"{base}/resources")
    expect(page.locator("#resource-list a").first).to_be_visible()
    listed = [each["uri"] for each in parley.script("GET", f"{path}/resources")["resources"]]
    assert len(listed) >= 7
    page.locator("#list-q").fill("features.md")
    expect(page.locator("#resource-list li")).to_have_count(1)
    page.locator("#list-q").fill("")
    expect(page.locator("#resource-list li")).to_have_count(len(listed))
    links = page.locator("#resource-list a").evaluate_all("all => all.map(one => one.href)")
    for index, (uri, link) in enumerate(zip(listed, links, strict=True)):
        ready(page, link)
        page.locator("#read-go").click()
        expect(newest(page).locator(".st").first).to_have_text("Done")
        expect(newest(page)).to_contain_text(uri)
        if index == 0:
            page.locator("[data-as=markdown]").first.click()
            expect(page.locator(".md").first).to_be_visible()
            page.locator("#watch-go").click()
            expect(page.locator("#watch")).to_contain_text("subscribed since")
            page.locator("#watch-go").click()
            expect(page.locator("#watch-go")).to_have_text("Subscribe")


def walk_templates(page: Page, base: str) -> None:
    ready(page, f"{base}/resources/templates")
    expect(page.locator("#template-list li")).to_have_count(2)
    links = page.locator("#template-list a").evaluate_all("all => all.map(one => one.href)")
    for link, shown in zip(links, ("dynamic/text/7", "dynamic/blob/7"), strict=True):
        ready(page, link)
        field = page.locator("#arg-0")
        field.fill("7")
        expect(page.locator("#arg-0-list [role=option]")).to_have_text("7")
        expect(page.locator("#expanded")).to_contain_text(shown)
        page.locator("#read-go").click()
        page.wait_for_url(re.compile(r"/resources/one\?uri="))
        expect(newest(page).locator(".st").first).to_have_text("Done")
        expect(newest(page)).to_contain_text(shown)


def walk_prompts(page: Page, base: str) -> None:
    def fill(**values: str) -> None:
        for label, value in values.items():
            page.locator(f"[name='arg.{label}']").fill(value)

    def choose_by_keyboard() -> None:
        """The second argument depends on the first: the server hears of it as context."""
        page.locator("#arg-0").press_sequentially("Eng")
        expect(page.locator("#arg-0-list [role=option]")).to_have_text("Engineering")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator("#arg-0")).to_have_value("Engineering")
        page.keyboard.press("Tab")
        expect(page.locator("#arg-1-list [role=option]")).to_have_text(["Alice", "Bob", "Charlie"])
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        expect(page.locator("#arg-1")).to_have_value("Charlie")

    prompts: dict[str, tuple[Callable[[], None], str]] = {
        "simple-prompt": (lambda: None, "user"),
        "args-prompt": (lambda: fill(city="Bergen", state="Vestland"), "Bergen"),
        "completable-prompt": (choose_by_keyboard, "Charlie"),
        "resource-prompt": (lambda: fill(resourceType="Text", resourceId="2"), "dynamic/text/2"),
    }
    ready(page, f"{base}/prompts")
    expect(page.locator("#prompt-list li")).to_have_count(len(prompts))
    for name, (act, shown) in prompts.items():
        ready(page, f"{base}/prompts/{name}")
        act()
        page.locator("#get-go").click()
        expect(newest(page).locator(".st").first).to_have_text("Done")
        expect(newest(page).locator(".turn").first).to_be_visible()
        expect(newest(page)).to_contain_text(shown)
