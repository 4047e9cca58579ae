"""What those who run servers may not read is found before one is started, and named."""

import stat
from pathlib import Path

import pytest

from app.core.catalogue import Entry
from app.isolation import Isolation, Walls, Wanted
from app.protocol.links.confined import cannot_start
from app.reach import closed_to
from tests.isolation.walls import PYTHON, switching, walls

pytestmark = pytest.mark.requirement("T02")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program in a directory of its own, open to everybody. Those of pytest are not."""
    for place in (tmp_path, *tmp_path.parents):
        if place.owner() == Path(tmp_path).owner() and not place.stat().st_mode & stat.S_IXOTH:
            place.chmod(place.stat().st_mode | stat.S_IXOTH)
    at = tmp_path / "own" / "server"
    at.parent.mkdir(mode=0o755)
    at.write_text("#!/bin/sh\n", encoding="utf-8")
    at.chmod(0o755)
    return at


def test_a_closed_directory_on_the_way_is_named(program: Path, tmp_path: Path):
    found = switching(walls("limits"))
    wanted = Wanted(str(program), reads=(str(tmp_path / "own"),))
    assert closed_to(found, wanted) == ""
    (tmp_path / "own").chmod(0o700)
    assert closed_to(found, wanted) == str(tmp_path / "own")
    entry = Entry(id="one", name="One", transport="stdio", command=str(program))
    assert cannot_start(entry, found).startswith(f"{tmp_path / 'own'} is not open to the users that servers run as.")
    assert closed_to(Isolation(Walls(), ()), wanted) == "", "whoever runs Parley may read it"


def test_a_program_of_the_system_is_open(program: Path):
    assert closed_to(switching(walls("limits")), Wanted(PYTHON, ("-V",))) == ""
