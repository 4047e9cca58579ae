"""Rounds of 2026-07-28: a call that is answered with questions, and sent again with the answers."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.calls import StatePlan
from app.core.errors import Conflict, Gone, Invalid
from app.core.options import Root
from app.sessions import Session
from app.settings import Limits
from tests.drive import ME, call, findings, settled, until
from tests.drive_modern import (
    ASK_ROOTS,
    SAMPLED,
    TASKS,
    TELLS,
    ask_form,
    ask_link,
    ask_sampling,
    begin,
    modern_peer,
    modern_stdio,
    needs,
    reach,
    told,
)

pytestmark = pytest.mark.anyio
STATE = 'opaque é\u2028 \u0000 "quoted" \\ 🛳 =?base64?eA==?= ' + "x" * 500


@pytest.mark.requirement("R6-31", "R6-32", "R6-33", "R6-30", "R6-35")
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_three_asks_are_answered_in_any_order_and_leave_together(
    session: Session, tmp_path: Path, way: str
) -> None:
    session.roots = [Root(uri="file:///srv/one", name="One")]
    first = needs(STATE, who=ask_form(), word=ask_sampling(), where=ASK_ROOTS, link=ask_link())
    with modern_peer(way, tmp_path / "record", scripts={"ask": [first, TELLS]}) as peer:
        await reach(session, peer)
        running, (form, sampling, link) = await begin(session, "ask", 3)
        assert [each.origin for each in (form, sampling, link)] == ["input-required"] * 3
        assert running.state == "waiting" and running.deadline_at is None
        assert [each.kind for each in session.inbox.settled] == ["roots"]  # answered from the list at once
        await session.asks.answer(link, {"action": "accept"}, ME)
        await session.asks.answer(sampling, {"action": "respond", "result": SAMPLED}, ME)
        assert (link.state, sampling.state, form.state) == ("held", "held", "open")
        assert len(peer.received("tools/call")) == 1  # nothing leaves before the round is complete
        await session.asks.answer(form, {"action": "accept", "content": {"name": "Ann"}}, ME)
        assert {each.state for each in (form, sampling, link)} == {"answered"}
        seen = await told(session, running)
        assert seen["inputResponses"] == {
            "who": {"action": "accept", "content": {"name": "Ann"}},
            "word": SAMPLED,
            "where": {"roots": [{"uri": "file:///srv/one", "name": "One"}]},
            "link": {"action": "accept"},
        }
        assert seen["requestState"].encode() == STATE.encode()
        one, two = peer.received("tools/call")
        assert one["id"] != two["id"] and {"inputResponses", "requestState"}.isdisjoint(one["params"])
        assert {key: two["params"][key] for key in ("name", "arguments")} == {"name": "ask", "arguments": {}}
        (turn,) = running.rounds
        assert (turn.echo, turn.outcome, turn.state_bytes) == ("same", "sent", len(STATE.encode()))
        assert [leg.rpc_id for leg in running.legs] == [one["id"], two["id"]]
        assert turn.reply_seq == running.legs[0].reply_seq and turn.retry_seq == running.legs[1].request_seq


@pytest.mark.requirement("R6-31", "R6-32", "R6-34", "R4-49")
async def test_a_decline_is_an_answer_and_rounds_follow_each_other(session: Session, tmp_path: Path) -> None:
    steps = [needs("one", a=ask_form()), needs(None, b=ask_link()), TELLS]
    # The second round has no state, so its retry carries none; the script goes on because answers came.
    steps[1]["requestState"] = "two"
    peer = modern_stdio(tmp_path / "record", scripts={"ask": steps})
    await reach(session, peer)
    running, (form,) = await begin(session, "ask")
    await session.asks.answer(form, {"action": "decline"}, ME)
    await until(session, lambda: len(running.rounds) == 2 and session.inbox.open)
    (link,) = session.inbox.open
    await session.asks.answer(link, {"action": "cancel"}, ME)
    assert await told(session, running) == {
        "inputResponses": {"b": {"action": "cancel"}},
        "requestState": "two",
        "id": running.legs[2].rpc_id,
    }
    retries = [each["params"] for each in peer.received("tools/call")[1:]]
    assert [each["inputResponses"] for each in retries] == [
        {"a": {"action": "decline"}},
        {"b": {"action": "cancel"}},
    ]
    assert [each["requestState"] for each in retries] == ["one", "two"]


@pytest.mark.requirement("R6-32")
async def test_no_state_means_none_is_sent(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [needs(None, a=ask_form()), TELLS]})
    await reach(session, peer)
    running, (form,) = await begin(session, "ask")
    await session.asks.answer(form, {"action": "decline"}, ME)
    await settled(session, running)
    assert "requestState" not in peer.received("tools/call")[1]["params"]
    assert running.rounds[0].echo == "none"


@pytest.mark.requirement("R6-30", "R6-31")
@pytest.mark.parametrize(
    ("method", "params"),
    [("prompts/get", {"name": "ask"}), ("resources/read", {"uri": "x://ask"})],
)
async def test_prompts_and_resources_ask_too(
    session: Session, tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    steps = [needs("s", a=ask_form()), {"resultType": "complete", "messages": [], "contents": []}]
    peer = modern_stdio(tmp_path / "record", scripts={"ask": steps, "x://ask": steps})
    await reach(session, peer)
    running = session.start_call(method, params, by=ME)
    await until(session, lambda: session.inbox.open)
    await session.asks.answer(session.inbox.open[0], {"action": "accept", "content": {"name": "Ann"}}, ME)
    await settled(session, running)
    assert running.state == "done" and len(running.legs) == 2
    again = peer.received(method)[1]["params"]
    assert again["inputResponses"] == {"a": {"action": "accept", "content": {"name": "Ann"}}}
    assert {key: again[key] for key in params} == params


@pytest.mark.requirement("R6-34")
@pytest.mark.parametrize("said", [{"action": "decline"}, {"action": "fail", "code": -1, "message": "no"}])
async def test_who_refuses_a_sampling_abandons_the_call(session: Session, tmp_path: Path, said: dict[str, Any]) -> None:
    first = needs("s", a=ask_form(), b=ask_sampling(), c=ask_form())
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [first, TELLS]})
    await reach(session, peer)
    running, (held, sampling, still) = await begin(session, "ask", 3)
    await session.asks.answer(held, {"action": "decline"}, ME)
    await session.asks.answer(sampling, said, ME)
    await settled(session, running)
    assert (running.state, running.abandoned, running.rounds[0].outcome) == ("cancelled", True, "abandoned")
    assert "no way to tell the server" in (running.cancel_reason or "")
    assert (held.state, still.state) == ("withdrawn", "withdrawn") and "took this back" not in still.words()
    await call(session, "tools/call", {"name": "echo", "arguments": {}})
    assert len(peer.received("tools/call")) == 2 and not peer.received("notifications/cancelled")


@pytest.mark.requirement("R6-34")
async def test_a_held_answer_stays_while_its_round_is_on_its_way(session: Session, tmp_path: Path) -> None:
    """Two tabs: one completes the round, the other changes its mind about a held answer in the same moment. What left
    is what the inbox says was answered, and nothing of a round that is over stays open in the next."""
    steps = [needs("one", a=ask_form(), b=ask_form()), needs("two", c=ask_form()), TELLS]
    peer = modern_stdio(tmp_path / "record", scripts={"ask": steps})
    await reach(session, peer)
    running, (held, last) = await begin(session, "ask", 2)
    await session.asks.answer(held, {"action": "decline"}, ME)
    refused = 0

    async def change() -> None:
        nonlocal refused
        assert (held.state, last.state) == ("held", "sending"), "the round is complete, and has not left"
        with pytest.raises(Gone):
            session.rounds.reopen(held)
        with pytest.raises(Gone):
            await session.asks.answer(held, {"action": "cancel"}, ME)
        refused += 1

    async with anyio.create_task_group() as group:
        group.start_soon(session.asks.answer, last, {"action": "accept", "content": {"name": "Ann"}}, ME)
        group.start_soon(change)
    assert refused == 1
    assert (held.state, last.state) == ("answered", "answered")
    await until(session, lambda: len(running.rounds) == 2 and session.inbox.open)
    (form,) = session.inbox.open
    await session.asks.answer(form, {"action": "decline"}, ME)
    await settled(session, running)
    answers = peer.received("tools/call")[1]["params"]["inputResponses"]
    assert answers == {"a": {"action": "decline"}, "b": {"action": "accept", "content": {"name": "Ann"}}}
    assert session.inbox.open == []


@pytest.mark.requirement("R6-34")
async def test_a_held_answer_can_be_changed(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [needs("s", a=ask_form(), b=ask_form()), TELLS]})
    await reach(session, peer)
    running, (one, two) = await begin(session, "ask", 2)
    await session.asks.answer(one, {"action": "accept", "content": {"name": "Ann"}}, ME)
    session.rounds.reopen(one)
    assert one.state == "open"
    with pytest.raises(Conflict):
        session.rounds.reopen(two)
    await session.asks.answer(two, {"action": "accept", "content": {"name": "Ben"}}, ME)
    assert running.state == "waiting"
    await session.asks.answer(one, {"action": "accept", "content": {"name": "Cai"}}, ME)
    answers = (await told(session, running))["inputResponses"]
    assert [answers[key]["content"]["name"] for key in "ab"] == ["Cai", "Ben"]


@pytest.mark.requirement("R6-31")
class TestLimit:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(rounds=2)

    async def test_endless_rounds_stop_until_a_person_raises_the_limit(self, session: Session, tmp_path: Path) -> None:
        steps = [needs(f"state {number}") for number in range(20)]
        peer = modern_stdio(tmp_path / "record", scripts={"ask": [*steps, TELLS]})
        await reach(session, peer)
        running = session.start_call("tools/call", {"name": "ask", "arguments": {}}, by=ME)
        await until(session, lambda: running.state == "waiting")
        assert running.at_limit and len(peer.received("tools/call")) == 3 and not session.inbox.open
        with pytest.raises(Invalid):
            session.rounds.raise_limit(running, 1)
        session.rounds.raise_limit(running, 4)
        await until(session, lambda: running.state == "waiting" and len(running.rounds) == 5)
        assert len(peer.received("tools/call")) == 5
        states = [each["params"].get("requestState") for each in peer.received("tools/call")]
        assert states == [None, "state 0", "state 1", "state 2", "state 3"]
        session.cancel_call(running.id)
        await settled(session, running)
        with pytest.raises(Conflict):
            session.rounds.raise_limit(running, 100)


class TestOldStates:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(round_state_bytes=2_500, round_states=3)

    async def test_the_states_of_old_rounds_are_bounded_by_bytes_and_number(
        self, session: Session, tmp_path: Path
    ) -> None:
        large = [needs(f"{number}" + "é" * 500, a=ask_form()) for number in range(5)]
        small = [needs(f"state {number}") for number in range(5)]
        peer = modern_stdio(tmp_path / "record", scripts={"ask": [*large, TELLS], "poll": [*small, TELLS]})
        await reach(session, peer)
        running, _ = await begin(session, "ask")
        for number in range(1, 6):
            await until(session, lambda number=number: len(running.rounds) == number and session.inbox.open)  # type: ignore[misc]
            await session.asks.answer(session.inbox.open[0], {"action": "decline"}, ME)
        seen = await told(session, running)
        assert seen["requestState"] == "4" + "é" * 500  # what is needed is never forgotten
        kept = [turn.number for turn in running.rounds if turn.state is not None]
        assert kept == [4, 5] and [turn.state_bytes for turn in running.rounds] == [1_001] * 5
        with pytest.raises(Invalid, match="no longer kept"):
            session.rounds.resend(running, 1, None, ME)
        without = session.rounds.resend(running, 1, StatePlan("drop"), ME)
        await settled(session, without)
        assert "requestState" not in peer.received("tools/call")[-1]["params"]
        again = session.rounds.resend(running, 4, None, ME)
        await until(session, lambda: again.rounds)
        assert peer.received("tools/call")[-1]["params"]["requestState"] == "3" + "é" * 500
        session.cancel_call(again.id)
        polled = await call(session, "tools/call", {"name": "poll", "arguments": {}})
        assert [turn.number for turn in polled.rounds if turn.state is not None] == [3, 4, 5]
        assert all(turn.state is None for turn in running.rounds)


@pytest.mark.requirement("R6-32", "R6-33")
@pytest.mark.parametrize(
    ("plan", "echo", "sent"),
    [
        (StatePlan("drop"), "dropped", None),
        (StatePlan("older"), "older", "one"),
        (StatePlan("change", "forged"), "changed", "forged"),
        (None, "same", "two"),
    ],
)
async def test_testers_may_send_another_state_on_purpose(
    session: Session, tmp_path: Path, plan: StatePlan | None, echo: str, sent: str | None
) -> None:
    steps = [needs("one", a=ask_form()), needs("two", b=ask_form()), TELLS]
    peer = modern_stdio(tmp_path / "record", scripts={"ask": steps})
    await reach(session, peer)
    running, (form,) = await begin(session, "ask")
    await session.asks.answer(form, {"action": "decline"}, ME)
    await until(session, lambda: len(running.rounds) == 2 and session.inbox.open)
    session.rounds.plan_state(running, plan)
    await session.asks.answer(session.inbox.open[0], {"action": "decline"}, ME)
    await until(session, lambda: running.settled or len(running.rounds) == 3)
    assert running.rounds[1].echo == echo and running.rounds[0].echo == "same"
    assert peer.received("tools/call")[2]["params"].get("requestState") == sent
    assert running.state_plan is None  # it was for one retry
    if echo in ("dropped", "changed"):
        assert running.state == "failed" and running.error is not None and running.error.code == -32602


@pytest.mark.requirement("R6-33")
async def test_an_old_round_can_be_sent_again_as_a_call_of_its_own(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [needs("one", a=ask_form()), TELLS]})
    await reach(session, peer)
    running, (form,) = await begin(session, "ask")
    with pytest.raises(Invalid):
        session.rounds.resend(running, 1, None, ME)
    await session.asks.answer(form, {"action": "accept", "content": {"name": "Ann"}}, ME)
    await settled(session, running)
    with pytest.raises(Conflict):
        session.rounds.plan_state(running, StatePlan("drop"))
    again = session.rounds.resend(running, 1, None, ME)
    seen = await told(session, again)
    assert seen["requestState"] == "one" and seen["inputResponses"]["a"]["content"] == {"name": "Ann"}
    forged = session.rounds.resend(running, 1, StatePlan("change", "forged"), ME)
    await settled(session, forged)
    assert forged.state == "failed" and forged.retry_of == running.id
    assert len({each["id"] for each in peer.received()}) == len(peer.received())


@pytest.mark.requirement("R6-04", "R6-30")
@pytest.mark.parametrize(
    ("method", "result", "rule"),
    [
        ("tools/call", {"resultType": "surprise", "content": []}, "R6-04"),
        ("tools/call", {"resultType": None, "content": []}, "R6-04"),
        ("completion/complete", needs("s"), "R6-30"),
        ("prompts/get", {"resultType": "task", "taskId": "t"}, "R7-03"),
        ("tools/call", {"resultType": "task", "taskId": "t"}, "R7-03"),
    ],
)
async def test_a_result_of_an_unknown_kind_is_no_valid_response(
    session: Session, tmp_path: Path, method: str, result: dict[str, Any], rule: str
) -> None:
    peer = modern_stdio(tmp_path / "record", results={method: result})
    await reach(session, peer, extensions={TASKS: None})
    done = await call(session, method, {"name": "x"})
    assert done.state == "failed" and done.error is not None
    assert (done.error.kind, done.error.code) == ("invalid", None)
    assert rule in [each.id for each in done.findings] and json.loads(done.reply or b"")["result"] == result
    assert len(peer.received(method)) == 1


@pytest.mark.requirement("R6-04")
async def test_a_missing_result_type_means_complete(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record", results={"tools/call": {"content": []}})
    await reach(session, peer)
    done = await call(session, "tools/call", {"name": "x"})
    assert done.state == "done" and [(each.id, each.level) for each in done.findings] == [("R6-04", "must")]


@pytest.mark.requirement("R4-03", "R6-35")
@pytest.mark.parametrize(
    ("request_", "options"),
    [
        (ask_sampling(), {"sampling": False}),
        (ask_link(), {"elicitation_url": False}),
        (ASK_ROOTS, {"roots": False}),
        ({"method": "elicitation/create", "params": {"mode": "form"}}, {}),
        ({"method": "shell/run", "params": {}}, {}),
        ("nonsense", {}),
    ],
)
async def test_what_may_not_be_asked_is_not_answered_with_an_invention(
    session: Session, tmp_path: Path, request_: Any, options: dict[str, Any]
) -> None:
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [needs("s", ok=ask_form(), bad=request_), TELLS]})
    await reach(session, peer, **options)
    done = await call(session, "tools/call", {"name": "ask", "arguments": {}})
    assert done.state == "failed" and done.error is not None and done.error.kind == "invalid"
    assert "R4-03" in [each.id for each in done.findings]
    assert not session.inbox.open and len(peer.received("tools/call")) == 1


@pytest.mark.requirement("R4-49")
async def test_links_have_no_id_in_this_era_and_error_32042_is_gone(session: Session, tmp_path: Path) -> None:
    old = ask_link()
    old["params"]["elicitationId"] = "e1"
    error = {"code": -32042, "message": "open first", "data": {"elicitations": []}}
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [needs("s", a=old), TELLS]}, errors={"prompts/get": error})
    await reach(session, peer)
    running, (link,) = await begin(session, "ask")
    assert [each.id for each in link.findings] == ["R4-49"]
    await session.asks.answer(link, {"action": "accept"}, ME)
    assert (await told(session, running))["inputResponses"] == {"a": {"action": "accept"}}
    failed = await call(session, "prompts/get", {"name": "p"})
    assert "R4-49" in [each.id for each in failed.findings]


@pytest.mark.requirement("R4-49")
async def test_questions_of_one_message_have_their_own_findings_and_the_call_has_all(
    session: Session, tmp_path: Path
) -> None:
    old = ask_link()
    old["params"]["elicitationId"] = "e1"
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [needs("s", a=ask_form(), b=old, c=old), TELLS]})
    await reach(session, peer)
    running, asked = await begin(session, "ask", 3)
    assert [[each.id for each in ask.findings] for ask in asked] == [[], ["R4-49"], ["R4-49"]]
    beside = session.messages.findings(running.legs[0].reply_seq or 0)
    assert running.findings == list(beside) and [each.id for each in beside] == ["R4-49", "R4-49"]


@pytest.mark.requirement("R6-31", "R6-50")
async def test_a_call_that_ends_takes_its_asks_with_it(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [needs("s", a=ask_form(), b=ask_form()), TELLS]})
    await reach(session, peer)
    running, (one, two) = await begin(session, "ask", 2)
    await session.asks.answer(one, {"action": "decline"}, ME)
    session.cancel_call(running.id)
    await until(session, lambda: not session.inbox.open)
    assert (one.state, two.state) == ("withdrawn", "withdrawn")
    # Nothing was under way on the wire, so there was nothing to cancel there.
    await call(session, "tools/call", {"name": "echo", "arguments": {}})
    assert not peer.received("notifications/cancelled") and len(peer.received("tools/call")) == 2
    running, (one, two) = await begin(session, "ask", 2)
    await session.disconnect()
    await settled(session, running)
    assert (running.state, one.state, two.state) == ("failed", "lost", "lost")
    with pytest.raises(Conflict):
        await session.asks.answer(two, {"action": "decline"}, ME)


@pytest.mark.requirement("R6-31", "R6-32")
async def test_odd_rounds_are_shown_and_played(session: Session, tmp_path: Path) -> None:
    steps = [{"resultType": "input_required", "inputRequests": []}, needs({"an": "object"}), TELLS]
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [steps[1], TELLS], "odd": [steps[0], TELLS]})
    await reach(session, peer)
    done = await call(session, "tools/call", {"name": "ask", "arguments": {}})
    assert (await told(session, done))["requestState"] == {"an": "object"}
    assert "R6-32" in [each.id for each in done.findings]
    odd = session.start_call("tools/call", {"name": "odd", "arguments": {}}, by=ME)
    await until(session, lambda: len(odd.rounds) >= 2)
    session.cancel_call(odd.id)
    assert {each.id for each in odd.findings} >= {"R6-31"} and findings(session)
