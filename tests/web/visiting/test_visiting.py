"""The public demo: fifty strangers at once, some of them abusive, one demo server over loopback, and nothing left."""

import gc
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import psutil
import pytest
from starlette.applications import Starlette

from app import guest_bounds as bounds
from app.core.errors import NotAllowed
from app.core.targets import HttpTarget
from app.policy import Policy
from app.sessions.identity import Identity
from app.settings import demo
from app.web.door.guard import Access, GuardedRoute
from app.web.visiting.app import create_public_app
from tests.drive import HANG
from tests.web.asgi import ORIGIN, PORT, Answer, Visitor
from tests.web.table import address, method

VISITORS = 50
ABUSIVE = 10


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Where things would be kept; nothing is."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    yield
    assert list(tmp_path.rglob("*")) == [], "nothing is on the disk"


@pytest.fixture
async def public(disk: None) -> AsyncIterator[Starlette]:
    application = create_public_app(demo(port=PORT))
    async with application.router.lifespan_context(application):
        await application.state.loaded.wait()
        yield application


class Stranger(Visitor):
    """A browser that keeps the cookie of its visit."""

    base = ""

    def __init__(self, app: Starlette) -> None:
        super().__init__(app, {"accept": "text/html", "origin": ORIGIN, "sec-fetch-site": "same-origin"})

    async def begins(self, era: str = "") -> Answer:
        answer = await self.form(f"/begin{era}")
        if answer.status == 303:
            self.base = (answer.header("location") or "").removesuffix("/tour")
            if given := answer.header("set-cookie"):
                assert "HttpOnly" in given and "SameSite=Strict" in given
                self.headers["cookie"] = given.partition(";")[0]
            with anyio.fail_after(HANG):
                await self.json(f"{self.base}?wait=50")
        return answer

    async def calls(self, name: str, **arguments: object) -> Answer:
        params = {"name": name, "arguments": arguments}
        return await self.post(f"{self.base}/calls", {"method": "tools/call", "params": params})


@pytest.mark.requirement("S41", "S20")
@pytest.mark.slow
async def test_fifty_visitors_at_once_abusive_ones_among_them(public: Starlette):
    server = [child.pid for child in psutil.Process().children()]
    assert len(server) >= 1, "one demo server for everybody"
    calm = [Stranger(public) for _ in range(VISITORS - ABUSIVE)]
    rude = [Stranger(public) for _ in range(ABUSIVE)]
    refused: dict[int, int] = {}

    def note(answer: Answer) -> None:
        refused[answer.status] = refused.get(answer.status, 0) + 1

    async def visits(one: Stranger, at: int) -> None:
        era = "?era=modern" if at % 2 else ""
        assert (await one.begins(era)).status == 303
        told = await one.json(one.base)
        assert told["connection"]["state"] == "ready", told["connection"]
        for _ in range(4):
            assert (await one.form(f"{one.base}/tour", {"do": "press"})).status == 303
            await one.form(f"{one.base}/tour", {"do": "next"})
        assert "5 of 10" in (await one.get(f"{one.base}/tour")).text
        calls = (await one.json(f"{one.base}/calls"))["calls"]
        assert [each["state"] for each in calls] == ["done"]

    async def abuses(one: Stranger, other: Stranger) -> None:
        await one.begins()
        with anyio.fail_after(HANG):
            while (answer := await one.calls("echo", text="x" * 20_000)).status != 429:
                note(answer)
        note(answer)
        assert answer.header("retry-after")
        note(await one.send("POST", f"{one.base}/calls", {"content-type": "application/json"}, b"x" * (300 * 1024)))
        for target in ({"transport": "http", "url": "http://127.0.0.1:1/mcp"}, {"transport": "stdio", "command": "id"}):
            note(await one.post("/s", {"target": target}))
            note(await one.post(f"{one.base}/connect", {"target": target}))
        note(await one.post(f"{one.base}/models", {"name": "m", "url": "http://127.0.0.1:1"}))
        note(await one.post(f"{one.base}/room"))
        note(await one.get(other.base or "/s/none"))
        note(await one.get("/", cookie="parley_visit_6280=a.1.b"))
        assert (await one.begins()).status == 303, "beginning again closes what was before"
        assert len(public.state.registry.of(_who(one, public))) == 1

    gc.collect()
    async with anyio.create_task_group() as tasks:
        for at, one in enumerate(calm):
            tasks.start_soon(visits, one, at)
        for one in rude:
            tasks.start_soon(abuses, one, calm[0])
    before = psutil.Process().memory_info().rss
    assert refused[202] == ABUSIVE * bounds.VISIT_CALLS, refused
    assert refused[429] == ABUSIVE and refused[413] == ABUSIVE and refused[404] >= ABUSIVE * 6
    assert {child.pid for child in psutil.Process().children()} == set(server), "still one process"
    # Everybody again: nothing of the first round stays.
    async with anyio.create_task_group() as tasks:
        for one in [*calm, *rude]:
            tasks.start_soon(one.begins)
    gc.collect()
    grown = (psutil.Process().memory_info().rss - before) / 2**20
    assert grown < 40, f"{grown:.0f} MB more after a second round"
    assert len(public.state.registry.everybodys()) == VISITORS


