"""The revisions of the protocol, and what each kind of wire lets a client do.

Two kinds: revisions that begin with `initialize`, and those without a handshake, where each request says everything.
A connection chooses its `Wire` once, when it is ready; whoever needs to know what is possible asks that for a fact,
never for a revision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Era = Literal["legacy", "modern"]
"""As the JSON interface calls the two kinds."""

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The revisions that begin with `initialize`, newest first."""
STATELESS_VERSIONS = ("2026-07-28",)
"""The revisions without a handshake, newest first."""


@dataclass(slots=True, frozen=True)
class Wire:
    """What the revisions of one kind have."""

    era: Era
    server_asks: bool
    """The server may send requests of its own."""
    rounds: bool
    """The server asks by its results, and a call is sent again with the answers (R6-30)."""
    ping: bool
    sets_log_level: bool
    """By `logging/setLevel`; otherwise each request says it."""
    roots_change: bool
    """The server hears that the roots have changed."""
    subscribes: bool
    """Resources are watched by `resources/subscribe`."""
    listens: bool
    """Subscriptions are streams that stay open, by `subscriptions/listen` (R6-40)."""
    keeps_lists: bool
    """A list says how long it may be used again (R6-52)."""
    asks_for_tasks: bool
    """The client says which call is to become a task; otherwise the server alone decides."""
    cancels_by_closing: bool
    """Over HTTP, closing the stream of a request cancels it (R6-50)."""


HANDSHAKE = Wire(
    era="legacy",
    server_asks=True,
    rounds=False,
    ping=True,
    sets_log_level=True,
    roots_change=True,
    subscribes=True,
    listens=False,
    keeps_lists=False,
    asks_for_tasks=True,
    cancels_by_closing=False,
)
STATELESS = Wire(
    era="modern",
    server_asks=False,
    rounds=True,
    ping=False,
    sets_log_level=False,
    roots_change=False,
    subscribes=False,
    listens=True,
    keeps_lists=True,
    asks_for_tasks=False,
    cancels_by_closing=True,
)
