"""Replies that break the specification: shown raw, judged by a finding, and no reason to leave a caller waiting."""

import json
from typing import Any

import anyio
import pytest

from app.sessions import Session
from app.settings import Limits
from tests.drive import ME, call, call_tool, connected, echoes, feeling, findings, flushed, inbound, raw_target, settled

HEAD = '{"jsonrpc":"2.0","id":$ID,'


@pytest.mark.requirement("F04", "R5-01", "R5-29")
@pytest.mark.parametrize(
    ("line", "rule", "words"),
    [
        (HEAD + '"result":"text"}', "R5-01", "`result` is not an object"),
        (HEAD + '"result":null}', "R5-01", "`result` is not an object"),
        (HEAD + '"result":[1]}', "R5-01", "`result` is not an object"),
        (HEAD + '"result":{}}', "R5-29", "This result of `tools/call` does not fit 2025-11-25"),
        (HEAD + '"result":{"content":"text"}}', "R5-29", "`content`"),
        (HEAD + '"result":{"content":[{"type":"text"}]}}', "R5-29", "content/0"),
        (HEAD + '"result":{"content":[]},"error":{"code":1,"message":"both"}}', "R5-01", "not both"),
        ('{"jsonrpc":"2.0","id":"$ID","result":{"content":[]}}', "R5-01", "came back as the string"),
        ('{"id":$ID,"result":{"content":[]}}', "R5-01", '`jsonrpc` must be "2.0" and is missing'),
        ('{"jsonrpc":2.0,"id":$ID,"result":{"content":[]}}', "R5-01", '`jsonrpc` must be "2.0" and is 2.0'),
        ('{"jsonrpc":"2.0","id":0,"id":$ID,"result":{"content":[]}}', "R5-01", 'key "id" stands twice'),
        ('\ufeff{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}', "R5-01", "byte order mark"),
    ],
)
async def test_a_result_that_breaks_the_rules_settles_the_call_with_a_finding(
    session: Session, line: str, rule: str, words: str
):
    await connected(session, raw_target())
    done = await call_tool(session, "say", {"lines": [line]})
    assert done.state == "done", done.error
    assert any(each.id == rule and words in each.text for each in done.findings), done.findings
    reply = inbound(session)[-1]
    assert done.reply is not None and done.reply == session.messages.raw(reply.seq), "kept as it came"
    assert set(done.findings) == set(session.messages.findings(reply.seq))
    assert await session.result(done) == json.loads(done.reply.decode("utf-8-sig"))["result"]
    await echoes(session)


@pytest.mark.requirement("F04", "R5-01")
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ('{"message":"no code"}', None, "no code"),
        ('{"code":"-1","message":"text code"}', None, "text code"),
        ('{"code":true,"message":"odd"}', None, "odd"),
        ('{"code":1.5,"message":"odd"}', None, "odd"),
        ('{"code":-32000}', -32000, ""),
        ('{"code":-32000,"message":{"a":1}}', -32000, "{'a': 1}"),
        ('"just text"', None, "just text"),
        ("null", None, "None"),
        ("[]", None, "[]"),
    ],
)
async def test_an_error_that_breaks_the_rules_fails_the_call_with_a_finding(
    session: Session, error: str, code: int | None, message: str
):
    await connected(session, raw_target())
    failed = await call_tool(session, "say", {"lines": [HEAD + f'"error":{error}}}']})
    assert failed.state == "failed" and failed.error is not None
    assert (failed.error.code, failed.error.message) == (code, message)
    assert [each.id for each in failed.findings] == ["R5-01"]
    assert failed.reply is not None
    await echoes(session)


