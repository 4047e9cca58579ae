"""The home page: servers that once connected, sessions that are open, and a form that comes back filled."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app import bounds
from app.sessions.identity import LOCAL
from app.settings import Settings, local
from tests.drive import raw_target
from tests.web.asgi import PORT, TOKEN, Visitor
from tests.web.connect.test_connect import as_form, as_json, connected

pytestmark = pytest.mark.usefixtures("processes")
NOBODY = "http://127.0.0.1:9/mcp"
"""Nothing listens there."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return local(port=PORT, token=TOKEN, data_dir=tmp_path / "data")


def rows(page: str) -> list[str]:
    """The servers that a page lists."""
    part = page.partition('id="servers-title"')[2].partition('id="sessions-title"')[0]
    return re.findall(r"<li[ >].*?</li>", part, re.S)


async def failed(script: Visitor, url: str = NOBODY) -> str:
    path: str = (await script.post("/s", {"target": {"transport": "http", "url": url}})).json()["url"]
    assert (await script.json(f"{path}?wait=20"))["connection"]["state"] == "lost"
    return path


async def checked(client: Visitor, path: str = "/s", **fields: Any) -> dict[str, Any]:
    """What a form is told about itself before it goes."""
    answer = await client.form(path, {**fields, "_preview": "form"}, accept="application/json")
    assert answer.status == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


# ----------------------------------------------------------------------------------------------------------- servers


@pytest.mark.requirement("U-S3")
async def test_a_server_that_connected_is_a_row_with_what_it_is(client: Visitor, script: Visitor, app: Starlette):
    path = await connected(script)
    await app.state.registry.of(LOCAL)[0].lists.settled("tools")
    (target,) = (await script.json("/"))["targets"]
    server = target["server"]
    assert (server["name"], server["tools"], server["revision"]) == ("raw", 1, "2025-11-25")
    (row,) = rows((await client.get("/")).text)
    for words in ("<b", "raw", "1 tool, MCP 2025-11-25", "open now", f'href="{path}">Open', "Edit", "Forget"):
        assert words in row, words
    await script.post(f"{path}/close")
    (row,) = rows((await client.get("/")).text)
    assert ("just now" in row, f'name="recent" value="{target["id"]}"' in row) == (True, True)
    again = await client.form("/s", {"recent": target["id"]})
    assert again.status == 303


@pytest.mark.requirement("U-S3")
async def test_a_target_that_only_failed_is_no_server(client: Visitor, script: Visitor):
    await failed(script)
    page = (await client.get("/")).text
    assert NOBODY not in page
    known = await script.json("/")
    assert [one["url"] for one in known["targets"]] == [NOBODY], "a script sees it as before"
    assert [(one["listed"], one["counts"]) for one in known["sessions"]] == [(False, False)]
    assert NOBODY not in (await client.get("/sessions")).text, "nor in the menu of the header"
    assert len((await script.json("/sessions"))["sessions"]) == 1


@pytest.mark.requirement("U-S3")
async def test_forgetting_can_be_taken_back(client: Visitor, script: Visitor):
    saved = (await script.post("/targets", {"target": {"transport": "http", "url": NOBODY}, "name": "Far"})).json()
    part = await client.form(f"/targets/{saved['id']}/delete")
    assert part.header("location") == "/"
    page = (await client.get("/", hx_request="true")).text
    assert page.lstrip().startswith('<div class="lists" id="lists"'), "htmx gets the lists alone"
    (row,) = rows(page)
    assert "Forgotten." in row
    assert f'action="/targets/{saved["id"]}/restore"' in row
    assert 0 < int(re.findall(r'data-undo="(\d+)"', row)[0]) <= bounds.UNDO_SECONDS * 1000
    assert (await client.form(f"/targets/{saved['id']}/restore")).status == 303
    assert [one["name"] for one in (await script.json("/"))["targets"]] == ["Far"]
    assert (await script.post(f"/targets/{saved['id']}/restore")).status == 409


