"""Schemas of every kind, each with a strategy for values that fit it: what the round trips are tried with."""

import string
from typing import Any

from hypothesis import strategies as st

Shape = tuple[Any, st.SearchStrategy[Any]]

TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", " ", "\n", "a\nb", "\r\n", "\x00", "0", "false", "null", "“”", "<b>&amp;", "x" * 300, "\u202e"]
    ),
)
INTEGERS = st.one_of(st.integers(-5, 5), st.integers(), st.sampled_from([12345678901234567890, -(2**63), 10**40]))
FLOATS = st.one_of(st.floats(allow_nan=False, allow_infinity=False), INTEGERS)
SCALARS = st.one_of(st.none(), st.booleans(), INTEGERS, FLOATS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)
KEYS = st.one_of(
    st.text(string.ascii_lowercase + "_", min_size=1, max_size=6),
    st.sampled_from(
        ["", "a/b", "a~b", "a#alt", "#", "a#", "__proto__", "constructor", " ", "ä b", "0", "~1", "x\ny", "_op"]
    ),
)
DATES = st.one_of(st.dates().map(str), st.sampled_from(["2026-13-01", "1988-02-30", "soon"]))
TIMES = st.one_of(
    st.times().map(lambda each: each.strftime("%H:%M:%SZ")), st.sampled_from(["01:02:03+02:00", "9:00", "23:59:60Z"])
)
MOMENTS = st.one_of(
    st.datetimes().map(lambda each: each.isoformat(timespec="seconds") + "Z"),
    st.sampled_from(
        ["2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05.25Z", "2026-01-02 03:04", "2026-02-30T00:00:00Z"]
    ),
)
NOTES = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["Travellers", "A title", "<script>", ""]),
        "description": st.sampled_from(["What it is.", "", "\u202eabc"]),
        "deprecated": st.booleans(),
        "examples": st.lists(SCALARS, max_size=2),
    },
)
DEFINITIONS: dict[str, Any] = {
    "name": {"type": "string", "minLength": 1},
    "node": {
        "type": "object",
        "properties": {
            "name": {"$ref": "#/$defs/name"},
            "next": {"$ref": "#/$defs/node"},
            "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        },
        "required": ["name"],
    },
    "colour": {"enum": ["red", "green", None, 1, "1", True]},
}
NODES: st.SearchStrategy[Any] = st.deferred(
    lambda: st.fixed_dictionaries(
        {"name": TEXTS},
        optional={"next": NODES, "kids": st.lists(NODES, max_size=2)},
    )
)


def leaf() -> st.SearchStrategy[Shape]:
    """Shapes without shapes inside."""
    plain: list[Shape] = [
        ({"type": "string"}, TEXTS),
        ({"type": "string", "maxLength": 4000}, TEXTS),
        ({"type": "string", "default": "some"}, TEXTS),
        ({"type": "string", "format": "date"}, DATES),
        ({"type": "string", "format": "time"}, TIMES),
        ({"type": "string", "format": "date-time"}, MOMENTS),
        ({"type": "string", "format": "email"}, TEXTS),
        ({"type": "string", "format": "uri"}, TEXTS),
        ({"type": "string", "format": "password"}, TEXTS),
        ({"type": "string", "contentEncoding": "base64"}, TEXTS),
        ({"type": "integer"}, INTEGERS),
        ({"type": "integer", "minimum": 0, "default": 20}, INTEGERS),
        ({"type": "number"}, FLOATS),
        ({"type": "boolean"}, st.booleans()),
        ({"type": "boolean", "default": True}, st.booleans()),
        ({"type": "null"}, st.none()),
        ({"const": "z"}, st.just("z")),
        ({"const": None}, st.none()),
        ({"type": "string", "readOnly": True, "default": "kept"}, st.sampled_from(["kept", "other"])),
        ({}, VALUES),
        (True, VALUES),
        ({"type": "object"}, st.dictionaries(st.text(max_size=4), VALUES, max_size=3)),
        ({"$ref": "#/$defs/name"}, TEXTS),
        ({"$ref": "#/$defs/colour", "description": "beside"}, st.sampled_from(DEFINITIONS["colour"]["enum"])),
        ({"$ref": "#/$defs/node"}, NODES),
        ({"$ref": "https://example.org/schema.json"}, VALUES),
        ({"type": ["string", "null"]}, st.none() | TEXTS),
        ({"type": ["string", "integer", "boolean"]}, TEXTS | INTEGERS | st.booleans()),
        ({"type": ["string", "null"], "enum": ["a", "b", None]}, st.sampled_from(["a", "b", None])),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, st.sampled_from(["a", "b"])),
        ({"type": "string", "enum": ["x", "y"], "enumNames": ["X", "Y"]}, st.sampled_from(["x", "y"])),
        ({"type": "array", "items": {"enum": ["x", "y", "z"]}}, st.lists(st.sampled_from(["x", "y", "z"]), max_size=4)),
        ({"type": "array", "items": {"anyOf": [{"const": 1, "title": "one"}, {"const": "1"}]}, "default": [1]},
         st.lists(st.sampled_from([1, "1"]), max_size=2)),
    ]  # fmt: skip
    enums = st.lists(SCALARS, min_size=1, max_size=5).map(lambda all_: ({"enum": all_}, st.sampled_from(all_)))
    return st.one_of(st.sampled_from(plain), enums)


