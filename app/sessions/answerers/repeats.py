"""The answers of another call, given again: by a person who said so for all that one call asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app import bounds
from app.core import pairs
from app.core.asks import Answer, AnsweredBy, Ask
from app.core.options import Root
from app.sessions.answerers.base import Answerer

Asked = Callable[[], list[Ask]]


@dataclass(slots=True, frozen=True)
class _Wish:
    asked: Asked
    before: Asked
    by: AnsweredBy


class Repeats(Answerer):
    """Answers an ask of such a call when the other call was asked the same, word for word, and answered it. In the name
    of whoever wished for it: nobody else has said anything."""

    def __init__(self, roots: Callable[[], list[Root]]) -> None:
        self._roots = roots
        self._wishes: dict[str, _Wish] = {}

    def begin(self, call_id: str, asked: Asked, before: Asked, by: AnsweredBy) -> None:
        """From now on, what this call asks."""
        self._wishes.pop(call_id, None)
        self._wishes[call_id] = _Wish(asked, before, by)
        while len(self._wishes) > bounds.REPEATED_CALLS:
            del self._wishes[next(iter(self._wishes))]

    def end(self, call_id: str) -> None:
        """No longer."""
        self._wishes.pop(call_id, None)

    def has(self, call_id: str) -> bool:
        """Whether somebody wished for it."""
        return call_id in self._wishes

    async def consider(self, ask: Ask) -> Answer | None:
        """The answer to the same question; None when there is none, or a person has this one in hand."""
        wish = self._wishes.get(ask.call_id or "")
        one = (
            None if wish is None or ask.claimed_until is not None else pairs.to_repeat(ask, wish.asked(), wish.before())
        )
        return None if wish is None or one is None else pairs.repeated(ask, one, wish.by, self._wire())

    def _wire(self) -> list[dict[str, str]]:
        return [root.wire() for root in self._roots()]
