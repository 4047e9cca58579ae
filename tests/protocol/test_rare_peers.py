"""What is legal and rare, or neither legal nor foreseen: odd values, odd moments, ids that come back.

Each test is a fault that once was: the connection ended, an answer was lost, an ask stayed open, a server was blamed.
"""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from app import bounds
from app.core.errors import Conflict
from app.protocol import judge, rpc
from app.sessions import Session
from app.settings import Limits
from tests.drive import HANG, ME, call, call_tool, connected, echoes, findings, flushed, inbound, settled, until
from tests.drive_http import raw_web, stream_words
from tests.drive_modern import PREFIX, ask_form, modern_peer, modern_stdio, needs, reach, witnessed
from tests.drive_tasks import DONE as FINISHED
from tests.drive_tasks import begin, task_peer, text_of
from tests.sessions.test_asks import DONE, FORM, SAMPLE, Raw, answered, operate, replies, request, say, task_of

TASK = "notifications/tasks/status"


def note(method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params})


# ---- values that nobody foresaw


@pytest.mark.requirement("R2-08", "F18")
@pytest.mark.parametrize("member", ["ttl", "pollInterval"])
async def test_a_number_that_no_float_can_hold_does_not_end_the_connection(session: Session, raw: Raw, member: str):
    peer = raw(initialize={"capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}})
    await connected(session, peer.target, protocol_version="2025-11-25")
    when = "2026-01-01T00:00:00Z"
    task = {"taskId": "t", "status": "working", "createdAt": when, "lastUpdatedAt": when, "ttl": 60000}
    created = {"jsonrpc": "2.0", "id": "$ID", "result": {"task": {**task, member: 10**400}}}
    lines = [json.dumps(created).replace('"$ID"', "$ID"), note(TASK, **{**task, member: 10**400})]
    running = session.start_call("tools/call", {"name": "say", "arguments": {"lines": lines}, "task": {}}, by=ME)
    await until(session, lambda: running.task_id is not None or running.settled)
    assert running.task_id is not None, running.error
    await echoes(session)
    assert session.info.state == "ready"


@pytest.mark.requirement("R3-07")
@pytest.mark.parametrize("odd", [{}, [], None, 5])
async def test_a_tool_result_for_something_that_is_no_id_is_refused(session: Session, raw: Raw, odd: Any):
    peer = raw()
    await connected(session, peer.target)
    block = {"type": "tool_result", "toolUseId": odd, "content": []}
    params = {"messages": [{"role": "user", "content": [block]}], "maxTokens": 5}
    await say(session, request(1, "sampling/createMessage", params))
    assert (await answered(session, peer, 1))["error"]["code"] == -32602
    await echoes(session)


@pytest.mark.requirement("R4-02", "R3-04")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("elicitation/create", {**FORM, "mode": None}),
        ("sampling/createMessage", {**SAMPLE, "tools": None, "toolChoice": None, "systemPrompt": None}),
    ],
)
async def test_members_that_are_null_are_taken_as_absent_with_a_remark(
    session: Session, raw: Raw, method: str, params: dict[str, Any]
):
    peer = raw()
    await connected(session, peer.target, sampling_tools=False)
    await say(session, request(1, method, params))
    await until(session, lambda: session.open_asks == 1 or replies(peer, 1))
    [ask] = session.inbox.open
    assert {each.advice for each in ask.findings} == {"Taken as absent."}


