"""Faults of a stdio server, each with what is expected of Parley, under the general oracle of conftest.py."""

import signal
from collections.abc import Callable
from typing import Any

import anyio
import psutil
import pytest

from app.core.options import Options
from app.core.targets import StdioTarget
from app.sessions import Session, SessionRegistry
from app.settings import MIB, Limits
from tests.conftest import Processes
from tests.drive import (
    HANG,
    ME,
    Felt,
    RawPeer,
    b64,
    call,
    call_tool,
    connect,
    connected,
    echoes,
    findings,
    flushed,
    inbound,
    last_findings,
    raw_target,
    raws,
    until,
)

Raw = Callable[..., RawPeer]
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
pytestmark = pytest.mark.faults


# --- F01: it ends at the start ----------------------------------------------------------------------------------------


@pytest.mark.requirement("F01")
@pytest.mark.parametrize(
    ("settings", "words", "code"),
    [
        ({"code": 1}, "ended with code 1", 1),
        ({"code": 0}, "ended with code 0", 0),
        ({"code": 127}, "ended with code 127", 127),
        ({"signal": signal.SIGKILL}, "was ended by SIGKILL", -9),
        ({"signal": signal.SIGSEGV}, "was ended by SIGSEGV", -11),
        ({"code": 3, "after_reading": True}, "ended with code 3", 3),
    ],
)
async def test_f01_a_server_that_ends_at_the_start_leaves_its_last_words(
    session: Session, oracle: Felt, settings: dict[str, Any], words: str, code: int
):
    said = "".join(f"line {number}\n" for number in range(2_000)) + "Error: no configuration"
    for _ in range(3):
        await connect(session, raw_target("exits", stderr=said, **settings))
        assert session.info.state == "lost" and session.info.trouble is not None
        assert words in session.info.trouble.message and session.info.trouble.exit_code == code
        assert session.info.trouble.last_words.endswith("line 1999\nError: no configuration")
        assert 3_000 < len(session.info.trouble.last_words) <= 4_200
        assert session.info.trouble.message in [step.text for step in session.info.steps]
    await connected(session, raw_target())
    await echoes(session)


@pytest.mark.requirement("F01")
async def test_f01_last_words_are_those_of_this_connection_alone(session: Session):
    await connect(session, raw_target("exits", code=1, stderr="the first time\n"))
    await connect(session, raw_target("exits", code=1))
    assert session.info.trouble is not None and session.info.trouble.last_words == ""


@pytest.mark.requirement("F01")
async def test_f01_the_exit_code_is_said_however_the_race_of_pipes_ends(session: Session):
    """A write to a child that has just ended can fail before the end itself is seen."""
    for _ in range(25):
        await connect(session, StdioTarget(command="false"))
        assert session.info.trouble is not None
        assert session.info.trouble.exit_code == 1, session.info.trouble


# --- F02: it does not answer initialize -------------------------------------------------------------------------------


@pytest.mark.requirement("F02")
async def test_f02_a_server_that_hangs_on_initialize_is_given_up_and_ended(
    registry: SessionRegistry, session: Session, oracle: Felt, processes: Processes, monkeypatch: pytest.MonkeyPatch
):
    quick = registry.settings.limits.model_copy(update={"handshake_seconds": 0.5})
    monkeypatch.setattr(session, "limits", quick)
    session.connect(raw_target(silent=["initialize"]), Options(), by=ME)
    await until(session, lambda: session.info.pid is not None)
    pid = session.info.pid
    assert session.info.deadline_at is not None, "there is a count-down to show"
    await session.wait_connection(HANG)
    assert session.info.state == "lost" and session.info.trouble is not None
    assert session.info.trouble.message == "The server did not answer `initialize` within 0.5 s."
    assert not psutil.pid_exists(pid or 0)
    await connected(session, raw_target())


