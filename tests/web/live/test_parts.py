"""Live parts: a page declares them in one place, and what is drawn for one tab serves all that may see the same."""

import ast
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.applications import Starlette

import app.web
from app.core.json import text as jsontext
from app.sessions import Identity, Session
from app.sessions.identity import ALL_RIGHTS, LOCAL, Right
from app.sessions.lists import LISTS
from app.settings import Limits, Settings
from app.web import routes
from app.web.app import create_app
from app.web.kit.html import Html, rendered
from app.web.live.parts import Drawings, Each, Part, TooMany, View, kinds
from app.web.live.tab import Shown, Tab
from app.web.surroundings import AROUND
from app.web.team.app import team_routes
from tests.web.asgi import TOKEN, Visitor, browser, first_patch
from tests.web.live.traffic import page as traffic
from tests.web.tabs import pages, tab_of


def record(session: Session) -> None:
    raw = jsontext.dump({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "hello"}})
    session.messages.record("in", raw, jsontext.parse(raw))


# ---- adding a page


@pytest.fixture
async def larger(settings: Settings) -> AsyncIterator[Starlette]:
    """Parley with one page more."""
    application = create_app(settings, more=[traffic.ROUTE])
    async with application.router.lifespan_context(application):
        await application.state.loaded.wait()
        yield application


async def test_a_page_in_a_folder_of_its_own_appears_and_has_json(larger: Starlette):
    session: Session = larger.state.registry.open(LOCAL)
    record(session)
    mine = browser(larger, larger.state.visitors.admit(LOCAL))
    address = f"/s/{session.id}/traffic"
    shown = await mine.get(address)
    assert shown.status == 200
    assert '<p id="traffic">1 message</p>' in shown.text
    assert f"/s/{session.id}/events?since={session.events.seq}&amp;page=traffic" in shown.text
    script = Visitor(larger, {"authorization": f"Bearer {TOKEN}", "accept": "application/json"})
    assert (await script.get(address)).json() == {"count": 1}
    assert (await Visitor(larger, {"accept": "text/html"}).get(address)).status == 401


async def test_a_page_in_a_folder_of_its_own_lives(larger: Starlette):
    session: Session = larger.state.registry.open(LOCAL)
    mine, before = browser(larger, larger.state.visitors.admit(LOCAL)), session.events.seq
    record(session)
    patch = await first_patch(mine, session, f"page=traffic&since={before}")
    assert '<hx-partial hx-target="#traffic" hx-swap="outerMorph"><p id="traffic">1 message</p>' in patch


# ---- what is declared


