"""Calls of 2026-07-28 that were under way when their session was lost, and from which point each can go on elsewhere.

That revision has no state in the connection: a round goes on by its questions and the server's `requestState`, a task
by its id. Of older revisions nothing can go on. Data, and the same as JSON; knows no session and no store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from app.core.calls import tool_or_method
from app.core.rules.stateless import InputRequired


@dataclass(slots=True, frozen=True)
class Unfinished:
    """One call, and where it stood."""

    id: str
    """Of the call, in the session that is lost."""
    method: str
    params: dict[str, Any] | None
    began: float
    """When it was called."""
    round: int = 0
    """Which of its rounds waited for answers."""
    requests: dict[str, Any] = field(default_factory=dict)
    """What the server asked in it, by key."""
    has_state: bool = False
    state: Any = None
    task: dict[str, Any] | None = None
    """The task that it had become, as the server last described it."""
    secret: bool = False
    """Something secret was typed into it. That is kept nowhere, so it cannot go on."""

    @property
    def kind(self) -> Literal["round", "task"]:
        return "round" if self.task is None else "task"

    @property
    def subject(self) -> str:
        """What a person knows it by."""
        return tool_or_method(self.method, self.params)

    @property
    def asked(self) -> list[str]:
        """What the server wanted to know, in its words."""
        params = [one.get("params") for one in self.requests.values() if isinstance(one, dict)]
        words = [one.get("message") or one.get("prompt") for one in params if isinstance(one, dict)]
        return [one if isinstance(one, str) else "" for one in words]

    def needed(self) -> InputRequired:
        """The round, as the result that began it said it."""
        return InputRequired(dict(self.requests), self.has_state, self.state, ())

    def json(self) -> dict[str, Any]:
        """All of it, to be kept."""
        said = {"id": self.id, "method": self.method, "params": self.params, "began": self.began}
        if self.secret:
            return {**said, "params": self.shown_params, "task": self.task and {}, "round": self.round, "secret": True}
        if self.task is not None:
            return {**said, "task": self.task}
        state = {"state": self.state} if self.has_state else {}
        return {**said, "round": self.round, "requests": self.requests, **state}

    @property
    def shown_params(self) -> dict[str, Any]:
        """As much of what was sent as tells which call it was."""
        return {key: value for key, value in (self.params or {}).items() if key in ("name", "uri")}


def read(kept: dict[str, Any]) -> Unfinished:
    """What `json` wrote."""
    return Unfinished(
        kept["id"],
        kept["method"],
        kept["params"],
        kept["began"],
        round=kept.get("round", 0),
        requests=kept.get("requests", {}),
        has_state="state" in kept,
        state=kept.get("state"),
        task=kept.get("task"),
        secret=kept.get("secret", False),
    )
