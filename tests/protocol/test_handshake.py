"""Opening a connection: each revision by option, what is offered for it, and what a server may answer."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from app import __version__
from app.core.options import Options
from app.core.revisions import HANDSHAKE_VERSIONS
from app.core.targets import StdioTarget
from app.protocol.capabilities import client_capabilities
from app.sessions import Session
from tests import peers
from tests.drive import (
    ME,
    SERVERS,
    RawPeer,
    call,
    call_tool,
    connect,
    connected,
    echoes,
    findings,
    flushed,
    inbound,
    raw_target,
    until,
)

Raw = Callable[..., RawPeer]
NEWEST = "2025-11-25"


def server(name: str) -> StdioTarget:
    """A real server by its name."""
    argv = {
        "raw": lambda: [sys.executable, "-I", "-S", str(SERVERS / "raw.py"), "plain"],
        "mcp 2.3": lambda: [sys.executable, str(SERVERS / "sdk2.py")],
        "mcp 1.30": lambda: [peers.mcp1_python(), str(SERVERS / "sdk1.py")],
        "server-everything": peers.everything_stdio,
    }[name]()
    return StdioTarget(command=argv[0], args=tuple(argv[1:]), env=peers.node_env() if "node" in argv[0] else {})


@pytest.mark.peers
@pytest.mark.requirement("R5-01", "R5-02", "R5-23", "R5-29")
@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
@pytest.mark.parametrize("name", ["raw", "mcp 2.3", "mcp 1.30", "server-everything"])
async def test_every_revision_is_spoken_with_every_server(session: Session, name: str, version: str):
    await connected(session, server(name), protocol_version=version)
    assert session.info.protocol_version == version
    assert session.info.era == "legacy"
    assert session.info.server_info["name"]
    assert session.tools.state == "ready" and session.tools.items
    done = await call_tool(session, "echo", {"message": "Grüße, 世界 🌊"})
    assert done.state == "done"
    assert "Grüße, 世界 🌊" in (await session.result(done))["content"][0]["text"]
    assert [each for each in findings(session) if each.level == "must"] == []
    await session.disconnect()
    assert session.info.state == "closed"


@pytest.mark.peers
@pytest.mark.requirement("R5-20", "R5-23", "R5-22", "R5-29")
@pytest.mark.parametrize("name", ["mcp 2.3", "mcp 1.30"])
async def test_an_sdk_server_gets_roots_and_reports_progress_and_structured_output(session: Session, name: str):
    from app.core.options import Root

    await session.set_roots([Root(uri="file:///srv/data", name="data")])
    await connected(session, server(name))
    done = await call_tool(session, "roots")
    assert "file:///srv/data" in str(await session.result(done))
    counted = await call_tool(session, "count", {"steps": 3})
    assert counted.progress is not None and (counted.progress.progress, counted.progress.total) == (3, 3)
    assert [line.data for line in counted.logs] == ["step 1", "step 2", "step 3"]
    added = await call_tool(session, "add", {"a": 1, "b": 2})
    assert (await session.result(added))["structuredContent"] == {"sum": 3}
    assert added.findings == []


@pytest.mark.requirement("R5-02")
@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
async def test_initialize_says_exactly_what_the_revision_knows(session: Session, raw: Raw, version: str):
    peer = raw()
    await connected(session, peer.target, protocol_version=version)
    await flushed(session)
    first, second, *_ = peer.received()
    info = {"name": "parley", "version": __version__}
    capabilities: dict[str, Any] = {"roots": {"listChanged": True}, "sampling": {}}
    if version >= "2025-06-18":
        info["title"] = "Parley"
        capabilities["elicitation"] = {}
    if version >= "2025-11-25":
        capabilities["sampling"] = {"tools": {}}
        capabilities["elicitation"] = {"form": {}, "url": {}}
        capabilities["tasks"] = {
            "list": {},
            "cancel": {},
            "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
        }
    assert first == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info},
    }
    assert second == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert session.info.client_capabilities == capabilities


@pytest.mark.requirement("R5-02")
async def test_the_newest_revision_is_asked_for_by_default(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    assert peer.received("initialize")[0]["params"]["protocolVersion"] == NEWEST == HANDSHAKE_VERSIONS[0]


TASKS: dict[str, Any] = {"list": {}, "cancel": {}}
NOTHING = {
    "roots": False,
    "sampling": False,
    "elicitation_form": False,
    "elicitation_url": False,
    "receiver_tasks": False,
}
OFFERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (NOTHING, {}),
    ({**NOTHING, "receiver_tasks": True}, {}),
    ({**NOTHING, "roots": True}, {"roots": {"listChanged": True}}),
    ({**NOTHING, "sampling": True}, {"sampling": {"tools": {}}}),
    ({**NOTHING, "sampling": True, "sampling_tools": False}, {"sampling": {}}),
    ({**NOTHING, "sampling": True, "sampling_context": True}, {"sampling": {"tools": {}, "context": {}}}),
    ({**NOTHING, "elicitation_form": True}, {"elicitation": {"form": {}}}),
    ({**NOTHING, "elicitation_url": True}, {"elicitation": {"url": {}}}),
    (
        {**NOTHING, "sampling": True, "sampling_tools": False, "receiver_tasks": True},
        {"sampling": {}, "tasks": {**TASKS, "requests": {"sampling": {"createMessage": {}}}}},
    ),
    (
        {**NOTHING, "elicitation_url": True, "receiver_tasks": True},
        {"elicitation": {"url": {}}, "tasks": {**TASKS, "requests": {"elicitation": {"create": {}}}}},
    ),
    ({**NOTHING, "extensions": {"com.example/x": {"a": 1}}}, {"extensions": {"com.example/x": {"a": 1}}}),
]


@pytest.mark.requirement("R5-02", "R5-04", "R5-20")
@pytest.mark.parametrize(("options", "expected"), OFFERS)
async def test_the_options_say_what_is_offered(
    session: Session, raw: Raw, options: dict[str, Any], expected: dict[str, Any]
):
    peer = raw()
    await connected(session, peer.target, **options)
    assert peer.received("initialize")[0]["params"]["capabilities"] == expected


EVERYTHING = dict.fromkeys(NOTHING, True)
OLDER: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("2025-06-18", EVERYTHING, {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}),
    ("2025-06-18", {"elicitation_url": True}, {}),
    ("2025-03-26", {"sampling": True, "sampling_context": True, "elicitation_form": True}, {"sampling": {}}),
    ("2024-11-05", EVERYTHING, {"roots": {"listChanged": True}, "sampling": {}}),
]


@pytest.mark.requirement("R5-02", "R5-04")
@pytest.mark.parametrize(("version", "options", "expected"), OLDER)
def test_nothing_is_offered_that_an_older_revision_does_not_know(
    version: str, options: dict[str, Any], expected: dict[str, Any]
):
    assert client_capabilities(Options(**{**NOTHING, **options}), version) == expected


@pytest.mark.requirement("R5-03")
@pytest.mark.parametrize("answer", ["2025-06-18", "2025-03-26", "2024-11-05"])
async def test_a_lower_known_revision_is_taken_with_a_note(session: Session, raw: Raw, answer: str):
    await connected(session, raw(initialize={"protocolVersion": answer}).target)
    assert session.info.protocol_version == answer
    [note] = [each for each in findings(session) if each.id == "R5-03"]
    assert (note.level, note.text) == ("note", f"Parley asked for {NEWEST}, the server chose {answer}.")
    await echoes(session)


@pytest.mark.requirement("R5-03")
@pytest.mark.parametrize("answer", ["1999-01-01", "", None, 7, ["2025-11-25"], {"a": 1}])
async def test_an_unknown_revision_ends_the_connection_with_a_clear_sentence(session: Session, raw: Raw, answer: Any):
    peer = raw(initialize={"protocolVersion": answer})
    await connect(session, peer.target)
    assert session.info.state == "lost"
    trouble = session.info.trouble
    assert trouble is not None and trouble.kind == "version"
    assert f"wants to speak {answer!r}" in trouble.message
    assert "2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05" in trouble.advice
    assert any(each.id == "R5-03" and each.level == "should" for each in findings(session))
    await session.disconnect()
    assert [each["method"] for each in peer.received()] == ["initialize"]


@pytest.mark.requirement("R5-03")
async def test_a_refused_handshake_says_what_the_server_said(session: Session, raw: Raw):
    line = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"Unsupported protocol version"}}'
    await connect(session, raw(initialize_lines=[line]).target)
    assert session.info.state == "lost"
    assert session.info.trouble is not None
    assert session.info.trouble.message == "The server refused to initialize: -32602 Unsupported protocol version."
    assert [(step.side, step.code) for step in session.info.steps][1:3] == [("us", "initialize"), ("them", "-32602")]


BROKEN = [
    '{"jsonrpc":"2.0","id":$ID,"result":null}',
    '{"jsonrpc":"2.0","id":$ID,"result":[]}',
    '{"jsonrpc":"2.0","id":$ID,"error":"no"}',
    '{"jsonrpc":"2.0","id":$ID,"error":{}}',
    '{"jsonrpc":"2.0","id":$ID,"result":{}}',
]


@pytest.mark.requirement("R5-03", "F04")
@pytest.mark.parametrize("line", BROKEN)
async def test_a_broken_answer_to_initialize_ends_in_words_not_in_a_hang(session: Session, raw: Raw, line: str):
    await connect(session, raw(initialize_lines=[line]).target)
    assert session.info.state == "lost"
    assert session.info.trouble is not None and session.info.trouble.kind in ("version", "handshake")
    assert any(each.level in ("must", "should") for each in findings(session))


@pytest.mark.requirement("R5-02", "R5-09")
async def test_server_info_that_breaks_the_specification_is_shown_as_received(session: Session, raw: Raw):
    odd = {
        "capabilities": {"tools": {}, "com.example": 1},
        "serverInfo": {"name": 7},
        "instructions": ["x"],
        "extra": 1,
    }
    await connected(session, raw(initialize=odd).target)
    assert session.info.server_info == {"name": 7}
    assert session.info.server_capabilities == {"tools": {}, "com.example": 1}
    assert session.info.instructions is None
    [finding] = [each for each in findings(session) if each.id == "R5-02"]
    assert "serverInfo" in finding.text
    await echoes(session)


@pytest.mark.requirement("R5-02")
async def test_ping_and_roots_are_answered_before_the_handshake_is_over(session: Session, raw: Raw):
    lines = [
        '{"jsonrpc":"2.0","id":"a","method":"ping"}',
        '{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{},'
        '"serverInfo":{"name":"x","version":"1"}}}',
    ]
    peer = raw(initialize_lines=lines)
    await connected(session, peer.target)
    await flushed(session)
    assert {"jsonrpc": "2.0", "id": "a", "result": {}} in peer.received()
    assert session.tools.state == "none", "no tools were declared, so none are asked for (R5-04)"


@pytest.mark.requirement("R5-02")
async def test_the_steps_tell_how_the_connection_came_about(session: Session, raw: Raw):
    await connected(session, raw().target)
    steps = [(step.side, step.code, step.text) for step in session.info.steps]
    assert steps[1:] == [
        ("us", "initialize", NEWEST),
        ("them", None, f"{NEWEST} agreed, raw 1.0"),
        ("us", "notifications/initialized", ""),
        ("parley", None, "Ready"),
    ]
    assert session.info.connect_ms is not None and session.info.connect_ms > 0
    seqs = [step.seq for step in session.info.steps if step.seq is not None]
    methods = [session.messages.get(seq).method for seq in seqs]  # type: ignore[union-attr]
    assert methods == ["initialize", "initialize", "notifications/initialized"]


@pytest.mark.requirement("R5-04")
async def test_a_method_that_was_not_offered_is_sent_by_force_and_marked(session: Session):
    await connected(session, raw_target())
    asked = await call(session, "prompts/list")
    assert asked.state == "failed" and asked.error is not None and asked.error.code == -32601
    assert [each.id for each in asked.findings] == ["R5-04"]


@pytest.mark.requirement("R5-22")
async def test_the_log_level_is_set_when_the_server_logs_and_only_then(session: Session, raw: Raw, registry: Any):
    peer, mute = raw(), raw(initialize={"capabilities": {}})
    await connected(session, peer.target, log_level="warning")
    await until(session, lambda: [each for each in session.calls.values() if each.method == "logging/setLevel"])
    await flushed(session)
    assert [each["params"] for each in peer.received("logging/setLevel")] == [{"level": "warning"}]
    other = registry.open(ME)
    await connected(other, mute.target, log_level="warning")
    await flushed(other)
    assert mute.received("logging/setLevel") == []


@pytest.mark.requirement("R5-01")
async def test_our_ids_are_never_used_twice_also_across_kinds_of_call(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    for _ in range(3):
        await call(session, "ping")
    await flushed(session)
    ids = [each["id"] for each in peer.received() if "id" in each]
    assert len(set(ids)) == len(ids) and all(type(each) is int for each in ids)
    assert inbound(session)[-1].latency_ms is not None
