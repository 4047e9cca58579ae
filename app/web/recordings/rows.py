"""Recordings in a list: what each is in words, and what was found in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.sessions import Identity, SessionRegistry
from app.web.kit import format
from app.web.kit.html import Html, markup, shown, stamp

if TYPE_CHECKING:
    from app.recordings.search import Hit, Match
    from app.store.recordings import Recording

_EARLIER = 5
_MINUTE = 16
"""So long is a moment that is written to the minute."""
"""Recordings on the first page."""


@dataclass(slots=True, frozen=True)
class Row:
    """One recording in a list."""

    row: Recording
    facts: str
    when: str
    matches: list[Match]
    """What was found in it."""
    count: int
    unread: bool


def facts(row: Recording) -> str:
    """`312 messages, 6 calls, 9 min 12 s`"""
    said = [format.plural(row.messages, "message") if row.messages else "", lasted(row)]
    if row.calls:
        said.insert(1, format.plural(row.calls, "call"))
    state = {"recording": "being recorded", "cut": "breaks off"}.get(row.state, "")
    return ", ".join(part for part in [state, *said] if part)


def made(row: Recording, now: float, hit: Hit | None = None) -> Row:
    found = [] if hit is None else list(hit.matches)
    count, unread = (0, False) if hit is None else (hit.count, hit.unread)
    return Row(row, facts(row), format.day(row.began, now), found, count, unread)


def earlier(registry: SessionRegistry, identity: Identity) -> tuple[list[Row], int]:
    """The newest recordings for the first page, and how many there are."""
    rows = registry.store.recordings.of(identity.id)
    return [made(row, registry.wall()) for row in rows[:_EARLIER]], len(rows)


def when(row: Recording, now: float) -> Html:
    """`yesterday, 14:02 to 14:11`, in the time of whoever reads it."""
    parts: list[Html] = [shown(f"{format.day(row.began, now)}, "), stamp(row.began, _MINUTE)]
    if row.ended is not None and format.clock(row.ended)[:5] != format.clock(row.began)[:5]:
        parts += [shown(" to "), stamp(row.ended, _MINUTE)]
    return markup(parts)


def lasted(row: Recording) -> str:
    """How long it goes on."""
    return "" if row.seconds is None else format.duration(row.seconds * 1000)
