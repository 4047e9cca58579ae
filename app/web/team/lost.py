"""A session that another replica holds, or held: what is shown of it here, and how it begins anew.

Nothing is ever done in its place: whoever would act on it is told that this is the wrong one (421). What is shown is
the recording, as far as it came, with status 410; a stream ends with `bye`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from app import team_bounds as bounds
from app.core.catalogue import PREFIX
from app.core.errors import NotAllowed
from app.core.targets import HttpTarget, StdioTarget
from app.core.times import wire_time
from app.core.wire import Message
from app.sessions import Identity, SessionRegistry, Workspace
from app.store.replicas import HeldSession, lost_now
from app.web.door.denied import Answered, Denied, unknown
from app.web.door.guard import shelf_of
from app.web.kit import format, request_bodies
from app.web.kit.responses import back, in_json, show_page, wants_json
from app.web.kit.templates import Context
from app.web.live.stream import encode
from app.web.log.row import glyph, title
from app.web.team import pages, picking
from app.web.team.replica import Keeper
from app.web.team.unfinished import opened


def keeper_of(request: Request) -> Keeper:
    found: Keeper = request.app.state.keeper
    return found


async def elsewhere(scope: Scope, identity: Identity, sid: str) -> None:
    """Raise what there is to say of a session that is not held here; nothing for one that nobody knows of."""
    keeper: Keeper = scope["app"].state.keeper
    owner = sid.partition("-")[0]
    theirs = owner != keeper.name and owner[:1] == "r" and owner[1:].isdecimal()
    if theirs and scope["method"] not in {"GET", "HEAD"}:  # whoever asks: its name alone says that it is not here
        words = f"This session belongs to {owner}, which does not answer. Nothing was done here."
        raise Denied(421, "elsewhere", words, detail={"replica": owner})
    held = await keeper.replicas.find(sid)
    if held is None:
        if keeper.degraded and theirs:
            raise Denied(503, "unavailable", _UNKNOWN.format(trouble=keeper.degraded), headers={"retry-after": "5"})
        return
    if held.owner != identity.id or keeper.replicas.is_mine(held):
        return
    if scope["method"] not in {"GET", "HEAD"}:  # of the process before this one
        raise Denied(421, "elsewhere", "This session ended with the Parley before this one. Nothing was done here.")
    if held.lost is None:  # the proxy could not reach it, and its lease is not over
        known = next((one for one in keeper.known if one.name == held.replica), None)
        held = lost_now(held, max(held.changed, held.changed if known is None else known.renewed))
    raise Answered(410, "lost", _WORDS.format(replica=held.replica), lambda request: _answer(request, held))


_WORDS = "The Parley that held this session, {replica}, does not answer any more."
_UNKNOWN = "It cannot be looked up which Parley holds this session: {trouble}"


async def _answer(request: Request, held: HeldSession) -> Response:
    if request.url.path.endswith("/events"):
        return Response(
            encode("lost", event="bye"), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
        )
    if wants_json(request):
        error = {"kind": "lost", "message": _WORDS.format(replica=held.replica), "fields": {}, **lost_json(held)}
        return await in_json(lambda: {"error": error}, 410)
    return await show_page(request, await _page(request, held), 410)


def lost_json(held: HeldSession) -> dict[str, Any]:
    """What is known of a lost session, for scripts."""
    return {
        "id": held.id,
        "label": held.label,
        "replica": held.replica,
        "state": held.state,
        "lost_at": None if held.lost is None else wire_time(held.lost),
        "open_asks": held.asks,
        "messages": held.messages,
        "recording": f"/r/{held.recording}" if held.recording else None,
        "reconnect": f"/lost/{held.id}/reconnect",
    }


# ------------------------------------------------------------------------------------------------------------ the page


@dataclass(slots=True)
class Lost(Context):
    """A session whose replica is gone: when, what it had, and Reconnect."""

    template: ClassVar[str] = "team/lost.html"

    held: HeldSession
    messages: list[tuple[Message, str, str]]
    """The last ones, each with its mark and its title."""
    more: int
    asks: list[tuple[str, str]]
    """Asks that waited: what was asked, and by which method."""
    recording: str
    days: float
    trouble: str
    needs: tuple[str, ...]
    goes_on: int
    """How many calls may go on after Reconnect."""


async def _page(request: Request, held: HeldSession) -> Lost:
    registry: SessionRegistry = request.app.state.registry
    found, trouble = await _history(request, held)
    rows = [] if found is None else list(found.messages.after(0, found.messages.count))[-bounds.LOST_ROWS :]
    waiting = [] if found is None else [ask for ask in found.inbox.asks.values() if not _answered(ask.state)]
    return Lost(
        held=held,
        messages=[(one, "→" if glyph(one).startswith("o") else "←", title(one)) for one in reversed(rows)],
        more=0 if found is None else max(0, found.messages.count - len(rows)),
        asks=[(format.gist(ask.message), ask.method) for ask in waiting[: bounds.LOST_ROWS]],
        recording=held.recording if found is not None else "",
        days=registry.settings.limits.recording_days,
        trouble=trouble,
        needs=held.left_out,
        goes_on=sum(not one.secret for one in opened(pages.house_of(request).sealed, held).offers),
    )


def _answered(state: str) -> bool:
    return state in {"answered", "withdrawn", "expired"}


async def _history(request: Request, held: HeldSession) -> tuple[Workspace | None, str]:
    """What was recorded of it, and why there is nothing when there is not."""
    registry, identity = request.app.state.registry, request.state.identity
    if not held.recording:
        return None, "It was not recorded."
    await registry.store.recordings.refresh(held.owner)
    row = registry.store.recordings.find(held.owner, held.recording)
    if row is None:
        return None, "Its recording was deleted, or cannot be read at the moment."
    try:
        return await (await shelf_of(request.app.state)).open(identity, row, whole=True), ""
    except NotAllowed as no:
        return None, no.message


# ---------------------------------------------------------------------------------------------------------------- acts


async def _mine(request: Request) -> HeldSession:
    held = await keeper_of(request).replicas.find(request.path_params["lost"])
    if held is None or held.owner != request.state.identity.id:
        raise unknown("There is no such session. It may have been closed.")
    return held


async def reconnect(request: Request) -> Response:
    """Open a session with the same server here. What was left out of the store has to be typed again first."""
    await request_bodies.nothing(request)
    held = await _mine(request)
    aim = held.aim()
    if aim is None:
        raise NotAllowed("Where this session led cannot be read any more. Pick the server again.")
    target, options = aim
    if held.left_out and not wants_json(request):
        if isinstance(target, StdioTarget) and target.command.startswith(PREFIX):
            entry = target.command.removeprefix(PREFIX)
            return RedirectResponse(f"/?entry={entry}&lost={held.id}#entry-{entry}", 303)
        url = target.url if isinstance(target, HttpTarget) else ""
        return await show_page(request, pages.to_fill(request, url, held.left_out, held.id))
    return await picking.begin(request, target, options, held.id)


async def close(request: Request) -> Response:
    """Take a lost session off the list; its recording stays."""
    await request_bodies.nothing(request)
    held = await _mine(request)
    await keeper_of(request).replicas.forget(held.id)
    return await back(request, "/", lambda: {"closed": held.id})
