"""Servers that answer over HTTP in ways nobody here expected: what is taken, what is remarked on, and what is said."""

import gzip
import json
from functools import partial
from typing import Any

import pytest

from app.sessions import Session
from app.settings import Limits
from tests.drive import (
    ME,
    b64,
    call,
    call_tool,
    connect,
    connected,
    echoes,
    findings,
    raws,
    settled,
    until,
)
from tests.drive_http import exchanges, http, raw_web
from tests.drive_modern import modern_web

JSON = {"content-type": "application/json"}
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'


def musts(session: Session) -> list[str]:
    return [each.text for each in findings(session) if each.level == "must"]


def remarks(session: Session) -> list[tuple[str, str]]:
    return [(each.id, each.level) for each in findings(session)]


def steps(session: Session) -> list[str]:
    return [f"{each.code or ''} {each.text}".strip() for each in session.info.steps]


def ready_with(session: Session, number: int) -> bool:
    return session.info.number == number and session.info.state == "ready"


def refusal(status: int, body: str, **headers: str) -> dict[str, Any]:
    return {"status": status, "headers": {**JSON, **headers}, "body": body}


# --- B05, B07: bodies of answers that are no success ------------------------------------------------------------------


@pytest.mark.requirement("B05")
@pytest.mark.parametrize("era", ["auto", "legacy", "modern"])
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, '{"error":"invalid_token","error_description":"Authentication required"}'),
        (403, '{"error":"insufficient_scope"}'),
        (429, '{"error":{"code":429,"message":"slow down"}}'),
        (503, '{"error":"overloaded","message":"later"}'),
        (401, '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Unauthorized"}}'),
        (401, '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"Unauthorized"}}'),
    ],
)
async def test_b05_who_is_refused_at_the_door_is_told_so_once(session: Session, status: int, body: str, era: str):
    with raw_web(http={"POST": refusal(status, body)}) as peer:
        await connect(session, peer.target(), era=era)
        assert session.info.trouble is not None and session.info.trouble.kind == f"http-{status}"
        assert not any("Trying 2025" in each for each in steps(session))
        assert findings(session) == []
        assert len(peer.requests("POST")) == 1, "the first answer says it all"


@pytest.mark.requirement("B05")
async def test_b05_the_body_of_a_refused_call_is_quoted_and_not_judged(session: Session):
    body = '{"error":"invalid_token","error_description":"expired"}'
    with raw_web(http={"tools/call": refusal(401, body)}) as peer:
        await connected(session, peer.target())
        failed = await call_tool(session, "echo")
        assert failed.error is not None and failed.error.kind == "http"
        assert "401 Unauthorized" in failed.error.message and "invalid_token" in failed.error.message
        assert findings(session) == []


@pytest.mark.requirement("B05")
async def test_b05_a_server_that_chokes_on_the_probe_is_still_tried_in_the_older_era(session: Session):
    error = '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal server error"}}'
    for answer in (refusal(500, error), {"status": 500, "body": "Internal Server Error"}):
        with raw_web(http={"server/discover": answer}) as peer:
            await connected(session, peer.target(), era="auto")
            assert session.info.era == "legacy" and findings(session) == []
            await session.disconnect()


@pytest.mark.requirement("B07")
@pytest.mark.parametrize("rpc_id", ["", '"id":null,'])
@pytest.mark.parametrize("status", [400, 403, 404, 500])
async def test_b07_an_error_without_an_id_in_an_http_error_reaches_its_call(session: Session, status: int, rpc_id: str):
    body = f'{{"jsonrpc":"2.0",{rpc_id}"error":{{"code":-32009,"message":"not today","data":{{"a":1}}}}}}'
    with raw_web(session=None, http={"tools/call": refusal(status, body)}) as peer:
        await connected(session, peer.target())
        failed = await call_tool(session, "echo")
        assert failed.error is not None
        assert (failed.error.code, failed.error.message, failed.error.data) == (-32009, "not today", {"a": 1})
        assert failed.error.kind == "rpc" and findings(session) == []
        assert raws(session, "in")[-1] == body.encode()


@pytest.mark.requirement("B07")
async def test_b07_a_refused_notification_may_say_why_without_an_id(session: Session):
    body = '{"jsonrpc":"2.0","error":{"code":-32600,"message":"no such notification"}}'
    with raw_web(http={"notifications/roots/list_changed": refusal(400, body)}) as peer:
        await connected(session, peer.target())
        await session.set_roots([])
        await until(session, lambda: any("no such notification" in each.text for each in findings(session)))
        assert musts(session) == []


