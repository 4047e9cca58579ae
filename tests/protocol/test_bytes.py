"""Every byte: the log holds exactly what crossed the wire, as the peer itself recorded it, in order."""

import json
from collections.abc import Callable

import pytest

from app.sessions import Session
from tests.drive import RawPeer, b64, call, call_tool, connected, flushed, inbound, raw_target, raws

Raw = Callable[..., RawPeer]

ODD = [
    '  {"jsonrpc" :\t"2.0" , "method":"notifications/message","params":{ "level":"info","data":"spaced" } }  ',
    r'{"jsonrpc":"2.0","method":"notifications\/message","params":{"level":"info","data":"\u00e9\ud83c\udf0a \u0041"}}',
    '{"params":{"data":"order","level":"info"},"method":"notifications/message","jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"crlf"}}\r',
    '{"jsonrpc":"2.0","extra":[1,2],"method":"notifications/message","params":{"level":"info","data":1,"more":null}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":123456789012345678901234567890}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":[1.0,1e2,-0.0,1E400,0.10]}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"Grüße 世界 🌊  "}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"a":1,"a":2}}}',
    r'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"half \ud800 pair"}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"' + "x" * 200_000 + '"}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"' + "é" * 200_000 + '"}}',
    "",
    "   ",
    "\r",
    "not json at all",
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[ ]}}',
]
BAD = b'\xff\xfe{"half":\xc3\n\x00\x01\x7f\n\xef\xbb\xbf{"jsonrpc":"2.0","method":"notifications/bom"}\n'


@pytest.mark.requirement("R5-01", "R5-40", "F04", "F05", "F06")
@pytest.mark.parametrize("version", ["2025-11-25", "2024-11-05"])
async def test_the_log_equals_what_the_peer_sent_and_received(session: Session, raw: Raw, version: str):
    peer = raw()
    await connected(session, peer.target, protocol_version=version)
    said = await call_tool(session, "say", {"base64": b64(BAD), "lines": ODD})
    assert said.state == "done"
    await call_tool(session, "echo", {"message": 'Grüße 世界 🌊 \u2028 \x00 \\ "quoted"', "null": None, "big": 10**30})
    await call(session, "x/unknown", {"deep": {"a": [None, True, 1.5, "\U0001f30a"]}})
    await call(session, "tools/call", None)
    await session.disconnect()
    assert b"".join(each + b"\n" for each in raws(session, "in")) == peer.wrote()
    assert b"".join(each + b"\n" for each in raws(session, "out")) == peer.read()


@pytest.mark.requirement("R5-01")
async def test_sizes_and_totals_are_those_of_the_wire(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    await call_tool(session, "say", {"lines": ODD})
    await session.disconnect()
    lines = peer.wrote().split(b"\n")[:-1]
    assert [each.size for each in inbound(session)] == [len(line) for line in lines]
    assert session.messages.inbound == len(lines)
    assert session.messages.count == session.messages.inbound + session.messages.outbound
    assert session.messages.bytes_total == len(peer.wrote()) + len(peer.read()) - session.messages.count


@pytest.mark.requirement("R5-01")
async def test_what_a_person_sends_goes_out_as_given(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    params = {
        "name": "echo",
        "arguments": {"none": None, "nested": {"none": None, "list": [None]}, "n": 10**30, "f": 1.0},
    }
    await call(session, "tools/call", params)
    await flushed(session)
    [sent] = peer.received("tools/call")
    assert sent["params"].pop("_meta") == {"progressToken": sent["id"]}
    assert sent["params"] == params
    assert "_meta" not in params, "the call keeps what the person asked for"


@pytest.mark.requirement("R5-40")
async def test_no_message_of_ours_breaks_into_two_lines(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    await call_tool(session, "echo", {"message": "one\ntwo\r\nthree\u2028four\u0085five"})
    await session.disconnect()
    lines = peer.read().split(b"\n")
    assert lines.pop() == b""
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)


@pytest.mark.requirement("R5-01")
async def test_replies_know_the_request_they_answer_in_both_directions(session: Session):
    await connected(session, raw_target(then=['{"jsonrpc":"2.0","id":1,"method":"ping"}']))
    await flushed(session)
    rows = session.messages.last(100)
    answers = {each.seq: each.answers for each in rows if each.answers is not None}
    for reply, request in answers.items():
        first, second = session.messages.get(request), session.messages.get(reply)
        assert first is not None and second is not None
        assert first.rpc_id == second.rpc_id and first.method == second.method
        assert first.direction != second.direction
        assert second.latency_ms is not None and second.latency_ms >= 0
        assert session.messages.reply_to(request) == second
    assert len(answers) == len([each for each in rows if each.kind == "request"])
    pings = [each for each in rows if each.method == "ping" and each.kind == "request"]
    assert {each.direction for each in pings} == {"in", "out"}
