"""Nouns of a session as JSON values and back, by the types that they declare.

One walk over the declared types makes a writer and a reader for each class, once. A member that has its default is not
written, and one that this version does not know is not read; so a class may get members and old recordings still open.
A reader trusts nothing: whatever does not fit its declared type is an `Unfit`, with the place. What belongs to a
running process (clocks, channels, signals) is left out, and comes back from whoever reads.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from app.core.asks import Ask
from app.core.calls import Call
from app.core.errors import RpcError
from app.core.lists import Listing
from app.core.tasks.running import CORE, EXTENSION, TaskWire
from app.core.tasks.status import Task
from app.core.wire import Exchange
from app.recordings import shapes
from app.sessions.subscriptions import Subscription

_T = TypeVar("_T")
_Writer = Callable[[Any], Any]
_Reader = Callable[[Any], Any]

_LEFT_OUT: Final[dict[type, frozenset[str]]] = {
    Call: frozenset({"log", "started", "reply"}),
    Ask: frozenset({"log", "deliver", "claimed_by"}),
    Task: frozenset({"log", "began", "next_poll", "nudged", "settled"}),
    Exchange: frozenset({"started"}),
    Listing: frozenset({"log", "texts", "_indexes"}),
    Subscription: frozenset({"log", "wanted", "scope"}),
}
"""Members that belong to the process: who knows findings, how an answer leaves, monotonic clocks; and the reply of a
call, which stands in its frame."""
_WIRES: Final = {"2025-11-25": CORE, "2026-07-28": EXTENSION}
_OF_ERROR: Final = ("code", "message", "data", "rule")
_NO_NUMBERS: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class Unfit(ValueError):
    """A value is not what it should be. `place` is where, from the outside in."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(f"{place or 'it'} is not {what}")
        self.what, self.place = what, place

    def below(self, step: str) -> Unfit:
        return Unfit(self.what, f"{step}.{self.place}" if self.place else step)


def write(noun: Any) -> dict[str, Any]:
    """A noun as a JSON value: the members that are not as they are by default."""
    return cast("dict[str, Any]", _maker(cast("Hashable", type(noun)))(taken(noun)))


def taken(noun: Any) -> tuple[Any, ...]:
    """The members of a noun as they are now, in the order of its shape. Cheap: it is done where the session lives, and
    lists in it are still those of the noun."""
    return cast("tuple[Any, ...]", _taker(cast("Hashable", type(noun)))(noun))


def read(kind: type[_T], value: Any, **given: Any) -> _T:
    """A noun of a JSON value; `given` are the members that were left out. Raises Unfit."""
    return _read_noun(kind, value, given)


# ------------------------------------------------------------------------------------------------------------ writing


def _as_it_is(value: Any) -> Any:
    return value


def recorded_members(kind: type) -> list[Field[Any]]:
    """The members of a noun that are written down."""
    left = next((names for each, names in _LEFT_OUT.items() if issubclass(kind, each)), frozenset())
    return [each for each in fields(kind) if each.name not in left]


