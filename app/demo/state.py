"""What changes while the demo server runs: the departure board, and what the desk remembers of each connection.

Also the few things that every part of the server needs: the type of a request's context, a log message, a line on
stderr. Knows no tool, no resource and no prompt.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import anyio
import anyio.abc
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import SubscriptionBus
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from app.demo.data import STATUSES, departures

if TYPE_CHECKING:
    from app.demo.tasks_2025 import Running
    from app.demo.tasks_2026 import Voyage

MOST_SESSIONS = 256
BOARD = "desk://board"
LOG_LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)


@dataclass(slots=True)
class Visitor:
    """What the desk remembers of one connection."""

    log_level: types.LoggingLevel = "info"
    session: ServerSession | None = None
    subscriptions: set[str] = field(default_factory=set)
    sign_ins: list[str] = field(default_factory=list)
    """The ids of the elicitations whose sign-in is under way."""
    signed_in: bool = False
    running: "dict[str, Running]" = field(default_factory=dict)
    """The tasks that the desk runs for this visitor."""


@dataclass(slots=True)
class Desk:
    """The departure board, the visitors by their session, and the work that outlives the call that began it."""

    errands: anyio.abc.TaskGroup
    bus: SubscriptionBus
    """Where clients of 2026-07-28 hear of changes."""
    step: int = 0
    visitors: dict[str, Visitor] = field(default_factory=dict)
    voyages: "dict[str, Voyage]" = field(default_factory=dict)
    """Tasks of the extension, by their id."""

    def visitor(self, context: "Context") -> Visitor:
        """The visitor who sent this request. Over stdio there is only one; over HTTP the oldest is forgotten first."""
        key = context.request.headers.get("mcp-session-id", "") if context.request is not None else ""
        if key not in self.visitors and len(self.visitors) >= MOST_SESSIONS:
            del self.visitors[next(iter(self.visitors))]
        return self.visitors.setdefault(key, Visitor())

    def board(self) -> str:
        """The departure board as it stands now, as JSON."""
        lines = [line.model_dump(include={"number", "ferry", "destination", "leaves_at"}) for line in departures(5)]
        for index, line in enumerate(lines):
            line["status"] = STATUSES[max(0, self.step - index) % len(STATUSES)]
        return json.dumps({"step": self.step, "departures": lines})


@asynccontextmanager
async def open_desk(server: Server[Desk], bus: SubscriptionBus) -> AsyncIterator[Desk]:
    """The lifespan of the server: one desk, shared by all its connections."""
    async with anyio.create_task_group() as errands:
        yield Desk(errands, bus)
        errands.cancel_scope.cancel()


Context: TypeAlias = ServerRequestContext[Desk, Any]


def is_modern(context: Context) -> bool:
    """Whether this request is of 2026-07-28 or later, where a server sends no requests and has no sessions."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


async def log(context: Context, level: types.LoggingLevel, data: str) -> None:
    """Send a log message, if its level is one that this visitor asked for."""
    wanted = context.lifespan_context.visitor(context).log_level
    # In the modern era each request names its own level, and the SDK applies it.
    if is_modern(context) or LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted):
        await context.session.send_log_message(level, data, "nordwind.desk", related_request_id=context.request_id)


def say(line: str) -> None:
    """One friendly line on stderr, which belongs to people in both transports."""
    sys.stderr.write(f"[nordwind] {line}\n")
    sys.stderr.flush()
