"""Faults of the SDK's own client transports: each is shown to be there, and not to be ours.

Every test has two halves over the same raw server. The first drives the client of mcp 2.3 as its documentation says,
and sees it fail; when that half begins to fail, the SDK has become better, and a reason to have a transport of our own
is gone. The second half does the same with a session of Parley.
"""

import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from app.sessions import Session
from app.settings import MIB
from tests.drive import HANG, SERVERS, b64, call, call_tool, connected, echoes, feeling, findings, inbound, raw_target
from tests.drive_http import Peer, http, raw_web

pytestmark = [
    pytest.mark.faults,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SOON = 1.5
"""Long enough for an answer that comes at all; the SDK's callers would wait for ever."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The SDK writes a traceback for each fault that these tests provoke."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@asynccontextmanager
async def sdk(peer: Peer, older: bool = False) -> AsyncIterator[ClientSession]:
    """The SDK's own client."""
    transport = sse_client(peer.url("/sse")) if older else streamable_http_client(peer.url())
    async with transport as streams, ClientSession(*streams) as client:
        with anyio.fail_after(60):
            await client.initialize()
        yield client


@contextmanager
def falls_apart() -> Iterator[None]:
    """A block that may end in whatever the SDK raises when its transport is gone."""
    try:
        yield
    except AssertionError:
        raise
    except (Exception, ExceptionGroup) as fault:
        assert not _asserts(fault), fault


def _asserts(fault: BaseException) -> bool:
    if isinstance(fault, BaseExceptionGroup):
        return any(_asserts(each) for each in fault.exceptions)
    return isinstance(fault, AssertionError | TimeoutError)


async def unanswered(ask: Callable[[], Any]) -> bool:
    """Whether nobody answers, in any way, within a short while."""
    with anyio.move_on_after(SOON):
        try:
            await ask()
        except Exception:
            return False
        return False
    return True


async def works(client: ClientSession, within: float = SOON) -> bool:
    with anyio.move_on_after(within):
        try:
            await client.send_ping()
        except Exception:
            return False
        return True
    return False


# --- §5, 1 and 2: one failed POST, and everything is gone -------------------------------------------------------------

BROKEN = {
    "no answer at all": {"base64": ""},
    "a cut JSON body": {
        "base64": http("200 OK", {"content-type": "application/json"}, b'{"jsonrpc":"2.0","id":', length=500)
    },
}


@pytest.mark.requirement("F16", "F17", "R5-41")
@pytest.mark.parametrize("what", BROKEN)
async def test_a_failed_post_harms_only_its_own_call(session: Session, what: str):
    with raw_web(http={"tools/call": BROKEN[what]}) as peer:
        began = alive = False
        with falls_apart():
            async with sdk(peer) as client:
                began = await works(client, HANG)
                with anyio.move_on_after(SOON), falls_apart():
                    await client.call_tool("echo", {"message": "x"})
                alive = await works(client)
        assert began and not alive, "the SDK's transport survived: see the module's docstring"

        await connected(session, peer.target())
        failed = await call_tool(session, "echo")
        assert failed.state == "failed" and failed.error is not None
        assert failed.error.message.startswith("The server closed the connection in the middle: ")
        assert (await call(session, "ping")).state == "done"


# --- §5, 3: a slow notification delays everybody ----------------------------------------------------------------------


@pytest.mark.requirement("F15", "R5-41")
async def test_a_slow_notification_delays_nobody(session: Session):
    slow = "notifications/roots/list_changed"
    import mcp_types as t

    with raw_web(delay={slow: 1.0}) as peer:
        async with sdk(peer) as client:
            began = anyio.current_time()
            async with anyio.create_task_group() as group:
                group.start_soon(client.send_notification, t.RootsListChangedNotification())
                group.start_soon(client.send_ping)
            theirs = anyio.current_time() - began
        assert theirs > 0.9, "the SDK no longer sends notifications one after the other"

        await connected(session, peer.target())
        await session.set_roots([])
        began = anyio.current_time()
        await call(session, "ping")
        ours = anyio.current_time() - began
        print(f"\n  a ping beside a notification that takes 1 s: SDK {theirs:.3f} s, Parley {ours:.3f} s")
        assert ours < 0.9
        assert await session.result(await call_tool(session, "seen", {"what": slow, "count": 2})) == {"count": 2}


# --- §5, 4: a 500 on a POST of the older transport --------------------------------------------------------------------


@pytest.mark.requirement("F16", "R5-47")
async def test_a_failing_post_of_the_older_transport_leaves_nobody_waiting(session: Session):
    with raw_web(http={"tools/call": {"status": 500, "body": "oops"}}) as peer:
        hung = False
        with falls_apart():
            async with sdk(peer, older=True) as client:
                hung = await unanswered(lambda: client.call_tool("echo", {"message": "x"}))
        assert hung, "the SDK's caller was told: see the module's docstring"

        await connected(session, peer.older())
        failed = await call_tool(session, "echo")
        assert failed.error is not None
        assert failed.error.message == "The server failed (500). It said: “oops” Look at the server's log."
        assert (await call(session, "ping")).state == "done"


# --- §5, 5: the GET stream is given up --------------------------------------------------------------------------------


@pytest.mark.requirement("F17", "R5-42")
async def test_the_get_stream_is_never_given_up(session: Session):
    ends: list[dict[str, Any]] = [{"sse": "retry: 20\n\n", "then": "cut"}] * 6
    with raw_web(gets=[*ends]) as peer:
        async with sdk(peer) as client:
            for _ in range(10):
                await client.send_ping()
            missing = await unanswered(lambda: client.call_tool("seen", {"what": "GET", "count": 7}))
            asked = len(peer.requests("GET"))
        assert missing and asked <= 3, "the SDK comes back more often than it did"

    with raw_web(gets=[*ends]) as peer:
        await connected(session, peer.target())
        assert (await call_tool(session, "seen", {"what": "GET", "count": 7})).state == "done"
        assert (await call_tool(session, "ask", {"on": "get"})).state == "done"
        ours = len(peer.requests("GET"))
        print(f"\n  GET streams that were cut at once: the SDK asked {asked} times, Parley {ours} times")


# --- §7: what is read, and how much of it -----------------------------------------------------------------------------


@pytest.mark.requirement("F08")
async def test_a_body_without_end_is_not_read_to_its_end(session: Session):
    size = 24 * MIB
    with raw_web() as peer:
        async with sdk(peer) as client, feeling() as theirs:
            with anyio.fail_after(60):
                result: Any = await client.call_tool("huge", {"bytes": size})
            taken = len(result.content[0].text)
            del result
        assert taken > size - 200, "the SDK has a limit now"

        await connected(session, peer.target())
        async with feeling() as ours:
            refused = await call_tool(session, "huge", {"bytes": size})
        print(f"\n  24 MiB of JSON: SDK {theirs}; Parley {ours}")
        assert refused.error is not None
        assert refused.error.message == ("The answer is larger than 8 MiB, so it was not read. Ask for less at a time.")
        assert inbound(session)[-1].size < 9 * MIB
        await echoes(session)


@pytest.mark.requirement("F08")
async def test_an_honest_picture_in_an_event_is_taken(session: Session):
    size = 2 * MIB
    with raw_web(reply="sse") as peer:
        refused = False
        with falls_apart():
            async with sdk(peer) as client:
                try:
                    with anyio.fail_after(SOON * 2):
                        await client.call_tool("huge", {"bytes": size, "as": "event"})
                except (MCPError, TimeoutError):
                    refused = True
        assert refused, "the SDK takes events of more than 1 MiB now"

        await connected(session, peer.target())
        done = await call_tool(session, "huge", {"bytes": size, "as": "event"})
        assert done.state == "done", done.error
        assert inbound(session)[-1].size == size


@pytest.mark.requirement("F05", "R5-40")
async def test_one_bad_byte_on_stdio_does_not_hang_the_session(session: Session):
    bad = b"\xff\xfe banner\n"
    argv = ["-I", "-S", str(SERVERS / "raw.py"), "plain"]
    server = StdioServerParameters(command=sys.executable, args=argv)
    hung = False
    assert sys.__stderr__ is not None
    with falls_apart():
        async with stdio_client(server, sys.__stderr__) as streams, ClientSession(*streams) as client:
            await client.initialize()
            await _say(client, bad)
            hung = await unanswered(client.send_ping)
    assert hung, "the SDK survives invalid UTF-8 now"

    await connected(session, raw_target())
    asked = await call_tool(session, "say", {"base64": b64(bad)}, timeout_ms=100)
    assert asked.error is not None and asked.error.kind == "timeout", "nothing answers it"
    await echoes(session)
    assert any("is not UTF-8" in each.text for each in findings(session))


async def _say(client: ClientSession, raw: bytes) -> None:
    """Have the raw server write this; it answers nothing, so do not wait for it."""
    with anyio.move_on_after(0.3):
        try:
            await client.call_tool("say", {"base64": b64(raw)})
        except Exception:
            return


@pytest.mark.requirement("S38", "R5-29")
async def test_a_hostile_pattern_does_not_freeze_everybody(session: Session):
    """Each `a` more doubles the time: 25 of them hold up the SDK for seven times what is asserted."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    tool = {"name": "say", "inputSchema": {"type": "object"}, "outputSchema": schema}
    result = f'{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[],"structuredContent":{{"a":"{"a" * 25}!"}}}}}}'
    with raw_web(tools=[tool]) as peer:
        async with sdk(peer) as client, feeling() as theirs:
            with falls_apart():
                await client.call_tool("say", {"lines": [result]})
            await client.send_ping()
        assert theirs.stall > 0.2, "the SDK validates without freezing now"

        await connected(session, peer.target())
        async with feeling() as ours:
            done = await call_tool(session, "say", {"lines": [result]})
            await echoes(session)
        print(f"\n  a pattern of exponential time: SDK {theirs}; Parley {ours}")
        assert done.state == "done" and [each.id for each in done.findings] == ["R5-29"]
        assert ours.stall < theirs.stall


@pytest.mark.requirement("F08", "R5-41")
async def test_a_large_message_is_read_with_less_ado(session: Session):
    """Figures only: how the loop of each fares."""
    with raw_web() as peer:
        async with sdk(peer) as client, feeling() as theirs:
            with anyio.fail_after(60):
                await client.call_tool("list", {"count": 120_000})
                await client.send_ping()
        await connected(session, peer.target())
        async with feeling() as ours:
            done = await call_tool(session, "list", {"count": 120_000})
            await echoes(session)
        assert done.state == "done"
        print(
            f"\n  a result of {inbound(session)[-2].size / MIB:.1f} MiB in 120,000 parts: SDK {theirs}; Parley {ours}"
        )
