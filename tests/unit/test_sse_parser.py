"""The parser of server-sent events: any chunking gives the same events, in linear time, and nothing grows for ever."""

import time
from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.protocol.links.base import Oversized
from app.protocol.links.sse_parser import SseEvent, SseParser

MIB = 1024 * 1024
pytestmark = pytest.mark.requirement("R5-41", "R5-43")


def read(chunks: Iterable[bytes], limit: int = MIB) -> list[SseEvent | Oversized]:
    """Every event of these chunks, up to and with the first that is refused."""
    parser, found = SseParser(limit), []
    for chunk in chunks:
        for event in parser.feed(chunk):
            found.append(event)
            if isinstance(event, Oversized):
                return found
    return found


def one(text: bytes) -> SseEvent:
    [event] = read([text])
    assert isinstance(event, SseEvent)
    return event


def cut(raw: bytes, places: Iterable[int]) -> list[bytes]:
    at = sorted({place % (len(raw) + 1) for place in places})
    return [raw[start:end] for start, end in zip([0, *at], [*at, len(raw)], strict=True)]


lines = st.one_of(
    st.sampled_from(
        [
            b"", b"data: a", b"data:a", b"data", b"data: ", b"data:  two", b"event: endpoint", b"event", b"id: 7",
            b"id",
            b"id: a\0b", b"id: \xff\xe4", b"retry: 20", b"retry: -1", b"retry: x", b"retry: 99999999999", b": comment",
            b"datax: no", b"DATA: no", b"data : no", b"\xef\xbb\xbfdata: bom", b"data: \xff\xfe", b"other: x",
        ]
    ),
    st.binary(max_size=8).map(lambda raw: b"data: " + raw.replace(b"\r", b"").replace(b"\n", b"")),
)  # fmt: skip
streams = st.builds(
    lambda bom, parts: bom + b"".join(line + end for line, end in parts),
    st.sampled_from([b"", b"\xef\xbb\xbf", b"\xef", b"\xef\xbb"]),
    st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n"])), max_size=12),
)


@settings(max_examples=300, deadline=None)
@given(streams, st.lists(st.integers(0, 400), max_size=20))
@example(b"\n\xef\xbb\xbfdata: x\n\n", [1])
@example(b"\xef\xbb\xbfdata: x\n\n", [1, 2])
@example(b"data: x\r\n\r\n", [8, 9, 10])
@example(b"data: x\r\rdata: y\r\r", [8, 9])
def test_any_chunking_gives_the_same_events(raw: bytes, places: list[int]):
    whole = read([raw])
    assert read(cut(raw, places)) == whole
    assert read([raw[at : at + 1] for at in range(len(raw))]) == whole
    assert read(chunk for byte in cut(raw, places) for chunk in (byte, b"")) == whole


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=10))
def test_any_bytes_at_all_are_taken(raw: bytes, places: list[int]):
    assert read(cut(raw, places)) == read([raw])


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=20), min_size=1, max_size=5
    )
)
def test_what_was_written_is_what_is_read(texts: list[str]):
    raw = "".join(f"data: {text}\n" for text in texts) + "\n"
    assert one(raw.encode()).data == "\n".join(texts).encode()


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_of_the_standard_ends_a_line(end: bytes):
    raw = end.join([b"event: message", b"id: 1", b"data: a", b"data: b", b"", b""])
    assert read([raw]) == [SseEvent("message", b"a\nb", "1", None)]


def test_ids_and_retry_arrive_with_their_event_and_only_with_it():
    first, second = read([b"id: 7\nretry: 1500\ndata: a\n\ndata: b\n\n"])
    assert first == SseEvent("message", b"a", "7", 1500)
    assert second == SseEvent("message", b"b", None, None)


