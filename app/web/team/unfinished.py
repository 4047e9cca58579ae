"""What is kept of calls that are under way, so that they can go on when this replica dies: sealed, in the row of their
session.

Only of sessions that are recorded: of others nobody wants anything kept. Not what somebody typed that looks like a
secret; the state that a server gave is sealed as it is, to the byte, since a masked one would be worth nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from app import team_bounds as bounds
from app.core.unfinished import Unfinished, read
from app.recordings.masks import Masks
from app.sessions import Workspace
from app.sessions.leftovers import lost_asks, unfinished
from app.store.people import NotSaved
from app.store.replicas import HeldSession
from app.store.sealed import Sealed
from app.web.kit import format


@dataclass(slots=True, frozen=True)
class Opened:
    """What was kept of one session."""

    offers: list[Unfinished]
    lost: list[tuple[str, str]]
    more: int


class Kept:
    """What each session of this replica has under way, as its row has it."""

    def __init__(self, sealed: Sealed) -> None:
        self._sealed = sealed
        self._known: dict[str, tuple[object, str]] = {}
        """Of each session how it stood, and that sealed: it is looked at every second, and sealed when it changed."""

    def text(self, session: Workspace) -> str:
        """What goes into the row of a session; empty for nothing."""
        stands, known = _stands(session), self._known.get(session.id)
        if known is None or known[0] != stands:
            plain = _plain(session)
            try:
                sealed = self._sealed.text(_whose(session.owner, session.id), plain) if plain else ""
            except NotSaved:
                return ""
            known = self._known[session.id] = stands, sealed
        return known[1]

    def forget(self, sid: str) -> None:
        self._known.pop(sid, None)


def opened(sealed: Sealed, held: HeldSession) -> Opened:
    """What can go on of a lost session, and what is lost for good."""
    text = sealed.read(_whose(held.owner, held.id), held.unfinished) if held.unfinished else None
    if text is None:
        return Opened([], [], 0)
    kept = json.loads(text)
    return Opened([read(one) for one in kept["calls"]], [(str(a), str(b)) for a, b in kept["lost"]], kept["more"])


def _whose(owner: str, sid: str) -> str:
    return f"unfinished {owner} {sid}"


def _stands(session: Workspace) -> object:
    """What tells whether anything of it is another now."""
    if session.recorder is None or not session.recorder.live:
        return None
    tasks = session.client_tasks.tasks
    return session.owner, lost_asks(session), [
        (call.id, [(turn.number, turn.outcome) for turn in call.rounds[-1:]], call.task_id and tasks.get(call.task_id)
         and tasks[call.task_id].status)
        for call in session.calls.running
    ]  # fmt: skip


def _plain(session: Workspace) -> str:
    if session.recorder is None or not session.recorder.live:
        return ""
    calls: list[dict[str, Any]] = []
    left, more = bounds.UNFINISHED_BYTES, 0
    for one in unfinished(session):
        said = (replace(one, secret=True) if _has_secret(one) else one).json()
        left -= len(json.dumps(said))
        if left < 0:
            more += 1
        else:
            calls.append(said)
    lost = [(format.gist(words), method) for words, method in lost_asks(session)[: bounds.LOST_ROWS]]
    return json.dumps({"calls": calls, "lost": lost, "more": more}) if calls or lost or more else ""


def _has_secret(one: Unfinished) -> bool:
    """Whether something in what was typed would be masked in a recording."""
    return Masks().value(one.params, typed=True) is not one.params
