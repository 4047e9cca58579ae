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

from app.core.asks import AnsweredBy, Draft
from app.sessions import Identity, Session
from app.sessions.identity import LOCAL
from tests.drive import HANG, RawPeer, call_tool, connected, findings, flushed, until
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


async def test_an_ask_has_a_draft_in_json_once_somebody_drafts(victim: Session, script: Visitor, raw: Raw):
    [address] = await asked(victim, raw(), request("q", "sampling/createMessage", SAMPLE))
    assert "draft" not in await script.json(address)
    [ask] = victim.inbox.open
    victim.inbox.draft(ask, Draft(AnsweredBy("model", "small"), "Hel", state="streaming"))
    draft = (await script.json(address))["draft"]
    times = [draft.pop(key) for key in ("started_at", "updated_at")]
    assert times[0].endswith("Z") and times[0] <= times[1]
    by = {"kind": "model", "name": "small"}
    more: dict[str, Any] = {"fault": None, "retry_after": None, "retry_at": None, "notes": [], "took": None}
    more |= {"said": "", "number": 1}
    assert draft == {"by": by, "state": "streaming", "text": "Hel", "content": None, "problem": "", **more}


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
    assert set(inbox) == {"sign_in", "open", "settled"}
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

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.sleep(0.05)
            assert found == []
            await say(victim, form())
    assert [ask["kind"] for ask in found[0]["open"]] == ["form"]
    with anyio.fail_after(30):
        assert len((await script.json(f"/s/{victim.id}/inbox?wait=20"))["open"]) == 1


async def test_waiting_for_an_ask_that_never_comes_ends_by_itself(victim: Session, script: Visitor, raw: Raw):
    await connected(victim, raw().target)
    with anyio.fail_after(60):
        assert (await script.json(f"/s/{victim.id}/inbox?wait=0.2"))["open"] == []


@pytest.mark.requirement("R1-11", "R1-13", "S000 overview")
async def test_a_receiver_task_in_json_with_its_history(victim: Session, script: Visitor, raw: Raw):
    peer = raw()
    [address] = await asked(victim, peer, form(task={"ttl": 120_000}))
    ask = await script.json(address)
    assert ask["origin"] == "receiver-task" and TIME.fullmatch(ask["expires_at"])
    wire = (await replied(victim, peer))["result"]["task"]
    await say(victim, request("get", "tasks/get", {"taskId": wire["taskId"]}))
    listed = await script.json(f"/s/{victim.id}/tasks")
    assert {"receiver", "client"} <= set(listed) and listed["client"] == []
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
    aid, tid = address.rpartition("/")[2], next(iter(victim.asks.tasks))
    pages = ["inbox", "inbox?count=1", "tasks", f"tasks/{tid}", "stage", "calls", "events?since=0", "log"]
    for path in (address, *(f"{base}/{page}" for page in pages)):
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
        assert (await mallory.post(f"{place}/request", {"request": None})).status == 404
        assert (await mallory.form(f"{place}/form", {})).status == 404
    running = next(iter(victim.calls))
    for owner in (base, mine):
        assert (await mallory.post(f"{owner}/calls/{running}/retry")).status == 404
    assert (await mallory.form(f"{base}/inbox/clear")).status == 404
    assert victim.open_asks == 1
    assert (await mallory.json(f"{mine}/inbox")) == {"sign_in": None, "open": [], "settled": []}
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
    called = rf"(?:<code>[^<]*</code> <span[^>]*>|<code>){re.escape(label)}"
    found = re.search(rf'<label for="([^"]+)"[^>]*>{called}', page)
    assert found, label
    control = re.search(rf'id="{re.escape(found[1])}"[^>]* name="([^"]+)"', page)
    assert control
    return control[1]


@pytest.mark.requirement("R4-08", "R4-09", "R4-31", "S001 elicitation form")
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


