"""A recording by its address: where it opens, what it is, how a live session begins beside it, and that all else is
over."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.core.errors import Conflict
from app.core.targets import DemoTarget, HttpTarget, StdioTarget
from app.sessions import SessionRegistry
from app.web.connect.form import connect_fields
from app.web.connect.home import home_page
from app.web.connect.routes import open_with
from app.web.kit.frame import Shell, shell
from app.web.kit.request_bodies import Body, nothing
from app.web.kit.responses import in_json, show, show_page, wants_json
from app.web.kit.templates import Context
from app.web.live.page import page
from app.web.recorded.tape import Tape, tape
from app.web.recordings.kept import recording_json
from app.web.session.overview import overview, overview_json

if TYPE_CHECKING:
    from app.recordings.recording import RecordedSession

_OVER = "This is a recording: nothing can be done in it. Connect to the same server for that."


async def opened(request: Request) -> Response:
    """The first page of a recording; one that is a moment opens at its place, for whoever comes from elsewhere."""
    session: RecordedSession = request.state.session
    if wants_json(request):
        return await in_json(lambda: overview_json(session) | {"recording": opened_json(session)})
    where = opens_at(session)
    if where and session.base not in urlsplit(request.headers.get("referer", "")).path:
        return RedirectResponse(where, 303)
    return await overview.handler(request)


def opens_at(session: RecordedSession) -> str:
    """Where a recording opens; "" for its first page."""
    place = None if session.header is None else session.header.opens_at
    if place is None:
        return ""
    folder = {"message": "log", "call": "calls", "ask": "asks"}[place.kind]
    known = {
        "message": place.id.isdecimal() and len(place.id) < 16 and session.messages.get(int(place.id)) is not None,
        "call": place.id in session.calls,
        "ask": place.id in session.inbox.asks,
    }[place.kind]
    return f"{session.base}/{folder}/{place.id}" if known else ""


def opened_json(session: RecordedSession) -> dict[str, Any]:
    """What a recording says of itself, and how far it is read."""
    said, progress = tape(session), session.reader.progress
    return recording_json(session.row) | {
        "note": said.note or None,
        "opens_at": opens_at(session) or None,
        "read": {"done": progress.done, "bytes": progress.read, "of": progress.size, "skipped": progress.skipped},
        "remarks": said.troubles,
    }


# ---------------------------------------------------------------------------------------------------------- details


@dataclass(slots=True)
class About(Context):
    """What a recording is, with what people may say of it."""

    template: ClassVar[str] = "recorded/about.html"

    shell: Shell
    tape: Tape


@page("recording")
async def about(request: Request) -> Response:
    """Title, notes, tags, what was masked, and how to get rid of it."""
    session: RecordedSession = request.state.session
    return await show(
        request,
        lambda: About(shell(session, "recording", "Details"), tape(session)),
        lambda: opened_json(session),
    )


async def connect(request: Request) -> Response:
    """A live session beside the recording, of the same server. One that is still among mine begins as from the list of
    servers, which asks for its secrets; of another the form is filled in, and nothing starts before one says so."""
    session: RecordedSession = request.state.session
    await nothing(request)
    registry: SessionRegistry = request.app.state.registry
    target, identity = session.target, request.state.identity
    if target is None:
        raise Conflict("This recording does not say which server it is of.")
    if isinstance(target, DemoTarget):
        era = {"option.era": "modern"} if session.info.era == "modern" else {}
        return await open_with(request, Body({"transport": "demo", **era}, is_form=True))
    known = next((one for one in registry.store.of(identity.id) if one.key == session.target_key), None)
    if known is not None:
        return await open_with(request, Body({"recent": known.id}, is_form=True))
    if wants_json(request):
        raise Conflict("This server is not among yours. Open a session with its target: POST /s.")
    fields = connect_fields(registry, identity, None, typed_of(target))
    return await show_page(request, home_page(registry, identity, fields))


def typed_of(target: StdioTarget | HttpTarget) -> dict[str, Any]:
    """A target as somebody would have typed it into the form; its secrets are to be typed again."""
    if isinstance(target, HttpTarget):
        names = list(target.headers)
        secret = ["1" if name in target.secret_names else "" for name in names]
        rows = {"header_name": names, "header_value": [target.headers[name] for name in names], "header_secret": secret}
        return {"transport": target.transport, "url": target.url, **rows}
    names = list(target.env)
    return {
        "transport": "stdio",
        "command_line": shlex.join([target.command, *target.args]),
        "cwd": target.cwd or "",
        "env_name": names,
        "env_value": [target.env[name] for name in names],
        "env_secret": ["1" if name in target.secret_names else "" for name in names],
    }


async def over(request: Request) -> Response:
    """Whatever would act on a session that is live."""
    raise Conflict(_OVER)
