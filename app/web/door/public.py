"""What anybody may ask for: the way in, a sign of life, and the files of the page itself. No secret, no version (S08).

Loaded before the port is open, so it imports little.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from app import bounds
from app.web.door.files import TYPES, PackedFiles
from app.web.door.guard import Access, GuardedRoute
from app.web.door.visitors import own_path


def routes() -> list[GuardedRoute]:
    """What anybody who can open a socket may reach, and nothing else (S08)."""
    handlers: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/login": login,
        "/healthz": healthz,
        "/static/{path:path}": static,
        "/favicon.ico": favicon,
        "/oauth/callback": oauth_callback,
    }
    return [GuardedRoute(path, handler, access=Access.PUBLIC, method="GET") for path, handler in handlers.items()]


async def login(request: Request) -> Response:
    """The launch code becomes a cookie, and leaves the address (S11), which leads below the root of browsers (H01)."""
    visitors, code = request.app.state.visitors, request.query_params.get("code", "")
    goal = visitors.root + own_path(request.query_params.get("next", "/"))
    if request.method == "HEAD":
        return Response()  # somebody looks before they go: that must not use up the code
    if visitors.came_in_by(code, request.headers):
        return _onward(request, goal)  # the address once more, or fetched ahead of the click: they are in already
    await request.app.state.loaded.wait()
    async with visitors.remembered.alone():
        cookie, mark = visitors.login(code)
    response = _onward(request, goal)
    visitors.give(response, cookie, mark)
    return response


def _onward(request: Request, goal: str) -> Response:
    if request.headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
        # Somebody clicked the address on a page of another site. A browser would not send our SameSite cookie along a
        # redirect that began there; from a page of ours it does.
        return PlainTextResponse("You are in. One moment …\n", headers={"refresh": f"0; url={goal}"})
    return RedirectResponse(goal, 303)


_CAME_BACK = "Parley has the answer. You can close this window.\n"
_NOT_KNOWN = (
    "Parley does not wait for this answer: it was used before, came after more than ten minutes, or belongs to a "
    "Parley that has ended. Begin the sign-in again in Parley.\n"
)


async def oauth_callback(request: Request) -> Response:
    """Where an authorization server sends a browser back to. Whose sign-in it answers is said by its `state` alone,
    once and within ten minutes (S19); the page has nothing of it, and the session goes on in its tabs."""
    return await came_back(request, None)


async def came_back(request: Request, owner: str | None) -> Response:
    """The same where people are told apart: an answer counts for the sign-in of whoever brings it."""
    if request.method == "HEAD":
        return Response()  # that must not use up the answer
    await request.app.state.loaded.wait()
    from app.core.errors import ParleyError  # by now it is loaded

    address = str(request.url)
    waits = request.app.state.registry.callbacks.get(request.query_params.get("state", ""))
    if waits is None or len(address) > bounds.CALLBACK_URL or owner not in (None, waits.owner):
        return PlainTextResponse(_NOT_KNOWN, 400)
    try:
        waits.callback(address)
    except ParleyError:
        return PlainTextResponse(_NOT_KNOWN, 400)
    return PlainTextResponse(_CAME_BACK)


async def healthz(request: Request) -> Response:
    """Answers as soon as the port is open; `ready` says that connections can be made."""
    state = request.app.state
    return JSONResponse({"ready": state.loaded.is_set() and state.registry.ready})


async def static(request: Request) -> Response:
    """A file of the page itself. With `?v=`, or in `js-…/`, its address changes with its content, so it may be kept for
    good, and a script or a style comes packed."""
    path: str = request.path_params["path"]
    folder, _, name = path.partition("/")
    is_module = folder.startswith("js-")
    lasts = is_module or "v" in request.query_params
    if is_module:
        path = f"js/{name}"
    if lasts and path.endswith(tuple(TYPES)):
        response = await _packed_files().get_response(path, request.scope)
        request.state.is_part_of_a_page = True
    else:
        response = await _files().get_response(path, request.scope)
    kept = lasts and response.status_code in {200, 206, 304}
    response.headers["cache-control"] = "public, max-age=31536000, immutable" if kept else "no-cache"
    return response


async def favicon(request: Request) -> Response:
    return await _files().get_response("favicon.svg", request.scope)


@cache
def _files() -> StaticFiles:
    return StaticFiles(directory=_directory())


@cache
def _packed_files() -> PackedFiles:
    return PackedFiles(directory=_directory())


def _directory() -> Path:
    package = Path(__file__).parents[2]
    inside = package / "static"
    return inside if inside.is_dir() else package.parent / "static"
