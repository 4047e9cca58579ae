"""Tools called as tasks of 2025-11-25 against a raw peer: who may, how they are followed, what is odd about them."""

import json
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from app.core.asks import RELATED_TASK
from app.core.errors import Invalid, NotAllowed
from app.sessions import PARLEY, Identity, Session, SessionRegistry
from app.settings import Limits, local
from tests.conftest import Processes
from tests.drive import HANG, ME, call, call_tool, connected, findings, flushed, settled, until
from tests.drive_http import raw_peer
from tests.drive_tasks import DONE, HandClock, TaskPeer, begin, task_of, task_peer, text_of

TRANSPORT: Any = pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
TASKS: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


def rules(found: list[Any]) -> set[str]:
    return {one.id for one in found}


def kinds(session: Session, *subjects: str) -> list[str]:
    """What happened to these subjects, in order."""
    return [event.kind for event in session.events.since(0) or [] if event.subject in subjects]


# ---- who may


@pytest.mark.requirement("R2-01", "R2-02", "R2-03", "R2-04", "S003 callToolStream on any tool")
async def test_a_task_is_asked_for_exactly_where_server_and_tool_allow_it(session: Session):
    support = {"needs": "required", "may": "optional", "never": "forbidden", "silent": None}
    with task_peer(support=support) as peer:
        await connected(session, peer.target)
        said = {name: session.client_tasks.support(name) for name in support}
        assert [said[name].said for name in support] == ["required", "optional", "forbidden", "absent"]
        assert said["needs"].no_plain and not said["needs"].no_task
        assert not said["may"].no_plain and not said["may"].no_task
        for name in ("never", "silent"):
            assert said[name].no_task and not said[name].no_plain
            done = begin(session, name)
            assert await text_of(session, done) == "plain"
            assert "R2-02" in rules(done.findings) and done.task_id is None
        assert await text_of(session, begin(session, "may")) == "done"
        plain = await call_tool(session, "may")
        assert (plain.state, plain.task_id, plain.findings) == ("done", None, [])
        assert await text_of(session, begin(session, "needs")) == "done"
        sent = {each["params"]["name"]: "task" in each["params"] for each in peer.received("tools/call")}
        assert sent == {"never": False, "silent": False, "may": False, "needs": True}  # `may` was plain the last time


@pytest.mark.requirement("R2-04", "S003 callTool fails for required")
async def test_a_tool_that_needs_a_task_is_not_called_plainly_unless_on_purpose(session: Session):
    with task_peer(support={"needs": "required"}) as peer:
        await connected(session, peer.target)
        with pytest.raises(Invalid) as no:
            session.start_call("tools/call", {"name": "needs"}, by=ME)
        assert "/as_task" in no.value.fields
        await flushed(session)
        assert peer.received("tools/call") == []
        forced = await call(session, "tools/call", {"name": "needs", "arguments": {}}, force=True)
        assert forced.error is not None and forced.error.code == -32601 and "R2-01" in rules(forced.findings)
    with task_peer(support={"needs": "required"}, lax=True) as peer:
        await session.disconnect()
        await connected(session, peer.target)
        forced = await call(session, "tools/call", {"name": "needs", "arguments": {}}, force=True)
        assert forced.state == "done" and "R2-04" in rules(forced.findings)


@pytest.mark.requirement("R2-01", "R2-05")
async def test_without_the_capability_nothing_is_ever_a_task(session: Session):
    with task_peer(support={"work": "required"}, capabilities={"tasks": {"list": {}, "cancel": {}}}) as peer:
        await connected(session, peer.target)
        assert session.client_tasks.capable.tools_call is False
        done = await call(session, "tools/call", {"name": "work", "arguments": {}}, as_task=True)
        assert done.error is not None and done.error.code == -32601  # the server contradicts itself, and is shown so
        assert all("task" not in each["params"] for each in peer.received("tools/call"))
        for method in ("resources/read", "prompts/get"):
            with pytest.raises(Invalid):
                session.start_call(method, {}, as_task=True, by=ME)
        with pytest.raises(Invalid):
            session.start_call("tools/call", {"name": "work"}, ttl=5, by=ME)
    with task_peer() as peer:
        await session.disconnect()
        await connected(session, peer.target, protocol_version="2025-06-18")
        assert session.client_tasks.capable.tools_call is False
        assert await text_of(session, begin(session)) == "plain"
        assert all("task" not in each["params"] for each in peer.received("tools/call"))


