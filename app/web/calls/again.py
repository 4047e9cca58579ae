"""What we sent, once more: the same request as a call of its own, or in the composer to be changed first.

Parley's own additions (the id, the progress token, the envelope of the revision) are not repeated: the connection makes
them anew. A reply belongs to one question, and a handshake to one connection: those are not sent again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from app.core.calls import Call
from app.core.errors import Conflict
from app.core.json import text as jsontext
from app.core.rules import stateless
from app.core.wire import Message
from app.sessions import Workspace
from app.web.door.denied import unknown

GONE: Final = "There is no such message. The oldest ones leave the log first."
_ONCE: Final = {
    "initialize": "Belongs to the handshake. Reconnect to send it again.",
    "notifications/initialized": "Belongs to the handshake. Reconnect to send it again.",
    "notifications/cancelled": "Cancels one request that is over.",
    "notifications/progress": "Reports on one request that is over.",
    "subscriptions/listen": "Opens a stream. Use the page Subscriptions.",
}
_OURS: Final = frozenset(
    {
        "progressToken",
        stateless.META_VERSION,
        stateless.META_CLIENT,
        stateless.META_CAPABILITIES,
        stateless.META_LOG_LEVEL,
    }
)


@dataclass(slots=True, frozen=True)
class Sent:
    """What a message of ours asked for."""

    seq: int
    number: int
    method: str
    params: dict[str, Any] | None
    notification: bool


def why_not(session: Workspace, message: Message) -> str:
    """Why a message of ours cannot be sent again; "" when it can."""
    if message.kind not in ("request", "notification") or message.method is None:
        return "A reply is sent once."
    if session.messages.raw(message.seq) is None:
        return "Its text is no longer kept."
    return _ONCE.get(message.method, "")


def call_of(session: Workspace, seq: int) -> Call | None:
    """The call that a message belongs to, when people see it."""
    return next(
        (
            call
            for call in session.calls.newest
            if not call.quiet and any(seq in (leg.request_seq, leg.reply_seq) for leg in call.legs)
        ),
        None,
    )


def sent(session: Workspace, seq: int) -> Sent:
    """What is to be sent again. Denied when there is no such message, a conflict when it cannot be."""
    message = session.messages.get(seq)
    if message is None:
        raise unknown(GONE)
    if message.direction != "out":
        raise Conflict("The server sent this message. Only what Parley sent can be sent again.")
    if reason := why_not(session, message):
        raise Conflict(f"This message cannot be sent again. {reason}")
    call = call_of(session, seq)
    if call is not None and call.legs and call.legs[0].request_seq == seq:
        params = call.params
    else:
        value = jsontext.parse(session.messages.raw(seq) or b"").value
        params = _without_ours(value.get("params") if isinstance(value, dict) else None)
    return Sent(seq, message.number, message.method or "", params, message.kind == "notification")


def _without_ours(params: Any) -> dict[str, Any] | None:
    """The parameters without what the connection adds to every request."""
    if not isinstance(params, dict):
        return None
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return params
    kept = {key: value for key, value in meta.items() if key not in _OURS}
    rest = {key: value for key, value in params.items() if key != "_meta"}
    return rest | ({"_meta": kept} if kept else {}) or None