@pytest.mark.requirement("S001 ChatRow")
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
    links = [link for link in re.findall(r"<a [^>]*>", card) if "/s/" not in link and 'class="id"' not in link]
    assert len(links) == opens
    for link in links:
        assert 'target="_blank"' in link and 'rel="noopener noreferrer"' in link
    assert ("data-consent" in card) == opens
    assert warns in body(Answer(200, [], card.encode()))
    for fetched in ("prefetch", "preconnect", "dns-prefetch", "<iframe", "<img"):
        assert fetched not in card


@pytest.mark.requirement("H01", "R4-43")
@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://127.0.0.1:6280/login", True),
        ("http://localhost:8080/", True),
        ("http://app.localhost/", True),
        ("https://[::1]:8443/", True),
        ("http://0.0.0.0:8080/", True),
        ("https://example.test/127.0.0.1", False),
        ("https://127.0.0.1.example.test/", False),
    ],
)
async def test_h01_a_link_to_the_own_machine_carries_a_warning(
    victim: Session, client: Visitor, raw: Raw, url: str, warned: bool
):
    """In the card of an ask, and in the card of a call that failed with -32042; and neither claims too much."""
    [address] = await asked(victim, raw(), request("q", "elicitation/create", {**LINK, "url": url}))
    call = await call_tool(victim, "say", {"lines": [refused_with({**LINK, "url": url})]})
    for path in (address, f"/s/{victim.id}/calls/{call.id}"):
        main = (await client.get(path)).text.partition('<main id="main"')[2].partition("</main>")[0]
        assert f'href="{url}"' in main
        assert ("This opens something on your own machine." in main) is warned
        assert "stays there" not in main, "what is typed there goes to whoever runs that page"


@pytest.mark.requirement("R4-46")
async def test_a_link_that_is_complete_says_so_in_json(victim: Session, script: Visitor, raw: Raw):
    [address] = await asked(victim, raw(), request("q", "elicitation/create", LINK))
    await script.post(f"{address}/answer", {"action": "accept"})
    note = {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "e1"}}
    await say(victim, json.dumps(note))
    await flushed(victim)
    assert (await script.json(address))["completed_elsewhere"] is True


# ---- an error that wants a link opened first


def refused_with(*elicitations: Any, code: int = -32042) -> str:
    error = {"code": code, "message": "Sign in first", "data": {"elicitations": list(elicitations)}}
    return '{"jsonrpc":"2.0","id":$ID,"error":' + json.dumps(error) + "}"


