"""Floods of one session's server, felt by another: whatever arrives, a bystander's `echo` answers meanwhile (H02, H10,
H11, M01). The guard is ten times what the bench wants; before these were mended, most took seconds or half a minute."""

import json
from typing import Any

import anyio
import pytest

from app.bounds import JSON_SEPARATORS
from app.sessions import Session, SessionRegistry
from tests.drive import ME, Felt, call, call_tool, connected, echoes, feeling, flushed, inbound, raw_target, until
from tests.drive_http import raw_peer
from tests.floods import OVER_HTTP, OVER_STDIO, REPLY, torrent

pytestmark = pytest.mark.faults
GUARD = 2.5
LONG = 160
"""Seconds that a flood may take on a busy machine: it rests while somebody else waits."""
BRACKETS = torrent(REPLY + '{"content":[],"isError":true,"structuredContent":{"n":[', "[],", "0]}}}", 7_500_000)


def judged(name: str, felt: Felt) -> None:
    print(f"{name}: {felt}")
    assert felt.echoes and max(felt.echoes) < GUARD and felt.stall < GUARD, felt


@pytest.mark.requirement("H02", "H11")
@pytest.mark.parametrize("name", OVER_STDIO)
async def test_h11_a_neighbour_is_answered_while_a_server_floods_over_stdio(
    bystander: Session, session: Session, name: str
):
    await connected(session, raw_target())
    async with feeling(bystander) as felt:
        for _ in range(2):
            done = await call(session, "x/torrent", OVER_STDIO[name])
            assert done.state == ("failed" if name.startswith("100,000") else "done"), done.error
    judged(name, felt)


@pytest.mark.requirement("M01")
@pytest.mark.parametrize("name", OVER_HTTP)
async def test_m01_a_neighbour_is_answered_while_a_server_floods_over_http(
    bystander: Session, session: Session, name: str
):
    async with raw_peer() as peer:
        await connected(session, peer.target())
        async with feeling(bystander) as felt:
            done = session.start_call("x/torrent", OVER_HTTP[name], by=ME, timeout_ms=LONG * 1000)
            with anyio.fail_after(LONG):
                while not done.settled:
                    await session.events.wait(session.events.seq)
        assert done.state == "done", done.error
        judged(name, felt)
        await echoes(session)


@pytest.mark.requirement("H11")
async def test_h11_a_reply_above_the_bound_settles_its_call_and_is_kept_whole(session: Session):
    await connected(session, raw_target())
    done = await call_tool(session, "torrent", BRACKETS)
    assert (done.state, done.error, done.tool_error) == ("done", None, True)
    assert await session.result(done) is None
    assert done.unread is not None and f"{JSON_SEPARATORS:,} at the most" in done.unread
    (note,) = done.findings
    assert (note.id, note.level, note.text) == ("R5-40", "note", done.unread), "and nothing that was not read is judged"
    reply = session.messages.get(done.legs[-1].reply_seq or 0)
    assert reply is not None and (reply.kind, reply.method, reply.problem) == ("response", "tools/call", None)
    assert reply.size > 7_400_000 and session.messages.raw(reply.seq) == done.reply
    await echoes(session)


