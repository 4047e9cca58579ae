"""The connect form, what is pasted into it, and the targets that are kept: secrets never come back to a page."""

import json
import re
import shlex
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app.core.targets import HttpTarget, StdioTarget, target_digest
from app.egress import EgressError, split
from app.sessions import Session
from app.sessions.identity import LOCAL
from app.settings import Settings, local
from app.store import FILE
from app.web.app import create_app
from app.web.connect import mcp_json
from app.web.kit.request_bodies import FormErrors
from tests.drive import raw_target
from tests.web.asgi import PORT, TOKEN, Answer, Visitor, browser

pytestmark = pytest.mark.usefixtures("processes")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return local(port=PORT, token=TOKEN, data_dir=tmp_path / "data")


async def next_process(settings: Settings) -> AsyncIterator[Visitor]:
    application = create_app(settings)
    async with application.router.lifespan_context(application):
        await application.state.loaded.wait()
        yield browser(application, application.state.visitors.admit(LOCAL))


def form_of(target: StdioTarget, **more: Any) -> dict[str, Any]:
    return {"transport": "stdio", "command_line": shlex.join([target.command, *target.args]), **more}


async def listed(visitor: Visitor) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await visitor.json("/"))["targets"]
    return found


def kept_of(app: Starlette, index: int = 0) -> Any:
    return app.state.registry.store.of("local")[index]


# -------------------------------------------------------------------------------------------------------------- look


async def looked_at(visitor: Visitor, path: str, field: str, text: str) -> str:
    answer = await visitor.form(path, {"transport": "stdio", "_preview": field, field: text}, hx_request="true")
    assert answer.status == 200
    return answer.text


async def test_what_is_typed_is_looked_at_and_nothing_starts(client: Visitor, script: Visitor, victim: Session):
    session = f"/s/{victim.id}"
    for path in ("/s", f"{session}/connect"):
        parts = await looked_at(client, path, "command_line", "python 'a b' --token canary")
        assert re.findall('<code class="chip">(.*?)</code>', parts) == ["python", "a b", "--token", "•••"]
        assert "still open" in await looked_at(client, path, "command_line", "python 'a b")
        assert 'value="1" selected' in await looked_at(client, path, "env_name", "API_KEY")
        assert 'value="" selected' in await looked_at(client, path, "header_name", "X-Team")
        assert 'class="err"' in await looked_at(client, path, "mcp_json", '{"mcpServers": {')
        assert 'class="err"' not in await looked_at(client, path, "mcp_json", '{"a": {"command": "x"}}')
        assert (await looked_at(client, path, "something else", "x")).strip() == ""
    assert [one["url"] for one in (await script.json("/"))["sessions"]] == [session]
    assert (await script.json(session))["connection"]["state"] == "none"


# -------------------------------------------------------------------------------------------------------------- keep


async def test_a_target_is_saved_renamed_and_deleted(client: Visitor, script: Visitor):
    saved = await client.form("/targets", {"transport": "http", "url": "http://127.0.0.1:9/mcp", "name": "Billing"})
    assert (saved.status, saved.header("location")) == (303, "/")
    (one,) = await listed(script)
    assert (one["name"], one["transport"], one["url"]) == ("Billing", "http", "http://127.0.0.1:9/mcp")
    assert "Billing" in (await client.get("/")).text
    assert (await client.form(f"/targets/{one['id']}", {"name": "Staging"})).status == 303
    assert (await listed(script))[0]["name"] == "Staging"
    assert (await script.post(f"/targets/{one['id']}", {"name": " "})).status == 422
    assert (await client.form(f"/targets/{one['id']}/delete")).status == 303
    assert await listed(script) == []
    assert (await client.form(f"/targets/{one['id']}/delete")).status == 404


async def test_a_script_saves_a_target(script: Visitor):
    answer = await script.post("/targets", {"name": "It", "target": {"transport": "demo"}, "options": {"roots": False}})
    assert answer.status == 201
    assert answer.json()["options"] == {"roots": False}
    assert (await script.post("/targets", {"target": {"transport": "pigeon"}})).status == 422


@pytest.mark.requirement("S15")
async def test_the_targets_of_others_do_not_exist(client: Visitor, mallory: Visitor, script: Visitor):
    await client.form("/targets", {"transport": "http", "url": "http://127.0.0.1:9/mcp"})
    (one,) = await listed(script)
    assert await listed(mallory) == []
    assert (await mallory.form(f"/targets/{one['id']}", {"name": "Mine"})).status == 404
    assert (await mallory.form(f"/targets/{one['id']}/delete")).status == 404
    assert one["id"] not in (await mallory.get(f"/?target={one['id']}")).text.replace(f"?target={one['id']}", "")


