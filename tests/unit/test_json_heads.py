"""The head of a message that cannot be read: what is told of it, in pieces or whole, and what it can cost."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.json.heads import HeadReader, heads
from app.core.rules.results import is_base64

HANG = 5.0
"""Ten times what the worst of these should take on a busy machine."""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
IDS = st.integers(-(2**53), 2**53) | st.text(max_size=20)


@pytest.mark.requirement("B09")
@given(rpc_id=IDS, result=VALUES, kind=st.sampled_from(["result", "error"]), order=st.permutations(range(3)))
def test_b09_the_head_of_a_reply_is_that_of_the_reply(rpc_id: Any, result: Any, kind: str, order: list[int]) -> None:
    members: list[tuple[str, Any]] = [("jsonrpc", "2.0"), ("id", rpc_id), (kind, result)]
    message = dict(members[at] for at in order)
    for text in (json.dumps(message), json.dumps(message, indent=2), json.dumps(message, ensure_ascii=False)):
        [head] = heads(text.encode(errors="surrogatepass"))
        assert head.is_reply and head.closed and head.rpc_id == rpc_id


@pytest.mark.requirement("B09")
@given(rpc_id=IDS, result=VALUES, size=st.integers(1, 7))
def test_b09_a_head_is_the_same_in_pieces(rpc_id: Any, result: Any, size: int) -> None:
    raw = json.dumps({"jsonrpc": "2.0", "result": {"content": result}, "id": rpc_id}, indent=1).encode()
    reader = HeadReader()
    for line in raw.split(b"\n"):
        reader.feed(line + b"\n")
    assert reader.is_reply and reader.closed and reader.rpc_id == rpc_id
    cut = heads(raw[: len(raw) - size])
    assert len(cut) == 1 and not cut[0].closed


@pytest.mark.requirement("B09")
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"hello",
        b"[]",
        b"{'jsonrpc': '2.0', 'id': 1, 'result': {}}",
        b'{"a":{"jsonrpc":"2.0","id":1,"result":{}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}',
        b'{"id":1,"result":{}}',
        b'log: {"jsonrpc":"2.0","id":1,"result":{}}',
    ],
)
def test_b09_what_is_no_reply_is_taken_for_none(text: bytes) -> None:
    assert not any(head.is_reply for head in heads(text))


@pytest.mark.requirement("B09")
@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[],".ljust(3) * 2_700_000,
        b'{"a":"' + b'\\"' * 4_000_000,
        b'{"a":"' + b"\\" * 8_000_000,
        b'{"' * 4_000_000,
        b'{"id":' + b"1" * 8_000_000,
        b'{"jsonrpc":"2.0","id":1,"result":' + b"{" * 8_000_000,
        b"{}" * 4_000_000,
        b'{"a":' + b" " * 8_000_000,
    ],
)
def test_b09_a_head_costs_little_whatever_the_text(text: bytes) -> None:
    began = time.monotonic()
    heads(text)
    assert time.monotonic() - began < HANG


@pytest.mark.requirement("B15")
@given(st.binary(max_size=40))
def test_b15_what_was_encoded_is_base64(data: bytes) -> None:
    import base64

    text = base64.b64encode(data).decode()
    assert is_base64(text)
    if data:
        assert not is_base64(text[:-1]) and not is_base64(text + "\n") and not is_base64(text.replace(text[0], "!"))
