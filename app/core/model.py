"""The nouns of Parley and their legal moves: Target, Options, Message, Call, Finding, ConnectionInfo.

Plain data with its own verbs. Every mutation of a state machine goes through one guarded method, and the first
terminal write wins. Knows no wire, no web, no clock of its own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from app import secrecy
from app.core.jsontext import writable

type_json = Any
"""Any JSON value, as received."""

Direction = Literal["in", "out"]
MessageKind = Literal["request", "response", "error", "notification", "invalid"]
ConnectionState = Literal["none", "connecting", "ready", "lost", "closed"]
CallState = Literal["running", "waiting", "done", "failed", "cancelled"]
Level = Literal["must", "should", "note"]
Side = Literal["us", "them", "parley"]
Era = Literal["legacy", "modern"]
EraFrom = Literal["options", "target", "memory", "probe"]
"""How the era of a connection came about: by an option, by the kind of target, remembered, or found out."""

RpcId = str | int | float | None
"""An id as it stood on the wire; a fraction or null is a fault of the sender, and is shown."""

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The revisions that begin with `initialize`, newest first. 2026-07-28 has none: it joins later."""


# ---------------------------------------------------------------------------------------------- failure families


class ParleyError(Exception):
    """The base of the three families. `message` says what happened and what to do next."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ProtocolFault(ParleyError):
    """The server's fault: it died, went silent or spoke nonsense."""


class Refused(ParleyError):
    """Our policy says no."""

    def __init__(self, message: str, fields: dict[str, list[str]] | None = None) -> None:
        super().__init__(message)
        self.fields = fields or {}


class Gone(ParleyError):
    """State moved on: it is no longer there, or no longer open."""


# ------------------------------------------------------------------------------------------------------- targets


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*")
    @classmethod
    def _of_characters(cls, value: Any) -> Any:
        """What is no character can stand in no argument, no variable and no file."""
        if not writable(value):
            raise ValueError("must not contain half of a surrogate pair, which is no character")
        return value


_ARGUMENTS_LONGEST = 128 * 1024
_ENVIRONMENT_LONGEST = 1024 * 1024
"""A system starts no process with more than about two of these."""
_HEADERS_LONGEST = 256 * 1024
_NAME_LONGEST = 4096
_LABEL_LONGEST = 1000


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    return value


