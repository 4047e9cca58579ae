"""Schemas and submissions that mean harm: they cost a notice, never a page (S38, S40, R6-11).

Every case prints the processor time it took. The guard is ten times what is allowed, because it
shall catch what hangs and not what a busy machine delays.
"""

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from app import bounds
from app.core import forms
from app.core.schema.check import Check
from tests.unit.form_browser import Page, draw, entries

ALLOWED = 0.1
GUARD = 10


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    inner: Any = {"type": "string"}
    for _ in range(depth):
        inner = wrap(inner)
    return inner


def chain(length: int) -> Any:
    links = {str(at): {"$ref": f"#/$defs/{at + 1}"} for at in range(length)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": {**links, str(length): {}}}


def laughs(levels: int) -> Any:
    """Each definition is twice the next one."""
    defs: dict[str, Any] = {
        str(at): {"allOf": [{"$ref": f"#/$defs/{at + 1}"}, {"$ref": f"#/$defs/{at + 1}"}]} for at in range(levels)
    }
    defs[str(levels)] = {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(50)}}
    return {"$ref": "#/$defs/0", "$defs": defs}


def wide_merges(parts: int) -> Any:
    """Two large halves, merged again and again."""
    half = [{"properties": {f"{name}{at}": {"type": "string"} for at in range(4000)}} for name in "ab"]
    return {"allOf": [{"$ref": f"#/$defs/{at % 2}"} for at in range(parts)], "$defs": {"0": half[0], "1": half[1]}}


def everywhere(part: Any, count: int = 500) -> Any:
    """One definition that every property points to."""
    properties = {f"p{at}": {"$ref": "#/$defs/x"} for at in range(count)}
    return {"type": "object", "properties": properties, "$defs": {"x": part}}


def tool(**properties: Any) -> Any:
    return {"type": "object", "properties": properties}


def words(count: int) -> list[str]:
    return [f"value {at:06}" for at in range(count)]


ITSELF: Any = {"$ref": "#"}
NODE: Any = {"$ref": "#/$defs/n"}
TWICE: Any = {**NODE, "$defs": {"n": {"type": "object", "allOf": [tool(a=NODE), tool(a=NODE)]}}}
ALL_TO_ALL: Any = {str(at): {"allOf": [{"$ref": f"#/$defs/{to}"} for to in range(20)]} for at in range(20)}
CHOICES: Any = [tool(a={"type": "integer", "minimum": at}) for at in range(50)]
FRIGHT = "a" * 40 + "!"
BOMBS: dict[str, tuple[Any, Any]] = {
    "10,000 objects in one another": (nested(10_000, lambda inner: {**tool(a=inner), "required": ["a"]}), {}),
    "10,000 times allOf": (nested(10_000, lambda inner: {"allOf": [inner]}), "x"),
    "90 times allOf": (nested(90, lambda inner: {"allOf": [inner]}), "x"),
    "10,000 lists in one another": (nested(10_000, lambda inner: {"type": "array", "items": inner}), []),
    "100,000 properties": (tool(**{f"p{at}": {"type": "string"} for at in range(100_000)}), {"p1": "x"}),
    "15,000 properties": (tool(**{f"p{at}": {} for at in range(15_000)}), {"p1": "x"}),
    "an enum of 1 MB": (tool(a={"enum": words(80_000)}), {"a": "x"}),
    "an enum of 400 kB": (tool(a={"enum": words(25_000)}), {"a": "x"}),
    "a large enum everywhere": (everywhere({"enum": words(400)}), {"p1": "x"}),
    "a huge enum everywhere": (everywhere({"enum": words(20_000)}), {"p1": "x"}),
    "a long description everywhere": (everywhere({"type": "string", "description": "x" * 400_000}), {"p1": "x"}),
    "a reference to itself": (ITSELF, {"a": 1}),
    "two references in a circle": ({**NODE, "$defs": {"n": {"$ref": "#/$defs/m"}, "m": NODE}}, {}),
    "allOf of itself": ({"type": "object", "allOf": [ITSELF]}, {}),
    "oneOf of itself": ({"oneOf": [ITSELF, {"$ref": "#"}]}, {}),
    "itself, required": ({**tool(a=ITSELF, b=ITSELF), "required": ["a", "b"]}, {}),
    "10,000 references in a row": (chain(10_000), {"a": 1}),
    "a thousand million parts": (laughs(30), {"p1": "x"}),
    "8,000 large parts": (wide_merges(8_000), {"a1": "x"}),
    "everybody points to everybody": ({"$ref": "#/$defs/0", "$defs": ALL_TO_ALL}, {}),
    "twice the same way down": (TWICE, nested(30, lambda inner: {"a": {} if "type" in inner else inner})),
    "50 alternatives, 200 times": (
        {"type": "array", "items": {"anyOf": CHOICES}, "$defs": {"x": {"description": "x" * 300_000}}},
        [{"a": at} for at in range(200)],
    ),
    "a pattern that explodes": (tool(a={"type": "string", "pattern": "^(a+)+$"}), {"a": FRIGHT}),
    "a pattern that looks around": (tool(a={"type": "string", "pattern": "^(?=(a+)+b)(a|aa)+$"}), {"a": FRIGHT}),
    "patterns for keys": ({"type": "object", "patternProperties": {"^(a+)+$": {"type": "string"}}}, {FRIGHT: "x"}),
    "two enums to compare": ({"allOf": [{"enum": list(range(20_000))}, {"enum": list(range(20_000, 0, -1))}]}, 5),
}


