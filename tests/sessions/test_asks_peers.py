"""Servers written by others ask us: the previous SDK by plain requests and as tasks, server-everything by its tools.

What a person submitted is what the server's own SDK hands to its tool, over every transport.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from app.core.asks import Ask
from app.core.calls import Call
from app.core.targets import HttpTarget, StdioTarget
from app.sessions import Session
from tests import peers
from tests.drive import ME, SERVERS, connected, findings, settled, until
from tests.drive_http import everything_by, started

pytestmark = pytest.mark.peers

CONTENT = {"name": "Ines Marquardt", "bags": 0, "window": False}
SAID = {
    "role": "assistant",
    "content": {"type": "text", "text": "Grüße, 世界 🌊"},
    "model": "human",
    "stopReason": "endTurn",
}
TRANSPORT: Any = pytest.mark.parametrize("transport", ["stdio", "http", "sse"])


@contextmanager
def previous(transport: str) -> Iterator[StdioTarget | HttpTarget]:
    """The server on mcp 1.30 that asks as a task."""
    argv = [peers.mcp1_python(), str(SERVERS / "sdk1_tasks.py")]
    if transport == "stdio":
        yield StdioTarget(command=argv[0], args=tuple(argv[1:]))
        return
    with started([*argv, transport]) as peer:
        yield peer.target() if transport == "http" else peer.older()


async def ask_of(session: Session, tool: str, **arguments: Any) -> tuple[Call, Ask]:
    """Call a tool, and wait for what it asks."""
    call = session.start_call("tools/call", {"name": tool, "arguments": arguments}, by=ME)
    await until(session, lambda: session.open_asks or call.settled)
    assert session.open_asks == 1, call.error
    return call, session.inbox.open[0]


async def told(session: Session, call: Call) -> str:
    await settled(session, call)
    assert call.state == "done", call.error
    return "\n".join(block.get("text", "") for block in (await session.result(call))["content"])


@pytest.mark.requirement(
    "R1-11", "R1-13", "R1-30", "R1-40", "R1-42", "SC-4", "S004 test scenario", "S000 §6.2", "S002 Server→Client flow"
)
@TRANSPORT
async def test_a_task_of_the_previous_sdk_gets_exactly_what_was_submitted(session: Session, transport: str):
    with previous(transport) as target:
        await connected(session, target, poll_interval_ms=50)
        call, ask = await ask_of(session, "elicit_as_task", ttl=120_000)
        assert (ask.kind, ask.origin) == ("form", "receiver-task")
        task = session.asks.tasks[ask.task_id or ""]
        await until(session, lambda: task.status == "input_required")
        assert task.ttl == 120_000
        await until(session, lambda: [visit.what for visit in task.visits].count("tasks/get") >= 2)
        await session.asks.answer(ask, {"action": "accept", "content": CONTENT}, ME)
        got = json.loads(await told(session, call))
        assert got["action"] == "accept" and got["content"] == CONTENT
        assert got["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task.task_id}
        assert task.status == "completed" and task.fetched

        call, ask = await ask_of(session, "sample_as_task")
        assert (ask.kind, ask.origin) == ("sampling", "receiver-task")
        await session.asks.answer(ask, {"action": "respond", "result": SAID}, ME)
        got = json.loads(await told(session, call))
        assert {key: got[key] for key in SAID} == SAID
        assert [one for one in findings(session) if one.level == "must"] == []


@pytest.mark.requirement("R1-41", "R1-25", "R3-20", "S004 state machine diagram")
@TRANSPORT
async def test_a_task_of_the_previous_sdk_is_declined_denied_and_failed(session: Session, transport: str):
    with previous(transport) as target:
        await connected(session, target, poll_interval_ms=50)
        call, ask = await ask_of(session, "elicit_as_task")
        await session.asks.answer(ask, {"action": "decline"}, ME)
        assert json.loads(await told(session, call))["action"] == "decline"
        call, ask = await ask_of(session, "sample_as_task")
        await session.asks.answer(ask, {"action": "decline"}, ME)
        denied = json.loads(await told(session, call))
        assert denied == {"error": {"code": -1, "message": "User rejected sampling request"}}
        call, ask = await ask_of(session, "elicit_as_task")
        await session.asks.answer(ask, {"action": "fail", "code": -32050, "message": "No desk today"}, ME)
        failed = json.loads(await told(session, call))
        assert failed == {"error": {"code": -32050, "message": "No desk today"}}


@pytest.mark.requirement("R1-84")
async def test_a_task_of_the_previous_sdk_expires(session: Session):
    with previous("stdio") as target:
        await connected(session, target, poll_interval_ms=50)
        call, ask = await ask_of(session, "elicit_as_task", ttl=300)
        assert json.loads(await told(session, call))["error"]["code"] == -32602
        assert ask.state == "expired"


@pytest.mark.requirement("R4-30", "R3-09")
@TRANSPORT
async def test_plain_requests_of_the_previous_sdk(session: Session, transport: str):
    with previous(transport) as target:
        await connected(session, target)
        call, ask = await ask_of(session, "elicit")
        assert ask.origin == "request" and ask.call_id == call.id
        await session.asks.answer(ask, {"action": "accept", "content": CONTENT}, ME)
        got = json.loads(await told(session, call))
        assert (got["action"], got["content"]) == ("accept", CONTENT)
        call, ask = await ask_of(session, "sample")
        await session.asks.answer(ask, {"action": "respond", "result": SAID}, ME)
        got = json.loads(await told(session, call))
        assert {key: got[key] for key in SAID} == SAID


# ---- server-everything


@pytest.mark.requirement("SC-4", "R4-04")
@TRANSPORT
async def test_every_tool_of_server_everything_that_asks(session: Session, transport: str):
    with everything_by(transport) as target:
        await connected(session, target, poll_interval_ms=50)
        wanted = {
            "trigger-elicitation-request",
            "trigger-sampling-request",
            "trigger-elicitation-request-async",
            "trigger-sampling-request-async",
        }
        await until(session, lambda: wanted <= {tool["name"] for tool in session.tools.items})
        for name in sorted(wanted):
            sampling = "sampling" in name
            arguments = {"prompt": "A caption", "maxTokens": 50} if sampling else {}
            call, ask = await ask_of(session, name, **arguments)
            assert ask.kind == ("sampling" if sampling else "form")
            assert ask.origin == ("receiver-task" if name.endswith("-async") else "request"), name
            if sampling:
                said: dict[str, Any] = {"action": "respond", "result": SAID}
            else:
                said = {"action": "accept", "content": _filled(ask)}
            await session.asks.answer(ask, said, ME)
            text = await told(session, call)
            assert ("Grüße, 世界 🌊" if sampling else "Ines") in text, (name, text)
        # Its form says "do not give us your … pin", and is warned of all the same.
        assert {one.id for one in findings(session) if one.level == "must"} <= {"R4-13"}


def _filled(ask: Ask) -> dict[str, Any]:
    """What a person would send: the name, and what the server filled in."""
    schema = ask.schema
    content = {name: one["default"] for name, one in schema["properties"].items() if "default" in one}
    return {**content, "name": "Ines"}
