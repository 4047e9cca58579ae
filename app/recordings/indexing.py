"""Reads a recording once, from its first line to its last, into an index; goes on where it stopped.

A recording may come from anywhere. A line that is too long, no JSON or no noun is passed over, counted and said; a file
that breaks off is good up to there. Blocks, portion by portion, so that whoever waits can show how far it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final, Protocol

from app import bounds
from app.core.calls import Call
from app.core.json.text import parse
from app.core.times import LAST_MOMENT
from app.core.wire import Message
from app.recordings.codec import Unfit, read
from app.recordings.lines import (
    VERSION,
    Beside,
    Broken,
    Frame,
    Gap,
    Header,
    Newer,
    State,
    header_line,
    message_of,
    read_line,
)
from app.store.index_file import IndexFile, Row, StateRow

_BLOCK: Final = bounds.MIB
_WORDS: Final = 500
"""Of what a row says that nobody made here."""


class Body(Protocol):
    """The bytes of a recording, wherever they are kept."""

    @property
    def size(self) -> int:
        """How many there are now."""

    def read(self, offset: int, size: int) -> bytes:
        """Up to so many from there; blocks."""


@dataclass(slots=True)
class Progress:
    """How far a recording is read, and what is wrong with it so far."""

    read: int = 0
    size: int = 0
    skipped: int = 0
    """Lines that could not be read."""
    twice: int = 0
    """Messages whose seq was there already."""
    problem: str = ""
    """What is wrong with the first of them, as the end of a sentence."""
    newer: str = ""
    """What a header of a newer version says."""
    cut: bool = False
    """It breaks off within a line."""
    missing: int = 0
    """Messages that the recording says it could not keep up with."""
    done: bool = False

    @property
    def facts(self) -> dict[str, str]:
        """As they are kept, to go on from."""
        return {each.name: str(int(value) if isinstance(value := getattr(self, each.name), bool) else value)
                for each in fields(self) if each.name not in ("size", "done", "cut")}  # fmt: skip


@dataclass(slots=True)
class _Portion:
    rows: list[Row] = field(default_factory=list)
    states: dict[tuple[str, str], StateRow] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)


class Reader:
    """Reads one recording into its index."""

    def __init__(self, body: Body, index: IndexFile) -> None:
        self._body, self._index = body, index
        self.progress = Progress(
            read=_whole(index.fact("read")),
            size=body.size,
            skipped=_whole(index.fact("skipped")),
            twice=_whole(index.fact("twice")),
            missing=_whole(index.fact("missing")),
            problem=index.fact("problem") or "",
            newer=index.fact("newer") or "",
        )
        if self.progress.read > body.size:  # it is another file than the one that was read
            raise ValueError("the index is of another recording")
        self._long = False
        """Within a line that is too long to be held."""

    def portion(self) -> bool:
        """Read the next portion; False when there is no more."""
        progress, made = self.progress, _Portion()
        progress.size = self._body.size
        held, offset = b"", progress.read
        while True:
            block = self._body.read(offset + len(held), _BLOCK)
            if not block:
                break
            held += block
            if b"\n" in block:
                break
            if len(held) > bounds.RECORDING_LINE:
                offset, held, self._long = offset + len(held), b"", True
        end = held.rfind(b"\n") + 1
        if not end:
            progress.cut, progress.done = bool(held) or self._long, True
            if held and not self._long and offset + len(held) >= progress.size:
                self._last(held, made)
            return False
        for line in held[:end].splitlines(keepends=True):
            self._take(line, made)
        progress.read = offset + end
        progress.twice += self._index.add(made.rows, made.states.values(), made.facts | progress.facts)
        progress.done = progress.read >= progress.size
        return not progress.done

    def _last(self, line: bytes, made: _Portion) -> None:
        """The last line without its end: a file that somebody copied without its last character is whole all the same,
        so long as it says it is over."""
        try:
            found = read_line(line)
        except Broken:
            return
        if isinstance(found, State) and found.kind == "end":
            self.progress.cut = False
            self._state(found, line, made)
            self._index.add((), made.states.values(), made.facts)

    def _take(self, line: bytes, made: _Portion) -> None:
        if self._long:
            self._long = False
            self._skip(f"is longer than {bounds.RECORDING_LINE // bounds.MIB} MiB")
            return
        if not line.strip():
            return
        try:
            found = read_line(line)
            if isinstance(found, Header):
                self._header(found, made)
            elif isinstance(found, Frame):
                made.rows.append(_row(found))
            elif found is not None:
                self._state(found, line, made)
        except Newer as newer:
            self.progress.newer = self.progress.newer or str(newer)
            self._header(as_known(line), made)
        except (Broken, Unfit) as wrong:
            self._skip(str(wrong))

    def _skip(self, why: str) -> None:
        self.progress.skipped += 1
        self.progress.problem = self.progress.problem or why[:_WORDS]

    def _header(self, header: Header, made: _Portion) -> None:
        if self._index.fact("header") is None and "header" not in made.facts:
            _check(header)
            made.facts["header"] = header_line(header).decode(errors="replace")

    def _state(self, found: State, line: bytes, made: _Portion) -> None:
        if not 0 <= found.seq < bounds.LARGEST_SEQ:
            raise Unfit("a seq", "seq")
        if not 0 <= found.at <= LAST_MOMENT:
            raise Unfit("a time", "at")
        _check(found.noun)
        key = found.kind, found.id
        if isinstance(found.noun, Gap):
            self.progress.missing += max(0, found.noun.messages)
        # The place of a noun is where it was first written down: within a portion a dict keeps it.
        made.states[key] = StateRow(found.kind, _key(found.id), found.seq, found.at, line, _words(found))


def as_known(line: bytes) -> Header:
    """What can be taken of a header of a newer version. Raises Unfit when that is not enough."""
    value = parse(line).value
    known = value if isinstance(value, dict) else {}
    try:
        return read(Header, {**known, "version": VERSION})
    except Unfit:
        named = {name: known[name] for name in ("made_by", "title", "began") if name in known}
        return read(Header, {"made_by": "", "began": 0.0, **named, "version": VERSION})


def _row(frame: Frame) -> Row:
    """A message as it is indexed. Raises Unfit for what no message can be."""
    if not 0 < frame.seq < bounds.LARGEST_SEQ or not 0 < frame.number < bounds.LARGEST_SEQ:
        raise Unfit("a place in a log", "seq")
    if frame.size < 0:
        raise Unfit("a size", "size")
    if not (0 <= frame.at <= LAST_MOMENT and math.isfinite(frame.latency_ms or 0.0)):
        raise Unfit("a time", "at")
    message = message_of(frame)
    # What is read from bytes is short already: only what the line itself says may be anything.
    by_hand = frame.row is not None or frame.method is not None or frame.fold is not None or frame.by != ""
    return Row(_short(message, frame) if by_hand else message, frame.raw, frame.exchange)


def _short(message: Message, frame: Frame) -> Message:
    """Nothing in a row is longer than what Parley itself writes into one."""

    def cut(text: str | None) -> str | None:
        return text if text is None else text[:_WORDS]

    rpc_id = message.rpc_id
    if isinstance(rpc_id, float) and not math.isfinite(rpc_id):
        raise Unfit("an id", "rpc_id")
    longest = max(len(text or "") for text in (message.method, message.fold, message.gist, message.by))
    if longest <= _WORDS and frame.row is None:
        return message
    return replace(
        message,
        method=cut(message.method),
        rpc_id=rpc_id[:_WORDS] if isinstance(rpc_id, str) else rpc_id,
        gist=message.gist[:_WORDS],
        problem=cut(message.problem),
        unread=cut(message.unread),
        fold=cut(message.fold),
        step=message.step[:_WORDS],
        by=message.by[:_WORDS],
    )


def _check(noun: Any) -> None:
    """Every figure is finite: pages reckon with them. Raises Unfit."""
    for name, value in _floats(noun):
        if isinstance(value, float) and not math.isfinite(value) and name != "claimed_until":
            raise Unfit("a number", name)


def _floats(noun: Any) -> Iterator[tuple[str, Any]]:
    for each in fields(noun):
        value = getattr(noun, each.name)
        for one in value if isinstance(value, list | tuple) or type(value).__name__ == "deque" else (value,):
            if is_dataclass(one) and not isinstance(one, type) and each.name != "log":
                yield from _floats(one)
            else:
                yield each.name, one


def _key(text: str) -> str:
    return text[: bounds.WATCHED_URI].encode(errors="backslashreplace").decode()


def _words(found: State) -> str:
    """What of a state people look for: what was called, and what was remarked."""
    noun = found.noun
    if isinstance(noun, Call) and not noun.quiet:
        said = f"{noun.method} {noun.subject}"
    elif isinstance(noun, Beside):
        said = " ".join(f"{one.id} {one.text} {one.advice}" for one in noun.findings)
    else:
        return ""
    return said.lower()[: 4 * bounds.KIB].encode(errors="backslashreplace").decode()


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0
