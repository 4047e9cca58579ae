"""How the members of a noun become JSON, as plain data: a process can write one down without knowing its class.

A noun is taken as the tuple of its members (`codec.taken`), which costs next to nothing where it lives; its shape says
what they are called, what is inside them, and what they are by default. Whoever writes makes the JSON value of both, in
its own time. Light: it is part of the process that writes recordings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

Shape = Any
"""None for a value that is JSON as it is; `WORD` for one of Parley's own words, an integer, yes or no; `NUMBER`,
`SORTED`; (`EACH`, shape) for a list; (`PARTS`, shapes) for a fixed number of values; (`MEMBERS`, shape) for an object
with any keys; (`NOUN`, members) for a noun, each member with its name, its shape, and its default in a tuple, or an
empty one."""
WORD: Final = "word"
NUMBER: Final = "number"
SORTED: Final = "sorted"
EACH: Final = "each"
PARTS: Final = "parts"
MEMBERS: Final = "members"
NOUN: Final = "noun"

Maker = Callable[[Any], Any]


def members_of(shape: Shape) -> dict[str, Shape]:
    """The shapes of the members of a noun, by their names."""
    if type(shape) is not tuple or shape[0] != NOUN:
        return {}
    return {name: below for name, below, _ in shape[1]}


def maker(shape: Shape) -> Maker | None:
    """Who makes JSON of a value of this shape; None where nothing is to be done. What is None stays None."""
    if shape is None or shape == WORD:
        return None
    if shape == NUMBER:
        return _number
    if shape == SORTED:
        return _sorted
    kind, inside = shape
    if kind == NOUN:
        return _noun(inside)
    if kind == PARTS:
        return _parts([maker(one) or _as_it_is for one in inside])
    return _each(maker(inside)) if kind == EACH else _members(maker(inside))


def frame_line(message: tuple[Any, ...], exchange: int | None) -> dict[str, Any]:
    """The line of a message, whose members are those of `FRAME`, without its bytes."""
    seq, at, direction, size, number, quiet, answers, latency_ms, method, fold, by = message
    line = {"kind": "frame", "seq": seq, "at": at, "direction": direction, "size": size, "number": number}
    if quiet:
        line["quiet"] = True
    if exchange is not None:
        line["exchange"] = exchange
    if answers is not None:
        line["answers"], line["latency_ms"], line["method"] = answers, latency_ms, method
        if fold is not None:
            line["fold"] = fold
        if by:
            line["by"] = by
    return line


FRAME: Final = (
    "seq",
    "at",
    "direction",
    "size",
    "number",
    "quiet",
    "answers",
    "latency_ms",
    "method",
    "fold",
    "by",
)
"""What of a message is recorded beside its bytes."""


def _as_it_is(value: Any) -> Any:
    return value


def _number(value: Any) -> Any:
    return str(value) if type(value) is float and not math.isfinite(value) else value


def _sorted(value: Any) -> Any:
    return None if value is None else sorted(value)


def _each(one: Maker | None) -> Maker:
    if one is None:
        return lambda value: None if value is None else list(value)
    return lambda value: None if value is None else [one(each) for each in value]


def _members(one: Maker | None) -> Maker:
    if one is None:
        return _as_it_is
    return lambda value: None if value is None else {key: one(each) for key, each in value.items()}


def _parts(makers: list[Maker]) -> Maker:
    def made(value: Any) -> Any:
        return None if value is None else [one(each) for one, each in zip(makers, value, strict=True)]

    return made


_NONE: Final = object()
"""The default of a member that has none."""


def _noun(members: list[tuple[str, Shape, tuple[Any, ...]]]) -> Maker:
    plan = [(name, maker(shape), *(default or (_NONE,))) for name, shape, default in members]

    def made(value: Any) -> Any:
        if value is None or type(value) is dict:  # it is written already
            return value
        found = {}
        for (name, one, default), each in zip(plan, value, strict=True):
            if each is default or (not each and not default and type(each) is tuple and type(default) is list):
                continue
            now = each if one is None else one(each)
            if now != default or type(now) is not type(default):
                found[name] = now
        return found

    return made
