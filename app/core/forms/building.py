"""A schema and its content to the tree of a form: which kind each place is, and everything that has places inside.

What no control can show becomes a JSON box for that sub-tree alone, with the reason. Bounded in fields, depth, items
and choices (S38): the form of any schema is made in milliseconds. Knows no HTML.
"""

from __future__ import annotations

from typing import Any

from app import bounds
from app.core.figures import grouped
from app.core.forms import leaves
from app.core.forms.alternatives import closest
from app.core.forms.leaves import NoControl, Spot
from app.core.forms.reading import read
from app.core.forms.sources import Carried, Entries, Fresh, Given, Source, Started, Submitted, indices
from app.core.forms.tree import ROOT_NAME, Field, Kind, below, nameable
from app.core.forms.words import alternative_name, item_name
from app.core.json import pointer
from app.core.json.pointer import escape
from app.core.json.values import MISSING, from_json_text
from app.core.schema.cost import too_large
from app.core.schema.plain import (
    Option,
    Schema,
    Schemas,
    extra_keys,
    implied_type,
    properties_of,
    required_keys,
)
from app.core.schema.refs import NoShape

_Row = tuple[str, Any, Source]
"""An item of a list or a row of a map: its place or key, its schema, and where its content is."""


def build(schema: Any, value: Any = MISSING, form: Entries | None = None) -> Field:
    """The tree of a schema, filled from a submitted form, else from a value, else from the schema's defaults."""
    source: Source = Submitted(form) if form is not None else Fresh() if value is MISSING else Given(value)
    spot = Spot("", ROOT_NAME, "", True, 0)
    if why := too_large(schema):
        return leaves.json_box({}, spot, source, why)
    return Builder(schema).field(schema, spot, source)


