"""What things are called on pages and in JSON: states, levels, targets, findings. Knows no page."""

from __future__ import annotations

from typing import Any

from app.core.auth import auth_json
from app.core.rules import spec
from app.core.targets import AnyTarget, DemoTarget, HttpTarget, StdioTarget
from app.core.wire import Finding
from app.sessions import Workspace

STATE_WORDS = {
    "none": "not connected",
    "connecting": "connecting",
    "ready": "connected",
    "lost": "connection lost",
    "closed": "disconnected",
    "kept": "recording",
}
LAMPS = {"none": "", "connecting": "busy", "ready": "ready", "lost": "lost", "closed": "", "kept": "kept"}
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
    "held": "not sent yet",
    "sending": "being sent",
    "answered": "answered",
    "withdrawn": "withdrawn",
    "expired": "expired",
    "lost": "lost",
}
VIEW_WORDS = {"table": "Table", "tree": "Tree", "text": "Text", "raw": "Raw"}
"""In which ways a result can be shown, and what each is called."""
ASK_MARKS = {
    "open": "wait",
    "held": "ok",
    "sending": "busy",
    "answered": "ok",
    "withdrawn": "back",
    "expired": "over",
    "lost": "x",
}
"""The sign of each state, the same wherever an ask is shown."""
LEVEL_WORDS = {"must": "Breaks a MUST.", "should": "Against a SHOULD.", "note": "Note."}


def state_words(session: Workspace) -> str:
    """The state of a connection in a word or two. Only what was there can be lost."""
    if session.info.state == "lost" and session.info.ready_at is None:
        return "not connected" if isinstance(session.target, HttpTarget) else "did not start"
    return STATE_WORDS[session.info.state]


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
        tls = None if target.tls is None else target.tls.model_dump(mode="json")
        return {
            "transport": target.transport,
            "url": target.shown_url,
            "headers": sorted(target.headers),
            "tls": tls,
            "auth": auth_json(target.auth),
        }
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
        "spec": None if (section := spec.section(finding.id)) is None else section.url,
    }
