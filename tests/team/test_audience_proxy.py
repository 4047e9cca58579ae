"""A room and a public demo behind nginx with the file to copy: phones and visitors come by the outside name alone, with
secure cookies, each counted by where they come from as the proxy saw it, and streams reach them at once."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app import guest_bounds as bounds
from app.settings import demo
from tests.browser.parley import Parley, running
from tests.drive_demo import WAIT, Caller, nginx, public_demo
from tests.drive_http import free_port
from tests.scale.drive import program

pytestmark = pytest.mark.requirement("S41", "T11")
ROOM, TRY = "room.example", "try.example"


@dataclass
class Place:
    """Everything that listens."""

    hall: Parley
    room: int
    public: int
    plain: int
    tls: int
    callers: list[Caller] = field(default_factory=list)

    def caller(self, name: str, source: str = "127.0.0.1", *, past: int = 0, **headers: str) -> Caller:
        """Somebody who comes through the proxy, or past it."""
        base = f"http://127.0.0.1:{past}" if past else f"https://127.0.0.1:{self.tls}"
        self.callers.append(Caller(base, name, source, **headers))
        return self.callers[-1]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = program("nginx"), program("openssl")
    room, public, plain, tls = (free_port() for _ in range(4))
    folder: Path = tmp_path_factory.mktemp("proxy")
    with ExitStack() as stack:
        behind = ("--room", f"127.0.0.1:{room}", "--room-url", f"https://{ROOM}")
        hall = stack.enter_context(running("demo", *behind))
        stack.enter_context(public_demo("--public-url", f"https://{TRY}", port=public))
        stack.enter_context(nginx(folder, found, room, public, plain, tls))
        made = Place(hall, room, public, plain, tls)
        yield made
        for caller in made.callers:
            caller.close()


def begins(visitor: Caller) -> str:
    """The address of a visitor's session, once it is connected."""
    begun = visitor.post("/begin")
    assert begun.status_code == 303, begun.text
    visitor.keep(begun)
    base: str = begun.headers["location"].removesuffix("/tour")
    told = visitor.get(f"{base}?wait=50", headers={"accept": "application/json"}).json()
    assert told["connection"]["state"] == "ready", told
    return base


def test_visitors_come_by_the_outside_name_with_a_secure_cookie(place: Place):
    visitor = place.caller(TRY, "127.0.0.2")
    assert "Begin the tour" in visitor.get("/").text
    begun = visitor.post("/begin")
    said = visitor.keep(begun)
    assert said.startswith("__Host-parley_visit=")
    assert all(f"; {part}" in said for part in ("Secure", "HttpOnly", "SameSite=Strict", "Path=/"))
    assert begun.headers["location"].startswith("/s/"), "nothing leads past the proxy"
    assert visitor.get(begun.headers["location"]).status_code == 200
    plain = place.caller(TRY, past=place.plain)
    moved = plain.get("/")
    assert (moved.status_code, moved.headers["location"]) == (301, f"https://{TRY}/")


@pytest.mark.requirement("S02", "S03", "S05")
@pytest.mark.parametrize("name", [ROOM, TRY])
def test_hosts_and_origins_are_those_outside(place: Place, name: str):
    with _room(place) as (path, _):
        read, do = ("/", "/begin") if name == TRY else (path, path)
        inner = place.public if name == TRY else place.room
        for host in ("evil.example", f"{name}.evil.example", f"evil.{name}"):
            assert place.caller(host, past=inner).get(read).status_code == 400, host
        for origin in ("https://evil.example", f"http://{name}", f"http://127.0.0.1:{inner}", "null"):
            refused = place.caller(name, origin=origin).post(do)
            assert refused.status_code == 403, (origin, refused.text)
        foreign = {"sec-fetch-site": "cross-site"}
        assert place.caller(name).post(do, headers=foreign).status_code == 403
        assert place.caller(name).get(read).status_code == 200


def test_a_stream_passes_the_proxy_as_it_happens(place: Place):
    visitor = place.caller(TRY, "127.0.0.2")
    base = begins(visitor)
    heard, got, over = list[str](), threading.Event(), threading.Event()

    def listen() -> None:
        kind = {"accept": "text/event-stream"}
        with visitor.stream("GET", f"{base}/events?page=tools&tab=one", headers=kind) as stream:
            heard.append(stream.headers["content-type"])
            for line in stream.iter_lines():
                heard.append(line)
                got.set()
                if "proxied words" in line:
                    over.set()
                if over.is_set():
                    return

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        assert got.wait(WAIT), "nothing came before anything happened"
        call: dict[str, Any] = {"name": "echo", "arguments": {"text": "proxied words"}}
        sent = visitor.post(
            f"{base}/calls",
            content=json.dumps({"method": "tools/call", "params": call}),
            headers={"content-type": "application/json", "accept": "application/json"},
        )
        assert sent.status_code == 202, sent.text
        assert over.wait(WAIT), heard[:20]
        assert heard[0].startswith("text/event-stream")
    finally:
        over.set()
        visitor.post(f"{base}/close")  # ends the stream, if nothing else did
        thread.join(WAIT)


