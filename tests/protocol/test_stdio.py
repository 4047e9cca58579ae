"""The child process: its arguments, environment, directory and stderr; and what is refused before it starts."""

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.core.targets import StdioTarget
from app.protocol.links.stdio import INHERITED
from app.sessions import Session
from app.settings import Limits
from tests.drive import SERVERS, b64, call, connect, connected, echoes, raw_target, raws

LITERAL = [
    "; rm -rf /",
    "$(touch x)",
    "`id`",
    "a b\tc",
    "line\nbreak",
    "*",
    "~",
    "'\"\\",
    "é🌊",
    "",
    "--flag",
    "&& true",
    "%s",
]


async def about(session: Session) -> dict[str, Any]:
    return await session.result(await call(session, "x/about"))


@pytest.mark.requirement("S27", "R5-72")
async def test_arguments_reach_the_program_literally_and_no_shell_is_in_between(session: Session):
    target = raw_target()
    await connected(session, target.model_copy(update={"args": (*target.args, *LITERAL)}))
    told = await about(session)
    assert told["argv"][2:] == LITERAL
    assert told["pid"] == session.info.pid == told["sid"], "the child itself, in a session of its own"


@pytest.mark.requirement("S27", "R5-72")
async def test_environment_values_are_passed_literally(session: Session):
    given = {f"VALUE_{number}": text for number, text in enumerate(LITERAL)}
    target = raw_target()
    await connected(session, target.model_copy(update={"env": given}))
    env = (await about(session))["env"]
    assert {name: env[name] for name in given} == given


@pytest.mark.requirement("S28", "R5-71")
async def test_our_own_secrets_are_not_in_the_childs_environment(session: Session, monkeypatch: pytest.MonkeyPatch):
    secrets = [
        "PARLEY_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "HTTP_PROXY",
        "LD_PRELOAD",
        "PYTHONPATH",
        "DISPLAY",
    ]
    for name in secrets:
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("LANG", "C.UTF-8")
    target = raw_target()
    await connected(session, target.model_copy(update={"env": {"MINE": "1", "GITHUB_TOKEN": "given"}}))
    env = (await about(session))["env"]
    assert "canary" not in env.values()
    assert set(env) <= {*INHERITED, "MINE", "GITHUB_TOKEN"}
    assert (env["MINE"], env["GITHUB_TOKEN"], env["LANG"]) == ("1", "given", "C.UTF-8")
    assert env["PATH"] == os.environ["PATH"]


@pytest.mark.requirement("S27")
@pytest.mark.parametrize(
    "broken",
    [
        {"command": "a\0b"},
        {"command": ""},
        {"args": ("a\0",)},
        {"args": ("x" * 1_048_576,)},
        {"env": {"A": "\0"}},
        {"env": {"A": "x" * 1_048_576}},
        {"env": {"": "x"}},
        {"env": {"A=B": "x"}},
        {"env": {"A\0": "x"}},
        {"cwd": "\0"},
        {"shell": True},
    ],
)
def test_what_no_process_can_take_is_refused(broken: dict[str, Any]):
    with pytest.raises(ValidationError):
        StdioTarget(**{"command": "server", **broken})


@pytest.mark.requirement("S27")
async def test_an_environment_that_the_system_refuses_is_said_in_words(session: Session):
    target = raw_target().model_copy(update={"env": {f"V{n}": "x" * 130_000 for n in range(40)}})
    await connect(session, target)
    assert session.info.trouble is not None and "Argument list too long" in session.info.trouble.message


async def test_the_working_directory_is_the_one_that_was_asked_for(session: Session, tmp_path: Path):
    await connected(session, raw_target().model_copy(update={"cwd": str(tmp_path)}))
    assert (await about(session))["cwd"] == os.path.realpath(tmp_path)  # noqa: ASYNC240


@pytest.mark.requirement("F01")
async def test_a_command_that_cannot_start_is_said_in_words(session: Session, tmp_path: Path):
    plain = tmp_path / "plain.txt"
    plain.write_text("not a program")
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x00\x01\x02")
    garbage.chmod(garbage.stat().st_mode | stat.S_IXUSR)
    cases = [
        (StdioTarget(command="no-such-command-anywhere"), "not-found"),
        (StdioTarget(command=str(tmp_path / "missing")), "not-found"),
        (StdioTarget(command=str(plain)), "not-executable"),
        (StdioTarget(command=str(tmp_path)), "not-executable"),
        (StdioTarget(command=str(garbage)), "start"),
        (StdioTarget(command=sys.executable, cwd=str(tmp_path / "nowhere")), "cwd"),
    ]
    for target, kind in cases:
        await connect(session, target)
        assert session.info.state == "lost" and session.info.trouble is not None
        assert session.info.trouble.kind == kind, session.info.trouble
        assert session.info.trouble.message and session.info.trouble.advice
        assert session.info.pid is None
    await connected(session, raw_target())
    await echoes(session)


# --- stderr -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def limits() -> Limits:
    return Limits(stderr_lines=100, stderr_line_bytes=1_000)


@pytest.mark.requirement("R5-40", "F05")
async def test_stderr_is_kept_line_by_line_and_is_no_failure(session: Session):
    await connected(session, raw_target())
    await call(
        session, "x/stderr", {"base64": b64(b"plain\n\xff\xfe broken\n\ncaf\xc3\xa9\r\n\x1b[31mred\x1b[0m\nrest")}
    )
    await echoes(session)
    await session.disconnect()
    texts = [each.text for each in session.stderr.lines()]
    assert texts[:5] == ["plain", "\\xff\\xfe broken", "", "café\r", "\x1b[31mred\x1b[0m"]
    assert [each.number for each in session.stderr.lines()][:5] == [1, 2, 3, 4, 5]
    assert session.info.state == "closed" and session.info.trouble is None


@pytest.mark.requirement("R5-40")
async def test_stderr_is_bounded_in_lines_and_in_their_length(session: Session):
    await connected(session, raw_target())
    await call(session, "x/stderr", {"base64": b64(b"y" * 3_000 + b"\n" + b"".join(b"%d\n" % n for n in range(500)))})
    await call(session, "x/stderr", {"base64": b64(b"x" * 10_000 + b"\n")})
    await call(session, "x/exit", {"code": 0})
    assert len(session.stderr.lines()) == 100
    assert session.stderr.count >= 502
    assert all(len(each.text) < 1_100 for each in session.stderr.lines())
    assert any("more bytes" in each.text for each in session.stderr.lines())


@pytest.mark.requirement("R5-40")
async def test_nothing_but_messages_goes_to_stdin(session: Session):
    await connected(session, raw_target())
    await echoes(session)
    assert all(each.startswith(b'{"jsonrpc":"2.0"') and b"\n" not in each for each in raws(session, "out"))


def test_the_servers_of_the_tests_are_where_they_should_be():
    assert (SERVERS / "raw.py").is_file()
