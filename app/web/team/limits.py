"""The page *Limits* of admins: what one person may have, and what each has of it now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from app import team_bounds as bounds
from app.settings import MIB
from app.web.kit.responses import show
from app.web.team.me import Bound, bounds_of
from app.web.team.pages import house_of
from app.web.team.people import Admin


class Use(NamedTuple):
    """What somebody has now."""

    id: str
    name: str
    sessions: int
    calls: int
    asks: int
    streams: int
    recordings: int
    mib: float

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to tell of them."""
        return not any(self[2:])


@dataclass(slots=True)
class LimitsPage(Admin):
    template: ClassVar[str] = "team/limits.html"

    bounds: list[Bound]
    uses: list[Use]
    """Who has anything, whoever has most of their sessions first."""
    more: int
    """How many of them are not shown."""
    full: dict[str, int]
    """The most of each that one person may have; 0 for no limit."""
    together: list[tuple[str, int, int]]
    """What everybody has together: what, how much of it, and the most of this replica."""


def _uses(request: Request) -> list[Use]:
    house, state = house_of(request), request.app.state
    registry, limits, rate = state.registry, state.settings.limits, house.call_rate
    counted: dict[str, int] = {}
    for session in registry.everybodys():
        counted[session.owner] = counted.get(session.owner, 0) + session.counts
    found = []
    for person in house.people.all():
        recordings = registry.store.recordings.of(person.id)
        found.append(
            Use(
                person.id,
                person.name,
                counted.get(person.id, 0),
                0 if rate is None else limits.calls_per_minute - rate.left(person.id),
                registry.open_asks(person.id),
                state.streams.many(person.id),
                len(recordings),
                round(sum(one.size for one in recordings) / MIB, 1),
            )
        )
    return sorted(found, key=lambda one: (one.nothing, -one.sessions, -one.calls, -one.mib, one.name.casefold()))


def _full(request: Request) -> dict[str, int]:
    limits = request.app.state.settings.limits
    return {
        "sessions": limits.sessions_per_identity,
        "calls": limits.calls_per_minute,
        "asks": limits.open_asks_per_identity,
        "streams": limits.streams_per_identity,
        "recordings": limits.recordings_per_identity,
        "mib": limits.recordings_bytes_per_identity // MIB,
    }


def _together(request: Request) -> list[tuple[str, int, int]]:
    state = request.app.state
    limits, streams = state.settings.limits, sum(state.streams.many(one) for one in state.streams.owners())
    return [
        ("Sessions", sum(one.counts for one in state.registry.everybodys()), limits.sessions),
        ("Streams", streams, limits.streams),
    ]


def _page(request: Request) -> LimitsPage:
    uses = [one for one in _uses(request) if not one.nothing]
    shown, around = uses[: bounds.PEOPLE_SHOWN], Admin.around(house_of(request), "limits")
    more = len(uses) - len(shown)
    return LimitsPage(*around, bounds_of(request), shown, more, _full(request), _together(request))


def _json(request: Request) -> dict[str, Any]:
    return {
        "most": _full(request),
        "people": [one._asdict() for one in _uses(request)],
        "together": {what.lower(): {"now": now, "most": most} for what, now, most in _together(request)},
    }


async def limits(request: Request) -> Response:
    """What everybody may have and has."""
    await request.app.state.registry.store.loaded()
    return await show(request, lambda: _page(request), lambda: _json(request))
