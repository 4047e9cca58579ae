"""Who may do what: what a route needs, and the one function that decides. Nothing else asks who somebody is.

In local mode everybody who is known may do everything, and nothing here is asked. Loaded before the port is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal


class Needs(Enum):
    """What a route needs of whoever asks for it."""

    PUBLIC = "nothing"
    GUEST = "the address of one ask, or of a room: what its guests came for, and nothing else"
    SIGNED_IN = "to be known"
    ADMIN = "to be an admin; for everybody else it does not exist"
    WATCH = "to look at the session"
    PRIVATE = "to look at what of it is its owner's alone: rules, models, sign-ins, who may see it"
    ANSWER = "to answer what its server asks"
    OPERATE = "to call, cancel and change things in it"
    OWN = "to be its owner: connect it, close it"


IN_A_SESSION = frozenset((Needs.WATCH, Needs.PRIVATE, Needs.ANSWER, Needs.OPERATE, Needs.OWN))


_SHARED = {"": frozenset[Needs](), "watch": frozenset((Needs.WATCH,)), "answer": frozenset((Needs.WATCH, Needs.ANSWER))}
"""What a level that an owner shares is enough for."""


@dataclass(slots=True, frozen=True)
class Asker:
    """What is decided by: the role of somebody in the team, and whether they may only read."""

    role: Literal["", "guest", "viewer", "user", "admin"]
    """Empty in local mode, where one person has every right."""
    read_only: bool = False
    """By a token that is for looking alone."""
    owns: bool = False
    """Whether the session that is asked for is theirs; without a session it means nothing."""
    shared: Literal["", "watch", "answer"] = ""
    """What its owner shares with them, when it is not theirs."""


Refusal = Literal["unknown", "forbidden"]
"""It does not exist for them; or it does, and they may not."""


def decide(asker: Asker, needs: Needs, *, changes: bool) -> Refusal | None:
    """Why somebody may not have what they ask for; None when they may. `changes` says that the request is no mere look.

    For whoever may not know of a thing it does not exist. Somebody who may look at a session and not act in it learns
    that: they see it."""
    if needs in {Needs.PUBLIC, Needs.GUEST} or not asker.role:
        return None
    if asker.role == "guest":
        return "unknown"
    if needs is Needs.ADMIN and asker.role != "admin":
        return "unknown"
    if needs in IN_A_SESSION and not asker.owns and not asker.shared:
        return "unknown"
    if needs in IN_A_SESSION and not asker.owns and needs not in _SHARED[asker.shared]:
        return "forbidden"
    if asker.read_only and (changes or needs in {Needs.ANSWER, Needs.OPERATE, Needs.OWN}):
        return "forbidden"
    if asker.role == "viewer" and needs in {Needs.ANSWER, Needs.OPERATE}:
        return "forbidden"
    return None
