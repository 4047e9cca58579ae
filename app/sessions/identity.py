"""Who is asking: the one thing about a person that a session knows."""

from dataclasses import dataclass
from typing import Literal


@dataclass(slots=True, frozen=True)
class Identity:
    """Who is asking. Local mode has exactly one id; `kind` says how they came in."""

    id: str
    name: str
    kind: Literal["person", "script", "guest"] = "person"
    role: Literal["", "viewer", "user", "admin"] = ""
    """In a team; local mode has none."""


Right = Literal["watch", "answer", "act"]
"""What somebody may do in a session: look at it; answer what its server asks; everything else."""
ALL_RIGHTS: frozenset[Right] = frozenset(("watch", "answer", "act"))

LOOKING: frozenset[Right] = frozenset(("watch",))
ANSWERING: frozenset[Right] = frozenset(("watch", "answer"))

Level = Literal["", "watch", "answer", "own"]
"""What somebody has of a session or a recording: nothing, what its owner shares with them, or all of it."""


def rights_at(level: Level, identity: Identity) -> frozenset[Right]:
    """What somebody may do with what they have; a viewer of a team only looks."""
    if not level:
        return frozenset()
    if level == "watch" or identity.role == "viewer":
        return LOOKING
    return ALL_RIGHTS if level == "own" else ANSWERING


PARLEY = Identity("parley", "Parley", "script")
"""Ourselves: calls that nobody asked for by hand, like listing the tools."""
LOCAL = Identity(id="local", name="you", kind="person")
"""Local mode has this one: every browser that came in by a launch code, and every script, is the same person."""
SCRIPT = Identity(id="local", name="a script", kind="script")
"""The same person, by a program of theirs."""
