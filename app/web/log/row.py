"""One row of the log, by hand and not by a template: a burst renders thousands of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from markupsafe import Markup

from app.core.folds import Entry, Fold
from app.core.rules import stateless
from app.core.wire import Finding, Message
from app.sessions import Workspace
from app.web.door.root import at
from app.web.kit import html
from app.web.kit.format import duration, size
from app.web.kit.html import ICONS, NOTHING, Html, esc, esc_exact, stamp

_KIND = {kind: kind for kind in ("request", "response", "error", "notification", "invalid")}
_GLYPH = {"request": "req", "response": "res", "error": "res", "notification": "not", "invalid": "bad"}
_METHOD = {"request": "meth", "notification": "meth no", "invalid": "meth"}
"""Requests are bold, what the server or we only mention is not, a reply is grey."""
_LONGEST_BAR: Final = math.log(60_000)
_MODERN: Final = frozenset(
    str(code) for code in (stateless.UNSUPPORTED_VERSION, stateless.MISSING_CAPABILITY, stateless.HEADER_MISMATCH)
)
"""Refusals of `server/discover` that only a server of 2026-07-28 knows."""


def glyph(message: Message) -> str:
    """The sign for its direction and kind."""
    return ("o-" if message.direction == "out" else "i-") + _GLYPH[message.kind]


def title(message: Message) -> str:
    """What it is called."""
    if message.kind == "invalid":
        return "Invalid line" if message.problem else "Invalid message"
    return message.method or "reply"


def took(ms: float | None) -> str:
    """How long something took: a bar on a logarithmic scale from 1 ms to a minute, and the figure."""
    if ms is None:
        return ""
    wide = min(100, max(2, round(100 * math.log(max(ms, 1)) / _LONGEST_BAR)))
    return (
        f'<svg class="dur" aria-hidden="true"><rect width="{wide:d}%" height="100%"/></svg>'
        f"<span>{esc(duration(ms))}</span>"
    )


def _chip(findings: tuple[Finding, ...]) -> Html:
    if not findings:
        return NOTHING
    worst = next((one for one in findings if one.level == "must"), findings[0])
    icon = "must" if worst.level == "must" else "should"
    many = len(findings)
    return Markup(
        f'<span class="chip mk" title="{esc(worst.text[:200])}"><svg class="i" aria-hidden="true">'
        f'<use href="{esc(ICONS)}#{icon}"/></svg>{many:d}<span class="sr"> {"finding" if many == 1 else "findings"}'
        "</span></span>"
    )


def _by(message: Message) -> Html:
    """Who gave an answer, when it was no person."""
    return Markup(f'<span class="chip on">{esc(message.by[:60])}</span>') if message.by else NOTHING


def _gist(words: str, chip: Html) -> str:
    peek = f'<span class="peek">{esc(words)}</span>'
    return f'<span class="gist">{peek}{chip}</span>' if chip else peek


def _probe(message: Message) -> str | None:
    """What there is to say of our version check, or of a refusal of it by an older server."""
    if message.method != "server/discover":
        return None
    if message.direction == "out":
        return message.gist or "version check"
    code = message.gist.partition(" ")[0]
    return f"{code}, older server, as expected" if message.kind == "error" and code not in _MODERN else None


def _fold(message: Message, findings: tuple[Finding, ...]) -> str:
    """Marks a row that may be folded with others like it. What is remarkable never is."""
    if message.fold is None or findings or message.kind == "error":
        return ""
    step = f' data-step="{esc(message.step)}"' if message.step else ""
    return f' data-fold="{esc(message.fold)}"{step}'


def log_row(
    message: Message, findings: tuple[Finding, ...], base: str, *, found: bool = False, folds: bool = True
) -> Markup:
    """One row of the log. Hand-made and not a template: a burst renders thousands of them."""
    out, kind, seq = message.direction == "out", message.kind, message.seq
    probe = _probe(message)
    look = ""
    if (message.method == "ping" and kind != "error") or probe is not None:
        look = " grey"
    elif kind == "invalid":
        look = " junk"
    elif kind == "error":
        look = " bad2"
    side, word = ("o", "sent") if out else ("t", "received")
    return Markup(
        f'<li id="{"f" if found else "m"}{seq:d}" data-d="{"out" if out else "in"}" data-k="{_KIND[kind]}"'
        f"{' data-f' if findings else ''}{_fold(message, findings) if folds else ''}>"
        f'<a class="m{look}" href="{esc_exact(at(base))}/log/{seq:d}" tabindex="-1">'
        f'<span class="q">{message.number:d}</span>{stamp(message.at)}'
        f'<span class="lane {esc(glyph(message))} {side}" role="img" aria-label="{word}"></span>'
        f'<span class="{esc(_METHOD.get(kind, "meth re"))}">{esc(title(message)[:200])}</span>'
        f"{_gist(message.gist if probe is None else probe, _by(message) + _chip(findings))}"
        f'<span class="z took">{took(message.latency_ms)}</span>'
        f'<span class="z sz">{esc(size(message.size))}</span></a></li>'
    )


def fold_words(fold: Fold) -> str:
    """What a fold is about; `static/js/decide.js` says the same while it grows."""
    if fold.first.step:
        return f"{fold.first.step.partition(' of ')[0]} to {fold.last.step}"
    if not fold.asked:
        return ""
    of = fold.key.partition(" ")[2]
    words = f"{fold.asked} polls of {of}" if of else f"{fold.asked} times"
    return f"{words}, every {duration(fold.lasted / (fold.asked - 1))}" if fold.asked > 1 else words


def fold_row(fold: Fold, *, found: bool = False) -> Markup:
    """Many messages as one line, which a press opens."""
    first, out = fold.first, fold.first.direction == "out"
    side, word = ("o", "sent") if out else ("t", "received")
    return Markup(
        f'<li id="{"g" if found else "p"}{first.seq:d}" class="fold" data-fold="{esc(fold.key)}"'
        f' data-last="{fold.last.seq:d}" data-count="{fold.count:d}" data-asked="{fold.asked:d}"'
        f' data-ms="{round(fold.lasted):d}" data-from="{esc(first.step)}" data-to="{esc(fold.last.step)}">'
        f'<button class="m foldrow" type="button" aria-expanded="false" tabindex="-1">'
        f'<span class="q">{first.number:d}</span>{stamp(first.at)}'
        f'<span class="lane {esc(glyph(first))} {side}" role="img" aria-label="{word}"></span>'
        f'<span class="meth no">{esc(fold.method)}</span>'
        f'<span class="gist"><span class="peek">{esc(fold_words(fold))}</span>'
        f'<span class="count">{fold.count:d} folded</span></span>'
        f'<span class="z took">{took(fold.lasted)}</span><span class="z sz"></span></button></li>'
    )


def log_rows(session: Workspace, entries: Iterable[Entry], *, found: bool = False, folds: bool = True) -> Html:
    """Rows of the log, ready to insert; those that a search found have ids of their own."""
    base, log = session.base, session.messages
    return html.markup(
        fold_row(one, found=found)
        if isinstance(one, Fold)
        else log_row(one, log.findings(one.seq), base, found=found, folds=folds)
        for one in entries
    )