def test_who_throws_their_cookie_away_takes_half_of_the_places_and_no_more(place: Place):
    most = demo().limits.sessions // 2
    rude, calm = place.caller(TRY, "127.0.0.66"), place.caller(TRY, "127.0.0.67")
    told = [rude.post("/begin").status_code for _ in range(most)]
    assert told == [303] * most
    refused = rude.post("/begin")
    assert refused.status_code == 429 and refused.headers["retry-after"] and "from where you are" in refused.text
    for word in ("203.0.113.9", "127.0.0.1", "127.0.0.67, 203.0.113.9"):
        spoofed = rude.post("/begin", headers={"x-forwarded-for": word, "forwarded": f"for={word}", "x-real-ip": word})
        assert spoofed.status_code == 429, f"{word}: what they say of themselves counts for nothing"
    begins(calm)


def test_only_a_proxy_that_was_named_is_believed():
    most, port = demo().limits.sessions // 2, free_port()
    with public_demo("--public-url", f"https://{TRY}", "--trusted-proxy", "127.0.0.9", port=port):
        base = f"http://127.0.0.1:{port}"
        with Caller(base, TRY, "127.0.0.1") as other, Caller(base, TRY, "127.0.0.9") as proxy:
            sent = [{"x-forwarded-for": f"203.0.113.{at}"} for at in range(most + 5)]
            began = [other.post("/begin", headers=said).status_code for said in sent]
            assert began == [303] * most + [429] * 5, "one address, whatever it says"
            assert [proxy.post("/begin", headers=said).status_code for said in sent[:3]] == [303] * 3


class _room:
    """A room before which a question is; its path, and the presenter's address."""

    def __init__(self, place: Place) -> None:
        self.hall = place.hall

    def __enter__(self) -> tuple[str, str]:
        hall = self.hall
        self.base: str = hall.script("POST", "/s", target={"transport": "demo"}, options={"era": "legacy"})["url"]
        hall.script("GET", f"{self.base}?wait=20")
        opened = hall.script("POST", f"{self.base}/room")
        assert opened["address"].startswith(f"https://{ROOM}/j/")
        return opened["address"].removeprefix(f"https://{ROOM}"), self.base

    def __exit__(self, *_: object) -> None:
        self.hall.script("POST", f"{self.base}/close")


def test_phones_come_by_the_outside_name_and_answer(place: Place):
    hall, closed = place.hall, place.caller(ROOM)
    assert closed.get("/").status_code == 503 and "no room" in closed.get("/").text, "nothing listens yet"
    with _room(place) as (path, base):
        phones = [place.caller(ROOM, f"127.0.0.{at}") for at in (2, 3)]
        for phone in phones:
            said = phone.keep(phone.get(path))
            assert all(f"; {part}" in said for part in ("Secure", "HttpOnly", "SameSite=Lax", f"Path={path}"))
        waited = list[Any]()
        waiting = threading.Thread(target=lambda: waited.append(phones[0].get(f"{path}/now?seen=idle").json()))
        waiting.start()
        call = {"name": "preferences", "arguments": {}}
        hall.script("POST", f"{base}/calls", method="tools/call", params=call)
        waiting.join(WAIT)
        [news] = waited
        assert news["seen"].endswith("-ask-open"), "a phone that waits hears of the question"
        for phone in phones:
            seen = re.findall(r'name="seen" value="([^"]+)"', phone.get(path).text)
            assert seen == [news["seen"]]
            sent = phone.post(path, data={"seen": seen[0], "/outputFormat": "1"})
            assert sent.status_code == 200 and "Thank you" in sent.text, sent.text
        assert hall.script("GET", f"{base}/room")["poll"]["answers"] == 2
        # So often a minute for each phone, whoever they say that they are; another one does not feel it.
        told = [
            phones[0]
            .post(
                path, data={"seen": news["seen"], "/outputFormat": "1"}, headers={"x-forwarded-for": f"203.0.113.{at}"}
            )
            .status_code
            for at in range(bounds.ROOM_SENDS_PER_MINUTE)
        ]
        assert told[-1] == 429 and told[0] == 200
        assert phones[1].post(path, data={"seen": news["seen"], "/outputFormat": "1"}).status_code == 200
        # And nothing else of Parley is behind that name.
        for elsewhere in ("/login", "/s", base, "/about", "/healthz", "/static/js/session.js"):
            assert phones[0].get(elsewhere).status_code == 404, elsewhere
    assert place.caller(ROOM).get(path).status_code == 503, "it ends with the room"
