"""The unattended limit: an ask that nobody answers in time is dismissed. Off unless the options set it."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from app.core.asks import Answer, AnsweredBy, Ask, elicited, failure
from app.core.errors import INTERNAL_ERROR
from app.core.options import Options
from app.sessions.answerers.base import Answerer


class Limit(Answerer):
    """Waits as long as the options say, from when it is asked. Nothing is said in a person's name: an elicitation is
    dismissed, anything else fails."""

    def __init__(self, options: Callable[[], Options]) -> None:
        self._options = options

    async def consider(self, ask: Ask) -> Answer | None:
        """That nobody came, once the time is up."""
        limit = self._options().unattended_limit_ms
        if limit is None:
            return None
        await anyio.sleep(limit / 1000)
        by = AnsweredBy("limit", "nobody answered in time")
        if ask.kind in ("form", "url"):
            return elicited(ask, "cancel", None, by)
        return failure(INTERNAL_ERROR, "No user was available to answer", by)
