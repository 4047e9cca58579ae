"""Records one session, from behind: whatever the session has done by now is gathered, masked, and added to a body.

It is one more reader of the log and the events, so it never stands in the way: a disk that is slow makes it late, and
what the log has let go of meanwhile is said to be missing. A disk that is full, read-only or gone ends the recording
with a sentence, never the session.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel

from app import bounds
from app.core.calls import Call
from app.core.errors import NotAllowed
from app.core.signal import Signal, first_of
from app.core.wire import Message
from app.recordings import codec, scribe, states
from app.recordings.lines import noun_shapes, state_value
from app.recordings.nouns import (
    KINDS,
    MAGIC,
    End,
    Gap,
    ListState,
    Masked,
    Noun,
    Why,
)
from app.recordings.portions import FEW, PACKS, Place, Portion, Thing, Wanted, packed
from app.recordings.scribes import Counts, Scribe, ScribeGone
from app.recordings.taken import frame_members, header_of, known_secrets, messages_thing, title_of
from app.sessions.workspace import Workspace
from app.settings import MIB
from app.store.bodies import Body, Unwritable
from app.store.recordings import Recording, Recordings

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry

logger = logging.getLogger("parley.recordings")

_SAYS_SECONDS: Final = 2.0
_ROW_SECONDS: Final = 20.0
_NOTHING: Final[dict[str, Any]] = {}
_IN_FRAME: Final[dict[str, Any]] = {"reply": "frame"}
_LATE: Final = "The disk was too slow: the log had let go of it before it could be written."


class Recorder:
    """The recording of one session."""

    def __init__(
        self,
        registry: SessionRegistry,
        space: Workspace,
        recording: Recording,
        scribe: Scribe,
        wanted: Wanted,
    ) -> None:
        self._registry, self._space, self._scribe, self._wanted = registry, space, scribe, wanted
        self._store: Recordings = registry.store.recordings
        self.recording = recording
        self.trouble = ""
        """Why it ended, as a sentence, when nobody wanted it to."""
        self.begun = Signal()
        """Its first line is written, or it never will be."""
        self.over = Signal()
        """It has ended, and all that will ever be written is."""
        self._why: Why | None = None
        self._stopping = Signal()
        self._entered = self._failed = self._wrote = False
        self._untitled = space.info.server_info is None
        self._place = Place()
        self._body: Body | None = None
        self._masked: Counts = []
        self._packs: Portion = []
        """What is gathered and not yet sent."""
        self._known: frozenset[str] = frozenset()
        self._synced = self._said = self._kept = 0.0
        self._turn = ord(recording.id[-1]) % bounds.RECORDING_TURNS / bounds.RECORDING_TURNS
        self._now = (0, 0.0)
        """The newest event and the time when the session was last looked at: what is taken then is of then."""

    @property
    def rid(self) -> str:
        """What the recording is called in addresses."""
        return self.recording.id

    @property
    def began(self) -> float:
        """When it began."""
        return self.recording.began

    @property
    def live(self) -> bool:
        """Whether it goes on."""
        return not self.over.is_set() and self._why is None

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self.recording.size

    def stop(self, why: Why = "stopped") -> None:
        """Let it end: what has happened until now is still written."""
        self._why = self._why or why
        self._stopping.set()

    # ---- its life

    async def run(self) -> None:
        """Record until somebody stops it, the session is closed, or nothing can be written."""
        try:
            await self._begin()
            while True:
                await self._catch_up()
                if self._why is not None:
                    break
                await self._rest()
            with anyio.CancelScope(shield=True), anyio.move_on_after(bounds.RECORDING_END_SECONDS) as late:
                await self._finish()
            if late.cancelled_caught:
                raise Unwritable("the disk does not answer")
        except (Unwritable, ScribeGone, NotAllowed) as no:
            self._fail(str(no) if not isinstance(no, NotAllowed) else no.message.rstrip("."))
        except Exception as fault:
            logger.exception("the recording of session %s failed inside Parley", self._space.id)
            self._fail(f"Parley itself failed: {type(fault).__name__}")
        finally:
            with anyio.CancelScope(shield=True):
                await self._close()

    async def _begin(self) -> None:
        await self._scribe.enter()
        self._entered = True
        await self._store.prepare()
        self._body = await self._store.in_thread(self._store.bodies.create, self.recording.id)
        space = self._space
        self._known = frozenset(known_secrets(space.target))
        given = (sorted(self._known), list(self._wanted.names), list(self._wanted.pointers), noun_shapes())
        await self._scribe.ask("open", self.recording.id, given)
        self._store.note(self.recording, new=True)
        rows = list(space.messages.back())
        self._place.first = rows[-1].seq if rows else space.events.seq + 1
        header = codec.write(header_of(space, self.recording, rows))
        self._packs.append(scribe.plain([("header", {"parley": MAGIC, **header}, None)]))
        await self._send()
        self._keep_row()
        self.begun.set()
        logger.info("session %s is recorded as %s", space.id, self.recording.id)

    async def _rest(self) -> None:
        """Wait until something has happened, and then for a moment: much that happens is said once."""
        space = self._space
        if not space.closed:  # else its last event may be written already, and no other one will come
            with anyio.move_on_after(1.0 if self._behind else None):
                await first_of(space.events.after(self._place.events), self._stopping)
        if not space.closed:
            with anyio.move_on_after(self._until_tick()):
                await self._stopping.wait()
        if space.closed:
            self.stop("shutdown" if self._registry.closing else "closed")

    def _until_tick(self) -> float:
        """How long until it writes again: with others, for what several have goes to masks and disk together; and not
        with all of them, for nobody gets a turn while they gather it."""
        tick = bounds.RECORDING_TICK_SECONDS
        return tick - (self._space.mono() + self._turn * tick) % tick

    async def _finish(self) -> None:
        """Write what has happened since the last look, what changed without a word, and the last line."""
        await self._catch_up(all_of_it=True)
        self._look()
        masked = [Masked(*one) for one in self._masked]
        end = End(self._why or "stopped", states.totals(self._space), masked, self.trouble)
        self._packs.append(scribe.plain([self._noun("", end)]))
        await self._send()
        if self._body is not None:
            await self._store.in_thread(self._body.sync)
            while self._behind:
                await anyio.sleep(0.5)
                await self._store.in_thread(self._body.sync)

    @property
    def _behind(self) -> int:
        """Bytes that wait for a store that does not answer."""
        return 0 if self._body is None else self._body.behind

    def _fail(self, words: str) -> None:
        self._why, self._failed = self._why or "disk", True
        self.trouble = f"The recording ended: {words}. The session goes on."
        logger.warning("the recording of session %s ended: %s", self._space.id, words)

    async def _close(self) -> None:
        body, self._body = self._body, None
        masked = tuple({"pointer": pointer, "name": name, "count": count} for pointer, name, count in self._masked)
        self.recording = replace(
            self.recording,
            state="cut" if self._failed else "complete",
            began=self.recording.began if self._place.since is None else self._place.since,
            ended=self._space.wall() if self._place.until is None else self._place.until,
            masked=masked,
            words=self.trouble,
            writer="",
        )
        self.recording = self._store.note(self.recording)
        if self._entered:
            with suppress(ScribeGone), anyio.move_on_after(bounds.RECORDING_END_SECONDS):
                await self._scribe.ask("close", self.recording.id, None)
            await self._scribe.leave()
        with anyio.move_on_after(bounds.RECORDING_END_SECONDS):
            if body is not None:
                await self._store.in_thread(body.close)
                self._keep_row()
        self.begun.set()
        self.over.set()
        if not self._space.closed:
            self._space.changed("recording.changed", "recording")

    # ---- catching up

    async def _catch_up(self, *, all_of_it: bool = False) -> None:
        """Write down all that has happened since the last time: messages first, and then what came of them. A noun is
        never newer than the messages before it, for what is typed in one is a secret in the other."""
        if self._behind > bounds.RECORDING_WAITING and self._body is not None:
            # The store is gone for long: the log waits too, and says later what it had to let go of.
            await self._store.in_thread(self._body.sync)
            if self._behind > bounds.RECORDING_WAITING and not all_of_it:
                return
        await self._learn()
        now = self._look()
        changed = [*packed(self._nouns(all_of_it))]
        await self._messages(now)
        for pack in changed:
            await self._add(pack)
        self._place.events = now
        if changed or self._packs:
            self._packs.append(scribe.plain([self._noun("", states.totals(self._space)), ("masked", *self._now)]))
        await self._send()
        await self._settle()

    def _look(self) -> int:
        """The newest event, as of now."""
        self._now = self._space.events.seq, self._space.wall()
        return self._now[0]

    def _nouns(self, all_of_it: bool) -> Iterator[Thing]:
        space, place = self._space, self._place
        happened = space.events.since(place.events) if place.events and not all_of_it else None
        yield from self._exchanges(all_of_it)
        yield from self._stderr()
        if happened is None:
            for key, noun in states.everything(space):
                yield self._noun(key, noun)
        else:
            changed: dict[Any, dict[str, None]] = {}
            for event in happened:
                of = states.OF_EVENT.get(event.kind)
                if of is not None:
                    changed.setdefault(of, {})[event.subject] = None
                elif event.kind == "inbox.cleared":
                    place.cleared = max(place.cleared, event.seq)
            for of, subjects in changed.items():
                if of is states.of_call:  # most of what happens, in a hurry
                    yield from self._calls(subjects)
                    continue
                for subject in subjects:
                    for key, noun in of(space, subject):
                        yield self._noun(key, noun)
        yield from self._beside()

    def _calls(self, cids: Iterable[str]) -> Iterator[Thing]:
        calls, log, (seq, at) = self._space.calls, self._space.messages, self._now
        for cid in cids:
            if (call := calls.get(cid)) is not None:
                yield "noun", "call", cid, seq, at, codec.taken(call), *self._reply(call)
                if log.is_noted(cid):
                    yield from (self._noun(*note) for note in states.notes(self._space, cid))

    def _beside(self) -> Iterator[Thing]:
        """What is followed by its own numbers, and not by events."""
        space, place = self._space, self._place
        if space.server_log.count != place.logged:
            place.logged = space.server_log.count
            yield from (self._noun(*one) for one in states.server_log(space, place.first))
        for key, noun in states.inbox(space, place.cleared):
            if noun != place.inbox:
                place.inbox = noun
                yield self._noun(key, noun)

    async def _messages(self, until: int) -> None:
        """Every message up to there, in order, with its bytes as long as the log has them."""
        log, place = self._space.messages, self._place
        rows = [row for row in log.after(place.message, log.count) if row.seq <= until]
        for at in range(0, len(rows), FEW):
            few = rows[at : at + FEW]
            raws = [raw for row in few if (raw := log.raw(row.seq)) is not None]
            if place.follows(few) and len(raws) == len(few) and sum(map(len, raws)) < bounds.RECORDING_SLICE_BYTES:
                place.wrote(few)
                await self._add(scribe.plain([messages_thing(few, [log.exchange(row.seq) for row in few], raws)]))
                continue
            things, size = list[Thing](), 0
            for row in few:
                things += self._message(row)
                size += row.size
                if size >= bounds.RECORDING_SLICE_BYTES or row is few[-1]:
                    await self._add(scribe.plain(things))
                    things, size = [], 0

    def _message(self, row: Message) -> Iterator[Thing]:
        """One message that is large, is no longer kept as it came, or comes after a gap."""
        log, place = self._space.messages, self._place
        if not place.follows([row]):
            yield self._noun(str(place.message), Gap(place.message, row.number - place.number - 1, _LATE))
        raw, carried = log.raw(row.seq), log.exchange(row.seq)
        if raw is None:
            if len(place.bare) > self._space.limits.log_messages:
                place.bare.clear()
            place.bare.add(row.seq)
            yield "frame", frame_members(row, bare=True, carried=carried), None
        else:
            yield messages_thing([row], [carried], [raw])
        place.wrote([row])

    def _exchanges(self, all_of_it: bool) -> Iterator[Thing]:
        """HTTP requests: each when it begins, and again when more is known of it."""
        place = self._place
        for exchange in self._space.messages.exchanges(place.exchange):
            place.exchange = exchange.seq
            place.exchanges[exchange.seq] = (exchange, None, 0)
        for seq, (exchange, before, carried) in list(place.exchanges.items()):
            now = (exchange.status, exchange.answered_ms, exchange.ended_ms, exchange.error)
            # A stream carries one message after the other: said when they are twice as many, and at the end.
            if now != before or exchange.carried >= 2 * carried + 1 or (all_of_it and exchange.carried != carried):
                yield self._noun(str(seq), exchange)
                place.exchanges[seq] = (exchange, now, exchange.carried)
            if exchange.ended_ms is not None or exchange.error is not None:
                del place.exchanges[seq]
        for seq in list(place.exchanges)[: -self._space.limits.exchanges]:
            del place.exchanges[seq]

    def _stderr(self) -> Iterator[Thing]:
        log, place = self._space.stderr, self._place
        if log.count == place.stderr and log.redrawn == place.redrawn:
            return
        again = log.redrawn != place.redrawn
        for line in log.lines():
            if line.number > place.stderr or (again and not line.counts):
                yield self._noun(str(line.number), line)
        place.stderr, place.redrawn = log.count, log.redrawn

    def _noun(self, key: str, noun: Noun) -> Thing:
        """One noun as it is now. What was written like that before is not written again."""
        if type(noun) is Call:
            return "noun", "call", key, *self._now, codec.taken(noun), *self._reply(noun)
        value = state_value(noun)[1] if isinstance(noun, ListState) else codec.taken(noun)
        return "noun", KINDS[type(noun)], key, *self._now, value, _NOTHING, None

    def _reply(self, call: Call) -> tuple[dict[str, Any], bytes | None]:
        """Where the reply of a call stands: in its frame, or here."""
        if call.reply is None or not call.legs:
            return _NOTHING, None
        seq = call.legs[-1].reply_seq or 0
        raw, place = self._space.messages.raw(seq), self._place
        if raw is not None:
            in_frame = raw == call.reply and seq >= place.first
        else:
            in_frame = (
                place.first <= seq <= place.message and seq not in place.bare and call.legs[-1].rpc_id is not None
            )
        return (_IN_FRAME, None) if in_frame else (_NOTHING, call.reply)

    # ---- writing

    async def _add(self, pack: bytes) -> None:
        """Gather a pack; when they are many, or large, they are sent, and others get a turn."""
        self._packs.append(pack)
        if len(self._packs) >= PACKS or sum(map(len, self._packs)) >= bounds.RECORDING_SLICE_BYTES:
            await self._send()
            await anyio.lowlevel.checkpoint()

    async def _send(self) -> None:
        """Have what is gathered masked, and the disk take it."""
        packs, self._packs = self._packs, []
        if not packs or self._body is None:
            return
        more, counts = await self._scribe.write(self.recording.id, packs, self._body)
        if counts is not None:
            self._masked = counts
        if not more:
            return
        size = self.recording.size + more
        self.recording, self._wrote = replace(self.recording, size=size), True
        if size > self._space.limits.recording_bytes and self._why is None:
            most = self._space.limits.recording_bytes // MIB
            self.trouble = f"The recording ended: it is {most:,} MiB, which is the limit. The session goes on."
            self.stop("full")

    def _keep_row(self) -> None:
        """The row follows when it can: what writes to a database may have to be imported first."""
        self._kept = self._space.mono()
        self._registry.start_soon(self._store.put, self.recording)

    async def _learn(self) -> None:
        """A new connection may have new secrets."""
        known = frozenset(known_secrets(self._space.target))
        if not known <= self._known:
            await self._scribe.ask("learn", self.recording.id, sorted(known - self._known))
            self._known |= known

    async def _settle(self) -> None:
        """Have the disk keep it, and tell the page and the list how far it is; none of it each time."""
        wrote, self._wrote = self._wrote, False
        space, now = self._space, self._space.mono()
        totals = states.totals(space)
        self.recording = replace(
            self.recording,
            messages=self._place.frames,
            calls=totals.calls,
            asks=totals.asks,
            findings=totals.findings_total,
            revision=space.info.protocol_version or self.recording.revision,
        )
        if self._untitled and isinstance(space.info.server_info, dict):
            self._untitled = False
            self._store.rename(self.recording, title_of(space))
        self.recording = self._store.note(self.recording)
        if self._body is not None and (wrote or self._behind) and now - self._synced >= bounds.RECORDING_SYNC_SECONDS:
            self._synced = now
            await self._store.in_thread(self._body.sync)
        if now - self._kept >= _ROW_SECONDS:
            self._keep_row()
        if wrote and now - self._said >= _SAYS_SECONDS and not space.closed:
            self._said = now
            space.changed("recording.changed", "recording")
