"""The inbox of one session: every open ask, whatever brought it, and the recent settled ones.

Add, answer (first wins), withdraw, expire, lose. An answer leaves through the ask's own reply channel, so the inbox
does not know whether a request waits, a task is polled or a round goes on. Bounded. Knows no wire and no page.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Literal

from app import bounds
from app.core.asks import Answer, Ask, Claimant, Draft
from app.core.errors import Conflict, Gone
from app.core.events import EventKind, EventLog
from app.core.json.text import dump
from app.settings import MIB, Limits

Ending = Literal["withdrawn", "expired", "lost"]


class InboxFull(Exception):
    """Too much is open already to put one more ask before people. Its words say what."""


class Inbox:
    """The asks of one session."""

    def __init__(self, limits: Limits, events: EventLog, wall: Callable[[], float]) -> None:
        self._limits, self._events, self._wall = limits, events, wall
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
        """Put an ask before people. Raises InboxFull when too many are open already."""
        waiting = self.open
        limits, size = self._limits, sum({each.message_seq: each.size for each in [*waiting, ask]}.values())
        # What a rule has promised to answer keeps nobody else out; its number is bounded too.
        many = sum(each.rule_id is None for each in waiting)
        full = (
            many >= limits.open_asks
            if ask.rule_id is None
            else len(waiting) - many >= limits.open_asks * bounds.SPOKEN_FOR
        )
        if full or size > limits.open_ask_bytes:
            self.refused += 1
            if full:
                raise InboxFull(f"{limits.open_asks} questions are open already, which is the limit")
            raise InboxFull(f"The open questions are {limits.open_ask_bytes // MIB} MiB already")
        self.asks[ask.id] = ask
        self._changed("ask.added", ask)

    def record(self, ask: Ask, answer: Answer) -> None:
        """Keep an ask that was answered before anybody saw it, like roots from the list."""
        self.asks[ask.id] = ask
        ask.recorded = True
        ask.begin(answer)
        ask.sent(self._wall())
        self._changed("ask.settled", ask)
        self._forget()

    async def answer(self, ask: Ask, answer: Answer) -> None:
        """Send an answer; returns once it has left or is held. Raises Gone when another was first, or the ask is no
        longer open."""
        held = ask.answer if ask.state == "held" else None
        ask.begin(answer)
        self._changed("ask.changed", ask)
        try:
            delivery = await ask.deliver(ask, answer)
        except BaseException as fault:
            if ask.reopen() if held is None else ask.held_before(held):
                self._changed("ask.changed", ask)
            if not isinstance(fault, Conflict):
                raise
            raise Gone("The answer could not be sent. Try again." if ask.state == "open" else ask.words()) from None
        if delivery == "sent":
            self.sent(ask)
        elif ask.hold():
            self._changed("ask.changed", ask)

    def sent(self, ask: Ask) -> None:
        """An answer has left, alone or with the others of its round."""
        if ask.sent(self._wall()):
            self._changed("ask.settled", ask)
            self._forget()

    def reopen(self, ask: Ask, by: Claimant | None = None) -> None:
        """Take a held answer back: whoever does so has the ask in hand. Raises Gone when it is not held."""
        if ask.state != "held":
            raise Gone(ask.words())
        ask.reopen()
        ask.claimed_until, ask.claimed_by = inf, by
        self._changed("ask.reopened", ask)

    def claim(self, ask: Ask, seconds: float, by: Claimant | None = None) -> None:
        """A person has an ask in hand for so long. Raises Gone when it is no longer open."""
        before, whose = ask.claimed_for(self._wall()), ask.claimed_by
        ask.claim(self._wall() + seconds, by)
        if not before or before < seconds == inf or whose != by:
            self.announce(ask)

    def let_go(self, ask: Ask) -> None:
        """Whoever had an ask in hand has it no longer."""
        ask.claimed_until, ask.claimed_by = None, None
        self.announce(ask)

    def announce(self, ask: Ask) -> None:
        """Who is to answer an open ask is somebody else now: a person who has it in hand, a rule, or neither."""
        self._changed("ask.claimed", ask)

    def draft(self, ask: Ask, draft: Draft) -> None:
        """Show with an ask what somebody would answer, as far as it has come."""
        now, before, most = self._wall(), ask.draft, self._limits.draft_bytes
        text = draft.text.encode(errors="replace")
        if len(text) + (0 if draft.content is None else len(dump(draft.content))) > most:
            problem = f"It is more than {most:,} bytes, which is the limit."
            text = text[:most]
            draft = replace(draft, text=text.decode(errors="ignore"), content=None, state="failed", problem=problem)
        began = now if before is None or before.state != "streaming" else before.started_at
        ask.draft = replace(draft, started_at=began, updated_at=now)
        self._changed("ask.draft", ask)

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
        self._events.append("inbox.cleared", "inbox", self._wall())

    def _forget(self) -> None:
        done = [ask for ask in self.asks.values() if ask.settled]
        extra, size = len(done) - self._limits.settled_asks, sum(ask.size for ask in done)
        for ask in done:
            if extra <= 0 and size <= self._limits.settled_ask_bytes:
                break
            del self.asks[ask.id]
            extra, size = extra - 1, size - ask.size

    def _changed(self, kind: EventKind, ask: Ask) -> None:
        self._events.append(kind, ask.id, self._wall())
