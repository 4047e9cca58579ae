"""Both checkpoints for scripts: what was changed, what it took, when to try again, and what ends a request."""

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from app.core.asks import Ask
from app.sessions import Session
from tests.drive import RawPeer, call_tool, connected, flushed, until
from tests.models.conftest import Providers
from tests.models.conftest import providers as providers
from tests.web.asgi import Visitor
from tests.web.models.test_models import DONE, KEY, SAMPLING, drafted, own

Raw = Callable[..., RawPeer]
TOOL = {
    "name": "weather",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])


async def asked(session: Session, peer: RawPeer, rpc_id: str = "s", **params: Any) -> tuple[str, Ask]:
    """The path of an ask for sampling, and the ask."""
    if session.info.state != "ready":
        await connected(session, peer.target)
    line = {"jsonrpc": "2.0", "id": rpc_id, "method": "sampling/createMessage", "params": {**SAMPLING, **params}}
    before = len(session.inbox.asks)
    await call_tool(session, "say", {"lines": [json.dumps(line), DONE]})
    await until(session, lambda: len(session.inbox.asks) == before + 1)
    found = list(session.inbox.asks.values())[-1]
    return f"/s/{session.id}/asks/{found.id}", found


async def replied(session: Session, peer: RawPeer, rpc_id: str = "s") -> Any:
    await flushed(session)
    [reply] = [each for each in peer.received() if each.get("id") == rpc_id]
    return reply


@BOTH
@pytest.mark.requirement("R3-02", "R3-03", "S001 modifications", "S001 forwardSamplingToLLM", "S001 integration 2")
async def test_both_checkpoints_with_an_edit_at_each(
    victim: Session, script: Visitor, raw: Raw, providers: Providers, provider: str
):
    peer = raw()
    address, found = await asked(victim, peer, temperature=0.5)
    await script.post(f"/s/{victim.id}/models", own(providers, provider=provider))
    edited = {**found.params, "systemPrompt": "Be brief", "temperature": 0.25}
    assert (await script.post(f"{address}/request", {"request": edited})).status == 200
    assert (await script.post(f"{address}/draft", {"model": "mine"})).json()["draft"]["state"] == "streaming"
    await drafted(victim, found, "ready")
    body = providers.next()["body"]
    assert "Be brief" in str(body) and body["temperature"] == 0.25, "the edited request is what is used"
    told = await script.json(address)
    assert told["params"] == found.params and told["edited"] == edited, "the original stays"
    assert told["changes"] == [
        {"pointer": "/temperature", "before": 0.5, "after": 0.25},
        {"pointer": "/systemPrompt", "after": "Be brief"},
    ]
    took = told["draft"]["took"]
    assert (took["input_tokens"], took["output_tokens"]) == (11, 5)
    assert 0 < took["first_seconds"] <= took["seconds"]
    result = {**told["draft"]["content"], "content": {"type": "text", "text": "A boat."}}
    await script.post(f"{address}/answer", {"action": "respond", "result": result})
    assert (await replied(victim, peer))["result"] == result
    told = await script.json(address)
    assert told["answered_by"]["kind"] == "script" and told["changes"], "what was changed stays visible"
    assert told["outcome"]["draft"] == {
        "by": {"kind": "model", "name": "mine"},
        "changed": True,
        "changes": [{"pointer": "/content/text", "before": "A boat on the fjord.", "after": "A boat."}],
    }


async def test_the_request_may_come_with_the_draft(victim: Session, script: Visitor, raw: Raw, providers: Providers):
    address, found = await asked(victim, raw())
    await script.post(f"/s/{victim.id}/models", own(providers))
    edited = {**found.params, "systemPrompt": "Be brief"}
    assert (await script.post(f"{address}/draft", {"model": "mine", "request": edited})).status == 202
    await drafted(victim, found, "ready")
    assert "Be brief" in str(providers.next()["body"])
    assert (await script.post(f"{address}/draft", {"model": "mine", "request": {"messages": 5}})).status == 422
    assert (await script.post(f"{address}/draft", {"model": "mine", "request": None})).status == 202
    await drafted(victim, found, "ready")
    assert "Be brief" not in str(providers.next()["body"]) and found.edited is None, "null is the one that came"


