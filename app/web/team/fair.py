"""Nobody takes the room of others: so many requests of one person at the same time and in a minute, and no more.

A limit for all alone would let one person, or a stranger, fill it. Whoever is not known is counted by the address that
the proxy saw. Who is told that something is too much waits a moment for that answer: to ask again at once would cost
everybody. Here too is counted how requests ended, for the figures.
"""

from __future__ import annotations

import itertools
from collections import Counter

import anyio
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import team_bounds as bounds
from app.core.rate import SharedRate
from app.settings import Limits
from app.web.door.guard import SECURITY_HEADERS
from app.web.team.door import TeamVisitors

_AT_ONCE = "You have {} requests open at the same time, which is the limit. Try again in a moment.\n"
_A_MINUTE = "You sent {} requests in a minute, which is the limit. Try again in {} seconds.\n"
_TURNS = 32
"""Who waits does not wait equally long: otherwise all of them would ask again at the same moment."""


class Fair:
    """Counts the requests that are being answered, by whose they are."""

    def __init__(self, app: ASGIApp, visitors: TeamVisitors, limits: Limits) -> None:
        self.app, self._visitors = app, visitors
        self._most, self._a_minute = limits.requests_per_identity, limits.requests_per_minute
        self._rate = SharedRate(self._a_minute, 60.0, visitors.clock) if self._a_minute else None
        if self._rate is not None:
            visitors.house.rates["requests"] = self._rate
        self._now: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._turns = itertools.count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        who, ended = self._visitors.counted_as(Headers(scope=scope)), self._visitors.house.figures.answers

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                ended[message["status"]] += 1
                if message["status"] == 429:
                    await self._pause(who)
            await send(message)

        if (refusal := self._refusal(who, scope["path"])) is not None:
            await refusal(scope, receive, counted)
            return
        self._now[who] += 1
        try:
            await self.app(scope, receive, counted)
        finally:
            _less(self._now, who)

    def _refusal(self, who: str, path: str) -> PlainTextResponse | None:
        headers = dict(SECURITY_HEADERS)
        if self._now[who] >= self._most:
            if self._waiting[who] >= self._most:
                headers["connection"] = "close"  # nobody waits for answers without end
            return PlainTextResponse(_AT_ONCE.format(self._most), 429, {**headers, "retry-after": "1"})
        if self._rate is not None and not path.startswith("/static/") and (wait := self._rate.take(who)):
            words = _A_MINUTE.format(self._a_minute, wait)
            return PlainTextResponse(words, 429, {**headers, "retry-after": str(wait)})
        return None

    async def _pause(self, who: str) -> None:
        """Let whoever has too much wait: so many of theirs at a time, for a wait holds a connection."""
        if self._waiting[who] >= self._most:
            return
        self._waiting[who] += 1
        turn = next(self._turns) % _TURNS
        try:
            await anyio.sleep(bounds.SLOWED_SECONDS * (1 + turn / _TURNS))
        finally:
            _less(self._waiting, who)


def _less(counts: Counter[str], who: str) -> None:
    counts[who] -= 1
    if not counts[who]:
        del counts[who]
