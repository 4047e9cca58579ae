"""Forms in detail: which control a schema gets, what buttons do, what a value is told, and where."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from app.core import forms
from app.core.schema import explain
from app.secret_names import sounds_secret
from tests.unit.form_browser import Page, draw, entries

D7 = "http://json-schema.org/draft-07/schema#"


def one(schema: Any, value: Any = forms.MISSING, required: bool = False) -> forms.Field:
    """The field of a property `a`."""
    root = {"type": "object", "properties": {"a": schema}, "required": ["a"] if required else []}
    return forms.build(root, value if value is forms.MISSING else {"a": value}).children[0]


def press(schema: Any, tree: forms.Field, operation: str, **typed: str) -> forms.Field:
    """The tree after a button, with some texts changed before it is pressed."""
    form = forms.Entries(entries(tree))
    for name, text in typed.items():
        form.set_all(name, [text])
    forms.operate(form, operation)
    return forms.build(schema, form=form)


# --- kinds -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R4-04", "R4-05", "R4-06")
@pytest.mark.parametrize(
    ("schema", "kind", "words"),
    [
        ({"type": "string"}, "text", "string"),
        ({"type": "string", "maxLength": 2000}, "long", "string"),
        ({"type": "string", "format": "email"}, "email", "string, email"),
        ({"type": "string", "format": "uri"}, "uri", "string, uri"),
        ({"type": "string", "format": "date"}, "date", "string, date"),
        ({"type": "string", "format": "date-time"}, "datetime", "string, date-time"),
        ({"type": "string", "format": "hostname"}, "text", "string, hostname"),
        ({"type": "string", "contentEncoding": "base64"}, "file", "string, base64"),
        ({"type": "integer", "minimum": 5, "maximum": 60}, "integer", "integer"),
        ({"type": "number", "exclusiveMinimum": 0}, "number", "number"),
        ({"type": "boolean"}, "threeway", "boolean"),
        ({"type": "string", "enum": ["a", "b"]}, "choice", "enum of 2"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "choice", "fixed"),
        ({"type": "array", "items": {"enum": ["a", "b", "c", "d"]}}, "multi", "any of 4"),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b"}]}}, "multi", "any of 2"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, "array", "list of strings, from 1"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "map", "keys and values"),
        ({"type": "object", "properties": {"b": {}}}, "object", "object"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "oneof", "one of 2"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text", "string"),
        ({"type": "object"}, "json", "object, as JSON"),
        ({}, "json", "JSON"),
    ],
)
def test_a_schema_gets_its_control(schema: Any, kind: str, words: str):
    assert (one(schema).kind, one(schema).type_text) == (kind, words)


@pytest.mark.requirement("R5-07")
def test_draft_7_is_read_as_draft_7():
    schema = {
        "$schema": D7,
        "type": "object",
        "properties": {
            "pair": {"items": [{"type": "string"}, {"type": "integer"}]},
            "name": {"$ref": "#/definitions/name", "type": "integer", "description": "beside"},
        },
        "definitions": {"name": {"type": "string"}},
    }
    pair, name = forms.build(schema, {"pair": ["a", 1], "name": "x"}).children
    assert (pair.kind, [child.kind for child in pair.children]) == ("tuple", ["text", "integer"])
    assert (name.kind, name.description) == ("text", "beside")
    assert forms.validate(schema, {"pair": ["a", "b"], "name": "x"}) == {
        "/pair/1": ["Must be a whole number, not text."]
    }


def test_references_and_all_of_are_merged_and_the_nearest_words_win():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x", "title": "Near"}, "b": {"$ref": "#/%24defs/my%20type"}},
        "$defs": {
            "x": {"allOf": [{"type": "number", "minimum": 1, "title": "Far"}, {"type": "integer", "maximum": 9}]},
            "my type": {"type": "boolean"},
        },
    }
    near, second = forms.build(schema).children
    assert (near.kind, near.label, near.type_text) == ("integer", "Near", "integer")
    assert near.hints == [("1 to 9", "")]
    assert second.kind == "threeway"


def test_parts_that_exclude_one_another_are_a_box_with_the_reason():
    field = one({"allOf": [{"type": "string"}, {"type": "integer"}]})
    assert (field.kind, field.note) == ("json", "The schema combines parts that no value can fit at once.")


def test_alternatives_that_only_require_keys_leave_the_object_an_object():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    assert forms.build(schema).kind == "object"
    assert forms.validate(schema, {}) != {}


def test_choices_that_read_the_same_are_told_apart():
    field = one({"enum": [1, "1", None, "null", True, ""]})
    assert [option.title for option in field.options] == ["1", '"1"', "null", '"null"', "true", '""']


def test_read_only_is_shown_and_its_default_sent():
    schema = {"type": "object", "properties": {"v": {"type": "string", "readOnly": True, "default": "1.0"}}}
    tree = forms.build(schema)
    assert (tree.children[0].kind, tree.children[0].read_only) == ("const", True)
    assert forms.read(tree).value == {"v": "1.0"}
    assert entries(tree) == []


@pytest.mark.requirement("R4-13")
@pytest.mark.parametrize(("key", "secret"), [("password", True), ("apiKey", True), ("api_key", True), ("seat", False)])
def test_what_asks_for_a_secret_is_known(key: str, secret: bool):
    assert sounds_secret(key, "field") is secret


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R4-07")
def test_an_untouched_form_sends_its_defaults():
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "Ines"},
            "age": {"type": "integer", "default": 0},
            "score": {"type": "number", "default": 95.5},
            "sure": {"type": "boolean", "default": False},
            "colour": {"type": "string", "enum": ["red", "green"], "default": "green"},
            "extras": {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "wrong": {"type": "integer", "default": "seven"},
        },
    }
    sent = {"name": "Ines", "age": 0, "score": 95.5, "sure": False, "colour": "green", "extras": ["b"]}
    assert forms.read(forms.build(schema)).value == sent
    assert forms.skeleton(schema) == sent
    assert forms.read(forms.build(schema, {"age": 1})).value == {"age": 1}  # what came back has no defaults added


@pytest.mark.requirement("R4-08")
def test_empty_is_left_out_unless_it_is_meant():
    schema = {
        "type": "object",
        "properties": {
            "must": {"type": "string"},
            "may": {"type": "string"},
            "usual": {"type": "string", "default": "x"},
            "n": {"type": "integer"},
        },
        "required": ["must"],
    }
    form = forms.Entries([("/must", ""), ("/may", ""), ("/usual", ""), ("/n", "")])
    assert forms.read(forms.build(schema, form=form)).value == {"must": ""}
    usual = forms.build(schema).children[2]
    assert "empty" in usual.states and usual.state == ""
    meant = forms.Entries([("/usual", ""), ("/usual#as", "empty"), ("/must", "0")])
    assert forms.read(forms.build(schema, form=meant)).value == {"must": "0", "usual": ""}


def test_an_item_without_a_value_is_named_and_never_null_by_accident():
    schema = {"type": "array", "items": {"type": "integer"}}
    form = forms.Entries([("##item", "0"), ("/0", "1"), ("##item", "1"), ("/1", "")])
    assert forms.read(forms.build(schema, form=form)).errors == {"/1": ["This is empty. Fill it in, or remove it."]}


def test_a_key_that_stands_twice_is_named():
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    pairs = [("##item", "0"), ("/0#key", "k"), ("/0", "a"), ("##item", "1"), ("/1#key", "k"), ("/1", "b")]
    filled = forms.read(forms.build(schema, form=forms.Entries(pairs)))
    assert (filled.value, filled.errors) == ({"k": "a"}, {"/k": ["The key k stands here twice."]})


def test_a_box_becomes_a_field_again_as_soon_as_its_value_fits():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tree = forms.build(schema, {"n": "seven"})
    assert (tree.children[0].kind, tree.children[0].note) == ("json", "The value is not a number.")
    pairs = dict(entries(tree))
    half = forms.build(schema, form=forms.Entries({**pairs, "/n": "[1,"}.items()))
    assert (half.children[0].kind, half.children[0].text) == ("json", "[1,")
    mended = forms.build(schema, form=forms.Entries({**pairs, "/n": "7"}.items()))
    assert (mended.children[0].kind, mended.children[0].text) == ("integer", "7")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a": 1', "Not JSON: line 1, column 8: a comma or the closing bracket is missing."),
        ('{"a":\n tru}', "Not JSON: line 2, column 2: a value is missing."),
        ("[1] x", "Not JSON: line 1, column 5: there is more after the end."),
        ("[NaN]", "Not JSON: NaN is not a JSON value."),
        ("[1e400]", "1e400 is too large for a number in JSON."),
        ('{"a": 1, "a": 2}', 'The key "a" stands twice in one object.'),
        ("[" * 5000, "It is nested deeper than 400 levels, which is more than Parley reads."),
    ],
)
def test_json_says_what_is_wrong_and_where(text: str, sentence: str):
    assert forms.from_json_text(text).problem == sentence


def test_a_skeleton_has_something_for_whatever_must_be_there():
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "examples": ["Oslo"]},
            "days": {"type": "integer", "minimum": 3},
            "class": {"enum": ["a", "b"]},
            "people": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/person"}},
            "maybe": {"type": "string"},
        },
        "required": ["city", "days", "class", "people"],
        "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
    }
    assert forms.skeleton(schema) == {"city": "Oslo", "days": 3, "class": "a", "people": [{"name": ""}]}
    assert forms.skeleton({"type": "object"}) == {}


# --- buttons ---------------------------------------------------------------------------------------------------------

TEXT: Any = {"type": "string"}
WHOLE: Any = {"type": "integer"}
CARD, CASH = {"const": "card"}, {"const": "cash"}
TRIP: Any = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "travellers": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "meal": {"type": "string", "default": "fish"}},
                "required": ["name"],
            },
        },
        "budget": {
            "type": "object",
            "properties": {"amount": {"type": "number"}, "currency": {"enum": ["EUR", "NOK"], "default": "NOK"}},
        },
        "pay": {
            "oneOf": [
                {"title": "Card", "type": "object", "properties": {"kind": CARD, "owner": TEXT}},
                {"title": "Cash", "type": "object", "properties": {"kind": CASH, "owner": TEXT, "till": WHOLE}},
            ]
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}  # fmt: skip


def test_add_remove_and_reorder_keep_what_was_typed():
    tree = forms.build(TRIP, {"travellers": [{"name": "a", "meal": "x"}, {"name": "b"}, {"name": "c"}]})
    tree = press(TRIP, tree, "up:/travellers/2", **{"/travellers/2/name": "C", "/title": "half"})
    assert forms.read(tree).value["travellers"] == [{"name": "a", "meal": "x"}, {"name": "C"}, {"name": "b"}]
    tree = press(TRIP, tree, "down:/travellers/0")
    tree = press(TRIP, tree, "remove:/travellers/2")
    tree = press(TRIP, tree, "add:/travellers")
    names = [{"name": "C"}, {"name": "a", "meal": "x"}, {"name": "", "meal": "fish"}]
    assert forms.read(tree).value == {"title": "half", "travellers": names}


def test_the_last_item_leaves_an_empty_list_and_leaving_out_leaves_nothing():
    tree = press(TRIP, forms.build(TRIP), "add:/travellers")
    tree = press(TRIP, tree, "remove:/travellers/0")
    assert forms.read(tree).value == {"travellers": []}
    assert "sends <code>[]</code>" in draw(tree)
    assert forms.read(press(TRIP, tree, "drop:/travellers")).value == {}


def test_a_group_that_is_used_starts_with_its_defaults_and_can_be_dropped():
    tree = press(TRIP, forms.build(TRIP), "use:/budget", **{"/title": "kept"})
    assert forms.read(tree).value == {"title": "kept", "budget": {"currency": "NOK"}}
    again = press(TRIP, tree, "add:/labels", **{"/budget/amount": "7", "/budget/currency": ""})
    assert forms.read(again).value == {"title": "kept", "budget": {"amount": 7}, "labels": {"": ""}}
    assert forms.read(press(TRIP, again, "drop:/budget")).value == {"title": "kept", "labels": {"": ""}}


def test_another_alternative_carries_what_both_have_and_the_first_comes_back():
    tree = forms.build(TRIP, {"pay": {"kind": "cash", "owner": "Ines", "till": 4}})
    assert tree.children[3].chosen == 1
    card = press(TRIP, tree, "alt:/pay", **{"/pay#alt": "0", "/pay#1/owner": "Ida"})
    assert forms.read(card).value == {"pay": {"owner": "Ida"}}
    assert Page(draw(card)).submitted() == entries(card)
    back = press(TRIP, card, "alt:/pay", **{"/pay#alt": "1"})
    assert forms.read(back).value == {"pay": {"kind": "cash", "owner": "Ida", "till": 4}}
    assert forms.read(press(TRIP, back, "alt:/pay", **{"/pay#alt": ""})).value == {}


@pytest.mark.parametrize(
    ("offered", "value", "chosen"),
    [
        ([TRIP["properties"]["budget"], {"type": "object", "properties": {"amount": TEXT}}], {"amount": "7"}, 1),
        ([{"properties": {"k": CARD, "n": WHOLE}}, {"properties": {"k": CASH, "n": TEXT}}], {"k": "cash", "n": 1}, 1),
        ([{"type": "array", "items": WHOLE}, {"type": "array", "items": TEXT}], ["a"], 1),
        ([{"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": TEXT}, "required": ["b"]}], {"b": 1}, 1),
        ([{"properties": {"a": TEXT}, "additionalProperties": False}, {"properties": {"c": TEXT}}], {"b": 1}, 1),
        ([{}, WHOLE], 5, 1),
    ],
)  # fmt: skip
def test_a_value_is_shown_in_the_alternative_that_it_looks_like(offered: list[Any], value: Any, chosen: int):
    tree = forms.build({"anyOf": offered}, value)
    assert (tree.kind, tree.chosen) == ("oneof", chosen)
    assert forms.read(tree).value == value


def test_buttons_say_what_they_do():
    html = draw(forms.build(TRIP, {"travellers": [{"name": "a"}, {"name": "b"}]}), live={"hx-post": "/s/1/form"})
    page = Page(html)
    buttons = {
        button.attributes["value"]: " ".join(button.text.split())
        for button in page.controls
        if button.attributes.get("name") == "_op"
    }
    assert buttons["remove:/travellers/1"] == "Remove traveller 1"
    assert buttons["up:/travellers/1"] == "Move up traveller 1"
    assert buttons["down:/travellers/0"] == "Move down traveller 0"
    assert buttons["add:/travellers"] == "Add traveller"
    assert buttons["use:/budget"] == "Add budget"
    assert buttons["add:/labels"] == "Add label"
    assert all(b.attributes["hx-post"] == "/s/1/form" for b in page.controls if b.attributes.get("name") == "_op")
    first = next(control for control in page.controls if control.tag == "button")
    assert "hidden" in first.attributes and "name" not in first.attributes  # what Enter presses is no such button


# --- what a value is told --------------------------------------------------------------------------------------------

MOMENT = "Write the date and time with a zone, such as 2026-01-31T09:30:00Z."
NO_PLACE = ["The schema has no place for 1 of these items."]
UNKNOWN = ["The schema does not know this key."]
SAID: list[tuple[Any, Any, str]] = [
    ({"type": "string", "format": "date"}, "1988-13-04", "There is no month 13."),
    ({"type": "string", "format": "date"}, "2026-02-29", "February 2026 has 28 days."),
    ({"type": "string", "format": "date"}, "2026-04-00", "There is no day 0."),
    ({"type": "string", "format": "date"}, "tomorrow", "Write the date as YYYY-MM-DD."),
    ({"type": "string", "format": "time"}, "25:00:00Z", "There is no hour 25."),
    ({"type": "string", "format": "time"}, "10:61:00Z", "There is no minute 61."),
    ({"type": "string", "format": "time"}, "10:00:00", "Add the zone: Z for UTC, or an offset such as +02:00."),
    ({"type": "string", "format": "date-time"}, "2026-13-01T00:00:00Z", "There is no month 13."),
    ({"type": "string", "format": "date-time"}, "2026-01-01T24:30:00Z", "There is no hour 24."),
    ({"type": "string", "format": "date-time"}, "now", MOMENT),
    ({"type": "string", "format": "email"}, "ines", "This is not an email address."),
    ({"type": "string", "format": "uri"}, "example", "This is not a full address, such as https://example.org/."),
    ({"type": "string", "format": "relative-json-pointer"}, "x", "This is not a valid relative-json-pointer."),
    ({"type": "string", "minLength": 3}, "x", "At least 3 characters; this has 1."),
    ({"type": "string", "maxLength": 1}, "ab", "At most 1 character; this has 2."),
    ({"type": "string", "pattern": "^[a-z]+$"}, "A", "Does not match the pattern ^[a-z]+$."),
    ({"minimum": 5, "maximum": 60}, 61, "Must be from 5 to 60."),
    ({"minimum": 5}, 4, "Must be at least 5."),
    ({"maximum": 5000}, 6000, "Must be at most 5\u202f000."),
    ({"exclusiveMinimum": 0}, 0, "Must be more than 0."),
    ({"exclusiveMaximum": 1.5}, 2, "Must be less than 1.5."),
    ({"multipleOf": 5}, 3, "Must be a multiple of 5."),
    ({"type": "integer"}, 1.5, "Must be a whole number, not a number."),
    ({"type": ["string", "null"]}, 1, "Must be null or text, not a whole number."),
    ({"enum": [1, "a", None]}, 2, "Must be one of 1, a, null."),
    ({"enum": list(range(30))}, "x", "Must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 20 more."),
    ({"const": "z"}, "y", "Must be z."),
    ({"type": "array", "minItems": 1}, [], "At least 1 item; this has none."),
    ({"type": "array", "maxItems": 1}, [1, 2], "At most 1 item; this has 2."),
    ({"type": "array", "uniqueItems": True}, ["a", "b", "a"], "Items may not repeat; 1 and 3 are the same."),
    ({"contains": {"type": "string"}}, [1], "It needs more items, or fewer, of the kind that the schema asks for."),
    ({"type": "object", "minProperties": 2}, {"x": 1}, "At least 2 keys; this has 1."),
    ({"type": "object", "maxProperties": 1}, {"x": 1, "y": 2}, "At most 1 key; this has 2."),
    ({"type": "object", "additionalProperties": False}, {"x": 1}, "The schema knows no keys here."),
    ({"not": {"type": "string"}}, "x", "The schema rules out this value."),
    ({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, 5, "It fits 2 of the alternatives, and may fit only one."),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 5, "Must be text or null."),
    (False, 1, "Nothing may stand here."),
]  # fmt: skip


@pytest.mark.requirement("R4-09")
@pytest.mark.parametrize(("schema", "value", "sentence"), SAID)
def test_an_error_is_a_sentence_about_the_value(schema: Any, value: Any, sentence: str):
    assert forms.validate({"properties": {"a": schema}}, {"a": value}) == {"/a": [sentence]}


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        ({"required": ["a/b"]}, {}, {"/a~1b": ["This is required."]}),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, {"/b": ["This is required beside what else is given."]}),
        (
            {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
            {"a": 1},
            {"/b": ["This is required with what else is given."]},
        ),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, {"/b": UNKNOWN}),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"b": 1}, {"/b": UNKNOWN}),
        ({"prefixItems": [{}], "unevaluatedItems": False}, [1, 2], {"": NO_PLACE}),
        ({"$schema": D7, "items": [{}], "additionalItems": False}, [1, 2], {"": ["At most 1 item; this has 2."]}),
        ({"$schema": D7, "contentEncoding": "base64"}, "?", {"": ["This is not base64."]}),
        ({"$schema": D7, "contentMediaType": "application/json"}, "?", {"": ["This is not application/json."]}),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, {"/ab": ["About its key: At most 1 character; this has 2."]}),
        (
            {"$defs": {"d": {"$id": "d", "items": {"maximum": 5}}}, "properties": {"a": {"$ref": "d"}}, "items": True},
            {"a": [9]},
            {"/a/0": ["Must be at most 5."]},
        ),
        (
            {"$defs": {"d": {"$id": "d", "maximum": 5}}, "minimum": 1, "maximum": 9, "items": {"$ref": "d"}},
            [10],
            {"/0": ["Must be at most 5."]},
        ),
        (
            {"anyOf": [
                {"type": "object", "properties": {"k": {"const": "a"}, "n": WHOLE}, "required": ["k", "n"]},
                {"type": "object", "properties": {"k": {"const": "b"}, "s": TEXT}, "required": ["k", "s"]},
            ]},
            {"k": "b", "s": 1},
            {"/s": ["Must be text, not a whole number."]},
        ),
    ],
)  # fmt: skip
def test_an_error_is_placed_where_it_belongs(schema: Any, value: Any, errors: dict[str, list[str]]):
    assert forms.validate(schema, value) == errors


def test_every_kind_of_error_has_its_own_sentence():
    kinds = {name for name in vars(jsonschema_rs.ValidationErrorKind) if name[0].isupper()}
    elsewhere = {"Custom"}  # keywords of our own, of which there are none
    source = Path(explain.__file__).read_text(encoding="utf-8")
    assert {kind for kind in kinds - elsewhere if f'"{kind}"' not in source} == set()


def test_sentences_stand_beside_their_fields():
    schema = {
        "type": "object",
        "properties": {
            "people": {"type": "array", "items": {"properties": {"name": TEXT}, "required": ["name"]}},
            "labels": {"type": "object", "additionalProperties": {"type": "string", "minLength": 2}},
            "free": {"type": "object"},
            "group": {"type": "object", "properties": {"x": {"type": "integer"}}},
        },
        "minProperties": 9,
    }  # fmt: skip
    value = {"people": [{"name": "a"}, {}], "labels": {"a/b": "x"}, "free": {}}
    tree = forms.build(schema, value)
    errors = {**forms.validate(schema, value), "/free/deep/er": ["Wrong."], "/group/x": ["This is required."]}
    assert forms.place(tree, errors) == ["At least 9 keys; this has 3."]
    told = {field.pointer: field.errors for field in tree.walk() if field.errors}
    assert told == {
        "/people/1/name": ["This is required."],
        "/labels/a~1b": ["At least 2 characters; this has 1."],
        "/free": ["/deep/er: Wrong."],
        "/group": ["/x: This is required."],
    }
    html = draw(tree)
    assert html.count('class="err"') == 4
    assert html.count('aria-invalid="true"') == 3  # the group has no control of its own
    assert Page(html).problems() == []


@pytest.mark.requirement("R4-12")
def test_the_words_of_a_server_stay_text():
    nasty = "<img src=x onerror=alert(1)>\"'`{{7*7}}"
    schema = {
        "type": "object",
        "title": nasty,
        "properties": {
            nasty: {"type": "string", "title": nasty, "description": nasty, "default": nasty, "examples": [nasty]},
            "e": {"enum": [nasty, "b"], "description": nasty},
            "c": {"const": nasty},
            "o": {"oneOf": [{"title": nasty, "type": "object", "properties": {nasty: {}}}, TEXT]},
        },
        "required": ["c", "o"],
    }  # fmt: skip
    html = draw(forms.build(schema))
    assert "<img" not in html and Page(html).problems() == []


def test_ids_are_made_of_letters_digits_and_hex():
    tree = forms.build(
        {"type": "object", "properties": {"a b": {"type": "string"}, "a_b": {}, "ü/#": {"type": "string"}}}
    )
    assert [field.slug for field in tree.children] == ["_2f_a_20_b", "_2f_a_5f_b", "_2f__fc__7e_1_7e_x23_2e_"]


@pytest.mark.requirement("S38", "R4-10")
@pytest.mark.parametrize("odd", [None, True, 0, 1.5, 10**400, "x", [], {}, [[]], [{}]])
@pytest.mark.parametrize(
    "member",
    [
        *("format", "default", "enumNames", "title", "maxLength", "maxItems", "items", "oneOf"),
        *("properties", "patternProperties"),
    ],
)
def test_no_member_of_a_schema_is_so_odd_that_there_is_no_form(member: str, odd: Any):
    """One form that cannot be drawn, or checked, would take its whole page with it."""
    text = {"type": "string", "enum": ["a"]} if member == "enumNames" else {"type": "string"}
    several = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}
    odd_ones = {"text": {**text, member: odd}, "several": {**several, member: odd}}
    schema = {
        "type": "object",
        "properties": {**odd_ones, "both": {"allOf": [{**text, member: odd}, {"minLength": 1}]}},
    }
    assert len(draw(forms.build(schema))) > 0
    assert isinstance(forms.unchecked(schema), str)


# --- calm forms ------------------------------------------------------------------------------------------------------


def calm(schema: Any, value: Any = forms.MISSING) -> forms.Field:
    return forms.build(schema, value, prefill=False)


@pytest.mark.requirement("U-S5")
def test_what_is_optional_is_not_set_until_somebody_sets_it():
    texts = {"may": {"type": "string", "default": "web"}, "must": {"type": "string", "default": "x"}}
    schema = {
        "type": "object",
        "properties": {**texts, "sure": {"type": "boolean"}, "on": {"type": "boolean", "default": True}},
        "required": ["must", "sure"],
    }
    tree = calm(schema)
    assert forms.read(tree).value == {"must": "x"}
    assert 'placeholder="not set, default web"' in draw(tree)
    back = forms.build(schema, form=forms.Entries(Page(draw(tree)).submitted()), prefill=False)
    assert forms.read(back).value == {"must": "x"}
    assert [one.word for one in tree.children if one.blank] == ["sure"]
    typed = forms.Entries([("/may", "y"), ("/may#as", "out"), ("/must", ""), ("/sure", "false"), ("/on", "")])
    assert forms.read(forms.build(schema, form=typed, prefill=False)).value == {"may": "y", "must": "", "sure": False}


@pytest.mark.requirement("U-S5")
def test_null_and_empty_are_chosen_in_the_menu_and_a_typed_text_wins():
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}, "l": {"type": ["array", "null"]}}}
    for chosen, text, sent in (("null", "", {"a": None}), ("empty", "", {"a": ""}), ("null", "x", {"a": "x"})):
        form = forms.Entries([("/a", text), ("/a#as", chosen)])
        assert forms.read(forms.build(schema, form=form, prefill=False)).value == sent
    form = forms.Entries(entries(calm(schema)))
    forms.operate(form, "null:/l")
    assert forms.read(forms.build(schema, form=form, prefill=False)).value == {"l": None}
    forms.operate(form, "add:/l")
    assert isinstance(forms.read(forms.build(schema, form=form, prefill=False)).value["l"], list)


@pytest.mark.requirement("U-S5")
@pytest.mark.parametrize(
    ("key", "title", "shown"),
    [
        ("min_value", "Min Value", ""),
        ("accountId", "Account Id", ""),
        ("zip", "Postal code", "Postal code"),
        ("name", "", ""),
    ],
)
def test_a_title_that_only_says_the_key_is_not_repeated(key: str, title: str, shown: str):
    tree = calm({"type": "object", "properties": {key: {"type": "string", "title": title}}})
    assert (tree.children[0].word, tree.children[0].title) == (key, shown)


@pytest.mark.requirement("U-S5")
def test_lists_are_rows_tags_or_one_below_the_other_and_many_fields_are_folded():
    flat = {"type": "object", "properties": {"a": TEXT, "b": WHOLE}}
    deep = {"type": "object", "properties": {"a": flat}, "required": ["a"]}
    lists: Any = ((flat, [{}], "rows"), (TEXT, ["x"], "tags"), (deep, [{"a": {}}], ""), (WHOLE, [1], ""))
    for items, value, layout in lists:
        assert calm({"type": "array", "items": items}, value).layout == layout
    many = {"type": "object", "properties": {f"p{n}": TEXT for n in range(20)}, "required": ["p19"]}
    tree = calm(many, {"p7": "set", "p19": "x"})
    assert [one.word for one in tree.shown] == ["p0", "p1", "p2", "p3", "p4", "p5", "p7", "p19"]
    assert len(tree.folded) == 12 and calm({**many, "properties": dict.fromkeys("abcdefgh", TEXT)}).folded == []
