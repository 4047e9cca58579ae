"""Receiver tasks of 2025-11-25: tasks that *we* execute for a server, which polls us.

One store per connection, so the connection is the requestor's identity (R1-07, R1-86). A server sends
`sampling/createMessage` or `elicitation/create` with `params.task`; we answer `{task}` at once, put the ask before a
person, serve `tasks/get`, `tasks/list`, `tasks/cancel` and a blocking `tasks/result`, and the person's answer settles
the payload. Every writer goes through `upsert_receiver_task`, and the first terminal status wins (R1-20, R1-21).

Free of the SDK: it dumps task models without the mandatory `ttl: null`. Knows no transport and no page: what must
leave is handed to `notify`, what happened to `changed`.
"""

from __future__ import annotations

import base64
import itertools
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

from app import bounds
from app.core.asks import Answer, with_related_task
from app.core.errors import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from app.core.options import Options
from app.core.signal import Signal
from app.core.tasks.status import POLL, Status, Task, Visit, may_move
from app.core.times import wire_time

TASK_METHODS = frozenset({"tasks/get", "tasks/list", "tasks/result", "tasks/cancel"})
AWAITING = "Awaiting user input"


@dataclass(slots=True)
class ReceiverTask(Task):
    """A task we execute. A `ttl` of None says so on the wire."""

    method: str
    poll_interval: int
    updated_at: float
    request_seq: int | None = None
    ask_id: str | None = None
    result: dict[str, Any] | None = None
    error: RpcError | None = None
    announced: bool = False
    """The server has taken the reply that names it, so it may hear how it stands (R1-72)."""
    fetched: bool = False
    by: str = ""
    """The rule or the model that answered it."""
    settled: Signal = field(default_factory=Signal)

    def wire(self) -> dict[str, Any]:
        """The task object; `ttl` is always a member (R1-13)."""
        times = {"ttl": self.ttl, "pollInterval": self.poll_interval}
        return self.written(wire_time(self.began_at), wire_time(self.updated_at), times)


