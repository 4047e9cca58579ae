"""Subscriptions of 2026-07-28, and lists that a server calls fresh."""

from pathlib import Path
from typing import Any

import pytest

from app.core.errors import Conflict, Invalid, NotAllowed
from app.core.targets import DemoTarget
from app.sessions import Session
from tests.conftest import Clock
from tests.drive import ME, call_tool, connected, echoes, findings, raw_target, until
from tests.drive_modern import PREFIX, modern_peer, modern_stdio, reach, witnessed

pytestmark = pytest.mark.anyio
ID = {f"{PREFIX}subscriptionId": "$ID"}
ALL = {"toolsListChanged": True, "resourceSubscriptions": ["x://a", "x://b"]}


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"method": method, "params": {**params, "_meta": ID}}


TOOLS = note("notifications/tools/list_changed")


@pytest.mark.requirement("R6-40", "R6-41", "R6-42", "R6-45")
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_events_come_to_the_subscription_that_asked(session: Session, tmp_path: Path, way: str) -> None:
    then = [TOOLS, note("notifications/resources/updated", uri="x://a")]
    honored = {"toolsListChanged": True, "resourceSubscriptions": ["x://a"]}
    with modern_peer(way, tmp_path / "record", listen={"then": then}, honored=honored) as peer:
        await reach(session, peer)
        one = session.subscriptions.open({**ALL, "promptsListChanged": False})
        await until(session, lambda: one.heard == 2)
        assert one.state == "open" and peer.received("subscriptions/listen")[0]["params"]["notifications"] == ALL
        assert one.refused == ["resourceSubscriptions (1 of 2)"] and [each.id for each in one.findings] == ["R6-41"]
        assert [(each.method, each.about) for each in one.events] == [
            ("notifications/tools/list_changed", ""),
            ("notifications/resources/updated", "x://a"),
        ]
        await until(session, lambda: len(peer.received("tools/list")) == 2)  # the list was read again
        assert session.resources.by_uri["x://a"].updates == 1
        await echoes(session)  # beside the open stream
        if way == "http":
            assert peer.headers("subscriptions/listen")[0]["mcp-method"] == "subscriptions/listen"


@pytest.mark.requirement("R6-43")
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_stopping_closes_the_stream_or_says_so(session: Session, tmp_path: Path, way: str) -> None:
    with modern_peer(way, tmp_path / "record") as peer:
        await reach(session, peer)
        one = session.subscriptions.open(ALL)
        await until(session, lambda: one.state == "open")
        session.subscriptions.stop(one)
        await witnessed(peer.closed)
        assert peer.closed() == [one.rpc_id] and one.state == "stopped"
        await echoes(session)
        assert len(peer.received("notifications/cancelled")) == (1 if way == "stdio" else 0)
        with pytest.raises(Conflict):
            session.subscriptions.stop(one)


@pytest.mark.requirement("R6-44")
@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize(("end", "state"), [("result", "ended"), ("cancelled", "ended"), ("cut", "lost")])
async def test_both_endings_are_clean_and_a_cut_is_not(
    session: Session, tmp_path: Path, way: str, end: str, state: str
) -> None:
    with modern_peer(way, tmp_path / "record", listen={"end": end}) as peer:
        await reach(session, peer)
        one = session.subscriptions.open(ALL)
        await until(session, lambda: not one.live)
        assert one.state == state and not peer.received("notifications/cancelled")
        if end != "cut" or way == "http":
            again = session.subscriptions.again(one)  # offered after any end
            await until(session, lambda: not again.live)
            assert len(peer.received("subscriptions/listen")) == 2
            return
        # On a pipe the cut is the end of the server: after a new connection what was lost is asked for again.
        await until(session, lambda: session.info.state == "lost")
        await reach(session, modern_stdio(tmp_path / "two"))
        again = list(session.subscriptions.all.values())[-1]
        await until(session, lambda: again.state == "open")
        assert again.asked == ALL and again is not one


