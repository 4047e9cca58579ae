"""What a room says, counted: bars that stay in their places, majorities, ties, and what nobody may see."""

from typing import Any

from app.core import elicitation, room
from app.core.room import Ballot

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "town": {"type": "string", "title": "Destination", "enum": ["bergen", "porto", "home"]},
        "fast": {"type": "boolean"},
        "days": {"type": "integer", "minimum": 1},
        "with": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
        "why": {"type": "string"},
    },
    "required": ["town"],
}


def ballots(*contents: dict[str, Any]) -> list[Ballot]:
    return [Ballot(f"b{at}", content) for at, content in enumerate(contents)]


def fits(content: dict[str, Any]) -> bool:
    return not elicitation.misfits({"requestedSchema": SCHEMA}, {"action": "accept", "content": content})


def test_an_answer_in_one_line_tells_what_was_written_from_what_was_chosen():
    said = {"town": "porto", "fast": True, "with": ["c", "a"], "why": "Ferries, obviously"}
    assert room.line(said, room.texts_of(SCHEMA)) == "porto, yes, c, a, “Ferries, obviously”"
    assert room.line({}, room.texts_of(SCHEMA)) == "yes"


def test_bars_stand_in_the_order_of_the_schema_and_texts_are_no_bars():
    said = ballots(
        {"town": "porto", "why": "Fish"}, {"town": "home"}, {"town": "porto", "fast": True, "with": ["c", "a"]}
    )
    town, fast, days, people, why = room.tallies(SCHEMA, said)
    assert [(bar.label, bar.many, bar.leads) for bar in town.bars] == [
        ("bergen", 0, False),
        ("porto", 2, True),
        ("home", 1, False),
    ]
    assert town.label == "Destination" and town.texts == []
    assert [(bar.label, bar.many) for bar in fast.bars] == [("Yes", 1), ("No", 0)]
    assert days.bars == [] and [bar.many for bar in people.bars] == [1, 0, 1]
    assert (why.bars, why.texts) == ([], ["Fish"])


def test_the_majority_of_each_field():
    said = ballots(
        {"town": "bergen", "fast": True, "days": 4, "with": ["a"], "why": "Rain"},
        {"town": "porto", "fast": True, "with": ["a", "b"], "why": " rain"},
        {"town": "bergen", "with": ["b", "c"]},
    )
    found = room.majority(SCHEMA, said, fits)
    assert found is not None and found.tied == ()
    # `days` was left out by most; "rain" was written twice, by nobody else anything.
    assert found.content == {"town": "bergen", "fast": True, "with": ["a", "b"], "why": "Rain"}
    assert room.majority(SCHEMA, [], fits) is None


def test_a_tie_is_named_and_a_text_that_one_person_wrote_is_nobodys_majority():
    found = room.majority(SCHEMA, ballots({"town": "porto", "why": "Mine"}, {"town": "bergen", "why": "Yours"}), fits)
    assert found is not None and (found.content, found.tied) == ({"town": "porto"}, ("Destination",))


def test_what_does_not_fit_as_a_whole_gives_way_to_what_most_people_sent():
    said = ballots({"town": "porto", "days": 1}, {"town": "bergen", "days": 2}, {"town": "porto", "days": 2})
    whole = room.majority(SCHEMA, [*said, *ballots({"town": "bergen", "days": 2})], lambda content: False)
    assert whole is not None and whole.content == {"town": "bergen", "days": 2}


def test_a_vote_and_what_may_be_told_of_an_answer():
    assert room.voted(["b2", "b1", "b2", "nobody"], ["b1", "b2"]) == ("b2", False)
    assert room.voted(["b2", "b1"], ["b1", "b2"]) == ("b1", True)
    assert room.voted([], ["b1"]) == (None, False)
    chosen = room.without_texts(SCHEMA, {"town": "porto", "fast": False, "why": "Secret"})
    assert room.line(chosen) == "porto, no" and room.line({}) == "yes"
