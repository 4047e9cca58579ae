"""A file that somebody brings: gzipped or not, written down as it arrives, and looked at before it is kept.

It is never held in memory, and never larger than the limit of a recording, however small it was packed. What is no
recording at all leaves nothing behind; one that is broken or cut is kept, and says so when it is opened.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from app import bounds
from app.core.connection import ConnectionInfo
from app.core.errors import Invalid, NotAllowed, ParleyError
from app.recordings.codec import Unfit
from app.recordings.indexing import as_known
from app.recordings.lines import Broken, Newer, read_line
from app.recordings.nouns import End, Frame, Header, State
from app.recordings.recording import target_of
from app.sessions.identity import LOCAL, Identity
from app.sessions.workspace import UNTITLED
from app.settings import MIB
from app.store.bodies import Body, Unwritable
from app.store.recordings import Recording, new_id

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry

_MAGIC: Final = b"\x1f\x8b"
_GZIP: Final = 31
_STEP: Final = bounds.MIB
_LOOKED_AT: Final = 20
"""Lines at the beginning among which one must be of a recording."""


class _Unpacked:
    """Bytes as they arrive, unpacked when they are packed."""

    def __init__(self) -> None:
        self._held = b""
        self._begun = self._packed = False
        self._unzip = zlib.decompressobj(_GZIP)

    def take(self, data: bytes) -> Iterable[bytes]:
        """What these bytes are, in steps: what a few of them unpack to is never held as one."""
        if not self._begun:
            self._held += data
            if len(self._held) < len(_MAGIC):
                return []
            self._begun, self._packed = True, self._held.startswith(_MAGIC)
            data, self._held = self._held, b""
        return self._unpacked(data) if self._packed else [data]

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        while data:
            try:
                yield self._unzip.decompress(data, _STEP)
            except zlib.error:
                return  # it was cut or is broken here: what came before may be good
            data = self._unzip.unconsumed_tail
            if self._unzip.eof:
                data = self._unzip.unused_data
                self._unzip = zlib.decompressobj(_GZIP)


@dataclass(slots=True)
class _Beginning:
    """What the first lines of a file say."""

    header: Header | None = None
    lines: int = 0
    """How many of them are of a recording."""
    problem: str = "it is empty"


def _looked_at(text: bytes) -> _Beginning:
    found = _Beginning()
    for line in text.splitlines(keepends=True)[:_LOOKED_AT]:
        try:
            one = read_line(line)
        except Newer:
            found.lines += 1
            with contextlib.suppress(Unfit):
                found.header = found.header or as_known(line)
        except Broken as wrong:
            if not found.lines:
                found.problem = f"its first line {wrong}"
        else:
            found.lines += isinstance(one, Header | Frame | State)
            found.header = found.header or (one if isinstance(one, Header) else None)
    return found


def no_recording(path: Path) -> str:
    """Why a file is no recording; "" when it may be one. Raises OSError."""
    unpacked, text = _Unpacked(), b""
    with path.open("rb") as file:
        while len(text) < _STEP and (block := file.read(64 * bounds.KIB)):
            text += b"".join(unpacked.take(block))
    found = _looked_at(text)
    return "" if found.lines else found.problem


async def of_file(path: Path) -> AsyncIterator[bytes]:
    """The bytes of a file on this machine."""
    async with await anyio.open_file(path, "rb") as file:
        while block := await file.read(_STEP):
            yield block


async def opened(registry: SessionRegistry, path: Path) -> tuple[str, str | None]:
    """Keep a file of this machine for whoever started Parley with it: the id, or why that did not work."""
    try:
        return (await arrive(registry, LOCAL, of_file(path), path.name)).id, None
    except (ParleyError, OSError) as fault:
        return "", str(fault)


async def arrive(
    registry: SessionRegistry, identity: Identity, blocks: AsyncIterator[bytes], name: str = ""
) -> Recording:
    """Keep a file as a recording of this identity. Raises Invalid when it is none, NotAllowed when there is no room."""
    store, most = registry.store.recordings, registry.settings.limits.recording_bytes
    await registry.store.loaded()
    bodies = store.bodies
    store.room(identity.id)
    await store.prepare()
    rid, unpacked, taken, left = new_id(), _Unpacked(), list[int](), store.left(identity.id)

    def take(body: Body, block: bytes) -> None:
        for part in unpacked.take(block):
            if body.size + len(part) > most:
                raise NotAllowed(f"A recording may have {most // MIB:,} MiB, and this one has more.")
            store.arriving.take(identity.id, len(part), left)  # many files at the same time are counted together
            taken.append(len(part))
            body.append(part)

    try:
        body: Body = await store.in_thread(bodies.create, rid)
        try:
            async for block in blocks:
                await store.in_thread(take, body, block)
            row: Recording = await store.in_thread(_row, body, rid, identity.id, name, registry.wall())
        finally:
            body.close()
        await store.put(row)
    except BaseException as fault:
        with anyio.CancelScope(shield=True), contextlib.suppress(Unwritable):
            await store.in_thread(bodies.delete, rid)
        if isinstance(fault, Unwritable):
            raise NotAllowed(f"It could not be kept: {fault}.") from None
        raise
    finally:
        store.arriving.over(identity.id, sum(taken))
    return row


def _row(body: Body, rid: str, owner: str, name: str, now: float) -> Recording:
    """What a list says of it. Raises Invalid when it is no recording."""
    found = _looked_at(body.read(0, _STEP))
    if not found.lines:
        raise Invalid(f"This is no recording of Parley: {found.problem}.", {"/file": ["No recording."]})
    header, end = found.header, _end(body)
    target = None if header is None else target_of(header.target)
    said = header.title if header is not None and header.title != UNTITLED else _server(body)
    title = " ".join((said or Path(name).name).split())[: bounds.RECORDING_TITLE] or "A recording"
    began = now if header is None or not 0 < header.began <= now else header.began
    totals = None if end is None else end[1].totals
    return Recording(
        id=rid,
        owner=owner,
        title=title,
        state="cut" if end is None else "complete",
        began=began,
        ended=None if end is None else max(began, min(end[0], now)),
        size=body.size,
        label="" if target is None else target.label,
        target="" if header is None else header.target_key[:200],
        revision="" if header is None else (header.revision or "")[:40],
        messages=0 if totals is None else max(0, totals.count),
        calls=0 if totals is None else max(0, totals.calls),
        asks=0 if totals is None else max(0, totals.asks),
        findings=0 if totals is None else max(0, totals.findings_total),
        masked=()
        if end is None
        else tuple(
            {"pointer": one.pointer[:500], "name": one.name[:200], "count": one.count} for one in end[1].masked[:500]
        ),
        notes="" if header is None else header.note[: bounds.RECORDING_NOTES],
        origin="opened" if header is None or header.opens_at is None else "moment",
    )


def _server(body: Body) -> str:
    """What the server calls itself, for a recording that began before anybody knew: as its last connection says."""
    tail = body.read(max(0, body.size - _STEP), _STEP)
    for line in reversed(tail.splitlines()):
        if line.startswith(b'{"kind":"connection"'):
            with contextlib.suppress(Broken):
                found = read_line(line)
                if isinstance(found, State) and isinstance(found.noun, ConnectionInfo) and found.noun.calls_itself:
                    return found.noun.calls_itself
    return ""


def _end(body: Body) -> tuple[float, End] | None:
    """The line that says that a recording was ended in order."""
    size = body.size
    tail = body.read(max(0, size - _STEP), _STEP).rstrip(b"\n")
    try:
        last = read_line(tail[tail.rfind(b"\n") + 1 :])
    except Broken:
        return None
    return (last.at, last.noun) if isinstance(last, State) and isinstance(last.noun, End) else None
