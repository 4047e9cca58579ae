"""Schemas made plain: references followed, `allOf` merged, null taken out, choices found. Never fetches anything.

A form needs one plain schema for each place. What is lost on the way (patterns, conditions, `not`) is lost for the
drawing only: values are checked against the schema as it came. Bounded in steps (S38, R6-11).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin

from app import bounds
from app.core.json import pointer
from app.core.json.values import show, to_json_text
from app.core.schema.merging import Schema, merge

ELSEWHERE = "The schema points elsewhere, and Parley fetches nothing on a server's word."
_ANNOTATIONS = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
_DATA = ("enum", "const", "default", "examples")
"""Keywords below which there are values, and no schemas."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SHAPES = frozenset(
    {"type", "properties", "items", "prefixItems", "enum", "const", "format", "additionalProperties", "contentEncoding"}
    | {"patternProperties", "oneOf", "anyOf", "allOf", *REFERENCES}
)
_DRAFT_7 = ("draft-03", "draft-04", "draft-06", "draft-07")
_DIALECTS = (*_DRAFT_7, "2019-09", "2020-12")


def is_old(schema: Any) -> bool:
    """Whether a schema says that it is of draft 7 or older, where a `$ref` stands alone and `items` may be a list."""
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    return isinstance(dialect, str) and any(draft in dialect for draft in _DRAFT_7)


def with_known_dialect(schema: Any) -> Any:
    """The schema, without a `$schema` that nobody knows: it then counts as 2020-12 (R5-07)."""
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    if dialect is None or (isinstance(dialect, str) and "json-schema.org/" in dialect and dialect_known(dialect)):
        return schema
    return {key: part for key, part in schema.items() if key != "$schema"}


def dialect_known(dialect: str) -> bool:
    """Whether a `$schema` names a draft of JSON Schema that can be checked."""
    return any(draft in dialect for draft in _DIALECTS if draft != "draft-03")


@dataclass(slots=True)
class Option:
    """One choice: what is sent, and what is read."""

    value: Any
    title: str


