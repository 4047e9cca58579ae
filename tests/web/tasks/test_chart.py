"""The strip chart of a receiver task: everything stands where it belongs, inside the strip, whatever happened."""

import itertools
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.tasks.received import ReceiverTask
from app.web.kit.templates import fragment
from app.web.tasks.chart import Chart, chart
from tests.unit.test_receiver_tasks import Bench, accepted

WALL = 1_700_000_000.0


def at(percent: str) -> float:
    assert percent.endswith("%")
    return float(percent[:-1])


def places(drawn: Chart) -> list[float]:
    """Where anything stands."""
    ticks = [tick.x for tick in (*drawn.scale, *drawn.polls, *drawn.fetches, *drawn.sent)]
    bars = [(at(bar.x), at(bar.width)) for bar in (*drawn.status, *drawn.waits)]
    assert all(width >= 0 for _, width in bars)
    return [*map(at, ticks), *(x for x, _ in bars), *(x + width for x, width in bars)]


@pytest.mark.requirement("R1-87")
@pytest.mark.anyio
async def test_the_strip_shows_polls_waits_and_statuses() -> None:
    bench = Bench()
    task = bench.create(60_000)
    bench.tasks.upsert_receiver_task(task, "input_required")
    for pause in (2.0, 0.5, 0.5, 2.0):
        bench.now += pause
        bench.tasks.get_receiver_task(task.task_id)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(bench.tasks.get_receiver_task_payload, task.task_id)
            await anyio.wait_all_tasks_blocked()
            bench.now += 5.0
            bench.tasks.settle(task, accepted())
    bench.now += 1.0
    await bench.tasks.get_receiver_task_payload(task.task_id)
    drawn = chart(task, WALL + bench.now)
    assert [bar.kind for bar in drawn.status] == ["working", "input_required", "completed"]
    assert [tick.fast for tick in drawn.polls] == [False, True, True, False]
    assert drawn.fast_words == "2 polls sooner than 2 s"
    assert [bar.text for bar in drawn.waits] == ["waits 5 s"]
    assert len(drawn.fetches) == 1
    assert at(drawn.answered) == pytest.approx(at(drawn.waits[0].x) + at(drawn.waits[0].width), abs=0.1)
    assert [at(a.x) < at(b.x) for a, b in itertools.pairwise(drawn.polls)] == [True] * 3
    assert drawn.end == "", "the end of the record is far away"
    assert "4 polls" in drawn.summary and "completed" in drawn.summary
    html = fragment("tasks/_chart.html", task={"chart": drawn})
    assert "style=" not in html and html.count('class="tick fast"') == 2


def test_a_short_life_shows_its_end() -> None:
    bench = Bench()
    task = bench.create(3_000)
    bench.later(3.5)
    drawn = chart(task, WALL + bench.now)
    assert task.gone == "expired"
    assert drawn.end and "3 s" in drawn.end_words


@given(
    ttl=st.sampled_from([None, 0, 50, 1_000, 60_000, 3_600_000]),
    steps=st.lists(st.tuples(st.sampled_from(["get", "settle", "wait", "move"]), st.floats(0, 100)), max_size=30),
)
def test_whatever_happened_it_fits_into_the_strip(ttl: int | None, steps: list[Any]) -> None:
    bench = Bench(ttl_ms=ttl)
    task: ReceiverTask = bench.create()
    for what, seconds in steps:
        bench.now += seconds
        if what == "move":
            bench.tasks.upsert_receiver_task(task, "input_required")
        elif what == "settle":
            bench.tasks.settle(task, accepted())
        elif what == "wait":
            bench.later(0)
        elif task.gone is None:
            bench.tasks.expire()
            if task.gone is None:
                bench.tasks.get_receiver_task(task.task_id)
    drawn = chart(task, WALL + bench.now)
    assert all(12.9 <= place <= 98.6 for place in places(drawn))
    assert 2 <= len(drawn.scale) <= 12
    fragment("tasks/_chart.html", task={"chart": drawn})
