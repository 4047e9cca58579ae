"""Which era a server speaks, and how Parley finds out; what every request of 2026-07-28 carries."""

import base64
import socket
import sys
import time
from pathlib import Path
from typing import Any, Literal

import pytest

from app.core.rules.stateless import GONE_METHODS
from app.core.targets import HttpTarget, StdioTarget
from app.sessions import Session, SessionRegistry
from app.settings import Limits
from tests import peers
from tests.drive import ME, SERVERS, call, call_tool, connect, connected, echoes, findings, raw_target, until
from tests.drive_http import everything_web, exchanges, raw_web, sdk_web
from tests.drive_modern import PREFIX, TASKS, modern_peer, modern_stdio, modern_web, reach, witnessed

pytestmark = pytest.mark.anyio
VERSION = "2026-07-28"
ONCE_MORE = "It is started once more, without the version check."


def sdk(name: str) -> StdioTarget:
    python = peers.mcp1_python() if name == "sdk1" else sys.executable
    return StdioTarget(command=python, args=(str(SERVERS / f"{name}.py"),))


def probed(session: Session) -> bool:
    return any(step.code == "server/discover" for step in session.info.steps)


def steps(session: Session) -> list[str]:
    return [f"{step.code or ''} {step.text}".strip() for step in session.info.steps]


async def known(registry: SessionRegistry, target: Any) -> str | None:
    """The era that is remembered of a command; what was learned a moment ago is being written."""
    return await registry.known_era(ME.id, target)


async def remember(registry: SessionRegistry, target: Any, era: Literal["legacy", "modern"]) -> None:
    await registry.store.learn(ME.id, target, era)


async def detected(session: Session, target: Any) -> tuple[str | None, str | None]:
    """Connect with `auto`; the era and the revision it came to, with the figure for whoever reads the output."""
    began = time.monotonic()
    await connected(session, target, era="auto")
    told = next(step.after_ms for step in session.info.steps if step.code == "server/discover")
    print(f"auto: {session.info.era} {time.monotonic() - began:.2f} s, of that {told:.0f} ms until the probe left")
    return session.info.era, session.info.protocol_version


# --- auto ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R6-10", "R6-06")
@pytest.mark.parametrize("name", ["sdk1", "sdk2", "everything", "raw"])
async def test_auto_reaches_the_era_of_real_servers_over_stdio(session: Session, name: str) -> None:
    argv = peers.everything_stdio() if name == "everything" else []
    target = {
        "sdk1": sdk("sdk1"),
        "sdk2": sdk("sdk2"),
        "everything": StdioTarget(command=argv[0], args=tuple(argv[1:]), env=peers.node_env()) if argv else None,
        "raw": raw_target(),
    }[name]
    modern = name == "sdk2"
    assert await detected(session, target) == (("modern", VERSION) if modern else ("legacy", "2025-11-25"))
    assert (await call_tool(session, "echo", {"message": "hello"})).state == "done"
    said = " | ".join(steps(session))
    assert f"server/discover {VERSION}" in said and ("Trying 2025" in said) is not modern
    assert ("initialize 2025-11-25" in said) is not modern


