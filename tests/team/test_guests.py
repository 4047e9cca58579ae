"""Guests of a team: the phones of a room come in by the proxy, at an address of their own, and reach nothing else."""

import pytest
from starlette.applications import Starlette

from app.web.door.guard import Access, GuardedRoute
from tests.team.conftest import ORIGIN, Enters, Guest
from tests.web.table import method

pytestmark = pytest.mark.requirement("T07")


@pytest.mark.requirement("S01", "S15")
async def test_a_phone_comes_in_by_the_proxy_of_the_team(app: Starlette, enters: Enters, stranger: Guest):
    owner = await enters("Grace", "user")
    assert owner.person is not None
    made = await owner.post("/catalogue/raw/connect", {})
    sid = made.json()["id"]
    opened = await owner.post(f"/s/{sid}/room", {"seconds": 60})
    assert opened.status == 201, opened.text
    address = opened.json()["address"]
    assert address.startswith(f"{ORIGIN}/j/")
    page = await stranger.get(address.removeprefix(ORIGIN))
    cookie = page.header("set-cookie") or ""
    assert page.status == 200 and "You are in the room" in page.text and "; Secure" in cookie
    stranger.headers["cookie"] = cookie.partition(";")[0]
    guests = {
        (method(route), route.path)
        for route in app.routes
        if isinstance(route, GuardedRoute) and route.access is Access.GUEST
    }
    assert guests == {
        ("GET", "/answer/{guest}"),
        ("POST", "/answer/{guest}"),
        ("GET", "/j/{guest}"),
        ("POST", "/j/{guest}"),
        ("GET", "/j/{guest}/now"),
    }
    for path in ("/", f"/s/{sid}", f"/s/{sid}/room", "/people", "/me"):
        assert (await stranger.get(path)).status == 401, path
    other = await enters("Mallory", "user")
    assert (await other.post(f"/s/{sid}/room/close")).status == 404
    assert (await owner.post(f"/s/{sid}/room/close")).status == 200
    assert (await stranger.get(address.removeprefix(ORIGIN))).status == 404
    assert app.state.registry.rooms == {}
