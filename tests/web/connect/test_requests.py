"""Saved requests of a server: as JSON, in the form of a tool, in the palette and the composer, over a restart."""

import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app import bounds
from app.sessions.identity import LOCAL
from app.settings import Settings, local
from app.store import FILE
from app.web.app import create_app
from tests.drive import until
from tests.web.asgi import PORT, TOKEN, Visitor, browser
from tests.web.shelf import HTMX, Shelf, shelf

pytestmark = [pytest.mark.requirement("U-S8"), pytest.mark.usefixtures("processes")]
ECHO = {"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "ahoy"}}}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return local(port=PORT, token=TOKEN, data_dir=tmp_path / "data")


@pytest.fixture
async def target(script: Visitor) -> str:
    """A saved server; where its requests are."""
    saved = (await script.post("/targets", {"name": "Shelf", "target": shelf()})).json()
    return f"/targets/{saved['id']}/requests"


@pytest.fixture
async def opened(app: Starlette, script: Visitor, client: Visitor) -> Any:
    """Opens a session with the demo server, which has tools to save calls of."""

    async def open_demo() -> Shelf:
        body = {"target": {"transport": "demo"}, "options": {"era": "legacy"}}
        path = (await script.post("/s", body)).json()["url"]
        assert (await script.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
        found = Shelf(app, script, client, path)
        await until(found.session, lambda: found.session.tools.state != "loading")
        return found

    return open_demo


async def next_process(settings: Settings) -> AsyncIterator[Visitor]:
    application = create_app(settings)
    async with application.router.lifespan_context(application):
        await application.state.loaded.wait()
        await application.state.registry.store.loaded()
        yield browser(application, application.state.visitors.admit(LOCAL))


def on_disk(directory: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(directory / "data" / FILE)) as file:
        return file.execute("SELECT name, method, params, missing FROM requests ORDER BY name").fetchall()


# ---------------------------------------------------------------------------------------------------------------- JSON


async def test_they_are_saved_listed_changed_and_deleted(script: Visitor, target: str, tmp_path: Path):
    assert await script.json(target) == {"requests": []}
    made = await script.post(target, {"name": "Say ahoy", **ECHO})
    assert made.status == 201
    one = made.json()
    assert one == {
        "id": one["id"],
        "url": f"{target}/{one['id']}",
        "name": "Say ahoy",
        **ECHO,
        "missing": [],
        "changed_at": one["changed_at"],
    }
    assert await script.json(one["url"]) == one
    listing = await script.post(target, {"name": "All", "method": "tools/list"})
    assert listing.json()["params"] is None
    assert [each["name"] for each in (await script.json(target))["requests"]] == ["All", "Say ahoy"]
    changed = (await script.post(one["url"], {"name": "Say hello", "params": {"name": "echo", "arguments": {}}})).json()
    assert (changed["id"], changed["name"], changed["params"]["arguments"]) == (one["id"], "Say hello", {})
    renamed = (await script.post(one["url"], {"name": "Hello"})).json()
    assert (renamed["name"], renamed["params"]) == ("Hello", changed["params"])
    assert [row[0] for row in on_disk(tmp_path)] == ["All", "Hello"]
    assert (await script.post(f"{one['url']}/delete")).json() == {"id": one["id"], "deleted": True}
    assert (await script.get(one["url"])).status == 404
    assert [row[0] for row in on_disk(tmp_path)] == ["All"]


async def test_the_same_name_for_the_same_thing_takes_its_place(script: Visitor, target: str):
    first = await script.post(target, {"name": "A", **ECHO})
    again = await script.post(target, {"name": "A", "method": "tools/call", "params": {"name": "echo"}})
    assert (again.status, again.json()["id"]) == (200, first.json()["id"])
    other = await script.post(target, {"name": "A", "method": "tools/call", "params": {"name": "add"}})
    assert (other.status, len((await script.json(target))["requests"])) == (201, 2)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"method": "ping"}, "/name"),
        ({"name": "x"}, "/method"),
        ({"name": "", "method": "ping"}, "/name"),
        ({"name": "   ", "method": "ping"}, "/name"),
        ({"name": "x" * 201, "method": "ping"}, "/name"),
        ({"name": "x", "method": "ping", "params": []}, "/params"),
        ({"name": "x", "method": "ping", "parms": {}}, "/parms"),
        ({"name": "x", "method": "ping", "params": {"text": "x" * 300_000}}, "/params"),
    ],
)
async def test_what_cannot_be_saved_is_said_beside_its_key(
    body: dict[str, Any], field: str, script: Visitor, target: str
):
    answer = await script.post(target, body)
    assert (answer.status, list(answer.error["fields"])) == (422, [field])
    assert await script.json(target) == {"requests": []}


