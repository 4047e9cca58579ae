"""JSON for scripts: plain ASCII, never NaN, and so that everybody else can run while something large is written."""

from __future__ import annotations

import json
import math
from itertools import islice
from typing import Any

from app.core.lane import apart


def json_bytes(value: Any) -> bytes:
    """JSON for a script: plain ASCII, so that nothing in it can break on the way; never NaN."""
    try:
        return _json(value).encode()
    except ValueError:
        return _json(_finite(value)).encode()


async def json_bytes_apart(value: Any) -> bytes:
    """The same; what is large is written in a thread, and so that everybody else can run meanwhile."""
    return json_bytes(value) if _weight(value, _LARGE) < _LARGE else await apart(_json_in_pieces, value)


_LARGE = 2_000
_PIECE = 500
"""Values that are written as JSON at once. C does it, and nobody else runs until it is done."""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _json_in_pieces(value: Any) -> bytes:
    out: list[str] = []
    try:
        _write_in_pieces(value, out)
    except ValueError:
        out.clear()
        _write_in_pieces(_finite(value), out)
    return "".join(out).encode()


def _write_in_pieces(value: Any, out: list[str]) -> None:
    """A container with much in it child by child, small neighbours together; all else at once."""
    if not isinstance(value, dict | list | tuple) or not value or _weight(value, _PIECE) < _PIECE:
        out.append(_json(value))
        return
    named = isinstance(value, dict)
    out.append("{" if named else "[")
    held: list[Any] = []
    room, first = _PIECE, True

    def written(text: str) -> None:
        nonlocal first
        out.append(text if first else "," + text)
        first = False

    def flush() -> None:
        nonlocal room
        if held:
            written(_json(dict(held) if named else held)[1:-1])
            held.clear()
        room = _PIECE

    for each in value.items() if isinstance(value, dict) else value:
        child = each[1] if named else each
        weight = _weight(child, _PIECE)
        if weight > room:
            flush()
        if weight < _PIECE:
            held.append(each)
            room -= weight
            continue
        written(f"{_json(each[0])}:" if named else "")
        _write_in_pieces(child, out)
    flush()
    out.append("}" if named else "]")


def _weight(value: Any, most: int) -> int:
    """How many values are in a value, itself counted, a long text as many; no more than `most` are looked at."""
    count, stack = 0, [value]
    while stack and count < most:
        node = stack.pop()
        count += 1
        if isinstance(node, str):
            count += len(node) >> 10
        elif isinstance(node, dict):
            stack += islice(node.values(), most)
        elif isinstance(node, list | tuple):
            stack += islice(node, most)
    return count


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
