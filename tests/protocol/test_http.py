"""Streamable HTTP and the older HTTP with SSE, against a server written by hand that keeps its own record."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import anyio
import pytest

from app import bounds
from app.core.options import Root
from app.core.targets import HttpTarget
from app.egress import Egress
from app.sessions import Session, SessionRegistry
from tests.drive import (
    HANG,
    ME,
    b64,
    call,
    call_tool,
    connect,
    connected,
    echoes,
    findings,
    flushed,
    inbound,
    settled,
    until,
)
from tests.drive_http import CANARY, Peer, Shown, exchanges, http, raw_web, stream_words

Way = Literal["json", "sse", "older"]
WAYS: tuple[Way, ...] = ("json", "sse", "older")
STREAMABLE: tuple[Way, ...] = ("json", "sse")
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'


@contextmanager
def serving(way: Way, **settings: Any) -> Iterator[tuple[Peer, HttpTarget]]:
    """A raw peer and how to reach it in one of the three ways."""
    with raw_web(reply="json" if way == "json" else "sse", **settings) as peer:
        yield peer, peer.older() if way == "older" else peer.target()


# --- every request ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R5-41", "R5-42", "R5-45", "R5-46", "R5-06")
@pytest.mark.parametrize("way", STREAMABLE)
async def test_every_request_carries_what_the_specification_wants(session: Session, way: Way):
    with serving(way) as (peer, target):
        await connected(session, target)
        await echoes(session)
        await call_tool(session, "ask", {"on": "get"})
        await session.disconnect()
        requests = peer.requests()
    first, *later = requests
    assert "mcp-session-id" not in first.headers and "mcp-protocol-version" not in first.headers
    assert {each.headers["mcp-protocol-version"] for each in later} == {"2025-11-25"}
    [session_id] = {each.headers["mcp-session-id"] for each in later}
    assert session_id.startswith(CANARY)
    for each in requests:
        if each.method == "POST":
            assert each.headers["accept"] == "application/json, text/event-stream"
            assert each.headers["content-type"] == "application/json"
            assert isinstance(json.loads(each.body), dict), "one message, never a batch"
    [stream] = [each for each in requests if each.method == "GET"]
    assert stream.headers["accept"] == "text/event-stream"
    assert "last-event-id" not in stream.headers
    said = [json.loads(each.body).get("method") for each in requests if each.body]
    assert said[:2] == ["initialize", "notifications/initialized"]
    assert requests.index(stream) >= 2, "the stream is asked for after the handshake"
    assert [each.method for each in requests].count("DELETE") == 1
    assert requests[-1].method == "DELETE"


@pytest.mark.requirement("R5-46", "R5-03")
async def test_the_revision_header_is_what_was_agreed_not_what_was_asked(session: Session):
    with raw_web(initialize={"protocolVersion": "2025-03-26"}) as peer:
        await connected(session, peer.target())
        await flushed(session)
        assert {each.headers.get("mcp-protocol-version") for each in peer.requests()[1:]} == {"2025-03-26"}


@pytest.mark.requirement("R5-45")
@pytest.mark.parametrize("way", WAYS)
async def test_the_session_id_and_secret_headers_are_shown_nowhere(session: Session, way: Way):
    headers = {"X-Tenant": "tenant-canary", "X-Plain": "visible", "Authorization": "Bearer bearer-canary"}
    with serving(way) as (peer, target):
        target = target.model_copy(update={"headers": headers, "secret": ("x-tenant",)})
        await connected(session, target)
        await call_tool(session, "ask", {"on": "get"})
        await echoes(session)
        shown = str(Shown(session))
        await session.disconnect()
        shown += str(Shown(session))
        for request in peer.requests():
            assert {name.lower(): value for name, value in headers.items()}.items() <= request.headers.items()
    assert "visible" in shown
    for canary in (CANARY, "tenant-canary", "bearer-canary"):
        assert canary not in shown
    fields = dict(exchanges(session, "POST")[-1].request_headers)
    assert fields["Authorization"] == "•••"
    if way != "older":
        assert fields["mcp-session-id"].startswith("•••")


def requested(session: Session) -> list[tuple[str, int | None, int]]:
    """Every HTTP request of the log: its method, the status of its answer, and how many messages it carried."""
    return [(each.method, each.status, each.carried) for each in session.messages.exchanges()]


@pytest.mark.requirement("R5-41", "R5-42", "R5-45")
async def test_requests_that_carry_no_message_stand_in_the_log_too(session: Session):
    with raw_web(http={"GET": {"status": 405, "headers": {"x-token": "canary"}}}) as peer:
        await connected(session, peer.target())
        await until(session, lambda: session.info.stream == "not offered by the server (405)")
        await session.disconnect()
        made = [each.method for each in peer.requests()]
    assert sorted(each[0] for each in requested(session)) == sorted(made)
    assert [each for each in requested(session) if not each[2]] == [("GET", 405, 0), ("DELETE", 200, 0)]
    kept = session.messages.exchanges()
    assert [each.seq for each in kept] == sorted({each.seq for each in kept}) and kept[0].seq > 0
    [get] = [each for each in kept if each.method == "GET"]
    assert dict(get.response_headers)["x-token"] == "•••" and dict(get.request_headers)["mcp-session-id"] != CANARY
    assert get.answered_ms is not None and get.ended_ms is not None and get.ended_ms >= get.answered_ms
    posts = [each for each in kept if each.method == "POST"]
    assert all(session.messages.exchange(seq) is each for each in posts for seq in each.message_seqs)


@pytest.mark.requirement("R5-42", "R5-43")
async def test_a_stream_that_fails_again_and_again_is_shown_each_time(session: Session):
    with raw_web(http={"GET": {"status": 503, "body": "not now"}}) as peer:
        await connected(session, peer.target())
        await until(session, lambda: len([each for each in requested(session) if each == ("GET", 503, 0)]) >= 2)
        failed = [each.error for each in session.messages.exchanges() if each.method == "GET"]
    assert failed[0] == "The server failed (503). It said: “not now”"


@pytest.mark.requirement("F13")
async def test_a_request_that_reaches_nobody_says_why(session: Session):
    with raw_web() as peer:
        await connected(session, peer.target())
        await until(session, lambda: session.info.stream == "open")
    await call(session, "ping")
    await session.disconnect()
    said = {(each.method, (each.error or "").partition(":")[0]) for each in session.messages.exchanges()[-4:]}
    assert {("POST", "The connection was refused"), ("DELETE", "The connection was refused")} <= said


@pytest.mark.requirement("R5-41")
@pytest.mark.parametrize("way", WAYS)
async def test_each_message_knows_the_exchange_that_carried_it(session: Session, way: Way):
    with serving(way) as (peer, target):
        await connected(session, target)
        done = await call_tool(session, "echo", {"message": "x"})
        await session.disconnect()
        sent = session.messages.exchange(done.legs[0].request_seq or 0)
        came = session.messages.exchange(done.legs[0].reply_seq or 0)
        assert sent is not None and came is not None
        assert (sent.method, sent.status) == ("POST", 202 if way == "older" else 200)
        assert sent.answered_ms is not None and 0 <= sent.answered_ms < HANG * 1000
        if way == "older":
            assert (came.method, came.url) == ("GET", peer.url("/sse"))
            assert sent.url == peer.url("/messages?session_id=•••")
        else:
            assert came is sent
            assert dict(sent.response_headers)["content-type"] in ("application/json", "text/event-stream")


@pytest.mark.requirement("R5-45")
async def test_a_server_without_sessions_gets_no_session_id_and_no_goodbye(session: Session):
    with raw_web(session=None) as peer:
        await connected(session, peer.target())
        await echoes(session)
        await session.disconnect()
        assert [each for each in peer.requests() if "mcp-session-id" in each.headers] == []
        assert peer.requests("DELETE") == []


@pytest.mark.requirement("R5-45")
@pytest.mark.parametrize("bad", ["with space", "x" * 1025, "gr\xfc\xdfe"])
async def test_a_session_id_that_is_none_is_remarked_on_and_not_used(session: Session, bad: str):
    with raw_web(session=None, http={"initialize": answer_to_initialize({"mcp-session-id": bad})}) as peer:
        await connected(session, peer.target())
        assert [each.id for each in findings(session) if each.level == "must"] == ["R5-45"]
        assert [each for each in peer.requests() if "mcp-session-id" in each.headers] == []


def answer_to_initialize(headers: dict[str, str]) -> dict[str, Any]:
    result = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "canned", "version": "1"},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result})
    return {"status": 200, "headers": {"content-type": "application/json", **headers}, "body": body}


@pytest.mark.requirement("R5-45", "R5-06")
@pytest.mark.parametrize("answer", [{"status": 405}, {"status": 500, "body": "no"}, {"base64": ""}])
async def test_a_server_that_wants_no_goodbye_is_left_all_the_same(session: Session, answer: dict[str, Any]):
    with raw_web(http={"DELETE": answer}) as peer:
        await connected(session, peer.target())
        await session.disconnect()
        assert session.info.state == "closed" and session.info.trouble is None
        assert len(peer.requests("DELETE")) == 1


@pytest.mark.requirement("R5-06")
async def test_a_goodbye_that_is_not_answered_keeps_nobody(session: Session):
    with raw_web(delay={"DELETE": 60}) as peer:
        await connected(session, peer.target())
        with anyio.fail_after(HANG):
            await session.disconnect()


@pytest.mark.requirement("R5-41", "F15")
async def test_nobody_who_thinks_is_timed_out_and_nobody_else_may_think(
    session: Session, monkeypatch: pytest.MonkeyPatch
):
    """No read limit on requests and streams, a short one on the answers to notifications, replies and goodbyes."""
    limits: dict[str, float | None] = {}
    real = Egress.request

    def request(self: Egress, method: str, url: str, headers: Any, content: bytes = b"", **more: Any) -> Any:
        message = json.loads(content) if content else {}
        limits[message.get("method") or ("a reply" if message else method)] = more.get("read")
        return real(self, method, url, headers, content, **more)

    monkeypatch.setattr(Egress, "request", request)
    with raw_web() as peer:
        await connected(session, peer.target())
        await call_tool(session, "ask")
        await session.disconnect()
    assert limits == {
        "initialize": None,
        "notifications/initialized": 30.0,
        "tools/list": None,
        "tools/call": None,
        "a reply": 30.0,
        "GET": None,
        "DELETE": 2.0,
    }


# --- both directions --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R5-41", "R5-42", "R5-20")
@pytest.mark.parametrize("on", ["post", "get"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_server_asks_on_any_stream_and_is_answered(session: Session, way: Way, on: str):
    await session.set_roots([Root(uri="file:///srv/data", name="data")])
    with serving(way) as (_, target):
        await connected(session, target)
        done = await call_tool(session, "ask", {"on": on})
        result = await session.result(done)
        assert json.loads(result["content"][0]["text"]) == {"roots": [{"uri": "file:///srv/data", "name": "data"}]}
        [question] = inbound(session, "roots/list")
        exchange = session.messages.exchange(question.seq)
        assert exchange is not None
        assert exchange.method == ("GET" if on == "get" or way == "older" else "POST")


@pytest.mark.requirement("R5-41", "R5-23")
@pytest.mark.parametrize("way", ["sse", "older"])
async def test_progress_and_log_lines_arrive_before_the_reply(session: Session, way: Way):
    progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":%d}}'
    line = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"at work"}}'
    with serving(way) as (_, target):
        await connected(session, target)
        done = await call_tool(session, "say", {"lines": [progress % 1, line, progress % 2, DONE]})
        assert done.state == "done" and done.progress is not None and done.progress.progress == 2
        assert [each.data for each in done.logs] == ["at work"]


@pytest.mark.requirement("R5-41")
@pytest.mark.parametrize("way", WAYS)
async def test_many_calls_in_flight_are_answered_in_any_order(session: Session, way: Way):
    with serving(way) as (_, target):
        await connected(session, target)
        params = [{"name": "hold", "arguments": {"mark": number}} for number in range(20)]
        calls = [session.start_call("tools/call", each, by=ME) for each in params]
        await call_tool(session, "seen", {"what": "held", "count": 20})
        await echoes(session)
        await call_tool(session, "release")
        await settled(session, *calls)
        texts = [(await session.result(each))["content"][0]["text"] for each in calls]
        assert texts == [f"held {number}" for number in range(20)]


@pytest.mark.requirement("R5-24", "R5-44")
@pytest.mark.parametrize("way", WAYS)
async def test_cancelling_sends_the_notification_and_a_late_reply_is_shown(session: Session, way: Way):
    with serving(way) as (peer, target):
        await connected(session, target)
        held = session.start_call("tools/call", {"name": "hold", "arguments": {"mark": 1}}, by=ME)
        await call_tool(session, "seen", {"what": "held", "count": 1})
        session.cancel_call(held.id)
        await call_tool(session, "seen", {"what": "notifications/cancelled", "count": 1})
        assert held.state == "cancelled"
        assert [each["params"]["requestId"] for each in peer.received("notifications/cancelled")] == [
            held.legs[0].rpc_id
        ]
        await call_tool(session, "release")
        await until(session, lambda: [each for each in findings(session) if each.id == "R5-24"])
        assert "This reply came after the request was cancelled." in [each.text for each in findings(session)]
        await echoes(session)


@pytest.mark.requirement("R5-24", "R5-44", "F15")
@pytest.mark.parametrize("way", STREAMABLE)
async def test_the_socket_of_a_call_that_nobody_waits_for_is_closed_after_a_while(
    session: Session, monkeypatch: pytest.MonkeyPatch, way: Way
):
    monkeypatch.setattr(bounds, "LINGER_SECONDS", 0.1)
    with serving(way) as (_, target):
        await connected(session, target)
        given_up = await call_tool(session, "slow", {"seconds": 30}, timeout_ms=50)
        assert given_up.error is not None and given_up.error.kind == "timeout"
        seen = await call_tool(session, "seen", {"what": "gone", "count": 1})
        assert await session.result(seen) == {"count": 1}
        await echoes(session)


@pytest.mark.requirement("R5-01", "F04")
@pytest.mark.parametrize("shape", ["json", "event"])
@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25"])
async def test_a_batch_is_legal_in_one_revision_only(session: Session, version: str, shape: str):
    batch = f'[{{"jsonrpc":"2.0","method":"notifications/x"}}, {DONE}]'
    with raw_web() as peer:
        await connected(session, peer.target(), protocol_version=version)
        done = await call_tool(session, "say", {"lines": [batch], "as": shape}, timeout_ms=5000)
        if version == "2025-03-26":
            assert done.state == "done"
            assert [each.method for each in inbound(session)][-2:] == ["notifications/x", "tools/call"]
        else:
            assert done.state == "failed" and done.error is not None and done.error.kind == "http"
            assert any("This is a batch" in each.text for each in findings(session))
        await echoes(session)


# --- the GET stream ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R5-42")
@pytest.mark.parametrize(
    ("status", "words"), [(405, "not offered by the server (405)"), (400, "refused (400)"), (403, "refused (403)")]
)
async def test_a_server_without_a_get_stream_is_used_without_one(session: Session, status: int, words: str):
    with raw_web(http={"GET": {"status": status}}) as peer:
        await connected(session, peer.target())
        await until(session, lambda: session.info.stream == words)
        await echoes(session)
        assert len(peer.requests("GET")) == 1, "it is not asked again"


@pytest.mark.requirement("R5-42", "F17")
async def test_the_get_stream_comes_back_however_often_it_ends(session: Session):
    """The SDK gives up after the second; each way of ending is here several times."""
    script: list[dict[str, Any]] = [{"sse": "retry: 20\n\n", "then": then} for then in ["end", "cut"] * 5]
    with raw_web(gets=script) as peer:
        await connected(session, peer.target())
        asked = await call_tool(session, "seen", {"what": "GET", "count": 11})
        assert await session.result(asked) == {"count": 11}
        assert (await call_tool(session, "ask", {"on": "get"})).state == "done"
        assert session.info.stream == "open"
        assert len(peer.requests("GET")) == 11


@pytest.mark.requirement("R5-42", "F17")
async def test_a_stream_that_fails_says_so_and_is_tried_again_with_patience(
    session: Session, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bounds, "RETRY_SECONDS", 0.02)
    words = stream_words(monkeypatch)
    with raw_web(gets=[{"status": 500, "body": "oops"}, {"status": 503}, {"then": "end"}, {"status": 429}]) as peer:
        await connected(session, peer.target())
        await until(session, lambda: len(peer.requests("GET")) == 5 and session.info.stream == "open")
    assert words[:6] == [
        "down, trying again in 0.04 s: The server failed (500). It said: “oops”",
        "down, trying again in 0.08 s: The server failed (503).",
        "open",
        "down, trying again in 0.16 s: ended",
        "down, trying again in 0.32 s: The server says there were too many requests (429).",
        "open",
    ]


# --- resumption -------------------------------------------------------------------------------------------------------


async def within(session: Session, measure: Any, retry: float) -> list[float]:
    """Waits as measured, until one is inside the tolerance; on a busy machine a few may be late, none may be early."""
    waits = []
    for _ in range(5):
        waits.append(await measure())
        assert waits[-1] >= retry - 0.05
        if waits[-1] <= retry + 0.2:
            break
    assert waits[-1] <= retry + 0.2, waits
    return waits


@pytest.mark.requirement("R5-43", "F17")
@pytest.mark.parametrize("then", ["end", "cut"])
async def test_a_post_stream_is_resumed_after_exactly_the_time_the_server_asked_for(session: Session, then: str):
    with raw_web() as peer:
        await connected(session, peer.target())
        number = 0

        async def measure() -> float:
            nonlocal number
            number += 1
            script = {
                "sse": f"id: p{number}\nretry: 300\ndata:\n\n",
                "then": then,
                "resume": {f"p{number}": [{"sse": f"id: q{number}\ndata: {DONE}\n\n", "then": "end"}]},
            }
            done = await call_tool(session, "script", script)
            assert done.state == "done", done.error
            asked = [each for each in peer.requests("POST") if b'"script"' in each.body][-1]
            back = [each for each in peer.requests("GET") if each.headers.get("last-event-id") == f"p{number}"]
            assert len(back) == 1 and back[0].headers["mcp-protocol-version"] == "2025-11-25"
            return back[0].at - asked.at

        waits = await within(session, measure, 0.3)
        print(f"\n  resumed after {', '.join(f'{each * 1000:.0f}' for each in waits)} ms; asked for 300 ms")


@pytest.mark.requirement("R5-43", "F17")
async def test_the_get_stream_is_resumed_after_exactly_the_time_the_server_asked_for(session: Session):
    with raw_web() as peer:
        await connected(session, peer.target())
        await until(session, lambda: session.info.stream == "open")
        number = 0

        async def measure() -> float:
            nonlocal number
            number += 1
            before = len(peer.requests("GET"))
            script = {"sse": f"id: g{number}\nretry: 300\ndata:\n\n", "then": "end"}
            await call_tool(session, "get", script)
            await call_tool(session, "seen", {"what": "GET", "count": before + 1})
            ended = [each for each in peer.requests("POST") if b'"get"' in each.body][-1]
            back = peer.requests("GET")[-1]
            assert back.headers["last-event-id"] == f"g{number}"
            return back.at - ended.at

        waits = await within(session, measure, 0.3)
        print(f"\n  resumed after {', '.join(f'{each * 1000:.0f}' for each in waits)} ms; asked for 300 ms")


@pytest.mark.requirement("R5-43", "F17")
async def test_a_stream_may_be_resumed_many_times_and_loses_nothing(session: Session):
    log = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}'
    events = [f"id: e{n}\nretry: 0\ndata: {log % n}\n\n" for n in range(6)] + [f"id: e6\ndata: {DONE}\n\n"]
    resume = {
        f"e{number}": [{"sse": events[number + 1], "then": "cut" if number % 2 else "end"}] for number in range(6)
    }
    with raw_web() as peer:
        await connected(session, peer.target())
        done = await call_tool(session, "script", {"sse": events[0], "then": "cut", "resume": resume})
        assert done.state == "done", done.error
        assert [each.data for each in done.logs] == list(range(6))
        ids = [each.headers.get("last-event-id") for each in peer.requests("GET")]
        assert [each for each in ids if each is not None] == [f"e{number}" for number in range(6)]
        await echoes(session)


@pytest.mark.requirement("R5-43")
async def test_an_event_id_of_any_characters_goes_back_as_it_came(session: Session):
    script = {
        "sse": "id: Grüße 世界\nretry: 0\n\n",
        "resume": {"Grüße 世界".encode().decode("latin-1"): [{"sse": f"data: {DONE}\n\n", "then": "end"}]},
    }
    with raw_web() as peer:
        await connected(session, peer.target())
        assert (await call_tool(session, "script", script)).state == "done"
        last = peer.requests("GET")[-1].headers["last-event-id"]
        assert last.encode("latin-1").decode() == "Grüße 世界"


@pytest.mark.requirement("R5-43", "F17")
@pytest.mark.parametrize("then", ["end", "cut"])
async def test_a_stream_without_ids_that_ends_early_fails_its_own_call_only(session: Session, then: str):
    with raw_web() as peer:
        await connected(session, peer.target())
        held = session.start_call("tools/call", {"name": "hold", "arguments": {"mark": 1}}, by=ME)
        await call_tool(session, "seen", {"what": "held", "count": 1})
        lost = await call_tool(session, "script", {"sse": ": nothing\n\n", "then": then})
        assert lost.state == "failed" and lost.error is not None
        words = {
            "end": "The stream ended before the reply came. Look at the server's log, then call again.",
            "cut": "The server closed the connection in the middle: peer closed connection without sending complete "
            "message body (incomplete chunked read). Look at the server's log.",
        }
        assert (lost.error.message, lost.error.kind, lost.error.code) == (words[then], "http", None)
        await echoes(session)
        await call_tool(session, "release")
        await settled(session, held)
        assert held.state == "done"


@pytest.mark.requirement("R5-43", "F17")
@pytest.mark.parametrize(
    ("again", "words"),
    [
        ({"status": 405}, "The stream ended before the reply came, and the server resumes no streams (405)."),
        ({"status": 500}, "The server failed (500). Look at the server's log."),
    ],
)
async def test_a_server_that_will_not_resume_is_taken_at_its_word(session: Session, again: dict[str, Any], words: str):
    with raw_web() as peer:
        await connected(session, peer.target())
        done = await call_tool(session, "script", {"sse": "id: z\nretry: 0\n\n", "resume": {"z": [again]}})
        assert done.state == "failed" and done.error is not None and done.error.message.startswith(words)
        await echoes(session)


@pytest.mark.requirement("R5-43", "R5-24")
async def test_nobody_comes_back_for_a_call_that_was_cancelled(session: Session):
    with raw_web() as peer:
        await connected(session, peer.target())
        params = {"name": "script", "arguments": {"sse": "id: z\nretry: 200\n\n"}}
        asked = session.start_call("tools/call", params, by=ME)
        await call_tool(session, "seen", {"what": "tools/call", "count": 1})
        session.cancel_call(asked.id)
        await call_tool(session, "slow", {"seconds": 0.4})
        assert [each for each in peer.requests("GET") if "last-event-id" in each.headers] == []


# --- answers that are not quite right ---------------------------------------------------------------------------------


@pytest.mark.requirement("R5-41")
@pytest.mark.parametrize("headers", [{}, {"content-type": "application/json"}])
async def test_a_request_that_is_only_accepted_may_be_answered_on_the_get_stream(
    session: Session, headers: dict[str, str]
):
    with raw_web() as peer:
        await connected(session, peer.target())
        await until(session, lambda: session.info.stream == "open")
        done = await call_tool(session, "later", {"headers": headers})
        assert done.state == "done", done.error
        await until(session, lambda: findings(session))
        await until(session, lambda: len(findings(session)) == 2)
        assert sorted((each.id, each.text) for each in findings(session) if each.level == "must") == [
            ("R5-41", "The server accepted this request (202) and answered nothing."),
            (
                "R5-42",
                "This reply came on the GET stream, which carries only requests and notifications of the server.",
            ),
        ]


@pytest.mark.requirement("F16")
async def test_a_json_rpc_error_inside_an_http_error_is_the_reply(session: Session):
    error = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"not today"}}'
    canned = {"status": 400, "headers": {"content-type": "application/json"}, "body": error}
    with raw_web(http={"tools/call": canned}) as peer:
        await connected(session, peer.target())
        failed = await call_tool(session, "echo")
        assert failed.error is not None
        assert (failed.error.code, failed.error.message, failed.error.kind) == (-32000, "not today", "rpc")


@pytest.mark.requirement("F16", "F12")
@pytest.mark.parametrize("rpc_id", ["null", "true", "3.0", '"3"', "999"])
async def test_an_error_for_somebody_else_inside_an_http_error_leaves_nobody_waiting(session: Session, rpc_id: str):
    """`true` equals 1 and `3.0` equals 3 in Python, and are other ids all the same."""
    error = f'{{"jsonrpc":"2.0","id":{rpc_id},"error":{{"code":-32000,"message":"not today"}}}}'
    canned = {"status": 400, "headers": {"content-type": "application/json"}, "body": error}
    with raw_web(http={"ping": canned}) as peer:
        await connected(session, peer.target())
        for _ in range(2):
            failed = await call(session, "ping")
            assert failed.state == "failed" and failed.error is not None
        await echoes(session)


# --- the older transport ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("R5-47")
@pytest.mark.parametrize("status", [400, 404, 405])
async def test_a_server_of_the_older_kind_is_found_by_fallback(session: Session, status: int):
    with raw_web(http={"initialize": {"status": status}}) as peer:
        await connect(session, peer.target("/sse"))
        assert session.info.transport == "sse", "the canned answer also meets the second initialize"
        assert session.info.state == "lost"
    with raw_web() as peer:
        await connected(session, peer.target("/sse"))
        assert (session.info.state, session.info.transport) == ("ready", "sse")
        assert "The server took no POST there, so perhaps it speaks the older HTTP with SSE." in [
            each.text for each in session.info.steps
        ]
        assert [(each.method, each.path) for each in peer.requests()[:2]] == [("POST", "/sse"), ("GET", "/sse")]
        await echoes(session)


@pytest.mark.requirement("R5-47", "F16")
@pytest.mark.parametrize("status", [401, 403, 429, 500])
async def test_other_refusals_are_not_taken_for_an_older_server(session: Session, status: int):
    with raw_web(http={"initialize": {"status": status}}) as peer:
        await connect(session, peer.target())
        assert session.info.trouble is not None and session.info.trouble.kind == f"http-{status}"
        assert peer.requests("GET") == []


@pytest.mark.requirement("R5-47", "F16")
async def test_a_wrong_path_is_said_even_after_the_older_kind_was_tried(session: Session):
    with raw_web() as peer:
        await connect(session, peer.target("/wrong"))
        assert session.info.state == "lost" and session.info.trouble is not None
        assert session.info.trouble.message == "There is nothing at this address (404). It said: “nothing here”"
        assert session.info.trouble.advice == "Check the path: it often ends in /mcp."


@pytest.mark.requirement("R5-47")
@pytest.mark.parametrize(
    "base", ["/", "", "./", "http://127.0.0.1:$PORT/", "//127.0.0.1:$PORT/", "HTTP://127.0.0.1:$PORT/"]
)
async def test_an_endpoint_of_the_same_origin_is_used_in_every_form(session: Session, base: str):
    with raw_web(endpoint=f"{base}messages?session_id=$KEY") as peer:
        await connected(session, peer.older())
        await echoes(session)
        [step] = [each.text for each in session.info.steps if "takes messages at" in each.text]
        assert step == f"The server takes messages at {peer.url('/messages?session_id=•••')}"


@pytest.mark.requirement("R5-47", "S24")
@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("http://127.0.0.2:9/messages", "The server named an endpoint of another origin: http://127.0.0.2:9/messages."),
        (
            "//evil.example/m?token=canary",
            "The server named an endpoint of another origin: http://evil.example/m?token=•••.",
        ),
        ("https://127.0.0.1/messages", "The server named an endpoint of another origin: https://127.0.0.1/messages."),
        (
            "ftp://127.0.0.1/x",
            "The endpoint the server named cannot be used: ftp://127.0.0.1/x is not an http or https address.",
        ),
        (
            "http://u:p@127.0.0.1/",
            "The endpoint the server named cannot be used: an address must not contain a user name or password; "
            "send them as a header.",
        ),
    ],
)
async def test_an_endpoint_of_another_origin_is_not_followed(session: Session, endpoint: str, words: str):
    with raw_web(endpoint=endpoint) as peer:
        await connect(session, peer.older(headers={"X-Token": "canary"}))
        assert session.info.state == "lost" and session.info.trouble is not None
        assert (session.info.trouble.kind, session.info.trouble.message) == ("endpoint", words)
        assert [each.path for each in peer.requests()] == ["/sse"]


@pytest.mark.requirement("M04", "M12")
@pytest.mark.parametrize("endpoint", ["http://[::1", "//[x", "http://127.0.0.1:0/m", "http://127.0.0.1:x/m"])
async def test_m04_an_endpoint_that_is_no_address_is_said_in_words(session: Session, endpoint: str):
    with raw_web(endpoint=endpoint) as peer:
        await connect(session, peer.older())
        assert session.info.trouble is not None
        assert session.info.trouble.kind == "endpoint"
        assert session.info.trouble.message.startswith("The endpoint the server named cannot be used: ")


@pytest.mark.requirement("R5-47", "F02")
async def test_a_stream_without_an_endpoint_is_no_older_server(session: Session):
    hello = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: hello\n\n"
    with raw_web(http={"SSE": {"base64": b64(hello.encode())}}) as peer:
        await connect(session, peer.older())
        assert session.info.trouble is not None
        assert session.info.trouble.kind == "no-endpoint"
        assert session.info.trouble.message == "The stream does not begin with an `endpoint` event."
        assert session.info.trouble.advice == "Check the address."


@pytest.mark.requirement("R5-47", "F16")
@pytest.mark.parametrize("status", [400, 404, 500])
async def test_a_failing_post_of_the_older_kind_fails_its_own_call_only(session: Session, status: int):
    with raw_web(http={"ping": {"status": status, "body": "no"}}) as peer:
        await connected(session, peer.older())
        failed = await call(session, "ping")
        assert failed.state == "failed" and failed.error is not None and failed.error.kind == "http"
        assert f"({status})" in failed.error.message
        await echoes(session)


@pytest.mark.requirement("R5-47", "F03")
@pytest.mark.parametrize(("then", "kind"), [("end", "cut"), ("cut", "cut")])
async def test_the_end_of_the_older_stream_is_the_end_of_the_connection(session: Session, then: str, kind: str):
    with raw_web() as peer:
        await connected(session, peer.older())
        held = session.start_call("tools/call", {"name": "hold", "arguments": {}}, by=ME)
        await call_tool(session, "seen", {"what": "held", "count": 1})
        session.start_call("x/get", {"then": then}, by=ME)
        await until(session, lambda: session.info.state == "lost")
        assert session.info.trouble is not None and session.info.trouble.kind == kind
        assert held.state == "failed" and held.error is not None and held.error.kind == "connection"
        assert session.calls.running == []


# --- more than one ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R5-76", "F13")
async def test_two_sessions_with_one_server_share_nothing(registry: SessionRegistry):
    one, two = registry.open(ME), registry.open(ME)
    with raw_web() as peer:
        await connected(one, peer.target(headers={"X-Who": "one"}))
        await connected(two, peer.target(headers={"X-Who": "two"}))
        for _ in range(5):
            await echoes(one)
            await echoes(two)
        await one.disconnect()
        await echoes(two)
        ids: dict[str, set[str]] = {"one": set(), "two": set()}
        for each in peer.requests():
            ids[each.headers["x-who"]].add(each.headers.get("mcp-session-id", ""))
        assert len(ids["one"] - {""}) == len(ids["two"] - {""}) == 1
        assert not (ids["one"] & ids["two"]) - {""}


@pytest.mark.requirement("F16")
async def test_exact_bytes_of_an_answer_are_kept_also_when_they_are_no_mcp(session: Session):
    with raw_web() as peer:
        await connected(session, peer.target())
        page = http("200 OK", {"content-type": "text/html"}, b"<html>hello</html>")
        failed = await call_tool(session, "http", {"base64": page})
        assert failed.error is not None and failed.error.message.startswith("The address answers with a web page")
        assert session.messages.raw(inbound(session)[-1].seq) == b"<html>hello</html>"
        assert inbound(session)[-1].kind == "invalid"
