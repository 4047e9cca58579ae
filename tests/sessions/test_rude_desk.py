"""A server on the current SDK that misbehaves with a task of ours: each rude thing gets its own answer."""

import sys

import pytest

from app.core.targets import StdioTarget
from app.sessions import Session
from tests.drive import ME, ROOT, connected, settled, until

RUDE = StdioTarget(command=sys.executable, args=("-m", "tests.servers.rude_desk"), cwd=str(ROOT))


@pytest.mark.requirement("R1-31", "R1-43", "R1-51", "R1-61", "R1-82")
async def test_bad_manners_are_answered_with_error_codes(session: Session):
    await connected(session, RUDE)
    call = session.start_call("tools/call", {"name": "impolite", "arguments": {"polls": 7}}, by=ME)
    await settled(session, call)
    attempts = (await session.result(call))["structuredContent"]["attempts"]
    assert [attempt["code"] for attempt in attempts[:8]] == 8 * [None]
    assert {attempt["status"] for attempt in attempts[:8]} == {"working", "input_required"}
    assert {attempt["what"]: attempt["code"] or attempt["status"] for attempt in attempts[8:]} == {
        "tasks/get of an unknown task": -32602,
        "tasks/result of an unknown task": -32602,
        "tasks/cancel of an unknown task": -32602,
        "tasks/get of no task": -32602,
        "tasks/list with a bad cursor": -32602,
        "a task with a negative ttl": -32602,
        "a task with a ttl in words": -32602,
        "a task with a ttl of null": "working",
        "tasks/cancel": "cancelled",
        "tasks/cancel once more": -32602,
        "tasks/result of a cancelled task": -32603,
        "a method that nobody knows": -32601,
    }
    await until(session, lambda: not session.open_asks)
    assert {task.status for task in session.asks.tasks.values()} == {"cancelled"}
