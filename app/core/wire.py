"""What crossed the wire, as data: a message, the HTTP exchange that carried it, a remark about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Direction = Literal["in", "out"]
MessageKind = Literal["request", "response", "error", "notification", "invalid"]
Level = Literal["must", "should", "note"]

RpcId = str | int | float | None
"""An id as it stood on the wire; a fraction or null is a fault of the sender, and is shown."""

_SHORT = 200
"""How much of a method or an id a row keeps: rows outlive their bodies, so they must stay small."""


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
    about: str = ""
    """What it speaks of, where several things may be in its message or hang on it: the key of a question, or the id
    of a task or a subscription. Else "", the message itself."""
    pointer: str | None = None
    """Where in the result, the params or the error of its message it points to, when it points anywhere."""


class Findings(Protocol):
    """Who knows what was remarked: the log. Everything else knows only which messages it is made of."""

    def findings_of(
        self, seqs: Iterable[int], subjects: Iterable[str] = (), *, about: str | None = None
    ) -> list[Finding]:
        """What stands beside these messages, or with these subjects where no message says it; oldest first."""
        ...


class _NoFindings:
    def findings_of(
        self, seqs: Iterable[int], subjects: Iterable[str] = (), *, about: str | None = None
    ) -> list[Finding]:
        return []


NO_FINDINGS: Findings = _NoFindings()
"""Of a thing that belongs to no log."""


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
    number: int = 0
    """1, 2, 3 as people count the rows; `seq` is the place among all events."""
    fold: str | None = None
    """What repeats, and of what: `tasks/get t7`, `notifications/progress 4`. Rows that say the same may be one line."""
    step: str = ""
    """Of progress: how far it is, `3 of 50`."""
    by: str = ""
    """Of an answer of ours: the rule or the model that gave it, `rule No mail`."""


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
    ended_ms: float | None = None
    """When the whole answer was there, or given up; a stream may be open for long."""
    error: str | None = None
    note: str | None = None
    """What there is to say of how it came about, like a redirect."""
    started: float = field(default=0.0, repr=False)
    """Monotonic, for durations."""
    seq: int = 0
    """Its own place in the order of the log, among the messages; 0 before it is kept."""
    message_seqs: list[int] = field(default_factory=list)
    """The messages that it carried; of very many the newest."""
    carried: int = 0
    """How many they are."""


@dataclass(slots=True)
class StderrLine:
    """One line the server wrote to its standard error; shown, never taken for a failure (R5-40)."""

    number: int
    at: float
    text: str
    by_probe: bool = False
    """It complains of our `server/discover`, which a server of the older era need not know."""
    earlier: bool = False
    """It is of a start that ended in our version check, and was repeated without one."""

    @property
    def counts(self) -> bool:
        """Whether it is the server's own word, and not one that our version check caused."""
        return not (self.by_probe or self.earlier)


def kind_of(value: Any) -> MessageKind:
    """Which kind of JSON-RPC message a value is meant to be, leniently."""
    if not isinstance(value, dict):
        return "invalid"
    if isinstance(value.get("method"), str):
        return "request" if "id" in value else "notification"
    if is_error(value):
        return "error"
    return "response" if "result" in value else "invalid"


def is_error(reply: dict[str, Any]) -> bool:
    """Whether a reply is an error. With both members it is a result, unless that is null, as JSON-RPC 1.0 wrote it."""
    if "result" in reply:
        return reply["result"] is None and reply.get("error") is not None
    return "error" in reply


def error_of(reply: dict[str, Any]) -> tuple[int | None, str]:
    """Code and message of an error reply, as far as it has them."""
    error = reply["error"]
    fields = error if isinstance(error, dict) else {"message": str(error)}
    code, message = fields.get("code"), str(fields.get("message", ""))[:500]
    return (code if isinstance(code, int) and not isinstance(code, bool) else None), message


def rpc_id_of(value: Any) -> RpcId:
    """The id as it stood on the wire, when it is something an id can be."""
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str | int | float) and not isinstance(found, bool) else None


def id_key(rpc_id: Any) -> tuple[str, str]:
    """1 and "1" are two different ids, 1 and 1.0 are one; a long one is kept as its hash."""
    if isinstance(rpc_id, float) and rpc_id.is_integer():
        rpc_id = int(rpc_id)
    text = str(rpc_id)
    return type(rpc_id).__name__, text if len(text) <= _SHORT else f"{len(text)} {hash(text)}"


def short(text: str) -> str:
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
