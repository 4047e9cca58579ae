"""A session of a replica that is gone, and the one that is opened in its place: what goes on there, and by whom. The
replicas themselves are in `tests/scale`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app import team_bounds as bounds
from app.core.options import Options
from app.core.targets import HttpTarget
from app.sessions import Session
from app.store.replicas import HeldSession, Replicas, aimed
from app.team_settings import TeamSettings
from app.web.team.house import House
from tests.drive import SERVERS, until
from tests.drive_modern import TELLS, Modern, ask_form, modern_web, needs
from tests.isolation.walls import PYTHON
from tests.team.conftest import Enters, Guest

pytestmark = pytest.mark.requirement("T29")
GONE = "r9-gone"
ROUND = {"id": "c1", "method": "tools/call", "params": {"name": "ask", "arguments": {}}, "began": 1.7e9, "round": 1,
         "requests": {"who": ask_form("Who sails?")}, "state": "the state"}  # fmt: skip


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Modern]:
    scripts = {"ask": [needs("the state", who=ask_form("Who sails?")), TELLS]}
    with modern_web(tmp_path / "record", scripts=scripts) as running:
        yield running


@pytest.fixture
def settings(settings: TeamSettings, peer: Modern) -> TeamSettings:
    assert isinstance(peer.target, HttpTarget)
    keyed = {"transport": "stdio", "command": PYTHON or "python3", "reads": [str(SERVERS)],
             "args": ["-I", "-S", str(SERVERS / "raw.py"), "plain"],
             "variables": [{"name": "KEY", "secret": True, "required": True}]}  # fmt: skip
    more = {"modern": {"transport": "http", "url": peer.target.url}, "keyed": keyed}
    return TeamSettings(public_url=settings.public_url, data_dir=settings.data_dir, catalogue=more)


async def lost(app: Starlette, owner: Guest, entry: str, *calls: Any, **values: str) -> HeldSession:
    """What the store has of a session whose replica is gone."""
    house: House = app.state.house
    assert owner.person is not None
    listed = house.catalogue().find("user", entry)
    assert listed is not None
    target, options, missing = aimed(listed.target(values), Options(era="modern" if entry == "modern" else "auto"))
    kept = json.dumps({"calls": calls, "lost": [["Which word?", "elicitation/create"]], "more": 1})
    sealed = house.sealed.text(f"unfinished {owner.person.id} {GONE}", kept)
    now = house.wall()
    held = HeldSession(GONE, owner.person.id, "r9", "x", "Lost", "ready", target, options, missing, "", 1, 1, 3, now,
                       now, now, sealed)  # fmt: skip
    assert await app.state.keeper.replicas.put([held], [])
    return held


def newest(app: Starlette) -> Session:
    found = app.state.registry.everybodys()[-1]
    assert isinstance(found, Session)
    return found


async def test_a_call_goes_on_when_its_owner_says_so_and_once(app: Starlette, enters: Enters, peer: Modern):
    grace, mallory = await enters("Grace"), await enters("Mallory")
    await lost(app, grace, "modern", ROUND)
    shown = await grace.get(f"/s/{GONE}")
    assert (shown.status, "1 call can go on from here" in shown.text) == (410, True)
    assert (await mallory.post(f"/lost/{GONE}/reconnect")).status == 404
    assert (await mallory.post("/catalogue/modern/connect", {"lost": GONE})).status == 201
    assert not newest(app).leftovers.any, "what is somebody else's is not taken along"
    assert (await grace.post(f"/lost/{GONE}/reconnect")).status == 201
    one = newest(app)
    assert (await grace.post(f"/lost/{GONE}/reconnect")).status == 201
    two = newest(app)
    for session in (one, two):
        await until(session, lambda session=session: session.info.state == "ready")  # type: ignore[misc]
    page = (await grace.get(one.base)).text
    for words in ("From the session that was lost with r9", "Who sails?", "Continue", "Leave", "1 ask is lost",
                  "Which word?", "1 call had too much in it"):  # fmt: skip
        assert words in page, words
    assert peer.received("tools/call") == [], "nothing goes on by itself"
    assert (await mallory.post(f"{one.base}/unfinished/c1/continue")).status == 404
    assert (await grace.post(f"{one.base}/unfinished/c1/continue")).status == 202
    again = await grace.post(f"{two.base}/unfinished/c1/continue")
    assert (again.status, "in another session already" in again.text) == (409, True)
    await until(one, lambda: one.open_asks == 1)
    (ask,) = one.inbox.open
    said = {"action": "accept", "content": {"name": "Ann"}}
    assert (await grace.post(f"{one.base}/asks/{ask.id}/answer", said)).status == 200
    (call,) = [call for call in one.calls.values() if not call.quiet]
    await until(one, lambda: call.settled)
    (sent,) = [each["params"] for each in peer.received("tools/call")]
    assert (sent["requestState"], sent["inputResponses"]) == ("the state", {"who": said})
    assert (await grace.json(f"{one.base}/calls/{call.id}"))["continues"] == f"{GONE}/c1"
    assert (await grace.json("/"))["elsewhere"] == [], "it is not listed any more"
    left = await grace.post(f"{one.base}/unfinished/seen")
    assert (left.status, newest(app).leftovers.any, one.leftovers.any) == (200, True, False)


async def test_whoever_types_a_secret_again_reconnects_all_the_same(app: Starlette, enters: Enters):
    grace = await enters("Grace")
    await lost(app, grace, "keyed", KEY="hunter2")
    sent = await grace.form(f"/lost/{GONE}/reconnect")
    assert (sent.status, sent.header("location")) == (303, f"/?entry=keyed&lost={GONE}#entry-keyed")
    form = await grace.get(f"/?entry=keyed&lost={GONE}")
    assert f'name="lost" value="{GONE}"' in form.text
    empty = await grace.form("/catalogue/keyed/connect", {"var.KEY": "", "lost": GONE})
    assert (empty.status, f'name="lost" value="{GONE}"' in empty.text) == (422, True)
    assert (await grace.form("/catalogue/keyed/connect", {"var.KEY": "hunter3", "lost": GONE})).status == 303
    told = await grace.json(f"{newest(app).base}/unfinished")
    assert (told["before"], told["lost"]) == (GONE, [{"message": "Which word?", "method": "elicitation/create"}])
    # Another server is no place for it.
    assert (await grace.post("/catalogue/modern/connect", {"lost": GONE})).status == 201
    assert not newest(app).leftovers.any


async def test_what_is_sealed_for_somebody_opens_for_nobody_else(app: Starlette, enters: Enters, house: House):
    grace = await enters("Grace")
    held = await lost(app, grace, "modern", ROUND)
    assert "Who sails" not in held.unfinished and "the state" not in held.unfinished
    assert house.sealed.read("unfinished somebody r9-gone", held.unfinished) is None
    assert house.sealed.read("", "no seal at all") is None


async def test_whoever_may_watch_the_new_session_learns_nothing_of_the_lost_one(
    app: Starlette, enters: Enters, house: House
):
    grace, others = await enters("Grace"), {may: await enters(may.title()) for may in ("watch", "answer")}
    await lost(app, grace, "modern", ROUND)
    assert (await grace.post(f"/lost/{GONE}/reconnect")).status == 201
    session = newest(app)
    for may, guest in others.items():
        assert guest.person is not None
        await house.shares.give("session", session.id, may, guest.person.id, "test")  # type: ignore[arg-type]
        page = await guest.get(session.base)
        assert page.status == 200
        for words in ("Who sails?", "Which word?", "session that was lost", "unfinished/c1"):
            assert words not in page.text, (may, words)
    assert "Who sails?" in (await grace.get(session.base)).text
    heir = others["watch"]
    assert (await grace.post(f"{session.base}/hand-over", {"person": "Watch"})).status == 200
    told = await heir.json(f"{session.base}/unfinished")
    assert (told["before"], told["offers"], told["lost"]) == (None, [], []), "it was never the heir's"


async def test_nothing_is_taken_from_a_replica_that_lives_though_its_session_was_taken_for_lost(
    app: Starlette, enters: Enters, house: House, peer: Modern
):
    grace = await enters("Grace")
    await lost(app, grace, "modern", ROUND)
    assert (await grace.post(f"/lost/{GONE}/reconnect")).status == 201
    session = newest(app)
    await until(session, lambda: session.info.state == "ready")
    # The store was away for longer than a lease, and r9 renewed its own after somebody had looked.
    other = Replicas(house.database, "r9", "x", "test", house.wall)
    assert await other.renew("serving", 1, house.wall()) is not None
    early = await grace.post(f"{session.base}/unfinished/c1/continue")
    assert (early.status, "r9 may still hold this call" in early.text) == (409, True)
    await other.end([])
    assert (await grace.post(f"{session.base}/unfinished/c1/continue")).status == 202
    assert peer.received("tools/call") == []


async def test_what_its_replica_brought_to_an_end_meanwhile_does_not_go_on(
    app: Starlette, enters: Enters, peer: Modern
):
    grace = await enters("Grace")
    await lost(app, grace, "modern", ROUND, {**ROUND, "id": "c2"})
    assert (await grace.post(f"/lost/{GONE}/reconnect")).status == 201
    session = newest(app)
    await until(session, lambda: session.info.state == "ready")
    # r9 could not be reached for a moment; it went on, and one call ended and the other came to its next round there.
    await lost(app, grace, "modern", {**ROUND, "id": "c2", "round": 2, "state": "the next state"})
    late = await grace.post(f"{session.base}/unfinished/c1/continue")
    assert (late.status, list(session.leftovers.offers)) == (409, ["c2"]), late.text
    assert (await grace.post(f"{session.base}/unfinished/c2/continue")).status == 202
    await until(session, lambda: session.open_asks == 1)
    (ask,) = session.inbox.open
    said = {"action": "accept", "content": {"name": "Ann"}}
    assert (await grace.post(f"{session.base}/asks/{ask.id}/answer", said)).status == 200
    (call,) = [call for call in session.calls.values() if not call.quiet]
    await until(session, lambda: call.settled)
    assert [each["params"]["requestState"] for each in peer.received("tools/call")] == ["the next state"]


async def test_a_replica_that_was_taken_for_dead_says_again_what_it_holds_and_lets_go_of_what_was_taken(
    app: Starlette, enters: Enters, house: House, peer: Modern
):
    grace, keeper = await enters("Grace"), app.state.keeper
    assert (await grace.post("/catalogue/modern/connect", {"options": {"era": "modern"}})).status == 201
    session = newest(app)
    await until(session, lambda: session.info.state == "ready")
    called = {"method": "tools/call", "params": {"name": "ask", "arguments": {}}}
    for _ in range(2):
        assert (await grace.post(f"{session.base}/calls", called)).status == 202
    await until(session, lambda: session.open_asks == 2)
    one, two = (call for call in session.calls.values() if not call.quiet)
    await keeper.tick()
    later = Replicas(house.database, "r9", "x", "test", lambda: house.wall() + 2 * bounds.LEASE_SECONDS)
    assert await later.renew("serving", 0, 0.0) is not None
    held = await keeper.replicas.find(session.id)
    assert (held.state, held.lost is None) == ("lost", False)
    taken = await later.take(session.id, one.id)
    assert taken is not None and taken[0] == "taken", "it was dead for whoever asked then"
    sent = len(peer.received("tools/call"))
    keeper._renewed -= 2 * bounds.LEASE_SECONDS
    await keeper.tick()
    held = await keeper.replicas.find(session.id)
    assert (held.state, held.lost) == ("ready", None)
    assert await keeper.replicas.take(session.id, two.id) == ("alive", held)
    await until(session, lambda: session.open_asks == 1)
    assert (one.state, "in another session" in (one.cancel_reason or ""), two.settled) == ("cancelled", True, False)
    assert (len(peer.received("tools/call")), peer.received("notifications/cancelled")) == (sent, [])
