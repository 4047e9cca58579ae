"""Recordings that are there: the list for scripts, one as a file, another title, notes and tags, and *Delete*."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app import bounds
from app.core.errors import Conflict, Gone, NotAllowed
from app.core.strict import Strict
from app.core.times import moment, wire_time
from app.sessions import Identity, SessionRegistry
from app.store.bodies import Body, Unwritable
from app.store.recordings import Recording, Recordings
from app.web.door.denied import unknown
from app.web.kit import request_bodies
from app.web.kit.responses import go
from app.web.recordings.record import recorders_of

_GZIP: Final = 31
"""The window and the frame of a gzip file."""
_NAME: Final = 60


def recording_json(one: Recording) -> dict[str, Any]:
    """A recording for scripts."""
    return {
        "rid": one.id,
        "url": f"/r/{one.id}",
        "title": one.title,
        "state": one.state,
        "origin": one.origin,
        "target": one.label,
        "revision": one.revision or None,
        "began_at": wire_time(one.began),
        "ended_at": None if one.ended is None else wire_time(one.ended),
        "seconds": one.seconds,
        "messages": one.messages,
        "calls": one.calls,
        "asks": one.asks,
        "findings": one.findings,
        "size": one.size,
        "notes": one.notes,
        "tags": list(one.tags),
        "masked": [dict(each) for each in one.masked],
        "words": one.words or None,
    }


def limits_json(registry: SessionRegistry, by: Identity) -> dict[str, Any]:
    """What recordings may take, and take; where they are; and what was deleted at the start because of its age. In a
    team each has their own: how much others keep, and where the machine keeps it, is not theirs to know."""
    limits, store, alone = registry.settings.limits, registry.store.recordings, registry.settings.mode == "local"
    return {
        "bytes": store.bytes_total if alone else sum(one.size for one in store.of(by.id)),
        "recording_bytes": limits.recording_bytes,
        "recordings_bytes": min(limits.recordings_bytes, limits.recordings_bytes_per_identity),
        "recording_days": limits.recording_days,
        "deleted_by_age": list(store.too_old) if alone else [],
        "where": store.bodies.where if store.possible and alone else None,
    }


def recording_of(request: Request) -> Recording:
    """The recording that the path names, which whoever asks may know of, while it is there."""
    registry: SessionRegistry = request.app.state.registry
    found = registry.store.recordings.anybodys(request.state.recording.id)
    if found is None:
        raise unknown("There is no such recording. It may have been deleted.")
    return found


class ChangeBody(Strict):
    title: str | None = None
    notes: str | None = None
    tags: list[str] | None = None


def _of_form(form: request_bodies.Body) -> dict[str, Any]:
    texts = {name: form.text(name) for name in ("title", "notes") if name in form.data}
    return texts | ({"tags": form.text("tags").split(",")} if "tags" in form.data else {})


async def change(request: Request) -> Response:
    """Another title, notes, tags."""
    registry: SessionRegistry = request.app.state.registry
    wanted = (await request_bodies.read(request)).read(ChangeBody, _of_form)
    changed = await registry.store.recordings.change(
        recording_of(request), title=wanted.title, notes=wanted.notes, tags=wanted.tags
    )
    return await go(request, f"/r/{changed.id}", lambda: recording_json(changed))


async def delete(request: Request) -> Response:
    """Delete a recording: nothing is left of it."""
    registry: SessionRegistry = request.app.state.registry
    found = recording_of(request)
    if (await recorders_of(request.app)).by_id(found.id) is not None:
        raise Conflict("This is being recorded right now. Stop that first.")
    await registry.store.recordings.delete(found)
    return await go(request, "/recordings", lambda: {"rid": found.id, "deleted": True})


async def file(request: Request) -> Response:
    """The file, as it is; with `gzip` in the query, compressed."""
    registry: SessionRegistry = request.app.state.registry
    found, store = recording_of(request), registry.store.recordings
    try:
        body: Body = await store.in_thread(store.bodies.open, found.id)
    except KeyError:
        raise Gone("The bytes of this recording are gone. Delete it.") from None
    except Unwritable as no:
        raise NotAllowed(f"It cannot be read: {no}.") from None
    small = "gzip" in request.query_params
    name = f"{_plain(found.title)}-{moment(found.began):%Y-%m-%d-%H%M}.jsonl{'.gz' if small else ''}"
    return StreamingResponse(
        _compressed(store, body) if small else _blocks(store, body),
        media_type="application/gzip" if small else "application/x-ndjson",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


def _plain(title: str) -> str:
    """A title as the name of a file: letters and digits that every system has."""
    made = "".join(char if char.isascii() and char.isalnum() else "-" for char in title[:_NAME])
    return "-".join(part for part in made.split("-") if part).lower() or "recording"


async def _blocks(store: Recordings, body: Body) -> AsyncIterator[bytes]:
    try:
        at, size = 0, await store.in_thread(lambda: body.size)
        while at < size:  # what is added meanwhile belongs to the next who asks
            block = await store.in_thread(body.read, at, min(bounds.RECORDING_CHUNK, size - at))
            if not block:
                break
            at += len(block)
            yield block
    finally:
        body.close()


async def _compressed(store: Recordings, body: Body) -> AsyncIterator[bytes]:
    made = zlib.compressobj(wbits=_GZIP)
    async for block in _blocks(store, body):
        if part := await store.in_thread(made.compress, block):
            yield part
    yield made.flush()
