"""A schema and its content to the tree of a form: which kind each place is, and everything that has places inside.

What no control can show becomes a JSON box for that sub-tree alone, with the reason. Bounded in fields, depth, items
and choices (S38): the form of any schema is made in milliseconds. Knows no HTML.
"""

from __future__ import annotations

from typing import Any

from app import bounds
from app.core.figures import grouped
from app.core.forms import leaves
from app.core.forms.leaves import NoControl
from app.core.forms.reading import read
from app.core.forms.sources import Entries, Given, Source, Submitted
from app.core.forms.tree import ROOT_NAME, Field, Kind, Spot, below, nameable
from app.core.forms.words import alternative_name, item_name, list_text
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


def build(schema: Any, value: Any = MISSING, form: Entries | None = None, *, prefill: bool = True) -> Field:
    """The tree of a schema, filled from a submitted form, else from a value, else from the schema's defaults.

    Without `prefill` a default stands only where something must: what is optional is not set until somebody sets it."""
    source: Source = Submitted(form) if form is not None else Source() if value is MISSING else Given(value)
    spot = Spot("", ROOT_NAME, "", True, 0)
    if why := too_large(schema):
        return leaves.json_box({}, spot, source, why)
    return Builder(schema, prefill).field(schema, spot, source)


def skeleton(schema: Any) -> Any:
    """A value to start from: the defaults, and something for whatever must be there."""
    value = read(build(schema), with_samples=True).value
    return {} if value is MISSING else value


