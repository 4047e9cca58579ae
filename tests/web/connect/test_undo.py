"""Closing a session ends its process at once, and can be taken back for a moment."""

import re
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette

from app.core.json.text import parse
from app.sessions import Session
from app.sessions.identity import LOCAL
from app.settings import Limits, Settings, local
from tests.conftest import Processes
from tests.web.asgi import PORT, TOKEN, Visitor

pytestmark = [pytest.mark.requirement("U-S8"), pytest.mark.usefixtures("processes")]


@pytest.fixture
def settings() -> Settings:
    return local(port=PORT, token=TOKEN, limits=Limits(sessions_per_identity=4, closed_sessions=2))


class Later:
    """The clock of the shelf on which closed sessions stand."""

    def __init__(self, app: Starlette) -> None:
        self._shelf, self._mono, self.shift = app.state.registry.closed, app.state.registry.mono, 0.0
        self._shelf._mono = lambda: self._mono() + self.shift

    def sweep(self) -> None:
        self._shelf.sweep()


@pytest.fixture
def later(app: Starlette) -> Later:
    return Later(app)


async def test_close_ends_the_child_at_once_and_undo_brings_the_history_back(
    opened: Any, app: Starlette, processes: Processes
):
    one = await opened()
    session: Session = one.session
    await one.tool("seen")
    await one.post("/roots", roots=[{"uri": "file:///tmp", "name": "T"}])
    log, calls = (await one.json("/log"))["messages"], (await one.json("/calls"))["calls"]
    assert session.info.pid is not None
    assert (await one.post("/close")).json() == {"id": session.id, "closed": True}
    assert processes.left() == []
    for path in ("", "/log", "/calls"):
        answer = await one.script.get(one.path + path)
        assert (answer.status, answer.error["kind"]) == (404, "unknown")
    assert app.state.registry.of(LOCAL) == []

    back = await one.post("/reopen")
    assert (back.status, back.json(), back.header("location")) == (
        200,
        {"id": session.id, "url": one.path},
        one.path,
    )
    told = await one.json("")
    assert told["connection"]["state"] == "closed"
    again = (await one.json("/log"))["messages"]
    assert again[: len(log)] == log
    assert [call["id"] for call in (await one.json("/calls"))["calls"]] == [call["id"] for call in calls]
    assert [root["uri"] for root in (await one.json("/roots"))["roots"]] == ["file:///tmp"]
    kinds = [event.kind for event in session.events.since(0) or ()]
    assert kinds[-2:] == ["session.closed", "session.reopened"]

    reconnected = await one.form("/connect", {"again": "1"})
    assert reconnected.status == 303
    assert (await one.json("?wait=20"))["connection"]["state"] == "ready"
    assert (await one.tool("seen"))["state"] == "done"
    assert (await one.post("/reopen")).status == 404, "it is open"