@pytest.mark.requirement("F02")
async def test_f02_cancelling_works_at_once(session: Session, oracle: Felt, processes: Processes):
    session.connect(raw_target(silent=["initialize"]), Options(), by=ME)
    await until(session, lambda: session.info.pid is not None)
    async with anyio.create_task_group() as group:
        group.start_soon(session.disconnect)
        await anyio.lowlevel.checkpoint()
        assert session.info.state == "closed", "said before the child is gone"
    assert processes.left() == []


# --- F03: it ends in the middle of a call -----------------------------------------------------------------------------


@pytest.mark.requirement("F03")
@pytest.mark.parametrize(
    ("params", "words"), [({"code": 5}, "ended with code 5"), ({"signal": 9}, "was ended by SIGKILL")]
)
async def test_f03_a_crash_fails_every_running_call_and_the_session_stays(
    session: Session, oracle: Felt, params: dict[str, Any], words: str
):
    await connected(session, raw_target())
    held = [session.start_call("x/hold", {}, by=ME) for _ in range(10)]
    crash = await call(session, "x/exit", {**params, "stderr": "fatal: out of luck\n"})
    await until(session, lambda: session.info.state == "lost")
    for each in [crash, *held]:
        assert each.state == "failed" and each.error is not None and each.error.kind == "connection"
        assert each.error.message.startswith("The connection was lost: ") and words in each.error.message
    assert session.info.trouble is not None and session.info.trouble.last_words == "fatal: out of luck"
    count = session.messages.count
    await connected(session, raw_target())
    assert session.messages.count > count > 0
    await echoes(session)


@pytest.mark.requirement("F03")
async def test_f03_a_server_that_closes_its_output_is_seen(session: Session, oracle: Felt):
    await connected(session, raw_target())
    asked = await call(session, "x/close_stdout")
    assert asked.state == "failed"
    await until(session, lambda: session.info.state == "lost")
    assert session.info.trouble is not None and session.info.trouble.kind == "closed-stdout"


@pytest.mark.requirement("F03", "F28")
async def test_f03_a_crash_is_seen_though_a_grandchild_holds_the_pipes(session: Session, oracle: Felt):
    await connected(session, raw_target())
    await call(session, "x/fork")
    asked = await call(session, "x/exit", {"code": 4})
    await until(session, lambda: session.info.state == "lost")
    assert asked.state == "failed"
    assert session.info.trouble is not None and session.info.trouble.exit_code == 4


@pytest.mark.requirement("F03")
async def test_f03_what_stood_in_the_pipe_before_the_crash_is_still_read(session: Session, oracle: Felt):
    line = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":$N}}'
    await connected(session, raw_target())
    session.start_call("x/flood", {"count": 3_000, "line": line}, by=ME)
    session.start_call("x/exit", {"code": 0}, by=ME)
    await until(session, lambda: session.info.state == "lost")
    assert len(inbound(session, "notifications/message")) == 3_000


# --- F04, F05, F06: it writes what is no message ----------------------------------------------------------------------