def test_a_priming_event_without_data_still_carries_its_id_and_retry():
    assert one(b"id: 7\nretry: 20\ndata:\n\n") == SseEvent("message", b"", "7", 20)
    assert one(b"id: 7\n\n") == SseEvent("message", b"", "7", None)
    assert one(b"retry: 20\n\n") == SseEvent("message", b"", None, 20)


def test_an_event_without_any_of_these_is_no_event():
    assert read([b":\n\n", b"event: x\n\n", b"\n\n\n"]) == []


@pytest.mark.parametrize("value", [b"-1", b"1.5", b"", b"1e3", b"9999999999", "²".encode()])
def test_a_retry_that_is_no_number_of_milliseconds_is_ignored(value: bytes):
    assert one(b"retry: " + value + b"\ndata: a\n\n").retry is None


def test_an_id_goes_back_as_the_very_same_bytes():
    raw = "Grüße 世界".encode()
    found = one(b"id: " + raw + b"\ndata: a\n\n").id
    assert found is not None and found.encode("latin-1") == raw


def test_an_unfinished_event_at_the_end_is_dropped():
    assert read([b"data: a\n\ndata: half"]) == [SseEvent("message", b"a", None, None)]


@pytest.mark.requirement("F08")
@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
@pytest.mark.parametrize("shape", [b"data: %s\n\n", b"data:%s\n\n", b"event: message\r\ndata: %s\r\n\r\n"])
@pytest.mark.parametrize(("size", "refused"), [(99, False), (100, False), (101, True), (150, True), (5000, True)])
def test_an_event_above_the_limit_is_refused_however_it_is_cut(chunk: int, shape: bytes, size: int, refused: bool):
    raw = b"data: before\n\n" + shape % (b"x" * size)
    found = read([raw[at : at + chunk] for at in range(0, len(raw), chunk)], limit=100)
    assert found[0] == SseEvent("message", b"before", None, None)
    [last] = found[1:]
    assert isinstance(last, Oversized) is refused
    if isinstance(last, Oversized):
        assert not last.fatal
        assert 100 < last.size <= max(size, chunk) + 10
        assert last.prefix and set(last.prefix) == {ord("x")}


@pytest.mark.requirement("F08")
@pytest.mark.parametrize("line", [b"data:\n", b"data: x\n", b"data: " + b"x" * 50 + b"\n"])
def test_many_small_lines_of_one_event_are_bounded_too(line: bytes):
    found = read([line] * 10_000, limit=1000)
    assert len(found) == 1 and isinstance(found[0], Oversized)


@pytest.mark.requirement("F08")
def test_a_line_without_end_is_bounded_whatever_it_is():
    for start in (b": comment ", b"id: ", b"event: ", b"nothing", b""):
        found = read([start, *[b"x" * 100] * 20], limit=1000)
        assert len(found) == 1 and isinstance(found[0], Oversized)


def took(chunks: list[bytes], limit: int) -> float:
    began = time.thread_time()
    assert len(read(chunks, limit)) == 1
    return time.thread_time() - began


@pytest.mark.requirement("F08")
def test_a_large_event_is_read_in_linear_time(capsys: pytest.CaptureFixture[str]):
    """The guard is ten times a straight line; a quadratic reader would be at a hundred and more."""

    def event(size: int, chunk: int) -> list[bytes]:
        raw = b"data: " + b"x" * size + b"\n\n"
        return [raw[at : at + chunk] for at in range(0, len(raw), chunk)]

    small, large = (min(took(event(size, 4096), 64 * MIB) for _ in range(2)) for size in (5 * MIB // 10, 50 * MIB))
    lines = [b"data: " + b"x" * 1000 + b"\n"] * 50_000 + [b"\n"]
    many = took(lines, 64 * MIB)
    with capsys.disabled():
        figures = f"0.5 MiB: {small * 1000:.1f} ms, 50 MiB: {large * 1000:.0f} ms, 50,000 lines: {many * 1000:.0f} ms"
        print(f"\n  one SSE event of {figures}")
    assert large < 100 * small * 10 + 1
    assert many < 5