@pytest.mark.requirement("B07")
async def test_b07_a_reply_without_an_id_elsewhere_is_still_a_fault(session: Session):
    with raw_web() as peer:
        await connected(session, peer.target())
        body = '{"jsonrpc":"2.0","error":{"code":-32009,"message":"not today"}}'
        await call_tool(session, "say", {"lines": [body], "as": "json"})
        assert any("has no id" in each for each in musts(session))


# --- B08: late replies ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("B08")
async def test_b08_a_reply_after_parley_gave_the_request_up_is_no_second_answer(session: Session):
    with raw_web() as peer:
        await connected(session, peer.target())
        await until(session, lambda: session.info.stream == "open")
        lost = await call_tool(session, "script", {"sse": ": nothing\n\n"})
        assert lost.state == "failed"
        late = json.dumps({"jsonrpc": "2.0", "id": lost.legs[0].rpc_id, "result": {"content": []}})
        await call_tool(session, "get", {"lines": [late]})
        await until(session, lambda: raws(session, "in").count(late.encode()) == 1)
        await echoes(session)
        assert not any("answered before" in each.text for each in findings(session))
        assert "This reply came after the request was given up." in [each.text for each in findings(session)]
        again = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}})
        await call_tool(session, "get", {"lines": [again]})
        await echoes(session)
        assert any("answered before" in each for each in musts(session)), "initialize was answered, really"


@pytest.mark.requirement("B08")
async def test_b08_a_request_that_is_accepted_with_a_body_waits_for_its_reply(session: Session):
    with raw_web(http={"x/accepted": {"status": 202, "headers": JSON, "body": "{}"}}) as peer:
        await connected(session, peer.target())
        await until(session, lambda: session.info.stream == "open")
        waiting = session.start_call("x/accepted", None, by=ME)
        await until(session, lambda: any("(202)" in each.text for each in findings(session)))
        reply = json.dumps({"jsonrpc": "2.0", "id": waiting.legs[0].rpc_id, "result": {"late": True}})
        await call_tool(session, "get", {"lines": [reply]})
        await settled(session, waiting)
        assert waiting.state == "done" and await session.result(waiting) == {"late": True}


# --- B09: replies that cannot be read ---------------------------------------------------------------------------------

UNREADABLE = {
    "deep": b'{"jsonrpc":"2.0","id":$ID,"result":{"a":' + b"[" * 500 + b"1" + b"]" * 500 + b"}}",
    "nan": b'{"jsonrpc":"2.0","id":$ID,"result":{"a":NaN}}',
    "latin-1": '{"jsonrpc":"2.0","id":$ID,"result":{"a":"caf\xe9"}}'.encode("latin-1"),
    "two": (DONE + DONE).encode(),
    "cut": b'{"jsonrpc":"2.0","id":$ID,"result":{"content":[',
}


@pytest.mark.requirement("B09")
@pytest.mark.parametrize("as_", ["json", "event", "last event"])
@pytest.mark.parametrize("name", UNREADABLE)
async def test_b09_a_body_or_event_that_cannot_be_read_fails_its_call_at_once(session: Session, name: str, as_: str):
    body = UNREADABLE[name]
    with raw_web() as peer:
        await connected(session, peer.target())
        if as_ == "json":
            # `x/http` fills the id in, so the length is that of the body with one digit.
            length = len(body.replace(b"$ID", b"1"))
            said = {"base64": http("200 OK", {**JSON, "connection": "close"}, body, length=length)}
            failed = await call_tool(session, "http", said)
        else:
            said = {"base64": b64(b"data: " + body + b"\n\n"), "then": "open" if as_ == "event" else "end"}
            failed = await call_tool(session, "script", said)
        assert failed.state == "failed" and failed.error is not None
        assert failed.error.message.startswith("The reply came and cannot be read: "), failed.error
        assert failed.legs[0].reply_seq is not None, "the call shows the message"
        [about] = [each for each in failed.findings if each.id == "R5-41"]
        assert about.level == ("note" if name == "deep" else "must")
        await echoes(session)


