"""A workspace without a connection: frames of a session that has lived fill it, and it is read as that one was.

The live session talks to the real demo server. What a script reads of both must agree, but for what frames cannot say:
our own ids and times, the child process, and who answered.
"""

import json
from typing import Any

import pytest
from starlette.applications import Starlette

from app.core.targets import DemoTarget
from app.core.wire import Direction
from app.recordings.replay import Recorded, Replay
from app.sessions import Session
from app.sessions.identity import LOCAL
from app.web.door.guard import Access
from tests.drive import ME, call, call_tool, connected, settled, until
from tests.web.asgi import Visitor
from tests.web.conftest import app, client, codes, script, settings  # noqa: F401 (fixtures)
from tests.web.table import TABLE, method

READS = [route for route in TABLE if route.access is Access.SESSION and method(route) == "GET"]
NOT_JSON = {"/s/{sid}/events", "/s/{sid}/log.jsonl", "/s/{sid}/blobs/{sha}", "/s/{sid}/frames/{sha}"}


async def lived(session: Session) -> None:
    """Calls, asks of two kinds, a task of each kind, lists, a log line and an error."""
    await connected(session, DemoTarget())
    for name in ("resources", "templates", "prompts"):
        await session.lists.refresh(name)
    await call_tool(session, "add", {"a": 2, "b": 3})
    await call_tool(session, "tool_error")
    await call(session, "no/such", {})
    running = [
        session.start_call("tools/call", {"name": "parade", "arguments": {}}, by=ME),
        session.start_call("tools/call", {"name": "charter", "arguments": {}}, as_task=True, by=ME),
    ]
    while not all(each.settled for each in running):
        await until(session, lambda: session.inbox.open or all(each.settled for each in running))
        for ask in session.inbox.open:
            if ask.state == "open":
                action = {"sampling": "decline", "form": "decline", "url": "accept", "roots": "accept"}[ask.kind]
                await session.asks.answer(ask, {"action": action}, ME)
    await settled(session, *running)


def frames(session: Session) -> list[Recorded]:
    log = session.messages
    return [Recorded(each.direction, log.raw(each.seq) or b"", each.at) for each in log.last(10_000)]


@pytest.fixture
async def both(app: Starlette) -> tuple[Session, Replay]:  # noqa: F811
    registry = app.state.registry
    live: Session = registry.open(LOCAL)
    await lived(live)
    recorded = frames(live)
    await live.disconnect()
    replay: Replay = registry.open_as(Replay, LOCAL)
    replay.fill(recorded)
    return live, replay


async def test_it_tells_of_every_call_ask_task_and_list_what_the_live_session_tells(
    both: tuple[Session, Replay],
    script: Visitor,  # noqa: F811
):
    live, replay = both

    async def read(where: str) -> tuple[Any, Any]:
        return (await script.json(f"/s/{live.id}{where}")), (await script.json(f"/s/{replay.id}{where}"))

    one, two = await read("")
    told = {"era", "protocol_version", "server_info", "server_capabilities", "client_capabilities", "instructions"}
    assert {key: one["connection"][key] for key in told} == {key: two["connection"][key] for key in told}
    assert (two["connection"]["state"], two["open_asks"]) == ("closed", 0)
    for name in ("tools", "resources", "resources/templates", "prompts"):
        one, two = await read(f"/{name}")
        key = "templates" if "templates" in name else name
        assert two[key] and one[key] == two[key], name
    one, two = await read("/log?after=0")
    heard = [(each["direction"], each["raw"], each["method"], each["kind"]) for each in one["messages"]]
    assert heard == [(each["direction"], each["raw"], each["method"], each["kind"]) for each in two["messages"]]
    one, two = await read("/calls")
    kept = ("method", "params", "state", "error")
    assert len(two["calls"]) >= 5
    assert [{key: each[key] for key in kept} for each in one["calls"]] == [
        {key: each[key] for key in kept} for each in two["calls"]
    ]
    one, two = await read("/inbox")
    shown = ("kind", "origin", "state", "method", "params")
    assert {each["origin"] for each in two["settled"]} == {"request", "receiver-task"}

    def asked(inbox: dict[str, Any]) -> list[Any]:
        found = [{key: each[key] for key in shown} for each in inbox["settled"]]
        return sorted(found, key=lambda each: (each["method"], each["params"].get("message", ""), str(each["params"])))

    assert asked(one) == asked(two)
    one, two = await read("/tasks")
    for side in ("receiver", "client"):
        assert two[side], side
        assert [(each["taskId"], each["status"]) for each in one[side]] == [
            (each["taskId"], each["status"]) for each in two[side]
        ]
    await live.close()


