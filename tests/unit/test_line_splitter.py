"""Chunks to lines: the same lines however the bytes were cut, within the limit, in linear time."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from app.protocol.links.base import Oversized
from app.protocol.links.stdio import LineSplitter

streams = st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"{}", b"\xff", b"\xc3", b"\xa9", b"long line"])).map(
    b"".join
)


def cut(stream: bytes, at: list[int]) -> list[bytes]:
    places = sorted({0, len(stream), *(place % (len(stream) + 1) for place in at)})
    return [stream[begin:end] for begin, end in pairwise(places)]


def split(chunks: list[bytes], limit: int = 1_000) -> list[bytes | Oversized]:
    splitter = LineSplitter(limit)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    rest = splitter.rest()
    return lines if rest is None else [*lines, rest]


@given(streams, st.lists(st.integers(0, 1_000)))
@example(b"", [])
@example(b"\n", [])
@example(b"a\nb", [1, 2])
def test_any_cut_gives_the_same_lines(stream: bytes, at: list[int]):
    expected = stream.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert split(cut(stream, at)) == expected


@given(streams, st.lists(st.integers(0, 1_000)))
def test_no_byte_is_lost_or_added(stream: bytes, at: list[int]):
    lines = split(cut(stream, at))
    assert all(isinstance(line, bytes) for line in lines)
    joined = b"".join(line + b"\n" for line in lines if isinstance(line, bytes))
    assert joined == stream or joined == stream + b"\n"


@given(st.integers(0, 40), st.lists(st.integers(0, 100)), st.integers(1, 30))
def test_a_line_above_the_limit_is_said_as_soon_as_that_is_known(length: int, at: list[int], limit: int):
    splitter = LineSplitter(limit)
    seen: list[bytes | Oversized] = []
    fed = 0
    for chunk in cut(b"x" * length, at):
        fed += len(chunk)
        found = splitter.feed(chunk)
        seen += found
        assert bool(found) == (fed > limit)
        if found:
            assert found == [Oversized(b"x" * fed, fed)]
            break
    if not seen:
        assert splitter.feed(b"\n") == [b"x" * length]


def test_a_line_exactly_at_the_limit_is_a_line():
    assert split([b"x" * 10 + b"\n"], limit=10) == [b"x" * 10]
    assert split([b"x" * 11 + b"\n"], limit=10) == [Oversized(b"x" * 11, 11)]
    assert split([b"x" * 11], limit=10) == [Oversized(b"x" * 11, 11)]


def test_lines_after_a_long_one_in_the_same_chunk_are_still_lines():
    assert split([b"x" * 20 + b"\nshort\n"], limit=10) == [Oversized(b"x" * 20, 20), b"short"]


def test_a_long_line_in_many_pieces_costs_linear_time():
    splitter = LineSplitter(100_000_000)
    for _ in range(100_000):
        assert splitter.feed(b"x" * 100) == []
    [line] = splitter.feed(b"\n")
    assert isinstance(line, bytes) and len(line) == 10_000_000
