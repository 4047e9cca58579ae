"""Who stays logged in: over a restart, until they sign out or stay away for too long."""

import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette

from app.remembered import FILE
from app.sessions import Session
from app.sessions.identity import LOCAL
from app.settings import Settings, local
from app.web.app import create_app
from tests.web.asgi import COOKIE, PORT, TOKEN, Answer, Visitor, browser

pytestmark = pytest.mark.requirement("S13", "U-S8")
MONTH = 30 * 86_400


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return local(port=PORT, token=TOKEN, data_dir=tmp_path / "data")


@asynccontextmanager
async def next_process(settings: Settings) -> AsyncIterator[Starlette]:
    application = create_app(settings)
    async with application.router.lifespan_context(application):
        await application.state.loaded.wait()
        yield application


def cookie_of(answer: Answer) -> str:
    (value,) = (one for one in answer.all("set-cookie") if one.startswith(f"{COOKIE}="))
    return value


async def logged_in(app: Starlette, stranger: Visitor) -> Visitor:
    answer = await stranger.get(f"/login?code={app.state.visitors.code}")
    return browser(app, cookie_of(answer).partition("=")[2].partition(";")[0])


def elsewhere(app: Starlette, whose: Visitor) -> Visitor:
    """The same browser before another process."""
    return Visitor(app, whose.headers, app.state.visitors.root)


async def test_the_cookie_outlives_the_browser(app: Starlette, stranger: Visitor):
    given = cookie_of(await stranger.get(f"/login?code={app.state.visitors.code}"))
    attributes = set(given.split("; ")[1:])
    assert attributes == {"HttpOnly", "SameSite=Strict", f"Path={app.state.visitors.root}/", f"Max-Age={MONTH}"}


async def test_a_login_outlives_the_process(app: Starlette, stranger: Visitor, settings: Settings, tmp_path: Path):
    one = await logged_in(app, stranger)
    assert (await one.get("/")).status == 200
    cookie = one.headers["cookie"].partition("=")[2]
    assert cookie not in (tmp_path / "data" / FILE).read_text()
    async with next_process(settings) as later:
        again = elsewhere(later, one)
        assert again.root == one.root
        assert (await again.get("/")).status == 200
        assert (await again.get("/", cookie=f"{COOKIE}={cookie[:-1]}")).status == 401
    async with next_process(settings.model_copy(update={"port": PORT + 1})) as other:
        renamed = f"parley_{PORT + 1}={cookie}"
        assert (await elsewhere(other, one).get("/", cookie=renamed)).status == 401, "each port has its own"
        assert (await elsewhere(other, one).get("/")).status == 401


async def test_a_cookie_whose_digest_is_not_in_the_file_is_refused_and_cleared(
    app: Starlette, stranger: Visitor, tmp_path: Path
):
    one = await logged_in(app, stranger)
    assert (await one.get("/")).status == 200
    path = tmp_path / "data" / FILE
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, "logins": {}}))
    answer = await one.get("/")
    assert answer.status == 401
    assert cookie_of(answer) == f"{COOKIE}=; HttpOnly; SameSite=Strict; Path={one.root}/; Max-Age=0"


async def test_a_login_is_over_after_a_month_without_use_and_each_use_renews_it(app: Starlette, stranger: Visitor):
    one = await logged_in(app, stranger)
    remembered, shift = app.state.visitors.remembered, [0.0]
    began = remembered._wall
    remembered._wall = lambda: began() + shift[0]
    assert (await one.get("/about")).header("set-cookie") is None
    shift[0] = MONTH - 1000
    answer = await one.get("/about")
    assert answer.status == 200
    assert cookie_of(answer).endswith(f"; Max-Age={MONTH}")
    assert one.headers["cookie"] == cookie_of(answer).partition(";")[0]
    assert (await one.get("/about")).header("set-cookie") is None
    shift[0] += MONTH - 1000
    assert (await one.get("/about")).status == 200
    shift[0] += MONTH + 1000
    assert (await one.get("/about")).status == 401


# ---------------------------------------------------------------------------------------------------------- signing out


async def test_signing_out_ends_this_browser_and_no_other(app: Starlette, stranger: Visitor, settings: Settings):
    one, other = await logged_in(app, stranger), await logged_in(app, stranger)
    answer = await one.form("/logout")
    assert (answer.status, answer.header("location")) == (303, "/")
    assert cookie_of(answer).endswith("; Max-Age=0")
    page = await one.get("/")
    assert (page.status, "You are not signed in." in page.text) == (401, True)
    assert (await other.get("/")).status == 200
    async with next_process(settings) as later:
        assert (await elsewhere(later, one).get("/")).status == 401
        assert (await elsewhere(later, other).get("/")).status == 200