@pytest.mark.parametrize("kind", ["json", "page"])
async def test_every_read_of_the_interface_is_answered(
    both: tuple[Session, Replay],
    script: Visitor,  # noqa: F811
    client: Visitor,  # noqa: F811
    kind: str,
):
    replay = both[1]
    names = {
        "{cid}": next(each.id for each in replay.calls.values() if each.subject == "add"),
        "{aid}": next(iter(replay.inbox.asks)),
        "{tid}": next(iter(replay.asks.tasks)),
        "{seq}": str(replay.messages.first_seq),
        "{name:path}": "",
    }
    items = {"tools": "add", "prompts": "plan_weekend", "resources/templates": "~0"}
    who = script if kind == "json" else client
    read = 0
    for route in READS:
        if (kind == "json" and route.path in NOT_JSON) or "{sha}" in route.path or route.path.endswith("/events"):
            continue
        path = route.path.replace("{sid}", replay.id)
        for name, item in items.items():
            path = path.replace(f"/{name}/{{name:path}}", f"/{name}/{item}")
        for name, value in names.items():
            path = path.replace(name, value)
        if path.endswith("/resources/one"):
            path += "?uri=" + replay.lists["resources"].items[0]["uri"]
        if path == f"/s/{replay.id}/compare":
            path += f"?left={names['{cid}']}"
        if path.endswith("/snippet"):
            path += "?as=json"
        if path.endswith("/moments"):
            path += f"?call={names['{cid}']}"
        if path.endswith(("/branch", "/search", "/markdown", "/shown")):
            path += "?path=&q=a&part=0"
        answer = await who.get(path)
        # A result may have no such part, and was not compared; no request was saved, there is no rule, and no model
        # answers what is no sampling.
        perhaps = ("/calls/", "/saved/", "/compare", "/rules/", f"/asks/{names['{aid}']}/models")
        fitting = {200, 404} if any(one in path for one in perhaps) else {200}
        if kind == "page" and path.endswith("/room"):
            fitting = {303}  # a browser sees a room on its stage
        assert answer.status in fitting, (path, answer.status, answer.text[:300])
        read += 1
    assert read >= 25


async def test_whoever_wants_to_act_hears_that_it_is_not_connected(
    both: tuple[Session, Replay],
    script: Visitor,  # noqa: F811
):
    replay = both[1]
    call_id, task_id = next(iter(replay.calls)), next(iter(replay.client_tasks.tasks))
    for path, body in (
        ("connect", {"target": {"transport": "demo"}}),
        ("disconnect", {}),
        ("options", {"log_level": "debug"}),
        ("roots", {"roots": []}),
        ("calls", {"method": "tools/call", "params": {"name": "add"}}),
        ("ping", {}),
        (f"calls/{call_id}/cancel", {}),
        (f"tasks/{task_id}/poll", {}),
        ("tools/refresh", {}),
    ):
        answer = await script.post(f"/s/{replay.id}/{path}", body)
        assert answer.status in (200, 409), (path, answer.status, answer.text[:300])
    assert replay.info.state == "closed", "nothing has begun"


def _frame(direction: Direction, **message: Any) -> Recorded:
    return Recorded(direction, json.dumps({"jsonrpc": "2.0", **message}).encode(), 1e9)


def _hello(meta: Any, version: Any = "2025-11-25") -> list[Recorded]:
    """Both beginnings: a handshake, then a discovery, with whatever a file may hold in their place."""
    agreed = {"protocolVersion": version, "capabilities": {"tasks": {}}, "serverInfo": {"name": "x"}}
    return [
        _frame("out", id=0, method="initialize", params={"capabilities": {}}),
        _frame("in", id=0, result=agreed),
        *([] if meta is None else [_frame("out", id=1, method="server/discover", params={"_meta": meta})]),
        *([] if meta is None else [_frame("in", id=1, result={"supportedVersions": [], "capabilities": 5})]),
    ]


@pytest.mark.parametrize("version", [{"a": []}, [], 5, True, None, "2026-07-28"])
async def test_a_revision_of_any_shape_is_shown(app: Starlette, client: Visitor, version: Any):  # noqa: F811
    replay = app.state.registry.open_as(Replay, LOCAL)
    replay.fill(_hello({"io.modelcontextprotocol/protocolVersion": version}, version))
    for page in ("", "/stage", "/tasks", "/log", "/calls"):
        answer = await client.get(f"/s/{replay.id}{page}")
        assert answer.status == 200, (page, answer.text[-300:])


async def test_any_number_of_frames_fills_no_more_than_a_live_session_keeps(app: Starlette):  # noqa: F811
    limits = app.state.registry.settings.limits
    many = 2 * limits.calls
    call = {"method": "tools/call", "params": {"name": "a", "task": {}}}
    ask = {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {}, "task": {}}}
    frames: dict[str, list[Recorded]] = {
        "unanswered": [_frame("out", id=number, **call) for number in range(9, many)],
        "one id": [_frame("out", id=9, **call) for _ in range(many)],
        "answered": [
            frame
            for number in range(9, many)
            for frame in (_frame("out", id=number, **call), _frame("in", id=number, result={"content": []}))
        ],
        "tasks": [
            frame
            for number in range(9, many)
            for frame in (
                _frame("out", id=number, **call),
                _frame("in", id=number, result={"task": {"taskId": f"t{number}", "status": "working", "ttl": None}}),
            )
        ],
    }
    for name, recorded in frames.items():
        replay = app.state.registry.open_as(Replay, LOCAL)
        replay.fill([*_hello(None), *recorded])
        assert len(replay.calls) <= limits.calls + 1, name
        assert all(each.settled for each in replay.calls.values()), name
        assert len(replay._ours) <= limits.calls, name
    received = app.state.registry.open_as(Replay, LOCAL)
    received.fill(
        frame
        for number in range(limits.receiver_tasks + 50)
        for frame in (
            _frame("in", id=number, **ask),
            _frame("out", id=number, result={"task": {"taskId": f"r{number}", "status": "working", "ttl": None}}),
            _frame("in", id="result", method="tasks/result", params={"taskId": f"r{number}"}),
            _frame("out", id="result", result={"action": "decline"}),
        )
    )
    assert len(received.asks.tasks) == len(received._received) == limits.receiver_tasks
    newest = next(reversed(received.asks.tasks.values()))
    assert (newest.status, newest.fetched) == ("completed", True)
