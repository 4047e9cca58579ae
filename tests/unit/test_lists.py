"""A list of what a server has: its items found by name, the first of equal ones, and what was remarked about it."""

from typing import Any

import pytest

from app.core.lists import Listing
from app.core.wire import Finding

NAMES: list[Any] = ["a", "b", "a", None, 7, "", ["x"], {"y": 1}]


def test_items_are_found_by_name_and_of_equal_names_the_first_counts():
    listing = Listing(items=[*({"name": name, "at": at} for at, name in enumerate(NAMES)), "no object", {}])
    assert [listing.place(name) for name in ("a", "b", "", "c")] == [0, 1, 5, None]
    assert (listing.by_name("a") or {})["at"] == 0
    assert [listing.alone(name) for name in ("a", "b", "", "c")] == [False, True, True, False]
    assert [listing.by_name(odd) for odd in (None, 7, ["x"], {"y": 1}, "no object")] == [None] * 5


def test_another_member_may_name_the_items():
    listing = Listing(items=[{"name": "a", "uri": "x:1"}, {"name": "b", "uri": "x:2"}])
    assert listing.by_name("x:2", "uri") == {"name": "b", "uri": "x:2"} and listing.by_name("x:2") is None


def test_a_list_that_grew_is_looked_through_again():
    listing = Listing(items=[{"name": "a"}])
    assert listing.place("b") is None
    listing.items.append({"name": "b"})
    assert listing.place("b") == 1


@pytest.mark.requirement("R5-26", "R6-23")
def test_a_list_says_why_it_is_not_complete_and_what_may_not_be_offered():
    rejected = Finding("R6-23", "must", "No.")
    listing = Listing(stopped="There is more.", rejected=[({"name": "bad"}, rejected)])
    assert [(each.id, each.text) for each in listing.findings] == [("R5-26", "There is more."), ("R6-23", "No.")]
