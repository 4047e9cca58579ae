"""Faults of an HTTP server, each with what is expected of Parley, under the general oracle of conftest.py."""

import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from typing import Any, Literal

import anyio
import anyio.to_thread
import psutil
import pytest

from app import bounds
from app.core.calls import Call
from app.core.errors import Trouble
from app.core.targets import HttpTarget
from app.sessions import Session, SessionRegistry
from app.settings import MIB, local
from tests.certificates import make
from tests.drive import (
    HANG,
    ME,
    ROOT,
    Felt,
    b64,
    call,
    call_tool,
    connect,
    connected,
    echoes,
    feeling,
    findings,
    flushed,
    inbound,
    raw_target,
    raws,
    settled,
    until,
)
from tests.drive_http import Peer, http, raw_peer

pytestmark = pytest.mark.faults

Way = Literal["json", "sse", "older"]
WAYS: tuple[Way, ...] = ("json", "sse", "older")
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
NOTE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":$N}}'


def reach(peer: Peer, way: Way) -> HttpTarget:
    return peer.older() if way == "older" else peer.target()


def error_of(failed: Call) -> tuple[str, str]:
    assert failed.state == "failed" and failed.error is not None, failed.state
    return failed.error.kind, failed.error.message


# --- F04, F05, F06: what is no message --------------------------------------------------------------------------------

JUNK: list[tuple[bytes, str]] = [
    (b'{"jsonrpc":"2.0","method":"notifi', "Not JSON"),
    (b"42", "the bare value 42"),
    (b"null", "the bare value null"),
    (b'"text"', 'the bare value "text"'),
    (b'[{"jsonrpc":"2.0","method":"notifications/x"}]', "This is a batch"),
    (b'{"method":"notifications/x"}', "`jsonrpc`"),
    (b'{"jsonrpc":"1.0","method":"notifications/x"}', "`jsonrpc`"),
    (b'{"jsonrpc":"2.0","method":"notifications/x","a":1,"a":2}', "stands twice"),
    (b'{"jsonrpc":"2.0"}', "There is no `method`"),
    (b"\xff\xfe\x00\x80", "is not UTF-8"),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"notifications/x"}', "byte order mark"),
    (b"Server listening on stdout!", "Not JSON"),
    (b"[" * 100_000, "nested deeper than"),
    (b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":NaN}}', "NaN"),
]


@pytest.mark.requirement("F04", "F05", "F06")
@pytest.mark.parametrize("way", WAYS)
async def test_f04_what_is_no_message_is_shown_and_the_connection_goes_on(session: Session, oracle: Felt, way: Way):
    async with raw_peer(reply="json" if way == "json" else "sse") as peer:
        await connected(session, reach(peer, way))
        for junk, words in JUNK:
            if way == "json":
                failed = await call_tool(session, "say", {"base64": [b64(junk)], "as": "json"})
                kind, said = error_of(failed)
                unread = session.messages.get(inbound(session)[-1].seq)
                assert unread is not None and kind == "http"
                if unread.problem is None:
                    assert said == "The answer does not contain the reply."
                else:
                    assert said.startswith("The reply came and cannot be read: "), said
            else:
                reply = '{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}'
                number = json.loads(raws(session, "out")[-1])["id"] + 1
                lines = [b64(junk), b64((reply % number).encode())]
                done = await call_tool(session, "say", {"base64": lines})
                assert done.state == "done", (junk, done.error)
            assert junk in raws(session, "in")
            assert any(words in each.text for each in findings(session)), words
        await echoes(session)
        assert session.info.state == "ready"


# --- F08: too much ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("F08")
@pytest.mark.parametrize("shape", ["json", "event"])
async def test_f08_an_answer_of_50_mb_is_refused_and_the_connection_goes_on(session: Session, oracle: Felt, shape: str):
    async with raw_peer() as peer:
        await connected(session, peer.target())
        held = session.start_call("tools/call", {"name": "hold", "arguments": {"mark": 1}}, by=ME)
        await call_tool(session, "seen", {"what": "held", "count": 1})
        began = anyio.current_time()
        refused = await call_tool(session, "huge", {"bytes": 50 * MIB, "as": shape})
        took = anyio.current_time() - began
        print(f"\n  50 MiB as {shape}: refused after {took:.3f} s")
        assert error_of(refused)[1] == "The answer is larger than 8 MiB, so it was not read. Ask for less at a time."
        assert took < 30
        shown = inbound(session)[-1]
        assert 8 * MIB < shown.size < 9 * MIB and shown.kind == "invalid"
        kept = session.messages.raw(shown.seq) or b""
        assert kept.startswith(b'{"jsonrpc":"2.0","id":') and len(kept) == 4096
        await echoes(session)
        await call_tool(session, "release")
        await settled(session, held)
        assert held.state == "done"


