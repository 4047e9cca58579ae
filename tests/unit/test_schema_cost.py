"""The bound on a validator's work: honest schemas pass, and whatever asks for more than it looks is found out."""

import time
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.bounds import BACKTRACKS, CHECK_STEPS, EXPLAIN_STEPS
from app.core import forms
from app.core.json.pointer import resolve
from app.core.rules.results import structured_output
from app.core.schema.check import Check
from app.core.schema.cost import CIRCLE, TOO_COMPLEX, Cost, TooCostly, too_large


def fits(check: Check, value: Any) -> bool:
    """Whether a value is found to fit."""
    try:
        return not check.why and check.errors(value) == []
    except TooCostly:
        return False


def steps(schema: Any, value: Any) -> int | None:
    """The bound; None when there is none."""
    try:
        return Cost(schema).of(value)
    except TooCostly:
        return None


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
    {"properties": {"$ref": {"type": "string"}}},
    {"$defs": {"a": {"$anchor": "x"}}, "$ref": "#x"},
    {"$dynamicAnchor": "n", "properties": {"x": {"$dynamicRef": "#n"}}},
    {"$id": "https://x.example/r", "$defs": {"a": {"$id": "b", "items": {"$ref": "r"}}}, "items": {"$ref": "b"}},
    {"properties": {"x": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}},
    {"anyOf": [{"properties": {"and": {"items": {"$ref": "#"}}}}, {"properties": {"or": {"items": {"$ref": "#"}}}}]},
    {"oneOf": [{"properties": {"kind": {"const": at}, f"part{at}": {"$ref": "#"}}} for at in range(20)]},
    {"prefixItems": [{"$ref": "#"}, {"$ref": "#"}], "items": {"$ref": "#"}},
    {"properties": {"x": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}},
    {"const": {"$ref": "http://example.com/"}, "default": {"$ref": 7}},
]


@pytest.mark.requirement("S38")
@pytest.mark.parametrize("schema", HONEST)
def test_an_honest_schema_is_affordable(schema: dict[str, Any]):
    work = steps(schema, deep(20))
    assert work is not None and work < 20_000
    assert Check(schema).why == ""


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
    ({"$dynamicAnchor": "n", "properties": {"x": {"anyOf": [{"$dynamicRef": "#n"}, ROUND]}}}, deep(60)),
    ({"$defs": {"a": {"$id": "b"}}, "properties": {"x": {"$dynamicRef": "#n"}}}, {}),
    ({"items": {"enum": [*range(20_000)]}}, ["x"] * 300),
    (
        {"propertyNames": {"$ref": "#/$defs/a0"}, "$defs": chain(12, "anyOf", 3)["$defs"]},
        {f"key{at}": 1 for at in range(100)},
    ),
    (
        {
            "$ref": "#/$defs/0",
            "$defs": {str(at): {"allOf": [{"$ref": f"#/$defs/{to}"} for to in range(20)]} for at in range(20)},
        },
        {},
    ),
    ({"items": {"allOf": [{"minimum": 0}] * 10_000}}, list(range(10_000))),
    ({"items": {"pattern": r"^(?=(a+)+$)a"}}, ["aaaa"] * 1_000),
    ({"patternProperties": {r"(a)\1": {}}, "items": {"pattern": r"(x)\1"}}, ["aaaa"] * 1_000),
]


@pytest.mark.requirement("S38")
@pytest.mark.parametrize(("schema", "value"), BOMBS)
def test_a_bomb_is_found_out_quickly_and_not_set_off(schema: dict[str, Any], value: Any):
    began = time.perf_counter()
    work = steps(schema, value)
    assert work is None or work > CHECK_STEPS
    for finding in structured_output(schema, {"structuredContent": value}):
        assert finding.level == "note"
    assert time.perf_counter() - began < 30, "a hang guard"


@pytest.mark.requirement("S38")
@pytest.mark.parametrize(
    "reference", [7, None, "#/nowhere", "#/allOf/99", "#/allOf/x", "other.json", "http://x/", ["#"], {}]
)
def test_a_reference_that_leads_out_makes_the_schema_useless(reference: Any):
    check = Check({"allOf": [{"$ref": reference}]})
    assert check.why and not fits(check, {})
    [finding] = structured_output({"allOf": [{"$ref": reference}]}, {"structuredContent": {}})
    assert (finding.id, finding.level) == ("R6-11", "note")


