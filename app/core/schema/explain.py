"""What the validator found, as sentences for people: what is wrong with the value, and where it belongs.

One row of a table for each kind of error that jsonschema-rs knows; a test walks them. Never the words of the validator.
"""

from __future__ import annotations

import re
from calendar import month_name, monthrange
from collections.abc import Callable, Iterator
from typing import Any

from app.core.figures import grouped
from app.core.json import pointer
from app.core.json.pointer import escape
from app.core.json.values import is_number, same, show, type_of

Place = tuple[str, str]
"""A pointer, and a sentence about the value that stands there."""
Saying = Callable[[Any, Any], str]
"""Makes a sentence of what the schema asks for and of the value that does not give it."""

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
    **dict.fromkeys(("email", "idn-email"), "an email address"),
    **dict.fromkeys(("uri", "iri", "url"), "a full address, such as https://example.org/"),
    "uri-reference": "an address",
    "uuid": "a UUID, such as 123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "an IPv4 address, such as 192.0.2.1",
    "ipv6": "an IPv6 address, such as 2001:db8::1",
    "hostname": "a host name",
    "regex": "a regular expression",
    "duration": "a duration, such as P1DT2H30M",
    "json-pointer": "a JSON Pointer, such as /a/0",
}
_FAR = {
    **{(kind, 0): 100 for kind in ("Type", "Constant", "Enum", "FalseSchema")},
    **{(kind, 1): 10 for kind in ("Constant", "Enum")},
    **{(kind, 0): 2 for kind in ("Required", "AdditionalProperties")},
}
"""How far an error puts a value from an alternative, by its kind and by how deep inside it is."""


def sentences(error: Any, schema: Any) -> Iterator[Place]:
    """Where each thing that one error says belongs, and what it says."""
    at, kind, path = pointer.join(error.instance_path), error.kind, error.schema_path
    match type(kind).__name__:
        case "Required":
            yield f"{at}/{escape(kind.property)}", _required(path)
        case "AdditionalProperties" | "UnevaluatedProperties":
            for key in kind.unexpected[:10]:
                yield f"{at}/{escape(key)}", "The schema does not know this key."
        case "AnyOf" | "OneOfNotValid":
            yield from _alternatives(kind.context, at, error, schema)
        case "PropertyNames":
            for _, sentence in sentences(kind.error, schema):
                yield f"{at}/{escape(kind.error.instance)}", f"About its key: {sentence}"
        case "Minimum" | "Maximum" if between := _range(schema, path, kind.value):
            yield at, between
        case "FalseSchema" if path and path[-1] == "additionalProperties":
            yield at, "The schema knows no keys here."
        case name:
            saying = _SAYINGS.get(name, "The schema does not allow this value.")
            yield at, saying if isinstance(saying, str) else saying(kind.value, error.instance)


def _required(path: list[str | int]) -> str:
    if path and path[-1] in ("dependentRequired", "dependencies"):
        return "This is required beside what else is given."
    if any(part in ("then", "else", "dependentSchemas") for part in path):
        return "This is required with what else is given."
    return "This is required."


def _range(schema: Any, path: list[str | int], limit: Any) -> str:
    """Both bounds of a number, where the schema names both beside one another; else ""."""
    try:
        node = pointer.resolve(schema, pointer.join(path[:-1]))
    except KeyError:
        return ""
    if not isinstance(node, dict) or node.get(path[-1]) != limit:
        return ""  # the path within a part that has an `$id` begins at that part, and leads somewhere else from here
    low, high = node.get("minimum"), node.get("maximum")
    return f"Must be from {grouped(low)} to {grouped(high)}." if is_number(low) and is_number(high) else ""


def _alternatives(context: list[list[Any]], at: str, error: Any, schema: Any) -> Iterator[Place]:
    """What is wrong with the alternative that comes closest; or that none does."""
    depth = len(error.instance_path)

    def distance(errors: list[Any]) -> tuple[int, int]:
        met = ((type(each.kind).__name__, len(each.instance_path) - depth) for each in errors)
        return sum(_FAR.get(each, 0) for each in met), len(errors)

    ranked = sorted((distance(errors), index) for index, errors in enumerate(context))
    (far, _), closest = ranked[0]
    tied = len(ranked) > 1 and ranked[1][0] == ranked[0][0]
    none = f"It fits none of the {len(context)} alternatives."
    if far >= 100 and len(ranked) > 1:
        wanted = list(dict.fromkeys(each for errors in context for each in _wanted(errors)))
        yield at, f"Must be {_or(wanted)}." if 0 < len(wanted) <= 12 else none
    elif far >= 10 and tied:
        yield at, none
    else:
        for each in context[closest]:
            yield from sentences(each, schema)


