"""The rules of 2026-07-28 that need no wire: what a result is, what may not arrive, what is fresh (R6).

Pure functions over JSON. In this revision there is no handshake and no session: every request says who asks, a server
never asks by itself, and a result says what kind of result it is. Knows no SDK, no transport and no page.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from app.core.json.text import whole
from app.core.rules import catalogue
from app.core.wire import Finding

VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
META_VERSION = f"{PREFIX}protocolVersion"
META_CAPABILITIES = f"{PREFIX}clientCapabilities"
META_CLIENT = f"{PREFIX}clientInfo"
META_SERVER = f"{PREFIX}serverInfo"
META_LOG_LEVEL = f"{PREFIX}logLevel"
META_SUBSCRIPTION = f"{PREFIX}subscriptionId"
TASKS = f"{PREFIX}tasks"
"""The extension that lets a server answer `tools/call` with a task."""

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

ROUND_METHODS = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests that may be answered with `input_required` (R6-30)."""
GONE_METHODS = frozenset(
    {
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
        "notifications/initialized",
        "notifications/roots/list_changed",
        "notifications/tasks/status",
    }
)
"""What this revision no longer has; Parley sends none of it by itself (R6-01)."""

ResultKind = Literal["complete", "input_required", "task", "invalid"]


def is_stateless(version: str | None) -> bool:
    """Whether a revision is of the era without a handshake."""
    return version is not None and version >= VERSION


def error_code(error: Any) -> int | None:
    """The code of an `error` member, when it is a number."""
    return whole(error.get("code")) if isinstance(error, dict) else None


def supported_versions(error: Any) -> list[str] | None:
    """What a server that answers -32022 says it speaks; None when it does not say."""
    data = error.get("data") if isinstance(error, dict) else None
    found = data.get("supported") if isinstance(data, dict) else None
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else None


def required_capabilities(error: Any) -> list[str]:
    """What a server that answers -32021 wants declared, as paths like `elicitation.form`."""
    data = error.get("data") if isinstance(error, dict) else None
    wanted = data.get("requiredCapabilities") if isinstance(data, dict) else None
    return sorted(_paths(wanted)) if isinstance(wanted, dict) else []


def _paths(wanted: dict[str, Any], before: str = "") -> list[str]:
    found: list[str] = []
    for name, below in wanted.items():
        path = f"{before}{name}"
        deeper = isinstance(below, dict) and below and path.count(".") < 4 and "/" not in name
        found += _paths(below, f"{path}.") if deeper else [path[:200]]
    return found[:20]


# ------------------------------------------------------------------------------------------------------- results


def result_kind(method: str, result: Any, *, tasks_offered: bool) -> tuple[ResultKind, Finding | None]:
    """What kind of result this is, and what is wrong with its `resultType` (R6-04, R6-30, R7-03)."""
    if not isinstance(result, dict) or "resultType" not in result:
        # Absent means complete: a server of an earlier revision does not know the member.
        return "complete", None
    said = result["resultType"]
    if said == "complete":
        return "complete", None
    if said == "input_required":
        if method in ROUND_METHODS:
            return "input_required", None
        return "invalid", catalogue.input_required_elsewhere(method=method)
    if said != "task":
        return "invalid", catalogue.result_type_unknown(said=json.dumps(said))
    if method != "tools/call":
        return "invalid", catalogue.task_elsewhere(method=method)
    return ("task", None) if tasks_offered else ("invalid", catalogue.task_undeclared())


def missing_result_type(version: str | None, result: Any) -> list[Finding]:
    """A server of this revision says what kind of result it sends."""
    said = not is_stateless(version) or not isinstance(result, dict) or "resultType" in result
    return [] if said else [catalogue.result_type_missing()]


# -------------------------------------------------------------------------------------------------------- errors


def missing_capability(error: Any) -> Finding:
    """Error -32021 (R6-08)."""
    wanted = required_capabilities(error)
    return catalogue.missing_capability(named=f": {', '.join(wanted)}" if wanted else ", and does not say which")


