"""Who is here in a session of a team, where its owner is, and whose tabs have to end.

A tab that hears of a session is somebody who is here. What is shared is asked of `store/shares.py` for every request;
what stays open meanwhile, its streams, ends here, in the moment in which somebody loses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import anyio

from app import team_bounds as bounds
from app.core.asks import Ask, initials
from app.core.shares import Share
from app.sessions import Workspace
from app.sessions.identity import Level
from app.store.people import People
from app.store.shares import Shares
from app.web.door.reader import Alone, Reader, Stream


class Here(NamedTuple):
    """Somebody who has a page of a session open."""

    id: str
    name: str
    level: Level
    follows: bool
    answering: str
    """The kind of ask that they have in hand; empty for none."""

    @property
    def short(self) -> str:
        """One or two letters, for where there is no room for a name."""
        return initials(self.name)

    @property
    def words(self) -> str:
        """What they do here."""
        does = {"own": "owner", "answer": "may answer", "watch": "watches"}.get(self.level, "")
        if self.answering:
            does = f"answers a {self.answering}"
        return f"{does}, follows the owner" if self.follows else does


@dataclass(slots=True, eq=False)
class _Place:
    """What is known of the people of one session."""

    tabs: dict[Stream, str] = field(default_factory=dict)
    """The person of each open stream."""
    left: dict[str, float] = field(default_factory=dict)
    """Who closed their last tab a moment ago, and when."""
    follow: set[str] = field(default_factory=set)
    path: str = ""
    """The page that its owner opened last."""


class Together(Alone):
    """The people of all sessions of this process."""

    is_team = True

    def __init__(
        self,
        people: People,
        shares: Shares,
        wall: Callable[[], float],
        mono: Callable[[], float] = anyio.current_time,
    ) -> None:
        self.people, self.shares, self.wall, self._mono = people, shares, wall, mono
        self._places: WeakKeyDictionary[Workspace, _Place] = WeakKeyDictionary()
        self._recorded: dict[Stream, tuple[str, str]] = {}
        """Streams of recordings of others, each with its person and its recording."""

    def _place(self, session: Workspace) -> _Place:
        return self._places.setdefault(session, _Place())

    # ---- coming and going

    def came(self, stream: Stream, session: Workspace, reader: Reader) -> Callable[[], None]:
        if session.read_only and reader.level == "own":
            return lambda: None
        if session.read_only:
            self._recorded[stream] = reader.person, session.id
            return lambda: self._recorded.pop(stream, None) and None
        place = self._place(session)
        known = self._is_here(place, reader.person)
        place.tabs[stream] = reader.person
        place.left.pop(reader.person, None)
        if not known:
            session.changed("people.changed", reader.person)
        return lambda: self._went(session, stream)

    def _went(self, session: Workspace, stream: Stream) -> None:
        place = self._place(session)
        person = place.tabs.pop(stream, "")
        if person and person not in place.tabs.values():
            place.left[person] = self._mono()

    def _is_here(self, place: _Place, person: str) -> bool:
        return person in place.tabs.values() or person in place.left

    def here(self, session: Workspace) -> list[Here]:
        """Everybody who is here: the owner first, then by name."""
        place = self._places.get(session)
        if place is None:
            return []
        found = [self._one(session, place, one) for one in {*place.tabs.values(), *place.left}]
        return sorted((one for one in found if one.level), key=lambda one: (one.level != "own", one.name.casefold()))

    def _one(self, session: Workspace, place: _Place, person: str) -> Here:
        level: Level = "own" if person == session.owner else self.shares.may(person, session.id) or ""
        answering = [one.kind for one in session.inbox.open if self._has(one, person, session.wall())]
        return Here(person, self.name(person), level, person in place.follow, answering[0] if answering else "")

    def is_shared(self, session: Workspace) -> bool:
        """Whether anybody but its owner may know of it."""
        return bool(self.shares.of(session.id))

    def owner(self, session: Workspace) -> str:
        """The name of its owner."""
        return self.name(session.owner)

    def name(self, person: str) -> str:
        """What somebody is called."""
        known = self.people.find(person)
        return "somebody" if known is None else known.name

    # ---- following

    def moved(self, session: Workspace, path: str) -> None:
        """The owner opened a page: whoever follows goes there too."""
        place = self._place(session)
        if len(path) <= bounds.FOLLOWED_PATH and path != place.path:
            place.path = path
            session.changed("people.moved", "owner")

    def path(self, session: Workspace) -> str:
        """The page that its owner opened last; empty before the first."""
        place = self._places.get(session)
        return "" if place is None else place.path

    def follow(self, session: Workspace, person: str, *, on: bool) -> None:
        """Somebody follows the owner from now on, or no longer."""
        follow = self._place(session).follow
        if on is not (person in follow):
            follow.symmetric_difference_update({person})
            session.changed("people.changed", person)

    # ---- claims

    def claimed(self, ask: Ask, person: str, now: float) -> str:
        if ask.state != "open" or not ask.claimed_for(now) or ask.claimed_by is None:
            return ""
        return "mine" if ask.claimed_by.id == person else "other"

    def _has(self, ask: Ask, person: str, now: float) -> bool:
        return self.claimed(ask, person, now) == "mine"

    # ---- losing it

    def ended(self, shares: Iterable[Share]) -> None:
        """These were taken away, or their time is over: whoever has nothing else loses their open tabs now."""
        for share in shares:
            if share.person and self.shares.may(share.person, share.thing) is None:
                self.end(share.thing, share.person, "revoked")

    def end(self, thing: str, person: str, reason: str) -> None:
        """End the open tabs of somebody: `revoked`, or `rights` when they have to be drawn anew."""
        for session, place in list(self._places.items()):
            if session.id != thing:
                continue
            for stream in [one for one, who in place.tabs.items() if who == person]:
                stream.end(reason)
                place.tabs.pop(stream)
            if reason == "revoked":
                place.left.pop(person, None)
                place.follow.discard(person)
                for ask in session.inbox.open:
                    if self._has(ask, person, session.wall()):
                        session.asks.let_go(ask)
            session.changed("people.changed", person)
        for stream, (who, rid) in list(self._recorded.items()):
            if (who, rid) == (person, thing):
                stream.end(reason)

    def look_again(self) -> None:
        """Something was shared, or taken away, on another replica: whoever has nothing any more loses their tabs here
        too."""
        for session, place in list(self._places.items()):
            for person in {*place.tabs.values()} - {session.owner}:
                if self.shares.may(person, session.id) is None:
                    self.end(session.id, person, "revoked")
        for person, rid in set(self._recorded.values()):
            if self.shares.may(person, rid) is None:
                self.end(rid, person, "revoked")

    async def keep(self) -> None:
        """Look whose time is over, and who has not come back. Runs until cancelled."""
        while True:
            await anyio.sleep(bounds.SHARES_LOOK_SECONDS)
            self.ended(await self.shares.over())
            self.sweep()

    def sweep(self) -> None:
        """Those who left and did not come back are not here any more."""
        for session, place in list(self._places.items()):
            gone = [who for who, since in place.left.items() if self._mono() - since >= bounds.GONE_SECONDS]
            for person in gone:
                del place.left[person]
                place.follow.discard(person)
                session.changed("people.changed", person)


def here_json(together: Together, session: Workspace) -> dict[str, Any]:
    """Who is here, for scripts."""
    people = [
        {"id": one.id, "name": one.name, "may": one.level, "follows": one.follows, "answering": one.answering or None}
        for one in together.here(session)
    ]
    return {"owner": together.owner(session), "here": people, "path": together.path(session) or None}
