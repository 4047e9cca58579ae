"""How an item of a list is addressed, and which item an address names: by its name, or as `~N`."""

from __future__ import annotations

import functools
import re
from typing import Any

from app.core.lists import Listing
from app.web.kit import html

_INDEX = re.compile(r"~(\d{1,6})")


@functools.lru_cache(maxsize=1_024)
def _speakable(name: str) -> bool:
    if not name or len(name) > 500 or _INDEX.fullmatch(name):
        return False
    if html.visible(name, strict=True) != name or any(mark in name for mark in "\t\r\n"):
        return False
    return not any(part in {".", ".."} for part in re.split(r"[/\\]", name))


def key_at(listing: Listing, index: int) -> str:
    """How an item is addressed: by its name, or as `~N` where the name is empty, ambiguous or unfit for a path."""
    item = listing.items[index]
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) and listing.alone(name) and _speakable(name) else f"~{index}"


def keys_of(listing: Listing) -> list[str]:
    """How each item of a list is addressed."""
    return [key_at(listing, index) for index in range(len(listing.items))]


def find_item(listing: Listing, key: str) -> int | None:
    """The index of the item that `key` names; None when there is none."""
    found = _INDEX.fullmatch(key)
    if found:
        return int(found[1]) if int(found[1]) < len(listing.items) else None
    return listing.place(key) if listing.alone(key) and _speakable(key) else None


def name_of(listing: Listing, key: str) -> Any:
    """What the item that `key` names calls itself; None when there is none."""
    index = find_item(listing, key)
    item = None if index is None else listing.items[index]
    return item.get("name") if isinstance(item, dict) else None
