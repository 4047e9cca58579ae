"""What fails, in families, and the words for it. One place of the web turns them into answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.core.certificates import Certificate
from app.core.challenges import Challenge

INVALID_PARAMS = -32602
_LINE = 200
_ENDED_FROM_OUTSIDE = (-2, -9, -15)
"""SIGINT, SIGKILL and SIGTERM."""
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603


class ParleyError(Exception):
    """The base of what we expect to fail. `message` says what happened and what to do next."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotAllowed(ParleyError):
    """A rule of ours says no, whatever was said: a limit, a policy, something that the server did not offer."""


class Full(NotAllowed):
    """There is no room for one more of what a person can close."""


class TooMany(NotAllowed):
    """More than somebody may do in a while."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds
        """After which they may do it again."""


class Unavailable(ParleyError):
    """What is needed for it does not answer at the moment; later it may."""


class Invalid(ParleyError):
    """What was said cannot be used. `fields` has what is wrong with each part, by its JSON pointer."""

    def __init__(self, message: str, fields: dict[str, list[str]]) -> None:
        super().__init__(message)
        self.fields = fields


class Conflict(ParleyError):
    """Not in this state: it is running already, or not yet, or somebody else was first."""


class Gone(Conflict):
    """It was there, and is no longer there or no longer open."""


class NotConnected(Conflict):
    """There is no connection to do this with."""

    def __init__(self, then: str) -> None:
        super().__init__(f"This session is not connected. Connect first, then {then}.")


class RpcError(Exception):
    """A JSON-RPC error to answer a request of the server with."""

    def __init__(self, code: int, message: str, data: Any = None, *, rule: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data
        self.rule = rule
        """The requirement that the request breaks, when it does."""

    def wire(self) -> dict[str, Any]:
        """The `error` member."""
        found = {"code": self.code, "message": self.message}
        return found if self.data is None else {**found, "data": self.data}


@dataclass(slots=True, frozen=True)
class Trouble:
    """Why a connection failed or was lost, in plain words: what happened; why; what to do."""

    kind: str
    message: str
    advice: str = ""
    exit_code: int | None = None
    last_words: str = ""
    """The end of what the server wrote to stderr."""
    heading: str = ""
    """The same in a few words; empty where `message` is short enough."""
    challenges: tuple[Challenge, ...] = ()
    """What the server wants to be shown, where it does not let us in."""
    redirect: str = ""
    """Where the server sends us, and Parley does not go by itself; as it is, unmasked."""
    certificate: Certificate | None = None
    """What the server showed, where Parley does not trust it."""

    @property
    def more(self) -> str:
        """What the message says besides the heading."""
        if not self.heading or self.heading.startswith(self.message.rstrip(".")):
            return ""
        return self.message.removeprefix(self.heading).lstrip(". ")


def last_line(words: str) -> str:
    """The line of somebody's last words that says most: the last one, but for what Node says below its errors."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    if lines and lines[-1].startswith("Node.js v"):
        said = [line for line in lines if line.partition(" ")[0].endswith(("Error:", "Exception:"))]
        lines = said or lines[:-1]
    return lines[-1][:_LINE] if lines else ""


def ending(trouble: Trouble, *, started: bool) -> str:
    """The heading for a process that ended: before it ever answered, or later. With the last line of its words, unless
    somebody ended it: what it said last is no reason then."""
    line = last_line(trouble.last_words)
    if started and trouble.exit_code in _ENDED_FROM_OUTSIDE:
        return ""
    if not started:
        return f"The server did not start: {line}" if line else "The server did not start"
    return f"{trouble.message.rstrip('.')}: {line}" if line else ""


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