class Schemas:
    """The parts of one schema, made plain on demand."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.old = is_old(root)
        self._steps = 0
        self._anchors: dict[str, dict[str, Any]] = {}
        self._embedded: _Embedded | None = None
        # By the id of a schema, with the schema itself, so that its id stays its own.
        self._plain: dict[int, tuple[Any, Schema | None, str]] = {}
        self._slim: dict[int, tuple[Any, Schema, bool]] = {}
        self._offered: dict[int, tuple[Any, list[Schema]]] = {}
        self._options: dict[tuple[int, ...], tuple[Any, list[Option] | None]] = {}

    def plain(self, schema: Any) -> tuple[Schema | None, str]:
        """A schema without references and `allOf`; or None, and the sentence that says why it cannot be had."""
        return self._resolve(schema, ())

    def _resolve(self, schema: Any, seen: tuple[str, ...]) -> tuple[Schema | None, str]:
        known = self._plain.get(id(schema))
        if known is None:
            found, why = self._follow(schema, seen)
            if found is None and seen:  # it may be this way only that leads in a circle
                return found, why
            known = self._plain[id(schema)] = (schema, found, why)
        return known[1], known[2]

    def _follow(self, schema: Any, seen: tuple[str, ...]) -> tuple[Schema | None, str]:
        self._steps += 1
        if self._steps > bounds.SCHEMA_FOLLOWED:
            return None, "The schema is too tangled for a form."
        if schema is True:
            return {}, ""
        if not isinstance(schema, dict):
            return None, "The schema allows no value here." if schema is False else "This is not a schema."
        word = next((each for each in REFERENCES if each in schema), None)
        if word is not None:
            ref = schema[word]
            if not isinstance(ref, str) or (aim := self._aim(schema, ref)) is None:
                return None, ELSEWHERE
            target = "#".join(aim)
            if target in seen or len(seen) > bounds.SCHEMA_HOPS:
                return None, "The schema points to itself."
            found = self._pointed(*aim)
            if found is None:
                return None, f"The schema points to {ref[:80]}, which is not there."
            resolved, why = self._resolve(found[0], (*seen, target))
            if resolved is None:
                return None, why
            kept = {k: part for k, part in schema.items() if k != word and (not self.old or k in _ANNOTATIONS)}
            return self._joined(kept, [resolved], seen) if kept else (resolved, "")
        if isinstance(schema.get("allOf"), list):
            rest = {key: part for key, part in schema.items() if key != "allOf"}
            return self._joined(rest, schema["allOf"], seen)
        return schema, ""

    def _joined(self, first: Schema, others: list[Any], seen: tuple[str, ...]) -> tuple[Schema | None, str]:
        merged = first
        if "allOf" in first:
            below, why = self._resolve(first, seen)
            if below is None:
                return None, why
            merged = below
        for each in others:
            below, why = self._resolve(each, seen)
            if below is None:
                return None, why
            both = merge(merged, below)
            self._steps += len(below.get("properties") or ()) // 20
            if both is None:
                return None, "The schema combines parts that no value can fit at once."
            merged = both
        return merged, ""

    @property
    def is_several(self) -> bool:
        """Whether there are schemas with an `$id` of their own in it: a dynamic reference may then mean any of them."""
        return len(self._document().schemas) > 1

    def target(self, schema: Schema, word: str) -> Any:
        """What the reference of a schema points to, if it stays here; else None."""
        aim = self._aim(schema, schema[word]) if isinstance(schema[word], str) else None
        found = self._pointed(*aim) if aim is not None else None
        return found[0] if found is not None else None

    def _aim(self, schema: Schema, ref: str) -> tuple[str, str] | None:
        """Which of the schemas in here a reference means, by its address, and the fragment of it; None for a reference
        that leaves. A part with an `$id` is a schema of its own, as if it were a file."""
        document = self._document()
        base = document.base_of(schema)
        place, _, fragment = ref.partition("#")
        where = _address(base, place) if place else base
        return (where, unquote(fragment)) if where in document.schemas else None

    def _document(self) -> _Embedded:
        if self._embedded is None:
            self._embedded = _Embedded(self.root)
        return self._embedded

    def _pointed(self, where: str, fragment: str) -> tuple[Any] | None:
        """What a fragment points to, in a tuple because it may be anything; None when it is not there."""
        node: Any = self._document().schemas[where]
        if fragment in ("", "/"):
            return (node,)
        if not fragment.startswith("/"):
            if where not in self._anchors:
                self._anchors[where] = _anchors(node)
            return (self._anchors[where][fragment],) if fragment in self._anchors[where] else None
        try:
            return (pointer.resolve(node, fragment),)
        except KeyError:
            return None

    def without_null(self, schema: Schema) -> tuple[Schema, bool]:
        """A plain schema less its null, and whether null was one of several things it allowed."""
        known = self._slim.get(id(schema))
        if known is None:
            known = self._slim[id(schema)] = (schema, *self._without_null(schema))
        return known[1], known[2]

    def _without_null(self, schema: Schema) -> tuple[Schema, bool]:
        kinds = schema.get("type")
        if isinstance(kinds, list) and len(kinds) > 1 and "null" in kinds:
            rest = [kind for kind in kinds if kind != "null"]
            slim = {**schema, "type": rest[0] if len(rest) == 1 else rest}
            if isinstance(slim.get("enum"), list):
                slim["enum"] = [each for each in slim["enum"] if each is not None]
                return (slim, None in schema["enum"]) if slim["enum"] else (schema, False)
            return (slim, True) if "const" not in schema else (schema, False)
        for word in ("anyOf", "oneOf"):
            each = schema.get(word)
            if not isinstance(each, list) or len(each) < 2 or "type" in schema:
                continue
            rest = [one for one in each if not _is_null(self.plain(one)[0])]
            if not rest or len(rest) != len(each) - 1:
                continue
            others = {key: part for key, part in schema.items() if key != word}
            if len(rest) > 1:
                return {**others, word: rest}, True
            only, _ = self.plain(rest[0])
            merged = merge(others, only) if only is not None else None
            return (merged, True) if merged is not None else (schema, False)
        return schema, False

    def alternatives(self, schema: Schema) -> list[Schema]:
        """The alternatives that a plain schema offers, each with what holds for all of them; [] when it offers none."""
        known = self._offered.get(id(schema))
        if known is None:
            known = self._offered[id(schema)] = (schema, self._alternatives(schema))
        return known[1]

    def _alternatives(self, schema: Schema) -> list[Schema]:
        for word in ("oneOf", "anyOf"):
            listed = schema.get(word)
            if isinstance(listed, list) and listed and (found := self._shapes(schema, word, listed)):
                return found
        kinds = schema.get("type")
        if isinstance(kinds, list) and len(kinds) > 1:
            bare = {key: part for key, part in schema.items() if key not in _ANNOTATIONS}
            return [{**bare, "type": kind} for kind in kinds[: bounds.ALTERNATIVES]]
        return []

    def _shapes(self, schema: Schema, word: str, listed: list[Any]) -> list[Schema]:
        outer = {key: part for key, part in schema.items() if key not in (word, *_ANNOTATIONS)}
        found: list[Schema] = []
        shaped = False
        for each in listed[: bounds.ALTERNATIVES]:
            shaped = shaped or (isinstance(each, dict) and any(key in _SHAPES for key in each))
            below, _ = self.plain(each)
            merged = merge(below, outer) if below is not None else None
            found.append(merged if merged is not None else (each if isinstance(each, dict) else {}))
        return found if shaped else []  # `anyOf: [{required: [a]}, {required: [b]}]` says nothing about the shape

    def options(self, schema: Schema) -> list[Option] | None:
        """The values to choose from, when that is what a plain schema says."""
        lists = [each for word in ("enum", "oneOf", "anyOf") if isinstance(each := schema.get(word), list) and each]
        key = (*map(id, lists), id(schema.get("enumNames")))
        if not lists:
            return None
        known = self._options.get(key)
        if known is None:
            known = self._options[key] = (schema, self._values(schema))
        return known[1]

    def _values(self, schema: Schema) -> list[Option] | None:
        values = schema.get("enum")
        if isinstance(values, list) and values:
            names = schema.get("enumNames")
            titles = names if isinstance(names, list) and len(names) == len(values) else values
            if len(values) > bounds.TITLED_OPTIONS:
                return [Option(value, "") for value in values]
            return _apart([Option(value, show(title)) for value, title in zip(values, titles, strict=True)])
        for word in ("oneOf", "anyOf"):
            listed = schema.get(word)
            if not isinstance(listed, list) or not listed:
                continue
            each = [plain for one in listed if (plain := self.plain(one)[0]) is not None]
            if len(each) != len(listed) or not all(_only_values(one) for one in each):
                continue
            if all("const" in one for one in each):
                return _apart([Option(one["const"], show(one.get("title", one["const"]))) for one in each])
            if all("const" not in one for one in each):
                return _apart([Option(value, show(value)) for one in each for value in one["enum"]])
        return None


def _apart(options: list[Option]) -> list[Option]:
    """The options, with values in the place of titles that would read the same: 1 and "1"."""
    counts = Counter(" ".join(option.title.split()) for option in options)
    for option in options:
        seen = " ".join(option.title.split())
        if counts[seen] > 1 or not seen:
            option.title = to_json_text(option.value, indent=None)[:200]
    return options


def _only_values(schema: Schema) -> bool:
    """Whether a schema names its values and nothing else about their shape."""
    named = "const" in schema or (isinstance(schema.get("enum"), list) and bool(schema["enum"]))
    return named and not (_SHAPES - {"type", "enum", "const", "format"}) & schema.keys()


def _is_null(schema: Schema | None) -> bool:
    if schema is None:
        return False
    return schema.get("type") in ("null", ["null"]) or schema.get("enum") == [None] or schema.get("const", "") is None


class _Embedded:
    """The schemas that one document holds, by their addresses: itself, and each part that has an `$id` of its own."""

    def __init__(self, root: Any) -> None:
        own = (root.get("$id") or root.get("id")) if isinstance(root, dict) else None
        self.base = own.rstrip("#") if isinstance(own, str) else ""
        self.schemas: dict[str, Any] = {self.base: root}
        self._bases: dict[int, tuple[Any, str]] = {}
        """By the id of a part that refers to something, with the part itself: what its references are relative to.
        Only where that is not the whole document."""
        stack = [(root, self.base)]
        while stack:
            node, base = stack.pop()
            if isinstance(node, dict):
                named = node.get("$id")
                if node is not root and isinstance(named, str) and not named.startswith("#"):
                    base = _address(base, named.rstrip("#"))
                    self.schemas.setdefault(base, node)
                if base != self.base and any(word in node for word in REFERENCES):
                    self._bases[id(node)] = (node, base)
                stack.extend((part, base) for key, part in node.items() if key not in _DATA)
            elif isinstance(node, list):
                stack.extend((part, base) for part in node)

    def base_of(self, schema: Any) -> str:
        """What the references in a part are relative to."""
        return self._bases.get(id(schema), (None, self.base))[1]


def _address(base: str, named: str) -> str:
    try:
        return urljoin(base, named)
    except ValueError:
        return named


def _anchors(root: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            for word in ("$anchor", "$dynamicAnchor"):
                if isinstance(node.get(word), str):
                    found.setdefault(node[word], node)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return found
