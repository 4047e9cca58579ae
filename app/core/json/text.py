"""Bytes to JSON and back, without ever losing or inventing anything.

`parse` never raises: what cannot be read is a `problem`, what can be read but should not have been written is a
`remark`. A server is read leniently, since it is to be shown what it wrote; people and scripts are read strictly, since
they can write it anew. Knows JSON and UTF-8; knows no JSON-RPC and no MCP.
"""

from __future__ import annotations

import gc
import json
import math
import re
from dataclasses import dataclass
from typing import Any

from app import bounds
from app.core.json import scan as jsonscan
from app.core.lane import apart

THREAD_ABOVE = bounds.THREAD_ABOVE
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")
_HUGE_EXPONENT = re.compile(rb"[eE]\+?[0-9]{3}")
_DIGITS = bytes(0x30 if chr(byte).isdecimal() else 0x20 for byte in range(128)) + b" " * 128
"""Every digit as 0, all else as a space."""
_MANY_DIGITS = b"0" * 300
"""A number that is longer may be more than a float can hold, or an integer that Python refuses to read."""
_TOO_DEEP = f"It is nested deeper than {bounds.JSON_DEPTH} levels, which is more than Parley reads."
_HALF = "It contains half of a surrogate pair, which is no character"
_FAULTS = {
    "Expecting value": "a value is missing",
    "Expecting ',' delimiter": "a comma or the closing bracket is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing",
    "Extra data": "there is more after the end",
    "Unterminated string starting at": "this text has no closing quote",
    "Invalid control character at": r"a line break or tab inside a text is written \n or \t",
    "Invalid \\escape": "this backslash means nothing in JSON",
    "Illegal trailing comma before end of object": "there is a comma too many",
    "Illegal trailing comma before end of array": "there is a comma too many",
}
"""What Python's reader says, in plainer words."""


@dataclass(slots=True, frozen=True)
class Fault:
    """Where a text is not JSON, and what is wrong there. Lines and columns count from one, the offset from zero."""

    what: str
    line: int
    column: int
    offset: int


@dataclass(slots=True, frozen=True)
class Parsed:
    """What a text turned out to be: a value, or a problem; remarks in either case."""

    value: Any = None
    problem: str | None = None
    remarks: tuple[str, ...] = ()
    our_limit: bool = False
    """The problem is a limit of ours; the text may well be right."""
    unread: str | None = None
    """There is more in it than is built, and this says so; with `head`, the value has small things only."""
    fault: Fault | None = None
    """The place of the problem, when it has one."""


def parse(raw: bytes, *, strict: bool = False) -> Parsed:
    """Read one JSON text. Never raises.

    Strictly, a byte order mark and a key that stands twice are problems, though the value is there; so is a number that
    no float holds, which otherwise becomes a text; and everything is built, however much it is."""
    remarks: list[str] = []
    body = raw
    if body.startswith(b"\xef\xbb\xbf"):
        remarks.append("The text begins with a byte order mark.")
        body = body[3:]
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        at = error.start + len(raw) - len(body)
        return Parsed(problem=f"Byte 0x{raw[at]:02x} at position {at} is not UTF-8.", remarks=tuple(remarks))
    large = len(body) > THREAD_ABOVE
    if large and not strict and (count := jsonscan.separators(body, bounds.JSON_SEPARATORS)) > bounds.JSON_SEPARATORS:
        unread = _too_many(count)
        return Parsed(problem=unread, remarks=tuple(remarks), our_limit=True, unread=unread)
    hooks: dict[str, Any] = {"parse_constant": _refuse_constant}
    if strict or len(raw) <= bounds.JSON_DUPLICATES_UP_TO:
        hooks["object_pairs_hook"] = _Pairs(remarks, "" if strict else "; the last one counts")
    many_digits = _MANY_DIGITS in body.translate(_DIGITS)
    if many_digits:
        hooks["parse_int"] = _short_integer if strict else _Integers()
    if large or many_digits or _HUGE_EXPONENT.search(body):
        # Floats take longest of all, so in a large text each of them is a moment in which others may run.
        hooks["parse_float"] = _finite if strict else _float_or_text
    try:
        value = _without_collector(text, hooks) if large else _usual(text, hooks)
    except json.JSONDecodeError as error:
        fault = Fault(_FAULTS.get(error.msg, error.msg), error.lineno, error.colno, error.pos)
        problem = f"Not JSON: {fault.what} at position {fault.offset}."
        return Parsed(problem=problem, remarks=tuple(remarks), fault=fault)
    except RecursionError:
        return Parsed(problem=_TOO_DEEP, remarks=tuple(remarks), our_limit=True)
    except ValueError as error:
        return Parsed(problem=str(error), remarks=tuple(remarks))
    if raw.count(b"[") + raw.count(b"{") > bounds.JSON_DEPTH and deeper_than(value, bounds.JSON_DEPTH):
        return Parsed(problem=_TOO_DEEP, remarks=tuple(remarks), our_limit=True)
    if strict and remarks:
        return Parsed(value, problem=remarks[0], remarks=tuple(remarks))
    if _SURROGATE.search(raw) and not writable(value):
        remarks.append(f"{_HALF}." if strict else f"{_HALF}; shown as U+FFFD.")
        value = value if strict else _without_lone_surrogates(value)
    return Parsed(value, remarks=tuple(remarks))


