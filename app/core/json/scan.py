"""The shape of a JSON text, found without building it: how much is in it, and its outermost members.

Made for texts that are too much to build. Everything here goes through the text in windows: inside a window C does the
work, between two of them every other thread may run; the time is linear, whatever stands in the text. What is found
is right for every text that is JSON; of a text that is none, no more is said than was met. Knows bytes; knows no
JSON-RPC and no MCP.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

_WINDOW = 64 * 1024
_FIRST_WINDOW = 256
"""A short string or container is over before a whole window is looked at."""
_SEPARATORS = b",:[{"
_BRACKETS = b"[]{}"
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")
"""An opening bracket is one step down, a closing one a step up, as signed bytes."""
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_SPACE = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"[^ \t\r\n,:\[\]{}\"]*")
_TO_QUOTE = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*+"?', re.DOTALL)
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*+"?|[\[\]{}]', re.DOTALL)


class Broken(Exception):
    """This is no JSON, here."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(f"{what} at position {at}")


@dataclass(slots=True, frozen=True)
class _Window:
    start: int
    end: int
    in_string: bool
    """Whether it begins inside of a string."""
    quotes: int
    outside: bytes
    """What of it stands outside of strings."""


def at_most(text: bytes) -> int:
    """How many commas, colons and opening brackets there are, those in strings counted too."""
    return sum(text.count(each) for each in _SEPARATORS)


def separators(text: bytes, enough: int) -> int:
    """How many commas, colons and opening brackets stand outside of strings: the cost of building it, roughly.

    When there cannot be more than `enough`, anything up to that may be said."""
    most = at_most(text)
    if most <= enough:
        return most
    return sum(window.outside.count(each) for window in _windows(text, 0) for each in _SEPARATORS)


def members(text: bytes, at: int) -> Iterator[tuple[bytes, int, int]]:
    """The members of the object that begins at `at`: the key as it is written, and where its value begins and ends.

    Says at the end, by a member without a key, where the object ends. Raises Broken where this is no object."""
    at = skip_space(text, at + 1)
    if text[at : at + 1] == b"}":
        yield b"", at + 1, at + 1
        return
    while True:
        if text[at : at + 1] != b'"':
            raise Broken("a key in double quotes is missing", at)
        end = _end_of_string(text, at)
        key = text[at:end]
        at = skip_space(text, end)
        if text[at : at + 1] != b":":
            raise Broken("a colon is missing", at)
        at = skip_space(text, at + 1)
        end = end_of_value(text, at)
        yield key, at, end
        at = skip_space(text, end)
        sign = text[at : at + 1]
        if sign == b"}":
            yield b"", at + 1, at + 1
            return
        if sign != b",":
            raise Broken("a comma or the closing bracket is missing", at)
        at = skip_space(text, at + 1)


def skip_space(text: bytes, at: int) -> int:
    """Where the next thing begins."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def end_of_value(text: bytes, at: int) -> int:
    """Where the value that begins at `at` is over. Raises Broken when there is none, or it does not end."""
    first = text[at : at + 1]
    if first == b'"':
        return _end_of_string(text, at)
    if first in (b"[", b"{"):
        return _end_of_container(text, at)
    found = _SCALAR.match(text, at)
    if found is None or found.end() == at:
        raise Broken("a value is missing", at)
    return found.end()


def _end_of_string(text: bytes, at: int) -> int:
    for window in _windows(text, at + 1, in_string=True):
        if window.quotes:
            found = _TO_QUOTE.match(text, window.start, window.end)
            if found is not None:
                return found.end()
    raise Broken("this text has no closing quote", at)


def _end_of_container(text: bytes, at: int) -> int:
    depth = 1
    for window in _windows(text, at + 1):
        steps = window.outside.translate(_STEPS, _NO_BRACKETS)
        ups = steps.count(b"\xff")
        if ups >= depth and min(accumulate(array("b", steps), initial=depth)) <= 0:
            return _closing(text, window, depth)
        depth += len(steps) - 2 * ups
    raise Broken("this bracket is not closed", at)


def _closing(text: bytes, window: _Window, depth: int) -> int:
    """Where in this window the depth comes down to nothing."""
    at = window.start
    if window.in_string:
        found = _TO_QUOTE.match(text, at, window.end)
        at = at if found is None else found.end()
    for token in _TOKEN.finditer(text, at, window.end):
        sign = token[0]
        if sign in (b"[", b"{"):
            depth += 1
        elif sign in (b"]", b"}"):
            depth -= 1
            if depth == 0:
                return token.end()
    raise Broken("this bracket is not closed", window.start)


def _windows(text: bytes, at: int, in_string: bool = False) -> Iterator[_Window]:
    """The text from `at` on, piece by piece; `at` is not in the middle of an escape, nor is the end of a piece."""
    width = _FIRST_WINDOW
    while at < len(text):
        end = min(at + width, len(text))
        piece = text[at:end]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2 and end < len(text):
            end += 1
            piece = text[at:end]
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield _Window(at, end, in_string, len(parts) - 1, b"".join(parts[in_string::2]))
        in_string ^= len(parts) % 2 == 0
        at, width = end, min(width * 4, _WINDOW)
