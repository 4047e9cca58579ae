"""Text that froze everything: an address that a server names, and a target that a person pastes (H03).

The oracle around each of them says that nobody else waited."""

import json
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.core.options import Options
from app.core.targets import HttpTarget, StdioTarget
from app.sessions import Session
from app.store import Store
from app.web.connect import mcp_json as mcpjson
from app.web.connect.consent import consent
from app.web.kit.request_bodies import COMMAND_LINE_LONGEST, Body, ConnectBody, FormErrors, connect_of_form
from tests.drive import Felt, connect
from tests.drive_http import raw_peer

pytestmark = [pytest.mark.faults, pytest.mark.requirement("H03")]
GUARD = 2.5
"""Seconds: ten times what anything here may take. Each of them took from 4 s to minutes."""
HOSTILE = ["?key", "&token", "?auth=", "--", "sk-", "://a@"]


@pytest.mark.parametrize("size", [4_000, 16_000, 60_000])
@pytest.mark.parametrize("piece", HOSTILE)
async def test_h03_a_redirect_freezes_nobody(session: Session, oracle: Felt, piece: str, size: int):
    where = "http://127.0.0.1/" + piece * (size // len(piece))
    async with raw_peer(http={"initialize": {"status": 302, "headers": {"location": where}}}) as peer:
        began = time.monotonic()
        await connect(session, peer.target())
        assert time.monotonic() - began < GUARD
    assert session.info.trouble is not None and session.info.trouble.kind == "http-302"
    assert len(session.info.trouble.message) < 9_000


@pytest.mark.parametrize("size", [4_000, 16_000, 100_000])
@pytest.mark.parametrize("piece", HOSTILE)
async def test_h03_an_endpoint_freezes_nobody(session: Session, oracle: Felt, piece: str, size: int):
    async with raw_peer(endpoint="http://evil.example/" + piece * (size // len(piece))) as peer:
        began = time.monotonic()
        await connect(session, peer.older())
        assert time.monotonic() - began < GUARD
    assert session.info.trouble is not None and session.info.trouble.kind == "endpoint"
    if size > 8_192:
        assert session.info.trouble.message.endswith("bytes, and Parley takes 8,192.")


async def test_h03_an_endpoint_that_is_no_address_ends_in_words(session: Session, oracle: Felt):
    async with raw_peer(endpoint="http://[::1") as peer:
        await connect(session, peer.older())
    assert session.info.trouble is not None and session.info.trouble.kind == "endpoint"


ARGUMENTS = ["-token", "token.", "rm -r", "curl ", "dd ", "--key", "?key", "-r", "r"]


@pytest.mark.parametrize("piece", ARGUMENTS)
@pytest.mark.parametrize("place", ["args", "url", "env"])
async def test_h03_a_pasted_target_freezes_nobody(piece: str, place: str, tmp_path: Path):
    size = 4_000 if place == "url" else 40_000
    text = piece * (size // len(piece))
    entry = {
        "args": {"command": "x", "args": ["--" + text, text, text + "!"]},
        "env": {"command": "x", "env": {text[:4_000]: text}},
        "url": {"url": f"http://h/?{text}"},
    }[place]
    began = time.monotonic()
    (found,) = mcpjson.read(json.dumps({"mcpServers": {"it": entry}}))
    target = found.target
    assert target is not None, found.problem
    if isinstance(target, StdioTarget):
        assert consent(None, target).argv
    store = Store(tmp_path)
    await store.open()
    await store.save("me", target, Options(), "")
    for number in range(20):
        await store.write(store.used("me", HttpTarget(transport="http", url=f"http://h/{number}"), Options()))
    await store.close()
    store = Store(tmp_path)
    await store.open()
    for number in range(20):
        await store.write(store.used("me", HttpTarget(transport="http", url=f"http://h/{number}"), Options()))
    assert [kept for kept in store.of("me") if kept.saved]
    await store.close()
    assert time.monotonic() - began < GUARD * 2


def test_h03_what_is_pasted_has_a_size():
    with pytest.raises(FormErrors) as refused:
        mcpjson.read(json.dumps({"mcpServers": {"it": {"command": "x" * 300_000}}}))
    assert "paste at most 262,144 at a time" in refused.value.fields[mcpjson.FIELD][0]


def test_h03_a_command_line_has_a_size():
    form = Body({"transport": "stdio", "command_line": "x" * 9_000_000}, is_form=True)
    began = time.monotonic()
    with pytest.raises(FormErrors) as refused:
        connect_of_form(form)
    assert time.monotonic() - began < GUARD
    assert f"{COMMAND_LINE_LONGEST:,}" in refused.value.fields["/target/command_line"][0]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"transport": "stdio", "command": "x" * 5_000}, "4096"),
        ({"transport": "stdio", "command": "x", "args": ["y" * 100_000] * 2}, "128 KiB together"),
        (
            {"transport": "stdio", "command": "x", "env": {f"N{at}": "y" * 100_000 for at in range(20)}},
            "1 MiB together",
        ),
        ({"transport": "stdio", "command": "x", "env": {"N" * 5_000: "y"}}, "is not a name"),
        ({"transport": "http", "url": "http://h/" + "y" * 5_000}, "4096"),
        ({"transport": "http", "url": "http://h/", "headers": {"X": "y" * 20_000}}, "16 KiB"),
        (
            {"transport": "http", "url": "http://h/", "headers": {f"X{at}": "y" * 16_000 for at in range(20)}},
            "256 KiB together",
        ),
        ({"transport": "http", "url": "http://h/", "headers": {"X" * 5_000: "y"}}, "is not a name"),
    ],
)
def test_h03_a_target_that_is_too_large_is_refused_in_words(target: dict[str, object], words: str):
    with pytest.raises(ValidationError) as refused:
        ConnectBody.model_validate({"target": target})
    assert words in str(refused.value)
