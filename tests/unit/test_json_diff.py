"""What differs between two conversations, in sentences."""

from dataclasses import replace

from app.core.json.diff import Told, differences, json_differences

SIDE = Told(
    "2026-07-28", "modern", 2, 2, 100, 200, 2, 1, ("form",), frozenset({"input-required"}), "done", {"a": 1}, ""
)


def test_the_same_asks_by_another_way_are_said_so() -> None:
    other = replace(SIDE, version="2025-11-25", legs=1, rounds=0, origins=frozenset({"request"}), result={"a": 1})
    found = differences(SIDE, other)
    assert found[0] == "Revision 2026-07-28 against 2025-11-25."
    assert "Requests of ours for this call: 2 against 1." in found
    assert "The same asks (form), in 1 round against as requests of the server." in found
    assert found[-1] == "The results are the same."


def test_results_are_compared_without_what_only_one_era_has() -> None:
    left = replace(SIDE, result={"resultType": "complete", "_meta": {"x": 1}, "content": [1, {"b/c": 2}]})
    right = replace(SIDE, result={"content": [1, {"b/c": 3, "d": None}]})
    assert differences(left, right)[-1] == "The results differ at /content/1/b~1c."
    assert json_differences({"a": 1}, {"a": True}) == ["/a"] and json_differences(1, 2) == ["/"]
    assert json_differences([1], [1, 2]) == ["/"] and len(json_differences(list(range(50)), [None] * 50)) == 20


def test_other_asks_ends_and_errors_are_named() -> None:
    other = replace(SIDE, asks=("form", "url"), state="failed", error="-32603 no", sent=3, sent_bytes=9)
    found = " ".join(differences(SIDE, other))
    for words in (
        "Asks: form against form, url.",
        "done against failed",
        "none against -32603 no",
        "2 sent",
        "100 sent",
    ):
        assert words in found
    assert "as input of a task" in " ".join(
        differences(SIDE, replace(SIDE, rounds=0, origins=frozenset({"task-input"})))
    )
