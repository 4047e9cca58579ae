"""What people of a team show each other: a session or a recording, to watch or to answer, by name or by a link.

Data and pure rules. Knows no store, no clock and no page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from app import team_bounds as bounds
from app.core.errors import Invalid, NotAllowed
from app.core.people import Person

May = Literal["watch", "answer"]
Thing = Literal["session", "recording"]
HOURS: Final = (1.0, 8.0, 24.0, 168.0)
"""For how long a page offers a link."""


@dataclass(slots=True, frozen=True)
class Share:
    """Somebody, or whoever has a link, may look at something of somebody else's."""

    id: str
    thing: str
    """The id of the session or of the recording."""
    kind: Thing
    may: May
    person: str
    """Who; empty for a link."""
    digest: str
    """Of the code of a link; empty for a person."""
    link: str
    """The link that somebody came by; empty for who was named."""
    by: str
    made: float
    expires: float | None = None
    """None lasts until it is revoked."""
    revoked: float | None = None
    """A link that was revoked is shown for a while; a person's is gone at once."""

    @property
    def is_link(self) -> bool:
        return not self.person

    def open(self, now: float) -> bool:
        """Whether it still lets somebody look."""
        return self.revoked is None and (self.expires is None or now < self.expires)


def check_level(kind: Thing, may: May) -> May:
    """What somebody may be given of a thing. Raises Invalid."""
    if kind == "recording" and may != "watch":
        raise Invalid("A recording can only be watched.", {"/may": ["A recording is over: nothing in it waits."]})
    return may


def check_person(whom: Person | None, owner: str, may: May) -> Person:
    """Whether something can be shared with somebody. Raises Invalid, NotAllowed."""
    if whom is None or whom.off is not None:
        raise Invalid("There is nobody of that name here.", {"/person": ["Nobody of the team has this name."]})
    if whom.id == owner:
        raise NotAllowed("It is theirs already.")
    if whom.role == "viewer" and may == "answer":
        raise NotAllowed(f"{whom.name} is a viewer, and may only watch.")
    return whom


def check_heir(whom: Person | None, owner: str) -> Person:
    """Whether a session can be handed over to somebody. Raises Invalid, NotAllowed."""
    heir = check_person(whom, owner, "watch")
    if heir.role == "viewer":
        raise NotAllowed(f"{heir.name} is a viewer, and could do nothing with it.")
    return heir


def link_seconds(hours: float) -> float:
    """How long a link lasts. Raises Invalid."""
    if not 0 < hours <= bounds.SHARE_HOURS:
        words = f"A link lasts for more than nothing and at most {bounds.SHARE_HOURS} hours."
        raise Invalid("This end cannot be used.", {"/hours": [words]})
    return hours * 3600.0
