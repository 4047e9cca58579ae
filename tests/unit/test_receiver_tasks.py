"""The store of receiver tasks, with a clock of its own: statuses, time, limits, waiters, races."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.bounds import TASK_PAGE
from app.core.asks import Answer, AnsweredBy, denial, failure
from app.core.errors import RpcError
from app.core.options import Options
from app.core.tasks.received import ReceiverTask, ReceiverTasks, manners
from app.core.tasks.status import TERMINAL, Status, may_move

PERSON = AnsweredBy("person", "you")
STATUSES: tuple[Status, ...] = ("working", "input_required", "completed", "failed", "cancelled")
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603


class Bench:
    """A store with a clock that only moves when told, and a record of what it said."""

    def __init__(self, *, limit: int = 1_000, **changes: Any) -> None:
        self.now = 1_000.0
        self.notified: list[tuple[str, str]] = []
        self.ended: list[tuple[str, str]] = []
        self.changes = 0
        self._count = 0
        self.options = Options().model_copy(update=changes)
        self.tasks = ReceiverTasks(
            wall=lambda: 1_700_000_000.0 + self.now,
            mono=lambda: self.now,
            notify=lambda task: self.notified.append((task.task_id, task.status)),
            changed=self._changed,
            ended=lambda task, how, _: self.ended.append((task.task_id, how)),
            ids=self._id,
            limit=limit,
            options=lambda: self.options,
        )

    def _changed(self, _: ReceiverTask) -> None:
        self.changes += 1

    def _id(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def create(self, ttl: Any = None) -> ReceiverTask:
        return self.tasks.create_receiver_task("elicitation/create", {} if ttl is None else {"ttl": ttl})

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.tasks.expire()


def accepted(content: dict[str, Any] | None = None) -> Answer:
    return Answer("accept", {"action": "accept", "content": content or {}}, None, PERSON)


def refusal(of: Any, *arguments: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        of(*arguments)
    return caught.value


# ---- ids and the task object


@pytest.mark.requirement("UT-1", "FR-4", "NFR-1", "R1-14")
def test_ten_thousand_ids_are_different_and_cannot_be_guessed() -> None:
    bench = Bench(limit=20_000)
    ids = set()
    for _ in range(10_000):
        bench.now += 1
        ids.add(bench.create().task_id)
    assert len(ids) == 10_000
    assert all(len(each) >= 32 and each.replace("-", "").replace("_", "").isalnum() for each in ids)


@pytest.mark.requirement("R1-12", "R1-13", "FR-5", "S004 ManagedTask", "S000 §3.2", "S000 §3.3 createReceiverTask")
def test_a_new_task_is_working_and_has_every_member() -> None:
    task = Bench().create(120_000)
    assert task.wire() == {
        "taskId": task.task_id,
        "status": "working",
        "createdAt": "2023-11-14T22:30:00.000Z",
        "lastUpdatedAt": "2023-11-14T22:30:00.000Z",
        "ttl": 120_000,
        "pollInterval": 2_000,
    }


@pytest.mark.requirement("R1-82", "R1-13", "S004 ManagedTask", "S004 helper methods")
def test_an_unlimited_task_says_null_and_never_expires() -> None:
    bench = Bench(receiver_task_ttl_ms=None)
    task = bench.create()
    assert task.wire()["ttl"] is None
    assert "ttl" in task.wire()
    bench.later(10**9)
    assert bench.tasks.get_receiver_task(task.task_id) is task


@pytest.mark.requirement("R1-81", "R1-80")
def test_a_ttl_is_honoured_up_to_the_maximum_and_shown_as_it_is_in_force() -> None:
    bench = Bench(receiver_task_ttl_ms=60_000, receiver_task_max_ttl_ms=600_000)
    assert [bench.create(ttl).wire()["ttl"] for ttl in (None, 5_000, 600_000, 10**9, 0, 1.9)] == [
        60_000,
        5_000,
        600_000,
        600_000,
        0,
        1,
    ]


@pytest.mark.requirement("S000 §3.1 receiverTaskTtlMs", "S002 Task store")
def test_the_default_ttl_may_be_a_function_and_is_read_at_creation() -> None:
    bench = Bench(receiver_task_ttl_ms=1_000)
    first = bench.create()
    bench.options = Options(receiver_task_ttl_ms=2_000)
    assert (first.ttl, bench.create().ttl) == (1_000, 2_000)


@pytest.mark.requirement("R1-82")
@pytest.mark.parametrize("ttl", [-1, "60000", True, float("nan"), float("inf"), [], {}])
def test_a_bad_ttl_is_refused_and_nothing_is_kept(ttl: Any) -> None:
    bench = Bench()
    assert refusal(bench.tasks.create_receiver_task, "elicitation/create", {"ttl": ttl}).code == INVALID_PARAMS
    assert len(bench.tasks) == 0


@pytest.mark.requirement("R1-82", "FR-3")
@pytest.mark.parametrize("asked", [None, {}, {"ttl": None}])
def test_an_absent_ttl_gets_the_default(asked: Any) -> None:
    assert Bench().tasks.create_receiver_task("elicitation/create", asked).ttl == 60_000


# ---- the state machine


@pytest.mark.requirement("R1-20", "FR-7", "UT-2", "S000 §3.3 upsertReceiverTask")
@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
def test_only_the_legal_edges_exist(before: Status, after: Status) -> None:
    legal = {
        ("working", "input_required"),
        ("working", "completed"),
        ("working", "failed"),
        ("working", "cancelled"),
        ("input_required", "working"),
        ("input_required", "completed"),
        ("input_required", "failed"),
        ("input_required", "cancelled"),
    }
    assert may_move(before, after) is ((before, after) in legal)
    bench = Bench()
    task = bench.create()
    task.status = before
    assert bench.tasks.upsert_receiver_task(task, after) is ((before, after) in legal)


@pytest.mark.requirement("R1-22", "R1-70", "SC-5")
def test_each_change_is_dated_and_told_once() -> None:
    bench = Bench()
    task = bench.create()
    bench.now += 5
    bench.tasks.upsert_receiver_task(task, "input_required", "Awaiting user input")
    assert task.wire()["lastUpdatedAt"] == "2023-11-14T22:30:05.000Z"
    assert task.wire()["createdAt"] == "2023-11-14T22:30:00.000Z"
    assert task.wire()["statusMessage"] == "Awaiting user input"
    bench.tasks.settle(task, accepted())
    assert [status for _, status in bench.notified] == ["input_required", "completed"]


@pytest.mark.requirement("R1-24", "R4-32")
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_every_elicitation_action_completes_the_task(action: str) -> None:
    bench = Bench()
    task = bench.create()
    assert bench.tasks.settle(task, Answer(action, {"action": action}, None, PERSON))
    assert task.status == "completed"


@pytest.mark.requirement("R1-24", "R1-25", "R3-20")
def test_a_denied_sampling_fails_with_the_code_of_a_rejection() -> None:
    bench = Bench()
    task = bench.create()
    bench.tasks.settle(task, denial(PERSON))
    assert (task.status, task.message) == ("failed", "User rejected sampling request")
    assert task.error is not None
    assert task.error.code == -1


# ---- results


@pytest.mark.requirement("R1-40", "R1-41", "R1-42", "UT-3", "FR-9", "FR-13", "S004 tasks/result meta")
@pytest.mark.anyio
async def test_a_result_blocks_every_waiter_until_it_is_there_and_names_its_task() -> None:
    bench = Bench()
    task = bench.create()
    answers: list[dict[str, Any]] = []

    async def wait() -> None:
        answers.append(await bench.tasks.get_receiver_task_payload(task.task_id))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert answers == []
            bench.tasks.settle(task, Answer("accept", {"action": "accept", "_meta": {"mine": 1}}, None, PERSON))
    related = {"io.modelcontextprotocol/related-task": {"taskId": task.task_id}}
    assert answers == [{"action": "accept", "_meta": {"mine": 1} | related}] * 3
    assert await bench.tasks.get_receiver_task_payload(task.task_id) == answers[0]


@pytest.mark.requirement("R1-41")
@pytest.mark.anyio
async def test_a_failed_task_answers_the_very_error_of_the_plain_request() -> None:
    bench = Bench()
    task = bench.create()
    bench.tasks.settle(task, failure(-31_999, "on purpose", PERSON))
    for _ in range(2):
        with pytest.raises(RpcError) as caught:
            await bench.tasks.get_receiver_task_payload(task.task_id)
        assert caught.value.wire() == {"code": -31_999, "message": "on purpose"}


@pytest.mark.requirement("R1-41")
@pytest.mark.anyio
async def test_an_error_fetched_again_and_again_does_not_grow() -> None:
    """An exception that is raised twice remembers both places, and everything that was known there."""
    bench = Bench()
    task = bench.create()
    bench.tasks.settle(task, failure(-32000, "no", PERSON))
    places = []
    for _ in range(50):
        with pytest.raises(RpcError) as caught:
            await bench.tasks.get_receiver_task_payload(task.task_id)
        places.append(len(caught.traceback))
    assert places == [places[0]] * 50


@pytest.mark.requirement("R1-21", "R1-43", "UT-4", "FR-11", "R1-60")
@pytest.mark.anyio
async def test_cancel_releases_waiters_and_beats_a_late_answer() -> None:
    bench = Bench()
    task = bench.create()
    codes: list[int] = []

    async def wait() -> None:
        with pytest.raises(RpcError) as caught:
            await bench.tasks.get_receiver_task_payload(task.task_id)
        codes.append(caught.value.code)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert bench.tasks.cancel_receiver_task(task.task_id).status == "cancelled"
    assert codes == [INTERNAL_ERROR]
    assert bench.ended == [(task.task_id, "cancelled")]
    assert bench.tasks.settle(task, accepted()) is False
    assert (task.status, task.result) == ("cancelled", None)


@pytest.mark.requirement("R1-61", "FR-15", "UT-5", "S000 §3.3 cancelReceiverTask")
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_a_settled_task_cannot_be_cancelled(end: str) -> None:
    bench = Bench()
    task = bench.create()
    if end == "cancelled":
        bench.tasks.cancel_receiver_task(task.task_id)
    else:
        bench.tasks.settle(task, accepted() if end == "completed" else denial(PERSON))
    assert refusal(bench.tasks.cancel_receiver_task, task.task_id).code == INVALID_PARAMS
    assert task.status == end


@pytest.mark.requirement("R1-20", "R1-21", "S004 risk race")
@pytest.mark.parametrize("first", ["answer", "cancel"])
def test_of_an_answer_and_a_cancel_the_first_wins_a_hundred_times(first: str) -> None:
    for _ in range(100):
        bench = Bench()
        task = bench.create()
        if first == "answer":
            assert bench.tasks.settle(task, accepted())
            assert refusal(bench.tasks.cancel_receiver_task, task.task_id).code == INVALID_PARAMS
        else:
            bench.tasks.cancel_receiver_task(task.task_id)
            assert not bench.tasks.settle(task, accepted())
        assert task.status == ("completed" if first == "answer" else "cancelled")


# ---- other ids


@pytest.mark.requirement("R1-31", "R1-86", "NFR-2")
@pytest.mark.parametrize("task_id", ["nobody", "", None, 7, ["x"], {"a": 1}])
def test_an_unknown_id_is_an_invalid_parameter(task_id: Any) -> None:
    bench = Bench()
    assert refusal(bench.tasks.get_receiver_task, task_id).code == INVALID_PARAMS
    assert refusal(bench.tasks.cancel_receiver_task, task_id).code == INVALID_PARAMS


@pytest.mark.requirement("R1-86", "NFR-2")
@pytest.mark.anyio
async def test_a_task_of_another_connection_is_as_unknown_as_any() -> None:
    mine, other = Bench(), Bench()
    task = mine.create()
    assert refusal(other.tasks.get_receiver_task, task.task_id).code == INVALID_PARAMS
    assert refusal(other.tasks.cancel_receiver_task, task.task_id).code == INVALID_PARAMS
    with pytest.raises(RpcError) as caught:
        await other.tasks.get_receiver_task_payload(task.task_id)
    assert caught.value.code == INVALID_PARAMS
    assert other.tasks.list_receiver_tasks() == ([], None)


# ---- lists


@pytest.mark.requirement("R1-50", "R1-51", "R1-52", "FR-10", "S000 §3.3 get, list, payload")
def test_the_list_is_paged_in_order_and_complete() -> None:
    bench = Bench()
    made = []
    for count in range(TASK_PAGE * 2 + 3):
        bench.now += random.Random(count).choice([0.0, 0.5])
        made.append(bench.create(3_600_000).task_id)
    bench.tasks.cancel_receiver_task(made[0])
    seen, cursor, pages = [], None, 0
    while True:
        page, cursor = bench.tasks.list_receiver_tasks(cursor)
        seen += [task.task_id for task in page]
        pages += 1
        if cursor is None:
            break
    assert pages == 3
    assert sorted(seen) == sorted(made)
    assert len(seen) == len(set(seen))


@pytest.mark.requirement("R1-51")
@pytest.mark.parametrize("cursor", ["x", "", 7, "AAAA", "bm90aGluZw==", [], {"a": 1}, "☃"])
def test_a_cursor_that_is_not_ours_is_refused(cursor: Any) -> None:
    assert refusal(Bench().tasks.list_receiver_tasks, cursor).code == INVALID_PARAMS


# ---- time


@pytest.mark.requirement("R1-83", "R1-84", "FR-14", "UT-6", "S004 TaskManager", "S004 helper methods", "S000 §6.1")
@pytest.mark.anyio
async def test_expiry_forgets_the_task_and_releases_who_waits() -> None:
    bench = Bench()
    task = bench.create(300)
    codes: list[int] = []

    async def wait() -> None:
        with pytest.raises(RpcError) as caught:
            await bench.tasks.get_receiver_task_payload(task.task_id)
        codes.append(caught.value.code)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            bench.later(0.299)
            assert codes == []
            bench.later(0.002)
    assert codes == [INVALID_PARAMS]
    assert bench.ended == [(task.task_id, "expired")]
    assert refusal(bench.tasks.get_receiver_task, task.task_id).code == INVALID_PARAMS
    assert bench.tasks.settle(task, accepted()) is False


@pytest.mark.requirement("R1-83", "R1-85", "NFR-3", "S004 risk memory leak")
def test_settled_and_cancelled_tasks_expire_too_and_nothing_is_left() -> None:
    bench = Bench(limit=1_000)
    for count in range(1_000):
        bench.now += 0.02
        task = bench.create(60_000)
        if count % 3 == 0:
            bench.tasks.settle(task, accepted())
        elif count % 3 == 1:
            bench.tasks.cancel_receiver_task(task.task_id)
    assert len(bench.tasks) == 1_000
    bench.later(61)
    assert len(bench.tasks) == 0
    assert bench.tasks.next_expiry() is None


@pytest.mark.requirement("R1-80")
def test_the_ttl_counts_from_creation_whatever_happens_later() -> None:
    bench = Bench()
    task = bench.create(10_000)
    bench.later(9)
    bench.tasks.settle(task, accepted())
    bench.later(1.1)
    assert refusal(bench.tasks.get_receiver_task, task.task_id).code == INVALID_PARAMS


@pytest.mark.requirement("R1-84")
@pytest.mark.anyio
async def test_the_clock_of_a_live_store_wakes_for_the_soonest_task() -> None:
    done = anyio.Event()
    loop_time = anyio.current_time

    def ended(task: ReceiverTask, how: str, _: str) -> None:
        assert how == "expired"
        done.set()

    tasks = ReceiverTasks(
        wall=loop_time,
        mono=loop_time,
        notify=lambda _: None,
        changed=lambda _: None,
        ended=ended,
        ids=lambda: "t1",
        limit=2,
        options=Options,
    )
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            tasks.create_receiver_task("elicitation/create", {"ttl": 3_600_000})
            group.start_soon(tasks.run)
            group.start_soon(tasks.run)
            await anyio.wait_all_tasks_blocked()
            tasks.create_receiver_task("elicitation/create", {"ttl": 50})
            await done.wait()
            assert tasks.watched
            group.cancel_scope.cancel()
    assert len(tasks) == 1 and not tasks.watched

    with anyio.fail_after(60):
        await Bench().tasks.run()  # nothing to wait for


# ---- limits and ends


@pytest.mark.requirement("R1-16", "NFR-3")
def test_over_the_limit_nothing_is_kept() -> None:
    bench = Bench(limit=3)
    for _ in range(3):
        bench.create()
    assert refusal(bench.create).code == INTERNAL_ERROR
    assert len(bench.tasks) == 3


@pytest.mark.requirement("R1-86")
def test_operations_are_limited_in_rate_and_recover_with_time() -> None:
    bench = Bench()
    task = bench.create()
    with pytest.raises(RpcError, match="slow down"):
        for _ in range(2_000):
            bench.tasks.get_receiver_task(task.task_id)
    bench.now += 1
    assert bench.tasks.get_receiver_task(task.task_id) is task


@pytest.mark.requirement("R1-88", "S004 helper methods")
@pytest.mark.anyio
async def test_closing_releases_waiters_loses_asks_and_tells_the_server_nothing() -> None:
    bench = Bench()
    live, done = bench.create(), bench.create()
    bench.tasks.settle(done, accepted())
    said = list(bench.notified)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                with pytest.raises(RpcError):
                    await bench.tasks.get_receiver_task_payload(live.task_id)

            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            bench.tasks.close("the server died")
    assert bench.ended == [(live.task_id, "lost")]
    assert bench.notified == said
    assert len(bench.tasks) == 0


@pytest.mark.requirement("R1-87")
def test_manners_are_remarked() -> None:
    bench = Bench()
    task = bench.create(10_000)
    for _ in range(4):
        bench.tasks.get_receiver_task(task.task_id)
        bench.now += 0.1
    bench.tasks.settle(task, accepted())
    for _ in range(3):
        bench.now += 2.5
        bench.tasks.get_receiver_task(task.task_id)
    bench.later(60)
    remarks = {remark.text: remark.good for remark in manners(task)}
    assert remarks == {
        "3 of 7 polls came faster than the interval of 2000 ms; the shortest after 100 ms.": False,
        "Polled 3 times after the end.": False,
        "Never fetched the result, and the record is gone.": False,
    }


@pytest.mark.requirement("R1-87")
@pytest.mark.anyio
async def test_good_manners_are_remarked_too() -> None:
    bench = Bench()
    task = bench.create(60_000)
    assert manners(task) == []
    for _ in range(3):
        bench.now += 2.0
        bench.tasks.get_receiver_task(task.task_id)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(bench.tasks.get_receiver_task_payload, task.task_id)
            await anyio.wait_all_tasks_blocked()
            bench.now += 1.0
            bench.tasks.settle(task, accepted())
    assert [(remark.good, remark.text) for remark in manners(task)] == [
        (True, "Kept to the interval of 2000 ms between 3 polls."),
        (True, "Called tasks/result while the task was still open, and waited."),
        (True, "Fetched the result and stopped polling."),
    ]


def test_of_very_many_polls_the_oldest_are_forgotten_and_all_are_counted() -> None:
    bench = Bench()
    task = bench.create(3_600_000)
    for _ in range(900):
        bench.now += 2.0
        bench.tasks.get_receiver_task(task.task_id)
    bench.tasks.settle(task, accepted())
    assert task.polls == 900
    assert len(task.visits) <= 500
    assert [visit.what for visit in task.visits if visit.what != "tasks/get"] == ["created", "answered", "status"]


@pytest.mark.requirement("R1-87", "R1-88")
def test_a_result_that_was_never_fetched_is_remarked_when_the_connection_ends() -> None:
    bench = Bench()
    task, other = bench.create(), bench.create()
    bench.tasks.settle(task, accepted())
    assert manners(task) == []
    bench.tasks.close("the server died")
    assert [remark.text for remark in manners(task)] == ["Never fetched the result, and the record is gone."]
    assert (task.status, task.gone, other.gone) == ("completed", "lost", "lost")


# ---- everything at once


class Life(RuleBasedStateMachine):
    """Whatever is done in whatever order: statuses move legally, terminal ones stay, records and waits are bounded."""

    @initialize()
    def begin(self) -> None:
        self.bench = Bench(limit=5)
        self.seen: dict[str, Status] = {}
        self.all: list[ReceiverTask] = []

    @rule(ttl=st.sampled_from([None, 0, 50, 1_000, 10_000]))
    def create(self, ttl: int | None) -> None:
        try:
            self.all.append(self.bench.create(ttl))
        except RpcError as refused:
            assert refused.code == INTERNAL_ERROR
            assert len(self.bench.tasks) == 5

    @rule(at=st.integers(0, 30), status=st.sampled_from(STATUSES))
    def move(self, at: int, status: Status) -> None:
        if self.all and status not in TERMINAL:
            self.bench.tasks.upsert_receiver_task(self.all[at % len(self.all)], status)

    @rule(at=st.integers(0, 30), denied=st.booleans())
    def settle(self, at: int, denied: bool) -> None:
        if self.all:
            self.bench.tasks.settle(self.all[at % len(self.all)], denial(PERSON) if denied else accepted())

    @rule(at=st.integers(0, 30))
    def cancel(self, at: int) -> None:
        if self.all:
            task = self.all[at % len(self.all)]
            was_terminal, was_gone = task.terminal, task.gone is not None
            try:
                self.bench.tasks.cancel_receiver_task(task.task_id)
                assert not was_terminal
                assert not was_gone
            except RpcError as refused:
                assert refused.code == INVALID_PARAMS

    @rule(seconds=st.sampled_from([0.0, 0.06, 2.0, 70.0]))
    def wait(self, seconds: float) -> None:
        self.bench.later(seconds)

    @invariant()
    def holds(self) -> None:
        for task in getattr(self, "all", []):
            before = self.seen.get(task.task_id)
            if before in TERMINAL:
                assert task.status == before
            self.seen[task.task_id] = task.status
            assert task.settled.is_set() is (task.terminal or task.gone is not None)
            assert not (task.result is not None and task.status != "completed")


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.mark.requirement("S004 component diagram", "S000 §3.9")
def test_the_store_knows_no_page_and_no_sdk() -> None:
    """Imported alone it brings neither: the page talks to the inbox, and the wire object is ours (`ttl: null`)."""
    script = "import sys, app.core.tasks.received; print(*{name.partition('.')[0] for name in sys.modules})"
    root = Path(__file__).resolve().parents[2]
    ran = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)
    assert {"mcp", "mcp_types", "starlette", "jinja2", "httpx2"} & set(ran.stdout.split()) == set()
    assert "anyio" in ran.stdout
