"""What an answerer is. The session keeps them in an ordered list; `Road` asks them and sends what they say."""

from __future__ import annotations

from typing import Protocol

from app.core.asks import Answer, Ask, Draft


class Answerer(Protocol):
    """Somebody who may answer asks. What it says is checked and sent like the answer of a person.

    One that raises is logged, and the ask falls to the next; so does an answer that does not fit what was asked."""

    def at_once(self, ask: Ask) -> Answer | None:
        """What can be said without waiting. The ask is then recorded as answered, and nobody is asked."""
        return None

    async def consider(self, ask: Ask) -> Answer | Draft | None:
        """What there is to say to an ask that is open; None, or a draft for people to decide on, leaves it to the next.

        It may take its time, and those behind it wait for it; people do not, and the ask is in their inbox. It is
        cancelled as soon as the ask is answered, withdrawn, expired or lost. A claimed ask is a person's: whoever
        speaks for somebody else leaves it."""
        return None