def _who(one: Stranger, app: Starlette) -> Identity:
    from starlette.datastructures import Headers

    found: Identity = app.state.visitors.recognise(Headers({"cookie": one.headers["cookie"]}), "").identity
    return found


@pytest.mark.requirement("S01", "S08")
async def test_what_a_visitor_reaches(public: Starlette, monkeypatch: pytest.MonkeyPatch):
    table = [route for route in public.routes if isinstance(route, GuardedRoute)]
    assert len(table) == len(public.routes)
    assert {(method(route), route.path) for route in table if route.access is Access.PUBLIC} == {
        ("GET", "/"),
        ("POST", "/begin"),
        ("GET", "/healthz"),
        ("GET", "/static/{path:path}"),
        ("GET", "/favicon.ico"),
    }
    for never in ("connect", "models", "rules", "record", "room", "link", "compose", "options", "sign-in", "compare"):
        assert not [route.path for route in table if route.path.endswith(f"/{never}")], never
    one, other = Stranger(public), Stranger(public)
    page = await one.get("/")
    assert "Begin the tour" in page.text and page.text.count("<li>") == 10 and "30 minutes" in page.text
    for route in table:
        if route.access is not Access.PUBLIC:
            assert (await one.send(method(route), address(route, "s-unknown"))).status == 401, route.path
    await one.begins()
    await other.begins()
    assert (await other.get(one.base)).status == 404, "nobody sees another's session"
    tour = await one.get(f"{one.base}/tour")
    assert "Rules" not in tour.text and "Record" not in re.sub("Recorded", "", tour.text)
    late = public.state.visitors._clock() + bounds.VISIT_SECONDS + 1
    monkeypatch.setattr(public.state.visitors, "_clock", lambda: late)
    over = await one.get(one.base)
    assert over.status == 401 and "half hour is over" in over.text and "terminal" not in over.text
    monkeypatch.setattr(bounds, "VISIT_SECONDS", 0.0)
    with anyio.fail_after(HANG):
        while public.state.registry.everybodys():
            await anyio.lowlevel.checkpoint()


@pytest.mark.requirement("S20")
def test_a_public_demo_dials_its_own_server_and_nothing_else(tmp_path: Path):
    policy = Policy("demo", allowed={("127.0.0.1", 4321)})
    assert policy.refusal("127.0.0.1", "127.0.0.1", 4321) is None
    for name, ip, port in (
        ("127.0.0.1", "127.0.0.1", 80),
        ("localhost", "127.0.0.1", 4321),
        ("127.0.0.1", "8.8.8.8", 4321),
    ):
        assert policy.refusal(name, ip, port) == "this Parley dials no addresses"
    gate = create_public_app(demo(port=1)).state.registry.gate
    with pytest.raises(NotAllowed):
        gate.connects(Identity("v", "you"), HttpTarget(transport="http", url="http://127.0.0.1:4321/mcp"))
    preset = demo(data_dir=tmp_path, token="x" * 20, mode="local")
    assert (preset.mode, preset.data_dir, preset.token) == ("demo", None, None), "nothing of the user is taken along"
    limits = preset.limits
    assert (limits.sessions_per_identity, bounds.VISIT_CALLS, limits.message_bytes) == (1, 30, 256 * 1024)
