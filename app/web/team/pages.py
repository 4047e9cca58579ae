"""What everybody of a team sees: the way in, and the first page with the catalogue."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app import team_bounds as bounds
from app.core.catalogue import Entry, Role
from app.core.people import Person
from app.core.strict import Closed
from app.core.times import wire_time
from app.sessions import Identity, SessionRegistry, Workspace
from app.sessions.idled import Idled
from app.store.people import NotInvited
from app.store.replicas import HeldSession
from app.web.connect.servers import SessionRow, newest, session_json, session_rows
from app.web.door.denied import Denied, unknown
from app.web.kit import request_bodies
from app.web.kit.responses import back, in_json, show, show_page
from app.web.kit.templates import Context
from app.web.team.door import TeamVisitors
from app.web.team.house import House, role_of
from app.web.team.near import Near, found_by, lately, near
from app.web.team.offers import offered


def house_of(request: Request) -> House:
    found: House = request.app.state.house
    return found


# ---------------------------------------------------------------------------------------------------------- the way in


@dataclass(slots=True)
class Invited(Context):
    """Somebody opened an invitation. Nothing has happened yet: whoever looks at links for others uses none up."""

    template: ClassVar[str] = "team/invite.html"

    code: str


async def invitation(request: Request) -> Response:
    """The page of an invitation. It says nothing of whom it is for: a wrong code gets the same one."""
    return await show_page(request, Invited(code=request.path_params["code"]))


async def enter(request: Request) -> Response:
    """Somebody uses an invitation: a login, and the code leaves the address."""
    await request_bodies.nothing(request)
    house, visitors = house_of(request), visitors_of(request)
    if house.settings.door != "invitation":
        raise unknown()
    try:
        person, _, secret = await house.people.enter(request.path_params["code"], request.headers.get("user-agent", ""))
    except NotInvited as fault:
        raise visitors.failed(request.headers, fault.message) from None
    return await _in(request, person, secret, "by an invitation")


async def vouched(request: Request) -> Response:
    """Somebody whom the proxy has signed in: a login for this browser."""
    house, visitors = house_of(request), visitors_of(request)
    name = visitors.vouched_for(request.headers) if house.settings.door == "proxy" else ""
    if not name:
        raise unknown()
    first: Role = "admin" if name in house.settings.proxy_admins else house.settings.proxy_role
    person = await house.people.known_as("proxy", name, name, first)
    if person.off is not None:
        house.note(person, "was refused", "is switched off", refused=True)
        raise Denied(403, "refused", "An admin has switched you off here.")
    return await come_in(request, person, "by the proxy")


async def come_in(request: Request, person: Person, how: str) -> Response:
    """A new login for the browser that asks."""
    _, secret = await house_of(request).people.sign_in(person, request.headers.get("user-agent", ""))
    return await _in(request, person, secret, how)


async def _in(request: Request, person: Person, secret: str, how: str) -> Response:
    """Give a browser its new login. One that it had before ends: what somebody had then opens nothing (S14)."""
    house, visitors = house_of(request), visitors_of(request)
    before = visitors.login_of(request.headers)
    if before is not None:
        await house.people.sign_out(before.id)
        request.app.state.streams.sign_out({before.id})
    house.note(person, "signed in", how)
    response = RedirectResponse("/", 303)
    response.headers.append("set-cookie", visitors.cookie(secret))
    return response


def visitors_of(request: Request) -> TeamVisitors:
    found: TeamVisitors = request.app.state.visitors
    return found


class LogoutBody(Closed):
    everywhere: bool = False


async def logout(request: Request) -> Response:
    """End this login, or every one of whoever asks. Streams end with them; sessions go on."""
    house, visitors, identity = house_of(request), visitors_of(request), request.state.identity
    body = await request_bodies.read(request)
    wanted = body.read(LogoutBody, lambda form: {"everywhere": bool(form.text("everywhere"))})
    login = visitors.login_of(request.headers)
    ended: list[str] = []
    if wanted.everywhere:
        ended = await house.people.sign_out_everywhere(identity.id)
    elif login is not None:
        await house.people.sign_out(login.id)
        ended = [login.id]
    request.app.state.streams.sign_out(set(ended))
    house.note(identity, "signed out", "everywhere" if wanted.everywhere else "")
    response = await back(request, "/", lambda: {"signed_out": len(ended)})
    if request.state.browser is not None:
        response.headers.append("set-cookie", visitors.cleared(""))
    return response


async def readyz(request: Request) -> Response:
    """Whether people can be served: everything is loaded, the file of the team can be written, and Parley is not about
    to end."""
    state = request.app.state
    ready = (
        state.loaded.is_set()
        and state.registry.ready
        and not state.registry.closing
        and not state.keeper.draining
        and house_of(request).ready
    )
    return await in_json(lambda: {"ready": ready}, 200 if ready else 503)


# ------------------------------------------------------------------------------------------------------ the first page


@dataclass(slots=True)
class Home(Context):
    """The servers of the catalogue, and one's own sessions."""

    template: ClassVar[str] = "team/home.html"

    me: Identity
    entries: list[Entry]
    sessions: list[SessionRow]
    ends: dict[str, int]
    """Sessions that nobody needs, and in how many minutes each is closed."""
    idled: list[Idled]
    """Those that were closed so."""
    held: list[HeldSession]
    """Those on other replicas, and those that are lost with one."""
    shared: list[tuple[str, str, str, str]]
    """What others share: where it is, what it is called, whose it is and what one may do."""
    counted: int
    limit: int
    free_http: bool
    chosen: str
    """The entry that is being filled in."""
    wrong: dict[str, list[str]]
    given: dict[str, str]
    fault: str
    saved: dict[str, frozenset[str]]
    """Which values of mine are kept, by entry."""
    query: str
    many: int
    """Servers that there are for me, found or not."""
    failed: Workspace | None
    """A session of mine whose first connection failed: why, is said here."""
    names: dict[str, str]
    """What the catalogue calls the servers of my sessions."""
    tools: dict[str, int]
    """How many tools each server of the catalogue had when somebody was last connected."""
    calls: str
    """How many calls I made in the last minute, of how many; empty without a limit."""
    recent: bool
    """Only those that I used lately, the last one first."""
    near: list[Near]

    def values(self) -> dict[str, Any]:
        return {
            "me": self.me,
            "entries": [offered(one, self.saved.get(one.id, frozenset())) for one in self.entries],
            "sessions": self.sessions,
            "ends": self.ends,
            "idled": self.idled,
            "held": self.held,
            "shared": self.shared,
            "counted": self.counted,
            "limit": self.limit,
            "free_http": self.free_http,
            "chosen": self.chosen,
            "wrong": self.wrong,
            "given": self.given,
            "fault": self.fault,
            "query": self.query,
            "many": self.many,
            "failed": self.failed,
            "names": self.names,
            "tools": self.tools,
            "calls": self.calls,
            "recent": self.recent,
            "near": self.near,
            "waiting": [one.session for one in self.sessions if one.session.open_asks],
        }