@BOTH
async def test_a_sent_draft_is_told_from_a_changed_one(
    victim: Session, script: Visitor, raw: Raw, providers: Providers, provider: str
):
    address, found = await asked(victim, raw())
    await script.post(f"{address}/draft", {"model": "echo"})
    await drafted(victim, found, "ready")
    assert found.draft is not None
    await script.post(f"{address}/answer", {"action": "respond", "result": found.draft.content})
    outcome = (await script.json(address))["outcome"]
    assert outcome["draft"] == {"by": {"kind": "model", "name": "echo"}, "changed": False, "changes": []}
    assert victim.models.took[found.id].model == "echo"


@pytest.mark.requirement("R3-12")
async def test_a_model_is_never_asked_for_more_tokens_than_the_server_wants(
    victim: Session, script: Visitor, raw: Raw, providers: Providers
):
    address, found = await asked(victim, raw())
    await script.post(f"/s/{victim.id}/models", own(providers))
    await script.post(f"{address}/draft", {"model": "mine", "request": {**found.params, "maxTokens": 4000}})
    await drafted(victim, found, "ready")
    assert providers.next()["body"]["max_tokens"] == 40
    assert "at most 40 tokens" in (await script.json(address))["draft"]["notes"][0]
    await script.post(f"{address}/draft", {"model": "mine", "request": {**found.params, "maxTokens": 4}})
    await drafted(victim, found, "ready")
    assert providers.next()["body"]["max_tokens"] == 4, "fewer is fine"


@pytest.mark.requirement("R3-10")
async def test_the_models_for_an_ask_come_with_reasons(victim: Session, script: Visitor, raw: Raw):
    hints = [{"name": "gpt"}, {"name": "CANNED"}]
    address, _ = await asked(victim, raw(), modelPreferences={"hints": hints, "speedPriority": 1})
    told = await script.json(f"{address}/models")
    assert told["models"][0] == {"name": "canned", "model": "parley-canned", "reason": "matches hint 2"}
    assert told["hints_without_model"] == ["gpt"]
    assert (await script.post(f"{address}/draft", {})).json()["draft"]["by"]["name"] == "canned", "and it is taken"
    form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
    line = {"jsonrpc": "2.0", "id": "f", "method": "elicitation/create", "params": form}
    await call_tool(victim, "say", {"lines": [json.dumps(line), DONE]})
    await until(victim, lambda: len(victim.inbox.asks) == 2)
    other = f"/s/{victim.id}/asks/{list(victim.inbox.asks)[-1]}"
    assert (await script.get(f"{other}/models")).status == 404
    assert (await script.post(f"{other}/draft", {})).status == 422


@BOTH
async def test_a_rate_limit_says_when_to_try_again_and_that_works(
    victim: Session, script: Visitor, raw: Raw, providers: Providers, provider: str
):
    address, found = await asked(victim, raw())
    await script.post(f"/s/{victim.id}/models", own(providers, "once", provider))
    await script.post(f"{address}/draft", {"model": "mine"})
    await drafted(victim, found, "failed")
    draft = (await script.json(address))["draft"]
    assert (draft["fault"], draft["retry_after"]) == ("limit", 7.0)
    assert draft["retry_at"] > draft["updated_at"] and KEY not in str(draft)
    await script.post(f"{address}/draft", {"model": "mine"})
    await drafted(victim, found, "ready")
    draft = (await script.json(address))["draft"]
    assert (draft["fault"], draft["retry_after"], draft["problem"]) == (None, None, "")


@pytest.mark.requirement("R3-08", "R3-09")
async def test_what_a_model_wrote_is_checked_before_it_leaves(
    victim: Session, script: Visitor, raw: Raw, providers: Providers
):
    peer = raw()
    await asked(victim, peer, tools=[{**TOOL, "name": "tide"}], rpc_id="first")
    address = f"/s/{victim.id}/asks/a1"
    await script.post(f"/s/{victim.id}/models", own(providers, "tool"))
    await script.post(f"{address}/draft", {"model": "mine"})
    await drafted(victim, victim.inbox.asks["a1"], "ready")
    assert (await script.json(address))["draft"]["notes"] == ["The server offered no tool named 'weather'."]
    number = {"type": "object", "properties": {"city": {"type": "number"}}}
    address, found = await asked(victim, peer, "second", tools=[{"name": "weather", "inputSchema": number}])
    await script.post(f"{address}/draft", {"model": "mine"})
    await drafted(victim, found, "ready")
    [note] = (await script.json(address))["draft"]["notes"]
    assert note.startswith("The input of weather, /city:")
    wants = {"tools": [TOOL], "toolChoice": {"mode": "required"}}
    address, found = await asked(victim, peer, "third", **wants)
    await script.post(f"{address}/draft", {"model": "echo"})
    await drafted(victim, found, "ready")
    assert "at least one tool use" in (await script.json(address))["draft"]["notes"][0]
    assert found.draft is not None
    sent = await script.post(f"{address}/answer", {"action": "respond", "result": found.draft.content})
    assert sent.status == 422, "and it does not leave"


