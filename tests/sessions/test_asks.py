"""What a server asks of a person, seen from the wire: plain requests and receiver tasks, answers, withdrawals, ends.

The peer is a raw script: it writes the lines a test gives it, and its own record says what it got.
"""

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from app.core.asks import Ask
from app.core.errors import Conflict, Invalid
from app.core.options import Root
from app.sessions import Session, SessionRegistry
from app.settings import Limits
from tests.drive import HANG, ME, RawPeer, call_tool, connected, findings, flushed, settled, until
from tests.drive_http import raw_peer

Raw = Callable[..., RawPeer]
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
FORM = {
    "message": "Which traveller?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name"],
    },
}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 50}
LINK = {"mode": "url", "message": "Sign in", "url": "https://example.test/in", "elicitationId": "e1"}
RELATED = "io.modelcontextprotocol/related-task"


def request(rpc_id: Any, method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params})


async def say(session: Session, *lines: str) -> None:
    """Have the peer write these lines, and wait until it is done."""
    await call_tool(session, "say", {"lines": [*lines, DONE]})


async def asked(session: Session, *lines: str, count: int = 1) -> list[Ask]:
    """Have the peer write these lines, and wait for that many open asks."""
    await say(session, *lines)
    await until(session, lambda: session.open_asks >= count)
    return session.inbox.open


def replies(peer: RawPeer, rpc_id: Any) -> list[dict[str, Any]]:
    """Everything the peer got for a request of its own."""
    return [each for each in peer.received() if "method" not in each and each.get("id") == rpc_id]


def reply(peer: RawPeer, rpc_id: Any) -> dict[str, Any]:
    """The one reply it got."""
    [found] = replies(peer, rpc_id)
    return found


async def answered(session: Session, peer: RawPeer, rpc_id: Any) -> dict[str, Any]:
    """The same, once it is there."""
    with anyio.fail_after(HANG):
        while not replies(peer, rpc_id):
            await flushed(session)
    return reply(peer, rpc_id)


# ---- plain requests


@pytest.mark.requirement("R4-30", "SC-1", "R4-11", "S001 elicitation response")
@pytest.mark.parametrize(
    ("said", "result"),
    [
        (
            {"action": "accept", "content": {"name": "Ines", "age": 0}},
            {"action": "accept", "content": {"name": "Ines", "age": 0}},
        ),
        ({"action": "decline"}, {"action": "decline"}),
        ({"action": "cancel"}, {"action": "cancel"}),
    ],
)
async def test_a_form_is_answered_with_each_of_the_three_actions(session: Session, raw: Raw, said: Any, result: Any):
    peer = raw()
    await connected(session, peer.target)
    [ask] = await asked(session, request("q", "elicitation/create", FORM))
    assert (ask.kind, ask.origin, ask.state, ask.message) == ("form", "request", "open", "Which traveller?")
    await session.asks.answer(ask, said, ME)
    assert await answered(session, peer, "q") == {"jsonrpc": "2.0", "id": "q", "result": result}
    assert ask.state == "answered"


