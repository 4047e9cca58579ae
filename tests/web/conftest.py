"""The four who come to the door: `client` (logged in), `stranger` (no cookie), `mallory` (somebody else), `script`."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.applications import Starlette

from app.sessions import Identity, Session
from app.sessions.identity import LOCAL
from app.settings import Limits, Settings, local
from app.web.app import create_app
from tests.drive import until
from tests.web.asgi import PORT, TOKEN, Visitor, browser
from tests.web.shelf import Shelf, shelf


@pytest.fixture
def settings(limits: Limits) -> Settings:
    return local(port=PORT, token=TOKEN, limits=limits)


@pytest.fixture
def codes() -> list[str]:
    """The launch codes that the terminal printed after the first."""
    return []


@pytest.fixture
async def app(settings: Settings, codes: list[str]) -> AsyncIterator[Starlette]:
    application = create_app(settings, announce=codes.append)
    async with application.router.lifespan_context(application):
        await application.state.loaded.wait()
        yield application


@pytest.fixture
def client(app: Starlette) -> Visitor:
    return browser(app, app.state.visitors.admit(LOCAL))


@pytest.fixture
def mallory(app: Starlette) -> Visitor:
    return browser(app, app.state.visitors.admit(Identity("mallory", "Mallory")))


@pytest.fixture
def stranger(app: Starlette) -> Visitor:
    return Visitor(app, {"accept": "text/html"})


@pytest.fixture
def script(app: Starlette) -> Visitor:
    return Visitor(app, {"authorization": f"Bearer {TOKEN}", "accept": "application/json"})


@pytest.fixture
def victim(app: Starlette) -> Session:
    """A session of the one who is logged in."""
    opened: Session = app.state.registry.open(LOCAL)
    return opened


@pytest.fixture
async def opened(app: Starlette, script: Visitor, client: Visitor) -> Any:
    """Opens a session with the shelf, which behaves as it is told."""

    async def open_shelf(options: dict[str, Any] | None = None, **settings: Any) -> Shelf:
        body = {"target": shelf(**settings), "options": {"era": "legacy"} | (options or {})}
        path = (await script.post("/s", body)).json()["url"]
        told = await script.json(f"{path}?wait=20")
        assert told["connection"]["state"] == "ready", told
        found = Shelf(app, script, client, path)
        await until(found.session, lambda: found.session.tools.state != "loading")
        return found

    return open_shelf