async def test_what_cannot_be_saved_is_shown_again(client: Visitor):
    answer = await client.form("/targets", {"transport": "http", "url": "ftp://x", "header_name": ["A"]})
    assert answer.status == 422
    assert 'value="ftp://x"' in answer.text


async def test_recent_targets_survive_a_restart(app: Starlette, client: Visitor, script: Visitor, settings: Settings):
    target = raw_target()
    path = (await script.post("/s", {"target": target.model_dump(mode="json"), "options": {"roots": False}})).json()
    assert (await script.json(f"{path['url']}?wait=20"))["connection"]["state"] == "ready"
    await app.state.registry.close_all()
    await app.state.registry.store.close()
    async for later in next_process(settings):
        (one,) = await listed(later)
        assert one["digest"] == target_digest(target)
        asked = await later.form("/s", {"recent": one["id"]})
        assert asked.status == 303, "what was agreed to is remembered with it"


# ----------------------------------------------------------------------------------------------------------- secrets


SECRETS = {
    "env_name": ["DESK_DB", "PLAIN", "API_KEY", ""],
    "env_value": ["dev.db", "canary-1", "canary-2", ""],
    "env_secret": ["", "1", "", ""],
}


async def test_secrets_stay_when_they_are_left_blank(app: Starlette, client: Visitor, settings: Settings):
    server = StdioTarget(command="python3", args=("--a b",))
    assert (await client.form("/targets", form_of(server, **SECRETS))).status == 303
    kept = kept_of(app)
    assert kept.target.env == {"DESK_DB": "dev.db", "PLAIN": "canary-1", "API_KEY": "canary-2"}
    page = await client.get(f"/?target={kept.id}")
    assert "canary" not in page.text
    assert 'value="dev.db"' in page.text
    assert re.search(r'(?s)value="PLAIN".*?type="password".*?kept; type to replace it', page.text)
    blank = {**SECRETS, "env_value": ["other.db", "", "", ""], "like": kept.id}
    asked = await client.form("/s", form_of(server, **blank))
    assert "Start this command?" in asked.text
    digest = re.findall(r'name="confirm" value="(\w+)"', asked.text)[0]
    proposed = app.state.proposals.take(LOCAL, digest)[0]
    assert proposed.env == {"DESK_DB": "other.db", "PLAIN": "canary-1", "API_KEY": "canary-2"}
    retyped = {**SECRETS, "env_value": ["", "new", "", ""], "like": kept.id}
    digest = re.findall(r'name="confirm" value="(\w+)"', (await client.form("/s", form_of(server, **retyped))).text)[0]
    assert app.state.proposals.take(LOCAL, digest)[0].env == {"DESK_DB": "", "PLAIN": "new", "API_KEY": "canary-2"}


async def test_another_identity_cannot_borrow_a_secret(app: Starlette, client: Visitor, mallory: Visitor):
    server = StdioTarget(command="python3")
    await client.form("/targets", form_of(server, **SECRETS))
    blank = {**SECRETS, "env_value": ["", "", "", ""], "like": kept_of(app).id}
    asked = await mallory.form("/s", form_of(server, **blank))
    digest = re.findall(r'name="confirm" value="(\w+)"', asked.text)[0]
    (found,) = [one[1][0] for key, one in app.state.proposals._kept.items() if key[1] == digest]
    assert set(found.env.values()) == {""}


async def test_secrets_are_asked_for_again_after_a_restart(
    app: Starlette, client: Visitor, settings: Settings, tmp_path: Path
):
    server = StdioTarget(command="python3")
    await client.form("/targets", form_of(server, name="Desk", **SECRETS))
    await app.state.registry.close_all()
    for file in sorted((tmp_path / "data").glob("*")):
        assert b"canary" not in file.read_bytes()
    async for later in next_process(settings):
        (one,) = await listed(later)
        assert one["missing"] == ["API_KEY", "PLAIN"]
        asked = await later.form("/s", {"recent": one["id"]})
        assert asked.status == 422
        assert "Type again what is not kept on disk: API_KEY, PLAIN." in asked.text
        assert f'name="like" value="{one["id"]}"' in asked.text
        blank = {**SECRETS, "env_value": ["dev.db", "", "", ""], "like": one["id"]}
        refused = await later.form("/s", form_of(server, **blank))
        assert (refused.status, "secrets are not kept on disk" in refused.text) == (422, True)
        assert "Start this command?" in (await later.form("/s", form_of(server, **SECRETS, like=one["id"]))).text


