"""Findings: each rule with what breaks it, and what does not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.json.pointer import resolve
from app.core.json.text import Parsed, parse
from app.core.rules import frames, notifications, results
from app.core.wire import Finding

REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "a"}


def texts(value: Any) -> list[str]:
    return [each.text for each in frames.frame(Parsed(value), "in")]


@pytest.mark.requirement("R5-01")
@pytest.mark.parametrize(
    "value",
    [
        REQUEST,
        {**REQUEST, "id": "x", "params": {}},
        {"jsonrpc": "2.0", "method": "a", "extra": 1},
        {"jsonrpc": "2.0", "id": 0, "result": {}},
        {"jsonrpc": "2.0", "id": "", "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error", "data": None}},
    ],
)
def test_a_proper_message_has_no_findings(value: Any):
    assert texts(value) == []


@pytest.mark.requirement("R5-01")
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({**REQUEST, "jsonrpc": 2}, '`jsonrpc` must be "2.0" and is 2.'),
        ({"method": "a"}, '`jsonrpc` must be "2.0" and is missing.'),
        ({**REQUEST, "id": None}, "The id null is neither a string nor an integer."),
        ({**REQUEST, "id": 1.5}, "The id 1.5 is neither a string nor an integer."),
        ({**REQUEST, "id": True}, "The id true is neither a string nor an integer."),
        ({**REQUEST, "params": [1]}, "`params` is not an object"),
        ({**REQUEST, "result": {}}, "A message with `method` carries no `result` and no `error`."),
        ({**REQUEST, "method": None}, "`method` is not a string."),
        ({"jsonrpc": "2.0", "id": 1}, "There is no `method`, no `result` and no `error`"),
        ({"jsonrpc": "2.0", "id": None, "result": {}}, "The id null is neither"),
        ({"jsonrpc": "2.0", "result": {}}, "This reply has no id"),
        ({"jsonrpc": "2.0", "id": 1, "result": [], "error": {"code": 1, "message": ""}}, "not both"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": ""}}, "`error` needs an integer `code`"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": True, "message": ""}}, "`error` needs an integer `code`"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}, "`error` needs an integer `code`"),
        ({"jsonrpc": "2.0", "id": 1, "error": 1}, "`error` is not an object"),
        ([1], "This is an array"),
        ("x" * 100, 'the bare value "' + "x" * 39),
    ],
)
def test_what_breaks_json_rpc_is_said(value: Any, words: str):
    assert any(words in text for text in texts(value)), texts(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]), json_values))
def test_no_message_is_too_odd_to_judge(value: Any):
    for finding in frames.frame(Parsed(value), "in"):
        assert finding.id in ("R5-01", "R5-40") and len(finding.text) < 300
    assert frames.frame(Parsed(value), "out") == []


@pytest.mark.requirement("R5-40")
def test_a_problem_stands_for_the_line_and_remarks_stand_beside_it():
    [finding] = frames.frame(Parsed(problem="Not JSON."), "in")
    assert (finding.id, finding.level, finding.text) == ("R5-40", "must", "Not JSON.")
    assert [each.id for each in frames.frame(parse(b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"a"}'), "in")] == ["R5-01"]


@pytest.mark.requirement("R5-23")
@pytest.mark.parametrize(
    ("before", "now", "fine"),
    [
        (None, 0, True),
        (0.0, 0.5, True),
        (1.0, 1, False),
        (2.0, 1, False),
        (None, "1", False),
        (None, True, False),
        (None, None, False),
        (1.0, 10**400, False),
        (None, -5, True),
    ],
)
def test_progress_rises(before: float | None, now: Any, fine: bool):
    assert (notifications.progress_rises(before, now) == []) is fine


@pytest.mark.parametrize(
    ("value", "number"), [(1, 1.0), (1.5, 1.5), (True, None), ("1", None), (None, None), (10**400, None), ([], None)]
)
def test_a_number_is_one_that_a_float_can_hold(value: Any, number: float | None):
    assert notifications.number(value) == number


@pytest.mark.requirement("R5-03")
def test_what_is_said_of_a_version():
    assert results.version_answer("2025-11-25", "2025-11-25") == []
    [lower], [unknown] = (results.version_answer("2025-11-25", got) for got in ("2024-11-05", [1] * 100))
    assert lower.level == "note"
    assert unknown.level == "should" and len(unknown.text) < 200


@pytest.mark.requirement("F12", "R5-24")
def test_what_is_said_of_a_reply_to_nobody():
    assert "No request of ours has the id" in frames.stray_reply("x" * 1_000, None).text
    assert frames.stray_reply(1, "answered").level == "must"
    assert frames.stray_reply(1, "cancelled") == Finding(
        "R5-24",
        "note",
        "This reply came after the request was cancelled.",
        "It was ignored, as the specification asks.",
    )


@pytest.mark.parametrize(
    ("method", "rule"), [("tools/call", "R5-29"), ("resources/read", "R5-27"), ("ping", "R5-25"), ("x/y", "R5-01")]
)
def test_a_result_that_does_not_fit_names_its_rule_and_the_first_complaints(method: str, rule: str):
    finding = results.result_shape(method, "2025-11-25", ["`a` missing", "`b` missing", "`c` missing", "d", "e"])
    assert finding.id == rule
    assert finding.text.endswith("`a` missing; `b` missing; `c` missing; and 2 more.")


# --- structured output ------------------------------------------------------------------------------------------------


def judged(schema: Any, content: Any) -> list[tuple[str, str]]:
    return [(each.id, each.text) for each in results.structured_output(schema, {"structuredContent": content})]


@pytest.mark.requirement("R5-29")
def test_output_that_fits_is_fine_and_output_that_does_not_is_pointed_at():
    schema = {"type": "object", "properties": {"a/b": {"items": {"type": "integer"}}}}
    assert judged(schema, {"a/b": [1, 2]}) == []
    [(rule, text)] = judged(schema, {"a/b": [1, "x"]})
    assert rule == "R5-29" and text.startswith("`/a~1b/1` does not fit the output schema")
    assert len(judged(schema, {"a/b": ["x"] * 100})) == 5
    assert judged({"type": "array"}, {})[0][1].startswith("`/` does not fit")


@pytest.mark.requirement("R5-29")
def test_a_finding_about_output_points_into_the_result():
    schema = {"properties": {"a/b": {"items": {"type": "integer"}}}, "type": "object"}
    cases: list[tuple[Any, str]] = [({"a/b": [1, "x"]}, "/a~1b/1"), ([], ""), ({"a/b": [["x" * 5_000]]}, "/a~1b/0")]
    for content, where in cases:
        result = {"structuredContent": content}
        [finding] = results.structured_output(schema, result)
        assert finding.pointer == f"/structuredContent{where}"
        resolve(result, finding.pointer)
    nulls = {"additionalProperties": {"type": "null"}}
    [long] = results.structured_output(nulls, {"structuredContent": {"k" * 5_000: 1}})
    assert long.pointer is None and len(long.text) < 700


@pytest.mark.requirement("R5-07", "R5-29")
@pytest.mark.parametrize(
    "dialect", ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
)
def test_a_declared_dialect_is_honoured(dialect: str):
    items = "prefixItems" if "2020" in dialect else "items"
    schema = {"$schema": dialect, "properties": {"x": {items: [{"type": "integer"}]}}}
    assert judged(schema, {"x": [1]}) == [] and judged(schema, {"x": ["1"]}) != []


@pytest.mark.requirement("R5-07", "S38")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": 12},
        {"$ref": "http://127.0.0.1:9/x"},
        {"$ref": "file:///etc/passwd"},
        {"$schema": "https://example.com/unknown"},
        {"pattern": "("},
        {"properties": {"x": {"$ref": "#/nowhere"}}},
    ],
)
def test_a_schema_that_cannot_be_used_is_a_note(schema: Any):
    [(rule, text)] = judged(schema, {"x": "y"})
    assert rule == "R6-11" and text.startswith("The output schema cannot be used")


@pytest.mark.requirement("S38")
def test_what_is_too_large_or_too_deep_is_not_checked():
    [(rule, text)] = judged({"enum": ["x" * 600_000]}, {})
    assert (rule, text) == ("R5-29", "The output schema is larger than 512 kB. So this result was not checked.")
    deep: Any = []
    for _ in range(399):
        deep = [deep]
    [(rule, text)] = judged({"properties": {"x": {"type": "integer"}}}, {"x": deep})
    assert rule == "R5-29" and text.startswith("It is nested deeper than 200 levels")


@pytest.mark.parametrize(("schema", "result"), [(None, {}), ("x", {}), ([], {}), ({"type": "object"}, None), ({}, [1])])
def test_without_a_schema_or_a_result_there_is_nothing_to_say(schema: Any, result: Any):
    assert results.structured_output(schema, result) == []
