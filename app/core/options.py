"""What a connection offers its server, how long it waits, and which roots it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args
from urllib.parse import unquote

from pydantic import Field, field_validator

from app import bounds
from app.core.strict import Strict

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
"""How severe a log message can be, the least first (R5-22)."""


class Options(Strict):
    """What a connection offers its server, and how patient it is. Keys and defaults are fixed."""

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
    receiver_task_ttl_ms: int = Field(default=60_000, gt=0, le=bounds.OPTION_MS)
    receiver_task_max_ttl_ms: int = Field(default=3_600_000, gt=0, le=bounds.OPTION_MS)
    poll_interval_ms: int = Field(default=2_000, gt=0, le=bounds.CALL_MS)
    awaiting_user_status: Literal["input_required", "working"] = "input_required"
    send_status_notifications: bool = True
    unattended_limit_ms: int | None = Field(default=None, gt=0, le=bounds.OPTION_MS)
    handshake_timeout_ms: int | None = Field(default=None, gt=0, le=bounds.CALL_MS)
    request_timeout_ms: int = Field(default=60_000, gt=0, le=bounds.CALL_MS)
    reset_timeout_on_progress: bool = True
    max_total_timeout_ms: int | None = Field(default=None, gt=0, le=bounds.CALL_MS)
    log_level: LogLevel | None = None
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


class Root(Strict):
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
