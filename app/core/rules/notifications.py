"""What is wrong with a notification of the server: its members, and progress that does not rise. Pure functions."""

from __future__ import annotations

import json
from typing import Any

from app.core.options import LEVELS
from app.core.rules import catalogue
from app.core.rules.frames import is_proper_id
from app.core.wire import Finding


def notification(method: str, params: dict[str, Any], version: str | None) -> list[Finding]:
    """What in a notification breaks its type; optional members may be null, as sloppy serialisers write them."""
    rule, broken = "", []  # type: str, list[str]
    match method:
        case "notifications/message":
            rule, level = "R5-22", params.get("level")
            if not isinstance(level, str) or level not in LEVELS:
                broken.append(_wrong(params, "level", f"one of {', '.join(LEVELS)}"))
            if "data" not in params:
                broken.append(_wrong(params, "data", ""))
            if not isinstance(params.get("logger"), str | None):
                broken.append(_wrong(params, "logger", "a string"))
        case "notifications/resources/updated":
            rule = "R5-27"
            if not isinstance(params.get("uri"), str):
                broken.append(_wrong(params, "uri", "a string"))
        case "notifications/elicitation/complete":
            rule = "R4-46"
            if not isinstance(params.get("elicitationId"), str):
                broken.append(_wrong(params, "elicitationId", "a string"))
        case "notifications/cancelled":
            # From 2025-11-25 on the id may be absent: a task is not cancelled by one.
            rule, needed = "R5-24", version is not None and version < "2025-11-25"
            if (needed or params.get("requestId") is not None) and not is_proper_id(params.get("requestId")):
                broken.append(_wrong(params, "requestId", "a string or an integer"))
        case "notifications/progress":
            rule, total = "R5-23", params.get("total")
            if not isinstance(total, int | float | None) or isinstance(total, bool):
                broken.append(_wrong(params, "total", "a number"))
            if not isinstance(params.get("message"), str | None):
                broken.append(_wrong(params, "message", "a string"))
    return [catalogue.notification_misfit(rule=rule, what=what) for what in broken]


def _wrong(params: dict[str, Any], name: str, wanted: str) -> str:
    """A sentence about a member that is missing, or is not what it must be."""
    if name not in params:
        return f"`{name}` is missing."
    value = params[name]
    said = "an object" if isinstance(value, dict) else "an array" if isinstance(value, list) else None
    if said is None:
        said = json.dumps(value[:60] if isinstance(value, str) else value, ensure_ascii=False)[:62]
    return f"`{name}` is {said}; it must be {wanted}."


def number(value: Any) -> float | None:
    """A JSON number as a float; None for anything else, and for an integer that no float can hold."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def progress_rises(before: float | None, now: Any) -> list[Finding]:
    """Progress values must rise (R5-23)."""
    value = number(now)
    if value is None:
        return [catalogue.progress_no_number(said=json.dumps(now))]
    if before is not None and value <= before:
        return [catalogue.progress_falls(before=before, now=value)]
    return []


def stray_progress(fate: str | None) -> Finding:
    """Progress for a token that is not, or no longer, in use."""
    match fate:
        case None:
            return catalogue.progress_unasked()
        case "task":
            return catalogue.progress_of_ended_task()
        case "answered":
            return catalogue.progress_after_reply()
        case _:  # the server may not have heard of it yet
            return catalogue.progress_on_its_way(fate=fate)