@pytest.mark.requirement("R4-47", "R4-48", "R4-46", "R4-41", "R4-42")
async def test_error_32042_shows_its_links_and_offers_a_retry(
    victim: Session, client: Visitor, script: Visitor, raw: Raw
):
    peer = raw()
    await connected(victim, peer.target)
    second = {**LINK, "elicitationId": "e2", "url": "javascript:alert(1)", "message": "<i>Or</i> here"}
    lines = [refused_with(LINK, second, {"mode": "url"})]
    call = await call_tool(victim, "say", {"lines": lines})
    address = f"/s/{victim.id}/calls/{call.id}"
    told = await script.json(address)
    assert told["state"] == "failed" and told["error"]["code"] == -32042 and told["retry_of"] is None
    assert [(link["elicitation_id"], link["opens"], link["completed"]) for link in told["links"]] == [
        ("e1", True, False),
        ("e2", False, False),
    ]
    assert told["links"][0]["url"] == LINK["url"] and told["links"][0]["message"] == "Sign in"
    assert [finding["id"] for finding in told["findings"]] == ["R4-48"]
    assert victim.open_asks == 0, "there is no request to answer"
    page = (await client.get(address)).text
    card = page[page.index('<section class="needs') : page.index("</section>", page.index('<section class="needs'))]
    assert "<b>example.test</b>/in?a=1" in card and "&lt;i&gt;Or&lt;/i&gt; here" in card
    [link] = [one for one in re.findall(r"<a [^>]*>", card) if "/s/" not in one and 'class="id"' not in one]
    assert f'href="{LINK["url"]}"' in link and 'target="_blank"' in link and 'rel="noopener noreferrer"' in link
    assert card.count("data-consent") == 1 and "gated" in link
    for fetched in ("prefetch", "preconnect", "<iframe", "<img", 'javascript:alert(1)"'):
        assert fetched not in card
    # The page behind the link reports, and only the link that it names is done.
    note = {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "e1"}}
    await say(victim, json.dumps(note))
    await flushed(victim)
    assert [one["completed"] for one in (await script.json(address))["links"]] == [True, False]
    assert "you are done there" in (await client.get(address)).text
    assert "R4-46" not in [finding.id for finding in findings(victim)]
    # The same request leaves once more, with an id of its own and no ElicitResult before it.
    again = await script.post(f"{address}/retry")
    assert again.status == 202 and again.json()["retry_of"] == call.id
    await until(victim, lambda: victim.calls[again.json()["id"]].settled)
    retried = await script.json(f"/s/{victim.id}/calls/{again.json()['id']}")
    assert retried["retry_of"] == call.id and retried["params"] == told["params"]
    assert f"call {call.id[1:]}" in (await client.get(f"/s/{victim.id}/calls/{again.json()['id']}")).text
    sent = [one for one in peer.received("tools/call") if one["params"]["arguments"] == {"lines": lines}]
    assert len({one["id"] for one in sent}) == 2
    assert not [one for one in peer.received() if "result" in one and "action" in (one["result"] or {})]
    by_form = await client.form(f"{address}/retry")
    assert by_form.status == 303 and (by_form.header("location") or "").startswith(f"/s/{victim.id}/calls/")


async def test_a_retry_needs_a_call_that_is_over(victim: Session, script: Visitor, raw: Raw):
    await connected(victim, raw().target)
    assert (await script.post(f"/s/{victim.id}/calls/c999/retry")).status == 404
    running = victim.start_call("tools/call", {"name": "say", "arguments": {"lines": []}}, by=Identity("me", "Me"))
    assert (await script.post(f"/s/{victim.id}/calls/{running.id}/retry")).status == 409
    other = await call_tool(victim, "say", {"lines": [refused_with(LINK, code=-32000)]})
    assert (await script.json(f"/s/{victim.id}/calls/{other.id}"))["links"] == []
    victim.cancel_call(running.id)


# ---- a sampling request that is edited before it is used


@pytest.mark.requirement("R3-02", "R3-03", "S001 modifications", "S001 approval component")
async def test_a_script_edits_a_request_and_the_server_hears_nothing_of_it(victim: Session, script: Visitor, raw: Raw):
    peer = raw()
    [address] = await asked(victim, peer, request("q", "sampling/createMessage", SAMPLE))
    before = len(peer.received())
    edited = {**SAMPLE, "systemPrompt": "Be brief", "maxTokens": 9}
    answer = await script.post(f"{address}/request", {"request": edited})
    assert answer.status == 200 and answer.json()["edited"] == edited and answer.json()["params"] == SAMPLE
    assert (await script.json(address))["state"] == "open"
    for wrong in ("x", {}, {"messages": [], "maxTokens": "1"}, {"messages": [{"role": "system"}], "maxTokens": 1}):
        refused = await script.post(f"{address}/request", {"request": wrong})
        assert refused.status == 422 and list(refused.error["fields"]) == ["/request"], wrong
    assert (await script.post(f"{address}/request", {})).status == 422
    assert (await script.json(address))["edited"] == edited, "what was refused changed nothing"
    assert (await script.post(f"{address}/request", {"request": None})).json()["edited"] is None
    assert (await script.post(f"{address}/request", {"request": SAMPLE})).json()["edited"] is None, "nothing changed"
    assert len(peer.received()) == before
    # With the answer, too.
    said = {"action": "respond", "result": RESULT, "request": edited}
    done = (await script.post(f"{address}/answer", said)).json()
    assert done["edited"] == edited and done["outcome"]["request"] == edited and done["params"] == SAMPLE
    assert await replied(victim, peer) == {"result": RESULT}
    assert (await script.post(f"{address}/request", {"request": None})).status == 409