def _wanted(errors: list[Any]) -> Iterator[str]:
    """The types and values that an alternative wants, when a value is not even one of those."""
    for each in errors:
        match type(each.kind).__name__:
            case "Type":
                yield from (_TYPES.get(kind, kind) for kind in each.kind.types)
            case "Constant":
                yield show(each.kind.expected_value, 40)
            case "Enum":
                yield from (show(option, 40) for option in each.kind.options[:10])


def _type(types: list[str], value: Any) -> str:
    wanted = [_TYPES.get(each, each) for each in types if each != "integer" or "number" not in types]
    return f"Must be {_or(wanted)}, not {_TYPES.get(type_of(value), 'this')}."


def _enum(options: list[Any], _: Any) -> str:
    rest = f" and {grouped(len(options) - 10)} more" if len(options) > 10 else ""
    return f"Must be one of {', '.join(show(each, 40) for each in options[:10])}{rest}."


def _bound(words: str) -> Saying:
    return lambda limit, _: f"Must be {words} {grouped(limit) if is_number(limit) else limit}."


def _count(words: str, noun: str) -> Saying:
    def saying(limit: int, value: Any) -> str:
        there = grouped(len(value)) if value else "none"
        return f"{words} {grouped(limit)} {noun}{'' if limit == 1 else 's'}; this has {there}."

    return saying


def _twins(_: Any, items: list[Any]) -> str:
    for second, item in enumerate(items[:200]):
        for first in range(second):
            if same(items[first], item):
                return f"Items may not repeat; {first + 1} and {second + 1} are the same."
    return "Items may not repeat."


def _several(context: list[Any], _: Any) -> str:
    fitting = sum(not each for each in context)
    return f"It fits {fitting if fitting > 1 else 'several'} of the alternatives, and may fit only one."


def _format(name: str, text: str) -> str:
    if name == "date":
        return _date(text) or "Write the date as YYYY-MM-DD."
    if name == "time":
        return _time(text) or "Write the time as HH:MM:SS with a zone, such as 09:30:00Z."
    if name == "date-time":
        day, _, clock = text.replace("t", "T").replace(" ", "T").partition("T")
        return _date(day) or _time(clock) or "Write the date and time with a zone, such as 2026-01-31T09:30:00Z."
    return f"This is not {_FORMATS.get(name) or f'a valid {show(name, 40)}'}."


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
        return f"There is no day {day}." if not 1 <= day <= 31 else f"{month_name[month]} {year} has {days} days."
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


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}" if words else "something else"


_SAYINGS: dict[str, str | Saying] = {
    "Type": _type,
    "Enum": _enum,
    "Constant": lambda wanted, _: f"Must be {show(wanted, 80)}.",
    "Minimum": _bound("at least"),
    "Maximum": _bound("at most"),
    "ExclusiveMinimum": _bound("more than"),
    "ExclusiveMaximum": _bound("less than"),
    "MultipleOf": lambda factor, _: f"Must be a multiple of {show(factor)}.",
    "MinLength": _count("At least", "character"),
    "MaxLength": _count("At most", "character"),
    "MinItems": _count("At least", "item"),
    "MaxItems": _count("At most", "item"),
    "AdditionalItems": _count("At most", "item"),
    "MinProperties": _count("At least", "key"),
    "MaxProperties": _count("At most", "key"),
    "UnevaluatedItems": lambda extra, _: f"The schema has no place for {grouped(len(extra))} of these items.",
    "UniqueItems": _twins,
    "Pattern": lambda pattern, _: f"Does not match the pattern {show(pattern, 120)}.",
    "Format": _format,
    "Contains": "It needs more items, or fewer, of the kind that the schema asks for.",
    "ContentEncoding": lambda encoding, _: f"This is not {show(encoding, 40)}.",
    "ContentMediaType": lambda media_type, _: f"This is not {show(media_type, 40)}.",
    "FromUtf8": "Decoded, this is not UTF-8 text.",
    "FalseSchema": "Nothing may stand here.",
    "Not": "The schema rules out this value.",
    "OneOfMultipleValid": _several,
    "BacktrackLimitExceeded": "The schema's pattern takes too long to be checked.",
    "RegexEngineFailure": "The schema's pattern takes too long to be checked.",
    "Referencing": "The schema points to something that is not in it, so this was not checked.",
}