@pytest.mark.parametrize("by", ["browser", "script"])
async def test_signing_out_everywhere_ends_all_of_them(
    by: str, app: Starlette, stranger: Visitor, script: Visitor, settings: Settings
):
    browsers = [await logged_in(app, stranger) for _ in range(3)]
    if by == "script":
        assert (await script.post("/logout", {"everywhere": True})).json() == {"signed_out": 3}
    else:
        assert (await browsers[0].form("/logout", {"everywhere": "1"})).status == 303
    assert [(await one.get("/")).status for one in browsers] == [401] * 3
    assert (await script.get("/")).status == 200, "a token is no login"
    async with next_process(settings) as later:
        assert [(await elsewhere(later, one).get("/")).status for one in browsers] == [401] * 3


async def test_another_parley_hears_of_it_at_once(app: Starlette, stranger: Visitor, settings: Settings):
    one = await logged_in(app, stranger)
    async with next_process(settings) as other:
        there = elsewhere(other, one)
        assert (await there.get("/")).status == 200
        await one.form("/logout")
        assert (await there.get("/")).status == 401
        assert len(other.state.visitors.gone()) == 1, "its open pages are told next"


async def test_open_pages_of_whoever_is_signed_out_hear_nothing_any_more(app: Starlette, victim: Session):
    one = browser(app, app.state.visitors.admit(LOCAL))
    said: list[str] = []
    path = f"{one.root}/s/{victim.id}/events"
    headers = [(b"host", b"127.0.0.1:6280"), *((k.encode(), v.encode()) for k, v in one.headers.items())]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"page=overview",
             "headers": headers, "http_version": "1.1", "scheme": "http", "root_path": "", "asgi": {"version": "3.0"},
             "client": ("127.0.0.1", 1), "server": ("127.0.0.1", PORT), "state": {}}  # fmt: skip
    opened = anyio.Event()

    async def receive() -> MutableMapping[str, Any]:
        await anyio.sleep_forever()
        return {}

    async def send(message: MutableMapping[str, Any]) -> None:
        opened.set()
        said.append(message.get("body", b"").decode())

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app, scope, receive, send)
            await opened.wait()
            assert (await one.form("/logout")).status == 303
    assert "event: bye\ndata: signed-out" in "".join(said)


async def test_signing_out_that_cannot_be_written_is_said(app: Starlette, stranger: Visitor, tmp_path: Path):
    one = await logged_in(app, stranger)
    lock = tmp_path / "data" / "remembered.lock"
    lock.unlink()
    lock.mkdir()
    answer = await one.post("/logout")
    assert (answer.status, answer.error["kind"]) == (507, "not-saved")
    assert "cannot be used" in answer.error["message"]
    assert (await one.get("/")).status == 401


async def test_what_cannot_be_kept_is_said_on_the_pages(app: Starlette, stranger: Visitor, tmp_path: Path):
    (tmp_path / "data" / "remembered.lock").mkdir()
    one = await logged_in(app, stranger)
    assert "Logins end with Parley:" in (await one.get("/")).text
    about = await one.get("/about")
    assert "New logins end with Parley:" in about.text
    assert (await one.json("/about"))["login"]["trouble"]


async def test_about_says_who_is_signed_in_and_how_to_get_out(app: Starlette, stranger: Visitor, script: Visitor):
    one = await logged_in(app, stranger)
    page = (await one.get("/about")).text
    assert "1 browser is signed in." in page
    assert "for 30 days after" in page
    assert page.count('action="/logout"') == 2
    assert (await script.json("/about"))["login"] == {"browsers": 1, "lasts": True, "trouble": None}


async def test_an_unknown_key_is_refused(script: Visitor):
    answer = await script.post("/logout", {"everyone": True})
    assert (answer.status, list(answer.error["fields"])) == (422, ["/everyone"])


async def test_a_stranger_cannot_sign_anybody_out(app: Starlette, stranger: Visitor):
    one = await logged_in(app, stranger)
    assert (await stranger.form("/logout", {"everywhere": "1"})).status == 401
    foreign = await one.form("/logout", {}, origin="http://evil.example", sec_fetch_site="cross-site")
    assert foreign.status == 403
    assert (await one.get("/")).status == 200
