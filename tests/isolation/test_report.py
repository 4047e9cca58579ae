"""What a machine lacks is said: one line for each wall, and one sentence when all of them are required."""

import errno
import os
import stat
from pathlib import Path

import pytest

from app.isolation import CannotConfine, Isolation, Line, Users, Walls, Wanted, look, memory_of_all
from tests.isolation.walls import USERS

pytestmark = pytest.mark.requirement("T02")
NAMES = [
    "Own user",
    "Sandbox",
    "No new privileges",
    "Memory of all",
    "Memory of a process",
    "Processes, files, CPU",
    "Network",
    "Environment",
]


def test_a_machine_without_any_tool_says_what_it_lacks(tmp_path: Path):
    found = look("", str(tmp_path))
    assert [line.name for line in found.lines] == NAMES
    missing = {line.name for line in found.missing}
    assert missing >= {"Own user", "Sandbox", "No new privileges", "Memory of a process", "Network"}
    assert "Environment" not in missing
    assert "bwrap is not installed" in found.refusal
    assert found.refusal.startswith('isolation = "required" refuses to start')
    assert "\n" not in found.refusal


def test_tools_that_do_not_work_are_missing(tmp_path: Path):
    for name in ("setpriv", "prlimit", "bwrap"):
        tool = tmp_path / name
        tool.write_text("#!/bin/sh\nexit 1\n")
        tool.chmod(0o755)
    found = look("", str(tmp_path))
    assert found.walls == Walls()
    assert "bwrap is here and does not work" in found.refusal


def test_what_this_machine_has_is_on():
    found = look(USERS if os.geteuid() == 0 else "")
    states = {line.name: line.state for line in found.lines}
    assert states["Environment"] == "on"
    assert (states["Own user"] == "on") is found.walls.switch
    assert (states["Sandbox"] == "on") is (found.walls.bwrap is not None)
    assert (found.refusal == "") is (not found.missing)


def test_nothing_is_refused_where_nothing_is_missing():
    assert Isolation(Walls(), [Line("Sandbox", "on", "It works.")]).refusal == ""


@pytest.mark.parametrize(
    "setting", ["0", "0-5", "5-1", "1-100000", "root", "nobody-at-all-here", "-", "1-x", "4294967296"]
)
def test_a_setting_that_names_nobody_is_refused_in_one_sentence(setting: str):
    with pytest.raises(CannotConfine, match="child_user = "):
        Users(setting)


@pytest.mark.parametrize(("setting", "many"), [("", 0), ("61000", 1), ("61000-61003", 4)])
def test_users_are_one_or_a_range(setting: str, many: int):
    assert len(Users(setting)) == many


@pytest.mark.parametrize(
    ("mode", "content", "expected"),
    [
        (0o755, None, errno.ENOENT),
        (0o644, "#!/bin/sh\n", errno.EACCES),
        (0o755, "echo this would go to a shell\n", errno.ENOEXEC),
    ],
)
def test_a_command_that_the_system_cannot_run_is_refused(tmp_path: Path, mode: int, content: str | None, expected: int):
    program = tmp_path / "program"
    if content is not None:
        program.write_text(content)
        program.chmod(mode)
    with pytest.raises(OSError) as fault, Isolation(Walls(), ()).start(Wanted(str(program))):
        pass
    assert fault.value.errno == expected


def test_a_home_is_for_its_child_alone_and_goes():
    with Isolation(Walls(), ()).start(Wanted("sh")) as start:
        home = Path(start.env["HOME"])
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        (home / "left").write_text("x")
    assert not home.exists()


@pytest.mark.parametrize(
    ("said", "files", "expected"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "1048576"}, 1048576),
        ("0::/a\n", {"a/memory.max": "max"}, None),
        ("0::/a\n", {}, None),
        ("4:memory:/x\n0::/\n", {"memory/x/memory.limit_in_bytes": "2097152"}, 2097152),
        ("4:memory:/x\n", {"memory/x/memory.limit_in_bytes": "9223372036854771712"}, None),
        ("4:cpu,memory:/x\n", {"memory/memory.limit_in_bytes": "4096"}, 4096),
        ("3:cpu:/x\n", {"memory/x/memory.limit_in_bytes": "4096"}, None),
    ],
)
def test_the_memory_of_all_is_what_the_control_group_says(
    tmp_path: Path, said: str, files: dict[str, str], expected: int | None
):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory_of_all(tmp_path, said) == expected
