"""A walk over the whole surface with a real process: a script with the token, and a browser with the cookie.

It knows addresses, bodies and the demo server; it imports nothing of Parley but the route table, so it stays as it is
whatever moves inside. Every answer is kept by route, representation and status, as a shape.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from app.web.routes import routes
from tests.browser.parley import TOKEN, Parley
from tests.surface.shapes import OPAQUE, Shape, merge, shape_of

HANG = 60.0


@dataclass
class Answer:
    """One HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Surface:
    """What was seen: routes with their answers, and the names of events."""

    answers: dict[str, dict[str, Shape]] = field(default_factory=dict)
    events: dict[str, set[str]] = field(default_factory=dict)

    def note(self, route: str, kind: str, shape: Shape) -> None:
        known = self.answers.setdefault(route, {})
        known[kind] = merge(known.get(kind), shape)

    def as_json(self) -> dict[str, Any]:
        events = {stream: sorted(names) for stream, names in sorted(self.events.items())}
        return {"answers": {route: self.answers[route] for route in sorted(self.answers)}, "events": events}


def _patterns() -> list[tuple[str, re.Pattern[str], str]]:
    found = []
    for route in routes():
        (method,) = (route.methods or set()) - {"HEAD"}
        bounds = re.sub(r"\\{[a-z]+:path\\}", ".+", re.escape(route.path))
        bounds = re.sub(r"\\{[a-z]+\\}", "[^/]+", bounds)
        found.append((method, re.compile(bounds), re.sub(":path}", "}", route.path)))
    return found


class Walker:
    """Somebody who walks, and the notes they take."""

    def __init__(self, parley: Parley, surface: Surface) -> None:
        self.parley, self.surface = parley, surface
        self._patterns = _patterns()
        self.cookie = ""
        self.root = ""
        """Where a browser lives: the part of the address before the routes."""

    # ------------------------------------------------------------------------------------------------------ requests

    def route(self, method: str, path: str) -> str:
        bare = urlsplit(path).path
        return next(
            (f"{method} {name}" for verb, form, name in self._patterns if verb == method and form.fullmatch(bare)),
            f"{method} unknown",
        )

    def send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(self.parley.server).port, timeout=HANG)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            sent: dict[str, str] = {}
            for name, value in answer.getheaders():
                sent.setdefault(name.lower(), value)
            return Answer(answer.status, sent, answer.read())
        finally:
            connection.close()

    def script(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None) -> Answer:
        """A request of a script. JSON answers are noted by their shape, others by their type."""
        headers = {"authorization": f"Bearer {TOKEN}", "accept": "application/json", "content-type": "application/json"}
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        if method == "POST" and data is None:
            data = b""
        answer = self.send(method, path, data, headers)
        kind = answer.headers.get("content-type", "none").split(";")[0]
        shape: Shape = kind
        if kind == "application/json":
            told = answer.json()
            shape = shape_of(told)
            if answer.status >= 400:
                shape["error"] |= {"kind": f"={told['error']['kind']}", "fields": OPAQUE}
        self.surface.note(self.route(method, path), f"script {answer.status}", shape)
        return answer

    def get(self, path: str) -> Any:
        return self.script("GET", path).json()

    def post(self, path: str, body: Any = None) -> Any:
        answer = self.script("POST", path, body)
        return answer.json() if answer.body else None

    def browse(self, method: str, path: str, fields: Any = None, **more: str) -> Answer:
        """A request of a browser: a page, or a form without script. Noted by status, type and where it leads."""
        headers = {
            "cookie": self.cookie,
            "accept": "text/html,*/*;q=0.8",
            "origin": self.parley.server,
            "sec-fetch-site": "same-origin",
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        data = None
        if method == "POST":
            headers["content-type"] = "application/x-www-form-urlencoded"
            data = urlencode(fields or {}, doseq=True).encode()
        answer = self.send(method, self.root + path, data, headers)
        kind = answer.headers.get("content-type", "none").split(";")[0]
        goal = answer.headers.get("location", "")
        where = self.route("GET", goal.removeprefix(self.root)) if goal else ""
        self.surface.note(self.route(method, path), f"browser {answer.status}", f"{kind} {where}".strip())
        return answer

    def login(self) -> None:
        """Come in as a person does, and find out where browsers live."""
        address = self.parley.code()
        answer = self.send("GET", address.removeprefix(self.parley.server), None, {"accept": "text/html"})
        assert answer.status == 303, answer.status
        self.cookie = answer.headers["set-cookie"].split(";")[0]
        self.root = answer.headers["location"].rstrip("/")
        self.surface.note("GET /login", "browser 303", "to home")

    @contextmanager
    def listening(self, sid: str, *, browser: bool) -> Iterator[None]:
        """Hear one stream of a session meanwhile: the names of its events."""
        query = "?since=0" if browser else "?since=0&format=json"
        headers = (
            {"authorization": f"Bearer {TOKEN}"}
            if not browser
            else {"cookie": self.cookie, "sec-fetch-site": "same-origin"}
        )
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(self.parley.server).port, timeout=HANG)
        connection.request(
            "GET",
            f"{self.root if browser else ''}/s/{sid}/events{query}",
            headers={**headers, "accept": "text/event-stream"},
        )
        answer = connection.getresponse()
        self.surface.note(
            "GET /s/{sid}/events", f"{'browser' if browser else 'script'} {answer.status}", "text/event-stream"
        )
        names = self.surface.events.setdefault("page" if browser else "script", set())

        def hear() -> None:
            while line := answer.readline():
                if line.startswith(b"event: "):
                    names.add(line[7:].strip().decode())
                elif line.startswith(b"data: ") and not browser:
                    self._event(line[6:])

        ear = threading.Thread(target=hear, daemon=True)
        ear.start()
        try:
            yield
            ear.join(5)  # the session is closed by now: the stream ends with a last word
        finally:
            if connection.sock is not None:
                connection.sock.shutdown(2)
            ear.join(5)
            connection.close()

    def _event(self, data: bytes) -> None:
        try:
            told = json.loads(data)
        except ValueError:
            return
        if isinstance(told, dict) and "kind" in told:
            self.surface.events.setdefault("kinds", set()).add(told["kind"])
            self.surface.note(
                "GET /s/{sid}/events",
                "script event",
                {key: shape_of(value, key) for key, value in told.items() if key != "task"},
            )
