"""A secret of a person goes to the server that it is for, and to no page, log, audit entry, recording or file."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette

from app.team_settings import TeamSettings
from app.web.team.house import House
from tests.drive_http import Peer, raw_web
from tests.team.conftest import PROXY, Enters, Guest

pytestmark = pytest.mark.requirement("T22", "T21", "S21")
KEY, HEADER, TASK = "canary-key-5d1c9e77a0b4", "canary-header-77aa01bc93", "canary-task-1f00dd"


@pytest.fixture
def peer() -> Iterator[Peer]:
    with raw_web() as found:
        yield found


@pytest.fixture
def settings(settings: TeamSettings, peer: Peer) -> TeamSettings:
    raw: dict[str, Any] = settings.catalogue["raw"]
    secret = {"name": "API_KEY", "secret": True}
    web = {"transport": "http", "url": str(peer.target().url), "variables": [{"name": "Authorization", "secret": True}]}
    catalogue = {"raw": {**raw, "variables": [secret]}, "web": {**web, "name": "Web"}}
    return settings.model_copy(update={"catalogue": catalogue})


async def test_a_secret_of_a_person_is_nowhere(
    enters: Enters,
    app: Starlette,
    house: House,
    settings: TeamSettings,
    peer: Peer,
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.DEBUG, "parley")
    boss, grace = await enters("boss", "admin"), await enters("Grace")
    token = (await grace.post("/me/tokens", {"name": "CI", "scope": "act"})).json()["token"]
    script = Guest(app, {**PROXY, "authorization": f"Bearer {token}", "accept": "application/json"})
    wrong = await grace.form("/catalogue/raw/connect", {"var.API_KEY": f"{KEY}\x00"})
    assert (wrong.status, KEY in wrong.text) == (422, False)
    read = []
    for entry, given in (("raw", {"API_KEY": KEY}), ("web", {"Authorization": f"Bearer {HEADER}"})):
        answer = await grace.post(f"/catalogue/{entry}/connect", {"variables": given})
        assert answer.status == 201, answer.text
        session = app.state.registry.everybodys()[-1]
        await session.wait_connection(30)
        assert session.info.state == "ready", session.info.trouble
        assert (await grace.post(f"/s/{session.id}/record", {"on": True})).status < 300
        note = {"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": {"taskId": TASK, "status": "x"}}
        asked = {"jsonrpc": "2.0", "id": 7, "method": "tasks/get", "params": {"taskId": TASK}}
        lines = [json.dumps(note), json.dumps(asked)]
        call = {"method": "tools/call", "params": {"name": "say", "arguments": {"lines": lines}}}
        if entry == "web":
            call = {"method": "tools/call", "params": {"name": "echo", "arguments": {"message": "hello"}}}
        assert (await script.post(f"/s/{session.id}/calls?wait=1", call)).status < 300
        for page in ("", "/log", "/log.jsonl", "/calls", "/tools", "/connect", "/palette", "/stderr"):
            for accept in ("text/html", "application/json"):
                read.append((await grace.get(f"/s/{session.id}{page}", accept=accept)).text)
        snippet = await grace.get(f"/s/{session.id}/calls/c1/snippet?as=curl")
        read.append(snippet.text)
        assert (await grace.post(f"/s/{session.id}/record", {"on": False})).status < 300
    assert grace.person is not None
    recordings = app.state.registry.store.recordings.of(grace.person.id)
    assert len(recordings) == 2
    for one in recordings:
        file = await grace.get(f"/r/{one.id}/file")
        assert (file.status, "tools/call" in file.text) == (200, True)
        read.append(file.text)
    for path in ("/", "/me", "/recordings"):
        read.append((await grace.get(path)).text)
    for path in ("/people", "/audit", "/audit.jsonl", "/isolation", "/"):
        read.append((await boss.get(path)).text)
    await house.audit.flush()
    for session in list(app.state.registry.everybodys()):
        await app.state.registry.close(session)
    kept = b"".join(path.read_bytes() for path in settings.data_dir.rglob("*") if path.is_file()).decode("latin-1")
    assert f"Bearer {HEADER}" in {one.headers.get("authorization") for one in peer.requests()}
    for secret in (KEY, HEADER, token, token.removeprefix("parley_")):
        for where, text in (("a page", "".join(read)), ("the log", caplog.text), ("a file", kept)):
            assert secret not in text, f"{secret[:14]} is in {where}"
    assert TASK not in caplog.text and "hello" not in caplog.text
