"""Somebody comes back from the authorization server of an MCP server, to any replica: the one that waits for the answer
has its name at the beginning of `state`.

The redirect address that an authorization server knows is one for all, so whoever comes to another replica is sent on,
to an address that the proxy leads to that one: once, and never further. What an answer is worth is said there alone
(S19): the name is no secret, and whoever changes it finds nobody who waits.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from app.web.door.public import came_back

_GONE = (
    "{owner}, the Parley that waited for this answer, does not answer any more. Open the session again in Parley, and "
    "sign in there.\n"
)


async def oauth_callback(request: Request) -> Response:
    """Where the authorization server of an MCP server sends somebody back to. It answers their own sign-in alone:
    nobody is led to sign in for somebody else's session (S19)."""
    owner = _replica(request.query_params.get("state", "").partition("-")[0])
    mine = request.app.state.settings.owner_mark
    if not owner or not mine or f"{owner}-" == mine:
        return await came_back(request, request.state.identity.id)
    return RedirectResponse(f"/oauth/{owner}-callback?{request.url.query}", 303)


async def oauth_callback_of(request: Request) -> Response:
    """The same, at the replica that the proxy takes for the one that waits."""
    owner = request.path_params["owner"]
    if f"{owner}-" != request.app.state.settings.owner_mark:
        return PlainTextResponse(_GONE.format(owner=_replica(owner) or "That"), 410)
    return await came_back(request, request.state.identity.id)


def _replica(text: str) -> str:
    """The name of a replica, when it is one."""
    digits = text[1:]
    return text if text[:1] == "r" and digits.isascii() and digits.isdecimal() and len(digits) <= 4 else ""
