"""What is wrong with a result: the revision it chose, its type, its binary data, its structured output."""

from __future__ import annotations

import json
from typing import Any

from app import bounds
from app.core.json import pointer
from app.core.revisions import HANDSHAKE_VERSIONS, STATELESS_VERSIONS
from app.core.rules import catalogue
from app.core.schema.check import Check
from app.core.schema.cost import TooCostly
from app.core.wire import Finding


def version_answer(asked: str, got: Any) -> list[Finding]:
    """What to say of the revision that the server chose (R5-03)."""
    if got == asked:
        return []
    if got in HANDSHAKE_VERSIONS:
        return [catalogue.version_chosen(asked=asked, got=got)]
    if got in STATELESS_VERSIONS:
        return [catalogue.version_without_initialize(got=got)]
    return [catalogue.version_unknown(got=json.dumps(got))]


_RULES = {
    "initialize": "R5-02",
    "server": "R6-06",
    "subscriptions": "R6-40",
    "tools": "R5-29",
    "resources": "R5-27",
    "prompts": "R5-30",
    "completion": "R5-21",
    "logging": "R5-22",
    "ping": "R5-25",
}


def _rule(method: str) -> str:
    """The requirement that describes the results of a method."""
    return _RULES.get(method.split("/")[0], "R5-01")


def result_shape(method: str, version: str, complaints: list[str]) -> Finding:
    """A result that does not fit the specification's type for its method and revision."""
    shown = "; ".join(complaints[:3]) + (f"; and {len(complaints) - 3} more" if len(complaints) > 3 else "")
    return catalogue.result_misfit(rule=_rule(method), method=method, version=version, complaints=shown)


_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def base64_parts(method: str, result: Any) -> list[Finding]:
    """Pictures, sounds and blobs in a result that are not base64; the first few of the first few hundred."""
    places = []
    for at, part in enumerate(_listed(result, "content")):
        places += _binary(part, f"content/{at}")
    for at, part in enumerate(_listed(result, "contents")):
        places += _binary({"type": "resource", "resource": part}, f"contents/{at}")
    for at, message in enumerate(_listed(result, "messages")):
        if isinstance(message, dict):
            places += _binary(message.get("content"), f"messages/{at}/content")
    broken = [where for where, data in places if not is_base64(data)][:5]
    return [catalogue.not_base64(rule=_rule(method), where=where) for where in broken]


def _listed(result: Any, key: str) -> list[Any]:
    found = result.get(key) if isinstance(result, dict) else None
    return found[: bounds.PARTS_CHECKED] if isinstance(found, list) else []


def _binary(part: Any, where: str) -> list[tuple[str, str]]:
    """The binary data of one content block, and where it stands."""
    if not isinstance(part, dict):
        return []
    inner: Any = part
    name = "data"
    if part.get("type") == "resource":
        inner, name = part.get("resource"), "blob"
        where = where if where.startswith("contents/") else f"{where}/resource"
    elif part.get("type") not in ("image", "audio"):
        return []
    data = inner.get(name) if isinstance(inner, dict) else None
    return [(f"{where}/{name}", data)] if isinstance(data, str) else []


def is_base64(text: str) -> bool:
    """Whether a text is base64 as RFC 4648 has it, padding included. Decodes nothing; two passes over the bytes."""
    if len(text) % 4 or not text.isascii():
        return False
    raw = text.encode()
    core = raw.rstrip(b"=")
    return len(raw) - len(core) <= 2 and not core.translate(None, _BASE64)


def structured_output(schema: Any, result: Any) -> list[Finding]:
    """Whether `structuredContent` fits the output schema (R5-29). Bounded in time, fetches nothing (R6-11)."""
    if not isinstance(schema, dict) or not isinstance(result, dict):
        return []
    if "structuredContent" not in result:
        return [] if result.get("isError") is True else [catalogue.output_missing()]
    check, value = Check(schema, of_output=True), result["structuredContent"]
    if check.cause:
        return [catalogue.output_schema_unusable(cause=check.cause)]
    if check.why:
        return [catalogue.output_too_costly(why=check.why.replace("The schema", "The output schema", 1))]
    try:
        errors = check.errors(value)
    except TooCostly as fault:
        return [catalogue.output_too_costly(why=fault)]
    except ValueError as fault:
        return [catalogue.output_unchecked(why=fault)]
    if errors is None:
        return [catalogue.output_misfit_somewhere()]
    findings = []
    for error in errors[:5]:
        where, at = pointer.place(error.instance_path)
        inside = None if at is None else f"/structuredContent{at}"
        findings.append(catalogue.output_misfit(where=where, what=error.message, pointer=inside))
    return findings
