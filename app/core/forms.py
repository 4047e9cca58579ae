"""JSON Schema to a form, and what was typed back to a value.

One tree stands between the two: `build` makes it from a schema and either a value or what a browser submitted, the
page draws it, `read` takes the value off it, `entries` says what a browser would submit for it. Types never come from
the browser: a control is named by its JSON Pointer, and the schema says what its text means. What no control can show
becomes a JSON box for that sub-tree alone, with the reason. Bounded in depth, fields and choices (S38).

Serves tool arguments and elicitation alike. Knows JSON Schema; knows no HTML, no MCP and no session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from app.core.jsontext import parse

MAX_FIELDS = 600
MAX_DEPTH = 10
MAX_OPTIONS = 500
MAX_CHECKBOXES = 40
MAX_ITEMS = 200
MAX_SCHEMA_BYTES = 512 * 1024

Kind = Literal[
    "text", "long", "number", "integer", "checkbox", "threeway", "choice", "multi", "const", "date", "time", "datetime",
    "email", "uri", "file", "object", "array", "tuple", "map", "oneof", "json", "null",
]  # fmt: skip
_LEAF_TYPES = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})
_FORMATS: dict[str, Kind] = {
    "date": "date",
    "time": "time",
    "date-time": "datetime",
    "email": "email",
    "idn-email": "email",
    "uri": "uri",
    "url": "uri",
}
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class _Missing:
    """There is no value; null is one."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


@dataclass(slots=True)
class Option:
    """One choice: what is sent, and what is read."""

    value: Any
    title: str


@dataclass(slots=True)
class Field:
    """One place of the form. Its controls are named by `pointer`."""

    pointer: str
    kind: Kind
    label: str = ""
    description: str = ""
    required: bool = False
    type_text: str = ""
    """What may be typed, in a few words: `integer, 5 to 60`."""
    nullable: bool = False
    is_null: bool = False
    present: bool = True
    """An optional group that was not added is not present, and has no children yet."""
    removable: bool = False
    text: str = ""
    checked: bool = False
    options: list[Option] = field(default_factory=list)
    chosen: int | None = None
    chosen_many: list[int] = field(default_factory=list)
    children: list[Field] = field(default_factory=list)
    """Of an object: its properties. Of an array, tuple or map: its items. Of a choice: the one alternative."""
    alternatives: list[str] = field(default_factory=list)
    key: str = ""
    """Of an item of a map: its key."""
    examples: list[str] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    """Attributes that help while typing (min, max, step, minlength, maxlength); the server decides in any case."""
    deprecated: bool = False
    read_only: bool = False
    can_add: bool = False
    fixed: Any = MISSING
    note: str = ""
    """Why this is a JSON box, or what was cut."""
    errors: list[str] = field(default_factory=list)

    def walk(self) -> Iterator[Field]:
        """This field and everything below it."""
        stack = [self]
        while stack:
            one = stack.pop()
            yield one
            stack.extend(reversed(one.children))


def escape(name: str) -> str:
    """A name as a part of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")


# ----------------------------------------------------------------------------------------- what is in the form


class Entries:
    """What a browser submitted: names and texts, in order, names more than once."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._all: dict[str, list[str]] = {}
        for name, text in pairs:
            self._all.setdefault(name, []).append(text)

    def first(self, name: str) -> str | None:
        found = self._all.get(name)
        return found[0] if found else None

    def all(self, name: str) -> list[str]:
        return list(self._all.get(name, ()))

    def has(self, name: str) -> bool:
        return name in self._all

    def set_all(self, name: str, texts: list[str]) -> None:
        self._all[name] = texts

    def pairs(self) -> list[tuple[str, str]]:
        return [(name, text) for name, texts in self._all.items() for text in texts]


def operate(form: Entries, operation: str) -> None:
    """Carry out one button of the form: add, remove, up, down, use, drop; `operation` is like `add:/people`."""
    verb, _, pointer = operation.partition(":")
    if verb in ("use", "drop"):
        form.set_all(f"{pointer}#use", ["1"] if verb == "use" else ["0"])
        return
    owner, _, index = pointer.rpartition("/")
    for suffix in ("#item", "#row"):
        name = f"{pointer if verb == 'add' else owner}{suffix}"
        if verb == "add":
            known = form.all(name)
            if known or form.has(f"{pointer}{suffix}!"):
                numbers = [int(each) for each in known if each.isdigit()]
                form.set_all(name, [*known, str(max(numbers, default=-1) + 1)])
            continue
        order = form.all(name)
        if index not in order:
            continue
        at = order.index(index)
        to = {"remove": None, "up": at - 1, "down": at + 1}.get(verb, at)
        order.pop(at)
        if to is not None:
            order.insert(max(0, to), index)
        form.set_all(name, order)


