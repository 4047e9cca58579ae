"""Alternatives: which of them a value belongs to, and what was typed for those that are not drawn now.

Looks at types, fixed values and keys first, and asks the validator only when that leaves more than one: a value with
one wrong field still belongs to the alternative whose `kind` it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app import bounds
from app.core.forms.leaves import index_of
from app.core.forms.sources import Source, Submitted
from app.core.forms.tree import Field
from app.core.json.values import same, type_of
from app.core.schema.check import Check, with_definitions
from app.core.schema.merging import Schema
from app.core.schema.refs import Schemas


class Chooser:
    """Finds the alternative of a value, for one form. Counts what it asks of the validator."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._made: dict[int, tuple[Schema, Check]] = {}
        self._asked = 0

    def best(self, offered: list[Schema], value: Any) -> int | None:
        """The alternative that a value belongs to; None when not even its type fits any."""
        marks = [_resemblance(each, value, self._schemas) for each in offered]
        most = max(marks, default=0)
        if most == 0:
            return None
        close = [at for at, mark in enumerate(marks) if mark == most]
        if len(close) == 1 and most > 2:
            return close[0]
        others = [at for at, mark in enumerate(marks) if 0 < mark < most] if most < 4 else []
        return next((at for at in (*close, *others) if self._fits(offered[at], value)), close[0])

    def _fits(self, schema: Schema, value: Any) -> bool:
        self._asked += 1
        if self._asked > bounds.FORM_CHECKS:
            return False
        if id(schema) not in self._made:
            self._made[id(schema)] = (schema, Check(with_definitions(schema, self._schemas.root)))
        return self._made[id(schema)][1].fits(value)


def _resemblance(schema: Mapping[str, Any], value: Any, schemas: Schemas) -> int:
    """How much a value looks like a schema: 0 not at all, then by type, by keys, by a fixed value."""
    if "const" in schema:
        return 5 if same(schema["const"], value) else 0
    if isinstance(schema.get("enum"), list):
        return 5 if any(same(each, value) for each in schema["enum"]) else 0
    kind = type_of(value)
    named = schema.get("type")
    kinds = named if isinstance(named, list) else [named] if isinstance(named, str) else []
    if kinds and kind not in kinds and not (kind == "integer" and "number" in kinds):
        return 0
    if kind != "object":
        return 3 if kinds else 1
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    mark = 3 if kinds or properties else 1
    for key, part in properties.items():
        plain, _ = schemas.plain(part)
        if plain is None or key not in value:
            continue
        values = [plain["const"]] if "const" in plain else plain.get("enum")
        if not isinstance(values, list) or not values:
            continue
        if any(same(each, value[key]) for each in values):
            mark = max(mark, 5 if len(values) == 1 else 4)
        elif len(values) == 1:
            return 1
        else:
            mark = min(mark, 2)
    required = schema.get("required")
    if isinstance(required, list) and any(isinstance(each, str) and each not in value for each in required):
        mark = min(mark, 2)
    if schema.get("additionalProperties") is False and any(key not in properties for key in value):
        mark = min(mark, 2)
    return mark


def shown_before(source: Source, count: int) -> list[int]:
    """The alternatives that a submitted form has content for: the one that was drawn, then those drawn before it."""
    if not isinstance(source, Submitted):
        return []
    found = (index_of(each, count) for each in source.form.all(f"{source.name}#was"))
    return list(dict.fromkeys(each for each in found if each is not None))


def kept_from(made: Field, shown: list[int], source: Source) -> list[tuple[str, str]]:
    """What was typed for alternatives that are not drawn now, so that it is there when they are chosen again."""
    kept: list[tuple[str, str]] = []
    for each in shown:
        if each != made.chosen and isinstance(source, Submitted):
            kept.append((f"{made.name}#was", str(each)))
            start = len(f"{source.name}#{each}")
            pairs = source.form.under(f"{source.name}#{each}")
            kept += [(f"{made.name}#{each}{name[start:]}", text) for name, text in pairs]
    return kept if len(kept) <= bounds.FORM_KEPT else []
