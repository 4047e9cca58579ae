"""A moment: a small recording of what belongs to one message, call or ask, cut out of a session or of a recording.

It has the call with its asks and tasks, their messages with what was remarked and what carried them, and what the
person wrote. It is masked like every recording, once more, and by names and pointers that the person adds. Everything
is made in memory first, so that it can be looked at before it is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import anyio

from app import bounds
from app.core.asks import Ask
from app.core.calls import Call
from app.core.errors import Invalid, NotAllowed
from app.core.wire import Message, StderrLine
from app.recordings.codec import write
from app.recordings.lines import Broken, message_of, noun_shapes, read_line, state_value
from app.recordings.masks import MASK
from app.recordings.nouns import MAGIC, Beside, End, Frame, Header, Masked, Noun, OpensAt, State, Totals
from app.recordings.scribe import Book
from app.recordings.taken import frame_members, header_of, known_secrets
from app.sessions.workspace import Workspace
from app.store.bodies import Body, Unwritable
from app.store.recordings import Recording, new_id

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry

PlaceKind = Literal["message", "call", "ask"]


@dataclass(slots=True, frozen=True)
class Wanted:
    """Which moment, what is said about it, and what goes along."""

    kind: PlaceKind
    id: str
    title: str = ""
    note: str = ""
    asks: bool = True
    messages: bool = True
    stderr: bool = False
    names: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()


@dataclass(slots=True)
class Picked:
    """What belongs to a moment."""

    place: OpensAt
    call: Call | None = None
    asks: list[Ask] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    stderr: list[StderrLine] = field(default_factory=list)

    @property
    def subject(self) -> str:
        """What it is about, for a title."""
        if self.call is not None:
            return self.call.subject
        if self.asks:
            return self.asks[0].message or self.asks[0].method
        return (
            next((one.method or one.gist for one in self.messages if str(one.seq) == self.place.id), "") or "A message"
        )


@dataclass(slots=True)
class Moment:
    """A moment that could be kept: its lines, and what they say once everything is masked."""

    picked: Picked
    recording: Recording
    lines: bytes
    masked: list[Masked]
    call: Call | None = None
    asks: list[Ask] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)
    """Names and pointers of the person that nothing in it has."""

    @property
    def has_masks(self) -> bool:
        """Whether anything in it is masked, now or when it was recorded."""
        return MASK.encode() in self.lines


# ---------------------------------------------------------------------------------------------------------- picking


def pick(space: Workspace, kind: PlaceKind, key: str) -> Picked:
    """What belongs to a message, a call or an ask. Raises Invalid when there is none."""
    found = Picked(OpensAt(kind, key))
    if kind == "message":
        message = space.messages.get(int(key)) if key.isdecimal() and len(key) < 16 else None
        if message is None:
            raise Invalid("There is no such message.", {"/seq": ["Not in the log."]})
        found.call, found.asks = _of_message(space, message)
        found.messages = _pair(space, message)
    elif kind == "call":
        found.call = space.calls.get(key)
        if found.call is None:
            raise Invalid("There is no such call.", {"/call": ["Not kept."]})
    else:
        ask = space.inbox.asks.get(key)
        if ask is None:
            raise Invalid("There is no such ask.", {"/ask": ["Not kept."]})
        found.asks, found.call = [ask], space.calls.get(ask.call_id or "")
    if found.call is not None:
        known = {ask.id for ask in found.asks}
        of_call = [
            ask for ask in space.inbox.asks.values() if ask.call_id == found.call.id or ask.id in found.call.asks
        ]
        found.asks += [ask for ask in of_call if ask.id not in known]
    found.messages = _messages(space, found)
    if found.messages:
        since, until = found.messages[0].at, found.messages[-1].at
        found.stderr = [line for line in space.stderr.lines() if since <= line.at <= until and line.counts]
    return found


def _of_message(space: Workspace, message: Message) -> tuple[Call | None, list[Ask]]:
    """The call and the asks that a message belongs to."""
    near = {message.seq, message.answers}
    asks = [ask for ask in space.inbox.asks.values() if ask.message_seq is not None and ask.message_seq in near]
    call = next((one for one in space.calls.newest if near & one.seqs), None)
    if call is None and asks:
        call = space.calls.get(asks[0].call_id or "")
    return call, asks


def _pair(space: Workspace, message: Message) -> list[Message]:
    log = space.messages
    other = log.get(message.answers) if message.answers is not None else log.reply_to(message.seq)
    return [one for one in (message, other) if one is not None]


def _messages(space: Workspace, found: Picked) -> list[Message]:
    """The messages of it, in order: requests with their replies, polls of its tasks, and its progress."""
    wanted = {one.seq for one in found.messages} | (set() if found.call is None else found.call.seqs)
    wanted |= {ask.message_seq for ask in found.asks if ask.message_seq is not None}
    for tid in {found.call.task_id if found.call is not None else None, *(ask.task_id for ask in found.asks)} - {None}:
        task = space.client_tasks.tasks.get(tid or "") or space.asks.tasks.get(tid or "")
        visits = [] if task is None else task.visits
        wanted |= {seq for one in visits for seq in (one.seq, one.reply_seq) if seq is not None}
    if not wanted:
        return []
    tokens = () if found.call is None else tuple(f"notifications/progress {leg.rpc_id}" for leg in found.call.legs)
    made: dict[int, Message] = {}
    last = max(wanted)
    for one in space.messages.after(min(wanted) - 1, bounds.MOMENT_LOOKS):
        if one.seq in wanted or one.answers in wanted or (one.fold in tokens and one.seq <= last):
            made[one.seq] = one
        if len(made) >= bounds.MOMENT_MESSAGES:
            break
    return [made[seq] for seq in sorted(made)]


# ----------------------------------------------------------------------------------------------------------- making


def make(space: Workspace, wanted: Wanted, now: float) -> Moment:
    """The lines of a moment, masked. Blocks for as long as it takes to look through them; small."""
    picked = pick(space, wanted.kind, wanted.id)
    title = " ".join((wanted.title or f"{picked.subject}").split())[: bounds.RECORDING_TITLE]
    began = picked.messages[0].at if picked.messages else space.wall()
    ended = picked.messages[-1].at if picked.messages else began
    row = Recording(
        id=new_id(),
        owner=space.owner,
        title=title,
        state="complete",
        began=began,
        ended=ended,
        label="" if space.target is None else space.target.label,
        target=space.target_key,
        session=space.id,
        revision=space.info.protocol_version or "",
        messages=len(picked.messages) if wanted.messages else 0,
        calls=int(picked.call is not None),
        asks=len(picked.asks) if wanted.asks else 0,
        notes=wanted.note,
        origin="moment",
    )
    book = Book(list(known_secrets(space.target)), list(wanted.names), list(wanted.pointers), noun_shapes())
    things = list(_things(space, picked, wanted, row))
    book.write([(what, _copied(line), body) for what, line, body in things])  # what is typed may stand before it
    book.masks.counts.clear()
    lines, _ = book.write(things)
    masked = [Masked(pointer, name, count) for (pointer, name), count in book.masks.counts.items()]
    totals = _totals(picked, wanted)
    end = {"kind": "end", "seq": space.events.seq, "at": ended, "value": write(End("moment", totals, masked))}
    lines += book.write([("state", end, None)])[0]
    row = replace(row, size=len(lines), masked=tuple(write(one) for one in masked), findings=totals.findings_total)
    unmet = book.masks.unmet((*wanted.names, *wanted.pointers))
    return _read_back(Moment(picked, row, lines, masked, unmet=unmet))


def _copied(line: dict[str, Any]) -> dict[str, Any]:
    return {**line}


def _things(space: Workspace, picked: Picked, wanted: Wanted, row: Recording) -> Iterator[tuple[str, Any, Any]]:
    header = replace(header_of(space, row, []), opens_at=picked.place, note=wanted.note[: bounds.RECORDING_NOTES])
    yield "header", {"parley": MAGIC, **write(header)}, None
    log = space.messages
    kept = {one.seq for one in picked.messages} if wanted.messages else set()
    for one in picked.messages if wanted.messages else ():
        raw = log.raw(one.seq)
        yield "frame", frame_members(one, bare=raw is None, carried=log.exchange(one.seq)), raw
    nouns: list[tuple[str, Noun]] = []
    if space.info.number:
        nouns.append((str(space.info.number), replace(space.info, steps=[], pid=None)))
    for one in picked.messages if wanted.messages else ():
        exchange = log.exchange(one.seq)
        nouns += [] if exchange is None else [(str(exchange.seq), exchange)]
        beside = log.findings(one.seq)
        nouns += [(str(one.seq), Beside(list(beside)))] if beside else []
    for ask in picked.asks if wanted.asks else ():
        nouns.append((ask.id, ask))
        task = space.asks.tasks.get(ask.task_id or "")
        nouns += [] if task is None else [(task.id, task)]
    if picked.call is not None:
        task_of = space.client_tasks.tasks.get(picked.call.task_id or "")
        nouns += [] if task_of is None else [(task_of.id, task_of)]
        nouns.append((picked.call.id, picked.call))
    nouns += [(str(line.number), line) for line in picked.stderr] if wanted.stderr else []
    for key, noun in nouns:
        kind, value = state_value(noun)
        reply, more = None, dict[str, Any]()
        if isinstance(noun, Call) and noun.reply is not None:
            in_frame = (
                bool(noun.legs)
                and noun.legs[-1].reply_seq in kept
                and log.raw(noun.legs[-1].reply_seq or 0) == noun.reply
            )
            more, reply = ({"reply": "frame"}, None) if in_frame else ({}, noun.reply)
        yield (
            "state",
            {"kind": kind, "seq": space.events.seq, "at": space.wall(), "id": key, **more, "value": value},
            reply,
        )


def _totals(picked: Picked, wanted: Wanted) -> Totals:
    rows = picked.messages if wanted.messages else []
    return Totals(
        count=len(rows),
        invalid=sum(one.kind == "invalid" for one in rows),
        bytes_total=sum(one.size for one in rows),
        inbound=sum(one.direction == "in" for one in rows),
        outbound=sum(one.direction == "out" for one in rows),
        calls=int(picked.call is not None),
        asks=len(picked.asks) if wanted.asks else 0,
        stderr=len(picked.stderr) if wanted.stderr else 0,
    )


def _read_back(made: Moment) -> Moment:
    """What others will see: read from the very lines that are kept. What nobody can read is not kept: it would not be
    in the preview either."""
    kept: list[bytes] = []
    for line in made.lines.splitlines(keepends=True):
        try:
            found = read_line(line)
        except Broken:
            continue
        kept.append(line)
        if isinstance(found, Header):  # what somebody typed may hold a secret too
            made.recording = replace(made.recording, title=found.title, notes=found.note)
        elif isinstance(found, Frame):
            made.messages.append(message_of(found))
        elif isinstance(found, State) and isinstance(found.noun, Call):
            made.call = found.noun
        elif isinstance(found, State) and isinstance(found.noun, Ask):
            made.asks.append(found.noun)
    made.lines = b"".join(kept)
    made.recording = replace(made.recording, size=len(made.lines))
    return made


async def keep(registry: SessionRegistry, made: Moment) -> Recording:
    """Keep it. Raises NotAllowed when there is no room, or the disk refuses."""
    store = registry.store.recordings
    await registry.store.loaded()
    bodies = store.bodies
    store.room(made.recording.owner)
    await store.prepare()

    def written() -> None:
        body: Body = bodies.create(made.recording.id)
        try:
            body.append(made.lines)
            body.sync()
        finally:
            body.close()

    try:
        await store.in_thread(written)
        await store.put(made.recording)
    except BaseException as fault:
        with anyio.CancelScope(shield=True), contextlib.suppress(Unwritable):
            await store.in_thread(bodies.delete, made.recording.id)
        if isinstance(fault, Unwritable):
            raise NotAllowed(f"It could not be kept: {fault}.") from None
        raise
    return made.recording
