"""A room over HTTP: phones at a listener of their own, a presenter who decides, and a server that hears it once."""

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette

from app import guest_bounds as bounds
from app import rooms
from app.sessions import Session
from app.web.guests.listener import create_room_app
from tests.drive import HANG, RawPeer, until
from tests.web.asgi import Answer, Visitor
from tests.web.asks.test_asks import SAMPLE, asked, replied, request, say
from tests.web.table import TABLE, address, method

Raw = Callable[..., RawPeer]
HOST = "192.0.2.7:6282"
QUESTION = {
    "message": "Where should the team go?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "town": {"type": "string", "enum": ["Bergen", "Porto", "Home"]},
            "why": {"type": "string"},
        },
        "required": ["town"],
    },
}
ASK = request("q", "elicitation/create", QUESTION)


class Here:
    """Where phones come in, without a socket."""

    words = "Everybody here."

    def __init__(self) -> None:
        self.open = 0

    def address(self, code: str) -> str:
        return f"http://{HOST}/j/{code}"

    def opened(self) -> None:
        self.open += 1

    def ended(self) -> None:
        self.open -= 1


class Phone(Visitor):
    """A phone: a browser that keeps its cookie, and no other."""

    def __init__(self, app: Starlette, path: str) -> None:
        super().__init__(app, {"accept": "text/html", "origin": f"http://{HOST}", "sec-fetch-site": "same-origin"})
        self.path = path

    async def look(self) -> Answer:
        answer = await self.send("GET", self.path, host=HOST)
        if given := answer.header("set-cookie"):
            assert all(part in given for part in ("HttpOnly", "SameSite=Lax", f"Path={self.path}")), given
            self.headers["cookie"] = given.partition(";")[0]
        return answer

    async def says(self, **fields: str) -> Answer:
        """Look, fill in what is asked, and send it."""
        page = await self.look()
        seen = re.search(r'name="seen" value="([^"]+)"', page.text)
        return await self.sends(seen[1] if seen else "nothing", **fields)

    async def sends(self, seen: str, **fields: str) -> Answer:
        kind = {"content-type": "application/x-www-form-urlencoded"}
        named = {"/" + key if key in {"town", "why"} else key: value for key, value in fields.items()}
        body = "&".join(f"{key.replace('/', '%2F')}={value}" for key, value in {"seen": seen, **named}.items())
        return await self.send("POST", self.path, kind, body.encode(), host=HOST)


@pytest.fixture
def here(app: Starlette) -> Here:
    app.state.registry.reach = Here()
    found: Here = app.state.registry.reach
    return found


@pytest.fixture
def outside(app: Starlette) -> Starlette:
    return create_room_app(app, ["192.0.2.7"])


class Presenter:
    """Who opened the room."""

    def __init__(self, script: Visitor, session: Session) -> None:
        self.script, self.session, self.base = script, session, f"/s/{session.id}"

    async def opens(self, **settings: Any) -> str:
        answer = await self.script.post(f"{self.base}/room", settings)
        assert answer.status in (200, 201), answer.text
        room = self.session.asks.audience.room
        assert room is not None
        await until(self.session, lambda: room.current is not None)
        path: str = answer.json()["address"].removeprefix(f"http://{HOST}")
        return path

    async def does(self, do: str, **more: str) -> Answer:
        return await self.script.post(f"{self.base}/room/act", {"do": do, **more})

    async def sees(self) -> Any:
        return (await self.script.json(f"{self.base}/room"))["poll"]