async def test_a_mask_that_stands_for_nothing_any_more_says_so(app: Starlette, client: Visitor, settings: Settings):
    server = StdioTarget(command="python3", args=("--api-key=canary",))
    await client.form("/targets", form_of(server))
    keep, again = "Leave it to keep the value", "It was not kept on disk"
    page = (await client.get(f"/?target={kept_of(app).id}")).text
    assert (keep in page, again in page) == (True, False)
    await app.state.registry.close_all()
    await app.state.registry.store.close()
    async for later in next_process(settings):
        (one,) = await listed(later)
        asked = await later.form("/s", {"recent": one["id"]})
        assert (keep in asked.text, again in asked.text) == (False, True)


async def test_headers_can_be_secret(app: Starlette, client: Visitor):
    rows = {"header_name": ["X-Team", "X-Odd"], "header_value": ["blue", "canary"], "header_secret": ["", "1"]}
    await client.form("/targets", {"transport": "http", "url": "http://127.0.0.1:9/mcp", **rows})
    kept = kept_of(app)
    assert kept.target.secret == ("X-Odd",)
    page = (await client.get(f"/?target={kept.id}")).text
    assert "canary" not in page
    assert 'value="blue"' in page


# ------------------------------------------------------------------------------------------------------------- disks


@pytest.mark.requirement("F25")
async def test_a_damaged_disk_costs_only_the_saving(client: Visitor, script: Visitor, app: Starlette, tmp_path: Path):
    await app.state.registry.store.loaded(20)
    await app.state.registry.store._database.let_go()
    _damage(tmp_path / "data" / FILE)
    target = raw_target()
    opened = await script.post("/s", {"target": target.model_dump(mode="json")})
    state = await script.json(f"{opened.json()['url']}?wait=20")
    assert state["connection"]["state"] == "ready"
    assert (await client.form("/targets", form_of(target, name="Raw"))).status == 303
    page = (await client.get("/")).text
    assert "Saving is off: " in page
    assert "is damaged" in page
    assert "Raw" in page
    assert "Saving is off: " in (await client.get(f"{opened.json()['url']}/connect")).text
    called = await script.post(f"{opened.json()['url']}/calls", {"method": "ping"})
    assert called.status == 202


def _damage(file: Path) -> None:
    for one in file.parent.glob(f"{FILE}*"):
        one.unlink()
    file.write_bytes(b"no database " * 1000)


# ---------------------------------------------------------------------------------------------------------- mcp.json


ONE = {"command": "uv", "args": ["run", "desk.py"], "env": {"A": 1, "B": True}, "cwd": "/srv", "disabled": False}
FAR = {"type": "streamable-http", "url": "https://mcp.example/mcp", "headers": {"X-Team": "blue"}}


def targets_of(value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return {one.name: one.target for one in mcp_json.read(text)}


def test_every_usual_shape_is_read():
    stdio = StdioTarget(command="uv", args=("run", "desk.py"), env={"A": "1", "B": "true"}, cwd="/srv")
    http = HttpTarget(transport="http", url="https://mcp.example/mcp", headers={"X-Team": "blue"})
    both = {"desk": stdio, "far": http}
    for wrap in ("mcpServers", "servers"):
        assert targets_of({wrap: {"desk": ONE, "far": FAR}, "inputs": []}) == both
    assert targets_of({"mcp": {"servers": {"desk": ONE, "far": FAR}}}) == both
    assert targets_of({"desk": ONE, "far": FAR}) == both
    assert targets_of(ONE) == {"pasted": stdio}
    assert targets_of({**FAR, "name": "far"}) == {"far": http}
    assert targets_of(f'  "desk": {json.dumps(ONE)},\n') == {"desk": stdio}
    sse = HttpTarget(transport="sse", url="http://h/sse")
    assert targets_of({"url": "http://h/sse"}) == targets_of({"type": "sse", "url": "http://h/sse"}) == {"pasted": sse}


def test_what_cannot_be_used_is_said_by_entry():
    found = mcp_json.read(
        json.dumps({"servers": {"a": {}, "b": {"command": ""}, "c": {"type": "ws", "url": "x"}, "d": 1}})
    )
    assert [one.target for one in found] == [None] * 4
    assert all(one.problem for one in found)
    (note,) = mcp_json.read('{"command": "x", "env": {"K": "${input:key}"}}')
    assert note.note == "Asks for key."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"mcpServers": {\n  "a": {"command": "x",,}\n}}', "line 2, column"),
        ("", "Paste"),
        ("[]", "JSON object"),
        ("{}", "no server"),
        ('{"mcpServers": {}}', "no server"),
        ('{"command": "a", "command": "b"}', "twice"),
        (json.dumps({"servers": {str(n): ONE for n in range(41)}}), "at most 40"),
    ],
)
def test_what_is_no_file_is_said(text: str, words: str):
    with pytest.raises(FormErrors) as caught:
        mcp_json.read(text)
    assert words in caught.value.fields["/mcp_json"][0]


