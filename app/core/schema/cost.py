"""How much work a JSON Schema can make of a value, known before anybody does it (S38).

No validator we know can be stopped half-way, and a few lines of schema can ask for 2^40 steps. So this finds an upper
bound first, in time that grows with the schema and with the value, never with their product. It looks at three things:
how many schemas stand at one place, because one leads to the other there; how much of that one member or item of a
value meets; and how many of those lead further down, which is by how much the work can grow with each level. What
leads back to the same place without end has no bound. Judges nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from app import bounds
from app.core.figures import grouped
from app.core.schema.refs import REFERENCES, Schemas

_BACKTRACKING = 10_000
"""What such a match may cost, in steps."""
_FANCY = re.compile(r"\\[1-9k]|\(\?[=!<>]")
"""Backreferences and lookaround: these are matched by trying, all else in linear time."""
_ELSEWHERE = 200
"""What a reference out of the schema may cost at one place: where a validator knows it, it is a schema of schemas."""
_SAME_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})
_EXTRA_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_NAMED_PARTS = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_ITEMS = ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems")
_FURTHER = frozenset({"properties", "patternProperties", "propertyNames", *_EXTRA_MEMBERS, *_ITEMS})
_LEADING = _SAME_PLACE.union(REFERENCES)
_OUTSIDE: dict[str, Any] = {}
"""Stands for what is not in the schema."""
TOO_COMPLEX = "The schema is too tangled to be checked."
CIRCLE = "The schema points to itself, so nothing can be checked against it."


class TooCostly(Exception):
    """Nothing is checked: there is no bound, or it is too high. The message says why."""


def too_large(schema: Any) -> str:
    """Why a schema is too much for a form and for a check, as a sentence; "" when it is not."""
    size, depth, level = 0, 0, [schema]
    while level:
        depth += 1
        if depth > bounds.SCHEMA_DEPTH:
            return f"The schema is nested deeper than {bounds.SCHEMA_DEPTH} levels."
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
            if size + len(inside) > bounds.SCHEMA_SIZE:
                return f"The schema is larger than {grouped(bounds.SCHEMA_SIZE // 1024)} kB."
        level = inside
    return ""


@dataclass(slots=True, frozen=True)
class _Here:
    """The schemas that are met at one place because one leads to the next."""

    steps: int = 1
    further: bool = False
    """Whether they have anything to say about members or items."""
    chain: int = 0


@dataclass(slots=True)
class _Below:
    """What these have to say about one member or item, as steps and as schemas that lead further down. What holds for
    every member is apart from what is more, or less, for those with a name."""

    members: tuple[int, int] = (0, 0)
    items: tuple[int, int] = (0, 0)
    named: dict[str, tuple[int, int]] = field(default_factory=dict)

    def most(self) -> Iterator[tuple[int, int]]:
        yield self.items
        yield self.members
        yield from (_sum(self.members, more) for more in self.named.values())


class Cost:
    """What it may cost to hold values against one schema. Raises TooCostly when that cannot be told."""

    def __init__(self, schema: Any) -> None:
        self._schemas = Schemas(schema)
        self._here: dict[int, _Here | None] = {id(_OUTSIDE): _Here(_ELSEWHERE, True, 1)}
        """None while it is being looked at: to meet it again then is a circle."""
        self._below = {id(_OUTSIDE): _Below((_ELSEWHERE, 1), (_ELSEWHERE, 1))}
        self._merged = 0
        self.alternatives = False
        """Whether it has any: an error about one holds the errors of all, so even the first can be large."""
        try:
            self._first = self._at(schema).steps
            met = self._reached(schema)
            self._steps, self._growth = _largest(pair for node in met for pair in self._under(node).most())
        except RecursionError:
            raise TooCostly(TOO_COMPLEX) from None

    def of(self, value: Any) -> int:
        """At most this many steps; from `CHECK_STEPS` on, the exact number is not looked for. Raises TooCostly when the
        value itself is nested too deep."""
        total, reaching, level = self._first, 1, [value] if isinstance(value, dict | list) else []
        for _ in range(bounds.VALUE_DEPTH + 1):
            if not level or total > bounds.CHECK_STEPS:
                return total
            inside: list[Any] = []
            for node in level:
                inside += node.values() if isinstance(node, dict) else node
            total += len(inside) * (1 + reaching * self._steps)
            reaching *= self._growth
            level = [child for child in inside if isinstance(child, dict | list)]
        raise TooCostly(f"It is nested deeper than {bounds.VALUE_DEPTH} levels, too deep to be checked.")

    def _reached(self, schema: Any) -> list[dict[str, Any]]:
        """Every schema that a part of a value can meet."""
        found: dict[int, dict[str, Any]] = {}
        stack = [schema]
        while stack:
            node = stack.pop()
            if isinstance(node, dict) and id(node) not in found:
                found[id(node)] = node
                self._at(node)
                self.alternatives = self.alternatives or "anyOf" in node or "oneOf" in node
                stack += self._same_place(node)
                stack += [part for word in node if word in _FURTHER for part in _parts(node, word)]
        return list(found.values())

    def _same_place(self, node: dict[str, Any]) -> list[dict[str, Any]]:
        """The schemas that are held against the same value as this one."""
        if _LEADING.isdisjoint(node):
            return []
        found = [part for word in node if word in _SAME_PLACE for part in _parts(node, word)]
        for word in REFERENCES:
            if word in node:
                if word != "$ref" and self._schemas.is_several:
                    raise TooCostly(TOO_COMPLEX)  # it may mean another place each time
                target = self._schemas.target(node, word)
                found.append(target if isinstance(target, dict) else _OUTSIDE)
        return found

    def _at(self, node: Any) -> _Here:
        if not isinstance(node, dict):
            return _Here()
        if id(node) not in self._here:
            self._here[id(node)] = None
            steps, further, chain = _own_steps(node), not _FURTHER.isdisjoint(node), 0
            for each in self._same_place(node):
                there = self._at(each)
                steps, further, chain = steps + there.steps, further or there.further, max(chain, there.chain)
            if chain >= bounds.SCHEMA_CHAIN or steps > bounds.CHECK_STEPS:
                raise TooCostly(TOO_COMPLEX)
            self._here[id(node)] = _Here(steps, further, chain + 1)
        here = self._here[id(node)]
        if here is None:
            raise TooCostly(CIRCLE)
        return here

    def _weight(self, parts: Iterable[Any]) -> tuple[int, int]:
        heres = [self._at(part) for part in parts]
        return sum(here.steps for here in heres), sum(here.further for here in heres)

    def _under(self, node: dict[str, Any]) -> _Below:
        found = self._below.get(id(node))
        if found is None:
            found = self._below[id(node)] = _Below() if _FURTHER.isdisjoint(node) else self._own_parts(node)
            for each in self._same_place(node):
                also = self._under(each)
                found.members, found.items = _sum(found.members, also.members), _sum(found.items, also.items)
                for key, weight in also.named.items():
                    found.named[key] = _sum(found.named.get(key, (0, 0)), weight)
                self._merged += 1 + len(also.named)
                if self._merged > bounds.SCHEMA_MERGED:
                    raise TooCostly(TOO_COMPLEX)
        return found

    def _own_parts(self, node: dict[str, Any]) -> _Below:
        extra = self._weight(part for word in _EXTRA_MEMBERS for part in _parts(node, word))
        matched = self._weight(_parts(node, "patternProperties"))
        patterns = node.get("patternProperties")
        trying = sum(map(_match_steps, patterns)) if isinstance(patterns, dict) else 0
        names = self._weight(_parts(node, "propertyNames"))[0]
        # Of the items of a list and those after them, one schema holds for each.
        listed = _largest(self._weight([part]) for word in _ITEMS[:3] for part in _parts(node, word))
        found = _Below(
            _sum(extra, matched, (trying + names, 0)),
            _sum(listed, self._weight(part for word in _ITEMS[3:] for part in _parts(node, word))),
        )
        properties = node.get("properties")
        for key, part in properties.items() if isinstance(properties, dict) else ():
            weight = self._weight([part])
            found.named[key] = (weight[0] - extra[0], weight[1] - extra[1])
        return found


def _parts(node: dict[str, Any], word: str) -> list[dict[str, Any]]:
    """The schemas under a keyword; true and false cost nothing."""
    part = node.get(word)
    if word in _NAMED_PARTS:
        part = list(part.values()) if isinstance(part, dict) else []
    return [each for each in (part if isinstance(part, list) else [part]) if isinstance(each, dict)]


def _own_steps(node: dict[str, Any]) -> int:
    values = node.get("enum")
    compared = len(values) if isinstance(values, list) and not all(isinstance(each, str) for each in values) else 0
    return 1 + compared + (_match_steps(node["pattern"]) if "pattern" in node else 0)


def _match_steps(pattern: Any) -> int:
    return _BACKTRACKING if isinstance(pattern, str) and _FANCY.search(pattern) else 1


def _sum(*pairs: tuple[int, int]) -> tuple[int, int]:
    return sum(each[0] for each in pairs), sum(each[1] for each in pairs)


def _largest(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    steps = further = 0
    for pair in pairs:
        steps, further = max(steps, pair[0]), max(further, pair[1])
    return steps, further
