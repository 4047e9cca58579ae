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
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.core.links import is_loopback
from app.web.door.denied import Denied, unknown
from app.web.door.visitors import Visitors, WrongAgain, presents_token

if TYPE_CHECKING:
    from app.sessions import SessionRegistry

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
    IDENTITY = "somebody we know"
    SESSION = "the owner of the session in the path; for everybody else it does not exist"


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
    ) -> None:
        if ("{sid}" in path) is not (access is Access.SESSION):
            raise ValueError(f"{path}: a path names a session exactly when its access level is SESSION")
        super().__init__(path, endpoint, methods=[method], name=name)
        self.access = access


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

        response = await answer(Request(scope, receive), fault)
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

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self.app = app
        self.hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sent = Headers(scope=scope).getlist("host")
        if len(sent) != 1 or host_name(sent[0]) not in self.hosts:
            await PlainTextResponse("Parley answers to its loopback address only.\n", 400)(scope, receive, send)
            return
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            response = PlainTextResponse("Only GET and POST exist here.\n", 405, {"allow": "GET, HEAD, POST"})
            await response(scope, receive, send)
            return
        await self.app(scope, receive, send)


class OriginCheck:
    """A request that changes something comes from our own page or from a script with a token (S03-S06).

    Reading is open to links from elsewhere, and to nothing else from elsewhere: not to scripts, images or streams of
    another site, nor of another port, for which the browser would send a SameSite cookie along.
    """

    def __init__(self, app: ASGIApp, visitors: Visitors) -> None:
        self.app = app
        self.visitors = visitors

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
        ours = f"http://{headers['host'].lower()}"
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
                with registry.attention.waiting("" if session is None else session.id):
                    await self.app(scope, receive, send)
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
        headers = Headers(scope=scope)
        visitor = self.visitors.recognise(headers, scope.get("root_path", ""))
        state["identity"], state["browser"] = visitor.identity, visitor.browser
        if route is None or access is None:
            raise unknown()
        if access is Access.SESSION:
            registry: SessionRegistry = scope["app"].state.registry
            session = registry.find(visitor.identity, params["sid"])
            if session is None:
                raise unknown("There is no such session. It may have been closed, or Parley was started anew.")
            session.touch()
            state["session"] = session
        if route.path.endswith("/events") and headers.get("sec-fetch-site") not in {None, "same-origin", "none"}:
            raise Denied(403, "cross-site", "Another site may link to Parley, but not read from it.")


class BodyLimit:
    """No body above the limit, counted while it arrives: a length that lies does not help (S36)."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app = app
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or len(declared) > 12 or int(declared) > self.most:
            await refuse(scope, receive, send, self._too_large())
            return
        arrived = 0

        async def counted() -> Message:
            nonlocal arrived
            message = await receive()
            if message["type"] == "http.request":
                arrived += len(message.get("body", b""))
                if arrived > self.most:
                    raise self._too_large()
            return message

        await self.app(scope, counted, send)

    def _too_large(self) -> Denied:
        return Denied(413, "too-large", f"That is more than the {self.most:,} bytes that Parley takes at once.")


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
