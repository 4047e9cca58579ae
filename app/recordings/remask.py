"""Masks more in a recording that is there: first what would be masked, then, when somebody wants that, a new body in
the place of the old one. What is masked cannot be brought back.

It is read twice: a text that is masked in one place is masked wherever it stands, also in what came before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from app import bounds
from app.core.errors import Conflict, Gone, NotAllowed
from app.recordings.lines import noun_shapes
from app.recordings.portions import Wanted
from app.recordings.scribes import Counts, Scribe, ScribeGone
from app.store.bodies import Body, Unwritable
from app.store.recordings import Recording, Recordings


@dataclass(slots=True, frozen=True)
class Matches:
    """What is masked besides what was masked before, by place and name; and whether it is done."""

    masked: tuple[dict[str, Any], ...]
    saved: bool = False

    @property
    def count(self) -> int:
        """How many values."""
        return sum(int(one["count"]) for one in self.masked)


async def remask(
    store: Recordings, scribe: Scribe, recording: Recording, wanted: Wanted, *, save: bool
) -> tuple[Recording, Matches]:
    """Look through a recording for what is to be masked, and with `save` mask it. Raises Conflict while it is being
    written, Gone when its bytes are, NotAllowed when the disk refuses."""
    if recording.state == "recording":
        raise Conflict("This is still being recorded. Stop that first.")
    try:
        await scribe.enter()
        try:
            return await _remasked(store, scribe, recording, wanted, save)
        finally:
            await scribe.leave()
    except KeyError:
        raise Gone("The bytes of this recording are gone. Delete it.") from None
    except (Unwritable, ScribeGone) as no:
        raise NotAllowed(f"Nothing was masked: {no}.") from None


async def _remasked(
    store: Recordings, scribe: Scribe, recording: Recording, wanted: Wanted, save: bool
) -> tuple[Recording, Matches]:
    key, draft = f"{recording.id}-again", f"{recording.id}-new"
    body: Body = await store.in_thread(store.bodies.open, recording.id)
    try:
        await scribe.ask("open", key, ([], list(wanted.names), list(wanted.pointers), noun_shapes()))
        found: Counts = []
        async for lines in _lines(store, body):
            _, counts = await scribe.ask("again", key, lines)
            found = found if counts is None else counts
        if not save or not found:
            return recording, Matches(_told(found))
        await scribe.ask("anew", key, [dict(one) for one in recording.masked])
        await store.in_thread(store.bodies.delete, draft)
        made: Body = await store.in_thread(store.bodies.create, draft)
        try:
            async for lines in _lines(store, body):
                masked, counts = await scribe.ask("again", key, lines)
                found = found if counts is None else counts
                await store.in_thread(made.append, masked)
            await store.in_thread(made.sync)
            size = await store.in_thread(lambda: made.size)
        except BaseException:
            await store.in_thread(store.bodies.delete, draft)
            raise
        finally:
            await store.in_thread(made.close)
        await store.in_thread(store.bodies.replace, recording.id, draft)
        changed = replace(recording, size=size, masked=merged(recording.masked, _told(found)))
        await store.put(changed)
        await store.changed(changed.id)
        return changed, Matches(_told(found), saved=True)
    finally:
        await store.in_thread(body.close)
        await scribe.ask("close", key, None)


async def _lines(store: Recordings, body: Body) -> AsyncIterator[bytes]:
    """All of it, in slices of whole lines; what is no whole line at the end is left out."""
    at, rest, most = 0, b"", bounds.RECORDING_SLICE_BYTES
    while block := await store.in_thread(body.read, at, most):
        at += len(block)
        whole, newline, rest = (rest + block).rpartition(b"\n")
        if newline:
            yield whole + newline
        elif len(rest) > bounds.RECORDING_LINE:
            raise Unwritable("a line of it is longer than any message")


def _told(counts: Counts) -> tuple[dict[str, Any], ...]:
    return tuple({"pointer": pointer, "name": name, "count": count} for pointer, name, count in counts)


def merged(before: tuple[dict[str, Any], ...], now: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """Both lists of what was masked as one."""
    found: dict[tuple[str, str], int] = {}
    for one in (*before, *now):
        key = (str(one["pointer"]), str(one["name"]))
        found[key] = found.get(key, 0) + int(one["count"])
    return tuple({"pointer": pointer, "name": name, "count": count} for (pointer, name), count in found.items())
