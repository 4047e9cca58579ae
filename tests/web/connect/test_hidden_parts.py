"""A secret that was typed for a placeholder in a command line or an address: nothing but a mark tells what it is."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app.core import placeholders
from app.core.targets import HttpTarget, StdioTarget, target_digest
from app.sessions.identity import LOCAL
from app.settings import Settings, local
from app.store import without_secrets
from tests.drive import raw_target
from tests.web.asgi import PORT, TOKEN, Visitor
from tests.web.connect.test_connect import as_json

pytestmark = pytest.mark.usefixtures("processes")
CANARY = "zq plain 77"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return local(port=PORT, token=TOKEN, data_dir=tmp_path / "data")


async def asked(client: Visitor, entry: dict[str, Any], value: str = CANARY) -> Any:
    """What is said after the placeholders of a pasted entry were filled in."""
    page = await client.form("/s", {"transport": "mcpjson", "mcp_json": json.dumps(entry)})
    names = re.findall(r'name="fill_name" value="([^"]+)"', page.text)
    (digest,) = re.findall(r'name="fill" value="(\w+)"', page.text)
    return await client.form("/s", {"fill": digest, "fill_name": names, "fill_value": [value] * len(names)})


@pytest.mark.requirement("S21")
async def test_a_secret_argument_is_shown_nowhere_and_is_part_of_the_consent(
    app: Starlette, client: Visitor, script: Visitor, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    raw = as_json(raw_target())
    card = await asked(client, {**raw, "args": [*raw["args"], "x${input:api_token}y", "${input:api_token}"]})
    assert CANARY not in card.text and "x•••y" in card.text
    (digest,) = re.findall(r'name="confirm" value="(\w+)"', card.text)
    revealed = await client.form("/s", {"reveal": digest})
    assert f"x{CANARY}y" in revealed.text
    went = await client.form("/s", {"confirm": digest})
    assert went.status == 303
    (session,) = app.state.registry.of(LOCAL)
    path = f"/s/{session.id}"
    assert (await script.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    assert session.target.args[-2:] == (f"x{CANARY}y", CANARY)
    assert target_digest(session.target) == digest
    for address in ("/", path, f"{path}/connect", f"{path}/log", "/?session=" + session.id):
        assert CANARY not in (await client.get(address)).text, address
        answer = await script.get(address)
        assert CANARY not in answer.text, address
    assert CANARY not in caplog.text
    assert not [one for one in (tmp_path / "data").iterdir() if CANARY.encode() in one.read_bytes()]


@pytest.mark.requirement("S21")
async def test_a_form_that_changes_the_command_keeps_its_secret_and_its_mark(
    app: Starlette, client: Visitor, script: Visitor
):
    raw = as_json(raw_target())
    card = await asked(client, {**raw, "args": [*raw["args"], "x${input:api_token}y"]})
    (digest,) = re.findall(r'name="confirm" value="(\w+)"', card.text)
    await client.form("/s", {"confirm": digest})
    (session,) = app.state.registry.of(LOCAL)
    await script.json(f"/s/{session.id}?wait=20")
    line = session.target.command_line
    assert "x•••y" in line
    typed = {"transport": "stdio", "command_line": f"{line} more", "like": session.id}
    again = await client.form(f"/s/{session.id}/connect", typed)
    assert CANARY not in again.text and "x•••y" in again.text
    (digest,) = re.findall(r'name="confirm" value="(\w+)"', again.text)
    target = app.state.proposals.take(LOCAL, digest)[0]
    assert target.args[-2:] == (f"x{CANARY}y", "more")
    assert target.shown_argv[-2:] == ("x•••y", "more")


@pytest.mark.requirement("S21")
async def test_a_secret_in_an_address_is_shown_nowhere(app: Starlette, client: Visitor, script: Visitor):
    went = await asked(client, {"url": "http://127.0.0.1:9/${input:api_token}/mcp"}, "zq-plain-77")
    assert went.status == 303
    (session,) = app.state.registry.of(LOCAL)
    path = f"/s/{session.id}"
    assert (await script.json(f"{path}?wait=20"))["connection"]["state"] == "lost"
    assert session.target.url == "http://127.0.0.1:9/zq-plain-77/mcp"
    for address in ("/", path, f"{path}/connect", f"{path}/log", f"{path}/log?since=0", f"/?session={session.id}"):
        for visitor in (client, script):
            assert "zq-plain-77" not in (await visitor.get(address)).text, address


@pytest.mark.requirement("S21")
async def test_a_secret_in_the_program_or_its_directory_is_refused(app: Starlette, client: Visitor):
    for entry in ({"command": "run-${input:password}"}, {"command": "run", "cwd": "/${input:password}"}):
        answer = await asked(client, entry)
        assert answer.status == 422 and CANARY not in answer.text
        assert "not in the program or its directory" in answer.text
    assert app.state.registry.of(LOCAL) == []


def test_a_target_without_marks_has_the_digest_that_it_always_had():
    target = StdioTarget(command="x", args=("--token", "v"))
    assert "secret_args" not in target.model_dump(mode="json")
    marked = StdioTarget(command="x", args=("--token", "v"), secret_args=((1, 0, 1),))
    assert target_digest(marked) == target_digest(target), "a place that is found anyway needs no mark"
    plain = StdioTarget(command="x", args=("v",), secret_args=((0, 0, 1),))
    assert plain.secret_args and target_digest(plain) != target_digest(StdioTarget(command="x", args=("v",)))
    kept, missing = without_secrets(plain)
    assert kept.model_dump() == StdioTarget(command="x", args=("•••",)).model_dump() and missing


def test_a_mark_where_nothing_stands_is_refused():
    for mark in ((1, 0, 1), (0, 0, 3), (0, 1, 1), (-1, 0, 1), (0, -1, 1)):
        with pytest.raises(ValueError, match="nothing where"):
            StdioTarget(command="x", args=("ab",), secret_args=(mark,))
    with pytest.raises(ValueError, match="nothing where"):
        HttpTarget(transport="http", url="http://h/", secret_url=((0, 10),))


def test_marks_go_along_when_more_is_filled_in_and_when_the_address_moves():
    target = StdioTarget(command="x", args=("${a}secret",), secret_args=((0, 4, 10),))
    made = StdioTarget.model_validate(placeholders.filled(target, {"${a}": "longer than before "}))
    assert made.shown_argv == ("x", "•••")
    dialled = HttpTarget(transport="http", url="http://h/abcdefgh/mcp", secret_url=((9, 17),))
    assert dialled.shown_url == "http://h/•••/mcp"
    assert dialled.at("http://h/v2/abcdefgh/").shown_url == "http://h/v2/•••/"