class Builder:
    """Makes one tree. Counts what it makes."""

    def __init__(self, root: Any) -> None:
        self._schemas = Schemas(root)
        self._fields = 0
        self._options = 0

    def field(self, schema: Any, spot: Spot, source: Source) -> Field:
        """One field and everything below it; a JSON box where nothing else can show it."""
        self._fields += 1
        if isinstance(source, Submitted) and source.has("#new"):
            source = Started()
        drawn = schema if isinstance(schema, dict) else {}
        try:
            drawn = self._schemas.plain(schema)
            if self._fields > bounds.DRAWN_FIELDS:
                raise NoControl(f"The form has more than {bounds.DRAWN_FIELDS} fields.")
            if spot.depth > bounds.FORM_DEPTH:
                raise NoControl(f"It is nested more than {bounds.FORM_DEPTH} deep.")
            content = _content(drawn, spot, source)
            drawn, nullable = self._schemas.without_null(drawn)
            is_null = nullable and isinstance(content, Given) and content.value is None
            made = self._by_kind(drawn, spot, Given(MISSING) if is_null else content)
        except (NoShape, NoControl) as reason:
            return leaves.json_box(drawn, spot, source, str(reason))
        made.nullable = nullable
        made.is_null = is_null or (nullable and isinstance(content, Submitted) and content.has("#null"))
        return made

    def _by_kind(self, schema: Schema, spot: Spot, source: Source) -> Field:
        if schema.get("readOnly") is True:
            return leaves.fixed(schema, schema.get("default", MISSING), spot, source)
        if "const" in schema:
            return leaves.fixed(schema, schema["const"], spot, source)
        options = self._schemas.options(schema)
        if options is not None:
            return self._choice(schema, options, spot, source)
        offered = self._schemas.alternatives(schema)
        if offered:
            return self._oneof(schema, offered, spot, source)
        kind = schema["type"] if "type" in schema else implied_type(schema)
        if isinstance(kind, list) and len(kind) == 1:
            kind = kind[0]
        match kind:
            case "string":
                return leaves.string(schema, spot, source)
            case "integer" | "number":
                return leaves.number(schema, kind, spot, source)
            case "boolean":
                return leaves.boolean(schema, spot, source)
            case "null":
                return leaves.fixed(schema, None, spot, source)
            case "object":
                return self._object(schema, spot, source)
            case "array":
                return self._array(schema, spot, source)
            case _:
                no_type = f"There is no type {str(kind)[:40]} in JSON Schema."
                raise NoControl(no_type if kind else "Any JSON value fits here.")

    def _choice(self, schema: Schema, options: list[Option], spot: Spot, source: Source) -> Field:
        if len(options) <= bounds.TITLED_OPTIONS and self._options + len(options) <= bounds.FORM_OPTIONS:
            self._options += len(options)
            return leaves.choice(schema, options, spot, source)
        why = f"There are {grouped(len(options))} values to choose from, too many for a list."
        if not self._schemas.all_texts(options):
            raise NoControl(why)
        made = leaves.string(schema, spot, source)
        made.note = why
        return made

    # ---- groups

    def _group(self, kind: Kind, schema: Schema, spot: Spot, source: Source) -> Field:
        """A group without its fields. One that must be there always is; one that need not be can be left out."""
        made = leaves.common(kind, schema, spot)
        made.item = item_name(made.label) if kind in ("array", "map") else made.item
        if isinstance(source, Submitted):
            left_out, used = source.has("#use"), source.text("#use") == "1"
        else:
            left_out = source.is_nothing
            used = isinstance(source, Started | Given) and not source.is_nothing
        made.removable = not spot.required or left_out
        made.present = used or not made.removable
        return made

    def _object(self, schema: Schema, spot: Spot, source: Source) -> Field:
        properties, required = properties_of(schema), set(required_keys(schema))
        extra, offered = extra_keys(schema)
        if not properties and offered and isinstance(extra, dict):
            return self._map(schema, extra, spot, source)
        if not properties and spot.depth and "properties" not in schema and extra is True:
            raise NoControl("Any object fits here.")
        value = leaves.taken(source, lambda given: isinstance(given, dict), "The value is not an object.")
        if self._fields + len(properties) > bounds.DRAWN_FIELDS:
            raise NoControl(f"It has {grouped(len(properties))} properties, too many for the form.")
        if any(len(spot.pointer) + len(key) > bounds.FORM_NAME for key in properties):
            raise NoControl("A name in it is too long for the form.")
        made = self._group("object", schema, spot, source)
        if not made.present:
            return made
        inside = Fresh() if isinstance(source, Given) and value is MISSING else source
        for key, part in properties.items():
            name = below(spot.name, nameable(key))
            child = Spot(f"{spot.pointer}/{escape(key)}", name, key, key in required, spot.depth + 1)
            made.children.append(self.field(part, child, inside.child(key)))
        unnamed = {key: each for key, each in value.items() if key not in properties} if value else {}
        if offered or unnamed or (isinstance(inside, Submitted) and inside.has("#more#item")):
            rest = inside.beside("#more") if isinstance(inside, Submitted) else Given(unnamed)
            more = self._map({}, extra or True, Spot(spot.pointer, f"{spot.name}#more", "", True, spot.depth), rest)
            more.more, more.required, more.item, more.type_text = True, False, "key", ""
            more.can_add = more.can_add and extra is not False
            made.children.append(more)
        return made

    def _map(self, schema: Schema, items: Any, spot: Spot, source: Source) -> Field:
        value = leaves.taken(source, lambda given: isinstance(given, dict), "The value is not an object.")
        if value and len(value) > bounds.FORM_ITEMS:
            raise NoControl(f"It has more than {bounds.FORM_ITEMS} keys.")
        if value and not all(leaves.typeable(key) and "\n" not in key for key in value):
            raise NoControl("One of its keys has a line break.")
        made = self._group("map", schema, spot, source)
        rows: list[_Row] = [(key, items, Given(each)) for key, each in value.items()] if value else []
        if isinstance(source, Submitted):
            inside = [source.at(each) for each in indices(source.form, source.name)]
            rows = [(each.text("#key"), items, each) for each in inside]
        self._fill(made, rows, spot)
        made.can_add = len(made.children) < bounds.FORM_ITEMS and spot.depth < bounds.FORM_DEPTH
        return made

    def _fill(self, made: Field, rows: list[_Row], spot: Spot) -> None:
        """Add items to a list or rows to a map, each named by its place in the form."""
        for at, (key, schema, source) in enumerate(rows if made.present else []):
            place = Spot(f"{spot.pointer}/{escape(key)}", below(spot.name, str(at)), "", True, spot.depth + 1)
            child = self.field(schema, place, source)
            if made.kind == "map":
                child.key = key
            else:
                child.label = f"{child.label or made.item} {at + 1}"
            made.children.append(child)

    def _array(self, schema: Schema, spot: Spot, source: Source) -> Field:
        value = leaves.taken(source, lambda given: isinstance(given, list), "The value is not a list.")
        items = schema.get("items", True)
        prefix = schema.get("prefixItems", items)
        if isinstance(prefix, list) and prefix:
            return self._tuple(schema, prefix, value, spot, source)
        options = self._schemas.options(self._schemas.plain_or_none(items) or {})
        listed = isinstance(source, Submitted) and source.has("#list")
        if options is not None and not listed and len(options) <= bounds.FORM_CHECKBOXES:
            ticks = leaves.ticks(options, value or [])
            self._options += len(options)
            if ticks is not None and self._options <= bounds.FORM_OPTIONS:
                return leaves.multi(schema, options, ticks, spot, source)
        if value and len(value) > bounds.FORM_ITEMS:
            raise NoControl(f"It has more than {bounds.FORM_ITEMS} items.")
        made = self._group("array", schema, spot, source)
        inside: list[Source] = []
        least, most = schema.get("minItems"), schema.get("maxItems")
        if isinstance(source, Submitted):
            inside = [source.at(each) for each in indices(source.form, source.name)]
        elif isinstance(source, Given):
            inside = _each(source, value or [])
        elif isinstance(least, int):
            inside = [Fresh()] * min(least, 5)
        self._fill(made, [(str(at), items, each) for at, each in enumerate(inside)], spot)
        room = min(most, bounds.FORM_ITEMS) if isinstance(most, int) else bounds.FORM_ITEMS
        made.can_add = len(made.children) < room and spot.depth < bounds.FORM_DEPTH
        return made

    def _tuple(self, schema: Schema, prefix: list[Any], value: Any, spot: Spot, source: Source) -> Field:
        if len(prefix) > bounds.FORM_ITEMS:
            raise NoControl(f"It has more than {bounds.FORM_ITEMS} items.")
        if value is not MISSING and len(value) != len(prefix):
            raise NoControl(f"The list has {len(value)} items; the form has places for {len(prefix)}.")
        made = self._group("tuple", schema, spot, source)
        inside: list[Source] = [Fresh()] * len(prefix)
        if isinstance(source, Submitted):
            inside = [source.at(str(at)) for at in range(len(prefix))]
        elif isinstance(source, Given) and value:
            inside = _each(source, value)
        self._fill(made, [(str(at), part, inside[at]) for at, part in enumerate(prefix)], spot)
        return made

    # ---- alternatives

    def _oneof(self, schema: Schema, offered: list[Schema], spot: Spot, source: Source) -> Field:
        made = leaves.common("oneof", schema, spot, len(offered))
        made.alternatives = [alternative_name(each, at) for at, each in enumerate(offered)]
        if isinstance(source, Submitted):
            made.chosen = pointer.index(source.text("#alt"), len(offered))
            if spot.required and not source.has("#alt"):
                made.chosen = 0
            source = self._switched(made, offered, spot, source)
        else:
            value = leaves.taken(source, lambda given: True, "")
            made.chosen = closest(offered, value, self._schemas) if value is not MISSING else None
            if made.chosen is None and value is not MISSING and not isinstance(source, Carried):
                raise NoControl("The value fits none of the alternatives.")
            if made.chosen is None:
                made.chosen = 0 if spot.required and not source.is_nothing else None
                source = Fresh() if value is not MISSING else source
        made.present = made.chosen is not None
        if made.chosen is not None:
            child = self._alternative(offered, made.chosen, spot, source)
            child.label = child.label or made.alternatives[made.chosen]
            made.children = [child]
        return made

    def _alternative(self, offered: list[Schema], at: int, spot: Spot, source: Source) -> Field:
        return self.field(offered[at], Spot(spot.pointer, f"{spot.name}#{at}", "", True, spot.depth + 1), source)

    def _switched(self, made: Field, offered: list[Schema], spot: Spot, source: Submitted) -> Source:
        """Where the chosen alternative gets its content from: from its own fields when they were drawn before, else
        from those of the one that was drawn last, as far as both have them. The others' texts are kept."""
        found = (pointer.index(each, len(offered)) for each in source.form.all(f"{source.name}#was"))
        drawn = list(dict.fromkeys(each for each in found if each is not None))
        for each in drawn:
            if each != made.chosen:
                texts = source.form.under(f"{source.name}#{each}")
                made.kept.append((f"{made.name}#was", str(each)))
                made.kept += [(made.name + name[len(source.name) :], text) for name, text in texts]
        made.kept = made.kept if len(made.kept) <= bounds.FORM_KEPT else []
        if made.chosen is None or not drawn:
            return Fresh()
        if made.chosen in drawn:
            return source.beside(f"#{made.chosen}")
        typed = read(self._alternative(offered, drawn[0], spot, source.beside(f"#{drawn[0]}"))).value
        if isinstance(typed, dict):
            known = properties_of(offered[made.chosen])
            typed = {key: each for key, each in typed.items() if key in known}
        return Fresh() if typed is MISSING else Carried(typed)


def _content(schema: Schema, spot: Spot, source: Source) -> Source:
    """Where a field gets its content from in the end: what stands in a JSON box is a value again as soon as it can be
    read, and a field that nobody has filled has its default. Raises NoControl while a box cannot be read."""
    if isinstance(source, Submitted) and source.has("#json"):
        typed = from_json_text(source.text())
        if typed.problem is not None:
            raise NoControl("It stays JSON until it can be read.")
        return Given(typed.value)
    if isinstance(source, Fresh) and "default" in schema and (schema["default"] is not None or spot.required):
        return Carried(schema["default"])
    return source


def _each(source: Given, values: list[Any]) -> list[Source]:
    return [Carried(each) if isinstance(source, Carried) else Given(each) for each in values]