# ---- its life


@pytest.mark.requirement("R2-06", "R2-11", "R2-12", "R2-31", "R2-44", "S002 Client→Server flow", "S003 getTask")
@TRANSPORT
async def test_a_call_as_a_task_is_polled_to_its_end_and_brings_its_result(session: Session, transport: str):
    script = [["progress", 1, 2], ["status", "working", "half"], ["wait", 0.05], ["progress", 2, 2], ["finish", DONE]]
    meta = {"io.modelcontextprotocol/model-immediate-response": "It is being prepared."}
    with task_peer(transport, script=script, ttl=120_000, meta=meta) as peer:
        await connected(session, peer.target)
        started = begin(session, ttl=30_000)
        task = await task_of(session, started)
        assert await text_of(session, started) == "done for nobody"
        assert task.status == "completed" and task.polls >= 1 and task.notified == 0
        assert (task.requested_ttl, task.ttl, task.immediate) == (30_000, 120_000, "It is being prepared.")
        assert started.progress is not None and started.progress.progress == 2 and started.progressed == 2
        assert started.findings == [] and task.findings == []
        [sent] = peer.received("tools/call")
        assert sent["params"]["task"] == {"ttl": 30_000}
        for method in ("tasks/get", "tasks/result"):
            assert all(set(each["params"]) == {"taskId"} for each in peer.received(method)), method
        assert peer.received("notifications/cancelled") == []


@pytest.mark.requirement("R2-08", "R2-42")
@TRANSPORT
async def test_a_list_that_is_quicker_than_the_reply_speaks_of_the_same_task(session: Session, transport: str):
    with task_peer(transport, late=True) as peer:
        await connected(session, peer.target)
        await until(session, lambda: session.client_tasks.listing.state == "ready")
        started = begin(session)
        while started.task_id is None:  # the call may not have reached it when it is asked for its list
            session.client_tasks.refresh()
            await anyio.sleep(0.02)
        task = await task_of(session, started)
        assert await text_of(session, started) == "done"
        assert started.findings == [] and task.findings == []
        assert list(session.client_tasks.tasks.values()) == [task] and task.call_id == started.id


