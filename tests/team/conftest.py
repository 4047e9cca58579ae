"""A Parley for a team over ASGI, as its proxy would ask it: people who came in by invitations, and their browsers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app.core.catalogue import Role
from app.core.people import Person
from app.isolation import Isolation, Line, Walls
from app.sessions import Session
from app.team_settings import TeamSettings
from app.web.team.app import create_team_app
from app.web.team.house import House
from tests.drive import SERVERS, until
from tests.isolation.walls import PYTHON
from tests.web.asgi import Answer, Visitor

HOST = "parley.example"
ORIGIN = f"https://{HOST}"
PROXY = {"x-forwarded-proto": "https", "x-forwarded-for": "203.0.113.7"}


@dataclass
class Guest(Visitor):
    """Somebody who comes through the proxy."""

    person: Person | None = None
    cookies: list[str] = field(default_factory=list)

    async def send(self, method: str, path: str, headers: Any = None, body: Any = b"", *, host: Any = HOST) -> Answer:
        return await super().send(method, path, headers, body, host=host)


@pytest.fixture
def settings(tmp_path: Path) -> TeamSettings:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    raw = {"transport": "stdio", "command": PYTHON or "python3", "reads": [str(SERVERS)]}
    catalogue = {
        "raw": {**raw, "name": "Raw", "args": ["-I", "-S", str(SERVERS / "raw.py"), "plain"]},
        "region": {**raw, "name": "By region", "variables": [{"name": "REGION", "values": ["north", "south"]}]},
        "wiki": {"transport": "http", "url": "http://wiki.internal:8080/mcp", "roles": ["viewer", "user", "admin"]},
        "secret": {"transport": "demo", "roles": ["admin"]},
    }
    return TeamSettings(public_url=ORIGIN, data_dir=data, catalogue=catalogue)


@pytest.fixture
async def app(settings: TeamSettings) -> AsyncIterator[Starlette]:
    house = House(settings, Isolation(Walls(), [Line("Sandbox", "missing", "bwrap is not installed.")]))
    application = create_team_app(house)
    async with application.router.lifespan_context(application):
        await application.state.loaded.wait()
        await application.state.registry.until_ready()
        yield application


@pytest.fixture
def house(app: Starlette) -> House:
    found: House = app.state.house
    return found


@pytest.fixture
def stranger(app: Starlette) -> Guest:
    page = {"sec-fetch-site": "same-origin", "origin": ORIGIN, "accept": "text/html"}
    return Guest(app, {**PROXY, **page})


async def session_of(guest: Guest, app: Starlette, entry: str) -> Session:
    """A session of somebody that is connected to a server of the catalogue."""
    made = await guest.post(f"/catalogue/{entry}/connect", {})
    assert made.status == 201, made.text
    found = next(one for one in app.state.registry.everybodys() if one.id == made.json()["id"])
    assert isinstance(found, Session)
    await until(found, lambda: found.info.state == "ready")
    return found


Enters = Callable[..., Awaitable[Guest]]


@pytest.fixture
def enters(app: Starlette, house: House, stranger: Guest) -> Enters:
    """Lets somebody in by an invitation, as a browser does it."""

    async def enter(name: str, role: Role = "user") -> Guest:
        code, _ = await house.people.invite(name, role, "test", 3600)
        answer = await stranger.form(f"/invite/{code}")
        assert (answer.status, answer.header("location")) == (303, "/"), answer.text
        cookie = (answer.header("set-cookie") or "").partition(";")[0]
        person = next(one for one in house.people.all() if one.name == name)
        return Guest(
            app, {**stranger.headers, "cookie": cookie}, person=person, cookies=[answer.header("set-cookie") or ""]
        )

    return enter
