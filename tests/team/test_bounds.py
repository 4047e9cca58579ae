"""What each person of a team may have, and that nobody feels the limits of somebody else."""

import json
import re

import anyio
import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from app.core.errors import NotAllowed
from app.core.rate import Rate, SharedRate
from app.sessions import Identity
from app.sessions.closed import ClosedSessions
from app.settings import Limits, local
from app.team_settings import TeamSettings
from app.web.door.denied import Denied
from app.web.live.stream import StreamHub
from app.web.team.fair import Fair
from app.web.team.house import House
from tests.drive import until
from tests.team.conftest import PROXY, Enters, Guest
from tests.web.asgi import Answer

pytestmark = pytest.mark.requirement("T20")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits here for the answer that something is too much."""
    monkeypatch.setattr("app.team_bounds.SLOWED_SECONDS", 0.0)


def test_so_often_in_a_while_each_by_themselves():
    now = [0.0]
    rate = Rate(3, 60, lambda: now[0])
    assert [rate.take("grace") for _ in range(4)] == [0, 0, 0, 60]
    assert (rate.take("ada"), rate.left("ada"), rate.left("grace")) == (0, 2, 0)
    now[0] = 59.5
    assert rate.take("grace") == 1
    now[0] = 60.0
    assert (rate.take("grace"), rate.left("grace")) == (0, 2)
    for number in range(20_000):
        rate.take(f"p{number}")
    assert rate.take("ada") == 0 and len(rate._times) <= 10_000


def test_what_was_done_elsewhere_counts_for_as_long_as_it_would_there():
    now = [0.0]
    here, there = (SharedRate(5, 60, lambda: now[0]) for _ in range(2))
    assert [here.take("grace") for _ in range(3)] == [0, 0, 0]
    now[0] = 1.0
    told = here.untold()
    assert [age for age, _ in told] == [1.0] * 3 and "grace" not in str(told)
    there.hear([(key, 60.0 - age, 1) for age, key in told])
    here.take("grace")  # while that was under way
    here.told(3)
    assert len(here.untold()) == 1, "what is not told yet stays"
    assert (there.left("grace"), there.left("ada")) == (2, 5)
    assert [there.take("grace") for _ in range(3)] == [0, 0, 59]
    now[0] = 60.5  # nobody has told anything since: it counts for itself again
    assert (there.left("grace"), there.take("grace")) == (3, 0)
    now[0] = 200.0
    assert here.untold() == [], "what is too old to count is not told at all"


# -------------------------------------------------------------------------------------------------------- with a server


class TestCalls:
    @pytest.fixture
    def settings(self, settings: TeamSettings) -> TeamSettings:
        changes = {"calls_per_minute": 3, "open_asks_per_identity": 2}
        return settings.model_copy(update={"limits": settings.limits.model_copy(update=changes)})

    @pytest.mark.requirement("S41", "T05")
    async def test_calls_and_questions_of_one_person_are_bounded_and_others_do_not_feel_it(
        self, enters: Enters, app: Starlette, house: House
    ):
        grace, ada = await enters("Grace"), await enters("Ada")
        rooms = []
        for guest in (grace, ada):
            await guest.form("/catalogue/raw/connect")
            session = app.state.registry.everybodys()[-1]
            await session.wait_connection(30)
            assert session.info.state == "ready"
            rooms.append(session)
        one, other = rooms
        token = (await grace.post("/me/tokens", {"name": "CI", "scope": "act"})).json()["token"]
        script = Guest(app, {**PROXY, "authorization": f"Bearer {token}", "accept": "application/json"})
        ask = {"mode": "form", "message": "canary-question", "requestedSchema": {"type": "object", "properties": {}}}
        asks = [{"jsonrpc": "2.0", "id": n, "method": "elicitation/create", "params": ask} for n in range(3)]
        lines = [json.dumps(one) for one in asks]
        say = {"method": "tools/call", "params": {"name": "say", "arguments": {"lines": lines}}}
        assert (await grace.post(f"/s/{one.id}/calls", say)).status in (200, 201, 202)
        await until(one, lambda: one.open_asks == 2 and one.inbox.refused == 1)
        echo = {"method": "tools/call", "params": {"name": "echo", "arguments": {"message": "canary-payload"}}}
        answers = [  # by browser or script, from whichever address
            await guest.post(f"/s/{one.id}/calls", echo, x_forwarded_for=f"203.0.113.{number}")
            for number, guest in enumerate((grace, script, grace, script))
        ]
        found, answer = [each.status for each in answers], answers[-1]
        assert found == [found[0]] * 2 + [429, 429] and found[0] < 300
        assert 1 <= int(answer.header("retry-after") or 0) <= 60
        assert answer.error["message"].startswith("You made 3 calls in a minute, which is the limit. Call again in ")
        assert (await ada.post(f"/s/{other.id}/calls", echo)).status == found[0]
        told = next(iter(one.inbox.open))
        done = await grace.post(f"/s/{one.id}/asks/{told.id}/answer", {"action": "accept", "content": {}})
        assert done.status == 200, done.text
        entries = [(e.who, e.act, e.what, e.refused) for e in await house.audit.search() if e.act != "signed in"]
        assert entries == [
            ("Grace", "answered", "form in Raw, accept", False),
            ("Ada", "called", "echo in Raw", False),
            ("Grace", "was refused", "too many calls in a minute", True),
            ("Grace", "was refused", "too many calls in a minute", True),
            ("Grace", "called", "echo in Raw", False),
            ("Grace", "called", "echo in Raw", False),
            ("Grace", "called", "say in Raw", False),
            ("Grace", "made a token", "CI, act", False),
            ("Ada", "connected", "Raw", False),
            ("Grace", "connected", "Raw", False),
        ]
        assert "canary" not in str(entries)
        limits = (await grace.json("/me"))["limits"]
        assert limits["calls_per_minute"] == {"most": "3", "used": "3"}
        assert limits["open_asks_per_identity"] == {"most": "2", "used": "1"}
        assert (await grace.get("/me")).text.count("Your limits") == 1
        boss = await enters("Boss", "admin")
        told = await boss.json("/limits")
        used = {one["name"]: (one["sessions"], one["calls"], one["asks"]) for one in told["people"]}
        assert used == {"Grace": (1, 3, 1), "Ada": (1, 1, 0), "Boss": (0, 0, 0)}
        assert (told["most"]["calls"], told["together"]["sessions"]["now"]) == (3, 2)
        page = (await boss.get("/limits")).text
        rows = re.findall(r"<tr hx-ignore>.*?</tr>", page, re.DOTALL)
        assert [re.findall(r"<b>(\w+)</b>", one) for one in rows] == [["Grace"], ["Ada"]], "who has nothing is left out"
        assert rows[0].count('class="missing"') == 1 and 'class="missing"' not in rows[1], "who is at a limit is marked"
        assert (await grace.get("/limits")).status == 404


@pytest.mark.requirement("S41")
def test_local_mode_has_no_limit_of_calls():
    assert local().limits.calls_per_minute == 0


# -------------------------------------------------------------------------------------------------------------- sharing


def test_what_all_share_is_taken_from_whoever_has_most():
    hub = StreamHub(Limits(streams=6, streams_per_identity=5, streams_per_browser=4))
    scripts = [hub.open(None, "mallory") for _ in range(5)]
    with pytest.raises(Denied) as over:
        hub.refuse(None, "mallory")
    assert (over.value.status, over.value.headers) == (429, {"retry-after": "15"})
    hub.refuse("b1", "grace")
    grace = hub.open("b1", "grace")
    hub.refuse("b2", "ada")
    ada = hub.open("b2", "ada")
    assert [one.reason for one in (*scripts, grace, ada)] == ["parked", "", "", "", "", "", ""]
    assert hub.owners() == {"mallory", "grace", "ada"} and hub.many("mallory") == 4
    tabs = [hub.open(f"c{number}", "grace") for number in range(5)]
    assert grace.reason == "parked" and tabs[-1].reason == "", "a browser loses a tab of its own person"


def test_a_stream_is_refused_when_nobody_has_more():
    hub = StreamHub(Limits(streams=2, streams_per_identity=2))
    first, second = hub.open("a", "ada"), hub.open("b", "grace")
    with pytest.raises(Denied):
        hub.refuse("c", "new")
    assert first.reason == second.reason == ""


class _Kept:
    def __init__(self, sid: str, owner: str, size: int) -> None:
        self.id, self.owner = sid, owner
        self.messages = type("Log", (), {"body_bytes": size})()


def test_nobody_makes_the_mistake_of_somebody_else_final():
    gone: list[str] = []
    closed = ClosedSessions(Limits(closed_sessions=2, closed_bytes=100), lambda: 0.0, lambda one: gone.append(one.id))
    for sid, owner, size in (("g1", "grace", 10), ("m1", "mallory", 5), ("m2", "mallory", 5), ("m3", "mallory", 5)):
        closed.keep(_Kept(sid, owner, size), shown=True)  # type: ignore[arg-type]
    assert gone == ["m1"]
    closed.keep(_Kept("m4", "mallory", 90), shown=True)  # type: ignore[arg-type]
    assert "g1" not in gone and closed.find("grace", "g1") is not None


async def test_requests_at_once_are_counted_by_person_or_address(app: Starlette, enters: Enters, stranger: Guest):
    grace, ada = await enters("Grace"), await enters("Ada")
    hold, inside = anyio.Event(), []

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        inside.append(scope)
        await hold.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    gate = Fair(slow, app.state.visitors, Limits(requests_per_identity=2, requests_per_minute=4))
    found: dict[str, list[int]] = {}

    async def ask(name: str, guest: Guest, address: str) -> None:
        through = Guest(gate, {**guest.headers, "x-forwarded-for": address})  # type: ignore[arg-type]
        found.setdefault(name, []).append((await through.get("/")).status)

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(ask, "Grace", grace, f"203.0.113.{number}")
            tasks.start_soon(ask, "nobody", stranger, "198.51.100.1")
        tasks.start_soon(ask, "Ada", ada, "203.0.113.1")
        tasks.start_soon(ask, "elsewhere", stranger, "198.51.100.1, 198.51.100.2")
        with anyio.fail_after(30):
            while len(inside) < 6 or sum(map(len, found.values())) < 2:
                await anyio.lowlevel.checkpoint()
        assert {name: each for name, each in found.items() if each} == {"Grace": [429], "nobody": [429]}
        hold.set()
    assert {name: sorted(each) for name, each in found.items()} == {
        "Grace": [204, 204, 429],
        "nobody": [204, 204, 429],
        "Ada": [204],
        "elsewhere": [204],
    }
    assert not gate._now and not gate._waiting
    more = [await _asked(gate, grace) for _ in range(3)]
    assert [one.status for one in more] == [204, 204, 429], "and in a minute"
    assert "You sent 4 requests in a minute" in more[-1].text and int(more[-1].header("retry-after") or 0) > 50
    assert (await _asked(gate, ada)).status == 204


async def _asked(gate: Fair, guest: Guest) -> Answer:
    return await Guest(gate, guest.headers).get("/")  # type: ignore[arg-type]


async def test_refusals_do_not_fill_the_audit_log(enters: Enters, house: House, app: Starlette):
    viewer = await enters("viewer", "viewer")
    assert viewer.person is not None
    session = app.state.registry.open(Identity(viewer.person.id, "viewer", role="viewer"))
    for _ in range(40):
        assert (await viewer.post(f"/s/{session.id}/ping")).status == 403
    assert len(await house.audit.search(act="was refused")) == 30


async def test_recordings_of_each_person_are_bounded(app: Starlette):
    from tests.store.test_recordings import a_recording

    store = app.state.registry.store.recordings
    await app.state.registry.store.loaded()
    limits = app.state.settings.limits
    await store.put(a_recording("rec-a", owner="mallory", size=limits.recordings_bytes_per_identity))
    with pytest.raises(NotAllowed, match="Your recordings together are 512 MiB"):
        store.room("mallory")
    store.room("grace")
    for number in range(limits.recordings_per_identity):
        store._kept[f"rec-{number}"] = a_recording(f"rec-{number}", owner="ada", size=1)
    with pytest.raises(NotAllowed, match="You have 200 recordings"):
        store.room("ada")
    store.room("grace")


# ----------------------------------------------------------------------------------------------------------------- idle


async def test_a_session_that_nobody_needs_is_announced_and_its_owner_is_told(
    enters: Enters, app: Starlette, house: House
):
    grace, ada = await enters("Grace"), await enters("Ada")
    assert grace.person is not None
    registry = app.state.registry
    session = registry.open(Identity(grace.person.id, "Grace", role="user"))
    assert "Closes in" not in (await grace.get("/")).text
    session._seen -= 26 * 60
    assert "Closes in 4 minutes unless" in " ".join((await grace.get("/")).text.split())
    assert (await grace.json("/"))["idle_minutes"] == {session.id: 4}
    session._seen -= 4 * 60
    await registry._close_idle(session, registry.settings.limits.idle_seconds)
    assert session.closed
    page = " ".join((await grace.get("/")).text.split())
    assert "was closed: nobody used it for 30 minutes." in page
    gone = await grace.get(f"/s/{session.id}")
    assert (gone.status, "Nobody used this session for 30 minutes" in gone.text) == (404, True)
    assert "nobody used it" not in (await ada.get("/")).text
    assert "Nobody used" not in (await ada.get(f"/s/{session.id}")).text
    [entry] = await house.audit.search(act="disconnected")
    assert (entry.who, entry.what) == ("Grace", "idle")
    assert (await grace.form("/sessions/idled/seen")).status == 303
    assert (await grace.json("/"))["idled"] == []
