"""One thing that a person asked of the server, over all its legs, and its legal moves."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from app.core.json import Json
from app.core.wire import NO_FINDINGS, Finding, Findings, RpcId

CallState = Literal["running", "waiting", "done", "failed", "cancelled"]


@dataclass(slots=True)
class Progress:
    """The last progress a call reported."""

    progress: float
    total: float | None
    message: str | None
    at: float


@dataclass(slots=True)
class CallLog:
    """One `notifications/message` that arrived while a call was running."""

    at: float
    level: str
    logger: str | None
    data: Json
    size: int = 0
    """Of its message on the wire."""


@dataclass(slots=True)
class Leg:
    """One request and its reply; a call has several when it is retried or continued."""

    rpc_id: RpcId
    request_seq: int | None = None
    reply_seq: int | None = None


@dataclass(slots=True, frozen=True)
class ReplyHead:
    """What there is to know of a reply without reading it again: kept when it arrives, and longer than its bytes."""

    is_error: bool
    """It is an error of JSON-RPC."""
    tool_error: bool
    """Its result says `isError`."""
    size: int
    unread: str | None
    """Why its result is shown as text only: there is more in it than is read."""


@dataclass(slots=True)
class CallError:
    """Why a call failed. `code` is None when it was us (a time limit, a lost connection), never the server (R6-09)."""

    code: int | None
    message: str
    data: Json = None
    kind: str = "rpc"


@dataclass(slots=True, frozen=True)
class StatePlan:
    """Which `requestState` the next retry carries instead of the server's own: a tester's choice, never ours."""

    mode: Literal["same", "drop", "older", "change"]
    value: Json = None


@dataclass(slots=True)
class Round:
    """One `input_required` result of a call, and what was sent back for it (R6.C)."""

    number: int
    reply_seq: int | None
    """The message that asked; None when it came to the session before this one."""
    methods: dict[str, str]
    """What is asked for, by its key."""
    has_state: bool
    state: Json = None
    """Opaque: shown by its length alone, and sent back as it came. Of old rounds it may no longer be kept."""
    state_bytes: int | None = field(init=False)
    """How long the state is, in UTF-8."""
    state_kept: bool = field(init=False)
    asks: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Json] = field(default_factory=dict)
    retry_seq: int | None = None
    """The message that carried the answers."""
    echo: str | None = None
    """What became of the state on the wire: same, none, dropped, older or changed."""
    outcome: Literal["asking", "sent", "abandoned", "stopped"] = "asking"

    def __post_init__(self) -> None:
        text = self.state if isinstance(self.state, str) else json.dumps(self.state)
        self.state_bytes = len(text.encode(errors="replace")) if self.has_state else None
        self.state_kept = self.has_state

    def forget_state(self) -> None:
        """Drop what can then no longer be sent again."""
        self.state, self.state_kept = None, False


TERMINAL: frozenset[CallState] = frozenset({"done", "failed", "cancelled"})


@dataclass(slots=True)
class RequiredLink:
    """An address that a person must open before a call can succeed: one entry of error -32042 (R4-48)."""

    elicitation_id: str
    message: str
    url: str
    completed: bool = False
    """The page behind it reported that the person is done there (R4-46)."""


@dataclass(slots=True)
class Call:
    """One thing the person asked of the server, over all its legs."""

    id: str
    method: str
    params: dict[str, Any] | None
    started_at: float
    started: float
    """Monotonic, for durations."""
    by: str = "person"
    quiet: bool = False
    notification: bool = False
    state: CallState = "running"
    ended_at: float | None = None
    duration_ms: float | None = None
    deadline_at: float | None = None
    """Wall time at which the time limit strikes, for the count-down; None when it stands still."""
    signs_in: bool = False
    """The server refused it, and it goes on by itself once somebody has signed in."""
    progress: Progress | None = None
    logs: tuple[CallLog, ...] = ()
    """Most calls have none of these: what they share is neither made nor kept a thousand times."""
    logs_bytes: int = 0
    logs_dropped: int = 0
    legs: list[Leg] = field(default_factory=list)
    reply: bytes | None = None
    """The frame that settled it, as received; results are read from it on demand."""
    head: ReplyHead | None = None
    """Of the newest reply."""
    error: CallError | None = None
    log: Findings = field(default=NO_FINDINGS, repr=False, compare=False)
    """Who knows what was remarked about it."""
    beside: frozenset[int] = frozenset()
    """Messages that are no leg of it and that were remarked on for its sake, like polls of its task."""
    as_task: bool = False
    """It was sent with `task`."""
    task_id: str | None = None
    """Our id of the task that it became."""
    cancel_wanted: bool = False
    """It is to be cancelled as soon as its task is known (R2-40)."""
    progressed: int = 0
    """How often progress came."""
    asks: tuple[str, ...] = ()
    links: tuple[RequiredLink, ...] = ()
    """What its error wants opened first."""
    retry_of: str | None = None
    """The call whose error asked for this one."""
    continues: str | None = None
    """The call of a lost session that it goes on with: `session/call`."""
    cancel_reason: str | None = None
    rounds: tuple[Round, ...] = ()
    round_limit: int = 0
    """How many rounds are played before a person is asked whether to go on; 0 before the call has begun."""
    state_plan: StatePlan | None = None
    """What a tester wants the next retry to carry."""
    abandoned: bool = False
    """A person said no where the wire has no way to say it (R6-34)."""

    @property
    def unread(self) -> str | None:
        """Why its result is shown as text only."""
        return None if self.head is None else self.head.unread

    @property
    def tool_error(self) -> bool:
        """The tool says itself that it failed (`isError`)."""
        return self.state == "done" and self.head is not None and self.head.tool_error

    @property
    def has_result(self) -> bool:
        """Whether there is a result to read: the reply came, is kept, is no error and not too much."""
        return self.reply is not None and (self.head is None or not (self.head.is_error or self.head.unread))

    def add_log(self, log: CallLog, *, most: int, most_bytes: int) -> None:
        """Keep one more; the oldest go where there is no room for them."""
        kept, size, left = (*self.logs, log), self.logs_bytes + log.size, 0
        while len(kept) - left > most or size > most_bytes:
            size -= kept[left].size
            left += 1
        self.logs, self.logs_bytes, self.logs_dropped = kept[left:], size, self.logs_dropped + left

    @property
    def ttl(self) -> int | None:
        """The TTL that it asks for as a task, in milliseconds."""
        task = (self.params or {}).get("task") if self.as_task else None
        ttl = task.get("ttl") if isinstance(task, dict) else None
        return ttl if isinstance(ttl, int) and not isinstance(ttl, bool) else None

    @property
    def seqs(self) -> set[int]:
        """The messages that it is made of."""
        pairs = [seq for leg in self.legs for seq in (leg.request_seq, leg.reply_seq)]
        return {seq for seq in (*pairs, *self.beside) if seq is not None}

    @property
    def findings(self) -> list[Finding]:
        """What was remarked about it, beside its messages or with itself; and of its task."""
        return self.log.findings_of(self.seqs, [one for one in (self.id, self.task_id) if one is not None])

    @property
    def at_limit(self) -> bool:
        """Whether it has stopped at its limit of rounds."""
        return bool(self.rounds) and not self.settled and self.rounds[-1].number > self.round_limit

    @property
    def settled(self) -> bool:
        return self.state in TERMINAL

    def wait(self, waits: bool = True) -> bool:
        """running → waiting, for an ask of it is open; or back. False when that is no move."""
        before: CallState = "running" if waits else "waiting"
        if self.state != before:
            return False
        self.state = "waiting" if waits else "running"
        return True

    def settle(self, state: CallState, *, at: float, now: float) -> bool:
        """Move to a terminal state. The first one wins; False means it came too late."""
        if self.state in TERMINAL or state not in TERMINAL:
            return False
        self.state = state
        self.ended_at = at
        self.duration_ms = (now - self.started) * 1000
        self.deadline_at = None
        return True

    @property
    def subject(self) -> str:
        """What a person recognises it by: the tool's name, else the method."""
        if self.params is not None:
            for key in ("name", "uri"):
                value = self.params.get(key)
                if isinstance(value, str):
                    return value
        return self.method


def tool_or_method(method: str, params: dict[str, Any] | None) -> str:
    """What a list of who did what calls it: a tool or a prompt by its name, and anything else by its method alone."""
    name = (params or {}).get("name")
    return name if method in ("tools/call", "prompts/get") and isinstance(name, str) else method
