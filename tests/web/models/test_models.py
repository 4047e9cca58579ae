"""Models for scripts: a draft that grows and is sent, stopped or lost, and a key that never comes out."""

import json
import logging
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

KEY = "sk-canary-5f2a99d1c0ffee77"
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "A caption?"}}], "maxTokens": 40}
DONE = '{"jsonrpc": "2.0", "id": "$ID", "result": {"content": []}}'
Raw = Callable[..., RawPeer]


async def asked(session: Session, peer: RawPeer, rpc_id: str = "s") -> str:
    if session.info.state != "ready":
        await connected(session, peer.target)
    line = {"jsonrpc": "2.0", "id": rpc_id, "method": "sampling/createMessage", "params": SAMPLING}
    before = len(session.inbox.asks)
    await call_tool(session, "say", {"lines": [json.dumps(line), DONE]})
    await until(session, lambda: len(session.inbox.asks) == before + 1)
    return f"/s/{session.id}/asks/{list(session.inbox.asks)[-1]}"


async def drafted(session: Session, found: Ask, state: str) -> None:
    """Until a draft has come to this. The clients of providers are imported on first use: that takes its time."""
    with anyio.fail_after(300):
        while found.draft is None or found.draft.state != state:
            await session.events.wait(session.events.seq)


def own(providers: Providers, how: str = "words", provider: str = "openai") -> dict[str, Any]:
    return {"name": "mine", "provider": provider, "base_url": providers.url(provider), "model": f"{how}-1", "key": KEY}


@pytest.mark.requirement("R3-03", "R3-09")
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_model_writes_a_draft_that_a_person_sends(
    victim: Session, script: Visitor, raw: Raw, providers: Providers, provider: str
):
    peer = raw()
    address = await asked(victim, peer)
    assert (await script.post(f"/s/{victim.id}/models", own(providers, provider=provider))).status == 201
    assert (await script.post(f"{address}/draft", {"model": "mine"})).status == 202
    [found] = victim.inbox.open
    await drafted(victim, found, "ready")
    told = await script.json(address)
    assert (told["state"], told["draft"]["text"]) == ("open", "A boat on the fjord.")
    assert told["draft"]["by"] == {"kind": "model", "name": "mine"}
    result = told["draft"]["content"]
    assert result["model"] == "words-1-2026", "the one that was really used"
    assert (await script.post(f"{address}/answer", {"action": "respond", "result": result})).status == 200
    await flushed(victim)
    [reply] = [each for each in peer.received() if each.get("id") == "s"]
    assert reply["result"] == result


@pytest.mark.parametrize(("how", "words"), [("key", "refused the key"), ("limit", "too many"), ("cut", "cut off")])
async def test_a_provider_that_fails_leaves_the_ask_open_with_a_sentence(
    victim: Session, script: Visitor, raw: Raw, providers: Providers, how: str, words: str
):
    address = await asked(victim, raw())
    await script.post(f"/s/{victim.id}/models", own(providers, how))
    await script.post(f"{address}/draft", {"model": "mine"})
    [found] = victim.inbox.open
    await drafted(victim, found, "failed")
    told = await script.json(address)
    assert told["state"] == "open" and words in told["draft"]["problem"]
    await script.post(f"{address}/draft", {"model": "echo"})
    await drafted(victim, found, "ready")
    assert found.draft is not None and found.draft.text == "A caption?", "another model after that"


async def _withdraw(session: Session, script: Visitor, address: str) -> None:
    gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}}
    await call_tool(session, "say", {"lines": [json.dumps(gone), DONE]})


async def _answer(session: Session, script: Visitor, address: str) -> None:
    await script.post(f"{address}/answer", {"action": "decline"})


async def _stop(session: Session, script: Visitor, address: str) -> None:
    await script.post(f"{address}/draft/stop", {})


async def _disconnect(session: Session, script: Visitor, address: str) -> None:
    await session.disconnect()


@pytest.mark.requirement("R1-60", "R3-22")
@pytest.mark.parametrize("ends", [_withdraw, _answer, _stop, _disconnect])
async def test_what_ends_the_ask_ends_the_request_to_the_provider(
    victim: Session, script: Visitor, raw: Raw, providers: Providers, ends: Any
):
    address = await asked(victim, raw())
    await script.post(f"/s/{victim.id}/models", own(providers, "mute"))
    await script.post(f"{address}/draft", {"model": "mine"})
    with anyio.fail_after(300):
        assert (await anyio.to_thread.run_sync(providers.next))["body"]["model"] == "mute-1"
        await ends(victim, script, address)
        assert (await anyio.to_thread.run_sync(providers.next))["left"]
    [found] = victim.inbox.asks.values()
    assert found.draft is not None
    if ends is _stop:
        await drafted(victim, found, "failed")
        assert (found.state, found.draft.problem) == ("open", "Stopped.")


@pytest.mark.requirement("S21")
async def test_a_key_comes_out_nowhere(
    victim: Session,
    script: Visitor,
    client: Visitor,
    raw: Raw,
    providers: Providers,
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.DEBUG)
    address = await asked(victim, raw())
    seen = [(await script.post(f"/s/{victim.id}/models", own(providers, "key"))).text]
    seen.append((await script.post(f"/s/{victim.id}/models", {**own(providers), "speed": 7})).text)
    await script.post(f"{address}/draft", {"model": "mine"})
    [found] = victim.inbox.open
    await drafted(victim, found, "failed")
    base = f"/s/{victim.id}"
    for path in ("/models", "", "/inbox", "/log", "/log.jsonl", "/calls", "/options", f"/asks/{found.id}", "/events"):
        if path not in ("/options", "/events"):
            seen.append((await script.get(base + path)).text)
            seen.append((await client.get(base + path)).text)
    seen += [str(await script.json("/")), (await client.get("/about")).text, caplog.text, repr(victim.models.all)]
    assert providers.next()["key"] == KEY, "it was really used"
    for text in seen:
        assert KEY not in text and KEY[3:] not in text


async def test_what_cannot_be_is_refused(victim: Session, script: Visitor, mallory: Visitor, raw: Raw):
    path = f"/s/{victim.id}/models"
    names = [one["name"] for one in (await script.json(path))["models"]]
    assert names == ["echo", "canned", "small talk"]
    for body, place in (
        ({"name": "a", "provider": "openai"}, ""),
        ({"name": "a", "provider": "nobody", "model": "m"}, "/provider"),
        ({"name": "a", "provider": "openai", "model": "m", "secret": "x"}, "/secret"),
        ({"name": "a/b", "provider": "openai", "model": "m"}, "/name"),
    ):
        refused = await script.post(path, body)
        assert refused.status == 422 and place in refused.error["fields"], refused.text
    assert (await script.post(path, {"name": "echo", "provider": "canned"})).status == 409
    assert (await mallory.get(path)).status == 404
    assert (await script.post(f"{path}/nothing/delete", {})).status == 409
    address = await asked(victim, raw())
    assert (await script.post(f"{address}/draft", {"model": "nobody"})).status == 422
    await script.post(f"{address}/answer", {"action": "decline"})
    assert (await script.post(f"{address}/draft", {"model": "echo"})).status == 409
