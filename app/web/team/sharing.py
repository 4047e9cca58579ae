"""Sharing: who else may look at a session or a recording, links for it, and handing a session over to somebody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, ClassVar, NamedTuple, cast

import anyio
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app import bounds as everybodys
from app.core.errors import Conflict, Invalid, NotAllowed
from app.core.people import Person
from app.core.shares import HOURS, May, Share, Thing, check_heir, check_level, check_person, link_seconds
from app.core.strict import Closed
from app.core.times import wire_time
from app.sessions import Identity, SessionRegistry, Workspace
from app.sessions.session import Session
from app.store import without_secrets
from app.store.recordings import Recording
from app.web.door.denied import unknown
from app.web.door.guard import GuardedRoute
from app.web.door.reader import reader
from app.web.door.rights import Needs
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.responses import back, in_json, show, show_page, wants_json
from app.web.kit.templates import Context, fragment
from app.web.live.page import Page, page
from app.web.live.parts import Part, View
from app.web.recordings.record import recorders_of
from app.web.team.house import House, role_of
from app.web.team.pages import house_of
from app.web.team.together import Here, Together, here_json

# ------------------------------------------------------------------------------------------------- what there is


class Sharing:
    """What a page says of who has what."""

    def __init__(self, us: Together, kind: Thing, thing: str, base: str, session: Workspace | None) -> None:
        self.kind, self.base, self.hours, self.now = kind, base, HOURS, us.wall()
        found = us.shares.of(thing)
        self.people: list[tuple[Share, str]] = [(one, us.name(one.person)) for one in found if not one.is_link]
        self.links = [(one, sum(other.link == one.id for other in found)) for one in found if one.is_link]
        self.me = reader().person
        self._here = {} if session is None else {one.id: one for one in us.here(session)}
        self._people = us.people
        self.own_secrets = session is not None and own_secrets(session)

    @property
    def names(self) -> list[str]:
        """Whom it may be shared with."""
        return [one.name for one in self._people.all() if one.id != self.me and one.off is None]

    def is_here(self, person: str) -> bool:
        return person in self._here

    def seen(self, person: str) -> str:
        """Whether somebody is here, and what they do."""
        one: Here | None = self._here.get(person)
        if one is None:
            return "not here now"
        return (
            "here now"
            + (f", answering a {one.answering}" if one.answering else "")
            + (", follows you" if one.follows else "")
        )


@dataclass(slots=True)
class SharePage(Context):
    template: ClassVar[str] = "team/share.html"

    shell: Shell
    sharing: Sharing
    link: str = ""
    """A link that was made this moment, and is shown this once."""
    made: Share | None = None
    fault: str = ""
    typed: str = ""


class _Of(NamedTuple):
    """The session or the recording that an address names, for its owner."""

    kind: Thing
    id: str
    base: str
    label: str
    session: Workspace | None


def _of(request: Request) -> _Of:
    row: Recording | None = getattr(request.state, "recording", None)
    if row is not None:
        return _Of("recording", row.id, f"/r/{row.id}", row.title or row.label, None)
    session: Workspace = request.state.session
    return _Of("session", session.id, session.base, session.label, session)


def _json(house: House, of: _Of) -> dict[str, Any]:
    said = Sharing(house.together, of.kind, of.id, of.base, of.session)
    people = [
        {"id": one.id, "person": {"id": one.person, "name": name}, "may": one.may, "made": wire_time(one.made),
         "expires": _moment(one.expires), "link": one.link or None, "here": said.is_here(one.person)}
        for one, name in said.people
    ]  # fmt: skip
    links = [
        {"id": one.id, "may": one.may, "made": wire_time(one.made), "expires": _moment(one.expires),
         "revoked": _moment(one.revoked), "used": used}
        for one, used in said.links
    ]  # fmt: skip
    here = {} if of.session is None else here_json(house.together, of.session)
    return {"kind": of.kind, "id": of.id, "people": people, "links": links, **here}


def _moment(at: float | None) -> str | None:
    return None if at is None else wire_time(at)


def _drawn(view: View) -> Html:
    session = view.session
    us = cast(Together, reader().together)
    return fragment("team/_shared.html", s=Sharing(us, "session", session.id, session.base, session))


def _here(view: View) -> Html:
    return fragment("team/_here.html", session=view.session)


HERE = Part("#here", ["people.*", "ask.claimed", "ask.settled", "ask.withdrawn"], _here)
"""In the header of every page of a session."""


@page("share", Part("#shared", ["people.*", "ask.claimed", "ask.settled"], _drawn))
async def shared(request: Request) -> Response:
    """Who may look at a session, or a recording, besides its owner."""
    house, of = house_of(request), _of(request)
    return await show(request, lambda: _page(request, of), lambda: _json(house, of))


def _page(request: Request, of: _Of, **more: Any) -> SharePage:
    space: Workspace = request.state.session
    frame = shell(space, "share", f"Share this {of.kind}")
    return SharePage(frame, Sharing(house_of(request).together, of.kind, of.id, of.base, of.session), **more)


async def here(request: Request) -> Response:
    """Who is here, for scripts of everybody who may watch."""
    house, session = house_of(request), request.state.session
    return await in_json(lambda: here_json(house.together, session))


# ------------------------------------------------------------------------------------------------- giving and taking


class ShareBody(Closed):
    person: str = ""
    """By name or by id; empty with `link`."""
    may: May = "watch"
    link: bool = False
    hours: float = Field(default=1.0, allow_inf_nan=False)


def _form(form: request_bodies.Body) -> dict[str, Any]:
    return {key: form.text(key) for key in ("person", "may", "hours") if form.text(key)} | {
        "link": bool(form.text("link"))
    }


async def share(request: Request) -> Response:
    """Share a session or a recording with somebody, or make a link, which is in this answer and nowhere else."""
    house, of, me = house_of(request), _of(request), request.state.identity
    body = await request_bodies.read(request)
    wanted = body.read(ShareBody, _form)
    try:
        check_level(of.kind, wanted.may)
        if wanted.link:
            return await _link(request, house, of, wanted)
        whom = check_person(find_person(house, wanted.person), me.id, wanted.may)
        before = house.shares.may(whom.id, of.id)
        made = await house.shares.give(of.kind, of.id, wanted.may, whom.id, me.id)
    except (Invalid, NotAllowed) as fault:
        if wants_json(request):
            raise
        status = 422 if isinstance(fault, Invalid) else 403
        return await show_page(request, _page(request, of, fault=_words(fault), typed=wanted.person), status)
    house.note(me, "shared", f"{of.label} with {whom.name}, {made.may}")
    if before is not None and before != made.may:
        house.together.end(of.id, whom.id, "rights")
    if of.session is not None:
        of.session.changed("people.changed", whom.id)
    return await back(request, f"{of.base}/share", lambda: _json(house, of), 201)


def _words(fault: Invalid | NotAllowed) -> str:
    """Why it was not done, for the head of a page: what is wrong with the one field that it has."""
    found = fault.fields.values() if isinstance(fault, Invalid) else ()
    return " ".join(word for words in found for word in words) or fault.message


async def _link(request: Request, house: House, of: _Of, wanted: ShareBody) -> Response:
    me = request.state.identity
    code, made = await house.shares.make_link(of.kind, of.id, wanted.may, me.id, link_seconds(wanted.hours))
    link = f"{house.settings.origin}/join/{code}"
    house.note(me, "shared", f"{of.label} by a link, {made.may}")
    if wants_json(request):
        said = {"id": made.id, "may": made.may, "expires": _moment(made.expires), "link": link}
        return await in_json(lambda: said, 201)
    return await show_page(request, _page(request, of, link=link, made=made))


def find_person(house: House, key: str) -> Person | None:
    """Somebody by id, or by a name that one person alone has."""
    named = [one for one in house.people.all() if one.name.casefold() == " ".join(key.split()).casefold()]
    return house.people.find(key) or (named[0] if len(named) == 1 else None)


async def revoke(request: Request) -> Response:
    """Take a share away: whoever had it loses their pages and streams now."""
    house, of, me = house_of(request), _of(request), request.state.identity
    await request_bodies.nothing(request)
    ended = await house.shares.revoke(of.id, request.path_params["share"])
    house.together.ended(ended)
    whom = "a link" if ended[0].is_link else house.together.name(ended[0].person)
    house.note(me, "revoked a share", f"{of.label}, {whom}")
    if of.session is not None:
        of.session.changed("people.changed", "share")
    return await back(request, f"{of.base}/share", lambda: _json(house, of))


# --------------------------------------------------------------------------------------------------------- by a link


@dataclass(slots=True)
class Join(Context):
    """Somebody of the team opened a link. Nothing has happened yet."""

    template: ClassVar[str] = "team/join.html"

    code: str
    share: Share
    owner: str
    label: str


class _Joined(NamedTuple):
    share: Share
    base: str
    label: str
    owner: str


async def _joined(request: Request) -> _Joined:
    house, registry = house_of(request), request.app.state.registry
    found = house.shares.by_code(request.path_params["code"])
    if found is None:
        await house.shares.learn(code=request.path_params["code"])
        found = house.shares.by_code(request.path_params["code"])
    if found is not None and found.kind == "session":
        session = next((one for one in registry.everybodys() if one.id == found.thing), None)
        if session is not None:
            return _Joined(found, session.base, session.label, session.owner)
        held = await request.app.state.keeper.replicas.find(found.thing)
        if held is not None and held.lost is None:  # on another replica, to which the proxy leads
            return _Joined(found, f"/s/{held.id}", held.label, held.owner)
    if found is not None and found.kind == "recording":
        row = registry.store.recordings.anybodys(found.thing)
        if row is not None:
            return _Joined(found, f"/r/{row.id}", row.title or row.label, row.owner)
    raise unknown("That link is over, or what it led to is gone. Ask whoever sent it for another one.")


async def join_page(request: Request) -> Response:
    """What a link leads to, for whoever has it and is signed in."""
    house = house_of(request)
    await request.app.state.registry.store.loaded()
    found = await _joined(request)
    owner = house.together.name(found.owner)

    def json() -> dict[str, Any]:
        share = found.share
        return {
            "kind": share.kind,
            "may": share.may,
            "label": found.label,
            "owner": owner,
            "expires": _moment(share.expires),
        }

    return await show(request, lambda: Join(request.path_params["code"], found.share, owner, found.label), json)


async def join(request: Request) -> Response:
    """Use a link: from now on the session or the recording is shared with whoever asks, as long as the link is."""
    house, me = house_of(request), request.state.identity
    await request_bodies.nothing(request)
    await request.app.state.registry.store.loaded()
    found = await _joined(request)
    if found.owner != me.id:
        share = found.share
        await house.shares.give(share.kind, share.thing, share.may, me.id, share.by, link=share)
        house.note(me, "joined", f"{found.label}, {share.may}")
    return await back(request, found.base, lambda: {"url": found.base, "may": found.share.may})


# ----------------------------------------------------------------------------------------------------- handing over


class HeirBody(Closed):
    person: str


def own_secrets(session: Workspace) -> bool:
    """Whether its connection stands on something that is its owner's alone."""
    return session.sign_in.current is not None or (
        session.target is not None and bool(without_secrets(session.target)[1])
    )


