"""The bound on a validator's work: honest schemas pass, and whatever asks for more than it looks is found out."""

import time
from typing import Any

import pytest

from app.core.rules import checks
from app.core.schema.cost import steps

AFFORDABLE = 5_000_000


def deep(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"x": value}
    return value


def chain(length: int, operator: str, times: int) -> dict[str, Any]:
    """Each definition asks for the next one several times."""
    links = {f"a{n}": {operator: [{"$ref": f"#/$defs/a{n + 1}"}] * times} for n in range(length)}
    return {"$defs": {**links, f"a{length}": {"type": "string"}}, "$ref": "#/$defs/a0"}


HONEST: list[dict[str, Any]] = [
    {},
    {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^[a-z]+$"}, "b": {"items": {"type": "integer"}}},
    },
    {"$defs": {"p": {"type": "object"}}, "properties": {"a": {"$ref": "#/$defs/p"}, "b": {"$ref": "#/$defs/p"}}},
    {"properties": {"children": {"type": "array", "items": {"$ref": "#"}}}},
    {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}},
    {"anyOf": [{"type": "string"}, {"items": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]},
    {"definitions": {"a/b": {"type": "object"}}, "allOf": [{"$ref": "#/definitions/a~1b"}]},
    {"allOf": [{"type": "object"}, {"$ref": "#/allOf/0"}]},
    {"$ref": "#"},
    {"properties": {"$ref": {"type": "string"}}},
    {"const": {"$ref": "http://example.com/"}, "default": {"$ref": 7}},
]


@pytest.mark.requirement("S38")
@pytest.mark.parametrize("schema", HONEST)
def test_an_honest_schema_is_affordable(schema: dict[str, Any]):
    work = steps(schema, deep(20))
    assert work is not None and work < 2_000


ROUND = {"$ref": "#"}
A, B = {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}
BOMBS: list[tuple[dict[str, Any], Any]] = [
    (chain(40, "allOf", 2), {}),
    (chain(40, "anyOf", 2), {}),
    (chain(12, "oneOf", 10), {}),
    ({"properties": {"x": {"anyOf": [ROUND, ROUND]}}, "required": ["x"]}, deep(60)),
    ({"properties": {"x": ROUND}, "additionalProperties": ROUND, "patternProperties": {"x": ROUND}}, deep(60)),
    ({"properties": {"x": {"if": ROUND, "then": ROUND}}, "required": ["x"]}, deep(60)),
    ({"$defs": {"a": B, "b": {"anyOf": [A, A]}}, **A}, {}),
    ({"$defs": {"a": {"$anchor": "x"}}, "$ref": "#x"}, {}),
    ({"$dynamicAnchor": "n", "properties": {"x": {"$dynamicRef": "#n"}}}, deep(5)),
    ({"items": {"allOf": [{"minimum": 0}] * 10_000}}, list(range(10_000))),
    ({"items": {"pattern": r"^(?=(a+)+$)a"}}, ["aaaa"] * 1_000),
    ({"patternProperties": {r"(a)\1": {}}, "items": {"pattern": r"(x)\1"}}, ["aaaa"] * 1_000),
]


@pytest.mark.requirement("S38")
@pytest.mark.parametrize(("schema", "value"), BOMBS)
def test_a_bomb_is_found_out_quickly_and_not_set_off(schema: dict[str, Any], value: Any):
    began = time.perf_counter()
    work = steps(schema, value)
    assert work is None or work > AFFORDABLE
    for finding in checks.structured_output(schema, {"structuredContent": value}):
        assert finding.level == "note"
    assert time.perf_counter() - began < 30, "a hang guard"


@pytest.mark.requirement("S38")
@pytest.mark.parametrize(
    "reference", [7, None, "#/nowhere", "#/allOf/99", "#/allOf/x", "other.json", "http://x/", ["#"], {}]
)
def test_a_reference_that_leads_out_has_no_bound(reference: Any):
    assert steps({"allOf": [{"$ref": reference}]}, {}) is None


@pytest.mark.requirement("S38")
def test_very_long_chains_have_no_bound_rather_than_a_crash():
    links = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(5_000)}
    assert steps({"$defs": {**links, "a5000": {}}, "$ref": "#/$defs/a0"}, {}) is None


def test_the_bound_holds_for_a_chain_that_can_be_counted():
    assert steps(chain(3, "allOf", 2), {}) is not None
    assert (steps(chain(10, "allOf", 2), {}) or 0) >= 2**10


def test_large_values_that_do_not_fit_are_said_so_without_a_place():
    schema = {"properties": {"rows": {"items": {"type": "integer"}}}}
    [finding] = checks.structured_output(schema, {"structuredContent": {"rows": ["x"] * 50_000}})
    assert finding.level == "must" and finding.text.endswith("it is too large to say where.")
