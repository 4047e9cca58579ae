"""Frames that nobody foresaw: whatever arrives, the connection shows it, and lives or ends with a reason.

A persistent peer over each transport writes what Hypothesis thinks of, one connection after the other; the checks are
the same for every example. Nothing raises out of the session, and no call stays running once the link has ended.
"""

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.core.options import Options
from app.sessions import Session, SessionRegistry
from app.settings import local
from tests.drive import HANG, ME, b64, call_tool, connected, echoes, inbound, raw_target, raws, settled, until
from tests.drive_http import Peer, http, raw_peer

pytestmark = [pytest.mark.faults, pytest.mark.requirement("F04", "F05", "F06", "F12")]

FUZZ = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.differing_executors],
)

# --- what may be on a line --------------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
methods = st.sampled_from(
    [
        "ping", "roots/list", "sampling/createMessage", "elicitation/create", "tasks/get", "x", "", "initialize",
        "notifications/progress", "notifications/cancelled", "notifications/message",
        "notifications/tools/list_changed",
    ]
)  # fmt: skip
ids: st.SearchStrategy[Any] = st.sampled_from([1, 2, 3, "1", "", None, True, 1.0, 1.5, -1, 10**30, [], {}]) | values
params = (
    values
    | st.fixed_dictionaries({"progressToken": ids, "progress": values})
    | st.fixed_dictionaries({"requestId": ids})
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2, None]),
        "id": ids,
        "method": methods | values,
        "params": params,
        "result": values,
        "error": values | st.fixed_dictionaries({"code": values, "message": values}),
    },
)
texts = st.one_of(
    messages.map(lambda value: json.dumps(value).encode()),
    st.lists(messages, max_size=3).map(lambda value: json.dumps(value).encode()),
    values.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=60),
    st.sampled_from(
        [
            b"", b" ", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf{}", b"NaN", b"[" * 3000, b'{"a":' * 3000, b"1e999", b"-",
            b'{"jsonrpc":"2.0","id":1,"result":{"a":"\\ud800"}}', b'{"jsonrpc":"2.0","method":"\\ud800"}',
        ]
    ),
)  # fmt: skip
frames = st.lists(texts, min_size=1, max_size=8)


def broken(frame: bytes, at: int) -> bytes:
    return frame[: at % (len(frame) + 1)]


# --- the live connections ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
async def registry() -> AsyncIterator[SessionRegistry]:
    async with SessionRegistry(local()) as opened:
        yield opened


@pytest.fixture(scope="module")
async def peer() -> AsyncIterator[Peer]:
    async with raw_peer(session=None) as started:
        yield started


@pytest.fixture(scope="module")
async def lines(registry: SessionRegistry) -> Session:
    """A session over stdio that stays for all examples, as long as it can."""
    session = registry.open(ME)
    await connected(session, raw_target())
    return session


@pytest.fixture(scope="module")
async def streams(registry: SessionRegistry, peer: Peer) -> Session:
    session = registry.open(ME)
    await connected(session, peer.target())
    return session


async def alive(session: Session, target: Any) -> None:
    """The connection works; if it had to end, it says why, and the next one works."""
    if session.info.state != "ready":
        assert session.info.state == "lost" and session.info.trouble is not None
        assert session.info.trouble.kind != "internal", "Parley itself failed"
        assert session.info.trouble.message
        assert session.calls.running == []
        await connected(session, target)
    if (await call_tool(session, "echo")).state != "done":
        await echoes(session)  # the peer closes a socket after its answer, and the next call may have met that


@pytest.fixture
def complaints(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.ERROR)
    return caplog


