"""What is wrong with a frame: as bytes, as JSON-RPC 2.0, and as the reply to something. Pure functions.

Show, then judge: nothing here stops a message. Knows no wire, no SDK and no page.
"""

from __future__ import annotations

import json
from typing import Any

from app.core.json.text import Parsed, whole
from app.core.rules import catalogue
from app.core.wire import Direction, Finding


def frame(
    parsed: Parsed, direction: Direction, *, over_http: bool = False, refusal: bool = False, meant: bool = False
) -> list[Finding]:
    """What is wrong with a frame as JSON-RPC 2.0 (R5-01), as a line on stdout (R5-40) or as a body or event (R5-41).

    `refusal` is the body of an HTTP error, of which no shape is asked for; `meant` is what looks like a message."""
    if direction == "out" or refusal:
        return []
    findings = [catalogue.sloppy_json(remark=remark) for remark in parsed.remarks]
    if parsed.unread is not None:
        findings.append(catalogue.unread(rule=_rule(over_http), why=parsed.unread))
    if parsed.problem is None:
        return findings + _shape(parsed.value)
    if parsed.unread is None:
        findings.append(_unreadable(parsed.problem, over_http, meant, parsed.our_limit))
    return findings


def _rule(over_http: bool) -> str:
    return "R5-41" if over_http else "R5-40"


def _unreadable(problem: str, over_http: bool, meant: bool, our_limit: bool) -> Finding:
    if our_limit:
        return catalogue.beyond_our_limit(rule=_rule(over_http), problem=problem)
    if over_http:
        return catalogue.broken_body(problem=problem)
    return catalogue.broken_line(problem=problem) if meant else catalogue.stray_line(problem=problem)


def _shape(value: Any) -> list[Finding]:
    if not isinstance(value, dict):
        what = "an array" if isinstance(value, list) else f"the bare value {json.dumps(value)[:40]}"
        return [catalogue.no_message(what=what)]
    findings = []
    if value.get("jsonrpc") != "2.0":
        said = json.dumps(value["jsonrpc"]) if "jsonrpc" in value else "missing"
        findings.append(catalogue.other_jsonrpc(said=said))
    if "id" in value and not is_proper_id(value["id"]) and not ("error" in value and value["id"] is None):
        findings.append(catalogue.improper_id(rpc_id=json.dumps(value["id"])))
    if "method" in value:
        return findings + _request_shape(value)
    if "result" in value or "error" in value:
        return findings + _reply_shape(value)
    return [*findings, catalogue.no_member()]


def is_proper_id(value: Any) -> bool:
    """Whether this can be the id of a request."""
    return isinstance(value, str) or whole(value) is not None


def _request_shape(value: dict[str, Any]) -> list[Finding]:
    findings = []
    if not isinstance(value["method"], str):
        findings.append(catalogue.method_no_string())
    if "params" in value and not isinstance(value["params"], dict):
        findings.append(catalogue.params_no_object())
    if "result" in value or "error" in value:
        findings.append(catalogue.request_and_reply())
    return findings


def _reply_shape(value: dict[str, Any]) -> list[Finding]:
    findings = []
    if "result" in value and "error" in value:
        findings.append(catalogue.result_and_error())
    if "id" not in value:
        findings.append(catalogue.reply_without_id())
    if "result" in value and not isinstance(value["result"], dict):
        findings.append(catalogue.result_no_object())
    if "error" in value:
        error = value["error"]
        if not isinstance(error, dict):
            findings.append(catalogue.error_no_object())
        elif whole(error.get("code")) is None or not isinstance(error.get("message"), str):
            findings.append(catalogue.error_incomplete())
    return findings


def oversized(size: int, limit: int, *, over_http: bool) -> Finding:
    """A frame above our limit."""
    what = "message" if over_http else "line"
    return catalogue.oversized(rule=_rule(over_http), what=what, mib=limit / 1048576, size=size)


def stray_reply(rpc_id: Any, fate: str | None) -> Finding:
    """A reply that nobody waits for; `fate` says what became of its request, when there was one."""
    if fate is None:
        return catalogue.unknown_reply(rpc_id=json.dumps(rpc_id))
    return catalogue.second_reply() if fate == "answered" else catalogue.late_reply(fate=fate)


def null_members(params: dict[str, Any], rule: str, *names: str) -> list[Finding]:
    """Members that sloppy serialisers write as null, where absent is meant (as with `task`, R1-82)."""
    found = (name for name in names if name in params and params[name] is None)
    return [catalogue.null_member(rule=rule, name=name) for name in found]
