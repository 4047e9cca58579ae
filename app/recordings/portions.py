"""What a recorder gathers before it is written: things, packed in portions; how far it has come; what was wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from app import bounds
from app.core.wire import Exchange, Message
from app.recordings import scribe
from app.recordings.nouns import Noun

FEW: Final = 50
"""Things that are packed together: more that are alive at once would make the whole process look for garbage."""
PACKS: Final = bounds.RECORDING_SLICE // FEW

Thing = tuple[Any, ...]
"""What is masked and becomes one line, as `scribe.Book` takes it: a message or a noun, each as the tuple of its
members; or a line, and bytes that belong into it."""
Portion = list[bytes]
"""Things, packed."""


def packed(things: Iterator[Thing]) -> Iterator[bytes]:
    """Things as bytes, a few at a time: nobody can change them any more."""
    while few := list(islice(things, FEW)):
        yield scribe.plain(few)


@dataclass(slots=True, frozen=True)
class Wanted:
    """What is masked besides what is found to be a secret."""

    names: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()


@dataclass(slots=True)
class Place:
    """How far a recording has come."""

    events: int = 0
    message: int = 0
    """The seq of the last message."""
    number: int = 0
    """Its number among all messages."""
    frames: int = 0
    """How many are recorded."""
    first: int = 0
    """The seq of the first message that is recorded."""
    since: float | None = None
    until: float | None = None
    """When the first and the last message were."""
    exchange: int = 0
    stderr: int = 0
    redrawn: int = 0
    cleared: int = 0
    bare: set[int] = field(default_factory=set)
    """Messages that were recorded without their bytes."""
    exchanges: dict[int, tuple[Exchange, Any, int]] = field(default_factory=dict)
    """Those that are not over, with what was written of them, and how many messages they had carried then."""
    logged: int = 0
    """How much the server had logged."""
    inbox: Noun | None = None

    def follows(self, rows: list[Message]) -> bool:
        """Whether these are the next messages, and none is missing before or between them."""
        return rows[-1].number - (self.number or rows[0].number - 1) == len(rows)

    def wrote(self, rows: list[Message]) -> None:
        """These messages are written, or about to be."""
        last = rows[-1]
        self.message, self.number, self.until = last.seq, last.number, last.at
        self.frames += len(rows)
        if self.since is None:
            self.since = rows[0].at
