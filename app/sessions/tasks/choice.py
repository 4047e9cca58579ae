"""Whether a call is sent as a task: what was wanted, what the server and the tool allow, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.core.errors import Invalid
from app.core.rules import catalogue
from app.core.tasks.running import CORE, Support
from app.core.wire import Finding


def as_task_or_not(
    support_of: Callable[[Any], Support],
    method: str,
    params: dict[str, Any] | None,
    wanted: bool,
    ttl: int | None,
    force: bool,
) -> tuple[dict[str, Any] | None, bool, list[Finding]]:
    """What is sent, whether as a task, and what there is to say about that (R2-01…R2-05)."""
    if ttl is not None and not wanted:
        raise Invalid("A TTL belongs to a task.", {"/ttl": ["Say `as_task` too, or leave it out."]})
    if method != "tools/call":
        if wanted:
            raise Invalid("Only a tool can be called as a task.", {"/as_task": ["Only with `tools/call`."]})
        return params, False, []
    given = params or {}
    by_hand = "task" in given
    support = support_of(given.get("name"))
    if wanted or by_hand:
        if wanted and support.no_task and not force:
            return params, False, [catalogue.task_dropped(why=support.no_task)]
        findings = [catalogue.task_forced(why=support.no_task)] if support.no_task else []
        return (given if by_hand else {**given, **CORE.ask(ttl)}), True, findings
    if support.no_plain:
        if not force:
            raise Invalid(f"{support.no_plain} Nothing was sent.", {"/as_task": [support.no_plain]})
        return params, False, [catalogue.task_forced(why=support.no_plain)]
    return params, False, []
