"""Tasks on the server, the decisions alone: what a task object says, how it may move, who may be called as one."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.tasks.running import (
    CORE,
    Capabilities,
    ClientTask,
    capabilities_of,
    poll_seconds,
    read_task,
    support_of,
)
from app.core.tasks.status import STATUSES, TERMINAL, may_move

README = Path(__file__).parents[2] / "README.md"
HONEST = {"taskId": "a", "status": "working", "createdAt": "x", "lastUpdatedAt": "y", "ttl": 5, "pollInterval": 7}
ALL = Capabilities(tools_call=True, list=True, cancel=True)


def task(**more: Any) -> ClientTask:
    return ClientTask("t1", "a", CORE, 1, began_at=100.0, began=100.0, **more)


def test_an_honest_task_is_read_whole_and_without_a_remark():
    seen, findings = read_task(CORE, {**HONEST, "statusMessage": "half", "extra": 1})
    assert findings == [] and seen is not None
    assert (seen.task_id, seen.status, seen.ttl, seen.poll, seen.message) == ("a", "working", 5, 7, "half")
    seen, findings = read_task(CORE, {**HONEST, "ttl": None, "statusMessage": 5})
    assert findings == [] and seen is not None and (seen.ttl, seen.message) == (None, None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)


@pytest.mark.requirement("R2-08")
@given(
    st.fixed_dictionaries(
        {},
        optional={name: JSON | st.sampled_from(STATUSES) | st.just("a") for name in (*HONEST, "statusMessage")},
    )
)
def test_no_task_object_makes_us_stumble_and_what_is_missing_is_said(value: dict[str, Any]):
    seen, findings = read_task(CORE, value)
    assert all(one.id == "R2-08" for one in findings)
    if seen is None:
        assert findings
        return
    if not {"ttl", "createdAt", "lastUpdatedAt"} <= set(value):
        assert any("lacks" in one.text for one in findings)
    assert poll_seconds(seen.poll) >= 0.5
    followed = task()
    followed.take(seen, 1.0)
    assert followed.object()["taskId"] == "a" and isinstance(followed.expires, float | None)
    assert followed.expires_at is None or followed.expires_at < 10**12


@pytest.mark.requirement("S002 Lifecycle diagram", "S002 Terminal states final", "R1-20", "R2-08")
def test_both_state_machines_move_as_the_readme_draws_it():
    drawn = "working ⇄ input_required, and from both to completed, failed or cancelled; nothing leaves those three"
    assert drawn in " ".join(README.read_text(encoding="utf-8").split())
    live = {"working", "input_required"}
    legal = {(before, after) for before in live for after in STATUSES if before != after}
    for before in STATUSES:
        for after in STATUSES:
            assert may_move(before, after) == ((before, after) in legal)
            followed = task(status=before)
            changed, findings = followed.take(read_task(CORE, {**HONEST, "status": after})[0], 1.0)  # type: ignore[arg-type]
            moved = (before, after) in legal
            assert (changed, followed.status) == (moved, after if moved else before)
            assert bool(findings) == (before in TERMINAL and before != after)


@pytest.mark.requirement("S002 TaskMetadata(ttl)")
def test_the_ttl_counts_from_the_beginning_and_null_is_no_limit():
    assert task(ttl=5_000).expires == 105.0 and task(ttl=None).expires is None
    assert task(ttl=0).expires == 100.0


@pytest.mark.requirement("S002 Capabilities", "R2-01", "R2-42", "S003 getTaskCapabilities")
@pytest.mark.parametrize(
    ("declared", "found"),
    [
        (None, Capabilities()),
        ({"tasks": True}, Capabilities()),
        ({"tasks": {}}, Capabilities()),
        ({"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}, ALL),
        ({"tasks": {"list": True, "cancel": None, "requests": {"tools": {"call": True}}}}, Capabilities()),
        ({"tasks": {"requests": {"tools": {}, "prompts": {"get": {}}}}}, Capabilities()),
        ({"tasks": {"cancel": {}, "requests": []}}, Capabilities(cancel=True)),
    ],
)
def test_what_a_server_declared_about_tasks(declared: Any, found: Capabilities):
    assert capabilities_of(declared, "2025-11-25") == found
    assert capabilities_of(declared, "2025-06-18") == capabilities_of(declared, None) == Capabilities()


@pytest.mark.requirement("R2-01", "R2-02", "R2-03", "R2-04")
@pytest.mark.parametrize("value", ["required", "optional", "forbidden", None, "REQUIRED", 5, {}])
def test_a_tool_is_a_task_only_where_both_sides_say_so(value: Any):
    tool = {"name": "x", "execution": {"taskSupport": value}}
    without = support_of(tool, Capabilities())
    assert without.no_task and not without.no_plain
    support = support_of(tool, ALL)
    assert bool(support.no_task) == (value not in ("required", "optional"))
    assert bool(support.no_plain) == (value == "required")
    nothings: list[Any] = [{"name": "x"}, {"execution": "required"}, None, [], "x"]
    for nothing in nothings:
        assert support_of(nothing, ALL).said == "absent" and support_of(nothing, ALL).no_task


def test_a_wire_says_where_a_new_task_stands():
    assert CORE.created({"task": HONEST}) == HONEST
    assert CORE.created({"task": "no"}) is CORE.created([]) is CORE.created({"resultType": "task", **HONEST}) is None
    assert CORE.ask(None) == {"task": {}} and CORE.ask(5) == {"task": {"ttl": 5}}


def test_of_very_many_polls_the_oldest_are_forgotten_and_nothing_else():
    followed = task()
    followed.visit(1.0, "created")
    for number in range(2_000):
        followed.visit(2.0 + number, "tasks/get", "working")
    followed.visit(3_000.0, "status", "completed")
    assert [visit.what for visit in followed.visits[:2]] == ["created", "tasks/get"]
    assert (len(followed.visits), followed.visits[-1].what, followed.visits[-2].at) == (500, "status", 2_001.0)
