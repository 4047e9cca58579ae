"""One row of the log, by hand and not by a template: a burst renders thousands of them."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from app.core.wire import Finding, Message
from app.sessions import Workspace
from app.web.door.root import at
from app.web.kit import html
from app.web.kit.format import clock, duration, size
from app.web.kit.html import ICONS, Html, esc, esc_exact

_KIND = {kind: kind for kind in ("request", "response", "error", "notification", "invalid")}
_GLYPH = {"request": "req", "response": "res", "error": "res", "notification": "not", "invalid": "not"}


def glyph(message: Message) -> str:
    """The sign for its direction and kind."""
    return ("o-" if message.direction == "out" else "i-") + _GLYPH[message.kind]


def title(message: Message) -> str:
    """What it is called."""
    return message.method or ("reply" if message.kind in {"response", "error"} else "not a message")


def _chip(findings: tuple[Finding, ...]) -> str:
    if not findings:
        return ""
    worst = next((one for one in findings if one.level == "must"), findings[0])
    icon = "must" if worst.level == "must" else "should"
    more = f" +{len(findings) - 1:d}" if len(findings) > 1 else ""
    return (
        f'<span class="chip mk"><svg class="i" aria-hidden="true"><use href="{ICONS}#{icon}"/></svg>'
        f'<span class="sr">finding </span>{esc(worst.id)}{more}</span>'
    )


def _gist(message: Message, findings: tuple[Finding, ...]) -> str:
    peek = f'<span class="peek">{esc(message.gist)}</span>'
    return f'<span class="gist">{peek}{_chip(findings)}</span>' if findings else peek


POLLS: Final = frozenset({"tasks/get", "ping", "completion/complete"})
"""Methods that repeat: a run of them is folded into one line of the log, with a count."""


def _poll(message: Message, findings: tuple[Finding, ...]) -> str:
    """Marks a row that may be folded with others like it. What is remarkable never is."""
    if findings or message.kind not in {"request", "response"} or message.method is None:
        return ""
    return f' data-poll="{esc(message.method[:200])}"' if message.quiet or message.method in POLLS else ""


def log_row(message: Message, findings: tuple[Finding, ...], base: str, *, found: bool = False) -> Markup:
    """One row of the log. Hand-made and not a template: a burst renders thousands of them."""
    out = message.direction == "out"
    seq = message.seq
    reply = message.kind in {"response", "error"}
    bad = " bad2" if message.kind in {"error", "invalid"} else ""
    side, word = ("o", "sent") if out else ("t", "received")
    return Markup(
        f'<li id="{"f" if found else "m"}{seq:d}" data-d="{"out" if out else "in"}" data-k="{_KIND[message.kind]}"'
        f"{' data-f' if findings else ''}{' data-quiet' if message.quiet else ''}{_poll(message, findings)}>"
        f'<a class="m{bad}" href="{esc_exact(at(base))}/log/{seq:d}"><span class="q">{seq:d}</span>'
        f"<time>{clock(message.at)}</time>"
        f'<span class="lane {esc(glyph(message))} {side}" role="img" aria-label="{word}"></span>'
        f'<span class="meth{" re" if reply else ""}">{esc(title(message)[:200])}</span>'
        f"{_gist(message, findings)}"
        f'<span class="z">{duration(message.latency_ms)}</span><span class="z sz">{size(message.size)}</span></a></li>'
    )


def log_rows(session: Workspace, messages: list[Message], *, found: bool = False) -> Html:
    """Rows of the log, ready to insert; those that a search found have ids of their own."""
    base, log = f"/s/{session.id}", session.messages
    return html.markup(log_row(one, log.findings(one.seq), base, found=found) for one in messages)