@pytest.mark.requirement("F04", "F05", "F12", "R5-01")
@pytest.mark.parametrize(
    "id_text",
    [
        '"²"',
        '"' + "9" * 5000 + '"',
        "1" * 5000,
        "1e999",
        "1.0",
        "true",
        "null",
        "[1]",
        '{"a":1}',
        '"\\ud800"',
        '""',
        "-1",
    ],
)
async def test_a_reply_with_an_odd_id_is_ignored_with_a_finding(session: Session, id_text: str):
    await connected(session, raw_target())
    line = f'{{"jsonrpc":"2.0","id":{id_text},"result":{{"content":[]}}}}'
    done = await call_tool(session, "say", {"lines": [line, HEAD + '"result":{"content":[]}}']})
    assert done.state == "done" and done.findings == []
    odd = inbound(session)[-2]
    assert session.messages.raw(odd.seq) == line.encode()
    assert session.messages.findings(odd.seq)
    await echoes(session)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.requirement("F04", "R5-01")
@pytest.mark.parametrize("depth", [100, 399, 950, 5_000, 100_000])
async def test_no_depth_of_nesting_anywhere_ends_the_connection(session: Session, depth: int):
    lines = [
        "DEEP",
        '{"jsonrpc":DEEP,"method":"notifications/x"}',
        '{"jsonrpc":"2.0","id":DEEP,"method":"ping"}',
        '{"jsonrpc":"2.0","id":DEEP,"result":{}}',
        '{"jsonrpc":"2.0","id":$ID0,"error":DEEP}',
        '{"jsonrpc":"2.0","id":7,"error":{"code":DEEP,"message":DEEP,"data":DEEP}}',
        '{"jsonrpc":"2.0","method":DEEP}',
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":DEEP,"progress":1}}',
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":DEEP}}',
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1,"total":DEEP}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":DEEP}}',
        '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":DEEP,"data":DEEP}}',
        '{"jsonrpc":"2.0","id":"x","method":"roots/list","params":DEEP}',
        '{"jsonrpc":"2.0","id":"y","method":"sampling/createMessage","params":{"a":DEEP}}',
        HEAD + '"result":{"content":[],"structuredContent":{"a":DEEP}}}',
        HEAD + '"result":{"content":[]}}',
    ]
    schema = {"type": "object", "properties": {"a": {"type": "array"}}}
    await connected(session, raw_target(tools=[[{"name": "say", "inputSchema": {}, "outputSchema": schema}]]))
    done = await call_tool(session, "say", {"lines": [line.replace("DEEP", nested(depth)) for line in lines]})
    assert done.state == "done"
    await echoes(session)
    assert session.info.state == "ready"


@pytest.mark.requirement("F12", "R5-01")
async def test_a_second_reply_and_a_reply_to_nobody_are_ignored_with_a_finding(session: Session):
    await connected(session, raw_target())
    line = HEAD + '"result":{"content":[{"type":"text","text":"%s"}]}}'
    nobody = '{"jsonrpc":"2.0","id":4711,"error":{"code":1,"message":"x"}}'
    done = await call_tool(session, "say", {"lines": [line % "first", line % "second", nobody]})
    await flushed(session)
    assert (await session.result(done))["content"][0]["text"] == "first"
    assert [each.text for each in findings(session)] == [
        "This request was answered before; a request has one reply.",
        "No request of ours has the id 4711.",
    ]


@pytest.mark.requirement("R5-01")
async def test_an_error_without_an_id_is_nobodys_and_no_crime(session: Session):
    await connected(session, raw_target())
    line = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    await call_tool(session, "say", {"lines": [line, HEAD + '"result":{"content":[]}}']})
    assert findings(session) == []


# --- structured output ------------------------------------------------------------------------------------------------


def tool_with(schema: Any) -> dict[str, Any]:
    return {"tools": [[{"name": "say", "inputSchema": {"type": "object"}, "outputSchema": schema}]]}


def structured(value: Any) -> list[str]:
    return [HEAD + '"result":{"content":[],"structuredContent":' + json.dumps(value) + "}}"]