async def hand_over(request: Request) -> Response:
    """Make somebody else the owner. Who was it keeps nothing: no right, no open tab, no credentials in it."""
    house, me = house_of(request), request.state.identity
    session: Session = request.state.session
    registry: SessionRegistry = request.app.state.registry
    body = await request_bodies.read(request)
    wanted = body.read(HeirBody, lambda form: {"person": form.text("person")})
    try:
        heir = check_heir(find_person(house, wanted.person), me.id)
        _fits(house, registry, session, heir)
    except (Invalid, NotAllowed) as fault:
        if wants_json(request):
            raise
        return await show_page(request, _page(request, _of(request), fault=_words(fault)), 403)
    recorded = await _without_mine(request, session)
    if session.owner != me.id or session.closed:
        raise Conflict("This session was closed, or handed over, a moment ago.")
    for one in registry.everybodys():  # and what was opened beside it, to compare
        if one is session or (one.made_for is not None and one.made_for[0] == session.id):
            one.owner = heir.id
            one.leftovers.forget()  # of a session that was not handed over
    if recorded:
        recorders = await recorders_of(request.app)
        recorders.connects(session)
        with anyio.move_on_after(everybodys.RECORDING_END_SECONDS):
            if (recorder := recorders.live(session)) is not None:
                await recorder.begun.wait()
    await house.shares.forget(session.id, heir.id)
    house.note(me, "handed over", f"{session.label} to {heir.name}")
    house.together.end(session.id, me.id, "revoked")
    house.together.end(session.id, heir.id, "rights")
    session.changed("people.changed", heir.id)
    return await back(request, "/", lambda: {"id": session.id, "owner": {"id": heir.id, "name": heir.name}})