@pytest.mark.requirement("R2-20", "R2-30", "R2-21", "S003 Elicitation & sampling integration", "S003 Decision 5")
@TRANSPORT
async def test_a_question_in_the_middle_lands_in_the_inbox_and_belongs_to_the_task(session: Session, transport: str):
    with task_peer(transport, script=[["elicit"], ["finish", DONE]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        task = await task_of(session, started)
        await until(session, lambda: session.open_asks)
        [ask] = session.inbox.open
        assert (ask.task_id, ask.call_id, ask.related_task) == (task.id, started.id, task.task_id)
        assert (started.state, started.asks, task.asks) == ("waiting", (ask.id,), (ask.id,))
        assert ask.expires_at == task.expires_at
        await session.asks.answer(ask, {"action": "accept", "content": {"name": "Ines"}}, ME)
        assert await text_of(session, started) == "done for Ines"
        [reply] = [each for each in peer.replies() if str(each.get("id")).startswith("ask-")]
        assert reply["result"]["_meta"] == {RELATED_TASK: {"taskId": task.task_id}}
        assert len(peer.received("tasks/result")) == 1
        await until(session, lambda: task.status == "completed")


@pytest.mark.requirement("S003 Event-based API", "S003 Lifecycle event payloads")
async def test_the_events_of_a_task_in_their_order(session: Session):
    def mine(started: Any) -> list[str]:
        wanted = ("task.created", "task.completed", "task.failed", "task.cancelled", "call.settled")
        return [kind for kind in kinds(session, started.task_id, started.id) if kind in wanted]

    with task_peer(script=[["finish", DONE]]) as peer:
        await connected(session, peer.target)
        done = begin(session)
        await settled(session, done)
        assert mine(done) == ["task.created", "task.completed", "call.settled"]
        assert "task.changed" in kinds(session, done.task_id or "")
    with task_peer(script=[["fail", {"code": -32050, "message": "No ferry"}]]) as peer:
        await session.disconnect()
        await connected(session, peer.target)
        failed = begin(session)
        await settled(session, failed)
        assert mine(failed) == ["task.created", "task.failed", "call.settled"]
        assert failed.error is not None and (failed.error.code, failed.error.message) == (-32050, "No ferry")
    with task_peer(script=[["hold"]]) as peer:
        await session.disconnect()
        await connected(session, peer.target)
        dropped = begin(session)
        await task_of(session, dropped)
        session.cancel_call(dropped.id)
        await settled(session, dropped)
        assert mine(dropped) == ["task.created", "task.cancelled", "call.settled"]
        assert dropped.state == "cancelled"


@pytest.mark.requirement("R2-23")
async def test_a_failed_task_is_shown_as_what_it_brings(session: Session):
    broken = {"content": [{"type": "text", "text": "sold out"}], "isError": True}
    with task_peer(script=[["finish", broken]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        assert await text_of(session, started) == "sold out"
        task = await task_of(session, started)
        assert task.status == "failed" and started.findings == []
    with task_peer(script=[["finish", broken]], mislabels=True) as peer:
        await session.disconnect()
        await connected(session, peer.target)
        started = begin(session)
        assert await text_of(session, started) == "sold out" and rules(started.findings) == {"R2-23"}


# ---- notifications


@pytest.mark.requirement("R2-12", "S003 Decision 4")
async def test_a_notification_shortens_the_wait_for_a_lazy_interval(session: Session):
    """The server says: poll once in a day. Its word that the task has ended is heard at once."""
    with task_peer(poll=86_400_000, notify=True, script=[["finish", DONE]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        assert await text_of(session, started) == "done for nobody"
        task = await task_of(session, started)
        assert (task.notified, task.polls) == (1, 0)
        assert peer.received("tasks/get") == []


async def test_a_notification_before_its_task_is_kept_until_the_task_is_known(session: Session):
    with task_peer(poll=86_400_000, early=True, script=[["hold"], ["finish", DONE]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        task = await task_of(session, started)
        assert (task.message, task.notified) == ("early", 1)
        assert [visit.what for visit in task.visits][:2] == ["created", "notified"]
        assert peer.received("tasks/get") == []


# ---- cancel, wait, list, gone


@pytest.mark.requirement("R2-40", "R2-41", "S003 cancelTask")
async def test_a_task_is_cancelled_by_its_own_method_only(session: Session):
    with task_peer(script=[["hold"]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        task = await task_of(session, started)
        session.cancel_call(started.id)
        await settled(session, started)
        assert (started.state, task.status) == ("cancelled", "cancelled")
        assert [each["params"] for each in peer.received("tasks/cancel")] == [{"taskId": task.task_id}]
        assert peer.received("notifications/cancelled") == []
        early = begin(session)
        session.cancel_call(early.id)  # its task is not known yet
        await settled(session, early)
        assert early.state == "cancelled" and len(peer.received("tasks/cancel")) == 2
        await flushed(session)
        assert peer.received("notifications/cancelled") == []


@pytest.mark.requirement("R2-41")
async def test_a_cancel_that_comes_too_late_is_followed_by_a_look_at_the_task(session: Session):
    """It has ended, and we do not know: the server refuses, and says how it ended."""
    with task_peer(poll=86_400_000, script=[["finish", DONE]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        task = await task_of(session, started)
        session.client_tasks.cancel(task)
        assert await text_of(session, started) == "done for nobody"
        assert task.status == "completed" and len(peer.received("tasks/get")) == 1
        assert any(visit.what == "tasks/cancel" and "-32602" in visit.text for visit in task.visits)


@pytest.mark.requirement("R2-40")
async def test_without_the_capability_to_cancel_parley_only_stops_following(session: Session):
    with task_peer(capabilities={"tasks": {"requests": TASKS["requests"]}}, script=[["hold"]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        task = await task_of(session, started)
        with pytest.raises(NotAllowed):
            session.client_tasks.cancel(task)
        with pytest.raises(NotAllowed):
            session.client_tasks.refresh()
        session.cancel_call(started.id)
        await settled(session, started)
        assert started.state == "cancelled" and "goes on" in (started.cancel_reason or "")
        await flushed(session)
        assert peer.received("tasks/cancel") == [] and peer.received("notifications/cancelled") == []
        assert peer.received("tasks/list") == []


@pytest.mark.requirement("R2-21", "S003 getTaskResult")
@TRANSPORT
async def test_the_wait_for_a_result_can_be_stopped_without_stopping_the_task(session: Session, transport: str):
    with task_peer(transport, script=[["status", "input_required"], ["hold"], ["finish", DONE]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        task = await task_of(session, started)
        await until(session, lambda: any(visit.what == "tasks/result" for visit in task.visits))
        await until(session, lambda: task.waiting)
        session.client_tasks.stop_waiting(task)
        await until(session, lambda: not task.waiting)
        assert task.live and not started.settled
        again = session.client_tasks.fetch(task, ME)  # at any time, and it blocks
        await until(session, lambda: again.legs)
        assert not again.settled
        await call_tool(session, "release")
        assert await text_of(session, again) == "done for nobody" and again.findings == []
        assert await text_of(session, started) == "done for nobody"
        assert peer.received("tasks/cancel") == []


@pytest.mark.requirement(
    "R2-42", "S003 listTasks(cursor)", "S003 getClientTasks", "S003 getTaskCapabilities", "S003 Decision 3"
)
async def test_the_list_of_tasks_is_read_page_by_page_and_is_the_truth(session: Session):
    with task_peer(script=[["finish", DONE]]) as peer:
        await connected(session, peer.target)
        running = session.client_tasks
        await until(session, lambda: running.listing.state == "ready")
        assert (running.capable.tools_call, running.capable.list, running.capable.cancel) == (True, True, True)
        done = [begin(session) for _ in range(5)]
        await settled(session, *done)
        running.refresh()
        await until(session, lambda: running.listing.state == "ready")
        assert (running.listing.pages, len(running.listing.items)) == (3, 5)
        cursors = [each.get("params", {}).get("cursor") for each in peer.received("tasks/list")]
        assert cursors[-3:] == [None, "page-2", "page-4"]
        assert [task.call_id for task in running.tasks.values()] == [each.id for each in done]
        assert kinds(session, "tasks").count("tasks.listed") >= 2


@pytest.mark.requirement("R2-42")
async def test_an_endless_list_and_a_wrong_one_end(session: Session):
    page = {"tasks": [{"taskId": "x", "status": "working"}, 5], "nextCursor": "again"}
    with task_peer(answers={"tasks/list": [{"result": page}] * 3}) as peer:
        await connected(session, peer.target)
        listing = session.client_tasks.listing
        await until(session, lambda: listing.state == "ready")
        assert listing.stopped and len(listing.items) == 1 and rules(listing.log.findings_of(listing.seqs)) == {"R2-08"}
        [task] = session.client_tasks.tasks.values()
        assert rules(task.findings) == {"R2-08"} and len(peer.received("tasks/list")) == 2


@pytest.mark.requirement("R2-43")
async def test_a_task_that_the_server_no_longer_knows_is_gone_and_not_polled_any_more(session: Session):
    gone = {"error": {"code": -32602, "message": "Failed to retrieve task: Task has expired"}}
    with task_peer(script=[["hold"]], answers={"tasks/get": [gone]}) as peer:
        await connected(session, peer.target)
        started = begin(session)
        task = await task_of(session, started)
        await settled(session, started)
        assert (started.state, task.gone, task.followed) == ("failed", "not found", False)
        assert started.error is not None and started.error.kind == "task"
        polls = len(peer.received("tasks/get"))
        await flushed(session)
        assert len(peer.received("tasks/get")) == polls == 1
        session.client_tasks.poll_now(task)  # a person may ask all the same, and it is there again
        await until(session, lambda: task.gone is None)


@pytest.mark.requirement("S003 Cache", "R2-45")
async def test_tasks_outlive_a_reconnect_by_the_list_of_the_server(session: Session):
    with task_peer("http", script=[["hold"], ["finish", DONE]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        task = await task_of(session, started)
        await session.disconnect()
        assert (task.gone, started.state) == ("lost", "failed")
        assert session.client_tasks.of_wire(task.task_id) is None
        await connected(session, peer.target)
        await until(session, lambda: task.gone is None and task.followed)
        assert list(session.client_tasks.tasks.values()) == [task]
        await call_tool(session, "release")
        await until(session, lambda: task.status == "completed")
        assert await text_of(session, session.client_tasks.fetch(task, PARLEY)) == "done for nobody"
        assert task.call_id == started.id and task.tool == "work"


# ---- what peers do wrong


@pytest.mark.requirement("R2-07")
async def test_a_result_for_a_task_and_a_task_for_a_plain_call_are_shown_and_said(session: Session):
    with task_peer(ignores=True) as peer:
        await connected(session, peer.target)
        started = begin(session)
        assert await text_of(session, started) == "plain"
        assert rules(started.findings) == {"R2-07"} and started.task_id is None
    with task_peer(always=True, script=[["finish", DONE]]) as peer:
        await session.disconnect()
        await connected(session, peer.target)
        plain = await call_tool(session, "work")
        assert rules(plain.findings) == {"R2-07"} and await text_of(session, plain) == "done for nobody"


WRONG: list[Any] = [
    pytest.param({"create": {"status": "input_required"}}, "began with", id="initial status"),
    pytest.param({"without": ["ttl"]}, "`ttl`", id="no ttl"),
    pytest.param({"without": ["createdAt", "lastUpdatedAt"]}, "`createdAt`, `lastUpdatedAt`", id="no times"),
    pytest.param({"create": {"pollInterval": "soon"}}, "pollInterval", id="interval"),
    pytest.param({"create": {"ttl": -5}}, "`ttl` is no number", id="ttl"),
]


@pytest.mark.requirement("R2-08")
@pytest.mark.parametrize(("settings", "words"), WRONG)
async def test_a_task_that_is_not_as_it_should_be_is_followed_with_a_finding(
    session: Session, settings: dict[str, Any], words: str
):
    with task_peer(script=[["finish", DONE]], **settings) as peer:
        await connected(session, peer.target)
        started = begin(session)
        assert await text_of(session, started) == "done for nobody"
        task = await task_of(session, started)
        [finding] = task.findings
        assert finding.id == "R2-08" and words in finding.text and finding in started.findings


@pytest.mark.requirement("R2-08")
@pytest.mark.parametrize("create", [{"taskId": 7}, {"taskId": ""}])
async def test_a_task_without_a_usable_id_is_a_result_that_says_so(session: Session, create: dict[str, Any]):
    with task_peer(create=create, script=[["hold"]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        await settled(session, started)
        assert "R2-08" in rules(started.findings) and started.task_id is None


@pytest.mark.requirement("B21", "R2-08")
@pytest.mark.parametrize("status", ["submitted", "queued", "", None, 7])
async def test_b21_a_task_with_a_status_that_nobody_knows_is_followed(session: Session, status: Any):
    odd = {"taskId": "$TASK", "status": status, "createdAt": "x", "lastUpdatedAt": "x", "ttl": None}
    answers = {"tasks/get": [{"result": odd}]}
    with task_peer(create={"status": status}, script=[["hold"], ["finish", DONE]], answers=answers) as peer:
        await connected(session, peer.target)
        started = begin(session)
        task = await task_of(session, started)
        assert not started.settled
        await until(session, lambda: task.polls >= 2)
        assert task.status == "working" and task.gone is None
        await call_tool(session, "release")
        assert await text_of(session, started) == "done for nobody"
        [finding] = task.findings
        assert (finding.id, finding.level) == ("R2-08", "must") and "none of the five" in finding.text


@pytest.mark.requirement("R2-08")
async def test_an_id_that_is_used_twice_is_said(session: Session):
    with task_peer(create={"taskId": "same"}, script=[["hold"]]) as peer:
        await connected(session, peer.target)
        first, second = begin(session), begin(session)
        tasks = [await task_of(session, first), await task_of(session, second)]
        assert sorted(len(task.findings) for task in tasks) == [0, 1]
        assert "another one" in (tasks[0].findings + tasks[1].findings)[0].text


@pytest.mark.requirement("R2-22")
@pytest.mark.parametrize("related", [False, "task-0-0"])
async def test_a_result_that_does_not_name_its_task_is_said(session: Session, related: Any):
    with task_peer(related=related, script=[["finish", DONE]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        assert await text_of(session, started) == "done for nobody" and rules(started.findings) == {"R2-22"}


@pytest.mark.requirement("R2-22")
async def test_the_result_of_a_task_is_checked_against_the_output_schema(session: Session):
    output = {"type": "object", "required": ["seats"]}
    wrong = {"content": [], "structuredContent": {"rows": 2}}
    with task_peer(output=output, script=[["finish", wrong]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        await settled(session, started)
        assert rules(started.findings) == {"R5-29"}


@pytest.mark.requirement("R2-32", "S003 Progress via related-task")
async def test_progress_counts_for_the_whole_life_of_a_task_and_not_after_it(session: Session):
    script = [["progress", 1], ["wait", 0.05], ["progress", 2], ["finish", DONE], ["hold"], ["progress", 3]]
    with task_peer(script=script, restless=True) as peer:
        await connected(session, peer.target)
        started = begin(session)
        await settled(session, started)
        assert started.progressed == 2 and findings(session) == []
        await call_tool(session, "release")
        await until(session, lambda: findings(session))
        assert [(one.id, one.level) for one in findings(session)] == [("R2-32", "must")]
        assert started.progressed == 2


# ---- the clock in the hand


@pytest.fixture
def hand() -> HandClock:
    return HandClock()


@pytest.fixture
async def still(limits: Limits, hand: HandClock, processes: Processes) -> AsyncIterator[Session]:
    """A session whose monotonic time stands still until the test pushes it."""
    async with SessionRegistry(local(limits=limits), mono=hand.mono, sleep=hand.sleep) as registry:
        await registry.until_ready()
        yield registry.open(Identity("local", "you"))


async def polled(session: Session, peer: TaskPeer, times: int) -> None:
    """The peer has been asked exactly so often."""
    await flushed(session)
    assert len(peer.received("tasks/get")) == times


@pytest.mark.requirement("R2-10", "F18")
@pytest.mark.parametrize(
    ("said", "seconds"),
    [(2_000, 2.0), (None, 1.0), (0, 0.5), (100, 0.5)],
    ids=["as told", "our default", "zero", "too fast"],
)
async def test_polls_come_as_the_server_wants_them_within_reason(
    still: Session, hand: HandClock, said: int | None, seconds: float
):
    with task_peer(poll=said, ttl=None, script=[["hold"]]) as peer, anyio.fail_after(HANG):
        await connected(still, peer.target)
        task = await task_of(still, begin(still))
        for number in range(3):
            assert await hand.rests() == seconds
            hand.push(seconds / 2)
            await polled(still, peer, number)
            hand.push(seconds / 2)
            await until(still, lambda wanted=number + 1: task.polls == wanted)  # type: ignore[misc]


@pytest.mark.faults
@pytest.mark.requirement("R2-10", "F18")
async def test_an_interval_of_days_is_kept_and_a_person_may_look_sooner(still: Session, hand: HandClock):
    with task_peer(poll=1_000_000_000, ttl=None, script=[["hold"]]) as peer, anyio.fail_after(HANG):
        await connected(still, peer.target)
        task = await task_of(still, begin(still))
        for _ in range(2):
            hand.push(await hand.rests())
        await polled(still, peer, 0)
        still.client_tasks.poll_now(task)
        await until(still, lambda: task.polls == 1)


@pytest.mark.requirement("R2-10")
async def test_the_interval_may_change_between_two_polls(still: Session, hand: HandClock):
    def says(poll: int) -> dict[str, Any]:
        task = {"taskId": "$TASK", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttl": None}
        return {"result": {**task, "pollInterval": poll}}

    answers = {"tasks/get": [says(5_000), says(700)]}
    with task_peer(poll=2_000, ttl=None, script=[["hold"]], answers=answers) as peer, anyio.fail_after(HANG):
        await connected(still, peer.target)
        task = await task_of(still, begin(still))
        for number, seconds in enumerate([2.0, 5.0, 0.7, 2.0], 1):
            assert await hand.rests() == seconds
            hand.push(seconds)
            await until(still, lambda wanted=number: task.polls == wanted)  # type: ignore[misc]


@pytest.mark.faults
@pytest.mark.requirement("B04", "R2-11", "F18", "S002 TaskMetadata(ttl)")
async def test_b04_a_task_that_outlives_its_ttl_is_polled_to_its_end(still: Session, hand: HandClock):
    with task_peer(poll=4_000, ttl=10_000, script=[["hold"], ["finish", DONE]]) as peer, anyio.fail_after(HANG):
        await connected(still, peer.target)
        started = begin(still)
        task = await task_of(still, started)
        for number in range(1, 6):  # the third poll comes after the end of the TTL, and others after it
            assert await hand.rests() == 4.0
            hand.push(4.0)
            await until(still, lambda wanted=number: task.polls == wanted)  # type: ignore[misc]
            await hand.rests()
            assert task.outlived is (number >= 3) and (task.gone, started.settled) == (None, False)
        assert [(one.id, one.level) for one in task.findings] == [("F18", "note")], "said once"
        assert task.findings == started.findings and "TTL of 10 s" in task.findings[0].text
        await call_tool(still, "release")
        while task.status != "completed":  # the peer ends it in a thread of its own
            seen = task.polls
            still.client_tasks.poll_now(task)
            await until(still, lambda seen=seen: task.polls > seen)  # type: ignore[misc]
        assert await text_of(still, started) == "done for nobody"


@pytest.mark.faults
@pytest.mark.requirement("B04", "R2-43")
async def test_b04_a_task_that_is_deleted_after_its_ttl_is_gone(still: Session, hand: HandClock):
    gone = {"error": {"code": -32602, "message": "Failed to retrieve task: Task has expired"}}
    task: dict[str, Any] = {
        "taskId": "$TASK",
        "status": "working",
        "createdAt": "x",
        "lastUpdatedAt": "x",
        "ttl": 3_000,
    }
    answers = {"tasks/get": [{"result": {**task, "pollInterval": 2_000}}] * 3 + [gone]}
    with task_peer(poll=2_000, ttl=3_000, script=[["hold"]], answers=answers) as peer, anyio.fail_after(HANG):
        await connected(still, peer.target)
        started = begin(still)
        followed = await task_of(still, started)
        for number in range(1, 5):
            hand.push(await hand.rests())
            await until(still, lambda wanted=number: followed.polls == wanted)  # type: ignore[misc]
        await settled(still, started)
        assert (followed.gone, followed.outlived, started.state) == ("not found", True, "failed")
        assert started.error is not None and "no longer knows the task" in started.error.message


@pytest.mark.faults
@pytest.mark.requirement("F18", "R2-08", "S002 Terminal states final")
async def test_a_status_that_leaves_its_end_is_said_and_not_followed(session: Session):
    with task_peer(notify=True, restless=True, script=[["finish", DONE], ["status", "working"]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        task = await task_of(session, started)
        assert await text_of(session, started) == "done for nobody"
        await until(session, lambda: task.findings)
        assert task.status == "completed" and "`completed` to `working`" in task.findings[0].text


@pytest.mark.faults
@pytest.mark.requirement("F18")
async def test_polls_without_a_usable_answer_end_after_a_few(still: Session, hand: HandClock):
    nonsense: list[Any] = [
        {"error": {"code": -32603, "message": "Internal error"}},
        {"result": {}},
        {"result": {"taskId": "another", "status": "working"}},
        {"error": "no"},
        {"result": []},
    ]
    with task_peer(poll=None, ttl=None, script=[["hold"]], answers={"tasks/get": nonsense}) as peer:
        with anyio.fail_after(HANG):
            await connected(still, peer.target)
            started = begin(still)
            task = await task_of(still, started)
            for number in range(1, 6):
                hand.push(await hand.rests())
                await until(still, lambda wanted=number: task.polls == wanted)  # type: ignore[misc]
            await settled(still, started)
        assert (task.gone, started.state) == ("not found", "failed")


@pytest.mark.faults
@pytest.mark.requirement("F18")
async def test_polls_that_http_answers_with_404_end_after_a_few_and_the_connection_stays(
    still: Session, hand: HandClock
):
    task = {"taskId": "x", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttl": None}
    made = json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"task": task}}).replace('"id": 0', '"id": $ID')
    tool = {"name": "say", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}
    capabilities = {"tools": {}, "tasks": {"requests": TASKS["requests"]}}
    settings: dict[str, Any] = {"session": None, "tools": [tool], "http": {"tasks/get": {"status": 404}}}
    async with raw_peer(initialize={"capabilities": capabilities}, **settings) as peer:
        with anyio.fail_after(HANG):
            await connected(still, peer.target(), era="legacy")
            started = begin(still, "say", lines=[made])
            followed = await task_of(still, started)
            for number in range(1, 6):
                hand.push(await hand.rests())
                await until(still, lambda wanted=number: followed.polls == wanted)  # type: ignore[misc]
            await settled(still, started)
        assert (followed.gone, started.state, still.info.state) == ("not found", "failed", "ready")
        await flushed(still)


@pytest.mark.faults
@pytest.mark.requirement("F03")
async def test_a_server_that_dies_while_its_task_runs_leaves_nothing_waiting(session: Session):
    with task_peer(script=[["elicit"], ["finish", DONE]]) as peer:
        await connected(session, peer.target)
        started = begin(session)
        task = await task_of(session, started)
        await until(session, lambda: session.open_asks)
        assert session.info.pid is not None
        os.kill(session.info.pid, signal.SIGKILL)
        await settled(session, started)
        assert (started.state, task.gone, session.open_asks) == ("failed", "lost", 0)
        with anyio.fail_after(HANG):
            while task.followed or task.waiting:  # nothing is said of that: it is only over
                await anyio.lowlevel.checkpoint()


async def test_several_tasks_at_once_each_end_with_their_own_result(session: Session):
    with task_peer(script=[["elicit"], ["finish", DONE]]) as peer:
        await connected(session, peer.target)
        calls = [begin(session) for _ in range(4)]
        await until(session, lambda: session.open_asks == 4)
        for ask in reversed(session.inbox.open):
            await session.asks.answer(ask, {"action": "accept", "content": {"name": f"for {ask.call_id}"}}, ME)
        for each in calls:
            assert await text_of(session, each) == f"done for for {each.id}"
