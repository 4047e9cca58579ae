"""How a request is answered: a context as a page or as JSON, a deed as a redirect, nothing or JSON, a failure as the
page, part or JSON that explains it.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.core.lane import apart
from app.web.door.denied import Denied
from app.web.kit import html
from app.web.kit.errors import problem, signed_out, understood
from app.web.kit.request_bodies import is_json
from app.web.kit.templates import Context, fragment

log = logging.getLogger("parley.web")


def in_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value for a script."""
    return Response(json_bytes(value), status, headers, "application/json")


async def in_json_apart(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value for a script that may be large."""
    return Response(await json_bytes_apart(value), status, headers, "application/json")


async def show(
    request: Request, context: Context, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """What there is, for whoever asks."""
    if wants_json(request):
        return await in_json_apart(context.as_json(), status, headers)
    return await render(request, context, status, dict(headers or {}))


async def answer(request: Request, fault: Exception) -> Response:
    """What to say about a failure. Never a traceback, never a path of ours."""
    denied = understood(fault)
    if denied is None:
        log.error("%s %s broke", request.method, _route(request), exc_info=fault)
        denied = Denied(500, "broken", "Parley itself failed here. The terminal that runs it shows the reason.")
    if wants_json(request):
        error = {"kind": denied.kind, "message": denied.message, "fields": denied.fields, **denied.detail}
        return in_json({"error": error}, denied.status, denied.headers)
    session = getattr(request.state, "session", None)
    here = f"/s/{session.id}" if session is not None else ""
    context: Context = problem(denied.status, denied.kind, denied.message, denied.fields, session=here)
    if denied.status == 401:
        outside = request.scope.get("root_path", "") != request.app.state.visitors.root
        context = signed_out(denied.message, outside=outside)
    return await render(request, context, denied.status, denied.headers)


def _route(request: Request) -> str:
    """The pattern of the route, not the address: an address may hold ids that no log should."""
    return getattr(request.scope.get("route"), "path", "an unknown path")


def wants_json(request: Request) -> bool:
    """Whether the asker is a script: it says so, it sends JSON, or it came with a token and does not ask for HTML."""
    accept = request.headers.get("accept", "")
    if "application/json" in accept:
        return True
    if "text/html" in accept or "hx-request" in request.headers:
        return False
    return is_json(request) or request.headers.get("authorization", "")[:7].lower() == "bearer "


def json_bytes(value: Any) -> bytes:
    """JSON for a script: plain ASCII, so that nothing in it can break on the way; never NaN."""
    try:
        return _json(value).encode()
    except ValueError:
        return _json(_finite(value)).encode()


async def json_bytes_apart(value: Any) -> bytes:
    """The same; what is large is written in a thread, and so that everybody else can run meanwhile."""
    return json_bytes(value) if _weight(value, _LARGE) < _LARGE else await apart(_json_in_pieces, value)


_LARGE = 2_000
_PIECE = 500
"""Values that are written as JSON at once. C does it, and nobody else runs until it is done."""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _json_in_pieces(value: Any) -> bytes:
    out: list[str] = []
    try:
        _write_in_pieces(value, out)
    except ValueError:
        out.clear()
        _write_in_pieces(_finite(value), out)
    return "".join(out).encode()


def _write_in_pieces(value: Any, out: list[str]) -> None:
    """A container with much in it child by child, small neighbours together; all else at once."""
    if not isinstance(value, dict | list | tuple) or not value or _weight(value, _PIECE) < _PIECE:
        out.append(_json(value))
        return
    named = isinstance(value, dict)
    out.append("{" if named else "[")
    held: list[Any] = []
    room, first = _PIECE, True

    def written(text: str) -> None:
        nonlocal first
        out.append(text if first else "," + text)
        first = False

    def flush() -> None:
        nonlocal room
        if held:
            written(_json(dict(held) if named else held)[1:-1])
            held.clear()
        room = _PIECE

    for each in value.items() if isinstance(value, dict) else value:
        child = each[1] if named else each
        weight = _weight(child, _PIECE)
        if weight > room:
            flush()
        if weight < _PIECE:
            held.append(each)
            room -= weight
            continue
        written(f"{_json(each[0])}:" if named else "")
        _write_in_pieces(child, out)
    flush()
    out.append("}" if named else "]")


def _weight(value: Any, most: int) -> int:
    """How many values are in a value, itself counted, a long text as many; no more than `most` are looked at."""
    count, stack = 0, [value]
    while stack and count < most:
        node = stack.pop()
        count += 1
        if isinstance(node, str):
            count += len(node) >> 10
        elif isinstance(node, dict):
            stack += islice(node.values(), most)
        elif isinstance(node, list | tuple):
            stack += islice(node, most)
    return count


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


async def render(
    request: Request, context: Context, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """The context as JSON, as a part (htmx asked), or as a page."""
    extra = {"Vary": "Accept, HX-Request", "Cache-Control": "no-store", **(headers or {})}
    if wants_json(request):
        return Response(json_bytes(context.as_json()), status, extra, "application/json")
    wanted_part = request.headers.get("hx-request") == "true" and context.part is not None
    page = fragment(context.part if wanted_part and context.part else context.template, **context.values())
    return Response(html.page_bytes(page), status, extra, "text/html; charset=utf-8")


# ---------------------------------------------------------------------------------------------------------- answers


def go(request: Request, url: str) -> Response:
    """On to another page."""
    if "hx-request" in request.headers:
        return Response(headers={"hx-redirect": url})
    return RedirectResponse(url, 303)


def done(request: Request, url: str) -> Response:
    """It is done. A page with a stream hears of it there; one without goes to where it can be seen."""
    return Response(status_code=204) if "hx-request" in request.headers else RedirectResponse(url, 303)