@pytest.mark.requirement("R3-21")
async def test_linked_rounds_of_tool_use_are_counted_and_warned_about(victim: Session, script: Visitor, raw: Raw):
    peer = raw()
    history: list[Any] = list(SAMPLING["messages"])  # type: ignore[call-overload]
    for number in range(1, 8):
        address, _ = await asked(victim, peer, f"s{number}", tools=[TOOL], messages=history)
        told = await script.json(address)
        follows = None if number == 1 else f"a{number - 1}"
        assert told["tool_round"] == {"number": number, "limit": 5, "over": number > 5, "follows": follows}
        assert [one["id"] for one in told["findings"]] == (["R3-21"] if number > 5 else [])
        use = {"type": "tool_use", "id": f"u{number}", "name": "weather", "input": {"city": "Oslo"}}
        result = {"role": "assistant", "content": use, "model": "m", "stopReason": "toolUse"}
        await script.post(f"{address}/answer", {"action": "respond", "result": result})
        gave = {"type": "tool_result", "toolUseId": f"u{number}", "content": [{"type": "text", "text": "rain"}]}
        # A server may keep only the end of the conversation: the ids still link the rounds.
        start = history[:1] if number > 2 else history
        history = [*start, {"role": "assistant", "content": use}, {"role": "user", "content": gave}]
    history.append({"role": "user", "content": {"type": "text", "text": "Something else"}})
    address, _ = await asked(victim, peer, "new", tools=[TOOL], messages=history)
    assert (await script.json(address))["tool_round"]["number"] == 1, "another question begins anew"
    address, _ = await asked(victim, peer, "plain")
    assert "tool_round" not in await script.json(address)


# ------------------------------------------------------------------------------------------------ what ends a request


async def _kill(session: Session, script: Visitor, address: str) -> None:
    assert session.info.pid is not None
    os.kill(session.info.pid, signal.SIGKILL)


async def _close(session: Session, script: Visitor, address: str) -> None:
    assert (await script.post(f"/s/{session.id}/close", {})).status < 400


async def _cancel_task(session: Session, script: Visitor, address: str) -> None:
    [task] = session.asks.tasks.values()
    gone = {"jsonrpc": "2.0", "id": "x", "method": "tasks/cancel", "params": {"taskId": task.task_id}}
    await call_tool(session, "say", {"lines": [json.dumps(gone), DONE]})


async def _expire(session: Session, script: Visitor, address: str) -> None:
    """Its time is up by itself."""


@BOTH
@pytest.mark.requirement("R1-60", "R3-22")
@pytest.mark.parametrize("ends", [_kill, _close, _cancel_task, _expire])
async def test_the_provider_s_request_ends_with_what_it_was_for(
    victim: Session, script: Visitor, raw: Raw, providers: Providers, provider: str, ends: Any
):
    await script.post(f"/s/{victim.id}/models", own(providers, provider=provider))
    # The clients are imported now, so that what has a time limit does not wait for that.
    address, found = await asked(victim, raw(), "warm")
    await script.post(f"{address}/draft", {"model": "mine"})
    await drafted(victim, found, "ready")
    await script.post(f"{address}/answer", {"action": "decline"})
    assert "body" in providers.next()
    await script.post(f"/s/{victim.id}/models", own(providers, "mute", provider))
    more: dict[Any, dict[str, Any]] = {_cancel_task: {"task": {"ttl": 600_000}}, _expire: {"task": {"ttl": 3_000}}}
    address, found = await asked(victim, raw(), **more.get(ends, {}))
    await script.post(f"{address}/draft", {"model": "mine"})
    with anyio.fail_after(120):
        assert (await anyio.to_thread.run_sync(providers.next))["body"]["model"] == "mute-1"
        await ends(victim, script, address)
        assert (await anyio.to_thread.run_sync(providers.next))["left"]
        assert found.state in ("lost", "withdrawn", "expired")
    assert found.draft is not None and found.draft.state == "failed", "no draft goes on that nobody writes"