@cache
def shape_of(kind: Any) -> shapes.Shape:
    """What a value of a declared type is in JSON."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is float:
        return shapes.NUMBER
    if kind in (int, bool, TaskWire) or origin is Literal:
        return shapes.WORD
    if kind is RpcError:
        return shapes.NOUN, [(name, shapes.WORD if name == "code" else None, ()) for name in _OF_ERROR]
    if _is_noun(kind):
        hints = get_type_hints(kind)
        members = [(one.name, shape_of(hints[one.name]), _default(kind, one)) for one in recorded_members(kind)]
        return shapes.NOUN, members
    if origin in (Union, UnionType):
        found = [shape_of(each) for each in inner if each is not NoneType]
        if len(found) == 1:
            return found[0]
        return shapes.NUMBER if float in inner else None  # a noun among others is written where it is taken
    if origin in (list, deque) or (origin is tuple and inner[-1] is Ellipsis):
        return shapes.EACH, shape_of(inner[0])
    if origin is tuple:
        return shapes.PARTS, tuple(shape_of(one) for one in inner)
    if origin in (set, frozenset):
        return shapes.SORTED
    if origin is dict:
        below = shape_of(inner[1])
        return None if below is None else (shapes.MEMBERS, below)
    return None


@cache
def _maker(kind: Any) -> _Writer:
    return shapes.maker(shape_of(kind)) or _as_it_is


@cache
def _taker(kind: Any) -> _Writer:
    """How a value of a declared type is taken: whatever `marshal` can carry is, as it is."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is RpcError:
        return _write_error
    if kind is TaskWire:
        return lambda wire: next(name for name, each in _WIRES.items() if each is wire)
    if _is_noun(kind):
        return _noun_taker(kind)
    if origin in (Union, UnionType):
        takers = {each: _taker(each) for each in inner if each is not NoneType}
        if all(each is _as_it_is for each in takers.values()):
            return _as_it_is
        if len(takers) == 1:
            return next(iter(takers.values()))
        return lambda value: write(value) if _is_noun(type(value)) else takers.get(type(value), _as_it_is)(value)
    if origin in (list, deque) or (origin is tuple and inner[-1] is Ellipsis):
        each = _taker(inner[0])
        if each is _as_it_is:
            return list if origin is deque else _as_it_is
        return lambda value: [each(one) for one in value]
    if origin is tuple:
        parts = [_taker(one) for one in inner]
        if all(part is _as_it_is for part in parts):
            return _as_it_is
        return lambda value: [part(one) for part, one in zip(parts, value, strict=True)]
    if origin is dict:
        each = _taker(inner[1])
        return _as_it_is if each is _as_it_is else lambda value: {key: each(one) for key, one in value.items()}
    return _as_it_is


def _is_noun(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind) and kind not in (RpcError, TaskWire)


def _default(kind: type, member: Field[Any]) -> tuple[Any, ...]:
    """What a member is by default, as it would be written; nothing when it has none."""
    if member.default is MISSING and member.default_factory is MISSING:
        return ()
    value = member.default if member.default_factory is MISSING else member.default_factory()
    hint = get_type_hints(kind)[member.name]
    return (None if value is None else _maker(hint)(_taker(hint)(value)),)


