"""The tree of a form to the value it says.

Whether the value fits its schema is for the validator; here only texts that say no value are wrong. Knows no schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from app.core.forms.tree import Field
from app.core.json.values import MISSING, from_json_text, show


@dataclass(slots=True)
class Filled:
    """What a form says: a value, and what is wrong with it, by pointer."""

    value: Any
    errors: dict[str, list[str]] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)
    """Where the error is only that an item is empty: in JSON it is null, and nothing that was typed is lost."""
    with_samples: bool = False
    """Whether something stands in for what must be there and is not."""

    def add(self, pointer: str, sentence: str) -> None:
        """One thing more that is wrong."""
        self.empty.discard(pointer)
        self.errors.setdefault(pointer, []).append(sentence)


def read(tree: Field, *, with_samples: bool = False) -> Filled:
    """The value of a tree; MISSING when it says none."""
    filled = Filled(MISSING, with_samples=with_samples)
    filled.value = _read(tree, filled)
    return filled


def _read(one: Field, filled: Filled) -> Any:
    if one.is_null:
        return None
    value = _value(one, filled) if one.present else MISSING
    if not filled.with_samples or not one.required or value not in (MISSING, ""):
        return value
    if one.suggestion is not MISSING:
        return one.suggestion
    return one.options[0].value if one.options and value is MISSING else value


def _value(one: Field, filled: Filled) -> Any:
    value, problem = one.value, one.problem
    match one.kind:
        case "object":
            return _read_object(one, filled)
        case "map":
            return _read_map(one, filled)
        case "array" | "tuple":
            return [_read_item(child, filled) for child in one.children]
        case "oneof":
            return _read(one.children[0], filled) if one.children else MISSING
        case "json":
            typed = from_json_text(one.text)
            value, problem = typed.value, typed.problem or ""
    if problem:
        filled.add(one.pointer, problem)
    return value


def _read_object(one: Field, filled: Filled) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for child in one.children:
        value = _read(child, filled)
        if child.more:
            for row in child.children:
                if row.key in found:
                    filled.add(row.pointer, "This key has a field of its own above.")
            found |= {key: each for key, each in (value or {}).items() if key not in found}
        elif value is not MISSING:
            found[child.key] = value
    return found


def _read_map(one: Field, filled: Filled) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for child in one.children:
        value = _read_item(child, filled)
        if child.key in found:
            filled.add(child.pointer, f"The key {show(child.key, 60) or '(empty)'} stands here twice.")
        else:
            found[child.key] = value
    return found


def _read_item(one: Field, filled: Filled) -> Any:
    """An item's value. One without a value keeps its place as null, and is wrong: nobody said null (R4-08)."""
    before = len(filled.errors)
    value = _read(one, filled)
    if value is not MISSING:
        return value
    if len(filled.errors) == before:
        filled.add(one.pointer, "This is empty. Fill it in, or remove it.")
        filled.empty.add(one.pointer)
    return None
