"""Numbers for people."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.figures import grouped, measured


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0"),
        (999, "999"),
        (12_408, "12\u202f408"),
        (-1_234_567, "-1\u202f234\u202f567"),
        (1234.5, "1\u202f234.5"),
        (10**15, "1000000000000000"),
        (10**60, "1" + "0" * 38 + "…"),
    ],
)
def test_numbers_are_grouped(number: float, words: str):
    assert grouped(number) == words


@pytest.mark.parametrize(
    ("number", "words"), [(3, "3"), (3.0, "3"), (0.25, "0.25"), (1 / 3, "0.333333"), (10**15, "1000000000000000")]
)
def test_what_is_measured_has_no_needless_digits(number: float, words: str):
    assert measured(number) == words


@given(st.floats() | st.integers())
def test_every_number_has_words(number: float):
    assert 0 < len(grouped(number)) <= 40
    assert measured(number) or math.isnan(number)