@pytest.mark.requirement("U-S3")
async def test_a_kept_server_is_edited_in_place(client: Visitor, script: Visitor):
    saved = (await script.post("/targets", {"target": {"transport": "http", "url": NOBODY}, "name": "Far"})).json()
    page = (await client.get(f"/?target={saved['id']}")).text
    assert f'name="edit" value="{saved["id"]}"' in page
    fields = {"transport": "http", "url": "http://127.0.0.1:10/mcp", "name": "Near", "edit": saved["id"]}
    assert (await client.form("/targets", fields)).status == 303
    (one,) = (await script.json("/"))["targets"]
    assert (one["id"], one["name"], one["url"]) == (saved["id"], "Near", "http://127.0.0.1:10/mcp")


# ---------------------------------------------------------------------------------------------------------- sessions


@pytest.mark.requirement("U-S3")
async def test_a_failed_first_connect_is_tried_again_in_the_same_session(app: Starlette, client: Visitor):
    first = await client.form("/s", {"transport": "http", "url": NOBODY})
    (session,) = app.state.registry.of(LOCAL)
    assert (first.status, first.header("location")) == (303, f"/?session={session.id}")
    page = (await client.get(f"/?session={session.id}")).text
    assert f'action="/s/{session.id}/connect"' in page
    assert f'value="{NOBODY}"' in page
    assert page.index('id="trouble"') < page.index('id="url"')
    assert re.search(r'id="url"[^>]* autofocus', page), "the focus is where the mistake is"
    assert "Open sessions" not in page, "it is not listed, and nothing else is there"
    assert (await client.get(f"/s/{session.id}/log")).status == 200, "its log stays at its address"
    asked = await client.form(f"/s/{session.id}/connect", as_form(raw_target()))
    digest = re.findall(r'name="confirm" value="(\w+)"', asked.text)[0]
    again = await client.form(f"/s/{session.id}/connect", {"confirm": digest})
    assert (again.status, again.header("location")) == (303, f"/s/{session.id}")
    assert app.state.registry.of(LOCAL) == [session]
    assert (await client.json(f"/s/{session.id}?wait=20"))["connection"]["state"] == "ready"
    assert f'href="/s/{session.id}"' in (await client.get("/")).text


@pytest.mark.requirement("U-S3")
async def test_two_sessions_of_one_server_are_told_apart(script: Visitor, client: Visitor):
    await connected(script)
    assert "since </span><time" not in (await client.get("/")).text
    await connected(script)
    assert (await client.get("/")).text.count("since </span><time") == 2


@pytest.mark.requirement("U-S3")
async def test_what_failed_or_was_lost_does_not_count(script: Visitor, client: Visitor, app: Starlette):
    paths = [await failed(script) for _ in range(22)]
    known = {one["url"] for one in (await script.json("/"))["sessions"]}
    assert len(known) == app.state.settings.limits.sessions_over
    assert paths[-1] in known, "the oldest make room"
    for _ in range(20):
        assert (await script.post("/s")).status == 201
    refused = await script.post("/s")
    assert (refused.status, refused.error["kind"]) == (403, "refused")


@pytest.mark.requirement("U-S3")
async def test_a_limit_says_its_reason_and_shows_what_to_close(script: Visitor, client: Visitor):
    paths = [(await script.post("/s")).json()["url"] for _ in range(20)]
    page = await client.form("/s", {"transport": "http", "url": NOBODY})
    assert page.status == 403
    assert "You have 20 sessions open, which is the limit. Close one first." in page.text
    assert "another page" not in page.text
    assert f'value="{NOBODY}"' in page.text, "what was typed is still there"
    assert all(f'action="{path}/close?to=lists"' in page.text for path in paths)
    assert (await client.form(f"{paths[0]}/close?to=lists", hx_request="true")).header("location") == "/"
    assert (await client.form("/s", {"transport": "demo"})).status == 303


@pytest.mark.requirement("U-S3")
async def test_all_lost_sessions_are_closed_at_once(script: Visitor, client: Visitor):
    kept = await connected(script)
    lost = await failed(script)
    assert (await script.post("/close-lost")).json() == {"closed": [lost.removeprefix("/s/")]}
    assert [one["url"] for one in (await script.json("/"))["sessions"]] == [kept]


# ------------------------------------------------------------------------------------------------------------- forms


