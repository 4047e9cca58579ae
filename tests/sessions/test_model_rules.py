"""A rule that lets a model answer: named, limited, stopped by a person, and silent where somebody should look."""

from typing import Any

import anyio
import pytest

from app import bounds
from app.core.asks import Ask
from app.models.base import Model
from app.sessions import Session
from app.settings import Limits
from tests.pair import FarEnd
from tests.sessions.test_rules import answers, considered, pair, rule, soon

CANNED = {"action": "model", "model": "canned"}
TOOL = {"name": "weather", "inputSchema": {"type": "object"}}


def sample(far: FarEnd, rpc_id: Any = "q", text: str = "A caption?", **more: Any) -> None:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    far.say(
        {
            "id": rpc_id,
            "method": "sampling/createMessage",
            "params": {"messages": [message], "maxTokens": 40, **more},
        }
    )


def only(session: Session) -> Ask:
    [found] = session.inbox.asks.values()
    return found


@pytest.mark.requirement("S001 Q3", "R3-21")
async def test_a_model_answers_in_the_name_of_the_rule_that_was_switched_on():
    async with pair() as (far, session):
        kept = session.asks.rules.add(rule("captions", on=False, do=CANNED))
        sample(far, 1)
        await soon(lambda: session.open_asks == 1)
        await considered()
        assert answers(far) == [], "off until somebody switches it on"
        session.asks.rules.change(kept, rule("captions", do=CANNED))
        sample(far, 2)
        await soon(lambda: len(answers(far)) == 1)
        [(rpc_id, result)] = answers(far)
        assert rpc_id == 2 and result["model"] == "parley-canned"
        assert result["content"] == {"type": "text", "text": "This is the canned answer."}
        found = session.inbox.asks["a2"]
        assert found.answer is not None and (found.answer.by.kind, found.answer.by.name) == ("rule", "captions")
        assert found.draft is not None and found.draft.by.name == "canned", "which model wrote it stays visible"
        assert kept.answered == 1 and session.open_asks == 1


async def test_without_a_name_the_model_that_fits_writes():
    async with pair() as (far, session):
        session.asks.rules.add(rule(do={"action": "model"}))
        sample(far, text="Say it again", modelPreferences={"hints": [{"name": "echo"}]})
        await soon(lambda: len(answers(far)) == 1)
        assert answers(far)[0][1]["content"]["text"] == "Say it again"


@pytest.mark.requirement("R3-21")
async def test_a_burst_is_answered_as_often_as_the_rule_may_and_the_rest_waits():
    async with pair() as (far, session):
        session.asks.rules.add(rule(do=CANNED, per_minute=3))
        for n in range(10):
            sample(far, n)
        await soon(lambda: len(answers(far)) == 3)
        await considered()
        assert sorted(n for n, _ in answers(far)) == [0, 1, 2] and session.open_asks == 7
        assert all(ask.rule_id is None for ask in session.inbox.open), "nobody promises what will not come"


async def test_a_rule_that_names_no_limit_has_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bounds, "RULE_MODEL_PER_MINUTE", 4)
    async with pair() as (far, session):
        session.asks.rules.add(rule(do=CANNED))
        for n in range(6):
            sample(far, n)
        await soon(lambda: len(answers(far)) == 4)
        await considered()
        assert len(answers(far)) == 4 and session.open_asks == 2


async def test_what_a_model_will_answer_keeps_nobody_else_out_and_few_write_at_a_time():
    async with pair(Limits(open_asks=2)) as (far, session):
        session.asks.rules.add(rule(do=CANNED, per_minute=100))
        for n in range(20):
            sample(far, n)
        await soon(lambda: len(answers(far)) == 20)
        assert session.inbox.refused == 0
        assert sorted(n for n, _ in answers(far)) == list(range(20)), "each once"


async def test_a_person_who_takes_it_up_has_the_draft_and_decides():
    async with pair() as (far, session):
        session.asks.rules.add(rule(do={"action": "model", "model": "small talk"}))
        sample(far)
        await soon(lambda: session.inbox.asks and only(session).draft is not None and only(session).draft.text)  # type: ignore[union-attr]
        session.asks.touch(only(session))
        await soon(lambda: only(session).draft.state == "ready")  # type: ignore[union-attr]
        await considered()
        assert answers(far) == [] and only(session).state == "open"


async def test_stop_leaves_it_to_the_person():
    async with pair() as (far, session):
        session.asks.rules.add(rule(do={"action": "model", "model": "small talk"}))
        sample(far)
        await soon(lambda: session.inbox.asks and only(session).draft is not None)
        session.models.stop(only(session))
        await considered()
        assert answers(far) == [] and only(session).state == "open" and only(session).rule_id is None
        draft = only(session).draft
        assert draft is not None and (draft.state, draft.fault) == ("failed", "stopped")


async def test_what_ends_the_ask_ends_the_writing():
    async with pair() as (far, session):
        session.asks.rules.add(rule(do={"action": "model", "model": "small talk"}))
        sample(far)
        await soon(lambda: session.inbox.asks and only(session).draft is not None)
        far.say({"method": "notifications/cancelled", "params": {"requestId": "q"}})
        await soon(lambda: only(session).state == "withdrawn")
        await considered()
        assert only(session).draft.state == "failed" and answers(far) == []  # type: ignore[union-attr]


@pytest.mark.requirement("R3-21")
async def test_a_loop_of_tools_is_left_to_a_person_after_some_rounds():
    async with pair() as (far, session):
        kept = session.asks.rules.add(rule(do=CANNED))
        messages: list[Any] = [{"role": "user", "content": {"type": "text", "text": "Weather?"}}]
        for n in range(bounds.TOOL_ROUNDS):
            use = {"type": "tool_use", "id": f"u{n}", "name": "weather", "input": {}}
            gave = {"type": "tool_result", "toolUseId": f"u{n}", "content": []}
            messages += [{"role": "assistant", "content": use}, {"role": "user", "content": gave}]
        sample(far, "few", messages=messages[:-2], tools=[TOOL])
        await soon(lambda: len(answers(far)) == 1)
        sample(far, "many", messages=messages, tools=[TOOL])
        await soon(lambda: len(session.inbox.asks) == 2)
        await considered()
        assert [n for n, _ in answers(far)] == ["few"] and session.open_asks == 1
        assert "rounds of tool use" in kept.problem


async def test_what_does_not_fit_or_fails_is_left_to_a_person_with_the_reason():
    async with pair() as (far, session):
        kept = session.asks.rules.add(rule(do=CANNED))
        sample(far, "required", tools=[TOOL], toolChoice={"mode": "required"})
        await soon(lambda: "at least one tool use" in kept.problem)
        session.asks.rules.change(kept, rule(do={"action": "model", "model": "nobody"}))
        sample(far, "unknown")
        await soon(lambda: "The models are" in kept.problem)
        session.models.add("off", Model(provider="openai", model="m", base_url="http://127.0.0.1:9/v1"))
        session.asks.rules.change(kept, rule(do={"action": "model", "model": "off"}))
        sample(far, "off")
        with anyio.fail_after(300):  # the clients of providers are imported on first use
            while not kept.problem:
                await session.events.wait(session.events.seq)
        assert "nothing listens" in kept.problem
        assert answers(far) == [] and session.open_asks == 3
