"""Servers written by others, over HTTP: what a person does with one works over every transport it speaks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from app.core.options import Root
from app.sessions import Session
from tests.drive import HANG, ME, call_tool, connected, findings, flushed, inbound, raws, settled, until
from tests.drive_http import Peer, everything_web, sdk_web

pytestmark = [pytest.mark.peers, pytest.mark.requirement("R5-41")]

SDK: Any = pytest.mark.parametrize("name", ["sdk1", "sdk2"])
"""mcp 1.30 and mcp 2.3, the latter in its 2025 era."""


@contextmanager
def serving(name: Literal["sdk1", "sdk2"], folder: Path, *arguments: str) -> Iterator[Peer]:
    record = folder / "record"
    record.touch()
    with sdk_web(name, *arguments, record=record) as peer:
        yield peer


async def text_of(session: Session, name: str, arguments: dict[str, Any] | None = None) -> str:
    done = await call_tool(session, name, arguments)
    assert done.state == "done", done.error
    return str((await session.result(done))["content"][0]["text"])


async def arrived(session: Session, peer: Peer, what: bytes) -> None:
    """Until the peer has this in its record: each POST has its own socket, so a later one may be there first."""
    with anyio.fail_after(HANG):
        while not any(what in each.body for each in peer.requests("POST")):
            await flushed(session)


async def used(
    session: Session, peer: Peer, *, progress: bool = True, roots: bool = True, answered: bool = True
) -> None:
    """List, echo, structured output, progress, several in flight, roots, cancel."""
    assert {"echo", "add", "count", "roots", "hold"} <= {each["name"] for each in session.tools.items}
    assert await text_of(session, "echo", {"message": "Grüße, 世界 🌊"}) == "Grüße, 世界 🌊"
    added = await call_tool(session, "add", {"a": 1, "b": 2})
    assert (await session.result(added))["structuredContent"] == {"sum": 3} and added.findings == []
    counted = await call_tool(session, "count", {"steps": 3})
    assert counted.state == "done"
    if progress:
        assert counted.progress is not None and counted.progress.progress == 3
        assert [each.data for each in counted.logs] == ["step 1", "step 2", "step 3"]
    asked = [{"name": "echo", "arguments": {"message": f"number {number}"}} for number in range(10)]
    calls = [session.start_call("tools/call", each, by=ME) for each in asked]
    await settled(session, *calls)
    texts = [(await session.result(each))["content"][0]["text"] for each in calls]
    assert texts == [each["arguments"]["message"] for each in asked]  # type: ignore[index]
    if roots:
        assert "file:///srv/data" in await text_of(session, "roots")
    held = session.start_call("tools/call", {"name": "hold", "arguments": {}}, by=ME)
    await until(session, lambda: held.legs)
    await arrived(session, peer, b'"hold"')
    session.cancel_call(held.id)
    await arrived(session, peer, f'"requestId":{held.legs[0].rpc_id}'.encode())
    assert held.state == "cancelled"
    if answered:  # what was cancelled, before anyone leaves: both SDKs do, where they know which call was meant
        await until(
            session,
            lambda: any(each.rpc_id == held.legs[0].rpc_id and each.kind == "error" for each in inbound(session)),
        )


async def agrees(session: Session, peer: Peer) -> None:
    """Leave, and compare what both sides saw."""
    await flushed(session)
    await session.disconnect()
    requests = peer.requests()
    assert sorted(raws(session, "in")) == sorted(peer.wrote())
    assert sorted(raws(session, "out")) == sorted(each.body for each in requests if each.method == "POST")
    for each in requests[1:]:
        if each.path == "/mcp":
            assert each.headers["mcp-protocol-version"] == "2025-11-25"
    assert [each for each in findings(session) if each.level == "must"] == []


@pytest.mark.requirement("R5-20", "R5-23", "R5-42", "R5-45", "R5-46")
@SDK
@pytest.mark.parametrize("shape", ["sse", "json"])
async def test_streamable_http_with_sessions(session: Session, tmp_path: Path, name: Any, shape: str):
    await session.set_roots([Root(uri="file:///srv/data", name="data")])
    with serving(name, tmp_path, "http", *(["--json"] if shape == "json" else [])) as peer:
        await connected(session, peer.target())
        assert session.info.protocol_version == "2025-11-25" and session.info.transport == "http"
        await until(session, lambda: session.info.stream == "open")
        await used(session, peer, progress=shape == "sse")
        await agrees(session, peer)
        assert peer.requests()[-1].method == "DELETE"
        assert len({each.headers.get("mcp-session-id") for each in peer.requests()[1:]}) == 1


@pytest.mark.requirement("R5-41")
@SDK
@pytest.mark.parametrize("shape", ["sse", "json"])
async def test_streamable_http_without_sessions(session: Session, tmp_path: Path, name: Any, shape: str):
    with serving(name, tmp_path, "http", "--stateless", *(["--json"] if shape == "json" else [])) as peer:
        await connected(session, peer.target())
        await used(session, peer, progress=shape == "sse", roots=False, answered=False)
        await agrees(session, peer)
        assert [each for each in peer.requests() if "mcp-session-id" in each.headers] == []
        assert peer.requests("DELETE") == []


@pytest.mark.requirement("R5-47", "R5-20", "R5-23")
@SDK
async def test_the_older_transport_asked_for_and_by_fallback(session: Session, tmp_path: Path, name: Any):
    await session.set_roots([Root(uri="file:///srv/data", name="data")])
    with serving(name, tmp_path, "sse") as peer:
        await connected(session, peer.older())
        assert session.info.transport == "sse" and session.info.stream == "open"
        await used(session, peer, answered=name == "sdk1")
        await agrees(session, peer)
        (tmp_path / "record").write_bytes(b"")
        await connected(session, peer.target("/sse"))
        assert session.info.transport == "sse", "found by itself"
        await used(session, peer, answered=name == "sdk1")


@pytest.mark.requirement("R5-20", "R5-23", "R5-42", "R5-45", "R5-47")
@pytest.mark.parametrize("mode", ["http", "sse", "fallback"])
async def test_server_everything(session: Session, mode: str):
    await session.set_roots([Root(uri="file:///srv/data", name="data")])
    with everything_web("http" if mode == "http" else "sse") as peer:
        await connected(
            session, peer.target() if mode == "http" else peer.older() if mode == "sse" else peer.target("/sse")
        )
        assert session.info.transport == ("http" if mode == "http" else "sse")
        assert session.info.server_info["name"] == "mcp-servers/everything"
        assert await text_of(session, "echo", {"message": "Grüße, 世界 🌊"}) == "Echo: Grüße, 世界 🌊"
        long = await call_tool(session, "trigger-long-running-operation", {"duration": 0.2, "steps": 2})
        assert long.state == "done" and long.progress is not None and long.progress.progress == 2
        await until(session, lambda: inbound(session, "roots/list"))
        await until(session, lambda: any(each["name"] == "get-roots-list" for each in session.tools.items))
        assert "file:///srv/data" in await text_of(session, "get-roots-list")
        held = session.start_call(
            "tools/call", {"name": "trigger-long-running-operation", "arguments": {"duration": 60}}, by=ME
        )
        await until(session, lambda: held.legs)
        session.cancel_call(held.id)
        await flushed(session)
        assert [each for each in findings(session) if each.level == "must"] == []
        await session.disconnect()
        assert session.info.state == "closed"
