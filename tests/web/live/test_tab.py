"""What the stream of a tab is asked for in its query stays text in what it brings."""

from html.parser import HTMLParser

import pytest

from app.sessions import Session
from app.settings import Limits
from tests.drive import RawPeer, connected
from tests.web.tabs import pages, tab_of

ATTACK = "c1\"'><img src=x onerror=alert(1)><hx-partial hx-target='body'>"
PAGES = sorted(pages())


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs).get("hx-target")))
        assert not any(name.startswith("on") for name, _ in attrs)


@pytest.mark.requirement("M11")
@pytest.mark.parametrize("page", [*PAGES, ATTACK])
async def test_m11_a_query_parameter_of_the_stream_stays_text(
    victim: Session, limits: Limits, page: str, raw_target: RawPeer
):
    assert {"compare", "task", "call", "tool", "tools"} < set(PAGES)
    await connected(victim, raw_target.target)
    tab = tab_of(victim, page, ATTACK, None, limits)
    html = tab.snapshot().html
    victim.changed("comparison.changed", ATTACK)
    victim.changed("connection.changed", "connection")
    victim.changed("listing.changed", "tools")
    patch = tab.patch()
    for text in (html, patch.html if patch is not None else ""):
        found = Elements(text).found
        assert "img" not in {tag for tag, _ in found}
        assert ("hx-partial", "body") not in found


@pytest.fixture
def raw_target(raw: object) -> RawPeer:
    made: RawPeer = raw()  # type: ignore[operator]
    return made