async def test_an_ask_that_was_open_is_lost_and_still_readable(app: Starlette, script: Visitor):
    path = (await script.post("/s", {"target": {"transport": "demo"}, "options": {"era": "legacy"}})).json()["url"]
    assert (await script.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    await script.post(f"{path}/calls", {"method": "tools/call", "params": {"name": "preferences", "arguments": {}}})
    (ask,) = (await script.json(f"{path}/inbox?wait=20"))["open"]
    await script.post(f"{path}/close")
    await script.post(f"{path}/reopen")
    assert (await script.json(f"{path}/asks/{ask['id']}"))["state"] == "lost"
    (call,) = (one for one in (await script.json(f"{path}/calls"))["calls"] if one["method"] == "tools/call")
    assert call["state"] == "failed"


async def test_after_thirty_seconds_it_is_gone(victim: Session, script: Visitor, app: Starlette, later: Later):
    path = f"/s/{victim.id}"
    await script.post(f"{path}/close")
    later.shift = 29.0
    gone = (await script.get(path)).error
    assert (gone["reopen"], 0 < gone["reopen_seconds"] < 2) == (f"{path}/reopen", True)
    later.shift = 30.5
    assert (await script.post(f"{path}/reopen")).status == 404
    assert "reopen" not in (await script.get(path)).error
    later.sweep()
    assert app.state.registry.closed._kept == {}


@pytest.mark.requirement("S15")
async def test_only_its_owner_can_bring_it_back(victim: Session, script: Visitor, mallory: Visitor, stranger: Visitor):
    path = f"/s/{victim.id}"
    await script.post(f"{path}/close")
    theirs, never = await mallory.post(f"{path}/reopen"), await mallory.post("/s/r0-neverwas/reopen")
    assert (theirs.status, theirs.body) == (404, never.body)
    assert (await stranger.form(f"{path}/reopen")).status == 401
    assert "closed a moment ago" not in (await mallory.get(path)).text
    assert (await mallory.json("/"))["closed"] == []
    assert (await script.post(f"{path}/reopen", {"now": True})).status == 422
    assert (await script.post(f"{path}/reopen")).status == 200


async def test_how_many_may_come_back_is_bounded_and_so_is_how_much(app: Starlette, script: Visitor):
    sids = [(await script.post("/s")).json()["id"] for _ in range(3)]
    for sid in sids:
        await script.post(f"/s/{sid}/close")
    assert [one["id"] for one in (await script.json("/"))["closed"]] == [sids[2], sids[1]]
    assert (await script.post(f"/s/{sids[0]}/reopen")).status == 404
    registry = app.state.registry
    registry.closed._limits = Limits(closed_bytes=1000)
    large = registry.open(LOCAL)
    raw = b'{"jsonrpc": "2.0", "method": "x", "params": {"text": "' + b"x" * 2000 + b'"}}'
    large.messages.record("in", raw, parse(raw))
    await script.post(f"/s/{large.id}/close")
    assert (await script.post(f"/s/{large.id}/reopen")).status == 404
    assert (await script.json("/"))["closed"] == []


async def test_the_limit_of_sessions_holds_for_those_that_come_back(script: Visitor):
    sids = [(await script.post("/s")).json()["id"] for _ in range(4)]
    await script.post(f"/s/{sids[0]}/close")
    await script.post("/s")
    refused = await script.post(f"/s/{sids[0]}/reopen")
    assert (refused.status, "which is the limit" in refused.error["message"]) == (403, True)
    await script.post(f"/s/{sids[1]}/close")
    assert (await script.post(f"/s/{sids[0]}/reopen")).status == 200


async def test_who_closes_it_on_a_page_is_offered_undo_on_the_next(victim: Session, client: Visitor, script: Visitor):
    path = f"/s/{victim.id}"
    answer = await client.form(f"{path}/close")
    assert (answer.status, answer.header("location")) == (303, "/")
    home = (await client.get("/")).text
    assert re.search(r'<div data-until="(29|30)[.\d]*">', home)
    assert "Closed <b hx-ignore>New session</b>." in home
    assert f'<form method="post" action="{path}/reopen">' in home
    page = await client.get(f"{path}/log")
    assert (page.status, "This session was closed a moment ago." in page.text) == (404, True)
    assert "Undo close" in page.text
    back = await client.form(f"{path}/reopen")
    assert (back.status, back.header("location")) == (303, path)
    assert "reopen" not in (await client.get("/")).text
    await script.post(f"{path}/close")
    assert "reopen" not in (await client.get("/")).text, "a script needs no strip"


async def test_idle_sessions_and_those_of_the_end_are_not_kept(app: Starlette, script: Visitor, victim: Session):
    registry = app.state.registry
    await registry._close_idle(victim, -1.0)
    assert registry.closed.of("local") == []
    sid = (await script.post("/s")).json()["id"]
    await script.post(f"/s/{sid}/close")
    await registry.close_all()
    assert registry.closed._kept == {}


async def test_a_close_that_was_cut_short_can_be_taken_back_too(app: Starlette, client: Visitor, victim: Session):
    """Nobody waits for its end for ever."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        await app.state.registry.close(victim, undo=True)
    with anyio.fail_after(10):
        assert (await client.form(f"/s/{victim.id}/reopen", {})).status == 303
    assert app.state.registry.find(LOCAL, victim.id) is victim
