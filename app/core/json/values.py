"""JSON values and their texts: what is there and what is not, what is equal, how a value is written and read.

Numbers that do not fit are errors here, never silently something else (S40). Knows no schema and no form.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final, TypeGuard

from app import bounds
from app.core.json.text import Parsed, parse

_NUMBER = re.compile(r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,6})?")


class _Missing:
    """There is no value; null is one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: 1 and 1.0 are, 1 and true are not; the order of keys is free. Iterative: a peer chooses depths."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, bool) or isinstance(other, bool):
            if one is not other:
                return False
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            pairs += [(each, other[key]) for key, each in one.items()]
        elif one != other:
            return False
    return True


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a JSON number: an integer that can be written, or a float that is one."""
    if isinstance(value, bool):
        return False
    return (isinstance(value, int) and value.bit_length() < 3 * bounds.JSON_DIGITS) or (
        isinstance(value, float) and math.isfinite(value)
    )


def type_of(value: Any) -> str:
    """The JSON Schema type of a value; `integer` for a float without a fraction too."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    for python, name in ((float, "number"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, python):
            return name
    return ""


def number_of(text: str, whole: bool = False) -> int | float | str:
    """The number that a text says; or the sentence that says why it says none. `whole` makes 1e20 exact."""
    text = text.strip()
    shown = text if len(text) <= 40 else text[:40] + "…"
    if _NUMBER.fullmatch(text) is None:
        return f"“{shown}” is not a number."
    if text.lstrip("+-").isdigit():
        return int(text) if len(text) <= bounds.JSON_DIGITS else f"A number of {len(text):,} digits is too long."
    number = float(text)
    if not math.isfinite(number):
        return f"“{shown}” is too large for a number in JSON."
    exactly = Decimal(text) if whole else None
    return number if exactly is None or exactly != exactly.to_integral_value() else int(exactly)


def show(value: Any, most: int = 200) -> str:
    """A value as a short text for people: strings as they are, the rest as JSON."""
    text = value if isinstance(value, str) else to_json_text(value, indent=None)
    return text if len(text) <= most else text[: most - 1] + "…"


def to_json_text(value: Any, indent: int | None = 2) -> str:
    """A value as JSON for people; "" when there is none. What JSON cannot say (NaN, endless depth) is refused."""
    if value is MISSING:
        return ""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, allow_nan=False)
    except RecursionError:
        raise ValueError("it is nested too deep to be written") from None
    return text


def from_json_text(text: str) -> Parsed:
    """What a person typed as JSON; a problem is a sentence with line and column. Empty text is MISSING, and no problem.

    MISSING is also what cannot be read; what only should not be written so is there beside its problem."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return Parsed(MISSING)
    parsed = parse(text.encode(errors="replace"), strict=True)
    problem = parsed.problem or next(iter(parsed.remarks), None)
    if (fault := parsed.fault) is not None:
        problem = f"Not JSON: line {fault.line}, column {fault.column}: {fault.what}."
    unread = parsed.problem is not None and parsed.value is None
    return replace(parsed, value=MISSING if unread else parsed.value, problem=problem)