@pytest.mark.requirement("R6-10", "R6-05", "R6-01")
async def test_auto_reaches_the_era_of_real_servers_over_http(session: Session, tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.touch()
    with sdk_web("sdk1", "http") as peer:
        assert await detected(session, peer.target()) == ("legacy", "2025-11-25")
        assert any("not supported" in step for step in steps(session))
        await echoes(session)
        await session.disconnect()
    with sdk_web("sdk2", "http", record=record) as peer:
        assert await detected(session, peer.target()) == ("modern", VERSION)
        await echoes(session)
        await session.disconnect()
        assert {each.method for each in peer.requests()} == {"POST"}  # no GET stream, no DELETE
        assert not any("mcp-session-id" in each.headers for each in peer.requests())
        assert not GONE_METHODS & {each["method"] for each in peer.received()}
    with everything_web("http") as peer:
        assert await detected(session, peer.target()) == ("legacy", "2025-11-25")
        await session.disconnect()
    with everything_web("sse") as peer:
        assert await detected(session, peer.target("/sse")) == ("legacy", "2025-11-25")
        assert session.info.transport == "sse"


@pytest.mark.requirement("R6-10")
async def test_a_server_that_ends_on_the_probe_is_started_again_in_the_older_era(session: Session) -> None:
    target = raw_target(fatal=["server/discover"])
    assert await detected(session, target) == ("legacy", "2025-11-25")
    assert ONCE_MORE in steps(session)
    await session.disconnect()
    await connected(session, target, era="auto")
    assert not probed(session), "it is not killed a second time"


@pytest.mark.requirement("R6-10")
@pytest.mark.parametrize("era", ["auto", "legacy", "modern"])
async def test_a_refused_connection_says_so_once(session: Session, era: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    await connect(session, HttpTarget(transport="http", url=f"http://127.0.0.1:{port}/mcp"), era=era)
    assert session.info.trouble is not None and session.info.trouble.kind == "refused"
    assert steps(session).count(session.info.trouble.message) == 1


@pytest.mark.requirement("R6-10")
class TestSilent:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(probe_seconds=0.5)

    async def test_a_silent_server_is_taken_for_an_older_one_and_remembered(
        self, registry: SessionRegistry, session: Session
    ) -> None:
        assert Limits().probe_seconds <= 10  # so that the whole takes less than 12 s
        target = raw_target(silent=["server/discover"])
        assert await detected(session, target) == ("legacy", "2025-11-25")
        assert "2026-07-28 not supported (no answer within 0.5 s). Trying 2025-11-25." in steps(session)
        await session.disconnect()
        await connected(session, target, era="auto")
        assert not probed(session)
        assert any("so 2026-07-28 is not tried" in step for step in steps(session))
        other = registry.open(ME)  # what is remembered belongs to the target
        await connected(other, target, era="auto")
        assert not probed(other)

    async def test_a_server_that_was_updated_meanwhile_is_asked_again(
        self, registry: SessionRegistry, session: Session, tmp_path: Path
    ) -> None:
        error = {"code": -32022, "message": "Unsupported", "data": {"supported": [VERSION]}}
        peer = modern_stdio(tmp_path / "record", errors={"initialize": error})
        await remember(registry, peer.target, "legacy")
        await connected(session, peer.target, era="auto")
        assert session.info.era == "modern" and await known(registry, peer.target) == "modern"
        assert [each["method"] for each in peer.received()][:2] == ["initialize", "server/discover"]

    async def test_a_slow_server_of_the_new_era_is_asked_again(self, session: Session, tmp_path: Path) -> None:
        # It answers nothing at first, and `initialize` with an error that only such a server sends.
        error = {"code": -32022, "message": "Unsupported", "data": {"supported": [VERSION]}}
        peer = modern_stdio(tmp_path / "record", errors={"initialize": error}, deaf=1)
        await connected(session, peer.target, era="auto")
        assert session.info.era == "modern"
        assert [each["method"] for each in peer.received()][:3] == ["server/discover", "initialize", "server/discover"]


@pytest.mark.requirement("R6-07", "R6-10", "R6-08")
@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize(
    ("error", "state", "words"),
    [
        ({"code": -32022, "message": "no", "data": {"supported": [VERSION]}}, "lost", "refused 2026-07-28 twice"),
        ({"code": -32022, "message": "no", "data": {"supported": ["2031-01-01"]}}, "lost", "2031-01-01, and Parley"),
        (
            {
                "code": -32021,
                "message": "no",
                "data": {"requiredCapabilities": {"elicitation": {"url": {}}, "extensions": {"a.b/c": {}}}},
            },
            "lost",
            "elicitation.url, extensions.a.b/c",
        ),
        ({"code": -32020, "message": "MCP-Protocol-Version"}, "lost", "headers do not fit the body"),
    ],
)
async def test_a_modern_error_means_a_modern_server(
    session: Session, tmp_path: Path, way: str, error: dict[str, Any], state: str, words: str
) -> None:
    with modern_peer(way, tmp_path / "record", errors={"server/discover": error}) as peer:
        await connect(session, peer.target, era="auto")
        assert session.info.state == state and session.info.trouble is not None
        assert words in session.info.trouble.message + session.info.trouble.advice
        assert not peer.received("initialize")


@pytest.mark.requirement("R6-07", "R6-10")
async def test_versions_are_picked_from_what_the_server_names(session: Session, tmp_path: Path) -> None:
    older = {"code": -32022, "message": "no", "data": {"supported": ["2025-11-25"]}}
    peer = modern_stdio(
        tmp_path / "record", errors={"server/discover": older, "initialize": {"code": 1, "message": "x"}}
    )
    await connect(session, peer.target, era="auto")
    assert "it speaks 2025-11-25" in " ".join(steps(session)) and len(peer.received("initialize")) == 2
    peer = modern_stdio(tmp_path / "two", discover={"supportedVersions": ["2025-06-18"]})
    await connect(session, peer.target, era="auto")
    assert peer.received("initialize")  # a server that answers, and names only older revisions
    peer = modern_stdio(tmp_path / "three", discover={"supportedVersions": ["2031-01-01", VERSION, "2025-11-25"]})
    await connected(session, peer.target, era="auto")
    assert session.info.protocol_version == VERSION


@pytest.mark.requirement("R6-10")
@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32000, -32002, -32004, 7])
async def test_no_single_code_decides(session: Session, tmp_path: Path, code: int) -> None:
    error = {"code": code, "message": "whatever"}
    peer = modern_stdio(tmp_path / "record", errors={"server/discover": error, "initialize": error})
    await connect(session, peer.target, era="auto")
    # The last one is of the second start, which is not probed.
    assert [each["method"] for each in peer.received()] == ["server/discover", "initialize", "initialize"]
    assert session.info.trouble is not None and session.info.trouble.kind == "handshake"


