"""The same call in two eras: what differs between two conversations, and between two results. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app import bounds
from app.core.json.pointer import escape

_LEFT_OUT = frozenset({"resultType", "_meta"})
"""Members of a result that only one era has."""


@dataclass(slots=True, frozen=True)
class Told:
    """One side of a comparison, in figures."""

    version: str
    era: str
    sent: int
    received: int
    sent_bytes: int
    received_bytes: int
    legs: int
    rounds: int
    asks: tuple[str, ...]
    """What was asked, by kind."""
    origins: frozenset[str]
    state: str
    result: Any
    error: str


def differences(left: Told, right: Told) -> list[str]:
    """What is not the same, in sentences; the first side is named first."""
    found = [f"Revision {left.version} against {right.version}."]
    if (left.sent, left.received) != (right.sent, right.received):
        found.append(
            f"Messages: {left.sent} sent and {left.received} received, against {right.sent} and {right.received}."
        )
    if (left.sent_bytes, left.received_bytes) != (right.sent_bytes, right.received_bytes):
        found.append(
            f"Bytes: {left.sent_bytes} sent and {left.received_bytes} received, "
            f"against {right.sent_bytes} and {right.received_bytes}."
        )
    if left.legs != right.legs:
        found.append(f"Requests of ours for this call: {left.legs} against {right.legs}.")
    if sorted(left.asks) != sorted(right.asks):
        found.append(f"Asks: {_list(left.asks)} against {_list(right.asks)}.")
    elif left.asks and left.origins != right.origins:
        found.append(f"The same asks ({_list(left.asks)}), {_way(left)} against {_way(right)}.")
    if left.state != right.state:
        found.append(f"It is {left.state} against {right.state}.")
    if left.error != right.error:
        found.append(f"Error: {left.error or 'none'} against {right.error or 'none'}.")
    if left.state == right.state == "done":
        places = json_differences(_plain(left.result), _plain(right.result))
        found.append("The results are the same." if not places else f"The results differ at {', '.join(places)}.")
    return found


def _plain(result: Any) -> Any:
    return {key: value for key, value in result.items() if key not in _LEFT_OUT} if isinstance(result, dict) else result


def _list(kinds: tuple[str, ...]) -> str:
    return ", ".join(kinds) or "none"


def _way(side: Told) -> str:
    if side.rounds:
        return f"in {side.rounds} round{'s' if side.rounds != 1 else ''}"
    if "task-input" in side.origins:
        return "as input of a task"
    return "as requests of the server"


def json_differences(left: Any, right: Any) -> list[str]:
    """Where two JSON values differ, as pointers; at most twenty."""
    found: list[str] = []
    stack: list[tuple[str, Any, Any]] = [("", left, right)]
    while stack and len(found) < bounds.DIFFERENCES:
        at, one, two = stack.pop()
        if isinstance(one, dict) and isinstance(two, dict):
            keys = [*one, *(key for key in two if key not in one)]
            stack += [(f"{at}/{escape(key)}", one.get(key), two.get(key)) for key in reversed(keys)]
        elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
            stack += [(f"{at}/{index}", one[index], two[index]) for index in reversed(range(len(one)))]
        elif type(one) is not type(two) or one != two:
            found.append(at[:200] or "/")
    return found