@pytest.mark.requirement("S38", "R6-11")
@pytest.mark.parametrize("name", BOMBS)
def test_a_schema_bomb_becomes_a_form_or_a_box_in_no_time(name: str):
    schema, value = BOMBS[name]
    started = time.process_time()
    trees = [forms.build(schema), forms.build(schema, value)]
    built = time.process_time() - started
    for tree in trees:
        form = forms.Entries(entries(tree))
        forms.operate(form, "add:#")
        forms.build(schema, form=form)
    errors = forms.validate(schema, value)
    why = forms.unchecked(schema)
    took = time.process_time() - started
    pages = [draw(tree) for tree in trees]
    drawn = time.process_time() - started - took
    kinds = {one.kind for tree in trees for one in tree.walk()}
    print(
        f"{name}: built in {built / 2 * 1000:.0f} ms, all in {took * 1000:.0f} ms, drawn in {drawn * 500:.0f} ms,"
        f" {max(map(len, pages)) / 1000:.0f} kB; {trees[0].note or why or sorted(kinds)} {str(errors)[:80]}"
    )
    assert built / 2 < ALLOWED * GUARD
    assert took < 4 * ALLOWED * GUARD
    assert max(map(len, pages)) < 3_000_000
    assert Page(pages[1]).submitted() == entries(trees[1])
    assert forms.read(trees[1]).value == value


@pytest.mark.requirement("S38")
def test_what_is_too_much_is_one_box_with_the_reason():
    deep = forms.build(BOMBS["10,000 objects in one another"][0])
    assert (deep.kind, deep.note) == ("json", f"The schema is nested deeper than {bounds.SCHEMA_DEPTH} levels.")
    wide = forms.build(BOMBS["100,000 properties"][0], {"p1": "x"})
    assert (wide.kind, wide.note) == ("json", "The schema is larger than 512 kB.")
    assert forms.read(wide).value == {"p1": "x"}
    assert forms.unchecked(BOMBS["100,000 properties"][0]) == "The schema is larger than 512 kB."
    many = forms.build(BOMBS["15,000 properties"][0])
    assert many.kind == "json" and many.note == "It has 15\u202f000 properties, too many for the form."


@pytest.mark.requirement("S38")
def test_a_form_has_an_end():
    tree = forms.build(BOMBS["itself, required"][0])
    assert sum(1 for _ in tree.walk()) < 3 * bounds.DRAWN_FIELDS


