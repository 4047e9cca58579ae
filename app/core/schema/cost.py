"""How much work a JSON Schema can make of a value, known before anybody does it (S38).

No validator we know can be stopped half-way, and a few lines of schema can ask for 2^40 steps. So this finds an upper
bound first, in time that grows with the schema and with the value, never with their product. It looks at three things:
how many schemas stand at one place, because one leads to the other there; how much of that one member or item of a
value meets; and how many of those lead further down, which is by how much the work can grow with each level. What
leads back to the same place without end has no bound. Judges nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app import bounds
from app.core.figures import grouped
from app.core.schema.refs import REFERENCES, Document, NoShape

_BACKTRACKING = 10_000
"""What such a match may cost, in steps."""
_FANCY = re.compile(r"\\[1-9k]|\(\?[=!<>]")
"""Backreferences and lookaround: these are matched by trying, all else in linear time."""
_SAME_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})
_Level = tuple[str, tuple[str, ...], tuple[str, ...]]
"""What is said of one member or item by its name or place, of one without such a word, and of every one."""
_MEMBERS = ("properties", ("additionalProperties", "unevaluatedProperties"), ("patternProperties", "propertyNames"))
_ITEMS = ("prefixItems", ("items", "additionalItems", "unevaluatedItems"), ("contains",))
_LEVELS: dict[frozenset[str], _Level] = {
    frozenset((named, *rest, *every)): (named, rest, every) for named, rest, every in (_MEMBERS, _ITEMS)
}
_FURTHER = frozenset[str]().union(*_LEVELS)
_NAMED_PARTS = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_LEADING = _SAME_PLACE.union(REFERENCES)
_OUTSIDE: dict[str, Any] = {"enum": [0] * 200}
"""Stands for what is not in the schema: where a validator knows it, it is a schema of schemas, and costs as much."""
_OUTSIDE |= {"additionalProperties": _OUTSIDE, "items": _OUTSIDE}
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


@dataclass(slots=True)
class _Place:
    """The schemas that are held against one part of a value, because one leads to the next there."""

    schemas: list[dict[str, Any]]
    """Each as often as it is met."""
    steps: int = 1
    further: bool = False
    """Whether they have anything to say about members or items."""
    chain: int = 0


_ANYTHING = _Place([])


class Cost:
    """What it may cost to hold values against one schema. Raises TooCostly when that cannot be told."""

    def __init__(self, schema: Any) -> None:
        if not isinstance(schema, dict | bool):
            raise TooCostly("The schema is neither an object nor true or false.")
        if why := too_large(schema):
            raise TooCostly(why)
        self._document = Document(schema)
        self._places: dict[int, _Place | None] = {}
        """None while it is being looked at: to meet it again then is a circle."""
        self._counted = 0
        self.alternatives = False
        """Whether it has any: an error about one holds the errors of all, so even the first can be large."""
        self._steps = self._growth = 0
        try:
            self._first = self._place(schema).steps
            self._look_down(schema)
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

    def _look_down(self, schema: Any) -> None:
        """Find the most that one member or item can meet: as steps, and as schemas that lead further down."""
        seen: set[int] = set()
        stack = [schema]
        while stack:
            node = stack.pop()
            if not isinstance(node, dict) or id(node) in seen:
                continue
            seen.add(id(node))
            met = [each for each in self._place(node).schemas if not _FURTHER.isdisjoint(each)]
            for words, level in _LEVELS.items():
                if here := [each for each in met if not words.isdisjoint(each)]:
                    self._steps = max(self._steps, self._most(here, level, lambda part: self._place(part).steps))
                    self._growth = max(self._growth, self._most(here, level, lambda part: self._place(part).further))
            stack += [part for each in met for word in each if word in _FURTHER for part in _parts(each, word)]

    def _most(self, met: list[dict[str, Any]], level: _Level, weigh: Callable[[Any], int]) -> int:
        """The most that one member, or item, meets: what all do, and what is more for one with a name or place."""
        named, rest, every = level
        all_meet, more = 0, Counter[str | int]()
        for node in met:
            others = sum(weigh(node[word]) for word in rest if isinstance(node.get(word), dict))
            all_meet += others + sum(weigh(part) for word in every for part in _parts(node, word))
            apart = _apart(node, named)
            self._count(len(apart))
            for key, part in apart.items():
                more[key] += weigh(part) - others
        return all_meet + max(0, max(more.values(), default=0))

    def _count(self, more: int) -> None:
        self._counted += more
        if self._counted > bounds.SCHEMA_MERGED:
            raise TooCostly(TOO_COMPLEX)

    def _place(self, node: Any) -> _Place:
        """What is met where a schema stands. Raises TooCostly when that has no end, or a very late one."""
        if not isinstance(node, dict):
            return _ANYTHING
        if id(node) not in self._places:
            self._places[id(node)] = None
            made = _Place([node], _own_steps(node), not _FURTHER.isdisjoint(node))
            for each in self._same_place(node):
                there = self._place(each)
                self._count(len(there.schemas))
                made.schemas += there.schemas
                made.steps += there.steps
                made.further = made.further or there.further
                made.chain = max(made.chain, there.chain + 1)
            if made.chain >= bounds.SCHEMA_CHAIN or made.steps > bounds.CHECK_STEPS:
                raise TooCostly(TOO_COMPLEX)
            self._places[id(node)] = made
        place = self._places[id(node)]
        if place is None:
            raise TooCostly(CIRCLE)
        return place

    def _same_place(self, node: dict[str, Any]) -> list[dict[str, Any]]:
        """The schemas that are held against the same value as this one."""
        if _LEADING.isdisjoint(node):
            return []
        self.alternatives = self.alternatives or "anyOf" in node or "oneOf" in node
        found = [part for word in node if word in _SAME_PLACE for part in _parts(node, word)]
        for word in REFERENCES:
            if word in node:
                if word != "$ref" and self._document.is_several:
                    raise TooCostly(TOO_COMPLEX)  # it may mean another place each time
                try:
                    target = self._document.target(node, word)
                except NoShape:
                    target = _OUTSIDE
                found += [target] if isinstance(target, dict) else []
        return found


def _parts(node: dict[str, Any], word: str) -> list[dict[str, Any]]:
    """The schemas under a keyword; true and false cost nothing."""
    part = node.get(word)
    parts = part if isinstance(part, list) else [part]
    if word in _NAMED_PARTS:
        named = part if isinstance(part, dict) else {}
        keys = named if word == "patternProperties" else ()  # these are held against the patterns themselves
        parts = [*named.values(), *({"pattern": each} for each in keys)]
    return [each for each in parts if isinstance(each, dict)]


def _apart(node: dict[str, Any], word: str) -> dict[str | int, Any]:
    """What a schema says of members by their names, or of items by their places; before 2020 `items` could say that."""
    part = node["items"] if word == "prefixItems" and isinstance(node.get("items"), list) else node.get(word)
    return dict(enumerate(part)) if isinstance(part, list) else part if isinstance(part, dict) else {}


def _own_steps(node: dict[str, Any]) -> int:
    values = node.get("enum")
    compared = len(values) if isinstance(values, list) and not all(isinstance(each, str) for each in values) else 0
    return 1 + compared + (_match_steps(node["pattern"]) if "pattern" in node else 0)


def _match_steps(pattern: Any) -> int:
    return _BACKTRACKING if isinstance(pattern, str) and _FANCY.search(pattern) else 1