class Builder:
    """Makes one tree. Counts what it makes."""

    def __init__(self, root: Any, prefill: bool) -> None:
        self._prefill = prefill
        self._schemas = Schemas(root)
        self._fields = 0
        self._options = 0

    def field(self, schema: Any, spot: Spot, source: Source) -> Field:
        """One field and everything below it; a JSON box where nothing else can show it."""
        self._fields += 1
        if source.has("#new"):
            source = Source(used=True)
        drawn = schema if isinstance(schema, dict) else {}
        try:
            drawn = self._schemas.plain(schema)
            if self._fields > bounds.DRAWN_FIELDS:
                raise NoControl(f"The form has more than {bounds.DRAWN_FIELDS} fields.")
            if spot.depth > bounds.FORM_DEPTH:
                raise NoControl(f"It is nested more than {bounds.FORM_DEPTH} deep.")
            content = self._content(drawn, spot, source)
            drawn, nullable = self._schemas.without_null(drawn)
            chose_null = content.text("#as") == "null" and not content.text()
            is_null = nullable and (content.value is None or chose_null)
            made = self._by_kind(drawn, spot, Given(MISSING) if is_null else content)
        except (NoShape, NoControl) as reason:
            return leaves.json_box(drawn, spot, source, str(reason))
        made.nullable = nullable
        made.is_null = is_null or (nullable and made.kind == "oneof" and content.text("#alt") == "null")
        made.state = "null" if is_null and made.states else made.state
        return made

    def _content(self, schema: Schema, spot: Spot, source: Source) -> Source:
        """Where a field gets its content from in the end: what stands in a JSON box is a value again as soon as it can
        be read, and a field that nobody has filled has its default. Raises NoControl while a box cannot be read."""
        if source.has("#json"):
            typed = from_json_text(source.text())
            if typed.problem is not None:
                raise NoControl("It stays JSON until it can be read.")
            return Given(typed.value)
        wanted = spot.required or (self._prefill and schema.get("default") is not None)
        if type(source) is Source and "default" in schema and wanted:
            return Given(schema["default"], carried=True)
        return source

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
                return leaves.boolean(schema, spot, source, prefill=self._prefill)
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
        made.removable = not spot.required or source.left_out
        made.present = source.used or not made.removable
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
        for key, part in properties.items():
            name = below(spot.name, nameable(key))
            child = Spot(f"{spot.pointer}/{escape(key)}", name, key, key in required, spot.depth + 1)
            made.children.append(self.field(part, child, source.child(key)))
        unnamed = {key: each for key, each in value.items() if key not in properties} if value else {}
        if offered or unnamed or source.has("#more#item"):
            rest = source.beside("#more") if isinstance(source, Submitted) else Given(unnamed)
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
        rows: list[_Row] = [(key, items, Given(each)) for key, each in value.items()] if value else []
        if isinstance(source, Submitted):
            rows = [(each.text("#key"), items, each) for each in source.items(0)]
        return self._filled("map", schema, rows, bounds.FORM_ITEMS, spot, source)

    def _array(self, schema: Schema, spot: Spot, source: Source) -> Field:
        value = leaves.taken(source, lambda given: isinstance(given, list), "The value is not a list.")
        items = schema.get("items", True)
        prefix = schema.get("prefixItems", items)
        if isinstance(prefix, list) and prefix:
            return self._tuple(schema, prefix, value, spot, source)
        options = self._schemas.options(self._schemas.plain_or_none(items) or {})
        if options is not None and not source.has("#list") and len(options) <= bounds.FORM_CHECKBOXES:
            ticks = leaves.ticks(options, value or [])
            self._options += len(options)
            if ticks is not None and self._options <= bounds.FORM_OPTIONS:
                return leaves.multi(schema, options, ticks, spot, source)
        if value and len(value) > bounds.FORM_ITEMS:
            raise NoControl(f"It has more than {bounds.FORM_ITEMS} items.")
        least, most = schema.get("minItems"), schema.get("maxItems")
        inside = source.items(min(least, 5) if isinstance(least, int) else 0)
        room = min(most, bounds.FORM_ITEMS) if isinstance(most, int) else bounds.FORM_ITEMS
        rows = [(str(at), items, each) for at, each in enumerate(inside)]
        made = self._filled("array", schema, rows, room, spot, source)
        made.type_text = list_text(schema, self._schemas.plain_or_none(items) or {})
        if all(child.kind == "text" and not child.nullable for child in made.children):
            for child in made.children:
                child.bare, child.state, child.value = True, "", child.text
        return made

    def _tuple(self, schema: Schema, prefix: list[Any], value: Any, spot: Spot, source: Source) -> Field:
        if len(prefix) > bounds.FORM_ITEMS:
            raise NoControl(f"It has more than {bounds.FORM_ITEMS} items.")
        if value is not MISSING and len(value) != len(prefix):
            raise NoControl(f"The list has {len(value)} items; the form has places for {len(prefix)}.")
        places = range(len(prefix))
        if isinstance(source, Submitted):
            inside: list[Source] = [source.at(str(at)) for at in places]
        else:
            inside = source.items(len(prefix)) or [Source()] * len(prefix)
        rows = [(str(at), prefix[at], inside[at]) for at in places]
        return self._filled("tuple", schema, rows, 0, spot, source)

    def _filled(self, kind: Kind, schema: Schema, rows: list[_Row], room: int, spot: Spot, source: Source) -> Field:
        """A list or a map with its items, each named by its place in the form. One can be added while there is room."""
        made = self._group(kind, schema, spot, source)
        for at, (key, part, content) in enumerate(rows if made.present else []):
            place = Spot(f"{spot.pointer}/{escape(key)}", below(spot.name, str(at)), "", True, spot.depth + 1)
            child = self.field(part, place, content)
            if kind == "map":
                child.key = key
            else:
                child.label = f"{child.label or made.item} {at}"
            made.children.append(child)
        made.can_add = len(made.children) < room and spot.depth < bounds.FORM_DEPTH
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
            if source.value is not MISSING:
                made.chosen = self._schemas.closest(offered, source.value)
                if made.chosen is None:
                    leaves.taken(source, lambda given: False, "The value fits none of the alternatives.")
                    source = Source()
            if made.chosen is None and spot.required and not source.is_nothing:
                made.chosen = 0
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
            return Source()
        if made.chosen in drawn:
            return source.beside(f"#{made.chosen}")
        typed = read(self._alternative(offered, drawn[0], spot, source.beside(f"#{drawn[0]}"))).value
        if isinstance(typed, dict):
            known = properties_of(offered[made.chosen])
            typed = {key: each for key, each in typed.items() if key in known}
        return Source() if typed is MISSING else Given(typed, carried=True)