def paste(value: Any) -> dict[str, Any]:
    return {"transport": "mcpjson", "mcp_json": value if isinstance(value, str) else json.dumps(value)}


async def test_one_pasted_entry_goes_straight_to_the_question(client: Visitor):
    asked = await client.form("/s", paste({**ONE, "command": "python3", "cwd": "/", "env": {"API_KEY": "canary"}}))
    assert "Start this command?" in asked.text
    assert "canary" not in asked.text


async def test_of_several_one_is_chosen(app: Starlette, client: Visitor):
    several = {"mcpServers": {"desk": {**ONE, "env": {"API_KEY": "canary"}}, "far": FAR, "odd <b>": {"type": "x"}}}
    page = await client.form("/s", paste(several))
    assert page.status == 200
    assert "3 servers in what you pasted" in page.text
    assert "canary" not in page.text
    assert "odd &lt;b&gt;" in page.text
    digests = re.findall(r'name="choose" value="(\w+)"', page.text)
    assert len(digests) == 2
    asked = await client.form("/s", {"choose": digests[0]})
    assert "Start this command?" in asked.text
    assert "API_KEY" in asked.text
    assert (await client.form("/s", {"choose": "0" * 64})).status == 409
    assert app.state.registry.of(LOCAL) == []


async def test_a_pasted_text_that_is_no_json_says_where(client: Visitor):
    answer = await client.form("/s", paste('{"mcpServers": \n {"a": }}'))
    assert answer.status == 422
    assert "line 2, column 8" in answer.text


async def test_a_pasted_file_is_saved_whole(client: Visitor, script: Visitor):
    several = {"mcpServers": {"desk": ONE, "far": FAR, "odd": {}}}
    assert (await client.form("/targets", paste(several))).status == 303
    assert {one["name"] for one in await listed(script)} == {"desk", "far"}
    refused: Answer = await client.form("/targets", paste({"servers": {"odd": {}}}))
    assert refused.status == 422


async def test_the_file_holds_what_was_saved(client: Visitor, tmp_path: Path):
    await client.form("/targets", {"transport": "http", "url": "http://127.0.0.1:9/mcp", "name": "Billing"})
    file = sqlite3.connect(tmp_path / "data" / FILE)
    assert file.execute("SELECT owner, name FROM targets").fetchall() == [("local", "Billing")]
    file.close()


# ---------------------------------------------------------------------------- addresses that are none, and failed saves

NO_ADDRESS = ["http://[::1", "http://::1]/", "https://u@[v1/", "http://[nonsense]/", "http://h\u2100/"]
NO_HOST = ["http://", "http://:80/", "http://h:x/", "http://h:99999/", "http:///x"]
"""These have no 500 behind them: the connection says what is wrong with them."""
BRACKETS = "http://[v1.a&token=x]/mcp"
"""An address as `urlsplit` reads it, until its secret is masked, and the bracket with it."""


@pytest.mark.requirement("M04")
@pytest.mark.parametrize("url", NO_ADDRESS)
async def test_m04_what_is_no_address_is_answered_in_words(client: Visitor, script: Visitor, url: str):
    body = {"target": {"transport": "http", "url": url}}
    for path in ("/s", "/targets"):
        said = await script.post(path, body)
        assert (said.status, list(said.error["fields"])) == (422, ["/target/url"]), said.text
        shown = await client.form(path, {"transport": "sse", "url": url})
        assert shown.status == 422
        assert "Value error" not in shown.text
    pasted = await client.form("/s", paste({"url": url}))
    assert pasted.status == 200
    assert "Value error" not in pasted.text
    assert await listed(script) == []


@pytest.mark.requirement("M04")
@pytest.mark.parametrize("url", NO_HOST)
async def test_m04_what_nobody_can_dial_is_said_by_the_connection(script: Visitor, url: str):
    opened = await script.post("/s", {"target": {"transport": "http", "url": url}})
    assert opened.status == 201, opened.text
    connection = (await script.json(f"{opened.json()['url']}?wait=20"))["connection"]
    assert (connection["state"], connection["error"]["kind"]) == ("lost", "bad-url")


