"""How tests of the web go through a sign-in, as a script and a person's browser would."""

from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette

from app.sessions import Session
from tests.drive_oauth import Harbour
from tests.web.asgi import Visitor


def session_of(app: Starlette, path: str) -> Session:
    """The session behind a path."""
    found = app.state.registry._sessions[path.removeprefix("/s/")]
    assert isinstance(found, Session)
    return found


async def begun(script: Visitor, harbour: Harbour, **auth: Any) -> str:
    """A session on the protected server, once its sign-in has come to rest; its path."""
    target: dict[str, Any] = {"transport": "http", "url": harbour.resource}
    answer = await script.post("/s", {"target": target | ({"auth": auth} if auth else {})})
    assert answer.status == 201, answer.text
    path: str = answer.json()["url"]
    await script.json(f"{path}?wait=30")
    await script.json(f"{path}/sign-in?wait=30")
    return path


async def rested(script: Visitor, path: str) -> Any:
    """The sign-in, once nothing more happens by itself."""
    return await script.json(f"{path}/sign-in?wait=30")


async def allowed(script: Visitor, stranger: Visitor, harbour: Harbour, path: str) -> Any:
    """The person agrees in their browser, which comes back to Parley; the sign-in after that."""
    found = await rested(script, path)
    assert found["state"] == "waiting", found
    back = urlsplit(harbour.allow(found["authorization_url"]))
    answer = await stranger.get(f"{back.path}?{back.query}")
    assert answer.status == 200, answer.text
    return await rested(script, path)


async def signed_in(script: Visitor, stranger: Visitor, harbour: Harbour, **auth: Any) -> str:
    """A session that is signed in and connected; its path."""
    path = await begun(script, harbour, **auth)
    assert (await allowed(script, stranger, harbour, path))["state"] == "signed_in"
    told = await script.json(f"{path}?wait=30")
    assert told["connection"]["state"] == "ready", told["connection"]
    return path