@pytest.mark.requirement("S39", "S41")
async def test_the_majority_of_a_room_is_sent_once(
    victim: Session, script: Visitor, raw: Raw, here: Here, outside: Starlette
):
    peer = raw()
    [ask] = await asked(victim, peer, ASK)
    presenter = Presenter(script, victim)
    path = await presenter.opens()
    phones = [Phone(outside, path) for _ in range(4)]
    page = await phones[0].look()
    assert page.status == 200 and "Where should the team go?" in page.text and "Bergen" in page.text
    sent = [
        await phone.says(town=town, why=why)
        for phone, town, why in zip(phones, "011", ["Rain", "", "Port"], strict=False)
    ]
    assert [answer.status for answer in sent] == [200] * 3 and all("Thank you" in answer.text for answer in sent)
    again = await phones[0].says(town="2")
    assert "Thank you" in again.text and "Bergen" in again.text, "the first one counts"
    told = await presenter.sees()
    counts = [(each["value"], each["count"]) for each in told["fields"][0]["counts"]]
    assert counts == [("Bergen", 1), ("Porto", 2), ("Home", 0)] and told["answers"] == 3
    assert told["proposal"] == {"words": "Porto", "tied": []}
    assert "Rain" not in (await phones[3].look()).text, "no phone sees what another wrote"
    seen = re.search(r'name="seen" value="([^"]+)"', (await phones[3].look()).text)
    assert seen is not None
    assert (await presenter.does("confirm")).status == 200
    late = await phones[3].sends(seen[1], town="2")
    assert late.status == 409 and "Too late for this one" in late.text and "Porto" in late.text and "Home" in late.text
    assert (await replied(victim, peer))["result"] == {"action": "accept", "content": {"town": "Porto"}}
    assert (await script.json(ask))["answered_by"] == {"kind": "room", "name": "majority of 3"}
    assert here.open == 1 and (await script.post(f"/s/{victim.id}/room/close")).status == 200
    gone = await phones[0].look()
    assert gone.status == 404 and "The room is closed" in gone.text and here.open == 0
    assert (await script.post(f"/s/{victim.id}/room/act", {"do": "stop"})).status == 409


async def test_a_room_decides_by_itself_when_its_time_is_up_and_takes_the_next_question(
    victim: Session, script: Visitor, raw: Raw, here: Here, outside: Starlette
):
    peer = raw()
    await asked(victim, peer, ASK, request("p", "elicitation/create", QUESTION))
    presenter = Presenter(script, victim)
    path = await presenter.opens(by_itself=True, decide="first")
    phone, other = Phone(outside, path), Phone(outside, path)
    await other.look()
    waiting: list[str] = []

    async def wait() -> None:
        seen = victim.asks.audience.room.seen  # type: ignore[union-attr]
        waiting.append((await other.send("GET", f"{path}/now?seen={seen}", host=HOST)).json()["seen"])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        assert "Thank you" in (await phone.says(town="2", why="Home")).text
        assert (await replied(victim, peer))["result"]["content"] == {"town": "Home", "why": "Home"}
    assert waiting and waiting[0].startswith("a"), "a phone hears of the next question"
    room = victim.asks.audience.room
    assert room is not None and next(iter(room.polls.values())).outcome == "Home", "what one wrote is not told"
    await until(victim, lambda: room.current is not None and room.current.ask.about != "x" and len(room.polls) == 2)
    await presenter.opens(by_itself=True, decide="majority", seconds=3)
    assert (await phone.says(town="0")).status == 200
    assert room.current is not None and room.current.until is not None
    room.current.until = 0.0
    room.stop()
    assert (await replied(victim, peer, "p"))["result"]["content"] == {"town": "Bergen"}


async def test_captions_are_written_shown_voted_on_and_picked(
    victim: Session, script: Visitor, raw: Raw, here: Here, outside: Starlette, client: Visitor
):
    peer = raw()
    await asked(victim, peer, request("s", "sampling/createMessage", SAMPLE))
    presenter = Presenter(script, victim)
    path = await presenter.opens(picked_by="vote", names=True)
    phones = [Phone(outside, path) for _ in range(3)]
    for phone, text in zip(phones, ["A quiet harbour", "<b>Loud</b>", "A quiet pier"], strict=True):
        assert "Thank you" in (await phone.says(text=text.replace(" ", "+"), who="Ines")).text
    stage = await client.get(f"/s/{victim.id}/stage")
    assert "quiet harbour" not in stage.text, "nothing that is written is shown before the presenter shows it"
    assert (await presenter.does("show")).status == 200
    stage = await client.get(f"/s/{victim.id}/stage")
    assert "A quiet harbour" in stage.text and "&lt;b&gt;Loud" in stage.text and "Ines" in stage.text
    assert (await presenter.does("vote")).status == 200
    ballots = {each["text"]: each["id"] for each in (await presenter.sees())["ballots"]}
    page = await phones[2].look()
    assert "Which one is best?" in page.text and "A quiet harbour" in page.text and "Ines" not in page.text
    for phone in phones[:2]:
        assert "Thank you" in (await phone.says(vote=ballots["A quiet pier"])).text
    assert (await phones[2].says(vote="b99")).status == 200, "a vote for nobody is none"
    assert (await presenter.sees())["proposal"] == {"words": "A quiet pier", "tied": []}
    assert (await presenter.does("confirm")).status == 200
    result = (await replied(victim, peer, "s"))["result"]
    assert (result["content"]["text"], result["model"]) == ("A quiet pier", "a room of people")