JUNK = [
    (b'{"jsonrpc":"2.0",', "R5-40", "Not JSON"),
    (b"{'single': 'quotes'}", "R5-40", "Not JSON"),
    (b'{"jsonrpc":"2.0","method":"x","params":{"n":NaN}}', "R5-40", "NaN is not a JSON value"),
    (b"42", "R5-01", "the bare value 42"),
    (b'"text"', "R5-01", 'the bare value "text"'),
    (b"null", "R5-01", "the bare value null"),
    (b"true", "R5-01", "the bare value true"),
    (b"[]", "R5-01", "an array"),
    (b'[{"jsonrpc":"2.0","method":"x"}]', "R5-01", "This is a batch."),
    (b"{}", "R5-01", "no `method`, no `result` and no `error`"),
    (b'{"method":"notifications/x"}', "R5-01", "`jsonrpc` must be"),
    (b'{"jsonrpc":"1.0","method":"notifications/x"}', "R5-01", '`jsonrpc` must be "2.0" and is "1.0"'),
    (b'{"jsonrpc":"2.0","method":"notifications/x","method":"notifications/y"}', "R5-01", "stands twice"),
    (b'{"jsonrpc":"2.0","method":7}', "R5-01", "`method` is not a string"),
    (b'{"jsonrpc":"2.0","method":"notifications/x","params":[1]}', "R5-01", "`params` is not an object"),
    (b'{"jsonrpc":"2.0","result":{}}', "R5-01", "no id"),
    (b"\xff\xfe\x00", "R5-40", "Byte 0xff at position 0 is not UTF-8"),
    (b'{"jsonrpc":"2.0","method":"caf\xe9"}', "R5-40", "is not UTF-8"),
    (b'{"jsonrpc":"2.0","method":"\xed\xa0\x80"}', "R5-40", "is not UTF-8"),
    (b"Server listening on stdio", "R5-40", "Not JSON"),
    (b"\x1b[32mready\x1b[0m", "R5-40", "Not JSON"),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"notifications/x"}', "R5-01", "byte order mark"),
    (b"", "R5-40", "empty line"),
    (b"\r", "R5-40", "empty line"),
    (b"[" * 100_000, "R5-40", "nested deeper than 400 levels"),
    (
        b'{"jsonrpc":"2.0","method":"notifications/x","a":' + b"[" * 1_000 + b"]" * 1_000 + b"}",
        "R5-40",
        "nested deeper",
    ),
]


@pytest.mark.requirement("F04", "F05", "F06", "R5-01", "R5-40")
async def test_f04_f05_f06_junk_is_shown_raw_with_a_finding_and_the_connection_goes_on(session: Session, oracle: Felt):
    await connected(session, raw_target())
    for junk, rule, words in JUNK:
        done = await call_tool(session, "say", {"base64": b64(junk + b"\n"), "lines": [DONE]})
        assert done.state == "done"
        row = inbound(session)[-2]
        assert session.messages.raw(row.seq) == junk
        beside = session.messages.findings(row.seq)
        assert any(each.id == rule and words in each.text for each in beside), (junk[:60], beside)
        await echoes(session)
    assert session.info.state == "ready"


@pytest.mark.requirement("F06", "R5-40")
async def test_f06_a_banner_before_the_handshake_does_not_stop_it(session: Session, oracle: Felt):
    first = [b64(b"Welcome!\n"), b64(b"\n"), b64(b"\xff\n"), b64(b"\xef\xbb\xbf\r\n")]
    await connected(session, raw_target(first=first))
    assert [each.problem is not None for each in inbound(session)][:4] == [True] * 4
    texts = [each.advice for each in findings(session)]
    assert "A server writes nothing but messages to stdout; print to stderr." in texts
    await echoes(session)


@pytest.mark.requirement("F06", "R5-40")
async def test_f06_windows_line_ends_are_messages_like_any_other(session: Session, oracle: Felt):
    await connected(session, raw_target())
    done = await call_tool(session, "say", {"lines": [DONE + "\r"]})
    assert done.state == "done" and findings(session) == []
    assert raws(session, "in")[-1].endswith(b"}\r")


@pytest.mark.requirement("F06")
async def test_f06_a_flood_of_empty_lines_stalls_nobody(session: Session, oracle: Felt):
    await connected(session, raw_target())
    done = await call_tool(session, "flood", {"count": 15_000, "line": ""})
    assert done.state == "done"
    assert session.messages.inbound >= 15_000


@pytest.mark.requirement("F06")
async def test_f06_a_last_line_without_a_line_feed_is_still_a_line(session: Session, oracle: Felt):
    await connected(session, raw_target())
    session.start_call("x/say", {"base64": b64(b"half a mess")}, by=ME)
    session.start_call("x/exit", {"code": 0}, by=ME)
    await until(session, lambda: session.info.state == "lost")
    assert raws(session, "in")[-1] == b"half a mess"


# --- F07: a line that is too long -------------------------------------------------------------------------------------


