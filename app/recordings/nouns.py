"""What the lines of a recording hold, as data: the header, frames, and every noun that is written down.

Those of a live session (a call, an ask, a task) are recorded as they are; here are the others, and the table of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from app.core.asks import Ask
from app.core.calls import Call
from app.core.connection import ConnectionInfo
from app.core.lists import Listing
from app.core.tasks.received import ReceiverTask
from app.core.tasks.running import ClientTask
from app.core.wire import Direction, Exchange, Finding, StderrLine
from app.sessions.ping import Ping
from app.sessions.resources import Watched
from app.sessions.server_log import LogLine
from app.sessions.subscriptions import Subscription

VERSION: Final = 1
MAGIC: Final = "recording"

Why = Literal["stopped", "closed", "shutdown", "full", "disk", "moment"]
"""Why a recording ended: a person stopped it, the session was closed, Parley was, the limit of its size was reached,
nothing more could be written; or it was cut out of another one."""


@dataclass(slots=True, frozen=True)
class Left:
    """What the log of the session no longer held when the recording began."""

    rows: int = 0
    bodies: int = 0


@dataclass(slots=True, frozen=True)
class OpensAt:
    """Where a recording opens: at a message by its seq, a call or an ask by its id."""

    kind: Literal["message", "call", "ask"]
    id: str


@dataclass(slots=True, frozen=True)
class Header:
    """The first line."""

    version: int
    made_by: str
    """Parley and its version."""
    began: float
    """When the recording began; what it holds may be older."""
    rid: str = ""
    sid: str = ""
    """The session that was recorded."""
    title: str = ""
    target: dict[str, Any] | None = None
    """Without its secrets."""
    missing: tuple[str, ...] = ()
    """The names of what was left out of the target."""
    target_key: str = ""
    """What the target is known by: the digest of what of it may be written down."""
    options: dict[str, Any] = field(default_factory=dict)
    """Those that are not as they are by default."""
    revision: str | None = None
    session_began: float | None = None
    left: Left = field(default_factory=Left)
    opens_at: OpensAt | None = None
    note: str = ""


@dataclass(slots=True, frozen=True)
class Row:
    """The row of a message whose bytes were gone before they could be recorded."""

    kind: Literal["request", "response", "error", "notification", "invalid"]
    method: str | None = None
    rpc_id: str | int | float | None = None
    gist: str = ""
    problem: str | None = None
    unread: str | None = None
    step: str = ""


@dataclass(slots=True, frozen=True)
class Frame:
    """One message as it crossed the wire, but for secrets."""

    seq: int
    at: float
    direction: Direction
    size: int
    number: int
    raw: bytes | None = None
    quiet: bool = False
    exchange: int | None = None
    """The seq of the HTTP exchange that carried it."""
    answers: int | None = None
    latency_ms: float | None = None
    method: str | None = None
    """Of a reply: the method of the request that it answers."""
    fold: str | None = None
    """Of a reply: what its request is one more of."""
    by: str = ""
    """Of an answer of ours: the rule or the model that gave it."""
    masked: bool = False
    """Something in it was masked, so it was written anew."""
    row: Row | None = None
    """In the place of `raw`."""


@dataclass(slots=True, frozen=True)
class Totals:
    """What a log has counted since the session began."""

    count: int = 0
    invalid: int = 0
    bytes_total: int = 0
    inbound: int = 0
    outbound: int = 0
    findings_total: int = 0
    calls: int = 0
    asks: int = 0
    stderr: int = 0


@dataclass(slots=True, frozen=True)
class Masked:
    """What was masked in one place: a JSON pointer, the name that made it a secret, and how often."""

    pointer: str
    name: str
    count: int


@dataclass(slots=True, frozen=True)
class Beside:
    """All that was remarked beside a message (`id` is its seq), or of a subject where no message says it."""

    findings: list[Finding]


@dataclass(slots=True, frozen=True)
class ListState:
    """One list of the server; its items stand in the frames `items_from`, unless they are here."""

    listing: Listing
    items_from: tuple[int, ...] = ()
    by_page: bool = False


@dataclass(slots=True, frozen=True)
class PingState:
    last: Ping | None = None
    sent: int = 0
    failed: int = 0
    every_ms: int | None = None


@dataclass(slots=True, frozen=True)
class RootsState:
    roots: list[dict[str, str]]


@dataclass(slots=True, frozen=True)
class OptionsState:
    options: dict[str, Any]


@dataclass(slots=True, frozen=True)
class InboxState:
    refused: int = 0
    cleared: int = 0
    """The seq up to which a person has cleared what was settled."""


@dataclass(slots=True, frozen=True)
class LogState:
    """What the server logged by `notifications/message`. The lines stand in frames; here are those whose frame is not
    in the recording."""

    count: int = 0
    loggers: dict[str, int] = field(default_factory=dict)
    lines: list[LogLine] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class MaskState:
    """What was masked so far."""

    masked: list[Masked]


@dataclass(slots=True, frozen=True)
class Gap:
    """What is missing: the recording could not keep up, and the log had let go of it."""

    after: int
    """The seq of the last message before it."""
    messages: int
    why: str


@dataclass(slots=True, frozen=True)
class End:
    """The last line of a recording that was ended in order."""

    why: Why
    totals: Totals = field(default_factory=Totals)
    masked: list[Masked] = field(default_factory=list)
    words: str = ""
    """Why, in a sentence, where there is more to say."""


Noun = (
    ConnectionInfo
    | Call
    | Ask
    | ClientTask
    | ReceiverTask
    | Exchange
    | StderrLine
    | Beside
    | ListState
    | Subscription
    | Watched
    | PingState
    | RootsState
    | OptionsState
    | InboxState
    | LogState
    | MaskState
    | Totals
    | Gap
    | End
)

NOUNS: Final[Mapping[str, type[Noun]]] = {
    "connection": ConnectionInfo,
    "call": Call,
    "ask": Ask,
    "client_task": ClientTask,
    "receiver_task": ReceiverTask,
    "exchange": Exchange,
    "stderr": StderrLine,
    "finding": Beside,
    "list": ListState,
    "subscription": Subscription,
    "resource": Watched,
    "ping": PingState,
    "roots": RootsState,
    "options": OptionsState,
    "inbox": InboxState,
    "server_log": LogState,
    "masked": MaskState,
    "totals": Totals,
    "gap": Gap,
    "end": End,
}
"""Every kind of line but the header and the frame, with what it holds."""
KINDS: Final = {noun: kind for kind, noun in NOUNS.items()}


@dataclass(slots=True, frozen=True)
class State:
    """What one noun was at one time. Of several with the same kind and id the last counts."""

    kind: str
    id: str
    """Unique among its kind; "" where there is only one."""
    seq: int
    """The newest event of the session when it was written down."""
    at: float
    noun: Noun
    reply: bytes | None = None
    """Of a call: its reply, where that is not the frame of its last leg."""
    reply_kept: bool = False
    """Of a call: whether it has its reply, here or in that frame."""


Line = Header | Frame | State