async def test_the_presenter_picks_declines_or_takes_it_over(
    victim: Session, script: Visitor, raw: Raw, here: Here, outside: Starlette
):
    peer = raw()
    await asked(victim, peer, ASK)
    presenter = Presenter(script, victim)
    path = await presenter.opens(decide="pick")
    phone = Phone(outside, path)
    await phone.says(town="1")
    assert (await presenter.sees())["proposal"] is None and (await presenter.does("confirm")).status == 409
    assert (await presenter.does("confirm", ballot="b7")).status == 422
    assert (await presenter.does("confirm", ballot="b1")).status == 200
    assert (await replied(victim, peer))["result"]["content"] == {"town": "Porto"}
    await say(victim, request("d", "elicitation/create", QUESTION), request("t", "elicitation/create", QUESTION))
    room = victim.asks.audience.room
    assert room is not None
    await until(victim, lambda: room.current is not None and len(room.polls) == 3)
    assert (await presenter.does("decline")).status == 200
    assert (await replied(victim, peer, "d"))["result"] == {"action": "decline"}
    with anyio.fail_after(HANG):
        while room.current is None:
            await anyio.lowlevel.checkpoint()
    assert (await presenter.does("skip")).status == 200
    with anyio.fail_after(HANG):
        while room.current is not None:
            await anyio.lowlevel.checkpoint()
    assert victim.open_asks == 1, "it waits for the presenter, in the inbox"
    assert "You are in the room" in (await Phone(outside, path).look()).text


async def test_a_model_picks_from_what_the_room_wrote(
    victim: Session, script: Visitor, raw: Raw, here: Here, outside: Starlette
):
    peer = raw()
    await asked(victim, peer, request("s", "sampling/createMessage", SAMPLE))
    presenter = Presenter(script, victim)
    path = await presenter.opens(picked_by="model")
    await Phone(outside, path).says(text="A+harbour")
    assert (await presenter.does("model")).status == 200
    found = (await presenter.sees())["proposal"]
    assert found is not None, await presenter.sees()
    assert (await presenter.does("confirm")).status == 200
    await replied(victim, peer, "s")
    by = (await script.json(f"/s/{victim.id}/asks/{next(iter(victim.inbox.asks))}"))["answered_by"]
    assert by["kind"] == "room" and by["name"].startswith("model ")


@pytest.mark.requirement("S01", "S15", "S41")
async def test_a_phone_reaches_its_room_and_nothing_else(
    app: Starlette, victim: Session, script: Visitor, raw: Raw, here: Here, outside: Starlette
):
    [ask] = await asked(victim, raw(), ASK)
    path = await Presenter(script, victim).opens()
    phone = Phone(outside, path)
    await phone.look()
    cookie = phone.headers["cookie"].partition("=")[2]
    phone.headers["cookie"] += f"; parley_6280={cookie}; __Host-parley={cookie}; parley_answer={cookie}"
    code, aid = path.rpartition("/")[2], ask.rpartition("/")[2]
    reached = set()
    for route in TABLE:
        there = address(route, victim.id).replace("no-such-code", code).replace("/asks/a1", f"/asks/{aid}")
        answer = await phone.send(method(route), there, host=HOST)
        if answer.status not in {404, 405}:
            reached.add((method(route), route.path))
    assert reached == {("GET", "/"), ("GET", "/static/{path:path}")}, "the door, which leads to the room, and its style"
    for file in ("js/session.js", "session.css", "logo.svg", "vendor/htmx-4.0.0.min.js", "../app/settings.py"):
        assert (await phone.send("GET", f"/static/{file}", host=HOST)).status == 404
    on_the_main_one = Visitor(app, {"accept": "text/html", "cookie": phone.headers["cookie"]})
    assert (await on_the_main_one.send("GET", path)).status == 401, "the room is not where people are"
    assert (await on_the_main_one.send("GET", f"/s/{victim.id}")).status == 401
    assert (await phone.send("GET", path, host="127.0.0.1:6280")).status == 400, "nor by another name"
    assert (await phone.send("GET", "/healthz", host=HOST)).status == 404
    foreign = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    assert (await phone.send("POST", path, foreign, host=HOST)).status == 403


