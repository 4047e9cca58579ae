"""The server's own list of its tasks: read page by page, guarded against endless cursors, and taken for the truth.

It is how tasks outlive a reconnect: a row that we know is the task that we know. Knows the session and its client
tasks; knows nothing of the web.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app import bounds
from app.core.calls import CallError
from app.core.errors import NotAllowed
from app.core.lists import Listing
from app.core.tasks import running as tasks
from app.core.tasks.running import ClientTask, TaskWire
from app.core.wire import error_of
from app.protocol.connection import Connection
from app.protocol.requests import Reply

if TYPE_CHECKING:
    from app.sessions.tasks.running import ClientTasks
    from app.sessions.workspace import Workspace


class TaskList:
    """Reads the list of one session's server."""

    def __init__(self, session: Workspace, owner: ClientTasks) -> None:
        self._session, self._tasks = session, owner

    def refresh(self) -> None:
        """Begin to read the server's list of tasks. Raises NotAllowed when it has none (R2-42)."""
        connection, wire = self._session.live(then="ask again"), self._tasks.wire
        if wire is None or wire.list is None or not self._tasks.capable.list:
            raise NotAllowed("The server did not declare `tasks.list`, so it cannot be asked for all its tasks.")
        if self._tasks.listing.state != "loading":
            self._tasks.listing = Listing(state="loading", log=self._session.messages)
            self._session.changed("tasks.listed", "tasks")
            self._session.start_soon(self._list, connection, wire, wire.list, self._tasks.listing)

    async def _list(self, connection: Connection, wire: TaskWire, method: str, listing: Listing) -> None:
        session, found = self._session, set[str]()
        while True:
            params = {} if listing.next_cursor is None else {"cursor": listing.next_cursor}
            _, reply = await self._tasks.polling.send(connection, method, params, quiet=True)
            result = None if reply is None or reply.is_error else reply.value.get("result")
            if reply is not None and not reply.is_error:
                listing.seqs.add(reply.seq)
            if reply is None or not isinstance(result, dict):
                listing.error = CallError(None, _no_page(reply), kind="task")
                break
            listing.pages += 1
            items = result.get("tasks")
            for value in items if isinstance(items, list) else ():
                task = self._listed(wire, value, reply.seq)
                if task is not None:
                    found.add(task.id)
            listing.items = list(found)
            most = listing.pages >= session.limits.list_pages or len(found) >= bounds.TASKS_KEPT
            if not listing.turn(result, "tasks", most=most):
                break
        if session.connection is not connection:
            return
        listing.state, listing.at = "failed" if listing.error is not None else "ready", session.wall()
        if listing.whole:
            self._missing(found)
        session.changed("tasks.listed", "tasks")

    def _listed(self, wire: TaskWire, value: Any, seq: int) -> ClientTask | None:
        """One row of the server's list: a task of ours, one that came back after a reconnect, or a new one."""
        session = self._session
        seen, findings = tasks.read_task(wire, value)
        if seen is None:
            session.messages.remark(seq, *findings)
            return None
        task = self._tasks.known.get(seen.task_id)
        if task is None:
            # An id may come again, of another server or of one that counts anew; `createdAt` never changes.
            same = (seen.task_id, seen.created_at)
            lost = (one for one in reversed(self._tasks.tasks.values()) if (one.task_id, one.created_at) == same)
            task = next(lost, None)
            if task is None:
                task = self._tasks.new(seen, wire)
                _age(task, seen.created_at, session.wall(), session.mono())
            task.connection, task.gone = session.info.number, None
            self._tasks.known[seen.task_id] = task
            task.visit(session.wall(), "known", seen.status or task.status)
        before = task.status
        _, more = task.take(seen, session.wall())
        for finding in findings + more:
            self._tasks.polling.remark(task, finding, None)
        if task.status != before:
            self._tasks.polling.ended(task)
            task.nudge()
        session.changed("task.changed", task.id)
        if task.live and task.call_id is not None and not task.followed:
            self._tasks.watch(task)
        return task

    def _missing(self, found: set[str]) -> None:
        """The list is the truth (R2-42): what it lacks is gone, and what we follow is asked for at once."""
        for task in self._tasks.known.values():
            if task.id in found or task.gone is not None:
                continue
            if task.followed:
                task.nudge(poll=True)
            else:
                self._tasks.polling.gone(task, "not listed")


def _no_page(reply: Reply | None) -> str:
    """Why there is no page of the list."""
    if reply is None:
        return "The server did not answer."
    if reply.is_error:
        return "The server answered with error {}: {}".format(*error_of(reply.value))
    return "The answer is no list of tasks."


def _age(task: ClientTask, created_at: str | None, wall: float, mono: float) -> None:
    """Let the TTL of a task that we did not see begin count from when the server says it began."""
    try:
        began = datetime.fromisoformat(created_at or "")
    except ValueError:
        return
    then = (began if began.tzinfo is not None else began.replace(tzinfo=UTC)).timestamp()
    if 0 <= wall - then < 365 * 86_400:
        task.began_at, task.began = then, mono - (wall - then)
