"""Asks and tasks over HTTP: what scripts read, how an answer is taken or refused, and who may see them.

The server is a raw script, so that the asks are exactly what a test wrote.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette

from app.sessions import Identity, Session
from tests.drive import HANG, RawPeer, call_tool, connected, flushed, until
from tests.web.asgi import Answer, Visitor

Raw = Callable[..., RawPeer]
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
FORM: dict[str, Any] = {
    "message": "Which <b>traveller</b>?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Full name", "minLength": 2},
            "age": {"type": "integer", "minimum": 0},
            "meal": {"type": "string", "enum": ["none", "fish"], "default": "fish"},
            "window": {"type": "boolean", "default": False},
            "bags": {"type": "integer", "default": 0},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["b"]},
        },
        "required": ["name"],
    },
}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 50}
LINK = {"mode": "url", "message": "Sign in", "url": "https://example.test/in?a=1", "elicitationId": "e1"}
RESULT = {
    "role": "assistant",
    "content": {"type": "text", "text": "A quiet harbour."},
    "model": "human",
    "stopReason": "endTurn",
}
ASK_FIELDS = {
    "id", "kind", "origin", "state", "method", "params", "fields", "task_id", "call_id", "asked_at", "expires_at",
    "outcome", "answered_by",
}  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def request(rpc_id: Any, method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params})


def form(rpc_id: Any = "q", **more: Any) -> str:
    return request(rpc_id, "elicitation/create", {**FORM, **more})


async def say(session: Session, *lines: str) -> None:
    await call_tool(session, "say", {"lines": [*lines, DONE]})


async def asked(session: Session, peer: RawPeer, *lines: str, **options: Any) -> list[str]:
    """Connect, have the peer ask, and give the addresses of the asks."""
    await connected(session, peer.target, **options)
    await say(session, *lines)
    await until(session, lambda: session.open_asks >= len(lines))
    return [f"/s/{session.id}/asks/{ask.id}" for ask in session.inbox.open]


async def replied(session: Session, peer: RawPeer, rpc_id: Any = "q") -> dict[str, Any]:
    """The one reply that the peer got."""
    with anyio.fail_after(HANG):
        while True:
            found = [each for each in peer.received() if "method" not in each and each.get("id") == rpc_id]
            if found:
                [one] = found
                return {key: one[key] for key in ("result", "error") if key in one}
            await flushed(session)


# ---- what scripts read


@pytest.mark.requirement("R4-07", "R4-08")
async def test_an_ask_in_json_with_the_values_a_person_would_see(victim: Session, script: Visitor, raw: Raw):
    [address] = await asked(victim, raw(), form())
    ask = await script.json(address)
    assert set(ask) >= ASK_FIELDS
    assert ask["id"] == address.rpartition("/")[2]
    assert (ask["kind"], ask["origin"], ask["state"]) == ("form", "request", "open")
    assert ask["method"] == "elicitation/create" and ask["params"] == FORM
    assert ask["outcome"] is None and ask["answered_by"] is None
    assert ask["task_id"] is None and ask["expires_at"] is None and TIME.fullmatch(ask["asked_at"])
    fields = {field["name"]: field for field in ask["fields"]}
    assert list(fields) == ["name", "age", "meal", "window", "bags", "tags"]
    assert fields["name"]["required"] and fields["name"]["label"] == "Full name" and "value" not in fields["name"]
    assert "value" not in fields["age"]
    assert [fields[name]["value"] for name in ("meal", "window", "bags", "tags")] == ["fish", False, 0, ["b"]]
    assert [option["value"] for option in fields["meal"]["options"]] == ["none", "fish"]


async def test_the_inbox_lists_what_waits_and_then_what_is_settled(victim: Session, script: Visitor, raw: Raw):
    peer = raw()
    first, second, third = await asked(
        victim,
        peer,
        form(1),
        request(2, "sampling/createMessage", SAMPLE),
        request(3, "elicitation/create", LINK),
    )
    inbox = await script.json(f"/s/{victim.id}/inbox")
    assert set(inbox) == {"open", "settled"}
    assert [ask["kind"] for ask in inbox["open"]] == ["form", "sampling", "url"] and inbox["settled"] == []
    assert [ask["fields"] is None for ask in inbox["open"]] == [False, True, True]
    assert (await script.json(f"/s/{victim.id}"))["open_asks"] == 3
    assert (await script.post(f"{second}/answer", {"action": "decline"})).status == 200
    inbox = await script.json(f"/s/{victim.id}/inbox")
    assert [ask["id"] for ask in inbox["open"]] == [first.rpartition("/")[2], third.rpartition("/")[2]]
    assert [ask["id"] for ask in inbox["settled"]] == [second.rpartition("/")[2]]
    cleared = await script.post(f"/s/{victim.id}/inbox/clear")
    assert cleared.status == 200 and cleared.json() == {"open": 2}
    assert (await script.json(f"/s/{victim.id}/inbox"))["settled"] == []
    assert (await script.get(second)).status == 404


async def test_the_number_that_waits_is_a_text_of_its_own(victim: Session, client: Visitor, raw: Raw):
    path = f"/s/{victim.id}/inbox?count=1"
    answer = await client.get(path)
    assert (answer.status, answer.text) == (200, "0")
    assert (answer.header("content-type") or "").startswith("text/plain")
    await asked(victim, raw(), form(1), form(2))
    assert (await client.get(path)).text == "2"


async def test_waiting_for_an_ask_returns_when_it_is_open(victim: Session, script: Visitor, raw: Raw):
    await connected(victim, raw().target)
    found: list[Any] = []

    async def wait() -> None:
        found.append(await script.json(f"/s/{victim.id}/inbox?wait=20"))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.sleep(0.05)
            assert found == []
            await say(victim, form())
    assert [ask["kind"] for ask in found[0]["open"]] == ["form"]
    with anyio.fail_after(1):
        assert len((await script.json(f"/s/{victim.id}/inbox?wait=20"))["open"]) == 1


async def test_waiting_for_an_ask_that_never_comes_ends_by_itself(victim: Session, script: Visitor, raw: Raw):
    await connected(victim, raw().target)
    with anyio.fail_after(10):
        assert (await script.json(f"/s/{victim.id}/inbox?wait=0.2"))["open"] == []


@pytest.mark.requirement("R1-11", "R1-13")
async def test_a_receiver_task_in_json_with_its_history(victim: Session, script: Visitor, raw: Raw):
    peer = raw()
    [address] = await asked(victim, peer, form(task={"ttl": 120_000}))
    ask = await script.json(address)
    assert ask["origin"] == "receiver-task" and TIME.fullmatch(ask["expires_at"])
    wire = (await replied(victim, peer))["result"]["task"]
    await say(victim, request("get", "tasks/get", {"taskId": wire["taskId"]}))
    listed = await script.json(f"/s/{victim.id}/tasks")
    assert set(listed) == {"receiver", "client"} and listed["client"] == []
    [task] = listed["receiver"]
    assert task == await script.json(f"/s/{victim.id}/tasks/{ask['task_id']}")
    assert set(task) >= {*wire, "id", "ask_id", "expires_at", "history"}
    assert (task["id"], task["ask_id"], task["taskId"]) == (ask["task_id"], ask["id"], wire["taskId"])
    assert task["id"] != task["taskId"] and task["expires_at"] == ask["expires_at"]
    assert (task["status"], task["ttl"], task["requested_ttl"]) == ("input_required", 120_000, 120_000)
    assert [visit["what"] for visit in task["history"]] == ["created", "status", "tasks/get"]
    assert all(TIME.fullmatch(visit["time"]) for visit in task["history"])
    await script.post(f"{address}/answer", {"action": "decline"})
    await say(victim, request("got", "tasks/result", {"taskId": wire["taskId"]}))
    await replied(victim, peer, "got")
    task = await script.json(f"/s/{victim.id}/tasks/{ask['task_id']}")
    assert task["status"] == "completed" and task["fetched"] is True
    assert [visit["what"] for visit in task["history"]][3:] == ["answered", "status", "tasks/result"]


# ---- answers of a script


@pytest.mark.requirement("R4-30", "R4-11")
@pytest.mark.parametrize(
    ("line", "said", "reply", "outcome"),
    [
        (
            form(),
            {"action": "accept", "content": {"name": "Ines", "age": 0, "window": False}},
            {"result": {"action": "accept", "content": {"name": "Ines", "age": 0, "window": False}}},
            {"action": "accept", "content": {"name": "Ines", "age": 0, "window": False}},
        ),
        (form(), {"action": "decline"}, {"result": {"action": "decline"}}, {"action": "decline", "content": None}),
        (form(), {"action": "cancel"}, {"result": {"action": "cancel"}}, {"action": "cancel", "content": None}),
        (
            request("q", "elicitation/create", LINK),
            {"action": "accept"},
            {"result": {"action": "accept"}},
            {"action": "accept", "result": {"action": "accept"}},
        ),
        (
            request("q", "sampling/createMessage", SAMPLE),
            {"action": "respond", "result": RESULT},
            {"result": RESULT},
            {"action": "respond", "result": RESULT},
        ),
        (
            request("q", "sampling/createMessage", SAMPLE),
            {"action": "decline"},
            {"error": {"code": -1, "message": "User rejected sampling request"}},
            {"action": "decline", "error": {"code": -1, "message": "User rejected sampling request"}},
        ),
        (
            form(),
            {"action": "fail", "code": -32050, "message": "No desk today"},
            {"error": {"code": -32050, "message": "No desk today"}},
            {"action": "fail", "error": {"code": -32050, "message": "No desk today"}},
        ),
    ],
    ids=["accept", "decline", "cancel", "link", "respond", "deny", "fail"],
)
async def test_a_script_answers(
    victim: Session, script: Visitor, raw: Raw, line: str, said: Any, reply: Any, outcome: Any
):
    peer = raw()
    [address] = await asked(victim, peer, line)
    answer = await script.post(f"{address}/answer", said)
    assert answer.status == 200, answer.text
    settled = answer.json()
    assert settled["state"] == "answered" and settled["outcome"] == {**outcome, "forced": False}
    assert settled["answered_by"]["kind"] == "script" and TIME.fullmatch(settled["settled_at"])
    assert await replied(victim, peer) == reply
    assert (await script.json(address))["outcome"] == settled["outcome"]


async def test_a_person_is_named_as_one(victim: Session, client: Visitor, raw: Raw):
    [address] = await asked(victim, raw(), form())
    answer = await client.post(f"{address}/answer", {"action": "decline"})
    assert answer.json()["answered_by"]["kind"] == "person"


@pytest.mark.requirement("R4-09")
async def test_what_does_not_fit_is_422_with_pointers_unless_it_is_forced(victim: Session, script: Visitor, raw: Raw):
    peer = raw()
    [address] = await asked(victim, peer, form())
    for content, pointers in (
        ({}, {"/name"}),
        ({"name": "x"}, {"/name"}),
        ({"name": "Ines", "age": -1, "meal": "soup"}, {"/age", "/meal"}),
        ({"name": {"first": "Ines"}}, {"/name"}),
        ([], {""}),
        (None, {""}),
    ):
        answer = await script.post(f"{address}/answer", {"action": "accept", "content": content})
        assert answer.status == 422 and set(answer.error["fields"]) == pointers, content
        assert all(texts and all(texts) for texts in answer.error["fields"].values())
        assert answer.error["message"] and answer.error["kind"]
    assert (await script.json(address))["state"] == "open"
    forced = await script.post(f"{address}/answer", {"action": "accept", "content": {"age": -1}, "force": True})
    assert forced.status == 200
    assert forced.json()["outcome"] == {"action": "accept", "content": {"age": -1}, "forced": True}
    assert await replied(victim, peer) == {"result": {"action": "accept", "content": {"age": -1}}}


@pytest.mark.requirement("R3-08", "R3-09")
async def test_a_sampling_result_that_does_not_fit_is_422(victim: Session, script: Visitor, raw: Raw):
    [address] = await asked(victim, raw(), request("q", "sampling/createMessage", SAMPLE))
    for result, pointer in (
        (None, ""),
        ({**RESULT, "model": ""}, "/model"),
        ({**RESULT, "role": "system"}, "/role"),
        ({**RESULT, "content": {"type": "text"}}, "/content"),
    ):
        answer = await script.post(f"{address}/answer", {"action": "respond", "result": result})
        assert answer.status == 422, result
        assert any(found.startswith(pointer) for found in answer.error["fields"]), (result, answer.error)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"action": "respond"},
        {"action": "submit"},
        {"action": ["accept"]},
        {"action": "fail", "code": "soon"},
        {"action": "fail", "code": True},
        {"action": "fail", "message": 5},
    ],
)
async def test_an_action_that_is_not_there_is_422(victim: Session, script: Visitor, raw: Raw, said: Any):
    [address] = await asked(victim, raw(), form())
    answer = await script.post(f"{address}/answer", said)
    assert answer.status == 422 and answer.error["fields"]
    assert victim.open_asks == 1


@pytest.mark.requirement("S39")
async def test_a_settled_ask_takes_no_more(victim: Session, script: Visitor, client: Visitor, raw: Raw):
    peer = raw()
    first, second = await asked(victim, peer, form(1), form(2))
    await script.post(f"{first}/answer", {"action": "decline"})
    late = await client.post(f"{first}/answer", {"action": "accept", "content": {"name": "Late"}})
    assert late.status == 409 and "answered already" in late.error["message"] and "not sent" in late.error["message"]
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2, "reason": "fare expired"}}
    await say(victim, json.dumps(note))
    await until(victim, lambda: not victim.open_asks)
    late = await client.post(f"{second}/answer", {"action": "accept", "content": {"name": "Late"}})
    assert late.status == 409 and "took this back: fare expired" in late.error["message"]
    ask = await script.json(second)
    assert (ask["state"], ask["reason"], ask["outcome"]) == ("withdrawn", "fare expired", None)
    typed = await client.form(f"{first}/answer", {"action": "accept", "/name": "Late"}, hx_request="true")
    assert typed.status == 409 and "answered already" in typed.text
    assert await replied(victim, peer, 1) == {"result": {"action": "decline"}}


async def test_an_ask_that_is_lost_says_so(victim: Session, script: Visitor, raw: Raw):
    [address] = await asked(victim, raw(), form(task={}))
    await victim.disconnect()
    ask = await script.json(address)
    assert ask["state"] == "lost"
    late = await script.post(f"{address}/answer", {"action": "decline"})
    assert late.status == 409 and "The connection ended" in late.error["message"]
    assert (await script.json(f"/s/{victim.id}/tasks/{ask['task_id']}"))["gone"] == "lost"


# ---- whose they are


@pytest.mark.requirement("S15", "S39", "NFR-2")
async def test_nobody_else_sees_or_answers_them(
    app: Starlette, victim: Session, mallory: Visitor, stranger: Visitor, raw: Raw
):
    peer = raw()
    [address] = await asked(victim, peer, form(task={}))
    own = app.state.registry.open(Identity("mallory", "Mallory"))
    base, mine = f"/s/{victim.id}", f"/s/{own.id}"
    aid, tid = address.rpartition("/")[2], next(iter(victim.asking.tasks))
    for path in (f"{base}/inbox", f"{base}/inbox?count=1", address, f"{base}/tasks", f"{base}/tasks/{tid}"):
        for accept in ("text/html", "application/json"):
            answer = await mallory.get(path, accept=accept)
            assert answer.status == 404, path
            assert "traveller" not in answer.text
        assert (await stranger.get(path)).status == 401
    # Nor under a session of their own, by the ids of the other one.
    for path in (f"{mine}/asks/{aid}", f"{mine}/tasks/{tid}"):
        assert (await mallory.get(path)).status == 404
    said = {"action": "accept", "content": {"name": "Mallory"}}
    for place in (address, f"{mine}/asks/{aid}"):
        assert (await mallory.post(f"{place}/answer", said)).status == 404
        assert (await mallory.form(f"{place}/answer", {"action": "decline"})).status == 404
    assert (await mallory.form(f"{base}/inbox/clear")).status == 404
    assert victim.open_asks == 1
    assert (await mallory.json(f"{mine}/inbox")) == {"open": [], "settled": []}
    assert (await mallory.json(f"{mine}/tasks"))["receiver"] == []


async def test_an_unknown_ask_or_task_is_404_with_a_sentence(victim: Session, client: Visitor):
    for path in ("asks/a99", "tasks/t99"):
        answer = await client.get(f"/s/{victim.id}/{path}", accept="application/json")
        assert answer.status == 404 and answer.error["message"].startswith("There is no such")
    assert (await client.post(f"/s/{victim.id}/asks/a99/answer", {"action": "decline"})).status == 404


# ---- answers of a form


def body(answer: Answer) -> str:
    return re.sub(r"\s+", " ", answer.text)


def named(page: str, label: str) -> str:
    """The name of the control with this label."""
    found = re.search(rf'<label[^>]* for="([^"]+)">{re.escape(label)}', page)
    assert found, label
    control = re.search(rf'id="{re.escape(found[1])}"[^>]* name="([^"]+)"', page)
    assert control
    return control[1]


@pytest.mark.requirement("R4-08", "R4-09", "R4-31")
async def test_a_form_comes_back_with_its_errors_and_what_was_typed(victim: Session, client: Visitor, raw: Raw):
    peer = raw()
    [address] = await asked(victim, peer, form())
    page = (await client.get(address)).text
    assert "&lt;b&gt;traveller&lt;/b&gt;" in page and "<b>traveller" not in page, "a server's words are text"
    name, age = named(page, "Full name"), named(page, "age")
    fields = [("action", "accept"), (name, "I"), (age, "minus <one>"), (named(page, "meal"), "1")]
    answer = await client.form(f"{address}/answer", fields, hx_request="true")
    assert answer.status == 422
    assert f'id="ask-{address.rpartition("/")[2]}"' in answer.text and "<html" not in answer.text
    assert answer.text.count('aria-invalid="true"') == 2
    assert 'value="minus &lt;one&gt;"' in answer.text and 'value="I"' in answer.text
    assert 'name="force"' in answer.text
    whole = await client.form(f"{address}/answer", fields)
    assert whole.status == 422 and "<html" in whole.text and 'value="minus &lt;one&gt;"' in whole.text
    assert victim.open_asks == 1
    fields = [("action", "accept"), (name, "Ines"), (named(page, "meal"), "1"), (named(page, "bags"), "0")]
    done = await client.form(f"{address}/answer", fields, hx_request="true")
    assert done.status == 200 and "accepted" in done.text and "<form" not in done.text
    reply = await replied(victim, peer)
    assert reply["result"]["content"] | {"window": False, "tags": []} == {
        "name": "Ines",
        "meal": "fish",
        "window": False,
        "bags": 0,
        "tags": [],
    }


async def test_a_page_without_script_is_sent_to_the_ask_afterwards(victim: Session, client: Visitor, raw: Raw):
    peer = raw()
    first, second = await asked(victim, peer, form(1), form(2))
    answer = await client.form(f"{first}/answer", {"action": "decline"})
    assert answer.status == 303 and answer.header("location") == first
    failed = await client.form(f"{second}/answer", {"action": "fail", "code": "-32099", "message": "Not today"})
    assert failed.status == 303
    assert await replied(victim, peer, 2) == {"error": {"code": -32099, "message": "Not today"}}
    wrong = await client.form(f"{first}/answer", {"action": "fail", "code": "soon", "message": "x"})
    assert wrong.status == 409


async def test_an_error_code_that_is_no_number_comes_back_with_what_was_typed(
    victim: Session, client: Visitor, raw: Raw
):
    [address] = await asked(victim, raw(), form())
    said = {"action": "fail", "code": "soon", "message": "Not <today>"}
    answer = await client.form(f"{address}/answer", said, hx_request="true")
    assert answer.status == 422
    assert "whole number" in answer.text
    assert 'value="soon"' in answer.text and 'value="Not &lt;today&gt;"' in answer.text


@pytest.mark.requirement("R3-09")
async def test_sampling_by_the_form_as_text_and_as_json(victim: Session, client: Visitor, raw: Raw):
    peer = raw()
    first, second, third = await asked(victim, peer, *(request(n, "sampling/createMessage", SAMPLE) for n in (1, 2, 3)))
    said = {"action": "respond", "text": "Two\r\nlines", "model": "human", "stopReason": "endTurn", "json": ""}
    assert (await client.form(f"{first}/answer", said, hx_request="true")).status == 200
    assert (await replied(victim, peer, 1))["result"] == {
        **RESULT,
        "content": {"type": "text", "text": "Two\nlines"},
    }
    blocks = {**RESULT, "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    broken = {**said, "json": '{"role": '}
    answer = await client.form(f"{second}/answer", broken, hx_request="true")
    assert answer.status == 422 and "{&#34;role&#34;: " in answer.text, "what was typed"
    assert "Two\nlines" in answer.text.replace("\r\n", "\n")
    assert 'role="alert"' in answer.text
    wrong = {**said, "json": json.dumps({**RESULT, "model": ""})}
    answer = await client.form(f"{second}/answer", wrong, hx_request="true")
    assert answer.status == 422 and "which model" in answer.text
    good = {**said, "json": json.dumps(blocks)}
    assert (await client.form(f"{second}/answer", good, hx_request="true")).status == 200
    assert (await replied(victim, peer, 2))["result"] == blocks
    empty = {**said, "model": ""}
    answer = await client.form(f"{third}/answer", empty, hx_request="true")
    assert answer.status == 422 and "which model" in answer.text and "Two" in answer.text
    assert (await client.form(f"{third}/answer", {**empty, "force": "1"}, hx_request="true")).status == 200
    assert victim.inbox.asks[third.rpartition("/")[2]].answer.forced  # type: ignore[union-attr]


@pytest.mark.requirement("R5-20")
async def test_roots_asked_as_an_ask(victim: Session, client: Visitor, raw: Raw):
    peer = raw()
    [address] = await asked(victim, peer, request("q", "roots/list", {}), ask_roots=True)
    assert "Send the list" in (await client.get(address)).text
    saved = await client.post(f"/s/{victim.id}/roots", {"roots": [{"uri": "file:///srv/data", "name": "data"}]})
    assert saved.status == 200
    assert (await client.form(f"{address}/answer", {"action": "accept"}, hx_request="true")).status == 200
    assert await replied(victim, peer) == {"result": {"roots": [{"uri": "file:///srv/data", "name": "data"}]}}


# ---- links


@pytest.mark.requirement("R4-40", "R4-42", "R4-43", "R4-44")
@pytest.mark.parametrize(
    ("url", "opens", "warns"),
    [
        ("https://accounts.example.test/in?a=1", True, ""),
        ("https://bücher.example/x", True, "xn--bcher-kva.example"),
        ("https://xn--80ak6aa92e.com/", True, "other letters"),
        ("http://example.test/", True, "not encrypted"),
        ("https://good.test@evil.test/", True, "user name"),
        ("javascript:alert(1)", False, "not an http"),
        ("data:text/html,<script>alert(1)</script>", False, "not an http"),
        ("file:///etc/passwd", False, "not an http"),
        ("https://exa mple.test/", False, "not an http"),
        ("//example.test", False, "not an http"),
    ],
)
async def test_only_an_address_that_may_be_opened_becomes_a_link(
    victim: Session, client: Visitor, raw: Raw, url: str, opens: bool, warns: str
):
    [address] = await asked(victim, raw(), request("q", "elicitation/create", {**LINK, "url": url}))
    page = (await client.get(address)).text
    card = page[page.index('<li class="ask"') : page.index("</li>", page.index('class="acts"'))]
    links = [link for link in re.findall(r"<a [^>]*>", card) if "/s/" not in link]
    assert len(links) == opens
    for link in links:
        assert 'target="_blank"' in link and 'rel="noopener noreferrer"' in link
    assert ("data-consent" in card) == opens
    assert warns in body(Answer(200, [], card.encode()))
    for fetched in ("prefetch", "preconnect", "dns-prefetch", "<iframe", "<img"):
        assert fetched not in card


@pytest.mark.requirement("R4-46")
async def test_a_link_that_is_complete_says_so_in_json(victim: Session, script: Visitor, raw: Raw):
    [address] = await asked(victim, raw(), request("q", "elicitation/create", LINK))
    await script.post(f"{address}/answer", {"action": "accept"})
    note = {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "e1"}}
    await say(victim, json.dumps(note))
    await flushed(victim)
    assert (await script.json(address))["completed_elsewhere"] is True