def version_refused(error: Any, ours: str = VERSION) -> Finding:
    """Error -32022 in the middle of a connection (R6-07)."""
    theirs = supported_versions(error)
    if theirs is not None and ours in theirs:
        return catalogue.version_contradicted(ours=ours)
    said = f"speaks {', '.join(theirs)}" if theirs else "does not say what it speaks"
    return catalogue.version_refused(ours=ours, said=said)


def error_findings(code: int | None, error: Any) -> list[Finding]:
    """What to remark beside an error of this era."""
    match code:
        case -32020:
            return [catalogue.header_mismatch_again()]
        case -32021:
            return [missing_capability(error)]
        case -32022:
            return [version_refused(error)]
        case -32042:
            return [catalogue.url_error()]
        case _:
            return []


# --------------------------------------------------------------------------------------------------- input required


@dataclass(slots=True, frozen=True)
class InputRequired:
    """What an `input_required` result asks for."""

    requests: dict[str, Any]
    """By key, as received."""
    has_state: bool
    state: Any
    findings: tuple[Finding, ...]


def input_required(result: dict[str, Any]) -> InputRequired:
    """Read an `input_required` result; what is odd in it is remarked (R6-31, R6-32)."""
    findings: list[Finding] = []
    requests = result.get("inputRequests")
    if requests is not None and not isinstance(requests, dict):
        findings.append(catalogue.input_requests_no_object())
    found = dict(requests) if isinstance(requests, dict) else {}
    has_state = result.get("requestState") is not None
    state = result.get("requestState")
    if has_state and not isinstance(state, str):
        findings.append(catalogue.request_state_no_string())
    if not found and not has_state:
        findings.append(catalogue.input_required_empty())
    return InputRequired(found, has_state, state, tuple(findings))


# ------------------------------------------------------------------------------------------------------- freshness


@dataclass(slots=True, frozen=True)
class Freshness:
    """How long a result may be used again, and by whom (R6-52)."""

    ttl_ms: int
    scope: Literal["public", "private"]

    def until(self, received: float) -> float:
        """Wall time from which on it is stale."""
        return received + self.ttl_ms / 1000


def freshness(result: Any) -> Freshness | None:
    """What a result says of its own freshness; None when it is stale at once: 0, negative, missing or nonsense."""
    if not isinstance(result, dict):
        return None
    ttl = whole(result.get("ttlMs"))
    if ttl is None or ttl <= 0:
        return None
    # What does not say that it may be shared is not shared.
    return Freshness(min(ttl, 10**12), "public" if result.get("cacheScope") == "public" else "private")


# --------------------------------------------------------------------------------------------------- subscriptions

FLAGS = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
"""Members of a filter that are on or off, and what they let through."""
_LISTS = {"resourceSubscriptions": "notifications/resources/updated", "taskIds": "notifications/tasks"}


def clean_filter(asked: dict[str, Any]) -> dict[str, Any]:
    """A filter as it leaves: only what is wanted."""
    return {key: value for key, value in asked.items() if value not in (None, False, [], {})}


def not_granted(asked: dict[str, Any], granted: dict[str, Any]) -> list[str]:
    """What of a filter the server did not grant, in words (R6-41)."""
    missing = [key for key, value in asked.items() if value is True and granted.get(key) is not True]
    for key in _LISTS:
        given = granted.get(key)
        accepted = given if isinstance(given, list) else []
        missed = [each for each in asked.get(key) or [] if each not in accepted]
        if missed:
            missing.append(f"{key} ({len(missed)} of {len(asked[key])})")
    return missing


def asked_for(asked: dict[str, Any], method: str, about: Any) -> bool:
    """Whether a filter wants to hear this."""
    for key, name in FLAGS.items():
        if method == name:
            return asked.get(key) is True
    for key, name in _LISTS.items():
        if method == name:
            return about in (asked.get(key) or [])
    return False