@pytest.mark.requirement("F08")
async def test_f08_an_event_of_50_mb_on_the_get_stream_does_not_come_again_and_again(
    session: Session, oracle: Felt, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bounds, "RETRY_SECONDS", 0.05)
    async with raw_peer() as peer:
        await connected(session, peer.target())
        await call_tool(session, "get", {"sse": "id: before\nretry: 0\n\n", "huge": 50 * MIB})
        await until(session, lambda: inbound(session)[-1].size > 8 * MIB or inbound(session)[-2].size > 8 * MIB)
        await call_tool(session, "seen", {"what": "GET", "count": 2})
        assert "last-event-id" not in peer.requests("GET")[-1].headers
        assert (await call_tool(session, "ask", {"on": "get"})).state == "done"


@pytest.mark.requirement("F08")
async def test_f08_an_event_of_50_mb_ends_the_older_transport_with_a_reason(session: Session, oracle: Felt):
    async with raw_peer() as peer:
        await connected(session, peer.older())
        asked = await call_tool(session, "huge", {"bytes": 50 * MIB, "as": "event"})
        assert asked.state == "failed"
        await until(session, lambda: session.info.state == "lost")
        assert session.info.trouble is not None
        assert session.info.trouble.message == (
            "The server sent a message of more than 8 MiB, so the connection was closed."
        )


@pytest.mark.requirement("F08")
@pytest.mark.parametrize("way", WAYS)
async def test_f08_a_message_just_below_the_limit_is_taken(session: Session, bystander: Session, way: Way):
    """The stall is only printed: what is promised of it ends at 1 MB."""
    async with raw_peer() as peer:
        await connected(session, reach(peer, way))
        size = 8 * MIB
        async with feeling(bystander) as felt:
            done = await call_tool(session, "huge", {"bytes": size, "as": "json" if way == "json" else "event"})
        print(f"\n  8 MiB as {way}: {felt}")
        assert done.state == "done", done.error
        assert inbound(session)[-1].size == size


@pytest.mark.requirement("F08", "R5-29")
async def test_f08_a_result_of_many_faulty_parts_is_judged_by_its_beginning(session: Session, oracle: Felt):
    """Judging all 60,000 would hold the interpreter for seconds, in whatever thread; the oracle would see it."""
    async with raw_peer() as peer:
        await connected(session, peer.target())
        done = await call_tool(session, "list", {"count": 60_000, "faulty": True})
        assert done.state == "done"
        [finding] = done.findings
        assert finding.id == "R5-29" and "`content/0" in finding.text
        await echoes(session)


# --- F09: a flood -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("F09")
@pytest.mark.parametrize(("way", "on"), [("sse", "post"), ("sse", "get"), ("older", "get")])
async def test_f09_ten_thousand_notifications_are_all_counted(session: Session, oracle: Felt, way: Way, on: str):
    async with raw_peer() as peer:
        await connected(session, reach(peer, way))
        before = session.messages.inbound
        began = anyio.current_time()
        done = await call_tool(session, "flood", {"count": 10_000, "line": NOTE, "on": on})
        assert done.state == "done", done.error
        await until(session, lambda: session.messages.inbound == before + 10_001)
        print(f"\n  10,000 notifications over {way}, {on}: {anyio.current_time() - began:.2f} s")
        notes = [json.loads(each)["params"]["data"] for each in raws(session, "in") if b"notifications/message" in each]
        assert notes == list(range(10_000)), "in order, none lost"
        assert len(done.logs) <= 200
        await echoes(session)