@pytest.mark.requirement("R6-10", "R6-09")
@pytest.mark.parametrize("status", ["400 No", "404 No", "405 No", "500 No", "200 OK"])
async def test_http_refusals_fall_back_and_denials_do_not(session: Session, status: str) -> None:
    plain = {"status": int(status[:3]), "headers": {"content-type": "text/html"}, "body": "<p>no</p>"}
    with raw_web(http={"server/discover": plain}) as peer:
        await connected(session, peer.target(), era="auto")
        assert session.info.era == "legacy" and any("Trying 2025" in step for step in steps(session))
        await session.disconnect()
    with raw_web(http={"server/discover": {"status": 401, "headers": {}, "body": ""}}) as peer:
        await connect(session, peer.target(), era="auto")
        assert session.info.trouble is not None and session.info.trouble.kind == "http-401"
        assert not peer.received("initialize")


@pytest.mark.requirement("R6-10")
async def test_an_error_without_a_usable_id_still_answers_the_probe(session: Session) -> None:
    error = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32020, "message": "mcp-method"}}'
    answer = {"status": 400, "headers": {"content-type": "application/json"}, "body": error}
    with raw_web(http={"server/discover": answer}) as peer:
        await connect(session, peer.target(), era="auto")
        assert session.info.trouble is not None and session.info.trouble.kind == "headers"
        assert not peer.received("initialize")


@pytest.mark.requirement("R6-10")
async def test_an_era_by_option_is_kept_to(session: Session, tmp_path: Path) -> None:
    await connect(session, raw_target(), era="modern")
    assert session.info.trouble is not None and session.info.trouble.kind == "era"
    assert "-32601" in session.info.trouble.message and not any("initialize" in step for step in steps(session))
    await connect(session, HttpTarget(transport="sse", url="http://127.0.0.1:9/sse"), era="modern")
    assert session.info.trouble.kind == "era" and "SSE" in session.info.trouble.message
    await connected(session, sdk("sdk2"), era="legacy")
    assert session.info.era == "legacy" and session.info.protocol_version == "2025-11-25"
    await session.disconnect()
    await connected(session, sdk("sdk2"), era="auto", protocol_version="2025-06-18")
    assert session.info.protocol_version == "2025-06-18"


# --- envelope and headers --------------------------------------------------------------------------------------------