async def test_their_number_is_bounded(script: Visitor, target: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bounds, "REQUESTS_PER_TARGET", 3)
    for index in range(3):
        assert (await script.post(target, {"name": f"n{index}", "method": "ping"})).status == 201
    refused = await script.post(target, {"name": "n3", "method": "ping"})
    assert (refused.status, "3 requests of this server are saved" in refused.error["message"]) == (403, True)
    assert (await script.post(target, {"name": "n2", "method": "ping"})).status == 200, "an old one can be replaced"


@pytest.mark.requirement("H05")
async def test_secrets_are_left_out_and_named(script: Visitor, target: str, tmp_path: Path):
    arguments = {
        "query": "x",
        "api_key": "canary-1",
        "nested": {"password": "canary-2", "max_tokens": 5},
        "line": "curl -H 'Authorization: Bearer canary-3-0123456789'",
        "lines": ["ok", "password=canary-4"],
        "token": None,
    }
    body = {"name": "S", "method": "tools/call", "params": {"name": "echo", "arguments": arguments}}
    made = (await script.post(target, body)).json()
    assert made["missing"] == [
        "/arguments/api_key",
        "/arguments/nested/password",
        "/arguments/line",
        "/arguments/lines/1",
    ]
    assert made["params"]["arguments"] == {
        "query": "x",
        "nested": {"max_tokens": 5},
        "lines": ["ok", "password=•••"],
        "token": None,
    }
    on_file = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir() if path.is_file())
    assert b"canary" not in on_file
    renamed = (await script.post(made["url"], {"name": "T"})).json()
    assert renamed["missing"] == made["missing"], "another name brings no secret back"


@pytest.mark.requirement("S15")
async def test_those_of_others_do_not_exist(script: Visitor, mallory: Visitor, target: str):
    one = (await script.post(target, {"name": "A", **ECHO})).json()
    for verb, path in (("GET", target), ("GET", one["url"]), ("POST", one["url"]), ("POST", f"{one['url']}/delete")):
        assert (await mallory.send(verb, path, {"accept": "application/json"})).status == 404
    assert (await mallory.post(target, {"name": "B", **ECHO})).status == 404
    assert (await script.json(one["url"])) == one


async def test_they_go_with_their_server_and_come_back_with_it(
    app: Starlette, script: Visitor, target: str, tmp_path: Path
):
    await script.post(target, {"name": "A", **ECHO})
    store = app.state.registry.store
    (kept,) = store.of("local")
    await script.post(f"/targets/{kept.id}/delete")
    assert (await script.get(target)).status == 404
    await store.requests.sweep()
    assert len(on_disk(tmp_path)) == 1, "forgetting a server may be taken back"
    now = store.requests._wall
    store.requests._wall = lambda: now() + bounds.REQUESTS_OUTLIVE_SECONDS + 1
    await store.requests.sweep()
    assert on_disk(tmp_path) == []


async def test_they_survive_a_restart(app: Starlette, script: Visitor, target: str, settings: Settings):
    one = (await script.post(target, {"name": "Größe 漢", **ECHO})).json()
    await app.state.registry.store.close()
    async for later in next_process(settings):
        assert await later.json(target) == {"requests": [one]}


async def test_a_disk_that_takes_nothing_is_said(app: Starlette, script: Visitor, target: str):
    app.state.registry.store._database._max_pages = 1
    await app.state.registry.store._database.let_go()
    large = {"text": "x" * 100_000}
    answer = await script.post(target, {"name": "A", "method": "ping", "params": large})
    assert (answer.status, answer.error["kind"]) == (507, "not-saved")


async def test_a_row_that_makes_no_sense_is_left_where_it_is(
    app: Starlette, script: Visitor, target: str, settings: Settings, tmp_path: Path
):
    await script.post(target, {"name": "A", **ECHO})
    await app.state.registry.store.close()
    with closing(sqlite3.connect(tmp_path / "data" / FILE)) as file:
        file.execute(
            "INSERT INTO requests SELECT 'q1', target, owner, 'B', method, '{', missing, changed FROM requests"
        )
        file.execute(
            "INSERT INTO requests SELECT 'q2', target, owner, 'C', method, ?, missing, changed FROM requests LIMIT 1",
            (json.dumps({"name": "echo", "arguments": {"password": "canary"}}),),
        )
        file.commit()
    async for later in next_process(settings):
        found = (await later.json(target))["requests"]
        assert [(one["name"], one["missing"]) for one in found] == [("A", []), ("C", ["/arguments/password"])]
    assert [row[0] for row in on_disk(tmp_path)] == ["A", "B", "C"]
    assert "canary" not in str(on_disk(tmp_path)), "what is a secret by today's table is cleaned away"


# --------------------------------------------------------------------------------------------------------------- pages


