"""What a session had not finished when the process that held it died, and how it goes on in another one.

`unfinished` looks at a session that lives; `Leftovers` holds what was kept of one that does not, in the session that
was opened in its place. Nothing goes on by itself: a person says so for each call, once, and only with the server that
it was made for, since a `requestState` is nobody else's. Knows sessions; knows neither store nor page.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from app.core.calls import Call
from app.core.errors import Conflict, Gone
from app.core.rules import stateless
from app.core.tasks import running as tasks
from app.core.tasks.running import EXTENSION, ClientTask
from app.core.unfinished import Unfinished
from app.protocol.connection import Connection
from app.sessions.identity import Identity

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace

_LOST = frozenset({"request", "receiver-task"})
"""Asks that are answered on their connection, and end with it."""


def unfinished(session: Workspace) -> list[Unfinished]:
    """The calls of a session that could go on elsewhere, the oldest first."""
    if not session.wire.rounds:
        return []
    found = [_of(session, call) for call in session.calls.running if not call.quiet]
    return [one for one in found if one is not None]


def lost_asks(session: Workspace) -> list[tuple[str, str]]:
    """The asks that would be lost with the connection: what is asked, and by which method."""
    return [(ask.message, ask.method) for ask in session.inbox.open if ask.origin in _LOST]


def _of(session: Workspace, call: Call) -> Unfinished | None:
    task = session.client_tasks.tasks.get(call.task_id or "")
    if task is not None:
        alive = task.live and task.wire is EXTENSION
        return Unfinished(call.id, call.method, call.params, call.started_at, task=task.object()) if alive else None
    turn = call.rounds[-1] if call.rounds else None
    if turn is None or turn.outcome != "asking":
        return None  # its answers are on their way, or it was never answered: to send it again would do it twice
    asked = {key: session.inbox.asks.get(aid) for key, aid in turn.asks.items()}
    if len(asked) < len(turn.methods) or None in asked.values():
        return None
    requests = {key: {"method": ask.method, "params": ask.params} for key, ask in asked.items() if ask is not None}
    return Unfinished(
        call.id, call.method, call.params, call.started_at, turn.number, requests, turn.has_state, turn.state
    )


async def taken_up(session: Workspace, call: Call, value: dict[str, Any], connection: Connection) -> ClientTask:
    """The task of a call that began in a session that is lost. It is asked for by its id (R7-10)."""
    known, polling = session.client_tasks.known, session.client_tasks.polling
    seen, _ = tasks.read_task(EXTENSION, value)
    if seen is None:
        raise ValueError("a task that was kept has no id")
    task = known.get(seen.task_id) or session.client_tasks.new(seen, EXTENSION)
    known[seen.task_id] = task
    task.call_id, task.tool = call.id, call.subject
    call.task_id, call.deadline_at = task.id, None
    task.visit(session.wall(), "known", "It was made in a session that is lost, and is followed here now.")
    session.changed("task.created", task.id)
    session.changed("call.changed", call.id)
    await polling.poll(task, connection)
    return task


def go_on_elsewhere(session: Workspace, keys: Collection[str]) -> None:
    """These calls were taken up in another session while this process was taken for dead: nobody answers them here too.
    The server is told nothing, for it waits in none of them. A task is followed by whoever likes."""
    for call in list(session.calls.running):
        if call.id in keys and not call.task_id and call.rounds and call.rounds[-1].outcome == "asking":
            session.calls.cancel(call.id, "It goes on in another session: this replica was taken for dead.")


class Leftovers:
    """What was kept of the session in whose place this one was opened."""

    def __init__(self, session: Workspace) -> None:
        self._session = session
        self.before = ""
        """The session that was lost; empty for none."""
        self.replica = ""
        self.offers: dict[str, Unfinished] = {}
        """What may go on, by the ids that the calls had there."""
        self.lost: list[tuple[str, str]] = []
        """Asks that are lost for good: what was asked, and by which method."""
        self.more = 0
        """Calls that were too large to keep."""
        self._target = ""

    @property
    def any(self) -> bool:
        """Whether there is anything to say."""
        return bool(self.offers or self.lost or self.more)

    def put(
        self, before: str, replica: str, offers: list[Unfinished], lost: list[tuple[str, str]], more: int = 0
    ) -> None:
        """This session is in the place of one that is lost."""
        self.before, self.replica, self.lost, self.more = before, replica, lost, more
        self.offers = {one.id: one for one in offers}
        self._target = self._session.target_key
        self._changed()

    def check(self, key: str) -> Unfinished:
        """What would go on. Raises Gone, Conflict when it cannot."""
        one = self.offers.get(key)
        if one is None:
            raise Gone("That call was gone on with already, or left.")
        self._session.live(then="go on with it")
        if self._session.target_key != self._target:
            raise Conflict("This session is connected to another server than the call was made to. It cannot go on.")
        if one.secret:
            raise Conflict("A secret was typed into this call, and that is not kept. Call the tool again.")
        able = self._session.wire.rounds and (one.task is None or self._session.client_tasks.wire is EXTENSION)
        if not able:
            raise Conflict(f"The server does not speak {stateless.VERSION} with tasks any more. It cannot go on.")
        return one

    def stands(self, key: str, found: list[Unfinished]) -> bool:
        """Whether a call was still under way when its process ended, by what that left at last; it goes on from there.
        What was known here may be older: a process that could not be reached for a moment went on."""
        last = next((one for one in found if one.id == key), None)
        if last is None:
            self.offers.pop(key, None)
            self._changed()
            return False
        if key in self.offers:  # else somebody has left it a moment ago, and it stays left
            self.offers[key] = last
        return True

    def go_on(self, key: str, by: Identity) -> Call:
        """Go on with a call, as one of this session. Raises as `check`, and TooMany."""
        one = self.check(key)
        call = self._session.start_call(one.method, one.params, by=by, force=True, begun=one)
        call.continues = f"{self.before}/{one.id}"
        del self.offers[key]
        self._changed()
        return call

    def leave(self, key: str = "") -> None:
        """Let go of one, or of all that there is to say."""
        if not key:
            self.offers, self.lost, self.more = {}, [], 0
        elif self.offers.pop(key, None) is None:
            raise Gone("That call was gone on with already, or left.")
        self._changed()

    def forget(self) -> None:
        """This session is in nobody's place any more."""
        self.before = self.replica = ""
        self.leave()

    def _changed(self) -> None:
        self._session.changed("unfinished.changed", "unfinished")
