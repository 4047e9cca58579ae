"""What a server offers, as its pages and as JSON: lists, resources, templates, prompts, completion, logging, pings.

The peer is tests/servers/shelf.py, a process of raw JSON-RPC that remembers every message it read.
"""

import html
import json
import re
import sys
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette

from app.sessions import Session
from app.web.live.tab import Tab
from tests.drive import HANG, SERVERS, until
from tests.web.asgi import Answer, Visitor

HTMX = {"hx_request": "true"}


def shelf(**settings: Any) -> dict[str, Any]:
    args = [str(SERVERS / "shelf.py"), "--with", json.dumps(settings)]
    return {"transport": "stdio", "command": sys.executable, "args": ["-I", "-S", *args]}


class Shelf:
    """A session with the shelf, as a script and a browser see it."""

    def __init__(self, app: Starlette, script: Visitor, client: Visitor, path: str) -> None:
        self.app, self.script, self.client, self.path = app, script, client, path

    @property
    def session(self) -> Session:
        found: Session = self.app.state.registry._sessions[self.path.rsplit("/", 1)[-1]]
        return found

    async def json(self, page: str) -> Any:
        return await self.script.json(self.path + page)

    async def page(self, page: str, **headers: str) -> str:
        answer = await self.client.get(self.path + page, **headers)
        assert answer.status == 200, answer.text[:500]
        return html.unescape(answer.text)

    async def post(self, page: str, **body: Any) -> Answer:
        return await self.script.post(self.path + page, body)

    async def form(self, page: str, fields: Any = (), **headers: str) -> Answer:
        return await self.client.form(self.path + page, fields, **headers)

    async def call(self, method: str, **params: Any) -> Any:
        answer = await self.post("/calls", method=method, params=params)
        assert answer.status == 202, answer.text
        return await self.json(f"/calls/{answer.json()['id']}?wait=20")

    async def tool(self, name: str, **arguments: Any) -> Any:
        return await self.call("tools/call", name=name, arguments=arguments)

    async def seen(self, method: str) -> list[Any]:
        """The params of every message of this method that the server has read."""
        told = await self.tool("seen")
        return [one["params"] for one in told["result"]["structuredContent"]["seen"] if one["method"] == method]


@pytest.fixture
async def opened(app: Starlette, script: Visitor, client: Visitor) -> Any:
    async def open_shelf(options: dict[str, Any] | None = None, **settings: Any) -> Shelf:
        body = {"target": shelf(**settings), "options": {"era": "legacy"} | (options or {})}
        path = (await script.post("/s", body)).json()["url"]
        told = await script.json(f"{path}?wait=20")
        assert told["connection"]["state"] == "ready", told
        found = Shelf(app, script, client, path)
        await until(found.session, lambda: found.session.tools.state != "loading")
        return found

    return open_shelf


# ------------------------------------------------------------------------------------------------------------- lists


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
    assert "changed 2026-01-02T03:04:05Z" in page and "says the server; not verified" in page
    assert "1 icon, image/png, https://icons.example/i.png" in page
    assert not re.search(r"<(img|link|source)[^>]*icons\.example", page)
    assert "example.org/unknown" in page


@pytest.mark.requirement("R5-10")
async def test_annotations_of_a_tool_are_labelled_as_the_servers_words(opened: Any):
    one = await opened()
    hints = {"readOnlyHint": True, "title": "Trust me"}
    added = {"name": "hinted", "inputSchema": {"type": "object"}, "annotations": hints}
    await one.tool("change", list="tools", add=[added])
    await until(one.session, lambda: len(one.session.tools.items) == 7)
    assert "annotations are its words" in await one.page("/tools")
    page = await one.page("/tools/hinted")
    assert "only reads" in page and "says the server; not verified" in page


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


# --------------------------------------------------------------------------------------------------------- resources


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


# --------------------------------------------------------------------------------------------------------- templates


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


