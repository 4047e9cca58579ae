"""Answer rules that are kept with their server: over a restart, without secrets, off at first; and as a file."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app.sessions import Session
from app.sessions.identity import LOCAL
from app.settings import Settings, local
from app.store import FILE
from app.web.app import create_app
from tests.drive import RawPeer, connected, until
from tests.web.asgi import PORT, TOKEN, Visitor, browser

pytestmark = [pytest.mark.requirement("U-M23"), pytest.mark.usefixtures("processes")]
NO = {"name": "no", "on": True, "when": {"kind": "form"}, "do": {"action": "decline"}}
SECRET = {"action": "accept", "content": {"user": "ann", "password": "hunter2hunter2"}}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return local(port=PORT, token=TOKEN, data_dir=tmp_path / "data")


def rows(directory: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(directory / "data" / FILE)) as file:
        return file.execute("SELECT place, rule, missing FROM rules ORDER BY place").fetchall()


async def back(session: Session, peer: RawPeer, count: int) -> None:
    """Connected again, with what was kept."""
    await connected(session, peer.target)
    await until(session, lambda: len(session.asks.rules.all) == count)


async def test_they_come_back_off_with_their_server_and_go_on_by_one_press(
    app: Starlette, victim: Session, script: Visitor, raw: Any, settings: Settings, tmp_path: Path
):
    peer, path = raw(), f"/s/{victim.id}/rules"
    await connected(victim, peer.target)
    for name, on in (("a", True), ("b", False)):
        await script.post(path, {**NO, "name": name, "on": on})
    await script.post(f"{path}/order", {"order": ["r2", "r1"]})
    assert [(place, json.loads(rule)["name"]) for place, rule, _ in rows(tmp_path)] == [(0, "b"), (1, "a")]
    await victim.disconnect()
    application = create_app(settings)
    async with application.router.lifespan_context(application):
        await application.state.loaded.wait()
        registry = application.state.registry
        session = registry.open(LOCAL)
        await back(session, peer, 2)
        here, own = browser(application, application.state.visitors.admit(LOCAL)), f"/s/{session.id}/rules"
        told = await here.json(own)
        assert [(one["rule"]["name"], one["rule"]["on"], one["was_on"]) for one in told["kept"]] == [
            ("b", False, False),
            ("a", False, True),
        ], "nothing answers before somebody has said so here"
        assert "1 rule was on when you left" in (await here.get(own)).text
        # A script that says what it wants finds the same rule, and makes no second one.
        assert (await here.post(own, {**NO, "name": "a"})).json()["added"] == ["r2"]
        assert session.asks.rules.active
        await session.disconnect()
        other = registry.open(LOCAL)
        await back(other, peer, 2)
        assert (await here.post(f"/s/{other.id}/rules/resume", {})).json()["active"] == 1
        # Who has another server has other rules; who forgets the server forgets them.
        third = registry.open(LOCAL)
        await connected(third, raw("plain", name="another").target)
        assert not third.asks.rules.all
        [target] = [one for one in registry.store.of(LOCAL.id) if one.saved]
        await here.post(f"/targets/{target.id}/delete", {})
        registry.store.rules._wall = lambda: registry.wall() + 3600
        await registry.store.rules.sweep()
        registry.store.rules._wall = lambda: registry.wall() + 7200
        await registry.store.rules.sweep()
        assert rows(tmp_path) == []


@pytest.mark.requirement("S21")
async def test_secrets_are_not_written_and_are_asked_for_again(
    victim: Session, script: Visitor, client: Visitor, raw: Any, tmp_path: Path, app: Starlette
):
    peer, path = raw(), f"/s/{victim.id}/rules"
    await connected(victim, peer.target)
    await script.post(path, {"name": "login", "on": True, "do": SECRET})
    assert victim.asks.rules.active, "here it answers with all it was given"
    [(_, said, missing)] = rows(tmp_path)
    assert json.loads(missing) == ["/do/content/password"] and json.loads(said)["do"]["content"] == {"user": "ann"}
    exported = await script.json(f"{path}/export")
    assert exported["left_out"] == ["/rules/0/do/content/password"] and "hunter2" not in json.dumps(exported)
    await victim.disconnect()
    again = app.state.registry.open(LOCAL)
    await back(again, peer, 1)
    path = f"/s/{again.id}/rules"
    refused = await script.post(f"{path}/r1", {"on": True})
    assert refused.status == 422 and list(refused.error["fields"]) == ["/do/content/password"]
    page = (await client.get(f"{path}/r1")).text
    assert "/do/content/password" in page and "hunter2" not in page
    assert (await script.post(f"{path}/r1", {"name": "login", "on": True, "do": SECRET})).json()["missing"] == []
    # As a file it comes back the same way: off, and without what was left out.
    taken = await script.post(f"{path}/import", exported)
    assert taken.status == 201 and taken.json()["kept"][1]["missing"] == ["/do/content/password"]
    raw_files = b"".join(one.read_bytes() for one in (tmp_path / "data").iterdir() if one.is_file())
    assert b"hunter2" not in raw_files


@pytest.mark.requirement("S21")
async def test_a_secret_that_is_a_name_is_not_written_either(
    victim: Session, script: Visitor, raw: Any, tmp_path: Path
):
    key = "sk-proj-Xk29fLq81mZtB7wVn3Rd"
    peer, path = raw(), f"/s/{victim.id}/rules"
    await connected(victim, peer.target)
    content = {"user": "ann", key: "yes", "more": [{"deep": {key: 1}}]}
    made = {"name": "names", "when": {"fields": ["user", key]}, "do": {"action": "accept", "content": content}}
    assert (await script.post(path, made)).status == 201
    result = {"role": "assistant", "content": {"type": "text", "text": "hi", "_meta": {key: {}}}, "model": "x"}
    assert (await script.post(path, {"name": "r", "do": {"action": "respond", "result": result}})).status == 201
    found = rows(tmp_path)
    exported = await script.json(f"{path}/export")
    assert key not in json.dumps(found) + json.dumps(exported)
    assert exported["rules"][0]["when"]["fields"] == ["user", "•••"]
    assert exported["rules"][0]["do"]["content"] == {"user": "ann", "more": [{"deep": {}}]}
    assert "/rules/0/when/fields/1" in exported["left_out"] and "/rules/0/do/content/•••" in exported["left_out"]
    assert any(one.startswith("/rules/1/do/result/") for one in exported["left_out"])
    taken = await script.post(f"{path}/import", exported)
    assert taken.status == 201 and "/when/fields/1" in taken.json()["kept"][2]["missing"]
    files = b"".join(one.read_bytes() for one in (tmp_path / "data").iterdir() if one.is_file())
    assert key.encode() not in files


async def test_an_import_is_all_or_nothing_and_says_where(victim: Session, script: Visitor, client: Visitor):
    path = f"/s/{victim.id}/rules"
    good = {"rules": [{**NO, "name": "a"}, {**NO, "name": "b"}]}
    assert (await script.post(f"{path}/import", good)).status == 201
    assert [one["rule"]["on"] for one in (await script.json(path))["kept"]] == [False, False], "taken over off"
    bad = {"rules": [good["rules"][0], {**NO, "colour": "red"}]}
    refused = await script.post(f"{path}/import", bad)
    assert refused.status == 422 and "/rules/1/colour" in refused.error["fields"]
    for text, words in (
        (json.dumps(bad), "/rules/1/colour There is no such key."),
        ("{", "not JSON"),
        ("[]", "object"),
    ):
        page = await client.form(f"{path}/import", {"text": text})
        assert page.status == 422 and words in page.text and 'aria-invalid="true"' in page.text
    assert len((await script.json(path))["kept"]) == 2
    assert (await client.form(f"{path}/import", {"text": json.dumps(good)})).status == 303
    file = await script.get(f"{path}/export")
    assert "attachment" in str(file.header("content-disposition")) and len(file.json()["rules"]) == 4
