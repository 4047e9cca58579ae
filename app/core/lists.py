"""What a server said it has: tools, prompts, resources or templates, as received."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from app.core.calls import CallError
from app.core.json import Json
from app.core.rules import catalogue
from app.core.wire import NO_FINDINGS, Finding, Findings

RESTLESS = "list"
"""What a remark is about that a list changes too often; the message that says so is a notification."""


@dataclass(slots=True)
class _Index:
    """Where the items of a list are, by what one member of them says."""

    size: int
    """How many items there were."""
    first: dict[Any, int] = field(default_factory=dict)
    again: set[Any] = field(default_factory=set)
    """What more than one says."""


@dataclass(slots=True)
class Listing:
    """What a server said it has: tools, prompts, resources or templates; its objects as received."""

    items: list[Json] = field(default_factory=list)
    state: Literal["none", "loading", "ready", "failed"] = "none"
    log: Findings = field(default=NO_FINDINGS, repr=False, compare=False)
    """Who knows what was remarked about its messages."""
    seqs: set[int] = field(default_factory=set)
    """The messages that it came with."""
    restless: int | None = None
    """The message that said once too often that it changed."""
    error: CallError | None = None
    at: float | None = None
    stopped: str | None = None
    """Why the list is not complete, when it is not."""
    pages: int = 0
    next_cursor: str | None = None
    """Where the next page begins, when the list is read page by page and there is one."""
    cursors: frozenset[str] = frozenset()
    """Those that came so far; one that comes again would never end."""
    news: News | None = None
    """What it says otherwise than the time before."""
    texts: list[str] | None = None
    """What of each item is searched, once somebody did."""
    rejected: list[tuple[Json, Finding]] = field(default_factory=list)
    """Tools that 2026-07-28 does not let us offer, each with the reason (R6-23)."""
    fresh_until: float | None = None
    """Wall time until which the server says that it may be used again; None when it does not (R6-52)."""
    scope: str = ""
    """`public` or `private`: who may use it again."""
    from_cache: bool = False
    """Taken from what the connection before had read."""
    _indexes: dict[str, _Index] = field(default_factory=dict, repr=False, compare=False)

    def _index(self, member: str) -> _Index:
        """Made once for each list, when somebody looks for something in it."""
        index = self._indexes.get(member)
        if index is None or index.size != len(self.items):
            index = self._indexes[member] = _Index(len(self.items))
            for place, item in enumerate(self.items):
                said = item.get(member) if isinstance(item, dict) else None
                if not isinstance(said, str):
                    continue
                if index.first.setdefault(said, place) != place:
                    index.again.add(said)
        return index

    def place(self, said: Any, member: str = "name") -> int | None:
        """Where the item is whose `member` says this; of several the first."""
        return self._index(member).first.get(said) if isinstance(said, str) else None

    def alone(self, name: str) -> bool:
        """Whether just one item has this name."""
        index = self._index("name")
        return name in index.first and name not in index.again

    def by_name(self, name: Any, member: str = "name") -> dict[str, Any] | None:
        """The item of this name, or whose `member` says this; of several the first, None when there is none."""
        place = self.place(name, member)
        item = None if place is None else self.items[place]
        return item if isinstance(item, dict) else None

    @property
    def findings(self) -> list[Finding]:
        """What was remarked about its messages, why it is not complete, and about tools that may not be offered."""
        found = self.log.findings_of(self.seqs)
        if self.stopped is not None:
            found.append(catalogue.list_incomplete(why=self.stopped))
        found += [finding for _, finding in self.rejected]
        return found if self.restless is None else found + self.log.findings_of([self.restless], about=RESTLESS)

    def turn(self, result: Any, words: str, *, most: bool) -> bool:
        """Look where the next page begins, after the one that this was the result of: whether there is one to be read.
        A list does not end by itself when a cursor comes again, or there is always one more: `most` is enough."""
        cursor, self.next_cursor = result.get("nextCursor") if isinstance(result, dict) else None, None
        if cursor is None:
            return False
        if not isinstance(cursor, str):
            self.stopped = f"The cursor of page {self.pages} is no string, so the list ends here."
        elif cursor in self.cursors:
            self.stopped = f"The cursor of page {self.pages} came a second time, so the list ends here."
        elif most:
            self.stopped = f"There is more: Parley stopped after {self.pages} pages and {len(self.items)} {words}."
        else:
            self.cursors, self.next_cursor = self.cursors | {cursor}, cursor
        return self.stopped is None

    def fresh(self, now: float) -> bool:
        """Whether it may be used again without asking."""
        return self.whole and self.fresh_until is not None and now < self.fresh_until

    @property
    def whole(self) -> bool:
        """Whether it holds everything that the server would list."""
        return self.state == "ready" and self.next_cursor is None and self.stopped is None


@dataclass(slots=True)
class News:
    """How a list that was read again differs from what it was; by what its items are known by."""

    new: frozenset[str]
    changed: frozenset[str]
    gone: list[Json]
