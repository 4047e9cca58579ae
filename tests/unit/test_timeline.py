"""The arithmetic of the timeline: who was waited for in each moment, and the scale that bars are drawn over."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.asks import Answer, AnsweredBy, Ask, Draft
from app.core.calls import Call
from app.core.timeline import Bar, Polls, Span, groups, of_ask, of_call, scale, tick


def call(began: float, ended: float | None, state: Any = "done", asks: tuple[str, ...] = (), cid: str = "c1") -> Call:
    made = Call(cid, "tools/call", {"name": "work"}, began, began, asks=asks)
    made.state, made.ended_at = state, ended
    return made


def ask(aid: str, began: float, ended: float | None, by: Any = "person", **more: Any) -> Ask:
    async def never(*_: Any) -> Any:
        raise AssertionError

    made = Ask(aid, "form", "request", "elicitation/create", {}, began, None, 1, never, **more)
    if ended is not None:
        made.state, made.settled_at = "answered", ended
        made.answer = Answer("accept", {}, None, AnsweredBy(by, "x"))
    return made


def parts(bar: Bar) -> list[tuple[str, float, float]]:
    return [(span.part, span.began, span.ended) for span in bar.spans]


def test_a_call_is_the_servers_time_but_for_its_asks():
    bar = of_call(call(0, 10), [of_ask(ask("a1", 2, 5), 99), of_ask(ask("a2", 4, 6), 99)], 99)
    assert parts(bar) == [("server", 0, 2), ("person", 2, 6), ("server", 6, 10)]
    assert (bar.waited("server"), bar.waited("person"), bar.waited("model"), bar.total) == (6, 4, 0, 10)


def test_what_waits_now_is_told_from_what_was_answered():
    bar = of_call(call(0, None, "waiting"), [of_ask(ask("a1", 2, 5), 9), of_ask(ask("a2", 6, None), 9)], 9)
    assert parts(bar) == [("server", 0, 2), ("person", 2, 5), ("server", 5, 6), ("waiting", 6, 9)]
    assert bar.ended is None and bar.waited("person") == 6


@pytest.mark.parametrize("by", ["rule", "roots", "limit"])
def test_what_no_person_was_needed_for_is_no_persons_time(by: str):
    assert parts(of_ask(ask("a1", 2, 5, by), 9)) == [("model", 2, 5)]
    assert parts(of_ask(ask("a1", 2, 5, recorded=True), 9)) == [("model", 2, 5)]
    assert parts(of_ask(ask("a1", 2, 5, "script"), 9)) == [("person", 2, 5)]


def test_a_model_has_the_time_in_which_it_wrote():
    drafted = ask("a1", 0, 10, "model")
    drafted.draft = Draft(AnsweredBy("model", "m"), started_at=3, updated_at=5)
    assert parts(of_ask(drafted, 99)) == [("person", 0, 3), ("model", 3, 5), ("person", 5, 10)]
    writing = ask("a2", 0, None)
    writing.draft = Draft(AnsweredBy("model", "m"), state="streaming", started_at=3, updated_at=4)
    assert parts(of_ask(writing, 9)) == [("person", 0, 3), ("model", 3, 9)]
    waiting = ask("a3", 0, None)
    waiting.draft = Draft(AnsweredBy("model", "m"), started_at=3, updated_at=5)
    assert parts(of_ask(waiting, 9)) == [("person", 0, 3), ("model", 3, 5), ("waiting", 5, 9)]


def test_a_call_that_failed_says_so_where_the_server_was_waited_for():
    bar = of_call(call(0, 10, "failed"), [of_ask(ask("a1", 2, 5), 99)], 99)
    assert parts(bar) == [("failed", 0, 2), ("person", 2, 5), ("failed", 5, 10)]
    assert bar.waited("server") == 7


def test_all_of_it_in_the_order_in_which_it_began_without_what_parley_asks_for_itself():
    known = {one.id: one for one in (ask("a1", 2, 3, call_id="c2"), ask("a2", 0.5, 4))}
    quiet = call(0, 1, cid="q1")
    quiet.quiet = True
    found = groups([call(1, 5, asks=("a1", "gone"), cid="c2"), quiet], known, lambda _: Polls(), 9)
    assert [[bar.id for bar in group.bars] for group in found] == [["a2"], ["c2", "a1"]]
    assert [bar.parent for bar in found[1].bars] == [None, "c2"]


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50), st.sampled_from(["person", "rule", "model"])), max_size=8)
)
def test_no_moment_is_counted_twice_or_left_out(times: list[tuple[float, float, Any]]):
    below = [of_ask(ask(f"a{n}", at, at + lasts, by), 99) for n, (at, lasts, by) in enumerate(times)]
    bar = of_call(call(10, 60), below, 99)
    assert bar.spans[0].began == 10 and bar.spans[-1].ended == 60
    for one, other in zip(bar.spans, bar.spans[1:], strict=False):
        assert one.ended == other.began and one.part != other.part
    assert sum(bar.waited(who) for who in ("server", "person", "model")) == pytest.approx(50)


def test_a_thousand_asks_of_one_call_are_reckoned_in_one_walk():
    below = [Bar(f"a{n}", "ask", "c1", n, n + 2.5, (Span("person", n, n + 2.5),)) for n in range(0, 5000, 5)]
    bar = of_call(call(0, 5000), below, 9999)
    assert len(bar.spans) == 2000 and bar.waited("person") == 2500


@pytest.mark.parametrize(("seconds", "found"), [(0, 0.1), (0.11, 0.15), (1, 1), (1.01, 1.5), (61, 80), (3599, 4000)])
def test_a_scale_is_round_and_not_less(seconds: float, found: float):
    assert scale(seconds) == pytest.approx(found)


def test_marks_are_at_most_eight():
    for seconds in (0.05, 0.3, 1, 7, 59, 61, 3600, 86_400, 1e7):
        assert seconds / tick(seconds) <= 8
