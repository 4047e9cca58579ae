"""Recording a session: on and off, by the button of every page or by a script; and what the button says."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from app import bounds
from app.core.errors import NotAllowed
from app.core.strict import Closed
from app.sessions import SessionRegistry, Workspace
from app.web.kit import request_bodies
from app.web.kit.request_bodies import Body
from app.web.kit.responses import done
from app.web.session.recording import record_json

if TYPE_CHECKING:
    from app.recordings.recorders import Recorders


class MaskBody(Closed):
    """What is masked besides what is found to be a secret: names of members, and JSON pointers, `*` for any place."""

    names: list[str] = Field(default_factory=list)
    pointers: list[str] = Field(default_factory=list)


class RecordBody(Closed):
    on: bool
    mask: MaskBody = MaskBody()


def _of_form(form: Body) -> dict[str, Any]:
    return {"on": bool(form.text("on"))}


async def recorders_of(app: Starlette) -> Recorders:
    """Who records: imported, and made, by the first that does."""
    state = app.state
    if getattr(state, "recorders", None) is None:
        made = await anyio.to_thread.run_sync(import_module, "app.recordings.recorders")
        if getattr(state, "recorders", None) is None:
            state.recorders = made.Recorders(state.registry)
    recorders: Recorders = state.recorders
    return recorders


async def record_always(app: Starlette) -> None:
    """Record every session from its first connection on."""
    recorders = await recorders_of(app)
    registry: SessionRegistry = app.state.registry
    registry.when_connecting.append(recorders.connects)


async def record(request: Request) -> Response:
    """Record this session from now on, or end that. To ask for what is so already changes nothing."""
    session: Workspace = request.state.session
    body = await request_bodies.read(request)
    recorders = await recorders_of(request.app)
    if body.is_form and body.text("seen"):
        if session.recorder is not None and not session.recorder.live:
            session.recorder = None
            session.changed("recording.changed", "recording")
        return await done(request, f"/s/{session.id}", lambda: record_json(session))
    wanted = body.read(RecordBody, _of_form)
    if wanted.on:
        recorder = recorders.live(session)
        if recorder is None:
            from app.recordings.recorders import wanted_of

            recorder = recorders.start(session, wanted_of(wanted.mask.names, wanted.mask.pointers))
        # One that began by itself may have only just begun: whoever asked finds it in the list after the answer.
        with anyio.move_on_after(bounds.RECORDING_END_SECONDS):
            await recorder.begun.wait()
        if recorder.trouble and not body.is_form:
            raise NotAllowed(recorder.trouble)
    elif recorders.live(session) is not None:
        await recorders.stop(session)
    return await done(request, f"/s/{session.id}", lambda: record_json(session))
