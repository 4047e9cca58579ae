"""Answer rules for scripts: kept, ordered, paused, tried, made from an answer, exported and imported; and the claim."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from app.sessions import Session
from tests.drive import RawPeer, call_tool, connected, until
from tests.web.asgi import Visitor

FORM = {
    "message": "Who?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
ANN = {"action": "accept", "content": {"name": "Ann"}}
Raw = Callable[..., RawPeer]


def request(rpc_id: str, method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params})


async def asked(session: Session, raw: RawPeer, *lines: Any) -> None:
    if session.info.state != "ready":
        await connected(session, raw.target)
    before = len(session.inbox.asks)
    await call_tool(session, "say", {"lines": [*lines, '{"jsonrpc": "2.0", "id": "$ID", "result": {"content": []}}']})
    await until(session, lambda: len(session.inbox.asks) == before + len(lines))


async def test_rules_are_kept_changed_ordered_paused_and_deleted(victim: Session, script: Visitor):
    path = f"/s/{victim.id}/rules"
    assert await script.json(path) == {"paused": False, "active": 0, "rules": [], "kept": []}
    first = {"name": "ann", "do": ANN, "when": {"message": "who"}}
    told = await script.post(path, first)
    assert told.status == 201 and told.json()["added"] == ["r1"]
    assert told.json()["kept"][0]["rule"]["on"] is False, "off until somebody switches it on"
    assert (await script.post(path, {"name": "no", "do": {"action": "decline"}})).json()["added"] == ["r2"]
    assert (await script.post(f"{path}/r1", {"on": True})).json()["rule"]["on"] is True
    assert (await script.json(path))["active"] == 1
    assert (await script.post(f"{path}/order", {"order": ["r2", "r1"]})).status == 200
    assert [one["id"] for one in (await script.json(path))["kept"]] == ["r2", "r1"]
    refused = await script.post(f"{path}/order", {"order": ["r2"]})
    assert refused.status == 422 and "/order" in refused.error["fields"]
    paused = await script.post(f"{path}/pause", {"paused": True})
    assert (paused.json()["paused"], paused.json()["active"]) == (True, 0)
    changed = {"name": "bea", "do": {"action": "cancel"}, "delay_ms": 5}
    assert (await script.post(f"{path}/r2", changed)).json()["rule"]["name"] == "bea"
    assert (await script.json(f"{path}/r2"))["rule"]["delay_ms"] == 5
    assert (await script.post(f"{path}/r2/delete", {})).status == 200
    assert (await script.get(f"{path}/r2")).status == 404


async def test_what_is_no_rule_is_refused_with_the_place(victim: Session, script: Visitor):
    path = f"/s/{victim.id}/rules"
    for body, place in (
        ({"name": "a", "do": {"action": "decline"}, "if": {}}, "/if"),
        ({"name": "a", "do": {"action": "decline"}, "when": {"colour": "red"}}, "/when/colour"),
        ({"name": "a"}, "/do"),
        ({"rules": [{"name": "a"}]}, "/rules/0/do"),
    ):
        refused = await script.post(path, body)
        assert refused.status == 422 and place in refused.error["fields"], refused.text
    assert (await script.json(path))["kept"] == []


async def test_what_is_exported_can_be_imported(victim: Session, script: Visitor):
    path = f"/s/{victim.id}/rules"
    for name in ("a", "b"):
        await script.post(path, {"name": name, "do": ANN, "on": True, "per_minute": 5})
    exported = (await script.json(path))["rules"]
    assert (await script.post(path, {"rules": exported})).status == 201
    assert (await script.json(path))["rules"] == exported * 2


async def test_rules_are_nobody_elses(victim: Session, script: Visitor, mallory: Visitor, stranger: Visitor):
    path = f"/s/{victim.id}/rules"
    assert (await mallory.get(path)).status == 404
    assert (await stranger.get(path)).status == 401


async def test_a_rule_answers_is_named_and_is_made_from_an_answer(victim: Session, script: Visitor, raw: Raw):
    peer = raw()
    await asked(victim, peer, request("one", "elicitation/create", FORM))
    base = f"/s/{victim.id}"
    [first] = (await script.json(f"{base}/inbox"))["open"]
    assert (await script.post(f"{base}/asks/{first['id']}/rule", {})).status == 422, "nobody has answered it yet"
    await script.post(f"{base}/asks/{first['id']}/answer", ANN)
    made = await script.post(f"{base}/asks/{first['id']}/rule", {})
    assert made.status == 201 and made.json()["rule"]["do"]["content"] == {"name": "Ann"}
    rid = made.json()["id"]
    trial = (await script.post(f"{base}/rules/try", {"rule": made.json()["rule"], "id": rid})).json()
    assert (trial["answered"], trial["of"]) == (1, 1)
    assert trial["asks"][0]["answer"] == {"action": "accept", "result": ANN}
    await script.post(f"{base}/rules/{rid}", {"on": True})
    await asked(victim, peer, request("two", "elicitation/create", FORM))
    newest = (await script.json(f"{base}/inbox"))["settled"][0]
    assert newest["answered_by"] == {"kind": "rule", "name": "Who?"}
    assert newest["outcome"]["content"] == {"name": "Ann"}
    assert (await script.json(f"{base}/rules/{rid}"))["answered"] == 1


@pytest.mark.parametrize("how", ["script", "client"])
async def test_touching_an_ask_claims_it(
    victim: Session, script: Visitor, client: Visitor, mallory: Visitor, raw: Raw, how: str
):
    await asked(victim, raw(), request("one", "elicitation/create", FORM))
    [found] = victim.inbox.open
    address = f"/s/{victim.id}/asks/{found.id}/touch"
    assert (await mallory.form(address)).status == 404
    told = await (script.post(address, {}) if how == "script" else client.form(address))
    assert told.status == (200 if how == "script" else 204)
    assert found.claimed_for(victim.wall()) > 59
    await script.post(f"/s/{victim.id}/asks/{found.id}/answer", {"action": "decline"})
    assert (await script.post(address, {})).status == 409
