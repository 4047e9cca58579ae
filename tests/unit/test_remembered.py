"""The file of digests: what is in it, who may read it, what two Parleys do to it, and what a broken one costs."""

import hashlib
import json
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from app.remembered import FILE, LOCK, Remembered, digest
from tests.drive import ROOT

AT = "parley_6280"
pytestmark = pytest.mark.requirement("U-S8")


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def opened(directory: Path, **more: object) -> Remembered:
    one = Remembered(directory, **more)  # type: ignore[arg-type]
    one.look()
    return one


def knows(one: Remembered, cookie: str) -> bool:
    one.look()
    return one.knows(digest(cookie), AT)


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow beyond a few bytes: what a full disk does to a write, without filling one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# -------------------------------------------------------------------------------------------------------- what is kept


@pytest.mark.requirement("S13")
def test_only_digests_are_kept_in_a_file_for_its_owner_alone(tmp_path: Path):
    one = opened(tmp_path / "data")
    one.admit(digest("the-cookie"), AT)
    command = hashlib.sha256(b"python server.py --token canary").hexdigest()
    one.agree("local", command, hashlib.sha256(b"python server.py").hexdigest())
    path = tmp_path / "data" / FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    text = path.read_text()
    assert hashlib.sha256(b"the-cookie").hexdigest() in text
    for secret in ("the-cookie", "canary", command, hashlib.sha256(b"python server.py").hexdigest()):
        assert secret not in text
    assert {child.name for child in path.parent.iterdir()} == {FILE, LOCK}


def test_it_is_known_to_the_next_process_and_only_under_its_name(tmp_path: Path):
    opened(tmp_path).admit(digest("a"), AT)
    later = opened(tmp_path)
    assert later.knows(digest("a"), AT)
    assert not later.knows(digest("a"), "parley_6281")
    assert not later.knows(digest("b"), AT)
    assert later.browsers == 1


def test_what_is_not_used_for_long_is_over_and_what_is_used_is_not(tmp_path: Path):
    clock = Clock()
    one = opened(tmp_path, login_seconds=100_000, wall=clock)
    for cookie in "ab":
        one.admit(digest(cookie), AT)
    clock.now += 60_000
    assert one.use(digest("a")), "worth a new date"
    assert not one.use(digest("a")), "once is enough for an hour"
    clock.now += 60_000
    later = opened(tmp_path, login_seconds=100_000, wall=clock)
    assert (knows(later, "a"), knows(later, "b"), later.browsers) == (True, False, 1)


def test_of_too_many_the_one_that_was_used_least_recently_goes(tmp_path: Path):
    for directory in (tmp_path, None):
        clock = Clock()
        one = Remembered(directory, logins=3, wall=clock)
        for cookie in "abc":
            clock.now += 1
            one.admit(digest(cookie), AT)
        clock.now += 1
        assert knows(one, "a")
        one.use(digest("a"))
        clock.now += 1
        one.admit(digest("d"), AT)
        assert [knows(one, cookie) for cookie in "abcd"] == [True, False, True, True]


def test_consent_is_for_exactly_one_command_and_one_person_until_it_is_forgotten(tmp_path: Path):
    opened(tmp_path).agree("local", "with one secret", of="the command")
    opened(tmp_path).agree("local", "with another", of="the command")
    opened(tmp_path).agree("local", "a different one", of="a different one")
    later = opened(tmp_path)
    assert later.agreed("local", "with one secret") and later.agreed("local", "with another")
    assert not later.agreed("mallory", "with one secret")
    assert not later.agreed("local", "the command")
    opened(tmp_path).disagree("local", of="the command")
    assert not later.agreed("local", "with one secret")
    assert not later.agreed("local", "with another")
    assert later.agreed("local", "a different one")


# ---------------------------------------------------------------------------------------------- two Parleys, one file


@pytest.mark.requirement("S13")
def test_who_is_signed_out_by_one_does_not_come_back_by_another(tmp_path: Path):
    clock = Clock()
    one, other = opened(tmp_path, wall=clock), opened(tmp_path, wall=clock)
    for cookie in "abc":
        one.admit(digest(cookie), AT)
    assert knows(other, "a")
    clock.now += 10_000
    assert one.end(digest("a")) == 1
    # The other one has it in memory, renews it, and writes for reasons of its own.
    other.use(digest("a"))
    other.use(digest("b"))
    other.admit(digest("d"), AT)
    other.agree("local", "x", of="x")
    for each in (one, other, opened(tmp_path)):
        assert [knows(each, cookie) for cookie in "abcd"] == [False, True, True, True]
    assert other.end(None) == 3
    assert not any(knows(one, cookie) for cookie in "abcd")


