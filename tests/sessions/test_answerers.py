"""Whoever answers asks: one list in an order, one road to the wire, and nothing lost when one fails or is slow."""

import itertools
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.asks import Answer, AnsweredBy, Ask, Draft, elicited, sampled
from app.core.errors import Conflict
from app.sessions import Session, SessionRegistry
from app.sessions.answerers import Answerer
from app.settings import Limits, local
from tests.drive import HANG, ME, RawPeer, call_tool, connected, flushed, settled, until
from tests.drive_modern import SAMPLED, TELLS, ask_form, ask_sampling, begin, modern_stdio, needs, reach, told
from tests.pair import FarEnd, joined

FORM = {
    "message": "Who?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
POLLY = {"action": "accept", "content": {"name": "Polly"}}


class Parrot(Answerer):
    """Answers whatever is asked: all that an answerer has to be."""

    def __init__(self, waits: bool) -> None:
        self.waits = waits

    def at_once(self, ask: Ask) -> Answer | None:
        return None if self.waits else self.answer(ask)

    async def consider(self, ask: Ask) -> Answer:
        return self.answer(ask)

    def answer(self, ask: Ask) -> Answer:
        by = AnsweredBy("rule", "parrot")
        if ask.kind == "sampling":
            return sampled(ask, SAMPLED, by)
        return elicited(ask, "accept", {"name": "Polly"}, by)


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "while it is open"])
async def test_an_answerer_answers_asks_of_all_four_origins(
    session: Session, raw: Callable[..., RawPeer], tmp_path: Path, waits: bool
):
    session.asks.answerers.insert(0, Parrot(waits))
    old = raw()
    await connected(session, old.target)
    lines = [
        {"id": "plain", "method": "elicitation/create", "params": FORM},
        {"id": "task", "method": "sampling/createMessage", "params": ask_sampling()["params"] | {"task": {}}},
    ]
    done = {"id": "$ID", "result": {"content": []}}
    written = [_line(each) for each in [*lines, done]]
    await call_tool(session, "say", {"lines": written})
    await until(session, lambda: len(session.inbox.settled) == 2)
    await flushed(session)
    replies = {each["id"]: each["result"] for each in old.received() if "method" not in each}
    assert replies["plain"] == POLLY
    fetch = {"id": "fetch", "method": "tasks/result", "params": {"taskId": replies["task"]["task"]["taskId"]}}
    await call_tool(session, "say", {"lines": [_line(fetch), _line(done)]})
    await flushed(session)
    [fetched] = [each["result"] for each in old.received() if each.get("id") == "fetch"]
    assert {key: fetched[key] for key in SAMPLED} == SAMPLED
    await session.disconnect()

    asks = {"status": "input_required", "pollIntervalMs": 50, "inputRequests": {"c": ask_form(), "d": ask_sampling()}}
    gets = [asks, {"status": "completed", "result": {"$tell": True}}]
    new = modern_stdio(
        tmp_path / "record",
        scripts={"ask": [needs("s", a=ask_form(), b=ask_sampling()), TELLS]},
        task={"job": {"gets": gets}},
    )
    await reach(session, new)
    running = session.start_call("tools/call", {"name": "ask", "arguments": {}}, by=ME)
    assert (await told(session, running))["inputResponses"] == {"a": POLLY, "b": SAMPLED}
    job = session.start_call("tools/call", {"name": "job", "arguments": {}}, by=ME)
    await settled(session, job)
    updates = [each["params"]["inputResponses"] for each in new.received("tasks/update")]
    assert sorted(updates, key=str) == [{"c": POLLY}, {"d": SAMPLED}]

    kept = session.inbox.settled
    assert {(ask.origin, ask.kind) for ask in kept} == {
        ("request", "form"),
        ("receiver-task", "sampling"),
        ("input-required", "form"),
        ("input-required", "sampling"),
        ("task-input", "form"),
        ("task-input", "sampling"),
    }
    assert {(ask.state, ask.answer and ask.answer.by, ask.recorded) for ask in kept} == {
        ("answered", AnsweredBy("rule", "parrot"), not waits)
    }
    added = [event for event in session.events.since(0) or [] if event.kind == "ask.added"]
    assert len(added) == (6 if waits else 0) and not session.inbox.open