@pytest.mark.requirement("R5-24")
async def test_an_error_beside_a_null_result_is_an_error(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    line = '{"jsonrpc":"2.0","id":$ID,"result":null,"error":{"code":-32000,"message":"no such thing"}}'
    failed = await call(session, "x/say", {"lines": [line]})
    assert (failed.state, failed.error and failed.error.code) == ("failed", -32000)
    assert any("not both" in each.text for each in failed.findings)


@pytest.mark.requirement("R5-01")
async def test_an_id_that_came_back_as_a_float_is_the_same_number(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    done = await call(session, "x/say", {"lines": ['{"jsonrpc":"2.0","id":$ID.0,"result":{}}']}, timeout_ms=3_000)
    assert done.state == "done", done.error
    assert done.findings == [], "3.0 is an integer by JSON Schema"


@pytest.mark.requirement("R5-23")
@pytest.mark.parametrize("token", [0, "", 4])
async def test_a_progress_token_of_the_person_is_not_mixed_up_with_ids(session: Session, raw: Raw, token: Any):
    peer = raw()
    await connected(session, peer.target)
    params = {"name": "hold", "arguments": {}, "_meta": {"progressToken": token}}
    running = session.start_call("tools/call", params, by=ME)
    await flushed(session)
    assert [each["id"] for each in peer.received("ping")] == [4]
    await say(session, note("notifications/progress", progressToken=token, progress=1))
    assert running.progressed == 1
    assert findings(session) == []
    session.cancel_call(running.id)


@pytest.mark.requirement("R1-24", "F04")
async def test_a_fault_of_ours_is_one_message_and_not_the_connection(
    session: Session, raw: Raw, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fails(*_: Any) -> None:
        raise TypeError("unhashable")

    peer = raw()
    await connected(session, peer.target)
    monkeypatch.setattr(session.asks, "asked", fails)
    monkeypatch.setattr(session.server_log, "write", fails)
    await say(session, request(1, "elicitation/create", FORM), note("notifications/message", level="info", data="x"))
    assert (await answered(session, peer, 1))["error"]["code"] == -32603
    await echoes(session)
    assert [each.name for each in caplog.records if each.levelname == "ERROR"] == ["parley.protocol"] * 2


# ---- moments that nobody foresaw


@pytest.mark.requirement("R5-24", "R1-15")
async def test_a_task_taken_back_before_it_was_made_is_not_made(session: Session, raw: Raw):
    """The request and its cancellation come in one piece: nobody will ever ask for that task."""
    peer = raw()
    await connected(session, peer.target, protocol_version="2025-11-25")
    await say(
        session,
        request("q", "elicitation/create", {**FORM, "task": {}}),
        note("notifications/cancelled", requestId="q"),
        request("r", "roots/list", {}),
        note("notifications/cancelled", requestId="r"),
    )
    await flushed(session)
    assert replies(peer, "q") == replies(peer, "r") == []
    assert session.inbox.open == [] and list(session.asks.tasks) == []
    listed = await operate(session, peer, "l", "tasks/list")
    assert listed["result"] == {"tasks": []}


@pytest.mark.requirement("F13")
async def test_one_id_used_again_and_again_is_bounded_like_many(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target, protocol_version="2025-11-25")
    created = await task_of(session, peer)
    before = len(asyncio.all_tasks())
    most = session.limits.server_requests
    line = request("same", "tasks/result", {"taskId": created["taskId"]})
    await say(session, *[line] * (most * 3))
    await flushed(session)
    assert len(asyncio.all_tasks()) - before <= most + 10
    assert {each["error"]["code"] for each in replies(peer, "same")} == {-32603}


# ---- subscriptions


async def open_one(session: Session) -> Any:
    one = session.subscriptions.open({"toolsListChanged": True})
    await until(session, lambda: one.state != "opening")
    return one


@pytest.mark.requirement("R6-42", "R6-44")
async def test_a_subscription_with_the_id_of_an_older_one_is_known_by_its_connection(session: Session, tmp_path: Path):
    peer = modern_stdio(tmp_path / "record", listen={"end": "open"})
    await reach(session, peer)
    one = await open_one(session)
    number = one.rpc_id
    await session.disconnect()
    await reach(session, peer)
    again = await open_one(session)
    assert again.rpc_id == number, "each connection counts from the beginning"
    assert again.state == "open"
    assert [each.text for each in findings(session) if each.id == "R6-42"] == []


@pytest.mark.requirement("R6-44")
async def test_many_lost_subscriptions_do_not_spoil_the_next_connection(session: Session, tmp_path: Path):
    with modern_peer("http", tmp_path / "record", listen={"end": "cut"}) as peer:
        await reach(session, peer)
        for wanted in ["toolsListChanged"] * 25 + ["promptsListChanged"]:
            session.subscriptions.open({wanted: True})
            await until(session, lambda: not session.subscriptions.live)
        await session.disconnect()
        await reach(session, peer)
        assert session.info.state == "ready", session.info.trouble
        number = session.info.number
        await until(session, lambda: all(not each.live for each in session.subscriptions.all.values()))
        asked = [each.asked for each in session.subscriptions.all.values() if each.connection == number]
        assert asked == [{"toolsListChanged": True}, {"promptsListChanged": True}], "each filter once"


@pytest.mark.requirement("R6-41", "F09")
async def test_the_same_fault_a_thousand_times_is_one_remark_of_the_subscription(session: Session, tmp_path: Path):
    meta = {f"{PREFIX}subscriptionId": "$ID"}
    unasked = {"method": "notifications/prompts/list_changed", "params": {"_meta": meta}}
    peer = modern_stdio(tmp_path / "record", listen={"then": [unasked] * 1000})
    await reach(session, peer)
    one = await open_one(session)
    await until(session, lambda: one.heard == 1000)
    assert [each.id for each in one.findings] == ["R6-41"]
    assert len([each for each in findings(session) if each.id == "R6-41"]) == 1000, "and beside each message"


@pytest.mark.requirement("F10")
async def test_asks_that_come_and_go_without_end_are_not_all_remembered(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    lines = []
    for number in range(700):
        lines += [request(number, "elicitation/create", FORM)]
        lines += [note("notifications/message", level="info", data="x")] * 8  # so that each is asked before
        lines += [note("notifications/cancelled", requestId=number)]
    running = session.start_call("tools/call", {"name": "say", "arguments": {"lines": [*lines, DONE]}}, by=ME)
    await settled(session, running)
    assert 0 < len(running.asks) <= 500


# ---- tasks of the extension


def working(**more: Any) -> dict[str, Any]:
    return {"status": "working", "pollIntervalMs": 500, **more}


def wants(**requests: Any) -> dict[str, Any]:
    return {"status": "input_required", "pollIntervalMs": 500, "inputRequests": requests}


RESULT = {"content": [{"type": "text", "text": "here"}], "resultType": "complete"}


@pytest.mark.requirement("R7-02", "R7-04", "R7-11")
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_task_that_is_completed_when_it_is_made_brings_its_result(session: Session, tmp_path: Path, way: str):
    job = {"created": {"status": "completed"}, "gets": [{"status": "completed", "result": RESULT}]}
    with modern_peer(way, tmp_path / "record", task={"job": job}) as peer:
        await reach(session, peer)
        done = await call(session, "tools/call", {"name": "job", "arguments": {}})
        assert done.state == "done", done.error
        assert (await session.result(done))["content"] == RESULT["content"]
        assert session.client_tasks.tasks[done.task_id or ""].payload is None, "the call has it, and is bounded"


@pytest.mark.requirement("R7-20", "R7-21")
@pytest.mark.parametrize("limits", [Limits(open_asks=1)])
async def test_what_finds_no_room_in_the_inbox_is_asked_when_there_is_some(session: Session, tmp_path: Path):
    job = {"gets": [wants(a=ask_form(), b=ask_form()), {"status": "completed", "result": {"$tell": True}}]}
    peer = modern_stdio(tmp_path / "record", task={"job": job})
    await reach(session, peer)
    running = session.start_call("tools/call", {"name": "job", "arguments": {}}, by=ME)
    for name in ("Ann", "Bob"):
        await until(session, lambda: session.inbox.open)
        [ask] = session.inbox.open
        await session.asks.answer(ask, {"action": "accept", "content": {"name": name}}, ME)
    answers = json.loads(await text_of(session, running))
    assert [answers[key]["content"]["name"] for key in ("a", "b")] == ["Ann", "Bob"]


@pytest.mark.requirement("F10")
async def test_large_asks_are_bounded_by_what_they_weigh(session: Session, raw: Raw):
    """A hundred asks may be open, and each may be as large as a message: together that would be a gigabyte."""
    peer = raw()
    await connected(session, peer.target)
    ask = request("$N", "elicitation/create", {**FORM, "message": "x" * 7_000_000})
    await call_tool(session, "flood", {"line": ask, "count": 12})
    await until(session, lambda: session.inbox.refused == 3)
    assert session.open_asks == 9
    for each in session.inbox.open:
        await session.asks.answer(each, {"action": "decline"}, ME)
    assert len(session.inbox.settled) == 2
    await echoes(session)


@pytest.mark.requirement("R7-11", "R7-40")
async def test_a_notice_of_the_end_without_the_result_is_no_result(session: Session, tmp_path: Path):
    """One page of the extension types the notification as a task without its outcome: the next poll has it."""
    told: dict[str, Any] = {
        "taskId": "secret-task-1",
        "status": "completed",
        "createdAt": "x",
        "lastUpdatedAt": "x",
        "ttlMs": None,
    }
    told["_meta"] = {f"{PREFIX}subscriptionId": "$ID"}
    then = [{"method": "notifications/tasks", "params": told}]
    slow = {"gets": [{"status": "completed", "result": RESULT}], "created": {"pollIntervalMs": 3_600_000}}
    peer = modern_stdio(tmp_path / "record", task={"job": slow}, listen={"then": then})
    await reach(session, peer)
    running = session.start_call("tools/call", {"name": "job", "arguments": {}}, by=ME)
    await until(session, lambda: running.task_id or running.settled)
    session.subscriptions.open({"taskIds": ["secret-task-1"]})
    await settled(session, running)
    assert (await session.result(running))["content"] == RESULT["content"]


@pytest.mark.requirement("R7-20", "R7-21")
async def test_an_answer_that_came_too_late_for_its_task_leaves_no_open_ask(session: Session, tmp_path: Path):
    ended = {"status": "completed", "result": RESULT}
    peer = modern_stdio(tmp_path / "record", task={"job": {"gets": [wants(a=ask_form())]}}, late=ended)
    await reach(session, peer)
    running = session.start_call("tools/call", {"name": "job", "arguments": {}}, by=ME)
    await until(session, lambda: session.inbox.open)
    [ask] = session.inbox.open
    assert session.client_tasks.tasks[running.task_id or ""].asks == running.asks == (ask.id,), "once"
    with pytest.raises(Conflict):
        await session.asks.answer(ask, {"action": "accept", "content": {"name": "x"}}, ME)
    await settled(session, running)
    assert (running.state, ask.state) == ("done", "withdrawn")


# ---- tasks of 2025-11-25


@pytest.mark.requirement("R2-20", "R2-21")
async def test_a_wait_for_the_result_that_was_lost_begins_again_while_input_is_needed(session: Session):
    """The server asks on the stream of `tasks/result`: without one its question could never come."""
    with task_peer("http", cut=1, script=[["elicit"], ["finish", FINISHED]]) as peer:
        await connected(session, peer.target)
        running = begin(session)
        await until(session, lambda: session.inbox.open)
        await session.asks.answer(session.inbox.open[0], {"action": "accept", "content": {"name": "Ines"}}, ME)
        assert await text_of(session, running) == "done for Ines"
        assert len(peer.received("tasks/result")) == 2


@pytest.mark.requirement("R2-20", "R2-21")
@pytest.mark.parametrize(("cut", "asked", "state"), [(1, 2, "done"), (2, 3, "done"), (9, 3, "failed")])
async def test_a_result_that_was_lost_after_the_end_of_its_task_is_asked_for_again(
    session: Session, cut: int, asked: int, state: str
):
    """The server still has it; a bounded number of times, each after a poll that shows so."""
    with task_peer("http", cut=cut, script=[["finish", FINISHED]]) as peer:
        await connected(session, peer.target)
        running = begin(session)
        await settled(session, running)
        assert running.state == state
        assert len(peer.received("tasks/result")) == asked
        methods = [each["method"] for each in peer.received() if each.get("method", "").startswith("tasks/")]
        first = methods.index("tasks/result")
        assert methods[first:] == ["tasks/result", *["tasks/get", "tasks/result"] * (asked - 1)][: len(methods) - first]


@pytest.mark.requirement("R2-08", "R2-42")
async def test_a_task_with_the_id_of_one_that_ended_long_ago_is_another_task(session: Session):
    """A server that counts begins anew when it is started again; `createdAt` tells its tasks apart."""

    def listed(status: str, day: int) -> dict[str, Any]:
        when = f"2026-01-0{day}T00:00:00Z"
        task = {"taskId": "1", "status": status, "createdAt": when, "lastUpdatedAt": when, "ttl": None}
        return {"tasks/list": [{"result": {"tasks": [task]}}]}

    with task_peer(answers=listed("completed", 1)) as one, task_peer(answers=listed("working", 2)) as two:
        for peer in (one, two):
            await connected(session, peer.target)
            await until(session, lambda: session.client_tasks.listing.state == "ready")
            await session.disconnect()
    found = list(session.client_tasks.tasks.values())
    assert [(each.status, each.findings) for each in found] == [("completed", []), ("working", [])]


# ---- what outlives a connection


@pytest.mark.requirement("F12", "F13")
async def test_a_reply_is_not_taken_for_one_to_a_request_of_the_connection_before(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    for _ in range(5):
        session.start_call("x/hold", {}, by=ME)
    await flushed(session)
    await session.disconnect()
    await connected(session, peer.target)
    await say(session, '{"jsonrpc":"2.0","id":6,"result":{}}')
    [stray] = [each for each in inbound(session) if each.rpc_id == 6 and each.kind == "response"]
    assert (stray.answers, stray.method) == (None, None)


# ---- fresh lists


@pytest.mark.requirement("R6-52")
async def test_a_change_makes_stale_what_the_connection_before_had_read(session: Session, tmp_path: Path):
    fresh = {"resultType": "complete", "resources": [{"uri": "a:1", "name": "one"}], "ttlMs": 3_600_000}
    meta = {f"{PREFIX}subscriptionId": "$ID"}
    changed = {"method": "notifications/resources/list_changed", "params": {"_meta": meta}}
    peer = modern_stdio(
        tmp_path / "record", results={"resources/list": {**fresh, "cacheScope": "private"}}, listen={"then": [changed]}
    )
    await reach(session, peer)
    await session.lists.known("resources", 60)
    await session.disconnect()
    await reach(session, peer)
    one = session.subscriptions.open({"resourcesListChanged": True})
    await until(session, lambda: one.heard == 1)
    listing = await session.lists.known("resources", 60)
    assert not listing.from_cache, "the server said that it changed"
    assert len(peer.received("resources/list")) == 2


@pytest.mark.requirement("R6-51")
async def test_log_messages_asked_for_by_the_options_are_no_fault(session: Session, tmp_path: Path):
    line = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
    peer = modern_stdio(tmp_path / "record", before={"echo": [line]})
    await reach(session, peer, meta={f"{PREFIX}logLevel": "info"})
    await echoes(session)
    assert [each.text for each in findings(session) if each.id == "R6-51"] == []


@pytest.mark.requirement("R7-43", "R2-32")
async def test_progress_of_a_task_that_began_after_a_round_ends_with_it(session: Session, tmp_path: Path):
    job = [needs("s", a=ask_form()), {"resultType": "task", "taskId": "none", "status": "working", "ttlMs": None}]
    peer = modern_stdio(tmp_path / "record", scripts={"job": job})
    await reach(session, peer)
    running = session.start_call("tools/call", {"name": "job", "arguments": {}}, by=ME)
    await until(session, lambda: session.inbox.open)
    await session.asks.answer(session.inbox.open[0], {"action": "accept", "content": {"name": "x"}}, ME)
    await settled(session, running)
    assert session.connection is not None and session.connection._rpc is not None
    assert session.connection._rpc._tokens == {}


# ---- over HTTP


@pytest.mark.requirement("R5-41", "F16")
@pytest.mark.parametrize("line", ["not json", ""])
async def test_what_is_no_message_in_an_answer_is_not_blamed_on_stdout(session: Session, line: str):
    with raw_web() as peer:
        await connected(session, peer.target())
        failed = await call_tool(session, "say", {"lines": [line], "as": "json"})
        assert failed.state == "failed"
        [finding] = findings(session)
        assert finding.id == "R5-41" and "stdout" not in finding.advice and "line" not in finding.text


@pytest.mark.requirement("R5-43", "F17")
async def test_a_server_that_is_just_restarting_is_asked_again_for_the_rest(session: Session):
    """A proxy in front of it says 502 or 503, or 429: that is no word of the server about this stream."""
    again = [{"status": 503}, {"status": 429}, {"sse": f"data: {DONE}\n\n", "then": "end"}]
    with raw_web() as peer:
        await connected(session, peer.target())
        done = await call_tool(session, "script", {"sse": "id: z\nretry: 20\n\n", "resume": {"z": again}})
        assert done.state == "done", done.error
        assert [each.headers.get("last-event-id") for each in peer.requests("GET")].count("z") == 3


@pytest.mark.requirement("R5-43")
async def test_a_stream_whose_last_id_is_empty_cannot_be_resumed(session: Session):
    """An empty id takes back the one before: so says the standard of server-sent events."""
    with raw_web() as peer:
        await connected(session, peer.target())
        lost = await call_tool(session, "script", {"sse": "id: a\nretry: 0\ndata:\n\nid\ndata:\n\n"})
        assert lost.state == "failed" and lost.error is not None
        assert lost.error.message.startswith("The stream ended before the reply came.")
        assert [each for each in peer.requests("GET") if "last-event-id" in each.headers] == []


@pytest.mark.requirement("R5-43", "F17")
async def test_the_time_that_a_server_asked_for_once_holds_for_the_next_streams_too(
    session: Session, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bounds, "RETRY_SECONDS", 3_600.0)
    speaks = {"sse": f"data: {note('notifications/message', level='info', data='x')}\n\n", "then": "end"}
    with raw_web(gets=[{"sse": "retry: 20\n\n", "then": "end"}, speaks, speaks]) as peer:
        await connected(session, peer.target())
        assert await session.result(await call_tool(session, "seen", {"what": "GET", "count": 4})) == {"count": 4}
        await until(session, lambda: session.info.stream == "open")


@pytest.mark.requirement("R5-42", "F17")
async def test_a_quiet_stream_that_is_ended_from_time_to_time_is_not_left_for_longer_and_longer(
    session: Session, monkeypatch: pytest.MonkeyPatch
):
    """Proxies end what is silent for a minute: a server must not become hard to hear by that."""
    monkeypatch.setattr(bounds, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(bounds, "STEADY_SECONDS", 0.0)
    words = stream_words(monkeypatch)
    with raw_web(gets=[{"sse": ": nothing\n\n", "then": "end"}] * 6) as peer:
        await connected(session, peer.target())
        await call_tool(session, "seen", {"what": "GET", "count": 7})
        await until(session, lambda: session.info.stream == "open")
    assert [each for each in words if each != "open"] == ["down, trying again in 0.02 s: ended"] * 6


@pytest.mark.requirement("R1-72", "R1-70")
async def test_no_status_is_told_before_the_server_has_the_task(session: Session):
    """The server is slow to take the new task, and a person is quick to answer it."""
    ask = request("t", "elicitation/create", FORM | {"task": {"ttl": 60000}})
    with raw_web() as peer:
        await connected(session, peer.target())
        await call_tool(session, "set", {"settings": {"delay": {"POST": 0.4}}})
        running = session.start_call("tools/call", {"name": "say", "arguments": {"lines": [ask, DONE]}}, by=ME)
        await until(session, lambda: session.open_asks == 1)
        await session.asks.answer(session.inbox.open[0], {"action": "decline"}, ME)
        await settled(session, running)
        await witnessed(lambda: peer.received("notifications/tasks/status"))
        posts = {b'"result"' in each.body: each for each in peer.requests("POST")[-2:]}
        assert posts[False].at - posts[True].at >= 0.4, "not before the server had answered to the new task"
        assert json.loads(posts[False].body)["params"]["status"] == "completed"


# ---- over stdio


@pytest.mark.requirement("F03", "F09")
async def test_what_a_server_wrote_before_it_ended_is_read_however_slowly(
    session: Session, raw: Raw, monkeypatch: pytest.MonkeyPatch
):
    """Another session waits, so this one rests between its messages; what is still in the pipe must not be lost."""
    monkeypatch.setattr(rpc, "_REST_SECONDS", 0.01)
    monkeypatch.setattr(session, "others_wait", lambda: True)
    peer = raw()
    await connected(session, peer.target)
    line = note("notifications/message", level="info", data="$N " + "x" * 40)
    running = session.start_call("tools/call", {"name": "flood", "arguments": {"line": line, "count": 1500}}, by=ME)
    session.start_call("x/exit", {"code": 3}, by=ME)
    await until(session, lambda: session.info.state != "ready")
    assert len(inbound(session, "notifications/message")) == 1500
    assert running.state == "done", running.error
    assert session.info.trouble is not None and session.info.trouble.exit_code == 3


@pytest.mark.requirement("F03")
async def test_a_large_result_that_is_still_being_judged_survives_the_end_of_its_server(
    session: Session, raw: Raw, monkeypatch: pytest.MonkeyPatch
):
    """Large results are judged in a thread; a server that ends right after its answer has answered all the same."""
    ended = threading.Event()

    def slow(*_: Any) -> list[str]:
        assert ended.wait(HANG)
        return []

    peer = raw()
    await connected(session, peer.target)
    monkeypatch.setattr(judge, "_complaints", slow)
    running = session.start_call("tools/call", {"name": "huge", "arguments": {"bytes": 400_000}}, by=ME)
    session.start_call("x/exit", {}, by=ME)
    await until(session, lambda: session.info.state != "ready")
    ended.set()
    await settled(session, running)
    assert running.state == "done", running.error
    assert len((await session.result(running))["content"][0]["text"]) > 390_000


@pytest.mark.requirement("F10")
async def test_nobody_waits_to_dismiss_an_ask_that_is_settled(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target, unattended_limit_ms=3_600_000)
    before = len(asyncio.all_tasks())
    await say(session, *[request(number, "elicitation/create", FORM) for number in range(50)])
    await until(session, lambda: session.open_asks == 50)
    await say(session, *[note("notifications/cancelled", requestId=number) for number in range(50)])
    await until(session, lambda: not session.inbox.open)
    await flushed(session)
    assert len(asyncio.all_tasks()) <= before
