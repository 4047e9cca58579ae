"""The page *Me*: my browsers, my tokens, the way out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.core.people import Login, Scope, Token
from app.core.strict import Closed
from app.core.times import wire_time
from app.sessions import Identity, SessionRegistry
from app.settings import MIB
from app.web.door.denied import Denied, unknown
from app.web.kit import request_bodies
from app.web.kit.responses import back, in_json, show, show_page, wants_json
from app.web.kit.templates import Context
from app.web.team.pages import house_of


@dataclass(slots=True)
class Me(Context):
    """Who I am here."""

    template: ClassVar[str] = "team/me.html"

    me: Identity
    logins: list[Login]
    here: str
    """The login of the browser that asks; empty for a script."""
    tokens: list[Token]
    made: str
    """A token that was made this moment, and is shown this once."""
    bounds: list[Bound]

    def values(self) -> dict[str, Any]:
        return {**Context.values(self), "browser": browser_name}


def browser_name(agent: str) -> str:
    """What a browser says it is, in words that its owner knows it by."""
    names = {"Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
    systems = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows", "Mac OS": "macOS",
               "Linux": "Linux"}  # fmt: skip
    name = next((word for mark, word in names.items() if mark in agent), "")
    system = next((word for mark, word in systems.items() if mark in agent), "")
    if not name:
        return agent[:60] or "a browser"
    return f"{name} on {system}" if system else name


@dataclass(slots=True, frozen=True)
class Bound:
    """One thing that nobody may have too much of."""

    what: str
    most: str
    used: str
    """How much of it there is now; empty where that is nothing to count."""
    key: str
    """The limit that says so."""


def bounds_of(request: Request) -> list[Bound]:
    """What I may have, and what I have of it."""
    state, me = request.app.state, request.state.identity
    registry, limits = state.registry, state.settings.limits
    recordings = registry.store.recordings.of(me.id)
    rate = house_of(request).call_rate
    mib = sum(one.size for one in recordings) / MIB
    most_mib = limits.recordings_bytes_per_identity // MIB
    made = "" if rate is None else str(limits.calls_per_minute - rate.left(me.id))
    return [
        Bound("Sessions", _n(limits.sessions_per_identity), str(_open(registry, me)), "sessions_per_identity"),
        Bound("Calls in a minute", _n(limits.calls_per_minute), made, "calls_per_minute"),
        Bound("Questions that wait", _n(limits.open_asks_per_identity), str(registry.open_asks(me.id)),
              "open_asks_per_identity"),
        Bound("Streams", _n(limits.streams_per_identity), str(state.streams.many(me.id)), "streams_per_identity"),
        Bound("Requests at once", _n(limits.requests_per_identity), "", "requests_per_identity"),
        Bound("Requests in a minute", _n(limits.requests_per_minute), "", "requests_per_minute"),
        Bound("Recordings", _n(limits.recordings_per_identity), str(len(recordings)), "recordings_per_identity"),
        Bound("Recordings together", f"{most_mib:,} MiB", f"{mib:.1f} MiB", "recordings_bytes_per_identity"),
        Bound("One message", f"{limits.message_bytes / MIB:g} MiB", "", "message_bytes"),
        Bound("A session without use", f"{limits.idle_seconds / 60:g} minutes", "", "idle_seconds"),
    ]  # fmt: skip


def _n(most: int) -> str:
    return f"{most:,}" if most else "no limit"


def _open(registry: SessionRegistry, me: Identity) -> int:
    return sum(one.counts for one in registry.of(me))


def _me(request: Request, made: str = "") -> Me:
    people, identity = house_of(request).people, request.state.identity
    here = request.state.browser or ""
    return Me(identity, people.logins(identity.id), here, people.tokens(identity.id), made, bounds_of(request))


def _token_json(token: Token) -> dict[str, Any]:
    seen = wire_time(token.seen) if token.seen else None
    times = {"made": wire_time(token.made), "expires": wire_time(token.expires), "seen": seen}
    return {"id": token.id, "name": token.name, "scope": token.scope, **times}


def _me_json(request: Request) -> dict[str, Any]:
    people, identity = house_of(request).people, request.state.identity
    logins = [
        {"id": one.id, "agent": one.agent, "made": wire_time(one.made), "seen": wire_time(one.seen),
         "expires": wire_time(one.expires), "here": one.id == request.state.browser}
        for one in people.logins(identity.id)
    ]  # fmt: skip
    who = {"id": identity.id, "name": identity.name, "role": identity.role}
    limits = {one.key: {"most": one.most, "used": one.used or None} for one in bounds_of(request)}
    tokens = [_token_json(one) for one in people.tokens(identity.id)]
    return {**who, "logins": logins, "tokens": tokens, "limits": limits}


async def me(request: Request) -> Response:
    await request.app.state.registry.store.loaded()
    return await show(request, lambda: _me(request), lambda: _me_json(request))


async def about(request: Request) -> Response:
    """What Parley was started with is for admins, in its file; what is mine is here."""
    return RedirectResponse("/me", 303)


class TokenBody(Closed):
    name: str
    scope: Scope = "read"
    days: float = 90


async def make_token(request: Request) -> Response:
    """A token for a script. Its text is in this answer and nowhere else."""
    house, identity = house_of(request), request.state.identity
    if request.state.browser is None:
        raise Denied(403, "refused", "A token makes no other token. Sign in with a browser.")
    body = await request_bodies.read(request)
    wanted = body.read(
        TokenBody, lambda form: {key: form.text(key) for key in ("name", "scope", "days") if form.text(key)}
    )
    text, token = await house.people.make_token(identity.id, wanted.name, wanted.scope, wanted.days)
    house.note(identity, "made a token", f"{token.name}, {token.scope}")
    if wants_json(request):
        return await in_json(lambda: {**_token_json(token), "token": text}, 201)
    return await show_page(request, _me(request, text))


async def revoke_token(request: Request) -> Response:
    house, identity = house_of(request), request.state.identity
    await request_bodies.nothing(request)
    token = await house.people.revoke_token(identity.id, request.path_params["token"])
    request.app.state.streams.sign_out({token.id})
    house.note(identity, "revoked a token", token.name)
    return await back(request, "/me", lambda: {"revoked": token.id})


async def end_login(request: Request) -> Response:
    """Sign another browser of mine out."""
    house, identity = house_of(request), request.state.identity
    await request_bodies.nothing(request)
    key = request.path_params["login"]
    if all(one.id != key for one in house.people.logins(identity.id)):
        raise unknown()
    await house.people.sign_out(key)
    request.app.state.streams.sign_out({key})
    house.note(identity, "signed out", "another browser")
    return await back(request, "/me", lambda: {"ended": key})