class _Source:
    """Where a field gets its content from: a value, or a submitted form."""

    def child(self, name: str) -> _Source:
        raise NotImplementedError


class _FromValue(_Source):
    """Content from a value that is there, or is not."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def child(self, name: str) -> _FromValue:
        inside = isinstance(self.value, dict) and name in self.value
        return _FromValue(self.value[name] if inside else MISSING)


class _FromForm(_Source):
    """Content from what was submitted under a pointer."""

    def __init__(self, form: Entries, pointer: str) -> None:
        self.form, self.pointer = form, pointer

    def child(self, name: str) -> _FromForm:
        return _FromForm(self.form, f"{self.pointer}/{escape(name)}")

    def text(self) -> str | None:
        return self.form.first(self.pointer)


# ------------------------------------------------------------------------------------------------- the builder


def build(schema: Any, value: Any = MISSING, form: Entries | None = None) -> Field:
    """The tree of a schema, filled from a submitted form, else from a value, else from the schema's defaults."""
    source: _Source = _FromValue(value) if form is None else _FromForm(form, "")
    if isinstance(schema, dict) and len(json.dumps(schema)) > MAX_SCHEMA_BYTES:
        return _Builder(schema).json_box("", "", {}, True, source, "The schema is too large for a form.")
    return _Builder(schema).field(schema, "", "", True, source, 0)


