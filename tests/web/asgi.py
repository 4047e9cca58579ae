"""A client without a client: exactly these bytes of method, path and headers go to the application.

An HTTP library would correct half of the attacks before they leave.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

import anyio
from starlette.applications import Starlette

from app.sessions import Workspace
from tests.drive import HANG

PORT = 6280
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
COOKIE = f"parley_{PORT}"
TOKEN = "the-token-of-the-web-tests"
_ADDRESS = re.compile(r'\s(?:href|src|action|formaction|hx-get|hx-post|hx-sse:connect|data-root|data-src)="(/[^"]*)"')
_OURS = re.compile(r'="(/(?:s|targets|about)(?:/[^"]*)?)"')
_LEADING = {"location", "hx-redirect"}


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        found = self.all(name)
        assert len(found) <= 1, f"{name} stands there {len(found)} times"
        return found[0] if found else None

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        assert self.header("content-type") == "application/json", (self.status, self.text[:500])
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json()["error"]
        return found


@dataclass
class Visitor:
    """Somebody who sends requests, with the headers that their kind of client sends.

    A browser lives below a `root`. It is left out of the paths that a test writes and of the answers that it reads;
    that every address in an answer has it, and that no JSON does, is seen to here (H01).
    """

    app: Starlette
    headers: dict[str, str] = field(default_factory=dict)
    root: str = ""

    async def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str | None] | list[tuple[str, str]] | None = None,
        body: bytes | Sequence[bytes | Callable[[], Awaitable[bytes]]] = b"",
        *,
        host: str | None = HOST,
    ) -> Answer:
        """One request. Headers of the visitor are replaced by those given; None leaves one out. A part of the body that
        is a function is awaited when it is asked for: much may happen meanwhile."""
        if isinstance(headers, list):
            sent = [*self.headers.items(), *headers]
        else:
            both: dict[str, str | None] = {**self.headers, **(headers or {})}
            sent = [(name, value) for name, value in both.items() if value is not None]
        if host is not None:
            sent.insert(0, ("host", host))
        parts = urlsplit(self.root + path)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", PORT),
            "state": {},
        }
        chunks: list[bytes | Callable[[], Awaitable[bytes]]] = [body] if isinstance(body, bytes) else list(body)
        answer = Answer(0, [], b"")
        over = anyio.Event()

        async def receive() -> dict[str, Any]:
            if chunks:
                part = chunks.pop(0)
                chunk = part if isinstance(part, bytes) else await part()
                return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}
            await over.wait()
            return {"type": "http.disconnect"}

        async def take(message: Any) -> None:
            if message["type"] == "http.response.start":
                assert answer.status == 0, "two answers to one request"
                answer.status = message["status"]
                answer.headers = [
                    (name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]
                ]
            else:
                answer.body += message.get("body", b"")
                if not message.get("more_body", False):
                    over.set()

        with anyio.fail_after(60):
            await self.app(scope, receive, take)
        return _from(answer, self.root) if self.root else answer

    async def get(self, path: str, **headers: str | None) -> Answer:
        return await self.send("GET", path, _named(headers))

    async def json(self, path: str) -> Any:
        """What a page says as JSON."""
        answer = await self.send("GET", path, {"accept": "application/json"})
        assert answer.status == 200, (answer.status, answer.text[:500])
        return answer.json()

    async def post(self, path: str, data: Any = None, **headers: str | None) -> Answer:
        """Post JSON, and ask for JSON."""
        kind = {"content-type": "application/json", "accept": "application/json"}
        body = data if isinstance(data, bytes) else b"" if data is None else json.dumps(data).encode()
        return await self.send("POST", path, {**kind, **_named(headers)}, body)

    async def form(self, path: str, fields: Any = (), **headers: str | None) -> Answer:
        """Post a form, like a page without script."""
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return await self.send("POST", path, {**kind, **_named(headers)}, urlencode(fields, doseq=True).encode())


def _from(answer: Answer, root: str) -> Answer:
    """An answer as it is seen from the root of browsers."""
    kind = answer.header("content-type") or ""
    is_json, framed = kind.startswith("application/json"), "sandbox" in (answer.header("content-security-policy") or "")
    if is_json or framed:
        assert root.encode() not in answer.body, "the path of browsers stands in what is not for them alone"
    elif kind.startswith("text/html") and answer.header("content-encoding") is None:
        for found in (*_ADDRESS.findall(answer.text), *_OURS.findall(answer.text)):
            assert found.startswith((root + "/", "/static/")), f"an address without the root: {found}"
        answer.body = answer.body.replace(root.encode(), b"")
    for at, (name, value) in enumerate(answer.headers):
        if name in _LEADING:
            assert value.startswith(root + "/") is not is_json, (name, value)
            answer.headers[at] = name, value.removeprefix(root)
    return answer


def _named(headers: dict[str, str | None]) -> dict[str, str | None]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def browser(app: Starlette, cookie: str) -> Visitor:
    """A browser on a page of ours, below the path where browsers live, with this cookie."""
    headers = {
        "accept": "text/html,application/xhtml+xml,*/*;q=0.8",
        "cookie": f"{COOKIE}={cookie}",
        "sec-fetch-site": "same-origin",
        "origin": ORIGIN,
    }
    return Visitor(app, headers, app.state.visitors.root)


async def first_patch(visitor: Visitor, session: Workspace, query: str) -> str:
    """What the stream of a tab says next."""
    said, got = "", anyio.Event()
    headers = [(b"host", b"127.0.0.1:6280"), *((k.encode(), v.encode()) for k, v in visitor.headers.items())]
    path = f"{visitor.root}/s/{session.id}/events"
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
             "headers": headers, "http_version": "1.1", "scheme": "http", "root_path": "", "asgi": {"version": "3.0"},
             "client": ("127.0.0.1", 1), "server": ("127.0.0.1", PORT), "state": {}}  # fmt: skip

    async def receive() -> dict[str, str]:
        await got.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal said
        said += message.get("body", b"").decode()
        if "\n\n" in said:
            got.set()

    with anyio.fail_after(HANG):
        await visitor.app(scope, receive, send)
    return said
