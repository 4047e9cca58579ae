"""URI templates as RFC 6570 has them, all four levels: which variables a template names, and what it expands to.

The library `uritemplate` reads and expands expressions. What it does not do is here: it takes any text for a template,
leaves what stands between expressions as it is, and differs from the RFC where a comment says so. A template comes from
a server, so all of it is bounded and raises only `BadTemplate`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from uritemplate.variable import URIVariable

from app import bounds

Value = str | list[str] | dict[str, str]
"""What a variable may hold: a text, a list, or pairs. An empty list, empty pairs and a missing name are undefined."""

_RESERVED = ":/?#[]@!$&'()*+,;="
_ESCAPED = re.compile(r"(%[0-9A-Fa-f]{2})")
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_LETTER = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})"
_VARIABLE = re.compile(rf"{_LETTER}(?:\.?{_LETTER})*(?:\*|:[1-9][0-9]{{0,3}})?")


class BadTemplate(ValueError):
    """This is no RFC 6570 template, or it cannot be expanded with these values; the message says why."""


@dataclass(slots=True, frozen=True)
class Variable:
    """One variable of an expression."""

    name: str
    explode: bool = False
    prefix: int | None = None


@dataclass(slots=True, frozen=True)
class UriTemplate:
    """A template that was read."""

    parts: tuple[str | URIVariable, ...]

    @classmethod
    def parse(cls, text: str) -> UriTemplate:
        """Read a template. Raises BadTemplate when it is none."""
        if len(text) > bounds.TEMPLATE:
            raise BadTemplate(f"The template is longer than {bounds.TEMPLATE} characters.")
        # By turns what stands between expressions, and what stands in one.
        pieces = enumerate(_EXPRESSION.split(text))
        return cls(tuple(_expression(piece) if at % 2 else _literal(piece) for at, piece in pieces))

    @property
    def variables(self) -> list[Variable]:
        """Each variable once, in the order in which they stand there."""
        found: dict[str, Variable] = {}
        for one in self._all():
            if one.name not in found or one.explode:
                found[one.name] = one
        return list(found.values())

    def expand(self, values: Mapping[str, Value]) -> str:
        """The URI for these values. A variable without a value is left out. Raises BadTemplate for very long ones."""
        if sum(_size(values.get(one.name, "")) for one in self._all()) > bounds.TEMPLATE_VALUES:
            raise BadTemplate(f"With these values the address is longer than {bounds.TEMPLATE_VALUES:,} characters.")
        return "".join(part if isinstance(part, str) else _expanded(part, values) for part in self.parts)

    def _all(self) -> Iterator[Variable]:
        for part in self.parts:
            if not isinstance(part, str):
                yield from (Variable(name, **options) for name, options in part.variables)


def _literal(text: str) -> str:
    if "{" in text or "}" in text:
        raise BadTemplate("A brace is open, or closed twice.")
    return _escaped(text)


def _expression(body: str) -> URIVariable:
    if body[:1] and body[:1] in "=,!@|":
        raise BadTemplate(f"The operator {body[0]} is reserved and means nothing yet.")
    names = body[1:] if body[:1] and body[:1] in "+#./;?&" else body
    if not all(_VARIABLE.fullmatch(name) for name in names.split(",")):
        raise BadTemplate(f"{{{body[:60]}}} names no variable that RFC 6570 allows.")
    return URIVariable(body)


def _escaped(text: str) -> str:
    """A text in which reserved characters, and what is escaped already, stay as they are."""
    return "".join(
        piece if at % 2 else quote(piece, safe=_RESERVED, errors="replace")
        for at, piece in enumerate(_ESCAPED.split(text))
    )


def _expanded(part: URIVariable, values: Mapping[str, Value]) -> str:
    sign = part.operator.value
    if sign in ("+", "#"):
        # The library escapes nothing in a text that has one escape already. So it gets texts that are ready, under
        # names of ours, which do not show with these operators: a prefix is counted in the text as it was given.
        short = {str(at): _shortened(values, *one) for at, one in enumerate(part.variables)}
        names = [f"{at}*" if more["explode"] else str(at) for at, (_, more) in enumerate(part.variables)]
        part, given = URIVariable(sign + ",".join(names)), _given(short, _escaped)
    else:
        given = _given({name: values.get(name) for name in part.variable_names}, _sendable)
    text = part.expand(given)[part.original]
    # Of an empty value `;` shows the name alone; the library does so for a text, and not in lists and pairs.
    return ";".join(piece.removesuffix("=") for piece in text.split(";")) if sign == ";" else text


def _given(values: Mapping[str, Value | None], ready: Callable[[str], str]) -> dict[str, Any]:
    """What is defined, as the library takes it: pairs as a list, because it would sort them."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, str):
            found[name] = ready(value)
        elif isinstance(value, dict) and value:
            found[name] = [(ready(key), ready(one)) for key, one in value.items()]
        elif value:
            found[name] = [ready(one) for one in value]
    return found


def _sendable(text: str) -> str:
    """A text without halves of characters, which nobody can escape."""
    return text.encode(errors="replace").decode()


def _shortened(values: Mapping[str, Value], name: str, modifier: Mapping[str, Any]) -> Value | None:
    value = values.get(name)
    return value[: modifier["prefix"]] if isinstance(value, str) else value


def _size(value: Value) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(map(len, value)) + (sum(map(len, value.values())) if isinstance(value, dict) else 0)
