"""What the answer to `server/discover` says of a server: which kind of revision it speaks, and which one (R6-10).

Pure verdicts over JSON and troubles; who asks, and what follows, is for the handshake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.core.errors import Trouble
from app.core.revisions import HANDSHAKE_VERSIONS, STATELESS_VERSIONS
from app.core.rules import stateless


@dataclass(slots=True, frozen=True)
class FallBack:
    """The server is not of this era, as far as one can tell."""

    why: str
    """Half a sentence, without a full stop."""
    short: str = ""
    """The code or the status that says so."""


@dataclass(slots=True, frozen=True)
class TryVersion:
    """The server is of this era, and names another revision that we speak (R6-07)."""

    version: str


def verdict_on_error(error: Any, asked: str) -> FallBack | TryVersion | Trouble:
    """What an error in answer to `server/discover` says of the server's era. No single code decides (R6-10)."""
    code = stateless.error_code(error)
    said = said_in(error)
    if code == stateless.UNSUPPORTED_VERSION:
        supported = stateless.supported_versions(error)
        if supported is not None:
            # One that names the very revision we asked for may take it the second time.
            return TryVersion(asked) if asked in supported else verdict_on_versions(supported)
    if code == stateless.MISSING_CAPABILITY:
        remark = stateless.missing_capability(error)
        return Trouble("capability", remark.text, remark.advice)
    if code == stateless.HEADER_MISMATCH:
        return Trouble(
            "headers",
            f"The server says that the headers do not fit the body (-32020): {said}",
            "A proxy in between may have changed them. Look at the exchange in the log.",
        )
    if code is None:
        return FallBack(f"it answered {said}".rstrip(" ."), "an error")
    return FallBack(f"it answered {code} {said}".rstrip(" ."), str(code))


def said_in(error: Any) -> str:
    """What an `error` member says, whatever it is."""
    said = error.get("message", "without a message") if isinstance(error, dict) else error
    return str(said)[:300]


def silent(seconds: float) -> FallBack:
    """What silence says of it."""
    return FallBack(f"no answer within {seconds:g} s")


def named(server_info: Any) -> str:
    """Who a server says that it is."""
    if not isinstance(server_info, dict):
        return "no server info"
    return f"{server_info.get('name')} {server_info.get('version')}".strip()


def speaks_stateless(reply: Mapping[str, Any], asked: str) -> bool:
    """Whether a reply to `server/discover` shows a server of this era."""
    if "result" not in reply:
        return not isinstance(verdict_on_error(reply.get("error"), asked), FallBack)
    result = reply["result"]
    listed = result.get("supportedVersions") if isinstance(result, dict) else None
    return isinstance(listed, list) and any(each in STATELESS_VERSIONS for each in listed)


def verdict_on_versions(supported: list[str]) -> FallBack | TryVersion | Trouble:
    """What to do with the revisions that a server says it speaks, when the one we asked for is not among them."""
    mutual = [each for each in STATELESS_VERSIONS if each in supported]
    if mutual:
        return TryVersion(mutual[0])
    if any(each in HANDSHAKE_VERSIONS for each in supported):
        named = ", ".join(supported)[:200]
        return FallBack(f"it speaks {named}", f"it speaks {named}")
    named = ", ".join(supported)[:200]
    return Trouble(
        "version",
        f"The server speaks {named}, and Parley does not." if named else "The server names no revision that it speaks.",
        f"Parley speaks {', '.join([*STATELESS_VERSIONS, *HANDSHAKE_VERSIONS])}. Update the server or Parley.",
    )


FALLS_BACK = frozenset({"html", "content-type", "no-reply", "unreadable", "cut", "encoding", "http"})
"""Troubles of one POST that do not speak against an older server at the same address."""
_NO_FALLBACK = frozenset({"http-401", "http-403", "http-407", "http-429", "http-502", "http-503", "http-504"})
"""Who may come in, and what is said of a moment by somebody in front of the server: neither speaks of its era."""


def verdict_on_trouble(trouble: Trouble) -> FallBack | Trouble:
    """What to do when the probe got no JSON-RPC answer at all (R6-10)."""
    refused = trouble.kind.startswith("http-") and trouble.kind not in _NO_FALLBACK and trouble.kind[5:6] != "3"
    if not refused and trouble.kind not in FALLS_BACK:
        return trouble
    return FallBack(trouble.message.rstrip("."), trouble.kind.removeprefix("http-") if refused else "")
