"""What a request carries besides what its caller asked for: nothing, or everything a server must know of us.

Revisions with a handshake have said it once. 2026-07-28 says it in each request (R6-02), and over HTTP in headers too
(R6-20 to R6-22). Knows no connection and no session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.core.revisions import HANDSHAKE, STATELESS, Wire
from app.core.rules import stateless
from app.core.rules.param_headers import ParamHeaders, header_value, param_headers, sift_tools
from app.core.wire import Finding

Headers = tuple[tuple[str, str], ...]

_NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""Which member of the params is repeated as `Mcp-Name` (R6-21, R7-41)."""


class Plain:
    """The requests of a revision with a handshake: as the caller wrote them."""

    wire: Wire = HANDSHAKE

    def seal(
        self, method: str, params: dict[str, Any] | None, log_level: str | None
    ) -> tuple[dict[str, Any] | None, Headers]:
        """The params that leave, and the headers beside them."""
        return params, ()

    def learn_tools(self, tools: list[Any]) -> tuple[list[Any], list[tuple[Any, Finding]]]:
        """The tools to offer, and those that the revision rejects."""
        return tools, []


@dataclass(slots=True)
class Envelope:
    """What every request of one connection of 2026-07-28 carries."""

    version: str
    capabilities: dict[str, Any]
    client: dict[str, Any]
    wire: Wire = STATELESS
    _tools: dict[str, ParamHeaders] = field(default_factory=dict)

    def seal(
        self, method: str, params: Mapping[str, Any] | None, log_level: str | None
    ) -> tuple[dict[str, Any] | None, Headers]:
        """The params with the envelope in their `_meta`, and the headers that repeat it; over a pipe nobody reads
        those. What the person wrote into `_meta` wins: that is how one tests."""
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
        return given, self._headers(method, given)

    def _headers(self, method: str, params: Mapping[str, Any]) -> Headers:
        said = params["_meta"].get(stateless.META_VERSION)
        version = said if isinstance(said, str) else self.version
        found = [("mcp-protocol-version", header_value(version)), ("mcp-method", header_value(method))]
        name = params.get(_NAMED_BY[method]) if method in _NAMED_BY else None
        if isinstance(name, str):
            found.append(("mcp-name", header_value(name)))
            arguments = params.get("arguments")
            if method == "tools/call" and name in self._tools and isinstance(arguments, dict):
                found += param_headers(self._tools[name], arguments)
        return tuple(found)

    def learn_tools(self, tools: list[Any]) -> tuple[list[Any], list[tuple[Any, Finding]]]:
        """The tools to offer, and those that the revision rejects; calls carry the headers that the rest ask for."""
        kept, rejected, self._tools = sift_tools(tools)
        return kept, rejected
