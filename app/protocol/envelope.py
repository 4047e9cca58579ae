"""How 2026-07-28 looks on the wire: the envelope of each request, the headers that repeat it, what a probe found.

Stateless: whatever a server must know of us stands in each request (R6-02), and over HTTP in headers too (R6-20 to
R6-22). The SDK's tables decide what an `x-mcp-header` may be, so that both ends agree by construction. Knows no
connection and no session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.shared.inbound import (
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from app.core.errors import Trouble
from app.core.rules import stateless
from app.core.wire import Finding

Headers = tuple[tuple[str, str], ...]

_NAMED_BY = {
    **NAME_BEARING_METHODS,
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""Which member of the params is repeated as `Mcp-Name` (R6-21, R7-41)."""


@dataclass(slots=True)
class Envelope:
    """What every request of one connection carries."""

    version: str
    capabilities: dict[str, Any]
    client: dict[str, Any]

    def stamp(self, params: Mapping[str, Any] | None, log_level: str | None) -> dict[str, Any]:
        """The params with the envelope in their `_meta`. What the person wrote there wins: that is how one tests."""
        given = dict(params or {})
        own = given.get("_meta")
        meta: dict[str, Any] = {
            stateless.META_VERSION: self.version,
            stateless.META_CLIENT: self.client,
            stateless.META_CAPABILITIES: self.capabilities,
        }
        if log_level is not None:
            meta[stateless.META_LOG_LEVEL] = log_level
        given["_meta"] = {**meta, **(own if isinstance(own, dict) else {})}
        return given

    def headers(self, method: str, params: Mapping[str, Any], tools: Mapping[str, ParamHeaders]) -> Headers:
        """The headers of a stamped request; over a pipe nobody reads them."""
        said = params["_meta"].get(stateless.META_VERSION)
        version = said if isinstance(said, str) else self.version
        found = [("mcp-protocol-version", encode_header_value(version)), ("mcp-method", encode_header_value(method))]
        name = params.get(_NAMED_BY.get(method, ""))
        if isinstance(name, str):
            found.append(("mcp-name", encode_header_value(name)))
            arguments = params.get("arguments")
            if method == "tools/call" and name in tools and isinstance(arguments, dict):
                found += mcp_param_headers(tools[name], arguments).items()
        return tuple(found)


ParamHeaders = dict[tuple[str, ...], str]
"""Which arguments of a tool are repeated as `Mcp-Param-…`: the path of a property, and the name."""


def sift_tools(tools: list[Any]) -> tuple[list[Any], list[tuple[Any, Finding]], dict[str, ParamHeaders]]:
    """The tools to offer, those that must be rejected with the reason, and the headers of the rest (R6-23)."""
    kept: list[Any] = []
    rejected: list[tuple[Any, Finding]] = []
    headers: dict[str, ParamHeaders] = {}
    for tool in tools:
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        reason = find_invalid_x_mcp_header(schema)
        if reason is not None:
            named = str(tool.get("name"))[:100]
            words = f"The tool `{named}` is rejected: {reason[:300]}."
            rejected.append((tool, Finding("R6-23", "must", words, "Correct its `x-mcp-header` annotations.")))
            continue
        kept.append(tool)
        if isinstance(tool, dict) and isinstance(tool.get("name"), str) and (found := x_mcp_header_map(schema)):
            headers[tool["name"]] = found
    return kept, rejected, headers


# --------------------------------------------------------------------------------------------------------- probing


@dataclass(slots=True, frozen=True)
class FallBack:
    """The server is not of this era, as far as one can tell."""

    why: str
    """Half a sentence, without a full stop."""


@dataclass(slots=True, frozen=True)
class TryVersion:
    """The server is of this era, and names another revision that we speak (R6-07)."""

    version: str


def verdict_on_error(error: Any, asked: str) -> FallBack | TryVersion | Trouble:
    """What an error in answer to `server/discover` says of the server's era. No single code decides (R6-10)."""
    code = stateless.error_code(error)
    said = str(error.get("message"))[:300] if isinstance(error, dict) else str(error)[:300]
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
    return FallBack(f"it answered {code} {said}".rstrip(" ."))


def speaks_modern(reply: Mapping[str, Any], asked: str) -> bool:
    """Whether a reply to `server/discover` shows a server of this era."""
    if "result" not in reply:
        return not isinstance(verdict_on_error(reply.get("error"), asked), FallBack)
    result = reply["result"]
    listed = result.get("supportedVersions") if isinstance(result, dict) else None
    return isinstance(listed, list) and any(each in MODERN_PROTOCOL_VERSIONS for each in listed)


def verdict_on_versions(supported: list[str]) -> FallBack | TryVersion | Trouble:
    """What to do with the revisions that a server says it speaks, when the one we asked for is not among them."""
    mutual = [each for each in MODERN_PROTOCOL_VERSIONS if each in supported]
    if mutual:
        return TryVersion(mutual[-1])
    if any(each in HANDSHAKE_PROTOCOL_VERSIONS for each in supported):
        return FallBack(f"it speaks {', '.join(supported)[:200]}")
    named = ", ".join(supported)[:200]
    return Trouble(
        "version",
        f"The server speaks {named}, and Parley does not." if named else "The server names no revision that it speaks.",
        f"Parley speaks {', '.join([*MODERN_PROTOCOL_VERSIONS[::-1], *HANDSHAKE_PROTOCOL_VERSIONS[::-1]])}. "
        "Update the server or Parley.",
    )


FALLS_BACK = frozenset({"html", "content-type", "no-reply", "unreadable", "cut", "encoding", "http"})
"""Troubles of one POST that do not speak against an older server at the same address."""
_NO_FALLBACK = frozenset({"http-401", "http-403", "http-407", "http-429", "http-502", "http-503", "http-504"})
"""Who may come in, and what is said of a moment by somebody in front of the server: neither speaks of its era."""


def verdict_on_trouble(trouble: Trouble) -> FallBack | Trouble:
    """What to do when the probe got no JSON-RPC answer at all (R6-10)."""
    refused = trouble.kind.startswith("http-") and trouble.kind not in _NO_FALLBACK and trouble.kind[5:6] != "3"
    return FallBack(trouble.message.rstrip(".")) if refused or trouble.kind in FALLS_BACK else trouble
