"""Two calls of two servers side by side: what one was answered is neither given nor filled in for the other."""

from pathlib import Path

import pytest
from starlette.applications import Starlette

from app.sessions import Session
from app.sessions.identity import LOCAL
from tests.drive import settled, until
from tests.drive_modern import TELLS, Modern, ask_form, modern_stdio, needs, reach
from tests.web.asgi import Visitor
from tests.web.calls.test_compare import asking, url

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S39")]
CANARY = "zq-77-answer"


def peer(record: Path) -> Modern:
    return modern_stdio(record, scripts={"ask": [needs("1", a=ask_form("Who?")), TELLS]})


@pytest.fixture
def session(app: Starlette) -> Session:
    opened: Session = app.state.registry.open(LOCAL)
    return opened


async def told(session: Session, record: Path) -> str:
    """A call that was answered; the name that others know it by."""
    await reach(session, peer(record))
    call, (ask,) = await asking(session, "ask")
    await session.asks.answer(ask, {"action": "accept", "content": {"name": CANARY}}, LOCAL)
    await settled(session, call)
    return call.id


async def test_an_answer_to_one_server_is_not_offered_to_another(
    app: Starlette, script: Visitor, client: Visitor, session: Session, tmp_path: Path
):
    before = await told(session, tmp_path / "one")
    other: Session = app.state.registry.open(LOCAL)
    await reach(other, peer(tmp_path / "two"))
    call, (ask,) = await asking(other, "ask")
    page = (await client.get(url(other, f"{session.id}:{before}", call))).text
    assert "Give the same answers" not in page and "Filled in as" not in page
    assert "is of another server" in page
    assert f'value="{CANARY}"' not in page
    body = {"left": f"{session.id}:{before}", "right": call.id, "side": "right"}
    assert (await script.post(f"/s/{other.id}/compare/same", body)).json()["answered"] == []
    later = await script.post(f"/s/{other.id}/compare/same", body | {"later": True})
    assert later.status == 403 and "different servers" in later.error["message"]
    assert ask.state == "open" and not other.asks.repeats.has(call.id)


async def test_nor_when_a_session_has_changed_its_server_meanwhile(
    script: Visitor, client: Visitor, session: Session, tmp_path: Path
):
    before = await told(session, tmp_path / "one")
    await session.disconnect()
    await reach(session, peer(tmp_path / "two"))
    call, (ask,) = await asking(session, "ask")
    page = (await client.get(url(session, before, call))).text
    assert "Give the same answers" not in page and f'value="{CANARY}"' not in page
    body = {"left": before, "right": call.id, "side": "right", "later": True}
    assert (await script.post(f"/s/{session.id}/compare/same", body)).json()["answered"] == []
    assert ask.state == "open"


async def test_the_same_server_in_two_sessions_gets_the_same_answers(
    app: Starlette, script: Visitor, session: Session, tmp_path: Path
):
    before = await told(session, tmp_path / "one")
    other: Session = app.state.registry.open(LOCAL)
    await reach(other, peer(tmp_path / "one"))
    call, (ask,) = await asking(other, "ask")
    body = {"left": f"{session.id}:{before}", "right": call.id, "side": "right"}
    assert (await script.post(f"/s/{other.id}/compare/same", body)).json()["answered"] == [ask.id]
    await until(other, lambda: ask.settled)
