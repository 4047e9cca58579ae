"""Bytes to JSON and back, without ever losing or inventing anything.

`parse` never raises: what cannot be read is a `problem`, what can be read but should not have been written is a
`remark`. Knows JSON and UTF-8; knows no JSON-RPC and no MCP.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

THREAD_ABOVE = 256 * 1024
"""Larger texts are parsed in a worker thread, so that nobody else waits for them."""
MAX_DEPTH = 400
"""Deeper nesting is not read: everything after us (repr, validators, templates) walks values by recursion."""
_DUPLICATES_UP_TO = 1024 * 1024
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")
_HUGE_EXPONENT = re.compile(rb"[eE]\+?[0-9]{3}")
_HUGE_INTEGER = re.compile(rb"[0-9]{4000}")
_TOO_DEEP = f"It is nested deeper than {MAX_DEPTH} levels, which is more than Parley reads."


@dataclass(slots=True, frozen=True)
class Parsed:
    """What a text turned out to be: a value, or a problem; remarks in either case."""

    value: Any = None
    problem: str | None = None
    remarks: tuple[str, ...] = ()
    our_limit: bool = False
    """The problem is a limit of ours; the text may well be right."""


def parse(raw: bytes) -> Parsed:
    """Read one JSON text. Never raises."""
    remarks: list[str] = []
    body = raw
    if body.startswith(b"\xef\xbb\xbf"):
        remarks.append("The text begins with a byte order mark.")
        body = body[3:]
    try:
        text = body.decode()
    except UnicodeDecodeError as fault:
        at = fault.start + len(raw) - len(body)
        return Parsed(problem=f"Byte 0x{raw[at]:02x} at position {at} is not UTF-8.", remarks=tuple(remarks))
    hooks: dict[str, Any] = {"parse_constant": _refuse_constant}
    if len(raw) <= _DUPLICATES_UP_TO:
        hooks["object_pairs_hook"] = _Pairs(remarks)
    if _HUGE_EXPONENT.search(raw):
        hooks["parse_float"] = _float_or_text
    if _HUGE_INTEGER.search(raw):
        hooks["parse_int"] = _int_or_text
    try:
        value = json.loads(text, **hooks)
    except json.JSONDecodeError as fault:
        return Parsed(problem=f"Not JSON: {fault.msg} at position {fault.pos}.", remarks=tuple(remarks))
    except RecursionError:
        return Parsed(problem=_TOO_DEEP, remarks=tuple(remarks), our_limit=True)
    except ValueError as fault:
        return Parsed(problem=f"Not JSON: {fault}.", remarks=tuple(remarks))
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _deeper_than(value, MAX_DEPTH):
        return Parsed(problem=_TOO_DEEP, remarks=tuple(remarks), our_limit=True)
    if _SURROGATE.search(raw):
        value, lone = _without_lone_surrogates(value)
        if lone:
            remarks.append("It contains half of a surrogate pair, which is no character; shown as U+FFFD.")
    return Parsed(value, remarks=tuple(remarks))


async def parse_async(raw: bytes) -> Parsed:
    """`parse`, in a worker thread when the text is large."""
    if len(raw) <= THREAD_ABOVE:
        return parse(raw)
    return await anyio.to_thread.run_sync(parse, raw)


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


def dump(value: Any) -> bytes:
    """One line of JSON. Characters stay as they are, unless one of them cannot be written in UTF-8."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


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


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _float_or_text(text: str) -> Any:
    number = float(text)
    return number if math.isfinite(number) else text


def _int_or_text(text: str) -> Any:
    """Python reads no integer of more than 4,300 digits, because that takes quadratic time."""
    return int(text) if len(text) < 4000 else text


def _deeper_than(value: Any, limit: int) -> bool:
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

    __slots__ = ("_remarks",)

    def __init__(self, remarks: list[str]) -> None:
        self._remarks = remarks

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs) and len(self._remarks) < 5:
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            self._remarks.append(f"The key {json.dumps(twice[:60])} stands twice in one object; the last one counts.")
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


def _without_lone_surrogates(value: Any) -> tuple[Any, bool]:
    """The same value without lone surrogates, and whether it had any. Iterative: the peer chooses the depth."""
    found = False

    def clean(text: str) -> str:
        nonlocal found
        cleaned, count = _LONE.subn("\ufffd", text)
        found = found or bool(count)
        return cleaned

    if isinstance(value, str):
        return clean(value), found
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
    return value, found
