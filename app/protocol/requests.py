"""Our requests: what a caller wants of one, what waits for its reply, and the reply as it came."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from app.core.signal import Signal
from app.core.wire import RpcId, id_key, is_error
from app.protocol.links.base import LinkError, RequestLost

FATES = 2_000
"""Requests whose fate is remembered, for the finding beside what comes too late."""


@dataclass(slots=True, frozen=True)
class Reply:
    """The reply to one of our requests, as received."""

    seq: int
    raw: bytes
    value: dict[str, Any]
    unread: str | None = None
    """It has more in it than is read, and `value` is only its head; this says so."""

    @property
    def is_error(self) -> bool:
        """An error reply; a message with both members counts as one only when there is no result."""
        return is_error(self.value)


@dataclass(slots=True)
class Outgoing:
    """What the caller of a request wants besides method and params."""

    quiet: bool = False
    on_progress: Callable[[dict[str, Any], int], None] | None = None
    on_sent: Callable[[RpcId, int], None] | None = None
    fate: Callable[[], str] = lambda: "cancelled"
    """What became of a request whose caller gave up, for the finding beside a late reply."""
    headers: tuple[tuple[str, str], ...] = ()
    """What the request says of itself over HTTP."""
    stateless: bool = False
    """Its stream is all there is of it, and is not resumed: a request of 2026-07-28 (R6-01, R6-50)."""
    keeps_progress: Callable[[Reply], bool] = lambda _: False
    """Whether progress goes on after this reply, until `end_progress`: it made a task (R2-32)."""
    says_cancelled: bool = True
    """Whether the server is told of a caller that gave up; a task is cancelled in another way (R2-40)."""
    taken_back: bool = False
    """Its caller gave up before the server had it, so there is nothing to tell."""


NOTHING_MORE = Outgoing()


@dataclass(slots=True)
class Pending:
    """One of our requests that waits for its reply."""

    rpc_id: int
    method: str
    opts: Outgoing
    last_progress: float | None = None
    reply: Reply | None = None
    lost: LinkError | None = None
    """Why it gets no reply."""
    unread: RequestLost | None = None
    """What was meant to be its reply cannot be read; this is raised when no other comes."""
    done: Signal = field(default_factory=Signal)


def remember(known: OrderedDict[tuple[str, str], Any], key: tuple[str, str], value: str | None) -> None:
    """Keep this, and forget the oldest when there is too much of it."""
    known[key] = value
    if len(known) > FATES:
        known.popitem(last=False)


def progress_token(message: dict[str, Any], rpc_id: int) -> tuple[str, str]:
    """Put a progress token into a request: the caller's own, else its id (R5-23)."""
    meta = message.setdefault("params", {}).get("_meta")
    fields = dict(meta) if isinstance(meta, dict) else {}
    token = fields.setdefault("progressToken", rpc_id)
    message["params"]["_meta"] = fields
    return id_key(token)


def ended(token: tuple[str, str]) -> tuple[str, str]:
    """Where the end of a task is remembered by its progress token; its request was answered before."""
    return f"task of {token[0]}", token[1]