HAMMER = """
import sys
from pathlib import Path
from app.remembered import Remembered, digest
one, name = Remembered(Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for index in range(40):
    one.admit(digest(f"{name}{index}"), "parley_6280")
    if index % 4 == 0:
        assert one.end(digest(f"{name}{index}")) == 1
    one.agree("local", f"{name}{index}", of=name)
"""


def test_several_processes_lose_nothing_of_each_other(tmp_path: Path):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", HAMMER, str(tmp_path), name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "abc"
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.communicate("go\n", timeout=60)[0] == ""
        assert one.returncode == 0
    found = opened(tmp_path)
    for name in "abc":
        assert [knows(found, f"{name}{index}") for index in range(40)] == [index % 4 != 0 for index in range(40)]
        assert all(found.agreed("local", f"{name}{index}") for index in range(40))


# -------------------------------------------------------------------------------------------- what cannot be used


@pytest.mark.requirement("S13")
@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"version": 2}', '{"version": 1, "key": "00", "logins": {}, "consents": {}}', "[" * 9999],
)
def test_a_damaged_file_lets_nobody_in_and_is_replaced(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture):
    path = tmp_path / FILE
    path.write_text(text)
    path.chmod(0o600)
    one = opened(tmp_path)
    assert (one.browsers, one.trouble) == (0, "")
    assert "is damaged" in caplog.text
    one.admit(digest("a"), AT)
    assert knows(opened(tmp_path), "a")


def test_digests_that_were_put_in_by_hand_are_read_as_they_are_and_the_rest_counts_for_nothing(tmp_path: Path):
    one = opened(tmp_path)
    one.admit(digest("a"), AT)
    said = json.loads((tmp_path / FILE).read_text())
    said["logins"][digest("b").hex()] = [AT]
    (tmp_path / FILE).write_text(json.dumps(said))
    assert not knows(one, "a"), "a row that is not whole makes the file unfit"


@pytest.mark.requirement("S13")
def test_a_file_that_others_could_read_counts_as_empty(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    one = opened(tmp_path)
    one.admit(digest("a"), AT)
    (tmp_path / FILE).chmod(0o644)
    assert not knows(one, "a")
    assert not knows(opened(tmp_path), "a")
    assert "could be read by other users" in caplog.text
    one.admit(digest("b"), AT)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert (knows(one, "a"), knows(one, "b")) == (False, True)


def test_a_link_to_another_file_is_not_followed(tmp_path: Path):
    opened(tmp_path / "real").admit(digest("a"), AT)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / FILE).symlink_to(tmp_path / "real" / FILE)
    assert not knows(opened(tmp_path / "link"), "a")


def test_deleting_the_file_signs_everybody_out(tmp_path: Path):
    one = opened(tmp_path)
    one.admit(digest("a"), AT)
    (tmp_path / FILE).unlink()
    assert not knows(one, "a")


def test_on_a_full_disk_who_comes_in_stays_until_the_end_and_it_is_said(tmp_path: Path):
    one = opened(tmp_path)
    one.admit(digest("a"), AT)
    with full_disk():
        one.admit(digest("b"), AT)
        one.agree("local", "x", of="x")
    assert f"{tmp_path / FILE} cannot be used" in one.trouble
    assert (knows(one, "a"), knows(one, "b"), one.agreed("local", "x")) == (True, True, True)
    later = opened(tmp_path)
    assert (knows(later, "a"), knows(later, "b"), later.agreed("local", "x")) == (True, False, False)
    one.admit(digest("c"), AT)
    assert one.trouble == "", "there is room again"
    assert {child.name for child in tmp_path.iterdir()} == {FILE, LOCK}, "no half of a file is left"


