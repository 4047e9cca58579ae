"""A session with tests/servers/shelf.py, a process of raw JSON-RPC that remembers every message it read."""

import html
import json
import sys
from typing import Any

from starlette.applications import Starlette

from app.sessions import Session
from tests.drive import SERVERS
from tests.web.asgi import Answer, Visitor

HTMX = {"hx_request": "true"}


def shelf(**settings: Any) -> dict[str, Any]:
    args = [str(SERVERS / "shelf.py"), "--with", json.dumps(settings)]
    return {"transport": "stdio", "command": sys.executable, "args": ["-I", "-S", *args]}


class Shelf:
    """A session with the shelf, as a script and a browser see it."""

    def __init__(self, app: Starlette, script: Visitor, client: Visitor, path: str) -> None:
        self.app, self.script, self.client, self.path = app, script, client, path

    @property
    def session(self) -> Session:
        found: Session = self.app.state.registry._sessions[self.path.rsplit("/", 1)[-1]]
        return found

    async def json(self, page: str) -> Any:
        return await self.script.json(self.path + page)

    async def page(self, page: str, **headers: str) -> str:
        answer = await self.client.get(self.path + page, **headers)
        assert answer.status == 200, answer.text[:500]
        return html.unescape(answer.text)

    async def post(self, page: str, **body: Any) -> Answer:
        return await self.script.post(self.path + page, body)

    async def form(self, page: str, fields: Any = (), **headers: str) -> Answer:
        return await self.client.form(self.path + page, fields, **headers)

    async def call(self, method: str, **params: Any) -> Any:
        answer = await self.post("/calls", method=method, params=params)
        assert answer.status == 202, answer.text
        return await self.json(f"/calls/{answer.json()['id']}?wait=20")

    async def tool(self, name: str, **arguments: Any) -> Any:
        return await self.call("tools/call", name=name, arguments=arguments)

    async def seen(self, method: str) -> list[Any]:
        """The params of every message of this method that the server has read."""
        told = await self.tool("seen")
        return [one["params"] for one in told["result"]["structuredContent"]["seen"] if one["method"] == method]


def said(level: str, data: Any, logger: str | None = None) -> dict[str, Any]:
    params = {"level": level, "data": data} | ({"logger": logger} if logger else {})
    return {"method": "notifications/message", "params": params}
