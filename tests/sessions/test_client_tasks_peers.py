"""Servers written by others run our calls as tasks: the previous SDK, and server-everything, over every transport."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from app.core.targets import AnyTarget, DemoTarget, HttpTarget, StdioTarget
from app.sessions import Session
from tests import peers
from tests.drive import ME, ROOT, SERVERS, call, call_tool, connected, settled, until
from tests.drive_http import everything_by, started
from tests.drive_tasks import begin, task_of, text_of

pytestmark = pytest.mark.peers

TRANSPORT: Any = pytest.mark.parametrize("transport", ["stdio", "http", "sse"])


@contextmanager
def previous(transport: str) -> Iterator[StdioTarget | HttpTarget]:
    """The server on mcp 1.30 whose tools run as tasks."""
    argv = [peers.mcp1_python(), str(SERVERS / "sdk1_runs_tasks.py")]
    if transport == "stdio":
        yield StdioTarget(command=argv[0], args=tuple(argv[1:]))
        return
    with started([*argv, transport]) as peer:
        yield peer.target("/mcp/") if transport == "http" else peer.older()


@contextmanager
def demo(transport: str) -> Iterator[AnyTarget]:
    """The demo server that comes with Parley."""
    if transport == "stdio":
        yield DemoTarget()
        return
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    argv = [sys.executable, "-m", "app.demo.server", "--http", "--port", str(port)]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if str(port).encode() in line:
                break
        yield HttpTarget(transport="http", url=f"http://127.0.0.1:{port}/mcp")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def musts(found: list[Any]) -> list[Any]:
    return [one for one in found if one.level == "must"]


@pytest.mark.requirement("R2-03", "R2-04", "R2-20", "R2-23", "R2-30", "R2-40", "R2-44", "S002 Quick example client")
@TRANSPORT
async def test_tools_of_the_previous_sdk_run_as_tasks(session: Session, transport: str):
    with previous(transport) as target:
        await connected(session, target)
        assert [session.client_tasks.support(name).said for name in ("book", "ferry", "echo")] == [
            "optional",
            "required",
            "absent",
        ]
        booked = begin(session, "book", ttl=90_000)
        await until(session, lambda: session.open_asks or booked.settled)
        [ask] = session.inbox.open
        task = await task_of(session, booked)
        assert (ask.task_id, ask.call_id) == (task.id, booked.id)
        assert (task.immediate, task.requested_ttl, task.ttl) == ("We are on it.", 90_000, 90_000)
        await session.asks.answer(ask, {"action": "accept", "content": {"name": "Ines"}}, ME)
        assert await text_of(session, booked) == "Booked for Ines"
        assert musts(booked.findings) == []
        await until(session, lambda: task.status == "completed")

        assert await text_of(session, await call_tool(session, "book")) == "Booked plainly"
        # This SDK refuses with a result that has `isError`, where an error -32601 is wanted.
        refused = await call(session, "tools/call", {"name": "ferry", "arguments": {}}, force=True)
        assert {one.id for one in musts(refused.findings)} == {"R2-04"}
        assert "requires task" in await text_of(session, refused)

        failed = begin(session, "ferry")
        assert await text_of(session, failed) == "The Dorothea is fully booked"
        assert (await task_of(session, failed)).status in ("completed", "failed")

        endless = begin(session, "ferry", forever=True)
        stopped = await task_of(session, endless)
        session.cancel_call(endless.id)
        await settled(session, endless)
        assert (endless.state, stopped.status) == ("cancelled", "cancelled")

        session.client_tasks.refresh()
        await until(session, lambda: session.client_tasks.listing.state in ("ready", "failed"))
        assert (session.client_tasks.listing.error, len(session.client_tasks.listing.items)) == (None, 3)


@pytest.mark.requirement("R2-04", "R2-20", "R2-22", "R2-30", "R2-11")
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_the_research_of_server_everything_asks_in_the_middle(session: Session, transport: str):
    with everything_by(transport) as target:
        await connected(session, target)
        await until(session, lambda: session.client_tasks.support("simulate-research-query").said == "required")
        started = begin(session, "simulate-research-query", topic="python", ambiguous=True)
        await until(session, lambda: session.open_asks or started.settled)
        [ask] = session.inbox.open
        task = await task_of(session, started)
        assert (ask.task_id, ask.call_id, started.state) == (task.id, started.id, "waiting")
        await session.asks.answer(ask, {"action": "accept", "content": {"interpretation": "snake"}}, ME)
        assert "python (snake)" in await text_of(session, started)
        assert musts(started.findings) == [] and task.ttl == 300_000 and task.polls >= 1
        await until(session, lambda: task.status == "completed")


@pytest.mark.requirement("R2-20", "R2-32", "R2-41", "R2-44")
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_the_charter_of_the_demo_server_is_a_task_with_progress_and_a_question(session: Session, transport: str):
    with demo(transport) as target:
        await connected(session, target, era="legacy")
        assert session.client_tasks.support("charter").said == "optional"
        started = begin(session, "charter", seconds=0.3, ttl=50_000)
        await until(session, lambda: session.open_asks or started.settled)
        [ask] = session.inbox.open
        task = await task_of(session, started)
        assert (ask.task_id, task.ttl, bool(task.immediate)) == (task.id, 50_000, True)
        session.client_tasks.stop_waiting(task)  # the question is taken back, and asked again when somebody waits
        await until(session, lambda: ask.settled and not task.waiting)
        again = session.client_tasks.fetch(task, ME)
        await until(session, lambda: session.open_asks)
        await session.asks.answer(session.inbox.open[0], {"action": "accept", "content": {"who": "Ines"}}, ME)
        assert "sails for Ines" in await text_of(session, again) and "sails for Ines" in await text_of(session, started)
        assert started.progressed == 3 and started.findings == [] and again.findings == []

        declined = begin(session, "charter", seconds=0)
        await until(session, lambda: session.open_asks)
        await session.asks.answer(session.inbox.open[0], {"action": "decline"}, ME)
        assert "No charter" in await text_of(session, declined)
        plain = session.start_call("tools/call", {"name": "charter", "arguments": {"seconds": 0, "ask": False}}, by=ME)
        assert "nobody in particular" in await text_of(session, plain)
        endless = begin(session, "charter", seconds=600)
        running = await task_of(session, endless)
        session.cancel_call(endless.id)
        await settled(session, endless)
        assert (endless.state, running.status) == ("cancelled", "cancelled")
        for wrong in ({"seconds": "soon"}, {"odd": 1}):
            refused = begin(session, "charter", **wrong)
            await settled(session, refused)
            assert refused.error is not None and refused.error.code == -32602
