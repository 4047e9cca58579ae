"""Open pages hear of what changes."""

import html
from typing import Any

from app.web.live.tab import Tab
from tests.drive import until
from tests.web.shelf import said
from tests.web.tabs import tab_of


async def test_open_pages_hear_of_everything_that_changes(opened: Any):
    one = await opened()
    uri = "shelf://book/1"
    await one.json("/prompts")

    def tab(page: str, of: str = "") -> Tab:
        return tab_of(one.session, page, of, one.session.events.seq)

    def heard(listener: Tab) -> str:
        patch = listener.patch()
        return "" if patch is None else html.unescape(patch.html)

    book, other, prompt = tab("resource", uri), tab("resource", "shelf://book/2"), tab("prompt", "letter")
    log, listed, overview = tab("logging", "level=error"), tab("resources"), tab("overview")
    await one.post("/resources/subscribe", uri=uri)
    await until(one.session, lambda: one.session.resources.subscribed)
    await one.tool("send", messages=[{"method": "notifications/resources/updated", "params": {"uri": uri}}])
    await until(
        one.session, lambda: not one.session.resources.by_uri[uri].reading and one.session.resources.by_uri[uri].updates
    )
    told = heard(book)
    assert "updated 1 time" in told and "content of shelf://book/1" in told
    assert 'id="call-' not in heard(other)
    assert 'hx-include="#list-q, #list-page, #list-sort"' in heard(listed)
    await one.call("prompts/get", name="letter", arguments={"to": "Ada"})
    assert "Dear Ada" in heard(prompt)
    await one.tool("send", messages=[said("info", "hush"), said("alert", "fire")])
    told = heard(log).split('hx-target="#server-log"')[1].split("</hx-partial>")[0]
    assert "fire" in told and "hush" not in told
    heard(overview)
    await one.post("/ping")
    assert 'hx-target="#ping"' in heard(overview)
    await one.post("/disconnect")
    assert 'hx-target="#rail-nav"' in heard(overview)
    for page, of in (("resource", uri), ("prompt", "letter"), ("logging", ""), ("resources", ""), ("templates", "")):
        assert tab(page, of).snapshot().html