# --- B10, B12: content types, statuses, event types -------------------------------------------------------------------


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("media", ["text/plain", "application/problem+json", ""])
async def test_b10_a_reply_of_the_wrong_type_is_taken_and_remarked_on(session: Session, media: str):
    with raw_web(http={"x/odd": {"headers": {"content-type": media} if media else {}, "body": DONE}}) as peer:
        await connected(session, peer.target())
        done = await call(session, "x/odd")
        assert done.state == "done"
        [remark] = done.findings
        assert (remark.id, remark.level) == ("R5-41", "must")
        found = f"is of the type {media}" if media else "has no content type"
        assert remark.text.startswith(f"This answer {found}; ")


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(("status", "level"), [(201, "note"), (202, "should"), (206, "note"), (203, "note")])
async def test_b10_a_reply_with_another_status_is_taken_and_remarked_on(session: Session, status: int, level: str):
    with raw_web(http={"x/odd": {"status": status, "headers": JSON, "body": DONE}}) as peer:
        await connected(session, peer.target())
        done = await call(session, "x/odd")
        assert done.state == "done"
        assert [(each.id, each.level) for each in done.findings] == [("R5-41", level)]
        assert f"the status {status}" in done.findings[0].text


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("status", [200, 204])
async def test_b10_a_notification_that_is_answered_otherwise_than_202_is_remarked_on(session: Session, status: int):
    with raw_web(http={"notifications/initialized": {"status": status}}) as peer:
        await connected(session, peer.target())
        await echoes(session)
        [remark] = findings(session)
        assert (remark.id, remark.level) == ("R5-41", "must")
        assert (
            remark.text == f"The server answered this notification with {status}; it accepts one with 202 and no body."
        )


@pytest.mark.requirement("B10", "B12")
async def test_b10_b12_only_events_that_carry_messages_are_read(session: Session):
    log = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
    alive = "event: ping\ndata: {}\n\nevent: heartbeat\ndata: 2026-11-17T00:00:00Z\n\nevent: keepalive\ndata: ping\n\n"
    with raw_web(gets=[{"sse": alive}]) as peer:
        await connected(session, peer.target())
        done = await call_tool(session, "script", {"sse": f"{alive}event: log\ndata: {log}\n\n{alive}data: {DONE}\n\n"})
        assert done.state == "done"
        [remark] = findings(session)
        assert (remark.id, remark.level) == ("R5-41", "should") and "`log`" in remark.text
        assert [each.data for each in done.logs] == ["x"], "it is taken all the same"
        assert not any(b"2026-11-17" in each or each in (b"{}", b"ping") for each in raws(session, "in"))


@pytest.mark.requirement("B12")
async def test_b12_keep_alives_of_the_older_transport_are_not_messages(session: Session):
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: ping\ndata: {}\n\n"
    with raw_web(http={"SSE": {"base64": b64(head.encode())}}) as peer:
        await connect(session, peer.older())
        assert session.info.trouble is not None
        assert session.info.trouble.kind == "cut", "not that it does not begin with an endpoint"
    with raw_web() as peer:
        await connected(session, peer.older())
        await call_tool(session, "get", {"sse": "event: ping\ndata: {}\n\n"})
        await echoes(session)
        assert findings(session) == []


# --- B11: forgotten sessions ------------------------------------------------------------------------------------------


@pytest.mark.requirement("B11", "R5-45")
async def test_b11_a_forgotten_session_is_begun_anew(session: Session):
    with raw_web() as peer:
        await connected(session, peer.target(), era="auto")
        await until(session, lambda: session.info.stream == "open")
        held = session.start_call("tools/call", {"name": "hold", "arguments": {}}, by=ME)
        await call_tool(session, "seen", {"what": "held", "count": 1})
        before = session.info
        await call(session, "x/forget")
        asked = await call(session, "ping")
        for each in (asked, held):
            assert each.state == "failed" and each.error is not None and each.error.kind == "connection"
            assert "no longer knows this session (404). It said: “no such session”" in each.error.message
        await until(session, lambda: session.info.state == "ready" and session.tools.state == "ready")
        assert session.info is not before and session.info.number == before.number + 1
        said = "The server no longer knows this session (404). It said: “no such session”. So Parley begins a new one."
        assert steps(session)[0] == said == session.info.renewed
        assert any(each.startswith("initialize") for each in steps(session))
        fresh = [each for each in peer.requests("POST") if b'"initialize"' in each.body]
        assert len(fresh) == 2 and "mcp-session-id" not in fresh[1].headers
        assert len(peer.received("server/discover")) == 1, "the first request of the new session is initialize"
        assert len(peer.received("tools/list")) == 2
        assert len(peer.received("ping")) == 1, "nothing is sent again without being asked to"
        assert peer.requests("DELETE") == [], "there is nothing left to say goodbye to"
        await echoes(session)


