"""What people and scripts do: open, connect, consent, call, cancel, close; over forms, htmx and JSON."""

import logging
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app.core.options import Options
from app.core.targets import StdioTarget, target_digest
from app.server import escaped
from app.sessions import Session
from app.sessions.identity import LOCAL
from app.web.connect.consent import Proposals
from tests.drive import raw_target
from tests.web.asgi import Visitor

HTMX = {"hx_request": "true"}
pytestmark = pytest.mark.usefixtures("processes")


def as_json(target: StdioTarget) -> dict[str, Any]:
    return target.model_dump(mode="json")


def as_form(target: StdioTarget, **more: Any) -> dict[str, Any]:
    return {"transport": "stdio", "command_line": shlex.join([target.command, *target.args]), **more}


async def connected(script: Visitor, target: StdioTarget | None = None) -> str:
    """A session of a script that is ready; its path."""
    opened = await script.post("/s", {"target": as_json(target or raw_target())})
    assert opened.status == 201, opened.text
    path: str = opened.json()["url"]
    assert (await script.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    return path


# ------------------------------------------------------------------------------------------------------------ scripts


async def test_a_script_connects_calls_and_reads_the_log(script: Visitor):
    opened = await script.post("/s")
    assert opened.status == 201
    path = opened.json()["url"]
    assert opened.json() == {"id": path.removeprefix("/s/"), "url": path}
    began = await script.post(
        f"{path}/connect", {"target": as_json(raw_target()), "options": {"sampling": False, "era": "legacy"}}
    )
    assert began.status == 202
    overview = await script.json(f"{path}?wait=20")
    assert overview["connection"]["state"] == "ready"
    assert overview["connection"]["server_info"]["name"] == "raw"
    assert "sampling" not in overview["connection"]["client_capabilities"]

    started = await script.post(
        f"{path}/calls", {"method": "tools/call", "params": {"name": "echo", "arguments": {"message": "hi"}}}
    )
    assert started.status == 202
    call = await script.json(f"{path}/calls/{started.json()['id']}?wait=20")
    assert call["state"] == "done"
    assert call["result"]["content"][0]["text"] == "hi"

    log = (await script.json(f"{path}/log"))["messages"]
    assert next(one["method"] for one in log if one["direction"] == "out") == "initialize"
    later = await script.json(f"{path}/log?after={log[0]['seq']}")
    assert later["messages"][0] == log[1]
    assert (await script.json(f"{path}/log/{log[0]['seq']}"))["raw"] == log[0]["raw"]
    assert [one["name"] for one in (await script.json(f"{path}/tools"))["tools"]] == ["echo"]
    assert (await script.json(f"{path}/inbox")) == {"open": [], "settled": [], "sign_in": None}
    assert (await script.get(f"{path}/inbox?count=1")).text == "0"
    assert (await script.json(f"{path}/stderr"))["lines"] == []

    assert (await script.post(f"{path}/disconnect")).json()["connection"]["state"] == "closed"
    assert (await script.post(f"{path}/close")).json()["closed"] is True
    assert (await script.get(path)).status == 404


async def test_a_token_without_an_accept_header_is_answered_in_json(script: Visitor):
    assert (await script.get("/", accept=None)).header("content-type") == "application/json"
    assert (await script.get("/", accept="*/*")).header("content-type") == "application/json"
    assert (await script.get("/", accept="text/html")).header("content-type") == "text/html; charset=utf-8"


async def test_the_wrong_moment_is_a_409(script: Visitor):
    path = (await script.post("/s")).json()["url"]
    refused = await script.post(f"{path}/calls", {"method": "ping"})
    assert (refused.status, refused.error["kind"]) == (409, "gone")
    assert (await script.post(f"{path}/connect", {"target": as_json(raw_target())})).status == 202
    assert (await script.post(f"{path}/connect", {"target": as_json(raw_target())})).status == 409
    await script.json(f"{path}?wait=20")
    assert (await script.post(f"{path}/connect", {"target": as_json(raw_target())})).status == 409


@pytest.mark.requirement("S39")
async def test_only_the_first_cancel_counts_and_only_in_its_own_session(script: Visitor):
    path, other = await connected(script), await connected(script)
    cid = (await script.post(f"{path}/calls", {"method": "x/hold"})).json()["id"]
    foreign = await script.post(f"{other}/calls/{cid}/cancel")
    assert (foreign.status, (await script.json(f"{path}/calls/{cid}"))["state"]) in {(404, "running"), (409, "running")}
    assert (await script.post(f"{path}/calls/c999/cancel")).status == 404
    assert (await script.post(f"{path}/calls/{cid}/cancel")).json()["state"] == "cancelled"
    assert (await script.post(f"{path}/calls/{cid}/cancel")).status == 409
    assert (await script.post(f"{path}/calls", {"method": "ping"})).status == 202


async def test_options_that_the_handshake_said_cannot_change(script: Visitor):
    path = await connected(script)
    changed = await script.post(f"{path}/options", {"request_timeout_ms": 1234})
    assert (changed.status, changed.json()["request_timeout_ms"]) == (200, 1234)
    refused = await script.post(f"{path}/options", {"sampling": False, "request_timeout_ms": 5})
    assert (refused.status, set(refused.error["fields"])) == (422, {"/sampling"})


async def test_roots_are_replaced(script: Visitor, client: Visitor):
    path = (await script.post("/s")).json()["url"]
    answer = await script.post(f"{path}/roots", {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]})
    assert answer.json() == {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]}
    fields = {"root_uri": ["file:///c", "", "file:///d"], "root_name": ["C", "nobody", ""]}
    assert (await client.form(f"{path}/roots", fields)).status == 303
    assert (await script.json(f"{path}/roots")) == {"roots": [{"uri": "file:///c", "name": "C"}, {"uri": "file:///d"}]}
    wrong = await client.form(f"{path}/roots", {"root_uri": ["http://no"], "root_name": ["x"]})
    assert wrong.status == 422
    assert "http://no" in wrong.text


