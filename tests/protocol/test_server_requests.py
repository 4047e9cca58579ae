"""What a server asks of us: ping, roots, and what nothing handles yet; and its cancellations."""

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from app.core.options import Root
from app.sessions import Session
from app.settings import Limits
from tests.drive import HANG, RawPeer, call_tool, connected, echoes, findings, flushed, inbound, raw_target

Raw = Callable[..., RawPeer]
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'


def replies(peer: RawPeer) -> list[dict[str, Any]]:
    """What it got from us that is a reply."""
    return [each for each in peer.received() if "method" not in each]


async def ask(session: Session, peer: RawPeer, *lines: str) -> list[dict[str, Any]]:
    """Have the peer write these lines; what we replied to them."""
    await call_tool(session, "say", {"lines": [*lines, DONE]})
    await flushed(session)
    return replies(peer)


@pytest.mark.requirement("R5-25")
@pytest.mark.parametrize("rpc_id", ["7", '"seven"', '""', "0", "-1", "12345678901234567890", '"\\u00e9"'])
async def test_ping_is_answered_with_an_empty_result_and_the_same_id(session: Session, raw: Raw, rpc_id: str):
    peer = raw()
    await connected(session, peer.target)
    ping = f'{{"jsonrpc":"2.0","id":{rpc_id},"method":"ping"}}'
    assert await ask(session, peer, ping) == [{"jsonrpc": "2.0", "id": json.loads(rpc_id), "result": {}}]
    assert findings(session) == []


@pytest.mark.requirement("R5-20")
async def test_roots_are_answered_from_the_sessions_list(session: Session, raw: Raw):
    peer = raw()
    await session.set_roots([Root(uri="file:///srv/a", name="A"), Root(uri="file:///srv/b")])
    await connected(session, peer.target)
    roots = '{"jsonrpc":"2.0","id":"r","method":"roots/list"}'
    listed = {"roots": [{"uri": "file:///srv/a", "name": "A"}, {"uri": "file:///srv/b"}]}
    assert await ask(session, peer, roots) == [{"jsonrpc": "2.0", "id": "r", "result": listed}]
    await session.set_roots([])
    assert (await ask(session, peer, roots))[-1]["result"] == {"roots": []}


@pytest.mark.requirement("R5-20")
async def test_roots_that_were_not_declared_are_an_unknown_method(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target, roots=False)
    [refused] = await ask(session, peer, '{"jsonrpc":"2.0","id":1,"method":"roots/list"}')
    assert refused["error"]["code"] == -32601
    assert [each.id for each in findings(session)] == ["R5-04"]


@pytest.mark.requirement("R5-20")
@pytest.mark.parametrize(("declared", "told"), [(True, 2), (False, 0)])
async def test_a_change_of_roots_is_told_only_where_it_was_promised(
    session: Session, raw: Raw, declared: bool, told: int
):
    peer = raw()
    await session.set_roots([Root(uri="file:///srv/before")])
    await connected(session, peer.target, roots=declared)
    await session.set_roots([Root(uri="file:///srv/a")])
    await session.set_roots([])
    await flushed(session)
    assert (
        peer.received("notifications/roots/list_changed")
        == [{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}] * told
    )


@pytest.mark.requirement("R5-04")
@pytest.mark.parametrize("method", ["x/unknown", "", "tools/list", "sampling/createMessage", "elicitation/create"])
async def test_what_was_not_offered_is_refused_with_a_finding(session: Session, raw: Raw, method: str):
    peer = raw()
    await connected(session, peer.target, sampling=False, elicitation_form=False, elicitation_url=False)
    [refused] = await ask(session, peer, f'{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{{}}}}')
    assert (refused["id"], refused["error"]["code"]) == (5, -32601)
    [finding] = findings(session)
    assert finding.id == "R5-04" and f"`{method}`" in finding.text
    assert inbound(session, method)[-1].seq == finding.message_seq