@pytest.mark.requirement("R6-02", "R6-03", "R6-12", "R6-20", "R6-21", "R6-54", "R4-01")
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_every_request_carries_who_asks(session: Session, tmp_path: Path, way: str) -> None:
    scripts = {name: [{"resultType": "complete", "messages": [], "contents": []}] for name in ("p é", "x://r")}
    with modern_peer(way, tmp_path / "record", scripts=scripts) as peer:
        await reach(
            session,
            peer,
            elicitation_url=False,
            sampling_tools=False,
            meta={"traceparent": "00-1-2-3"},
            extensions={"com.example/ours": {"a": 1}, TASKS: None},
        )
        await echoes(session)
        await call(session, "prompts/get", {"name": "p é"})
        await call(session, "resources/read", {"uri": "x://r"})
        await call(session, "completion/complete", {"ref": {}})
        requests = peer.received()
        assert len({each["id"] for each in requests}) == len(requests) >= 6
        for each in requests:
            meta = each["params"]["_meta"]
            assert meta[f"{PREFIX}protocolVersion"] == VERSION and meta["traceparent"] == "00-1-2-3"
            assert meta[f"{PREFIX}clientInfo"]["name"] == "parley"
            assert meta[f"{PREFIX}clientCapabilities"] == {
                "roots": {},
                "sampling": {},
                "elicitation": {"form": {}},
                "extensions": {"com.example/ours": {"a": 1}},
            }
            assert f"{PREFIX}logLevel" not in meta
        assert session.info.client_capabilities == requests[0]["params"]["_meta"][f"{PREFIX}clientCapabilities"]
        assert session.info.server_info == {"name": "raw modern", "version": "1.0"}
        if way == "http":
            for each in peer.entries("in"):
                method = each["in"]["method"]
                assert each["headers"]["mcp-protocol-version"] == VERSION and each["headers"]["mcp-method"] == method
            assert peer.headers("tools/call")[0]["mcp-name"] == "echo"
            encoded = base64.b64encode("p é".encode()).decode()
            assert peer.headers("prompts/get")[0]["mcp-name"] == f"=?base64?{encoded}?="
            assert peer.headers("resources/read")[0]["mcp-name"] == "x://r"
            assert "mcp-name" not in peer.headers("completion/complete")[0]
            assert peer.verbs() == []


@pytest.mark.requirement("R6-02", "R6-20")
async def test_a_person_may_break_the_envelope_on_purpose(session: Session, tmp_path: Path) -> None:
    with modern_web(tmp_path / "record") as peer:
        await reach(session, peer)
        await call(session, "tools/call", {"name": "echo", "_meta": {f"{PREFIX}protocolVersion": "1999-01-01"}})
        (sent,) = peer.received("tools/call")
        assert sent["params"]["_meta"][f"{PREFIX}protocolVersion"] == "1999-01-01"
        assert peer.headers("tools/call")[0]["mcp-protocol-version"] == "1999-01-01"


def tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


@pytest.mark.requirement("R6-22", "R6-08")
async def test_annotated_arguments_are_repeated_as_headers(session: Session, tmp_path: Path) -> None:
    nested = {"type": "object", "properties": {"deep": {"type": "boolean", "x-mcp-header": "Deep"}}}
    listed = tool(
        "sail",
        port={"type": "string", "x-mcp-header": "Port"},
        count={"type": "integer", "x-mcp-header": "Count"},
        none={"type": "string", "x-mcp-header": "None"},
        gone={"type": "string", "x-mcp-header": "Gone"},
        plain={"type": "string"},
        inner=nested,
    )
    wanted = {
        "mcp-param-port": f"=?base64?{base64.b64encode(' Ærø'.encode()).decode()}?=",
        "mcp-param-count": "7",
        "mcp-param-deep": "true",
    }
    arguments = {"port": " Ærø", "count": 7, "none": None, "plain": "p", "inner": {"deep": True}}
    with modern_web(tmp_path / "record", tools=[listed], headers={"sail": wanted}) as peer:
        await reach(session, peer)
        done = await call_tool(session, "sail", arguments)
        assert done.state == "done", done.error
        sent = peer.headers("tools/call")[0]
        assert {name: value for name, value in sent.items() if name.startswith("mcp-param-")} == wanted
        shown = next(each for each in exchanges(session) if ("mcp-name", "sail") in each.request_headers)
        assert set(wanted.items()) <= {(name.lower(), value) for name, value in shown.request_headers}


@pytest.mark.requirement("R6-08")
async def test_a_header_mismatch_is_repaired_once(session: Session, tmp_path: Path) -> None:
    plain, listed = tool("sail", port={"type": "string"}), tool("sail", port={"type": "string", "x-mcp-header": "Port"})
    wanted = {"mcp-param-port": "Saltmere"}
    with modern_web(tmp_path / "record", tools=[plain], headers={"sail": wanted}) as peer:
        await reach(session, peer)
        await call_tool(session, "set", {"tools": [listed]})
        done = await call_tool(session, "sail", {"port": "Saltmere"})
        assert done.state == "done" and len(done.legs) == 2 and "R6-08" in [each.id for each in done.findings]
        assert len(peer.received("tools/list")) == 2
        await call_tool(session, "set", {"headers": {"sail": {"mcp-param-port": "somewhere else"}}})
        failed = await call_tool(session, "sail", {"port": "Saltmere"})
        assert failed.state == "failed" and failed.error is not None and failed.error.code == -32020
        assert len(failed.legs) == 2  # once more, and no more


