"""Characters in a message that do not show, and what they say (H08). Pure functions, bounded in what they look at."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from app import bounds
from app.core import hidden
from app.core.json import pointer
from app.core.rules import catalogue
from app.core.wire import Finding

_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")
_Place = tuple[Any, str]
"""Where a value stands: the place of what holds it, or None, and its key or index there."""


def hidden_text(raw: bytes, value: Any) -> list[Finding]:
    """The texts of a message that hold characters which do not show, and what those say (H08)."""
    if not hidden.possible(raw) or not isinstance(value, dict):
        return []
    findings: list[Finding] = []
    places = looked = 0
    stack: list[tuple[Any, _Place | None]] = [(value.get(key), None) for key in ("error", "result", "params")]
    while stack and looked < bounds.HIDDEN_LOOKED_AT:
        node, place = stack.pop()
        if isinstance(node, str):
            looked += 1 + len(node) // 16
            runs = [node[start:end] for start, end in islice(hidden.find(node), 100)]
            if runs and places < bounds.HIDDEN_WEIGHED:
                findings.append(_hidden(runs, _path(place)))
            places += bool(runs)
        elif isinstance(node, dict):
            first = list(islice(node.items(), bounds.HIDDEN_LOOKED_AT - looked))
            stack += [(item, (place, key)) for key, item in reversed(first) if _may_hide(item)]
            stack += [(key, (place, key)) for key, _ in first if not key.isascii()]
            looked += 1 + len(node)
        elif isinstance(node, list):
            last = min(len(node), bounds.HIDDEN_LOOKED_AT - looked)
            stack += [(node[at], (place, str(at))) for at in range(last - 1, -1, -1) if _may_hide(node[at])]
            looked += 1 + len(node)
    others = places - bounds.HIDDEN_PLACES
    findings = sorted(findings, key=lambda one: one.level == "note")[: bounds.HIDDEN_PLACES]
    if others > 0:
        findings.append(catalogue.hidden_once_more() if others == 1 else catalogue.hidden_often(others=others))
    elif looked >= bounds.HIDDEN_LOOKED_AT and not findings and hidden.certain(raw):
        findings.append(catalogue.hidden_beyond())
    return findings


def _may_hide(value: Any) -> bool:
    return not value.isascii() if isinstance(value, str) else isinstance(value, dict | list)


def _path(place: _Place | None) -> list[str]:
    parts: list[str] = []
    while place is not None:
        place, part = place
        parts.append(part)
    return parts[::-1]


def _hidden(runs: list[str], path: list[str]) -> Finding:
    """One text with hidden characters. Only what says something, reorders, or stands in a name is against a SHOULD."""
    where, at = pointer.place(path)
    words = " ".join(said for run in runs if (said := hidden.hidden_words(run)))[:300]
    if words:
        return catalogue.hidden_words(where=where, words=words, pointer=at)
    named = dict.fromkeys(hidden.names(one) for run in runs for one in run[:20])
    kinds = f"{', '.join(list(named)[:4])}{' and others' if len(named) > 4 else ''}"
    many = "a character that does not show" if sum(map(len, runs)) == 1 else "characters that do not show"
    if path[-1:] in (["name"], ["uri"]) or any(_REORDERING.search(run) for run in runs):
        return catalogue.hidden_and_grave(where=where, many=many, kinds=kinds, pointer=at)
    return catalogue.hidden(where=where, many=many, kinds=kinds, pointer=at)
