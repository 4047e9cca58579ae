"""A process that holds many HTTP connections and says what each weighs: `python -m tests.bench.hosting KIND URL MANY`.

KIND is `sdk` (the SDK's client, as its documentation uses it), `connection` (Parley's, with nobody who keeps what it
tells) or `session` (a whole session that has listed the server's tools). A few come first and stay, so that what a
process pays once is not counted. Prints one line of JSON.
"""

import ctypes
import ctypes.util
import gc
import itertools
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.abc
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from app.core.jsontext import Parsed
from app.core.log import kind_of, rpc_id_of
from app.core.model import Direction, Exchange, Finding, HttpTarget, Message, Options, Side, Trouble
from app.egress import Egress, Policy
from app.protocol.connection import Agreed, Connection
from app.sessions import Identity, SessionRegistry
from app.settings import local
from tests.bench.processes import WAIT, Failed, resident

FIRST = 5
SETTLE = 1.0
ME = Identity("local", "you")


class Nobody:
    """A host that keeps nothing."""

    def __init__(self) -> None:
        self._seq = itertools.count(1)
        self.is_ready = anyio.Event()

    def frame(
        self,
        direction: Direction,
        raw: bytes,
        parsed: Parsed,
        *,
        quiet: bool = False,
        size: int | None = None,
        exchange: Exchange | None = None,
    ) -> Message:
        value = parsed.value
        kind = kind_of(value)
        method = value["method"] if kind in ("request", "notification") else None
        return Message(next(self._seq), direction, 0.0, len(raw), kind, method, rpc_id_of(value), "")

    def finding(self, seq: int, finding: Finding) -> None: ...
    def exchanged(self, seq: int, exchange: Exchange) -> None: ...
    def stderr_line(self, line: bytes) -> None: ...
    def stream_changed(self, words: str) -> None: ...
    def lost(self, trouble: Trouble) -> None: ...
    def opened(self, transport: str, pid: int | None) -> None: ...
    def notified(self, method: str, params: dict[str, Any], message: Message) -> None: ...
    def step(self, text: str, *, side: Side = "parley", seq: int | None = None, code: str | None = None) -> None: ...

    def roots_for_wire(self) -> list[dict[str, str]]:
        return []

    def ready(self, agreed: Agreed) -> None:
        self.is_ready.set()


Opener = Callable[[], Awaitable[None]]


async def hold_sdk(group: anyio.abc.TaskGroup, url: str) -> Opener:
    async def live(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with streamable_http_client(url) as streams, ClientSession(*streams) as session:
            await session.initialize()
            task_status.started()
            await anyio.sleep_forever()

    async def one() -> None:
        await group.start(live)

    return one


async def hold_connections(group: anyio.abc.TaskGroup, url: str) -> Opener:
    settings = local()
    egress = Egress(Policy(settings.mode))

    async def one() -> None:
        host = Nobody()
        connection = Connection(HttpTarget(transport="http", url=url), Options(), host, settings.limits, egress)
        group.start_soon(_run, connection)
        await host.is_ready.wait()

    return one


async def _run(connection: Connection) -> None:
    trouble: Trouble = await connection.run()
    raise Failed(trouble.message)


async def hold_sessions(group: anyio.abc.TaskGroup, url: str) -> Opener:
    limits = local().limits.model_copy(update={"sessions_per_identity": 1000, "sessions": 1000})
    registry = SessionRegistry(local(limits=limits))

    async def live(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with registry:
            task_status.started()
            await anyio.sleep_forever()

    await group.start(live)

    async def one() -> None:
        session = registry.open(ME)
        session.connect(HttpTarget(transport="http", url=url), Options(), by=ME)
        await session.wait_connection(WAIT)
        await session.refresh_tools()
        if session.tools.state != "ready" or not session.tools.items:
            raise Failed(f"the tools were not listed: {session.info.trouble}")

    return one


KINDS = {"sdk": hold_sdk, "connection": hold_connections, "session": hold_sessions}


def trim() -> bool:
    """Have the C library give back what it holds and nobody uses, where it can."""
    name = ctypes.util.find_library("c")
    trimmer = getattr(ctypes.CDLL(name), "malloc_trim", None) if name else None
    if trimmer is not None:
        trimmer(0)
    return trimmer is not None


async def weigh(kind: str, url: str, many: int) -> dict[str, float | None]:
    async with anyio.create_task_group() as group:
        one = await KINDS[kind](group, url)
        for _ in range(FIRST):
            await one()
        await anyio.sleep(SETTLE)
        gc.collect()
        trim()
        before = resident(os.getpid())
        for _ in range(many):
            await one()
        await anyio.sleep(SETTLE)
        gc.collect()
        after = resident(os.getpid())
        trimmed = resident(os.getpid()) if trim() else None
        group.cancel_scope.cancel()
    return {
        "each": (after - before) / many,
        "each_trimmed": None if trimmed is None else (trimmed - before) / many,
        "base": before,
    }


if __name__ == "__main__":
    print(json.dumps(anyio.run(weigh, sys.argv[1], sys.argv[2], int(sys.argv[3]))))
