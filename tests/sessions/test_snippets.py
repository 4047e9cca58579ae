"""Copied calls run as they are: the shell script on curl and the Python program, against real servers, with the same
result; and no secret is in them."""

import ast
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.calls import Call
from app.core.errors import Conflict
from app.core.targets import DemoTarget, HttpTarget, StdioTarget
from app.export import snippets
from app.sessions import Session
from app.web.calls.snippets import made
from tests import drive
from tests.bench.processes import demo_over_http
from tests.drive_http import everything_web, raw_web, sdk_web

HEADER = "the-value-of-the-header"


@pytest.fixture(scope="module")
def demo_url() -> Iterator[str]:
    with demo_over_http() as url:
        yield url


async def run(text: str, kind: str, folder: Path, **env: str) -> str:
    """What a snippet prints, run as it is."""
    assert shutil.which("curl") or kind != "curl", "curl is not on this machine: install it, the copied script needs it"
    file = folder / ("call.sh" if kind == "curl" else "call.py")
    file.write_text(text, encoding="utf-8")
    command = ["sh", str(file)] if kind == "curl" else [sys.executable, str(file)]
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(
            command, env={**os.environ, **env}, cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
    )
    assert done.returncode == 0, f"{done.stderr}\n{text}"
    return done.stdout


def answered(printed: str, kind: str) -> Any:
    """The result in what was printed: all of it, or the message with the id of the call."""
    if kind == "python":
        return json.loads(printed)
    messages = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return next(each["result"] for each in messages if each.get("id") == 2)


async def same(session: Session, call: Call, kind: Any, folder: Path, **env: str) -> str:
    """The snippet gives what the call gave; returns its text."""
    text = made(session, call, kind)
    printed = await run(text, kind, folder, **env)
    assert answered(printed, kind) == await session.result(call), text
    return text


CALLS: list[tuple[str, dict[str, Any] | None]] = [
    ("tools/call", {"name": "add", "arguments": {"a": 2, "b": 40.5}}),
    ("tools/call", {"name": "echo", "arguments": {"message": "it's \"quoted\" $HOME `x` \\ é\n'''"}}),
    ("prompts/get", {"name": "plan_weekend", "arguments": {"destination": "kestrelholm"}}),
    ("resources/read", {"uri": "desk://hours"}),
    ("resources/templates/list", None),
]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_curl_and_python_over_http(session: Session, demo_url: str, era: str, tmp_path: Path):
    await drive.connected(session, HttpTarget(transport="http", url=demo_url), era=era)
    for method, params in CALLS if era == "legacy" else CALLS[1:3]:
        call = await drive.call(session, method, params)
        assert call.state == "done", call.error
        await same(session, call, "curl", tmp_path)
        # Of Python, which takes its time to start, one call by a method of the SDK and one without.
        if method in {"prompts/get", "resources/templates/list"}:
            await same(session, call, "python", tmp_path)


async def test_python_over_stdio_to_the_demo_and_to_another_server(session: Session, tmp_path: Path):
    await drive.connected(session, DemoTarget(), era="legacy")
    for method, params in (CALLS[1], ("ping", None)):
        await same(session, await drive.call(session, method, params), "python", tmp_path)
    with pytest.raises(Conflict, match="curl speaks HTTP"):
        made(session, await drive.call(session, "ping"), "curl")


async def test_a_server_without_sessions_and_one_on_the_older_transport(session: Session, tmp_path: Path):
    params = {"name": "echo", "arguments": {"message": "hello"}}
    with sdk_web("sdk1", "sse") as peer:
        await drive.connected(session, peer.older(), era="legacy")
        call = await drive.call(session, "tools/call", params)
        await same(session, call, "python", tmp_path)
        with pytest.raises(Conflict, match="second stream"):
            made(session, call, "curl")
        await session.disconnect()
    with everything_web("http") as peer:
        await drive.connected(session, peer.target(), era="legacy")
        call = await drive.call(session, "tools/call", params)
        await same(session, call, "curl", tmp_path)


async def test_secrets_are_left_out_and_come_from_the_environment(session: Session, tmp_path: Path):
    with raw_web() as peer:
        url = peer.url() + "?api_key=canary-in-the-address&plain=1"
        target = HttpTarget(transport="http", url=url, headers={"Authorization": HEADER, "X-Team": "ours"})
        await drive.connected(session, target, era="legacy")
        call = await drive.call_tool(session, "echo", {"message": "hello"})
        env = {"AUTHORIZATION": HEADER, "X_TEAM": "ours", "API_KEY": "canary-in-the-address"}
        for kind in ("curl", "python"):
            before = len(peer.requests("POST"))
            text = await same(session, call, kind, tmp_path, **env)
            assert HEADER not in text and "canary" not in text and "plain=1" in text
            sent = peer.requests("POST")[before:]
            assert sent and all(each.headers["authorization"] == HEADER for each in sent)
            assert all("api_key=canary-in-the-address" in each.path for each in sent)
        refused = await anyio.to_thread.run_sync(
            lambda: subprocess.run(["sh", str(tmp_path / "call.sh")], capture_output=True, text=True, check=False)
        )
        assert refused.returncode != 0 and "API_KEY" in refused.stderr