def _fits(house: House, registry: SessionRegistry, session: Workspace, heir: Person) -> None:
    """Raise NotAllowed when somebody could not have this session themselves."""
    them = Identity(heir.id, heir.name, "person", heir.role)
    why = None if session.target is None else house.catalogue().refusal(role_of(them), session.target)
    if why is not None:
        raise NotAllowed(f"{heir.name} may not use this server. {why}")
    most = registry.settings.limits.sessions_per_identity
    if sum(one.counts for one in registry.of(them)) >= most:
        raise NotAllowed(f"{heir.name} has {most} sessions open, which is the limit.")


async def _without_mine(request: Request, session: Session) -> bool:
    """Nothing of the old owner's goes on in it: a recording of theirs ends, and so does a connection that stands on
    credentials of theirs; keys of models are gone, and rules wait. Whether it was recorded."""
    for name in [name for name in session.models.all if session.models.keeps_key(name)]:
        session.models.remove(name)
    if session.asks.rules.active:
        session.asks.rules.pause(True)
    session.leftovers.leave()
    if own_secrets(session):
        await session.disconnect()
        session.sign_in.connects()
        if session.target is not None:
            session.target = without_secrets(session.target)[0]
    recorded = session.recorder is not None and session.recorder.live
    if recorded:
        await (await recorders_of(request.app)).stop(session)
    session.recorder = None
    return recorded


