"""What the references of one schema mean: by address, by anchor, by pointer. Never fetches anything (R6-11)."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import unquote, urljoin

from app.core.json import pointer

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DATA = ("enum", "const", "default", "examples")
"""Keywords below which there are values, and no schemas."""
_DRAFT_7 = ("draft-03", "draft-04", "draft-06", "draft-07")
_CHECKED = ("draft-04", "draft-06", "draft-07", "2019-09", "2020-12")


def with_known_dialect(schema: Any) -> Any:
    """The schema, without a `$schema` that nobody knows: it then counts as 2020-12 (R5-07)."""
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    if dialect is None or ("json-schema.org/" in str(dialect) and any(draft in str(dialect) for draft in _CHECKED)):
        return schema
    return {key: part for key, part in schema.items() if key != "$schema"}


class NoShape(Exception):
    """Nothing is known about the shape of a value, or there is no such value. The message says why, as a sentence."""


class Document:
    """One schema with all that is in it. A part with an `$id` is a schema of its own, as if it were a file."""

    def __init__(self, root: Any) -> None:
        self.root = root
        dialect = root.get("$schema") if isinstance(root, dict) else None
        self.old = isinstance(dialect, str) and any(draft in dialect for draft in _DRAFT_7)
        """Whether it says that it is of draft 7 or older, where a `$ref` stands alone."""
        self._bases: dict[int, str] = {}
        """By the id of a part that refers to something: the address that its references are relative to."""

    @cached_property
    def _addresses(self) -> dict[str, Any]:
        """Every schema and every anchor by its address."""
        found: dict[str, Any] = {}
        own = self.root.get("id") if isinstance(self.root, dict) else None
        stack = [(self.root, own.rstrip("#") if isinstance(own, str) else "")]
        while stack:
            node, base = stack.pop()
            if isinstance(node, dict):
                named = node.get("$id")
                if isinstance(named, str) and not named.startswith("#"):
                    base = _joined(base, named.rstrip("#"))
                if node is self.root or base not in found:
                    found[base] = node
                for word in ("$anchor", "$dynamicAnchor"):
                    if word in node:
                        found.setdefault(f"{base}#{node[word]}", node)
                if any(word in node for word in REFERENCES):
                    self._bases[id(node)] = base
                stack.extend((part, base) for key, part in node.items() if key not in _DATA)
            elif isinstance(node, list):
                stack.extend((part, base) for part in node)
        return found

    @property
    def is_several(self) -> bool:
        """Whether there are schemas with an `$id` of their own in it: a dynamic reference may then mean any of them."""
        return sum("#" not in address for address in self._addresses) > 1

    def target(self, schema: dict[str, Any], word: str) -> Any:
        """What the reference of a schema points to. Raises NoShape when it leaves, or points to nothing."""
        addresses, ref = self._addresses, schema[word]
        place, _, fragment = ref.partition("#") if isinstance(ref, str) else ("", "", "")
        base = self._bases.get(id(schema), next(iter(addresses), ""))
        where = _joined(base, place) if place else base
        if not isinstance(ref, str) or where not in addresses:
            raise NoShape("The schema points elsewhere, and Parley fetches nothing on a server's word.")
        fragment = unquote(fragment)
        try:
            if fragment and not fragment.startswith("/"):
                return addresses[f"{where}#{fragment}"]
            return pointer.resolve(addresses[where], fragment)
        except KeyError:
            raise NoShape(f"The schema points to {ref[:80]}, which is not there.") from None


def _joined(base: str, named: str) -> str:
    try:
        return urljoin(base, named)
    except ValueError:
        return named
