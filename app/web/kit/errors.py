"""What a failure means to whoever asked: its status, its kind, its sentence, and what is wrong where.

The web raises: the families of the domain, pydantic's `ValidationError` for a body that does not fit, or `Denied`
for what only the web knows (no such path, too large, not signed in). `understood` is the one place that maps them.
Knows no page; `answers` renders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from app.core.json import pointer

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


def unknown(what: str = "There is nothing at this address.") -> Denied:
    return Denied(404, "unknown", what)


def invalid(fields: Fields, message: str = "Some of it cannot be used as it is.") -> Denied:
    return Denied(422, "invalid", message, fields=fields)


def wants_json(request: Request) -> bool:
    """Whether the asker is a script: it says so, it sends JSON, or it came with a token and does not ask for HTML."""
    accept = request.headers.get("accept", "")
    if "application/json" in accept:
        return True
    if "text/html" in accept or "hx-request" in request.headers:
        return False
    return is_json(request) or request.headers.get("authorization", "")[:7].lower() == "bearer "


def is_json(request: Request) -> bool:
    """Whether the body says that it is JSON."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def understood(fault: Exception) -> Denied | None:
    """A failure that we expect, as an answer; None is a fault of our own."""
    from app.core.errors import Conflict, Invalid, NotAllowed, ParleyError

    match fault:
        case Denied():
            return fault
        case NotAllowed():
            return Denied(403, "refused", fault.message)
        case Invalid():
            return Denied(422, "refused", fault.message, fields=pointers(fault.fields))
        case Conflict():
            return Denied(409, "gone", fault.message)
        case ParleyError():
            return Denied(502, "server", fault.message)
        case ValidationError():
            return invalid(field_errors(fault))
        case HTTPException():
            return _of_status(fault)
        case RecursionError():
            return Denied(400, "malformed", "That is nested too deeply.")
        case ClientDisconnect():
            return Denied(400, "malformed", "The request ended before its body was complete.")
        case _:
            return None


def pointers(fields: Mapping[str, list[str]]) -> Fields:
    return {key if key.startswith("/") or not key else f"/{key}": texts for key, texts in fields.items()}


def field_errors(fault: ValidationError) -> Fields:
    """The errors of a pydantic model by JSON pointer, in words that need no knowledge of pydantic."""
    from app.core.options import misfit

    found: Fields = {}
    for error in fault.errors(include_url=False, include_input=False):
        message = misfit(error)
        if error["type"] == "extra_forbidden":
            message = "There is no such key."
        elif error["type"] == "missing":
            message = "This is required."
        found.setdefault(_pointer(error["loc"]), []).append(message)
    return found


_TAGS = frozenset({"stdio", "demo", "http", "sse"})


def _pointer(loc: Iterable[int | str]) -> str:
    """Where in the body: without the tag that pydantic puts into the place of a union's member."""
    parts: list[str] = []
    for part in loc:
        if part in _TAGS and parts == ["target"]:
            continue
        parts.append(str(part))
    return pointer.join(parts)


def _of_status(fault: HTTPException) -> Denied:
    headers = dict(fault.headers or {})
    match fault.status_code:
        case 404:
            return unknown()
        case 405:
            return Denied(405, "method", "This address does not take that method.", headers=headers)
        case 400 if "Too many" in fault.detail or "exceeded" in fault.detail:
            return Denied(413, "too-large", fault.detail)
        case 400:
            return Denied(400, "malformed", fault.detail)
        case status:
            return Denied(status, "refused", fault.detail, headers=headers)
