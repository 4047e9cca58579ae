"""Answer rules at work: right answers in order, none twice, people first, and no more than was allowed."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from app import bounds
from app.core.answer_rules import Rule
from app.core.errors import Conflict, Gone, Invalid
from app.sessions import Session, SessionRegistry
from app.settings import Limits, local
from tests.drive import HANG, ME, RawPeer, call_tool, connected, flushed, until
from tests.pair import FarEnd, joined

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ANN = {"action": "accept", "content": {"name": "Ann"}}


@asynccontextmanager
async def pair(limits: Limits | None = None) -> AsyncIterator[tuple[FarEnd, Session]]:
    far = FarEnd()
    async with SessionRegistry(local(limits=limits or Limits()), open_link=far.open) as registry:
        session = registry.open(ME)
        await joined(session)
        yield far, session


def rule(name: str = "ann", *, on: bool = True, do: Any = ANN, when: Any = None, **more: Any) -> Rule:
    return Rule.model_validate({"name": name, "on": on, "when": when or {}, "do": do, **more})


def ask(far: FarEnd, rpc_id: Any = "q", message: str = "Who?", **params: Any) -> None:
    said = {"message": message, "requestedSchema": SCHEMA, **params}
    far.say({"id": rpc_id, "method": "elicitation/create", "params": said})


def answers(far: FarEnd) -> list[tuple[Any, Any]]:
    return [(each["id"], each.get("result", each.get("error"))) for each in far.received if "method" not in each]


async def soon(true: Any) -> None:
    with anyio.fail_after(HANG):
        while not true():
            await anyio.lowlevel.checkpoint()


async def considered() -> None:
    """Everybody who answers has had a look at what is open: in one process that takes a few turns."""
    for _ in range(50):
        await anyio.lowlevel.checkpoint()


async def test_a_thousand_asks_get_the_right_answers_in_order_and_none_twice():
    """Ten times as many as may be open: what a rule answers does not count against that."""
    async with pair() as (far, session):
        session.asks.rules.add(rule("even", when={"message": "*even"}))
        session.asks.rules.add(rule("odd", when={"message": "*odd"}, do={"action": "decline"}))
        for n in range(1000):
            ask(far, n, f"{n} is {'odd' if n % 2 else 'even'}")
        await soon(lambda: len(answers(far)) == 1000)
        assert answers(far) == [(n, {"action": "decline"} if n % 2 else ANN) for n in range(1000)]
        assert session.open_asks == 0 and session.inbox.refused == 0
        by = {ask.answer.by.name for ask in session.inbox.settled if ask.answer is not None}
        assert by == {"even", "odd"}
        assert [one.answered for one in session.asks.rules.all.values()] == [500, 500]


async def test_a_burst_over_a_real_process(session: Session, raw: Any):
    peer: RawPeer = raw()
    await connected(session, peer.target)
    session.asks.rules.add(rule())
    line = {"jsonrpc": "2.0", "method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": SCHEMA}}
    lines = [json.dumps({**line, "id": f"e{n}"}) for n in range(200)]
    done = json.dumps({"jsonrpc": "2.0", "id": "$ID", "result": {"content": []}})
    await call_tool(session, "say", {"lines": [*lines, done]})
    await until(session, lambda: len(session.inbox.settled) >= 100)
    await flushed(session)
    replies = [each for each in peer.received() if "method" not in each and str(each.get("id", "")).startswith("e")]
    assert [each["id"] for each in replies] == [f"e{n}" for n in range(200)]
    assert all(each["result"] == ANN for each in replies)


async def test_off_paused_used_up_and_too_often_leave_the_ask_to_people():
    async with pair() as (far, session):
        rules = session.asks.rules
        one = rules.add(rule(on=False))
        ask(far, 1)
        await soon(lambda: session.open_asks == 1)
        await considered()
        rules.change(one, rule())
        rules.pause(True)
        ask(far, 2)
        await soon(lambda: session.open_asks == 2)
        await considered()
        rules.pause(False)
        rules.change(one, rule(most=2))
        for n in range(3, 7):
            ask(far, n)
        await soon(lambda: session.open_asks == 4)
        await considered()
        assert [each for each, _ in answers(far)] == [3, 4] and one.used_up
        rules.change(one, rule(per_minute=3))
        for n in range(10, 20):
            ask(far, n)
        await soon(lambda: session.open_asks == 11)
        assert [each for each, _ in answers(far)] == [3, 4, 10, 11, 12]


@pytest.mark.parametrize("delay", [0, 5])
async def test_the_rate_limit_holds_in_a_burst(delay: int):
    """Also where all of them wait for the same moment: the rest is left to people."""
    async with pair() as (far, session):
        one = session.asks.rules.add(rule(per_minute=20, delay_ms=delay))
        for n in range(100):
            ask(far, n)
        await soon(lambda: len(answers(far)) == 20 and session.open_asks == 80)
        await considered()
        given = answers(far)
        assert given == [(n, ANN) for n in range(20)] or (delay and len({each for each, _ in given}) == 20)
        assert (one.answered, one.promised, session.open_asks) == (20, 0, 80)
        assert all(each.rule_id is None for each in session.inbox.open)


async def test_what_was_promised_is_seen_to_end_when_the_rule_is_switched_off():
    async with pair() as (far, session):
        rules = session.asks.rules
        one = rules.add(rule(delay_ms=60_000))
        ask(far)
        await soon(lambda: session.open_asks == 1)
        [found] = session.inbox.open
        await soon(lambda: rules.promise(found))
        paused = partial(rules.pause, True), partial(rules.pause, False)
        for off, on in (paused, (partial(rules.switch, one, False), None)):
            before = session.events.seq
            off()
            assert rules.promise(found) is None
            told = [event.kind for event in session.events.since(before) or [] if event.subject == found.id]
            assert told == ["ask.claimed"], "every tab hears of it"
            if on is not None:
                on()
                assert rules.promise(found) is one


async def test_the_end_of_a_claim_is_told(monkeypatch: pytest.MonkeyPatch):
    """Where the rule has longer to wait than the silence lasts, the card counts down again."""
    monkeypatch.setattr(bounds, "CLAIM_SECONDS", 0.05)
    async with pair() as (far, session):
        session.asks.rules.add(rule(delay_ms=60_000))
        ask(far)
        await soon(lambda: session.open_asks == 1)
        [found] = session.inbox.open
        before = session.events.seq
        session.asks.touch(found)
        told = lambda: [event.kind for event in session.events.since(before) or [] if event.subject == found.id]  # noqa: E731
        await soon(lambda: told() == ["ask.claimed", "ask.claimed"])
        assert not found.claimed_for(session.wall()) and found.state == "open"


async def test_who_keeps_an_ask_has_it_for_good():
    async with pair() as (far, session):
        session.asks.rules.add(rule(delay_ms=20))
        ask(far)
        await soon(lambda: session.open_asks == 1)
        [found] = session.inbox.open
        session.asks.touch(found, keep=True)
        session.asks.touch(found)
        assert found.claimed_for(session.wall()) == float("inf"), "a touch makes it no shorter"
        await session.asks.answer(found, {"action": "decline"}, ME)
        assert answers(far) == [("q", {"action": "decline"})]


async def test_the_first_rule_that_matches_answers_and_the_order_can_be_changed():
    async with pair() as (far, session):
        rules = session.asks.rules
        first, second = rules.add(rule("first")), rules.add(rule("second", do={"action": "cancel"}))
        ask(far, 1)
        await soon(lambda: len(answers(far)) == 1)
        rules.order([second.id, first.id])
        ask(far, 2)
        await soon(lambda: len(answers(far)) == 2)
        assert answers(far) == [(1, ANN), (2, {"action": "cancel"})]
        for wrong in ([first.id], [first.id, first.id], [first.id, second.id, "r9"]):
            with pytest.raises(Invalid):
                rules.order(wrong)


async def test_an_answer_that_does_not_fit_is_kept_as_the_reason_and_a_person_is_asked():
    async with pair() as (far, session):
        one = session.asks.rules.add(rule(do={"action": "accept", "content": {"name": 7}}))
        ask(far)
        await soon(lambda: session.open_asks == 1)
        assert one.answered == 0 and "/name" in one.problem


async def test_with_a_delay_the_ask_says_when_and_by_which_rule():
    async with pair() as (far, session):
        one = session.asks.rules.add(rule(delay_ms=60_000))
        ask(far)
        await soon(lambda: session.open_asks == 1)
        [found] = session.inbox.open
        await soon(lambda: found.rule_id)
        assert (found.rule_id, one.promised) == (one.id, 1)
        assert found.rule_at is not None and 0 < found.rule_at - session.wall() <= 60
        await session.asks.answer(found, {"action": "decline"}, ME)
        await soon(lambda: one.promised == 0)
        assert answers(far) == [("q", {"action": "decline"})] and one.answered == 0


async def test_asks_that_a_rule_will_answer_keep_nobody_out():
    async with pair(Limits(open_asks=2)) as (far, session):
        session.asks.rules.add(rule(delay_ms=600_000, when={"message": "slow"}))
        for n in range(5):
            ask(far, n, "slow")
        await soon(lambda: session.open_asks == 5)
        for n in range(10, 13):
            ask(far, n, "fast")
        await soon(lambda: len(answers(far)) == 1)
        assert session.open_asks == 7 and session.inbox.refused == 1


async def test_a_delayed_rule_answers_once_its_time_is_up():
    async with pair() as (far, session):
        session.asks.rules.add(rule(delay_ms=30))
        ask(far)
        await soon(lambda: answers(far))
        assert answers(far) == [("q", ANN)]
        assert session.inbox.settled[0].answer.by.kind == "rule"  # type: ignore[union-attr]


@pytest.mark.parametrize("how", ["paused", "deleted", "switched off", "narrowed"])
async def test_a_rule_that_is_taken_back_while_it_waits_says_nothing(how: str):
    async with pair() as (far, session):
        rules = session.asks.rules
        one = rules.add(rule(delay_ms=60_000))
        ask(far)
        await soon(lambda: session.open_asks == 1)
        [found] = session.inbox.open
        match how:
            case "paused":
                rules.pause(True)
            case "deleted":
                rules.remove(one)
            case "switched off":
                rules.switch(one, False)
            case _:
                rules.change(one, rule(delay_ms=60_000, when={"message": "another question"}))
        assert (rules.promise(found) is None) is (how != "narrowed")
        found.rule_at = session.wall()
        assert await rules.consider(found) is None
        assert found.state == "open" and one.answered == 0 and answers(far) == []
        assert found.rule_id is None, "and the ask says so"


async def test_a_claimed_ask_is_a_persons_until_a_minute_of_silence():
    async with pair() as (far, session):
        one = session.asks.rules.add(rule(delay_ms=20))
        ask(far)
        await soon(lambda: session.open_asks == 1)
        [found] = session.inbox.open
        session.asks.touch(found)
        assert 59 < found.claimed_for(session.wall()) <= 60
        with anyio.move_on_after(0.2):
            await session.events.wait(session.events.seq + 100)
        assert found.state == "open" and one.answered == 0
        found.claimed_until = session.wall() + 0.05
        session.asks.consider(found)
        await soon(lambda: answers(far))
        assert answers(far) == [("q", ANN)]
        with pytest.raises(Gone):
            session.asks.touch(found)


async def test_a_rule_and_a_person_at_the_same_moment_give_one_answer():
    async with pair() as (far, session):
        session.asks.rules.add(rule(delay_ms=10))
        won = []
        for n in range(30):
            ask(far, n)
            await soon(lambda n=n: len(session.inbox.asks) == n + 1)
            found = list(session.inbox.asks.values())[-1]
            with anyio.move_on_after(0.01):
                await anyio.sleep_forever()
            try:
                await session.asks.answer(found, {"action": "decline"}, ME)
                won.append("person")
            except Conflict:
                won.append("rule")
        await soon(lambda: len(answers(far)) == 30)
        assert [each for each, _ in answers(far)] == list(range(30))
        assert [said == ANN for _, said in answers(far)] == [one == "rule" for one in won]


async def test_a_link_and_an_ask_without_a_rule_wait_for_people():
    async with pair() as (far, session):
        session.asks.rules.add(rule(do={"action": "fail"}))
        link = {"mode": "url", "message": "Sign in", "url": "https://example.test/", "elicitationId": "e"}
        far.say({"id": "link", "method": "elicitation/create", "params": link})
        await soon(lambda: session.open_asks == 1)
        assert answers(far) == []


async def test_there_are_only_so_many_rules_and_each_is_bounded():
    async with pair() as (_, session):
        rules = session.asks.rules
        with pytest.raises(Invalid):
            rules.add(rule(do={"action": "accept", "content": {"name": "x" * 300_000}}))
        for n in range(100):
            rules.add(rule(f"rule {n}"))
        with pytest.raises(Conflict):
            rules.add(rule("one more"))


async def test_a_rule_is_tried_on_past_asks():
    async with pair() as (far, session):
        rules = session.asks.rules
        first = rules.add(rule("first", when={"message": "one"}))
        for n, message in enumerate(["one", "two", "three"]):
            ask(far, n, message)
        await soon(lambda: session.open_asks == 2)
        asks = list(session.inbox.asks.values())
        trials = rules.tried(rule("new", on=False), asks)
        assert [trial.answer is not None for trial in trials] == [False, True, True]
        assert trials[0].reason == "rule 'first' answers first"
        alone = rules.tried(rule("new", when={"message": "one"}), asks, before=first)
        assert [trial.reason for trial in alone] == ["", "other words", "other words"]
        misfit = rules.tried(rule("new", do={"action": "accept", "content": {}}), asks[1:2])
        assert misfit[0].reason.startswith("the answer does not fit")
        assert len(answers(far)) == 1, "nothing is sent by that"
