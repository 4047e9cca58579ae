"""Deny by default: what a request must be before any handler sees it, and what every response carries.

Pure ASGI, in the order host, origin, identity, limits. A route is reached only through an
access level declared on it; a session only by its owner, checked here for every route that names one. Knows no page
and no action.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders, State
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import guest_bounds
from app.core.links import is_loopback
from app.web.door.denied import Answered, Denied, unknown
from app.web.door.meanwhile import while_known, while_shared
from app.web.door.reader import read_by
from app.web.door.rights import Asker, Needs, decide
from app.web.door.visitors import Visitors, WrongAgain, presents_token

if TYPE_CHECKING:
    from app.recordings.shelf import Shelf
    from app.sessions import Identity, SessionRegistry
    from app.sessions.identity import Level
    from app.store.recordings import Recording

log = logging.getLogger("parley.web")

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Exactly S34."""
SECURITY_HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""On every response, unless the route has set its own."""
PART_OF_A_PAGE = ("x-content-type-options", "cross-origin-resource-policy", "cache-control")
"""Those of them for a script or a style of ours. It is no document: what may be loaded and who may frame it was said by
the page that names it, and opened alone it is plain text."""

_AUTHORITY = re.compile(r"(?P<name>[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")


class Access(Enum):
    """Who may reach a route."""

    PUBLIC = "anybody who can open a socket"
    GUEST = "whoever has its address: a guest of one ask, or of a room, whom no other route knows"
    IDENTITY = "somebody we know"
    SESSION = "whoever may know of the session in the path; for everybody else it does not exist"
    CLOSED = "the owner of the session in the path, which was closed a moment ago; otherwise it does not exist"
    RECORDING = "whoever may know of the recording in the path, which is opened; for everybody else it does not exist"
    RECORDED = "the same, for what needs only its row: a file that cannot be read can still be deleted"


class GuardedRoute(Route):
    """A route with its access level. A plain `Route` has none, and so cannot be reached."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[[Request], Awaitable[Response]] | ASGIApp,
        *,
        access: Access,
        method: str,
        name: str | None = None,
        upload: bool = False,
        needs: Needs | None = None,
    ) -> None:
        if ("{sid}" in path) is not (access in {Access.SESSION, Access.CLOSED}):
            raise ValueError(f"{path}: a path names a session exactly when its access level is SESSION or CLOSED")
        if path.startswith("/r/{rid}") is not (access in {Access.RECORDING, Access.RECORDED}):
            raise ValueError(f"{path}: a path names a recording exactly when its access level is RECORDING or RECORDED")
        if ("{guest}" in path) is not (access is Access.GUEST):
            raise ValueError(f"{path}: a path has the code of a guest exactly when its access level is GUEST")
        super().__init__(path, endpoint, methods=[method], name=name)
        self.access = access
        self.upload = upload
        """Its body is a file, which has a limit of its own and is never held in memory."""
        self.needs = needs or _usual(access, method)
        """What a team asks of whoever comes; local mode asks no more than `access`."""


def _usual(access: Access, method: str) -> Needs:
    """What a route needs that does not say: a look at a session is less than an act in it."""
    if access is Access.PUBLIC:
        return Needs.PUBLIC
    if access is Access.GUEST:
        return Needs.GUEST
    if access is Access.CLOSED:
        return Needs.OWN
    if access is Access.SESSION:
        return Needs.WATCH if method == "GET" else Needs.OPERATE
    if access in {Access.RECORDING, Access.RECORDED}:
        return Needs.WATCH if method == "GET" else Needs.OWN
    return Needs.SIGNED_IN


# -------------------------------------------------------------------------------------------------------- responses


class SecurityHeaders:
    """The outermost layer: security headers on every response, and an answer where something broke."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                is_part = scope.get("state", {}).get("is_part_of_a_page", False)
                put_on(MutableHeaders(scope=message), PART_OF_A_PAGE if is_part else SECURITY_HEADERS)
            await send(message)

        try:
            await self.app(scope, receive, guarded)
        except Exception as fault:
            if started:
                # Too late for an answer: the server closes the socket, so that nobody takes a part for the whole.
                raise
            await refuse(scope, receive, guarded, fault)


def put_on(headers: MutableHeaders, wanted: Iterable[str]) -> None:
    """The security headers; and never one that opens us to another origin or says what we are built with."""
    for name in [name for name in headers if name.startswith("access-control-") or name in {"server", "x-powered-by"}]:
        del headers[name]
    for name in wanted:
        headers.setdefault(name, SECURITY_HEADERS[name])


async def refuse(scope: Scope, receive: Receive, send: Send, fault: Exception) -> None:
    """Answer a request that goes no further."""
    if isinstance(fault, WrongAgain):
        await scope["app"].state.visitors.hold_back(fault)
    try:
        await scope["app"].state.loaded.wait()
        from app.web.kit.responses import answer

        request = Request(scope, receive)
        response = await (fault.respond(request) if isinstance(fault, Answered) else answer(request, fault))
    except Exception as broken:
        log.error("The answer to a failure broke", exc_info=broken)
        response = PlainTextResponse("Parley itself failed here.\n", 500)
    await response(scope, receive, send)


# --------------------------------------------------------------------------------------------------------- requests


class HostCheck:
    """Only loopback names: a page of another site cannot reach us by pointing its own name at 127.0.0.1 (S02).

    The port is not compared, since a container or an ssh tunnel may publish us on another one; the Origin check
    compares it. Methods other than GET, HEAD and POST do not exist here, and end at this layer (S04, S10).
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str], what: str = "its loopback address") -> None:
        self.app = app
        self.hosts = frozenset(hosts)
        self.what = what

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sent = Headers(scope=scope).getlist("host")
        if len(sent) != 1 or host_name(sent[0]) not in self.hosts:
            await PlainTextResponse(f"Parley answers to {self.what} only.\n", 400)(scope, receive, send)
            return
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            response = PlainTextResponse("Only GET and POST exist here.\n", 405, {"allow": "GET, HEAD, POST"})
            await response(scope, receive, send)
            return
        await self.app(scope, receive, send)


