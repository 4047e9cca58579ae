"""Schemas made plain: references followed, `allOf` merged, null taken out, alternatives and choices found.

A form needs one plain schema for each place. What is lost on the way (patterns, conditions, `not`) is lost for the
drawing only: values are checked against the schema as it came. Bounded in steps (S38).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from app import bounds
from app.core.json.values import same, show, to_json_text, type_of
from app.core.schema.refs import REFERENCES, Document, NoShape

T = TypeVar("T")
Schema = dict[str, Any]
_ANNOTATIONS = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
_LEADING = frozenset({"allOf", *REFERENCES})
_SHAPES = _LEADING | frozenset(
    {"type", "properties", "items", "prefixItems", "enum", "const", "format", "additionalProperties", "contentEncoding"}
    | {"patternProperties", "oneOf", "anyOf"}
)
_LARGEST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_SMALLEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_SPOKEN_OF = {
    "object": ("properties", "additionalProperties", "required", "patternProperties", "propertyNames"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding"),
    "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
}
_NAMED, _OTHER_KEYS, _OTHER_TYPE, _ANY_TYPE = 100, 4, 2, 1
"""How much it counts that a value is one that a schema names, lacks a key or has one too many, is of another type
inside, and that the schema says no type."""


@dataclass(slots=True)
class Option:
    """One choice: what is sent, and what is read."""

    value: Any
    title: str


class Schemas:
    """The parts of one schema, made plain on demand."""

    def __init__(self, root: Any) -> None:
        self._document = Document(root)
        self._steps = 0
        self._known: dict[tuple[str, int], tuple[Any, Any]] = {}
        """By the id of a schema, with the schema itself, so that its id stays its own."""

    def _once(self, what: str, about: Any, find: Callable[[Any], T]) -> T:
        key = (what, id(about))
        if key not in self._known:
            self._known[key] = (about, find(about))
        found: T = self._known[key][1]
        return found

    def plain(self, schema: Any, seen: tuple[int, ...] = ()) -> Schema:
        """A schema without references and `allOf`; `seen` are the ids of what references have led to before. Raises
        NoShape when there is none."""
        if isinstance(schema, dict) and _LEADING.isdisjoint(schema):
            return schema
        return self._once("plain", schema, lambda schema: self._follow(schema, seen))

    def plain_or_none(self, schema: Any) -> Schema | None:
        """The same; None when there is none."""
        try:
            return self.plain(schema)
        except NoShape:
            return None

    def _follow(self, schema: Any, seen: tuple[int, ...]) -> Schema:
        self._steps += 1
        if self._steps > bounds.SCHEMA_FOLLOWED:
            raise NoShape("The schema is too tangled for a form.")
        if schema is True:
            return {}
        if not isinstance(schema, dict):
            raise NoShape("The schema allows no value here." if schema is False else "This is not a schema.")
        word = next((each for each in REFERENCES if each in schema), None)
        if word is not None:
            target = self._document.target(schema, word)
            if id(target) in seen or len(seen) > bounds.SCHEMA_HOPS:
                raise NoShape("The schema points to itself.")
            old = self._document.old
            beside = {key: part for key, part in schema.items() if key != word and (not old or key in _ANNOTATIONS)}
            return self._joined(beside, [self.plain(target, (*seen, id(target)))], seen)
        if isinstance(schema.get("allOf"), list):
            rest = {key: part for key, part in schema.items() if key != "allOf"}
            return self._joined(rest, schema["allOf"], seen)
        return schema

    def _joined(self, first: Schema, others: list[Any], seen: tuple[int, ...]) -> Schema:
        if not first and len(others) == 1:
            return self.plain(others[0], seen)
        merged = self.plain(first, seen) if "allOf" in first else first
        for each in others:
            below = self.plain(each, seen)
            self._steps += len(properties_of(below)) // 20
            merged = merge(merged, below)
        return merged

    def without_null(self, schema: Schema) -> tuple[Schema, bool]:
        """A plain schema less its null, and whether null was one of several things it allowed."""
        return self._once("slim", schema, self._without_null)

    def _without_null(self, schema: Schema) -> tuple[Schema, bool]:
        kinds = schema.get("type")
        if isinstance(kinds, list) and len(kinds) > 1 and "null" in kinds:
            rest = [kind for kind in kinds if kind != "null"]
            slim = {**schema, "type": rest[0] if len(rest) == 1 else rest}
            if isinstance(slim.get("enum"), list):
                slim["enum"] = [each for each in slim["enum"] if each is not None]
                return (slim, None in schema["enum"]) if slim["enum"] else (schema, False)
            return (slim, True) if "const" not in schema else (schema, False)
        for word in ("anyOf", "oneOf") if "type" not in schema else ():
            each = schema[word] if isinstance(schema.get(word), list) else []
            rest = [one for one in each if not _is_null(self.plain_or_none(one))]
            if not rest or len(rest) != len(each) - 1:
                continue
            others = {key: part for key, part in schema.items() if key != word}
            if len(rest) > 1:
                return {**others, word: rest}, True
            try:
                return merge(others, self.plain(rest[0])), True
            except NoShape:
                return schema, False
        return schema, False

    def alternatives(self, schema: Schema) -> list[Schema]:
        """The alternatives that a plain schema offers, each with what holds for all of them; [] when it offers none."""
        return self._once("alternatives", schema, self._alternatives)

    def _alternatives(self, schema: Schema) -> list[Schema]:
        for word in ("oneOf", "anyOf"):
            listed = schema.get(word)
            # `anyOf: [{required: [a]}, {required: [b]}]` says nothing about the shape
            if isinstance(listed, list) and any(isinstance(each, dict) and _SHAPES & each.keys() for each in listed):
                outer = {key: part for key, part in schema.items() if key not in (word, *_ANNOTATIONS)}
                return [self._alternative(each, outer) for each in listed[: bounds.ALTERNATIVES]]
        kinds = schema.get("type")
        if isinstance(kinds, list) and len(kinds) > 1:
            bare = {key: part for key, part in schema.items() if key not in _ANNOTATIONS}
            return [{**bare, "type": kind} for kind in kinds[: bounds.ALTERNATIVES]]
        return []

    def _alternative(self, schema: Any, outer: Schema) -> Schema:
        try:
            return merge(self.plain(schema), outer)
        except NoShape:
            return schema if isinstance(schema, dict) else {}

    def closest(self, offered: list[Schema], value: Any) -> int | None:
        """The alternative that a value looks like most; None when its type fits none.

        A value with one wrong field still belongs to the alternative whose `kind` it names, and a form must show it
        somewhere: so this does not ask whether it fits."""
        marks = [self._distance(each, value, 0) for each in offered]
        known = [(mark, at) for at, mark in enumerate(marks) if mark is not None]
        return min(known)[1] if known else None

    def _distance(self, schema: Schema, value: Any, depth: int) -> int | None:
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
            plain = self.plain_or_none(part)
            mark = self._distance(plain, each, depth + 1) if plain is not None else 0
            if mark is None:
                far += _NAMED if plain is not None and ("const" in plain or "enum" in plain) else _OTHER_TYPE
            elif mark < 0:
                far += mark
        return far

    def options(self, schema: Schema) -> list[Option] | None:
        """The values to choose from, when that is what a plain schema says."""
        values, names = schema.get("enum"), schema.get("enumNames")
        if isinstance(values, list) and values:
            if isinstance(names, list) and len(names) == len(values) <= bounds.TITLED_OPTIONS:
                return _apart([Option(value, show(name)) for value, name in zip(values, names, strict=True)])
            return self._once("enum", values, _listed)
        for word in ("oneOf", "anyOf"):
            if isinstance(schema.get(word), list) and (found := self._once("consts", schema[word], self._consts)):
                return found
        return None

    def all_texts(self, options: list[Option]) -> bool:
        """Whether every value to choose from is a text."""
        return self._once("texts", options, lambda options: all(isinstance(each.value, str) for each in options))

    def _consts(self, listed: list[Any]) -> list[Option]:
        """The values of alternatives that are nothing but values; [] when they are more."""
        each = [plain for one in listed if (plain := self.plain_or_none(one)) is not None]
        if len(each) != len(listed) or not all(_only_values(one) for one in each):
            return []
        if all("const" in one for one in each):
            return _apart([Option(one["const"], show(one.get("title", one["const"]))) for one in each])
        if any("const" in one for one in each):
            return []
        return _apart([Option(value, show(value)) for one in each for value in one["enum"]])


def _listed(values: list[Any]) -> list[Option]:
    if len(values) > bounds.TITLED_OPTIONS:
        return [Option(value, "") for value in values]
    return _apart([Option(value, show(value)) for value in values])


def _apart(options: list[Option]) -> list[Option]:
    """The options, with values in the place of titles that would read the same: 1 and "1"."""
    counts = Counter(" ".join(option.title.split()) for option in options)
    for option in options:
        seen = " ".join(option.title.split())
        if counts[seen] > 1 or not seen:
            option.title = to_json_text(option.value, indent=None)[:200]
    return options


def _only_values(schema: Schema) -> bool:
    """Whether a schema names its values and nothing else about their shape."""
    named = "const" in schema or (isinstance(schema.get("enum"), list) and bool(schema["enum"]))
    return named and not (_SHAPES - {"type", "enum", "const", "format"}) & schema.keys()


def _is_null(schema: Schema | None) -> bool:
    if schema is None:
        return False
    return schema.get("type") in ("null", ["null"]) or schema.get("enum") == [None] or schema.get("const", "") is None


def merge(first: Schema, second: Schema) -> Schema:
    """Two plain schemas that both hold, as one that can be drawn; annotations of the first win. Raises NoShape when no
    value can fit both."""
    merged = dict(first)
    for key, value in second.items():
        if key not in merged or merged[key] is value:
            merged[key] = value
            continue
        match key, merged[key], value:
            case "properties", dict(mine), dict():
                merged[key] = mine | {name: _both(mine.get(name, part), part) for name, part in value.items()}
            case "required", list(mine), list():
                merged[key] = list(dict.fromkeys(each for each in (*mine, *value) if isinstance(each, str)))
            case "items" | "additionalProperties", dict(mine), dict():
                merged[key] = _both(mine, value)
            case "additionalProperties", mine, _:
                merged[key] = mine if value is True or mine is False else value
            case _, int(mine) | float(mine), int() | float() if key in _LARGEST:
                merged[key] = max(mine, value)
            case _, int(mine) | float(mine), int() | float() if key in _SMALLEST:
                merged[key] = min(mine, value)
            case "type", mine, _:
                merged[key] = _common_types(mine, value)
            case "enum", list(mine), list():
                known = {_key_of(each) for each in value}
                merged[key] = [each for each in mine if _key_of(each) in known]
        if (key in ("type", "enum") and not merged[key]) or (key == "const" and not same(merged[key], value)):
            raise NoShape("The schema combines parts that no value can fit at once.")
    return merged


def _both(first: Any, second: Any) -> Any:
    return first if first == second else {"allOf": [first, second]}


def _common_types(first: Any, second: Any) -> Any:
    mine, theirs = ([each] if isinstance(each, str) else each for each in (first, second))
    if not isinstance(mine, list) or not isinstance(theirs, list):
        return []
    found = [kind for kind in mine if kind in theirs or (kind == "integer" and "number" in theirs)]
    found += ["integer" for kind in theirs if kind == "integer" and "number" in mine and "integer" not in found]
    return found[0] if len(found) == 1 else found


def properties_of(schema: Schema) -> dict[str, Any]:
    """The properties that a schema names."""
    named = schema.get("properties")
    return named if isinstance(named, dict) else {}


def required_keys(schema: Schema) -> list[str]:
    """The keys that a schema says must be there."""
    listed = schema.get("required")
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def implied_type(schema: Schema) -> str | None:
    """The type that the other keywords of a schema speak of, when it names none itself."""
    return next((kind for kind, words in _SPOKEN_OF.items() if any(word in schema for word in words)), None)


def extra_keys(schema: Schema) -> tuple[Any, bool]:
    """The schema of the keys that are not among the properties, and whether the schema speaks of such keys."""
    extra = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict) and patterns and not isinstance(extra, dict):
        first, *others = patterns.values()
        alike = isinstance(first, dict) and all(each == first for each in others)
        return (first if alike and first else True), True
    return (True, False) if extra is None else (extra, extra is not False)


def _key_of(value: Any) -> Any:
    """A value as something to look it up by among many."""
    if isinstance(value, str | bool) or value is None:
        return type(value), value
    return ("number", value) if isinstance(value, int | float) else json.dumps(value, sort_keys=True)