@pytest.mark.requirement("B13")
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_b13_a_snippet_calls_the_address_that_the_server_redirected_to(
    session: Session, tmp_path: Path, era: str
):
    with raw_web(moved={"/old": {"status": 307, "location": "/mcp"}}) as peer:
        url = peer.url("/old") + "?api_key=canary-in-the-address"
        await drive.connected(session, HttpTarget(transport="http", url=url), era=era)
        call = await drive.call_tool(session, "echo", {"message": "hello"})
        for kind in ("curl", "python"):
            before = len(peer.requests())
            text = await same(session, call, kind, tmp_path, API_KEY="canary-in-the-address")
            assert "canary" not in text
            assert {each.path for each in peer.requests()[before:]} == {"/mcp?api_key=canary-in-the-address"}


@pytest.mark.requirement("B13")
@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("status", [302, 307, 503])
async def test_b13_the_shell_script_fails_where_the_server_gives_no_result(
    session: Session, tmp_path: Path, status: int, modern: bool
):
    with raw_web(moved={"/old": {"status": status, "location": "/mcp"}}) as peer:
        await drive.connected(session, peer.target(), era="legacy")
        call = await drive.call_tool(session, "echo", {"message": "hello"})
        text = snippets.as_curl(call, snippets.Wire(peer.target("/old"), "http", "2025-11-25", modern))
        (tmp_path / "call.sh").write_text(text, encoding="utf-8")
        done = await anyio.to_thread.run_sync(
            lambda: subprocess.run(["sh", str(tmp_path / "call.sh")], capture_output=True, text=True, check=False)
        )
        assert done.returncode != 0 and str(status) in done.stderr, text
        assert ("location: /mcp" in done.stderr) == (status < 400 or modern)


@pytest.mark.requirement("H05")
async def test_h05_a_snippet_runs_with_the_secrets_of_the_command_line(session: Session, tmp_path: Path):
    seen = tmp_path / "arguments"
    server = shlex.join([sys.executable, *drive.raw_target().args])
    script = f"printf '%s\\n' \"$@\" >{shlex.quote(str(seen))}; exec {server}"
    secrets = ("--api-key=canary-1", "--password", "canary 2", "postgres://u:canary-3@h/db", '{"token": "canary-4"}')
    target = StdioTarget(command="sh", args=("-c", script, "sh", *secrets, "--port=1"))
    await drive.connected(session, target, era="legacy")
    call = await drive.call_tool(session, "echo", {"message": "hello"})
    seen.unlink()
    env = {"API_KEY": "canary-1", "PASSWORD": "canary 2", "URL_CREDENTIALS": "u:canary-3", "TOKEN": "canary-4"}
    text = await same(session, call, "python", tmp_path, **env)
    assert "canary" not in text and "--port=1" in text
    assert seen.read_text(encoding="utf-8").splitlines() == [*secrets, "--port=1"]


def wire(target: Any) -> snippets.Wire:
    return snippets.Wire(target, "stdio", "2025-11-25", False)


def test_a_process_gets_its_environment_by_name_and_a_notification_has_no_result():
    target = StdioTarget(command="server", args=("--a b",), env={"TOKEN": "canary"}, cwd="/srv")
    call = Call("c1", "notifications/x", {"a": None}, 0, 0, notification=True)
    text = snippets.as_python(call, wire(target))
    assert "canary" not in text and "env={'TOKEN': os.environ['TOKEN']}" in text and "cwd='/srv'" in text
    compile(text, "snippet", "exec")
    assert json.loads(snippets.as_json(call)) == {"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": None}}


def test_a_hostile_name_ends_no_comment_and_no_text():
    name = '"""\nimport os; os.abort()\n#\n$(reboot) `x` \'\nJSON\n'
    call = Call("c1", "tools/call", {"name": name, "arguments": {"a": name}}, 0, 0)
    program = snippets.as_python(call, wire(DemoTarget()))
    kinds = [type(each).__name__ for each in ast.parse(program).body]
    assert kinds == ["Expr", "Import", *["ImportFrom"] * 2, "AsyncFunctionDef", "Expr"], program
    http = snippets.Wire(HttpTarget(transport="http", url="http://h/$(x)"), "http", "2025-11-25", False)
    script = snippets.as_curl(call, http)
    assert 'url="http://h/\\$(x)"' in script
    assert [line for line in script.splitlines() if line == "JSON"] == ["JSON"] * 3