@pytest.mark.requirement("R4-09", "R4-08")
async def test_an_answer_that_does_not_fit_is_refused_with_its_fields_unless_it_is_forced(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    [ask] = await asked(session, request(1, "elicitation/create", FORM))
    for content, pointers in (({}, {"/name"}), ({"name": "x", "age": "old"}, {"/age"}), ({"name": None}, {"/name"})):
        with pytest.raises(Invalid) as caught:
            await session.asks.answer(ask, {"action": "accept", "content": content}, ME)
        assert set(caught.value.fields) == pointers
        assert ask.state == "open"
    await session.asks.answer(ask, {"action": "accept", "content": {"age": -5}, "force": True}, ME)
    assert (await answered(session, peer, 1))["result"] == {"action": "accept", "content": {"age": -5}}
    assert ask.answer is not None
    assert ask.answer.forced


@pytest.mark.requirement("S39", "R1-21")
async def test_the_first_answer_wins_and_a_second_one_is_told_so(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    [ask] = await asked(session, request(1, "elicitation/create", FORM))
    await session.asks.answer(ask, {"action": "decline"}, ME)
    with pytest.raises(Conflict, match="answered already"):
        await session.asks.answer(ask, {"action": "accept", "content": {"name": "late"}}, ME)
    await answered(session, peer, 1)
    await flushed(session)
    assert reply(peer, 1)["result"] == {"action": "decline"}


@pytest.mark.requirement("R4-02", "R4-45", "R4-30")
async def test_a_link_is_accepted_without_content(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    [ask] = await asked(session, request(1, "elicitation/create", LINK))
    assert ask.kind == "url"
    await session.asks.answer(ask, {"action": "accept", "content": {"dropped": 1}}, ME)
    assert (await answered(session, peer, 1))["result"] == {"action": "accept"}


@pytest.mark.requirement("R3-09", "R3-20", "S001 deny")
async def test_sampling_is_answered_denied_and_failed(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    asks = await asked(session, *(request(n, "sampling/createMessage", SAMPLE) for n in (1, 2, 3)), count=3)
    result = {
        "role": "assistant",
        "content": {"type": "text", "text": "Hello"},
        "model": "human",
        "stopReason": "endTurn",
    }
    await session.asks.answer(asks[0], {"action": "respond", "result": result}, ME)
    await session.asks.answer(asks[1], {"action": "decline"}, ME)
    await session.asks.answer(asks[2], {"action": "fail", "code": -31000, "message": "no thanks"}, ME)
    assert (await answered(session, peer, 1))["result"] == result
    assert (await answered(session, peer, 2))["error"] == {"code": -1, "message": "User rejected sampling request"}
    assert (await answered(session, peer, 3))["error"] == {"code": -31000, "message": "no thanks"}


@pytest.mark.requirement("R3-08", "R3-09", "S001 response type")
@pytest.mark.parametrize(
    ("more", "result", "where"),
    [
        ({}, {"role": "assistant", "content": {"type": "text", "text": "x"}}, "/model"),
        ({}, {"role": "robot", "content": {"type": "text", "text": "x"}, "model": "m"}, "/role"),
        ({}, {"role": "assistant", "content": [], "model": "m"}, "/content"),
        ({}, {"role": "assistant", "content": {"type": "text"}, "model": "m"}, "/content"),
        (
            {},
            {"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "t", "input": {}}, "model": "m"},
            "/content",
        ),
        (
            {"tools": [{"name": "t"}], "toolChoice": {"mode": "required"}},
            {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"},
            "/content",
        ),
        (
            {"tools": [{"name": "t"}], "toolChoice": {"mode": "none"}},
            {"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "t", "input": {}}, "model": "m"},
            "/content",
        ),
    ],
)
async def test_a_sampling_answer_is_checked_before_it_leaves(
    session: Session, raw: Raw, more: Any, result: Any, where: str
):
    peer = raw()
    await connected(session, peer.target)
    [ask] = await asked(session, request(1, "sampling/createMessage", SAMPLE | more))
    with pytest.raises(Invalid) as caught:
        await session.asks.answer(ask, {"action": "respond", "result": result}, ME)
    assert where in caught.value.fields
    assert ask.state == "open"
    await session.asks.answer(ask, {"action": "decline"}, ME)


@pytest.mark.requirement("R1-15", "R3-04", "R3-06", "R3-07", "R4-03")
@pytest.mark.parametrize(
    ("method", "params", "options"),
    [
        ("elicitation/create", {"message": "x", "mode": "telepathy"}, {}),
        ("elicitation/create", LINK, {"elicitation_url": False}),
        ("elicitation/create", FORM, {"elicitation_form": False}),
        ("elicitation/create", {"message": "x"}, {}),
        ("elicitation/create", {"requestedSchema": {}}, {}),
        ("elicitation/create", {"mode": "url", "message": "x", "url": "https://a.test"}, {}),
        ("sampling/createMessage", {"maxTokens": 5}, {}),
        ("sampling/createMessage", {"messages": []}, {}),
        ("sampling/createMessage", SAMPLE | {"tools": []}, {"sampling_tools": False}),
        ("sampling/createMessage", {"messages": [{"role": "system", "content": []}], "maxTokens": 5}, {}),
        (
            "sampling/createMessage",
            {
                "messages": [
                    {"role": "assistant", "content": {"type": "tool_use", "id": "a", "name": "t", "input": {}}}
                ],
                "maxTokens": 5,
            },
            {},
        ),
        (
            "sampling/createMessage",
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "toolUseId": "a", "content": []},
                            {"type": "text", "text": "x"},
                        ],
                    }
                ],
                "maxTokens": 5,
            },
            {},
        ),
        (
            "sampling/createMessage",
            {
                "messages": [{"role": "user", "content": {"type": "tool_result", "toolUseId": "zz", "content": []}}],
                "maxTokens": 5,
            },
            {},
        ),
    ],
)
@pytest.mark.parametrize("as_task", [False, True])
async def test_what_may_not_be_asked_is_refused_at_once_and_nothing_is_kept(
    session: Session, raw: Raw, method: str, params: Any, options: Any, as_task: bool
):
    peer = raw()
    await connected(session, peer.target, **options)
    await say(session, request(1, method, params | ({"task": {}} if as_task else {})))
    assert (await answered(session, peer, 1))["error"]["code"] == -32602
    assert session.open_asks == 0
    assert len(session.asks.tasks) == 0


@pytest.mark.requirement("R3-01", "R1-04")
@pytest.mark.parametrize(
    ("method", "params", "options"),
    [
        ("sampling/createMessage", SAMPLE, {"sampling": False}),
        ("elicitation/create", FORM, {"elicitation_form": False, "elicitation_url": False}),
    ],
)
async def test_what_was_not_declared_is_an_unknown_method(
    session: Session, raw: Raw, method: str, params: Any, options: Any
):
    peer = raw()
    await connected(session, peer.target, **options)
    await say(session, request(1, method, params))
    assert (await answered(session, peer, 1))["error"]["code"] == -32601
    assert "R5-04" in [each.id for each in findings(session)]


@pytest.mark.requirement("R3-22", "R5-24", "S000 §2 without task unchanged")
async def test_a_request_taken_back_is_withdrawn_and_gets_no_reply(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    [ask] = await asked(session, request(5, "elicitation/create", FORM))
    await say(
        session, '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"fare expired"}}'
    )
    await until(session, lambda: ask.settled)
    assert (ask.state, ask.reason) == ("withdrawn", "fare expired")
    with pytest.raises(Conflict, match="took this back"):
        await session.asks.answer(ask, {"action": "decline"}, ME)
    await flushed(session)
    assert replies(peer, 5) == []


@pytest.mark.requirement("R5-20")
async def test_roots_become_an_ask_when_the_option_says_so(session: Session, raw: Raw):
    peer = raw()
    await session.set_roots([Root(uri="file:///srv/a")])
    await connected(session, peer.target, ask_roots=True)
    [ask] = await asked(session, request(1, "roots/list", {}))
    assert ask.kind == "roots"
    await session.asks.answer(ask, {"action": "accept"}, ME)
    assert (await answered(session, peer, 1))["result"] == {"roots": [{"uri": "file:///srv/a"}]}


@pytest.mark.requirement("R2-30")
async def test_a_reply_names_the_task_that_its_request_named(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    meta = {"_meta": {RELATED: {"taskId": "theirs-7"}}}
    [ask] = await asked(session, request(1, "elicitation/create", FORM | meta))
    assert ask.related_task == "theirs-7"
    await session.asks.answer(ask, {"action": "decline"}, ME)
    assert (await answered(session, peer, 1))["result"] == {
        "action": "decline",
        "_meta": {RELATED: {"taskId": "theirs-7"}},
    }


async def test_a_call_waits_while_its_ask_is_open_and_its_time_limit_stands_still(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    running = session.start_call(
        "tools/call",
        {"name": "say", "arguments": {"lines": [request(9, "elicitation/create", FORM)]}},
        timeout_ms=600,
        by=ME,
    )
    await until(session, lambda: session.open_asks == 1)
    [ask] = session.inbox.open
    assert (ask.call_id, running.state, running.deadline_at) == (running.id, "waiting", None)
    with anyio.move_on_after(1.0):
        await settled(session, running)
    states = [running.state]
    await session.asks.answer(ask, {"action": "decline"}, ME)
    states.append(running.state)
    assert states == ["waiting", "running"]
    await settled(session, running)
    assert (running.state, running.error and running.error.kind) == ("failed", "timeout")


@pytest.mark.requirement("R5-05")
@pytest.mark.parametrize("end", ["answered", "withdrawn"])
async def test_the_time_limits_of_two_calls_stand_still_while_an_ask_is_open_that_may_be_of_either(
    session: Session, raw: Raw, end: str
):
    peer = raw()
    await connected(session, peer.target, era="legacy")
    first = session.start_call("x/hold", {}, timeout_ms=600, by=ME)
    await until(session, lambda: len(first.legs) == 1)
    asks = {"name": "say", "arguments": {"lines": [request(9, "elicitation/create", FORM)]}}
    second = session.start_call("tools/call", asks, timeout_ms=600, by=ME)
    await until(session, lambda: session.open_asks == 1)
    [ask] = session.inbox.open
    assert ask.call_id is None
    assert [(call.state, call.deadline_at) for call in (first, second)] == [("running", None)] * 2
    # A call that begins later did not cause the ask: its time passes, and it is over after that of the two.
    later = session.start_call("x/hold", {}, timeout_ms=1000, by=ME)
    await settled(session, later)
    assert later.error is not None and later.error.kind == "timeout"
    assert [call.state for call in (first, second)] == ["running"] * 2
    if end == "answered":
        await session.asks.answer(ask, {"action": "decline"}, ME)
    else:
        gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
        await say(session, json.dumps(gone))
        await until(session, lambda: ask.state == "withdrawn")
    assert all(call.deadline_at is not None for call in (first, second))
    for call in (first, second):
        await settled(session, call)
        assert (call.state, call.error and call.error.kind) == ("failed", "timeout")


@pytest.mark.requirement("F10", "R4-31")
async def test_a_thousand_asks_open_a_hundred_and_refuse_the_rest(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    await say(session, *(request(n, "elicitation/create", FORM) for n in range(1000, 2000)))
    await until(session, lambda: session.open_asks == 100 and session.inbox.refused == 900)
    await answered(session, peer, 1999)
    refused = [each for each in peer.received() if "error" in each]
    assert len(refused) == 900
    assert {each["error"]["code"] for each in refused} == {-32603}
    await session.disconnect()
    assert session.open_asks == 0


@pytest.mark.requirement("R1-88")
@pytest.mark.parametrize("how", ["disconnect", "crash"])
async def test_the_end_of_a_connection_loses_its_asks_and_answers_nothing(session: Session, raw: Raw, how: str):
    peer = raw()
    await connected(session, peer.target)
    await asked(
        session, request(1, "elicitation/create", FORM), request(2, "elicitation/create", FORM | {"task": {}}), count=2
    )
    asks = session.inbox.open
    if how == "disconnect":
        await session.disconnect()
    else:
        session.start_call("tools/call", {"name": "exit", "arguments": {"code": 3}}, by=ME)
        await until(session, lambda: session.info.state == "lost")
    assert [ask.state for ask in asks] == ["lost", "lost"]
    assert replies(peer, 1) == []
    assert [task.gone for task in session.asks.tasks.values()] == ["lost"]


async def test_four_asks_are_answered_in_reverse_while_calls_go_on(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    lines = [
        request(1, "sampling/createMessage", SAMPLE),
        request(2, "elicitation/create", FORM),
        request(3, "elicitation/create", FORM),
        request(4, "elicitation/create", FORM | {"task": {"ttl": 60000}}),
    ]
    asks = await asked(session, *lines, count=4)
    for ask in reversed(asks):
        echo = await call_tool(session, "echo", {"message": ask.id})
        assert echo.state == "done"
        said = {"action": "decline"} if ask.kind == "sampling" else {"action": "accept", "content": {"name": ask.id}}
        await session.asks.answer(ask, said, ME)
    for rpc_id in (3, 2, 1):
        await answered(session, peer, rpc_id)
    order = [each["id"] for each in peer.received() if "method" not in each and each["id"] in (1, 2, 3)]
    assert order == [3, 2, 1]


@pytest.mark.requirement("S001 no active provider", "S001 Q3")
async def test_nobody_answers_unless_the_option_sets_a_limit(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target, unattended_limit_ms=100)
    await say(session, request(1, "elicitation/create", FORM), request(2, "sampling/createMessage", SAMPLE))
    assert (await answered(session, peer, 1))["result"] == {"action": "cancel"}
    assert (await answered(session, peer, 2))["error"]["code"] == -32603
    await until(session, lambda: len(session.inbox.settled) == 2)
    assert [ask.answer.by.kind for ask in session.inbox.settled if ask.answer] == ["limit", "limit"]


@pytest.mark.requirement("R4-46")
async def test_a_link_that_was_done_elsewhere_is_marked_and_an_unknown_one_is_remarked(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    [ask] = await asked(session, request(1, "elicitation/create", LINK))
    done = '{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"%s"}}'
    await say(session, done % "e1", done % "nobody", done % "e1")
    await until(session, lambda: ask.completed_elsewhere)
    assert [each.id for each in findings(session)] == ["R4-46", "R4-46"]
    await session.asks.answer(ask, {"action": "accept"}, ME)


@pytest.mark.requirement("R4-13", "R4-10", "R4-43", "R4-44")
@pytest.mark.parametrize(
    ("params", "finding"),
    [
        (
            {
                "message": "Your password?",
                "requestedSchema": {"type": "object", "properties": {"p": {"type": "string"}}},
            },
            "R4-13",
        ),
        (
            {"message": "x", "requestedSchema": {"type": "object", "properties": {"api_key": {"type": "string"}}}},
            "R4-13",
        ),
        ({"message": "x", "requestedSchema": {"type": "object", "properties": {"o": {"type": "object"}}}}, "R4-10"),
        (LINK | {"url": "javascript:alert(1)"}, "R4-44"),
        (LINK | {"url": "http://example.test/"}, "R4-43"),
        (LINK | {"url": "https://xn--80ak6aa92e.test/"}, "R4-43"),
        (LINK | {"url": "https://bank.test@evil.test/"}, "R4-43"),
    ],
)
async def test_what_a_person_should_beware_of_is_remarked(session: Session, raw: Raw, params: Any, finding: str):
    peer = raw()
    await connected(session, peer.target)
    [ask] = await asked(session, request(1, "elicitation/create", params))
    assert finding in [each.id for each in ask.findings]
    await session.asks.answer(ask, {"action": "decline"}, ME)


# ---- receiver tasks


async def task_of(
    session: Session, peer: RawPeer, method: str = "elicitation/create", ttl: Any = 60000, rpc_id: Any = "t"
) -> dict[str, Any]:
    """Have the peer ask by a task; the task that we answered."""
    params = SAMPLE if method.startswith("sampling") else FORM
    await say(session, request(rpc_id, method, params | {"task": {} if ttl is None else {"ttl": ttl}}))
    created = (await answered(session, peer, rpc_id))["result"]
    assert set(created) == {"task"}
    return dict(created["task"])


async def operate(session: Session, peer: RawPeer, rpc_id: Any, method: str, **params: Any) -> dict[str, Any]:
    await say(session, request(rpc_id, method, params))
    return await answered(session, peer, rpc_id)


@pytest.mark.requirement(
    "SC-2",
    "SC-3",
    "SC-4",
    "SC-5",
    "R1-10",
    "R1-11",
    "R1-12",
    "R1-23",
    "R1-72",
    "IT-1",
    "IT-2",
    "IT-3",
    "S004 elicitation handler",
    "S000 §3.5",
    "S000 §3.6",
)
@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage"])
async def test_a_task_lives_from_working_to_its_result(session: Session, raw: Raw, method: str):
    peer = raw()
    await connected(session, peer.target)
    task = await task_of(session, peer, method)
    assert (task["status"], task["ttl"], task["pollInterval"]) == ("working", 60000, 2000)
    [ask] = session.inbox.open
    assert (ask.origin, ask.expires_at is not None) == ("receiver-task", True)
    polled = (await operate(session, peer, "g", "tasks/get", taskId=task["taskId"]))["result"]
    assert (polled["status"], polled["statusMessage"]) == ("input_required", "Awaiting user input")
    assert "_meta" not in polled
    await say(session, request("r", "tasks/result", {"taskId": task["taskId"]}))
    await flushed(session)
    assert not replies(peer, "r")
    if method.startswith("sampling"):
        said = {
            "action": "respond",
            "result": {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"},
        }
        expected = said["result"]
    else:
        said = {"action": "accept", "content": {"name": "Ines"}}
        expected = said
    await session.asks.answer(ask, said, ME)
    result = (await answered(session, peer, "r"))["result"]
    assert result == expected | {"_meta": {RELATED: {"taskId": task["taskId"]}}}  # type: ignore[operator]
    again = (await operate(session, peer, "r2", "tasks/result", taskId=task["taskId"]))["result"]
    assert again == result
    statuses = [each["params"]["status"] for each in peer.received("notifications/tasks/status")]
    assert statuses == ["input_required", "completed"]
    order = [
        each.get("id") or each.get("method")
        for each in peer.received()
        if each.get("id") == "t" or each.get("method") == "notifications/tasks/status"
    ]
    assert order[0] == "t"


@pytest.mark.requirement("R1-23")
async def test_a_task_stays_working_when_the_option_says_so_and_says_nothing_when_told(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target, awaiting_user_status="working", send_status_notifications=False)
    task = await task_of(session, peer)
    assert (await operate(session, peer, 1, "tasks/get", taskId=task["taskId"]))["result"]["status"] == "working"
    await session.asks.answer(session.inbox.open[0], {"action": "decline"}, ME)
    assert (await operate(session, peer, 2, "tasks/get", taskId=task["taskId"]))["result"]["status"] == "completed"
    assert peer.received("notifications/tasks/status") == []


@pytest.mark.requirement("R1-04", "R1-06", "R1-08", "S000 §3.1 receiverTasks", "S000 §3.7")
@pytest.mark.parametrize("options", [{"receiver_tasks": False}, {"protocol_version": "2025-06-18"}])
async def test_without_receiver_tasks_a_task_is_ignored_and_its_methods_are_unknown(
    session: Session, raw: Raw, options: Any
):
    peer = raw()
    await connected(session, peer.target, **options)
    [ask] = await asked(session, request(1, "elicitation/create", FORM | {"task": {"ttl": 5}}))
    assert ask.origin == "request"
    await session.asks.answer(ask, {"action": "decline"}, ME)
    assert (await answered(session, peer, 1))["result"] == {"action": "decline"}
    for number, method in enumerate(("tasks/get", "tasks/list", "tasks/result", "tasks/cancel")):
        assert (await operate(session, peer, 10 + number, method, taskId="x"))["error"]["code"] == -32601


@pytest.mark.requirement("R1-82", "FR-3")
async def test_a_null_task_is_a_plain_request_with_a_remark(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    [ask] = await asked(session, request(1, "elicitation/create", FORM | {"task": None}))
    assert ask.origin == "request"
    assert "R1-82" in [each.id for each in findings(session)]
    await session.asks.answer(ask, {"action": "decline"}, ME)


@pytest.mark.requirement("R1-60", "R1-61", "IT-4", "F19")
async def test_a_cancelled_task_withdraws_its_ask_and_cannot_be_cancelled_again(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    task = await task_of(session, peer)
    [ask] = session.inbox.open
    await say(session, request("r", "tasks/result", {"taskId": task["taskId"]}))
    cancelled = (await operate(session, peer, 1, "tasks/cancel", taskId=task["taskId"]))["result"]
    assert (cancelled["status"], cancelled["taskId"]) == ("cancelled", task["taskId"])
    assert (await answered(session, peer, "r"))["error"]["code"] == -32603
    assert ask.state == "withdrawn"
    with pytest.raises(Conflict):
        await session.asks.answer(ask, {"action": "decline"}, ME)
    assert (await operate(session, peer, 2, "tasks/cancel", taskId=task["taskId"]))["error"]["code"] == -32602


@pytest.mark.requirement("R1-83", "R1-84", "FR-14")
async def test_a_task_whose_time_is_up_takes_its_ask_with_it(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    task = await task_of(session, peer, ttl=300)
    [ask] = session.inbox.asks.values()
    await say(session, request("r", "tasks/result", {"taskId": task["taskId"]}))
    await until(session, lambda: ask.settled)
    assert ask.state == "expired"
    assert (await answered(session, peer, "r"))["error"]["code"] == -32602
    assert (await operate(session, peer, 1, "tasks/get", taskId=task["taskId"]))["error"]["code"] == -32602
    assert (await operate(session, peer, 2, "tasks/list"))["result"] == {"tasks": []}


@pytest.mark.requirement("R1-44")
async def test_taking_back_a_wait_for_the_result_ends_only_that_wait(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    task = await task_of(session, peer)
    await say(session, request("r", "tasks/result", {"taskId": task["taskId"]}))
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"%s"}}'
    await say(session, cancel % "r", cancel % "t")
    assert session.open_asks == 1
    await session.asks.answer(session.inbox.open[0], {"action": "decline"}, ME)
    await flushed(session)
    assert not replies(peer, "r")
    assert (await operate(session, peer, "r2", "tasks/result", taskId=task["taskId"]))["result"]["action"] == "decline"


@pytest.mark.requirement("R1-31", "R1-51", "R1-82", "FR-10")
async def test_what_is_not_a_task_of_this_connection_is_an_invalid_parameter(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    operations: list[tuple[str, dict[str, Any]]] = [
        ("tasks/get", {"taskId": "nobody"}),
        ("tasks/get", {}),
        ("tasks/result", {"taskId": 7}),
        ("tasks/cancel", {"taskId": "nobody"}),
        ("tasks/list", {"cursor": "garbled"}),
        ("elicitation/create", FORM | {"task": {"ttl": -1}}),
        ("elicitation/create", FORM | {"task": "soon"}),
    ]
    for number, (method, params) in enumerate(operations):
        await say(session, request(number, method, params))
        assert (await answered(session, peer, number))["error"]["code"] == -32602
    assert session.open_asks == 0


@pytest.mark.requirement("R1-86", "NFR-2", "S15", "S001 Q2")
async def test_two_connections_do_not_see_each_others_tasks(registry: SessionRegistry, raw: Raw):
    first, second = registry.open(ME), registry.open(ME)
    peers = raw(), raw()
    await connected(first, peers[0].target)
    await connected(second, peers[1].target)
    task = await task_of(first, peers[0])
    for number, method in enumerate(("tasks/get", "tasks/result", "tasks/cancel")):
        assert (await operate(second, peers[1], number, method, taskId=task["taskId"]))["error"]["code"] == -32602
    assert (await operate(second, peers[1], 9, "tasks/list"))["result"] == {"tasks": []}
    assert second.open_asks == 0


@pytest.mark.requirement("R1-24", "S000 §3.10")
async def test_failing_a_task_gives_the_waiting_server_that_very_error(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    task = await task_of(session, peer)
    await say(session, request("r", "tasks/result", {"taskId": task["taskId"]}))
    await session.asks.answer(session.inbox.open[0], {"action": "fail", "code": -30001, "message": "nope"}, ME)
    assert (await answered(session, peer, "r"))["error"] == {"code": -30001, "message": "nope"}
    assert (await operate(session, peer, 1, "tasks/get", taskId=task["taskId"]))["result"]["status"] == "failed"


@pytest.mark.requirement("R1-50", "R1-52")
async def test_the_list_of_tasks_is_paged_on_the_wire(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    await say(session, *(request(n, "elicitation/create", FORM | {"task": {}}) for n in range(60)))
    await until(session, lambda: session.open_asks == 60)
    await answered(session, peer, 59)
    first = (await operate(session, peer, "a", "tasks/list"))["result"]
    rest = (await operate(session, peer, "b", "tasks/list", cursor=first["nextCursor"]))["result"]
    assert (len(first["tasks"]), len(rest["tasks"]), "nextCursor" in rest) == (50, 10, False)
    assert len({task["taskId"] for task in first["tasks"] + rest["tasks"]}) == 60


@pytest.mark.requirement("R1-16")
async def test_a_task_that_finds_no_room_in_the_inbox_is_not_kept(session: Session, raw: Raw, limits: Limits):
    peer = raw()
    await connected(session, peer.target)
    most = limits.open_asks
    await say(session, *(request(n, "elicitation/create", FORM | {"task": {}}) for n in range(most + 5)))
    await until(session, lambda: session.inbox.refused == 5)
    assert (await answered(session, peer, most + 4))["error"]["code"] == -32603
    assert len(session.asks.tasks) == most


@pytest.mark.requirement("R1-02", "R1-05", "FR-1", "FR-2")
@pytest.mark.parametrize(
    ("options", "requests"),
    [
        ({}, {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}}),
        ({"sampling": False}, {"elicitation": {"create": {}}}),
        ({"elicitation_form": False, "elicitation_url": False}, {"sampling": {"createMessage": {}}}),
        ({"sampling": False, "elicitation_form": False, "elicitation_url": False}, None),
    ],
)
async def test_tasks_are_declared_for_what_is_declared_itself(session: Session, raw: Raw, options: Any, requests: Any):
    peer = raw()
    await connected(session, peer.target, **options)
    await flushed(session)
    declared = peer.received("initialize")[0]["params"]["capabilities"].get("tasks")
    assert declared == (None if requests is None else {"list": {}, "cancel": {}, "requests": requests})


@pytest.mark.requirement("SC-5")
async def test_a_ttl_changed_on_the_live_connection_holds_for_the_next_task(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target, receiver_task_ttl_ms=5000)
    assert (await task_of(session, peer, ttl=None, rpc_id=1))["ttl"] == 5000
    await session.change_options({"receiver_task_ttl_ms": 7000, "receiver_task_max_ttl_ms": 8000})
    assert (await task_of(session, peer, ttl=None, rpc_id=2))["ttl"] == 7000
    assert (await task_of(session, peer, ttl=10**9, rpc_id=3))["ttl"] == 8000


@pytest.mark.requirement("R1-01", "R1-03", "R1-07", "S004 capability snippet", "S000 §3.4")
async def test_exactly_what_is_declared_can_be_asked_by_a_task(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target, sampling=False)
    await flushed(session)
    declared = peer.received("initialize")[0]["params"]["capabilities"]["tasks"]
    assert declared == {"list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}}}
    await task_of(session, peer)
    # Not listed: not task-capable. Roots have no tasks at all, whatever the server adds to its request.
    await say(session, request(1, "sampling/createMessage", SAMPLE | {"task": {}}))
    assert (await answered(session, peer, 1))["error"]["code"] == -32601
    await say(session, request(2, "roots/list", {"task": {"ttl": 5}}))
    assert set((await answered(session, peer, 2))["result"]) == {"roots"}
    assert len(session.asks.tasks) == 1


@pytest.mark.requirement("R1-09", "FR-6", "FR-8", "S000 §1", "S000 §3.7", "S004 modified sampling handler")
async def test_a_plain_request_is_served_beside_a_task_and_everything_goes_on_meanwhile(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    task = await task_of(session, peer, "sampling/createMessage")
    lines = [request("plain", "sampling/createMessage", SAMPLE), request("ping", "ping", {})]
    await asked(session, *lines, request("second", "elicitation/create", FORM | {"task": {}}), count=3)
    assert (await answered(session, peer, "ping"))["result"] == {}
    assert (await answered(session, peer, "second"))["result"]["task"]["status"] == "working"
    assert (await answered_roots(session, peer)) == []
    plain = next(ask for ask in session.inbox.open if ask.origin == "request")
    await session.asks.answer(plain, {"action": "decline"}, ME)
    assert (await answered(session, peer, "plain"))["error"]["code"] == -1
    polled = (await operate(session, peer, "g", "tasks/get", taskId=task["taskId"]))["result"]
    assert polled["status"] == "input_required" and set(polled) >= {"taskId", "createdAt", "lastUpdatedAt", "ttl"}


async def answered_roots(session: Session, peer: RawPeer) -> Any:
    await say(session, request("roots", "roots/list", {}))
    return (await answered(session, peer, "roots"))["result"]["roots"]


@pytest.mark.requirement("R1-17", "R1-62", "R1-71", "FR-12", "FR-13", "S004 protocol flow")
async def test_related_task_stands_where_it_must_and_nowhere_else(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    meta = {"_meta": {"progressToken": "p-1", RELATED: {"taskId": "theirs"}}}
    await say(session, request("t", "elicitation/create", FORM | {"task": {"ttl": 60000}} | meta))
    created = (await answered(session, peer, "t"))["result"]
    assert "_meta" not in created
    mine = created["task"]["taskId"]
    # Only `taskId` selects; another task named in `_meta` is not looked at, and not repeated.
    other = {"_meta": {RELATED: {"taskId": "another"}}}
    for number, method in enumerate(("tasks/get", "tasks/list")):
        answer = (await operate(session, peer, number, method, **({} if number else {"taskId": mine}), **other))[
            "result"
        ]
        assert "_meta" not in answer
        assert (answer["tasks"][0] if number else answer)["taskId"] == mine
    await session.asks.answer(session.inbox.open[0], {"action": "decline"}, ME)
    result = (await operate(session, peer, "r", "tasks/result", taskId=mine, **other))["result"]
    assert result["_meta"] == {RELATED: {"taskId": mine}}
    told = peer.received("notifications/tasks/status")
    assert [each["params"]["status"] for each in told] == ["input_required", "completed"]
    assert all("_meta" not in each["params"] and each["params"]["taskId"] == mine for each in told)
    again = await task_of(session, peer, rpc_id="t2")
    cancelled = (await operate(session, peer, "c", "tasks/cancel", taskId=again["taskId"], **other))["result"]
    assert (cancelled["taskId"], cancelled["status"], "_meta" in cancelled) == (again["taskId"], "cancelled", False)
    # Nothing else was said about a task: no progress, before or after its end, though a token was given.
    ours = {each["method"] for each in peer.received() if "method" in each and "id" not in each}
    assert ours == {"notifications/initialized", "notifications/tasks/status"}


@pytest.mark.requirement("R4-01", "R4-03", "R3-01")
@pytest.mark.parametrize(
    ("options", "declared", "served"),
    [
        ({}, {"form": {}, "url": {}}, {"form", "url"}),
        ({"elicitation_url": False}, {"form": {}}, {"form"}),
        ({"elicitation_form": False}, {"url": {}}, {"url"}),
        ({"elicitation_form": False, "elicitation_url": False}, None, set()),
    ],
    ids=["both", "form", "url", "none"],
)
async def test_each_mode_of_elicitation_is_served_when_it_is_declared(
    session: Session, raw: Raw, options: Any, declared: Any, served: set[str]
):
    peer = raw()
    await connected(session, peer.target, **options)
    await say(session, request("form", "elicitation/create", FORM), request("url", "elicitation/create", LINK))
    await flushed(session)
    assert peer.received("initialize")[0]["params"]["capabilities"].get("elicitation") == declared
    assert {ask.kind for ask in session.inbox.open} == served
    for mode in {"form", "url"} - served:
        assert (await answered(session, peer, mode))["error"]["code"] == (-32601 if declared is None else -32602)


@pytest.mark.requirement("R3-05", "S001 request type")
async def test_every_kind_of_content_is_taken_alone_and_in_a_list(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    text = {"type": "text", "text": "Hi"}
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    use = {"type": "tool_use", "id": "u", "name": "look", "input": {}}
    got = {"type": "tool_result", "toolUseId": "u", "content": [text], "structuredContent": {"a": 1}, "isError": False}
    messages = [
        {"role": "user", "content": text},
        {"role": "user", "content": image},
        {"role": "assistant", "content": [audio, text]},
        {"role": "user", "content": [text, image, audio]},
        {"role": "assistant", "content": [text, use]},
        {"role": "user", "content": got},
    ]
    tools = [{"name": "look", "inputSchema": {"type": "object"}}]
    params = {"messages": messages, "maxTokens": 5, "tools": tools, "metadata": {"a": [1]}, "temperature": 0}
    [ask] = await asked(session, request(1, "sampling/createMessage", params))
    assert ask.params == params, "as received"
    for at, wrong in enumerate(
        ({"role": "system", "content": text}, {"role": "user", "content": [{"text": "no type"}]})
    ):
        await say(session, request(10 + at, "sampling/createMessage", {"messages": [wrong], "maxTokens": 5}))
        assert (await answered(session, peer, 10 + at))["error"]["code"] == -32602
    await session.asks.answer(ask, {"action": "decline"}, ME)


@pytest.mark.requirement("S004 risk race", "R1-21", "R1-60", "S39")
@pytest.mark.parametrize("first", ["answer", "cancel"])
async def test_an_answer_and_a_cancel_at_the_same_moment_have_one_winner_a_hundred_times(
    session: Session, raw: Raw, first: str
):
    """Both reach Parley before either is through; the wire, the task and the ask tell the same story each time."""
    peer = raw()
    await connected(session, peer.target)
    won: set[str] = set()
    for turn in range(100):
        task = await task_of(session, peer, rpc_id=f"t{turn}")
        [ask] = session.inbox.open
        said: list[str] = []

        async def submit(ask: Ask = ask, said: list[str] = said) -> None:
            try:
                await session.asks.answer(ask, {"action": "decline"}, ME)
                said.append("answered")
            except Conflict:
                said.append("gone")

        cancel = {"lines": [request(f"c{turn}", "tasks/cancel", {"taskId": task["taskId"]}), DONE]}
        with anyio.fail_after(HANG):
            async with anyio.create_task_group() as group:
                if first == "answer":
                    group.start_soon(submit)
                    group.start_soon(call_tool, session, "say", cancel)
                else:
                    group.start_soon(call_tool, session, "say", cancel)
                    # Now sooner, now later: up to the moment at which the cancel is through.
                    further = session.messages.count + turn % 4
                    await until(session, lambda further=further: session.messages.count >= further)  # type: ignore[misc]
                    group.start_soon(submit)
        cancelled = await answered(session, peer, f"c{turn}")
        status = session.asks.tasks[ask.task_id or ""].status
        assert (status, ask.state, said, "error" in cancelled) in [
            ("completed", "answered", ["answered"], True),
            ("cancelled", "withdrawn", ["gone"], False),
        ]
        won.add(status)
    assert won <= {"completed", "cancelled"}


@pytest.mark.requirement("R1-88", "S000 §3.8")
async def test_a_disconnect_while_everybody_waits_leaves_nothing_running(session: Session, raw: Raw):
    peer = raw()
    before = {task.id for task in anyio.get_running_tasks()}
    await connected(session, peer.target)
    task = await task_of(session, peer)
    await say(session, request("r", "tasks/result", {"taskId": task["taskId"]}), request(1, "elicitation/create", FORM))
    await until(session, lambda: session.open_asks == 2)
    await session.disconnect()
    assert [ask.state for ask in session.inbox.asks.values()] == ["lost", "lost"]
    assert replies(peer, "r") == replies(peer, 1) == []
    left: list[str | None] = []
    for _ in range(1000):
        left = [one.name for one in anyio.get_running_tasks() if one.id not in before]
        if not left:
            break
        await anyio.sleep(0.01)
    assert left == []


@pytest.mark.requirement("R1-70", "S000 §3.3 emitReceiverTaskStatus", "SC-5")
async def test_a_status_that_the_server_does_not_take_breaks_nothing(session: Session):
    ask = request("t", "elicitation/create", FORM | {"task": {"ttl": 60000}})
    refuses = {"notifications/tasks/status": {"status": 500, "body": "not today"}}
    async with raw_peer(http=refuses, gets=[{"sse": f"data: {ask}\n\n", "then": "open"}]) as peer:
        await connected(session, peer.target())
        await until(session, lambda: session.open_asks == 1)
        [task] = session.asks.tasks.values()
        await until(session, lambda: task.status == "input_required")
        await session.asks.answer(session.inbox.open[0], {"action": "decline"}, ME)
        assert (task.status, task.result) == ("completed", {"action": "decline"})
        with anyio.fail_after(HANG):
            while len(peer.received("notifications/tasks/status")) < 2:
                await flushed(session)
        assert session.info.state == "ready"
        await session.disconnect()


@pytest.mark.requirement("R5-24")
@pytest.mark.parametrize("end", ["withdrawn", "lost"])
async def test_an_answer_on_its_way_when_its_ask_ends_may_have_left(session: Session, end: str):
    async with raw_peer(keeping=True) as peer:
        await connected(session, peer.target())
        session.start_call("x/get", {"lines": [request("q", "elicitation/create", FORM)]}, by=ME)
        await until(session, lambda: session.open_asks == 1)
        [ask] = session.inbox.open
        async with anyio.create_task_group() as group:
            said: list[str] = []

            async def submit() -> None:
                try:
                    await session.asks.answer(ask, {"action": "decline"}, ME)
                except Conflict as gone:
                    said.append(gone.message)

            group.start_soon(submit)
            await call_tool(session, "seen", {"what": "held", "count": 1})
            assert ask.state == "sending"
            if end == "withdrawn":
                taken_back = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q"}}
                await call_tool(session, "get", {"lines": [json.dumps(taken_back)]})
                await until(session, lambda: ask.settled)
                await call_tool(session, "release")
            else:
                await session.disconnect()
        assert ask.state == end and ask.answer is None
        assert "may have left" in ask.words() and "Nothing was sent" not in ask.words()
        assert all("may have left" in each for each in said)
        assert [each["result"] for each in peer.received() if each.get("id") == "q"] == [{"action": "decline"}]