@pytest.mark.requirement("R5-21")
async def test_completion_sends_the_other_arguments_and_tells_that_there_is_more(opened: Any):
    one = await opened()
    fields = {
        "_ref": "template",
        "_of": "shelf://find/{topic}",
        "_argument": "topic",
        "arg.topic": "ma",
        "arg.year": "1650",
    }
    told = (await one.form("/complete", fields, accept="application/json")).json()
    assert told["values"] == ["ma0", "ma1", "ma2", "ma3", "ma4"] and told["hasMore"] and told["total"] == 250
    fields = {"_ref": "prompt", "_of": "letter", "_argument": "to", "arg.to": "x", "arg.tone": ""}
    assert (await one.form("/complete", fields, accept="application/json")).status == 200
    assert await one.seen("completion/complete") == [
        {
            "ref": {"type": "ref/resource", "uri": "shelf://find/{topic}"},
            "argument": {"name": "topic", "value": "ma"},
            "context": {"arguments": {"year": "1650"}},
        },
        {"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "to", "value": "x"}},
    ]
    assert all(call["method"] != "completion/complete" for call in (await one.json("/calls"))["calls"])


@pytest.mark.requirement("R5-21")
async def test_more_than_a_hundred_suggestions_are_cut_and_found(opened: Any):
    one = await opened(suggestions=130)
    body = {"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "to", "value": ""}}
    told = (await one.post("/complete", **body)).json()
    assert len(told["values"]) == 100 and told["hasMore"]
    found = [each for row in (await one.json("/log"))["messages"] for each in row["findings"]]
    assert any(each["id"] == "R5-21" and "130 values" in each["text"] for each in found)


# ----------------------------------------------------------------------------------------------------------- prompts


@pytest.mark.requirement("R5-30")
async def test_a_prompt_is_a_form_and_then_a_conversation(opened: Any):
    one = await opened()
    page = await one.page("/prompts/letter")
    assert "Whom it is for." in page and 'role="combobox"' in page and 'name="arg.tone"' in page
    refused = await one.form("/prompts/get/letter", {"arg.to": "", "arg.tone": "warm"}, **HTMX)
    assert refused.status == 422 and "The server wants a value here." in refused.text and "warm" in refused.text
    assert await one.seen("prompts/get") == []
    assert (await one.form("/prompts/get/letter", {"arg.to": "Ada", "arg.tone": ""}, **HTMX)).status == 204
    assert await one.seen("prompts/get") == [{"name": "letter", "arguments": {"to": "Ada"}}]
    await until(one.session, lambda: all(call.settled for call in one.session.calls.values()))
    page = await one.page("/prompts/letter")
    talk = page.split('id="calls"')[1]
    assert talk.count('class="turn" data-role="user"') == 3 and talk.count('data-role="assistant"') == 2
    assert "Dear Ada" in talk and "<img src=" in talk and "To the resource" in talk and "embedded" in talk
    assert "audio/wav" in talk
    forced = await one.form("/prompts/get/letter", {"arg.to": "", "_force": "1"})
    told = await one.json((forced.header("location") or "").removeprefix(one.path) + "?wait=20")
    assert told["params"] == {"name": "letter"} and told["findings"][0]["id"] == "R5-30"
    again = await one.page(f"/prompts/letter?from={told['id']}")
    assert "Arguments" in again
    assert "It takes no arguments." in await one.page("/prompts/plain")


# ----------------------------------------------------------------------------------------------------- logging, ping


def said(level: str, data: Any, logger: str | None = None) -> dict[str, Any]:
    params = {"level": level, "data": data} | ({"logger": logger} if logger else {})
    return {"method": "notifications/message", "params": params}


@pytest.mark.requirement("R5-22", "R5-40")
async def test_the_log_of_the_server_by_level_and_logger_with_stderr_beside(opened: Any):
    one = await opened()
    assert (await one.form("/options", {"option.log_level": "warning"}, **HTMX)).status == 204
    assert await one.seen("logging/setLevel") == [{"level": "warning"}]
    messages = [said("debug", "small talk"), said("error", {"code": 7, "<b>": 1}, "db"), said("loud", "what", "web")]
    await one.tool("send", messages=messages)
    await until(one.session, lambda: one.session.server_log.count == 3)
    page = await one.page("/logging")
    assert all(words in page for words in ("small talk", '{"code": 7, "<b>": 1}', "loud", "shelf is open"))
    assert "<option selected>warning</option>" in page
    part = await one.page("/logging?level=info", **HTMX)
    assert "small talk" not in part and "loud" in part and "2 of 3" in part
    assert "code" not in await one.page("/logging?logger=web", **HTMX)
    told = await one.json("/logging?logger=db")
    assert [(each["level"], each["logger"], each["text"]) for each in told["messages"]] == [
        ("error", "db", '{"code": 7, "<b>": 1}')
    ]
    assert told["loggers"] == {"": 1, "db": 1, "web": 1} and told["level"] == "warning"


@pytest.mark.requirement("R5-25")
async def test_a_ping_tells_how_long_it_took_and_can_be_repeated(opened: Any):
    one = await opened()
    told = (await one.post("/ping")).json()
    assert told["ms"] > 0 and told["error"] is None and told["sent"] == 1
    assert "answered in <b>" in await one.page("/logging")
    assert all(call["method"] != "ping" for call in (await one.json("/calls"))["calls"])
    assert (await one.post("/ping", every_ms=10)).status == 422
    assert (await one.post("/ping", every_ms=1000)).json()["every_ms"] == 1000
    await until(one.session, lambda: one.session.pings.sent >= 3)
    assert (await one.post("/ping", every_ms=None)).json()["every_ms"] is None
    before = one.session.pings.sent
    await one.post("/ping", every_ms=3_600_000)
    await until(one.session, lambda: one.session.pings.sent == before + 1)
    await one.post("/disconnect")
    assert one.session.pings.every_ms is None
    assert (await one.post("/ping")).status == 409


@pytest.mark.requirement("R5-25")
async def test_a_ping_without_an_answer_is_said(opened: Any):
    one = await opened({"request_timeout_ms": 150}, silent=["ping"])
    told = (await one.post("/ping")).json()
    assert told["ms"] is None and "No answer within" in told["error"] and told["failed"] == 1
    assert "No answer to the ping" in await one.page("")


# -------------------------------------------------------------------------------------------------------- the stream


async def test_open_pages_hear_of_everything_that_changes(opened: Any):
    one = await opened()
    uri = "shelf://book/1"
    await one.json("/prompts")

    def tab(page: str, of: str = "") -> Tab:
        return Tab(one.session, page, of, one.session.events.seq, one.session.limits)

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
    assert 'hx-include="#list-q, #list-page"' in heard(listed)
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


# ---------------------------------------------------------------------------------------------------------- composer


@pytest.mark.requirement("R5-04")
async def test_the_composer_checks_warns_sends_and_marks_what_was_forced(opened: Any):
    one = await opened(capabilities={"tools": {}})
    page = await one.page("/compose?method=resources/read")
    assert '"uri": ""' in page and "This will be forced." in page and '<option value="tools/call"' in page
    checked = await one.form("/compose/check", {"method": "tools/list", "params": '{"a": }'}, **HTMX)
    assert "That is not JSON" in checked.text and "column 7" in checked.text and "forced" not in checked.text
    assert "a JSON object" in (await one.form("/compose/check", {"method": "x/y", "params": "[1]"}, **HTMX)).text
    refused = await one.form("/compose", {"method": "x/y", "params": "{nope"}, **HTMX)
    assert refused.status == 422 and "{nope" in refused.text and "Not sent:" in refused.text
    sent = await one.form(
        "/compose", {"method": "resources/read", "params": '{"uri": "shelf://json"}', "as": "request"}
    )
    told = await one.json((sent.header("location") or "").removeprefix(one.path) + "?wait=20")
    assert told["state"] == "done" and [each["id"] for each in told["findings"]] == ["R5-04"]
    quiet = await one.form("/compose", {"method": "notifications/x", "params": "", "as": "notification"}, **HTMX)
    assert (quiet.header("hx-redirect") or "").startswith(f"{one.path}/calls/")
    assert await one.seen("notifications/x") == [{}] and await one.seen("x/y") == []
    prefilled = await one.page(f"/compose?from={told['id']}")
    assert 'value="resources/read"' in prefilled and '"uri": "shelf://json"' in prefilled


async def test_any_call_runs_again_or_is_edited_first(opened: Any):
    one = await opened()
    await one.json("/prompts")
    for method, params, edit in (
        ("tools/call", {"name": "tool_1", "arguments": {"a": 1}}, "/tools/tool_1?from="),
        ("prompts/get", {"name": "letter", "arguments": {"to": "Ada"}}, "/prompts/letter?from="),
        ("resources/read", {"uri": "shelf://json"}, "/compose?from="),
        ("x/unknown", {"a": [1]}, "/compose?from="),
    ):
        told = await one.call(method, **params)
        page = await one.page(f"/calls/{told['id']}")
        assert f'href="{one.path}{edit}{told["id"]}"' in page, method
        again = await one.form(f"/calls/{told['id']}/retry")
        second = await one.json((again.header("location") or "").removeprefix(one.path) + "?wait=20")
        assert (second["method"], second["params"]) == (method, params) and second["id"] != told["id"]
    assert 'value="Ada"' in await one.page(
        f"/prompts/letter?from={(await one.call('prompts/get', name='letter', arguments={'to': 'Ada'}))['id']}"
    )


async def test_several_calls_run_at_once_each_with_its_own_line(opened: Any):
    one = await opened()
    started = [
        (await one.post("/calls", method="tools/call", params={"name": f"tool_{n}"})).json()["id"] for n in range(3)
    ]
    with anyio.fail_after(HANG):
        for each in started:
            assert (await one.json(f"/calls/{each}?wait=20"))["state"] == "done"
    page = await one.page("/calls")
    for number in range(3):
        assert f"tool_{number}" in page
    assert re.search(r'<span class="z opt">\d+ B</span>', page)
    assert [each["id"] for each in (await one.json("/calls"))["calls"]] == started[::-1]


async def test_the_palette_knows_resources_templates_and_prompts(opened: Any):
    one = await opened()
    items = (await one.json("/palette"))["items"]
    by_kind = {kind: [each for each in items if each["kind"] == kind] for kind in ("resource", "template", "prompt")}
    assert by_kind["resource"][0]["href"].endswith("/resources/one?uri=shelf%3A%2F%2Fannotated")
    assert by_kind["template"][0]["href"].endswith("/resources/templates/book")
    assert by_kind["prompt"][0]["href"].endswith("/prompts/letter")
    assert any(each["label"] == "Compose a request" for each in items)