@pytest.mark.requirement("F07")
async def test_f07_a_line_of_50_mb_is_refused_and_its_beginning_kept(session: Session, oracle: Felt, limits: Limits):
    await connected(session, raw_target())
    began = anyio.current_time()
    asked = await call(session, "x/huge", {"bytes": 50 * MIB})
    await until(session, lambda: session.info.state == "lost")
    took = anyio.current_time() - began
    print(f"F07: refused and said after {took:.2f} s")
    assert took < 30, "a hang guard"
    assert asked.state == "failed" and asked.error is not None and "more than 8 MiB" in asked.error.message
    assert session.info.trouble is not None and session.info.trouble.kind == "oversized"
    last = inbound(session)[-1]
    assert limits.message_bytes < last.size < limits.message_bytes + MIB and last.problem is not None
    kept = session.messages.raw(last.seq)
    assert kept is not None and len(kept) == limits.kept_prefix_bytes
    assert kept.startswith(f'{{"jsonrpc":"2.0","id":{asked.legs[0].rpc_id},"result"'.encode())
    assert last_findings(session)[0][1].startswith("This line is longer than 8 MiB")
    await session.disconnect()
    await connected(session, raw_target())
    await echoes(session)


@pytest.mark.requirement("F07")
async def test_f07_a_message_just_within_the_limit_is_taken(session: Session, oracle: Felt, limits: Limits):
    await connected(session, raw_target())
    done = await call(session, "x/huge", {"bytes": limits.message_bytes})
    assert done.state == "done" and done.reply is not None and len(done.reply) == limits.message_bytes - 1
    assert session.info.state == "ready"


# --- F09: a burst -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("F09")
async def test_f09_ten_thousand_notifications_are_all_counted_and_none_is_lost(session: Session, oracle: Felt):
    await connected(session, raw_target())
    line = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"$N"}}'
    began = anyio.current_time()
    done = await call_tool(session, "flood", {"count": 10_000, "line": line})
    took = anyio.current_time() - began
    print(f"F09: 10,000 notifications in {took:.2f} s")
    assert done.state == "done"
    assert len(done.logs) + done.logs_dropped == 10_000
    rows = inbound(session, "notifications/message")
    assert len(rows) == 10_000 and session.messages.rows_dropped == 0
    assert [each.gist for each in rows] == [f"info {number}" for number in range(10_000)]


@pytest.mark.requirement("F09")
async def test_f09_what_no_longer_fits_is_trimmed_oldest_first_and_counted(session: Session, oracle: Felt):
    await connected(session, raw_target())
    line = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":$N}}'
    for _ in range(5):
        await call_tool(session, "flood", {"count": 5_000, "line": line})
    log = session.messages
    assert len(log) == 20_000 and log.count == log.rows_dropped + 20_000
    assert log.count >= 25_000
    kept = [each.kind for each in session.events.since(session.events.seq - 20_000) or []]
    assert "log.trimmed" in kept
    await echoes(session)


@pytest.mark.requirement("F09")
async def test_f09_a_flood_of_stderr_stalls_nobody(session: Session, oracle: Felt):
    await connected(session, raw_target())
    for _ in range(5):
        await call(session, "x/stderr", {"base64": b64(b"\n" * 60_000)})
    await flushed(session)
    assert len(session.stderr.lines()) == 2_000


# --- F11, F12, F13: words after the end, and words to nobody ----------------------------------------------------------


@pytest.mark.requirement("F11", "R5-23")
async def test_f11_a_flood_after_the_result_is_dropped_and_counted(session: Session, oracle: Felt):
    await connected(session, raw_target())
    done = await call_tool(session, "say", {"lines": [DONE]})
    token = done.legs[0].rpc_id
    progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$T,"progress":$N}}'
    log = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":$N}}'
    await call(session, "x/flood", {"count": 2_000, "line": progress.replace("$T", str(token))}, quiet=True)
    await call(session, "x/flood", {"count": 2_000, "line": log}, quiet=True)
    assert done.progress is None and not done.logs and done.state == "done"
    assert len(inbound(session, "notifications/progress")) == 2_000
    assert session.messages.findings_total == 2_000


