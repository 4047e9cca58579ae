"""A call as something to take along: the address that gives it as JSON, as a shell script or as a program."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response

from app.core.calls import Call
from app.core.errors import Conflict
from app.core.lane import apart
from app.core.targets import HttpTarget
from app.export.snippets import Kind, Wire, as_curl, as_json, as_python
from app.sessions import Workspace
from app.web.door.denied import invalid
from app.web.kit.lookup import call_of


def wire_of(session: Workspace, call: Call) -> Wire:
    """How a call travelled, as far as this session still knows."""
    target = session.target
    if target is None:
        raise Conflict("This session has no server to call.")
    info = session.info
    if isinstance(target, HttpTarget) and info.moved_to is not None:
        target = target.at(info.moved_to)
    modern = info.era == "modern"
    stamped, headers = None, tuple[tuple[str, str], ...]()
    seq = call.legs[0].request_seq if call.legs else None
    if modern and seq is not None:
        raw, exchange = session.messages.raw(seq), session.messages.exchange(seq)
        value = json.loads(raw) if raw is not None else None
        stamped = value.get("params") if isinstance(value, dict) else None
        if exchange is not None:
            headers = tuple((name, text) for name, text in exchange.request_headers if name.lower().startswith("mcp-"))
    fallback = target.transport if isinstance(target, HttpTarget) else "stdio"
    version = info.protocol_version or "2025-11-25"
    return Wire(target, info.transport or fallback, version, modern, stamped, headers)


def made(session: Workspace, call: Call, kind: Kind) -> str:
    """The snippet. Raises Conflict when this call cannot be told so."""
    if kind == "json":
        return as_json(call)
    return as_curl(call, wire_of(session, call)) if kind == "curl" else as_python(call, wire_of(session, call))


async def snippet(request: Request) -> Response:
    """A call as JSON, as a shell script on curl, or as a Python program, by `as`."""
    session, call = call_of(request)
    kinds: dict[str, Kind] = {"json": "json", "curl": "curl", "python": "python"}
    kind = kinds.get(request.query_params.get("as", "json"))
    if kind is None:
        raise invalid({"/as": ["One of json, curl and python."]})
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    text = await apart(made, session, call, kind)  # what was sent may be large, and is read again
    return Response(text.encode(errors="replace"), headers=headers, media_type="text/plain")