# --- F12, F13: ids ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("F12")
@pytest.mark.parametrize("way", ["sse", "older"])
async def test_f12_replies_that_nobody_waits_for_are_recorded_and_ignored(session: Session, oracle: Felt, way: Way):
    unknown = '{"jsonrpc":"2.0","id":4711,"result":{}}'
    async with raw_peer(reply="sse") as peer:
        await connected(session, reach(peer, way))
        done = await call_tool(session, "say", {"lines": [unknown, DONE, DONE]})
        assert done.state == "done"
        await flushed(session)
        texts = [each.text for each in findings(session)]
        assert "No request of ours has the id 4711." in texts
        assert "This request was answered before; a request has one reply." in texts
        await echoes(session)


@pytest.mark.requirement("F12")
async def test_f12_a_reply_to_somebody_else_on_our_own_post_settles_that_call(session: Session, oracle: Felt):
    """Two calls, each answered on the stream of the other: ids count, not streams."""
    async with raw_peer() as peer:
        await connected(session, peer.target())
        number = json.loads(raws(session, "out")[-1])["id"]
        reply = '{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"{}"}}]}}}}'
        held = session.start_call("tools/call", {"name": "hold", "arguments": {}}, by=ME)
        await until(session, lambda: held.legs)
        asked = await call_tool(session, "say", {"lines": [reply.format(number + 1, "crossed"), DONE]})
        await settled(session, held)
        assert (held.state, asked.state) == ("done", "done")
        assert (await session.result(held))["content"][0]["text"] == "crossed"


@pytest.mark.requirement("F13")
@pytest.mark.parametrize("way", ["sse", "older"])
async def test_f13_a_server_that_reuses_its_ids_gets_every_answer_and_nobody_else_does(
    session: Session, registry: SessionRegistry, oracle: Felt, way: Way
):
    question = '{"jsonrpc":"2.0","id":"same","method":"ping"}'
    async with raw_peer(reply="sse") as peer:
        other = registry.open(ME)
        await connected(session, reach(peer, way))
        await connected(other, reach(peer, way))
        for one in (session, other):
            done = await call_tool(one, "say", {"lines": [question, question, DONE]})
            assert done.state == "done"
            await until(one, lambda one=one: sum(b'"same"' in each for each in raws(one, "out")) == 2)  # type: ignore[misc]
        await registry.close(other)


# --- F15: slow --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("F15", "R5-24")
@pytest.mark.parametrize("head", [False, True])
async def test_f15_a_byte_now_and_then_is_cancelled_at_once(
    session: Session, oracle: Felt, monkeypatch: pytest.MonkeyPatch, head: bool
):
    monkeypatch.setattr(bounds, "LINGER_SECONDS", 0.1)
    async with raw_peer() as peer:
        await connected(session, peer.target())
        dripping = session.start_call("tools/call", {"name": "drip", "arguments": {"every": 0.05, "head": head}}, by=ME)
        await call_tool(session, "seen", {"what": "tools/call", "count": 2})
        began = anyio.current_time()
        session.cancel_call(dripping.id)
        await settled(session, dripping)
        assert dripping.state == "cancelled" and anyio.current_time() - began < 1
        gone = await call_tool(session, "seen", {"what": "gone", "count": 1})
        assert await session.result(gone) == {"count": 1}, "the socket is closed too"
        await echoes(session)


@pytest.mark.requirement("F15", "F02")
@pytest.mark.parametrize("what", ["initialize", "SSE"])
async def test_f15_a_server_that_never_answers_the_handshake_is_left_at_once(session: Session, oracle: Felt, what: str):
    async with raw_peer(delay={what: 60}) as peer:
        from app.core.options import Options

        session.connect(reach(peer, "older" if what == "SSE" else "json"), Options(), by=ME)
        await until(session, lambda: session.info.transport is not None)
        assert session.info.state == "connecting" and session.info.deadline_at is not None
        with anyio.fail_after(HANG):
            await session.disconnect()
        assert str(session.info.state) == "closed"


@pytest.mark.requirement("F15")
async def test_f15_calls_that_take_long_do_not_keep_others_waiting(session: Session, oracle: Felt):
    async with raw_peer(delay={"x/never": 30}) as peer:
        await connected(session, peer.target())
        slow = [session.start_call("x/never", None, by=ME) for _ in range(30)]
        for _ in range(10):
            await echoes(session)
        assert {each.state for each in slow} == {"running"}
        await session.disconnect()
        assert {each.state for each in slow} == {"failed"}


