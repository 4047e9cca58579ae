"""Search over recordings: by a text, a tool, a method or a finding, in the index of each; with where it stands.

What was masked is in no recording, so it is in no index either, and nobody finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread

from app import bounds
from app.core.calls import Call
from app.core.errors import NotAllowed
from app.core.found import Search
from app.recordings.lines import State, read_line
from app.store.bodies import Unwritable
from app.store.index_file import IndexFile

if TYPE_CHECKING:
    from app.recordings.shelf import Shelf
    from app.sessions.identity import Identity
    from app.store.recordings import Recording


@dataclass(slots=True, frozen=True)
class Wanted:
    """What somebody looks for: all that is not empty must be there."""

    q: str = ""
    tool: str = ""
    method: str = ""
    finding: str = ""

    def __bool__(self) -> bool:
        return any(astuple(self))


@dataclass(slots=True, frozen=True)
class Match:
    """One place of a recording."""

    kind: Literal["message", "call", "finding"]
    id: str
    """The seq of the message, or the id of the call."""
    text: str
    number: int = 0
    """Of a message: its row, as people count them."""

    @property
    def name(self) -> str:
        """What a person calls it: `Message 18`, `Call 3`, `Finding`."""
        known = str(self.number) if self.number else self.id[1:] if self.kind == "call" else ""
        return f"{self.kind.capitalize()} {known}".rstrip()

    @property
    def path(self) -> str:
        """Where it is shown, below the address of its recording."""
        return f"/calls/{self.id}" if self.kind == "call" or not self.id.isdecimal() else f"/log/{self.id}"


@dataclass(slots=True, frozen=True)
class Hit:
    """A recording in which something was found, or that was not read far enough to know."""

    row: Recording
    matches: tuple[Match, ...] = ()
    count: int = 0
    unread: bool = False


async def search(shelf: Shelf, identity: Identity, rows: list[Recording], wanted: Wanted) -> list[Hit]:
    """Those of the recordings that have it, in their order."""
    found: list[Hit] = []
    with anyio.move_on_after(bounds.RECORDINGS_SEARCH_SECONDS) as limit:
        for row in rows:
            hit = await _in_one(shelf, identity, row, wanted)
            if hit is not None:
                found.append(hit)
    if limit.cancelled_caught:
        seen = {hit.row.id for hit in found}
        found += [Hit(row, unread=True) for row in rows if row.id not in seen][:1]
    return found


async def _in_one(shelf: Shelf, identity: Identity, row: Recording, wanted: Wanted) -> Hit | None:
    by_name = _named(row, wanted)
    try:
        session = await shelf.open(identity, row)
        count, matches = await anyio.to_thread.run_sync(look, session.index, wanted)
    except (NotAllowed, Unwritable):
        return Hit(row) if by_name else None
    if session.reading:
        return Hit(row, tuple(matches), count, unread=True)
    return Hit(row, tuple(matches), count) if matches or by_name else None


def _named(row: Recording, wanted: Wanted) -> bool:
    """Whether what people wrote about a recording says it already."""
    said = " ".join([row.title, row.label, row.notes, *row.tags]).lower()
    return bool(wanted.q) and not (wanted.tool or wanted.method or wanted.finding) and all(
        word in said for word in wanted.q.lower().split()
    )  # fmt: skip


def look(index: IndexFile, wanted: Wanted) -> tuple[int, list[Match]]:
    """How often something is in a recording, with the first places; nothing unless all of it is there. Blocks."""
    many, places = 0, list[Match]()
    for count, matches in _each(index, wanted):
        if not count:
            return 0, []
        many += count
        places += matches
    return many, places[: bounds.RECORDING_MATCHES]


def _tool(index: IndexFile, key: str) -> str:
    """The tool of a call, as it is written: words of an index are in small letters."""
    found = read_line(index.state("call", key) or b"")
    return found.noun.subject if isinstance(found, State) and isinstance(found.noun, Call) else ""


def _each(index: IndexFile, wanted: Wanted) -> Iterator[tuple[int, list[Match]]]:
    most = bounds.RECORDING_MATCHES
    if wanted.tool:
        calls = index.named("call", f"tools/call {wanted.tool.lower()}", most)
        yield len(calls), [Match("call", key, _tool(index, key)) for key, _ in calls]
    if wanted.finding:
        noted = index.named("finding", wanted.finding.lower(), most)
        yield len(noted), [Match("finding", key, words[:200]) for key, words in noted]
    if wanted.q or wanted.method:
        words = tuple(wanted.q.lower().split())
        seqs = index.seqs(Search(words=words, method=wanted.method), lambda _: False)
        rows = index.some(seqs[:most]) if seqs else {}
        known = [rows[seq] for seq in seqs[:most] if seq in rows]
        said = [Match("message", str(one.seq), f"{one.method or ''} {one.gist}".strip(), one.number) for one in known]
        noted = index.named("finding", wanted.q.lower(), most) if wanted.q and not wanted.method and not said else []
        yield len(seqs) + len(noted), [*said, *(Match("finding", key, text[:200]) for key, text in noted)]
