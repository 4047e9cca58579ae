"""Tasks of the extension `io.modelcontextprotocol/tasks` (R7): raw scripts, the demo server and FastMCP."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.core.calls import Call
from app.core.errors import Conflict
from app.core.targets import DemoTarget, HttpTarget, StdioTarget
from app.core.tasks.running import ClientTask
from app.sessions import Session
from tests import peers
from tests.drive import ME, SERVERS, call, call_tool, connected, echoes, settled, until
from tests.drive_http import started
from tests.drive_modern import (
    ASK_ROOTS,
    PREFIX,
    SAMPLED,
    TASKS,
    ask_form,
    ask_sampling,
    begin,
    modern_peer,
    modern_stdio,
    needs,
    reach,
)

pytestmark = pytest.mark.anyio
DONE = {"status": "completed", "result": {"$tell": True}}
SAID = {"action": "accept", "content": {"name": "Ann"}}


def working(**more: Any) -> dict[str, Any]:
    return {"status": "working", "pollIntervalMs": 500, **more}


def asks(**requests: Any) -> dict[str, Any]:
    return {"status": "input_required", "pollIntervalMs": 500, "inputRequests": requests}


async def run(session: Session, name: str = "job") -> tuple[Call, ClientTask]:
    """Call a tool and wait until it has become a task."""
    running = session.start_call("tools/call", {"name": name, "arguments": {}}, by=ME)
    await until(session, lambda: running.task_id or running.settled)
    assert running.task_id is not None, running.error
    return running, session.client_tasks.tasks[running.task_id]


async def text_of(session: Session, done: Call) -> str:
    await settled(session, done)
    assert done.state == "done", (done.state, done.error)
    return str((await session.result(done))["content"][0]["text"])


@pytest.mark.requirement("R7-01", "R7-02", "R7-10", "R7-11", "R7-20", "R7-21", "R7-22", "R7-41", "R7-42", "R6-21")
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_task_asks_is_answered_in_parts_and_completes(session: Session, tmp_path: Path, way: str) -> None:
    gets = [working(), asks(a=ask_form(), b=ask_sampling(), c=ASK_ROOTS), working(), DONE]
    with modern_peer(way, tmp_path / "record", task={"job": {"gets": gets}}) as peer:
        await reach(session, peer)
        running, task = await run(session)
        await until(session, lambda: len(session.inbox.open) == 2)
        form, sampling = session.inbox.open
        assert {each.origin for each in (form, sampling)} == {"task-input"} and form.task_id == task.id
        assert running.state == "waiting"
        await session.asks.answer(form, SAID, ME)
        assert form.state == "answered"
        await until(session, lambda: task.polls >= 4)  # the other is still wanted, and nothing is asked twice
        assert session.inbox.open == [sampling]
        await session.asks.answer(sampling, {"action": "respond", "result": SAMPLED}, ME)
        answers = json.loads(await text_of(session, running))
        assert answers == {"a": SAID, "b": SAMPLED, "c": {"roots": []}}
        updates = [each["params"]["inputResponses"] for each in peer.received("tasks/update")]
        assert sorted(key for each in updates for key in each) == ["a", "b", "c"]  # each key once
        for each in peer.received():
            declared = each["params"]["_meta"][f"{PREFIX}clientCapabilities"]["extensions"]
            assert declared[TASKS] == {}
        if way == "http":
            for method in ("tasks/get", "tasks/update"):
                assert {each["mcp-name"] for each in peer.headers(method)} == {task.task_id}
        assert task.status == "completed" and task.id != task.task_id
        assert not peer.received("notifications/cancelled") and not peer.received("tasks/result")


@pytest.mark.requirement("R7-12", "R7-11")
async def test_a_tool_error_completes_and_a_protocol_error_fails(session: Session, tmp_path: Path) -> None:
    bad = {"resultType": "complete", "isError": True, "content": [{"type": "text", "text": "no"}]}
    jobs = {
        "isError": {"gets": [{"status": "completed", "result": bad}]},
        "error": {"gets": [{"status": "failed", "error": {"code": -32603, "message": "Broken"}}]},
        "odd": {"gets": [{"resultType": "task", "status": "completed", "result": bad}]},
    }
    peer = modern_stdio(tmp_path / "record", task=jobs)
    await reach(session, peer)
    error = await call_tool(session, "isError")
    assert error.state == "done" and (await session.result(error))["isError"] is True
    assert not [each for each in error.findings if each.id == "R2-23"]
    failed = await call_tool(session, "error")
    assert failed.state == "failed" and failed.error is not None and failed.error.code == -32603
    odd = await call_tool(session, "odd")
    assert odd.state == "done" and "R7-11" in [each.id for each in odd.findings]


@pytest.mark.requirement("R7-30")
async def test_cancelling_is_an_intent(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record", task={"job": {"gets": [asks(a=ask_form())]}}, cancelled=DONE)
    await reach(session, peer)
    running, task = await run(session)
    await until(session, lambda: session.inbox.open)
    (ask,) = session.inbox.open
    session.cancel_call(running.id)
    await settled(session, running)
    assert running.state == "done"  # it completed all the same, and that is the truth
    assert (task.status, ask.state) == ("completed", "withdrawn")
    assert len(peer.received("tasks/cancel")) == 1 and not peer.received("notifications/cancelled")
    peer = modern_stdio(tmp_path / "two", task={"job": {"gets": [working()]}})
    await session.disconnect()
    await reach(session, peer)
    running, task = await run(session)
    session.cancel_call(running.id)
    await settled(session, running)
    assert (running.state, task.status) == ("cancelled", "cancelled")


@pytest.mark.requirement("R7-13")
async def test_a_task_that_is_gone_says_so(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(
        tmp_path / "record",
        task={"job": {"gets": [asks(a=ask_form())]}},
        errors={"tasks/get": [], "tasks/update": {"code": -32602, "message": "Not asked"}},
    )
    await reach(session, peer)
    running, task = await run(session)
    await until(session, lambda: session.inbox.open)
    (ask,) = session.inbox.open
    with pytest.raises(Conflict):
        await session.asks.answer(ask, SAID, ME)
    assert session.inbox.open == [ask]
    await call_tool(session, "set", {"errors": {"tasks/get": {"code": -32602, "message": "Unknown task"}}})
    await settled(session, running)
    assert task.gone == "not found" and running.state == "failed" and ask.state == "withdrawn"


@pytest.mark.requirement("R7-20", "R6-34")
async def test_a_refused_sampling_abandons_the_call_and_the_task_is_watched(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record", task={"job": {"gets": [asks(a=ask_sampling())]}})
    await reach(session, peer)
    running, task = await run(session)
    await until(session, lambda: session.inbox.open)
    await session.asks.answer(session.inbox.open[0], {"action": "decline"}, ME)
    await settled(session, running)
    assert (running.state, running.abandoned) == ("cancelled", True) and not peer.received("tasks/update")
    polls = task.polls
    await until(session, lambda: task.polls > polls and task.followed)
    assert len(session.inbox.asks) == 1


@pytest.mark.requirement("R7-40", "R6-40", "R7-42")
async def test_a_subscription_tells_of_a_task_before_the_poll_does(session: Session, tmp_path: Path) -> None:
    # The task is polled once a minute; everything that is heard of it is heard by the subscription.
    meta = {f"{PREFIX}subscriptionId": "$ID"}
    base = {"taskId": "secret-task-1", "ttlMs": None, "_meta": meta}
    then = [
        {"method": "notifications/tasks", "params": {**base, **asks(a=ask_form())}},
        {"method": "notifications/tasks", "params": {**base, **asks(a=ask_form())}},
        {
            "method": "notifications/tasks",
            "params": {**base, "status": "completed", "result": {"resultType": "complete", "content": []}},
        },
    ]
    slow = {"created": {"pollIntervalMs": 60_000}, "gets": [working(pollIntervalMs=60_000)]}
    peer = modern_stdio(tmp_path / "record", task={"job": slow}, listen={"then": then})
    await reach(session, peer)
    running, task = await run(session)
    one = session.subscriptions.open({"taskIds": [task.task_id]})
    await settled(session, running)
    assert running.state == "done" and task.polls == 0 and one.heard == 3
    assert len(session.inbox.asks) == 1  # asked once, and taken back when the task was over
    assert "secret-task" not in str([each.about for each in one.events])


@pytest.mark.requirement("R7-43", "R7-03", "R7-01")
async def test_rounds_may_come_before_the_task_and_no_task_comes_unasked(session: Session, tmp_path: Path) -> None:
    handle = {"resultType": "task", "taskId": "secret-task-1", "status": "working", "ttlMs": None}
    scripts = {"ask": [needs("s", a=ask_form()), handle], "plain": [handle]}
    peer = modern_stdio(tmp_path / "record", scripts=scripts, task={"job": {"gets": [DONE]}})
    await reach(session, peer)
    await run(session)  # so that the server knows a task by that id
    running, (form,) = await begin(session, "ask")
    await session.asks.answer(form, SAID, ME)
    await settled(session, running)
    assert running.state == "done" and len(running.rounds) == 1 and running.task_id is not None
    await session.disconnect()
    await reach(session, modern_stdio(tmp_path / "two", scripts=scripts), extensions={TASKS: None})
    refused = await call(session, "tools/call", {"name": "plain", "arguments": {}})
    assert refused.state == "failed" and "R7-03" in [each.id for each in refused.findings]


@pytest.mark.requirement("R7-10", "R7-04")
async def test_a_task_is_followed_again_after_a_reconnect(session: Session, tmp_path: Path) -> None:
    with modern_peer("http", tmp_path / "record", task={"job": {"gets": [asks(a=ask_form()), DONE]}}) as peer:
        await reach(session, peer)
        running, task = await run(session)
        await until(session, lambda: session.inbox.open)
        await session.disconnect()
        assert running.state == "failed" and task.gone == "lost"
        await reach(session, peer)
        await until(session, lambda: session.inbox.open)
        assert task.gone is None and "task" not in peer.received("tools/call")[0]["params"]
        await session.asks.answer(session.inbox.open[0], SAID, ME)
        await until(session, lambda: task.status == "completed")


@pytest.mark.requirement("R7-02", "R7-20")
async def test_the_demo_goes_on_a_voyage_as_a_task(session: Session) -> None:
    await connected(session, DemoTarget(), era="modern")
    arguments = {"days": 2, "seconds_a_day": 0.05}
    running = session.start_call("tools/call", {"name": "voyage", "arguments": arguments}, by=ME)
    await until(session, lambda: len(session.inbox.open) == 2)
    for ask in list(session.inbox.open):
        said = SAMPLED if ask.kind == "sampling" else None
        answer = {"action": "respond", "result": said} if said else {"action": "accept", "content": {"sure": True}}
        await session.asks.answer(ask, answer, ME)
    assert "Back after 2 days" in await text_of(session, running)
    assert running.task_id is not None and [each for each in running.findings if each.level == "must"] == []
    await session.disconnect()
    await connected(session, DemoTarget(), era="modern", extensions={TASKS: None})
    plain = await call_tool(session, "voyage", {**arguments, "ask": False})
    assert plain.state == "done" and plain.task_id is None


@contextmanager
def tables(way: str) -> Iterator[StdioTarget | HttpTarget]:
    """The server on FastMCP whose tasks ask."""
    argv = [peers.fastmcp_python(), str(SERVERS / "tables.py")]
    if way == "stdio":
        yield StdioTarget(command=argv[0], args=tuple(argv[1:]))
        return
    with started([*argv, "http"]) as peer:
        yield peer.target()


@pytest.mark.requirement("R7-02", "R7-10", "R7-11", "R7-20", "R7-22", "R6-10")
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_fastmcp_tasks_are_answered_from_the_inbox(session: Session, way: str) -> None:
    with tables(way) as target:
        await connected(session, target, era="auto")
        assert session.info.era == "modern"
        await echoes(session)
        assert (await call_tool(session, "crunch", {"seconds": 0.1})).state == "done"
        booked = session.start_call("tools/call", {"name": "book_table", "arguments": {"name": "Ida"}}, by=ME)
        await until(session, lambda: session.inbox.open)
        (ask,) = session.inbox.open
        assert ask.origin == "task-input" and booked.task_id is not None
        await session.asks.answer(ask, {"action": "accept", "content": {"time": "19:00", "people": 2}}, ME)
        assert "19:00" in await text_of(session, booked)
