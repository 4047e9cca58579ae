"""What one person does or may see, beside another one who comes to the same Parley; and one server beside another."""

import json
import os
from collections.abc import Callable

import pytest
from starlette.applications import Starlette

from app import bounds
from app.core.options import Options
from app.core.targets import StdioTarget
from app.sessions import Identity, Session
from app.sessions.identity import LOCAL
from app.web.connect.consent import Proposals
from tests.drive import RawPeer, connected
from tests.web.asgi import Visitor

MALLORY = Identity("mallory", "Mallory")


@pytest.mark.requirement("S28")
async def test_placeholders_are_not_filled_from_the_environment_for_somebody_else(
    client: Visitor, mallory: Visitor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("KONTOR_DESK", "zq-desk-7")
    paste = {"transport": "mcpjson", "mcp_json": json.dumps({"command": "x", "args": ["${env:KONTOR_DESK}"]})}
    assert 'value="zq-desk-7"' in (await client.form("/s", paste)).text
    shown = (await mallory.form("/s", paste)).text
    assert "1 value to fill in" in shown and "zq-desk-7" not in shown


@pytest.mark.requirement("S15")
def test_nobody_pushes_out_what_somebody_else_was_shown_and_what_is_old_is_gone():
    now = [0.0]
    proposals = Proposals(clock=lambda: now[0])
    mine = proposals.keep(LOCAL, StdioTarget(command="mine"), Options())
    for at in range(bounds.PROPOSALS * 2):
        proposals.keep(MALLORY, StdioTarget(command=f"x{at}"), Options())
    assert len(proposals._kept) == bounds.PROPOSALS + 1
    assert proposals.take(LOCAL, mine) is not None
    now[0] = 601.0
    proposals.keep(LOCAL, StdioTarget(command="later"), Options())
    assert len(proposals._kept) == 1, "secrets do not wait in memory for an answer that cannot come any more"


@pytest.mark.requirement("S21")
async def test_a_key_of_a_model_goes_to_no_other_address(victim: Session, script: Visitor):
    model = {"name": "mine", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    path = f"/s/{victim.id}/models"
    assert (await script.post(path, model | {"key": "zq-key-7"})).status == 201
    assert (await script.post(path, model | {"model": "other"})).status == 201
    assert victim.models._key("mine") == "zq-key-7", "the same address keeps its key"
    for change in ({"base_url": "http://127.0.0.1:10/v1"}, {"provider": "anthropic"}):
        assert (await script.post(path, model | {"key": "zq-key-7"})).status == 201
        assert (await script.post(path, model | change)).status == 201
        assert victim.models._key("mine") == ""


@pytest.mark.requirement("S28")
async def test_a_variable_of_the_machine_is_nobody_elses_key(app: Starlette, mallory: Visitor):
    assert "PATH" in os.environ
    session = app.state.registry.open(MALLORY)
    model = {"name": "m", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1", "key_env": "PATH"}
    refused = await mallory.post(f"/s/{session.id}/models", model)
    assert (refused.status, session.models.all.keys() & {"m"}) == (403, set())


@pytest.mark.requirement("S39")
async def test_rules_wait_when_a_session_goes_to_another_server(
    victim: Session, script: Visitor, raw: Callable[..., RawPeer]
):
    one, two = raw(), raw("plain", name="other")
    await connected(victim, one.target)
    path = f"/s/{victim.id}/rules"
    await script.post(path, {"name": "ann", "on": True, "do": {"action": "accept", "content": {"name": "Ann"}}})
    await victim.disconnect()
    await connected(victim, one.target)
    assert (await script.json(path))["active"] == 1, "the same server again"
    await victim.disconnect()
    await connected(victim, two.target)
    told = await script.json(path)
    assert (told["paused"], told["active"]) == (True, 0)
