"""The head of a message that cannot be read as JSON: whether it was meant as a reply, and to which request.

A reply with `NaN` in it, in Latin-1, nested too deeply or written over several lines is no message; yet somebody waits
for it, and should hear at once why it will not come. So this looks only at the outermost members of an object, and
forgives everything inside them. It works on bytes, in linear time and within a budget. Knows JSON-RPC's member names
and nothing else; what it says is never taken for the message itself.
"""

from __future__ import annotations

import json
import re
from typing import Any

from app import bounds

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[{}\[\],:]', re.DOTALL)
"""A text, also one that does not end, or a mark. Possessive: nothing is ever tried twice."""
_REST_OF_TEXT = re.compile(rb'(?:[^"\\]++|\\.)*+("?)', re.DOTALL)
_WHOLE = re.compile(rb"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_MEMBERS = frozenset({b'"jsonrpc"', b'"id"', b'"method"', b'"result"', b'"error"'})
_ID_BYTES = 200
_BLANK = b" \t\r\n"


class HeadReader:
    """Reads one object, in one piece or in several, and says which members it has."""

    def __init__(self) -> None:
        self._depth = 0
        self._inside_text = False
        self._text = b""
        self._key = b""
        self._value: bytearray | None = None
        self._left = bounds.BROKEN_HEAD_TOKENS
        self.members: set[bytes] = set()
        self.id_text = b""
        """The id as it is written, when it is short."""
        self.closed = False
        """The object has ended."""
        self.over = False
        """Nothing more is to be learned: it has ended, is no object, or is longer than we look at."""

    @property
    def is_reply(self) -> bool:
        """Whether it looks like a JSON-RPC reply."""
        named = self.members
        return b'"jsonrpc"' in named and b'"method"' not in named and bool(named & {b'"result"', b'"error"'})

    @property
    def rpc_id(self) -> int | float | str | None:
        """The id, when it can be read."""
        if _WHOLE.fullmatch(self.id_text):
            return int(self.id_text)
        try:
            found: Any = json.loads(self.id_text)
        except ValueError:
            return None
        return found if isinstance(found, str | int | float) and not isinstance(found, bool) else None

    def feed(self, chunk: bytes) -> int:
        """Read on; where the object ended in this chunk, else its length."""
        at = 0
        if self._inside_text:
            rest = _REST_OF_TEXT.match(chunk)
            at = 0 if rest is None else rest.end()
            self._inside_text = rest is None or not rest.group(1)
        while not self.over and not self._inside_text:
            found = _TOKEN.search(chunk, at)
            if found is None:
                self._keep(chunk[at:])
                break
            self._keep(chunk[at : found.start()])
            at = found.end()
            self._left -= 1
            self._take(found.group(), unfinished=found.group(1) == b"")
            if self._left == 0:
                self.over = True
        return at if self.over else len(chunk)

    def _keep(self, between: bytes) -> None:
        """What stands between two marks is a number or a word; only that of the id is kept."""
        if self._value is not None and len(self._value) <= _ID_BYTES:
            self._value += between[: _ID_BYTES + 1]

    def _take(self, token: bytes, *, unfinished: bool) -> None:
        mark = token[:1]
        if self._depth == 0:
            self._depth, self.over = 1, mark != b"{"
        elif mark == b'"':
            self._inside_text = unfinished
            if self._depth == 1:
                self._text = token if len(token) <= _ID_BYTES else b""
                self._keep(token)
        elif mark in (b"{", b"["):
            self._depth += 1
        elif mark == b":" and self._depth == 1 and not self._key:
            self._key = self._text or b" "
            if self._key in _MEMBERS:
                self.members.add(self._key)
            self._value = bytearray() if self._key == b'"id"' else None
        elif self._depth == 1 and mark in (b",", b"}", b"]"):
            self._end_of_member()
            if mark != b",":
                self.closed, self.over = mark == b"}", True
        elif mark in (b"}", b"]"):
            self._depth -= 1

    def _end_of_member(self) -> None:
        if self._value is not None and len(self._value) <= _ID_BYTES:
            self.id_text = bytes(self._value).strip(_BLANK)
        self._key, self._text, self._value = b"", b"", None


def heads(raw: bytes) -> list[HeadReader]:
    """The objects that stand in a text one after the other, as far as they can be told; the last may be unfinished."""
    found: list[HeadReader] = []
    rest = raw[: bounds.BROKEN_HEAD_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK)
    while rest.startswith(b"{") and len(found) < bounds.BROKEN_HEAD_OBJECTS:
        reader = HeadReader()
        found.append(reader)
        rest = rest[reader.feed(rest) :].lstrip(_BLANK)
        if not reader.closed:
            reader.over = reader.over or len(raw) > bounds.BROKEN_HEAD_BYTES
            break
    return found
