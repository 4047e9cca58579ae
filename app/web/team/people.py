"""What admins see and do: people and the audit log."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app import team_bounds as bounds
from app.core.catalogue import Role
from app.core.errors import Gone
from app.core.people import Invitation, Person
from app.core.strict import Closed
from app.core.times import wire_time
from app.sessions import SessionRegistry
from app.store.audit import ACTS, Entry
from app.web.kit import request_bodies
from app.web.kit.responses import back, in_json, show, show_page, wants_json
from app.web.kit.templates import Context
from app.web.team.house import House
from app.web.team.pages import house_of
from app.web.team.withdrawn import end_withdrawn


@dataclass(slots=True)
class Admin(Context):
    """What every page of admins has around it."""

    page: str
    place: str
    people_count: int
    entry_count: int
    gaps: int

    @staticmethod
    def around(house: House, page: str) -> tuple[str, str, int, int, int]:
        entries = len(house.catalogue().entries)
        return page, house.settings.public_host, len(house.people.all()), entries, len(house.walls.missing)


# -------------------------------------------------------------------------------------------------------------- people


@dataclass(slots=True, frozen=True)
class Row:
    """Somebody in the list."""

    person: Person
    sessions: int
    here: bool
    """Whether they look at a page now, or did a moment ago."""


@dataclass(slots=True)
class PeoplePage(Admin):
    template: ClassVar[str] = "team/people.html"

    people: list[Row]
    """Those who were searched for, by name."""
    everybody: int
    here: int
    words: str
    """What was searched for."""
    open: list[Invitation]
    me: str
    link: str
    """An invitation that was made this moment, and is shown this once."""
    invited: Invitation | None
    door: str


async def _page(request: Request, link: str = "", invited: Invitation | None = None) -> PeoplePage:
    house, words = house_of(request), " ".join(request.query_params.get("q", "").split())[: bounds.PERSON_NAME]
    rows = _rows(request)
    here = sum(one.here for one in rows)
    shown = [one for one in rows if words.casefold() in one.person.name.casefold()][: bounds.PEOPLE_SHOWN]
    found = await house.people.invitations()
    me, door = request.state.identity.id, house.settings.door
    around = Admin.around(house, "people")
    return PeoplePage(*around, shown, len(rows), here, words, found, me, link, invited, door)


def _rows(request: Request) -> list[Row]:
    house, state = house_of(request), request.app.state
    lately = time.time() - bounds.HERE_SECONDS
    watching = state.streams.owners()
    return [
        Row(one, _sessions(state.registry, one.id), one.off is None and (one.id in watching or one.seen > lately))
        for one in house.people.all()
    ]


def _sessions(registry: SessionRegistry, person: str) -> int:
    return sum(one.owner == person for one in registry.everybodys())


def person_json(person: Person) -> dict[str, Any]:
    """Somebody, for scripts."""
    off = None if person.off is None else wire_time(person.off)
    seen = wire_time(person.seen)
    return {"id": person.id, "name": person.name, "role": person.role, "door": person.door, "seen": seen, "off": off}


def _row_json(row: Row) -> dict[str, Any]:
    return {**person_json(row.person), "sessions": row.sessions, "here": row.here}


async def people(request: Request) -> Response:
    """Everybody, and the invitations that nobody has used yet."""
    found = await house_of(request).people.invitations()
    waiting = [
        {"id": one.digest, "name": one.name, "role": one.role, "expires": wire_time(one.expires)} for one in found
    ]
    said = {"people": [_row_json(one) for one in _rows(request)], "invitations": waiting}
    return await show(request, lambda: _page(request), lambda: said)


async def revoke(request: Request) -> Response:
    """Let nobody in by an invitation that was not used yet."""
    house, key = house_of(request), request.path_params["invitation"]
    await request_bodies.nothing(request)
    found = next((one for one in await house.people.invitations() if one.digest == key), None)
    if found is None:
        raise Gone("That invitation was used, or is gone.")
    await house.people.revoke_invitation(key)
    house.note(request.state.identity, "revoked an invitation", found.name)
    return await back(request, "/people", lambda: {"revoked": key})


class InviteBody(Closed):
    name: str
    role: Role = "user"


async def invite(request: Request) -> Response:
    """A link that lets one person in once. It is in this answer and nowhere else."""
    house, identity = house_of(request), request.state.identity
    body = await request_bodies.read(request)
    wanted = body.read(InviteBody, lambda form: {key: form.text(key) for key in ("name", "role") if form.text(key)})
    seconds = house.settings.invitation_hours * 3600
    code, made = await house.people.invite(wanted.name, wanted.role, identity.id, seconds)
    link = f"{house.settings.origin}/invite/{code}"
    house.note(identity, "invited", f"{made.name} as {made.role}")
    if wants_json(request):
        said = {"name": made.name, "role": made.role, "expires": wire_time(made.expires), "link": link}
        return await in_json(lambda: said, 201)
    return await show_page(request, await _page(request, link, made))


class RoleBody(Closed):
    role: Role


async def change_role(request: Request) -> Response:
    house = house_of(request)
    body = await request_bodies.read(request)
    wanted = body.read(RoleBody, lambda form: {"role": form.text("role")})
    person = await house.people.change_role(_by(request), request.path_params["person"], wanted.role)
    house.note(request.state.identity, "changed a role", f"{person.name} is {person.role}")
    await end_withdrawn(request)
    return await back(request, "/people", lambda: person_json(person))


async def switch_off(request: Request) -> Response:
    """Let somebody in no more: their streams, sessions and children end now."""
    house, registry = house_of(request), request.app.state.registry
    await request_bodies.nothing(request)
    key = request.path_params["person"]
    ways = {one.id for one in house.people.logins(key)} | {one.id for one in house.people.tokens(key)}
    person = await house.people.switch_off(_by(request), key)
    request.app.state.streams.sign_out(ways)
    for session in [one for one in registry.everybodys() if one.owner == key]:
        await registry.close(session)
    house.note(request.state.identity, "switched off", person.name)
    return await back(request, "/people", lambda: person_json(person))


async def switch_on(request: Request) -> Response:
    house = house_of(request)
    await request_bodies.nothing(request)
    person = await house.people.switch_on(request.path_params["person"])
    house.note(request.state.identity, "switched on", person.name)
    return await back(request, "/people", lambda: person_json(person))


def _by(request: Request) -> Person:
    found = house_of(request).people.find(request.state.identity.id)
    if found is None:
        raise Gone("You are not here any more.")
    return found


# --------------------------------------------------------------------------------------------------------------- audit


@dataclass(slots=True)
class AuditPage(Admin):
    template: ClassVar[str] = "team/audit.html"

    entries: list[Entry]
    words: str
    act: str
    acts: tuple[str, ...]
    days: float
    span: str
    """Of how many days; empty for all."""
    newest: bool
    older: int
    """Where the next page goes on; 0 when there is none."""
    total: int
    """How many entries match, on all pages."""


SPANS: Final[dict[str, int]] = {"1": 1, "7": 7, "30": 30}
"""Days of the audit log that can be asked for; everything unless told."""


def _asked(request: Request) -> tuple[str, str, float]:
    act, days = request.query_params.get("act", ""), SPANS.get(request.query_params.get("days", ""), 0)
    since = time.time() - days * 86_400 if days else 0.0
    return request.query_params.get("q", "")[:200], act if act in ACTS else "", since


async def audit(request: Request) -> Response:
    """Who did what, the newest first."""
    house = house_of(request)
    words, act, since = _asked(request)
    before = request.query_params.get("before", "0")
    start = int(before) if before.isascii() and before.isdecimal() and len(before) < 16 else 0
    found = await house.audit.search(words, act, since, start, bounds.AUDIT_PAGE + 1)
    more, found = len(found) > bounds.AUDIT_PAGE, found[: bounds.AUDIT_PAGE]
    older = found[-1].id if more else 0
    total = await house.audit.count(words, act, since) if more or start else len(found)

    def page() -> AuditPage:
        days, span = house.settings.audit_days, request.query_params.get("days", "")
        around, span = Admin.around(house, "audit"), span if span in SPANS else ""
        return AuditPage(*around, found, words, act, tuple(ACTS), days, span, not start, older, total)

    def json() -> dict[str, Any]:
        said = [
            {"at": wire_time(one.at), "person": one.person, "who": one.who, "act": one.act, "what": one.what,
             "refused": one.refused}
            for one in found
        ]  # fmt: skip
        return {"entries": said, "before": older or None, "total": total}

    return await show(request, page, json)


async def export(request: Request) -> Response:
    """All of it that matches, as lines of JSON."""
    words, act, since = _asked(request)
    lines: AsyncIterator[str] = house_of(request).audit.export(words, act, since)
    headers = {"content-disposition": 'attachment; filename="audit.jsonl"', "cache-control": "no-store"}
    return StreamingResponse(lines, 200, headers, "application/x-ndjson")
