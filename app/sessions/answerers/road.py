"""The one road from an ask to its answer, whatever brought the ask and whoever answers.

Answerers are asked in their order: first what can be said at once, then, while the ask is open, one after the other.
What one of them says goes through the same checks, the same moves and the same reply channel as what a person says.
Knows the inbox and the answerers; knows no session, no page and no wire.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import anyio

from app.core.asks import Answer, Ask, Draft, fitting
from app.core.errors import Conflict
from app.core.inbox import Inbox
from app.sessions.answerers.base import Answerer

logger = logging.getLogger("parley.sessions")


class Road:
    """The answerers of one session, and what becomes of an ask among them."""

    def __init__(self, inbox: Inbox, answerers: list[Answerer], released: Callable[[Ask], None]) -> None:
        self._inbox, self._answerers, self._released = inbox, answerers, released
        self._at_work: dict[str, anyio.CancelScope] = {}

    def at_once(self, ask: Ask) -> Answer | None:
        """What somebody says without waiting; None when the ask has to be put to them."""
        for each in self._answerers:
            with _falling_through(each, ask):
                answer = each.at_once(ask)
                if answer is not None:
                    return fitting(ask, answer)
        return None

    async def consider(self, ask: Ask) -> None:
        """Put an open ask to everybody in turn, until one has answered it or it is no longer open."""
        self.stop(ask)
        for each in self._answerers:
            with anyio.CancelScope() as scope:
                self._at_work[ask.id] = scope
                answer = await self._considered(each, ask)
            if scope.cancel_called:
                return
            del self._at_work[ask.id]
            if answer is not None and ask.state == "open":
                with _falling_through(each, ask):
                    await self.send(ask, answer)
            if ask.state not in ("open", "sending"):
                return

    async def _considered(self, each: Answerer, ask: Ask) -> Answer | None:
        """What one of them says. A draft stays with the ask; one that will not become more has failed."""
        said: Answer | Draft | None = None
        try:
            with _falling_through(each, ask):
                said = await each.consider(ask)
        finally:
            if isinstance(said, Draft):
                self._inbox.draft(ask, said)
            elif ask.draft is not None and ask.draft.state == "streaming":
                self._inbox.draft(ask, replace(ask.draft, state="failed" if said is None else "ready"))
        return None if isinstance(said, Draft) else said

    async def send(self, ask: Ask, answer: Answer) -> None:
        """Check an answer and send it; returns once it has left, or is held for the others of its round.

        Raises Invalid, with what is wrong, for one that does not fit, and Gone when the ask is no longer open."""
        await self._inbox.answer(ask, fitting(ask, answer))
        self.stop(ask)
        self._released(ask)

    def stop(self, ask: Ask) -> None:
        """Whoever is considering an ask need not any more."""
        scope = self._at_work.pop(ask.id, None)
        if scope is not None:
            scope.cancel()


@contextlib.contextmanager
def _falling_through(each: Answerer, ask: Ask) -> Iterator[None]:
    """What fails is logged, and the ask falls to the next; not that it was settled, or could not be sent."""
    try:
        yield
    except Conflict:
        return
    except Exception:
        name = type(each).__name__
        logger.exception("the answerer %s failed inside Parley over ask %s, which falls to the next", name, ask.id)
