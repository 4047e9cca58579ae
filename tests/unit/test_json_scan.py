"""The shape of a JSON text without building it, against Python's own reader: the same values, in the same places."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.bounds import JSON_SEPARATORS
from app.core.json import scan as jsonscan
from app.core.json import text as jsontext
from app.core.json.text import Parsed

UNREAD = Parsed(problem="too much", unread="too much")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text('\\"{}[],: \n\u00e9')
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=30,
)
OBJECTS = st.dictionaries(TEXTS | st.sampled_from(["id", "method", "result", "error"]), VALUES, max_size=8)
SPACES = st.text(" \t\r\n", max_size=3)


def written(value: Any, spaces: str, ascii_only: bool) -> bytes:
    """JSON with white space at every place where it may stand."""
    text = json.dumps(value, ensure_ascii=ascii_only, separators=(f"{spaces},{spaces}", f"{spaces}:{spaces}"))
    return f"{spaces}{text}{spaces}".encode()


@pytest.mark.requirement("H11")
@settings(max_examples=60)
@given(value=OBJECTS, spaces=SPACES, ascii_only=st.booleans(), bom=st.booleans())
def test_h11_the_head_of_an_object_that_is_small_is_all_of_it(
    value: dict[str, Any], spaces: str, ascii_only: bool, bom: bool
):
    raw = (b"\xef\xbb\xbf" if bom else b"") + written(value, spaces, ascii_only)
    found = jsontext.head(raw, UNREAD)
    assert (found.value, found.problem, found.unread) == (value, None, "too much")


@pytest.mark.requirement("H11")
@settings(max_examples=40)
@given(value=OBJECTS, spaces=SPACES, ascii_only=st.booleans())
def test_h11_members_and_separators_are_found_whatever_window_they_fall_into(
    value: dict[str, Any], spaces: str, ascii_only: bool
):
    raw = written(value, spaces, ascii_only)
    kept = jsonscan._WINDOW, jsonscan._FIRST_WINDOW
    try:
        for width in (1, 2, 3, 7, 64 * 1024):
            jsonscan._WINDOW, jsonscan._FIRST_WINDOW = width, min(width, 256)
            *members, (no_key, end, _) = jsonscan.members(raw, jsonscan.skip_space(raw, 0))
            assert (no_key, raw[end:].strip()) == (b"", b"")
            assert [(json.loads(key), json.loads(raw[start:stop])) for key, start, stop in members] == list(
                value.items()
            )
            assert jsonscan.separators(raw, 0) == _count(value)
    finally:
        jsonscan._WINDOW, jsonscan._FIRST_WINDOW = kept


def _count(value: Any) -> int:
    """The commas, colons and opening brackets that writing this value takes."""
    if isinstance(value, dict):
        return 1 + max(0, len(value) - 1) + len(value) + sum(map(_count, value.values()))
    return 1 + max(0, len(value) - 1) + sum(map(_count, value)) if isinstance(value, list) else 0


@pytest.mark.requirement("H11")
@settings(max_examples=150)
@given(text=st.text('{}[]",:\\u 0a\n', max_size=40))
def test_h11_what_is_no_json_ends_in_words_and_never_otherwise(text: str):
    """A head may be read of a text that breaks later; it is never another head than the reader would have found."""
    found = jsontext.head(text.encode(), UNREAD)
    try:
        value = json.loads(text)
    except ValueError:
        assert found.value is None or isinstance(found.value, dict)
        return
    assert found.value == value if isinstance(value, dict) else found.value is None


@pytest.mark.requirement("H11")
@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"id":1,"id":2,"result":{}}', {"id": 2, "result": {}}),
        ('{"\\u0069d":7,"m\\"{[":"\\\\","result":null}', {"id": 7, 'm"{[': "\\", "result": None}),
        ('{"result":$MANY,"id":"after"}', {"result": [], "id": "after"}),
        ('{"id":1,"result":{"isError":true,"content":$MANY,"resultType":"complete"}}', None),
        ('{"id":1,"error":{"code":-1,"message":"no","data":{"deep":$MANY}}}', None),
        ('{"id":1,"result":$MANY,"result":4}', {"id": 1, "result": 4}),
        ('{"id":1,"result":4,"result":$MANY}', {"id": 1, "result": []}),
        ('{"id":' + "9" * 5_000 + ',"method":"x"}', {"id": "9" * 5_000, "method": "x"}),
    ],
)
def test_h11_the_head_has_what_is_small_and_leaves_the_rest_empty(raw: str, value: dict[str, Any] | None):
    many = "[" + '[1,{"a}":"]"}],' * 20_000 + "0]"
    expected = {
        4: {"id": 1, "result": {"isError": True, "content": [], "resultType": "complete"}},
        5: {"id": 1, "error": {"code": -1, "message": "no", "data": {}}},
    }
    found = jsontext.head(raw.replace("$MANY", many).encode(), UNREAD).value
    assert found == (value if value is not None else expected[4 if "isError" in raw else 5])


@pytest.mark.requirement("H11")
@pytest.mark.parametrize(
    "raw", ['{"id":1,"result":[', '{"id":1} x', '{"id" 1}', '{"id":1,}', '{"a":"', "{", '{"a":tru}']
)
def test_h11_a_head_that_is_broken_says_where(raw: str):
    problem = jsontext.head(raw.encode(), UNREAD).problem
    assert problem is not None and problem.startswith("Not JSON: ") and "at position" in problem


@pytest.mark.requirement("H11")
def test_h11_a_text_is_built_up_to_the_limit_and_not_above():
    def text(separators: int) -> bytes:
        return b"[" + b"0," * (separators - 1) + b"0]"

    assert len(jsontext.parse(text(JSON_SEPARATORS)).value) == JSON_SEPARATORS
    above = jsontext.parse(text(JSON_SEPARATORS + 1))
    assert above.value is None and above.unread is not None and above.unread == above.problem
    assert f"{JSON_SEPARATORS + 1:,}" in above.unread
    inside = json.dumps([text(JSON_SEPARATORS).decode()] * 2).encode()
    assert len(jsontext.parse(inside).value) == 2, "what stands in a text is no structure"


@pytest.mark.requirement("H02")
@pytest.mark.parametrize("digits", [3_999, 4_000, 8_000_000])
def test_h02_digits_are_looked_through_in_linear_time(digits: int):
    """The guard is far above what it takes; it took half a minute."""
    raw = b"[" + (b"7" * digits + b",") * (8_000_000 // digits) + b"0]"
    began = time.monotonic()
    value = jsontext.parse(raw).value
    assert time.monotonic() - began < 5
    assert str(value[0])[:5] == "77777" and value[-1] == 0


@pytest.mark.requirement("H02")
@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("1" * 299, int("1" * 299)),
        ("1" * 3_999, int("1" * 3_999)),
        ("1" * 4_000, "1" * 4_000),
        ("1" * 400 + ".5", "1" * 400 + ".5"),
        ("1e400", "1e400"),
        ("0." + "0" * 400 + "1", 0.0),
        ("-" + "1" * 4_000, "-" + "1" * 4_000),
    ],
)
def test_h02_numbers_that_nothing_here_can_hold_stay_as_they_are_written(raw: str, value: Any):
    assert jsontext.parse(f"[{raw}]".encode()).value == [value]


@pytest.mark.requirement("H02")
def test_h02_so_many_long_integers_that_writing_them_takes_seconds_stay_texts():
    value = jsontext.parse(b"[" + (b"7" * 3_000 + b",") * 200 + b"0]").value
    kinds = [type(each) for each in value]
    assert kinds[0] is int and kinds[-2] is str and kinds[-1] is int