async def test_a_tool_is_saved_from_its_form_and_filled_from_it(opened: Any):
    one = await opened()
    page = await one.page("/tools/echo")
    assert re.search(r'id="saved-requests" hidden', page)
    assert "This also saves the server under" in page
    fields = {"_mode": "json", "_text": '{"text": "ahoy"}', "save-name": "Say ahoy"}
    answer = await one.form("/tools/save/echo", fields, **HTMX)
    assert answer.status == 200
    assert "Saved as Say ahoy." in answer.text
    assert "Saved (1)" in answer.text
    (kept,) = one.app.state.registry.store.of("local")
    assert kept.name == one.session.label, "the server is saved with it"
    (made,) = one.session.saved.all
    assert made.params == {"name": "echo", "arguments": {"text": "ahoy"}}
    page = await one.page(f"/tools/echo?saved={made.id}")
    assert ("as saved: Say ahoy" in page, "ahoy" in page, "This also saves the server" in page) == (True, True, False)
    assert '"text": "ahoy"' in await one.page(f"/tools/echo?saved={made.id}&as=json")
    assert "as saved" not in await one.page(f"/tools/add?saved={made.id}"), "it is of another tool"
    again = await one.script.post("/s", {"target": {"transport": "demo"}})
    other = one.app.state.registry._sessions[again.json()["id"]]
    assert [each.name for each in other.saved.all] == ["Say ahoy"], "its next session has it too"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"_mode": "json", "_text": "{}", "save-name": " "}, "Type a name."),
        ({"_mode": "json", "_text": "{", "save-name": "A"}, "Not saved:"),
        ({"_mode": "json", "_text": "{}", "save-name": "x" * 300}, "At most 200 characters."),
    ],
)
async def test_what_is_not_saved_says_why_and_keeps_the_name(fields: dict[str, str], said: str, opened: Any):
    one = await opened()
    answer = await one.form("/tools/save/echo", fields, **HTMX)
    assert (answer.status, said in answer.text) == (422, True)
    assert 'id="save-request-box" open' in answer.text
    assert one.session.saved.all == []


async def test_a_secret_in_the_form_is_not_kept_and_asked_for_again(opened: Any):
    one = await opened()
    fields = {"_mode": "json", "_text": '{"text": "x", "password": "canary"}', "save-name": "S"}
    answer = await one.form("/tools/save/echo", fields, **HTMX)
    assert "Saved as S, without /arguments/password." in answer.text
    (made,) = one.session.saved.all
    page = await one.page(f"/tools/echo?saved={made.id}")
    assert "Type again, not kept: /arguments/password" in page
    assert "canary" not in page


async def test_the_palette_leads_to_them(opened: Any):
    one = await opened()
    await one.session.saved.save("Say ahoy", **ECHO)
    await one.session.saved.save("Read it", "resources/read", {"uri": "shelf://one"})
    found = [each for each in (await one.json("/palette"))["items"] if each["kind"] == "saved"]
    assert [(each["label"], each["detail"]) for each in found] == [
        ("Read it", "saved request, shelf://one"),
        ("Say ahoy", "saved request, echo"),
    ]
    goals = [(await one.client.get(each["href"])).header("location") for each in found]
    ids = [each["href"].rpartition("/")[2] for each in found]
    assert goals == [f"{one.path}/compose?saved={ids[0]}", f"{one.path}/tools/echo?saved={ids[1]}"]
    composer = await one.page(goals[0].removeprefix(one.path))
    assert 'value="resources/read"' in composer and "shelf://one" in composer and "as saved: Read it" in composer
    assert (await one.client.get(f"{one.path}/saved/nothing")).status == 404


async def test_any_request_is_saved_from_the_composer(opened: Any):
    one = await opened()
    fields = {"method": "prompts/get", "params": '{"name": "p"}', "save-name": "P", "_save": "1", "as": "request"}
    answer = await one.form("/compose", fields)
    assert (answer.status, "Saved as P." in answer.text) == (200, True)
    assert [(each.method, each.params) for each in one.session.saved.all] == [("prompts/get", {"name": "p"})]
    assert not [call for call in one.session.calls.values() if call.method == "prompts/get"], "nothing was sent"
    for wrong in ({"save-name": ""}, {"params": "{"}, {"method": ""}):
        assert (await one.form("/compose", {**fields, **wrong})).status == 422


async def test_they_have_a_page_to_rename_and_delete(client: Visitor, script: Visitor, target: str):
    empty = await client.get(target)
    assert (empty.status, "No saved requests." in empty.text) == (200, True)
    one = (await script.post(target, {"name": "<b>A</b>", **ECHO})).json()
    page = (await client.get(target)).text
    assert "&lt;b&gt;A&lt;/b&gt;" in page and "<b>A</b>" not in page
    renamed = await client.form(one["url"], {"name": "B"})
    assert (renamed.status, renamed.header("location")) == (303, target)
    assert (await script.json(one["url"]))["name"] == "B"
    assert (await client.form(f"{one['url']}/delete")).header("location") == target
    assert await script.json(target) == {"requests": []}