class _Builder:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._count = 0

    # ---- schemas

    def resolve(self, schema: Any, seen: frozenset[str] = frozenset()) -> tuple[dict[str, Any] | None, str]:
        """A schema without references and `allOf`; or None, and why it cannot be had."""
        if schema is True or schema == {}:
            return {}, ""
        if not isinstance(schema, dict):
            return None, "This part of the schema allows no value."
        if "$ref" in schema:
            ref = schema["$ref"]
            if not isinstance(ref, str) or not ref.startswith("#"):
                return None, "The schema points elsewhere, and Parley fetches nothing on a server's word."
            if ref in seen:
                return None, "The schema points to itself."
            target = self._pointed(ref)
            if target is None:
                return None, f"The schema points to {ref[:80]}, which is not there."
            below, why = self.resolve(target, seen | {ref})
            rest = {key: part for key, part in schema.items() if key != "$ref"}
            return (None, why) if below is None else _merge([below, rest])
        if "allOf" in schema and isinstance(schema["allOf"], list):
            parts: list[dict[str, Any]] = [{key: part for key, part in schema.items() if key != "allOf"}]
            for each in schema["allOf"]:
                below, why = self.resolve(each, seen)
                if below is None:
                    return None, why
                parts.append(below)
            return _merge(parts)
        return schema, ""

    def _pointed(self, ref: str) -> Any:
        node: Any = self._root
        if ref in ("#", "#/"):
            return node
        if not ref.startswith("#/"):
            return self._anchored(ref[1:])
        for part in ref[2:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and name in node:
                node = node[name]
            elif isinstance(node, list) and name.isdigit() and int(name) < len(node):
                node = node[int(name)]
            else:
                return None
        return node

    def _anchored(self, anchor: str) -> Any:
        groups = [self._root.get(key) for key in ("$defs", "definitions")] if isinstance(self._root, dict) else []
        for group in groups:
            for each in group.values() if isinstance(group, dict) else ():
                if isinstance(each, dict) and each.get("$anchor") == anchor:
                    return each
        return None

    # ---- fields

    def field(self, schema: Any, pointer: str, name: str, required: bool, source: _Source, depth: int) -> Field:
        """One field and everything below it."""
        self._count += 1
        plain, why = self.resolve(schema)
        if plain is None:
            return self.json_box(pointer, name, schema if isinstance(schema, dict) else {}, required, source, why)
        if isinstance(source, _FromForm) and source.form.has(f"{source.pointer}#json"):
            why = source.form.first(f"{source.pointer}#json") or ""
            return self.json_box(pointer, name, plain, required, source, why)
        if self._count > MAX_FIELDS:
            return self.json_box(pointer, name, plain, required, source, f"The form has more than {MAX_FIELDS} fields.")
        if depth > MAX_DEPTH:
            return self.json_box(pointer, name, plain, required, source, f"It is nested more than {MAX_DEPTH} deep.")
        if isinstance(source, _FromValue) and source.value is MISSING and "default" in plain:
            source = _FromValue(plain["default"])
        plain, nullable = self._without_null(plain)
        made = self._by_kind(plain, pointer, name, required, source, depth, nullable)
        made.nullable = nullable
        if nullable:
            if isinstance(source, _FromValue):
                made.is_null = source.value is None
            elif isinstance(source, _FromForm):
                made.is_null = source.form.has(f"{source.pointer}#null")
        return made

    def _without_null(self, schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """A schema less its null, and whether it had one."""
        kinds = schema.get("type")
        if isinstance(kinds, list) and "null" in kinds and len(kinds) > 1:
            rest = [kind for kind in kinds if kind != "null"]
            slim = {**schema, "type": rest[0] if len(rest) == 1 else rest}
            if isinstance(slim.get("enum"), list):
                slim["enum"] = [each for each in slim["enum"] if each is not None]
            return slim, True
        for word in ("anyOf", "oneOf"):
            alternatives = schema.get(word)
            if isinstance(alternatives, list) and len(alternatives) > 1:
                rest = [each for each in alternatives if not (isinstance(each, dict) and each.get("type") == "null")]
                if len(rest) == len(alternatives) - 1:
                    others = {key: part for key, part in schema.items() if key != word}
                    if len(rest) > 1:
                        return {**others, word: rest}, True
                    below, _ = self.resolve(rest[0])
                    merged, _ = _merge([below, others]) if below is not None else (None, "")
                    return (merged, True) if merged is not None else (schema, False)
        return schema, False

    def _by_kind(
        self,
        schema: dict[str, Any],
        pointer: str,
        name: str,
        required: bool,
        source: _Source,
        depth: int,
        nullable: bool,
    ) -> Field:
        if "const" in schema:
            made = self._common("const", schema, pointer, name, required)
            made.fixed = schema["const"]
            made.text = json.dumps(schema["const"], ensure_ascii=False)
            return made
        options = _options(schema)
        if options is not None:
            return self._choice(schema, options, pointer, name, required, source)
        for word in ("oneOf", "anyOf"):
            if isinstance(schema.get(word), list) and schema[word]:
                return self._alternatives(schema, word, pointer, name, required, source, depth)
        kinds = schema.get("type")
        if isinstance(kinds, list):
            each = [
                {**{k: v for k, v in schema.items() if k not in ("title", "description")}, "type": k} for k in kinds
            ]
            return self._alternatives({**schema, "oneOf": each}, "oneOf", pointer, name, required, source, depth)
        if kinds is None:
            kinds = _implied_type(schema)
        match kinds:
            case "string":
                return self._string(schema, pointer, name, required, source)
            case "integer" | "number":
                return self._number(schema, kinds, pointer, name, required, source)
            case "boolean":
                return self._boolean(schema, pointer, name, required, source, nullable)
            case "null":
                made = self._common("null", schema, pointer, name, required)
                made.fixed = None
                return made
            case "object":
                return self._object(schema, pointer, name, required, source, depth)
            case "array":
                return self._array(schema, pointer, name, required, source, depth)
            case _:
                why = "Any JSON value fits here." if not kinds else f"There is no control for the type {kinds!r}."
                return self.json_box(pointer, name, schema, required, source, why)

    def _common(self, kind: Kind, schema: Mapping[str, Any], pointer: str, name: str, required: bool) -> Field:
        title = schema.get("title")
        description = schema.get("description")
        examples = schema.get("examples")
        return Field(
            pointer=pointer,
            kind=kind,
            label=title if isinstance(title, str) and title else name,
            description=description if isinstance(description, str) else "",
            required=required,
            type_text=_type_text(kind, schema),
            deprecated=schema.get("deprecated") is True,
            read_only=schema.get("readOnly") is True,
            examples=[_show(each) for each in examples[:5]] if isinstance(examples, list) else [],
        )

    # ---- leaves

    def json_box(
        self, pointer: str, name: str, schema: Mapping[str, Any], required: bool, source: _Source, why: str
    ) -> Field:
        """A box for any JSON, with the reason why there is nothing better."""
        made = self._common("json", schema, pointer, name, required)
        made.note = why
        if isinstance(source, _FromForm):
            made.text = source.text() or ""
        elif isinstance(source, _FromValue) and source.value is not MISSING:
            made.text = json.dumps(source.value, ensure_ascii=False, indent=2)
        return made

    def _string(self, schema: dict[str, Any], pointer: str, name: str, required: bool, source: _Source) -> Field:
        kind: Kind = _FORMATS.get(str(schema.get("format")), "text")
        if schema.get("contentEncoding") == "base64":
            kind = "file"
        longest = schema.get("maxLength")
        if kind == "text" and (
            (isinstance(longest, int) and longest > 200)
            or str(schema.get("contentMediaType", "")).startswith("text/")
            or schema.get("format") in ("markdown", "multiline", "textarea")
        ):
            kind = "long"
        if isinstance(source, _FromValue) and source.value is not MISSING and source.value is not None:
            if not isinstance(source.value, str):
                return self.json_box(pointer, name, schema, required, source, "The value is not a string.")
            if kind == "text" and ("\n" in source.value or len(source.value) > 200):
                kind = "long"
            if kind in ("date", "time", "datetime") and not _fits_control(kind, source.value):
                kind = "text"
        if isinstance(source, _FromForm):
            kind = _as_submitted(kind, source)
        made = self._common(kind, schema, pointer, name, required)
        if isinstance(source, _FromForm):
            made.text = (source.text() or "").replace("\r\n", "\n")
        elif isinstance(source, _FromValue) and isinstance(source.value, str):
            made.text = source.value.removesuffix("Z") if kind in ("time", "datetime") else source.value
        for key, attribute in (("minLength", "minlength"), ("maxLength", "maxlength")):
            if isinstance(schema.get(key), int) and kind in ("text", "long", "email", "uri"):
                made.attributes[attribute] = str(schema[key])
        return made

    def _number(
        self,
        schema: dict[str, Any],
        kind: Literal["integer", "number"],
        pointer: str,
        name: str,
        required: bool,
        source: _Source,
    ) -> Field:
        value = source.value if isinstance(source, _FromValue) else None
        if value is not MISSING and value is not None and not _is_number(value):
            return self.json_box(pointer, name, schema, required, source, "The value is not a number.")
        made = self._common(kind, schema, pointer, name, required)
        if isinstance(source, _FromForm):
            made.text = (source.text() or "").strip()
        elif isinstance(source, _FromValue) and source.value is not MISSING and source.value is not None:
            made.text = json.dumps(source.value)
        for key, attribute in (("minimum", "min"), ("maximum", "max")):
            if isinstance(schema.get(key), int | float) and not isinstance(schema[key], bool):
                made.attributes[attribute] = json.dumps(schema[key])
        return made

    def _boolean(
        self, schema: dict[str, Any], pointer: str, name: str, required: bool, source: _Source, nullable: bool
    ) -> Field:
        kind: Kind = "checkbox" if required and not nullable else "threeway"
        made = self._common(kind, schema, pointer, name, required)
        if isinstance(source, _FromForm):
            made.text = source.text() or ""
        elif isinstance(source, _FromValue) and isinstance(source.value, bool):
            made.text = "true" if source.value else "false"
        made.checked = made.text in ("true", "on")
        return made

    def _choice(
        self, schema: dict[str, Any], options: list[Option], pointer: str, name: str, required: bool, source: _Source
    ) -> Field:
        if len(options) > MAX_OPTIONS:
            why = f"There are {len(options)} values to choose from, too many for a list."
            return self.json_box(pointer, name, schema, required, source, why)
        made = self._common("choice", schema, pointer, name, required)
        made.options = options
        if isinstance(source, _FromForm):
            made.chosen = _index(source.text(), len(options))
        elif isinstance(source, _FromValue) and source.value is not MISSING:
            found = [at for at, option in enumerate(options) if _same(option.value, source.value)]
            if not found:
                return self.json_box(pointer, name, schema, required, source, "The value is none of the choices.")
            made.chosen = found[0]
        return made

    # ---- groups

    def _absent(self, made: Field, source: _Source) -> bool:
        """Whether an optional group was not added. Groups that must be there always are."""
        if made.required:
            return False
        made.removable = True
        if isinstance(source, _FromForm):
            made.present = source.form.first(f"{source.pointer}#use") == "1"
        elif isinstance(source, _FromValue):
            made.present = source.value is not MISSING and source.value is not None
        return not made.present

    def _object(
        self, schema: dict[str, Any], pointer: str, name: str, required: bool, source: _Source, depth: int
    ) -> Field:
        properties = schema.get("properties")
        extra = schema.get("additionalProperties", schema.get("unevaluatedProperties", True))
        if not isinstance(properties, dict) or not properties:
            if extra is False:
                properties = {}
            else:
                return self._map(schema, extra, pointer, name, required, source, depth)
        known = set(properties)
        if isinstance(source, _FromValue) and source.value is not MISSING and source.value is not None:
            if not isinstance(source.value, dict):
                return self.json_box(pointer, name, schema, required, source, "The value is not an object.")
            if set(source.value) - known:
                return self.json_box(
                    pointer, name, schema, required, source, "The value has keys the form does not know."
                )
        made = self._common("object", schema, pointer, name, required)
        if self._absent(made, source):
            return made
        must = schema.get("required")
        names = set(must) if isinstance(must, list) and all(isinstance(each, str) for each in must) else set()
        for key, below in properties.items():
            at = f"{pointer}/{escape(key)}"
            made.children.append(self.field(below, at, key, key in names, source.child(key), depth + 1))
        return made

    def _map(
        self, schema: dict[str, Any], below: Any, pointer: str, name: str, required: bool, source: _Source, depth: int
    ) -> Field:
        made = self._common("map", schema, pointer, name, required)
        rows: list[tuple[str, _Source]] = []
        if isinstance(source, _FromForm):
            for row in source.form.all(f"{source.pointer}#row")[:MAX_ITEMS]:
                key = source.form.first(f"{source.pointer}/{escape(row)}#key")
                rows.append((key or "", source.child(row)))
        elif isinstance(source, _FromValue) and isinstance(source.value, dict):
            if len(source.value) > MAX_ITEMS:
                return self.json_box(pointer, name, schema, required, source, f"It has more than {MAX_ITEMS} keys.")
            rows = [(key, source.child(key)) for key in source.value]
        elif isinstance(source, _FromValue) and source.value is not MISSING and source.value is not None:
            return self.json_box(pointer, name, schema, required, source, "The value is not an object.")
        for at, (key, inner) in enumerate(rows):
            item = self.field(below, f"{pointer}/{at}", "", True, inner, depth + 1)
            item.key = key
            made.children.append(item)
        made.can_add = len(rows) < MAX_ITEMS and depth < MAX_DEPTH
        return made

    def _array(
        self, schema: dict[str, Any], pointer: str, name: str, required: bool, source: _Source, depth: int
    ) -> Field:
        prefix = schema.get("prefixItems")
        if prefix is None and isinstance(schema.get("items"), list):
            prefix = schema["items"]
        value = source.value if isinstance(source, _FromValue) else MISSING
        if value is not MISSING and value is not None and not isinstance(value, list):
            return self.json_box(pointer, name, schema, required, source, "The value is not a list.")
        if isinstance(prefix, list) and prefix:
            return self._tuple(schema, prefix, pointer, name, required, source, depth)
        items = schema.get("items", True)
        plain, _ = self.resolve(items)
        options = _options(plain) if plain is not None else None
        listed = isinstance(source, _FromForm) and source.form.has(f"{source.pointer}#item!")
        if options is not None and not listed and len(options) <= MAX_CHECKBOXES and _as_checkboxes(options, value):
            return self._multi(schema, options, pointer, name, required, source)
        made = self._common("array", schema, pointer, name, required)
        if isinstance(source, _FromForm):
            sources: list[_Source] = [
                source.child(each) for each in source.form.all(f"{source.pointer}#item")[:MAX_ITEMS]
            ]
        else:
            if isinstance(value, list) and len(value) > MAX_ITEMS:
                return self.json_box(pointer, name, schema, required, source, f"It has more than {MAX_ITEMS} items.")
            sources = [_FromValue(each) for each in value] if isinstance(value, list) else []
            least = schema.get("minItems")
            if value is MISSING and required and isinstance(least, int):
                sources = [_FromValue(MISSING)] * min(least, 5)
        for at, inner in enumerate(sources):
            item = self.field(items, f"{pointer}/{at}", "", True, inner, depth + 1)
            item.label = item.label or str(at + 1)
            made.children.append(item)
        most = schema.get("maxItems")
        made.can_add = len(sources) < min(most if isinstance(most, int) else MAX_ITEMS, MAX_ITEMS) and depth < MAX_DEPTH
        return made

    def _multi(
        self, schema: dict[str, Any], options: list[Option], pointer: str, name: str, required: bool, source: _Source
    ) -> Field:
        made = self._common("multi", schema, pointer, name, required)
        made.options = options
        if isinstance(source, _FromForm):
            picked = {_index(each, len(options)) for each in source.form.all(source.pointer)}
            made.chosen_many = sorted(each for each in picked if each is not None)
        elif isinstance(source, _FromValue) and isinstance(source.value, list):
            made.chosen_many = [
                at for at, option in enumerate(options) if any(_same(option.value, each) for each in source.value)
            ]
        return made

    def _tuple(
        self,
        schema: dict[str, Any],
        prefix: list[Any],
        pointer: str,
        name: str,
        required: bool,
        source: _Source,
        depth: int,
    ) -> Field:
        value = source.value if isinstance(source, _FromValue) else MISSING
        if isinstance(value, list) and len(value) != len(prefix):
            return self.json_box(pointer, name, schema, required, source, f"The value has not {len(prefix)} items.")
        made = self._common("tuple", schema, pointer, name, required)
        if self._absent(made, source):
            return made
        for at, below in enumerate(prefix[:MAX_ITEMS]):
            inner: _Source = source.child(str(at)) if isinstance(source, _FromForm) else _FromValue(MISSING)
            if isinstance(value, list):
                inner = _FromValue(value[at])
            item = self.field(below, f"{pointer}/{at}", "", True, inner, depth + 1)
            item.label = item.label or str(at + 1)
            made.children.append(item)
        return made

    def _alternatives(
        self, schema: dict[str, Any], word: str, pointer: str, name: str, required: bool, source: _Source, depth: int
    ) -> Field:
        choices: list[dict[str, Any]] = []
        outer = {key: part for key, part in schema.items() if key not in (word, "title", "description", "default")}
        for each in schema[word][:50]:
            below, _ = self.resolve(each)
            merged, _ = _merge([outer, below]) if below is not None else (None, "")
            choices.append(merged if merged is not None else (each if isinstance(each, dict) else {}))
        made = self._common("oneof", schema, pointer, name, required)
        made.alternatives = [_alternative_name(each, at) for at, each in enumerate(choices)]
        if self._absent(made, source):
            return made
        if isinstance(source, _FromForm):
            at = _index(source.form.first(f"{source.pointer}#alt"), len(choices))
            made.chosen = at if at is not None else 0
        elif isinstance(source, _FromValue) and source.value is not MISSING:
            fitting = [at for at, each in enumerate(choices) if fits(each, source.value, self._root)]
            if not fitting:
                return self.json_box(
                    pointer, name, schema, required, source, "The value fits none of the alternatives."
                )
            made.chosen = fitting[0]
        else:
            made.chosen = 0
        picked = choices[made.chosen]
        inner: _Source = source
        if isinstance(source, _FromForm) and source.form.first(f"{source.pointer}#was") not in (None, str(made.chosen)):
            inner = _FromValue(MISSING)
        made.children = [self.field(picked, pointer, name, True, inner, depth + 1)]
        made.children[0].label = ""
        return made


# ---------------------------------------------------------------------------------------------- reading it back


@dataclass(slots=True)
class Filled:
    """What a form says: a value, and what is wrong with it, by pointer."""

    value: Any
    errors: dict[str, list[str]] = field(default_factory=dict)


def read(tree: Field) -> Filled:
    """The value of a tree. Texts that mean nothing are errors here; whether the value fits is for `validate`."""
    errors: dict[str, list[str]] = {}
    value = _read(tree, errors)
    return Filled(value, errors)


def _read(one: Field, errors: dict[str, list[str]]) -> Any:
    if one.nullable and one.is_null:
        return None
    if not one.present:
        return MISSING
    match one.kind:
        case "const" | "null":
            return one.fixed if one.required or one.kind == "null" else MISSING
        case "object":
            found = {}
            for child in one.children:
                value = _read(child, errors)
                if value is not MISSING:
                    found[_name_of(child.pointer)] = value
            return found
        case "map":
            return _read_map(one, errors)
        case "array" | "tuple":
            items = [_read(child, errors) for child in one.children]
            if not items and not one.required and one.kind == "array":
                return MISSING
            return [None if each is MISSING else each for each in items]
        case "multi":
            chosen = [one.options[at].value for at in one.chosen_many]
            return chosen if chosen or one.required else MISSING
        case "choice":
            return MISSING if one.chosen is None else one.options[one.chosen].value
        case "oneof":
            return _read(one.children[0], errors) if one.children else MISSING
        case "checkbox":
            return one.checked
        case "threeway":
            return {"true": True, "false": False}.get(one.text, MISSING)
        case _:
            return _read_text(one, errors)


def _read_map(one: Field, errors: dict[str, list[str]]) -> Any:
    found: dict[str, Any] = {}
    for child in one.children:
        if child.key in found:
            errors.setdefault(child.pointer, []).append(f"The key {json.dumps(child.key)} stands here twice.")
        value = _read(child, errors)
        found[child.key] = None if value is MISSING else value
    return found if found or one.required else MISSING


def _read_text(one: Field, errors: dict[str, list[str]]) -> Any:
    text = one.text
    if one.kind == "json":
        if not text.strip():
            return MISSING
        parsed = parse(text.encode(errors="replace"))
        if parsed.problem is not None:
            errors.setdefault(one.pointer, []).append(parsed.problem)
            return MISSING
        return parsed.value
    if one.kind in ("number", "integer"):
        if not text:
            return MISSING
        number = _as_number(text)
        if number is None:
            errors.setdefault(one.pointer, []).append(f"“{text[:60]}” is not a number.")
            return MISSING
        if one.kind == "integer" and isinstance(number, float):
            if number.is_integer() and abs(number) < 2**53:
                return int(number)
            errors.setdefault(one.pointer, []).append(f"“{text[:60]}” is not a whole number.")
            return MISSING
        return number
    if text == "":
        return "" if one.required and one.kind in ("text", "long") else MISSING
    if one.kind == "datetime" and re.fullmatch(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?", text
    ):
        return text + ("" if text.count(":") == 2 else ":00") + "Z"
    if one.kind == "time" and re.fullmatch(r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?", text):
        return text + ("" if text.count(":") == 2 else ":00") + "Z"
    return text


def entries(tree: Field) -> list[tuple[str, str]]:
    """What a browser submits for a tree that nobody has touched: the names and texts of its controls, in order."""
    found: list[tuple[str, str]] = []
    for one in tree.walk():
        found += _own_entries(one)
    return found


def _own_entries(one: Field) -> list[tuple[str, str]]:
    at = one.pointer
    found: list[tuple[str, str]] = []
    if one.nullable and one.is_null:
        found.append((f"{at}#null", "1"))
    if one.removable:
        found.append((f"{at}#use", "1" if one.present else "0"))
    match one.kind:
        case "object" | "const" | "null":
            pass
        case "array":
            found.append((f"{at}#item!", ""))
            found += [(f"{at}#item", child.pointer.rpartition("/")[2]) for child in one.children]
        case "map":
            found.append((f"{at}#row!", ""))
            for child in one.children:
                found += [(f"{at}#row", child.pointer.rpartition("/")[2]), (f"{child.pointer}#key", child.key)]
        case "tuple":
            pass
        case "multi":
            found += [(at, "")] + [(at, str(index)) for index in one.chosen_many]
        case "choice":
            found.append((at, "" if one.chosen is None else str(one.chosen)))
        case "oneof":
            if one.present:
                found += [(f"{at}#alt", str(one.chosen)), (f"{at}#was", str(one.chosen))]
        case "checkbox":
            found += [(at, "true")] if one.checked else []
        case _:
            found += [(at, one.text)]
            if one.kind == "json":
                found.append((f"{at}#json", one.note))
            if one.kind in ("text", "long", "date", "time", "datetime"):
                found.append((f"{at}#kind", one.kind))
    return found


# --------------------------------------------------------------------------------------------------- validating


def validator(schema: Any) -> Any:
    """A validator that fetches nothing and cannot be made to hang (S38, R6-11); None for an unusable schema."""
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            schema,
            retriever=_refuse,
            validate_formats=True,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000),
        )
    except (ValueError, jsonschema_rs.ReferencingError, RecursionError):
        return None


def fits(schema: Any, value: Any, root: Any = None) -> bool:
    """Whether a value fits a schema; an unusable schema fits nothing. `root` holds what `$ref` points to."""
    whole = schema
    if isinstance(schema, dict) and isinstance(root, dict):
        whole = {**{key: root[key] for key in ("$defs", "definitions", "$schema") if key in root}, **schema}
    check = validator(whole)
    return check is not None and bool(check.is_valid(value))


def validate(schema: Any, value: Any) -> dict[str, list[str]]:
    """What is wrong with a value, in sentences, by pointer. A missing key is named at its own place."""
    check = validator(schema)
    if check is None:
        return {}
    errors: dict[str, list[str]] = {}
    for count, error in enumerate(check.iter_errors({} if value is MISSING else value)):
        if count == 100:
            break
        pointer = "".join(f"/{escape(str(part))}" for part in error.instance_path)
        where, sentence = _sentence(error, pointer)
        if sentence not in errors.setdefault(where, []):
            errors[where].append(sentence)
    return errors


def place(tree: Field, errors: Mapping[str, list[str]]) -> list[str]:
    """Put messages beside their fields, or the nearest one above; what has no home is returned."""
    fields = {one.pointer: one for one in tree.walk() if one.kind != "oneof"}
    homeless: list[str] = []
    for pointer, sentences in errors.items():
        at = pointer
        while at not in fields and at:
            at = at.rpartition("/")[0]
        home = fields.get(at)
        if home is None or (home.kind == "object" and not home.pointer):
            homeless += [f"{pointer or 'The whole'}: {sentence}" for sentence in sentences]
        else:
            home.errors += sentences if at == pointer else [f"{pointer}: {sentence}" for sentence in sentences]
    return homeless


def _sentence(error: Any, pointer: str) -> tuple[str, str]:
    """Where a message belongs, and what it says to a person."""
    kind = getattr(error, "kind", None)
    name = getattr(kind, "name", "") or type(kind).__name__
    lower = str(name).lower()
    if "required" in lower:
        missing = getattr(kind, "property", None)
        if isinstance(missing, str):
            return f"{pointer}/{escape(missing)}", "This is required."
    message = str(error.message)
    return pointer, message[:300] + ("" if message.endswith(".") else ".")


# ------------------------------------------------------------------------------------------------ small pieces


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched")


def _merge(parts: list[dict[str, Any]]) -> tuple[dict[str, Any] | None, str]:
    """Several schemas that all hold, as one; None when that cannot be written as one."""
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if key not in merged or merged[key] == value:
                merged[key] = value
            elif key == "properties" and isinstance(value, dict):
                both = dict(merged[key])
                for name, below in value.items():
                    both[name] = {"allOf": [both[name], below]} if name in both and both[name] != below else below
                merged[key] = both
            elif key == "required" and isinstance(value, list):
                merged[key] = list(dict.fromkeys([*merged[key], *value]))
            elif key in _TIGHTER and isinstance(value, int | float):
                merged[key] = _TIGHTER[key](merged[key], value)
            elif key in ("title", "description", "default", "examples", "$defs", "definitions", "$id", "$schema"):
                continue
            elif key == "type" and {merged[key], value} == {"integer", "number"}:
                merged[key] = "integer"
            else:
                return None, f"The schema combines two different `{key}`."
    return merged, ""


_TIGHTER: dict[str, Callable[[Any, Any], Any]] = {
    "minimum": max,
    "maximum": min,
    "minLength": max,
    "maxLength": min,
    "minItems": max,
    "maxItems": min,
}


def _options(schema: dict[str, Any]) -> list[Option] | None:
    """The values to choose from, when that is what a schema says."""
    values = schema.get("enum")
    if isinstance(values, list) and values:
        names = schema.get("enumNames")
        titles = names if isinstance(names, list) and len(names) == len(values) else values
        return [Option(value, _show(title)) for value, title in zip(values, titles, strict=True)]
    for word in ("oneOf", "anyOf"):
        each = schema.get(word)
        if isinstance(each, list) and each and all(isinstance(one, dict) and "const" in one for one in each):
            return [Option(one["const"], _show(one.get("title", one["const"]))) for one in each]
    return None


def _as_checkboxes(options: list[Option], value: Any) -> bool:
    """Whether a value can be shown by ticks: it is a part of the options, in their order, none twice."""
    if value is MISSING or value is None:
        return True
    at = -1
    for each in value:
        found = next((index for index, option in enumerate(options) if _same(option.value, each)), None)
        if found is None or found <= at:
            return False
        at = found
    return True


def _implied_type(schema: dict[str, Any]) -> str | None:
    for words, kind in (
        (("properties", "additionalProperties", "required", "patternProperties"), "object"),
        (("items", "prefixItems", "minItems", "maxItems"), "array"),
        (("minLength", "maxLength", "pattern", "format", "contentEncoding"), "string"),
        (("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"), "number"),
    ):
        if any(word in schema for word in words):
            return kind
    return None


def _type_text(kind: Kind, schema: Mapping[str, Any]) -> str:
    words = {
        "text": "string",
        "long": "string",
        "checkbox": "boolean",
        "threeway": "boolean",
        "choice": "one of",
        "multi": "any of",
        "datetime": "date-time, UTC",
        "oneof": "alternatives",
        "json": "JSON",
        "file": "file, base64",
        "map": "object",
        "const": "fixed",
    }
    text = words.get(kind, kind)
    low, high = schema.get("minimum"), schema.get("maximum")
    if kind in ("number", "integer"):
        if low is not None and high is not None:
            return f"{text}, {low} to {high}"
        if low is not None:
            return f"{text}, from {low}"
        if high is not None:
            return f"{text}, up to {high}"
    most = schema.get("maxLength")
    if kind in ("text", "long") and isinstance(most, int):
        return f"{text}, up to {most}"
    return text


def _alternative_name(schema: Mapping[str, Any], at: int) -> str:
    for key in ("title", "description"):
        if isinstance(schema.get(key), str) and schema[key]:
            return str(schema[key])[:80]
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, below in properties.items():
            if isinstance(below, dict) and "const" in below:
                return f"{name} {_show(below['const'])}"
        if properties:
            return ", ".join(list(properties)[:3])
    return str(schema.get("type") or f"alternative {at + 1}")


def _show(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:200]


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: 1 and true are not."""
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _index(text: str | None, length: int) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and int(text) < length else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name_of(pointer: str) -> str:
    return pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")


def _as_number(text: str) -> int | float | None:
    if _NUMBER.fullmatch(text) is None or len(text) > 1000:
        return None
    if text.lstrip("-").isdigit():
        return int(text)
    number = float(text)
    return number if abs(number) != float("inf") else None


def _fits_control(kind: Kind, text: str) -> bool:
    """Whether a browser's date or time control can hold this text without changing it (times are UTC there)."""
    pattern = {
        "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
        "time": r"[0-9]{2}:[0-9]{2}:[0-9]{2}Z",
        "datetime": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z",
    }[kind]
    return re.fullmatch(pattern, text) is not None


def _as_submitted(kind: Kind, source: _FromForm) -> Kind:
    """The control a text came from, when it was a plainer one than the schema suggests."""
    was = source.form.first(f"{source.pointer}#kind")
    if kind in ("date", "time", "datetime") and was == "text":
        return "text"
    if kind == "text" and was == "long":
        return "long"
    return kind
