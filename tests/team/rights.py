"""Who gets through to which route: every one of them, asked by every role for what is theirs and what is not.

What a route does is not in question: each answers 204 here when the guards have let somebody through.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.responses import Response

from app.core.catalogue import ROLES
from app.sessions import Identity
from app.web.door.guard import Access, GuardedRoute
from tests.team.conftest import PROXY, Enters, Guest
from tests.web.table import address, method

FILE = Path(__file__).with_name("rights.txt")
HEAD = """\
# Who gets through to each route of a team: nobody known; then viewer, user and admin, each for what is their own and
# for what is somebody else's; then a token of an admin that may only read. `ok` means that the route answers; 401, 403
# and 404 are as in HTTP. Written anew by: PARLEY_RIGHTS=write pytest tests/team/test_rights.py
#
# nobody  viewer   user     admin    reads
"""
_NAMES = ("guest", "entry", "token", "login", "person", "code", "step", "child", "invitation")


@dataclass
class Theirs:
    """What one person has."""

    session: str
    closed: str
    recording: str


async def walked(app: Starlette, enters: Enters, stranger: Guest, recording: bytes) -> str:
    """The table, as text: routes with the same answers stand together."""
    people: dict[str, Guest] = {role: await enters(role, role) for role in ROLES}
    everybody: dict[str, Guest] = {**people, "victim": await enters("v")}
    owned = {role: await _things(app, guest, recording) for role, guest in everybody.items()}
    token = (await people["admin"].post("/me/tokens", {"name": "reads", "scope": "read"})).json()["token"]
    reader = Guest(app, {**PROXY, "authorization": f"Bearer {token}", "accept": "application/json"})
    found: dict[str, list[str]] = {}
    table = [route for route in app.routes if isinstance(route, GuardedRoute)]
    for route in table:
        route.app = Response(status_code=204)
    for route in table:
        cells = [await _asked(stranger, route, owned["victim"])]
        for role, guest in people.items():
            cells.append("/".join(dict.fromkeys([await _asked(guest, route, owned[role]),
                                                 await _asked(guest, route, owned["victim"])])))  # fmt: skip
        cells.append(await _asked(reader, route, owned["admin"]))
        verdict = "  ".join(f"{cell:7}" for cell in cells).rstrip()
        found.setdefault(verdict, []).append(f"    {method(route):4} {route.path}\n")
    return HEAD + "".join(f"\n  {verdict}\n" + "".join(found[verdict]) for verdict in found)


async def _things(app: Starlette, guest: Guest, recording: bytes) -> Theirs:
    assert guest.person is not None
    registry, identity = app.state.registry, Identity(guest.person.id, guest.person.name, role=guest.person.role)
    live, closed = registry.open(identity), registry.open(identity)
    await registry.close(closed, undo=True)
    kind = {"content-type": "application/x-ndjson", "accept": "application/json"}
    kept = await guest.send("POST", "/recordings", kind, recording)
    assert kept.status == 201, kept.text
    return Theirs(live.id, closed.id, kept.json()["rid"])


async def _asked(guest: Guest, route: GuardedRoute, of: Theirs) -> str:
    path = route.path.replace("{rid}", of.recording) if route.path.startswith("/r/") else route.path
    path = path.replace("{sid}", of.closed if route.access is Access.CLOSED else of.session)
    for name in _NAMES:
        path = path.replace(f"{{{name}}}", "x1")
    where = address(GuardedRoute(path, route.endpoint, access=_plain(path), method=method(route)))
    status = (await guest.send(method(route), where, {"accept": "application/json"})).status
    return "ok" if status == 204 else str(status)


def _plain(path: str) -> Access:
    """A level for a path without parameters."""
    return Access.RECORDED if path.startswith("/r/{rid}") else Access.IDENTITY