@pytest.mark.requirement("R3-02")
async def test_only_a_sampling_request_can_be_edited(victim: Session, script: Visitor, raw: Raw):
    [address] = await asked(victim, raw(), form())
    assert (await script.post(f"{address}/request", {"request": {}})).status == 422


@pytest.mark.requirement("R3-02", "R3-03", "S001 modifications")
async def test_a_request_is_edited_by_the_form_and_the_original_stays_in_view(
    victim: Session, client: Visitor, raw: Raw
):
    peer = raw()
    [address] = await asked(victim, peer, request("q", "sampling/createMessage", {**SAMPLE, "systemPrompt": "Kind"}))
    typed = {"text": "Half", "model": "me", "edit-system": "Terse", "edit-0-0": "Hi there", "edit-maxTokens": "many"}
    answer = await client.form(f"{address}/request", {**typed, "edit": "save"}, hx_request="true")
    assert answer.status == 422 and "whole number" in answer.text
    assert 'value="many"' in answer.text and "Half" in answer.text, "what was typed"
    typed["edit-maxTokens"] = "5"
    answer = await client.form(f"{address}/request", {**typed, "edit": "save"}, hx_request="true")
    assert answer.status == 200 and "<html" not in answer.text
    shown = body(answer)
    assert "3 edits" in shown and "<del>Kind</del><ins>Terse</ins>" in shown and "was 50" in shown
    assert "Half" in shown, "the answer that is being written stays"
    edited = victim.inbox.open[0].edited
    assert edited is not None and edited["systemPrompt"] == "Terse" and edited["maxTokens"] == 5
    back = await client.form(f"{address}/request", {**typed, "edit": "original"}, hx_request="true")
    assert "3 edits" not in back.text and "<ins>" not in back.text and victim.inbox.open[0].edited is None
    # What stands in the fields when the answer leaves is what was used.
    typed |= {"action": "respond", "stopReason": "endTurn"}
    assert (await client.form(f"{address}/answer", typed, hx_request="true")).status == 200
    assert (await replied(victim, peer))["result"]["content"]["text"] == "Half"
    settled = await client.get(address)
    assert "The request was edited before it was used" in settled.text and "Terse" in settled.text


# ---- on purpose


@pytest.mark.requirement("R4-09")
async def test_what_is_sent_on_purpose_drops_nothing_that_was_typed(victim: Session, client: Visitor, raw: Raw):
    peer = raw()
    [address] = await asked(victim, peer, form())
    page = (await client.get(address)).text
    fields = [("action", "accept"), (named(page, "Full name"), "Ines"), (named(page, "age"), "minus one")]
    assert (await client.form(f"{address}/answer", fields, hx_request="true")).status == 422
    done = await client.form(f"{address}/answer", [*fields, ("force", "1")], hx_request="true")
    assert done.status == 200, done.text
    content = (await replied(victim, peer))["result"]["content"]
    assert (content["name"], content["age"]) == ("Ines", "minus one")
    ask = victim.inbox.settled[0]
    assert ask.answer is not None and ask.answer.forced


async def test_json_that_cannot_be_read_is_sent_as_text_or_not_at_all(victim: Session, client: Visitor, raw: Raw):
    peer = raw()
    field = {"type": "object", "properties": {"o": {"$ref": "#/nowhere"}}}
    asks = [{"message": "Odd", "requestedSchema": schema} for schema in (field, {"$ref": "#/nowhere"})]
    below, whole = await asked(victim, peer, *(request(at, "elicitation/create", one) for at, one in enumerate(asks)))
    said = [("action", "accept"), ("force", "1")]
    done = await client.form(f"{below}/answer", [*said, ("/o", "{"), ("/o#json", "1")], hx_request="true")
    assert done.status == 200
    assert (await replied(victim, peer, 0))["result"]["content"] == {"o": "{"}
    refused = await client.form(f"{whole}/answer", [*said, ("#", "{"), ("##json", "1")], hx_request="true")
    assert refused.status == 422 and "It cannot be sent anyway" in refused.text
    assert victim.open_asks == 1


