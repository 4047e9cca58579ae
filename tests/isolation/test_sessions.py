"""A session of a team: its server is an entry of the catalogue, behind the walls; anything else is not started."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from app.core.catalogue import Catalogue, Entry, Variable
from app.core.targets import DemoTarget, StdioTarget
from app.protocol.links.confined import opener
from app.sessions import Session, SessionRegistry
from app.settings import local
from tests.conftest import Processes
from tests.drive import ME, SERVERS, connect, connected, echoes, raws
from tests.isolation.walls import PYTHON, walls

pytestmark = pytest.mark.requirement("T01", "T03")
KINDS = ("sandbox", "users")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text("canary-of-the-admin\n")
    return file


@pytest.fixture
def listed(secret: Path) -> list[Entry]:
    """What the catalogue of the test has at a moment."""
    variables = (Variable(name="REGION", values=("north", "south")), Variable(name="TOKEN", file=str(secret)))
    args = ("-I", "-S", str(SERVERS / "raw.py"), "plain")
    entry = Entry(
        id="raw", name="Raw", transport="stdio", command=PYTHON, args=args, variables=variables, reads=(str(SERVERS),)
    )
    return [entry, entry.model_copy(update={"id": "broken", "command": "/opt/not/there"})]


@pytest.fixture(params=KINDS)
async def session(request: pytest.FixtureRequest, listed: list[Entry], processes: Processes) -> AsyncIterator[Session]:
    opens = opener(lambda: Catalogue(tuple(listed)), walls(request.param))
    async with SessionRegistry(local(), open_link=opens) as registry:
        await registry.until_ready()
        yield registry.open(ME)


def variables_of(pid: int) -> dict[str, str]:
    """The environment of the server itself, not of what started it."""
    inner = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)][-1]
    return inner.environ()


async def test_a_server_of_the_catalogue_answers_from_behind_the_walls(session: Session, listed: list[Entry]):
    target = listed[0].target({"REGION": "north"})
    await connected(session, target)
    await echoes(session)
    assert session.info.pid is not None
    found = variables_of(session.info.pid)
    assert (found["REGION"], found["TOKEN"]) == ("north", "canary-of-the-admin")
    assert found["HOME"] != os.environ.get("HOME")
    # What an admin wrote is nowhere in what people see.
    seen = b"".join(raws(session, "out")) + str(session.target).encode() + str(session.info).encode()
    assert b"canary" not in seen and PYTHON.encode() not in seen
    pid = session.info.pid
    await session.disconnect()
    assert not psutil.pid_exists(pid)
    assert not os.path.exists(found["HOME"])  # noqa: ASYNC240, PTH110


async def test_nothing_else_is_started(session: Session, processes: Processes):
    for target in (
        StdioTarget(command=PYTHON, args=("-c", "pass")),
        StdioTarget(command="catalogue:raw"),
        StdioTarget(command="catalogue:raw", env={"REGION": "north", "TOKEN": "mine"}),
        StdioTarget(command="catalogue:raw", args=("-x",), env={"REGION": "north"}),
        StdioTarget(command="catalogue:none", env={"REGION": "north"}),
        DemoTarget(),
    ):
        await connect(session, target)
        assert session.info.trouble is not None
        assert (session.info.trouble.kind, processes.pids) == ("not-in-catalogue", []), target


async def test_what_was_taken_out_of_the_catalogue_starts_no_more(session: Session, listed: list[Entry]):
    target = listed[0].target({"REGION": "north"})
    await connected(session, target)
    listed.clear()
    await echoes(session)
    await session.disconnect()
    await connect(session, target)
    assert session.info.trouble is not None and session.info.trouble.kind == "not-in-catalogue"


async def test_a_broken_entry_says_so_and_does_not_say_what_it_is(session: Session, listed: list[Entry], secret: Path):
    await connect(session, StdioTarget(command="catalogue:broken", env={"REGION": "north"}))
    assert session.info.trouble is not None
    assert session.info.trouble.message == "The command Raw was not found."
    assert "admin" in session.info.trouble.advice
    os.unlink(secret)  # noqa: PTH108
    await connect(session, StdioTarget(command="catalogue:raw", env={"REGION": "north"}))
    assert session.info.trouble is not None
    assert str(secret) not in session.info.trouble.message
    assert session.info.trouble.message == "A value that Raw needs cannot be read."
