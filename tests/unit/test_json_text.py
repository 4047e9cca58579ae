"""JSON text: nothing is lost, nothing invented, and nothing raises."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.bounds import JSON_DEPTH, JSON_DIGITS, JSON_SEPARATORS, THREAD_ABOVE
from app.core.json.text import (
    Fault,
    Parsed,
    dump,
    heavy,
    members,
    parse,
    parse_async,
    share_equal,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(values)
def test_what_is_written_is_read_back(value: Any):
    raw = dump(value)
    assert b"\n" not in raw and b"\r" not in raw
    assert parse(raw) == Parsed(value)


@given(st.binary(max_size=200))
@example(b"")
@example(b"\xef\xbb\xbf")
@example(b"\xff")
@example(b"NaN")
@example(b"[" * 10_000)
@example(b'"\\ud800"')
@example(b"1" * 10_000)
@example(b"-" + b"1" * 10_000)
@example(b"1e99999")
@example(b'{"a":1,"a":2}')
def test_no_bytes_raise(raw: bytes):
    parsed = parse(raw)
    if parsed.problem is None:
        dump(parsed.value)


@given(st.lists(values, min_size=1, max_size=6), st.sampled_from(["", " ", "\t", "\r\n "]))
def test_the_members_of_an_array_are_exact(items: list[Any], space: str):
    texts = [json.dumps(item, ensure_ascii=index % 2 == 0) for index, item in enumerate(items)]
    raw = (space + "[" + space + f"{space},{space}".join(texts) + space + "]" + space).encode("utf-8", "surrogatepass")
    assert members(raw) == [text.encode() for text in texts]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", "Not JSON: a key in double quotes is missing at position 1."),
        (b"{} {}", "Not JSON: there is more after the end at position 3."),
        (b'{"a":NaN}', "Not JSON: NaN is not a JSON value."),
        (b"[Infinity]", "Not JSON: Infinity is not a JSON value."),
        (b'"caf\xe9"', "Byte 0xe9 at position 4 is not UTF-8."),
        (b"\xef\xbb\xbf\xff", "Byte 0xff at position 3 is not UTF-8."),
        (b"[" * 5000 + b"]" * 5000, f"It is nested deeper than {JSON_DEPTH} levels, which is more than Parley reads."),
    ],
)
def test_a_problem_is_a_sentence_with_its_place(raw: bytes, words: str):
    assert parse(raw).problem == words


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("raw", "line", "column", "offset", "what"),
    [
        (b"", 1, 1, 0, "a value is missing"),
        (b'{"a": 1', 1, 8, 7, "a comma or the closing bracket is missing"),
        (b'{"a":\n tru}', 2, 2, 7, "a value is missing"),
        ('["é",\r\n\r\n x]'.encode(), 3, 2, 10, "a value is missing"),
        (b"[1] x", 1, 5, 4, "there is more after the end"),
        (b'{"a"\n\n1}', 3, 1, 6, "a colon is missing"),
        (b'["\t"]', 1, 3, 2, r"a line break or tab inside a text is written \n or \t"),
        (b'["\\x"]', 1, 3, 2, "this backslash means nothing in JSON"),
        (b'[\n"a', 2, 1, 2, "this text has no closing quote"),
    ],
)
def test_a_fault_has_its_place_as_data(raw: bytes, line: int, column: int, offset: int, what: str, strict: bool):
    parsed = parse(raw, strict=strict)
    assert parsed.fault == Fault(what, line, column, offset)
    assert parsed.problem == f"Not JSON: {what} at position {offset}."


@given(values)
def test_strictly_what_is_written_is_read_back(value: Any):
    assert parse(dump(value), strict=True) == Parsed(value)


@pytest.mark.parametrize(
    ("raw", "problem", "value"),
    [
        (b"\xef\xbb\xbf{}", "The text begins with a byte order mark.", {}),
        (b'{"a":1,"a":2}', 'The key "a" stands twice in one object.', {"a": 2}),
        (b"[1e400]", "1e400 is too large for a number in JSON.", None),
        (b"[-1e999]", "-1e999 is too large for a number in JSON.", None),
        (b"1" * 5_000, "A number of 5,000 digits is too long.", None),
        (b"1" * (JSON_DIGITS + 1), "A number of 4,000 digits is too long.", None),
        (b"[NaN]", "Not JSON: NaN is not a JSON value.", None),
        (b'"caf\xe9"', "Byte 0xe9 at position 4 is not UTF-8.", None),
        (b'{"b":1,"b":"' + b"x" * 2_000_000 + b'"}', 'The key "b" stands twice in one object.', {"b": "x" * 2_000_000}),
    ],
    ids=lambda each: repr(each)[:24],
)
def test_strictly_nothing_is_made_good(raw: bytes, problem: str, value: Any):
    parsed = parse(raw, strict=True)
    assert (parsed.problem, parsed.value, parsed.fault) == (problem, value, None)


def test_strictly_half_a_character_stays_and_is_remarked():
    """A tester may want to send it; whoever cannot use it says so."""
    parsed = parse(b'["\\ud800"]', strict=True)
    assert (parsed.value, parsed.problem) == (["\ud800"], None)
    assert parsed.remarks == ("It contains half of a surrogate pair, which is no character.",)


def test_strictly_much_is_read_all_the_same():
    raw = b"[" + b"0," * JSON_SEPARATORS + b"0]"
    assert parse(raw).unread is not None
    assert len(parse(raw, strict=True).value) == JSON_SEPARATORS + 1


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_depth_has_an_exact_limit(opening: bytes):
    closing = {b"[": b"]", b'{"a":': b"}"}[opening]

    def nested(depth: int) -> bytes:
        return opening * (depth - 1) + opening[:1] + closing[-1:] * depth

    assert parse(nested(JSON_DEPTH)).problem is None
    assert parse(nested(JSON_DEPTH + 1)).problem is not None
    wide = b"[" + b",".join([b"[]"] * (JSON_DEPTH * 2)) + b"]"
    assert parse(wide).problem is None, "many containers are not deep containers"


@pytest.mark.parametrize(
    ("raw", "value", "words"),
    [
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}, "byte order mark"),
        (b'{"a":1,"a":2}', {"a": 2}, 'The key "a" stands twice'),
        (b'{"x":[{"b":1,"b":1}]}', {"x": [{"b": 1}]}, 'The key "b" stands twice'),
        (b'"\\ud800x"', "\ufffdx", "surrogate"),
        (b'{"\\udc00":["\\ud83d"]}', {"\ufffd": ["\ufffd"]}, "surrogate"),
    ],
)
def test_what_should_not_have_been_written_is_remarked(raw: bytes, value: Any, words: str):
    parsed = parse(raw)
    assert parsed.problem is None and parsed.value == value
    assert any(words in remark for remark in parsed.remarks)


def test_a_pair_of_surrogates_is_one_character_and_no_remark():
    assert parse(b'"\\ud83c\\udf0a"') == Parsed("🌊")


def test_numbers_beyond_a_float_or_beyond_reason_stay_as_text():
    assert parse(b"[1e400,-1e400,1e308]").value == ["1e400", "-1e400", 1e308]
    huge = "9" * 5_000
    assert parse(f"[{huge},-{huge},7]".encode()).value == [huge, f"-{huge}", 7]
    assert parse(b"123456789012345678901234567890").value == 123456789012345678901234567890


def test_remarks_are_bounded():
    twice = ",".join(['{"a":1,"a":2}'] * 100)
    assert len(parse(f"[{twice}]".encode()).remarks) == 5


def test_writing_keeps_characters_and_survives_what_utf8_cannot_say():
    assert dump({"é": "🌊"}) == '{"é":"🌊"}'.encode()
    assert dump("\ud800") == b'"\\ud800"'
    with pytest.raises(ValueError, match="Out of range float"):
        dump(math.nan)


async def test_large_texts_are_read_all_the_same():
    raw = b'"' + b"a" * (THREAD_ABOVE + 1) + b'"'
    assert await parse_async(raw) == parse(raw)
    assert await parse_async(b"1") == Parsed(1)


def test_equal_parts_are_held_once_and_nothing_else_changes():
    value = json.loads(
        '{"a": ["same", {"b": "same", "c": [1, null, true, "other"]}], "d": "same",'
        ' "e": [{"c": [1, null, true, "other"], "b": "same"}, {"b": "same", "c": [1, null, true, "other"]}],'
        ' "f": [[1], [1.0], [true], [1], [[]], {}, [], {}]}'
    )
    before = json.dumps(value)
    shared = share_equal(value)
    assert json.dumps(shared) == before
    assert shared["d"] is shared["a"][0] is shared["a"][1]["b"]
    assert shared["a"][1] is shared["e"][1] and shared["a"][1]["c"] is shared["e"][0]["c"]
    assert shared["e"][0] is not shared["e"][1], "their members stand in another order"
    numbers = shared["f"]
    assert numbers[0] is numbers[3] and numbers[0] is not numbers[1] and numbers[1] is not numbers[2]
    assert numbers[4][0] is numbers[6] and numbers[5] is numbers[7]
    assert share_equal("text") == "text" and share_equal(None) is None
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert share_equal(deep) is deep
    while deep:
        deep = deep[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": ["b", 1, None]}, False),
        ({"a": "x" * 300_000}, True),
        ({"a": [{"b": "x" * 100_000}, {"b": ["x" * 100_000, "x" * 100_000]}]}, True),
        ([0] * 100_000, True),
        ({"x" * 300_000: 1}, True),
        ("x" * 200_000, False),
    ],
)
def test_a_value_is_heavy_when_its_text_is_long(value: Any, expected: bool):
    assert heavy(value) is expected