class StdioTarget(_Strict):
    """A server that Parley starts as a child process. Never a shell: `args` reach the program as they are."""

    transport: Literal["stdio"] = "stdio"
    command: str = Field(min_length=1, max_length=4096)
    args: tuple[str, ...] = Field(default=(), max_length=1000)
    env: dict[str, str] = Field(default_factory=dict, max_length=200)
    cwd: str | None = Field(default=None, max_length=4096)
    secret: tuple[Annotated[str, Field(max_length=_NAME_LONGEST)], ...] = Field(default=(), max_length=200)
    """Names of variables whose values are never shown and never written to disk."""

    @field_validator("command", "cwd")
    @classmethod
    def _clean(cls, value: str | None) -> str | None:
        return value if value is None else _no_nul(value)

    @field_validator("args")
    @classmethod
    def _clean_args(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if sum(len(arg) for arg in value) > _ARGUMENTS_LONGEST:
            raise ValueError("the arguments are longer than 128 KiB together")
        return tuple(_no_nul(arg) for arg in value)

    @field_validator("env")
    @classmethod
    def _clean_env(cls, value: dict[str, str]) -> dict[str, str]:
        if sum(len(name) + len(text) for name, text in value.items()) > _ENVIRONMENT_LONGEST:
            raise ValueError("the environment is longer than 1 MiB together")
        for name, text in value.items():
            if not name or "=" in name or "\0" in name or len(name) > _NAME_LONGEST:
                raise ValueError(f"{name[:60]!r} is not a name for an environment variable")
            if len(text) > 128 * 1024:
                raise ValueError(f"the value of {name} is longer than 128 KiB")
            _no_nul(text)
        return value

    @property
    def argv(self) -> tuple[str, ...]:
        """The command and its arguments."""
        return (self.command, *self.args)

    @property
    def shown_argv(self) -> tuple[str, ...]:
        """The command and its arguments, with `•••` where a secret stands."""
        return secrecy.masked_arguments(self.argv)

    @property
    def command_line(self) -> str:
        """All of it as a person would type it, with `•••` where a secret stands."""
        return typed_line(self.shown_argv)

    @property
    def label(self) -> str:
        return _cut(self.command_line)

    @property
    def secret_names(self) -> set[str]:
        """The variables whose values nobody may see or write down: marked as such, or secret by the one table."""
        marked = {name.lower() for name in self.secret}
        return {
            name
            for name, value in self.env.items()
            if name.lower() in marked or secrecy.is_secret_variable(name, value)
        }


class DemoTarget(_Strict):
    """The built-in demo server, started over stdio."""

    transport: Literal["demo"] = "demo"

    @property
    def label(self) -> str:
        return "the demo server"

    @property
    def secret_names(self) -> set[str]:
        return set()


class HttpTarget(_Strict):
    """A server that Parley dials: streamable HTTP, or the older HTTP with server-sent events."""

    transport: Literal["http", "sse"]
    url: str = Field(min_length=1, max_length=4096, pattern=r"^https?://")
    headers: dict[str, str] = Field(default_factory=dict, max_length=50)
    secret: tuple[Annotated[str, Field(max_length=_NAME_LONGEST)], ...] = Field(default=(), max_length=50)
    """Names of headers whose values are never shown; the usual suspects are masked in any case."""

    @field_validator("url")
    @classmethod
    def _readable(cls, value: str) -> str:
        """Refuses what no address can be. Whether it can be dialled is found out, and said, by the connection."""
        try:
            port = urlsplit(value).netloc.rpartition(":")[2]
        except ValueError:
            raise ValueError("this is no address: look at the brackets and the letters of its host") from None
        if port and not port.strip("0"):
            raise ValueError("nobody listens on port 0; write the port of the server")
        return value

    @field_validator("headers")
    @classmethod
    def _clean_headers(cls, value: dict[str, str]) -> dict[str, str]:
        if sum(len(name) + len(text) for name, text in value.items()) > _HEADERS_LONGEST:
            raise ValueError("the headers are longer than 256 KiB together")
        for name, text in value.items():
            if len(name) > _NAME_LONGEST or not _TOKEN.fullmatch(name):
                raise ValueError(f"{name[:60]!r} is not a name for a header")
            if name.lower() in _OUR_HEADERS:
                raise ValueError(f"{name} is set by Parley")
            if any(ord(char) < 32 or ord(char) > 255 for char in text) or len(text) > 16_384:
                raise ValueError(f"the value of {name} must be one line of at most 16 KiB, in Latin-1")
        return value

    @property
    def shown_url(self) -> str:
        """The address, with `•••` where a secret stands."""
        return secrecy.masked_url(self.url)

    @property
    def label(self) -> str:
        return _cut(self.shown_url)

    @property
    def secret_names(self) -> set[str]:
        """The headers whose values nobody may see or write down: marked as such, or secret by the one table."""
        marked = {name.lower() for name in self.secret}
        return {
            name
            for name, value in self.headers.items()
            if name.lower() in marked or secrecy.is_secret_header(name, value)
        }


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OUR_HEADERS = frozenset(
    {
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "accept",
        "accept-encoding",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "last-event-id",
    }
)

AnyTarget = StdioTarget | DemoTarget | HttpTarget
Target = Annotated[AnyTarget, Field(discriminator="transport")]


def _cut(label: str) -> str:
    """A label stands on every page of a session, so it ends somewhere."""
    return label if len(label) <= _LABEL_LONGEST else label[: _LABEL_LONGEST - 1] + "…"


def typed_line(argv: Iterable[str]) -> str:
    """Arguments as a person would type them on one line."""
    return " ".join(_quoted(part) for part in argv)


def _quoted(part: str) -> str:
    return part if part and not set(part) & set(" \t\n\"'\\$`") else "'" + part.replace("'", "'\\''") + "'"


def target_digest(target: AnyTarget) -> str:
    """What a person confirms: it changes with every argument, directory and environment value (R5-71)."""
    plain = json.dumps(target.model_dump(mode="json"), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(plain.encode()).hexdigest()


# ------------------------------------------------------------------------------------------------------- options


_DAY_MS = 24 * 3_600_000
_LONGEST_MS = 30 * _DAY_MS
"""Nothing that a connection waits for or keeps needs more than a month; far larger numbers are no dates (H12)."""


class Options(_Strict):
    """What a connection offers its server, and how patient it is. Keys and defaults are fixed (architecture.md §5)."""

    era: Literal["auto", "legacy", "modern"] = "auto"
    protocol_version: Literal["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] | None = None
    sampling: bool = True
    sampling_tools: bool = True
    sampling_context: bool = False
    elicitation_form: bool = True
    elicitation_url: bool = True
    roots: bool = True
    ask_roots: bool = False
    receiver_tasks: bool = True
    receiver_task_ttl_ms: int = Field(default=60_000, gt=0, le=_LONGEST_MS)
    receiver_task_max_ttl_ms: int = Field(default=3_600_000, gt=0, le=_LONGEST_MS)
    poll_interval_ms: int = Field(default=2_000, gt=0, le=_DAY_MS)
    awaiting_user_status: Literal["input_required", "working"] = "input_required"
    send_status_notifications: bool = True
    unattended_limit_ms: int | None = Field(default=None, gt=0, le=_LONGEST_MS)
    handshake_timeout_ms: int | None = Field(default=None, gt=0, le=_DAY_MS)
    request_timeout_ms: int = Field(default=60_000, gt=0, le=_DAY_MS)
    reset_timeout_on_progress: bool = True
    max_total_timeout_ms: int | None = Field(default=None, gt=0, le=_DAY_MS)
    log_level: Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] | None = None
    meta: dict[str, Any] = Field(default_factory=dict)
    extensions: dict[str, Any] = Field(default_factory=dict)


LIVE_OPTIONS = frozenset(
    {
        "ask_roots",
        "receiver_task_ttl_ms",
        "receiver_task_max_ttl_ms",
        "poll_interval_ms",
        "awaiting_user_status",
        "send_status_notifications",
        "unattended_limit_ms",
        "request_timeout_ms",
        "reset_timeout_on_progress",
        "max_total_timeout_ms",
        "log_level",
        "meta",
    }
)
"""What may change on a live connection: everything the handshake did not already say."""


def misfit(error: Mapping[str, Any]) -> str:
    """What is wrong with one value, from pydantic's account of it, in words that need no knowledge of pydantic."""
    if error["type"] in ("less_than_equal", "greater_than"):
        most = error["type"] == "less_than_equal"
        return f"At most {error['ctx']['le']:,}." if most else f"More than {error['ctx']['gt']:,}."
    return str(error["msg"]).removeprefix("Value error, ")


class Root(_Strict):
    """One directory or file that the server may know about."""

    uri: str = Field(min_length=1, max_length=4096)
    name: str | None = Field(default=None, max_length=500)

    @field_validator("uri")
    @classmethod
    def _file_uri(cls, value: str) -> str:
        if not value.startswith("file:///"):
            raise ValueError("a root is a file:// URI with an absolute path, like file:///home/me/project")
        path = unquote(value)
        if any(part in {".", ".."} for part in path.split("/")) or "\0" in path:
            raise ValueError("the path must not contain . or .. segments")
        return value

    def wire(self) -> dict[str, str]:
        return {"uri": self.uri} if self.name is None else {"uri": self.uri, "name": self.name}


# ---------------------------------------------------------------------------------------------------- messages


@dataclass(slots=True, frozen=True)
class Finding:
    """One remark about conformance or safety, with the requirement it speaks of."""

    id: str
    """Requirement id, like `R5-01`."""
    level: Level
    """`must` breaks a MUST, `should` is against a SHOULD, `note` only informs."""
    text: str
    """What is the case."""
    advice: str = ""
    """What follows from it, or what to do."""
    message_seq: int | None = None


@dataclass(slots=True, frozen=True)
class Message:
    """One frame as it crossed the wire. Its bytes are kept by the log, its findings beside it, by `seq`."""

    seq: int
    direction: Direction
    at: float
    size: int
    kind: MessageKind
    method: str | None
    """Of a reply: the method of the request it answers, when that is known."""
    rpc_id: RpcId
    gist: str
    """One line that says what is in it."""
    answers: int | None = None
    """The seq of the request that this replies to."""
    latency_ms: float | None = None
    problem: str | None = None
    """Why it could not be read as JSON-RPC."""
    quiet: bool = False
    unread: str | None = None
    """Why only its head was read: there is more in it than is built."""


@dataclass(slots=True)
class Exchange:
    """One HTTP request and its answer, as far as it got; the frames it carried are messages of their own."""

    method: str
    url: str
    at: float
    request_headers: tuple[tuple[str, str], ...]
    """Secrets are masked before they get here."""
    status: int | None = None
    response_headers: tuple[tuple[str, str], ...] = ()
    answered_ms: float | None = None
    error: str | None = None
    note: str | None = None
    """What there is to say of how it came about, like a redirect."""
    started: float = field(default=0.0, repr=False)
    """Monotonic, for durations."""


@dataclass(slots=True)
class StderrLine:
    """One line the server wrote to its standard error; shown, never taken for a failure (R5-40)."""

    number: int
    at: float
    text: str
    by_probe: bool = False
    """It complains of our `server/discover`, which a server of the older era need not know."""


# ------------------------------------------------------------------------------------------------------- calls


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
    data: type_json
    size: int = 0
    """Of its message on the wire."""


@dataclass(slots=True)
class Leg:
    """One request and its reply; a call has several when it is retried or continued."""

    rpc_id: RpcId
    request_seq: int | None = None
    reply_seq: int | None = None


@dataclass(slots=True)
class CallError:
    """Why a call failed. `code` is None when it was us (a time limit, a lost connection), never the server (R6-09)."""

    code: int | None
    message: str
    data: type_json = None
    kind: str = "rpc"


@dataclass(slots=True, frozen=True)
class StatePlan:
    """Which `requestState` the next retry carries instead of the server's own: a tester's choice, never ours."""

    mode: Literal["same", "drop", "older", "change"]
    value: type_json = None


@dataclass(slots=True)
class Round:
    """One `input_required` result of a call, and what was sent back for it (R6.C)."""

    number: int
    reply_seq: int
    """The message that asked."""
    methods: dict[str, str]
    """What is asked for, by its key."""
    has_state: bool
    state: type_json = None
    """Opaque: shown by its length alone, and sent back as it came."""
    asks: dict[str, str] = field(default_factory=dict)
    answers: dict[str, type_json] = field(default_factory=dict)
    retry_seq: int | None = None
    """The message that carried the answers."""
    echo: str | None = None
    """What became of the state on the wire: same, none, dropped, older or changed."""
    outcome: Literal["asking", "sent", "abandoned", "stopped"] = "asking"

    @property
    def state_bytes(self) -> int | None:
        """How long the state is, in UTF-8."""
        if not self.has_state:
            return None
        text = self.state if isinstance(self.state, str) else json.dumps(self.state)
        return len(text.encode(errors="replace"))


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
    progress: Progress | None = None
    logs: deque[CallLog] = field(default_factory=deque)
    logs_bytes: int = 0
    logs_dropped: int = 0
    legs: list[Leg] = field(default_factory=list)
    reply: bytes | None = None
    """The frame that settled it, as received; results are read from it on demand."""
    unread: str | None = None
    """Why its result is shown as text only: there is more in it than is read."""
    tool_error: bool = False
    """The tool says itself that it failed (`isError`)."""
    error: CallError | None = None
    findings: list[Finding] = field(default_factory=list)
    as_task: bool = False
    """It was sent with `task`."""
    ttl: int | None = None
    """The TTL that was asked for, in milliseconds."""
    task_id: str | None = None
    """Our id of the task that it became."""
    cancel_wanted: bool = False
    """It is to be cancelled as soon as its task is known (R2-40)."""
    progressed: int = 0
    """How often progress came."""
    asks: list[str] = field(default_factory=list)
    links: list[RequiredLink] = field(default_factory=list)
    """What its error wants opened first."""
    retry_of: str | None = None
    """The call whose error asked for this one."""
    cancel_reason: str | None = None
    rounds: list[Round] = field(default_factory=list)
    round_limit: int = 0
    """How many rounds are played before a person is asked whether to go on; 0 before the call has begun."""
    state_plan: StatePlan | None = None
    """What a tester wants the next retry to carry."""
    abandoned: bool = False
    """A person said no where the wire has no way to say it (R6-34)."""

    @property
    def at_limit(self) -> bool:
        """Whether it has stopped at its limit of rounds."""
        return bool(self.rounds) and not self.settled and self.rounds[-1].number > self.round_limit

    @property
    def settled(self) -> bool:
        return self.state in TERMINAL

    def wait(self) -> bool:
        """running → waiting, for an ask of it is open."""
        if self.state != "running":
            return False
        self.state = "waiting"
        return True

    def go_on(self) -> bool:
        """waiting → running."""
        if self.state != "waiting":
            return False
        self.state = "running"
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


# -------------------------------------------------------------------------------------------------- connection


@dataclass(slots=True, frozen=True)
class Step:
    """One step of how a connection came about, for the overview."""

    after_ms: float
    text: str
    side: Side = "parley"
    seq: int | None = None
    code: str | None = None
    """A wire name shown in mono before the text."""


@dataclass(slots=True, frozen=True)
class Trouble:
    """Why a connection failed or was lost, in plain words: what happened; why; what to do."""

    kind: str
    message: str
    advice: str = ""
    exit_code: int | None = None
    last_words: str = ""
    """The end of what the server wrote to stderr."""


def own_fault(fault: BaseException) -> Trouble:
    """A fault of Parley itself, for whoever was in the middle of something."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    said = f"{type(fault).__name__}: {fault}"[:200].rstrip(" :.")
    return Trouble(
        "internal",
        f"Parley itself failed: {said}. This connection was ended; other sessions go on.",
        "Connect again. The terminal that runs Parley shows where it failed: please report that.",
    )


@dataclass(slots=True)
class ConnectionInfo:
    """What is known about the one link of a session. Survives the link, so that a lost one can be explained."""

    state: ConnectionState = "none"
    number: int = 0
    """Counts the connections of this session."""
    era: Era | None = None
    era_from: EraFrom | None = None
    protocol_version: str | None = None
    server_info: type_json = None
    server_capabilities: type_json = None
    client_capabilities: type_json = None
    instructions: str | None = None
    pid: int | None = None
    began_at: float | None = None
    ready_at: float | None = None
    ended_at: float | None = None
    connect_ms: float | None = None
    deadline_at: float | None = None
    """While connecting: when the time limit of the handshake strikes."""
    waits: float | None = None
    """While connecting: how long the server may take from the last step on, in seconds."""
    transport: str | None = None
    """What carries it in the end: a target of `http` may turn out to speak the older `sse`."""
    moved_to: str | None = None
    """The address that the connection uses, where the server redirected from that of the target; as it is, unmasked."""
    stream: str | None = None
    """What became of the stream on which an HTTP server speaks unasked, in words."""
    steps: list[Step] = field(default_factory=list)
    trouble: Trouble | None = None
    renewed: str | None = None
    """Why Parley began this connection by itself: the server had forgotten the session of the one before (R5-45)."""

    def offers(self, capability: str) -> bool:
        """Whether the server declared a capability (R5-04)."""
        return isinstance(self.server_capabilities, dict) and isinstance(self.server_capabilities.get(capability), dict)

    def declares(self, capability: str, member: str) -> bool:
        """Whether the server declared one member of a capability, like `resources.subscribe`."""
        given = self.server_capabilities.get(capability) if isinstance(self.server_capabilities, dict) else None
        return isinstance(given, dict) and given.get(member) is True


@dataclass(slots=True)
class Listing:
    """What a server said it has: tools, prompts, resources or templates; its objects as received."""

    items: list[type_json] = field(default_factory=list)
    state: Literal["none", "loading", "ready", "failed"] = "none"
    findings: list[Finding] = field(default_factory=list)
    error: CallError | None = None
    at: float | None = None
    stopped: str | None = None
    """Why the list is not complete, when it is not."""
    pages: int = 0
    next_cursor: str | None = None
    """Where the next page begins, when the list is read page by page and there is one."""
    cursors: frozenset[str] = frozenset()
    """Those that came so far; one that comes again would never end."""
    news: News | None = None
    """What it says otherwise than the time before."""
    keys: list[str] | None = None
    """How its items are addressed, once somebody wanted to know."""
    texts: list[str] | None = None
    """What of each item is searched, once somebody did."""
    rejected: list[tuple[type_json, Finding]] = field(default_factory=list)
    """Tools that 2026-07-28 does not let us offer, each with the reason (R6-23)."""
    fresh_until: float | None = None
    """Wall time until which the server says that it may be used again; None when it does not (R6-52)."""
    scope: str = ""
    """`public` or `private`: who may use it again."""
    from_cache: bool = False
    """Taken from what the connection before had read."""

    def fresh(self, now: float) -> bool:
        """Whether it may be used again without asking."""
        return self.whole and self.fresh_until is not None and now < self.fresh_until

    @property
    def whole(self) -> bool:
        """Whether it holds everything that the server would list."""
        return self.state == "ready" and self.next_cursor is None and self.stopped is None


@dataclass(slots=True)
class News:
    """How a list that was read again differs from what it was; by what its items are known by."""

    new: frozenset[str]
    changed: frozenset[str]
    gone: list[type_json]


LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def moment(at: float) -> datetime:
    """A time in UTC. What no calendar has (before 1970, after 9999, not a number) is the nearest that one has."""
    return datetime.fromtimestamp(min(max(0.0, at), LAST_MOMENT), UTC)  # of 0 and no number, `max` takes 0


def wire_time(at: float) -> str:
    """RFC 3339, UTC, milliseconds."""
    return moment(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
