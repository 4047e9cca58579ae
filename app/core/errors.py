"""What fails, in families, and the words for it. One place of the web turns them into answers."""

from __future__ import annotations

from dataclasses import dataclass


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
