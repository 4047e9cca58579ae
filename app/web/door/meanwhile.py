"""What changed while a request was on its way: whoever sent it may be let in no more, or the session not be theirs.

A request is judged when its head has arrived. Its body may come much later, and its answer later still; so both are
looked at again. Loaded before the port is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.types import Message, Receive, Scope, Send

from app.web.door.denied import Denied, unknown
from app.web.door.visitors import Visitor, Visitors

if TYPE_CHECKING:
    from app.sessions import SessionRegistry


def while_known(scope: Scope, registry: SessionRegistry, visitors: Visitors, receive: Receive) -> Receive:
    """Take no body of somebody who was signed out, switched off or demoted, or who has less of the session or recording
    now than when they were let through: nothing of it is done."""
    state = scope["state"]
    visitor: Visitor = state.pop("visitor")
    thing, level = state.get("recording") or state.get("session"), state["level"]

    async def heard() -> Message:
        message = await receive()
        if message["type"] == "http.request":
            if not visitors.still(visitor):
                raise Denied(401, "signed-out", "You were signed out while this was on its way. Nothing was done.")
            now = level if thing is None else registry.level(visitor.identity, thing.owner, thing.id)
            if not now:
                raise unknown()
            if now != level:
                raise Denied(403, "refused", "Your rights changed while this was on its way. Nothing was done.")
        return message

    return heard


def while_shared(scope: Scope, registry: SessionRegistry, send: Send) -> Send:
    """Say nothing of somebody else's session that is shared no longer when the answer is ready: who asked may have
    waited for it."""
    state = scope["state"]
    thing = state.get("recording") or state.get("session")
    if thing is None or state["level"] == "own":
        return send

    async def watched(message: Message) -> None:
        if message["type"] == "http.response.start" and not registry.level(state["identity"], thing.owner, thing.id):
            raise unknown()
        await send(message)

    return watched