@pytest.mark.requirement("M04")
async def test_m04_an_address_that_masking_breaks_is_kept_without_it(script: Visitor):
    saved = await script.post("/targets", {"target": {"transport": "http", "url": BRACKETS}})
    assert saved.status == 201, saved.text
    assert saved.json()["missing"] == []
    opened = await script.post("/s", {"target": {"transport": "http", "url": BRACKETS}})
    assert opened.status == 201
    assert (await script.json(f"{opened.json()['url']}?wait=20"))["connection"]["state"] == "lost"


@pytest.mark.requirement("M04")
@pytest.mark.parametrize("number", ["9e999", "-9e999", "1e300"])
async def test_m04_a_stored_time_of_infinity_breaks_no_page(
    client: Visitor, settings: Settings, app: Starlette, number: str
):
    assert (await client.form("/targets", {"transport": "http", "url": "http://h/", "name": "Odd"})).status == 303
    await app.state.registry.store.close()
    file = sqlite3.connect(settings.data_dir / FILE)  # type: ignore[operator]
    with file:
        file.execute(f"UPDATE targets SET used = {number}")
    file.close()
    async for other in next_process(settings):
        await other.app.state.registry.store.loaded(20)
        assert "Odd" in (await other.get("/")).text
        assert [one["used_at"] for one in await listed(other)] == ["1970-01-01T00:00:00.000Z"]


@pytest.mark.requirement("M12")
@pytest.mark.parametrize("url", ["http://h:0/", "https://127.0.0.1:00/mcp", "http://[::1]:0"])
async def test_m12_port_0_is_refused_and_not_replaced(client: Visitor, script: Visitor, url: str):
    said = await script.post("/s", {"target": {"transport": "http", "url": url}})
    assert said.status == 422
    assert said.error["fields"] == {"/target/url": ["nobody listens on port 0; write the port of the server"]}
    shown = await client.form("/s", {"transport": "http", "url": url})
    assert (shown.status, "nobody listens on port 0" in shown.text) == (422, True)
    with pytest.raises(EgressError) as refused:
        split(url)
    assert refused.value.kind == "bad-url"
    assert "port 0" in refused.value.detail


@pytest.mark.requirement("M10")
async def test_m10_a_target_that_could_not_be_saved_is_not_called_saved(
    client: Visitor, script: Visitor, app: Starlette, tmp_path: Path
):
    store = app.state.registry.store
    await store.loaded(20)
    saved = (await script.post("/targets", {"target": {"transport": "http", "url": "http://h/1"}})).json()
    await store._database.let_go()
    _damage(tmp_path / "data" / FILE)
    for path, body in (
        ("/targets", {"target": {"transport": "http", "url": "http://h/2"}, "name": "Two"}),
        (f"/targets/{saved['id']}", {"name": "One"}),
        (f"/targets/{saved['id']}/delete", None),
    ):
        said = await script.post(path, body)
        assert (said.status, said.error["kind"]) == (507, "not-saved"), said.text
        assert "is damaged" in said.error["message"]
        assert said.error["id"]
    assert [one["name"] for one in await listed(script)] == ["Two"], "it holds until the process ends"
    opened = await script.post("/s", {"target": raw_target().model_dump(mode="json")})
    assert opened.status == 201, "connecting needs no disk"
    assert (await script.json(f"{opened.json()['url']}?wait=20"))["connection"]["state"] == "ready"
    page = await client.form("/targets", {"transport": "http", "url": "http://h/3", "name": "Three"})
    assert page.status == 303
    assert "Saving is off: " in (await client.get("/")).text
    (tmp_path / "data" / FILE).unlink()
    assert (await script.post("/targets", {"target": {"transport": "http", "url": "http://h/4"}})).status == 201


@pytest.mark.requirement("S15")
async def test_what_somebody_else_forgot_is_as_unknown_as_what_never_was(
    client: Visitor, script: Visitor, mallory: Visitor
):
    target = {"transport": "http", "url": "http://127.0.0.1:9/mcp"}
    saved = (await script.post("/targets", {"target": target, "name": "Far"})).json()
    never = await mallory.post("/targets/never-was/restore")
    for _ in range(2):
        theirs = await mallory.post(f"/targets/{saved['id']}/restore")
        assert (theirs.status, theirs.body) == (404, never.body)
        await client.form(f"/targets/{saved['id']}/delete")
    assert (await client.form(f"/targets/{saved['id']}/restore")).status == 303
    assert (await script.post(f"/targets/{saved['id']}/restore")).status == 409, "it is there, and its owner may know"
