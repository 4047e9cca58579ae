"""The room on the stage: the question, what the phones say, where more phones come in, and what the presenter can do.

Counts at once; what somebody wrote when the presenter shows it, and names only where they were typed and asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app import guest_bounds as bounds
from app.core.room import Ballot, Tally, line, texts_of
from app.core.times import wire_time
from app.sessions.polls import Poll, Proposal, RoomSettings
from app.web.asks import words
from app.web.kit import qr
from app.web.kit.html import NOTHING, Html
from app.web.kit.templates import fragment
from app.web.live.parts import Part

if TYPE_CHECKING:
    from app.sessions import Workspace
    from app.sessions.room import Room

RULES = {"majority": "majority per field", "first": "the first answer", "pick": "what I pick"}
PICKERS = {"presenter": "I pick", "vote": "the room votes", "model": "a model picks"}
TIMES = {"": "until I stop", "30": "30 s", "60": "1 min", "120": "2 min", "300": "5 min"}
_ROOM = 16
"""How much room a bar leaves, in hundredths of the largest, so that one vote more changes no other."""


@dataclass(slots=True)
class RoomView:
    """What the stage shows of a room, or of none."""

    session: Workspace
    room: Room | None
    rules: dict[str, str] = field(default_factory=lambda: RULES)
    pickers: dict[str, str] = field(default_factory=lambda: PICKERS)
    times: dict[str, str] = field(default_factory=lambda: TIMES)

    @property
    def settings(self) -> RoomSettings:
        return RoomSettings() if self.room is None else self.room.settings

    @property
    def poll(self) -> Poll | None:
        return None if self.room is None else self.room.current

    @property
    def question(self) -> str:
        return "" if self.poll is None else words.question(self.poll.ask) or "The server asks without words."

    @property
    def code(self) -> Html:
        """Drawn once: it is the same as long as the room is open."""
        if self.room is None:
            return NOTHING
        if self.room.address not in _codes:
            _codes.clear()
            _codes[self.room.address] = qr.drawn(self.room.address)
        return _codes[self.room.address]

    @property
    def address(self) -> str:
        """As somebody types it."""
        return "" if self.room is None else self.room.address.partition("://")[2]

    @property
    def tallies(self) -> list[Tally]:
        return [] if self.room is None or self.poll is None else self.room.tallies(self.poll)

    @property
    def scale(self) -> int:
        """What the longest bar could be."""
        most = max((bar.many for tally in self.tallies for bar in tally.bars), default=0)
        return max(1, -(-most * (100 + _ROOM) // 100))

    @property
    def written(self) -> list[tuple[Ballot, str]]:
        """What was written, the newest last: of a form that is picked from the whole answers, else its texts."""
        if self.poll is None:
            return []
        ballots = list(self.poll.ballots.values())
        if self.poll.ask.kind == "sampling":
            return [(one, one.text) for one in ballots][-bounds.ROOM_TEXTS :]
        if self.settings.decide == "pick":
            wrote = texts_of(self.poll.ask.schema)
            return [(one, line(one.content, wrote)) for one in ballots[-bounds.ROOM_TEXTS :]]
        texts = [text for tally in self.tallies for text in tally.texts]
        return [(Ballot(""), text) for text in texts][-bounds.ROOM_TEXTS :]

    @property
    def proposal(self) -> Proposal | None:
        return None if self.room is None or self.poll is None else self.room.proposal(self.poll)

    @property
    def has_models(self) -> bool:
        return bool(self.session.models.all)

    @property
    def seconds(self) -> str:
        return "" if self.settings.seconds is None else f"{self.settings.seconds:g}"

    @property
    def verb(self) -> str:
        """What the one button does, before what it sends."""
        if self.poll is not None and self.poll.voting:
            return "Send the vote"
        return {"majority": "Accept the majority", "first": "Accept the first"}.get(self.settings.decide, "Send")


_codes: dict[str, Html] = {}


def room_of(session: Workspace) -> RoomView:
    """The room of a session at this moment."""
    return RoomView(session, session.asks.audience.room)


def room_json(session: Workspace) -> dict[str, Any]:
    """The same for scripts. What one phone wrote is among it: a script of the presenter's is the presenter."""
    view = room_of(session)
    room, poll = view.room, view.poll
    if room is None:
        return {"open": False, "reach": session.reach or None}
    found = view.proposal
    asked = None
    if poll is not None:
        asked = {
            "ask": poll.ask.id,
            "state": poll.state,
            "voting": poll.voting,
            "until": None if poll.until is None else wire_time(poll.until),
            "answers": len(poll.ballots),
            "votes": len(poll.votes),
            "late": poll.late,
            "shown": poll.shown,
            "fields": [
                {
                    "label": tally.label,
                    "counts": [{"value": bar.label, "count": bar.many} for bar in tally.bars],
                    "texts": tally.texts,
                }
                for tally in view.tallies
            ],
            "ballots": [
                {"id": one.id, "content": one.content, "text": one.text, "name": one.name}
                for one in poll.ballots.values()
            ],
            "proposal": None if found is None else {"words": found.words, "tied": list(found.tied)},
            "trouble": poll.trouble,
        }
    return {
        "open": True,
        "reach": session.reach or None,
        "code": room.code,
        "address": room.address,
        "phones": len(room.phones),
        "settings": room.settings.model_dump(),
        "poll": asked,
    }


ROOM = Part(
    "#room",
    ("room.changed", "ask.settled", "ask.withdrawn", "models.changed"),
    lambda view: fragment("asks/_room.html", view=room_of(view.session)),
)
"""All of it: it is small, and told of at most some times a second."""