@pytest.mark.requirement("S38", "R6-11", "R4-10")
def test_nothing_is_ever_fetched(monkeypatch: pytest.MonkeyPatch):
    def dialled(*args: Any) -> None:
        raise AssertionError(f"somebody dials {args}")

    monkeypatch.setattr(socket, "getaddrinfo", dialled)
    monkeypatch.setattr(socket.socket, "connect", dialled)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        for schema in (
            {"type": "object", "properties": {"a": {"$ref": address}}},
            {"$schema": address, "type": "object", "properties": {"a": {"type": "string"}}},
            {"$id": address, "type": "object", "properties": {"a": {"$ref": "other.json#/x"}}},
        ):
            tree = forms.build(schema, {"a": "x"})
            assert tree.kind == "object"
            assert forms.read(tree).value == {"a": "x"}
            forms.validate(schema, {"a": "x"})
            Check(schema, of_output=True)
        with pytest.raises(TimeoutError):
            listener.accept()
    remote = forms.build({"type": "object", "properties": {"a": {"$ref": address}}}).children[0]
    assert remote.kind == "json" and "fetches nothing" in remote.note
    assert "fetches nothing" in forms.unchecked({"properties": {"a": {"$ref": address}}})


@pytest.mark.requirement("R5-07")
def test_a_dialect_nobody_knows_counts_as_the_newest():
    schema = {"$schema": "https://example.org/my-dialect", "type": "object", "properties": {"a": {"type": "string"}}}
    assert forms.unchecked(schema) == ""
    assert forms.validate(schema, {"a": 1}) == {"/a": ["Must be text, not a whole number."]}


FIELDS = {
    "type": "object",
    "properties": {
        "n": {"type": "number"},
        "i": {"type": "integer"},
        "e": {"enum": ["a", "b"]},
        "l": {"type": "array", "items": {"type": "string"}},
        "b": {"type": "boolean"},
        "any": {},
    },
}


@pytest.mark.requirement("S40")
@pytest.mark.parametrize(
    "pairs",
    [
        [
            ("/unknown", "x"),
            ("__proto__", "x"),
            ("/__proto__", "x"),
            ("/__proto__/polluted", "x"),
            ("/constructor", "x"),
        ],
        [
            ("/n/0", "x"),
            ("/l#item", "²"),
            ("/l#item", "9" * 5000),
            ("/l#item", "-1"),
            ("/l#use", "1"),
            ("/l#list", "1"),
        ],
        [("/e", "7"), ("/e", "-1")],
        [("/e", "a")],
        [("/e", "9" * 5000)],
        [("/b", "yes"), ("/b", "1")],
        [("##more#item", "x"), ("##more/x#key", "a")],
    ],
)
def test_what_is_not_in_the_schema_is_dropped(pairs: list[tuple[str, str]]):
    form = forms.Entries(pairs)
    for operation in ("add:²", "remove:/l/²", "up:/l/" + "9" * 5000, "nonsense", "", "drop", "down:/l/0"):
        forms.operate(form, operation)
    filled = forms.read(forms.build(FIELDS, form=form))
    assert filled.errors == {}
    assert filled.value in ({}, {"l": []})


@pytest.mark.requirement("S40")
def test_the_other_keys_cannot_be_taken_from_a_form_by_hand():
    form = forms.Entries([("/i", "1"), ("##more#item", "0"), ("##more/0#key", "k"), ("##more#use", "0")])
    assert forms.read(forms.build(FIELDS, form=form)).value == {"i": 1}


@pytest.mark.requirement("S40")
@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "-Infinity", "1e400", "-1e999", "0x10", "1,5", "abc", "1_000", "٣", "1" * 5000]
)
@pytest.mark.parametrize("name", ["/n", "/i", "/any"])
def test_what_is_no_number_is_an_error(name: str, text: str):
    pairs = [(name, text), *([(f"{name}#json", "1")] if name == "/any" else [])]
    filled = forms.read(forms.build(FIELDS, form=forms.Entries(pairs)))
    assert filled.value == {}
    (sentence,) = filled.errors[name]
    assert sentence.endswith(".") and len(sentence) < 120


@pytest.mark.requirement("S40")
def test_numbers_that_are_some_come_exactly():
    form = forms.Entries([("/n", " 0.1 "), ("/i", "1e20"), ("/any", "12345678901234567890"), ("/any#json", "1")])
    assert forms.read(forms.build(FIELDS, form=form)).value == {"n": 0.1, "i": 10**20, "any": 12345678901234567890}