class ReceiverTasks:
    """The tasks of one connection."""

    def __init__(
        self,
        *,
        options: Callable[[], Options],
        limit: int,
        wall: Callable[[], float],
        mono: Callable[[], float],
        notify: Callable[[ReceiverTask], None],
        changed: Callable[[ReceiverTask], None],
        ended: Callable[[ReceiverTask, Literal["cancelled", "expired", "lost"], str], None],
        ids: Callable[[], str],
        credit: Callable[[int, str], None] = lambda *_: None,
    ) -> None:
        self._options, self._limit = options, limit
        self._wall, self._mono = wall, mono
        self._notify, self._changed, self._ended, self._new_id = notify, changed, ended, ids
        self._credit = credit
        self._tasks: dict[str, ReceiverTask] = {}
        self._allowance, self._counted = bounds.TASK_OPERATIONS * 10, mono()
        self._sooner = Signal()
        self.watched = False
        """Somebody sees to it that tasks expire."""
        self.closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    # ---- the operations, by the names of the founding notes

    def create_receiver_task(self, method: str, asked: Any, *, seq: int | None = None) -> ReceiverTask:
        """A new task, `working`; RpcError for a bad TTL or over a limit, and then nothing is kept (R1-12, R1-16)."""
        self._allow()
        requested = self._requested_ttl(asked)
        if len(self._tasks) >= self._limit:
            raise RpcError(INTERNAL_ERROR, f"This client holds {self._limit} tasks already, which is its limit")
        options, now = self._options(), self._wall()
        most, default = options.receiver_task_max_ttl_ms, options.receiver_task_ttl_ms
        ttl = default if requested is None else min(requested, most)
        task = ReceiverTask(
            id=self._new_id(),
            task_id=secrets.token_urlsafe(24),
            method=method,
            ttl=ttl,
            poll_interval=options.poll_interval_ms,
            began_at=now,
            began=self._mono(),
            updated_at=now,
            request_seq=seq,
            requested_ttl=requested,
        )
        task.visit(now, "created", "" if task.ttl is None else f"ttl {task.ttl} ms", seq)
        self._tasks[task.task_id] = task
        self._changed(task)
        self._sooner.set()
        return task

    def upsert_receiver_task(self, task: ReceiverTask, status: Status, message: str | None = None) -> bool:
        """Move a task and tell the server; False when the move is not legal, and then nothing happens. The one way a
        status changes."""
        if not may_move(task.status, status):
            return False
        task.status, task.message, task.updated_at = status, message, self._wall()
        task.visit(task.updated_at, "status", status)
        if task.terminal:
            task.settled.set()
        self._changed(task)
        self._notify(task)
        return True

    def get_receiver_task(self, task_id: Any, *, seq: int | None = None) -> ReceiverTask:
        """The task of this connection; -32602 for any other id (R1-31)."""
        task = self._find(task_id)
        task.polls += 1
        task.visit(self._wall(), POLL, task.status, seq)
        self._changed(task)
        return task

    def list_receiver_tasks(self, cursor: Any = None) -> tuple[list[ReceiverTask], str | None]:
        """One page of tasks, oldest first, and where the next begins (R1-50…R1-52)."""
        self._allow()
        self.expire()
        ordered = sorted(self._tasks.values(), key=lambda task: (task.began, task.task_id))
        after = _cursor(cursor)
        if after is not None:
            ordered = [task for task in ordered if (task.began, task.task_id) > after]
        page, rest = ordered[: bounds.TASK_PAGE], ordered[bounds.TASK_PAGE :]
        return page, _to_cursor(page[-1]) if rest else None

    async def get_receiver_task_payload(self, task_id: Any, *, seq: int | None = None) -> dict[str, Any]:
        """What the plain request would have been answered, once there is something to say; any number of waiters.

        Raises the same error as the plain request (R1-41), -32603 for a cancelled task (R1-43), -32602 when the task
        expired meanwhile (R1-84)."""
        task = self._find(task_id)
        task.visit(self._wall(), "tasks/result", task.status, seq)
        self._changed(task)
        await task.settled.wait()
        if task.gone is not None:
            raise RpcError(INVALID_PARAMS, f"The task {task.gone} before it was answered")
        task.fetched = True
        if seq is not None:
            self._credit(seq, task.by)
        if task.error is not None:
            raise task.error.with_traceback(None)  # one error for every fetch: it must not gather where it was raised
        return with_related_task(task.result or {}, task.task_id)

    def cancel_receiver_task(self, task_id: Any, *, seq: int | None = None) -> ReceiverTask:
        """The server wants no answer any more. -32602 when the task is settled (R1-60, R1-61)."""
        task = self._find(task_id)
        if task.terminal:
            raise RpcError(INVALID_PARAMS, f"The task is {task.status} already and cannot be cancelled")
        task.visit(self._wall(), "tasks/cancel", seq=seq)
        task.error = RpcError(INTERNAL_ERROR, "The task was cancelled")
        self.upsert_receiver_task(task, "cancelled", "Cancelled by the server")
        self._ended(task, "cancelled", "")
        return task

    def forget(self, task: ReceiverTask) -> None:
        """A task that could not be put before anybody: nothing of it is kept (R1-16)."""
        self._tasks.pop(task.task_id, None)
        task.gone = "lost"
        task.settled.set()

    # ---- settling

    def settle(self, task: ReceiverTask, answer: Answer) -> bool:
        """What a person, a rule or a model said; False when the task is settled already (R1-21, R1-24)."""
        if task.terminal or task.gone is not None:
            return False
        task.by = answer.by.credit
        task.visit(self._wall(), "answered", f"{answer.action} by {task.by}" if task.by else answer.action)
        if answer.error is not None:
            task.error = answer.error
            return self.upsert_receiver_task(task, "failed", answer.error.message)
        task.result = answer.result
        return self.upsert_receiver_task(task, "completed")

    # ---- time

    def expire(self) -> None:
        """Forget every task whose time is up, whatever its status; waiters and asks are told (R1-83, R1-84)."""
        now = self._mono()
        for task in [task for task in self._tasks.values() if task.expires is not None and task.expires <= now]:
            del self._tasks[task.task_id]
            task.visit(self._wall(), "expired")
            task.gone = "expired"
            task.settled.set()
            self._changed(task)
            if not task.terminal:
                self._ended(task, "expired", "")

    def next_expiry(self) -> float | None:
        """Monotonic time of the next expiry."""
        return min((task.expires for task in self._tasks.values() if task.expires is not None), default=None)

    async def run(self) -> None:
        """Let tasks expire when their time comes, as long as there are any. One at a time does it."""
        if self.watched:
            return
        self.watched = True
        try:
            while self._tasks:
                self._sooner = Signal()
                soonest = self.next_expiry()
                with anyio.move_on_after(None if soonest is None else max(0.0, soonest - self._mono())):
                    await self._sooner.wait()
                self.expire()
        finally:
            self.watched = False

    def close(self, reason: str) -> None:
        """The connection is gone: waiters are released, asks are lost, nothing is sent (R1-88)."""
        if self.closed:
            return
        self.closed = True
        for task in self._tasks.values():
            task.gone = "lost"
            task.visit(self._wall(), "lost", reason)
            self._changed(task)
            if not task.terminal:
                task.settled.set()
                self._ended(task, "lost", reason)
        self._tasks.clear()

    # ---- small pieces

    def _find(self, task_id: Any) -> ReceiverTask:
        self._allow()
        self.expire()
        task = self._tasks.get(task_id) if isinstance(task_id, str) else None
        if task is None:
            raise RpcError(INVALID_PARAMS, "There is no such task; it was never here, or it has expired")
        return task

    def _requested_ttl(self, asked: Any) -> int | None:
        """The TTL in `params.task`, in whole milliseconds; null and absent mean our default (R1-82)."""
        if asked is None:
            return None
        if not isinstance(asked, dict):
            raise RpcError(INVALID_PARAMS, "`task` must be an object", rule="R1-82")
        ttl = asked.get("ttl")
        if ttl is None:
            return None
        if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl >= 0 or ttl == float("inf"):
            raise RpcError(INVALID_PARAMS, "`task.ttl` must be a number of milliseconds, not below 0", rule="R1-82")
        return int(ttl)

    def _allow(self) -> None:
        """A bucket of operations that refills over time (R1-86)."""
        now = self._mono()
        self._allowance = min(
            bounds.TASK_OPERATIONS * 10, self._allowance + max(0.0, now - self._counted) * bounds.TASK_OPERATIONS
        )
        self._counted = now
        if self._allowance < 1:
            raise RpcError(INTERNAL_ERROR, "Too many task operations; slow down")
        self._allowance -= 1