@pytest.mark.requirement("R5-01", "F13")
async def test_the_servers_ids_are_its_own_and_may_equal_ours(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    lines = ['{"jsonrpc":"2.0","id":$ID,"method":"ping"}', '{"jsonrpc":"2.0","id":1,"method":"ping"}']
    assert len(await ask(session, peer, *lines)) == 2
    assert findings(session) == []
    await echoes(session)


@pytest.mark.requirement("R5-01", "F13")
async def test_an_id_in_use_twice_is_a_finding_and_both_are_answered(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    ping = '{"jsonrpc":"2.0","id":"same","method":"ping"}'
    got = await ask(session, peer, ping, ping)
    assert got == [{"jsonrpc": "2.0", "id": "same", "result": {}}] * 2
    assert ["is already in use" in each.text for each in findings(session)] == [True]


@pytest.mark.requirement("R5-24")
async def test_a_request_the_server_takes_back_gets_no_reply(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    got = await ask(
        session,
        peer,
        '{"jsonrpc":"2.0","id":"gone","method":"roots/list"}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gone"}}',
        '{"jsonrpc":"2.0","id":"stays","method":"roots/list"}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unknown"}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    )
    assert [each["id"] for each in got] == ["stays"]


@pytest.mark.requirement("R5-01")
async def test_a_notification_is_never_answered(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    assert await ask(session, peer, '{"jsonrpc":"2.0","method":"x/unknown"}', '{"jsonrpc":"2.0","method":"ping"}') == []


@pytest.mark.requirement("R5-25", "F09")
async def test_a_thousand_pings_at_once_are_all_answered(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    await call_tool(session, "flood", {"count": 1_000, "line": '{"jsonrpc":"2.0","id":$N,"method":"ping"}'})
    await flushed(session)
    assert [each for each in replies(peer) if "error" in each] == []
    assert sorted(each["id"] for each in replies(peer)) == list(range(1_000))


@pytest.fixture
def limits() -> Limits:
    return Limits(server_requests=50)


@pytest.mark.requirement("R5-25", "F09")
async def test_answers_that_nobody_reads_are_bounded(session: Session):
    await connected(session, raw_target())
    line = '{"jsonrpc":"2.0","id":$N,"method":"%s"}' % ("m" * 4_000)
    done = await call_tool(session, "flood", {"count": 2_000, "line": line, "deaf": True})
    assert done.state == "done", "the reply behind the flood is still read"
    unanswered = [each for each in findings(session) if each.text.startswith("Parley gave no answer")]
    assert len(unanswered) + session.messages.outbound > 1_800
    with anyio.fail_after(HANG):
        await session.disconnect()


@pytest.mark.requirement("R5-01")
async def test_a_batch_is_acted_on_at_2025_03_26(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target, protocol_version="2025-03-26")
    first, second = '{"jsonrpc":"2.0","id":1,"method":"ping"}', '{ "jsonrpc":"2.0", "id":"b", "method":"roots/list"}'
    last = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"[,]"}]}}'
    done = await call_tool(session, "say", {"lines": [f" [{first} ,{second},\t{last}]\r"]})
    assert done.state == "done"
    await flushed(session)
    assert {each["id"] for each in replies(peer)} == {1, "b"}
    rows = [session.messages.raw(each.seq) for each in inbound(session)][2:5]
    assert rows == [first.encode(), second.encode(), last.replace("$ID", str(done.legs[0].rpc_id)).encode()]
    assert findings(session) == []


@pytest.mark.requirement("R5-01", "F04")
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2024-11-05"])
async def test_a_batch_elsewhere_is_a_finding_and_not_acted_on(session: Session, raw: Raw, version: str):
    peer = raw()
    await connected(session, peer.target, protocol_version=version)
    assert await ask(session, peer, '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', "[]") == []
    texts = [each.text for each in findings(session)]
    assert texts[0] == f"This is a batch. Only 2025-03-26 has batches; this connection speaks {version}."
    assert texts[1] == "This is an array, not a JSON-RPC message."
    await echoes(session)
