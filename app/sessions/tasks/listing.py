"""The server's own list of its tasks: read page by page, guarded against endless cursors, and taken for the truth.

It is how tasks outlive a reconnect: a row that we know is the task that we know. Knows the session and its client
tasks; knows nothing of the web.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app import bounds
from app.core.errors import NotAllowed
from app.core.tasks import running as tasks
from app.core.tasks.running import ClientTask
from app.core.wire import NO_FINDINGS, Finding, Findings, error_of
from app.protocol.connection import Connection

if TYPE_CHECKING:
    from app.sessions.tasks.running import ClientTasks
    from app.sessions.workspace import Workspace


@dataclass(slots=True)
class TaskListing:
    """What became of the last `tasks/list`."""

    state: str = "none"
    """`none`, `loading`, `ready` or `failed`."""
    at: float | None = None
    pages: int = 0
    found: int = 0
    error: str = ""
    stopped: str = ""
    log: Findings = field(default=NO_FINDINGS, repr=False, compare=False)
    seqs: list[int] = field(default_factory=list)
    """The messages that its pages came with."""

    @property
    def findings(self) -> list[Finding]:
        """What was remarked about its pages; what is wrong with a task that can be followed is said with that."""
        return self.log.findings_of(self.seqs)[: bounds.TASK_LIST_FINDINGS]


class TaskList:
    """Reads the list of one session's server."""

    def __init__(self, session: Workspace, owner: ClientTasks) -> None:
        self._session, self._tasks = session, owner
        self.listing = TaskListing()

    def reset(self) -> None:
        """A connection begins or ends: what was read is of another one."""
        self.listing = TaskListing()

    def refresh(self) -> None:
        """Begin to read the server's list of tasks. Raises NotAllowed when it has none (R2-42)."""
        connection = self._session.live(then="ask again")
        if not self._tasks.capable.list:
            raise NotAllowed("The server did not declare `tasks.list`, so it cannot be asked for all its tasks.")
        if self.listing.state != "loading":
            self.listing = TaskListing("loading", log=self._session.messages)
            self._session.changed("tasks.listed", "tasks")
            self._session.start_soon(self._list, connection, self.listing)

    async def _list(self, connection: Connection, listing: TaskListing) -> None:
        session, limits = self._session, self._session.limits
        found: set[str] = set()
        cursors: set[str] = set()
        cursor: Any = None
        for page in itertools.count(1):
            result = await self._page(connection, cursor, listing)
            if result is None:
                break
            listing.pages = page
            items = result.get("tasks")
            for value in items if isinstance(items, list) else ():
                task = self._listed(value, listing)
                if task is not None:
                    found.add(task.id)
            cursor = result.get("nextCursor")
            if cursor is None:
                break
            if not isinstance(cursor, str) or cursor in cursors:
                listing.stopped = f"The cursor of page {page} is no new text, so the list ends here."
            elif page >= limits.list_pages or len(found) >= bounds.TASKS_KEPT:
                listing.stopped = f"There is more: Parley stopped after {page} pages."
            if listing.stopped:
                break
            cursors.add(cursor)
        if session.connection is not connection:
            return
        listing.state, listing.at = "failed" if listing.error else "ready", session.wall()
        listing.found = len(found)
        if not listing.error and not listing.stopped:
            self._missing(found)
        session.changed("tasks.listed", "tasks")

    async def _page(self, connection: Connection, cursor: Any, listing: TaskListing) -> dict[str, Any] | None:
        """One page of the list; None when there is none, and then the listing says why."""
        if self._tasks.wire is None or self._tasks.wire.list is None:
            listing.error = "This connection has no list of tasks."
            return None
        params = {} if cursor is None else {"cursor": cursor}
        _, reply = await self._tasks.polling.send(connection, self._tasks.wire.list, params, quiet=True)
        if reply is None:
            listing.error = "The server did not answer."
            return None
        if reply.is_error:
            listing.error = "The server answered with error {}: {}".format(*error_of(reply.value))
            return None
        listing.seqs.append(reply.seq)
        result = reply.value.get("result")
        if not isinstance(result, dict):
            listing.error = "The answer is no list of tasks."
            return None
        return result

    def _listed(self, value: Any, listing: TaskListing) -> ClientTask | None:
        """One row of the server's list: a task of ours, one that came back after a reconnect, or a new one."""
        session, wire = self._session, self._tasks.wire
        if wire is None:
            return None
        seen, findings = tasks.read_task(wire, value)
        if seen is None:
            session.messages.remark(listing.seqs[-1], *findings)
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


def _age(task: ClientTask, created_at: str | None, wall: float, mono: float) -> None:
    """Let the TTL of a task that we did not see begin count from when the server says it began."""
    try:
        began = datetime.fromisoformat(created_at or "")
    except ValueError:
        return
    then = (began if began.tzinfo is not None else began.replace(tzinfo=UTC)).timestamp()
    if 0 <= wall - then < 365 * 86_400:
        task.began_at, task.began = then, mono - (wall - then)