@pytest.mark.requirement("F12", "R5-24")
async def test_f12_replies_to_nobody_change_nothing(session: Session, oracle: Felt):
    await connected(session, raw_target())
    held = session.start_call("x/hold", {}, by=ME)
    await flushed(session)
    session.cancel_call(held.id)
    mine = held.legs[0].rpc_id
    lines = [
        f'{{"jsonrpc":"2.0","id":{mine},"result":{{"late":true}}}}',
        f'{{"jsonrpc":"2.0","id":{mine},"error":{{"code":1,"message":"late"}}}}',
        '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01"}}',
        '{"jsonrpc":"2.0","id":99999,"result":{}}',
        '{"jsonrpc":"2.0","id":"nobody","result":{}}',
        DONE,
        DONE,
    ]
    done = await call_tool(session, "say", {"lines": lines})
    await flushed(session)
    assert (held.state, done.state) == ("cancelled", "done")
    assert session.info.protocol_version == "2025-11-25"
    assert [each.id for each in findings(session)] == ["R5-24", "R5-24", "R5-01", "R5-01", "R5-01", "R5-01"]


@pytest.mark.requirement("F13")
async def test_f13_two_sessions_with_the_same_ids_do_not_hear_each_other(
    registry: SessionRegistry, session: Session, oracle: Felt, raw: Raw
):
    other = registry.open(ME)
    peer, second = raw(), raw()
    await connected(session, peer.target)
    await connected(other, second.target)
    mine = session.start_call("x/hold", {"mark": "mine"}, by=ME)
    theirs = other.start_call("x/hold", {"mark": "theirs"}, by=ME)
    await flushed(session)
    await flushed(other)
    assert mine.legs[0].rpc_id == theirs.legs[0].rpc_id, "each connection counts for itself"
    await call(other, "x/release")
    await until(other, lambda: theirs.settled)
    assert mine.state == "running"
    line = '{"jsonrpc":"2.0","id":7,"method":"ping"}'
    for each in (session, other):
        await call_tool(each, "say", {"lines": [line, line, DONE]})
        await flushed(each)
    for told in (peer, second):
        assert len([reply for reply in told.received() if reply.get("result") == {}]) == 2
    await call(session, "x/release")
    await until(session, lambda: mine.settled)
    assert "mine" in str(await session.result(mine)) and "theirs" in str(await other.result(theirs))
    await registry.close(other)


# --- F28: it does not want to end -------------------------------------------------------------------------------------


@pytest.mark.requirement("F28", "R5-06")
async def test_f28_a_deaf_child_and_its_grandchild_are_gone_within_the_budget(
    session: Session, oracle: Felt, processes: Processes
):
    await connected(session, raw_target())
    grandchild = (await session.result(await call(session, "x/fork")))["pid"]
    await call(session, "x/deafen")
    pid = session.info.pid
    assert pid is not None and psutil.pid_exists(pid) and psutil.pid_exists(grandchild)
    began = anyio.current_time()
    with anyio.fail_after(HANG):
        await session.disconnect()
    took = anyio.current_time() - began
    print(f"F28: child and grandchild gone after {took:.2f} s (budget 5 s)")
    assert 2.0 < took < 50.0, "it was asked twice before it was killed; the rest is ten times the budget"
    assert not psutil.pid_exists(pid)
    assert processes.left() == []


@pytest.mark.requirement("F28")
async def test_f28_a_server_that_stopped_reading_can_be_left(session: Session, oracle: Felt):
    await connected(session, raw_target())
    await call(session, "x/stop_reading")
    stuck = [session.start_call("x/hold", {"fill": "a" * 300_000}, by=ME) for _ in range(5)]
    await until(session, lambda: [each for each in stuck if each.legs])
    with anyio.fail_after(HANG):
        await session.disconnect()
    assert {each.state for each in stuck} == {"failed"}
