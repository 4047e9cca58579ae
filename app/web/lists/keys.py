"""How an item of a list is addressed, and which item an address names: by its name, or as `~N`."""

from __future__ import annotations

import re
from typing import Any

from app.core.lists import Listing
from app.sessions import Workspace
from app.sessions.lists import ListName
from app.web.door.denied import Denied, unknown
from app.web.kit import html

# -------------------------------------------------------------------------------------------------- keys of the tools

_INDEX = re.compile(r"~(\d{1,6})")


def _speakable(name: Any) -> bool:
    if not isinstance(name, str) or not name or len(name) > 500 or _INDEX.fullmatch(name):
        return False
    if html.visible(name, strict=True) != name or any(mark in name for mark in "\t\r\n"):
        return False
    return not any(part in {".", ".."} for part in re.split(r"[/\\]", name))


def item_keys(items: list[Any]) -> list[str]:
    """How each tool is addressed: by its name, or as `~N` where the name is empty, ambiguous or unfit for a path."""
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    seen: dict[Any, int] = {}
    for name in names:
        if isinstance(name, str):
            seen[name] = seen.get(name, 0) + 1
    return [
        name if _speakable(name) and seen[name] == 1 and isinstance(name, str) else f"~{index}"
        for index, name in enumerate(names)
    ]


def keys_of(listing: Listing) -> list[str]:
    """The keys of a list that is complete, made once."""
    if listing.keys is None or len(listing.keys) != len(listing.items):
        listing.keys = item_keys(listing.items)
    return listing.keys


def key_at(listing: Listing, index: int) -> str:
    """How one item is addressed; without making the keys of all."""
    item = listing.items[index]
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) and listing.alone(name) and _speakable(name) else f"~{index}"


def find_item(listing: Listing, key: str) -> int | None:
    """The index of the item that `key` names; None when there is none."""
    found = _INDEX.fullmatch(key)
    if found:
        return int(found[1]) if int(found[1]) < len(listing.items) else None
    return listing.place(key) if listing.alone(key) and _speakable(key) else None


LOOK_SECONDS = 2.0
"""How long a page waits for a list that is still being read, or that nobody has looked at yet."""
_ITEMS: dict[ListName, str] = {"tools": "tool", "prompts": "prompt", "templates": "resource template"}


async def listed(session: Workspace, name: ListName, key: str) -> tuple[str, dict[str, Any]]:
    """The item of a list that a key stands for, with the key that is its own; waited for where the list may be on its
    way. An item that is no object counts as an empty one."""
    listing = session.lists[name]
    index = find_item(listing, key)
    if index is None:
        listing = await session.lists.known(name, LOOK_SECONDS)
        index = find_item(listing, key)
    if index is None:
        raise not_listed(name)
    item = listing.items[index]
    return key_at(listing, index), item if isinstance(item, dict) else {}


def not_listed(name: ListName) -> Denied:
    """The server has nothing of that name."""
    return unknown(f"The server has no {_ITEMS[name]} of that name. The list may have changed since.")