class HasCookie(Protocol):
    """Who can tell whether a request brings a cookie that lets somebody in."""

    def has_cookie(self, headers: Headers) -> bool: ...


class OriginCheck:
    """A request that changes something comes from our own page or from a script with a token (S03-S06).

    Reading is open to links from elsewhere, and to nothing else from elsewhere: not to scripts, images or streams of
    another site, nor of another port, for which the browser would send a SameSite cookie along.
    """

    def __init__(self, app: ASGIApp, visitors: HasCookie, origin: str = "") -> None:
        self.app = app
        self.visitors = visitors
        self.origin = origin
        """Where our pages come from; empty where that is how we are called."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            why = None if presents_token(headers) else self._foreign(scope["method"], headers)
            if why is not None:
                await refuse(scope, receive, send, Denied(403, "cross-site", why))
                return
        await self.app(scope, receive, send)

    def _foreign(self, method: str, headers: Headers) -> str | None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        ours = self.origin or f"http://{headers['host'].lower()}"
        if method in {"GET", "HEAD"}:
            from_here = site in {None, "same-origin", "none"} and origin in {None, ours}
            by_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
            return None if from_here or by_link else "Another site may link to Parley, but not read from it."
        if origin not in {None, ours}:
            return "This request comes from another site. Nothing was done."
        if site not in {None, "same-origin"}:
            return "This request comes from another site. Nothing was done."
        if origin is None and site is None and self.visitors.has_cookie(headers):
            return "This request does not say which page it comes from. Nothing was done. Scripts use a token."
        return None


class IdentityCheck:
    """Finds the route, and lets through whom its access level allows. A route that declares none lets nobody (S01)."""

    def __init__(self, app: ASGIApp, visitors: Visitors) -> None:
        self.app = app
        self.visitors = visitors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                await self._admit(scope)
            except Denied as denied:
                await refuse(scope, receive, send, denied)
                return
            if "identity" in scope["state"]:
                session = scope["state"].get("session")
                registry: SessionRegistry = scope["app"].state.registry
                who = scope["state"]["reader"]
                with registry.attention.waiting("" if session is None else session.id), read_by(who):
                    heard = while_known(scope, registry, self.visitors, receive)
                    answered = _with_cookie(send, scope["state"].pop("renewal"))
                    await self.app(scope, heard, while_shared(scope, registry, answered))
                return
        await self.app(scope, receive, send)

    async def _admit(self, scope: Scope) -> None:
        state = scope.setdefault("state", {})
        loaded = scope["app"].state.loaded
        early = not loaded.is_set()
        route, params = _find(scope["app"].routes, scope)
        if getattr(route, "access", None) is Access.PUBLIC:
            return
        await loaded.wait()
        if early:  # until now the public routes were all there was
            route, params = _find(scope["app"].routes, scope)
        access = getattr(route, "access", None)
        if access is Access.GUEST:
            # Who they are says the code alone. No cookie of a person is looked at, and none gets them further.
            if decide(Asker("guest"), getattr(route, "needs", Needs.OWN), changes=True) is not None:
                raise unknown()
            state["most_bytes"] = guest_bounds.GUEST_BYTES
            return
        headers = Headers(scope=scope)
        visitor = await self.visitors.known(headers, scope.get("root_path", ""))
        state["identity"], state["browser"], state["renewal"] = visitor.identity, visitor.browser, visitor.renewal
        state["visitor"], state["token"] = visitor, visitor.token
        if route is None or access is None:
            raise unknown()
        registry: SessionRegistry = scope["app"].state.registry
        level: Level = "own"
        if access is Access.SESSION:
            session, level = registry.visible(visitor.identity, params["sid"])
            if session is None:
                await self.visitors.not_here(scope, visitor, params["sid"])
                session, level = registry.visible(visitor.identity, params["sid"])  # shared a moment ago
            if session is None:
                raise _no_session(registry, visitor.identity, params["sid"])
            session.touch()
            state["session"] = session
        if access in {Access.RECORDING, Access.RECORDED}:
            state["recording"], level = await _recorded(registry, visitor.identity, params["rid"])
        state["level"], state["reader"] = level, self.visitors.reader(visitor, level)
        self.visitors.allow(visitor, getattr(route, "needs", Needs.OWN), scope["method"], level)
        if access is Access.CLOSED and registry.closed.find(visitor.identity.id, params["sid"]) is None:
            raise _no_session(registry, visitor.identity, params["sid"])
        if access is Access.RECORDING:
            state["session"] = await (await shelf_of(scope["app"].state)).open(visitor.identity, state["recording"])
        state["upload"] = getattr(route, "upload", False)
        if route.path.endswith("/events") and headers.get("sec-fetch-site") not in {None, "same-origin", "none"}:
            raise Denied(403, "cross-site", "Another site may link to Parley, but not read from it.")


async def _recorded(registry: SessionRegistry, identity: Identity, rid: str) -> tuple[Recording, Level]:
    """The recording that a path names, for whoever may know of it, and what they have of it."""
    await registry.store.loaded()
    row = registry.store.recordings.anybodys(rid)
    if row is None or row.state == "recording":  # another replica of a team may have it, or have ended it
        await registry.store.recordings.refresh(identity.id if row is None else row.owner)
        row = registry.store.recordings.anybodys(rid)
    level: Level = "" if row is None else registry.level(identity, row.owner, rid)
    if row is None or not level:
        raise unknown("There is no such recording. It may have been deleted.")
    return row, level


async def shelf_of(state: State) -> Shelf:
    """Where recordings are opened: made, and imported, when somebody opens the first one."""
    made = await anyio.to_thread.run_sync(import_module, "app.recordings.shelf")
    if state.shelf is None:
        state.shelf = made.Shelf(state.registry)
    shelf: Shelf = state.shelf
    return shelf


def _no_session(registry: SessionRegistry, identity: Identity, sid: str) -> Denied:
    """There is none, or no longer. `run` tells a page whether it is from before a restart."""
    detail: dict[str, Any] = {"run": registry.run}
    closed = registry.closed.find(identity.id, sid)
    if closed is not None:
        detail |= {"reopen": f"/s/{sid}/reopen", "reopen_seconds": round(registry.closed.left(closed), 1)}
        return Denied(404, "unknown", "This session was closed a moment ago.", detail=detail)
    words = "There is no such session. It may have been closed, or Parley was restarted."
    if (idled := registry.idled.find(identity.id, sid)) is not None:
        words = f"Nobody used this session for {idled.minutes:g} minutes, so it was closed. Connect again to go on."
    return Denied(404, "unknown", words, detail=detail)


def _with_cookie(send: Send, cookie: str) -> Send:
    """Put a cookie with a new date onto the answer, unless that takes it away."""
    if not cookie:
        return send

    async def renewing(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if "set-cookie" not in headers:
                headers.append("set-cookie", cookie)
        await send(message)

    return renewing


class BodyLimit:
    """No body above the limit, counted while it arrives: a length that lies does not help (S36)."""

    def __init__(self, app: ASGIApp, most: int, most_upload: int) -> None:
        self.app = app
        self.usual, self.most_upload = most, most_upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = scope["state"].get("most_bytes") or (self.most_upload if scope["state"].get("upload") else self.usual)
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or len(declared) > 12 or int(declared) > most:
            await refuse(scope, receive, send, _too_large(most))
            return
        arrived = 0

        async def counted() -> Message:
            nonlocal arrived
            message = await receive()
            if message["type"] == "http.request":
                arrived += len(message.get("body", b""))
                if arrived > most:
                    raise _too_large(most)
            return message

        await self.app(scope, counted, send)


def _too_large(most: int) -> Denied:
    return Denied(413, "too-large", f"That is more than the {most:,} bytes that Parley takes at once.")


def host_name(authority: str) -> str | None:
    """The name in a Host header; None when it is not a plain name with a port."""
    match = _AUTHORITY.fullmatch(authority.lower())
    return None if match is None else match["name"]


def loopback_names(bound_to: str) -> list[str]:
    """The names under which we may be called."""
    names = ["127.0.0.1", "localhost", "[::1]"]
    if is_loopback(bound_to) and bound_to not in names and ":" not in bound_to:
        names.append(bound_to)
    return names


def _find(routes: Sequence[BaseRoute], scope: Scope) -> tuple[Route | None, dict[str, str]]:
    """The route that the router will take: a full match, else the first one that knows the path but not the method."""
    partial: tuple[Route | None, dict[str, str]] = None, {}
    for route in routes:
        match, child = route.matches(scope)
        if match is Match.FULL:
            return route if isinstance(route, Route) else None, child.get("path_params", {})
        if match is Match.PARTIAL and partial[0] is None and isinstance(route, Route):
            partial = route, child.get("path_params", {})
    return partial
