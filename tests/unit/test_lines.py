"""Two results by line: nothing is lost, nothing is invented, and the work has an end."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app import bounds
from app.core.json.essence import essence
from app.core.json.lines import Difference, Part, compared, is_ignored
from app.core.json.values import same

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab\n", max_size=4)
VALUES = st.recursive(
    SCALARS, lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text("xyz", max_size=2), each, max_size=4)
)


def text(parts: tuple[Part, ...]) -> str:
    return "".join(said for _, said in parts)


def side(found: Difference, of: str) -> list[tuple[int, str]]:
    return [(row.depth, text(parts)) for row in found.rows if (parts := getattr(row, of))]


@given(VALUES, VALUES)
@example(None, "a\na")
@example({"a": "a"}, {"a": "a\na"})
@example(["a\na"], [{}])
@example({"x": []}, {"x": [None]})
def test_each_side_reads_as_it_does_alone(left: Any, right: Any) -> None:
    """Whatever is beside it, a value has the lines that it has beside itself; only their order of keys may differ, and
    an empty list or object is opened where the other side has something in it."""
    found = compared(left, right)
    for value, of in ((left, "left"), (right, "right")):
        alone = [row for row in side(compared(value, value), of) if row[1] not in "{}[]"]
        both = [row for row in side(found, of) if row[1] not in "{}[]"]
        assert sorted(opened(line) for _, line in both) == sorted(opened(line) for _, line in alone)


def opened(line: str) -> str:
    return line[:-1] if line.endswith((": []", ": {}")) else line


@given(VALUES)
def test_a_value_is_equal_to_itself(value: Any) -> None:
    found = compared(value, json.loads(json.dumps(value)))
    assert found.count == 0 and not found.cut
    assert all(row.left == row.right for row in found.rows)


@given(VALUES, VALUES)
def test_only_equal_values_have_no_difference(left: Any, right: Any) -> None:
    assert (compared(left, right).count == 0) == same(left, right)


@given(VALUES, VALUES)
def test_runs_have_every_row_once_and_fold_no_difference(left: Any, right: Any) -> None:
    found = compared(left, right)
    assert [row for run in found.runs for row in run.rows] == found.rows
    assert all(row.kind == "equal" for run in found.runs if run.folded for row in run.rows)


def test_a_change_an_addition_and_what_is_gone() -> None:
    left = {"merged": "a", "account": {"street": "Speicherstadt 4", "value": "412000", "legacy_id": 88}}
    right = {"merged": "a", "account": {"street": "Kanalstr. 19", "value": 412000}, "note": "x"}
    found = compared(left, right)
    assert [(row.kind, text(row.left), text(row.right)) for row in found.rows] == [
        ("equal", 'merged: "a"', 'merged: "a"'),
        ("equal", "account: {", "account: {"),
        ("changed", 'street: "Speicherstadt 4"', 'street: "Kanalstr. 19"'),
        ("changed", 'value: "412000"', "value: 412000"),
        ("removed", "legacy_id: 88", ""),
        ("equal", "}", "}"),
        ("added", "", 'note: "x"'),
    ]
    assert found.count == 4


def test_an_item_in_the_middle_of_a_list_moves_nothing_else() -> None:
    left = {"rows": [{"n": number} for number in range(300)]}
    right = {"rows": [*left["rows"][:150], {"n": -1}, *left["rows"][150:]]}
    found = compared(left, right)
    assert [(row.kind, text(row.right)) for row in found.rows if row.kind != "equal"] == [
        ("added", "{"),
        ("added", "n: -1"),
        ("added", "}"),
    ]


def test_a_text_of_several_lines_is_compared_by_line() -> None:
    found = compared({"text": "one\ntwo\nthree"}, {"text": "one\n2\nthree\nfour"})
    assert [(row.kind, text(row.left), text(row.right)) for row in found.rows] == [
        ("equal", "text: text", "text: text"),
        ("equal", "one", "one"),
        ("changed", "two", "2"),
        ("equal", "three", "three"),
        ("added", "", "four"),
    ]


@pytest.mark.parametrize(
    ("key", "left", "right", "ignored"),
    [
        ("id", 1, 2, True),
        ("account_id", "a", "b", True),
        ("accountId", "a", "b", True),
        ("paid", True, False, False),
        ("", "6f9619ff-8b86-d011-b42d-00c04fc964ff", "7f9619ff-8b86-d011-b42d-00c04fc964ff", True),
        ("hash", "0123456789abcdef", "fedcba9876543210", True),
        ("at", "2026-11-17T12:00:00Z", "2026-11-17T12:00:01.5+01:00", True),
        ("at", "2026-11-17T12:00:00Z", "yesterday", False),
        ("name", "beef", "cafe", False),
        ("id", {"a": 1}, {"a": 2}, False),
    ],
)
def test_ids_and_times(key: str, left: Any, right: Any, ignored: bool) -> None:
    assert is_ignored(key, left, right) is ignored
    found = compared({key or "x": left}, {key or "x": right}, ignore=True)
    assert (found.ignored, found.count) == ((1, 0) if ignored else (0, found.count))
    assert compared({key or "x": left}, {key or "x": right}).count > 0


def test_only_one_side_having_an_id_is_a_difference() -> None:
    assert compared({"id": 1}, {}, ignore=True).count == 1


def test_equal_lines_far_from_every_difference_are_folded() -> None:
    rows = {f"k{number:02}": number for number in range(20)}
    runs = compared(rows, {**rows, "k10": "other"}).runs
    assert [(run.folded, len(run.rows)) for run in runs] == [(True, 9), (False, 3), (True, 8)]
    assert [run.folded for run in compared(rows, rows).runs] == [True]


def test_the_work_has_an_end() -> None:
    wide = compared(list(range(100_000)), [None] * 100_000)
    assert wide.cut and len(wide.rows) == bounds.DIFFERENCE_ROWS
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert compared(deep, [deep]).rows
    long = compared({"a": "x" * 10_000}, {"a": "y" * 10_000})
    assert len(text(long.rows[0].left)) < 600 and "more characters" in text(long.rows[0].left)


def test_what_of_two_results_is_worth_comparing() -> None:
    text = [{"type": "text", "text": '{"a": 1}'}]
    one = {"content": text, "structuredContent": {"a": 1}, "isError": False, "_meta": {"x": 1}}
    assert essence(one, {**one, "structuredContent": {"a": 1.0}}) == ({"a": 1}, {"a": 1.0}, "structuredContent")
    assert essence({"content": text}, {"content": text}) == ({"a": 1}, {"a": 1}, "text, read as JSON")
    plain = {"content": [{"type": "text", "text": "Hello"}], "structuredContent": {"result": "Hello"}}
    assert essence(plain, plain)[2] == "structuredContent"
    odd = {"content": [*text, {"type": "text", "text": "Mind the gap"}], "structuredContent": {"a": 1}}
    assert essence(odd, one)[0] == {
        "content": [{"type": "text", "text": "Mind the gap"}],
        "structuredContent": {"a": 1},
    }
    assert essence(["x"], {"resultType": "complete", "roots": []}) == (["x"], {"roots": []}, "result")


@pytest.mark.requirement("U-S9")
def test_what_is_added_or_replaced_as_a_whole_is_one_change() -> None:
    rows = [{"id": number, "name": str(number)} for number in range(5)]
    more = compared({"rows": rows[:2], "total": 2}, {"rows": rows, "total": 5})
    assert (more.count, more.changes) == (3 * 4 + 1, 4)
    replaced = compared({"a": {"b": 1, "c": 2}}, {"a": 7})
    assert (replaced.count, replaced.changes) == (5, 1)
    assert compared({"a": 1}, {"a": 1}).changes == 0


@given(VALUES, VALUES)
def test_there_are_never_more_changes_than_lines_and_none_only_of_equals(left: Any, right: Any) -> None:
    found = compared(left, right)
    assert found.changes <= found.count and (found.changes == 0) == (found.count == 0)
