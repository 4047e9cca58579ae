"""One `echo`, three ways: the SDK's own client, Parley's connection, Parley through its JSON interface.

All three talk to the demo server; over stdio each has its own process of it, over HTTP they share one. They take turns
call by call, in an order that rotates, so that what disturbs one disturbs all.
"""

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import anyio
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from app.core.options import Options
from app.core.targets import DemoTarget, HttpTarget
from app.sessions import Identity, SessionRegistry
from app.settings import local
from tests.bench.processes import WAIT, Failed, Script, demo_over_http, saving
from tests.bench.table import Part, Say, ms, p50, p95, times
from tests.browser.parley import ROOT

CALLS = 400
WARM_UP = 30
IN_FLIGHT = 20
BURST = 400
ROUNDS = 3
MOST = 1.15
RAW, OURS, JSON = "raw SDK client", "Parley's connection", "Parley by JSON"
TEXT = "the quick brown fox"
ME = Identity("local", "you")

Echo = Callable[[int], Awaitable[str]]
"""One call; the argument is the lane, below IN_FLIGHT, that a call in flight has for itself."""


def measure(say: Say) -> Part:
    part = Part("calls (echo on the demo server)")
    with saving() as parley, demo_over_http() as url:
        anyio.run(_both, part, parley.server, url, say)
    part.notes.append(
        f"{CALLS} calls each, in turns; JSON is two requests a call (POST, then GET ?wait=), the cost of our "
        "own client included; CPU of ours is that of the calling process, the server's not included"
    )
    return part


async def _both(part: Part, origin: str, url: str, say: Say) -> None:
    for transport in ("stdio", "HTTP"):
        async with AsyncExitStack() as stack:
            say(f"{transport}, connecting")
            where = None if transport == "stdio" else url
            ways: dict[str, Echo] = {
                RAW: await stack.enter_async_context(_raw(where)),
                OURS: await stack.enter_async_context(_connection(where)),
                JSON: await stack.enter_async_context(_json(origin, where)),
            }
            await _in_turns(ways, WARM_UP)
            say(f"{transport}, {CALLS} calls each, one at a time")
            _latency_rows(part, transport, await _in_turns(ways, CALLS))
            say(f"{transport}, {IN_FLIGHT} calls in flight")
            _throughput_rows(part, transport, await _in_flight(ways))


# ---- the three ways


@asynccontextmanager
async def _raw(url: str | None) -> AsyncIterator[Echo]:
    async with AsyncExitStack() as stack:
        if url is None:
            demo = StdioServerParameters(command=sys.executable, args=["-m", "app.demo.server"], cwd=ROOT)
            nowhere = stack.enter_context(_nowhere())
            streams = await stack.enter_async_context(stdio_client(demo, errlog=nowhere))
        else:
            streams = await stack.enter_async_context(streamable_http_client(url))
        session = await stack.enter_async_context(ClientSession(*streams))
        await session.initialize()
        await session.list_tools()

        async def echo(_: int) -> str:
            result = await session.call_tool("echo", {"message": TEXT})
            return str(getattr(result.content[0], "text", None))

        yield echo


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


@asynccontextmanager
async def _connection(url: str | None) -> AsyncIterator[Echo]:
    target = DemoTarget() if url is None else HttpTarget(transport="http", url=url)
    async with SessionRegistry(local()) as registry:
        session = registry.open(ME)
        session.connect(target, Options(era="legacy"), by=ME)
        await session.wait_connection(WAIT)
        await session.lists.refresh("tools")

        async def echo(_: int) -> str:
            call = session.start_call("tools/call", {"name": "echo", "arguments": {"message": TEXT}}, by=ME)
            await session.wait_call(call, WAIT)
            return _text(await session.result(call))

        yield echo


@asynccontextmanager
async def _json(origin: str, url: str | None) -> AsyncIterator[Echo]:
    target = {"transport": "demo"} if url is None else {"transport": "http", "url": url}
    async with AsyncExitStack() as stack:
        lanes = [await stack.enter_async_context(Script(origin)) for _ in range(IN_FLIGHT)]
        session = await lanes[0].session(target)

        async def echo(lane: int) -> str:
            return _text(await lanes[lane].call(session, "echo", {"message": TEXT}))

        yield echo
        await lanes[0].post(f"{session}/close", {})


def _text(result: Any) -> str:
    return str(result["content"][0]["text"]) if result else ""


# ---- measuring


@dataclass(slots=True, frozen=True)
class Cost:
    """What one call took: time, and how much of it this process was busy."""

    seconds: float
    busy: float


async def _timed(echo: Echo, lane: int = 0) -> Cost:
    began, busy = time.perf_counter(), time.process_time()
    text = await echo(lane)
    cost = Cost(time.perf_counter() - began, time.process_time() - busy)
    if text != TEXT:
        raise Failed(f"echo answered {text!r}")
    return cost


async def _in_turns(ways: dict[str, Echo], calls: int) -> dict[str, list[Cost]]:
    names, found = list(ways), {name: list[Cost]() for name in ways}
    for number in range(calls):
        for step in range(len(names)):
            name = names[(number + step) % len(names)]
            found[name].append(await _timed(ways[name]))
    return found


async def _in_flight(ways: dict[str, Echo]) -> dict[str, list[float]]:
    """Calls a second with all lanes busy, per round; the ways take turns round by round."""

    async def lane(echo: Echo, number: int) -> None:
        for _ in range(BURST // IN_FLIGHT):
            await _timed(echo, number)

    found = {name: list[float]() for name in ways}
    for _ in range(ROUNDS):
        for name, echo in ways.items():
            began = time.perf_counter()
            async with anyio.create_task_group() as group:
                for number in range(IN_FLIGHT):
                    group.start_soon(lane, echo, number)
            found[name].append(BURST / (time.perf_counter() - began))
    return found


# ---- rows


def _latency_rows(part: Part, transport: str, found: dict[str, list[Cost]]) -> None:
    seconds = {name: [cost.seconds for cost in costs] for name, costs in found.items()}
    for name, values in seconds.items():
        ratio = p50(values) / p50(seconds[RAW])
        what, figures = f"{transport}, {name}", {"p95": ms(p95(values)), "ratio": times(ratio)}
        if name == OURS:
            part.judge(what, ms(p50(values)), f"<= {MOST} × raw", ratio <= MOST, **figures)
        else:
            part.add(what, ms(p50(values)), **figures)
    busy = {name: [cost.busy for cost in found[name]] for name in (RAW, OURS)}
    for name, values in busy.items():
        ratio = p50(values) / p50(busy[RAW])
        part.add(f"{transport}, of that CPU of ours, {name}", ms(p50(values)), p95=ms(p95(values)), ratio=times(ratio))


def _throughput_rows(part: Part, transport: str, found: dict[str, list[float]]) -> None:
    base = p50(found[RAW])
    for name, values in found.items():
        rate = p50(values)
        part.add(f"{transport}, {IN_FLIGHT} in flight, {name}", f"{rate:.0f} /s", ratio=times(rate / base))