@pytest.mark.requirement("R6-23")
async def test_tools_with_a_bad_annotation_are_rejected_and_the_others_stay(session: Session, tmp_path: Path) -> None:
    bad = {
        "empty": tool("empty", a={"type": "string", "x-mcp-header": ""}),
        "space": tool("space", a={"type": "string", "x-mcp-header": "a b"}),
        "crlf": tool("crlf", a={"type": "string", "x-mcp-header": "a\r\nb"}),
        "number": tool("number", a={"type": "number", "x-mcp-header": "A"}),
        "object": tool("object", a={"type": "object", "x-mcp-header": "A"}),
        "twice": tool("twice", a={"type": "string", "x-mcp-header": "A"}, b={"type": "string", "x-mcp-header": "a"}),
        "hidden": tool("hidden", a={"anyOf": [{"type": "string", "x-mcp-header": "A"}]}),
    }
    good = tool("good", a={"type": "string", "x-mcp-header": "A"})
    with modern_web(tmp_path / "record", tools=[*bad.values(), good]) as peer:
        await reach(session, peer)
        assert [each["name"] for each in session.tools.items] == ["good"]
        assert {each["name"] for each, _ in session.tools.rejected} == set(bad)
        for rejected, finding in session.tools.rejected:
            assert finding.id == "R6-23" and rejected["name"] in finding.text
        assert [each.id for each in session.tools.findings] == ["R6-23"] * len(bad)


# --- what may not come, and what is not sent ------------------------------------------------------------------------


