"""JSON Pointer (RFC 6901): one place that writes, splits and follows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app import bounds


def escape(key: str) -> str:
    """A key as one part of a pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def join(parts: Iterable[str | int]) -> str:
    """The pointer of a path of keys and indices."""
    return "".join(f"/{escape(str(part))}" for part in parts)


def place(path: Iterable[str | int]) -> tuple[str, str | None]:
    """Where something stands, for a sentence and as data; a pointer that is longer than anybody needs is none."""
    whole = join(path)
    return whole[:200] or "/", whole if len(whole) <= bounds.POINTER else None


def unescape(part: str) -> str:
    """The key that one part of a pointer says."""
    return part.replace("~1", "/").replace("~0", "~")


def split(pointer: str) -> list[str]:
    """The keys and indices of a pointer, as texts."""
    return [unescape(part) for part in pointer.split("/")[1:]]


def child(value: Any, key: str) -> Any:
    """The member of a value that one part of a pointer names. Raises KeyError when there is none."""
    if isinstance(value, dict):
        return value[key]
    if isinstance(value, list) and (at := index(key, len(value))) is not None:
        return value[at]
    raise KeyError(key)


def index(text: str, length: int) -> int | None:
    """The index that a text names in a list of this length; None when it names none."""
    at = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else length
    return at if at < length else None


def resolve(value: Any, pointer: str) -> Any:
    """The value that a pointer names. Raises KeyError when there is none."""
    for key in split(pointer):
        value = child(value, key)
    return value
