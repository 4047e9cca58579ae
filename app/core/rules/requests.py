"""Requests of either side: what must be declared before one is sent, and members that are null for absent."""

from __future__ import annotations

from typing import Any

from app.core.rules import catalogue
from app.core.wire import Finding

METHOD_CAPABILITY = {
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "resources/subscribe": "resources",
    "resources/unsubscribe": "resources",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "completion/complete": "completions",
    "logging/setLevel": "logging",
    "tasks/list": "tasks",
    "tasks/get": "tasks",
    "tasks/result": "tasks",
    "tasks/cancel": "tasks",
}
"""Which capability a server must have declared before a method is used (R5-04)."""


def null_members(params: dict[str, Any], rule: str, *names: str) -> list[Finding]:
    """Members that sloppy serialisers write as null, where absent is meant (as with `task`, R1-82)."""
    found = (name for name in names if name in params and params[name] is None)
    return [catalogue.null_member(rule=rule, name=name) for name in found]
