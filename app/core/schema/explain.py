"""What the validator found, as sentences for people: what is wrong with the value, and where it belongs.

One branch for each kind of error that jsonschema-rs knows; a test walks them. Never the words of the validator.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from typing import Any

from app.core.figures import grouped
from app.core.json import pointer
from app.core.json.pointer import escape
from app.core.json.values import is_number, same, show, type_of

Place = tuple[str, str]
"""A pointer, and a sentence about the value that stands there."""

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_FORMATS = {
    "email": "This is not an email address.",
    "idn-email": "This is not an email address.",
    "uri": "This is not a full address, such as https://example.org/.",
    "iri": "This is not a full address, such as https://example.org/.",
    "url": "This is not a full address, such as https://example.org/.",
    "uri-reference": "This is not an address.",
    "uuid": "This is not a UUID, such as 123e4567-e89b-12d3-a456-426614174000.",
    "ipv4": "This is not an IPv4 address, such as 192.0.2.1.",
    "ipv6": "This is not an IPv6 address, such as 2001:db8::1.",
    "hostname": "This is not a host name.",
    "regex": "This is not a regular expression.",
    "duration": "This is not a duration, such as P1DT2H30M.",
    "json-pointer": "This is not a JSON Pointer, such as /a/0.",
}


def sentences(error: Any, schema: Any) -> Iterator[Place]:
    """Where each thing that one error says belongs, and what it says."""
    at = pointer.join(error.instance_path)
    kind = error.kind
    match type(kind).__name__:
        case "Required":
            yield f"{at}/{escape(kind.property)}", _required(error)
        case "AdditionalProperties" | "UnevaluatedProperties":
            for key in kind.unexpected[:10]:
                yield f"{at}/{escape(key)}", "The schema does not know this key."
        case "AnyOf" | "OneOfNotValid":
            yield from _alternatives(kind.context, at, error, schema)
        case "PropertyNames":
            inner = kind.error
            key = inner.instance if isinstance(inner.instance, str) else ""
            for _, sentence in sentences(inner, schema):
                yield f"{at}/{escape(key)}", f"About its key: {sentence}"
        case name:
            yield at, _about(name, kind, error, schema)


def _about(name: str, kind: Any, error: Any, schema: Any) -> str:
    """What an error says about the value that it is about."""
    value = error.instance
    match name:
        case "Type":
            wanted = [_TYPES.get(each, each) for each in kind.types if each != "integer" or "number" not in kind.types]
            return f"Must be {_or(wanted)}, not {_TYPES.get(type_of(value), 'this')}."
        case "Enum":
            listed = [show(each, 40) for each in kind.options[:11]]
            rest = len(kind.options) - 10
            return f"Must be one of {', '.join(listed[:10])}{f' and {grouped(rest)} more' if rest > 0 else ''}."
        case "Constant":
            return f"Must be {show(kind.expected_value, 80)}."
        case "Minimum" | "Maximum" | "ExclusiveMinimum" | "ExclusiveMaximum":
            return _bounds(name, kind.limit, _node(schema, error.schema_path))
        case "MultipleOf":
            return f"Must be a multiple of {show(kind.multiple_of)}."
        case "MinLength" | "MaxLength":
            return _count(name.startswith("Min"), kind.limit, len(value) if isinstance(value, str) else 0, "character")
        case "MinItems" | "MaxItems":
            return _count(name.startswith("Min"), kind.limit, len(value) if isinstance(value, list) else 0, "item")
        case "MinProperties" | "MaxProperties":
            return _count(name.startswith("Min"), kind.limit, len(value) if isinstance(value, dict) else 0, "key")
        case "AdditionalItems":
            return _count(False, kind.limit, len(value) if isinstance(value, list) else 0, "item")
        case "UnevaluatedItems":
            return f"The schema has no place for {grouped(len(kind.unexpected))} of these items."
        case "UniqueItems":
            return _twins(value)
        case "Pattern":
            return f"Does not match the pattern {show(kind.pattern, 120)}."
        case "Format":
            return _format(kind.format, value)
        case "Contains":
            return "It needs more items, or fewer, of the kind that the schema asks for."
        case "ContentEncoding":
            return f"This is not {show(kind.content_encoding, 40)}."
        case "ContentMediaType":
            return f"This is not {show(kind.content_media_type, 40)}."
        case "FromUtf8":
            return "Decoded, this is not UTF-8 text."
        case "FalseSchema":
            closed = bool(error.schema_path) and error.schema_path[-1] == "additionalProperties"
            return "The schema knows no keys here." if closed else "Nothing may stand here."
        case "Not":
            return "The schema rules out this value."
        case "OneOfMultipleValid":
            fitting = sum(1 for each in kind.context if not each)
            return f"It fits {fitting if fitting > 1 else 'several'} of the alternatives, and may fit only one."
        case "BacktrackLimitExceeded" | "RegexEngineFailure":
            return "The schema's pattern takes too long to be checked."
        case "Referencing":
            return "The schema points to something that is not in it, so this was not checked."
        case _:
            return "The schema does not allow this value."


def _required(error: Any) -> str:
    path = error.schema_path
    if path and path[-1] in ("dependentRequired", "dependencies"):
        return "This is required beside what else is given."
    if any(part in ("then", "else", "dependentSchemas") for part in path):
        return "This is required with what else is given."
    return "This is required."


def _alternatives(context: list[list[Any]], at: str, error: Any, schema: Any) -> Iterator[Place]:
    """What is wrong with the alternative that comes closest; or that none does."""
    depth = len(error.instance_path)

    def distance(errors: list[Any]) -> tuple[int, int]:
        far = 0
        for each in errors:
            name = type(each.kind).__name__
            above = len(each.instance_path) - depth
            if above == 0 and name in ("Type", "Constant", "Enum", "FalseSchema"):
                far += 100
            elif above == 1 and name in ("Constant", "Enum"):
                far += 10
            elif above == 0 and name in ("Required", "AdditionalProperties"):
                far += 2
        return far, len(errors)

    ranked = sorted((distance(errors), index) for index, errors in enumerate(context) if errors)
    if not ranked:
        yield at, "It fits none of the alternatives."
        return
    (far, _), closest = ranked[0]
    tied = len(ranked) > 1 and ranked[1][0] == ranked[0][0]
    if far >= 100 and len(ranked) > 1:
        yield at, _kinds(context)
    elif far >= 10 and tied:
        yield at, f"It fits none of the {len(context)} alternatives."
    else:
        for each in context[closest]:
            yield from sentences(each, schema)


def _kinds(context: list[list[Any]]) -> str:
    """What the alternatives want, when a value is not even of the type of one."""
    wanted: list[str] = []
    for errors in context:
        for each in errors:
            name = type(each.kind).__name__
            if name == "Type":
                wanted += [_TYPES.get(kind, kind) for kind in each.kind.types]
            elif name == "Constant":
                wanted.append(show(each.kind.expected_value, 40))
            elif name == "Enum":
                wanted += [show(option, 40) for option in each.kind.options[:10]]
    unique = list(dict.fromkeys(wanted))
    return f"Must be {_or(unique)}." if 0 < len(unique) <= 12 else f"It fits none of the {len(context)} alternatives."


def _bounds(name: str, limit: Any, node: Any) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    if name in ("Minimum", "Maximum") and is_number(low) and is_number(high):
        return f"Must be from {grouped(low)} to {grouped(high)}."
    words = {"Minimum": "at least", "Maximum": "at most", "ExclusiveMinimum": "more than"}.get(name, "less than")
    return f"Must be {words} {grouped(limit) if is_number(limit) else limit}."


def _count(least: bool, limit: int, there: int, noun: str) -> str:
    noun += "" if limit == 1 else "s"
    has = grouped(there) if there else "none"
    return f"{'At least' if least else 'At most'} {grouped(limit)} {noun}; this has {has}."


def _twins(value: Any) -> str:
    items = value[:200] if isinstance(value, list) else []
    for second, item in enumerate(items):
        for first in range(second):
            if same(items[first], item):
                return f"Items may not repeat; {first + 1} and {second + 1} are the same."
    return "Items may not repeat."


def _format(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else ""
    if name == "date":
        return _date(text) or "Write the date as YYYY-MM-DD."
    if name == "time":
        return _time(text) or "Write the time as HH:MM:SS with a zone, such as 09:30:00Z."
    if name == "date-time":
        day, _, clock = text.replace("t", "T").replace(" ", "T").partition("T")
        return _date(day) or _time(clock) or "Write the date and time with a zone, such as 2026-01-31T09:30:00Z."
    return _FORMATS.get(name, f"This is not a valid {show(name, 40)}.")


def _date(text: str) -> str:
    """What is impossible about a date; "" when it is possible, or no date at all."""
    found = re.fullmatch(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})", text)
    if found is None:
        return ""
    year, month, day = map(int, found.groups())
    if not 1 <= month <= 12:
        return f"There is no month {month}."
    days = monthrange(year or 4, month)[1]
    if not 1 <= day <= days:
        return f"There is no day {day}." if not 1 <= day <= 31 else f"{_MONTHS[month - 1]} {year} has {days} days."
    return ""


def _time(text: str) -> str:
    """What is impossible about a time; "" when it is possible, or no time at all."""
    found = re.match(r"([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.[0-9]+)?)?(.*)$", text)
    if found is None:
        return ""
    for word, part, most in zip(("hour", "minute", "second"), found.groups(), (23, 59, 60), strict=False):
        if part is not None and int(part) > most:
            return f"There is no {word} {int(part)}."
    return "Add the zone: Z for UTC, or an offset such as +02:00." if not found[4] else ""


def _node(schema: Any, path: list[str | int]) -> dict[str, Any]:
    """The part of a schema that a keyword stands in; {} when it cannot be found."""
    node = schema
    for part in path[:-1]:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            return {}
    return node if isinstance(node, dict) else {}


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}" if words else "something else"
