"""What the page calls things: labels, types in a few words, alternatives, items.

Everything a server wrote is cut to a length here, because 600 fields may all point to one long description (S38).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from app.core.figures import grouped
from app.core.forms.tree import Kind
from app.core.json.values import is_number, show

MAX_LABEL = 200
MAX_DESCRIPTION = 2_000
_TYPES = {
    "text": "string",
    "long": "string",
    "checkbox": "boolean",
    "threeway": "boolean",
    "time": "time, UTC",
    "datetime": "date and time, UTC",
    "email": "email address",
    "uri": "address",
    "password": "string",
    "json": "JSON",
    "file": "file, as base64",
    "map": "keys and values",
    "array": "list",
    "tuple": "list",
    "const": "fixed",
}
_SINGULARS = ((r"(?<=..)ies$", "y"), (r"(?<=ss|sh|ch)es$", ""), (r"(?<=x)es$", ""), (r"(?<=[^s])s$", ""))


def text_of(schema: Mapping[str, Any], key: str, most: int) -> str:
    """A text that a schema gives, cut; "" when it gives none, or only blanks."""
    text = schema.get(key)
    if not isinstance(text, str) or not text.strip():
        return ""
    return text if len(text) <= most else text[: most - 1] + "…"


def type_text(kind: Kind, schema: Mapping[str, Any], options: int = 0) -> str:
    """What may stand in a field, in a few words: `integer, 5 to 60`, `any of 4`."""
    if kind in ("choice", "oneof"):
        return f"one of {options}" if options > 1 else "fixed"
    if kind == "multi":
        return f"any of {options}"
    word = _TYPES.get(kind, kind)
    if kind == "json" and schema.get("type") == "object":
        return "object, as JSON"
    if kind in ("number", "integer"):
        return word + _range(schema, "minimum", "maximum", "") + _beyond(schema)
    if kind in ("text", "long", "password"):
        form = text_of(schema, "format", 30)
        named = form if form not in ("", "password") else word
        return named + _range(schema, "minLength", "maxLength", " characters")
    if kind == "array":
        return word + _range(schema, "minItems", "maxItems", " items")
    return word


def _range(schema: Mapping[str, Any], least: str, most: str, unit: str) -> str:
    bounds = (schema.get(least), schema.get(most))
    low, high = (each if is_number(each) else None for each in bounds)
    if (low if high is None else high) == 1:
        unit = unit.removesuffix("s")
    if low is not None and high is not None:
        return f", {grouped(low)} to {grouped(high)}{unit}" if low != high else f", {grouped(low)}{unit}"
    if low is not None and (low or not unit):
        return f", from {grouped(low)}{unit}"
    return f", up to {grouped(high)}{unit}" if high is not None else ""


def _beyond(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    more = f", more than {grouped(low)}" if is_number(low) else ""
    return more + (f", less than {grouped(high)}" if is_number(high) else "")


def alternative_name(schema: Mapping[str, Any], at: int) -> str:
    """What one of several alternatives is called: its title, its fixed value, its type, or its keys."""
    if title := text_of(schema, "title", 80):
        return title
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, part in properties.items():
            if isinstance(part, dict):
                values = [part["const"]] if "const" in part else part.get("enum")
                if isinstance(values, list) and len(values) == 1:
                    return f"{name[:40]} {show(values[0], 40)}"
    if description := text_of(schema, "description", 60):
        return description
    if isinstance(properties, dict) and properties:
        return ", ".join(name[:40] for name in list(properties)[:3])
    kind = schema.get("type")
    items = schema.get("items")
    if kind == "array" and isinstance(items, dict) and isinstance(items.get("type"), str):
        return f"list of {items['type'][:20]}"
    return _TYPES.get(str(kind), str(kind)[:40]) if kind else f"alternative {at + 1}"


def item_name(label: str) -> str:
    """What one of many is called: `traveller` of `Travellers`; `item` where that cannot be told."""
    word = label.strip()
    if word[:1].isupper() and word[1:] == word[1:].lower():
        word = word.lower()
    for ending, instead in _SINGULARS:
        single, changed = re.subn(ending, instead, word)
        if changed:
            return single[:60]
    return "item"
