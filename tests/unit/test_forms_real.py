"""The schemas people meet: of server-everything, of the demo server, and of tools as they are written elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.core import forms
from tests.unit.form_browser import Page, draw, entries
from tests.unit.test_forms_roundtrip import comes_back

HERE = Path(__file__).parent / "schemas"
RECORDED = {
    f"{server}.{tool}": schema
    for server in ("demo", "everything")
    for tool, schema in json.loads((HERE / f"{server}.json").read_text(encoding="utf-8")).items()
}
REAL: dict[str, Any] = json.loads((HERE / "realworld.json").read_text(encoding="utf-8"))
SAMPLES = [(name, at) for name, case in REAL.items() for at in range(len(case["values"]))]


def test_there_are_enough_of_them():
    assert len(REAL) >= 30
    assert all(len(case["values"]) >= 2 for case in REAL.values())
    assert len(RECORDED) >= 20


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_tool_has_a_form_and_its_start_comes_back(name: str):
    schema = RECORDED[name]
    tree = forms.build(schema)
    assert tree.kind == "object", tree.note
    assert [one.pointer for one in tree.walk() if one.kind == "json" and "Any" not in one.note] == []
    assert forms.unchecked(schema) == ""
    page = Page(draw(tree))
    assert page.submitted() == entries(tree)
    assert page.problems() == []
    start = forms.skeleton(schema)
    comes_back(schema, start)
    assert {one.key for one in tree.children if not one.more} == set(schema.get("properties", {}))


@pytest.mark.parametrize("name", REAL)
def test_a_real_tool_never_falls_back_to_one_box(name: str):
    schema = REAL[name]["schema"]
    assert forms.unchecked(schema) == ""
    for tree in (forms.build(schema), *(forms.build(schema, value) for value in REAL[name]["values"])):
        assert tree.kind in ("object", "oneof"), tree.note


@pytest.mark.parametrize(("name", "at"), SAMPLES)
def test_the_values_of_a_real_tool_come_back_exactly(name: str, at: int):
    comes_back(REAL[name]["schema"], REAL[name]["values"][at])
