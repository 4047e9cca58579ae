"""A real Parley, a real Chromium, and pages that fail their test on any console error, page error or CSP report."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Playwright,
    Response,
    expect,
    sync_playwright,
)

from tests.bench.processes import demo_over_http
from tests.browser.desk import Desk, opened, script
from tests.browser.parley import Parley, launch, running

FAILURES = Path(__file__).parent / "failures"
_REPORT = """document.addEventListener('securitypolicyviolation',
    event => console.error('CSP ' + event.violatedDirective + ' ' + event.blockedURI));"""

expect.set_options(timeout=60_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """One for each worker: it holds an event loop, and a process has only one of those."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium_browser(playwright: Playwright) -> Iterator[Browser]:
    browser = launch(playwright)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def parley_process() -> Iterator[Parley]:
    with running() as parley:
        yield parley


@pytest.fixture
def parley(parley_process: Parley) -> Iterator[Parley]:
    """The running Parley, without sessions before and after the test."""
    yield parley_process
    parley_process.close_sessions()


class Watch:
    """What the pages of one test complained about."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._allowed: list[str] = []

    def allow(self, pattern: str) -> None:
        """A complaint that this test provokes."""
        self._allowed.append(pattern)

    def unexpected(self) -> list[str]:
        return [one for one in self.complaints if not any(re.search(pattern, one) for pattern in self._allowed)]

    def attach(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("response", self._response)
        page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        page.on("dialog", self._dialog)

    def _console(self, line: ConsoleMessage) -> None:
        if line.type in {"error", "warning"}:
            self.complaints.append(line.text)

    def _response(self, answer: Response) -> None:
        if answer.status >= 500:
            self.complaints.append(f"{answer.status} {answer.url}")

    def _dialog(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture(scope="session")
def profile(chromium_browser: Browser, parley_process: Parley) -> Iterator[BrowserContext]:
    """What the tests of a worker share: making another costs Chromium more than most tests do. Its first page stays,
    and with it the process that renders ours (`--process-per-site`)."""
    opened = chromium_browser.new_context(viewport={"width": 1440, "height": 900})
    opened.set_default_timeout(60_000)
    opened.add_init_script(_REPORT)
    opened.new_page().goto(f"{parley_process.server}/healthz")
    yield opened
    opened.close()


@pytest.fixture
def context(
    profile: BrowserContext, parley: Parley, watch: Watch, request: pytest.FixtureRequest
) -> Iterator[BrowserContext]:
    """A browser that nobody has used, signed in. At the end nothing may have been complained about."""
    kept, *late = profile.pages
    for page in late:  # what a click of the test before opened after its end
        page.close()
    profile.on("page", watch.attach)
    profile.request.get(parley.code())
    yield profile
    profile.remove_listener("page", watch.attach)
    opened = [page for page in profile.pages if page is not kept]
    if request.node.stash.get(FAILED, False):
        FAILURES.mkdir(exist_ok=True)
        for index, page in enumerate(opened):
            page.screenshot(path=FAILURES / f"{request.node.name}-{index}.png")
    for page in opened:
        page.close()
    profile.set_offline(False)
    profile.unroute_all()
    profile.clear_permissions()
    profile.clear_cookies()
    storage = profile.new_cdp_session(kept)  # not by a script of the page, which a document of another origin refuses
    storage.send("Storage.clearDataForOrigin", {"origin": parley.server, "storageTypes": "all"})
    storage.detach()
    assert watch.unexpected() == []


FAILED: pytest.StashKey[bool] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":  # type: ignore[attr-defined]
        item.stash[FAILED] = report.failed  # type: ignore[attr-defined]
    return report


ELSEWHERE = {"acme", "base", "big", "crm", "demo", "desk", "raw_desk", "unseen"}
"""Fixtures whose tests begin on a page of their session."""


@pytest.fixture
def page(context: BrowserContext, parley: Parley, request: pytest.FixtureRequest) -> Page:
    """The first page, signed in; an empty one where a test goes to a session at once."""
    opened = context.new_page()
    if not ELSEWHERE & set(request.fixturenames):
        opened.goto(f"{parley.origin}/")
    return opened


@pytest.fixture(scope="session")
def demo_url() -> Iterator[str]:
    """The demo server over HTTP, which is there at once for every test; visitors do not see each other."""
    with demo_over_http() as url:
        yield url


@pytest.fixture
def demo(page: Page, parley: Parley, demo_url: str) -> Callable[[], str]:
    """Opens a session with that demo server on the first page; gives its address."""

    def connect() -> str:
        target = {"transport": "http", "url": demo_url}
        page.goto(parley.origin + parley.script("POST", "/s", target=target, options={"era": "legacy"})["url"])
        return _ready(page)

    return connect


@pytest.fixture
def own_demo(page: Page) -> Callable[[], str]:
    """Starts a demo server as a person does, by the button of the home page; gives the address of the session."""

    def connect() -> str:
        page.get_by_role("button", name="Start the demo server").click()
        return _ready(page)

    return connect


@pytest.fixture
def desk(parley: Parley, demo_url: str) -> Desk:
    """A session with the demo server."""
    return opened(parley, {"transport": "http", "url": demo_url}, poll_interval_ms=100)


@pytest.fixture
def raw_desk(parley: Parley) -> Desk:
    """A session with a raw script."""
    return opened(parley, script("raw.py", "plain"))


def _ready(page: Page) -> str:
    expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")
    expect(page.locator("#n-tools")).to_have_text(re.compile(r"\d"))
    return page.url
