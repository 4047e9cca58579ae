"""How much work a form or a check would be, before it is done: a validator in Rust cannot be interrupted (S38).

Thirty definitions, each of them twice the next one, are a thousand million steps; ten thousand references in a row
overflow a thread's stack and end the whole process. Both fit into a few kilobytes, so both are counted here first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.core.forms.values import figure
from app.core.schema.refs import Schemas

MAX_SCHEMA_SIZE = 512 * 1024
"""About the characters of the schema as JSON."""
MAX_SCHEMA_DEPTH = 200
MAX_LABOUR = 1_000_000
"""Times that a schema is held against a value: about 0.2 s."""
MAX_PAIRS = 100_000
"""Different pairs of schema and value; more is too long to count."""
MAX_CHAIN = 150
"""Schemas that one value is held against because one leads to the next."""
MAX_REFERENCES = 2_000
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_TANGLED = "The schema is too tangled to be checked."
_CIRCLE = "The schema points to itself, so nothing can be checked against it."


class _TooMuch(Exception):
    """The check would take too long; the message says why."""


def burden(schema: Any) -> str:
    """Why a schema is too much for a form and a check, as a sentence; "" when it is not. Walks without recursion."""
    size, depth, level = 0, 0, [schema]
    while level:
        depth += 1
        if depth > MAX_SCHEMA_DEPTH:
            return f"The schema is nested deeper than {MAX_SCHEMA_DEPTH} levels."
        inside: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                size += 2 + sum(len(key) + 4 for key in node)
                inside.extend(node.values())
            elif isinstance(node, list):
                size += 2 + len(node)
                inside.extend(node)
            else:
                size += len(node) + 2 if isinstance(node, str) else 4
            if size + len(inside) > MAX_SCHEMA_SIZE:
                return f"The schema is larger than {figure(MAX_SCHEMA_SIZE // 1024)} kB."
        level = inside
    return ""


def tangle(schema: Any) -> str:
    """Why a schema as such is too much for a validator, as a sentence; "" when it is not. Walks without recursion."""
    schemas = Schemas(schema)
    known: dict[int, tuple[int, int]] = {}  # of a schema: how long its chain is, and how many schemas it leads to
    opened: set[int] = set()
    references = 0
    for start in _all(schema):
        if "$ref" in start:
            references += 1
            if references > MAX_REFERENCES:
                return _TANGLED
        stack = [start]
        while stack:
            node = stack[-1]
            if id(node) in known:
                stack.pop()
                continue
            next_ones = list(_same_place(node, schemas))
            unknown = [each for each in next_ones if id(each) not in known]
            if unknown:
                opened.add(id(node))
                if any(id(each) in opened for each in unknown):
                    return _CIRCLE
                stack.extend(unknown)
                continue
            stack.pop()
            opened.discard(id(node))
            chain = 1 + max((known[id(each)][0] for each in next_ones), default=0)
            many = 1 + sum(known[id(each)][1] for each in next_ones)
            if chain > MAX_CHAIN or many > MAX_LABOUR:
                return _TANGLED
            known[id(node)] = (chain, many)
    return ""


def labour(schema: Any, value: Any) -> str:
    """Why a check of this value would take too long, as a sentence; "" when it would not."""
    counter = _Counter(Schemas(schema))
    try:
        counter.count(schema, value, 0)
    except _TooMuch as fault:
        return str(fault)
    except RecursionError:
        return _TANGLED
    return ""


class _Counter:
    """Counts how often a schema is held against a part of a value. Remembers, so that counting stays short."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._known: dict[tuple[int, int], int] = {}

    def count(self, schema: Any, value: Any, depth: int) -> int:
        if not isinstance(schema, dict):
            return 1
        pair = (id(schema), id(value))
        if pair in self._known:
            return self._known[pair]
        if depth > 300:
            raise _TooMuch(_TANGLED)
        if len(self._known) > MAX_PAIRS:
            raise _TooMuch("The value is too large to be checked.")
        self._known[pair] = 1
        total = 1
        for part in _same_place(schema, self._schemas):
            total += self.count(part, value, depth + 1)
        for part, child in _below(schema, value):
            total += self.count(part, child, depth + 1)
        if total > MAX_LABOUR:
            raise _TooMuch("A check of this value would take too long.")
        self._known[pair] = total
        return total


def _all(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object inside a schema; a few of them are no schemas, which does no harm."""
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack.extend(each for each in node.values() if isinstance(each, dict | list))
        elif isinstance(node, list):
            stack.extend(each for each in node if isinstance(each, dict | list))


def _same_place(schema: dict[str, Any], schemas: Schemas) -> Iterator[dict[str, Any]]:
    """The schemas that are held against the same value as this one."""
    for word in _LISTS:
        listed = schema.get(word)
        if isinstance(listed, list):
            yield from (each for each in listed if isinstance(each, dict))
    yield from (schema[word] for word in _SINGLE if isinstance(schema.get(word), dict))
    for word in ("dependentSchemas", "dependencies"):
        named = schema.get(word)
        if isinstance(named, dict):
            yield from (each for each in named.values() if isinstance(each, dict))
    target = schemas.target(schema)
    if isinstance(target, dict):
        yield target


def _below(schema: dict[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
    """The schemas that are held against the parts of a value, each with its part."""
    if isinstance(value, dict):
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        patterns = schema.get("patternProperties")
        general = [schema.get("additionalProperties"), schema.get("unevaluatedProperties")]
        general += patterns.values() if isinstance(patterns, dict) else ()
        names = schema.get("propertyNames")
        for key, child in value.items():
            if key in properties:
                yield properties[key], child
            yield from ((part, child) for part in general if isinstance(part, dict))
            if isinstance(names, dict):
                yield names, key
    elif isinstance(value, list):
        items = schema.get("items")
        prefix = items if isinstance(items, list) else schema.get("prefixItems")
        if isinstance(prefix, list):
            yield from zip(prefix, value, strict=False)
        general = [items, *(schema.get(word) for word in ("additionalItems", "contains", "unevaluatedItems"))]
        for part in general:
            if isinstance(part, dict):
                yield from ((part, child) for child in value)
