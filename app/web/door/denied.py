"""An answer that is not what was asked for. Light: it is loaded before the port is open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Fields = dict[str, list[str]]
"""What is wrong where: JSON pointer into the body (`/target/command`) to sentences."""


class Denied(Exception):
    """An answer that is not what was asked for, ready to be given."""

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        fields: Fields | None = None,
        headers: Mapping[str, str] | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.fields = fields or {}
        self.headers = dict(headers or {})
        self.detail = dict(detail or {})
        """More facts for a script, beside kind and message."""


class Answered(Denied):
    """One that brings its own page along, made when it is given."""

    def __init__(self, status: int, kind: str, message: str, respond: Callable[[Any], Awaitable[Any]]) -> None:
        super().__init__(status, kind, message)
        self.respond = respond


def unknown(what: str = "There is nothing at this address.") -> Denied:
    return Denied(404, "unknown", what)


def invalid(fields: Fields, message: str = "Some values cannot be used.") -> Denied:
    return Denied(422, "invalid", message, fields=fields)
