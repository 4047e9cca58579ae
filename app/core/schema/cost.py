"""How much work a JSON Schema can make of a value, known before anybody does it.

A validator follows every `$ref` every time, so a few lines of schema can ask for 2^40 steps, and no validator we know
can be stopped half-way. This counts an upper bound instead: it never follows a reference twice, and takes time in
proportion to the schema. What cannot be bounded is None. Knows JSON Schema's applicators; judges nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from app.core.json import pointer

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SAME_PLACE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas", "dependencies")
_ANY_MEMBER = ("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEMS = ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems")
_PATTERNS = ("pattern", "patternProperties")
_FANCY = re.compile(r"\\[1-9k]|\(\?[=!<>]")
"""Backreferences and lookaround: these are matched by trying, all else in linear time."""
_BACKTRACKING = 50_000
"""What one such match may cost, in subschemas, before the validator gives up on it."""
_NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies")


@dataclass(slots=True)
class _Weight:
    """Of one subschema, its references followed: how many subschemas it is, and how often it leads back into itself:
    at the same place of the value, at one and the same member of an object, at one and the same item of an array."""

    size: int = 1
    here: int = 0
    member: int = 0
    item: int = 0

    @property
    def loops(self) -> int:
        """A value is an object or an array, never both."""
        return self.here + max(self.member, self.item)


def steps(schema: dict[str, Any], value: Any) -> int | None:
    """At most this many subschemas are applied to `value`; None when there is no telling."""
    scale = _Scale(schema)
    try:
        weight = scale.weigh(schema)
    except (KeyError, RecursionError):
        return None
    if weight.loops > 1:
        return None
    return (weight.size + scale.followed) * _nodes(value)


class _Scale:
    """Weighs the subschemas of one schema, each target of a reference once."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._weighed: dict[str, _Weight | None] = {}
        """None while a target is being weighed: meeting it again then is a loop."""
        self.followed = 0
        """The sizes of all targets together, which is what one turn of a loop can cost."""

    def weigh(self, node: Any) -> _Weight:
        weight = _Weight()
        if not isinstance(node, dict):
            return weight
        for key, child in node.items():
            if key in _PATTERNS:
                texts = child if isinstance(child, dict) else [child]
                weight.size += _BACKTRACKING * sum(
                    isinstance(each, str) and bool(_FANCY.search(each)) for each in texts
                )
            if key in _REFERENCES:
                found = [self._target(child)]
            else:
                found = [self.weigh(each) for each in _children(key, child)]
            weight.size += sum(each.size for each in found)
            if key in _REFERENCES or key in _SAME_PLACE:
                weight.here += sum(each.here for each in found)
                weight.member += sum(each.member for each in found)
                weight.item += sum(each.item for each in found)
            elif key == "properties":
                weight.member += max((each.loops for each in found), default=0)
            elif key in _ANY_MEMBER:
                weight.member += sum(each.loops for each in found)
            elif key in _ITEMS:
                weight.item += sum(each.loops for each in found)
        return weight

    def _target(self, reference: Any) -> _Weight:
        """KeyError for what is not a pointer into this very schema: an anchor or another document."""
        if not isinstance(reference, str):
            raise KeyError(str(reference))
        if reference not in self._weighed:
            node = self._find(reference)
            self._weighed[reference] = None
            weight = self._weighed[reference] = self.weigh(node)
            self.followed += weight.size
        return self._weighed[reference] or _Weight(here=1)

    def _find(self, reference: str) -> Any:
        if reference != "#" and not reference.startswith("#/"):
            raise KeyError(reference)
        return pointer.resolve(self._root, unquote(reference[1:]))


def _children(key: str, value: Any) -> Iterable[Any]:
    """The subschemas under a keyword; none under one that applies none."""
    if key in _NAMED and isinstance(value, dict):
        return value.values()
    if key in _SAME_PLACE or key in _ANY_MEMBER or key in _ITEMS:
        return value if isinstance(value, list) else [value]
    return ()


def _nodes(value: Any) -> int:
    """The values in a value, itself counted; without recursion."""
    count, stack = 0, [value]
    while stack:
        node = stack.pop()
        count += 1
        if isinstance(node, dict):
            stack += node.values()
        elif isinstance(node, list):
            stack += node
    return count