@FUZZ
@given(frames)
@example([b'{"jsonrpc":"2.0","id":true,"result":{}}', b'{"jsonrpc":"2.0","id":null,"method":"ping"}'])
@example([b'{"jsonrpc":"2.0","id":[],"method":"ping"}', b'{"jsonrpc":"2.0","id":{},"error":{}}'])
async def test_whatever_a_stdio_server_writes(lines: Session, complaints: pytest.LogCaptureFixture, sent: list[bytes]):
    sent = [each.replace(b"\n", b" ") for each in sent]
    before = lines.messages.inbound
    with anyio.fail_after(HANG):
        asked = lines.start_call(
            "tools/call", {"name": "say", "arguments": {"base64": b64(b"\n".join(sent) + b"\n")}}, by=ME
        )
        await until(lines, lambda: lines.messages.inbound >= before + len(sent) or lines.info.state != "ready")
        if not asked.settled:
            lines.cancel_call(asked.id)
        await alive(lines, raw_target())
    assert [each for each in sent if each not in raws(lines, "in")] == [], "every line is in the log, byte for byte"
    assert complaints.records == [], "nothing failed inside"


@FUZZ
@given(frames, st.sampled_from(["json", "event"]))
async def test_whatever_an_http_server_writes_in_its_answer(
    streams: Session, peer: Peer, complaints: pytest.LogCaptureFixture, sent: list[bytes], shape: str
):
    sent = [each.replace(b"\r", b" ").replace(b"\n", b" ") for each in sent]
    if shape == "json":
        sent = sent[:1]
    with anyio.fail_after(HANG):
        params = {"name": "say", "arguments": {"base64": [b64(each) for each in sent], "as": shape}}
        asked = streams.start_call("tools/call", params, by=ME)
        await settled(streams, asked)
        await alive(streams, peer.target())
    assert asked.state in ("done", "failed")
    assert [each for each in sent if each and each not in raws(streams, "in")] == []
    assert complaints.records == []


bodies = st.builds(
    lambda status, kind, encoding, body, length: http(
        status, {"content-type": kind, **encoding}, body, length=len(body) + length
    ),
    st.sampled_from(
        ["200 OK", "202 Accepted", "204 No", "206 P", "400 B", "404 N", "418 T", "500 E", "599 X", "301 M"]
    ),
    st.sampled_from(
        ["application/json", "text/event-stream", "text/html", "", "APPLICATION/JSON; charset=utf-8", "\xe9"]
    ),
    st.sampled_from([{}, {"content-encoding": "gzip"}, {"content-encoding": "identity"}, {"retry-after": "x"}]),
    texts | st.sampled_from([b"data: {}\n\n", b"id: \xff\n\n", b"id: 1\nretry: 0\ndata: x\n\n", b": \n" * 50]),
    st.sampled_from([0, 0, 0, 10]),
)
rubbish = st.one_of(
    st.binary(max_size=80).map(b64),
    st.sampled_from(
        [
            b"HTTP/1.1",
            b"HTTP/1.1 200",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 99 x\r\n\r\n",
            b"HTTP/2 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
            b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n" * 20,
            b"HTTP/1.1 101 Switching\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nx: \xff\xfe\r\ncontent-type: \x01\r\n\r\n",
        ]
    ).map(b64),
)


@FUZZ
@given(bodies | rubbish)
async def test_whatever_an_http_server_answers(
    streams: Session, peer: Peer, complaints: pytest.LogCaptureFixture, answer: str
):
    with anyio.fail_after(HANG):
        asked = await call_tool(streams, "http", {"base64": answer}, timeout_ms=300)
        await alive(streams, peer.target())
    assert asked.state in ("done", "failed")
    if asked.state == "failed":
        assert asked.error is not None and (asked.error.message or asked.error.kind == "rpc")
    assert complaints.records == []


@settings(FUZZ, max_examples=25)
@given(texts, st.integers(0, 200))
async def test_whatever_answers_the_handshake(
    registry: SessionRegistry, complaints: pytest.LogCaptureFixture, frame: bytes, at: int
):
    """A connection that cannot begin is lost with a sentence; it neither hangs nor fails inside."""
    sent = [broken(frame, at).replace(b"\n", b" "), frame.replace(b"\n", b" ")]
    session = registry.open(ME)
    with anyio.fail_after(HANG):
        target = raw_target("plain", first=[b64(each + b"\n") for each in sent], silent=["initialize"])
        session.connect(target, Options(), by=ME)
        await until(session, lambda: len(inbound(session)) >= len(sent) or session.info.state != "connecting")
        await registry.close(session)
    assert session.info.state in ("closed", "lost") and session.calls.running == []
    assert complaints.records == []
