"""Roots from the session's list: some servers show half of their tools until they have heard them."""

from __future__ import annotations

from collections.abc import Callable

from app.core.asks import Answer, AnsweredBy, Ask, roots_result
from app.core.options import Options, Root
from app.sessions.answerers.base import Answerer


class RootsList(Answerer):
    """Answers every ask for roots at once, unless the options say that a person is to be asked."""

    def __init__(self, roots: Callable[[], list[Root]], options: Callable[[], Options]) -> None:
        self._roots, self._options = roots, options

    def at_once(self, ask: Ask) -> Answer | None:
        """The list, for roots; None for anything else."""
        if ask.kind != "roots" or self._options().ask_roots:
            return None
        return roots_result([root.wire() for root in self._roots()], AnsweredBy("roots", "from the list"))
