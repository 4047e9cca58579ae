"""A canary in every place of a target is in no page, JSON, log, export, snippet, file or line of the terminal (H05)."""

import html
import json
import logging
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app.core.targets import HttpTarget, StdioTarget
from app.sessions.identity import LOCAL
from app.settings import Settings, local
from tests.drive import SERVERS, raw_target
from tests.drive_http import raw_peer
from tests.secret_cases import CASES
from tests.web.asgi import PORT, TOKEN, Visitor

pytestmark = [pytest.mark.usefixtures("processes"), pytest.mark.requirement("H05", "S21")]
CANARY = "can4ry"
PAGES = [
    "", "/connect", "/roots", "/tools", "/resources", "/resources/templates", "/prompts", "/logging", "/compose",
    "/calls", "/calls/c1", "/inbox", "/stage", "/subscriptions", "/tasks", "/log", "/log.jsonl",
    "/palette", "/stderr", "/calls/c1/snippet?as=json", "/calls/c1/snippet?as=python", "/calls/c1/snippet?as=curl",
]  # fmt: skip


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return local(port=PORT, token=TOKEN, data_dir=tmp_path / "data")


def process() -> StdioTarget:
    """A server that starts, with every case of the table behind it, secret or not."""
    server = shlex.join([sys.executable, "-I", "-S", str(SERVERS / "raw.py"), "plain"])
    cases = sorted((case for case in CASES if case.place == "args"), key=lambda case: case.secret)
    extra = [text for case in cases for text in case.filled(told(case.secret))]
    rows = [case.filled(told(case.secret)) for case in CASES if case.place == "env" and case.texts[0] != "PWD"]
    return StdioTarget(command="sh", args=("-c", f"exec {server}", "sh", *extra), env={row[0]: row[1] for row in rows})


def told(secret: bool) -> str:
    return CANARY if secret else "v1sible"


async def everywhere(client: Visitor, script: Visitor, url: str) -> dict[str, str]:
    """What all pages and all JSON say of a session, by path."""
    messages = (await script.json(f"{url}/log"))["messages"]
    pages = [*PAGES, *(f"/log/{each['seq']}" for each in messages)]
    found = {}
    for who, visitor in (("page", client), ("json", script)):
        for path in ["/", "/about", *(url + page for page in pages)]:
            answer = await visitor.get(path)
            assert answer.status in (200, 409), (path, answer.status)
            found[f"{who} {path.removeprefix(url)}"] = answer.text
    return found


def seen(found: dict[str, str]) -> list[str]:
    return [where for where, text in found.items() if CANARY in text]


async def called(script: Visitor, url: str) -> None:
    state = await script.json(f"{url}?wait=20")
    assert state["connection"]["state"] == "ready", state["connection"]["error"]
    assert (await script.post(f"{url}/calls", {"method": "ping"})).status == 202
    assert (await script.json(f"{url}/calls/c1?wait=20"))["state"] == "done"


def on_disk(settings: Settings) -> bytes:
    assert settings.data_dir is not None
    return b"".join(file.read_bytes() for file in settings.data_dir.iterdir())


