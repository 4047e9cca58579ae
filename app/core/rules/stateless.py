"""The rules of 2026-07-28 that need no wire: what a result is, what may not arrive, what is fresh (R6).

Pure functions over JSON. In this revision there is no handshake and no session: every request says who asks, a server
never asks by itself, and a result says what kind of result it is. Knows no SDK, no transport and no page.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from app.core.json.text import whole
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


def is_modern(version: str | None) -> bool:
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
        return "invalid", Finding(
            "R6-30",
            "must",
            f"`{method}` was answered with `input_required`; only tools/call, prompts/get and resources/read may be.",
            "Nobody was asked, and nothing was sent again.",
        )
    if said == "task":
        if method == "tools/call" and tasks_offered:
            return "task", None
        why = "only tools/call may be" if method != "tools/call" else f"this client did not declare {TASKS}"
        return "invalid", Finding(
            "R7-03", "must", f"`{method}` was answered with a task, and {why}.", "This is no valid response."
        )
    return "invalid", Finding(
        "R6-04",
        "must",
        f"`resultType` is {json.dumps(said)[:60]}, which this client did not ask for.",
        "A client takes this as an invalid response. It is shown as it came.",
    )


def missing_result_type(version: str | None, result: Any) -> Finding | None:
    """A server of this revision says what kind of result it sends."""
    if not is_modern(version) or not isinstance(result, dict) or "resultType" in result:
        return None
    return Finding(
        "R6-04",
        "must",
        f"The result has no `resultType`; in {VERSION} every result says which kind it is.",
        "It is taken as complete, as clients do.",
    )


# ----------------------------------------------------------------------------------------------- what may not come


def server_request(method: str) -> Finding:
    """A request of the server, where servers ask nothing (R6-05)."""
    return Finding(
        "R6-05",
        "must",
        f"The server sent the request `{str(method)[:60]}`; in {VERSION} servers send none.",
        "It was not answered. Return `input_required` from tools/call, prompts/get or resources/read instead.",
    )


def unasked_log() -> Finding:
    """A log message that no request asked for (R6-51)."""
    return Finding(
        "R6-51",
        "must",
        "No request asked for log messages, and this is one.",
        "Set a log level in the options to ask for them; the server may send none without.",
    )


def gone_method(method: str) -> Finding:
    """The person sends what this revision has dropped (R6-01)."""
    return Finding(
        "R6-01",
        "note",
        f"`{method}` does not exist in {VERSION}; it was sent by force.",
        "A server answers -32601, and would be right.",
    )


def missing_capability(error: Any) -> Finding:
    """Error -32021 (R6-08)."""
    wanted = required_capabilities(error)
    named = f": {', '.join(wanted)}" if wanted else ", and does not say which"
    return Finding(
        "R6-08",
        "note",
        f"The server wants capabilities that this connection does not declare{named}.",
        "Switch them on in the connection's options, then connect again.",
    )


def version_refused(error: Any, ours: str = VERSION) -> Finding:
    """Error -32022 in the middle of a connection (R6-07)."""
    theirs = supported_versions(error)
    if theirs is not None and ours in theirs:
        words = f"The server refuses {ours} (-32022), and names it among the revisions that it speaks."
        return Finding("R6-07", "note", words, "Call again, or look at the server: it contradicts itself.")
    said = f"speaks {', '.join(theirs)}" if theirs else "does not say what it speaks"
    return Finding("R6-07", "note", f"The server no longer takes {ours}: it {said}.", "Connect again to agree anew.")


def header_mismatch(again: bool) -> Finding:
    """Error -32020 (R6-08)."""
    advice = (
        "Parley read the tools again and sent the request once more with new headers."
        if again
        else "Parley sends such a request again only once. Look at the headers of both requests."
    )
    return Finding("R6-08", "note", "The server says that the headers do not fit the body.", advice)


def error_finding(code: int | None, error: Any) -> Finding | None:
    """What to remark beside an error of this era."""
    match code:
        case -32020:
            return header_mismatch(False)
        case -32021:
            return missing_capability(error)
        case -32022:
            return version_refused(error)
        case -32042:
            return url_error()
        case _:
            return None


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
        findings.append(Finding("R6-31", "must", "`inputRequests` is not an object with a request for each key.", ""))
    found = dict(requests) if isinstance(requests, dict) else {}
    has_state = result.get("requestState") is not None
    state = result.get("requestState")
    if has_state and not isinstance(state, str):
        findings.append(
            Finding("R6-32", "must", "`requestState` is not a string.", "It is sent back as it came, all the same.")
        )
    if not found and not has_state:
        findings.append(
            Finding("R6-31", "must", "There is neither `inputRequests` nor `requestState` in this result.", "")
        )
    return InputRequired(found, has_state, state, tuple(findings))


def elicitation_id() -> Finding:
    """A link in this revision that still names an elicitation (R4-49)."""
    return Finding(
        "R4-49", "should", f"`elicitationId` does not exist in {VERSION}.", "The outcome is learned by the retry."
    )


def url_error() -> Finding:
    """Error -32042, which this revision has dropped (R4-49)."""
    return Finding(
        "R4-49",
        "must",
        f"Error -32042 does not exist in {VERSION}.",
        "Return `input_required` with an elicitation in url mode instead.",
    )


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


def granted_less(missing: list[str]) -> Finding:
    """The acknowledgement grants less than was asked for."""
    return Finding("R6-41", "note", f"The server does not tell of {', '.join(missing)[:300]}.", "It granted the rest.")


def before_acknowledgement(method: str) -> Finding:
    """Something came on a subscription before it was acknowledged."""
    return Finding("R6-42", "must", f"`{method[:60]}` came before the subscription was acknowledged.", "")


def after_the_end(method: str) -> Finding:
    """Something came on a subscription that is over."""
    return Finding("R6-43", "note", f"`{method[:60]}` came after the subscription had ended.", "Perhaps on its way.")


def no_subscription(method: str) -> Finding:
    """A notification of a change that names no subscription."""
    return Finding(
        "R6-42",
        "must",
        f"`{method[:60]}` names no subscription.",
        f"In {VERSION} each carries `{META_SUBSCRIPTION}`, or nobody knows who asked for it.",
    )


def unknown_subscription(number: Any) -> Finding:
    """A notification for a subscription that nobody opened."""
    return Finding("R6-42", "must", f"No subscription of ours has the id {json.dumps(number)[:60]}.", "")


def not_asked_for(method: str) -> Finding:
    """An event that the filter does not name."""
    return Finding("R6-41", "must", f"This subscription did not ask for `{method[:60]}`.", "")


def not_on_this_stream(method: str) -> Finding:
    """Progress or a log message on a subscription (R6-45)."""
    return Finding("R6-45", "must", f"`{method[:60]}` does not belong on a subscription.", "")
