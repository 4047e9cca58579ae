"""What the page calls things: labels, types in a few words, alternatives, items.

Everything a server wrote is cut to a length here, because 600 fields may all point to one long description (S38).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from app.core.figures import grouped
from app.core.forms.tree import TEXTS, Hint, Kind
from app.core.json.values import is_number, show

MAX_LABEL = 200
MAX_DESCRIPTION = 2_000
_TYPES = {
    "checkbox": "boolean",
    "threeway": "boolean",
    "json": "JSON",
    "map": "keys and values",
    "array": "list",
    "tuple": "list",
    "const": "fixed",
}
_FORMATS = {
    "date": "2027-01-31",
    "time": "09:30:00Z",
    "date-time": "2027-01-31T09:30:00Z",
    "duration": "P3DT12H",
    "email": "name@example.org",
    "idn-email": "name@example.org",
    "uri": "https://example.org/",
    "url": "https://example.org/",
    "iri": "https://example.org/",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.org",
}
"""How a value of a format looks."""
_MAX_PATTERN = 200
_SINGULARS = ((r"(?<=..)ies$", "y"), (r"(?<=ss|sh|ch)es$", ""), (r"(?<=x)es$", ""), (r"(?<=[^s])s$", ""))


def text_of(schema: Mapping[str, Any], key: str, most: int) -> str:
    """A text that a schema gives, cut; "" when it gives none, or only blanks."""
    text = schema.get(key)
    if not isinstance(text, str) or not text.strip():
        return ""
    return text if len(text) <= most else text[: most - 1] + "…"


def differs(title: str, key: str) -> bool:
    """Whether a title says more than its key: by more than case, spaces, hyphens and underscores."""

    def bare(text: str) -> str:
        return "".join(each for each in text.casefold() if not each.isspace() and each not in "_-")

    return bool(title) and bare(title) != bare(key)


def type_text(kind: Kind, schema: Mapping[str, Any], options: int = 0) -> str:
    """What may stand in a field, in a word or two: `integer`, `enum of 4`, `string, date`."""
    if kind in ("choice", "oneof"):
        return f"{'enum' if kind == 'choice' else 'one'} of {options}" if options > 1 else "fixed"
    if kind == "multi":
        return f"any of {options}"
    if kind == "json" and schema.get("type") == "object":
        return "object, as JSON"
    if kind in TEXTS:
        form = text_of(schema, "format", 30)
        return "string, base64" if kind == "file" else f"string, {form}" if form else "string"
    return _TYPES.get(kind, kind)


def list_text(schema: Mapping[str, Any], items: Mapping[str, Any]) -> str:
    """What a list is, in a few words: `list of objects, 1 to 10`."""
    kind = items.get("type")
    of = f"list of {kind}s" if kind in ("string", "integer", "number", "boolean", "object") else "list"
    amount = _range(schema, "minItems", "maxItems", "")
    return f"{of}, {amount[:1].lower()}{amount[1:]}" if amount else of


def hints(kind: Kind, schema: Mapping[str, Any]) -> list[Hint]:
    """What a value has to be: its range or length, its pattern, how its format looks."""
    found: list[Hint] = []
    if kind in ("number", "integer"):
        amount = _range(schema, "minimum", "maximum", "")
        found += [(each, "") for each in (amount, *_beyond(schema)) if each]
        if is_number(step := schema.get("multipleOf")):
            found.append(("Multiple of", grouped(step)))
    elif kind in TEXTS:
        if length := _range(schema, "minLength", "maxLength", " characters"):
            found.append((length, ""))
        if pattern := text_of(schema, "pattern", _MAX_PATTERN):
            found.append(("Pattern", pattern))
        form = schema.get("format")
        if isinstance(form, str) and form in _FORMATS:
            found.append(("Format", _FORMATS[form]))
        if kind in ("time", "datetime"):
            found.append(("UTC", ""))
    return found


def _range(schema: Mapping[str, Any], least: str, most: str, unit: str) -> str:
    low, high = (each if is_number(each) else None for each in (schema.get(least), schema.get(most)))
    if (low if high is None else high) == 1:
        unit = unit.removesuffix("s")
    if low is not None and high is not None:
        return f"{grouped(low)} to {grouped(high)}{unit}" if low != high else f"{grouped(low)}{unit}"
    if low is not None and (low or not unit):
        return f"From {grouped(low)}{unit}"
    return f"Up to {grouped(high)}{unit}" if high is not None else ""


def _beyond(schema: Mapping[str, Any]) -> list[str]:
    low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    more = [f"More than {grouped(low)}"] if is_number(low) else []
    return more + ([f"Less than {grouped(high)}"] if is_number(high) else [])


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
