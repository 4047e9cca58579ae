"""What was masked in a recording, and masking more of it: first what would be masked, then for good."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.core.strict import Closed
from app.sessions import SessionRegistry
from app.store.recordings import Recording
from app.web.kit import request_bodies
from app.web.kit.request_bodies import Body
from app.web.kit.responses import show, wants_json
from app.web.kit.templates import Context
from app.web.recordings.kept import recording_of
from app.web.recordings.record import recorders_of


class MasksBody(Closed):
    names: list[str] = Field(default_factory=list)
    pointers: list[str] = Field(default_factory=list)
    save: bool = False
    """Mask what was found, for good; without it, it is only shown."""


@dataclass(slots=True)
class MasksPage(Context):
    """What was masked, what would be, and the two lists of a person."""

    template: ClassVar[str] = "recordings/masks.html"

    recording: Recording
    names: list[str] = field(default_factory=list)
    pointers: list[str] = field(default_factory=list)
    matches: tuple[dict[str, Any], ...] | None = None
    """What would be masked; None before somebody looked."""
    saved: bool = False
    errors: dict[str, list[str]] = field(default_factory=dict)


def _of_form(form: Body) -> dict[str, Any]:
    lines = {name: [one for one in form.text(name).splitlines() if one.strip()] for name in ("names", "pointers")}
    return {**lines, "save": bool(form.text("save"))}


async def masks(request: Request) -> Response:
    """What was masked in a recording."""
    found = recording_of(request)
    masked = [dict(one) for one in found.masked]
    return await show(request, lambda: MasksPage(found), lambda: {"rid": found.id, "masked": masked})


async def mask(request: Request) -> Response:
    """Look for more to mask, or mask it."""
    from app.core.errors import Invalid
    from app.recordings.recorders import wanted_of
    from app.recordings.remask import remask

    registry: SessionRegistry = request.app.state.registry
    found, body = recording_of(request), await request_bodies.read(request)
    given = body.read(MasksBody, _of_form)
    scribe = (await recorders_of(request.app)).scribe
    try:
        wanted = wanted_of(given.names, given.pointers)
        if not wanted.names and not wanted.pointers:
            raise Invalid("Say what to mask.", {"/names": ["Type a name, or a pointer below."]})
    except Invalid as no:
        if wants_json(request):
            raise
        errors = no.fields
        return await show(request, lambda: MasksPage(found, given.names, given.pointers, errors=errors), dict, 422)
    found, matches = await remask(registry.store.recordings, scribe, found, wanted, save=given.save)
    told = {"rid": found.id, "matches": [dict(one) for one in matches.masked], "count": matches.count}
    names, pointers = ([], []) if matches.saved else (given.names, given.pointers)
    return await show(
        request,
        lambda: MasksPage(found, names, pointers, matches.masked, matches.saved),
        lambda: {**told, "saved": matches.saved, "masked": [dict(one) for one in found.masked]},
    )
