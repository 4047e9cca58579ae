"""The page of isolation: which servers run, what they take, and an admin who ends one or looks at the walls again."""

import psutil
import pytest
from starlette.applications import Starlette

from app.web.team.house import House
from tests.drive import until
from tests.team.conftest import Enters, session_of


@pytest.mark.requirement("T02")
async def test_an_admin_sees_what_runs_and_ends_it(enters: Enters, app: Starlette, house: House):
    boss, grace = await enters("boss", "admin"), await enters("Grace")
    assert "No server is running" in (await boss.get("/isolation")).text
    session = await session_of(grace, app, "raw")
    await session.lists.settled("tools")
    listed = {one["id"]: one["tools"] for one in (await boss.json("/"))["catalogue"]}
    assert (listed["raw"], listed["wiki"]) == (len(session.lists["tools"].items), None)
    told = await boss.json("/isolation")
    pid = session.info.pid
    assert told["children"] == [{"session": session.id, "server": "Raw", "by": "Grace", "pid": pid}]
    page = (await boss.get("/isolation")).text
    assert "1 protection" in page and "is missing: sandbox." in page
    assert (await grace.form(f"/isolation/{session.id}/end")).status == 404, "for admins"
    assert (await boss.form(f"/isolation/{session.id}/end")).status == 303
    assert session.info.trouble is not None and session.info.trouble.message == "An admin has ended this server."
    assert pid is not None and not psutil.pid_exists(pid)
    assert (await boss.form(f"/isolation/{session.id}/end")).status == 409
    assert [one.what for one in await house.audit.search(act="disconnected")][:1] == ["Raw of Grace"]
    before = house.looked
    assert (await boss.form("/isolation/look")).status == 303
    lines = (await boss.json("/isolation"))["lines"]
    assert len(lines) > 1 and house.looked >= before, "the walls of this machine, as they are now"


async def test_a_server_that_does_not_start_says_why_to_who_picked_it_and_more_to_an_admin(
    enters: Enters, app: Starlette
):
    boss, grace = await enters("boss", "admin"), await enters("Grace")
    entry = {"name": "Gone", "transport": "stdio", "command_line": "/nowhere/gone", "role.user": "1"}
    assert (await boss.form("/catalogue", entry)).status == 303
    made = (await grace.post("/catalogue/gone/connect", {})).json()
    session = next(one for one in app.state.registry.everybodys() if one.id == made["id"])
    await until(session, lambda: session.info.trouble is not None)
    page = (await grace.get(f"/?session={session.id}")).text
    assert 'id="trouble"' in page and "The command Gone was not found" in page
    assert "Tell an admin: its entry has to be put right." in page
    assert "/nowhere" not in page, "where things lie is for admins"
    assert 'id="trouble"' not in (await boss.get(f"/?session={session.id}")).text, "somebody else's"
    told = (await boss.json("/isolation"))["cannot_start"]
    words = "/nowhere/gone: No such file or directory. Install it, or correct the entry."
    assert {"server": "Gone", "words": words} in told
    assert "Servers that cannot start" in (await boss.get("/isolation")).text
