"""Resources and templates, as pages and as JSON: what they say, their content, subscriptions, URIs of variables."""

import html
import re
from typing import Any

import pytest

from tests.drive import until
from tests.web.shelf import HTMX, Shelf


@pytest.mark.requirement("R5-09", "R5-08")
async def test_a_resource_says_what_it_is_and_its_icon_is_not_loaded(opened: Any):
    one = await opened()
    page = await one.page("/resources/one?uri=shelf%3A%2F%2Fannotated")
    for words in (
        "An annotated one",
        "It says <b>much</b> of itself.",
        "text/markdown, 2.0 kB",
        "for user",
        "priority 0.75",
    ):
        assert words in page, words
    assert "changed 2026-01-02T03:04:05Z" in page and "server hint" in page
    assert "1 icon, image/png, https://icons.example/i.png" in page
    assert not re.search(r"<(img|link|source)[^>]*icons\.example", page)
    assert "example.org/unknown" in page


async def read(one: Shelf, uri: str) -> str:
    started = (await one.post("/resources/read", uri=uri)).json()["id"]
    await one.json(f"/calls/{started}?wait=20")
    return await one.page(f"/resources/one?uri={uri}")


@pytest.mark.requirement("R5-27")
async def test_content_of_every_kind_is_shown_as_what_it_is(opened: Any):
    one = await opened()
    page = await read(one, "shelf://annotated")
    assert 'data-as="markdown"' in page and "# Heading" in page
    assert 'class="json"' in await read(one, "shelf://json")
    page = await read(one, "shelf://html")
    frame = re.search(r'data-as="frame" data-src="([^"]+)"', page)
    assert frame is not None
    assert "<script>parent" not in (await one.client.get(f"{one.path}/resources/one?uri=shelf://html")).text
    framed = await one.client.get(frame[1])
    assert "sandbox" in (framed.header("content-security-policy") or "")
    picture = re.search(r'<img src="([^"]+)"', await read(one, "shelf://picture"))
    assert picture is not None and (await one.client.get(picture[1])).header("content-type") == "image/png"
    page = await read(one, "shelf://paper")
    paper = re.search(r'<a href="([^"]+)" download>Download</a>', page)
    assert paper is not None and "application/pdf" in page
    assert "attachment" in ((await one.client.get(paper[1])).header("content-disposition") or "")
    page = await read(one, "shelf://several")
    assert "one</pre>" in page and "two</pre>" in page
    page = await read(one, "shelf://missing/1")
    assert "-32002" in page and "Resource not found" in page


@pytest.mark.requirement("R5-27")
async def test_a_subscription_marks_and_reads_again_until_it_ends(opened: Any):
    one = await opened()
    uri = "shelf://book/1"
    assert "Not read yet." in await one.page(f"/resources/one?uri={uri}")
    assert (await one.form("/resources/subscribe", {"uri": uri}, **HTMX)).status == 204
    await until(one.session, lambda: one.session.resources.subscribed)
    updated = {"method": "notifications/resources/updated", "params": {"uri": uri}}
    await one.tool("send", messages=[updated])
    await until(
        one.session,
        lambda: any(call.method == "resources/read" and call.settled for call in one.session.calls.values()),
    )
    page = await one.page(f"/resources/one?uri={uri}")
    assert "updated 1 time" in page and "content of shelf://book/1" in page and "Unsubscribe" in page
    assert '<span class="chip theirs">updated</span>' in await one.page("/resources")
    told = await one.json("/resources")
    assert told["subscribed"] == [uri] and told["updated"][uri]["updates"] == 1
    # A flood costs one read, and one more after it.
    await one.tool("send", messages=[updated] * 50)
    await until(one.session, lambda: not one.session.resources.by_uri[uri].reading)
    assert one.session.resources.by_uri[uri].updates == 51
    assert 2 <= len(await one.seen("resources/read")) <= 4
    await one.post("/resources/subscribe", uri=uri, subscribe=False)
    await until(one.session, lambda: not one.session.resources.subscribed)
    reads = len(await one.seen("resources/read"))
    await one.tool("send", messages=[updated])
    await until(one.session, lambda: one.session.resources.by_uri[uri].updates == 52)
    assert len(await one.seen("resources/read")) == reads
    assert "what stands below may be old" in await one.page(f"/resources/one?uri={uri}")
    assert [each["uri"] for each in await one.seen("resources/unsubscribe")] == [uri]


@pytest.mark.requirement("R5-27")
async def test_a_link_in_a_result_leads_to_the_resource(opened: Any):
    one = await opened()
    told = await one.call("prompts/get", name="letter", arguments={"to": "you"})
    page = await one.page(f"/calls/{told['id']}")
    assert f'<a href="{one.path}/resources/one?uri=shelf%3A%2F%2Fjson">To the resource</a>' in page


@pytest.mark.requirement("R5-27")
async def test_a_template_is_expanded_and_read(opened: Any):
    one = await opened()
    page = await one.page("/resources/templates/search")
    assert "one value on each line" in page
    fields = {"arg.topic": "old maps", "arg.tags": "sea\nisland", "arg.year": "1650"}
    uri = "shelf://find/old%20maps?tags=sea&tags=island&year=1650"
    assert uri in html.unescape((await one.form("/resources/templates/expand/search", fields, **HTMX)).text)
    told = (await one.post("/resources/templates/expand/search", arguments={"topic": "é"})).json()
    assert told == {"uri": "shelf://find/%C3%A9", "error": None}
    answer = await one.form("/resources/templates/read/search", fields)
    assert answer.status == 303 and "resources/one?uri=shelf" in (answer.header("location") or "")
    assert (await one.seen("resources/read"))[-1] == {"uri": uri}
    empty = await one.form("/resources/templates/read/search", {"arg.topic": ""}, **HTMX)
    assert empty.status == 422 and "Type a value for at least one variable." in empty.text
    broken = await one.page("/resources/templates/broken")
    assert "This is no RFC 6570 template." in broken and "disabled" in broken
    assert (await one.client.get(f"{one.path}/resources/templates/none")).status == 404
