"""A schema and its content to the tree of a form: which kind each place is, and everything that has places inside.

What no control can show becomes a JSON box for that sub-tree alone, with the reason. Bounded in fields, depth, items
and choices (S38): the form of any schema is made in milliseconds. Knows no HTML.
"""

from __future__ import annotations

from typing import Any

from app import bounds
from app.core.figures import grouped
from app.core.forms import leaves
from app.core.forms.alternatives import Chooser, kept_from, shown_before
from app.core.forms.leaves import Spot
from app.core.forms.reading import read
from app.core.forms.sources import Carried, Entries, Fresh, Given, Source, Started, Submitted, indices
from app.core.forms.tree import ROOT_NAME, Field, below, nameable
from app.core.forms.words import alternative_name, item_name
from app.core.json.pointer import escape
from app.core.json.values import MISSING, from_json_text, same, show
from app.core.schema.cost import too_large
from app.core.schema.merging import Schema, extra_keys, implied_type
from app.core.schema.refs import Option, Schemas

ANYTHING = "Any JSON value fits here."


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
        self._chooser = Chooser(self._schemas)
        self._fields = 0
        self._options = 0
        self._texts: dict[int, bool] = {}

    def field(self, schema: Any, spot: Spot, source: Source) -> Field:
        """One field and everything below it."""
        self._fields += 1
        plain, why = self._schemas.plain(schema)
        if isinstance(source, Submitted):
            if source.has("#new"):
                source = Started()
            elif source.has("#json"):
                return self._typed_as_json(schema, spot, source)
        if plain is None:
            return leaves.json_box(schema if isinstance(schema, dict) else {}, spot, source, why)
        if self._fields > bounds.DRAWN_FIELDS:
            return leaves.json_box(plain, spot, source, f"The form has more than {bounds.DRAWN_FIELDS} fields.")
        if spot.depth > bounds.FORM_DEPTH:
            return leaves.json_box(plain, spot, source, f"It is nested more than {bounds.FORM_DEPTH} deep.")
        if isinstance(source, Fresh) and "default" in plain and (plain["default"] is not None or spot.required):
            source = Carried(plain["default"])
        slim, nullable = self._schemas.without_null(plain)
        is_null = nullable and isinstance(source, Given) and source.value is None
        made = self._by_kind(slim, spot, Given(MISSING) if is_null else source)
        if nullable and made.kind != "json":
            made.nullable = True
            made.is_null = is_null or (isinstance(source, Submitted) and source.has("#null"))
        elif is_null:
            made.text = "null"
        return made

    def _typed_as_json(self, schema: Any, spot: Spot, source: Submitted) -> Field:
        """What was typed into a JSON box: a proper field again as soon as it fits one, else the box as it was."""
        text = source.text()
        typed = from_json_text(text)
        if typed.problem is None:
            made = self.field(schema, spot, Given(typed.value))
            if made.kind == "json":
                made.text = text
            return made
        plain, _ = self._schemas.plain(schema)
        return leaves.json_box(plain or {}, spot, source, "It stays JSON until it can be read.")

    def _by_kind(self, schema: Schema, spot: Spot, source: Source) -> Field:
        if schema.get("readOnly") is True:
            return leaves.fixed(schema, spot, source, schema.get("default", MISSING))
        if "const" in schema:
            return self._const(schema, schema["const"], spot, source)
        options = self._schemas.options(schema)
        if options is not None:
            return self._choice(schema, options, spot, source)
        offered = self._schemas.alternatives(schema)
        if offered:
            return self._oneof(schema, offered, spot, source)
        kind = schema.get("type", implied_type(schema))
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
                return self._const(schema, None, spot, source)
            case "object":
                return self._object(schema, spot, source)
            case "array":
                return self._array(schema, spot, source)
            case _:
                why = ANYTHING if not kind else f"There is no type {str(kind)[:40]} in JSON Schema."
                return leaves.json_box(schema, spot, source, why)

    def _const(self, schema: Schema, value: Any, spot: Spot, source: Source) -> Field:
        open_still = leaves.is_open(source, "choice")
        if spot.required and not open_still:
            return leaves.fixed(schema, spot, source, value)
        made = leaves.choice(schema, [Option(value, show(value))], spot, source)
        made.plainer = spot.required and made.kind == "choice"
        return made

    def _choice(self, schema: Schema, options: list[Option], spot: Spot, source: Source) -> Field:
        self._options += len(options)
        if len(options) <= bounds.TITLED_OPTIONS and self._options <= bounds.FORM_OPTIONS:
            return leaves.choice(schema, options, spot, source)
        self._options -= len(options)
        why = f"There are {grouped(len(options))} values to choose from, too many for a list."
        if self._all_texts(options):
            made = leaves.string(schema, spot, source)
            made.note = made.note or why
            return made
        return leaves.json_box(schema, spot, source, why)

    def _all_texts(self, options: list[Option]) -> bool:
        if id(options) not in self._texts:
            self._texts[id(options)] = all(isinstance(option.value, str) for option in options)
        return self._texts[id(options)]

    # ---- groups

    def _group(self, made: Field, source: Source) -> bool:
        """Whether a group is there. One that must be there always is; one that need not be can be left out."""
        missing = isinstance(source, Given) and source.value is MISSING
        if isinstance(source, Submitted):
            made.removable = not made.required or source.has("#use")
            made.present = not made.removable or source.text("#use") == "1"
        else:
            made.removable = not made.required or (missing and leaves.exact(source))
            made.present = (
                not made.removable or isinstance(source, Started) or (isinstance(source, Given) and not missing)
            )
        return made.present

    def _object(self, schema: Schema, spot: Spot, source: Source) -> Field:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        extra, offered = extra_keys(schema)
        if not properties and offered and isinstance(extra, dict):
            return self._map(schema, extra, spot, source)
        if not properties and spot.depth and "properties" not in schema and extra is True:
            return leaves.json_box(schema, spot, source, "Any object fits here.", "object, as JSON")
        value, fits = leaves.taken(source, lambda given: isinstance(given, dict))
        if not fits:
            return leaves.json_box(schema, spot, source, "The value is not an object.")
        if self._fields + len(properties) > bounds.DRAWN_FIELDS:
            why = f"It has {grouped(len(properties))} properties, too many for the form."
            return leaves.json_box(schema, spot, source, why)
        if any(len(spot.pointer) + len(key) > bounds.FORM_NAME for key in properties):
            return leaves.json_box(schema, spot, source, "A name in it is too long for the form.")
        made = leaves.common("object", schema, spot)
        if not self._group(made, source):
            return made
        inside = Fresh() if isinstance(source, Given) and value is MISSING else source
        must = schema.get("required")
        names = {each for each in must if isinstance(each, str)} if isinstance(must, list) else set()
        for key, part in properties.items():
            child = spot.child(f"/{escape(key)}", below(spot.name, nameable(key)), key, key in names)
            made.children.append(self.field(part, child, inside.child(key)))
        unnamed = {key: each for key, each in value.items() if key not in properties} if value is not MISSING else {}
        rows = isinstance(inside, Submitted) and inside.has("#more#item")
        if offered or unnamed or rows:
            more = Spot(spot.pointer, f"{spot.name}#more", "", False, spot.depth)
            within: Source = Given(unnamed or MISSING)
            if isinstance(inside, Submitted):
                within = inside.beside("#more")
            box = self._map({}, extra if isinstance(extra, dict) else True, more, within, strict=False)
            if box.kind == "map":
                box.more, box.removable, box.present, box.item = True, False, True, "key"
                box.can_add = box.can_add and extra is not False
                box.type_text = ""
                made.children.append(box)
            else:
                return leaves.json_box(schema, spot, source, "The value has keys that no control can show.")
        return made

    def _map(self, schema: Schema, items: Any, spot: Spot, source: Source, strict: bool = True) -> Field:
        value, fits = leaves.taken(source, lambda given: isinstance(given, dict))
        if not fits:
            return leaves.json_box(schema, spot, source, "The value is not an object.")
        if value is not MISSING and len(value) > bounds.FORM_ITEMS:
            return leaves.json_box(schema, spot, source, f"It has more than {bounds.FORM_ITEMS} keys.")
        if value is not MISSING and not all(leaves.typeable(key, lines=False) for key in value):
            return leaves.json_box(schema, spot, source, "One of its keys has a line break.")
        made = leaves.common("map", schema, spot)
        made.item = item_name(made.label)
        if not self._group(made, source) and strict:
            made.can_add = spot.depth < bounds.FORM_DEPTH
            return made
        rows: list[tuple[str, Source]] = []
        if isinstance(source, Submitted):
            rows = [(source.at(each).text("#key"), source.at(each)) for each in indices(source.form, source.name)]
        elif value is not MISSING:
            rows = [(key, Given(each)) for key, each in value.items()]
        for at, (key, inner) in enumerate(rows):
            row = Spot(f"{spot.pointer}/{escape(key)}", below(spot.name, str(at)), "", True, spot.depth + 1)
            child = self.field(items, row, inner)
            child.key = key
            made.children.append(child)
        made.can_add = len(rows) < bounds.FORM_ITEMS and spot.depth < bounds.FORM_DEPTH
        return made

    def _array(self, schema: Schema, spot: Spot, source: Source) -> Field:
        value, fits = leaves.taken(source, lambda given: isinstance(given, list))
        if not fits:
            return leaves.json_box(schema, spot, source, "The value is not a list.")
        items = schema.get("items", True)
        prefix = schema.get("prefixItems", items)
        if isinstance(prefix, list) and prefix:
            return self._tuple(schema, prefix, value, spot, source)
        plain, _ = self._schemas.plain(items)
        options = self._schemas.options(plain) if plain is not None else None
        listed = isinstance(source, Submitted) and source.has("#list")
        if (
            options is not None
            and not listed
            and len(options) <= bounds.FORM_CHECKBOXES
            and _can_be_ticked(options, value)
        ):
            self._options += len(options)
            if self._options <= bounds.FORM_OPTIONS:
                return leaves.multi(schema, options, spot, source)
        if value is not MISSING and len(value) > bounds.FORM_ITEMS:
            return leaves.json_box(schema, spot, source, f"It has more than {bounds.FORM_ITEMS} items.")
        made = leaves.common("array", schema, spot)
        made.item = item_name(made.label)
        most = schema.get("maxItems")
        room = (
            min(most if isinstance(most, int) else bounds.FORM_ITEMS, bounds.FORM_ITEMS)
            if spot.depth < bounds.FORM_DEPTH
            else 0
        )
        made.can_add = room > 0
        if not self._group(made, source):
            return made
        inside: list[Source] = []
        if isinstance(source, Submitted):
            inside = [source.at(each) for each in indices(source.form, source.name)]
        elif value is not MISSING:
            inside = [Carried(each) if isinstance(source, Carried) else Given(each) for each in value]
        elif not isinstance(source, Given) and isinstance(schema.get("minItems"), int):
            inside = [Fresh()] * min(schema["minItems"], 5)
        for at, each in enumerate(inside):
            made.children.append(self._item(items, at, made.item, spot, each))
        made.can_add = len(inside) < room
        return made

    def _tuple(self, schema: Schema, prefix: list[Any], value: Any, spot: Spot, source: Source) -> Field:
        if len(prefix) > bounds.FORM_ITEMS:
            return leaves.json_box(schema, spot, source, f"It has more than {bounds.FORM_ITEMS} items.")
        if value is not MISSING and len(value) != len(prefix):
            why = f"The list has {len(value)} items; the form has places for {len(prefix)}."
            return leaves.json_box(schema, spot, source, why)
        made = leaves.common("tuple", schema, spot)
        if not self._group(made, source):
            return made
        for at, part in enumerate(prefix):
            inner: Source = source.at(str(at)) if isinstance(source, Submitted) else Fresh()
            if value is not MISSING:
                inner = Carried(value[at]) if isinstance(source, Carried) else Given(value[at])
            made.children.append(self._item(part, at, "item", spot, inner))
        return made

    def _item(self, schema: Any, at: int, noun: str, spot: Spot, source: Source) -> Field:
        made = self.field(schema, spot.child(f"/{at}", below(spot.name, str(at)), "", True), source)
        made.label = f"{made.label or noun} {at + 1}"
        return made

    def _oneof(self, schema: Schema, offered: list[Schema], spot: Spot, source: Source) -> Field:
        value, _ = leaves.taken(source, lambda given: True)
        made = leaves.common("oneof", schema, spot, len(offered))
        made.alternatives = [alternative_name(each, at) for at, each in enumerate(offered)]
        inner: Source = source
        if isinstance(source, Submitted):
            made.chosen = leaves.index_of(source.text("#alt"), len(offered))
            if made.chosen is None and spot.required and not source.has("#alt"):
                made.chosen = 0
        elif value is not MISSING:
            made.chosen = self._chooser.best(offered, value)
            if made.chosen is None:
                if not isinstance(source, Carried):
                    return leaves.json_box(schema, spot, source, "The value fits none of the alternatives.")
                inner, made.chosen = Fresh(), 0 if spot.required else None
        else:
            made.chosen = 0 if spot.required and not leaves.exact(source) else None
        shown = shown_before(source, len(offered))
        made.present = made.chosen is not None
        if isinstance(source, Submitted):
            made.kept = kept_from(made, shown, source)
            if made.chosen in shown:
                inner = source.beside(f"#{made.chosen}")
            elif shown and made.chosen is not None:
                inner = self._carried(offered[shown[0]], shown[0], offered[made.chosen], spot, source)
            else:
                inner = Fresh()
        if made.chosen is None:
            return made
        place = Spot(spot.pointer, f"{spot.name}#{made.chosen}", "", True, spot.depth + 1)
        child = self.field(offered[made.chosen], place, inner)
        child.label = child.label or made.alternatives[made.chosen]
        made.children = [child]
        return made

    def _carried(self, old: Schema, was: int, new: Schema, spot: Spot, source: Submitted) -> Source:
        """What was typed for the alternative that was drawn before, for the fields that both have."""
        place = Spot(spot.pointer, f"{spot.name}#{was}", "", True, spot.depth + 1)
        counted = self._fields, self._options
        typed = read(self.field(old, place, source.beside(f"#{was}"))).value
        self._fields, self._options = counted
        if isinstance(typed, dict):
            properties = new.get("properties")
            known = properties if isinstance(properties, dict) else {}
            typed = {key: each for key, each in typed.items() if key in known}
        return Fresh() if typed is MISSING else Carried(typed)


def _can_be_ticked(options: list[Option], value: Any) -> bool:
    """Whether a list can be shown by ticks: it is a part of the options, in their order, none twice."""
    if value is MISSING:
        return True
    if len(value) > len(options):
        return False
    at = -1
    for each in value:
        found = next((index for index, option in enumerate(options) if same(option.value, each)), None)
        if found is None or found <= at:
            return False
        at = found
    return True