def home_of(
    request: Request,
    chosen: str = "",
    wrong: dict[str, list[str]] | None = None,
    given: dict[str, str] | None = None,
    fault: str = "",
    held: list[HeldSession] | None = None,
    theirs: list[HeldSession] | None = None,
    recent: list[str] | None = None,
) -> Home:
    """The first page, with what somebody is filling in and what is wrong with it."""
    house, registry, me = house_of(request), request.app.state.registry, request.state.identity
    entries = house.catalogue().visible(role_of(me))
    query = request.query_params.get("q", "").strip()[: bounds.ENTRY_NAME]
    return Home(
        me=me,
        entries=[one for one in lately(entries, recent) if found_by(one, query)],
        sessions=session_rows(registry, me),
        ends=_ends(registry, me),
        idled=registry.idled.of(me.id),
        held=held or [],
        shared=[(one["url"], one["label"], one["owner"], one["may"]) for one in shared_json(request, theirs or [])],
        counted=sum(one.counts for one in registry.of(me)),
        limit=registry.settings.limits.sessions_per_identity,
        free_http=house.settings.free_http,
        chosen=chosen,
        wrong=wrong or {},
        given=given or {"/lost": request.query_params.get("lost", "")},
        fault=fault,
        saved={one.id: _saved(house, me, one) for one in entries},
        query=query,
        many=len(entries),
        failed=_failed(registry, me, request.query_params.get("session", "")),
        names={one.id: house.named(one.target) for one in registry.of(me) if one.target is not None},
        tools=house.tools(registry.everybodys()),
        calls=_calls(house, me),
        recent=recent is not None,
        near=near(house, registry, me),
    )


def _calls(house: House, me: Identity) -> str:
    most = house.settings.limits.calls_per_minute
    return "" if house.call_rate is None else f"{most - house.call_rate.left(me.id)} of {most}"


def _failed(registry: SessionRegistry, me: Identity, sid: str) -> Workspace | None:
    """The session that the page of a first connection led back from."""
    found = registry.find(me, sid)
    return found if found is not None and found.never_connected and found.info.trouble is not None else None


