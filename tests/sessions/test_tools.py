"""The list of tools: pages, cursors that do not end, changes, and what becomes of it when the server is odd."""

from collections.abc import Callable
from typing import Any

import pytest

from app.core.json import text
from app.sessions import Session, calls
from app.settings import Limits
from tests.drive import ME, RawPeer, call, connected, findings, flushed, raw_target, until

Raw = Callable[..., RawPeer]


@pytest.fixture
def limits() -> Limits:
    return Limits(list_pages=7, list_items=50, calls_running=5)


def tool(name: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


@pytest.mark.requirement("R5-26", "R5-07", "R5-09")
async def test_all_pages_are_followed_and_items_kept_as_received(session: Session, raw: Raw):
    odd = tool(
        "b", inputSchema={"type": "object", "$schema": "x", "if": {}, "unknown": [None]}, _meta={"k": 1}, extra=None
    )
    pages = [[tool("a")], [odd, tool("c")], []]
    peer = raw(tools=pages)
    await connected(session, peer.target)
    assert session.tools.state == "ready" and session.tools.stopped is None
    assert session.tools.items == [tool("a"), odd, tool("c")]
    assert [each.get("params") for each in peer.received("tools/list")] == [None, {"cursor": "1"}, {"cursor": "2"}]
    assert session.tools.findings == []


@pytest.mark.requirement("R5-26")
async def test_a_page_is_read_once(session: Session, raw: Raw, monkeypatch: pytest.MonkeyPatch):
    again: list[bytes] = []
    read = text.parse_async

    async def counted(frame: bytes) -> Any:
        again.append(frame)
        return await read(frame)

    monkeypatch.setattr(calls, "parse_async", counted)
    await connected(session, raw(tools=[[tool("a")], [tool("b")]]).target)
    assert [each["name"] for each in session.tools.items] == ["a", "b"] and again == []


@pytest.mark.requirement("R5-26")
@pytest.mark.parametrize(
    ("endless", "pages", "asked", "words"),
    [
        ("repeated", [[tool("a")]], 2, "came a second time"),
        ("growing", [[tool("a")]], 7, "Parley stopped after 7 pages"),
        ("growing", [[tool(str(n)) for n in range(30)]], 2, "Parley stopped after 2 pages and 60 tools"),
    ],
)
async def test_a_list_without_an_end_is_stopped_with_a_note(
    session: Session, raw: Raw, endless: str, pages: Any, asked: int, words: str
):
    peer = raw(tools=pages, endless=endless)
    await connected(session, peer.target)
    assert session.tools.state == "ready"
    assert session.tools.stopped is not None and words in session.tools.stopped
    assert [each.id for each in session.tools.findings] == ["R5-26"]
    await flushed(session)
    assert len(peer.received("tools/list")) == asked


@pytest.mark.requirement("R5-28")
async def test_a_changed_list_is_asked_for_again(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    changed = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    await call(session, "x/tools", {"pages": [[tool("new")]]})
    lines = [changed, changed, changed, '{"jsonrpc":"2.0","id":$ID,"result":{}}']
    await call(session, "x/say", {"lines": lines})
    await until(session, lambda: session.tools.state == "ready" and session.tools.items == [tool("new")])
    await flushed(session)
    assert len(peer.received("tools/list")) in (2, 3), "a burst of changes is one more listing, at most two"


@pytest.mark.requirement("R5-28")
async def test_refreshing_waits_for_the_new_list(session: Session):
    await connected(session, raw_target())
    await call(session, "x/tools", {"pages": [[tool("new")]]})
    await session.lists.refresh("tools")
    assert session.tools.items == [tool("new")]


@pytest.mark.requirement("R5-04")
@pytest.mark.parametrize("capabilities", [{}, {"tools": None}, {"tools": []}, [], None])
async def test_a_server_without_tools_is_not_asked(session: Session, raw: Raw, capabilities: Any):
    peer = raw(initialize={"capabilities": capabilities})
    await connected(session, peer.target)
    await session.lists.refresh("tools")
    await flushed(session)
    assert session.tools.state == "none" and peer.received("tools/list") == []


@pytest.mark.requirement("R5-26", "F04")
async def test_a_list_that_fails_says_so(session: Session):
    await connected(session, raw_target(silent=["tools/list"]), request_timeout_ms=100)
    assert session.tools.state == "failed"
    assert session.tools.error is not None and session.tools.error.kind == "timeout"


@pytest.mark.requirement("R5-26", "F04")
@pytest.mark.parametrize("tools", [None, "text", {"a": 1}, [None, 1, {"name": 7}]])
async def test_a_list_that_breaks_the_rules_is_kept_as_far_as_it_is_a_list(session: Session, tools: Any):
    await connected(session, raw_target(tools=[tools]))
    assert session.tools.state == "ready"
    assert session.tools.items == (tools if isinstance(tools, list) else [])
    assert [each.id for each in session.tools.findings] == ["R5-29"]
    await session.disconnect()


async def test_listing_with_no_room_for_a_call_fails_in_words_and_is_not_stuck(session: Session):
    await connected(session, raw_target())
    for _ in range(5):
        session.start_call("x/hold", {}, by=ME)
    await session.lists.refresh("tools")
    assert session.tools.state == "failed"
    assert session.tools.error is not None and "5 calls are running already" in session.tools.error.message


async def test_a_list_that_was_loading_when_the_connection_ended_is_not_stuck(session: Session, raw: Raw):
    await connected(session, raw_target())
    peer = raw(silent=["tools/list"])
    await session.disconnect()
    session.connect(peer.target, session.options, by=ME)
    await until(session, lambda: session.tools.state == "loading")
    await until(session, lambda: [each for each in session.calls.running if each.legs])
    await session.disconnect()
    assert session.tools.state == "failed"
    await connected(session, raw_target(tools=[[tool("after")]]))
    assert session.tools.items == [tool("after")]
    assert findings(session) == []
