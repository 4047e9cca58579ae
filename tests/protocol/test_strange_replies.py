"""Servers that say over stdio what nobody here expected: what fails at once and why, what is a finding and what not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.forms import build
from app.sessions import Session
from tests.drive import (
    HANG,
    ME,
    RawPeer,
    b64,
    call,
    call_tool,
    connect,
    connected,
    echoes,
    findings,
    flushed,
    raws,
    settled,
)
from tests.drive_modern import modern_stdio, reach

Raw = Callable[..., RawPeer]
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
PRETTY = ["{", '  "jsonrpc": "2.0",', '  "id": $ID,', '  "result": {', '    "content": []', "  }", "}"]
ID_LAST = ["{", '  "result": {', '    "content": [', "    ]", "  },", '  "jsonrpc": "2.0",', '  "id": $ID', "}"]


def texts(session: Session, level: str = "must") -> list[str]:
    return [each.text for each in findings(session) if each.level == level]


def line(method: str, rpc_id: Any = None, **params: Any) -> str:
    found: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(found if rpc_id is None else {**found, "id": rpc_id})


async def hear(session: Session, *lines: str) -> None:
    """Have the peer write these lines, and see that all of them are read."""
    await call(session, "x/say", {"lines": [*lines, '{"jsonrpc":"2.0","id":$ID,"result":{}}']})


def replies(peer: RawPeer) -> list[dict[str, Any]]:
    return [each for each in peer.received() if "method" not in each]


# --- B09: replies that cannot be read ---------------------------------------------------------------------------------


@pytest.mark.requirement("B09")
@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['{"jsonrpc":"2.0","id":$ID,"result":{"a":NaN}}'], "not JSON: NaN is not a JSON value."),
        (['{"jsonrpc":"2.0","result":{"a":Infinity},"id":"$ID"}'], "not JSON: Infinity is not a JSON value."),
        (['{"jsonrpc":"2.0","result":{"a":NaN}}'], "not JSON: NaN is not a JSON value."),
        (['{"jsonrpc":"2.0","id":$ID,"error":{"code":1,"message":"x"'], "not JSON: "),
        (['{"jsonrpc":"2.0","id":$ID,"result":{"text":"two', 'lines"}}'], "not JSON: "),
        ([f'{DONE}{{"jsonrpc":"2.0","method":"notifications/x"}}'], "several messages stand on one line."),
        (PRETTY, "it is written over several lines."),
        (ID_LAST, "it is written over several lines."),
        (
            ['{"jsonrpc":"2.0","id":$ID,"result":{"a":' + "[" * 500 + "]" * 500 + "}}"],
            "it is nested deeper than 400 levels, which is more than Parley reads.",
        ),
    ],
)
async def test_b09_a_reply_that_cannot_be_read_fails_its_call_at_once(
    session: Session, raw: Raw, lines: list[str], words: str
):
    await connected(session, raw().target)
    with anyio.fail_after(HANG):  # the time limit of the call is longer
        failed = await call(session, "x/say", {"lines": lines}, timeout_ms=3_600_000)
    assert failed.state == "failed" and failed.error is not None
    assert failed.error.message.startswith(f"The reply came and cannot be read: {words}"), failed.error
    assert (failed.error.code, failed.error.kind) == (None, "invalid")
    seq = failed.legs[0].reply_seq
    assert seq is not None and f"Message {seq} of the log shows it." in failed.error.message
    await echoes(session)


@pytest.mark.requirement("B09")
async def test_b09_a_reply_in_latin_1_fails_its_call_at_once(session: Session, raw: Raw):
    await connected(session, raw().target)
    rpc_id = json.loads(raws(session, "out")[-1])["id"] + 1
    said = f'{{"jsonrpc":"2.0","id":{rpc_id},"result":{{"name":"café"}}}}\n'.encode("latin-1")
    failed = await call(session, "x/say", {"base64": b64(said)}, timeout_ms=3_600_000)
    assert failed.error is not None and "is not UTF-8" in failed.error.message


@pytest.mark.requirement("B09")
async def test_b09_deep_nesting_is_our_limit_and_no_fault_of_the_server(session: Session, raw: Raw):
    await connected(session, raw().target)
    deep = '{"jsonrpc":"2.0","method":"notifications/x","params":{"a":' + "[" * 500 + "]" * 500 + "}}"
    await hear(session, deep)
    [remark] = findings(session)
    assert (remark.level, remark.text) == (
        "note",
        "It is nested deeper than 400 levels, which is more than Parley reads.",
    )
    assert "stderr" not in remark.advice


@pytest.mark.requirement("B09")
@pytest.mark.parametrize(
    "before",
    [
        ["Server listening on stdio"],
        ["{"],
        ["{ not: json }", "}"],
        ["{'jsonrpc': '2.0', 'id': $ID, 'result': {}}"],
        ['sending {"jsonrpc":"2.0","id":$ID,"result":{"a":NaN}}'],
        ['{"id": $ID, "result": NaN}'],
        ['{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":{"a":NaN}}'],
        ['{"jsonrpc":"2.0","id":999,"result":{"a":NaN}}'],
        ['{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"te...'],
        PRETTY,
        ["DEBUG", *ID_LAST],
        ["{", '  "jsonrpc": "2.0",', '  "id": $ID,', '  "method": "tools/call"', "}"],
    ],
)
async def test_b09_a_print_before_the_reply_fails_nothing(session: Session, raw: Raw, before: list[str]):
    """What a server prints on the way, even of its own reply, is junk; the reply behind it counts."""
    await connected(session, raw().target)
    held = session.start_call("x/hold", {"mark": 1}, by=ME)
    done = await call(session, "x/say", {"lines": [*before, DONE]})
    assert done.state == "done", done.error
    await anyio.sleep(0.4)  # longer than a reply that cannot be read is given
    assert not held.settled
    await call(session, "x/release")
    await settled(session, held)
    assert held.state == "done"


@pytest.mark.requirement("B09")
async def test_b09_a_reply_without_a_readable_id_is_nobodys_when_several_wait(session: Session, raw: Raw):
    await connected(session, raw().target)
    held = session.start_call("x/hold", {"mark": 1}, by=ME)
    await flushed(session)
    silent = session.start_call("x/say", {"lines": ['{"jsonrpc":"2.0","result":{"a":NaN}}']}, by=ME, timeout_ms=700)
    await settled(session, silent)
    assert silent.error is not None and silent.error.kind == "timeout"
    assert not held.settled


# --- B08: progress of what was given up -------------------------------------------------------------------------------


@pytest.mark.requirement("B08")
async def test_b08_progress_on_its_way_when_the_request_was_given_up_is_no_fault(session: Session, raw: Raw):
    await connected(session, raw().target)
    held = await call_tool(session, "hold", {}, timeout_ms=50)
    token = held.legs[0].rpc_id
    await hear(session, line("notifications/progress", progressToken=token, progress=1))
    assert texts(session) == []
    assert "This progress came after the request was given up." in texts(session, "note")


# --- B15: what was not remarked on ------------------------------------------------------------------------------------

USER = {"role": "user", "content": {"type": "text", "text": "hello"}}
USE = {"role": "assistant", "content": {"type": "tool_use", "id": "a", "name": "t", "input": {}}}


@pytest.mark.requirement("B15")
@pytest.mark.parametrize(
    ("method", "params", "rule", "words"),
    [
        ("elicitation/create", {"message": "x"}, "R4-04", "`requestedSchema`"),
        ("elicitation/create", {"message": "x", "mode": "voice", "requestedSchema": {}}, "R4-02", "'voice'"),
        ("elicitation/create", {"mode": "url", "message": "x", "url": "https://a.example"}, "R4-46", "`elicitationId`"),
        ("elicitation/create", {"requestedSchema": {"type": "object", "properties": {}}}, "R4-04", "`message`"),
        ("sampling/createMessage", {"messages": [USER]}, "R3-12", "`maxTokens`"),
        ("sampling/createMessage", {"messages": [USER], "maxTokens": 1.5}, "R3-12", "`maxTokens`"),
        ("sampling/createMessage", {"messages": [USER, USE], "maxTokens": 5}, "R3-07", "tool result missing for a"),
        ("sampling/createMessage", {"messages": [{"role": "system"}], "maxTokens": 5}, "R3-05", "role"),
        (
            "sampling/createMessage",
            {"messages": [USER], "maxTokens": 5, "task": {"ttl": -1}},
            "R1-82",
            "`task.ttl`",
        ),
    ],
)
async def test_b15_a_refused_request_of_the_server_is_a_finding(
    session: Session, raw: Raw, method: str, params: dict[str, Any], rule: str, words: str
):
    peer = raw()
    await connected(session, peer.target)
    await hear(session, line(method, "q", **params))
    await flushed(session)
    assert [each["error"]["code"] for each in replies(peer)] == [-32602]
    [remark] = findings(session)
    assert (remark.id, remark.level) == (rule, "must") and words in remark.text


@pytest.mark.requirement("B15")
@pytest.mark.parametrize(
    ("method", "params", "rule", "words"),
    [
        ("message", {"level": "verbose", "data": 1}, "R5-22", '`level` is "verbose"; it must be one of debug, info'),
        ("message", {"data": 1}, "R5-22", "`level` is missing."),
        ("message", {"level": "info"}, "R5-22", "`data` is missing."),
        ("message", {"level": "info", "data": 1, "logger": 5}, "R5-22", "`logger` is 5; it must be a string."),
        ("resources/updated", {}, "R5-27", "`uri` is missing."),
        ("resources/updated", {"uri": ["a"]}, "R5-27", "`uri` is an array; it must be a string."),
        ("elicitation/complete", {}, "R4-46", "`elicitationId` is missing."),
        ("cancelled", {"requestId": True}, "R5-24", "`requestId` is true; it must be a string or an integer."),
    ],
)
async def test_b15_a_notification_that_breaks_its_type_is_a_finding(
    session: Session, raw: Raw, method: str, params: dict[str, Any], rule: str, words: str
):
    await connected(session, raw().target)
    await hear(session, line(f"notifications/{method}", **params))
    [remark] = [each for each in findings(session) if each.level == "must"]
    assert remark.id == rule and remark.text.startswith(words)


@pytest.mark.requirement("B15")
async def test_b15_notifications_as_they_should_be_are_none(session: Session, raw: Raw):
    await connected(session, raw(initialize={"capabilities": {"logging": {}, "resources": {}}}).target)
    await hear(
        session,
        line("notifications/message", level="emergency", data=None, logger=None),
        line("notifications/resources/updated", uri="file:///x", title="t"),
        line("notifications/cancelled", requestId="never", reason="x"),
        line("notifications/cancelled"),
        line("notifications/unknown", anything=1),
    )
    assert findings(session) == []


@pytest.mark.requirement("B15")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18"])
async def test_b15_a_cancellation_without_an_id_was_a_fault_before_there_were_tasks(
    session: Session, raw: Raw, version: str
):
    await connected(session, raw().target, protocol_version=version)
    await hear(session, line("notifications/cancelled"))
    assert texts(session) == ["`requestId` is missing."]


@pytest.mark.requirement("B15", "B19", "R5-02")
async def test_b15_a_request_before_the_handshake_is_over_is_a_finding(session: Session, raw: Raw):
    reply = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "early", "version": "1"}}
    sampling = line("sampling/createMessage", 3, messages=[USER], maxTokens=5)
    lines = [
        line("ping", 1),
        line("notifications/message", level="info", data="starting"),
        line("roots/list", 2),
        sampling,
        f'{{"jsonrpc":"2.0","id":$ID,"result":{json.dumps(reply)}}}',
    ]
    peer = raw(initialize_lines=lines)
    await connected(session, peer.target)
    await flushed(session)
    assert {each["id"]: "result" in each for each in replies(peer)} == {1: True, 2: True, 3: False}
    assert [(each.id, each.level, each.text) for each in findings(session)] == [
        ("R5-02", "should", "The server sent the request `roots/list` before the handshake was over."),
        ("R5-02", "should", "The server sent the request `sampling/createMessage` before the handshake was over."),
        (
            "R5-04",
            "note",
            "Parley answered `sampling/createMessage` with -32601: nothing is agreed before the handshake is over.",
        ),
    ]
    assert "Offer the capability" not in findings(session)[-1].advice
    await hear(session, line("roots/list", 4))
    await flushed(session)
    assert len(findings(session)) == 3, "afterwards it may ask"


@pytest.mark.requirement("B15", "R5-24")
async def test_b15_a_server_that_cancels_our_request_is_remarked_on(session: Session, raw: Raw):
    await connected(session, raw().target)
    held = session.start_call("x/hold", {"mark": 1}, by=ME)
    await flushed(session)
    rpc_id = held.legs[0].rpc_id
    await hear(session, line("notifications/cancelled", requestId=rpc_id))
    assert texts(session) == [f"This cancels request {rpc_id}, which is not the server's own but ours."]
    assert not held.settled, "it is ignored"
    await call(session, "x/release")


@pytest.mark.requirement("B15", "R5-24")
async def test_b15_a_server_may_cancel_its_own_request_whose_id_equals_one_of_ours(session: Session, raw: Raw):
    await connected(session, raw().target)
    held = session.start_call("x/hold", {"mark": 1}, by=ME)
    await flushed(session)
    rpc_id = held.legs[0].rpc_id
    await hear(session, line("ping", rpc_id), line("notifications/cancelled", requestId=rpc_id))
    assert findings(session) == []
    await call(session, "x/release")


@pytest.mark.requirement("B15")
@pytest.mark.parametrize(
    ("data", "fits"),
    [
        ("aGVsbG8=", True),
        ("", True),
        ("YQ==", True),
        ("aGVsbG8", False),
        ("not base64!", False),
        ("aGVs\nbG8=", False),
        ("_-8=", False),
        ("YQ=a", False),
        ("====", False),
    ],
)
async def test_b15_binary_content_that_is_not_base64_is_a_finding(session: Session, raw: Raw, data: str, fits: bool):
    results = {
        "tools/call": {
            "content": [
                {"type": "image", "data": data, "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "file:///x", "blob": data}},
                {"type": "text", "text": data},
            ]
        },
        "resources/read": {"contents": [{"uri": "file:///x", "blob": data}, {"uri": "file:///y", "text": data}]},
        "prompts/get": {
            "messages": [{"role": "user", "content": {"type": "audio", "data": data, "mimeType": "audio/wav"}}]
        },
    }
    wanted = {
        "tools/call": ["content/0/data", "content/1/resource/blob"],
        "resources/read": ["contents/0/blob"],
        "prompts/get": ["messages/0/content/data"],
    }
    peer = raw(results=results)
    await connected(session, peer.target)
    for method, places in wanted.items():
        done = await call(session, method, {"name": "x", "uri": "file:///x"}, force=True)
        found = [each.text for each in done.findings if each.level == "must"]
        assert found == ([] if fits else [f"`{each}` is not base64." for each in places])


@pytest.mark.requirement("B15")
async def test_b15_a_result_without_a_type_breaks_a_must_of_2026_07_28(session: Session, tmp_path: Path):
    peer = modern_stdio(tmp_path / "record", results={"tools/call": {"content": []}})
    await reach(session, peer)
    done = await call(session, "tools/call", {"name": "x"})
    assert done.state == "done" and [(each.id, each.level) for each in done.findings] == [("R6-04", "must")]


# --- B17: whole numbers -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("B17")
@pytest.mark.parametrize("spelled", ["3.0", "1e3", "-0.0", "1E+2", "30e-1", "3", "12345678901234567890"])
async def test_b17_a_whole_number_is_an_id_however_it_is_written(session: Session, raw: Raw, spelled: str):
    peer = raw()
    await connected(session, peer.target)
    await hear(session, f'{{"jsonrpc":"2.0","id":{spelled},"method":"ping"}}')
    await flushed(session)
    assert findings(session) == []
    assert f'{{"jsonrpc":"2.0","id":{spelled},"result":{{}}}}\n'.encode() in peer.read(), "it goes back as it came"


@pytest.mark.requirement("B17")
async def test_b17_a_fraction_is_no_id_and_is_echoed_all_the_same(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    await hear(session, '{"jsonrpc":"2.0","id":1.50,"method":"ping"}')
    await flushed(session)
    assert texts(session) == ["The id 1.5 is neither a string nor an integer."]
    assert b'"id":1.50,"result"' in peer.read()


@pytest.mark.requirement("B17")
@pytest.mark.parametrize("tokens", ["10.0", "1e1", "10"])
async def test_b17_a_whole_number_of_tokens_is_one_however_it_is_written(session: Session, raw: Raw, tokens: str):
    peer = raw()
    await connected(session, peer.target)
    ask = '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":%s}}'
    await hear(session, ask.replace("%s", tokens))
    [open_ask] = session.inbox.open
    assert open_ask.kind == "sampling" and findings(session) == [] and replies(peer) == []


@pytest.mark.requirement("B17")
async def test_b17_a_whole_error_code_is_a_code(session: Session, raw: Raw):
    await connected(session, raw().target)
    failed = await call(
        session, "x/say", {"lines": ['{"jsonrpc":"2.0","id":$ID,"error":{"code":-3.2e4,"message":"x"}}']}
    )
    assert failed.error is not None and failed.error.code == -32000 and failed.findings == []


# --- B19: words -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("B19")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_b19_a_server_that_names_no_revision_is_said_to_name_none(session: Session, tmp_path: Path, era: str):
    error = {"code": -32022, "message": "Unsupported", "data": {"supported": []}}
    peer = modern_stdio(tmp_path / "record", errors={"server/discover": error, "initialize": error})
    await connect(session, peer.target, era="auto" if era == "legacy" else "modern")
    assert session.info.trouble is not None
    assert session.info.trouble.message == "The server names no revision that it speaks."


@pytest.mark.requirement("B19", "R5-03")
async def test_b19_initialize_answered_with_a_revision_that_has_none(session: Session, raw: Raw):
    peer = raw(initialize={"protocolVersion": "2026-07-28"})
    await connect(session, peer.target)
    assert session.info.state == "lost" and session.info.trouble is not None
    words = "The server answered `initialize` with 2026-07-28, a revision that has no `initialize`."
    assert session.info.trouble.message == words
    assert words in texts(session, "should")


@pytest.mark.requirement("B19")
async def test_b19_findings_about_discovery_cite_the_rule_of_discovery(session: Session, tmp_path: Path):
    result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
    await connected(session, modern_stdio(tmp_path / "r", results={"server/discover": result}).target, era="modern")
    [remark] = [each for each in findings(session) if "server/discover" in each.text]
    assert (remark.id, remark.level) == ("R6-06", "must") and "`ttlMs`" in remark.text


@pytest.mark.requirement("B19")
async def test_b19_an_older_server_that_answers_the_probe_with_nothing_is_not_judged_by_it(session: Session, raw: Raw):
    peer = raw(results={"server/discover": {}})
    await connected(session, peer.target, era="auto")
    assert session.info.era == "legacy" and findings(session) == []


@pytest.mark.requirement("B19")
@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"type": "video", "url": "x"}, '`content/0/type` is "video", which is no kind of content in 2025-11-25.'),
        ({"type": "text"}, "`content/0/text` field required."),
        ({"text": "x"}, "`content/0/type` is missing."),
        ({"type": "image", "data": 5, "mimeType": "a/b"}, "`content/0/data` input should be a valid string."),
        ({"type": "resource", "resource": {"uri": "file:///x"}}, "`content/0/resource` has neither `text` nor `blob`."),
        ("text", "`content/0` is no object."),
    ],
)
async def test_b19_content_is_judged_by_what_it_says_it_is(session: Session, raw: Raw, block: Any, words: str):
    await connected(session, raw(results={"tools/call": {"content": [block]}}).target)
    done = await call(session, "tools/call", {"name": "x"})
    [remark] = done.findings
    assert remark.text == f"This result of `tools/call` does not fit 2025-11-25: {words}"


@pytest.mark.requirement("B19")
@pytest.mark.parametrize(
    ("root_id", "inner_id", "ref"),
    [
        (None, "https://a.example/point", "https://a.example/point"),
        ("https://a.example/root.json", "point.json", "point.json"),
        ("https://a.example/root.json", "point.json", "https://a.example/point.json"),
        ("https://a.example/root.json", "point.json#", "point.json"),
        (None, "point", "point"),
        (None, "urn:example:point", "urn:example:point"),
        (None, "point", "point#/$defs/x"),
        (None, "point", "point#here"),
    ],
)
def test_b19_a_reference_to_an_embedded_schema_stays_here(root_id: str | None, inner_id: str, ref: str):
    inner: dict[str, Any] = {
        "$id": inner_id,
        "type": "integer",
        "$defs": {"x": {"type": "integer"}, "y": {"$anchor": "here", "type": "integer"}},
    }
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"n": {"$ref": ref}},
        "$defs": {"point": inner},
    }
    if root_id is not None:
        schema["$id"] = root_id
    [field] = [each for each in build(schema).children if each.key == "n"]
    assert (field.kind, field.note) == ("integer", "")