@pytest.mark.requirement("U-M13")
async def test_a_form_is_told_what_is_wrong_at_which_field(client: Visitor, app: Starlette):
    assert (await checked(client, transport="stdio", command_line=" "))["wrong"] == {
        "command_line": "Type the command that starts the server."
    }
    assert (await checked(client, transport="http", url="ftp://h"))["wrong"] == {
        "url": "A URL begins with http:// or https://."
    }
    assert list(
        (await checked(client, transport="http", url="h", **{"option.request_timeout_ms": "soon"}))["wrong"]
    ) == ["option-request_timeout_ms"]
    assert list((await checked(client, transport="mcpjson", mcp_json="{"))["wrong"]) == ["mcp_json"]
    assert list((await checked(client, transport="stdio", command_line="x", env_name=["A=B"]))["wrong"]) == ["env"]
    assert await checked(client, transport="stdio", command_line="python x.py") == {"wrong": {}, "offer": None}
    found = await checked(client, transport="stdio", command_line="cd /srv && DB=1 python x.py")
    assert found["offer"] == {"command_line": "python x.py", "cwd": "/srv", "env": [["DB", "1"]]}
    assert "Parley runs no shell" in found["wrong"]["command_line"]
    assert app.state.registry.of(LOCAL) == []


@pytest.mark.requirement("U-M13")
async def test_without_a_script_the_whole_home_page_comes_back(client: Visitor):
    page = await client.form("/s", {"transport": "stdio", "command_line": "cd /srv && python x.py"})
    assert page.status == 422
    assert "Please fix the marked fields." in page.text
    assert "/target/" not in page.text, "no pointer stands on the page"
    assert re.search(r'id="command_line"[^>]* aria-invalid="true" autofocus', page.text)
    assert re.search(
        r'class="err" id="command_line-error">Parley runs no shell: cd and &amp;&amp; do not work', page.text
    )


@pytest.mark.requirement("U-M13")
async def test_an_address_is_completed_and_reloading_begins_anew(client: Visitor, script: Visitor, app: Starlette):
    assert (await client.form("/s", {"transport": "http", "url": "127.0.0.1:9/mcp"})).status == 303
    (session,) = app.state.registry.of(LOCAL)
    assert session.target.url == NOBODY
    assert ((await client.get("/s")).status, (await client.get("/s")).header("location")) == (303, "/")
    assert (await script.get("/s")).status == 405


@pytest.mark.requirement("U-M13")
async def test_the_question_before_a_start_is_concrete(client: Visitor):
    target = raw_target()
    env = {"env_name": ["DB", "API_KEY"], "env_value": ["dev.db", "canary"]}
    page = (await client.form("/s", as_form(target, **env))).text
    for shown in (str(Path.cwd()), "where Parley was started", target.command, "DB=dev.db", "API_KEY=•••", "PATH"):
        assert shown in page, shown
    assert "canary" not in page
    there = (await client.form("/s", as_form(target, cwd="tests"))).text
    assert str(Path.cwd() / "tests") in there


# ---------------------------------------------------------------------------------------------------------- mcp.json

FILE = """{
  // what an editor writes
  "servers": {
    "desk": {"command": "%s", "args": ["${workspaceFolder}/x.py"], "env": {"API_KEY": "${input:key}"}},
    "far": {"url": "http://127.0.0.1:9/mcp",},
  },
}"""


@pytest.mark.requirement("U-M13")
async def test_all_servers_of_a_paste_are_saved_at_once(client: Visitor, script: Visitor):
    page = await client.form("/s", {"transport": "mcpjson", "mcp_json": FILE % "desk"})
    assert "2 servers in what you pasted" in page.text
    digests = re.findall(r'name="save" value="(\w+)"', page.text)
    assert (await client.form("/targets", {"save": digests})).status == 303
    assert {one["name"] for one in (await script.json("/"))["targets"]} == {"desk", "far"}
    assert (await client.form("/targets", {"save": digests})).status == 409