# -------------------------------------------------------------------------------------------------------- following


class FollowBody(Closed):
    on: bool = True


async def follow(request: Request) -> Response:
    """Go where the owner goes, or no longer. The pages that the owner opens come by the stream."""
    house, session = house_of(request), request.state.session
    body = await request_bodies.read(request)
    wanted = body.read(FollowBody, lambda form: {"on": bool(form.text("on"))})
    house.together.follow(session, request.state.identity.id, on=wanted.on)
    return await in_json(lambda: {"follows": wanted.on, "path": house.together.path(session) or None})


Handler = Callable[[Request], Awaitable[Response]]


def followed(route: GuardedRoute) -> GuardedRoute:
    """A route whose page others may follow its owner to: that the owner opened it is noticed."""
    known = route.endpoint
    if not isinstance(known, Page) or not route.path.startswith("/s/{sid}") or route.needs is not Needs.WATCH:
        return route
    handler = known.handler

    @wraps(handler)
    async def noticed(request: Request) -> Response:
        response = await handler(request)
        opened = request.headers.get("sec-fetch-dest") == "document" and response.status_code == 200
        if opened and request.state.level == "own":
            together: Together = house_of(request).together
            query = f"?{request.url.query}" if request.url.query else ""
            together.moved(request.state.session, f"{request.url.path}{query}")
        return response

    page = replace(known, handler=noticed)
    return GuardedRoute(route.path, page, access=route.access, method="GET", name=route.name, needs=route.needs)
