"""The log of a recording: what a live log keeps in memory, read from an index when somebody looks."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

from app import bounds
from app.core.events import EventLog
from app.core.found import Found, Search
from app.core.log import MessageLog
from app.core.wire import Exchange, Finding, Message
from app.recordings.codec import Unfit
from app.recordings.lines import Beside, Broken, State, Totals, read_line
from app.settings import Limits
from app.store.index_file import IndexFile

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_PAGE = 500
"""Rows that are fetched at once."""


class RecordedLog(MessageLog):
    """Every frame of a recording, in order, with what was remarked about it. Nothing is ever added."""

    def __init__(self, limits: Limits, events: EventLog, index: IndexFile) -> None:
        super().__init__(limits, events, lambda: 0.0, lambda: 0.0)
        self._index = index
        self._ends: tuple[int | None, int | None] = None, None
        self._many = 0
        self._remarked: array[int] = array("q")
        """The messages with findings."""
        self._beside: OrderedDict[str, list[Finding]] = OrderedDict()
        """What was looked at a moment ago."""
        self._carriers: OrderedDict[int, Exchange | None] = OrderedDict()

    def refresh(self) -> None:
        """Look what the index has now; blocks."""
        index = self._index
        self._ends = index.ends()
        many, invalid, size, came, left = index.counts()
        self._many = self.count = many
        self.invalid, self.bytes_total, self.inbound, self.outbound = invalid, size, came, left
        ids = index.ids("finding")
        self._remarked = array("q", sorted(int(one) for one in ids if one.isdecimal() and len(one) < 16))
        self._beside.clear()
        self._carriers.clear()
        kept = [
            one for line in index.states("exchange", self._limits.exchanges) if (one := _exchange(line)) is not None
        ]
        self._requests.clear()
        self._requests.extend(sorted(kept, key=lambda one: one.seq))
        self._exchanges = {one.seq: one for one in kept}
        self.findings_total = len(self._remarked)

    def counted(self, totals: Totals) -> None:
        """Take what the live log had counted, which may be more than what it still held."""
        self.count, self.invalid, self.bytes_total = totals.count, totals.invalid, totals.bytes_total
        self.inbound, self.outbound, self.findings_total = totals.inbound, totals.outbound, totals.findings_total
        self.rows_dropped = max(0, totals.count - self._many)

    def __len__(self) -> int:
        return self._many

    @property
    def first_seq(self) -> int | None:
        return self._ends[0]

    # ---- reading

    def get(self, seq: int) -> Message | None:
        return self._index.message(seq)

    def raw(self, seq: int) -> bytes | None:
        return self._index.raw(seq)

    def back(self, before: int | None = None) -> Iterator[Message]:
        while portion := self._index.older(before, _PAGE):
            yield from portion
            before = portion[-1].seq

    def after(self, seq: int, limit: int) -> list[Message]:
        return self._index.newer(seq, limit)

    def before(self, seq: int, limit: int) -> list[Message]:
        return self._index.older(seq, limit)[::-1]

    def last(self, limit: int) -> list[Message]:
        return self._index.older(None, limit)[::-1]

    def methods(self, newest: int) -> set[str]:
        return self._index.methods(newest)

    def search(self, wanted: Search) -> Callable[[], Found]:
        if not wanted:
            return lambda: _All(self)
        return lambda: _Rows(self._index, self._index.seqs(wanted, self._has_findings))

    def reply_to(self, seq: int) -> Message | None:
        return self._index.reply_to(seq)

    def exchange(self, seq: int) -> Exchange | None:
        if seq not in self._carriers:
            carrier = self._index.exchange_of(seq)
            found = None if carrier is None else self._exchanges.get(carrier)
            if found is None and carrier is not None:
                line = self._index.state("exchange", str(carrier))
                found = None if line is None else _exchange(line)
            _keep(self._carriers, seq, found)
        return self._carriers[seq]

    # ---- findings

    def _has_findings(self, seq: int) -> bool:
        place = bisect_left(self._remarked, seq)
        return place < len(self._remarked) and self._remarked[place] == seq

    def _findings_with(self, key: str) -> list[Finding]:
        if key not in self._beside:
            line = self._index.state("finding", key)
            found = None if line is None else _read(line)
            noun = None if found is None else found.noun
            _keep(self._beside, key, noun.findings if isinstance(noun, Beside) else [])
        return self._beside[key]

    def findings(self, seq: int) -> tuple[Finding, ...]:
        return tuple(self._findings_with(str(seq))) if self._has_findings(seq) else ()

    def findings_of(
        self, seqs: Iterable[int], subjects: Iterable[str] = (), *, about: str | None = None
    ) -> list[Finding]:
        beside = chain.from_iterable(self._findings_with(str(seq)) for seq in sorted(seqs) if self._has_findings(seq))
        found = [one for one in beside if about is None or one.about == about]
        for subject in subjects:
            found += [] if subject.isdecimal() else self._findings_with(subject)
        return found


class _All:
    """Every message."""

    def __init__(self, log: RecordedLog) -> None:
        self._log = log
        self.back, self.after, self.before = log.back, log.after, log.before

    def __len__(self) -> int:
        return len(self._log)

    @property
    def first_seq(self) -> int | None:
        return self._log.first_seq


class _Rows:
    """Some of the messages, by their seqs; the rows are fetched as they are read."""

    def __init__(self, index: IndexFile, seqs: array[int]) -> None:
        self._index, self._seqs = index, seqs

    def __len__(self) -> int:
        return len(self._seqs)

    @property
    def first_seq(self) -> int | None:
        return self._seqs[0] if self._seqs else None

    def _fetched(self, start: int, end: int) -> list[Message]:
        seqs = self._seqs[start:end]
        rows = self._index.some(list(seqs))
        return [rows[seq] for seq in seqs if seq in rows]

    def back(self, before: int | None = None) -> Iterator[Message]:
        end = len(self._seqs) if before is None else bisect_left(self._seqs, before)
        while end > 0:
            start = max(0, end - _PAGE)
            yield from reversed(self._fetched(start, end))
            end = start

    def after(self, seq: int, limit: int) -> list[Message]:
        start = bisect_right(self._seqs, seq)
        return self._fetched(start, start + limit)

    def before(self, seq: int, limit: int) -> list[Message]:
        end = bisect_left(self._seqs, seq)
        return self._fetched(max(0, end - limit), end)


def _keep(cache: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    cache[key] = value
    if len(cache) > bounds.RECORDED_ROWS:
        cache.popitem(last=False)


def _read(line: bytes) -> State | None:
    """A line that could be read when it was indexed."""
    try:
        found = read_line(line)
    except (Broken, Unfit):
        return None
    return found if isinstance(found, State) else None


def _exchange(line: bytes) -> Exchange | None:
    found = _read(line)
    return found.noun if found is not None and isinstance(found.noun, Exchange) else None
