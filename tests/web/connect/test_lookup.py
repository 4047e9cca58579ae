"""A command that is not there is said at its field, before anybody is asked whether to start it."""

import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette

from app.core.targets import StdioTarget
from app.sessions.identity import LOCAL
from tests.web.asgi import Visitor
from tests.web.connect.test_connect import as_form

pytestmark = [pytest.mark.requirement("U-M13"), pytest.mark.usefixtures("processes")]
TYPO = StdioTarget(command="pyhton3", args=("server.py",))


async def looked(client: Visitor, target: StdioTarget, **fields: str) -> dict[str, str]:
    """What the page hears of a form before it goes."""
    answer = await client.form("/s", as_form(target, _preview="form", **fields), accept="application/json")
    return dict(answer.json()["wrong"])


async def test_a_typo_is_said_at_the_field_and_nobody_is_asked_about_it(client: Visitor, app: Starlette):
    answer = await client.form("/s", as_form(TYPO))
    assert answer.status == 422
    assert "The command pyhton3 was not found." in answer.text and "Start this command?" not in answer.text
    assert 'value="pyhton3 server.py"' in answer.text
    assert app.state.registry.of(LOCAL) == []
    assert (await looked(client, TYPO)).keys() == {"command_line"}


async def test_the_path_that_was_typed_counts(client: Visitor, tmp_path: Path):
    program = tmp_path / "my-server"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    target = StdioTarget(command="my-server")
    assert "may not be run" in (await looked(client, StdioTarget(command=str(program))))["command_line"]
    program.chmod(0o755)
    assert "command_line" in await looked(client, target)
    assert await looked(client, target, env_name="PATH", env_value=str(tmp_path)) == {}
    assert await looked(client, StdioTarget(command="./my-server"), cwd=str(tmp_path)) == {}
    asked = await client.form("/s", as_form(target, env_name="PATH", env_value=str(tmp_path)))
    assert asked.status == 200 and "Start this command?" in asked.text


async def test_a_directory_that_is_not_there_is_said_at_its_field(client: Visitor):
    target = StdioTarget(command=sys.executable)
    assert await looked(client, target, cwd="/no/such/place") == {
        "cwd": "There is no directory /no/such/place. Correct the working directory, then connect again."
    }


async def test_what_is_saved_need_not_be_there_yet(client: Visitor):
    assert await looked(client, TYPO, _saves="1") == {}


async def test_a_pasted_entry_says_it_at_the_paste(client: Visitor):
    fields = {"transport": "mcpjson", "mcp_json": '{"command": "pyhton3", "args": ["x.py"]}'}
    answer = await client.form("/s", fields)
    assert answer.status == 422 and "The command pyhton3 was not found." in answer.text
    blank = {"transport": "mcpjson", "mcp_json": '{"command": "${workspaceFolder}/run"}'}
    assert "to fill in" in (await client.form("/s", blank)).text


async def test_scripts_hear_what_they_always_heard(client: Visitor, script: Visitor):
    body = {"target": TYPO.model_dump(mode="json")}
    asked = await client.form("/s", as_form(TYPO), accept="application/json")
    assert (asked.status, asked.json()["error"]["kind"]) == (409, "consent")
    begun = await script.post("/s", body)
    assert begun.status == 201
    seen = await script.json(f"{begun.json()['url']}?wait=20")
    assert "The command pyhton3 was not found." in str(seen["connection"])
