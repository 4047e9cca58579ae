"""The two addresses of signing in by OpenID Connect. Imported only where `[oidc]` is set."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.web.door.denied import Denied
from app.web.door.guard import Access, GuardedRoute
from app.web.team.oidc import NotVouched, Provider
from app.web.team.pages import come_in, house_of, visitors_of
from app.web.team.withdrawn import end_withdrawn

BEGUN: Final = "__Host-parley-oidc"
"""What a browser has to bring back: sealed, for ten minutes, and for the one that began the sign-in."""


def routes() -> list[GuardedRoute]:
    return [
        GuardedRoute("/login/oidc", begin, access=Access.PUBLIC, method="GET"),
        GuardedRoute("/login/oidc/callback", finish, access=Access.PUBLIC, method="GET"),
    ]


async def begin(request: Request) -> Response:
    """Send a browser to the provider."""
    visitors = visitors_of(request)
    visitors.slowed(request.headers)
    if request.method == "HEAD":
        return Response()
    try:
        address, sealed = await _provider(request).begin()
    except NotVouched as fault:
        raise _refused(request, fault, 503) from None
    response = RedirectResponse(address, 303)
    response.headers.append("set-cookie", f"{BEGUN}={sealed}; Secure; HttpOnly; SameSite=Lax; Path=/; Max-Age=600")
    return response


async def finish(request: Request) -> Response:
    """Whoever comes back from the provider: a login for this browser, or the sentence that says why not."""
    visitors, house = visitors_of(request), house_of(request)
    visitors.slowed(request.headers)
    if request.method == "HEAD":
        return Response()  # that must not use up the answer
    try:
        found = await _provider(request).finish(request.query_params, request.cookies.get(BEGUN, ""))
    except NotVouched as fault:
        raise _refused(request, fault, 401) from None
    person = await house.people.known_as("oidc", found.subject, found.name, found.role)
    if person.off is not None:
        house.note(person, "was refused", "is switched off", refused=True)
        raise Denied(403, "refused", "An admin has switched you off here.", headers={"set-cookie": _gone()})
    if found.decides and person.role != found.role:
        person = await house.people.decided(person, found.role)
        house.note(person, "changed a role", f"{person.name} is {person.role}, by the sign-in service")
        await end_withdrawn(request)
    response = await come_in(request, person, "by single sign-on")
    response.headers.append("set-cookie", _gone())
    return response


def _refused(request: Request, fault: NotVouched, status: int) -> Denied:
    denied = visitors_of(request).failed(request.headers, fault.message, what=fault.why)
    if status == 503 and denied.status == 401:
        denied = Denied(503, "not-ready", fault.message, headers={"retry-after": "15"})
    denied.headers["set-cookie"] = _gone()
    return denied


def _gone() -> str:
    return f"{BEGUN}=; Secure; HttpOnly; SameSite=Lax; Path=/; Max-Age=0"


def _provider(request: Request) -> Provider:
    found: Provider = request.app.state.provider
    return found
