"""Where the fields of a form get their content from: from nowhere, from a value, or from what a browser submitted.

Also the submitted form itself, and its buttons. Knows names and texts; knows no schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app import bounds
from app.core.forms.tree import ROOT_NAME, below, nameable
from app.core.json.values import MISSING


class Entries:
    """What a browser submitted: names and texts, in order, a name more than once."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._all: dict[str, list[str]] = {}
        for name, text in pairs:
            self._all.setdefault(name, []).append(text.replace("\r\n", "\n").replace("\r", "\n"))

    def first(self, name: str) -> str | None:
        """The first text of a name; None when it was not submitted."""
        found = self._all.get(name)
        return found[0] if found else None

    def all(self, name: str) -> list[str]:
        """Every text of a name."""
        return list(self._all.get(name, ()))

    def has(self, name: str) -> bool:
        """Whether there is anything of that name."""
        return bool(self._all.get(name))

    def set_all(self, name: str, texts: list[str]) -> None:
        """Put other texts in the place of those of a name."""
        self._all[name] = texts

    def under(self, name: str) -> list[tuple[str, str]]:
        """What was submitted for a place and for everything below it."""
        starts = (f"{name}/", f"{name}#")
        return [pair for pair in self.pairs() if pair[0] == name or pair[0].startswith(starts)]

    def forget(self, name: str) -> None:
        """Drop what was submitted for a place and for everything below it."""
        for each in {one for one, _ in self.under(name)}:
            del self._all[each]

    def pairs(self) -> list[tuple[str, str]]:
        """Everything, as it came."""
        return [(name, text) for name, texts in self._all.items() for text in texts]


def operate(form: Entries, operation: str) -> None:
    """Carry out one button of the form: add, remove, up, down, use, drop, null; `operation` is like `add:/people`.

    What it means nothing to is left alone: whoever submits may have written it by hand (S40).
    """
    verb, _, name = operation.partition(":")
    if verb in ("use", "drop", "null"):
        form.forget(name)
        form.set_all(f"{name}#use", ["1"] if verb == "use" else ["0"])
        if verb == "use":
            form.set_all(f"{name}#new", ["1"])
        elif verb == "null":
            form.set_all(f"{name}#as", ["null"])
    elif verb == "add":
        known = indices(form, name)
        fresh = str(max(map(int, known), default=-1) + 1)
        form.set_all(f"{name}#item", [*known, fresh])
        form.set_all(f"{below(name, fresh)}#new", ["1"])
        form.set_all(f"{name}#as", [])
        if form.has(f"{name}#use"):
            form.set_all(f"{name}#use", ["1"])
    elif verb in ("remove", "up", "down"):
        owner, _, index = name.rpartition("/")
        owner = owner or ROOT_NAME
        order = indices(form, owner)
        if index not in order:
            return
        at = order.index(index)
        order.pop(at)
        if verb != "remove":
            order.insert(max(0, at - 1) if verb == "up" else at + 1, index)
        form.set_all(f"{owner}#item", order)


def indices(form: Entries, name: str) -> list[str]:
    """The items of a list in the form, in their order: the parts of their names."""
    found = (each for each in form.all(f"{name}#item") if each.isascii() and each.isdigit() and len(each) < 7)
    return list(dict.fromkeys(found))[: bounds.FORM_ITEMS]


class Source:
    """Where one field gets its content from. By itself from nowhere yet: the defaults of the schema hold."""

    value: Any = MISSING
    is_nothing = False
    """Whether it says that nothing stands here, which is more than to say nothing yet."""
    left_out = False
    """Whether it says of a group that it may be left out."""

    def __init__(self, used: bool = False) -> None:
        self.used = used
        """Whether it says of a group that it is there: somebody has just added it."""

    def child(self, key: str) -> Source:
        """Where the field of a key gets it from."""
        return Source()

    def items(self, at_least: int) -> list[Source]:
        """Where the items of a list get it from; of a list that nobody has filled there are as many as must be."""
        return [Source()] * at_least

    def text(self, suffix: str = "") -> str:
        """The text of a control; "" when it was not submitted."""
        return ""

    def has(self, suffix: str) -> bool:
        """Whether a control was submitted at all."""
        return False


class Given(Source):
    """From a value, exactly: what is missing in it is left out, what fits no control becomes a JSON box.

    One that is only carried (a default, or what was typed for another alternative) counts as far as it fits."""

    def __init__(self, value: Any, carried: bool = False) -> None:
        self.value, self.carried = value, carried
        self.is_nothing = self.left_out = value is MISSING
        self.used = not self.is_nothing

    def child(self, key: str) -> Source:
        if isinstance(self.value, dict) and key in self.value:
            return Given(self.value[key], self.carried)
        return Source() if self.carried else Given(MISSING)

    def items(self, at_least: int) -> list[Source]:
        return [Given(each, self.carried) for each in self.value] if isinstance(self.value, list) else []


class Submitted(Source):
    """From what a browser submitted under a name."""

    def __init__(self, form: Entries, name: str = ROOT_NAME) -> None:
        self.form, self.name = form, name
        text = form.first(name)
        self.is_nothing = text == "" or (text is None and form.first(f"{name}#as") == "out")
        self.left_out, self.used = self.has("#use"), self.text("#use") == "1"

    def child(self, key: str) -> Submitted:
        return self.at(nameable(key))

    def items(self, at_least: int) -> list[Source]:
        return [self.at(each) for each in indices(self.form, self.name)]

    def at(self, part: str) -> Submitted:
        """The same for a nameable key or an index."""
        return Submitted(self.form, below(self.name, part))

    def beside(self, suffix: str) -> Submitted:
        """The same for a name with a suffix."""
        return Submitted(self.form, self.name + suffix)

    def text(self, suffix: str = "") -> str:
        return self.form.first(self.name + suffix) or ""

    def has(self, suffix: str) -> bool:
        return self.form.has(self.name + suffix)
