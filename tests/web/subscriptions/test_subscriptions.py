"""Pages and JSON of the newer era beside rounds: subscriptions, rejected tools, freshness, what is deprecated."""

from pathlib import Path

import pytest
from starlette.applications import Starlette

from app.sessions import Session
from app.sessions.identity import LOCAL
from tests.drive import connected, raw_target, until
from tests.drive_modern import PREFIX, modern_stdio, reach
from tests.web.asgi import Visitor

pytestmark = pytest.mark.anyio


@pytest.fixture
def session(app: Starlette) -> Session:
    opened: Session = app.state.registry.open(LOCAL)
    return opened


@pytest.mark.requirement("R6-40", "R6-41", "R6-43", "R6-44")
async def test_listening_by_script_and_by_page(
    script: Visitor, client: Visitor, session: Session, tmp_path: Path
) -> None:
    updated = {"uri": "x://<a>", "_meta": {f"{PREFIX}subscriptionId": "$ID"}}
    peer = modern_stdio(
        tmp_path / "record",
        listen={"then": [{"method": "notifications/resources/updated", "params": updated}]},
        honored={"resourceSubscriptions": ["x://<a>"]},
    )
    base = f"/s/{session.id}/subscriptions"
    assert "Subscriptions" not in (await client.get(f"/s/{session.id}")).text
    await reach(session, peer)
    empty = (await client.get(base)).text
    assert "No subscription yet." in empty and 'aria-current="page"' in empty
    wanted = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["x://<a>"]}}
    opened = await script.post(base, wanted)
    assert opened.status == 202 and opened.json()["id"] == "l1"
    one = session.subscriptions.all["l1"]
    await until(session, lambda: one.heard == 1)
    (shown,) = (await script.json(base))["subscriptions"]
    assert shown["state"] == "open" and shown["refused"] == ["toolsListChanged"]
    assert shown["events"][0]["about"] == "x://<a>" and shown["findings"][0]["id"] == "R6-41"
    page = (await client.get(base)).text
    assert "less than that: not toolsListChanged" in page and "x://&lt;a&gt;" in page and "x://<a>" not in page
    assert (await client.form(f"{base}/l1/stop")).status == 303
    assert (await script.post(f"{base}/l1/stop")).status == 409
    again = await client.form(f"{base}/l1/again")
    assert again.status == 303 and len(session.subscriptions.all) == 2
    posted = await client.form(base, {"promptsListChanged": "1", "uris": "x://b\n\n x://c \n"})
    assert posted.status == 303
    newest = session.subscriptions.all["l3"]
    assert newest.asked == {"promptsListChanged": True, "resourceSubscriptions": ["x://b", "x://c"]}
    assert (await script.post(base, {"notifications": {}})).status in (409, 422)
    assert (await script.post(base, {"notifications": {"everything": True}})).status == 422
    assert (await script.post(f"{base}/l99/stop")).status == 404


@pytest.mark.requirement("R6-23", "R6-52")
async def test_the_list_shows_what_is_rejected_and_how_fresh_it_is(
    script: Visitor, client: Visitor, session: Session, tmp_path: Path
) -> None:
    bad = {"name": "<i>bad</i>", "inputSchema": {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}}
    good = {"name": "good", "inputSchema": {"type": "object"}}
    peer = modern_stdio(tmp_path / "record", tools=[bad, good], list={"ttlMs": 60_000, "cacheScope": "public"})
    await reach(session, peer)
    listed = await script.json(f"/s/{session.id}/tools")
    assert [each["name"] for each in listed["tools"]] == ["good"] and listed["rejected"][0]["item"] == bad
    assert listed["cache_scope"] == "public" and listed["fresh_until"] is not None and listed["from_cache"] is False
    page = (await client.get(f"/s/{session.id}/tools")).text
    assert "1 tool rejected" in page and "&lt;i&gt;bad&lt;/i&gt;" in page and "fresh for" in page
    assert "Refresh anyway" not in page
    await session.disconnect()
    await reach(session, peer)
    assert (await script.json(f"/s/{session.id}/tools"))["from_cache"] is True
    page = (await client.get(f"/s/{session.id}/tools")).text
    assert "from cache, fresh for" in page and "Refresh anyway" in page
    await client.form(f"/s/{session.id}/tools/refresh")
    assert (await script.json(f"/s/{session.id}/tools"))["from_cache"] is False


@pytest.mark.requirement("R6-53")
async def test_deprecated_features_carry_a_quiet_mark(client: Visitor, session: Session, tmp_path: Path) -> None:
    await connected(session, raw_target())
    assert (await client.get(f"/s/{session.id}")).text.count("deprecated since 2026-07-28") == 3
    for page in ("roots", "logging"):  # in the revision that is spoken they are not
        assert "deprecated since" not in (await client.get(f"/s/{session.id}/{page}")).text
    await session.disconnect()
    await reach(session, modern_stdio(tmp_path / "record"))
    for page in ("roots", "logging"):
        assert "deprecated since 2026-07-28" in (await client.get(f"/s/{session.id}/{page}")).text
    assert "deprecated since 2025-03-26" in (await client.get(f"/s/{session.id}/connect")).text