def _ends(registry: SessionRegistry, me: Identity) -> dict[str, int]:
    left = {one.id: registry.idle_left(one) for one in registry.of(me)}
    return {sid: max(1, math.ceil(seconds / 60)) for sid, seconds in left.items() if seconds is not None}


async def idled_seen(request: Request) -> Response:
    """Somebody has read which sessions were closed because nobody needed them."""
    await request_bodies.nothing(request)
    request.app.state.registry.idled.seen(request.state.identity.id)
    return await back(request, "/", lambda: {"idled": []})


def _saved(house: House, me: Identity, entry: Entry) -> frozenset[str]:
    """Which values of an entry somebody has given before."""
    return house.sealed.names(me.id, entry.id, entry.leads_to) & {one.name for one in entry.wanted if one.secret}


def held_json(one: HeldSession) -> dict[str, Any]:
    """A session of another replica, for scripts."""
    lost = None if one.lost is None else wire_time(one.lost)
    said = {"id": one.id, "url": f"/s/{one.id}", "label": one.label, "state": one.state, "replica": one.replica}
    return {**said, "lost_at": lost, "open_asks": one.asks, "messages": one.messages}


def to_fill(request: Request, url: str, needs: tuple[str, ...], lost: str) -> Home:
    """The first page with an address filled in, for whoever has to type secrets again."""
    return home_of(
        request, given={"url": url, "/lost": lost}, fault=f"Type again what is not kept: {', '.join(needs)}."
    )


def shared_json(request: Request, elsewhere: list[HeldSession]) -> list[dict[str, str]]:
    """What others share with whoever asks, the newest first, on other replicas too; of what is gone nothing."""
    house, registry, me = house_of(request), request.app.state.registry, request.state.identity
    open_now = {one.id: (f"/s/{one.id}", one.label, one.owner) for one in elsewhere}
    open_now |= {one.id: (one.base, one.label, one.owner) for one in registry.everybodys()}
    found: dict[str, dict[str, str]] = {}
    for share in house.shares.with_person(me.id):
        row = registry.store.recordings.anybodys(share.thing) if share.kind == "recording" else None
        kept = None if row is None else (f"/r/{row.id}", row.title or row.label, row.owner)
        place = open_now.get(share.thing) or kept
        if place is not None and place[2] != me.id:
            said = {"kind": share.kind, "url": place[0], "label": place[1], "owner": house.together.name(place[2])}
            found[share.thing] = {**said, "may": house.shares.may(me.id, share.thing) or share.may}
    return list(found.values())


def entry_json(entry: Entry, saved: frozenset[str] = frozenset()) -> dict[str, Any]:
    """What people may know of a server: not how it is started, nor where things lie; and which values are kept."""
    return {
        "id": entry.id,
        "name": entry.name,
        "description": entry.description,
        "transport": entry.transport,
        "roles": list(entry.roles),
        "variables": [one.model_dump(mode="json", exclude={"file", "kept"}) for one in entry.wanted],
        "saved": sorted(saved),
    }


async def home(request: Request) -> Response:
    """The first page; `entry` is the server that is being filled in."""
    registry: SessionRegistry = request.app.state.registry
    identity: Identity = request.state.identity
    await registry.store.loaded()
    replicas = request.app.state.keeper.replicas
    held = await replicas.of(identity.id)
    theirs = await replicas.some(one.thing for one in house_of(request).shares.with_person(identity.id))
    only_recent = request.query_params.get("show") == "recent"
    recent = await house_of(request).audit.used(identity.id) if only_recent else None

    def json() -> dict[str, Any]:
        house = house_of(request)
        listed, known = house.catalogue().visible(role_of(identity)), house.tools(registry.everybodys())
        return {
            "run": registry.run,
            "me": {"id": identity.id, "name": identity.name, "role": identity.role},
            "sessions": [session_json(one) for one in newest(registry, identity)],
            "elsewhere": [held_json(one) for one in held],
            "degraded": registry.degraded or None,
            "idle_minutes": _ends(registry, identity),
            "idled": [{"id": o.sid, "label": o.label, "at": wire_time(o.at)} for o in registry.idled.of(identity.id)],
            "catalogue": [
                {**entry_json(one, _saved(house, identity, one)), "tools": known.get(one.id)}
                for one in lately(listed, recent)
            ],
            "shared": shared_json(request, theirs),
            "near": [one._asdict() for one in near(house, registry, identity)],
        }

    entry = request.query_params.get("entry", "")
    return await show(request, lambda: home_of(request, entry, held=held, theirs=theirs, recent=recent), json)
