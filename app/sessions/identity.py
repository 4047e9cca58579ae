"""Who is asking: the one thing about a person that a session knows."""

from dataclasses import dataclass
from typing import Literal


@dataclass(slots=True, frozen=True)
class Identity:
    """Who is asking. Local mode has exactly one id; `kind` says how they came in."""

    id: str
    name: str
    kind: Literal["person", "script"] = "person"


Right = Literal["watch", "answer", "act"]
"""What somebody may do in a session: look at it; answer what its server asks; everything else."""
ALL_RIGHTS: frozenset[Right] = frozenset(("watch", "answer", "act"))

PARLEY = Identity("parley", "Parley", "script")
"""Ourselves: calls that nobody asked for by hand, like listing the tools."""
LOCAL = Identity(id="local", name="you", kind="person")
"""Local mode has this one: every browser that came in by a launch code, and every script, is the same person."""
SCRIPT = Identity(id="local", name="a script", kind="script")
"""The same person, by a program of theirs."""