@pytest.mark.requirement("H11")
async def test_h11_an_error_above_the_bound_fails_its_call_with_its_code(session: Session):
    await connected(session, raw_target())
    head = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"no {luck}","data":['
    done = await call(session, "x/torrent", torrent(head, "[],", "0]}}", 4_000_000))
    assert done.state == "failed" and done.error is not None
    assert (done.error.code, done.error.message, done.error.data) == (-32001, "no {luck}", None)
    assert done.unread is not None


@pytest.mark.requirement("H11")
async def test_h11_a_request_above_the_bound_is_refused_with_the_reason(session: Session):
    await connected(session, raw_target())
    head = '{"jsonrpc":"2.0","method":"elicitation/create","id":"ask {1}","params":{"requestedSchema":['
    await call(session, "x/torrent", torrent(head, "[],", "0]}}", 4_000_000, times=1))
    await until(session, lambda: any(row.rpc_id == "ask {1}" and row.direction == "out" for row in _rows(session)))
    answer = next(row for row in _rows(session) if row.rpc_id == "ask {1}" and row.direction == "out")
    error = json.loads(session.messages.raw(answer.seq) or b"")["error"]
    assert error["code"] == -32603 and "too much to read" in error["message"]
    assert session.inbox.open == [], "nobody is asked what was not read"


@pytest.mark.requirement("H11")
async def test_h11_a_notification_above_the_bound_is_kept_and_not_acted_on(session: Session):
    await connected(session, raw_target())
    head = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":['
    await call(session, "x/torrent", torrent(head, "[],", "0]}}", 4_000_000, times=1))
    (row,) = inbound(session, "notifications/message")
    texts = [each.text for each in session.messages.findings(row.seq)]
    assert len(texts) == 2 and texts[1] == "This notification is too much to read, so it was not acted on."
    await flushed(session)


@pytest.mark.requirement("H11")
async def test_h11_a_list_of_thousands_is_read_and_one_above_the_bound_says_so(session: Session):
    schema = {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(30)}}
    await connected(session, raw_target())
    many = [{"name": f"tool {at}", "inputSchema": schema} for at in range(5_000)]
    assert 450_000 < sum(json.dumps(many).count(sign) for sign in ",:[{") < JSON_SEPARATORS
    await call(session, "x/tools", {"pages": [many]})
    await session.lists.refresh("tools")
    assert len(session.tools.items) == 5_000 and session.tools.error is None
    await call(session, "x/tools", {"pages": [[{"name": "one", "inputSchema": {}, "much": [[]] * 400_000}]]})
    await session.lists.refresh("tools")
    assert session.tools.state == "failed" and session.tools.error is not None
    assert session.tools.error.message.startswith("A page of this list is too much to read. ")


@pytest.mark.requirement("H11")
async def test_h11_what_is_no_object_above_the_bound_is_no_message(session: Session):
    await connected(session, raw_target())
    await call(session, "x/torrent", torrent("[", "[],", "0]", 4_000_000, times=1))
    row = next(row for row in inbound(session) if row.size > 3_000_000)
    assert row.kind == "invalid" and row.problem is not None and "at the most" in row.problem
    await echoes(session)


def _rows(session: Session) -> list[Any]:
    return session.messages.last(1_000)


class Rests:
    """How often the bulk of a session was told that somebody waits elsewhere, and rested."""

    def __init__(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks = self.rests = 0
        attention = session._registry.attention
        asked = attention.beside

        def counted(sid: str) -> bool:
            others = asked(sid)
            if sid == session.id:
                self.looks, self.rests = self.looks + 1, self.rests + others
            return others

        monkeypatch.setattr(attention, "beside", counted)


NOTES = {
    "count": 4_000,
    "line": '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":$N}}',
}


@pytest.mark.requirement("H02", "F09")
async def test_h02_a_flood_does_not_rest_while_a_long_tool_runs_elsewhere(
    registry: SessionRegistry, session: Session, monkeypatch: pytest.MonkeyPatch
):
    await connected(session, raw_target())
    other = registry.open(ME)
    await connected(other, raw_target())
    long = other.start_call("x/hold", {}, by=ME)
    await until(other, lambda: long.legs)
    with anyio.fail_after(GUARD):
        while session.others_wait():  # it is young
            await anyio.lowlevel.checkpoint()
    rests = Rests(session, monkeypatch)
    done = await call_tool(session, "flood", NOTES)
    assert done.state == "done" and not long.settled and session.messages.inbound >= 4_000
    assert rests.looks >= 1_000 and rests.rests == 0
    await registry.close(other)


@pytest.mark.requirement("H02", "F09")
async def test_h02_a_flood_rests_while_somebody_waits_elsewhere_right_now(
    bystander: Session, session: Session, monkeypatch: pytest.MonkeyPatch
):
    await connected(session, raw_target())
    rests = Rests(session, monkeypatch)
    async with feeling(bystander) as felt:
        done = await call_tool(session, "flood", NOTES | {"count": 12_000})
    assert done.state == "done" and rests.rests > 0
    assert len(felt.echoes) > 3 and max(felt.echoes) < GUARD / 5, felt
