"""Lists of a server, as pages and as JSON: read when somebody looks, in pages, searched, and what changed since."""

from typing import Any

import pytest

from tests.drive import until
from tests.web.shelf import HTMX


@pytest.mark.requirement("R5-26", "R5-27", "R5-04")
async def test_lists_are_read_when_somebody_looks(opened: Any):
    one = await opened()
    assert await one.seen("resources/list") == []
    assert len((await one.json("/resources"))["resources"]) == 4
    assert [item["name"] for item in (await one.json("/resources/templates"))["templates"]] == [
        "book",
        "search",
        "broken",
    ]
    assert [item["name"] for item in (await one.json("/prompts"))["prompts"]] == ["letter", "plain"]
    page = await one.page("/resources")
    assert "shelf://book/2" in page and "text/plain, 42 B" in page
    for method in ("resources/list", "resources/templates/list", "prompts/list"):
        assert len(await one.seen(method)) == 1


@pytest.mark.requirement("R5-26")
async def test_a_long_list_comes_in_pages_and_is_searched(opened: Any):
    one = await opened(tools=250, resources=350, page=60)
    first = await one.page("/resources")
    assert first.count("<li><a href=") == 100 + first.split('id="resources"')[0].count("<li><a href=")
    assert "1 to 100 of 351" in first and "1 / 4" in first
    assert "301 to 351 of 351" in await one.page("/resources?page=4")
    assert "301 to 351 of 351" in await one.page("/resources?page=999999")
    found = await one.page("/resources?q=BOOK+34", **HTMX)
    assert found.lstrip().startswith('<div id="resources"') and "14 of 351 match" in found
    assert "Nothing matches." in await one.page("/resources?q=dragon", **HTMX)
    assert "1 of 253 match" in await one.page("/tools?q=number+249", **HTMX)
    assert "100 to" not in await one.page("/prompts")


@pytest.mark.requirement("R5-26")
async def test_a_list_is_read_page_by_page_when_that_is_wanted(opened: Any):
    one = await opened(resources=9, page=4)
    told = (await one.post("/resources/refresh", pages="one")).json()
    assert len(told["resources"]) == 4 and told["pages"] == {"by_page": True, "read": 1, "more": True}
    assert "Load next page" in await one.page("/resources")
    told = (await one.post("/resources/more")).json()
    assert len(told["resources"]) == 8 and told["pages"]["read"] == 2
    assert (await one.form("/resources/more", **HTMX)).status == 204
    told = await one.json("/resources")
    assert len(told["resources"]) == 10 and not told["pages"]["more"]
    refused = await one.post("/resources/more")
    assert refused.status == 409 and "no further page" in refused.error["message"]
    assert [each.get("cursor") for each in await one.seen("resources/list")] == [None, "4", "8"]
    assert len((await one.post("/resources/refresh", pages="all")).json()["resources"]) == 10
    assert (await one.post("/resources/refresh", pages="some")).status == 422


@pytest.mark.requirement("R5-26")
async def test_every_list_is_guarded_against_endless_cursors(opened: Any):
    one = await opened(page=2, endless=True)
    for page, key in (("/resources", "resources"), ("/resources/templates", "templates"), ("/prompts", "prompts")):
        told = await one.json(page)
        assert "came a second time" in told["stopped"], key
        assert [each["id"] for each in told["findings"]] == ["R5-26"]
        assert "The list is not complete" in await one.page(page)


@pytest.mark.requirement("R5-28")
@pytest.mark.parametrize(
    ("name", "page", "key"),
    [
        ("tools", "/tools", "name"),
        ("resources", "/resources", "uri"),
        ("resourceTemplates", "/resources/templates", "uriTemplate"),
        ("prompts", "/prompts", "name"),
    ],
)
async def test_a_list_that_changed_says_what_is_new_changed_and_gone(opened: Any, name: str, page: str, key: str):
    one = await opened()
    listed = "templates" if name == "resourceTemplates" else name
    before = (await one.json(page))[listed]
    goes, stays = before[-1], before[-2]
    new = {
        "name": "fresh",
        "uri": "shelf://fresh",
        "uriTemplate": "shelf://fresh/{x}",
        "inputSchema": {"type": "object"},
    }
    patch = {stays["name"]: {"description": "now otherwise"}}
    await one.tool("change", list=name, add=[new], remove=[goes["name"]], patch=patch)
    await until(one.session, lambda: one.session.lists[listed].news is not None)
    told = (await one.json(page))["news"]
    assert told == {"new": [new[key]], "changed": [stays[key]], "gone": [goes[key]]}
    shown = await one.page(page)
    assert "The list changed." in shown and "1 new, 1 changed, 1 gone" in shown
    assert '<span class="chip ours">new</span>' in shown and '<span class="chip ours">changed</span>' in shown
    await one.post(f"{page}/refresh")
    assert (await one.json(page))["news"] is None


@pytest.mark.requirement("R5-28")
async def test_a_change_that_was_not_announced_is_a_finding(opened: Any):
    one = await opened(capabilities={"tools": {}})
    await one.tool("change", list="tools", add=[{"name": "fresh", "inputSchema": {"type": "object"}}])
    await until(one.session, lambda: len(one.session.tools.items) == 7)
    found = [each for row in (await one.json("/log"))["messages"] for each in row["findings"]]
    assert [each["id"] for each in found] == ["R5-28"] and "tools.listChanged" in found[0]["text"]


@pytest.mark.requirement("R5-04")
async def test_what_is_not_offered_is_grey_with_its_reason_and_not_asked_for(opened: Any):
    one = await opened(capabilities={"tools": {}})
    page = await one.page("")
    for name in ("resources", "prompts", "logging"):
        assert f'class="off" title="The server did not declare {name}."' in page
    assert "The server offers no resources." in await one.page("/resources")
    assert "The server offers no prompts." in await one.page("/prompts")
    assert (await one.json("/prompts"))["prompts"] == []
    assert (await one.post("/prompts/refresh")).status == 409
    assert (await one.post("/complete", ref={"type": "ref/prompt", "name": "x"}, argument={"name": "a"})).status == 409
    assert (await one.post("/resources/subscribe", uri="shelf://x")).status == 409
    for method in ("resources/list", "prompts/list", "completion/complete", "resources/subscribe", "logging/setLevel"):
        assert await one.seen(method) == []
