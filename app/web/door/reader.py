"""Who a page is written for, as far as its markup differs: what they may do here, and in a team who else is here.

Set for each request before any handler sees it, and so for every stream. Local mode has one reader, who may do
everything; nothing of a team is imported for it. What is drawn for one tab goes to others: a live part has the reader
in its key (`web/live/parts.py:View`). Loaded before the port is open, so it imports little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from app.core.asks import Ask


class Stream(Protocol):
    """What a tab hears by."""

    def end(self, reason: str) -> None:
        """Say the last word."""


class Alone:
    """Local mode: nobody else is here."""

    is_team = False

    def came(self, stream: Stream, session: Any, reader: Reader) -> Callable[[], None]:
        """A tab of a reader hears of a session from now on; what is returned is called when it does no longer."""
        return _nothing

    def claimed(self, ask: Ask, person: str, now: float) -> str:
        """Whether a person other than the reader has an ask in hand: "other", "mine", or "" for neither."""
        return ""


ALONE = Alone()


@dataclass(slots=True, frozen=True)
class Reader:
    """Whoever gets what is written now."""

    person: str = ""
    """Their id in a team."""
    level: Literal["", "watch", "answer", "own"] = "own"
    rights: frozenset[str] = frozenset(("watch", "answer", "act"))
    together: Alone = ALONE
    """Who else is here."""


_NOBODY = Reader()
_reader: ContextVar[Reader] = ContextVar("reader", default=_NOBODY)


def reader() -> Reader:
    """Whom this is written for."""
    return _reader.get()


def may(right: Literal["watch", "answer", "act"]) -> bool:
    """Whether whoever reads this may do so here."""
    return right in _reader.get().rights


def fixed(session: Any) -> bool:
    """Whether whoever reads this can change nothing here: a recording, or somebody else's session."""
    return session.read_only or "act" not in _reader.get().rights


@contextmanager
def read_by(who: Reader) -> Iterator[None]:
    """What is written inside is for them."""
    before = _reader.set(who)
    try:
        yield
    finally:
        _reader.reset(before)


def _nothing() -> None:
    pass