@pytest.mark.requirement("R5-29")
async def test_output_that_does_not_fit_its_schema_is_a_finding(session: Session):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    await connected(session, raw_target(**tool_with(schema)))
    wrong = await call_tool(session, "say", {"lines": structured({"n": "one"})})
    assert wrong.state == "done"
    assert [(each.id, each.level) for each in wrong.findings] == [("R5-29", "must")]
    assert wrong.findings[0].text.startswith("`/n` does not fit the output schema")
    right = await call_tool(session, "say", {"lines": structured({"n": 1})})
    assert right.findings == []
    missing = await call_tool(session, "say", {"lines": [HEAD + '"result":{"content":[]}}']})
    assert "has no `structuredContent`" in missing.findings[0].text
    failed = await call_tool(session, "say", {"lines": [HEAD + '"result":{"content":[],"isError":true}}']})
    assert failed.findings == [], "a tool error need not have any"


@pytest.mark.requirement("R5-29")
@pytest.mark.parametrize("limits", [Limits(log_messages=50, findings=20)])
async def test_a_call_keeps_its_findings_when_its_messages_have_left_the_log(session: Session):
    await connected(session, raw_target(**tool_with({"type": "object", "required": ["n"]})))
    wrong = await call_tool(session, "say", {"lines": structured({})})
    found = wrong.findings
    assert [each.id for each in found] == ["R5-29"] and found[0].message_seq == wrong.legs[-1].reply_seq
    odd = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
    for _ in range(10):
        await call_tool(session, "say", {"lines": [odd] * 100 + structured({"n": 1})})
    assert session.messages.get(found[0].message_seq or 0) is None and session.messages.rows_dropped > 900
    assert wrong.findings == found


@pytest.mark.requirement("R5-29", "S38")
@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "(.*a){20}$", r"^(?:(?=(a+))\1)+$"])
async def test_a_hostile_pattern_stalls_nobody(session: Session, pattern: str):
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}
    await connected(session, raw_target(**tool_with(schema)))
    async with feeling() as felt:
        done = await call_tool(session, "say", {"lines": structured({"x": "a" * 50_000 + "!"})})
    print(f"{pattern}: {felt}")
    assert done.state == "done"
    assert felt.stall < 1.0


@pytest.mark.requirement("R5-29", "S38")
@pytest.mark.parametrize("reference", ["$ref", "$schema", "$dynamicRef"])
async def test_nothing_is_fetched_on_a_servers_word(session: Session, reference: str):
    hits = 0

    async def visited(stream: anyio.abc.SocketStream) -> None:
        nonlocal hits
        hits += 1
        await stream.aclose()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, visited)
        url = f"http://127.0.0.1:{port}/schema.json"
        await connected(session, raw_target(**tool_with({"type": "object", "properties": {"x": {reference: url}}})))
        done = await call_tool(session, "say", {"lines": structured({"x": 1})})
        assert done.state == "done"
        if reference == "$ref":
            assert [each.id for each in done.findings] == ["R6-11"] and url in done.findings[0].text
        group.cancel_scope.cancel()
    await listener.aclose()
    assert hits == 0


@pytest.mark.requirement("R5-29", "R5-07")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": 12},
        {"pattern": "("},
        {"$schema": "https://example.com/unknown"},
        {"$ref": "#/nowhere"},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"enum": ["x" * 100_000]},
        "text",
        [],
        None,
    ],
)
async def test_an_output_schema_that_is_none_hurts_nobody(session: Session, schema: Any):
    await connected(session, raw_target(**tool_with(schema)))
    done = await call_tool(session, "say", {"lines": structured({"x": 1})})
    assert done.state == "done"
    await echoes(session)


@pytest.mark.requirement("R5-29")
async def test_a_large_result_is_judged_without_a_stall(session: Session):
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "integer"}}}}
    await connected(session, raw_target(**tool_with(schema)))
    async with feeling() as felt:
        started = session.start_call(
            "tools/call", {"name": "say", "arguments": {"lines": structured({"rows": list(range(100_000))})}}, by=ME
        )
        await settled(session, started)
    print(f"0.7 MB of structured output: {felt}")
    assert started.state == "done" and started.findings == []
    assert felt.stall < 1.0


async def test_the_result_of_a_raw_request_is_not_judged_by_rules_it_does_not_have(session: Session):
    await connected(session, raw_target())
    done = await call(session, "x/say", {"lines": [HEAD + '"result":{"anything":1}}']})
    assert done.state == "done" and done.findings == []
