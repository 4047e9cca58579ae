"""What was changed in a text, marked in place: nothing of either text is lost, and no text takes long."""

import time

import pytest

from app.web.asks.edits import pieces

CASES = [
    ("", ""),
    ("same", "same"),
    ("", "new words"),
    ("old words", ""),
    ("A caption. Make it funny.", "A caption. At most 12 words, no puns."),
    ("one two three four five six", "one 2 three four 5 six"),
    ("line\n\nline", "line\nline"),
    (" lead", "lead "),
    ("a b a b a b", "b a b a b a"),
]


@pytest.mark.requirement("R3-02", "R3-03", "S001 modifications")
@pytest.mark.parametrize(("before", "after"), CASES)
def test_both_texts_can_be_read_off_what_is_marked(before: str, after: str):
    found = pieces(before, after)
    assert "".join(text for kind, text in found if kind != "ins") == before
    assert "".join(text for kind, text in found if kind != "del") == after
    assert all(text for _, text in found)


def test_what_is_marked_is_what_was_changed():
    assert pieces("the early ferry is humming its song.", "the early ferry already hums.") == [
        ("", "the early ferry "),
        ("del", "is humming its song."),
        ("ins", "already hums."),
    ]
    assert [kind for kind, _ in pieces("one two three four", "one 2 three 4")] == ["", "del", "ins", "", "del", "ins"]


def test_long_and_alike_texts_take_no_time():
    one, two = "a b " * 20_000, "b a " * 20_000
    began = time.perf_counter()
    for before, after in ((one, two), ("a b " * 40, "b a " * 40), (one, f"x {one} y")):
        pieces(before, after)
    assert time.perf_counter() - began < 5