# --- F16: refusals, each in its own words -----------------------------------------------------------------------------

REFUSALS: list[tuple[dict[str, Any], str, str]] = [
    (
        {"status": 401, "headers": {"www-authenticate": "Bearer"}},
        "http-401",
        "401 Unauthorized: credentials needed.",
    ),
    ({"status": 403, "body": "no"}, "http-403", "The server refuses this client (403). It said: “no”"),
    (
        {"status": 429, "headers": {"retry-after": "9"}},
        "http-429",
        "The server says there were too many requests (429).",
    ),
    ({"status": 500}, "http-500", "The server failed (500)."),
    (
        {"status": 502, "headers": {"content-type": "text/html"}, "body": "<html>"},
        "http-502",
        "The server failed (502).",
    ),
    (
        {"status": 302, "headers": {"location": "http://169.254.169.254/"}},
        "http-302",
        "The server redirects (302) to http://169.254.169.254/, and Parley does not follow there.",
    ),
    (
        {"headers": {"content-type": "text/html"}, "body": "<html>hello</html>"},
        "html",
        "The address answers with a web page, not with MCP.",
    ),
    (
        {"headers": {"content-type": "text/plain"}, "body": "hello"},
        "content-type",
        "The answer is of the type text/plain; MCP answers are application/json or text/event-stream.",
    ),
    (
        {},
        "content-type",
        "The answer has no content type; MCP answers are application/json or text/event-stream.",
    ),
    (
        {"headers": {"content-type": "application/json", "content-encoding": "gzip"}, "body": "x"},
        "encoding",
        "The answer is compressed, though Parley asked for it not to be.",
    ),
    (
        {"base64": b64(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")},
        "http",
        "This is not HTTP: illegal status line: bytearray(b'SSH-2.0-OpenSSH_9.2').",
    ),
    (
        {"base64": ""},
        "cut",
        "The server closed the connection in the middle: Server disconnected without sending a response.",
    ),
    (
        {"base64": http("200 OK", {"content-type": "application/json"}, b'{"jsonrpc"', length=100)},
        "cut",
        "The server closed the connection in the middle: peer closed connection without sending complete message body "
        "(received 10 bytes, expected 100).",
    ),
]


@pytest.mark.requirement("F16")
@pytest.mark.parametrize(
    ("answer", "kind", "message"), REFUSALS, ids=[f"{each[1]}-{at}" for at, each in enumerate(REFUSALS)]
)
async def test_f16_each_refusal_has_its_own_sentence(
    session: Session, oracle: Felt, answer: dict[str, Any], kind: str, message: str
):
    async with raw_peer(http={"initialize": answer}) as peer:
        await connect(session, peer.target())
        assert session.info.state == "lost"
        trouble = session.info.trouble
        assert trouble is not None
        assert (trouble.kind, trouble.message) == (kind, message)
    async with raw_peer(http={"ping": answer}) as peer:
        await connected(session, peer.target())
        kind, words = error_of(await call(session, "ping"))
        assert kind == "http" and words.startswith(message)
        if "retry-after" in answer.get("headers", {}):
            assert words.endswith("Try again in 9 s.")
        await echoes(session)


@pytest.mark.requirement("F16")
async def test_f16_headers_without_end_are_not_read_to_their_end(session: Session, oracle: Felt):
    async with raw_peer() as peer:
        await connected(session, peer.target())
        words = error_of(await call_tool(session, "headers"))[1]
        assert words.startswith("This is not HTTP: Receive buffer too long.")
        await echoes(session)


@pytest.mark.requirement("F16")
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_f16_nobody_there(session: Session, oracle: Felt, transport: Any):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    await connect(session, HttpTarget(transport=transport, url=f"http://127.0.0.1:{port}/mcp"))
    assert session.info.trouble == Trouble(
        "refused",
        f"The connection was refused: nothing listens at 127.0.0.1 port {port}.",
        "Start the server, or correct the port.",
    )


@pytest.mark.requirement("F16")
async def test_f16_no_such_name(session: Session, oracle: Felt, monkeypatch: pytest.MonkeyPatch):
    async def unknown(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(anyio, "getaddrinfo", unknown)
    await connect(session, HttpTarget(transport="http", url="http://no-such-host.example/mcp"))
    assert session.info.trouble == Trouble(
        "dns",
        "The address was not found: the name no-such-host.example cannot be resolved (Name or service not known).",
        "Check the host name, and your network.",
    )


@pytest.mark.requirement("F16", "S22")
async def test_f16_parley_itself_is_no_target(session: Session, registry: SessionRegistry, oracle: Felt):
    port = registry.settings.port
    for host in ("127.0.0.1", "localhost", "127.1", "[::1]"):
        await connect(session, HttpTarget(transport="http", url=f"http://{host}:{port}/mcp"))
        assert session.info.trouble is not None and session.info.trouble.kind == "policy"
        assert session.info.trouble.message.endswith("is this Parley itself.")


@pytest.mark.requirement("F16", "R5-75")
@pytest.mark.parametrize(
    "url", ["http://user:secret@127.0.0.1/", "http://127.0.0.1:99999/", "http://127.0.0.1/ü", "http://"]
)
async def test_f16_an_address_that_is_none(session: Session, oracle: Felt, url: str):
    await connect(session, HttpTarget(transport="http", url=url))
    assert session.info.trouble is not None
    assert session.info.trouble.kind == "bad-url" and session.info.trouble.message.startswith(
        "This cannot be dialled: "
    )
    assert "secret" not in session.info.trouble.message


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A certificate that nobody has signed but itself, for 127.0.0.1."""
    return make().files(tmp_path_factory.mktemp("tls"))


@pytest.mark.requirement("F16")
async def test_f16_a_certificate_that_nobody_trusts(session: Session, oracle: Felt, certificate: list[str]):
    async with raw_peer(tls=certificate) as peer:
        url = f"https://127.0.0.1:{peer.port}/mcp"
        await connect(session, HttpTarget(transport="http", url=url))
        trouble = session.info.trouble
        assert trouble is not None and (trouble.kind, trouble.message) == (
            "tls",
            f"No secure connection to {url}: self-signed certificate.",
        )


@pytest.mark.requirement("F16")
async def test_f16_https_where_only_http_is_spoken_and_the_other_way_round(
    session: Session, oracle: Felt, certificate: list[str]
):
    async with raw_peer() as peer:
        await connect(session, HttpTarget(transport="http", url=f"https://127.0.0.1:{peer.port}/mcp"))
        assert session.info.trouble is not None and session.info.trouble.kind in ("tls", "cut", "unreachable")
    async with raw_peer(tls=certificate) as peer:
        await connect(session, peer.target())
        assert session.info.trouble.kind in ("http", "cut")


# --- F17: a server that comes and goes --------------------------------------------------------------------------------


@pytest.mark.requirement("F17", "F03")
async def test_f17_a_server_that_dies_fails_its_calls_and_the_stream_says_so(session: Session, oracle: Felt):
    async with raw_peer() as peer:
        await connected(session, peer.target())
        await until(session, lambda: session.info.stream == "open")
        held = session.start_call("tools/call", {"name": "hold", "arguments": {}}, by=ME)
        await call_tool(session, "seen", {"what": "held", "count": 1})
        asked = await call_tool(session, "exit")
        await settled(session, held)
        assert error_of(asked)[1].startswith("The server closed the connection in the middle: ")
        assert error_of(held)[1].startswith("The server closed the connection in the middle: ")
        await until(session, lambda: str(session.info.stream).startswith("down"))
        failed = await call(session, "ping")
        assert error_of(failed)[1].startswith("The connection was refused: nothing listens at 127.0.0.1 port")
        assert session.calls.running == []


# --- F24: Parley is killed --------------------------------------------------------------------------------------------

DRIVER = """
import sys, anyio
from app.sessions import Identity, SessionRegistry
from app.core.options import Options
from app.core.targets import StdioTarget
from app.settings import local

async def main():
    async with SessionRegistry(local()) as registry:
        me = Identity("local", "you")
        session = registry.open(me)
        session.connect(StdioTarget(command=sys.argv[1], args=tuple(sys.argv[2:])), Options(), by=me)
        await session.wait_connection(30)
        print(session.info.state, session.info.pid, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.requirement("F24")
async def test_f24_a_killed_parley_leaves_no_child_behind():
    def killed() -> int:
        target = raw_target()
        argv = [sys.executable, "-c", DRIVER, target.command, *target.args]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=ROOT) as driver:
            assert driver.stdout is not None
            state, pid = driver.stdout.readline().split()
            assert state == b"ready"
            os.kill(driver.pid, signal.SIGKILL)
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(int(pid)).wait(HANG)
        return int(pid)

    pid = await anyio.to_thread.run_sync(killed)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


# --- F27: the clock jumps ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("F27")
@pytest.mark.parametrize("jump", [3600.0, -3600.0])
async def test_f27_time_limits_do_not_care_for_the_wall_clock(jump: float, monkeypatch: pytest.MonkeyPatch):
    real, shift = time.time, 0.0
    monkeypatch.setattr(time, "time", lambda: real() + shift)
    async with raw_peer() as peer, SessionRegistry(local(), wall=lambda: real() + shift) as registry:
        session = registry.open(ME)
        await connected(session, peer.target())
        slow = session.start_call("x/slow", {"seconds": 0.3}, by=ME, timeout_ms=20_000)
        given_up = session.start_call("x/slow", {"seconds": 30}, by=ME, timeout_ms=300)
        await until(session, lambda: slow.legs and given_up.legs)
        shift = jump
        await settled(session, slow, given_up)
        assert slow.state == "done" and slow.duration_ms is not None and 200 < slow.duration_ms < 20_000
        assert error_of(given_up) == ("timeout", "No answer within 0.3 s.")
        exchange = session.messages.exchange(slow.legs[0].request_seq or 0)
        assert exchange is not None and exchange.answered_ms is not None and 200 < exchange.answered_ms < 20_000
        await echoes(session)
        assert registry.find(ME, session.id) is session, "nobody is idle because the clock says so"


# --- acceptance: the others hear nothing of it ------------------------------------------------------------------------


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


@pytest.mark.slow
@pytest.mark.requirement("F07", "F08", "F09", "F15")
@pytest.mark.timeout(180)
async def test_a_second_session_s_echo_stays_within_twice_its_quiet_p95(registry: SessionRegistry):
    """The figure is printed; the guard is ten times what is promised, for a machine that has other things to do."""
    loud, deaf, calm = registry.open(ME), registry.open(ME), registry.open(ME)
    async with raw_peer() as peer:
        await connected(calm, raw_target())
        await connected(loud, peer.target())

        async def measured(count: int) -> list[float]:
            times = []
            for _ in range(count):
                began = anyio.current_time()
                await echoes(calm)
                times.append(anyio.current_time() - began)
            return times

        async def noise(over: anyio.Event) -> None:
            """30 POSTs that take 30 s, then 50 MB bodies, events and lines, and floods, over and over."""
            await call(loud, "x/set", {"settings": {"delay": {"x/never": 30}}})
            for _ in range(30):
                loud.start_call("x/never", None, by=ME)
            while not over.is_set():
                await call_tool(loud, "huge", {"bytes": 50 * MIB})
                await call_tool(loud, "flood", {"count": 10_000, "line": NOTE})
                await connect(deaf, raw_target())
                await call_tool(deaf, "huge", {"bytes": 50 * MIB})
                await call_tool(loud, "huge", {"bytes": 50 * MIB, "as": "event"})
                rounds.append(1)

        rounds: list[int] = []
        await measured(50)
        quiet = await measured(500)
        over = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(noise, over)
            noisy: list[float] = []
            with anyio.fail_after(120):
                while len(noisy) < 200 or not rounds:
                    noisy += await measured(20)
            over.set()
        await loud.disconnect()
        assert loud.calls.running == []
        quiet += await measured(500)
    ratio = p95(noisy) / p95(quiet)
    print(
        f"\n  echo of a bystander: quiet p95 {p95(quiet) * 1000:.1f} ms, beside the noise {p95(noisy) * 1000:.1f} ms"
        f" (x{ratio:.2f}; {len(noisy)} calls, {len(rounds)} rounds of noise, slowest {max(noisy) * 1000:.0f} ms)"
    )
    assert p95(noisy) < 20 * max(p95(quiet), 0.005)
    for each in (loud, deaf, calm):
        await registry.close(each)
