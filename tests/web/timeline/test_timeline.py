"""The timeline for scripts and as a page: a task with its polls, an ask in the middle, names that are never markup."""

import pytest

from app import bounds
from app.core.timeline import Bar, Group, Span
from app.sessions import Session
from app.web.live.tab import Tab
from app.web.timeline import view
from tests.drive import call, connected, until
from tests.drive_tasks import DONE, begin, task_of, task_peer
from tests.web.asgi import Visitor
from tests.web.tabs import tab_of


def said(tab: Tab) -> str:
    patch = tab.patch()
    assert patch is not None
    return str(patch.html)


async def test_scripts_get_a_call_its_asks_and_who_was_waited_for(victim: Session, script: Visitor):
    with task_peer(script=[["wait", 0.1], ["elicit"], ["finish", DONE]]) as peer:
        await connected(victim, peer.target)
        started = begin(victim)
        task = await task_of(victim, started)
        await until(victim, lambda: victim.open_asks)
        (asked,) = victim.inbox.open
        [one, below] = (await script.json(f"/s/{victim.id}/timeline"))["bars"]
        assert (one["id"], one["kind"], one["parent"], one["state"], one["ended"]) == (
            started.id, "call", None, "waiting", None,
        )  # fmt: skip
        assert (below["id"], below["kind"], below["parent"]) == (asked.id, "ask", started.id)
        assert below["spans"][-1]["part"] == "waiting" and below["waiting"]["person"] >= 0
        assert one["waiting"]["server"] > 0 and set(one["waiting"]) == {"server", "person", "model"}
        assert (await script.post(f"/s/{victim.id}/asks/{asked.id}/answer", {"action": "decline"})).status == 200
        await until(victim, lambda: started.settled)
        [one, below] = (await script.json(f"/s/{victim.id}/timeline"))["bars"]
        assert one["polls"] == task.polls >= 1 and one["ended"] is not None
        assert sum(one["waiting"].values()) == pytest.approx(one["total_ms"], abs=1)
        page = (await script.get(f"/s/{victim.id}/timeline", accept="text/html")).text
        assert f'id="tl-{started.id}"' in page and f"/tasks/{task.id}" in page and "folded" in page


async def test_what_a_server_calls_its_tools_is_never_markup(victim: Session, script: Visitor):
    with task_peer(support={"<img src=x onerror=1>": "optional"}) as peer:
        await connected(victim, peer.target)
        await call(victim, "tools/call", {"name": "<img src=x onerror=1>", "arguments": {}})
        page = (await script.get(f"/s/{victim.id}/timeline", accept="text/html")).text
        assert "<img src=x" not in page and "&lt;img src=x onerror=1&gt;" in page


async def test_a_page_draws_the_newest_and_says_how_many_are_left(
    victim: Session, script: Visitor, monkeypatch: pytest.MonkeyPatch
):
    with task_peer() as peer:
        await connected(victim, peer.target)
        monkeypatch.setattr(bounds, "TIMELINE_ROWS", 2)
        for _ in range(3):
            await call(victim, "ping", {})
        page = (await script.get(f"/s/{victim.id}/timeline", accept="text/html")).text
        assert "The newest 2 are drawn; 1 earlier ones" in page and page.count("<tbody id=") == 2
        assert len((await script.json(f"/s/{victim.id}/timeline"))["bars"]) == 3


async def test_a_tab_hears_of_one_call_and_of_all_when_the_scale_is_another(victim: Session):
    with task_peer(script=[["hold"], ["finish", DONE]]) as peer:
        await connected(victim, peer.target)
        tab = tab_of(victim, "timeline")
        started = begin(victim)
        await task_of(victim, started)
        html = said(tab)
        assert f'id="tl-{started.id}"' in html and 'hx-target="#timeline"' in html
        await call(victim, "tools/call", {"name": "release"})
        await until(victim, lambda: started.settled)
        assert f"tl-{started.id}" in said(tab)


def test_the_strip_of_very_many_is_bounded():
    spans = (Span("server", 0, 1),)
    many = [Group(f"c{n}", (Bar(f"c{n}", "call", None, n, n + 1, spans),)) for n in range(5_000)]
    assert len(view.strip(many, view.scale_of(many, 5_000))) <= bounds.TIMELINE_COLUMNS * 5