@pytest.mark.requirement("S36", "S41")
async def test_a_phone_that_does_too_much_is_slowed_and_no_phone_is_forged(
    victim: Session, script: Visitor, raw: Raw, here: Here, outside: Starlette, monkeypatch: pytest.MonkeyPatch
):
    await asked(victim, raw(), ASK)
    path = await Presenter(script, victim).opens()
    stranger = Phone(outside, path)
    refused = await stranger.sends("a1-ask-open", town="0")
    assert refused.status == 409 and "no cookie" in refused.text
    await stranger.look()
    room = victim.asks.audience.room
    assert room is not None
    known = stranger.headers["cookie"]
    stranger.headers["cookie"] = known[:-1] + ("0" if known[-1] != "0" else "1")
    assert (await stranger.sends("a1-ask-open", town="0")).status == 409 and room.current is not None
    assert room.current.ballots == {}
    stranger.headers["cookie"] = known
    wrong = await stranger.says(town="9")
    assert wrong.status == 422 and not room.current.ballots
    told = [(await stranger.sends("a1-ask-open", town="9")).status for _ in range(bounds.ROOM_SENDS_PER_MINUTE)]
    assert told[-1] == 429 and told[0] == 422
    assert (await stranger.send("POST", path, {"content-length": "99999999"}, host=HOST)).status == 413
    monkeypatch.setattr(bounds, "ROOM_PHONES", len(room.phones))
    full = await Phone(outside, path).look()
    assert full.status == 503 and "full" in full.text and full.header("refresh") == "3", "it comes back by itself"


def test_where_phones_may_come_in():
    assert rooms.place("192.0.2.7") == ("192.0.2.7", rooms.PORT)
    assert rooms.place("[2001:db8::1]:80") == ("2001:db8::1", 80)
    assert rooms.place("localhost:0") == ("127.0.0.1", 0)
    for wrong in ("0.0.0.0", "[::]", "room.example", "me@127.0.0.1", "127.0.0.1:x", "127.0.0.1/x", "", "224.0.0.1"):
        with pytest.raises(rooms.Unusable):
            rooms.place(wrong)
    assert rooms.outside("https://Room.example/") == rooms.outside("https://room.example:443") == "https://room.example"
    assert rooms.outside("https://[2001:DB8::1]:8443") == "https://[2001:db8::1]:8443"
    for wrong in ("room.example", "https://a@b", "https://room.example/x", "ftp://room.example", "https://a:x"):
        with pytest.raises(rooms.Unusable):
            rooms.outside(wrong)


def test_whose_word_counts_for_where_somebody_comes_from():
    assert rooms.proxies(None, "") == ()
    assert [str(net) for net in rooms.proxies(None, "https://room.example")] == ["127.0.0.1/32", "::1/128"]
    assert [str(net) for net in rooms.proxies(["10.0.3.0/28"], "https://room.example")] == ["10.0.3.0/28"]
    for given, url in (
        (["10.0.3.7"], ""),
        (["proxy"], "https://room.example"),
        (["0.0.0.0/0"], "https://room.example"),
    ):
        with pytest.raises(rooms.Unusable):
            rooms.proxies(given, url)


@pytest.mark.requirement("S41")
async def test_one_address_does_not_fill_a_room(
    app: Starlette, victim: Session, script: Visitor, raw: Raw, here: Here, monkeypatch: pytest.MonkeyPatch
):
    """Somebody who throws their cookie away is a new phone each time: half of the room stays for others."""
    await asked(victim, raw(), ASK)
    path = await Presenter(script, victim).opens()
    outside = create_room_app(app, ["192.0.2.7"], "", rooms.proxies(["127.0.0.1"], f"http://{HOST}"))
    monkeypatch.setattr(bounds, "ROOM_PHONES", 6)

    async def comes(forwarded: str) -> int:
        phone = Phone(outside, path)
        phone.headers["x-forwarded-for"] = forwarded
        return (await phone.look()).status

    told = [await comes("203.0.113.5") for _ in range(4)]
    assert told == [200, 200, 200, 503]
    # What they put there themselves stands before what the proxy saw, and is not looked at.
    assert await comes("198.51.100.9, 203.0.113.5") == 503
    assert await comes("203.0.113.6") == 200
    # A network of the newer kind is one household.
    assert [await comes(f"2001:db8::{at}") for at in range(2)] == [200, 200]
    assert await comes("2001:db8::ffff:7") == 503, "by now it is full for everybody"


def test_a_plain_start_knows_nothing_of_rooms():
    """What few people use is imported when they do: idle memory and start stay what they were."""
    script = "import sys, app.cli, app.web.app, app.web.routes, app.sessions; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )
    assert "app.web.routes" in loaded
    assert not loaded & {"segno", "app.rooms", "app.sessions.room", "app.sessions.visiting", "app.web.visiting.app"}
    assert "app.web.guests.listener" not in loaded
