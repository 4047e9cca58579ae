"""Every byte over HTTP: the log holds exactly what crossed the wire, as the peer itself recorded it, in order."""

import json

import pytest

from app.sessions import Session
from tests.drive import call, call_tool, connected, flushed, inbound, raws
from tests.drive_http import exchanges, raw_web
from tests.protocol.test_http import WAYS, Way, serving

pytestmark = pytest.mark.requirement("R5-01", "R5-41")

LOG = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%s}}'
ODD = [
    '  {"jsonrpc" :\t"2.0" , "method":"notifications/message","params":{ "level":"info","data":"spaced" } }  ',
    r'{"jsonrpc":"2.0","method":"notifications\/message","params":{"level":"info","data":"\u00e9\ud83c\udf0a \u0041"}}',
    '{"params":{"data":"order","level":"info"},"method":"notifications/message","jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","extra":[1,2],"method":"notifications/message","params":{"level":"info","data":1,"more":null}}',
    LOG % "123456789012345678901234567890",
    LOG % "[1.0,1e2,-0.0,1E400,0.10]",
    LOG % '"Grüße 世界 🌊 \u2028 \u0085"',
    LOG % '{"a":1,"a":2}',
    LOG % r'"half \ud800 pair"',
    LOG % f'"{"x" * 200_000}"',
    LOG % f'"{"é" * 200_000}"',
    '{"jsonrpc":"2.0",\n "method":"notifications/message",\n\n "params":{"level":"info","data":"three lines"}}',
    "not json at all",
    "[]",
    "null",
    '"text"',
    "   ",
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[ ]}}',
]


@pytest.mark.requirement("F04", "F06")
@pytest.mark.parametrize("version", ["2025-11-25", "2025-03-26"])
@pytest.mark.parametrize("way", WAYS)
async def test_the_log_equals_what_the_peer_sent_and_received(session: Session, way: Way, version: str):
    with serving(way) as (peer, target):
        await connected(session, target, protocol_version=version)
        said = await call_tool(session, "say", {"lines": ODD})
        assert said.state == "done", said.error
        await call_tool(session, "echo", {"message": 'Grüße 世界 🌊 \u2028 \x00 \\ "quoted"', "big": 10**30})
        await call(session, "x/unknown", {"deep": {"a": [None, True, 1.5, "\U0001f30a"]}})
        await call(session, "tools/call", None)
        await flushed(session)
        await session.disconnect()
        assert raws(session, "in") == peer.wrote()
        assert raws(session, "out") == [each.body for each in peer.requests("POST")]
        assert [each.size for each in inbound(session)] == [len(each) for each in peer.wrote()]


@pytest.mark.requirement("F05")
async def test_bytes_that_are_no_text_are_kept_as_they_came(session: Session):
    from tests.drive import b64

    bad = b'\xff\xfe{"half":\xc3 \x01\x7f'
    with raw_web() as peer:
        await connected(session, peer.target())
        failed = await call_tool(session, "say", {"base64": [b64(bad)], "as": "json"})
        assert failed.state == "failed"
        failed = await call_tool(session, "say", {"base64": [b64(bad)], "as": "event"})
        assert failed.state == "failed"
        await flushed(session)
        await session.disconnect()
        assert raws(session, "in") == peer.wrote()
        assert [each.problem for each in inbound(session) if each.kind == "invalid"] == [
            "Byte 0xff at position 0 is not UTF-8."
        ] * 2


@pytest.mark.parametrize("on", ["post", "get"])
@pytest.mark.parametrize("way", WAYS)
async def test_what_we_answer_a_server_is_in_the_log_as_it_got_it(session: Session, way: Way, on: str):
    with serving(way) as (peer, target):
        await connected(session, target)
        for method in ("roots/list", "ping", "x/unknown"):
            assert (await call_tool(session, "ask", {"on": on, "ask": method})).state == "done"
        await flushed(session)
        await session.disconnect()
        assert sorted(raws(session, "in")) == sorted(peer.wrote())
        posted = [each.body for each in peer.requests("POST")]
        assert raws(session, "out") == posted
        replies = [json.loads(each) for each in posted if b'"ask-' in each]
        assert [each.get("result", each.get("error", {}).get("code")) for each in replies] == [
            {"roots": []},
            {},
            -32601,
        ]


async def test_every_message_but_those_of_one_exchange_has_its_own(session: Session):
    with raw_web() as peer:
        await connected(session, peer.target())
        for _ in range(3):
            await flushed(session)
        await session.disconnect()
        posts = exchanges(session, "POST")
        assert len(posts) == len(peer.requests("POST"))
        assert [each.status for each in posts] == [202 if number == 1 else 200 for number in range(len(posts))]
