"""A room: people with phones answer what a server asks, and a presenter decides what becomes of it.

It is an answerer: an ask that it takes is put to the phones, one after the other, for as long as the presenter set or
until they stop it; then the rule that they chose finds an answer, which leaves by itself or when they say so. One
answer of each phone to each ask. What phones sent lives in memory, and goes with the room.
Imported when the first room is opened. Knows the session that it answers for; knows no page and no listener.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import anyio

from app import guest_bounds as bounds
from app.core import asks, elicitation
from app.core import room as counting
from app.core.asks import Answer, AnsweredBy, Ask
from app.core.errors import Conflict, Gone, Invalid
from app.core.json.text import dump
from app.core.room import Ballot, Tally
from app.core.signal import Signal
from app.sessions.polls import Phone, Poll, Proposal, RoomSettings, Took

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace


class Room:
    """The room of one session, from when a presenter opens it until they close it."""

    def __init__(
        self, session: Workspace, settings: RoomSettings, ended: Callable[[Room], None], mark: str = ""
    ) -> None:
        self._session, self.settings, self._ended = session, settings, ended
        self.code = mark + "".join(secrets.choice(bounds.ROOM_CODE) for _ in range(6))
        self.address = ""
        """Where its phones go."""
        self.opened_at = session.wall()
        self._key = secrets.token_bytes(32)
        self.phones: dict[str, Phone] = {}
        self._from: Counter[str] = Counter()
        """How many of them came from one address."""
        self._new: deque[float] = deque(maxlen=bounds.ROOM_NEW_PER_SECOND)
        self.polls: OrderedDict[str, Poll] = OrderedDict()
        """Those that wait, the one that is before the room, and some that are over."""
        self.closed = False
        self._stirred, self._dirty = Signal(), Signal()
        session.start_soon(self._tell)

    @property
    def session(self) -> Workspace:
        return self._session

    # ---- questions

    def takes(self, ask: Ask) -> bool:
        """Whether an ask is one for a room. Links are opened by who can be held to it, and roots are nobody's guess."""
        known = self.polls.get(ask.id)
        free = ask.state == "open" and not ask.claimed_for(self._session.wall())
        return ask.kind in ("form", "sampling") and free and (known is None or not known.skipped)

    @property
    def current(self) -> Poll | None:
        """What is before the room."""
        return next((poll for poll in self.polls.values() if poll.state in ("collecting", "stopped")), None)

    @property
    def last(self) -> Poll | None:
        """What was before the room until a moment ago."""
        return next((poll for poll in reversed(self.polls.values()) if poll.state == "over"), None)

    @property
    def seen(self) -> str:
        """What a phone has seen that knows everything."""
        poll, last = self.current, self.last
        return poll.key if poll is not None else f"{last.ask.id}-over" if last is not None else "idle"

    async def consider(self, ask: Ask) -> Answer | None:
        """Put an ask to the room; what it says, when that may leave by itself."""
        if self.closed or not self.takes(ask):
            return None
        poll = self.polls[ask.id] = Poll(ask)
        try:
            while self.current is not None and not self._done(poll):
                await self._stirred.wait()
            if self._done(poll):
                return None
            self._begin(poll)
            while not self._done(poll):
                if (answer := await self._by_itself(poll)) is not None:
                    return answer
                stirred = self._stirred
                with anyio.move_on_after(self._left(poll)) as limit:
                    await stirred.wait()
                if limit.cancelled_caught:
                    poll.state = "stopped"
                    self._stir()
            return None
        finally:
            self._over(poll)

    def _done(self, poll: Poll) -> bool:
        return self.closed or poll.skipped

    def _begin(self, poll: Poll) -> None:
        poll.state, seconds = "collecting", self.settings.seconds
        poll.until = None if seconds is None else self._session.wall() + seconds
        self._stir()

    def _left(self, poll: Poll) -> float:
        return inf if poll.state != "collecting" or poll.until is None else max(0.0, poll.until - self._session.wall())

    async def _by_itself(self, poll: Poll) -> Answer | None:
        """What may leave now without the presenter."""
        settings = self.settings
        if not settings.by_itself or poll.ballots == {} or poll.confirmed:
            return None
        sampling = poll.ask.kind == "sampling"
        first = settings.decide == "first" and not (sampling and settings.picked_by != "presenter")
        if poll.state != "stopped" and not first:
            return None
        if sampling and settings.picked_by == "model" and not poll.voting and not poll.trouble:
            await self.let_model_pick(poll)
        found = self.proposal(poll)
        if found is None:
            return None
        poll.outcome, poll.state = self._public(poll, found), "stopped"
        return found.answer

    def _over(self, poll: Poll) -> None:
        poll.state, poll.until = "over", None
        poll.votes.clear()
        over = [each for each in self.polls.values() if each.state == "over"]
        for each in over[: -bounds.ROOM_PAST]:
            del self.polls[each.ask.id]
        self._stir()

    # ---- phones

    def cookie(self, address: str = "") -> str:
        """A new phone. Raises Conflict when the room is full, or too many come at once, or from one address: whoever
        throws their cookie away again and again does not fill the room for everybody."""
        now = self._session.mono()
        if address and self._from[address] >= bounds.ROOM_PHONES // 2:
            raise Conflict("The room is full just now. Try again in a moment.")
        if len(self.phones) >= bounds.ROOM_PHONES or (len(self._new) == self._new.maxlen and now - self._new[0] < 1):
            raise Conflict("The room is full just now. Try again in a moment.")
        self._new.append(now)
        self._from[address] += 1
        phone = secrets.token_urlsafe(9)
        self.phones[phone] = Phone()
        self._dirty.set()
        return f"{phone}.{self._signed(phone)}"

    def phone(self, cookie: str) -> str | None:
        """Which phone sent this cookie; None for what this room did not give."""
        phone, _, signature = cookie.partition(".")
        known = phone in self.phones and hmac.compare_digest(signature.encode(), self._signed(phone).encode())
        return phone if known else None

    def _signed(self, phone: str) -> str:
        return hmac.new(self._key, phone.encode(), hashlib.sha256).hexdigest()[:32]

    def may_send(self, phone: str) -> bool:
        """Whether a phone has not sent too much within a minute."""
        sends, now = self.phones[phone].sends, self._session.mono()
        if len(sends) == sends.maxlen and now - sends[0] < 60:
            return False
        sends.append(now)
        return True

    def take(self, phone: str, key: str, content: dict[str, Any], text: str = "", name: str = "") -> Took:
        """What a phone says to the question that it saw. Said twice, the first counts."""
        poll = self.current
        asked = key.partition("-")[0]
        if poll is None or poll.ask.id != asked or poll.key != key or poll.state != "collecting":
            if (known := self.polls.get(asked)) is not None:
                if phone in (known.votes if known.voting and poll is known else known.ballots):
                    return "again"
                known.late += 1
                self._dirty.set()
            return "late"
        if phone in (poll.votes if poll.voting else poll.ballots):
            return "again"
        if poll.voting:
            if text not in {ballot.id for ballot in poll.candidates}:
                return "unfit"
            poll.votes[phone] = text
        else:
            if len(dump([content, text])) > bounds.ROOM_ANSWER_BYTES:
                return "unfit"
            poll.ballots[phone] = Ballot(
                f"b{len(poll.ballots) + 1}", content, text, name if self.settings.names else ""
            )
        self._dirty.set()
        if self.settings.by_itself and self.settings.decide == "first":
            self._stir()
        return "taken"

    def sent(self, phone: str, poll: Poll) -> str:
        """What a phone has sent to a question, in few words; empty for nothing."""
        mine = poll.ballots.get(phone)
        if poll.voting and phone in poll.votes:
            mine = next((each for each in poll.candidates if each.id == poll.votes[phone]), None)
        elif poll.voting and poll.state == "collecting":
            return ""
        return "" if mine is None else mine.text or counting.line(mine.content, counting.texts_of(poll.ask.schema))

    async def changed(self, seen: str) -> None:
        """Return when there is something else for phones to see, or after a while."""
        with anyio.move_on_after(bounds.ROOM_WAIT_SECONDS):
            while not self.closed and self.seen == seen:
                await self._stirred.wait()

    # ---- the presenter

    def change(self, settings: RoomSettings) -> None:
        """Other rules from now on, also for the question that is before the room."""
        before, self.settings = self.settings, settings
        poll = self.current
        if poll is not None and poll.state == "collecting" and before.seconds != settings.seconds:
            poll.until = None if settings.seconds is None else self._session.wall() + settings.seconds
        self._stir()

    def stop(self) -> Poll:
        """Nobody answers the question any more; it is decided now."""
        poll = self.asked()
        poll.state, poll.until = "stopped", None
        self._stir()
        return poll

    def show(self, shown: bool) -> None:
        """Show what was written, or hide it again."""
        self.asked().shown = shown
        self._stir()

    def skip(self) -> None:
        """The room does not answer this one: it stays in the inbox, for the presenter."""
        self.asked().skipped = True
        self._stir()

    def let_vote(self) -> None:
        """Everybody sees what was written, and votes. Raises Conflict where there is nothing to vote on."""
        poll = self.asked()
        if poll.ask.kind != "sampling" or poll.voting or len(poll.ballots) < 2:
            raise Conflict("There is nothing to vote on: it takes two written answers.")
        poll.voting = poll.shown = True
        self._begin(poll)

    async def let_model_pick(self, poll: Poll) -> None:
        """A model reads what was written, and picks. What keeps it from that is said with the question."""
        if poll.ask.kind != "sampling" or not poll.ballots:
            raise Conflict("There is nothing to pick from yet.")
        listed = "\n".join(f"{at}. {ballot.text}" for at, ballot in enumerate(poll.candidates, 1))
        words = f"People in the room wrote these answers:\n{listed}\nPick the best one and reply with its text alone."
        more = {"role": "user", "content": {"type": "text", "text": words}}
        messages = poll.ask.params.get("messages")
        poll.picking, poll.trouble = True, ""
        self._stir()
        try:
            self._session.asks.edit(
                poll.ask, {**poll.ask.params, "messages": [*(messages if isinstance(messages, list) else []), more]}
            )
            draft = await self._session.models.write(poll.ask, self.settings.model)
            if draft is None or draft.state != "ready":
                poll.trouble = "" if draft is None else draft.problem or "The model gave no answer."
        except (Conflict, Invalid) as fault:
            poll.trouble = fault.message
        finally:
            poll.picking = False
            self._stir()

    async def confirm(self, ballot: str = "") -> None:
        """Send the answer that the rule found, or that of one phone. Raises Conflict where there is none."""
        poll = self.asked()
        found = self.picked(poll, ballot) if ballot else self.proposal(poll)
        if found is None:
            raise Conflict("There is no answer of the room to send yet.")
        await self._send(poll, found.answer, found.words)

    async def decline(self) -> None:
        """Say no in the name of the room."""
        poll = self.asked()
        by = AnsweredBy("room", "declined by the presenter")
        no = asks.denial(by) if poll.ask.kind == "sampling" else asks.elicited(poll.ask, "decline", None, by)
        await self._send(poll, no, "no")

    async def _send(self, poll: Poll, answer: Answer, words: str) -> None:
        """Send what the presenter decided. Who answers from now on is late, whatever the server still has to hear."""
        before, poll.confirmed, poll.outcome = poll.state, True, words
        poll.state = "stopped"
        try:
            await self._session.asks.give(poll.ask, answer)
        except BaseException:
            poll.state, poll.confirmed, poll.outcome = before, False, ""
            raise
        self._over(poll)

    def asked(self) -> Poll:
        """What is before the room. Raises Gone when nothing is."""
        poll = self.current
        if poll is None:
            raise Gone("Nothing is before the room.")
        return poll

    # ---- deciding

    def tallies(self, poll: Poll) -> list[Tally]:
        """The answers so far, field by field; of sampling the votes."""
        ballots = list(poll.ballots.values())
        if poll.ask.kind == "form":
            return counting.tallies(poll.ask.schema, ballots)
        if not poll.voting:
            return []
        counts = {each.id: sum(vote == each.id for vote in poll.votes.values()) for each in poll.candidates}
        most = max(counts.values(), default=0)
        bars = [counting.Bar(each.text, counts[each.id], 0 < most == counts[each.id]) for each in poll.candidates]
        return [Tally("Votes", bars, [])]

    def proposal(self, poll: Poll) -> Proposal | None:
        """The answer that the rule finds in what has come so far."""
        ballots, many = list(poll.ballots.values()), len(poll.ballots)
        if not ballots:
            return None
        if poll.ask.kind == "sampling":
            return self._written(poll, many)
        if self.settings.decide == "first":
            return self._of(poll, ballots[0].content, f"first of {many}")
        found = counting.majority(poll.ask.schema, ballots, lambda content: self._fits(poll.ask, content))
        if self.settings.decide == "pick" or found is None:
            return None
        return self._of(poll, found.content, f"majority of {many}", found.tied)

    def _written(self, poll: Poll, many: int) -> Proposal | None:
        if self.settings.picked_by == "model" and not poll.voting:
            draft = poll.ask.draft
            if draft is None or draft.state != "ready" or poll.picking or draft.by.kind != "model":
                return None
            by = AnsweredBy("room", f"model {draft.by.name} from {many}")
            return Proposal(draft.text, asks.sampled(poll.ask, draft.content, by))
        if poll.voting:
            winner, tied = counting.voted(poll.votes.values(), [each.id for each in poll.candidates])
            return self.picked(poll, winner, f"vote of {len(poll.votes)}", tied) if winner is not None else None
        if self.settings.decide == "first":
            return self.picked(poll, next(iter(poll.ballots.values())).id, f"first of {many}")
        return None

    def picked(self, poll: Poll, ballot: str, how: str = "", tied: bool = False) -> Proposal | None:
        """The answer of one phone. Raises Invalid when there is none of that name."""
        one = next((each for each in poll.ballots.values() if each.id == ballot), None)
        if one is None:
            raise Invalid("There is no such answer.", {"/ballot": ["Not one of the answers of the room."]})
        how = how or f"picked from {len(poll.ballots)}"
        if poll.ask.kind == "form":
            return self._of(poll, one.content, how)
        result = {"role": "assistant", "content": {"type": "text", "text": one.text}, "model": "a room of people"}
        answer = asks.sampled(poll.ask, result | {"stopReason": "endTurn"}, AnsweredBy("room", how))
        return Proposal(one.text, replace(answer, request=None), ("the vote",) if tied else ())

    def _of(self, poll: Poll, content: dict[str, Any], how: str, tied: tuple[str, ...] = ()) -> Proposal:
        words = counting.line(content, counting.texts_of(poll.ask.schema))
        return Proposal(words, asks.elicited(poll.ask, "accept", content, AnsweredBy("room", how)), tied)

    @staticmethod
    def _fits(ask: Ask, content: dict[str, Any]) -> bool:
        return not elicitation.misfits(ask.params, {"action": "accept", "content": content})

    def _public(self, poll: Poll, found: Proposal) -> str:
        """What phones may be told of an answer that nobody confirmed: nothing that one of them wrote."""
        content = (found.answer.result or {}).get("content")
        if poll.ask.kind != "form" or not isinstance(content, dict):
            return ""
        return counting.line(counting.without_texts(poll.ask.schema, content))

    # ---- beginning and end

    def close(self) -> None:
        """Everybody goes home: what phones sent is forgotten, and what is open waits for a person again."""
        if self.closed:
            return
        self.closed = True
        self._stir()
        self._dirty.set()
        self.phones.clear()
        for poll in self.polls.values():
            poll.ballots.clear()
            poll.votes.clear()
        self._ended(self)
        self._session.changed("room.changed", "room")

    def _stir(self) -> None:
        """Something has moved on: whoever waits looks again."""
        stirred, self._stirred = self._stirred, Signal()
        stirred.set()
        self._dirty.set()

    async def _tell(self) -> None:
        """Tell the stage, at most so often: three hundred answers are no three hundred pictures."""
        while not self.closed:
            await self._dirty.wait()
            self._dirty = Signal()
            if not self.closed:
                self._session.changed("room.changed", "room")
            await anyio.sleep(bounds.ROOM_TELL_SECONDS)