async def test_too_many_sessions(script: Visitor, app: Starlette):
    for _ in range(20):
        assert (await script.post("/s")).status == 201
    refused = await script.post("/s", {"target": {"transport": "demo"}})
    assert (refused.status, refused.error["kind"]) == (403, "refused")


# ------------------------------------------------------------------------------------------------------------ consent


@pytest.mark.requirement("R5-71", "S27")
async def test_a_person_sees_a_command_in_full_before_it_starts(app: Starlette, client: Visitor):
    target = raw_target()
    secret = "the-value-of-a-secret"
    fields = as_form(target, env_name=["API_KEY", ""], env_value=[secret, "x"], cwd=str(Path.cwd()))
    card = await client.form("/s", fields)
    assert card.status == 200
    assert app.state.registry.of(LOCAL) == [], "nothing was opened, nothing runs"
    for shown in (target.command, *target.args, "API_KEY", str(Path.cwd())):
        assert shown in card.text
    assert secret not in card.text
    wanted = StdioTarget(command=target.command, args=target.args, env={"API_KEY": secret}, cwd=str(Path.cwd()))
    digest = target_digest(wanted)
    assert digest in card.text

    wrong = await client.form("/s", {"confirm": digest[::-1]})
    assert wrong.status == 409
    assert app.state.registry.of(LOCAL) == []

    yes = await client.form("/s", {"confirm": digest})
    assert yes.status == 303
    path = yes.header("location")
    assert path is not None
    (session,) = app.state.registry.of(LOCAL)
    assert session.target == wanted
    assert (await client.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    assert (await client.form("/s", {"confirm": digest})).status == 409, "a yes counts once"

    again = await client.form("/s", fields)
    assert again.status == 303, "what was started before is not asked again"


@pytest.mark.requirement("R5-71")
async def test_every_change_of_the_command_asks_again(app: Starlette, client: Visitor):
    target = raw_target()
    digest = target_digest(target)
    assert (await client.form("/s", as_form(target))).status == 200
    assert (await client.form("/s", {"confirm": digest})).status == 303
    for other in (
        as_form(target, cwd="/"),
        as_form(target, env_name=["A"], env_value=["1"]),
        as_form(StdioTarget(command=target.command, args=(*target.args, "--more"))),
    ):
        assert (await client.form("/s", other)).status == 200
        assert (await client.form("/s", {**other, "confirm": digest})).status == 200, "the yes was to another command"
    assert len(app.state.registry.of(LOCAL)) == 1


@pytest.mark.requirement("R5-71")
async def test_a_page_that_posts_json_is_asked_too_and_a_script_is_not(
    app: Starlette, client: Visitor, script: Visitor
):
    body = {"target": as_json(raw_target())}
    path = (await client.post("/s")).json()["url"]
    asked = await client.post(f"{path}/connect", body)
    assert asked.status == 409
    assert asked.error["kind"] == "consent"
    assert asked.error["argv"] == [raw_target().command, *raw_target().args]
    assert asked.error["env_names"] == []
    assert (await client.post(f"{path}/connect", {**body, "confirm": "no"})).status == 409
    assert (await client.post(f"{path}/connect", {**body, "confirm": asked.error["digest"]})).status == 202
    assert (await client.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    other = as_json(raw_target(mark=1))
    assert (await script.post("/s", {"target": other})).status == 201


async def test_mallory_cannot_say_yes_for_another(app: Starlette, client: Visitor, mallory: Visitor):
    target = raw_target()
    assert (await client.form("/s", as_form(target))).status == 200
    assert (await mallory.form("/s", {"confirm": target_digest(target)})).status == 409


async def test_proposals_are_bounded_and_forgotten():
    now = [0.0]
    proposals = Proposals(clock=lambda: now[0])
    targets = [StdioTarget(command=str(number)) for number in range(60)]
    digests = [proposals.keep(LOCAL, target, None) for target in targets]  # type: ignore[arg-type]
    assert proposals.take(LOCAL, digests[0]) is None
    found = proposals.take(LOCAL, digests[59])
    assert found is not None
    assert found[0] == targets[59]
    now[0] = 601
    assert proposals.take(LOCAL, digests[58]) is None


async def test_the_demo_needs_no_consent_and_reconnecting_neither(app: Starlette, client: Visitor):
    opened = await client.form("/s", {"transport": "demo"})
    assert opened.status == 303
    path = opened.header("location")
    assert (await client.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    assert (await client.form(f"{path}/connect", {"again": "1"})).status == 303
    assert (await client.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    (session,) = app.state.registry.of(LOCAL)
    assert session.info.number == 2


async def test_the_form_of_a_connected_session_closes_its_connection_first(app: Starlette, client: Visitor):
    path = (await client.form("/s", {"transport": "demo"})).header("location")
    assert (await client.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    page = await client.get(f"{path}/connect")
    assert "Disconnect and connect</button>" in page.text
    again = await client.form(f"{path}/connect", {"transport": "demo", "option.sampling": ["false"]})
    assert (again.status, again.header("location")) == (303, path)
    assert (await client.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    (session,) = app.state.registry.of(LOCAL)
    assert (session.info.number, session.options.sampling) == (2, False)


async def test_what_is_missing_in_a_session_leads_back_to_it(client: Visitor, victim: Session):
    for path in ("tools/none", "calls/c9", "log/77", "asks/a9", "tasks/t9"):
        page = await client.get(f"/s/{victim.id}/{path}")
        assert page.status == 404
        assert f'href="/s/{victim.id}">Back to the session</a>' in page.text, path
    page = await client.get("/s/nothing-here")
    assert (page.status, "Back to the session" in page.text) == (404, False)
    assert 'href="/">Home</a>' in page.text


async def test_the_empty_inbox_names_the_parade_only_where_there_is_one(client: Visitor, victim: Session):
    path = (await client.form("/s", {"transport": "demo"})).header("location")
    assert f'<a href="{path}/tools/parade">parade</a>' in (await client.get(str(path))).text
    assert "start the demo server and call" in (await client.get(f"/s/{victim.id}")).text


async def test_a_recent_target_is_started_by_its_digest(app: Starlette, script: Visitor, client: Visitor):
    target = raw_target()
    await connected(script, target)
    again = await client.form("/s", {"recent": target_digest(target), "option.sampling": ["false"]})
    assert again.status == 303
    session: Session = app.state.registry.of(LOCAL)[-1]
    assert (session.target, session.options.sampling) == (target, False)
    assert (await client.form("/s", {"recent": "0" * 64})).status == 409


# -------------------------------------------------------------------------------------------------------------- forms


async def test_every_option_of_a_connection_stands_in_the_form_once(client: Visitor):
    page = (await client.get("/")).text
    named = re.findall(r'id="option-(\w+)"', page)
    assert len(named) == len(set(named))
    assert set(named) == set(Options.model_fields)
    assert f"{len(named) - 1} defaults" in page, "the protocol is in sight"


async def test_the_connect_form_shows_what_is_wrong_and_what_was_typed(app: Starlette, client: Visitor):
    for fields, said in (
        ({"transport": "stdio", "command_line": "python 'unclosed"}, "quotation"),
        ({"transport": "stdio", "command_line": "   "}, "Type the command"),
        ({"transport": "stdio", "command_line": "x", "env_name": ["A=B"], "env_value": ["1"]}, "not a name"),
        ({"transport": "stdio", "command_line": "x", "env_name": ["A", "A"], "env_value": ["1", "2"]}, "twice"),
        ({"transport": "stdio", "command_line": "x", "option.request_timeout_ms": "soon"}, "integer"),
        ({"transport": "stdio", "command_line": "x", "option.meta": "{"}, "line 1, column 2"),
        ({"transport": "stdio", "command_line": "x\0y"}, "NUL"),
    ):
        answer = await client.form("/s", fields)
        assert answer.status == 422, fields
        assert said in answer.text, fields
    assert app.state.registry.of(LOCAL) == []


async def test_a_checkbox_overrules_the_hidden_field_before_it(app: Starlette, client: Visitor):
    fields = {
        "transport": "demo",
        "option.sampling": ["false"],
        "option.roots": ["false", "true"],
        "option.log_level": "",
        "option.request_timeout_ms": "1500",
        "option.meta": '{"a": 1}',
    }
    assert (await client.form("/s", fields)).status == 303
    (session,) = app.state.registry.of(LOCAL)
    options = session.options
    assert (options.sampling, options.roots, options.log_level) == (False, True, None)
    assert (options.request_timeout_ms, options.meta) == (1500, {"a": 1})


async def test_a_form_calls_a_tool(script: Visitor, client: Visitor):
    path = await connected(script)
    fields = {"method": "tools/call", "name": "echo", "arguments": '{"message": "hallo"}', "timeout_ms": "5000"}
    plain = await client.form(f"{path}/calls", fields)
    assert plain.status == 303
    where = plain.header("location")
    assert where is not None
    assert (await script.json(f"{where}?wait=20"))["result"]["content"][0]["text"] == "hallo"
    assert (await client.form(f"{path}/calls", fields, **HTMX)).status == 204
    raw_request = await client.form(f"{path}/calls", {"method": "ping", "params": ""})
    assert raw_request.status == 303
    for wrong in ('{"message": }', "[1]", '{"a": 1, "a": 2}'):
        answer = await client.form(f"{path}/calls", {**fields, "arguments": wrong}, **HTMX)
        assert answer.status == 422
        assert "<html" not in answer.text
    bad = await client.form(f"{path}/calls", {**fields, "arguments": '{"message": }'}, accept="application/json")
    assert "line 1, column 13" in bad.error["fields"]["/params/arguments"][0]


async def test_htmx_is_answered_without_a_page(script: Visitor, client: Visitor):
    path = await connected(script)
    cid = (await script.post(f"{path}/calls", {"method": "x/hold"})).json()["id"]
    assert (await client.form(f"{path}/calls/{cid}/cancel", **HTMX)).status == 204
    assert (await client.form(f"{path}/tools/refresh", **HTMX)).status == 204
    assert (await client.form(f"{path}/disconnect", **HTMX)).status == 204
    closed = await client.form(f"{path}/close", **HTMX)
    assert (closed.status, closed.header("hx-redirect")) == (200, "/")


async def test_without_script_everything_leads_to_a_page(script: Visitor, client: Visitor):
    path = await connected(script)
    for action, goal in (
        ("/tools/refresh", f"{path}/tools"),
        ("/options", path),
        ("/disconnect", path),
        ("/close", "/"),
    ):
        answer = await client.form(path + action)
        assert (answer.status, answer.header("location")) == (303, goal)


# ---------------------------------------------------------------------------------------------------------------- S27


@pytest.mark.requirement("S27", "R5-72")
@pytest.mark.parametrize("how", ["json", "form"])
async def test_no_shell_ever_sees_an_argument_or_a_value(how: str, script: Visitor, client: Visitor, tmp_path: Path):
    nasty = [
        "; touch " + str(tmp_path / "owned"),
        "$(id)",
        "`id`",
        "a\nb",
        "'\"",
        "*",
        "~",
        "&& id",
        "| id",
        "%PATH%",
        "é\u2028",
    ]
    target = raw_target()
    wanted = StdioTarget(
        command=target.command,
        args=(*target.args, "--with", "{}", *nasty),
        env={"NASTY": "; id\n$(id)", "LARGE": "x" * 100_000},
    )
    if how == "json":
        path = await connected(script, wanted)
    else:
        rows = {"env_name": list(wanted.env), "env_value": list(wanted.env.values())}
        assert (await client.form("/s", as_form(wanted, **rows))).status == 200
        path = (await client.form("/s", {"confirm": target_digest(wanted)})).header("location") or ""
        assert (await script.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    cid = (await script.post(f"{path}/calls", {"method": "x/about"})).json()["id"]
    about = (await script.json(f"{path}/calls/{cid}?wait=20"))["result"]
    assert about["argv"][-len(nasty) :] == nasty
    assert (about["env"]["NASTY"], len(about["env"]["LARGE"])) == ("; id\n$(id)", 100_000)
    assert not (tmp_path / "owned").exists()


@pytest.mark.requirement("S27")
@pytest.mark.parametrize(
    ("part", "where"),
    [
        ({"command": "a\0b"}, "/target/command"),
        ({"args": ["a\0b"]}, "/target/args"),
        ({"env": {"A": "b\0"}}, "/target/env"),
        ({"env": {"A\0": "b"}}, "/target/env"),
        ({"env": {"": "b"}}, "/target/env"),
        ({"env": {"A": "x" * 1_000_000}}, "/target/env"),
        ({"args": ["x" * 1_000_000]}, "/target/args"),
        ({"cwd": "a\0"}, "/target/cwd"),
        ({"command": ""}, "/target/command"),
    ],
)
async def test_what_no_process_can_take_is_refused(part: dict[str, Any], where: str, app: Starlette, script: Visitor):
    answer = await script.post("/s", {"target": {"transport": "stdio", "command": sys.executable, **part}})
    assert answer.status == 422
    assert list(answer.error["fields"]) == [where]
    assert app.state.registry.of(LOCAL) == []


# ------------------------------------------------------------------------------------------------------- R5-73 and S35


@pytest.mark.requirement("R5-73", "S35")
async def test_every_start_is_logged_without_secrets(script: Visitor, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    target = raw_target()
    wanted = StdioTarget(
        command=target.command, args=(*target.args, "--with", "{}", "--key=s3cret"), env={"KEY": "v4lue"}
    )
    await connected(script, wanted)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "parley.spawn"]
    assert target.command in line
    assert "KEY" in line
    assert "script" in line
    assert "s3cret" not in caplog.text
    assert "v4lue" not in caplog.text


@pytest.mark.requirement("S35")
async def test_nothing_in_the_log_moves_the_cursor_or_poses_as_a_line():
    for hostile in ("\x1b[2J", "a\nERROR forged", "a\rb", "\x9b31m", "\u2028", "\0", "\x7f"):
        plain = escaped(hostile)
        assert plain.isprintable()
        assert plain != hostile
    assert escaped("naïve – ünïcode 漢字") == "naïve – ünïcode 漢字"


@pytest.mark.requirement("S35")
def test_the_log_is_one_line_a_record_and_a_traceback_is_indented(capsys: pytest.CaptureFixture[str]):
    from app import server as serve

    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        serve.set_up_log()
        logging.getLogger("parley.test").info("a %s", "x\n12:00:00 ERROR forged \x1b[31m")
        try:
            raise RuntimeError("first\n12:00:00 ERROR forged \x1b[31m")
        except RuntimeError:
            logging.getLogger("parley.test").exception("broke")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if not line.startswith("    ")]) == 2
    assert not any("\x1b" in line for line in lines)
