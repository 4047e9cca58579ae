"""Tasks that a server executes for us: what a wire calls things, what a task object says, and what is wrong with it.

A wire (`TaskWire`) names methods, fields and notifications in one place, so that another revision's tasks can be
followed by the same poller and shown on the same page. Pure decisions: whether a tool may be called as a task, how a
status may move, how long to wait until the next poll. Knows the protocol's rules (R2); knows no session and no page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from app import bounds
from app.core.asks import related_task_of
from app.core.rules import catalogue
from app.core.signal import Signal
from app.core.tasks.status import STATUSES, Status, Task, may_move
from app.core.times import wire_time
from app.core.wire import NO_FINDINGS, Finding, Findings

TaskSupport = Literal["required", "optional", "forbidden", "absent"]

IMMEDIATE = "io.modelcontextprotocol/model-immediate-response"


# --------------------------------------------------------------------------------------------------------- the wire


@dataclass(slots=True, frozen=True)
class TaskWire:
    """How one revision speaks of tasks."""

    label: str
    """What the page says of it."""
    get: str
    cancel: str
    result: str | None
    """None where `get` brings the result."""
    list: str | None
    notification: str
    ttl: str
    poll: str
    wrapper: str | None
    """The member of the reply that holds a new task; None where the reply itself is one."""
    starts: frozenset[Status]
    """What a new task may be."""
    update: str | None = None
    """How its questions are answered, where they stand in the task itself."""

    def created(self, result: Any) -> dict[str, Any] | None:
        """The task in the reply to a call, when the reply brings one."""
        if not isinstance(result, dict):
            return None
        if self.wrapper is None:
            return result if result.get("resultType") == "task" else None
        task = result.get(self.wrapper)
        return task if isinstance(task, dict) else None

    def ask(self, ttl: int | None) -> dict[str, Any]:
        """What to put beside the arguments of a call, so that it becomes a task (R2-06)."""
        return {"task": {} if ttl is None else {"ttl": ttl}}


CORE = TaskWire(
    label="experimental (2025-11-25)",
    get="tasks/get",
    cancel="tasks/cancel",
    result="tasks/result",
    list="tasks/list",
    notification="notifications/tasks/status",
    ttl="ttl",
    poll="pollInterval",
    wrapper="task",
    starts=frozenset({"working"}),
)
"""Tasks of 2025-11-25."""

EXTENSION = TaskWire(
    label="extension (2026-07-28)",
    get="tasks/get",
    cancel="tasks/cancel",
    result=None,
    list=None,
    notification="notifications/tasks",
    ttl="ttlMs",
    poll="pollIntervalMs",
    wrapper=None,
    starts=frozenset(STATUSES),
    update="tasks/update",
)
"""Tasks of the extension `io.modelcontextprotocol/tasks`: the server alone decides, and the task says it all (R7)."""


@dataclass(slots=True, frozen=True)
class Capabilities:
    """What a server declared about tasks."""

    tools_call: bool = False
    list: bool = False
    cancel: bool = False


def capabilities_of(declared: Any, version: str | None) -> Capabilities:
    """The task capabilities of a server; none outside 2025-11-25, for no other revision has them (R2-01, R2-42)."""
    tasks = declared.get("tasks") if isinstance(declared, dict) and version == "2025-11-25" else None
    if not isinstance(tasks, dict):
        return Capabilities()
    requests = tasks.get("requests")
    tools = requests.get("tools") if isinstance(requests, dict) else None
    return Capabilities(
        tools_call=isinstance(tools, dict) and isinstance(tools.get("call"), dict),
        list=isinstance(tasks.get("list"), dict),
        cancel=isinstance(tasks.get("cancel"), dict),
    )


@dataclass(slots=True, frozen=True)
class Support:
    """Whether a tool may be called as a task, plainly, or both; and the reason where it may not."""

    said: TaskSupport
    no_task: str = ""
    """Why it is not called as a task; "" when it may be."""
    no_plain: str = ""
    """Why it is not called plainly; "" when it may be."""

    @property
    def badge(self) -> str:
        """One word or two beside the tool's name; "" when there is nothing to say."""
        return {"required": "only as a task", "optional": "can run as a task", "forbidden": "never as a task"}.get(
            self.said, ""
        )