async def test_the_last_model_that_was_asked_for_writes_and_no_other(
    victim: Session, script: Visitor, raw: Raw, providers: Providers
):
    address, found = await asked(victim, raw())
    await script.post(f"/s/{victim.id}/models", own(providers, "mute"))
    for name in ("mine", "small talk", "mine", "canned"):
        victim.models.begin(found, name)
    await drafted(victim, found, "ready")
    assert found.draft is not None and found.draft.by.name == "canned"
    await script.post(f"/s/{victim.id}/models", own(providers))
    await script.post(f"{address}/draft", {"model": "mine"})
    await drafted(victim, found, "ready")
    assert providers.next()["body"]["model"] == "words-1", "those that were replaced at once were never sent"


async def test_a_draft_that_is_too_long_ends_its_request(
    victim: Session, script: Visitor, raw: Raw, providers: Providers
):
    _, found = await asked(victim, raw())
    victim.inbox._limits = victim.limits.model_copy(update={"draft_bytes": 4})
    await script.post(f"/s/{victim.id}/models", own(providers, "stamp"))
    victim.models.begin(found, "mine")
    await drafted(victim, found, "failed")
    assert found.draft is not None and "which is the limit" in found.draft.problem
    with anyio.fail_after(60):
        assert "body" in await anyio.to_thread.run_sync(providers.next)
        assert (await anyio.to_thread.run_sync(providers.next))["left"]


# ----------------------------------------------------------------------------------------------------------------- keys


async def test_a_key_goes_nowhere_else_than_where_it_was_typed_for(
    victim: Session, script: Visitor, raw: Raw, providers: Providers, monkeypatch: pytest.MonkeyPatch
):
    path = f"/s/{victim.id}/models"
    await script.post(path, own(providers))
    again = {key: value for key, value in own(providers).items() if key != "key"}
    await script.post(path, {**again, "model": "words-2"})
    address, found = await asked(victim, raw())
    await script.post(f"{address}/draft", {"model": "mine"})
    await drafted(victim, found, "ready")
    assert providers.next()["key"] == KEY, "another model of the same provider keeps it"
    await script.post(path, {**again, "base_url": f"{again['base_url']}/elsewhere"})
    await script.post(f"{address}/draft", {"model": "mine"})
    await drafted(victim, found, "ready")
    assert providers.next()["key"] == "", "another address does not get it"
    monkeypatch.delenv("PARLEY_TEST_KEY", raising=False)
    await script.post(path, {"name": "remote", "provider": "openai", "model": "m", "key_env": "PARLEY_TEST_KEY"})
    told = {one["name"]: one["has_key"] for one in (await script.json(path))["models"]}
    assert told["remote"] is False and told["mine"] is True
    await script.post(f"{address}/draft", {"model": "remote"})
    await drafted(victim, found, "failed")
    draft = (await script.json(address))["draft"]
    assert draft["fault"] == "key" and "PARLEY_TEST_KEY is not set" in draft["problem"], "nobody is dialled for that"


# --------------------------------------------------------------------------------------------------------------- rules


@BOTH
@pytest.mark.requirement("S001 Q3")
async def test_a_rule_answers_by_a_provider(
    victim: Session, script: Visitor, raw: Raw, providers: Providers, provider: str
):
    await script.post(f"/s/{victim.id}/models", own(providers, provider=provider))
    do = {"action": "model", "model": "mine"}
    assert (await script.post(f"/s/{victim.id}/rules", {"name": "by mine", "on": True, "do": do})).status == 201
    await connected(victim, raw().target)
    line = {"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": SAMPLING}
    await call_tool(victim, "say", {"lines": [json.dumps(line), DONE]})
    with anyio.fail_after(300):
        await until(victim, lambda: bool(victim.inbox.asks))
        while victim.inbox.asks["a1"].state != "answered":
            await victim.events.wait(victim.events.seq)
    told = await script.json(f"/s/{victim.id}/asks/a1")
    assert told["answered_by"] == {"kind": "rule", "name": "by mine"}
    assert told["outcome"]["draft"] == {"by": {"kind": "model", "name": "mine"}, "changed": False, "changes": []}
    assert told["outcome"]["result"]["model"] == "words-1-2026"
