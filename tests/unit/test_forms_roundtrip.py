"""Round trips: schema and value to a form, what a browser submits for it, and back to the same value."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.core import forms
from app.core.json.text import Parsed
from app.core.json.values import same
from tests.unit.form_browser import Page, draw, entries
from tests.unit.form_shapes import VALUES, Shape, rooted, shapes

quick = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def comes_back(schema: Any, value: Any) -> None:
    """Assert that a value survives: off the tree, through a submitted form, and through the HTML of the page."""
    tree = forms.build(schema, value)
    off = forms.read(tree)
    assert same(off.value, value) and off.errors == {}, off
    page = Page(draw(tree))
    assert page.submitted() == entries(tree)
    assert page.problems() == []
    typed = [(name, text.replace("\n", "\r\n")) for name, text in page.submitted()]
    again = forms.build(schema, form=forms.Entries(typed))
    back = forms.read(again)
    assert same(back.value, value) and back.errors == {}, back
    assert entries(again) == entries(tree)


@quick
@given(st.data(), shapes())
@pytest.mark.requirement("R4-08", "R5-07")
def test_a_value_that_fits_comes_back_exactly(data: st.DataObject, shape: Shape):
    schema, values = shape
    comes_back(rooted(schema), data.draw(values))


@quick
@given(shapes(), VALUES)
@example(({"type": "array", "items": {"enum": ["a", "a"]}}, st.nothing()), ["a"])
@example(({"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}, st.nothing()), {})
@example(({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}, st.nothing()), {})
@example(({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, st.nothing()), {})
@pytest.mark.requirement("S40")
def test_a_value_that_does_not_fit_comes_back_exactly_too(shape: Shape, value: Any):
    comes_back(rooted(shape[0]), value)


@quick
@given(shapes())
@example(({"type": "array", "items": {"enum": [" ", "\u2003"]}}, st.nothing()))
@example(({"type": "object", "properties": {" ": {"type": "string", "title": " "}}}, st.nothing()))
def test_a_fresh_form_submits_what_it_shows(shape: Shape):
    schema = rooted(shape[0])
    tree = forms.build(schema)
    page = Page(draw(tree))
    assert page.submitted() == entries(tree)
    assert page.problems() == []
    again = forms.build(schema, form=forms.Entries(page.submitted()))
    assert forms.read(again) == forms.read(tree)


@pytest.mark.parametrize("items", [{"type": "string"}, {"type": "string", "description": "What it is."}])
def test_an_item_more_stands_behind_the_others_and_says_what_it_is(items: Any):
    schema = {"type": "array", "items": items}
    for value in ([], ["\n"], ["a", "b\nc"]):
        form = forms.Entries(Page(draw(forms.build(schema, value))).submitted())
        forms.operate(form, "add:#")
        tree = forms.build(schema, form=form)
        page = Page(draw(tree))
        assert page.submitted() == entries(tree) and page.problems() == []
        assert [text for name, text in page.submitted() if not name.startswith("#")] == [*value, ""]


@quick
@given(st.data(), shapes())
def test_any_button_keeps_the_rest_and_the_page_sound(data: st.DataObject, shape: Shape):
    schema, values = rooted(shape[0]), shape[1]
    tree = forms.build(schema, data.draw(values))
    for _ in range(3):
        page = Page(draw(tree))
        buttons = [one.attributes["value"] for one in page.controls if one.attributes.get("name") == "_op"]
        if not buttons:
            return
        form = forms.Entries(page.submitted())
        pressed = data.draw(st.sampled_from(buttons))
        forms.operate(form, pressed)
        tree = forms.build(schema, form=form)
        verb, _, name = pressed.partition(":")
        if verb in ("use", "add"):
            (touched,) = (one for one in tree.walk() if one.name == name and one.kind != "oneof")
            assert touched.present or touched.is_null
        assert Page(draw(tree)).submitted() == entries(tree)
        assert Page(draw(tree)).problems() == []


@quick
@given(shapes(), st.lists(st.tuples(st.text(max_size=8), st.text(max_size=5)), max_size=8), st.text(max_size=12))
@pytest.mark.requirement("S40")
def test_whatever_is_submitted_nothing_breaks(shape: Shape, pairs: list[tuple[str, str]], operation: str):
    schema = rooted(shape[0])
    known = [name for name, _ in entries(forms.build(schema))]
    form = forms.Entries([*pairs, *((name, text) for name, (_, text) in zip(known, pairs, strict=False))])
    forms.operate(form, operation)
    for verb in ("add", "use", "remove", "up", "alt"):
        forms.operate(form, f"{verb}:{known[0] if known else ''}")
    forms.validate(schema, forms.read(forms.build(schema, form=form)).value)


@quick
@given(shapes())
def test_a_skeleton_is_json_and_comes_back(shape: Shape):
    schema = rooted(shape[0])
    start = forms.skeleton(schema)
    assert forms.from_json_text(forms.to_json_text(start)) == Parsed(start)
    comes_back(schema, start)