def support_of(tool: Any, capable: Capabilities) -> Support:
    """Tool-level negotiation (R2-01…R2-04). `tool` is the server's object, None when it lists no such tool."""
    execution = tool.get("execution") if isinstance(tool, dict) else None
    value = execution.get("taskSupport") if isinstance(execution, dict) else None
    said: TaskSupport = value if value in ("required", "optional", "forbidden") else "absent"
    if not capable.tools_call:
        return Support(said, no_task="The server did not declare `tasks.requests.tools.call`.")
    if said == "required":
        return Support(said, no_plain="The tool says `taskSupport: required`: it runs only as a task.")
    if said == "forbidden":
        return Support(said, no_task="The tool says `taskSupport: forbidden`.")
    if said == "absent":
        return Support(said, no_task="The tool does not say `taskSupport`, which means it cannot.")
    return Support(said)


# ------------------------------------------------------------------------------------------------------------ a task


@dataclass(slots=True, frozen=True)
class Seen:
    """One task object of the server, as far as it can be read."""

    task_id: str
    status: Status | None
    """None when it is none of the five: the task goes on as it was."""
    ttl: int | None
    """Milliseconds from creation; None is unlimited, or not said."""
    poll: int | None
    message: str | None
    created_at: str | None
    updated_at: str | None


def read_task(wire: TaskWire, value: Any) -> tuple[Seen | None, list[Finding]]:
    """A task object, and what is wrong with it (R2-08). None when it has no usable id."""
    if not isinstance(value, dict):
        return None, [catalogue.task_no_object()]
    findings = []
    task_id, status = value.get("taskId"), value.get("status")
    if not isinstance(task_id, str) or not task_id:
        return None, [catalogue.task_without_id()]
    if status not in STATUSES:
        shown = repr(status)[:60] if status is not None else "missing"
        findings.append(catalogue.task_status_unknown(shown=shown))
        status = None
    missing = [name for name in ("createdAt", "lastUpdatedAt", wire.ttl) if name not in value]
    if missing:
        findings.append(catalogue.task_incomplete(named=", ".join(f"`{name}`" for name in missing)))
    ttl, sound = _milliseconds(value.get(wire.ttl), least=0)
    if not sound:
        findings.append(catalogue.task_ttl_improper(name=wire.ttl))
    poll, sound = _milliseconds(value.get(wire.poll), least=0)
    if not sound:
        findings.append(catalogue.task_poll_improper(name=wire.poll, default=bounds.POLL_MS))
    message = value.get("statusMessage")
    return Seen(
        task_id,
        status,
        ttl,
        poll,
        message[: bounds.TASK_WORDS] if isinstance(message, str) else None,
        _text(value.get("createdAt")),
        _text(value.get("lastUpdatedAt")),
    ), findings


def _text(value: Any) -> str | None:
    return value[:60] if isinstance(value, str) else None


def _milliseconds(value: Any, *, least: int) -> tuple[int | None, bool]:
    """A number of milliseconds, and whether what was said is one; None when nothing was said."""
    if value is None:
        return None, True
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
        return None, False
    return int(min(value, bounds.TASK_MS)), True


def poll_seconds(poll: int | None) -> float:
    """How long to wait between two polls: as the server says, within reason (R2-10, F18)."""
    return max(bounds.FASTEST_POLL_MS, bounds.POLL_MS if poll is None else poll) / 1000


