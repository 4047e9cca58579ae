"""A walk of all routes, all roles, own and foreign things equals a table."""

import os

import pytest
from starlette.applications import Starlette

from app.web.door.guard import GuardedRoute
from app.web.door.rights import Needs
from tests.drive import ROOT
from tests.team.conftest import Enters, Guest
from tests.team.rights import FILE, walked
from tests.web.table import method

OPEN = {Needs.PUBLIC, Needs.GUEST}
"""Nobody need be known: a guest brings the address of one ask, or of a room."""


@pytest.mark.requirement("T07", "S01", "S15")
async def test_the_walk_of_all_routes_equals_the_table(app: Starlette, enters: Enters, stranger: Guest):
    recording = (ROOT / "tests" / "recordings" / "v1-legacy.jsonl").read_bytes()
    table = [route for route in app.routes if isinstance(route, GuardedRoute)]
    declared = {(method(route), route.path): route.needs for route in table}
    found = await walked(app, enters, stranger, recording)
    if os.environ.get("PARLEY_RIGHTS") == "write":
        FILE.write_text(found, encoding="utf-8")
    assert found == FILE.read_text(encoding="utf-8"), "see the head of rights.txt for how it is written anew"
    # What the table says in general, whatever stands in it.
    verdict = ""
    for line in found.splitlines():
        if line.startswith("  ") and not line.startswith("    "):
            verdict = line
        elif line.startswith("    ") and (needs := declared[tuple(line.split())]) not in OPEN:  # type: ignore[index]
            nobody, viewer, user, admin, _ = verdict.split()
            assert nobody == "401", line
            if "{sid}" in line or "{rid}" in line:
                assert all(cell.endswith("404") for cell in (viewer, user, admin)), "an admin is no owner either"
            if needs is Needs.ADMIN:
                assert (viewer, user) == ("404", "404")
