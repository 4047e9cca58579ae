"""What a failure means to whoever asked: its status, its kind, its sentence, and what is wrong where.

The web raises: the families of the domain, pydantic's `ValidationError` for a body that does not fit, or `Denied`
for what only the web knows (no such path, too large, not signed in). `understood` is the one place that maps them.
The pages that say no are here too; `responses` chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from app.core.json import pointer
from app.web.door.denied import Denied, Fields, invalid, unknown
from app.web.kit.templates import Context


def understood(fault: Exception) -> Denied | None:
    """A failure that we expect, as an answer; None is a fault of our own."""
    from app.core.errors import Conflict, Invalid, NotAllowed, ParleyError, TooMany, Unavailable

    match fault:
        case Denied():
            return fault
        case TooMany():
            return Denied(429, "slow-down", fault.message, headers={"retry-after": str(fault.seconds)})
        case NotAllowed():
            return Denied(403, "refused", fault.message)
        case Invalid():
            return Denied(422, "refused", fault.message, fields=pointers(fault.fields))
        case Conflict():
            return Denied(409, "gone", fault.message)
        case Unavailable():
            return Denied(503, "unavailable", fault.message, headers={"retry-after": "5"})
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
        elif error["type"] in ("missing", "string_too_short"):
            message = "This is required."
        elif error["type"] == "string_pattern_mismatch" and error["loc"][-1] == "url":
            message = "A URL begins with http:// or https://."
        found.setdefault(_pointer(error["loc"]), []).append(message)
    return found


_TAGS = {
    ("target",): frozenset({"stdio", "demo", "http", "sse"}),
    ("target", "auth"): frozenset({"none", "bearer", "oauth", "client-credentials"}),
}


def _pointer(loc: Iterable[int | str]) -> str:
    """Where in the body: without the tag that pydantic puts into the place of a union's member."""
    parts: list[str] = []
    for part in loc:
        if part in _TAGS.get(tuple(parts), ()):
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


_PROBLEMS = {
    400: ("That request could not be read", "Go back and try it again; if it stays so, the sender is at fault."),
    403: ("Refused", ""),
    404: ("Not found", "Your open sessions are on the home page."),
    405: ("This page cannot be reloaded", "Go back to start."),
    409: ("Too late, or too early", "Things moved on in the meantime. Reload to see how they stand now."),
    410: ("This session is lost", "Its recording has what happened in it."),
    413: ("Too large", "Send less at once."),
    421: ("This session is not here", "Nothing was done. Reload the page to see how it stands."),
    422: ("Please fix the marked fields", "Change them and send it again."),
    429: ("Too many", "Wait a moment, then try again."),
    500: ("Parley made a mistake", "The terminal has the details. Your sessions are still there."),
    503: ("Not ready", "Try again in a moment."),
}


@dataclass(slots=True)
class Problem(Context):
    """An answer that is no: what happened, and what to do."""

    template: ClassVar[str] = "errors/page.html"
    part: ClassVar[str | None] = "errors/_problem.html"

    status: int
    kind: str
    title: str
    message: str
    advice: str
    fields: dict[str, list[str]]
    session: str
    """The address of the session in which it happened; "" outside of one."""
    undo: str = ""
    """Where a session that was closed a moment ago is brought back; "" where none was."""


def problem(
    status: int,
    kind: str,
    message: str,
    fields: dict[str, list[str]] | None = None,
    *,
    session: str = "",
    undo: str = "",
) -> Problem:
    """The page and the part of a refusal."""
    title, advice = _PROBLEMS.get(status, ("It did not work", "Go back and try it again."))
    if kind == "cross-site":
        advice = "The request came from another page or from a browser that hides where it came from."
    # In a session the sentence itself says what is missing, and the way back is beside it.
    said = "" if session and status == 404 else advice
    return Problem(status, kind, title, message, said, fields or {}, session, undo)


@dataclass(slots=True)
class SignedOut(Problem):
    """The page for somebody who has no cookie. It names no version, no path and no token (S08)."""

    template: ClassVar[str] = "errors/signed_out.html"

    outside: bool = False
    """Whether the address lacks the path below which browsers live."""
    team: bool = False
    way_in: tuple[str, str] = ("", "")
    """Where somebody signs in, and the words of that button; empty where there is none."""


def signed_out(
    reason: str = "", *, outside: bool = False, team: bool = False, way_in: tuple[str, str] = ("", "")
) -> SignedOut:
    """The 401 page; `reason` says why a given code was not taken."""
    message = reason or "Open the address that the terminal printed."
    return SignedOut(401, "signed-out", "Not signed in", message, "", {}, "", outside=outside, team=team, way_in=way_in)