@pytest.mark.requirement("R6-05", "R6-51")
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_request_of_the_server_is_shown_and_not_answered(session: Session, tmp_path: Path, way: str) -> None:
    asks = {"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {"message": "m"}}
    logs = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hello"}}
    ping = {"jsonrpc": "2.0", "id": 10, "method": "ping"}
    with modern_peer(way, tmp_path / "record", before={"echo": [asks, ping, logs]}) as peer:
        await reach(session, peer)
        await echoes(session)
        assert not session.inbox.asks
        assert [each.id for each in findings(session)] == ["R6-05", "R6-05", "R6-51"]
        await session.change_options({"log_level": "info"})
        await echoes(session)
        assert [each.id for each in findings(session)] == ["R6-05", "R6-05", "R6-51", "R6-05", "R6-05"]
        levels = [each["params"]["_meta"].get(f"{PREFIX}logLevel") for each in peer.received("tools/call")]
        assert levels == [None, "info"]
        assert not [each for each in peer.received() if "method" not in each]  # we never send a response
        assert "logging/setLevel" not in [each["method"] for each in peer.received()]


@pytest.mark.requirement("R6-01")
async def test_nothing_of_the_older_era_is_sent(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record")
    await reach(session, peer, log_level="debug", roots=True)
    await session.set_roots([])
    await session.change_options({"log_level": "error"})
    await echoes(session)
    assert not GONE_METHODS & {each["method"] for each in peer.received()}
    forced = await call(session, "ping")  # a person may, and is told
    assert forced.error is not None and forced.error.code == -32601
    assert [each.id for each in forced.findings] == ["R6-01"]


@pytest.mark.requirement("R6-50")
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_cancelled_call_closes_its_stream_or_says_so(session: Session, tmp_path: Path, way: str) -> None:
    with modern_peer(way, tmp_path / "record") as peer:
        await reach(session, peer)
        held = session.start_call("tools/call", {"name": "hold"}, by=ME)
        await until(session, lambda: held.legs)
        await witnessed(lambda: peer.received("tools/call"))
        session.cancel_call(held.id)
        await witnessed(peer.closed)
        assert peer.closed() == [held.legs[0].rpc_id]
        await echoes(session)
        assert len(peer.received("notifications/cancelled")) == (1 if way == "stdio" else 0)


@pytest.mark.requirement("R6-50", "R6-01")
async def test_a_broken_stream_loses_its_request_and_is_not_resumed(session: Session) -> None:
    discover = (
        '{"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], '
        '"capabilities": {}, "ttlMs": 0, "cacheScope": "private"}}'
    )
    canned = {"status": 200, "headers": {"content-type": "application/json"}, "body": discover}
    stream = {"status": 200, "headers": {"content-type": "text/event-stream"}, "body": "id: 5\nretry: 20\ndata:\n\n"}
    with raw_web(http={"server/discover": canned, "tools/call": stream}) as peer:
        await connected(session, peer.target(), era="modern")
        lost = await call_tool(session, "echo")
        assert lost.state == "failed" and lost.error is not None
        assert (lost.error.kind, lost.error.code) == ("http", None)
        again = await call_tool(session, "echo")  # only because the person asked for it, with a new id
        assert again.legs[0].rpc_id != lost.legs[0].rpc_id
        assert not peer.requests("GET") and len(peer.received("tools/call")) == 2


@pytest.mark.requirement("R6-08")
async def test_missing_capabilities_are_named(session: Session, tmp_path: Path) -> None:
    data: dict[str, Any] = {"requiredCapabilities": {"sampling": {"tools": {}}, "extensions": {TASKS: {}}}}
    peer = modern_stdio(
        tmp_path / "record", errors={"tools/call": {"code": -32021, "message": "Missing", "data": data}}
    )
    await reach(session, peer)
    failed = await call_tool(session, "echo")
    (finding,) = failed.findings
    assert finding.id == "R6-08" and f"extensions.{TASKS}, sampling.tools" in finding.text
    unknown = await call(session, "no/such")
    assert unknown.error is not None and unknown.error.code == -32601


@pytest.mark.requirement("R6-08")
async def test_an_unknown_method_is_404_with_a_body(session: Session, tmp_path: Path) -> None:
    with modern_web(tmp_path / "record") as peer:
        await reach(session, peer)
        unknown = await call(session, "no/such")
        assert unknown.error is not None and (unknown.error.code, unknown.error.kind) == (-32601, "rpc")
        assert session.info.state == "ready"


@pytest.mark.requirement("R6-30", "R6-04")
async def test_real_servers_of_the_new_era_are_used_whole(session: Session) -> None:
    await connected(session, sdk("sdk2"), era="modern", log_level="debug")
    counted = await call_tool(session, "count", {"steps": 3})
    assert counted.state == "done" and counted.progress is not None and counted.progress.progress == 3
    assert [each.data for each in counted.logs] == ["step 1", "step 2", "step 3"]
    added = await call_tool(session, "add", {"a": 1, "b": 2})
    assert (await session.result(added))["structuredContent"] == {"sum": 3}
    assert findings(session) == []


@pytest.mark.requirement("R6-09", "R6-55")
async def test_codes_below_32020_mean_nothing_and_our_own_time_limit_is_ours(session: Session, tmp_path: Path) -> None:
    said = [{"code": code, "message": "whatever"} for code in (-32000, -32001, -32019)]
    peer = modern_stdio(tmp_path / "record", errors={"tools/call": said})
    await reach(session, peer)
    for error in said:
        failed = await call_tool(session, "echo")
        assert failed.error is not None and (failed.error.code, failed.error.kind) == (error["code"], "rpc")
        assert failed.findings == [] and session.info.state == "ready"
    late = await call_tool(session, "hold", timeout_ms=50)
    assert late.error is not None and (late.error.code, late.error.kind) == (None, "timeout")
    peer = modern_stdio(tmp_path / "two", errors={"resources/read": {"code": -32002, "message": "Resource not found"}})
    await session.disconnect()
    await reach(session, peer)
    missing = await call(session, "resources/read", {"uri": "x://no"})
    assert missing.error is not None and missing.error.code == -32002


@pytest.mark.requirement("R6-55")
async def test_structured_content_may_be_any_json(session: Session, tmp_path: Path) -> None:
    listed = {"name": "list", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}
    for value, fits in (([1, 2], True), ("text", False)):
        result = {"resultType": "complete", "content": [], "structuredContent": value}
        peer = modern_stdio(tmp_path / f"record-{fits}", tools=[listed], results={"tools/call": result})
        await reach(session, peer)
        done = await call_tool(session, "list")
        assert done.state == "done" and (await session.result(done))["structuredContent"] == value
        assert [each.id for each in done.findings] == ([] if fits else ["R5-29"])
        await session.disconnect()