CIRCLES: list[dict[str, Any]] = [
    {"$ref": "#"},
    {"allOf": [{"type": "object"}, {"$ref": "#"}]},
    {"$defs": {"a": B, "b": {"not": A}}, "properties": {"x": A}},
    {"$defs": {"a": {"properties": {"x": B}, "if": B}, "b": {"then": A}}, **A},
    {"dependentSchemas": {"a": {"$ref": "#"}}},
    {"items": {"$ref": "#/items"}},
    {"$dynamicAnchor": "n", "anyOf": [{"$dynamicRef": "#n"}]},
]


@pytest.mark.requirement("S38")
@pytest.mark.parametrize("schema", CIRCLES)
def test_what_leads_back_to_the_same_place_is_not_checked(schema: dict[str, Any]):
    assert Check(schema).why == forms.unchecked(schema) == CIRCLE
    assert forms.validate(schema, {"x": 1}) == {}
    [finding] = structured_output(schema, {"structuredContent": {"x": 1}})
    assert finding.level == "note" and finding.text.startswith("The output schema points to itself")


@pytest.mark.requirement("S38")
@pytest.mark.parametrize("length", [200, 5_000])
def test_very_long_chains_are_refused_before_a_validator_meets_them(length: int):
    links = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(length)}
    schema = {"$defs": {**links, f"a{length}": {}}, "$ref": "#/$defs/a0"}
    assert steps(schema, {}) is None and Check(schema).why == TOO_COMPLEX


def test_the_bound_holds_for_a_chain_that_can_be_counted():
    assert steps(chain(3, "allOf", 2), {}) is not None
    assert (steps(chain(10, "allOf", 2), {}) or 0) >= 2**10


@pytest.mark.requirement("S38")
def test_many_large_parts_are_not_merged_for_ever():
    halves: dict[str, Any] = {name: {"properties": {f"{name}{at}": {} for at in range(4_000)}} for name in "ab"}
    began = time.perf_counter()
    assert steps({"allOf": [{"$ref": f"#/$defs/{'ab'[at % 2]}"} for at in range(8_000)], "$defs": halves}, {}) is None
    assert time.perf_counter() - began < 5, "a hang guard"


# --- against a count of every single step ---------------------------------------------------------------------------