def _only(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda noun: tuple(getattr(noun, name) for name in names)


def _noun_taker(kind: type) -> _Writer:
    hints, names = get_type_hints(kind), [one.name for one in recorded_members(kind)]
    inside = [(at, taker) for at, name in enumerate(names) if (taker := _taker(hints[name])) is not _as_it_is]
    queues = [at for at, name in enumerate(names) if get_origin(hints[name]) is deque]
    members: Callable[[Any], tuple[Any, ...]] = attrgetter(*names) if len(names) > 1 else _only(names)

    def found(noun: Any) -> tuple[Any, ...] | list[Any]:
        values = members(noun)
        if not inside:
            return values
        made = list(values)
        for at, taker in inside:
            if value := made[at]:  # of what is empty, only a queue cannot be carried as it is
                made[at] = taker(value)
        for at in queues:
            made[at] = made[at] or ()
        return made

    return found


def _write_error(error: RpcError) -> dict[str, Any]:
    return {name: getattr(error, name) for name in _OF_ERROR}


# ------------------------------------------------------------------------------------------------------------ reading


def _read_noun(kind: type[_T], value: Any, given: dict[str, Any]) -> _T:
    if not isinstance(value, dict):
        raise Unfit("an object")
    arguments, later = dict(given), dict[str, Any]()
    for name, required, at_once, reader in _plan(cast("Hashable", kind)):
        if name in given or name not in value:
            if required and name not in given:
                raise Unfit("there", name)
            continue
        try:
            found = reader(value[name])
        except Unfit as wrong:
            raise wrong.below(name) from None
        (arguments if at_once else later)[name] = found
    noun = kind(**arguments)
    for name, found in later.items():
        setattr(noun, name, found)
    return noun


@cache
def _plan(kind: type) -> list[tuple[str, bool, bool, _Reader]]:
    """Of each member: its name, whether it must be there, whether it is given when the noun is made, who reads it."""
    hints = get_type_hints(kind)
    return [
        (
            each.name,
            each.init and each.default is MISSING and each.default_factory is MISSING,
            each.init,
            _reader(hints[each.name]),
        )
        for each in recorded_members(kind)
    ]


@cache
def _reader(kind: Any) -> _Reader:
    """How a value of a declared type is read."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return _as_it_is
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind is RpcError:
        return _read_error
    if kind is TaskWire:
        return _read_wire
    if isinstance(kind, type) and is_dataclass(kind):
        return lambda value: _read_noun(kind, value, {})
    if origin is Literal:
        return _one_of(inner)
    if origin in (Union, UnionType):
        return _either([_reader(each) for each in inner if each is not NoneType], NoneType in inner)
    if origin in (list, set, frozenset, deque) or (origin is tuple and inner[-1] is Ellipsis):
        return _several(origin, _reader(inner[0]))
    if origin is tuple:
        return _fixed([_reader(one) for one in inner])
    if origin is dict or kind is dict:
        return _members(_reader(inner[1]) if inner else _as_it_is)
    raise TypeError(f"a member of type {kind!r} cannot be recorded")


def _a(kind: type, what: str) -> _Reader:
    def reader(value: Any) -> Any:
        if type(value) is not kind:
            raise Unfit(what)
        return value

    return reader


def _read_float(value: Any) -> float:
    if type(value) is int and abs(value) < 2**53:
        return float(value)
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, str) and value in _NO_NUMBERS:
        return _NO_NUMBERS[value]
    raise Unfit("a number")


def _read_int(value: Any) -> int:
    if type(value) is not int or abs(value) >= 2**63:
        raise Unfit("an integer")
    return value


_PLAIN: Final[dict[Any, _Reader]] = {
    str: _a(str, "a text"),
    bool: _a(bool, "true or false"),
    int: _read_int,
    float: _read_float,
    bytes: _a(bytes, "bytes"),  # no JSON value is: whoever reads them gives them
}


def _one_of(words: tuple[Any, ...]) -> _Reader:
    def reader(value: Any) -> Any:
        if not isinstance(value, str) or value not in words:
            raise Unfit("one of " + ", ".join(words))
        return value

    return reader


def _either(readers: list[_Reader], none: bool) -> _Reader:
    def reader(value: Any) -> Any:
        if value is None and none:
            return None
        for each in readers[:-1]:
            try:
                return each(value)
            except Unfit:
                continue
        return readers[-1](value)

    return reader


def _several(made: Callable[[list[Any]], Any], each: _Reader) -> _Reader:
    def reader(value: Any) -> Any:
        if not isinstance(value, list):
            raise Unfit("a list")
        return made([each(one) for one in value])

    return reader


def _fixed(parts: list[_Reader]) -> _Reader:
    def reader(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(parts):
            raise Unfit(f"a list of {len(parts)}")
        return tuple(part(one) for part, one in zip(parts, value, strict=True))

    return reader


def _members(each: _Reader) -> _Reader:
    def reader(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Unfit("an object")
        return {key: each(one) for key, one in value.items()}

    return reader


def _read_error(value: Any) -> RpcError:
    if not isinstance(value, dict):
        raise Unfit("an object")
    return RpcError(
        _read_int(value.get("code")),
        _PLAIN[str](value.get("message")),
        value.get("data"),
        rule=_PLAIN[str](value.get("rule", "")),
    )


def _read_wire(value: Any) -> TaskWire:
    if not isinstance(value, str) or value not in _WIRES:
        raise Unfit("a revision that has tasks")
    return _WIRES[value]
