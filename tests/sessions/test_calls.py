"""Calls: several at once, progress, log messages, cancelling, time limits, and what becomes of late words."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from app.core.errors import Conflict
from app.sessions import Session
from app.settings import Limits
from tests.drive import (
    HANG,
    ME,
    RawPeer,
    call,
    call_tool,
    connected,
    echoes,
    findings,
    flushed,
    inbound,
    raw_target,
    settled,
    until,
)

Raw = Callable[..., RawPeer]
PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":%s}}'
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
LOG = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"%s","logger":"peer","data":%s}}'


@pytest.mark.requirement("R5-01")
async def test_calls_in_flight_are_answered_out_of_order(session: Session):
    await connected(session, raw_target())
    held = [session.start_call("tools/call", {"name": "hold", "mark": mark}, by=ME) for mark in range(5)]
    await flushed(session)
    assert {each.state for each in held} == {"running"} and session.calls.running == held
    await call(session, "x/release")
    await settled(session, *held)
    for mark, each in enumerate(held):
        assert (await session.result(each))["content"] == [{"type": "text", "text": f"held {mark}"}]
    replies = [each.legs[0].reply_seq for each in held]
    assert replies == sorted(replies, key=lambda seq: seq or 0, reverse=True), "the newest was answered first"
    assert session.calls.running == []


@pytest.mark.requirement("R5-23")
async def test_progress_reaches_its_call_in_order(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    lines = [PROGRESS % each for each in ("0.5", '1,"total":4,"message":"one"', '3.75,"total":4,"message":"nearly"')]
    seen: list[Any] = []
    started = session.start_call("tools/call", {"name": "say", "arguments": {"lines": [*lines, DONE]}}, by=ME)
    mark = session.events.seq
    await settled(session, started)
    seen = [each.kind for each in session.events.since(mark) or [] if each.subject == started.id]
    assert seen == ["call.changed"] * 3 + ["call.settled"]
    assert started.progress is not None
    assert (started.progress.progress, started.progress.total, started.progress.message) == (3.75, 4.0, "nearly")
    assert [each for each in findings(session) if each.id == "R5-23"] == []


@pytest.mark.requirement("R5-23")
@pytest.mark.parametrize(
    ("values", "kept", "words"),
    [
        (["2", "1"], 1.0, "Progress went from 2 to 1"),
        (["2", "2"], 2.0, "Progress went from 2 to 2"),
        (["1", '"two"'], 1.0, '`progress` is "two"'),
        (["1", "null"], 1.0, "`progress` is null"),
        (["1", "true"], 1.0, "`progress` is true"),
        (["1", "1e999"], 1.0, "`progress` is"),
        (["1", "1" + "0" * 400], 1.0, "`progress` is"),
    ],
)
async def test_progress_that_breaks_the_rules_is_a_finding(
    session: Session, values: list[str], kept: float, words: str
):
    await connected(session, raw_target())
    done = await call_tool(session, "say", {"lines": [*(PROGRESS % each for each in values), DONE]})
    assert done.state == "done" and done.progress is not None and done.progress.progress == kept
    [finding] = findings(session)
    assert finding.id == "R5-23" and finding.text.startswith(words)


@pytest.mark.requirement("R5-23")
async def test_a_total_that_is_no_number_is_left_out(session: Session):
    await connected(session, raw_target())
    for total in ('"many"', "1" + "0" * 400, "null", "[[]]"):
        done = await call_tool(session, "say", {"lines": [PROGRESS % f'1,"total":{total}', DONE]})
        assert done.state == "done" and done.progress is not None and done.progress.total is None


@pytest.mark.requirement("R5-23", "F11")
async def test_progress_after_the_result_and_for_nobody_is_dropped_with_a_finding(session: Session):
    await connected(session, raw_target())
    stray = PROGRESS.replace("$TOKEN", '"nobody"') % 1
    done = await call_tool(session, "say", {"lines": [DONE, PROGRESS % 1, stray]})
    await flushed(session)
    assert done.state == "done" and done.progress is None
    assert [each.text for each in findings(session)] == [
        "Progress for a request that was already answered.",
        "No active request of ours has this progress token.",
    ]


@pytest.mark.requirement("R5-23")
async def test_a_progress_token_of_the_persons_own_is_kept(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    params = {"name": "say", "arguments": {"lines": [PROGRESS % 7, DONE]}, "_meta": {"progressToken": "mine"}}
    done = await call(session, "tools/call", params)
    assert done.progress is not None and done.progress.progress == 7
    await flushed(session)
    assert peer.received("tools/call")[0]["params"]["_meta"] == {"progressToken": "mine"}


@pytest.mark.requirement("R5-22")
async def test_log_messages_go_to_the_one_running_call(session: Session):
    await connected(session, raw_target())
    lines = [LOG % ("info", '"plain"'), LOG % ("error", '{"deep":[1,null]}'), DONE, LOG % ("info", '"too late"')]
    done = await call_tool(session, "say", {"lines": lines})
    await flushed(session)
    assert [(each.level, each.logger, each.data) for each in done.logs] == [
        ("info", "peer", "plain"),
        ("error", "peer", {"deep": [1, None]}),
    ]


@pytest.mark.requirement("R5-22")
async def test_log_messages_go_to_no_call_when_two_are_running(session: Session):
    await connected(session, raw_target())
    held = session.start_call("tools/call", {"name": "hold"}, by=ME)
    done = await call_tool(session, "say", {"lines": [LOG % ("info", '"whose?"'), DONE]})
    assert not done.logs and not held.logs
    assert len(inbound(session, "notifications/message")) == 1


@pytest.fixture
def limits() -> Limits:
    return Limits(call_logs=5, calls=10, calls_running=8)


async def test_the_logs_of_a_call_are_bounded_and_the_rest_is_counted(session: Session):
    await connected(session, raw_target())
    done = await call_tool(session, "flood", {"count": 12, "line": LOG % ("info", "$N")})
    assert [each.data for each in done.logs] == [7, 8, 9, 10, 11] and done.logs_dropped == 7


async def test_large_log_messages_stay_in_the_log_and_not_with_the_call(session: Session):
    await connected(session, raw_target())
    done = await call_tool(session, "flood", {"count": 20, "line": LOG % ("info", '"$N' + "x" * 100_000 + '"')})
    assert len(inbound(session, "notifications/message")) == 20
    assert (len(done.logs), done.logs_dropped) == (2, 18) and done.logs_bytes < 256 * 1024
    huge = await call_tool(session, "say", {"lines": [LOG % ("info", '"' + "x" * 300_000 + '"'), DONE]})
    assert (len(huge.logs), huge.logs_dropped, huge.logs_bytes) == (0, 1, 0)


async def test_calls_are_bounded_running_and_remembered(session: Session):
    await connected(session, raw_target())
    held = [session.start_call("x/hold", {}, by=ME) for _ in range(8)]
    await until(session, lambda: all(each.legs for each in held))
    with pytest.raises(Conflict, match="8 calls are running already"):
        session.start_call("ping", None, by=ME)
    for each in held:
        session.cancel_call(each.id)
    assert session.calls.running == []
    told = "notifications/cancelled"
    await until(session, lambda: len([each for each in session.messages.last(8) if each.method == told]) == 8)
    for _ in range(20):
        await call(session, "ping")
    assert len(session.calls) == 10
    await echoes(session)


# --- cancelling -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R5-24", "F12")
async def test_cancel_tells_the_server_and_ignores_the_late_reply(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    held = session.start_call("tools/call", {"name": "hold"}, by=ME)
    await flushed(session)
    session.cancel_call(held.id)
    assert held.state == "cancelled", "at once, whatever the server does"
    with pytest.raises(Conflict, match="cancelled already"):
        session.cancel_call(held.id)
    await flushed(session)
    [told] = peer.received("notifications/cancelled")
    assert told["params"] == {"requestId": held.legs[0].rpc_id, "reason": "cancelled by the person"}
    await call(session, "x/release")
    late = next(each for each in inbound(session) if each.rpc_id == held.legs[0].rpc_id)
    assert [(each.id, each.level, each.text) for each in session.messages.findings(late.seq)] == [
        ("R5-24", "note", "This reply came after the request was cancelled.")
    ]
    assert held.reply is None and held.error is None
    await echoes(session)


@pytest.mark.requirement("R5-24")
async def test_a_call_cancelled_before_it_left_is_never_sent(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    never = session.start_call("tools/call", {"name": "hold"}, by=ME)
    session.cancel_call(never.id)
    await flushed(session)
    assert never.settled and never.legs == []
    assert peer.received("tools/call") == [] == peer.received("notifications/cancelled")


@pytest.mark.requirement("R5-24", "R5-05")
async def test_a_call_cancelled_while_its_bytes_are_stuck_in_the_pipe_is_taken_back(session: Session):
    await connected(session, raw_target())
    await call(session, "x/stop_reading")
    stuck = session.start_call("x/hold", {"fill": "a" * 1_000_000}, by=ME)
    sent = session.messages.outbound
    await until(session, lambda: session.messages.outbound > sent)
    session.cancel_call(stuck.id)
    await until(session, lambda: session.messages.outbound > sent + 1)
    last = session.messages.last(1)[0]
    assert (last.method, stuck.legs[0].rpc_id) == ("notifications/cancelled", stuck.legs[0].rpc_id)
    with anyio.fail_after(HANG):
        await session.disconnect()


@pytest.mark.requirement("R5-24")
async def test_disconnecting_settles_what_runs_and_says_why(session: Session):
    await connected(session, raw_target())
    held = session.start_call("x/hold", None, by=ME)
    await flushed(session)
    await session.disconnect()
    assert held.state == "failed" and held.error is not None
    assert (held.error.code, held.error.message, held.error.kind) == (None, "The connection was closed.", "connection")
    with pytest.raises(Conflict, match="not connected"):
        session.start_call("ping", None, by=ME)


# --- time limits ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R5-05", "F12")
async def test_a_call_out_of_time_fails_here_and_is_taken_back_there(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    late = await call(session, "x/hold", {}, timeout_ms=50)
    assert late.state == "failed" and late.error is not None
    assert (late.error.code, late.error.kind) == (None, "timeout"), "ours, never the server's word"
    assert late.error.message == "No answer within 0.05 s."
    await flushed(session)
    [told] = peer.received("notifications/cancelled")
    assert told["params"] == {"requestId": late.legs[0].rpc_id, "reason": "the time limit is over"}
    await call(session, "x/release")
    assert "This reply came after the request was given up." in [each.text for each in findings(session)]


@pytest.mark.requirement("R5-05", "R5-23")
async def test_progress_renews_the_time_limit(session: Session):
    await connected(session, raw_target(), request_timeout_ms=1000)
    done = await call_tool(session, "beat", {"count": 14, "every": 0.1})
    assert done.state == "done", done.error
    assert done.duration_ms is not None and done.duration_ms > 1000


@pytest.mark.requirement("R5-05")
@pytest.mark.parametrize("options", [{"reset_timeout_on_progress": False}, {"max_total_timeout_ms": 300}])
async def test_progress_renews_nothing_when_told_so_or_beyond_the_total(session: Session, options: dict[str, Any]):
    await connected(session, raw_target(), request_timeout_ms=300, **options)
    late = await call_tool(session, "beat", {"count": 6, "every": 0.1})
    assert late.state == "failed" and late.error is not None and late.error.kind == "timeout"
    assert late.progress is not None


@pytest.mark.requirement("R5-05")
async def test_the_limit_of_one_request_goes_before_that_of_the_connection(session: Session):
    await connected(session, raw_target(), request_timeout_ms=60_000)
    late = await call(session, "x/hold", {}, timeout_ms=20)
    assert late.error is not None and late.error.kind == "timeout"


# --- other kinds ------------------------------------------------------------------------------------------------------


async def test_a_notification_is_sent_and_done_at_once(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    done = await call(session, "notifications/example", {"a": None}, notification=True)
    assert done.state == "done" and done.legs == []
    await flushed(session)
    assert peer.received("notifications/example") == [
        {"jsonrpc": "2.0", "method": "notifications/example", "params": {"a": None}}
    ]


async def test_quiet_calls_are_marked_in_the_log(session: Session):
    await connected(session, raw_target())
    await call(session, "ping", quiet=True)
    loud = await call(session, "ping")
    rows = {each.seq: each.quiet for each in session.messages.last(4)}
    assert list(rows.values()) == [True, True, False, False]
    assert session.calls[loud.id].quiet is False


@pytest.mark.requirement("R5-09")
async def test_meta_of_the_connection_is_merged_below_that_of_the_call(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target, meta={"com.example/a": 1, "b": 2})
    await call(session, "x/unknown", {"x": 1, "_meta": {"b": 3, "c": None}})
    await call(session, "x/unknown2", None)
    await flushed(session)
    assert peer.received("x/unknown")[0]["params"] == {"x": 1, "_meta": {"com.example/a": 1, "b": 3, "c": None}}
    assert peer.received("x/unknown2")[0]["params"] == {"_meta": {"com.example/a": 1, "b": 2}}


async def test_params_that_cannot_be_sent_fail_that_call_alone(session: Session):
    await connected(session, raw_target())
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(2_000):
        inner["a"] = inner = {}
    failed = await call(session, "x/unknown", deep)
    assert failed.state == "failed" and failed.error is not None and failed.error.code is None
    await echoes(session)


@pytest.mark.requirement("R5-29")
async def test_a_tool_error_is_a_result_and_a_protocol_error_an_error(session: Session):
    await connected(session, raw_target())
    line = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}'
    tool = await call_tool(session, "say", {"lines": [line]})
    assert tool.state == "done" and (await session.result(tool))["isError"] is True
    line = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no","data":{"x":[1]}}}'
    wire = await call_tool(session, "say", {"lines": [line]})
    assert wire.state == "failed" and wire.error is not None
    assert (wire.error.code, wire.error.message, wire.error.data, wire.error.kind) == (-32000, "no", {"x": [1]}, "rpc")


@pytest.mark.requirement("R5-29")
@pytest.mark.parametrize("limits", [Limits(log_bytes=20_000)])
async def test_the_head_of_a_reply_stays_with_its_call_when_the_bytes_are_gone(session: Session):
    await connected(session, raw_target())
    line = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}'
    tool = await call_tool(session, "say", {"lines": [line]})
    assert tool.head is not None and tool.reply is not None and tool.has_result
    assert (tool.tool_error, tool.head.is_error, tool.head.size) == (True, False, len(tool.reply))
    line = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no"}}'
    wire = await call_tool(session, "say", {"lines": [line]})
    assert wire.head is not None and wire.head.is_error and not wire.has_result and not wire.tool_error
    size = tool.head.size
    for _ in range(3):
        await call_tool(session, "echo", {"message": "x" * 15_000})
    assert tool.reply is None and tool.tool_error and tool.head.size == size and not tool.has_result
