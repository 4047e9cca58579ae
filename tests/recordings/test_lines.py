"""What a session holds, as lines of a recording and back: nothing is lost, and no line is trusted."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import bounds
from app.core.asks import Ask
from app.core.calls import Call
from app.core.rules import catalogue
from app.core.tasks.received import ReceiverTask
from app.core.tasks.running import ClientTask
from app.core.wire import Exchange, Message
from app.recordings import codec, states
from app.recordings.lines import (
    NOUNS,
    VERSION,
    Broken,
    End,
    Frame,
    Header,
    Left,
    ListState,
    Masked,
    Newer,
    Noun,
    OpensAt,
    State,
    Totals,
    frame_line,
    frame_of,
    header_line,
    message_of,
    read_line,
    state_line,
)
from app.sessions import Session
from tests.recordings.drive import lived, read_text


async def remarked(session: Session, **options: Any) -> None:
    """All that, and what a server that behaves does not bring about."""
    await lived(session, **options)
    newest = session.messages.last(1)[0].seq
    session.messages.remark(newest, catalogue.gone_method(method="x"), catalogue.task_no_object(), about="t1")
    session.calls.note(next(iter(session.calls.values())), catalogue.task_ignored())


def again(key: str, noun: Noun, *, reply: bytes | None = None) -> State:
    """A noun, written and read."""
    line = state_line(State("", key, 7, 1.5, noun, reply, reply is not None))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    found = read_line(line)
    assert isinstance(found, State)
    assert (found.id, found.seq, found.at, NOUNS[found.kind]) == (key, 7, 1.5, type(noun))
    return found


def same(one: Any, two: Any) -> None:
    """Every member that is recorded is what it was, and of the same type."""
    assert type(one) is type(two)
    for each in codec.recorded_members(type(one)):
        before, after = getattr(one, each.name), getattr(two, each.name)
        assert (each.name, after) == (each.name, before)
        assert type(after) is type(before)


@pytest.mark.requirement("U-C01")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_every_noun_and_row_of_a_live_session_comes_back_as_it_was(session: Session, era: str):
    await remarked(session, era=era)
    await session.disconnect()
    kinds = set()
    for key, noun in states.everything(session):
        back = again(key, noun)
        kinds.add(back.kind)
        if isinstance(noun, ListState):
            assert noun.items_from or not noun.listing.items or key == states.TASK_LIST
            noun.listing.items = [] if noun.items_from else noun.listing.items
            assert isinstance(back.noun, ListState)
            same(noun.listing, back.noun.listing)
        elif isinstance(noun, ReceiverTask | Ask):
            assert codec.write(back.noun) == codec.write(noun)  # an error is equal to none but itself
        else:
            same(noun, back.noun)
    wanted = {"connection", "call", "ask", "list", "roots", "options", "finding"}
    assert kinds >= wanted | ({"ping", "client_task", "resource"} if era == "legacy" else {"subscription"})
    for message in session.messages.last(10_000):
        row_again(session, message)


def row_again(session: Session, message: Message) -> None:
    """A row of the log is made of its own line alone, also when its bytes are gone."""
    raw = session.messages.raw(message.seq)
    back = read_line(frame_line(frame_of(message, raw, None)))
    assert isinstance(back, Frame)
    assert (back.raw, message_of(back)) == (raw, message)
    bare = read_line(frame_line(frame_of(message, None, None)))
    assert isinstance(bare, Frame)
    assert bare.raw is None
    kept = message_of(bare)
    assert (kept.gist, kept.method, kept.rpc_id) == (message.gist, message.method, message.rpc_id)


def test_the_reply_of_a_call_is_in_its_frame_or_with_it():
    call = Call("c1", "tools/call", {"name": "x"}, 1.0, 2.0)
    assert again("c1", call).reply_kept is False
    assert again("c1", call, reply=b'{"a": 1}').reply == b'{"a": 1}'
    assert again("c1", call, reply=b"\xff\x00").reply == b"\xff\x00"
    in_frame = read_line(state_line(State("", "c1", 1, 1.0, call, None, True)))
    assert isinstance(in_frame, State)
    assert (in_frame.reply, in_frame.reply_kept) == (None, True)


def test_bytes_that_are_no_text_are_base64():
    frame = Frame(3, 1.0, "in", 2, 1, raw=b"\xff\xfe")
    line = frame_line(frame)
    assert json.loads(line)["raw_base64"]
    assert read_line(line) == frame


def test_a_header_comes_back_and_names_its_version():
    header = Header(
        VERSION,
        "Parley 2",
        12.5,
        rid="rec-1",
        title="a – b",
        target={"transport": "demo"},
        missing=("API_KEY",),
        left=Left(3, 4),
        opens_at=OpensAt("call", "c1"),
    )
    line = header_line(header)
    assert json.loads(line)["parley"] == "recording"
    assert read_line(line) == header
    newer = {**json.loads(line), "version": VERSION + 1}
    with pytest.raises(Newer, match=f"version {VERSION + 1} of the format, made by Parley 2"):
        read_line(json.dumps(newer).encode())


def test_what_a_newer_version_added_is_passed_over():
    end = End("stopped", Totals(count=3), [Masked("/params/token", "token", 2)])
    value = json.loads(state_line(State("", "", 1, 1.0, end)))
    value["value"]["mood"], value["colour"] = "good", "blue"
    back = read_line(json.dumps(value).encode())
    assert isinstance(back, State)
    assert back.noun == end
    assert read_line(b'{"kind": "dance", "seq": 1, "at": 2, "value": {}}') is None


STATE = b'"seq":1,"at":1,"value":'
FRAME = b'{"kind":"frame","seq":1,"at":1,"size":1,"number":1,'
BROKEN = {
    "no JSON": b"{",
    "no object": b"[1]",
    "no kind": b"{}",
    "another program's": b'{"parley": "menu", "version": 1}',
    "a header without a version": b'{"parley": "recording"}',
    "a header with a text for a time": b'{"parley": "recording", "version": 1, "made_by": "x", "began": "now"}',
    "a frame without bytes": b'{"kind": "frame", "seq": 1, "at": 1, "direction": "in", "size": 1, "number": 1}',
    "a frame of a strange direction": FRAME + b'"direction":"up","raw":""}',
    "a frame with broken base64": FRAME + b'"direction":"in","raw_base64":"*"}',
    "half a character": FRAME + b'"direction":"in","raw":"\\ud800"}',
    "a state without a value": b'{"kind": "call", "seq": 1, "at": 1}',
    "a call without a method": b'{"kind": "call", "seq": 1, "at": 1, "value": {"id": "c1"}}',
    "a call that began at a text": b'{"kind":"call",'
    + STATE
    + b'{"id":"c1","method":"m","params":null,"started_at":"x"}}',
    "a state that does not exist": b'{"kind":"connection",' + STATE + b'{"state":"dancing"}}',
    "true for a number": b'{"kind":"stderr",' + STATE + b'{"number":true,"at":1,"text":"x"}}',
    "a huge number": b'{"kind":"stderr",' + STATE + b'{"number":' + b"9" * 30 + b',"at":1,"text":"x"}}',
    "no finite time": b'{"kind":"stderr",' + STATE + b'{"number":1,"at":1e999,"text":"x"}}',
    "a list for an object": b'{"kind":"exchange",' + STATE + b"[]}",
    "a pair of three": b'{"kind":"exchange",'
    + STATE
    + b'{"method":"GET","url":"x","at":1,"request_headers":[["a","b","c"]]}}',
    "a wire that nobody speaks": b'{"kind":"client_task",'
    + STATE
    + b'{"id":"t","task_id":"x","wire":"1999","connection":1,"began_at":1}}',
    "a number for an id": b'{"kind":"totals","seq":1,"at":1,"id":3,"value":{}}',
    "far too deep": b'{"kind":"options",' + STATE + b'{"options":' + b'{"a":' * 500 + b"1" + b"}" * 502,
    "deeper than any stack": b'{"kind":"options","value":' + b"[" * 200_000,
}


@pytest.mark.parametrize("line", BROKEN.values(), ids=BROKEN.keys())
def test_a_line_that_does_not_fit_says_so(line: bytes):
    with pytest.raises(Broken) as said:
        read_line(line)
    assert 3 < len(str(said.value)) < 200


def test_a_line_longer_than_any_message_is_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bounds, "RECORDING_LINE", 50)
    with pytest.raises(Broken, match="longer"):
        read_line(header_line(Header(VERSION, "x" * 50, 1.0)))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=8,
)


@given(kind=st.sampled_from([*NOUNS, "frame"]), value=_JSON, more=_JSON)
def test_no_value_of_any_kind_does_more_than_not_fit(kind: str, value: Any, more: Any):
    line = {"kind": kind, "seq": 1, "at": 1.0, "direction": "in", "size": 1, "number": 1, "raw": more, "value": value}
    with contextlib.suppress(Broken):
        read_line(json.dumps(line).encode())


def test_an_exchange_keeps_its_headers_in_order():
    exchange = Exchange("POST", "http://h/", 1.0, (("a", "1"), ("b", "2")), 200, (("c", "3"),), 1.0, 2.0, seq=4)
    same(exchange, again("4", exchange).noun)


async def test_a_task_of_each_kind_and_an_ask_without_end(session: Session):
    from app.core.tasks.running import EXTENSION

    task = ClientTask("t1", "x", EXTENSION, 1, began_at=5.0, began=0.1)
    back = again("t1", task).noun
    assert isinstance(back, ClientTask)
    assert (back.wire is EXTENSION, back.began) == (True, 5.0)
    ask = session.asks.new("request", "elicitation/create", {"message": "?"}, 3, None)  # type: ignore[arg-type]
    ask.claimed_until = float("inf")
    kept = again("a1", ask).noun
    assert isinstance(kept, Ask)
    assert kept.claimed_until == float("inf")


KEPT = sorted(Path(__file__).parent.glob("v*.jsonl"))


@pytest.mark.requirement("U-C01")
@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_a_file_of_every_version_opens_for_ever(file: Path):
    read = read_text(file.read_bytes())
    assert read.unknown == 0
    assert read.end is not None
    assert read.end.totals.count == len(read.frames)
    assert [message_of(frame).number for frame in read.frames] == list(range(1, len(read.frames) + 1))
    tools = {str(state.noun.subject) for state in read.of("call").values() if isinstance(state.noun, Call)}
    assert {"add", "parade", "tool_error", "no/such"} <= tools
    asks = [state.noun for state in read.of("ask").values() if isinstance(state.noun, Ask)]
    assert {ask.kind for ask in asks} >= {"form", "url", "sampling"}
    assert all(ask.answer is None or ask.answer.by.kind in ("person", "roots") for ask in asks)
    if "modern" in file.stem:
        assert any(call.rounds for state in read.of("call").values() if isinstance(call := state.noun, Call))
    else:
        assert read.of("client_task")


def test_the_kept_files_are_there():
    assert {file.stem for file in KEPT} >= {"v1-legacy", "v1-modern"}
