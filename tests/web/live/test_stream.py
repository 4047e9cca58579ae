"""What a tab hears: rows once and in order, state first, a snapshot when it is too far behind, and a last word."""

import re
from dataclasses import replace
from typing import Any

import anyio
import pytest

from app.core.asks import Answer, AnsweredBy, Ask, Delivery, Draft, roots_result
from app.core.calls import Call
from app.core.events import EventKind
from app.core.json import text as jsontext
from app.core.lists import Listing
from app.core.signal import Signal
from app.core.wire import Finding
from app.models import Model
from app.sessions import Session, SessionRegistry
from app.settings import Limits, local
from app.web.lists.keys import find_item, key_at, keys_of
from app.web.live import stream
from app.web.live.tab import Patch, Tab
from tests.drive import ME
from tests.web.tabs import tab_of

PAGES = ("overview", "tools", "tool", "calls", "call", "log", "stderr", "roots", "connect", "")


@pytest.fixture
def limits() -> Limits:
    return Limits(stream_rows=10, stream_behind=50, page_rows=20)


@pytest.fixture
def session(limits: Limits) -> Session:
    """A session that never connects: what a tab hears depends on its logs alone."""
    return SessionRegistry(local(limits=limits)).open(ME)


def record(session: Session, count: int = 1, data: str = "hello") -> None:
    for _ in range(count):
        raw = jsontext.dump({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": data}})
        session.messages.record("in", raw, jsontext.parse(raw))


def rows(patch: Patch | None) -> list[int]:
    assert patch is not None
    return [int(seq) for seq in re.findall(r'<li id="m(\d+)"', patch.html)]


def tab(session: Session, limits: Limits, page: str = "log", of: str = "", since: int | None = 0) -> Tab:
    return tab_of(session, page, of, since, limits)


def test_a_tab_that_knows_everything_hears_nothing(session: Session, limits: Limits):
    assert tab(session, limits).patch() is None


def test_rows_come_in_portions_each_once_and_the_id_follows_them(session: Session, limits: Limits):
    record(session, 25)
    one = tab(session, limits)
    first, second, third = one.patch(), one.patch(), one.patch()
    assert [len(rows(patch)) for patch in (first, second, third)] == [10, 10, 5]
    assert rows(first) + rows(second) + rows(third) == list(range(1, 26))
    assert first is not None
    assert first.seq == 10
    assert one.patch() is None


def test_a_reconnect_in_the_middle_of_the_portions_misses_nothing(session: Session, limits: Limits):
    record(session, 25)
    first = tab(session, limits).patch()
    assert first is not None
    again = tab(session, limits, since=first.seq)
    assert rows(again.patch()) == list(range(11, 21))


def test_state_is_in_the_first_message_and_does_not_wait_for_rows(session: Session, limits: Limits):
    record(session, 25)
    call(session)
    patch = tab(session, limits, page="calls").patch()
    assert patch is not None
    assert patch.html.index("#call-c1") < patch.html.index('id="m1"')


def test_the_count_of_the_log_comes_with_its_last_row(session: Session, limits: Limits):
    record(session, 25)
    one = tab(session, limits)
    counted = [">25</hx-partial>" in patch.html for patch in (one.patch(), one.patch(), one.patch()) if patch]
    assert counted == [False, False, True]


@pytest.mark.parametrize("since", [None, 10**9])
def test_a_tab_from_nowhere_gets_a_snapshot(session: Session, limits: Limits, since: int | None):
    record(session, 30)
    patch = tab(session, limits, since=since).patch()
    assert rows(patch) == list(range(11, 31))
    assert patch is not None
    assert 'hx-target="#log" hx-swap="innerHTML"' in patch.html
    assert patch.seq == session.events.seq


def test_a_tab_too_far_behind_gets_a_snapshot_and_goes_on_from_there(session: Session, limits: Limits):
    one = tab(session, limits)
    record(session, 51)
    assert rows(one.patch()) == list(range(32, 52))
    record(session)
    assert rows(one.patch()) == [52]


def test_a_finding_on_a_row_that_was_sent_replaces_that_row(session: Session, limits: Limits):
    record(session)
    one = tab(session, limits)
    one.patch()
    session.messages.remark(1, Finding("R5-01", "must", "No."))
    patch = one.patch()
    assert patch is not None
    assert 'hx-target="#m1" hx-swap="outerHTML"' in patch.html
    assert '<span class="chip mk" title="No.">' in patch.html


@pytest.mark.requirement("S31")
def test_text_of_a_server_cannot_begin_another_event(session: Session, limits: Limits):
    record(session, data="x\n\nevent: bye\r\rdata: closed\u2028</hx-partial><hx-partial hx-target='body'>")
    patch = tab(session, limits).patch()
    assert patch is not None
    wire = stream.encode(patch.html, seq=patch.seq).decode()
    assert all(line.startswith(("data: ", "id: ")) for line in wire.split("\n") if line)
    assert wire.count("\n\n") == 1
    assert wire.count("<hx-partial") == wire.count("</hx-partial>") == patch.html.count("<hx-partial")
    assert "'body'" not in wire


@pytest.mark.requirement("S31")
def test_every_line_of_the_data_is_a_field_of_its_own():
    assert stream.encode("a\nb\r\nc\rd", seq=3, event="e") == b"event: e\nid: 3\ndata: a\ndata: b\ndata: c\ndata: d\n\n"


def call(session: Session, cid: str = "c1", **changes: Any) -> Call:
    made = Call(cid, "tools/call", {"name": "echo"}, 1.0, 1.0, **changes)
    session.calls.add(made)
    session.events.append("call.added", cid, 1.0)
    return made


def test_a_call_appears_once_even_when_it_is_heard_of_twice(session: Session, limits: Limits):
    call(session)
    for _ in range(2):
        patch = tab(session, limits, page="calls").patch()
        assert patch is not None
        assert 'hx-target="#call-c1" hx-swap="delete"' in patch.html
        assert 'hx-target="#calls" hx-swap="afterbegin"' in patch.html


def test_a_page_hears_only_of_the_calls_it_shows(session: Session, limits: Limits):
    call(session, quiet=True)
    call(session, "c2")
    patch = tab(session, limits, page="call", of="c1").patch()
    assert patch is not None
    assert "call-c1" not in patch.html
    assert "call-c2" not in patch.html


@pytest.mark.parametrize(
    "page",
    ["overview", "tools", "tool", "calls", "call", "log", "stderr", "roots", "connect", "stage", "inbox", "tasks", ""],
)
def test_every_page_has_a_snapshot(session: Session, limits: Limits, page: str):
    call(session)
    record(session)
    session.stderr.write(b"warming up")
    patch = tab(session, limits, page=page, of="c1", since=None).patch()
    assert patch is not None
    assert "#n-log" in patch.html


def test_stderr_is_sent_whole_first_and_then_by_line(session: Session, limits: Limits):
    one = tab(session, limits, page="stderr")
    session.stderr.write(b"first")
    patch = one.patch()
    assert patch is not None
    assert 'hx-target="#stderr" hx-swap="innerHTML"' in patch.html
    session.stderr.write(b"<second>")
    patch = one.patch()
    assert patch is not None
    assert 'hx-target="#stderr" hx-swap="beforeend"' in patch.html
    assert "&lt;second&gt;" in patch.html
    assert "first" not in patch.html


async def paced(session: Session, first: EventKind, steps: list[tuple[bool, EventKind]]) -> None:
    """After a first change each of these ends its window, or does not."""
    limits = Limits(stream_window_seconds=600)
    content = stream.PatchContent(tab(session, limits, "calls"), limits)
    for ends, kind in [(None, first), *steps]:
        session.events.append(kind, "c1", 0.0)
        if ends is not None:
            with anyio.move_on_after(0.1 if not ends else 30) as waited:
                await content.more(Signal())
            assert waited.cancelled_caught is not ends, kind
        async for _ in content.now():
            pass


async def test_what_somebody_waits_for_ends_the_window_but_not_one_after_the_other(session: Session):
    record(session)
    await paced(session, "call.added", [(False, "message.recorded"), (True, "call.settled"), (False, "call.settled")])


async def test_the_first_word_of_a_draft_waits_for_no_window_and_a_burst_of_steps_does(session: Session):
    """What led to the draft has cut a window short already: the step of it does so again, a few times in a row."""
    drafts: list[tuple[bool, EventKind]] = [(ends, "ask.draft") for ends in (True, False, True)]
    stepped: list[tuple[bool, EventKind]] = [(ends, "ask.stepped") for ends in (True, True, True, False)]
    await paced(session, "ask.added", [*drafts, *stepped])


def test_the_fifth_stream_of_a_browser_parks_the_oldest():
    hub = stream.StreamHub(Limits())
    mine = [hub.open("mine") for _ in range(4)]
    theirs, script = hub.open("theirs"), hub.open(None)
    hub.open("mine")
    assert [one.reason for one in mine] == ["parked", "", "", ""]
    assert theirs.reason == script.reason == ""
    hub.shutdown()
    assert mine[0].reason == "parked"
    assert mine[1].reason == theirs.reason == hub.open("late").reason == "shutdown"


def test_keys_of_tools_are_names_where_they_can_be():
    names: list[Any] = ["echo", "", ".", "a/../b", "~1", "same", "same", "a/b", "two\nlines", None, "x" * 501, "ü ?#"]
    items = [{"name": name} for name in names] + ["nothing"]
    listing = Listing(items=items)
    keys = keys_of(listing)
    expected = ["echo", "~1", "~2", "~3", "~4", "~5", "~6", "a/b", "~8", "~9", "~10", "ü ?#", "~12"]
    assert keys == expected
    assert [find_item(listing, key) for key in keys] == list(range(len(items)))
    assert [key_at(listing, index) for index in range(len(items))] == keys
    assert find_item(listing, "~99") is None
    assert find_item(listing, "unknown") is None


def asked(session: Session, aid: str = "a1", **changes: Any) -> Ask:
    async def nowhere(ask: Ask, answer: Answer) -> Delivery:
        return "sent"

    params = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 5}
    given: dict[str, Any] = {"kind": "sampling", "origin": "request", "method": "sampling/createMessage"}
    return Ask(id=aid, params=params, asked_at=1.0, message_seq=None, connection=0, deliver=nowhere, **given | changes)


def test_an_ask_that_nobody_saw_open_joins_the_settled_ones(session: Session, limits: Limits):
    one = tab(session, limits)
    roots = asked(session, kind="roots", method="roots/list")
    session.inbox.record(roots, roots_result([], AnsweredBy("roots")))
    brief = asked(session, "a2")
    session.inbox.add(brief)
    session.inbox.end(brief, "withdrawn", "never mind")
    patch = one.patch()
    assert patch is not None
    assert patch.html.count('hx-target="#settled" hx-swap="afterbegin"') == 2
    assert 'hx-target="#asks"' not in patch.html


async def test_an_answer_taken_back_draws_the_card_anew_and_announces_nothing(session: Session, limits: Limits):
    one = tab(session, limits)
    ask = asked(session)
    session.inbox.add(ask)
    first = one.patch()
    assert first is not None and "The server asks something" in first.html
    ask.begin(roots_result([], AnsweredBy("person")))
    ask.hold()
    session.inbox.reopen(ask)
    patch = one.patch()
    assert patch is not None and "The server asks something" not in patch.html
    assert f'hx-target="#ask-{ask.id}" hx-swap="delete"' in patch.html
    assert 'hx-target="#asks" hx-swap="beforeend"' in patch.html


@pytest.mark.requirement("R3-23", "S001 integration 2")
def test_a_draft_leaves_the_card_alone_and_grows_by_its_new_words(session: Session, limits: Limits):
    one, late = tab(session, limits), tab(session, limits)
    ask = asked(session)
    session.inbox.add(ask)
    one.patch()
    begun = Draft(AnsweredBy("model", "small"), "Hel", state="streaming")
    session.inbox.draft(ask, begun)
    patch = one.patch()
    assert patch is not None and 'id="ask-a1"' not in patch.html and "#asks" not in patch.html
    assert all(f'hx-target="#ask-a1-{place}" hx-swap="innerMorph"' in patch.html for place in ("flow", "model", "acts"))
    assert "Hel" in patch.html and "Draft ready" not in patch.html
    session.inbox.draft(ask, replace(begun, text="Hello <b>"))
    patch = one.patch()
    assert patch is not None
    assert patch.html == '<hx-partial hx-target="#ask-a1-draft" hx-swap="beforeend">lo &lt;b&gt;</hx-partial>'
    first = late.patch()
    assert first is not None and "Hello &lt;b&gt;" in first.html, "a tab that heard nothing yet gets all of it"
    content = {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "small-1"}
    session.inbox.draft(ask, replace(begun, text="Hello", content=content, state="ready"))
    patch = one.patch()
    assert patch is not None and patch.html.count("Draft ready") == 1 and 'name="block-0"' in patch.html
    again = one.snapshot()
    assert 'id="ask-a1-answer-1" hx-morph-skip' in again.html, "what is typed into it is not drawn over"
    assert "Draft ready" not in again.html
    session.inbox.end(ask, "withdrawn")
    patch = one.patch()
    assert patch is not None and "-model" not in patch.html


def test_models_that_were_added_are_in_the_cards_of_every_tab(session: Session, limits: Limits):
    one = tab(session, limits)
    session.inbox.add(asked(session))
    one.patch()
    session.models.add("mine", Model(provider="canned", text="Yes"))
    patch = one.patch()
    assert patch is not None and 'hx-target="#ask-a1-model"' in patch.html and 'value="mine"' in patch.html


def test_an_inbox_that_was_cleared_is_cleared_in_every_tab(session: Session, limits: Limits):
    tabs = [tab(session, limits), tab(session, limits)]
    done, still = asked(session), asked(session, "a2")
    session.inbox.add(done)
    session.inbox.add(still)
    session.inbox.end(done, "withdrawn", "never mind")
    for each in tabs:
        each.patch()
    session.inbox.clear()
    for each in tabs:
        patch = each.patch()
        assert patch is not None
        assert 'hx-target="#settled" hx-swap="innerMorph"></hx-partial>' in patch.html
        assert 'hx-target="#asks" hx-swap="innerMorph"' in patch.html
        assert f'id="ask-{done.id}"' not in patch.html and f'id="ask-{still.id}"' in patch.html


def test_an_ask_that_was_open_is_settled_where_it_stands(session: Session, limits: Limits):
    one = tab(session, limits)
    ask = asked(session)
    session.inbox.add(ask)
    first = one.patch()
    assert first is not None and 'hx-target="#asks" hx-swap="beforeend"' in first.html
    ask.edit({**ask.params, "maxTokens": 7})
    session.events.append("ask.changed", ask.id, 1.0)
    edited = one.patch()
    assert edited is not None and 'hx-target="#ask-a1-request" hx-swap="innerHTML"' in edited.html
    assert "<ins>7</ins>" in edited.html and 'hx-target="#ask-a1-state"' in edited.html
    session.inbox.end(ask, "expired")
    patch = one.patch()
    assert patch is not None
    assert 'hx-target="#ask-a1-state" hx-swap="innerHTML"' in patch.html and "#settled" not in patch.html
    assert "Dismiss" in patch.html


def test_the_stage_follows_what_is_asked(session: Session, limits: Limits):
    one = tab(session, limits, page="stage")
    session.inbox.add(asked(session))
    patch = one.patch()
    assert patch is not None and 'hx-target="#stage"' in patch.html and "1. Sampling" in patch.html