@dataclass(slots=True)
class ClientTask(Task):
    """A task that the server executes for us. Mirrors the server's status; `gone` when it can no longer be asked."""

    wire: TaskWire
    connection: int
    """Which connection of the session knows it."""
    poll: int | None = None
    created_at: str | None = None
    updated_at: str | None = None
    call_id: str | None = None
    tool: str = ""
    immediate: str | None = None
    """What the server wants a model to hear at once (R2-44)."""
    outlived: bool = False
    """Its TTL has passed, and the server still answers for it."""
    ended_at: float | None = None
    cancelling: bool = False
    followed: bool = False
    """Parley polls it."""
    waiting: bool = False
    """A `tasks/result` of ours waits."""
    fetched: str | None = None
    """The call that asked for its result."""
    answered: bool = False
    """Its result came."""
    payload: dict[str, Any] | None = None
    """`result` or `error`, where the task itself brings it, until its call has taken it."""
    payload_seq: int | None = None
    payload_sent: int | None = None
    inputs: dict[str, str] = field(default_factory=dict)
    """Which ask each key of its `inputRequests` became; a key is asked once (R7-21)."""
    next_poll: float | None = None
    """Monotonic: when the next poll is due."""
    poll_now: bool = False
    """It is to be polled at once, whatever the interval."""
    reply_lost: bool = False
    """The wait for its result got no reply: it begins again once a poll shows that the task is still there."""
    nudged: Signal = field(default_factory=Signal, repr=False, compare=False)
    notified: int = 0
    asks: tuple[str, ...] = ()
    log: Findings = field(default=NO_FINDINGS, repr=False, compare=False)
    """Who knows what was remarked about it."""
    beside: set[int] = field(default_factory=set)
    """The messages that were remarked on for its sake."""

    @property
    def findings(self) -> list[Finding]:
        """What was remarked about it; what its questions are about is said with those."""
        return self.log.findings_of(self.beside, [self.id], about=self.id)

    def nudge(self, *, poll: bool = False) -> None:
        """Something happened to it: whoever rests looks at it, and may poll it at once."""
        self.poll_now = self.poll_now or poll
        self.nudged.set()

    def unfollowed(self) -> None:
        """Nobody polls it any more."""
        self.followed = self.poll_now = self.reply_lost = False
        self.next_poll = None

    def take(self, seen: Seen, at: float) -> tuple[bool, list[Finding]]:
        """What the server says now: whether anything changed, and what is wrong with it.

        A move that is not legal is remarked and not followed (F18). What else it says of an ended task is taken."""
        self.ttl, self.poll = seen.ttl, seen.poll
        status = self.status if seen.status is None else seen.status
        if status != self.status and not may_move(self.status, status):
            return False, [catalogue.task_leaves_its_end(before=self.status, now=status)]
        changed = (status, seen.message) != (self.status, self.message)
        self.status, self.message = status, seen.message
        if seen.created_at is not None:
            self.created_at = seen.created_at
        self.updated_at = seen.updated_at
        if self.terminal and self.ended_at is None:
            self.ended_at = at
        return changed, []

    def object(self) -> dict[str, Any]:
        """The task as the wire has it."""
        created = self.created_at or wire_time(self.began_at)
        poll = {} if self.poll is None else {self.wire.poll: self.poll}
        return self.written(created, self.updated_at or created, {self.wire.ttl: self.ttl, **poll})


# ---------------------------------------------------------------------------------------------------------- findings


def first_status(wire: TaskWire, status: Status | None) -> list[Finding]:
    """A new task begins with `working` (R2-08). One with a status that nobody knows is remarked already."""
    proper = status is None or status in wire.starts
    return [] if proper else [catalogue.task_begins_otherwise(status=status)]


def related(result: Any, task_id: str) -> list[Finding]:
    """The result of a task names its task (R2-22)."""
    found = related_task_of(result) if isinstance(result, dict) else None
    if found == task_id:
        return []
    return [catalogue.task_result_names(names="does not name its task" if found is None else "names another task")]
