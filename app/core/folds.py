"""Rows of the log that say the same again and again, as one line: progress by its token, polls by their task.

What stands between two messages that repeat nothing is a stretch; in it, what repeats often enough is one fold, which
stands where the first of it does. Of a fold a page has the line only, so however long somebody polls, it pushes nothing
else out; who opens it fetches what is in it. `static/js/folds.js` goes on with the same rule while messages arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from app import bounds
from app.core.log import MessageLog
from app.core.wire import Message

Worth = Callable[[Message], str | None]
"""As what a message may be folded; None when it stands for itself."""


@dataclass(slots=True)
class Fold:
    """Messages that are one line."""

    key: str
    first: Message
    last: Message
    count: int = 1
    asked: int = 0
    """How many of them are requests."""

    @property
    def seq(self) -> int:
        return self.first.seq

    @property
    def method(self) -> str:
        return self.key.partition(" ")[0]

    @property
    def lasted(self) -> float:
        """Milliseconds from the first to the last."""
        return max(0.0, self.last.at - self.first.at) * 1000


Entry = Message | Fold


def worth(log: MessageLog, apart: int | None = None) -> Worth:
    """What may be folded: nothing that is remarkable, and not the message that is open."""

    def key(message: Message) -> str | None:
        if message.fold is None or message.seq == apart or message.kind == "error" or log.findings(message.seq):
            return None
        return message.fold

    return key


def folded(messages: Iterable[Message], key: Worth, most: int) -> tuple[list[Entry], int | None]:
    """The newest `most` entries of messages that come newest first, a fold counts as one. Oldest first; with the seq
    of the oldest message that was looked at. The work is bounded: at most so many are looked at."""
    entries: list[Entry] = []
    stretch: list[Message] = []
    keys: dict[str, int] = {}
    oldest = None
    for message in islice(messages, max(most, bounds.FOLD_LOOKS)):
        name = key(message)
        # Of a stretch each key may become one line: it does not have to be counted before it ends.
        if name is None or name not in keys:
            shown = len(entries) + sum(1 if many >= bounds.FOLD_RUN else many for many in keys.values())
            if shown >= most:
                break
        oldest = message.seq
        if name is not None:
            stretch.append(message)
            keys[name] = keys.get(name, 0) + 1
            continue
        if stretch:
            entries += _lines(stretch, key, keys)
            stretch, keys = [], {}
        entries.append(message)
    if stretch:
        entries += _lines(stretch, key, keys)
    return entries[::-1], oldest


def _lines(stretch: list[Message], key: Worth, keys: dict[str, int]) -> list[Entry]:
    """The entries of one stretch, newest first as it is given."""
    folds: dict[str, Fold] = {}
    single: list[Entry] = []
    for message in stretch:
        name = key(message)
        if name is None or keys[name] < bounds.FOLD_RUN:
            single.append(message)
        elif (fold := folds.get(name)) is None:
            folds[name] = Fold(name, message, message, 1, message.kind == "request")
        else:
            fold.first = message
            fold.count += 1
            fold.asked += message.kind == "request"
    return sorted([*single, *folds.values()], key=lambda entry: entry.seq, reverse=True)


def members(messages: Iterable[Message], key: Worth, name: str, first: int, last: int, most: int) -> list[Message]:
    """What is in a fold, oldest first; of very much the newest. The messages come newest first."""
    found: list[Message] = []
    for message in messages:
        if message.seq < first or len(found) >= most:
            break
        if message.seq <= last and key(message) == name:
            found.append(message)
    return found[::-1]