@pytest.mark.requirement("B11", "R5-45")
async def test_b11_the_get_stream_notices_a_forgotten_session_too(session: Session):
    with raw_web() as peer:
        await connected(session, peer.target())
        await until(session, lambda: session.info.stream == "open")
        await call_tool(session, "get", {"sse": "retry: 20\n\n"})
        number = session.info.number
        await call(session, "x/forget")
        session.start_call("x/nothing", None, by=ME)
        await until(session, lambda: session.info.number == number + 1 and session.info.state == "ready")
        await echoes(session)


@pytest.mark.requirement("B11")
async def test_b11_a_server_that_forgets_every_session_is_not_asked_for_ever(session: Session):
    with raw_web(http={"ping": {"status": 404, "body": "no such session"}}) as peer:
        await connected(session, peer.target())
        await call(session, "ping")
        await until(session, lambda: session.info.state == "ready" and session.info.renewed)
        await call(session, "ping")
        await until(session, lambda: session.info.state == "lost")
        assert session.info.trouble is not None and session.info.trouble.kind == "session-gone"
        assert session.info.trouble.advice == "Connect again for a new one."
        assert len(peer.received("initialize")) == 2
        await connected(session, peer.target())
        assert session.info.renewed is None


class TestLongLived:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(renewed_session_seconds=0.001)

    @pytest.mark.requirement("B11")
    async def test_b11_a_session_that_lasted_is_begun_anew_again(self, session: Session):
        with raw_web() as peer:
            await connected(session, peer.target())
            for number in (2, 3):
                await echoes(session)
                await call(session, "x/forget")
                await call(session, "ping")
                await until(session, partial(ready_with, session, number))
            assert len(peer.received("initialize")) == 3


@pytest.mark.requirement("B11")
async def test_b11_a_json_rpc_error_to_our_own_id_is_the_answer_also_in_a_404(session: Session):
    body = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"Method not found"}}'
    with raw_web(http={"x/unknown": refusal(404, body)}) as peer:
        await connected(session, peer.target())
        failed = await call(session, "x/unknown")
        assert failed.error is not None and failed.error.code == -32601
        assert session.info.state == "ready" and session.info.number == 1
        await echoes(session)
        assert findings(session) == [] and len(peer.received("initialize")) == 1


@pytest.mark.requirement("B11")
async def test_b11_the_body_of_the_404_is_in_the_log(session: Session):
    body = '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'
    with raw_web(http={"ping": refusal(404, body)}) as peer:
        await connected(session, peer.target())
        await call(session, "ping")
        await until(session, lambda: session.info.renewed is not None)
        assert "It said: “Session not found”" in (session.info.renewed or "")
        assert body.encode() in raws(session, "in") and findings(session) == []


# --- B13: redirects ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("B13")
@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("where", ["/mcp", "mcp?x=1#part", "http://127.0.0.1:$PORT/mcp"])
async def test_b13_a_redirect_within_the_origin_is_followed_once_and_said(
    session: Session, where: str, status: int, era: str
):
    with raw_web(moved={"/old": {"status": status, "location": where}}) as peer:
        await connected(session, peer.target("/old", headers={"X-Kept": "kept"}), era=era)
        await until(session, lambda: session.info.stream == "open")
        await echoes(session)
        await session.disconnect()
        new = where.replace("$PORT", str(peer.port)).partition("#")[0].removeprefix(peer.url("")).lstrip("/")
        said = f"The server redirects ({status}) to {peer.url('/' + new)}, within its origin, so Parley goes there."
        assert steps(session).count(said) == 1
        requests = peer.requests()
        assert [each.path for each in requests] == ["/old"] + [f"/{new}"] * (len(requests) - 1)
        assert {each.headers.get("x-kept") for each in requests} == {"kept"}
        assert requests[0].body == requests[1].body and "DELETE" in [each.method for each in requests]
        assert exchanges(session)[0].note == f"The server redirected here ({status})."
        assert findings(session) == []


@pytest.mark.requirement("B13")
@pytest.mark.parametrize(
    ("status", "location"),
    [
        (301, "/mcp"),
        (302, "/mcp"),
        (303, "/mcp"),
        (307, "http://127.0.0.2:$PORT/mcp"),
        (307, "https://127.0.0.1:$PORT/mcp"),
        (308, "//localhost:$PORT/mcp"),
        (307, "http://u:p@127.0.0.1:$PORT/mcp"),
        (307, "http://[::1/"),
        (307, ""),
        (307, "/old"),
        (307, "/again"),
    ],
)
async def test_b13_every_other_redirect_is_refused_in_words(session: Session, status: int, location: str):
    moved = {"/old": {"status": status, "location": location}, "/again": {"status": 307, "location": "/mcp"}}
    with raw_web(moved=moved) as peer:
        await connect(session, peer.target("/old"))
        assert session.info.state == "lost" and session.info.trouble is not None
        assert session.info.trouble.kind == f"http-{status}"
        assert "and Parley does not follow there." in session.info.trouble.message
        assert session.info.trouble.advice.startswith("Connect to that address, if you trust it.")
        assert "/mcp" not in [each.path for each in peer.requests()]


