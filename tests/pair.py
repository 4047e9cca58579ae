"""Two ends of a link in one process: a session at the near one, a test at the far one.

For the logic of sessions, where no process and no socket is in question: nothing is started, nothing is dialled, and
what a test says arrives in the order in which it was said. Every requirement keeps a test over the real thing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc

from app.core.errors import Trouble
from app.core.log import MessageLog
from app.core.options import Options
from app.core.targets import AnyTarget, StdioTarget
from app.core.wire import RpcId
from app.egress import Egress
from app.protocol.links.base import Inbound, Link, LinkError, LinkHost, Outbound
from app.sessions import Session
from app.settings import Limits
from tests.drive import HANG, ME

TARGET = StdioTarget(command="nothing-is-started")
_ROOM = 100_000

Answer = Callable[[dict[str, Any]], dict[str, Any]]


class NearEnd:
    """What a session holds: a link like any other."""

    pid: int | None = None

    def __init__(self) -> None:
        self.sent, self.heard = anyio.create_memory_object_stream[bytes](_ROOM)
        self.says, self._arrives = anyio.create_memory_object_stream[bytes](_ROOM)
        self.about: list[Outbound] = []
        """What the link was told of each frame."""

    def start(self, group: anyio.abc.TaskGroup) -> None: ...

    async def receive(self) -> list[Inbound] | None:
        try:
            return [await self._arrives.receive()]
        except anyio.EndOfStream:
            return None

    async def send(self, raw: bytes, about: Outbound) -> None:
        self.about.append(about)
        try:
            self.sent.send_nowait(raw)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise LinkError(Trouble("lost", "The other end is gone.")) from None
        if about.delivery is not None:
            about.delivery.taken()

    def agreed(self, version: str) -> None: ...

    def settled(self, rpc_id: RpcId, *, answered: bool) -> bool:
        return False

    async def ended(self) -> Trouble:
        return Trouble("closed", "The other end was closed.")

    def close(self) -> None:
        for end in (self.sent, self.heard, self.says, self._arrives):
            end.close()


class FarEnd:
    """What a test plays: a server, message by message. `answers` says what is answered without the test."""

    def __init__(self, version: str = "2025-11-25", **capabilities: Any) -> None:
        self.near = NearEnd()
        self.received: list[dict[str, Any]] = []
        agreed = {"protocolVersion": version, "capabilities": capabilities}
        found = {"supportedVersions": [version], "capabilities": capabilities, "resultType": "complete"}
        self.answers: dict[str, Answer] = {
            "initialize": lambda _: {"result": {**agreed, "serverInfo": {"name": "far end", "version": "1"}}},
            "server/discover": lambda _: {"result": found},
            "tools/list": lambda _: {"result": {"tools": []}},
            "ping": lambda _: {"result": {}},
        }

    @asynccontextmanager
    async def open(
        self, target: AnyTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog
    ) -> AsyncIterator[Link]:
        """An `Opener`, for a registry."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._serve)
            yield self.near
            group.cancel_scope.cancel()
        self.near.close()

    async def _serve(self) -> None:
        async for raw in self.near.heard:
            message = json.loads(raw)
            self.received.append(message)
            answer = self.answers.get(message.get("method", ""))
            if answer is not None and "id" in message:
                self.say({"id": message["id"], **answer(message)})

    def say(self, message: dict[str, Any]) -> None:
        """Send a message; a flood of them has no turn in between."""
        self.near.says.send_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def end(self) -> None:
        """Close the far end."""
        self.near.says.close()


async def joined(session: Session, **options: Any) -> Session:
    """A session whose registry has a far end, connected to it."""
    session.connect(TARGET, Options(**{"era": "legacy", **options}), by=ME)
    await session.wait_connection(HANG)
    assert session.info.state == "ready", session.info
    return session