# ---- the stage


@pytest.mark.requirement("S001 overview")
async def test_the_stage_tells_the_sequence_and_shows_the_inbox(
    victim: Session, client: Visitor, script: Visitor, raw: Raw
):
    address = f"/s/{victim.id}/stage"
    assert "No server is connected" in (await client.get(address)).text
    first, _ = await asked(victim, raw(), form(1), request(2, "sampling/createMessage", SAMPLE))
    await script.post(f"{first}/answer", {"action": "decline"})
    told = await script.json(address)
    assert [(scene["kind"], scene["state"]) for scene in told["scenes"]] == [("Form", "answered"), ("Sampling", "open")]
    assert told["can_start"] is False, "this server has no parade"
    page = (await client.get(address)).text
    assert 'class="stage"' in page and 'id="asks"' in page and "&lt;b&gt;traveller&lt;/b&gt;" in page
    assert "asks, you answer" in page
    part = (await client.get(address, hx_request="true")).text
    assert part.lstrip().startswith('<section class="programme" id="stage"')


@pytest.mark.requirement("S000 §4")
async def test_the_connect_form_says_how_long_tasks_live(app: Starlette, client: Visitor):
    page = (await client.get("/")).text
    for option, default in (("receiver_task_ttl_ms", "60000"), ("poll_interval_ms", "2000")):
        assert re.search(rf'name="option.{option}"[^>]* value="{default}"', page), option
    fields = {
        "transport": "demo",
        "option.receiver_task_ttl_ms": "5000",
        "option.poll_interval_ms": "300",
        "option.awaiting_user_status": "working",
    }
    assert (await client.form("/s", fields)).status == 303
    [session] = app.state.registry.of(LOCAL)
    options = session.options
    assert (options.receiver_task_ttl_ms, options.poll_interval_ms, options.awaiting_user_status) == (
        5000,
        300,
        "working",
    )
    await app.state.registry.close(session)


@pytest.mark.requirement("S001 renderField", "R4-08")
@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("0", 0),
        ("-0.5", -0.5),
        ("1e3", 1000),
        ("", None),
        (" 7 ", 7),
        ("NaN", "422"),
        ("1,5", "422"),
        ("Infinity", "422"),
    ],
)
async def test_a_number_is_read_as_one_or_refused(victim: Session, client: Visitor, raw: Raw, typed: str, sent: Any):
    peer = raw()
    schema = {"type": "object", "properties": {"x": {"type": "number"}}}
    params = {"message": "How much?", "requestedSchema": schema}
    [address] = await asked(victim, peer, request("q", "elicitation/create", params))
    answer = await client.form(f"{address}/answer", {"action": "accept", "/x": typed}, hx_request="true")
    if sent == "422":
        assert answer.status == 422 and victim.open_asks == 1
        return
    assert answer.status == 200
    content = (await replied(victim, peer))["result"]["content"]
    assert content == ({} if sent is None else {"x": sent})


async def test_a_folded_sampling_request_is_known_by_its_last_words(client: Visitor, victim: Session, raw: Raw):
    turns = [{"role": "user", "content": {"type": "text", "text": text}} for text in ("First", "And then <b>this</b>")]
    await asked(victim, raw(), request("q", "sampling/createMessage", {**SAMPLE, "messages": turns}))
    page = (await client.get(f"/s/{victim.id}/inbox")).text
    assert '<span class="gist" hx-ignore>And then &lt;b&gt;this&lt;/b&gt;</span>' in page
    (item,) = [one for one in (await client.json(f"/s/{victim.id}/palette"))["items"] if one["kind"] == "ask"]
    assert (item["label"], item["detail"]) == ("And then <b>this</b>", "sampling/createMessage")
