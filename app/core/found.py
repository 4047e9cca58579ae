"""What to look for among messages, and what was found: a list in memory, or rows elsewhere that are fetched as they are
read. Knows no page."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from app.core.wire import Direction, Finding, Message, MessageKind


@dataclass(slots=True, frozen=True)
class Search:
    """Which messages: every word somewhere in the message or its row, and the rest exactly."""

    words: tuple[str, ...] = ()
    """In small letters."""
    direction: Direction | None = None
    kinds: frozenset[MessageKind] | None = None
    method: str = ""
    """How the method begins."""
    findings: bool = False
    """Only messages with a finding."""

    def __bool__(self) -> bool:
        return self != _ALL


_ALL = Search()


class Bodies(Protocol):
    """Who knows the bytes of a message, and what was remarked about it."""

    def raw(self, seq: int) -> bytes | None: ...

    def findings(self, seq: int) -> tuple[Finding, ...]: ...


def row_words(message: Message) -> str:
    """What a row says, in small letters: words are looked for in it too."""
    return f"{message.number} {message.seq} {message.method or ''} {message.gist} {message.by} {message.rpc_id}".lower()


def fits(wanted: Search, message: Message, bodies: Bodies) -> bool:
    """Whether a message is one of those that are looked for."""
    return (
        (wanted.direction is None or message.direction == wanted.direction)
        and (wanted.kinds is None or message.kind in wanted.kinds)
        and (not wanted.method or (message.method or "").startswith(wanted.method))
        and (not wanted.findings or bool(bodies.findings(message.seq)))
        and (not wanted.words or _says(wanted.words, message, bodies))
    )


def _says(words: tuple[str, ...], message: Message, bodies: Bodies) -> bool:
    row = row_words(message)
    beyond = [word for word in words if word not in row]
    if not beyond:
        return True
    body = (bodies.raw(message.seq) or b"").lower()
    return all(word.encode("utf-8", "surrogatepass") in body for word in beyond)


class Found(Protocol):
    """Messages that fit, in order of their seq."""

    def __len__(self) -> int: ...

    @property
    def first_seq(self) -> int | None:
        """The oldest of them."""

    def back(self, before: int | None = None) -> Iterator[Message]:
        """Those older than one, or all of them, newest first."""

    def after(self, seq: int, limit: int) -> list[Message]:
        """Up to `limit` of those newer than `seq`, oldest first."""

    def before(self, seq: int, limit: int) -> list[Message]:
        """The `limit` newest of those older than `seq`, oldest first."""


class Listed:
    """Found messages that are all at hand."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def first_seq(self) -> int | None:
        return self._messages[0].seq if self._messages else None

    def back(self, before: int | None = None) -> Iterator[Message]:
        end = len(self._messages) if before is None else self._place(before)
        return (self._messages[at] for at in range(end - 1, -1, -1))

    def after(self, seq: int, limit: int) -> list[Message]:
        start = bisect_right(self._messages, seq, key=attrgetter("seq"))
        return self._messages[start : start + limit]

    def before(self, seq: int, limit: int) -> list[Message]:
        end = self._place(seq)
        return self._messages[max(0, end - limit) : end]

    def _place(self, seq: int) -> int:
        return bisect_left(self._messages, seq, key=attrgetter("seq"))
