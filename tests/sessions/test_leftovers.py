"""Calls of 2026-07-28 that go on in another session than the one they began in, which is gone."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import Conflict, Gone
from app.core.targets import AnyTarget
from app.core.unfinished import Unfinished, read
from app.sessions import Identity, Session, SessionRegistry
from app.sessions.leftovers import lost_asks, unfinished
from tests.drive import ME, connected, until
from tests.drive_modern import TELLS, ask_form, begin, modern_peer, modern_web, needs, reach, told
from tests.sessions.test_extension_tasks import DONE, SAID, asks, run, text_of

pytestmark = pytest.mark.anyio
STATE = 'opaque é "quoted" \\ eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJlLXNpZ25hdHVyZQ'


def kept(session: Session) -> list[Unfinished]:
    """What another process would read of it."""
    return [read(json.loads(json.dumps(one.json()))) for one in unfinished(session)]


async def successor(
    registry: SessionRegistry, me: Identity, target: AnyTarget, offers: list[Unfinished], **options: Any
) -> Session:
    session = registry.open(me)
    await connected(session, target, **{"era": "modern", **options})
    session.leftovers.put("r1-lost", "r1", offers, [])
    return session


@pytest.mark.requirement("R6-31", "R6-32", "T29")
async def test_a_round_goes_on_with_its_questions_and_its_state_to_the_byte(
    session: Session, registry: SessionRegistry, me: Identity, tmp_path: Path
) -> None:
    steps = [needs(STATE, a=ask_form("Who?"), b=ask_form("And who else?")), needs("two", c=ask_form("Sure?")), TELLS]
    with modern_web(tmp_path / "record", scripts={"ask": steps}) as peer:
        await reach(session, peer)
        first, (one, _) = await begin(session, "ask", 2)
        await session.asks.answer(one, SAID, ME)  # held: it is asked again
        offers = kept(session)
        assert [(each.id, each.kind, each.asked) for each in offers] == [(first.id, "round", ["Who?", "And who else?"])]
        await registry.close(session)
        later = await successor(registry, me, peer.target, offers)
        again = later.leftovers.go_on(first.id, ME)
        await until(later, lambda: len(later.inbox.open) == 2)
        assert len(peer.received("tools/call")) == 1, "nothing is sent before it is answered"
        with pytest.raises(Gone):
            later.leftovers.go_on(first.id, ME)
        for ask in list(later.inbox.open):
            await later.asks.answer(ask, SAID, ME)
        await until(later, lambda: [ask.message for ask in later.inbox.open] == ["Sure?"])
        retry = peer.received("tools/call")[1]["params"]
        assert (retry["requestState"], set(retry["inputResponses"])) == (STATE, {"a", "b"})
        await later.asks.answer(later.inbox.open[0], SAID, ME)
        assert (await told(later, again))["requestState"] == "two"
        assert (again.continues, again.rounds[0].reply_seq) == (f"r1-lost/{first.id}", None)
        assert not later.leftovers.any


@pytest.mark.requirement("R7-10", "R7-21", "T29")
async def test_a_task_goes_on_by_its_id(
    session: Session, registry: SessionRegistry, me: Identity, tmp_path: Path
) -> None:
    with modern_web(tmp_path / "record", task={"job": {"gets": [asks(a=ask_form()), DONE]}}) as peer:
        await reach(session, peer)
        running, task = await run(session)
        await until(session, lambda: session.inbox.open)
        offers = kept(session)
        assert [(each.kind, (each.task or {})["taskId"]) for each in offers] == [("task", task.task_id)]
        await registry.close(session)
        later = await successor(registry, me, peer.target, offers)
        again = later.leftovers.go_on(running.id, ME)
        await until(later, lambda: later.inbox.open)
        await later.asks.answer(later.inbox.open[0], SAID, ME)
        assert json.loads(await text_of(later, again)) == {"a": SAID}
        assert len(peer.received("tools/call")) == 1, "the tool is not called again"
        # One that the server has forgotten ends with a sentence.
        gone = Unfinished("c9", "tools/call", {"name": "job"}, 0.0, task={"taskId": "nobody's", "status": "working"})
        later.leftovers.put("r1-lost", "r1", [gone], [])
        failed = later.leftovers.go_on("c9", ME)
        await until(later, lambda: failed.settled)
        assert failed.error is not None and "no longer knows the task" in failed.error.message


@pytest.mark.requirement("T29")
async def test_nothing_goes_on_elsewhere_than_at_its_own_server(
    session: Session, registry: SessionRegistry, me: Identity, tmp_path: Path
) -> None:
    steps = {"ask": [needs("one", a=ask_form()), TELLS]}
    with modern_web(tmp_path / "one", scripts=steps) as peer, modern_web(tmp_path / "two", scripts=steps) as other:
        await reach(session, peer)
        first, _ = await begin(session, "ask")
        offers = kept(session)
        later = await successor(registry, me, peer.target, offers)
        await later.disconnect()
        await connected(later, other.target, era="modern")
        with pytest.raises(Conflict, match="another server"):
            later.leftovers.go_on(first.id, ME)
        assert not other.received("tools/call")
        secret = Unfinished(first.id, "tools/call", {"name": "ask"}, 0.0, secret=True)
        with pytest.raises(Conflict, match="secret"):
            (await successor(registry, me, peer.target, [secret])).leftovers.go_on(first.id, ME)


@pytest.mark.requirement("T29")
async def test_answers_that_are_on_their_way_and_older_revisions_are_not_offered(
    session: Session, registry: SessionRegistry, me: Identity, tmp_path: Path
) -> None:
    steps = [needs("one", a=ask_form()), needs("two", b=ask_form())]
    with modern_peer("http", tmp_path / "record", scripts={"ask": steps}) as peer:
        await reach(session, peer)
        running, (ask,) = await begin(session, "ask")
        running.rounds[-1].outcome = "sent"
        assert unfinished(session) == [] and not lost_asks(session)
        running.rounds[-1].outcome = "asking"
        session.inbox.asks.pop(ask.id)
        assert unfinished(session) == [], "a question that is not known any more cannot be asked again"
