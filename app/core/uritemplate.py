"""URI templates as RFC 6570 has them, all four levels: which variables a template names, and what it expands to.

A template comes from a server, so reading one is bounded and never raises anything but `BadTemplate`. Knows nothing of
resources or pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

Value = str | list[str] | dict[str, str]
"""What a variable may hold: a text, a list, or pairs. An empty list, empty pairs and a missing name are undefined."""

_LONGEST = 8_000
_RESERVED = ":/?#[]@!$&'()*+,;="
_UNRESERVED = "-._~"
_ESCAPED = re.compile(r"(%[0-9A-Fa-f]{2})")
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*")
_VARIABLE = re.compile(rf"({_NAME.pattern})(\*|:[1-9][0-9]{{0,3}})?")


class BadTemplate(ValueError):
    """This is no RFC 6570 template; the message says why."""


@dataclass(slots=True, frozen=True)
class _Operator:
    """One row of the table in RFC 6570, appendix A."""

    first: str
    separator: str
    named: bool = False
    if_empty: str = ""
    reserved: bool = False
    """Whether reserved characters stay as they are."""


_OPERATORS = {
    "": _Operator("", ","),
    "+": _Operator("", ",", reserved=True),
    "#": _Operator("#", ",", reserved=True),
    ".": _Operator(".", "."),
    "/": _Operator("/", "/"),
    ";": _Operator(";", ";", named=True),
    "?": _Operator("?", "&", named=True, if_empty="="),
    "&": _Operator("&", "&", named=True, if_empty="="),
}


@dataclass(slots=True, frozen=True)
class Variable:
    """One variable of an expression."""

    name: str
    explode: bool = False
    prefix: int | None = None


@dataclass(slots=True, frozen=True)
class _Expression:
    operator: _Operator
    variables: tuple[Variable, ...]


@dataclass(slots=True, frozen=True)
class UriTemplate:
    """A template that was read."""

    parts: tuple[str | _Expression, ...]

    @classmethod
    def parse(cls, text: str) -> UriTemplate:
        """Read a template. BadTemplate when it is none."""
        if len(text) > _LONGEST:
            raise BadTemplate(f"The template is longer than {_LONGEST} characters.")
        return cls(tuple(_parts(text)))

    @property
    def variables(self) -> list[Variable]:
        """Each variable once, in the order in which they stand there."""
        found: dict[str, Variable] = {}
        for part in self.parts:
            if isinstance(part, _Expression):
                for one in part.variables:
                    before = found.get(one.name)
                    found[one.name] = one if before is None or one.explode else before
        return list(found.values())

    def expand(self, values: Mapping[str, Value]) -> str:
        """The URI for these values. A variable without a value is left out, as the RFC has it."""
        return "".join(part if isinstance(part, str) else _expanded(part, values) for part in self.parts)


def _parts(text: str) -> Iterator[str | _Expression]:
    at = 0
    for found in _EXPRESSION.finditer(text):
        yield _literal(text[at : found.start()])
        yield _expression(found[1])
        at = found.end()
    yield _literal(text[at:])


def _literal(text: str) -> str:
    if "{" in text or "}" in text:
        raise BadTemplate("A brace is open, or closed twice.")
    return _encoded(text, reserved=True)


def _expression(body: str) -> _Expression:
    sign = body[:1] if body[:1] in "+#./;?&" else ""
    if body[:1] and body[:1] in "=,!@|":
        raise BadTemplate(f"The operator {body[0]} is reserved and means nothing yet.")
    variables = []
    for name in body[len(sign) :].split(","):
        found = _VARIABLE.fullmatch(name)
        if found is None:
            raise BadTemplate(f"{{{body[:60]}}} names no variable that RFC 6570 allows.")
        modifier = found[2] or ""
        variables.append(Variable(found[1], modifier == "*", int(modifier[1:]) if modifier[:1] == ":" else None))
    return _Expression(_OPERATORS[sign], tuple(variables))


def _encoded(text: str, *, reserved: bool) -> str:
    if not reserved:
        return quote(text, safe=_UNRESERVED, errors="replace")
    # What is escaped already stays so, where reserved characters are allowed.
    return "".join(
        piece if at % 2 else quote(piece, safe=_UNRESERVED + _RESERVED, errors="replace")
        for at, piece in enumerate(_ESCAPED.split(text))
    )


def _expanded(expression: _Expression, values: Mapping[str, Value]) -> str:
    operator = expression.operator
    given = [(one, values[one.name]) for one in expression.variables if one.name in values]
    pieces = [
        piece for one, value in given if value or isinstance(value, str) for piece in _pieces(operator, one, value)
    ]
    return operator.first + operator.separator.join(pieces) if pieces else ""


def _pieces(operator: _Operator, variable: Variable, value: Value) -> Iterator[str]:
    def encoded(text: str) -> str:
        return _encoded(text, reserved=operator.reserved)

    def named(name: str, text: str) -> str:
        return f"{name}={text}" if text else f"{name}{operator.if_empty}"

    if isinstance(value, str):
        text = encoded(value if variable.prefix is None else value[: variable.prefix])
        yield named(variable.name, text) if operator.named else text
    elif variable.explode:
        if isinstance(value, dict):
            yield from (
                named(encoded(key), encoded(one)) if operator.named else f"{encoded(key)}={encoded(one)}"
                for key, one in value.items()
            )
        else:
            yield from (named(variable.name, encoded(one)) if operator.named else encoded(one) for one in value)
    else:
        flat = [part for pair in value.items() for part in pair] if isinstance(value, dict) else value
        text = ",".join(encoded(one) for one in flat)
        yield named(variable.name, text) if operator.named else text