def _to_cursor(task: ReceiverTask) -> str:
    return base64.urlsafe_b64encode(f"{task.began!r}|{task.task_id}".encode()).decode()


def _cursor(cursor: Any) -> tuple[float, str] | None:
    """Where a page begins; -32602 for a cursor that is not ours (R1-51)."""
    if cursor is None:
        return None
    try:
        created, _, task_id = base64.urlsafe_b64decode(cursor).decode().partition("|")
        if not task_id:
            raise ValueError(cursor)
        return float(created), task_id
    except (ValueError, TypeError, AttributeError):
        raise RpcError(INVALID_PARAMS, "This cursor is not one of ours") from None


@dataclass(slots=True, frozen=True)
class Remark:
    """One thing about how the server treated a task; good manners are said too."""

    good: bool
    text: str


def is_fast(gap: float, task: ReceiverTask) -> bool:
    """Whether a poll came sooner after the one before than we had asked for; a tenth is forgiven."""
    return gap * 1000 < task.poll_interval * 0.9


def manners(task: ReceiverTask) -> list[Remark]:
    """How the server treated a task: polls too fast, polls after the end, a result never fetched (R1-87)."""
    remarks = []
    polls = [visit for visit in task.visits if visit.what == POLL]
    fetches = [visit for visit in task.visits if visit.what == "tasks/result"]
    gaps = [later.at - earlier.at for earlier, later in itertools.pairwise(polls)]
    fast = [gap for gap in gaps if is_fast(gap, task)]
    if fast:
        text = f"{len(fast)} of {len(polls)} polls came faster than the interval of {task.poll_interval} ms; "
        remarks.append(Remark(False, f"{text}the shortest after {min(fast) * 1000:.0f} ms."))
    elif gaps:
        remarks.append(Remark(True, f"Kept to the interval of {task.poll_interval} ms between {len(polls)} polls."))
    if fetches and (not task.terminal or fetches[0].at < task.updated_at):
        remarks.append(Remark(True, "Called tasks/result while the task was still open, and waited."))
    if task.terminal:
        remarks += _manners_after(task, polls)
    return remarks


def _manners_after(task: ReceiverTask, polls: list[Visit]) -> list[Remark]:
    """What the server did once the task was settled. The first poll after the end is how it learns of it."""
    late = [visit for visit in polls if visit.at > task.updated_at]
    remarks = [Remark(False, f"Polled {len(late)} times after the end.")] if len(late) > 1 else []
    if task.status == "cancelled":
        return remarks
    if task.fetched:
        if not late[1:]:
            remarks.append(Remark(True, "Fetched the result and stopped polling."))
    elif task.gone is not None:
        remarks.append(Remark(False, "Never fetched the result, and the record is gone."))
    return remarks