@pytest.mark.requirement("S13")
def test_signing_out_on_a_full_disk_signs_out(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    one = opened(tmp_path)
    for cookie in "ab":
        one.admit(digest(cookie), AT)
    with full_disk():
        assert one.end(digest("a")) == 1
    assert one.trouble == ""
    assert "was deleted, for it could not be written" in caplog.text
    for each in (one, opened(tmp_path)):
        assert (knows(each, "a"), knows(each, "b")) == (False, False)


def test_signing_out_where_nothing_can_be_written_holds_here_and_is_said(tmp_path: Path):
    one = opened(tmp_path)
    one.admit(digest("a"), AT)
    (tmp_path / LOCK).unlink()
    (tmp_path / LOCK).mkdir()
    assert one.end(digest("a")) == 1
    assert f"{tmp_path / FILE} cannot be used" in one.trouble
    assert not knows(one, "a")
    one.admit(digest("b"), AT)
    assert (knows(one, "a"), knows(one, "b")) == (False, True)


@pytest.mark.requirement("S13")
def test_what_could_not_be_taken_back_in_the_file_is_taken_back_as_soon_as_it_can_be(tmp_path: Path):
    one = opened(tmp_path)
    for cookie in "ab":
        one.admit(digest(cookie), AT)
    for command in "xy":
        one.agree("local", command, of=command)
    (tmp_path / LOCK).unlink()
    (tmp_path / LOCK).mkdir()
    one.end(digest("a"))
    one.disagree("local", of="x")
    assert (one.agreed("local", "x"), one.agreed("local", "y")) == (False, True)
    (tmp_path / LOCK).rmdir()
    one.admit(digest("c"), AT)
    for each in (one, opened(tmp_path)):
        assert [knows(each, cookie) for cookie in "abc"] == [False, True, True]
        assert (each.agreed("local", "x"), each.agreed("local", "y")) == (False, True)
    one.agree("local", "x", of="x")
    assert one.agreed("local", "x") and opened(tmp_path).agreed("local", "x")


def test_without_a_directory_it_is_memory(tmp_path: Path):
    one = Remembered(None)
    one.admit(digest("a"), AT)
    one.agree("local", "x", of="x")
    assert (knows(one, "a"), one.agreed("local", "x"), one.lasts) == (True, True, False)
    assert one.end(None) == 1
    one.disagree("local", of="x")
    assert (knows(one, "a"), one.agreed("local", "x")) == (False, False)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another Parley stands still while it holds the lock."""
    script = (
        "import fcntl, sys; file = open(sys.argv[1], 'a'); fcntl.flock(file, fcntl.LOCK_EX); print('held', flush=True)"
    )
    holds = subprocess.Popen(
        [sys.executable, "-c", script + "; sys.stdin.read()", str(tmp_path / LOCK)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holds.stdout is not None
    assert holds.stdout.readline() == "held\n"
    yield holds
    if holds.poll() is None:
        holds.communicate("")


def test_whoever_does_not_get_the_file_says_so(tmp_path: Path, request: pytest.FixtureRequest):
    one = opened(tmp_path)
    one.admit(digest("a"), AT)
    request.getfixturevalue("held")
    one.end(digest("a"))
    assert "another Parley holds" in one.trouble
    assert not knows(one, "a")


@pytest.mark.anyio
async def test_the_event_loop_goes_on_while_another_parley_holds_the_file(tmp_path: Path, held: subprocess.Popen[str]):
    """Whoever waits for the file lets everybody else go on, and has it as soon as it is free."""
    one = opened(tmp_path)
    turns, done = 0, False

    async def change() -> None:
        nonlocal done
        async with one.alone():
            one.admit(digest("a"), AT)
        done = True

    async with anyio.create_task_group() as group:
        group.start_soon(change)
        while turns < 10:
            await anyio.sleep(0.001)
            turns += 1
        assert not done
        held.communicate("")
    assert done and not one.trouble
    assert knows(opened(tmp_path), "a")


@pytest.mark.anyio
async def test_who_waited_in_vain_says_so_and_what_was_changed_holds(tmp_path: Path, held: subprocess.Popen[str]):
    one = opened(tmp_path)
    async with one.alone():
        one.admit(digest("a"), AT)
        one.agree("local", "x", of="x")
    assert "another Parley holds" in one.trouble
    assert knows(one, "a") and one.agreed("local", "x")
    held.communicate("")
    async with one.alone():
        one.admit(digest("b"), AT)
    assert not one.trouble and knows(opened(tmp_path), "b")


@pytest.mark.anyio
async def test_two_that_wait_come_one_after_the_other(tmp_path: Path):
    one, two = opened(tmp_path), opened(tmp_path)

    async def change(who: Remembered, name: str) -> None:
        async with who.alone():
            who.admit(digest(name), AT)

    async with anyio.create_task_group() as group:
        for at in range(10):
            group.start_soon(change, (one, two)[at % 2], str(at))
    assert all(knows(opened(tmp_path), str(at)) for at in range(10))
