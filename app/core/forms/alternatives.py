"""Which of several alternatives a value belongs to, by its looks.

A value with one wrong field still belongs to the alternative whose `kind` it names, and a form must show it somewhere:
so this does not ask whether a value fits, but which alternative it resembles most.
"""

from __future__ import annotations

from typing import Any

from app import bounds
from app.core.json.values import same, type_of
from app.core.schema.plain import Schema, Schemas, properties_of, required_keys

_NAMED, _OTHER_KEYS, _OTHER_TYPE, _ANY_TYPE = 100, 4, 2, 1
"""How much it counts that a value is one that a schema names, lacks a key or has one too many, is of another type
inside, and that the schema says no type."""


def closest(offered: list[Schema], value: Any, schemas: Schemas) -> int | None:
    """The alternative that a value looks like most; None when its type fits none."""
    marks = [_distance(each, value, schemas, 0) for each in offered]
    return min((at for at, mark in enumerate(marks) if mark is not None), key=lambda at: marks[at] or 0, default=None)


def _distance(schema: Schema, value: Any, schemas: Schemas, depth: int) -> int | None:
    """How little a value looks like a plain schema; None when it is of another type, or not one of its values."""
    named = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(named, list):
        return -_NAMED if any(same(each, value) for each in named) else None
    kind, kinds = type_of(value), schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds] if isinstance(kinds, str) else []
    if kinds and kind not in kinds and not (kind == "integer" and "number" in kinds):
        return None
    far = 0 if kinds else _ANY_TYPE
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, list):
        inside = [(schema.get("items", True), value[0])] if value else []
    elif isinstance(value, dict):
        properties = properties_of(schema)
        inside = [(part, value[key]) for key, part in properties.items() if key in value]
        wrong = sum(key not in value for key in required_keys(schema))
        if schema.get("additionalProperties") is False:
            wrong += sum(key not in properties for key in value)
        far = _OTHER_KEYS * wrong if properties else far
    for part, each in inside if depth < bounds.LOOKED_AT_DEPTH else ():
        plain = schemas.plain_or_none(part)
        mark = _distance(plain, each, schemas, depth + 1) if plain is not None else 0
        if mark is None:
            far += _NAMED if plain is not None and ("const" in plain or "enum" in plain) else _OTHER_TYPE
        elif mark < 0:
            far += mark
    return far
