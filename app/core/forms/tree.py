"""The tree that stands between a schema and a page: one `Field` for each place of the form.

Building makes it, the page draws it, reading takes the value off it. Knows no HTML beyond the names of controls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.core.json.pointer import escape
from app.core.json.values import MISSING
from app.core.schema.plain import Option

Kind = Literal[
    "text", "long", "number", "integer", "checkbox", "threeway", "choice", "multi", "const", "date", "time", "datetime",
    "email", "uri", "password", "file", "object", "array", "tuple", "map", "oneof", "json",
]  # fmt: skip
State = Literal["", "out", "empty", "null"]
"""What is sent where nothing is typed: what the schema implies, nothing at all, an empty text or list, null."""
Hint = tuple[str, str]
"""One thing that a value has to be, before somebody gets it wrong: words, and what is to be read letter by letter."""
ROOT_NAME = "#"
"""The name of the controls of the whole form; a control without a name is not submitted."""
TEXTS = frozenset({"text", "long", "email", "uri", "password", "file", "date", "time", "datetime"})
GROUPS = frozenset({"object", "array", "tuple", "map", "oneof"})
_WIDE = GROUPS | {"long", "json", "file"}
_CELLS = (TEXTS - _WIDE) | {"number", "integer", "choice", "threeway", "checkbox"}
_SHOWN = 8
_COLUMNS = 4
_UNNAMEABLE = re.compile("[#\x00-\x1f\x7f\ud800-\udfff]")
_UNIDENTIFIED = re.compile("[^A-Za-z0-9]")


@dataclass(slots=True)
class Spot:
    """One place of the form, before it is known what stands there."""

    pointer: str
    """Where its value stands, as a JSON Pointer."""
    name: str
    """What its controls are called; `#alt`, `#null` and others are added for the controls beside the first."""
    key: str
    """Of a property or of a row of a map: its key."""
    required: bool
    depth: int


@dataclass(slots=True)
class Field(Spot):
    """One place of the form: what it is called, what is in it, and what is wrong with it."""

    kind: Kind
    label: str = ""
    word: str = ""
    """The key of a property, fit to be read."""
    title: str = ""
    """Its title, where that says more than the key does."""
    description: str = ""
    type_text: str = ""
    """What may stand here, in a word or two: `integer`, `string, date`, `list of objects, 1 to 10`."""
    hints: list[Hint] = field(default_factory=list)
    default: str = ""
    """What the schema says holds when this is left out."""
    examples: list[str] = field(default_factory=list)
    suggestion: Any = MISSING
    """What a skeleton puts here when something must stand here."""
    deprecated: bool = False
    read_only: bool = False
    nullable: bool = False
    is_null: bool = False
    present: bool = True
    """A group that was left out is not present and has no children."""
    removable: bool = False
    """A group that can be left out."""
    state: State = ""
    """Of a field without fields inside: what is sent, because nothing is typed, ticked or chosen."""
    bare: bool = False
    """An item that is a text and nothing else: it is drawn as a tag, with nothing beside it."""
    plainer: bool = False
    """A date or a time as a text, because no control for such would keep it as it is."""
    text: str = ""
    value: Any = MISSING
    """What a field without fields inside says; a box for JSON is read only when somebody asks."""
    problem: str = ""
    """Why its text says no value."""
    options: list[Option] = field(default_factory=list)
    chosen: int | None = None
    """Of a choice: the option. Of alternatives: which one, or None when all are left out."""
    chosen_many: list[int] = field(default_factory=list)
    alternatives: list[str] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    """Of alternatives: the names and texts of what was typed for those that are not drawn now."""
    children: list[Field] = field(default_factory=list)
    """Of an object: its properties. Of an array, tuple or map: its items. Of alternatives: the chosen one."""
    more: bool = False
    """A map that holds the keys which the properties beside it do not name."""
    can_add: bool = False
    item: str = "item"
    """What one item is called: `traveller`."""
    note: str = ""
    """Why this is a JSON box, or what cannot be shown."""
    errors: list[str] = field(default_factory=list)

    @property
    def slug(self) -> str:
        """The name as a part of an element's id: letters and digits stay, the rest is hex."""
        return _UNIDENTIFIED.sub(lambda found: f"_{ord(found[0]):x}_", self.name)

    @property
    def acts(self) -> bool:
        """Whether the form has buttons that change it."""
        return any(
            one.removable or one.can_add or one.kind == "oneof" or (one.kind in ("array", "map") and one.children)
            for one in self.walk()
        )

    @property
    def states(self) -> list[State]:
        """What can be sent here without typing it. A group has buttons for that, a box for JSON says it itself."""
        if self.bare or self.kind in GROUPS or self.kind == "json":
            return []
        null: list[State] = ["null"] if self.nullable else []
        if self.kind == "const":
            return ["", *null] if null else []
        empty: list[State] = ["empty"] if self.kind in TEXTS or self.kind == "multi" else []
        return ["out", *empty, *null]

    @property
    def unset(self) -> bool:
        """Whether nothing is sent for it."""
        if self.is_null:
            return False
        if self.kind == "json":
            return not self.text.strip()
        if self.kind in GROUPS:
            return not self.present
        return self.value is MISSING and not self.problem

    @property
    def blank(self) -> bool:
        """Whether something must stand here, and nobody has said a thing."""
        if not self.required or self.state or self.kind in GROUPS or self.kind in ("const", "multi"):
            return False
        return not self.text if self.kind in TEXTS else self.unset

    @property
    def wide(self) -> bool:
        """Whether it takes a row of its own."""
        return self.kind in _WIDE

    @property
    def shown(self) -> list[Field]:
        """The fields inside that are drawn at once, those that take a row of their own last."""
        return self._split()[0]

    @property
    def folded(self) -> list[Field]:
        """The fields inside that are drawn in a fold: of many, those that are neither required nor set."""
        return self._split()[1]

    def _split(self) -> tuple[list[Field], list[Field]]:
        # The items of a list stay in their places.
        ordered = sorted(self.children, key=lambda one: self.kind == "object" and one.wide)
        room = _SHOWN - sum(1 for one in ordered if not one.spare)
        if self.kind != "object" or len(ordered) <= _SHOWN:
            return ordered, []
        left = {id(one) for one in [one for one in self.children if one.spare][max(0, room) :]}
        if len(left) < 2:
            return ordered, []
        return [one for one in ordered if id(one) not in left], [one for one in ordered if id(one) in left]

    @property
    def spare(self) -> bool:
        """Whether a form is complete without it: it is not required, nothing is sent for it, nothing is wrong."""
        return not self.required and not self.more and self.unset and not any(one.errors for one in self.walk())

    @property
    def layout(self) -> Literal["", "rows", "tags"]:
        """How the items of a list stand: one row for each, as tags in one line, or one below the other."""
        if self.kind != "array" or not self.children:
            return ""
        if all(one.bare for one in self.children):
            return "tags"
        return "rows" if all(one.flat for one in self.children) else ""

    @property
    def flat(self) -> bool:
        """Whether it is an object that fits into one row."""
        fits = 0 < len(self.children) <= _COLUMNS and all(one.kind in _CELLS for one in self.children)
        return self.kind == "object" and fits and not self.removable and not self.nullable

    def walk(self) -> Iterator[Field]:
        """This field and everything below it, in the order of the page."""
        stack = [self]
        while stack:
            one = stack.pop()
            yield one
            stack.extend(reversed(one.children))


def nameable(key: str) -> str:
    """A key as a part of a control's name. Characters that a browser would change, and `#`, are written as `~xHH.`"""
    return _UNNAMEABLE.sub(lambda found: f"~x{ord(found[0]):x}.", escape(key))


def below(name: str, part: str) -> str:
    """The name of the controls one level below; `part` is a key that is nameable, or an index."""
    return f"{'' if name == ROOT_NAME else name}/{part}"


def place(tree: Field, errors: Mapping[str, list[str]]) -> list[str]:
    """Put sentences beside their fields, or the nearest ones above; what has no home is returned."""
    homes: dict[str, Field] = {}
    for one in tree.walk():
        if one.kind == "oneof" and one.children:
            continue  # its alternative stands at the same place
        if not one.more and (one.pointer or one.kind != "object"):
            homes.setdefault(one.pointer, one)
    homeless: list[str] = []
    for where, said in errors.items():
        at = where
        while at not in homes and at:
            at = at.rpartition("/")[0]
        home = homes.get(at)
        inside = where[len(at) :]
        told = [f"{inside[:80]}: {sentence}" if inside else sentence for sentence in said]
        if home is None:
            homeless += told
        else:
            home.errors += [each for each in told if each not in home.errors]
    return homeless
