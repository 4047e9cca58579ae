"""The message log: pairing, findings, bounds of rows and bodies, reading, and one-line gists."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.events import EventLog
from app.core.json.text import Parsed, dump, parse
from app.core.log import MessageLog
from app.core.stderr import StderrLog
from app.core.summary import gist
from app.core.wire import Direction, Exchange, Finding, Message, kind_of, rpc_id_of
from app.settings import Limits


class Book:
    """A log with a clock that moves one second at every look."""

    def __init__(self, **limits: int) -> None:
        self.limits = Limits(**limits)
        self.events = EventLog(1_000)
        self._now = 0.0
        self.log = MessageLog(self.limits, self.events, lambda: 1e9, self.tick)

    def tick(self) -> float:
        self._now += 1
        return self._now

    def write(self, direction: Direction, value: Any, **more: Any) -> Message:
        raw = value if isinstance(value, bytes) else dump(value)
        return self.log.record(direction, raw, parse(raw), **more)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"method": "a"}, "notification"),
        ({"method": "a", "id": None}, "request"),
        ({"method": "a", "id": 1, "result": 1}, "request"),
        ({"method": 1, "id": 1}, "invalid"),
        ({"result": None}, "response"),
        ({"error": None}, "error"),
        ({"result": 1, "error": 1}, "response"),
        ({}, "invalid"),
        ([], "invalid"),
        (None, "invalid"),
    ],
)
def test_kinds_are_told_leniently(value: Any, kind: str):
    assert kind_of(value) == kind


@pytest.mark.parametrize(
    ("value", "rpc_id"), [(1, 1), ("1", "1"), (1.5, 1.5), (True, None), (None, None), ([1], None), ({}, None)]
)
def test_an_id_is_what_can_be_one(value: Any, rpc_id: Any):
    assert rpc_id_of({"id": value}) == rpc_id


def test_a_reply_learns_its_request_and_how_long_it_took():
    book = Book()
    asked = book.write("out", {"id": 1, "method": "tools/list"}, quiet=True)
    theirs = book.write("in", {"id": 1, "method": "ping"})
    reply = book.write("in", {"id": 1, "result": {}})
    ours = book.write("out", {"id": 1, "result": {}})
    assert (reply.answers, reply.method, reply.quiet, reply.latency_ms) == (asked.seq, "tools/list", True, 2_000)
    assert (ours.answers, ours.method) == (theirs.seq, "ping")
    assert book.log.reply_to(asked.seq) == reply and book.log.reply_to(theirs.seq) == ours
    again = book.write("in", {"id": 1, "result": {}})
    assert again.answers is None and again.latency_ms is None


def test_one_and_the_text_one_are_two_ids():
    book = Book()
    number, text = book.write("out", {"id": 1, "method": "a"}), book.write("out", {"id": "1", "method": "b"})
    assert book.write("in", {"id": "1", "result": {}}).answers == text.seq
    assert book.write("in", {"id": 1, "error": {}}).answers == number.seq


def test_a_seq_is_that_of_its_event():
    book = Book()
    book.events.append("roots.changed", "roots", 0)
    message = book.write("in", {"method": "a"})
    event = (book.events.since(message.seq - 1) or [])[0]
    assert (event.seq, event.kind, event.subject) == (message.seq, "message.recorded", str(message.seq))


def test_what_cannot_be_read_is_kept_with_its_problem():
    book = Book()
    message = book.write("in", b"\xff junk", size=99)
    assert (message.kind, message.size, message.rpc_id, message.method) == ("invalid", 99, None, None)
    assert message.problem is not None and message.gist == "\N{REPLACEMENT CHARACTER} junk"  # the row shows the junk
    assert book.log.raw(message.seq) == b"\xff junk"


def test_bodies_leave_before_rows():
    book = Book(log_bytes=1_000, log_messages=100)
    rows = [book.write("in", b"x" * 100) for _ in range(15)]
    assert len(book.log) == 15 and book.log.rows_dropped == 0
    assert [book.log.raw(row.seq) is None for row in rows] == [True] * 5 + [False] * 10
    assert "log.trimmed" in [each.kind for each in book.events.since(0) or []]


def test_one_body_is_kept_however_large():
    book = Book(log_bytes=10)
    message = book.write("in", b"x" * 100)
    assert book.log.raw(message.seq) == b"x" * 100


def test_rows_are_bounded_and_what_left_is_counted():
    book = Book(log_messages=10)
    rows = [book.write("in", {"method": "a", "n": number}) for number in range(25)]
    assert len(book.log) == 10 and book.log.rows_dropped == 15 and book.log.count == 25
    assert book.log.first_seq == rows[15].seq
    assert book.log.get(rows[0].seq) is None and book.log.get(rows[24].seq) == rows[24]
    assert book.log.raw(rows[0].seq) is None


def test_rows_stay_small_whatever_a_server_calls_things():
    book = Book()
    asked = book.write("in", {"id": "i" * 100_000, "method": "m" * 100_000})
    assert asked.method is not None and len(asked.method) == 200 and len(str(asked.rpc_id)) == 200
    assert len(asked.gist) <= 160
    other = book.write("in", {"id": "i" * 99_999, "method": "m"})
    assert book.write("out", {"id": "i" * 100_000, "result": {}}).answers == asked.seq
    assert book.write("out", {"id": "i" * 99_999, "result": {}}).answers == other.seq


@given(st.integers(0, 40), st.integers(0, 60), st.integers(1, 50))
def test_reading_after_before_and_last(count: int, mark: int, limit: int):
    book = Book(log_messages=30)
    for number in range(count):
        book.write("in", {"method": "a", "n": number})
    kept = [each.seq for each in book.log.last(1_000)]
    assert [each.seq for each in book.log.after(mark, limit)] == [seq for seq in kept if seq > mark][:limit]
    assert [each.seq for each in book.log.before(mark, limit)] == [seq for seq in kept if seq < mark][-limit:]
    assert [each.seq for each in book.log.last(limit)] == kept[-limit:]


def test_findings_stand_beside_their_message_bounded_and_counted():
    book = Book(findings_per_message=3, findings=5)
    message = book.write("in", {"method": "a"})
    for number in range(10):
        book.log.remark(message.seq, Finding("R5-01", "must", f"remark {number % 5}"))
    assert [each.text for each in book.log.findings(message.seq)] == ["remark 0", "remark 1", "remark 2"]
    assert {each.message_seq for each in book.log.findings(message.seq)} == {message.seq}
    assert book.log.findings_total == 10
    for _ in range(10):
        book.log.remark(book.write("in", {"method": "a"}).seq, Finding("R5-01", "must", "x"))
    assert book.log.findings(message.seq) == (), "the oldest left"
    assert book.log.findings(12345) == ()


def texts(book: Book, *args: Any, **more: Any) -> list[str]:
    return [each.text for each in book.log.findings_of(*args, **more)]


def test_whoever_is_made_of_messages_asks_the_log_what_was_remarked_about_them():
    book = Book()
    first, second, other = (book.write("in", {"method": name}).seq for name in "abc")
    book.log.note("c1", Finding("R2-01", "note", "as a task"))
    for seq, text in ((second, "late"), (first, "early"), (other, "of another"), (second, "later")):
        book.log.remark(seq, Finding("R5-01", "must", text))
    book.log.note("c1", Finding("R2-01", "note", "at the end"))
    assert texts(book, {second, first}) == ["early", "late", "later"], "in the order of the messages"
    assert texts(book, [first], ["c1"]) == ["early", "as a task", "at the end"]
    assert texts(book, [], ["c2"]) == []


def test_one_message_may_bring_several_things_and_each_has_findings_of_its_own():
    book = Book(findings_per_message=2, open_asks=3)
    seq = book.write("in", {"id": 1, "result": {}}).seq
    book.log.remark(seq, Finding("R6-31", "must", "of all"))
    for key in "abcdefg":
        for number in range(4):
            book.log.remark(seq, Finding("R4-30", "note", f"{key}{number}"), about=key)
    assert texts(book, [seq], about="a") == ["a0", "a1"] and texts(book, [seq], about="") == ["of all"]
    kept = ["of all", "a0", "a1", "b0", "b1", "c0", "c1"]
    assert texts(book, [seq]) == kept, "bounded by as many as can be open"
    assert [each.text for each in book.log.findings(seq)] == kept


@pytest.mark.parametrize("bound", ["rows", "findings"])
def test_a_finding_outlives_its_row_while_somebody_refers_to_it(bound: str):
    book = Book(**({"log_messages": 5} if bound == "rows" else {"findings": 5}))
    held, loose = (book.write("in", {"method": name}).seq for name in "ab")
    book.log.referred = lambda: (held, "c1")
    for seq in (held, loose):
        book.log.remark(seq, Finding("R5-01", "must", "first"))
    for subject in ("c1", "c2"):
        book.log.note(subject, Finding("R2-01", "note", "noted"))
    for _ in range(600):
        book.log.remark(book.write("in", {"method": "flood"}).seq, Finding("R5-01", "must", "x"))
    assert book.log.findings(held) == () and texts(book, [held], ["c1"]) == ["first", "noted"]
    assert texts(book, [loose], ["c2"]) == [], "nobody refers to it"
    book.log.remark(held, Finding("R5-01", "must", "late"))
    assert texts(book, [held]) == ["first", "late"]


def test_every_request_has_a_place_among_the_messages_and_is_bounded():
    book = Book(exchanges=3, exchange_messages=2, log_messages=4)
    stream = Exchange("GET", "http://x", 0.0, ())
    book.log.exchanged(stream)
    seqs = [book.write("in", {"method": "a"}, exchange=stream).seq for _ in range(6)]
    assert (stream.seq, stream.carried, stream.message_seqs) == (1, 6, seqs[-2:])
    for _ in range(3):
        book.log.exchanged(Exchange("GET", "http://x", 0.0, ()))
    kept = book.log.exchanges()
    assert len(kept) == 3 and stream not in kept
    assert book.log.exchange(seqs[-1]) is stream, "a row that is kept keeps its own"
    assert book.log.exchanges(kept[0].seq) == kept[1:] and book.log.exchanges(0, kept[1].seq) == kept[:1]
    assert [each.kind for each in book.events.since(0) or []].count("exchange.recorded") == 4


def test_what_outlives_its_row_is_bounded_too():
    book = Book(log_messages=5, findings_outlived=10)
    seqs: list[int] = []
    book.log.referred = lambda: seqs
    for _ in range(1_000):
        seqs.append(book.write("in", {"method": "flood"}).seq)
        book.log.remark(seqs[-1], Finding("R5-01", "must", "x"))
    assert 10 <= len(book.log.findings_of(seqs)) <= 10 + 5 + 256
    assert len(book.log.findings_of(seqs[-10:])) == 10


# --- stderr -----------------------------------------------------------------------------------------------------------


def test_stderr_is_kept_as_text_and_its_tail_is_whole_lines():
    events = EventLog(100)
    log = StderrLog(Limits(stderr_lines=3, stderr_line_bytes=10), events, lambda: 0.0)
    for line in (b"one", b"\xff", b"a" * 25, b"four"):
        log.write(line)
    assert log.count == 4
    assert [(each.number, each.text) for each in log.lines()] == [
        (2, "\\xff"),
        (3, "a" * 10 + " … 15 more bytes"),
        (4, "four"),
    ]
    assert log.tail(5) == "four" and log.tail(1_000) == "\\xff\n" + "a" * 10 + " … 15 more bytes\nfour"
    assert log.tail(1_000, since=3) == "four" and log.tail(1_000, since=4) == ""
    assert len(events.since(0) or []) == 4


# --- gists ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "method", "line"),
    [
        ({"method": "tools/call", "params": {"name": "echo", "arguments": {"a": 1}}}, None, "echo a 1"),
        ({"method": "initialize", "id": 1, "params": {"protocolVersion": "2025-11-25"}}, None, "2025-11-25"),
        (
            {"method": "notifications/progress", "params": {"progress": 1, "total": 4, "message": "x"}},
            None,
            "1 of 4 x",
        ),
        ({"method": "notifications/message", "params": {"level": "info", "data": "hi"}}, None, "info hi"),
        ({"method": "notifications/cancelled", "params": {"requestId": 7}}, None, "request 7"),
        ({"id": 1, "error": {"code": -1, "message": "no\nway"}}, None, "-1 no way"),
        ({"id": 1, "error": "text"}, None, "'text'"),
        ({"id": 1, "result": {"tools": [{}]}}, "tools/list", "1 tool"),
        ({"id": 1, "result": {"resources": []}}, "resources/list", "0 resources"),
        ({"id": 1, "result": {}}, "ping", ""),
        ({"id": 1, "result": {"content": [{"type": "text", "text": "hi"}], "isError": True}}, "x", "tool error hi"),
        ({"id": 1, "result": {"content": [{"type": "image"}]}}, "x", "image"),
        (
            {
                "id": 1,
                "result": {
                    "content": [{"type": "text", "text": '{"accounts": []}'}],
                    "structuredContent": {"accounts": [{}, {}], "total": 143, "next": "c_0020", "page": {"at": 1}},
                },
            },
            "tools/call",
            '2 accounts, total 143, next "c_0020", page {1}',
        ),
        (
            {"id": 1, "result": {"content": [{"type": "text", "text": "Sunny"}], "structuredContent": {"result": 1}}},
            "tools/call",
            "Sunny",
        ),
        (
            {
                "method": "tools/call",
                "params": {
                    "name": "book",
                    "arguments": {"seats": 2, "notes": "\ud800", "ids": [1, 2]},
                    "inputResponses": {"question-1": {"action": "decline"}},
                    "requestState": "x" * 900,
                },
            },
            None,
            'book seats 2, notes "\\ud800", 2 ids answers question-1',
        ),
        (
            {"method": "tools/call", "params": {"name": "book", "arguments": {}, "requestState": "x" * 900}},
            None,
            "book",
        ),
        ({"id": 1, "result": {"nextCursor": "4", "x": [None]}}, "x", '{"nextCursor":"4","x":[null]}'),
        ({"id": 1, "result": {"tasks": []}}, "tasks/list", "0 tasks"),
        (
            {"id": 1, "result": {"task": {"taskId": "t7", "status": "working", "ttl": 5}}},
            "tools/call",
            "working, task t7",
        ),
        (
            {"id": 1, "result": {"taskId": "t7", "status": "failed", "statusMessage": "no"}},
            "tasks/get",
            "failed, no, task t7",
        ),
        ({"method": "tasks/get", "id": 1, "params": {"taskId": "t7"}}, None, "task t7"),
        (
            {"method": "notifications/cancelled", "params": {"requestId": "a", "reason": "too late"}},
            None,
            "request a: too late",
        ),
        (
            {
                "method": "sampling/createMessage",
                "params": {"messages": [{"content": {"text": "first"}}, {"content": [{"text": "Say it"}]}]},
            },
            None,
            "Say it",
        ),
        ({"id": 1, "result": {"role": "assistant", "content": {"type": "text", "text": "hi"}}}, "x", "hi"),
        ({"id": 1, "result": {"action": "accept", "content": {"a": 1}}}, "elicitation/create", 'accept {"a":1}'),
        ({"id": 1, "result": {"action": "decline"}}, "elicitation/create", "decline"),
        ({"method": "x", "params": {"list": ["y" * 900]}}, None, '{"list":["' + "y" * 149 + "…"),
        (
            {"id": 1, "result": {"protocolVersion": "v", "serverInfo": {"name": "n"}}},
            "initialize",
            "v agreed, n",
        ),
    ],
)
def test_a_gist_says_what_is_in_it(value: Any, method: str | None, line: str):
    kind = kind_of(value)
    assert gist(kind, value.get("method", method), value, dump(value)) == line


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["method", "id", "params", "result", "error", "jsonrpc"])
methods = st.sampled_from(["tools/call", "notifications/progress", "notifications/message", "initialize", "x"])
inner = st.dictionaries(
    st.sampled_from(["name", "arguments", "progress", "total", "level", "data", "uri", "content", "code", "message"]),
    json_values,
)


@given(st.dictionaries(keys, json_values | methods | inner))
def test_no_message_is_too_odd_for_one_line(value: dict[str, Any]):
    book = Book()
    message = book.log.record("in", b"{}", Parsed(value))
    assert len(message.gist) <= 160 and "\n" not in message.gist
