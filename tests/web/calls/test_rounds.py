"""Rounds over HTTP: what scripts and pages see of them, and how testers break them on purpose."""

from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app.sessions import Session
from app.sessions.identity import LOCAL
from tests.drive import connect, settled, until
from tests.drive_modern import TELLS, ask_form, ask_sampling, modern_stdio, needs, reach
from tests.web.asgi import Visitor

pytestmark = pytest.mark.anyio


@pytest.fixture
def session(app: Starlette) -> Session:
    opened: Session = app.state.registry.open(LOCAL)
    return opened


async def called(script: Visitor, session: Session, name: str = "ask") -> str:
    """Call a tool and wait until it waits; the address of the call."""
    params = {"name": name, "arguments": {}}
    answer = await script.post(f"/s/{session.id}/calls", {"method": "tools/call", "params": params})
    url: str = answer.json()["url"]
    await script.json(f"{url}?wait=30")
    return url


@pytest.mark.requirement("R6-31", "R6-32", "R6-34", "R6-33")
async def test_a_script_plays_rounds(script: Visitor, session: Session, tmp_path: Path) -> None:
    steps = [needs("é" * 10, one=ask_form(), two=ask_form("Again?")), TELLS]
    peer = modern_stdio(tmp_path / "record", scripts={"ask": steps})
    await reach(session, peer)
    overview = (await script.json(f"/s/{session.id}"))["connection"]
    assert (overview["era"], overview["protocol_version"]) == ("modern", "2026-07-28")
    url = await called(script, session)
    call = await script.json(url)
    assert call["state"] == "waiting" and call["round_limit"] == 10
    (turn,) = call["rounds"]
    assert turn["state"] == {"given": True, "bytes": 20, "echo": None} and turn["outcome"] == "asking"
    assert [each["key"] for each in turn["requests"]] == ["one", "two"]
    first, second = (f"/s/{session.id}/asks/{each['ask_id']}" for each in turn["requests"])
    held = await script.post(f"{first}/answer", {"action": "accept", "content": {"name": "Ann"}})
    assert held.status == 200 and held.json()["state"] == "held" and held.json()["origin"] == "input-required"
    assert (await script.json(f"/s/{session.id}"))["open_asks"] == 1
    assert (await script.post(f"{second}/reopen")).status == 409
    assert (await script.post(f"{first}/reopen")).json() == {"id": turn["requests"][0]["ask_id"], "state": "open"}
    await script.post(f"{first}/answer", {"action": "decline"})
    refused = await script.post(f"{url}/rounds", {"state": {"mode": "invent"}})
    assert refused.status == 422
    planned = await script.post(f"{url}/rounds", {"state": {"mode": "change", "value": "forged"}})
    assert planned.status == 200
    await script.post(f"{url}/rounds", {"state": {"mode": "same"}})
    assert (await script.post(f"{second}/answer", {"action": "decline"})).json()["state"] == "answered"
    call = await script.json(f"{url}?wait=30")
    assert call["state"] == "done" and call["rounds"][0]["state"]["echo"] == "same"
    assert len(call["legs"]) == 2
    again = await script.post(f"{url}/resend", {"round": 1, "state": {"mode": "drop"}})
    assert again.status == 202 and again.json()["retry_of"] == call["id"]
    broken = await script.json(f"{again.json()['url']}?wait=30")
    assert broken["state"] == "failed" and broken["error"]["code"] == -32602
    assert (await script.post(f"{url}/resend", {"round": 9})).status == 422
    assert (await script.post(f"{url}/rounds", {"limit": 20})).status == 409
    assert (await script.post(f"/s/{session.id}/calls/c999/rounds", {"limit": 20})).status == 404


@pytest.mark.requirement("R6-34")
async def test_an_abandoned_call_says_so(script: Visitor, client: Visitor, session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [needs("s", a=ask_sampling(), b=ask_form()), TELLS]})
    await reach(session, peer)
    url = await called(script, session)
    sampling, form = session.inbox.open
    answered = await script.post(f"/s/{session.id}/asks/{sampling.id}/answer", {"action": "decline"})
    assert answered.status == 200
    call = await script.json(f"{url}?wait=30")
    assert (call["state"], call["outcome"], call["rounds"][0]["outcome"]) == ("cancelled", "abandoned", "abandoned")
    page = (await client.get(url)).text
    assert "no way to tell the server" in page and "abandoned" in page
    assert "The call went no further" in (await client.get(f"/s/{session.id}/asks/{form.id}")).text


@pytest.mark.requirement("R6-32", "R6-31")
async def test_the_page_shows_rounds_and_lets_testers_break_them(
    script: Visitor, client: Visitor, session: Session, tmp_path: Path
) -> None:
    secret = "do-not-show-this-state"
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [needs(secret, **{"<b>k</b>": ask_form()}), TELLS]})
    await reach(session, peer)
    url = await called(script, session)
    page = (await client.get(url)).text
    assert "Round 1" in page and f"state {len(secret)} B" in page and "&lt;b&gt;k&lt;/b&gt;" in page
    shown = page.split('class="rounds', 1)[1]
    assert '<span class="chip">round 1</span>' in shown and 'id="inbox"' not in page  # it is answered in its round
    assert secret not in shown and "break the state of the next round" in shown
    posted = await client.form(f"{url}/rounds", {"mode": "drop", "value": ""})
    assert posted.status == 303
    assert "breaks the protocol on purpose" in (await client.get(url)).text
    aid = session.inbox.open[0].id
    await client.form(f"/s/{session.id}/asks/{aid}/answer", {"action": "decline"})
    (running,) = [each for each in session.calls.values() if each.method == "tools/call"]
    await settled(session, running)
    page = (await client.get(url)).text
    assert "left out, on purpose" in page and "Send this round again" in page
    sent = await client.form(f"{url}/resend", {"round": "1", "mode": "same", "value": ""})
    assert sent.status == 303
    other = session.calls[str(sent.header("location")).rsplit("/", 1)[1]]
    await settled(session, other)
    assert other.state == "done"


@pytest.mark.requirement("R6-31")
async def test_the_limit_is_raised_from_the_page(client: Visitor, session: Session, tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [needs(f"{number}") for number in range(4)]
    peer = modern_stdio(tmp_path / "record", scripts={"ask": [*steps, TELLS]})
    await reach(session, peer)
    running = session.start_call("tools/call", {"name": "ask", "arguments": {}}, by=LOCAL)
    running.round_limit = 2
    await until(session, lambda: running.state == "waiting")
    url = f"/s/{session.id}/calls/{running.id}"
    assert "Stopped after 2 rounds." in (await client.get(url)).text
    assert (await client.form(f"{url}/rounds", {"limit": "1"})).status == 422
    assert (await client.form(f"{url}/rounds", {"limit": "9"})).status == 303
    await settled(session, running)
    assert running.state == "done" and len(running.rounds) == 4


@pytest.mark.requirement("R6-10")
async def test_the_connection_view_says_how_the_era_was_found(
    client: Visitor, session: Session, tmp_path: Path
) -> None:
    peer = modern_stdio(tmp_path / "record")
    await connect(session, peer.target, era="auto")
    page = (await client.get(f"/s/{session.id}")).text
    assert "server/discover" in page and "2026-07-28, no handshake" in page
    error = {"code": -32601, "message": "Method not found"}
    older = modern_stdio(tmp_path / "two", errors={"server/discover": error, "initialize": error})
    await session.disconnect()
    await connect(session, older.target, era="auto")
    page = (await client.get(f"/s/{session.id}")).text
    assert "2026-07-28 not supported (-32601). Trying 2025-11-25." in page