@pytest.mark.requirement("B13")
async def test_b13_the_older_transport_follows_too(session: Session):
    moved = {"/old": {"status": 307, "location": "/sse"}, "/post": {"status": 307, "location": "/messages"}}
    with raw_web(moved=moved, endpoint="/post?session_id=$KEY") as peer:
        await connected(session, peer.target("/old", "sse"))
        await echoes(session)
        paths = [each.path.partition("?")[0] for each in peer.requests()]
        assert paths[:4] == ["/old", "/sse", "/post", "/messages"] and set(paths[4:]) == {"/messages"}


# --- B15, B18: the GET stream -----------------------------------------------------------------------------------------


@pytest.mark.requirement("B15")
async def test_b15_a_reply_on_the_get_stream_is_a_finding(session: Session):
    with raw_web() as peer:
        await connected(session, peer.target())
        await until(session, lambda: session.info.stream == "open")
        waiting = session.start_call("tools/call", {"name": "hold", "arguments": {}}, by=ME)
        await call_tool(session, "seen", {"what": "held", "count": 1})
        reply = json.dumps({"jsonrpc": "2.0", "id": waiting.legs[0].rpc_id, "result": {"content": []}})
        await call_tool(session, "get", {"lines": [reply]})
        await settled(session, waiting)
        assert waiting.state == "done"
        assert [(each.id, each.level) for each in waiting.findings] == [("R5-42", "must")]


@pytest.mark.requirement("B15", "R5-43")
async def test_b15_a_reply_on_a_stream_that_was_resumed_is_none(session: Session):
    with raw_web() as peer:
        await connected(session, peer.target())
        resume = {"e1": [{"sse": f"data: {DONE}\n\n", "then": "end"}]}
        done = await call_tool(session, "script", {"sse": "id: e1\nretry: 0\ndata:\n\n", "resume": resume})
        assert done.state == "done" and findings(session) == []


@pytest.mark.requirement("B18")
async def test_b18_a_compressed_get_stream_is_refused_in_words(session: Session):
    note = b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n"
    with raw_web(http={"GET": {"base64": b64(head + gzip.compress(note))}}) as peer:
        await connected(session, peer.target())
        words = "not read: it is compressed, though Parley asked for it not to be"
        await until(session, lambda: session.info.stream == words)
        assert "The GET stream is compressed, so nothing that comes on it can be read." in steps(session)
        await echoes(session)
        assert len(peer.requests("GET")) == 1, "asking again would not help"


@pytest.mark.requirement("B18")
async def test_b18_a_compressed_stream_of_the_older_transport_is_refused_in_words(session: Session):
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n"
    endpoint = gzip.compress(b"event: endpoint\ndata: /messages\n\n")
    with raw_web(http={"SSE": {"base64": b64(head + endpoint)}}) as peer:
        await connect(session, peer.older())
        assert session.info.trouble is not None and session.info.trouble.kind == "encoding"


# --- B19: words -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("B19")
async def test_b19_a_stream_that_is_not_found_again_is_no_wrong_path(session: Session):
    with raw_web(session=None) as peer:
        await connected(session, peer.target())
        script = {"sse": "id: z\nretry: 0\n\n", "resume": {"z": [{"status": 404, "body": "gone"}]}}
        failed = await call_tool(session, "script", script)
        assert failed.error is not None
        assert failed.error.message.startswith(
            "The stream ended before the reply came, and the server no longer knows where to resume it (404)."
        )
        assert "/mcp" not in failed.error.message


@pytest.mark.requirement("B19")
async def test_b19_a_server_that_refuses_what_it_says_it_speaks_is_quoted(session: Session, tmp_path: Any):
    error = {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"], "requested": "x"}}
    with modern_web(tmp_path / "record", errors={"tools/call": error}) as peer:
        await connected(session, peer.target, era="modern")
        failed = await call_tool(session, "echo")
        [remark] = [each for each in failed.findings if each.id == "R6-07"]
        assert remark.text == "The server refuses 2026-07-28 (-32022), and names it among the revisions that it speaks."
