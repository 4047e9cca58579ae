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
ROOT_NAME = "#"
"""The name of the controls of the whole form; a control without a name is not submitted."""
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
    description: str = ""
    type_text: str = ""
    """What may stand here, in a few words: `integer, 5 to 60`."""
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
    can_be_empty: bool = False
    """Nothing typed or ticked can mean two things here: left out, or empty."""
    empty: bool = False
    """Nothing typed or ticked means empty."""
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
