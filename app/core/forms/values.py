"""JSON values and their texts: what is there and what is not, what is equal, how a value is written and read.

Numbers that do not fit are errors here, never silently something else (S40). Knows no schema and no form.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any, Final

from app.core.json.text import MAX_DEPTH, parse

MAX_DIGITS = 3_900
"""Of an integer; from about 4,300 on, Python refuses to write it."""
_NUMBER = re.compile(r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,6})?")
_JSON_FAULTS: Final = {
    "Expecting value": "a value is missing",
    "Expecting ',' delimiter": "a comma or the closing bracket is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing",
    "Extra data": "there is more after the end",
    "Unterminated string starting at": "this text has no closing quote",
    "Invalid control character at": r"a line break or tab inside a text is written \n or \t",
    "Invalid \\escape": "this backslash means nothing in JSON",
    "Illegal trailing comma before end of object": "there is a comma too many",
    "Illegal trailing comma before end of array": "there is a comma too many",
}


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


def is_number(value: Any) -> bool:
    """Whether a value is a JSON number: an integer that can be written, or a float that is one."""
    if isinstance(value, bool):
        return False
    return (isinstance(value, int) and value.bit_length() < 3 * MAX_DIGITS) or (
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
        return int(text) if len(text) <= MAX_DIGITS else f"A number of {len(text):,} digits is too long."
    number = float(text)
    if not math.isfinite(number):
        return f"“{shown}” is too large for a number in JSON."
    exactly = Decimal(text) if whole else None
    return number if exactly is None or exactly != exactly.to_integral_value() else int(exactly)


def figure(number: Any) -> str:
    """A number for people: 12 408, in groups of three."""
    text = f"{number:,}".replace(",", "\u202f") if abs(number) < 1e15 else str(number)
    return text if len(text) <= 40 else text[:39] + "…"


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


def from_json_text(text: str) -> tuple[Any, str]:
    """The value of a JSON text, and "" or the sentence that says what is wrong and where. Empty text is MISSING."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return MISSING, ""
    try:
        json.loads(text, parse_float=_finite, parse_int=_bounded, parse_constant=_refuse)
    except json.JSONDecodeError as fault:
        what = _JSON_FAULTS.get(fault.msg, fault.msg)
        return MISSING, f"Not JSON: line {fault.lineno}, column {fault.colno}: {what}."
    except RecursionError:
        return MISSING, f"Nested deeper than {MAX_DEPTH} levels."
    except ValueError as fault:
        return MISSING, str(fault)
    parsed = parse(text.encode(errors="replace"))
    problem = parsed.problem or (parsed.remarks[0] if parsed.remarks else "")
    return (MISSING if parsed.problem else parsed.value), problem


def deeper_than(value: Any, limit: int) -> bool:
    """Whether containers are nested more than `limit` deep. Level by level, so that no depth can hurt."""
    level = [value]
    for _ in range(limit + 1):
        level = [child for node in level for child in _inside(node) if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _inside(node: Any) -> Any:
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large for a number in JSON.")
    return number


def _bounded(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"A number of {len(text):,} digits is too long.")
    return int(text)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a value in JSON.")
