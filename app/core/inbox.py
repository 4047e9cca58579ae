"""The inbox of one session: every open ask, whatever brought it, and the recent settled ones.

Add, answer (first wins), withdraw, expire, lose. An answer leaves through the ask's own reply channel, so the inbox
does not know whether a request waits, a task is polled or a round goes on. Bounded. Knows no wire and no page.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Literal

from app.core.asks import INTERNAL_ERROR, Answer, Ask, RpcError
from app.core.errors import Gone
from app.core.events import EventLog

Ending = Literal["withdrawn", "expired", "lost"]
_OPEN_BYTES = 64 * 1024 * 1024
_KEPT_BYTES = 16 * 1024 * 1024
"""What all open asks, and all settled ones, may be together: a server chooses how large its questions are."""


class Inbox:
    """The asks of one session."""

    def __init__(self, limit: int, kept: int, events: EventLog, wall: Callable[[], float]) -> None:
        self._limit, self._kept, self._events, self._wall = limit, kept, events, wall
        self._ids = itertools.count(1)
        self.asks: dict[str, Ask] = {}
        self.refused = 0
        """How many asks were over the limit."""

    @property
    def open(self) -> list[Ask]:
        """What waits for an answer, oldest first."""
        return [ask for ask in self.asks.values() if not ask.settled]

    @property
    def settled(self) -> list[Ask]:
        """What was answered, withdrawn, expired or lost, newest first."""
        done = [ask for ask in self.asks.values() if ask.settled]
        done.sort(key=lambda ask: (ask.settled_at or 0.0, ask.id), reverse=True)
        return done

    def next_id(self) -> str:
        """Our own id; a server's ids never become element ids or addresses."""
        return f"a{next(self._ids)}"

    def add(self, ask: Ask) -> None:
        """Put an ask before people; RpcError when too many are open already."""
        waiting = self.open
        if len(waiting) >= self._limit:
            self.refused += 1
            raise RpcError(INTERNAL_ERROR, f"{self._limit} questions are open already, which is the limit")
        if sum({each.message_seq: each.size for each in [*waiting, ask]}.values()) > _OPEN_BYTES:
            self.refused += 1
            raise RpcError(INTERNAL_ERROR, f"The open questions are {_OPEN_BYTES // 1048576} MiB already")
        self.asks[ask.id] = ask
        self._changed("ask.added", ask)

    def record(self, ask: Ask, answer: Answer) -> None:
        """Keep an ask that was answered without waiting, like roots from the list."""
        self.asks[ask.id] = ask
        ask.recorded = True
        ask.begin(answer)
        ask.sent(self._wall())
        self._changed("ask.settled", ask)
        self._forget()

    async def answer(self, ask: Ask, answer: Answer) -> None:
        """Send an answer; returns once it has left. Gone when another was first, or the ask is no longer open."""
        ask.begin(answer)
        self._changed("ask.changed", ask)
        try:
            await ask.deliver(answer)
        except Gone:
            if ask.reopen():
                self._changed("ask.changed", ask)
            raise Gone(ask.words() if ask.settled else "The answer could not be sent. Try again.") from None
        except BaseException:
            if ask.reopen():
                self._changed("ask.changed", ask)
            raise
        if ask.sent(self._wall()):
            self._changed("ask.settled", ask)
        self._forget()

    def release(self, ask: Ask) -> None:
        """A held answer has left with the others of its round."""
        if ask.release(self._wall()):
            self._changed("ask.settled", ask)
            self._forget()

    def end(self, ask: Ask, ending: Ending, reason: str = "") -> bool:
        """Take an ask back, let it expire, or lose it; False when it was settled before."""
        if not ask.end(ending, reason, self._wall()):
            return False
        self._changed("ask.withdrawn" if ending == "withdrawn" else "ask.settled", ask)
        self._forget()
        return True

    def clear(self) -> None:
        """Forget what is settled."""
        self.asks = {ask.id: ask for ask in self.open}

    def _forget(self) -> None:
        done = [ask for ask in self.asks.values() if ask.settled]
        extra, size = len(done) - self._kept, sum(ask.size for ask in done)
        for ask in done:
            if extra <= 0 and size <= _KEPT_BYTES:
                break
            del self.asks[ask.id]
            extra, size = extra - 1, size - ask.size

    def _changed(self, kind: Any, ask: Ask) -> None:
        self._events.append(kind, ask.id, self._wall())
