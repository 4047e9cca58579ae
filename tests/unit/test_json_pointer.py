"""JSON Pointer: what is joined is split again, and it names what RFC 6901 says that it names."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.json.pointer import child, escape, join, resolve, split, unescape

RFC = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, 'k"l': 6, " ": 7, "m~n": 8}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", RFC),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_the_examples_of_the_rfc(pointer: str, value: Any):
    assert resolve(RFC, pointer) == value


@given(st.lists(st.text('~/01a"', max_size=4)))
def test_what_is_joined_is_split_again(path: list[str]):
    assert split(join(path)) == path
    assert [unescape(escape(part)) for part in path] == path


@given(st.lists(st.text("~/01", max_size=3), max_size=6))
def test_a_joined_path_leads_to_its_value(path: list[str]):
    value: Any = "there"
    for key in reversed(path):
        value = {key: value}
    assert resolve(value, join(path)) == "there"


@pytest.mark.parametrize(
    "pointer", ["/nowhere", "/foo/2", "/foo/-1", "/foo/-", "/foo/²", "/foo/x", "/foo/" + "9" * 5000, "/foo/0/b", "//"]
)
def test_what_is_not_there_is_a_key_error(pointer: str):
    with pytest.raises(KeyError):
        resolve(RFC, pointer)
    with pytest.raises(KeyError):
        child("text", "0")