def _line(message: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", **message}).replace('"$ID"', "$ID")


# ---- over a pair of links: what is asked of whom, and when


class Scripted(Answerer):
    """Says what a test wants, once a test wants it, and remembers what it was asked."""

    def __init__(self, said: Any = None, *, name: str = "scripted", prompt: Any = None) -> None:
        self.by, self._said, self._prompt = AnsweredBy("model", name), said, prompt
        self.asked: list[str] = []
        self.ends: list[str] = []
        self.go_on = anyio.Event()
        self.show: Callable[[Ask, Draft], None] | None = None

    def at_once(self, ask: Ask) -> Answer | None:
        return self._prompt(ask, self.by) if self._prompt is not None else None

    async def consider(self, ask: Ask) -> Answer | Draft | None:
        self.asked.append(ask.id)
        try:
            if self.show is not None:
                for text in ("Po", "Poll"):
                    self.show(ask, Draft(self.by, text, state="streaming"))
                await self.go_on.wait()
            said: Answer | Draft | None = self._said(ask, self.by) if callable(self._said) else self._said
        except BaseException as ending:
            self.ends.append(type(ending).__name__)
            raise
        self.ends.append("returned")
        return said


def polly(ask: Ask, by: AnsweredBy) -> Answer:
    return elicited(ask, "accept", {"name": "Polly"}, by)


def misfit(ask: Ask, by: AnsweredBy) -> Answer:
    return elicited(ask, "accept", {"name": 7}, by)


def other_kind(ask: Ask, by: AnsweredBy) -> Answer:
    return sampled(ask, SAMPLED, by)


def broken(ask: Ask, by: AnsweredBy) -> Answer:
    raise RuntimeError("a fault of this answerer")


@asynccontextmanager
async def pair(*answerers: Answerer, limits: Limits | None = None, **options: Any) -> AsyncIterator[tuple[Any, ...]]:
    """A far end, a session and its inbox, with these answerers behind the list of roots."""
    far = FarEnd()
    async with SessionRegistry(local(limits=limits or Limits()), open_link=far.open) as registry:
        session = registry.open(ME)
        session.asks.answerers[1:1] = answerers
        await joined(session, **options)
        yield far, session


def ask(far: FarEnd, rpc_id: str = "q") -> None:
    far.say({"id": rpc_id, "method": "elicitation/create", "params": FORM})


async def soon(true: Callable[[], object]) -> None:
    """Let everybody else have their turn until something is true; in one process that takes a few turns."""
    with anyio.fail_after(HANG):
        while not true():
            await anyio.lowlevel.checkpoint()


async def reply(far: FarEnd, rpc_id: str = "q") -> Any:
    await soon(lambda: any(each.get("id") == rpc_id for each in far.received))
    [found] = [each for each in far.received if each.get("id") == rpc_id]
    return found.get("result")


def kinds(session: Session, subject: str) -> list[str]:
    return [event.kind for event in session.events.since(0) or [] if event.subject == subject]


async def test_answerers_are_asked_in_their_order_until_one_has_answered():
    first, second, third = Scripted(), Scripted(polly, name="second"), Scripted(polly, name="third")
    async with pair(first, second, third) as (far, session):
        ask(far)
        assert await reply(far) == POLLY
        [found] = session.inbox.settled
        assert found.answer.by == AnsweredBy("model", "second")
        assert (first.asked, second.asked, third.asked) == ([found.id], [found.id], [])
        # What can be said at once is said before anybody considers anything.
        third._prompt = polly
        ask(far, "again")
        assert await reply(far, "again") == POLLY
        assert first.asked == [found.id] and kinds(session, session.inbox.settled[0].id) == ["ask.settled"]


@pytest.mark.parametrize("fault", [broken, misfit, other_kind])
@pytest.mark.parametrize("prompt", [False, True])
async def test_an_answerer_that_fails_is_logged_and_the_ask_falls_to_the_next(
    caplog: pytest.LogCaptureFixture, fault: Any, prompt: bool
):
    bad = Scripted(prompt=fault) if prompt else Scripted(fault)
    async with pair(bad, Scripted(polly, name="next")) as (far, session):
        with caplog.at_level(logging.ERROR, "parley"):
            ask(far)
            assert await reply(far) == POLLY
        assert "the answerer Scripted failed" in caplog.text
        [found] = session.inbox.settled
        assert (found.state, found.answer.by.name) == ("answered", "next")
        assert session.info.state == "ready"


async def test_when_every_answerer_fails_the_ask_is_still_a_persons(caplog: pytest.LogCaptureFixture):
    async with pair(Scripted(broken, prompt=broken)) as (far, session):
        with caplog.at_level(logging.CRITICAL, "parley"):
            ask(far)
            await until(session, lambda: session.inbox.open)
            await session.asks.answer(session.inbox.open[0], {"action": "decline"}, ME)
            assert await reply(far) == {"action": "decline"}


async def _answered(far: FarEnd, session: Session, found: Ask) -> str:
    await session.asks.answer(found, {"action": "decline"}, ME)
    return "answered"


async def _withdrawn(far: FarEnd, session: Session, found: Ask) -> str:
    far.say({"method": "notifications/cancelled", "params": {"requestId": "q"}})
    return "withdrawn"


async def _lost(far: FarEnd, session: Session, found: Ask) -> str:
    far.end()
    return "lost"


@pytest.mark.parametrize("overtake", [_answered, _withdrawn, _lost])
async def test_a_slow_answerer_is_cancelled_when_the_ask_is_no_longer_open(overtake: Any):
    slow, behind = Scripted(polly), Scripted(polly, name="behind")
    async with pair(slow, behind) as (far, session):
        slow.show = session.inbox.draft
        ask(far)
        await until(session, lambda: slow.asked)
        [found] = session.inbox.open
        ends = await overtake(far, session, found)
        await soon(lambda: slow.ends)
        assert (found.state, slow.ends, behind.asked) == (ends, ["CancelledError"], [])
        assert found.draft is not None and (found.draft.text, found.draft.state) == ("Poll", "failed")
        with pytest.raises(Conflict):
            await session.asks.answer(found, {"action": "decline"}, ME)
        if ends == "answered":
            assert found.answer is not None and found.answer.by.kind == "person"
            assert await reply(far) == {"action": "decline"}


async def test_a_draft_grows_stays_with_the_ask_and_is_told_by_its_own_event():
    model = Scripted(lambda ask, by: Draft(by, "Polly", POLLY))
    async with pair(model) as (far, session):
        model.show = session.inbox.draft
        ask(far)
        await until(session, lambda: model.asked and session.inbox.open[0].draft is not None)
        [found] = session.inbox.open
        growing = found.draft
        assert (growing.text, growing.content, growing.state, growing.by) == ("Poll", None, "streaming", model.by)
        model.go_on.set()
        await until(session, lambda: found.draft.state == "ready")
        ready = found.draft
        assert (ready.text, ready.content, found.state) == ("Polly", POLLY, "open")
        assert growing.started_at == ready.started_at <= ready.updated_at
        assert kinds(session, found.id) == ["ask.added", *["ask.draft"] * 3]
        # Nobody is bound to it.
        await session.asks.answer(found, {"action": "accept", "content": {"name": "Ann"}}, ME)
        assert (await reply(far))["content"] == {"name": "Ann"}
        assert found.draft == ready


async def test_a_draft_is_bounded():
    huge = Scripted(lambda ask, by: Draft(by, "é" * 100, {"a": "b" * 50}))
    async with pair(huge, limits=Limits(draft_bytes=99)) as (far, session):
        ask(far)
        await until(session, lambda: session.inbox.open and session.inbox.open[0].draft is not None)
        draft = session.inbox.open[0].draft
        assert (draft.text, draft.content, draft.state) == ("é" * 49, None, "failed") and "99 bytes" in draft.problem


async def test_an_ask_can_be_considered_again():
    turns = itertools.count(1)
    model = Scripted(lambda ask, by: Draft(by, f"draft {next(turns)}"))
    async with pair(model) as (far, session):
        ask(far)
        await until(session, lambda: session.inbox.open and session.inbox.open[0].draft is not None)
        [found] = session.inbox.open
        assert found.draft.text == "draft 1"
        model.show = session.inbox.draft
        session.asks.consider(found)
        await until(session, lambda: found.draft.state == "streaming")
        # Whoever is at it begins again: there is one draft, not two that race.
        session.asks.consider(found)
        await until(session, lambda: len(model.asked) == 3)
        model.go_on.set()
        await until(session, lambda: found.draft.state == "ready")
        assert (found.draft.text, model.ends) == ("draft 2", ["returned", "CancelledError", "returned"])


async def test_the_unattended_limit_counts_once_those_before_it_have_had_their_turn():
    model = Scripted(lambda ask, by: Draft(by, "Polly"))
    async with pair(model, unattended_limit_ms=50) as (far, session):
        model.show = session.inbox.draft
        ask(far)
        await until(session, lambda: model.asked)
        [found] = session.inbox.open
        model.go_on.set()
        assert await reply(far) == {"action": "cancel"}
        assert (found.answer.by.kind, found.draft.state, found.draft.text) == ("limit", "ready", "Polly")


async def test_an_answer_held_in_a_round_is_not_replaced_and_once_taken_back_it_is_a_persons(
    session: Session, tmp_path: Path
):
    class Considerate(Scripted):
        async def consider(self, ask: Ask) -> Answer | Draft | None:
            return None if ask.claimed_until else await super().consider(ask)

    slow = Considerate(polly)
    slow.show = session.inbox.draft
    session.asks.answerers.insert(1, slow)
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [needs("s", a=ask_form(), b=ask_form()), TELLS]})
    await reach(session, peer)
    running, (one, two) = await begin(session, "ask", 2)
    await until(session, lambda: len(slow.asked) == 2)
    await session.asks.answer(one, {"action": "accept", "content": {"name": "Ann"}}, ME)
    assert [each.state for each in (one, two)] == ["held", "open"]
    await until(session, lambda: one.draft is not None and one.draft.state == "failed")
    session.rounds.reopen(one)
    assert (str(one.state), one.claimed_for(0) > 0, kinds(session, one.id)[-1]) == ("open", True, "ask.reopened")
    assert kinds(session, one.id).count("ask.added") == 1
    slow.go_on.set()
    await until(session, lambda: two.state == "held")
    assert [str(one.state), str(running.state)] == ["open", "waiting"]
    await session.asks.answer(one, {"action": "decline"}, ME)
    assert (await told(session, running))["inputResponses"] == {"a": {"action": "decline"}, "b": POLLY}
