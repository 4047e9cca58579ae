"""Two schemas that both hold, as one; and what else can be told from the words of one schema alone.

What is lost in a merge is lost for the drawing of a form only: values are checked against the schema as it came.
"""

from __future__ import annotations

import json
from typing import Any

from app.core.json.values import same
from app.core.schema.refs import NoShape

Schema = dict[str, Any]

_LARGEST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_SMALLEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_SPOKEN_OF = {
    "object": ("properties", "additionalProperties", "required", "patternProperties", "propertyNames"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding"),
    "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
}


def merge(first: Schema, second: Schema) -> Schema:
    """Two plain schemas that both hold, as one that can be drawn; annotations of the first win. Raises NoShape when no
    value can fit both."""
    merged = dict(first)
    for key, value in second.items():
        if key not in merged or merged[key] is value:
            merged[key] = value
            continue
        match key, merged[key], value:
            case "properties", dict(mine), dict():
                merged[key] = mine | {name: _both(mine.get(name, part), part) for name, part in value.items()}
            case "required", list(mine), list():
                merged[key] = list(dict.fromkeys(each for each in (*mine, *value) if isinstance(each, str)))
            case "items" | "additionalProperties", dict(mine), dict():
                merged[key] = _both(mine, value)
            case "additionalProperties", mine, _:
                merged[key] = mine if value is True or mine is False else value
            case _, int(mine) | float(mine), int() | float() if key in _LARGEST:
                merged[key] = max(mine, value)
            case _, int(mine) | float(mine), int() | float() if key in _SMALLEST:
                merged[key] = min(mine, value)
            case "type", mine, _:
                merged[key] = _common_types(mine, value)
            case "enum", list(mine), list():
                known = {_key_of(each) for each in value}
                merged[key] = [each for each in mine if _key_of(each) in known]
        if (key in ("type", "enum") and not merged[key]) or (key == "const" and not same(merged[key], value)):
            raise NoShape("The schema combines parts that no value can fit at once.")
    return merged


def _both(first: Any, second: Any) -> Any:
    return first if first == second else {"allOf": [first, second]}


def _common_types(first: Any, second: Any) -> Any:
    mine, theirs = ([each] if isinstance(each, str) else each for each in (first, second))
    if not isinstance(mine, list) or not isinstance(theirs, list):
        return []
    found = [kind for kind in mine if kind in theirs or (kind == "integer" and "number" in theirs)]
    found += ["integer" for kind in theirs if kind == "integer" and "number" in mine and "integer" not in found]
    return found[0] if len(found) == 1 else found


def properties_of(schema: Schema) -> dict[str, Any]:
    """The properties that a schema names."""
    named = schema.get("properties")
    return named if isinstance(named, dict) else {}


def required_keys(schema: Schema) -> list[str]:
    """The keys that a schema says must be there."""
    listed = schema.get("required")
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def implied_type(schema: Schema) -> str | None:
    """The type that the other keywords of a schema speak of, when it names none itself."""
    return next((kind for kind, words in _SPOKEN_OF.items() if any(word in schema for word in words)), None)


def extra_keys(schema: Schema) -> tuple[Any, bool]:
    """The schema of the keys that are not among the properties, and whether the schema speaks of such keys."""
    extra = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict) and patterns and not isinstance(extra, dict):
        first, *others = patterns.values()
        alike = isinstance(first, dict) and all(each == first for each in others)
        return (first if alike and first else True), True
    return (True, False) if extra is None else (extra, extra is not False)


def _key_of(value: Any) -> Any:
    """A value as something to look it up by among many."""
    if isinstance(value, str | bool) or value is None:
        return type(value), value
    return ("number", value) if isinstance(value, int | float) else json.dumps(value, sort_keys=True)
