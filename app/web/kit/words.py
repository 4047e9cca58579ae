"""What things are called on pages and in JSON: states, levels, targets, findings. Knows no page."""

from __future__ import annotations

from typing import Any

from app.core.targets import AnyTarget, DemoTarget, HttpTarget, StdioTarget
from app.core.wire import Finding

STATE_WORDS = {
    "none": "not connected",
    "connecting": "connecting",
    "ready": "connected",
    "lost": "connection lost",
    "closed": "disconnected",
}
LAMPS = {"none": "", "connecting": "busy", "ready": "ready", "lost": "lost", "closed": ""}
CALL_WORDS = {
    "running": ("busy", "Running"),
    "waiting": ("wait", "Waiting for you"),
    "done": ("ok", "Done"),
    "failed": ("x", "Failed"),
    "cancelled": ("x", "Cancelled"),
}
ASK_KINDS = {
    "form": ("k-form", "Form"),
    "url": ("k-url", "Link"),
    "sampling": ("k-samp", "Sampling"),
    "roots": ("k-root", "Roots"),
}
ASK_STATES = {
    "open": "waiting",
    "held": "held",
    "sending": "being sent",
    "answered": "answered",
    "withdrawn": "withdrawn",
    "expired": "expired",
    "lost": "lost",
}
LEVEL_WORDS = {"must": "Breaks a MUST.", "should": "Against a SHOULD.", "note": "Note."}


def transport_words(target: AnyTarget | None) -> str:
    """How the server is reached, in a word or two."""
    if isinstance(target, HttpTarget):
        return "HTTP with SSE" if target.transport == "sse" else "streamable HTTP"
    return "demo, stdio" if isinstance(target, DemoTarget) else "stdio" if target is not None else ""


def target_json(target: AnyTarget | None) -> dict[str, Any] | None:
    """A target for scripts and pages, with `•••` where a secret stands. Of variables and headers only the names."""
    if target is None:
        return None
    if isinstance(target, StdioTarget):
        command, *args = target.shown_argv
        return {
            "transport": "stdio",
            "command": command,
            "args": args,
            "cwd": target.cwd,
            "env": sorted(target.env),
        }
    if isinstance(target, HttpTarget):
        return {"transport": target.transport, "url": target.shown_url, "headers": sorted(target.headers)}
    return {"transport": "demo"}


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def list_of(values: dict[str, Any], name: str) -> list[str]:
    found = values.get(name)
    return [str(one) for one in found] if isinstance(found, list) else [] if found is None else [str(found)]


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding, by the names that scripts rely on."""
    return {
        "id": finding.id,
        "level": finding.level,
        "text": finding.text,
        "advice": finding.advice,
        "message_seq": finding.message_seq,
    }