async def parse_async(raw: bytes) -> Parsed:
    """`parse`, in a worker thread when the text is large."""
    if len(raw) <= THREAD_ABOVE:
        return parse(raw)
    return await apart(parse, raw)


async def read_async(raw: bytes) -> Parsed:
    """`parse_async`, and of an object that is too much to build its head."""
    return _parse_or_head(raw) if len(raw) <= THREAD_ABOVE else await apart(_parse_or_head, raw)


def _parse_or_head(raw: bytes) -> Parsed:
    parsed = parse(raw)
    return parsed if parsed.unread is None else head(raw, parsed)


def head(raw: bytes, parsed: Parsed) -> Parsed:
    """Of an object that was not built, what is small: its own members, and those of its members that are objects.

    Texts and numbers are read wherever they stand there. What is too much is an empty array or object in its place; of
    thousands of members the first count. What is no object has no head."""
    body = raw.removeprefix(b"\xef\xbb\xbf")
    at = jsonscan.skip_space(body, 0)
    if body[at : at + 1] != b"{":
        return parsed
    try:
        value = _Head(body).read(at, whole=True)
    except jsonscan.Broken as fault:
        return Parsed(problem=f"Not JSON: {fault}.", remarks=parsed.remarks)
    return Parsed(value, remarks=parsed.remarks, unread=parsed.unread)


class _Head:
    """Reads what is small in an object, within a budget."""

    def __init__(self, body: bytes) -> None:
        self._body, self._left = body, bounds.HEAD_BYTES

    def read(self, at: int, *, whole: bool) -> dict[str, Any]:
        """The object at this place. As the `whole` it must be all there is, and its members may be objects too."""
        found: dict[str, Any] = {}
        for number, (key, start, end) in enumerate(jsonscan.members(self._body, at)):
            if not key:
                if whole and jsonscan.skip_space(self._body, end) != len(self._body):
                    raise jsonscan.Broken("there is more after the end", end)
                break
            if number == bounds.HEAD_MEMBERS:
                break
            name = self._built(key, start)
            if self._body[start : start + 1] not in (b"[", b"{"):
                found[name] = self._built(self._body[start:end], start)
            elif end - start <= min(bounds.HEAD_VALUE_BYTES, self._left):
                self._left -= end - start
                found[name] = self._built_or_empty(self._body[start:end], start)
            elif self._body[start : start + 1] == b"[":
                found[name] = []
            else:
                found[name] = self.read(start, whole=False) if whole else {}
        return found

    def _built_or_empty(self, raw: bytes, at: int) -> Any:
        parsed = parse(raw)
        if parsed.our_limit:  # it is small, and too deep
            return [] if raw.startswith(b"[") else {}
        return self._built(raw, at)

    def _built(self, raw: bytes, at: int) -> Any:
        parsed = parse(raw)
        if parsed.problem is not None:
            raise jsonscan.Broken(parsed.problem.removeprefix("Not JSON: ").removesuffix("."), at)
        return parsed.value


def members(raw: bytes) -> list[bytes]:
    """The members of a JSON array, each exactly as it stood in the text. The text must be a readable array."""
    text = raw.decode("utf-8-sig")
    decoder = json.JSONDecoder()
    found: list[bytes] = []
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "]":
        _, end = decoder.raw_decode(text, at)
        found.append(text[at:end].encode())
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


_AS_IT_IS = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_ESCAPED = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def dump(value: Any) -> bytes:
    """One line of JSON. Characters stay as they are, unless one of them cannot be written in UTF-8."""
    try:
        return _AS_IT_IS.encode(value).encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(value).encode()


def heavy(value: Any) -> bool:
    """Whether writing a value takes so long that it is done in a thread; found out without walking all of it."""
    left, waiting = THREAD_ABOVE, [value]
    while waiting and left >= 0:
        one = waiting.pop()
        kind = type(one)
        if kind is str:
            left -= len(one)
        elif kind is dict:
            left -= sum(map(len, one))
            waiting += one.values()
        elif kind is list or kind is tuple:
            waiting += one
        left -= 4
    return left < 0


