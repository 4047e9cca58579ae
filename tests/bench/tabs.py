"""What it costs to show one change to many: the same calls with no tab, with one and with ten on the page of the tool.

Tabs are streams that somebody reads and does not draw; what the browser does is not in the figure. CPU is that of
Parley's process alone.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import anyio

from tests.bench.processes import Script, busy, saving
from tests.bench.table import Part, Say, ms, times
from tests.browser.parley import TOKEN

CALLS = 200
ROUNDS = 3
MANY = 10
MOST = 2.0
TEXT = "the quick brown fox"


def measure(say: Say) -> Part:
    part = Part("tabs (a call shown on the page of its tool)")
    with saving() as parley:
        used = anyio.run(_all, parley.server, parley.process.pid, say)
    none, one, many = (min(used[tabs]) / CALLS for tabs in (0, 1, MANY))
    part.add("CPU of a call that no tab shows", ms(none))
    part.add("CPU of a call that one tab shows", ms(one))
    what, ratio = f"CPU of a call that {MANY} tabs show", many / one
    part.judge(what, ms(many), f"≤ {times(MOST)} one tab", ratio <= MOST, ratio=times(ratio))
    part.notes.append(
        f"best of {ROUNDS} rounds of {CALLS} calls of echo over the JSON interface; what {MANY} tabs add to a call is "
        f"{(many - none) / max(one - none, 1e-9):.1f} × what one adds"
    )
    return part


async def _all(origin: str, pid: int, say: Say) -> dict[int, list[float]]:
    used: dict[int, list[float]] = {0: [], 1: [], MANY: []}
    async with Script(origin) as script:
        for number in range(ROUNDS):
            for tabs in used:
                say(f"round {number + 1} of {ROUNDS}, {tabs} tabs")
                # A session of its own each time: the number of calls that a page shows stays the same.
                session = await script.session({"transport": "demo"})
                async with AsyncExitStack() as stack:
                    for _ in range(tabs):
                        await stack.enter_async_context(_tab(origin, session))
                    await script.call(session, "echo", {"message": TEXT})
                    before = busy(pid)
                    for _ in range(CALLS):
                        await script.call(session, "echo", {"message": TEXT})
                    used[tabs].append(busy(pid) - before)
                await script.post(f"{session}/close", {})
    return used


@asynccontextmanager
async def _tab(origin: str, session: str) -> AsyncIterator[None]:
    """A stream as the page of the tool has it, read as fast as it comes."""
    host = urlsplit(origin)
    reader, writer = await asyncio.open_connection(host.hostname, host.port)
    writer.write(
        f"GET {session}/events?since=0&page=tool&of=echo HTTP/1.1\r\nHost: {host.netloc}\r\n"
        f"Authorization: Bearer {TOKEN}\r\nAccept: text/event-stream\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")

    async def drain() -> None:
        while await reader.read(1 << 16):
            pass

    async with anyio.create_task_group() as group:
        group.start_soon(drain)
        yield
        group.cancel_scope.cancel()
    writer.close()