@pytest.mark.requirement("U-M13")
async def test_placeholders_are_asked_for_and_never_sent_by_themselves(
    app: Starlette, client: Visitor, script: Visitor
):
    entry = {"command": "desk", "args": ["${workspaceFolder}/x.py", "${other}"], "env": {"API_KEY": "${input:key}"}}
    page = await client.form("/s", {"transport": "mcpjson", "mcp_json": json.dumps(entry)})
    assert "3 values to fill in" in page.text
    assert f'value="{Path.cwd()}"' in page.text
    assert app.state.registry.of(LOCAL) == []
    digest = re.findall(r'name="fill" value="(\w+)"', page.text)[0]
    names = re.findall(r'name="fill_name" value="([^"]+)"', page.text)
    fill = {"fill": digest, "fill_name": names, "fill_value": ["/w", "", "canary"], "fill_keep": ["${other}"]}
    asked = await client.form("/s", fill)
    assert "Start this command?" in asked.text
    confirm = re.findall(r'name="confirm" value="(\w+)"', asked.text)[0]
    target = app.state.proposals.take(LOCAL, confirm)[0]
    assert (target.args, target.env) == (("/w/x.py", "${other}"), {"API_KEY": "canary"})
    assert "canary" not in asked.text


@pytest.mark.requirement("U-M13")
async def test_a_saved_server_is_asked_for_its_placeholders_once(client: Visitor, script: Visitor, app: Starlette):
    target = {"transport": "http", "url": NOBODY, "headers": {"X-Tenant": "${input:tenant}"}}
    saved = (await script.post("/targets", {"target": target, "name": "Far"})).json()
    page = await client.form("/s", {"recent": saved["id"]})
    assert "1 value to fill in for Far" in page.text
    fields = {
        "fill": re.findall(r'name="fill" value="(\w+)"', page.text)[0],
        "kept": saved["id"],
        "fill_name": ["${input:tenant}"],
        "fill_value": ["blue"],
    }
    assert (await client.form("/s", fields)).status == 303
    (kept,) = app.state.registry.store.of("local")
    assert (kept.id, kept.name, kept.target.headers) == (saved["id"], "Far", {"X-Tenant": "blue"})
    assert (await client.form("/s", {"recent": saved["id"]})).status == 303


@pytest.mark.requirement("U-M13")
async def test_a_secret_that_was_typed_for_a_placeholder_is_kept_nowhere(
    client: Visitor, script: Visitor, app: Starlette, tmp_path: Path
):
    """It may stand where nothing else says that it is one: the placeholder is kept, or the variable is marked."""
    raw = raw_target()
    args, env = [*raw.args, "${input:password}"], {**raw.env, "PLAIN": "x${input:api_token}"}
    target = {**as_json(raw), "args": args, "env": env}
    saved = (await script.post("/targets", {"target": target, "name": "Desk"})).json()

    async def connect() -> None:
        page = await client.form("/s", {"recent": saved["id"]})
        names = re.findall(r'name="fill_name" value="([^"]+)"', page.text)
        assert "${input:password}" in names
        fill = {"fill": re.findall(r'name="fill" value="(\w+)"', page.text)[0], "kept": saved["id"]}
        answer = await client.form("/s", {**fill, "fill_name": names, "fill_value": ["canary"] * len(names)})
        if answer.status == 200:
            assert "PLAIN" in answer.text and "xcanary" not in answer.text
            confirm = re.findall(r'name="confirm" value="(\w+)"', answer.text)[0]
            answer = await client.form("/s", {"confirm": confirm})
        assert answer.status == 303
        sid = (answer.header("location") or "").rpartition("/")[2]
        told = await script.json(f"/s/{sid}?wait=20")
        assert told["connection"]["state"] == "ready", told
        session = app.state.registry.find(LOCAL, sid)
        assert session.target.args[-1] == "canary" and session.target.env["PLAIN"] == "xcanary"
        assert session.saved.kept.id == saved["id"]
        await session.saved.save("mine", "ping", None)
        await script.post(f"/s/{sid}/close")

    await connect()
    await connect()
    (kept,) = app.state.registry.store.of("local")
    assert kept.server is not None and kept.target.args[-1] == "${input:password}"
    await app.state.registry.store.close()
    for file in (tmp_path / "data").iterdir():
        assert b"canary" not in file.read_bytes(), file


@pytest.mark.requirement("U-M13")
async def test_a_script_sends_what_it_says(script: Visitor, app: Starlette):
    """The JSON interface takes a target as it is: no scheme is added, no placeholder asked for."""
    odd = raw_target().model_copy(update={"env": {"X": "${input:x}"}})
    assert (await script.post("/s", {"target": as_json(odd)})).status == 201
    assert (await script.post("/s", {"target": {"transport": "http", "url": "127.0.0.1:9/mcp"}})).status == 422