NAMES = st.sampled_from(["a", "b", "c"])
REFS = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/$defs/c"]).map(lambda to: {"$ref": to})
PARTS = st.recursive(
    REFS | st.just({"type": "string"}) | st.just({"enum": [1, 2, "x"]}) | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "patternProperties": st.dictionaries(st.sampled_from(["a", "b|c", ""]), inner, max_size=2),
            "additionalProperties": inner,
            "propertyNames": st.just({"anyOf": [{"type": "string"}, {"maxLength": 3}]}),
            "items": inner,
            "prefixItems": st.lists(inner, max_size=2),
            "contains": inner,
            "allOf": st.lists(inner, max_size=3),
            "anyOf": st.lists(inner, max_size=3),
            "not": inner,
            "dependentSchemas": st.dictionaries(NAMES, inner, max_size=2),
            "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b"]),
        },
    ),
    max_leaves=8,
)
SCHEMAS = st.builds(
    lambda root, defs: {**(root if isinstance(root, dict) else {}), "$defs": defs},
    PARTS,
    st.fixed_dictionaries(dict.fromkeys("abc", PARTS)),
)
VALUES = st.recursive(
    st.integers() | st.text("abx", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


class Counted(Exception):
    """There are more steps than the test wants to count."""


def count(root: Any, schema: Any, value: Any, left: list[int]) -> int:
    """Every time that a schema is held against something, one after the other, as a validator without wit does it."""
    left[0] -= 1
    if left[0] < 0:
        raise Counted
    if not isinstance(schema, dict):
        return 1
    here = [part for word in ("allOf", "anyOf") for part in schema.get(word, ())]
    here += [schema["not"]] if "not" in schema else []
    here += schema.get("dependentSchemas", {}).values()
    if "$ref" in schema:
        here.append(resolve(root, unquote(schema["$ref"][1:])))
    pairs = [(part, value) for part in here]
    if isinstance(value, dict):
        for key, child in value.items():
            matching = [part for name, part in schema.get("patternProperties", {}).items() if key in name or not name]
            matching += [schema["properties"][key]] if key in schema.get("properties", {}) else []
            if not matching and "additionalProperties" in schema:
                matching = [schema["additionalProperties"]]
            pairs += [(part, child) for part in matching]
            pairs += [(schema["propertyNames"], key)] if "propertyNames" in schema else []
    elif isinstance(value, list):
        prefix = schema.get("prefixItems", [])
        pairs += zip(prefix, value, strict=False)
        pairs += [(schema["items"], child) for child in value[len(prefix) :]] if "items" in schema else []
        pairs += [(schema["contains"], child) for child in value] if "contains" in schema else []
    return 1 + sum(count(root, part, child, left) for part, child in pairs)


@pytest.mark.requirement("S38")
@settings(max_examples=400, deadline=None)
@given(schema=SCHEMAS, value=VALUES)
def test_the_bound_is_never_below_the_steps_that_are_taken(schema: dict[str, Any], value: Any):
    bound = steps(schema, value)
    if bound is None or bound > CHECK_STEPS:
        return
    free = sum(isinstance(each, bool) for each in _everything(schema)) + 1
    try:
        taken = count(schema, schema, value, [20_000])
    except Counted:
        taken = 20_000
    assert taken <= bound * free, "true and false are steps to the counter, and cost a validator nothing"


def _everything(node: Any) -> list[Any]:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [node, *(each for child in children for each in _everything(child))]


# --- what follows from it -------------------------------------------------------------------------------------------


@pytest.mark.requirement("S38")
def test_what_may_be_checked_is_checked_in_no_time():
    """As many steps as are allowed, of every kind that is counted. The guard is ten times what it takes."""
    fancy = {"items": {"not": {"pattern": r"^((?=a)a|a)+c$"}}}
    trying = CHECK_STEPS // 10_000 - 10
    cases: list[tuple[Any, Any]] = [
        (fancy, ["a" * 40] * trying),
        ({"items": {"allOf": [{"minimum": 0}] * 1_000}}, [1] * (CHECK_STEPS // 1_002 - 1)),
        ({"items": {"enum": [*range(20_000)]}}, [19_999] * (CHECK_STEPS // 20_003 - 1)),
        ({"properties": {"x": {"anyOf": [ROUND, ROUND]}}, "required": ["x"]}, deep(18)),
    ]
    for schema, value in cases:
        assert CHECK_STEPS / 20 < (steps(schema, value) or 0) <= CHECK_STEPS
        check = Check(schema)
        began = time.perf_counter()
        fits(check, value)
        took = time.perf_counter() - began
        print(f"{took * 1000:.0f} ms for {str(schema)[:60]}")
        assert took < 5


def test_large_values_that_do_not_fit_are_pointed_at_once():
    schema = {"properties": {"rows": {"items": {"type": "integer"}}}}
    value = {"rows": [1, "x"] * 25_000}
    assert EXPLAIN_STEPS < (steps(schema, value) or 0) <= CHECK_STEPS
    [finding] = structured_output(schema, {"structuredContent": value})
    assert finding.level == "must" and finding.text.startswith("`/rows/1` does not fit the output schema")
    assert forms.validate(schema, value) == {"/rows/1": ["Must be a whole number, not text."]}


@pytest.mark.requirement("S38")
def test_large_values_that_fit_no_alternative_are_said_so_without_a_place():
    """An error about alternatives holds the errors of all of them: it took a minute to get the first."""
    inner = {"type": "array", "items": {"anyOf": [{"type": "integer"}] * 20}}
    schema, value = {"items": {"anyOf": [inner]}}, [["s"] * 60_000]
    began = time.perf_counter()
    [finding] = structured_output(schema, {"structuredContent": value})
    assert finding.level == "must" and finding.text.endswith("it is too large to say where.")
    assert forms.validate(schema, value) == {
        "": ["It does not fit the schema, and there is too much of it to say where."]
    }
    assert time.perf_counter() - began < 5, "a hang guard"


@pytest.mark.requirement("S38")
def test_a_value_that_would_take_too_long_is_not_checked():
    schema = {"properties": {"x": {"anyOf": [ROUND, ROUND]}}}
    assert forms.validate(schema, deep(60)) == {"": ["A check of this value would take too long."]}
    assert not fits(Check(schema), deep(60)) and fits(Check(schema), deep(5))
    nested: Any = []
    for _ in range(300):
        nested = [nested]
    assert list(forms.validate({}, nested)) == [""]


@pytest.mark.requirement("S38")
@pytest.mark.parametrize(("schema", "why"), [({"x": "y" * 600_000}, "larger than 512 kB"), (deep(300), "200 levels")])
def test_what_is_too_large_is_known_without_reading_it_all(schema: Any, why: str):
    assert why in too_large(schema)
    assert why in Check(schema).why
    assert BACKTRACKS > 0 and too_large({"type": "object"}) == ""