@pytest.mark.requirement("R6-42", "R6-41", "R6-45")
async def test_what_does_not_belong_on_a_subscription_is_flagged(session: Session, tmp_path: Path) -> None:
    stray = {"method": "notifications/tools/list_changed", "params": {}}
    foreign = {"method": "notifications/tools/list_changed", "params": {"_meta": {f"{PREFIX}subscriptionId": 999}}}
    then = [
        note("notifications/prompts/list_changed"),
        note("notifications/progress", progressToken=1, progress=1),
        note("notifications/message", level="info", data="x"),
        stray,
        foreign,
    ]
    peer = modern_stdio(tmp_path / "record", listen={"early": [TOOLS], "then": then})
    await reach(session, peer, log_level="info")
    one = session.subscriptions.open({"toolsListChanged": True})
    await until(session, lambda: sum(each.id.startswith("R6") for each in findings(session)) >= 6)
    said = [(each.id, each.text) for each in findings(session)]
    assert [rule for rule, _ in said if rule.startswith("R6")] == ["R6-42", "R6-41", "R6-45", "R6-45", "R6-42", "R6-42"]
    assert "before the subscription was acknowledged" in said[0][1] and one.state == "open"


@pytest.mark.requirement("R6-40")
async def test_subscriptions_belong_to_the_new_era(session: Session, tmp_path: Path) -> None:
    with pytest.raises(Conflict):
        session.subscriptions.open(ALL)
    await connected(session, raw_target())
    with pytest.raises(NotAllowed):
        session.subscriptions.open(ALL)
    await session.disconnect()
    peer = modern_stdio(tmp_path / "record", errors={"subscriptions/listen": {"code": -32601, "message": "No"}})
    await reach(session, peer)
    with pytest.raises(Invalid):
        session.subscriptions.open({"toolsListChanged": False})
    one = session.subscriptions.open(ALL)
    await until(session, lambda: one.state == "refused")
    assert "-32601" in one.words


@pytest.mark.requirement("R6-40", "R6-41")
async def test_the_demo_tells_of_its_board(session: Session) -> None:
    await connected(session, DemoTarget(), era="modern")
    one = session.subscriptions.open({"resourceSubscriptions": ["desk://board"]})
    await until(session, lambda: one.state == "open")
    await call_tool(session, "advance_board", {"steps": 1})
    await until(session, lambda: one.heard == 1)
    assert one.events[0].about == "desk://board" and one.refused == []
    with pytest.raises(Conflict):
        session.resources.subscribe("desk://board", True, by=ME)


# --- freshness -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R6-52", "R6-36")
async def test_a_fresh_list_is_used_again_after_a_reconnect_and_a_stale_one_is_not(
    session: Session, tmp_path: Path, clock: Clock
) -> None:
    peer = modern_stdio(tmp_path / "record", list={"ttlMs": 60_000, "cacheScope": "public"})
    await reach(session, peer)
    first = session.tools
    assert (first.scope, first.from_cache) == ("public", False) and first.fresh_until is not None
    await session.disconnect()
    await reach(session, peer)
    assert session.tools.from_cache and len(peer.received("tools/list")) == 1
    await echoes(session)
    await session.lists.refresh("tools")  # the bypass: whoever asks for it gets it read
    assert not session.tools.from_cache and len(peer.received("tools/list")) == 2
    await session.disconnect()
    clock.wall_shift += 61
    await reach(session, peer)
    assert not session.tools.from_cache and len(peer.received("tools/list")) == 3
    await session.disconnect()
    other = modern_stdio(tmp_path / "other")  # another target has nothing to do with it
    await reach(session, other)
    assert not session.tools.from_cache and len(other.received("tools/list")) == 1


@pytest.mark.requirement("R6-52")
@pytest.mark.parametrize("said", [{"ttlMs": 0}, {"ttlMs": -5}, {"ttlMs": "60000"}, {"ttlMs": None}, {"ttlMs": True}])
async def test_nonsense_is_stale_at_once(session: Session, tmp_path: Path, said: dict[str, Any]) -> None:
    peer = modern_stdio(tmp_path / "record", list=said)
    await reach(session, peer)
    assert session.tools.fresh_until is None
    await session.disconnect()
    await reach(session, peer)
    assert len(peer.received("tools/list")) == 2


@pytest.mark.requirement("R6-52")
async def test_a_change_makes_a_fresh_list_stale(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record", list={"ttlMs": 60_000}, listen={"then": [TOOLS]})
    await reach(session, peer)
    assert session.tools.scope == "private"
    session.subscriptions.open({"toolsListChanged": True})
    await until(session, lambda: len(peer.received("tools/list")) == 2 and session.tools.state == "ready")


@pytest.mark.requirement("R6-01")
async def test_there_is_no_ping(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record")
    await reach(session, peer)
    with pytest.raises(Conflict):
        await session.pings.ping(by=ME)
    with pytest.raises(Conflict):
        session.pings.repeat(1_000)
    assert not peer.received("ping")