async def test_h05_a_canary_in_a_command_is_nowhere(
    app: Starlette, client: Visitor, script: Visitor, settings: Settings, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    target = process()
    opened = await script.post("/s", {"target": target.model_dump(mode="json")})
    url = opened.json()["url"]
    await called(script, url)
    found = await everywhere(client, script, url)
    assert seen({**found, "answer": opened.text, "terminal": caplog.text}) == []
    for where in ("page ", "page /", "page /connect", "json ", "json /", "json /calls/c1/snippet?as=python"):
        assert "v1sible" in found[where], where
    await app.state.registry.store.write(app.state.registry.store.of("local")[0])
    assert CANARY.encode() not in on_disk(settings) and b"v1sible" in on_disk(settings)
    shown = (await script.json(url))["target"]
    assert "--api-key=•••" in shown["args"] and "v1sible.py" in shown["args"]


async def test_h05_a_canary_in_an_address_or_a_header_is_nowhere(
    app: Starlette, client: Visitor, script: Visitor, settings: Settings, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    headers = {case.texts[0]: case.filled(CANARY)[1] for case in CASES if case.place == "header" and case.secret}
    async with raw_peer() as peer:
        address = peer.url() + f"?sig={CANARY}&code={CANARY}&pwd={CANARY}&pat={CANARY}&page=v1sible"
        target = HttpTarget(transport="http", url=address, headers={**headers, "X-Team": "v1sible"})
        opened = await script.post("/s", {"target": target.model_dump(mode="json"), "options": {"era": "legacy"}})
        url = opened.json()["url"]
        await called(script, url)
        found = await everywhere(client, script, url)
        sent = peer.requests("POST")
    assert seen({**found, "terminal": caplog.text}) == []
    assert all(f"sig={CANARY}" in each.path and each.headers["x-session"] == CANARY for each in sent)
    first = json.loads(found["json /log"])["messages"][0]["exchange"]
    assert ["X-Session", "•••"] in first["request_headers"] and ["X-Team", "v1sible"] in first["request_headers"]
    assert first["url"].endswith("?sig=•••&code=•••&pwd=•••&pat=•••&page=v1sible")
    assert CANARY.encode() not in on_disk(settings)


async def test_h05_the_card_hides_secrets_until_they_are_asked_for(app: Starlette, client: Visitor, script: Visitor):
    target = StdioTarget(command="python3", args=("--api-key=" + CANARY, "--port", "v1sible"))
    line = shlex.join(target.argv)
    card = await client.form("/s", {"transport": "stdio", "command_line": line})
    assert "Start this command?" in card.text and "v1sible" in card.text and "--api-key=•••" in card.text
    assert CANARY not in card.text
    digest = re.search(r'name="reveal" value="(\w+)"', card.text)
    assert digest is not None
    shown = await client.form("/s", {"reveal": digest[1]})
    assert "Start this command?" in shown.text and f"--api-key={CANARY}" in shown.text
    assert app.state.registry.of(LOCAL) == [], "to look is not to start"
    in_json = await client.post("/s", {"target": target.model_dump(mode="json")}, accept="application/json")
    assert in_json.status == 409 and CANARY not in in_json.text and "--port" in in_json.text


async def test_h05_an_edited_command_keeps_what_was_left_masked(app: Starlette, client: Visitor, settings: Settings):
    line = f"server --api-key={CANARY} --password hunter2 https://u:{CANARY}@h/"
    assert (await client.form("/targets", {"transport": "stdio", "command_line": line})).status == 303
    kept = app.state.registry.store.of("local")[0]
    page = (await client.get(f"/?target={kept.id}")).text
    assert CANARY not in page and "hunter2" not in page
    assert "server --api-key=••• --password ••• https://•••@h/" in page
    edited = "server --verbose --api-key=••• --password hunter3 https://•••@h/"
    answer = await client.form("/targets", {"transport": "stdio", "command_line": edited, "like": kept.id})
    assert answer.status == 303, answer.text
    now = app.state.registry.store.of("local")[0].target
    assert now.args == ("--verbose", f"--api-key={CANARY}", "--password", "hunter3", f"https://u:{CANARY}@h/")
    refused = await client.form("/targets", {"transport": "stdio", "command_line": edited})
    assert refused.status == 422 and "Type what ••• stands for" in refused.text


async def test_h05_an_edited_address_keeps_what_was_left_masked(app: Starlette, client: Visitor):
    url = f"http://127.0.0.1:9/mcp?token={CANARY}&page=1"
    assert (await client.form("/targets", {"transport": "http", "url": url})).status == 303
    kept = app.state.registry.store.of("local")[0]
    assert CANARY not in (await client.get(f"/?target={kept.id}")).text
    edited = {"transport": "http", "url": "http://127.0.0.1:9/mcp?page=2&token=•••", "like": kept.id}
    assert (await client.form("/targets", edited)).status == 303
    assert app.state.registry.store.of("local")[0].target.url == f"http://127.0.0.1:9/mcp?page=2&token={CANARY}"


async def test_h05_a_typed_secret_does_not_come_back_and_the_old_one_is_not_taken(app: Starlette, client: Visitor):
    line = f"server --api-key={CANARY}"
    assert (await client.form("/targets", {"transport": "stdio", "command_line": line})).status == 303
    kept = app.state.registry.store.of("local")[0]
    fields: dict[str, Any] = {"transport": "stdio", "like": kept.id, "option.request_timeout_ms": "-1"}
    again = await client.form("/targets", {**fields, "command_line": f"server --api-key=new-{CANARY}"})
    assert again.status == 422 and CANARY not in again.text and "server --api-key=•••again" in again.text
    fields.pop("option.request_timeout_ms")
    refused = await client.form("/targets", {**fields, "command_line": "server --api-key=•••again"})
    assert refused.status == 422 and "Type what ••• stands for" in refused.text


async def test_h05_what_a_script_reads_cannot_be_started_by_mistake(script: Visitor):
    target = {"transport": "stdio", "command": "server", "args": ["--api-key=•••"]}
    answer = await script.post("/s", {"target": target})
    assert answer.status == 422 and "/target/args" in answer.error["fields"]
    answer = await script.post("/s", {"target": {"transport": "http", "url": "http://127.0.0.1:9/?token=•••"}})
    assert answer.status == 422 and "/target/url" in answer.error["fields"]


async def test_h05_reconnect_uses_the_real_value(app: Starlette, client: Visitor, script: Visitor, tmp_path: Path):
    told_args = tmp_path / "args"
    server = shlex.join([sys.executable, *raw_target().args])
    args = ("-c", f'echo "$@" >>{told_args}; exec {server}', "sh", "--password", CANARY)
    opened = await script.post("/s", {"target": {"transport": "stdio", "command": "sh", "args": args}})
    url = opened.json()["url"]
    await called(script, url)
    await script.post(f"{url}/disconnect", {})
    await client.form(f"{url}/connect", {"again": "1"})
    await script.json(f"{url}?wait=20")
    page = await client.get(f"{url}/connect")
    line = re.search(r'name="command_line" class="mono" value="([^"]*)"', page.text)
    assert line is not None and CANARY not in line[1]
    fields = {"transport": "stdio", "command_line": html.unescape(line[1]), "like": url.removeprefix("/s/")}
    await client.form(f"{url}/connect", fields)
    await script.json(f"{url}?wait=20")
    assert told_args.read_text().splitlines() == [f"--password {CANARY}"] * 3
