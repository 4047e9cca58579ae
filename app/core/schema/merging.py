"""Two schemas that both hold, as one; and what else can be told from the words of one schema alone.

What is lost in a merge is lost for the drawing of a form only: values are checked against the schema as it came.
"""

from __future__ import annotations

import json
from typing import Any

from app.core.json.values import same

Schema = dict[str, Any]

_LARGEST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_SMALLEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


def merge(first: Schema, second: Schema) -> Schema | None:
    """Two plain schemas that both hold, as one that can be drawn; annotations of the first win. None: nothing fits."""
    merged = dict(first)
    for key, value in second.items():
        if key not in merged or merged[key] is value:
            merged[key] = value
            continue
        mine = merged[key]
        if key == "properties" and isinstance(mine, dict) and isinstance(value, dict):
            both = dict(mine)
            for name, part in value.items():
                both[name] = part if name not in both or both[name] == part else {"allOf": [both[name], part]}
            merged[key] = both
        elif key == "required" and isinstance(mine, list) and isinstance(value, list):
            merged[key] = list(dict.fromkeys(each for each in (*mine, *value) if isinstance(each, str)))
        elif key in ("items", "additionalProperties") and isinstance(mine, dict) and isinstance(value, dict):
            merged[key] = mine if mine == value else {"allOf": [mine, value]}
        elif key == "additionalProperties" and value is not True:
            merged[key] = value if mine is not False else mine
        elif key in _LARGEST and isinstance(mine, int | float) and isinstance(value, int | float):
            merged[key] = max(mine, value)
        elif key in _SMALLEST and isinstance(mine, int | float) and isinstance(value, int | float):
            merged[key] = min(mine, value)
        elif key == "type":
            kinds = _common_types(mine, value)
            if not kinds:
                return None
            merged[key] = kinds[0] if len(kinds) == 1 else kinds
        elif key == "enum" and isinstance(mine, list) and isinstance(value, list):
            known = {key_of(each) for each in value}
            merged[key] = [each for each in mine if key_of(each) in known]
            if not merged[key]:
                return None
        elif key == "const" and not same(mine, value):
            return None
    return merged


def implied_type(schema: Schema) -> str | None:
    """The type that the other keywords of a schema speak of, when it names none itself."""
    for words, kind in (
        (("properties", "additionalProperties", "required", "patternProperties", "propertyNames"), "object"),
        (("items", "prefixItems", "minItems", "maxItems", "uniqueItems"), "array"),
        (("minLength", "maxLength", "pattern", "format", "contentEncoding"), "string"),
        (("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"), "number"),
    ):
        if any(word in schema for word in words):
            return kind
    return None


def _common_types(first: Any, second: Any) -> list[str]:
    mine = [first] if isinstance(first, str) else first if isinstance(first, list) else []
    theirs = [second] if isinstance(second, str) else second if isinstance(second, list) else []
    found = [kind for kind in mine if kind in theirs or (kind == "integer" and "number" in theirs)]
    return found + ["integer" for kind in theirs if kind == "integer" and "number" in mine and "integer" not in found]


def extra_keys(schema: Schema) -> tuple[Any, bool]:
    """The schema of the keys that are not among the properties, and whether the schema speaks of such keys."""
    extra = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict) and patterns and not isinstance(extra, dict):
        first, *others = patterns.values()
        alike = isinstance(first, dict) and all(each == first for each in others)
        return (first if alike and first else True), True
    return (True, False) if extra is None else (extra, extra is not False)


def key_of(value: Any) -> Any:
    """A value as something to look it up by among many."""
    if isinstance(value, str | bool) or value is None:
        return type(value), value
    return ("number", value) if isinstance(value, int | float) else json.dumps(value, sort_keys=True)
