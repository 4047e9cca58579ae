"""What a room is made of: what the presenter chose, a phone, a question before the room, and what would be sent."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from app import guest_bounds as bounds
from app.core.asks import Answer, Ask
from app.core.room import Ballot, DecidedBy, PickedBy
from app.core.strict import Closed

Took = Literal["taken", "late", "again", "slow", "unfit"]
"""What became of what a phone sent."""
PollState = Literal["waiting", "collecting", "stopped", "over"]


class RoomSettings(Closed):
    """What the presenter chose."""

    seconds: float | None = None
    """How long each question is put to the room; None until it is stopped."""
    decide: DecidedBy = "majority"
    by_itself: bool = False
    """The answer leaves without being confirmed."""
    picked_by: PickedBy = "presenter"
    """Of sampling."""
    model: str | None = None
    """Which model picks; None the one that fits best."""
    names: bool = False
    """Phones may say who they are, and the stage shows it."""


@dataclass(slots=True)
class Phone:
    """One phone, by what its cookie says."""

    sends: deque[float] = field(default_factory=lambda: deque(maxlen=bounds.ROOM_SENDS_PER_MINUTE))


@dataclass(slots=True)
class Poll:
    """One ask before the room."""

    ask: Ask
    state: PollState = "waiting"
    voting: bool = False
    """What was written is voted on."""
    until: float | None = None
    """When it stops by itself, as the clock on the wall says."""
    ballots: dict[str, Ballot] = field(default_factory=dict)
    """One for each phone, as they came."""
    votes: dict[str, str] = field(default_factory=dict)
    """Phone to the ballot that it voted for."""
    shown: bool = False
    """The presenter shows what was written."""
    late: int = 0
    skipped: bool = False
    confirmed: bool = False
    picking: bool = False
    """A model is at it."""
    trouble: str = ""
    outcome: str = ""
    """The room's answer in few words, once it has left."""

    @property
    def key(self) -> str:
        """What a phone has seen, when it has seen this."""
        return f"{self.ask.id}-{'vote' if self.voting else 'ask'}-{'open' if self.state == 'collecting' else 'shut'}"

    @property
    def candidates(self) -> list[Ballot]:
        """What is voted on."""
        return list(self.ballots.values())[: bounds.ROOM_VOTED]


class Proposal(NamedTuple):
    """What would be sent."""

    words: str
    answer: Answer
    tied: tuple[str, ...] = ()


class Reach(Protocol):
    """Where phones reach a room. Without one there are no rooms."""

    words: str
    """Who can reach it there, in a sentence."""

    def address(self, code: str) -> str:
        """Where the phones of a room go."""

    def opened(self) -> None:
        """There is a room: let phones in. Raises Conflict when that cannot be."""

    def ended(self) -> None:
        """There is none any more: let nobody in."""
