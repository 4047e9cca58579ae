"""How much memory something holds, by looking at all that can be reached from it. Pure, and bounded."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from typing import Any

from app import bounds

_HELD = (list, tuple, set, frozenset, deque)
_SLOTS: dict[type, tuple[str, ...]] = {}


def weight(of: Any, most: int, *, without: Iterable[Any] = ()) -> int:
    """The bytes of an object and of what it holds: texts, containers and objects of ours, each once, but for what is
    named in `without`. Ends as soon as it is more than `most`, or when there are too many things to look at, which is
    more than `most` too. Functions, tasks and what others made are not looked into."""
    seen = set(map(id, without))
    waiting: list[Any] = [of]
    total = looked = 0
    while waiting:
        one = waiting.pop()
        if one is None or one is True or one is False or id(one) in seen:
            continue
        seen.add(id(one))
        looked += 1
        total += sys.getsizeof(one, 0)
        if total > most or looked > bounds.WEIGHED_THINGS:
            return most + 1
        if isinstance(one, str | bytes | int | float):
            continue
        if isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, _HELD):
            waiting += one
        if type(one).__module__.startswith("app."):
            waiting += getattr(one, "__dict__", {}).values()
            waiting += [getattr(one, name, None) for name in _slots(type(one))]
    return total


def _slots(of: type) -> tuple[str, ...]:
    found = _SLOTS.get(of)
    if found is None:
        named = [getattr(each, "__slots__", ()) for each in of.__mro__]
        found = _SLOTS[of] = tuple(
            name for names in named for name in ((names,) if isinstance(names, str) else names) if name != "__weakref__"
        )
    return found
