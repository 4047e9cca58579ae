"""A process that holds many HTTP connections and says what each weighs: `python -m tests.bench.hosting KIND URL MANY`.

KIND is `sdk` (the SDK's client, as its documentation uses it) or `parley` (a session of Parley, which has listed the
server's tools if there are any). A few come first and stay, so that what a process pays once is not counted. Prints
one line of JSON.
"""

import ctypes
import ctypes.util
import gc
import json
import os
import sys
from collections.abc import Awaitable, Callable

import anyio
import anyio.abc
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from app.core.options import Options
from app.core.targets import HttpTarget
from app.sessions import Identity, SessionRegistry
from app.settings import local
from tests.bench.processes import WAIT, Failed, resident

FIRST = 5
SETTLE = 1.0
ME = Identity("local", "you")

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


async def hold_parley(group: anyio.abc.TaskGroup, url: str) -> Opener:
    limits = local().limits.model_copy(update={"sessions_per_identity": 1000, "sessions": 1000})
    registry = SessionRegistry(local(limits=limits))

    async def live(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with registry:
            task_status.started()
            await anyio.sleep_forever()

    await group.start(live)

    async def one() -> None:
        session = registry.open(ME)
        session.connect(HttpTarget(transport="http", url=url), Options(era="legacy"), by=ME)
        await session.wait_connection(WAIT)
        await session.lists.refresh("tools")
        with anyio.fail_after(WAIT):
            while session.info.stream != "open":
                await session.events.wait(session.events.seq)
        if session.info.state != "ready" or (session.info.offers("tools") and not session.tools.items):
            raise Failed(f"a session did not connect, or list its tools: {session.info.trouble}")

    return one


KINDS = {"sdk": hold_sdk, "parley": hold_parley}


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
    return {"each": (after - before) / many, "trimmed": None if trimmed is None else (trimmed - before) / many}


if __name__ == "__main__":
    print(json.dumps(anyio.run(weigh, sys.argv[1], sys.argv[2], int(sys.argv[3]))))
