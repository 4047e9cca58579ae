"""The list of one's recordings: what each is, the search over all of them, and how a file becomes one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from app.sessions import Identity, SessionRegistry
from app.web.door.denied import Denied, invalid
from app.web.door.guard import shelf_of
from app.web.kit.responses import back, show
from app.web.kit.templates import Context
from app.web.recordings.kept import limits_json, recording_json
from app.web.recordings.rows import Row, made

if TYPE_CHECKING:
    from app.recordings.search import Hit, Wanted
    from app.store.recordings import Recording


@dataclass(slots=True)
class RecordingsPage(Context):
    """One's recordings, or those in which something was found."""

    template: ClassVar[str] = "recorded/list.html"

    rows: list[Row]
    total: int
    q: str
    tool: str
    method: str
    finding: str
    limits: dict[str, Any]
    fault: str = ""


async def recordings(request: Request) -> Response:
    """One's recordings; with `q`, `tool`, `method` or `finding` those that have it, and where."""
    registry: SessionRegistry = request.app.state.registry
    identity: Identity = request.state.identity
    await registry.store.loaded()
    await registry.store.recordings.refresh(identity.id)
    query = {name: request.query_params.get(name, "").strip()[:200] for name in ("q", "tool", "method", "finding")}
    mine = registry.store.recordings.of(identity.id)
    hits = await _found(request, identity, mine, query) if any(query.values()) else None
    now = registry.wall()
    rows = [made(row, now) for row in mine] if hits is None else [made(hit.row, now, hit) for hit in hits]
    return await show(
        request,
        lambda: RecordingsPage(rows, len(mine), **query, limits=limits_json(registry, identity)),
        lambda: {
            "recordings": [_json(one, hits is not None) for one in rows],
            "limits": limits_json(registry, identity),
        },
    )


async def _found(request: Request, identity: Identity, mine: list[Recording], query: dict[str, str]) -> list[Hit]:
    from app.recordings.search import Wanted, search

    wanted: Wanted = Wanted(**query)
    return await search(await shelf_of(request.app.state), identity, mine, wanted)


def _json(one: Row, searched: bool) -> dict[str, Any]:
    said = recording_json(one.row)
    if not searched:
        return said
    at = f"/r/{one.row.id}"
    places = [{"kind": each.kind, "url": at + each.path, "text": each.text} for each in one.matches]
    return said | {"matches": places, "matching": one.count, "still_read": one.unread}


# ------------------------------------------------------------------------------------------------------- a file


async def upload(request: Request) -> Response:
    """A file becomes a recording: as the body of the request, or in a form. It is written down as it arrives."""
    from app.recordings.arriving import arrive

    registry: SessionRegistry = request.app.state.registry
    name = unquote(request.headers.get("x-file-name", ""))[:300]
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == "multipart/form-data":
            async with request.form(max_files=1, max_fields=10) as form:
                file = form.get("file")
                if not isinstance(file, UploadFile) or not file.filename:
                    raise invalid({"/file": ["Choose a file."]})
                row = await arrive(registry, request.state.identity, _read(file), file.filename)
        else:
            row = await arrive(registry, request.state.identity, request.stream(), name)
    except ClientDisconnect:
        raise Denied(400, "malformed", "The file did not arrive whole.") from None
    url = f"/r/{row.id}"
    return await back(request, url, lambda: {"rid": row.id, "url": url}, 201, {"location": url})


async def _read(file: UploadFile) -> AsyncIterator[bytes]:
    while block := await file.read(1024 * 1024):
        yield block