def test_every_page_with_a_stream_is_declared():
    """A frame names the page that its stream asks for; a name that nobody declared would hear of nothing."""
    named = set()
    for file in Path(app.web.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "shell":
                named |= {one.value for one in node.args[1:2] if isinstance(one, ast.Constant)}
    assert {"overview", "tool", "task", "log"} < named
    everywhere = {*pages(), *routes.pages(team_routes(routes.routes()))}
    assert named | set(LISTS) == everywhere  # the page of a list has the name of the list


def test_a_pattern_that_names_no_event_is_refused():
    assert kinds("task.*") == {"task.created", "task.changed", "task.completed", "task.failed", "task.cancelled"}
    with pytest.raises(ValueError, match="there is no event tsak"):
        kinds("tsak.*")


# ---- what tabs share


def words(view: View) -> Html:
    return rendered(f"<p>{'you may answer' if view.may('answer') else 'look on'}, {view.page} {view.of}</p>")


def shown(*live: Part | Each) -> Shown:
    return Shown(live, lambda _: {}, AROUND.rows)


def view(session: Session, drawings: Drawings, page: str = "a", of: str = "", *rights: Right) -> View:
    return View(session, page, of, frozenset(rights), session.limits, drawings)


def said(session: Session, drawings: Drawings, part: Part | Each, *views: View) -> list[str]:
    """What tabs hear of one change."""
    for _ in views:
        drawings.opened()
    tabs = [Tab(one, shown(part), session.events.seq) for one in views]
    session.changed("roots.changed", "roots")
    patches = [tab.patch() for tab in tabs]
    return [patch.html for patch in patches if patch is not None]


async def test_a_change_that_ten_tabs_show_is_drawn_once(victim: Session):
    drawn: list[View] = []

    def counted(view: View) -> Html:
        drawn.append(view)
        return words(view)

    part, drawings = Part("#it", ["roots.changed"], counted), Drawings()
    heard = said(victim, drawings, part, *(view(victim, drawings) for _ in range(10)))
    assert len(drawn) == 1
    assert len(heard) == 10
    assert len(set(heard)) == 1


async def test_another_page_or_subject_is_drawn_by_itself_unless_a_part_is_the_same_everywhere(victim: Session):
    drawings = Drawings()
    views = [view(victim, drawings, page, of) for page in ("a", "b") for of in ("1", "2")]
    assert len(set(said(victim, drawings, Part("#it", ["roots.changed"], words), *views))) == 4
    assert len(set(said(victim, drawings, Part("#it", ["roots.changed"], words, everywhere=True), *views))) == 1


async def test_two_identities_with_different_rights_never_share_a_drawing(victim: Session):
    """Every part that there is, declared in any way: what one reader may do is never shown to another."""
    each = Each(["roots.changed"], lambda *_: "x", lambda view, *_: words(view), words, everywhere=True)
    for part in (Part("#it", ["roots.changed"], words), Part("#it", ["roots.changed"], words, everywhere=True), each):
        drawings = Drawings()
        owner, guest = view(victim, drawings, "a", "", "watch", "answer"), view(victim, drawings, "a", "", "watch")
        for heard in (
            said(victim, drawings, part, owner, guest, owner, guest),
            [part.whole(one, {}) for one in (owner, guest, owner, guest)],
        ):
            assert ["you may answer" in one for one in heard] == [True, False, True, False]
            assert heard[0] == heard[2]


async def test_the_owner_has_every_right_and_nobody_else_any(victim: Session):
    assert victim.rights_of(LOCAL) == ALL_RIGHTS
    assert victim.rights_of(Identity("mallory", "Mallory")) == frozenset()


async def test_a_tab_alone_keeps_nothing_that_was_drawn(victim: Session):
    drawings, part = Drawings(), Part("#it", ["roots.changed"], words)
    assert said(victim, drawings, part, view(victim, drawings))
    assert not drawings._kept
    said(victim, drawings, part, view(victim, drawings))
    assert drawings._kept
    drawings.closed()
    assert not drawings._kept


async def test_what_is_kept_for_other_tabs_is_bounded(victim: Session):
    drawings = Drawings()
    drawings.opened()
    drawings.opened()
    for number in range(2_000):
        drawings.once(number, lambda: "x" * 10_000)
    assert len(drawings._kept) <= 400
    assert drawings._size == sum(size for _, size in drawings._kept.values()) <= 4 * 1024 * 1024


async def test_more_subjects_than_a_message_carries_make_a_snapshot(victim: Session):
    each = Each(
        ["call.changed"], lambda _, event: event.subject, lambda *_: rendered("<one>"), lambda _: rendered("<all>")
    )
    tab = Tab(view(victim, Drawings()), shown(each), victim.events.seq)
    for number in range(61):
        victim.changed("call.changed", f"c{number}")
    patch = tab.patch()
    assert patch is not None
    assert "<all>" in patch.html
    assert "<one>" not in patch.html
    with pytest.raises(TooMany):
        each.changed(view(victim, Drawings()), victim.events.since(victim.events.seq - 61) or [], {})


async def test_tabs_of_different_pages_share_the_cards_of_asks(victim: Session, limits: Limits):
    drawings = Drawings()
    tabs = [tab_of(victim, page, "", victim.events.seq, limits, drawings=drawings) for page in ("overview", "log")]
    for _ in tabs:
        drawings.opened()
    victim.changed("inbox.cleared", "inbox")
    before = drawings.made
    first = tabs[0].patch()
    once = drawings.made - before
    second = tabs[1].patch()
    assert first is not None
    assert second is not None
    assert drawings.made - before < 2 * once


async def test_a_part_that_cannot_be_drawn_costs_only_itself(victim: Session, caplog: pytest.LogCaptureFixture):
    def broken(_: View) -> Html:
        raise RuntimeError("on purpose")

    bad, good = Part("#bad", ["roots.changed"], broken), Part("#good", ["roots.changed"], words)
    tab = Tab(view(victim, Drawings()), shown(bad, good), victim.events.seq)
    victim.changed("roots.changed", "roots")
    for patch in (tab.patch(), tab.snapshot()):
        assert patch is not None
        assert "#good" in patch.html
        assert "#bad" not in patch.html
    assert [record.exc_text is not None for record in caplog.records if "could not be drawn" in record.message] == [
        True
    ] * 2
    assert tab.patch() is None