def whole(value: Any) -> int | None:
    """A JSON integer, however it is written: 10, 10.0 and 1e1 are one. None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if isinstance(value, int) or value.is_integer() else None


def share_equal(value: Any) -> Any:
    """The same value with equal parts held once, texts and containers: listings repeat themselves, and stay for long.

    Nobody may change what comes back. Iterative: the peer chooses the depth."""
    nodes: list[Any] = []
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict | list):
            nodes.append(node)
            stack.extend(node.values() if isinstance(node, dict) else node)
    texts: dict[str, str] = {}
    held: dict[tuple[Any, ...], Any] = {}
    kept: dict[int, Any] = {}
    """By the identity of each container, the equal one that stays; children come before their parents."""

    def one(child: Any) -> Any:
        if isinstance(child, str):
            return texts.setdefault(child, child)
        return kept[id(child)] if isinstance(child, dict | list) else child

    for node in reversed(nodes):
        places = node if isinstance(node, dict) else range(len(node))
        marks: list[Any] = [type(node)]
        for place in places:
            child = node[place] = one(node[place])
            # What is held once is known by where it is; 1, 1.0 and true are equal and not the same.
            mark = id(child) if isinstance(child, str | dict | list) else (type(child), child)
            marks.append((place, mark) if isinstance(node, dict) else mark)
        kept[id(node)] = held.setdefault(tuple(marks), node)
    return one(value)


def _too_many(count: int) -> str:
    return (
        f"Shown as text only: it has {count:,} commas, colons and opening brackets, and Parley reads "
        f"{bounds.JSON_SEPARATORS:,} at the most."
    )


def _without_collector(text: str, hooks: dict[str, Any]) -> Any:
    """Build a large value without the collector going through it again and again: there are no cycles in JSON."""
    if not gc.isenabled():
        return json.loads(text, **hooks)
    gc.disable()
    try:
        return json.loads(text, **hooks)
    finally:
        gc.enable()


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"Not JSON: {name} is not a JSON value.")


class _Twice(Exception):
    """A key stands twice in one object."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        raise _Twice
    return built


_USUAL = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse_constant)
"""Made once, for what is right: making a reader takes as long as reading a small message."""


def _usual(text: str, hooks: dict[str, Any]) -> Any:
    if hooks.keys() <= {"parse_constant", "object_pairs_hook"}:
        try:
            return _USUAL.decode(text)
        except _Twice:
            pass
    return json.loads(text, **hooks)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large for a number in JSON.")
    return number


def _short_integer(text: str) -> int:
    if len(text) > bounds.JSON_DIGITS:
        raise ValueError(f"A number of {len(text):,} digits is too long.")
    return int(text)


def _float_or_text(text: str) -> Any:
    number = float(text)
    return number if math.isfinite(number) else text


class _Integers:
    """Reads integers. Python refuses those of more than 4,300 digits, because they take quadratic time, to read and to
    write: they stay texts, and so do long ones when there are very many."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = bounds.JSON_LONG_DIGITS

    def __call__(self, text: str) -> Any:
        if len(text) >= len(_MANY_DIGITS):
            self._left -= len(text)
            if len(text) > bounds.JSON_DIGITS or self._left < 0:
                return text
        return int(text)


def deeper_than(value: Any, limit: int) -> bool:
    """Whether containers are nested more than `limit` deep; level by level, so that no depth can hurt."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        inside = (child for node in level for child in (node.values() if isinstance(node, dict) else node))
        level = [child for child in inside if isinstance(child, dict | list)]
        if not level:
            return False
    return True


class _Pairs:
    """Builds objects and remarks on keys that stand in one of them twice."""

    __slots__ = ("_remarks", "_then")

    def __init__(self, remarks: list[str], then: str) -> None:
        self._remarks, self._then = remarks, then

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs) and len(self._remarks) < 5:
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            self._remarks.append(f"The key {json.dumps(twice[:60])} stands twice in one object{self._then}.")
        return built


def writable(value: Any) -> bool:
    """Whether every text in it is made of characters: half of a surrogate pair is none, and UTF-8 cannot write it."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            if _LONE.search(node):
                return False
        elif isinstance(node, dict):
            stack += node
            stack += node.values()
        elif isinstance(node, list | tuple):
            stack += node
    return True


def _without_lone_surrogates(value: Any) -> Any:
    """The same value without lone surrogates, changed in place. Iterative: the peer chooses the depth."""

    def clean(text: str) -> str:
        return _LONE.sub("\ufffd", text)

    if isinstance(value, str):
        return clean(value)
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            for key in list(node):
                child = node[key]
                fresh = clean(child) if isinstance(child, str) else child
                name = clean(key)
                if name != key:
                    del node[key]
                node[name] = fresh
                if isinstance(fresh, dict | list):
                    stack.append(fresh)
        elif isinstance(node, list):
            for index, child in enumerate(node):
                if isinstance(child, str):
                    node[index] = clean(child)
                elif isinstance(child, dict | list):
                    stack.append(child)
    return value
