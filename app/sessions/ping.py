"""Pings that we send: by hand, or again and again, with the time that the answer took (R5-25).

Knows the session it serves; knows nothing of the web.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from app.core.errors import Conflict
from app.core.rules import stateless
from app.sessions.identity import PARLEY, Identity

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace

logger = logging.getLogger("parley.sessions")


@dataclass(slots=True, frozen=True)
class Ping:
    """One ping: when it left, how long its answer took, or why there was none."""

    at: float
    ms: float | None
    error: str = ""


class Pings:
    """The pings of one session."""

    def __init__(self, session: Workspace) -> None:
        self._session = session
        self.last: Ping | None = None
        self.sent = 0
        self.failed = 0
        self.every_ms: int | None = None
        """How often a ping leaves by itself; None when none does."""
        self._loop: anyio.CancelScope | None = None

    async def ping(self, *, by: Identity) -> Ping:
        """Send one and wait for its answer. Raises NotConnected without a connection."""
        session = self._session
        if not session.wire.ping:
            raise Conflict(f"There is no ping in {stateless.VERSION}. Call a tool, or read a list again.")
        call = session.start_call("ping", None, quiet=True, by=by)
        self.sent += 1
        await session.until(lambda: call.settled, None, call.id)
        error = call.error.message if call.error is not None else "" if call.state == "done" else "It was cancelled."
        self.last = Ping(call.started_at, call.duration_ms if call.state == "done" else None, error)
        if error:
            self.failed += 1
            logger.warning("a ping of session %s failed", session.id)
        session.changed("ping.settled", "ping")
        return self.last

    def repeat(self, every_ms: int | None) -> None:
        """Ping again and again from now on, or stop doing so. It ends with the connection."""
        if self._loop is not None:
            self._loop.cancel()
        self.every_ms, self._loop = None, None
        if every_ms is not None:
            self._session.live(then="ping")
            if not self._session.wire.ping:
                raise Conflict(f"There is no ping in {stateless.VERSION}.")
            self.every_ms, self._loop = every_ms, anyio.CancelScope()
            self._session.start_soon(self._repeating, every_ms / 1000, self._loop)
        self._session.changed("ping.settled", "ping")

    async def _repeating(self, seconds: float, scope: anyio.CancelScope) -> None:
        with scope:
            while True:
                try:
                    await self.ping(by=PARLEY)
                except Conflict:
                    return
                await anyio.sleep(seconds)

    def connection_ended(self) -> None:
        """Nobody is there to answer any more."""
        if self._loop is not None:
            self._loop.cancel()
        self.every_ms, self._loop = None, None