@st.composite
def shapes(draw: st.DrawFn, depth: int = 2) -> Shape:
    """A schema, and a strategy for its values."""
    schema, values = draw(leaf() if depth == 0 else st.one_of(leaf(), groups(depth)))
    if not isinstance(schema, dict):
        return schema, values
    schema = {**draw(NOTES), **schema}
    match draw(st.sampled_from(["", "", "", "null", "all", "null-first", "conditions"])):
        case "null":
            return {"anyOf": [schema, {"type": "null"}], "default": None}, st.none() | values
        case "null-first":
            return {"oneOf": [{"type": "null"}, schema]}, st.none() | values
        case "all":
            return {"allOf": [schema, {"description": "all of it"}], "title": "Merged"}, values
        case "conditions":
            return {**schema, "not": {"const": "never"}, "if": {"const": 1}, "then": {"title": "t"}}, values
    return schema, values


@st.composite
def groups(draw: st.DrawFn, depth: int) -> Shape:
    """A shape with shapes inside."""
    kind = draw(
        st.sampled_from(["object", "object", "array", "map", "tuple", "tuple-7", "oneof", "tagged", "patterns"])
    )
    inner = shapes(depth - 1)
    if kind in ("object", "patterns"):
        parts = draw(st.dictionaries(KEYS, inner, max_size=4))
        must = draw(st.sets(st.sampled_from(sorted(parts)))) if parts else set()
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {key: part[0] for key, part in parts.items()},
            "required": sorted(must),
        }
        fitting = st.fixed_dictionaries(
            {key: parts[key][1] for key in parts if key in must},
            optional={key: parts[key][1] for key in parts if key not in must},
        )
        if kind == "object":
            return schema, fitting
        extra, extras = draw(inner)
        if draw(st.booleans()):
            schema["additionalProperties"] = extra
        else:
            schema["patternProperties"] = {"^": extra}
        rows = st.dictionaries(KEYS, extras, max_size=2)
        return schema, st.builds(lambda more, known: {**more, **known}, rows, fitting)
    if kind == "array":
        item, items = draw(inner)
        least = draw(st.sampled_from([{}, {"minItems": 1}, {"maxItems": 3}]))
        return {"type": "array", "items": item, **least}, st.lists(items, max_size=3)
    if kind == "map":
        item, items = draw(inner)
        return {"type": "object", "additionalProperties": item}, st.dictionaries(KEYS, items, max_size=3)
    if kind.startswith("tuple"):
        places = draw(st.lists(inner, min_size=1, max_size=3))
        word = "items" if kind == "tuple-7" else "prefixItems"
        return {"type": "array", word: [each[0] for each in places]}, st.tuples(*(each[1] for each in places)).map(list)
    offered = draw(st.lists(inner, min_size=2, max_size=3))
    if kind == "oneof":
        word = draw(st.sampled_from(["oneOf", "anyOf"]))
        return {word: [part[0] for part in offered]}, st.one_of(*(part[1] for part in offered))
    tagged = [
        {"type": "object", "properties": {"kind": {"const": str(at)}, "value": part[0]}, "required": ["kind", "value"]}
        for at, part in enumerate(offered)
    ]
    tags = [st.fixed_dictionaries({"kind": st.just(str(at)), "value": part[1]}) for at, part in enumerate(offered)]
    return {"oneOf": tagged}, st.one_of(*tags)


def rooted(schema: Any) -> Any:
    """A schema as the root of a document that has our definitions."""
    return {**schema, "$defs": DEFINITIONS} if isinstance(schema, dict) else schema
