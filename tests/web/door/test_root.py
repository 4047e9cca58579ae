"""Browsers live below a random path, because cookies ignore ports: who gets in where, and where the path stands."""

import logging
import os
import re
import stat
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.applications import Starlette

from app.sessions import Session
from app.sessions.identity import LOCAL
from app.settings import Limits, local
from app.web.app import create_app
from app.web.door.guard import Access, GuardedRoute
from app.web.door.root import FILE, browser_root
from tests import drive
from tests.web.asgi import COOKIE, ORIGIN, PORT, TOKEN, Visitor, browser, first_patch
from tests.web.table import address, each, method

KEY = re.compile(r"/~[A-Za-z0-9_-]{22,}")


@pytest.fixture
async def outside(client: Visitor) -> AsyncIterator[Visitor]:
    """The same browser with the same cookie, at addresses without the path."""
    yield Visitor(client.app, client.headers)


# ------------------------------------------------------------------------------------------------------- who gets in


@each(Access.IDENTITY, Access.SESSION)
@pytest.mark.requirement("H01", "S01")
async def test_h01_a_cookie_counts_for_nothing_outside_the_path(
    route: GuardedRoute, app: Starlette, outside: Visitor, victim: Session
):
    root, path = app.state.visitors.root, address(route, victim.id)
    wrong = f"/~{'x' * (len(root) - 2)}"
    for start in (
        "",
        wrong,
        root[:-1],
        root + "x",
        root.swapcase(),
        root.replace("~", ""),
        "/~",
        f"/{root}",
        f"/x{root}",
    ):
        answer = await outside.send(method(route), start + path)
        assert answer.status == 401, start
        assert root not in answer.text + repr(answer.headers)
    assert app.state.registry.of(LOCAL) == [victim]
    assert not victim.closed


@pytest.mark.requirement("H01")
async def test_h01_the_right_path_without_the_cookie_opens_nothing(app: Starlette, stranger: Visitor, victim: Session):
    root = app.state.visitors.root
    for path in ("/", "/about", f"/s/{victim.id}", "/nothing"):
        assert (await stranger.get(root + path)).status == 401
    assert (await stranger.get(root)).status == 401, "the path itself is not below the path"


@pytest.mark.requirement("H01")
async def test_h01_whoever_comes_without_the_path_is_told_what_to_do(outside: Visitor, stranger: Visitor):
    for visitor in (outside, stranger):
        answer = await visitor.get("/")
        assert answer.status == 401
        assert "Open the address that its terminal shows" in answer.text
        assert "<code>/~</code>" in answer.text
        assert "bookmark" in answer.text
        assert not KEY.search(answer.text)
    below = await stranger.get(stranger.app.state.visitors.root + "/")
    assert "bookmark" not in below.text, "a bookmark is how they came"


@pytest.mark.requirement("H01")
async def test_h01_an_old_cookie_for_every_path_is_cleared(outside: Visitor):
    answer = await outside.get("/")
    assert answer.header("set-cookie") == f"{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"


@pytest.mark.requirement("H01", "S03", "S05")
async def test_h01_a_request_that_another_program_makes_up_opens_nothing(app: Starlette, victim: Session):
    """What a web server on another port could send with everything it can know: our address, and a forged Origin."""
    forged = {"accept": "application/json", "origin": ORIGIN, "sec-fetch-site": "same-origin"}
    for cookie in ({}, {"cookie": f"{COOKIE}=guessed"}):
        visitor = Visitor(app, {**forged, **cookie})
        assert (await visitor.post("/s", {"target": {"transport": "demo"}})).status == 401
        assert (await visitor.post("/~guessed-path-of-22-chars/s", {"target": {"transport": "demo"}})).status == 401
    assert app.state.registry.of(LOCAL) == [victim]


async def test_the_public_files_are_there_with_and_without_the_path(app: Starlette, stranger: Visitor, client: Visitor):
    for path in ("/healthz", "/favicon.ico", "/static/app.css", "/static/app.css?v=1"):
        plain, below = await stranger.get(path), await client.get(path)
        assert (plain.status, plain.body) == (below.status, below.body)
        assert plain.header("cache-control") == below.header("cache-control")
    page = (await client.get("/")).text
    assert re.search(r'<link rel="stylesheet" href="/static/app\.css\?v=', page), "one address, so it is cached once"


# ------------------------------------------------------------------------------------------------ where the path stands


@each(Access.IDENTITY, Access.SESSION, of="GET")
@pytest.mark.requirement("H01")
async def test_h01_json_has_the_addresses_of_scripts_whoever_asks(
    route: GuardedRoute, client: Visitor, victim: Session
):
    """`Visitor` looks that the path is in no JSON, and in front of every address of a page."""
    if route.name == "events":
        return
    for accept in ("application/json", "text/html"):
        await client.get(address(route, victim.id), accept=accept)


@pytest.mark.requirement("H01")
async def test_h01_a_script_keeps_its_addresses_also_in_html(app: Starlette, script: Visitor, client: Visitor):
    opened = await script.post("/s")
    url = opened.json()["url"]
    assert opened.header("location") == url == f"/s/{opened.json()['id']}"
    page = await script.get(url, accept="text/html")
    assert page.status == 200
    assert f'href="{url}/tools"' in page.text
    assert f'hx-sse:connect="{url}/events?' in page.text
    assert not KEY.search(page.text + repr(page.headers))
    made = await script.form("/s", accept="text/html")
    assert (made.status, (made.header("location") or "")[:3]) == (303, "/s/")
    seen = await client.get(url)
    assert seen.text == page.text, "a browser sees the same page, below its path"


@pytest.mark.requirement("H01")
async def test_h01_redirects_of_a_browser_stay_below_the_path(app: Starlette, client: Visitor):
    raw = Visitor(app, client.headers)
    root = app.state.visitors.root
    made = await raw.form(f"{root}/s")
    assert made.status == 303
    assert re.fullmatch(rf"{root}/s/[^/]+", made.header("location") or "")
    asked = await raw.post(f"{root}/s")
    assert asked.status == 201
    assert asked.header("location") == asked.json()["url"] == f"/s/{asked.json()['id']}"


@pytest.mark.requirement("H01")
async def test_h01_patches_carry_the_path_of_their_own_tab(
    app: Starlette, client: Visitor, script: Visitor, victim: Session
):
    await drive.connected(victim, drive.raw_target())
    root = app.state.visitors.root
    for page in ("overview", "log", "tools"):
        to_browser = await first_patch(client, victim, f"page={page}&since=x")
        to_script = await first_patch(script, victim, f"page={page}&since=x")
        assert f'href="{root}/s/{victim.id}/log/' in to_browser
        assert not re.search(r'(?:href|action|hx-get|hx-post)="/(?!static/|~)', to_browser)
        assert to_browser.replace(root, "") == to_script
    events = await first_patch(client, victim, "format=json&since=0")
    assert events
    assert root not in events


@pytest.mark.requirement("H01", "S11")
async def test_h01_the_path_reaches_no_log_of_ours(app: Starlette, client: Visitor, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)

    def broken(*args: object) -> None:
        raise RuntimeError("on purpose")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.web.session.about.about_json", broken)
        assert (await client.get("/about")).status == 500
    assert "on purpose" in caplog.text
    assert app.state.visitors.root not in caplog.text


# ----------------------------------------------------------------------------------------------------------- the key


@pytest.mark.requirement("H01")
def test_h01_the_key_is_kept_for_its_owner_alone(tmp_path: Path):
    directory = tmp_path / "of" / "parley"
    first = browser_root(directory)
    assert re.fullmatch(r"/~[A-Za-z0-9_-]{22}", first)
    assert browser_root(directory) == first, "bookmarks live longer than the process"
    file = directory / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert [one.name for one in directory.iterdir()] == [FILE]
    assert browser_root(tmp_path / "another") != first


@pytest.mark.requirement("H01")
async def test_h01_the_application_uses_the_kept_key(tmp_path: Path):
    roots = []
    for _ in range(2):
        app = create_app(local(port=PORT, token=TOKEN, data_dir=tmp_path, limits=Limits()))
        async with app.router.lifespan_context(app):
            await app.state.loaded.wait()
            assert (await browser(app, app.state.visitors.admit(LOCAL)).get("/")).status == 200
        roots.append(app.state.visitors.root)
    assert roots[0] == roots[1] == browser_root(tmp_path)


@pytest.mark.requirement("H01")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o622])
def test_h01_a_key_that_others_could_read_is_replaced(mode: int, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    first = browser_root(tmp_path)
    (tmp_path / FILE).chmod(mode)
    second = browser_root(tmp_path)
    assert second != first
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert "could be read by other users" in caplog.text
    assert "bookmarks" in caplog.text
    assert first[2:] not in caplog.text
    assert second[2:] not in caplog.text
    assert browser_root(tmp_path) == second


@pytest.mark.requirement("H01")
@pytest.mark.parametrize("content", [b"", b"\n", b"short\n", b"../" * 10, b"a b" * 10, b"\xff" * 30, b"x" * 10_000])
def test_h01_a_file_without_a_key_is_replaced(content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    file = tmp_path / FILE
    file.write_bytes(content)
    file.chmod(0o600)
    root = browser_root(tmp_path)
    assert re.fullmatch(r"/~[A-Za-z0-9_-]{22}", root)
    assert "held no key" in caplog.text
    assert browser_root(tmp_path) == root


@pytest.mark.requirement("H01")
@pytest.mark.parametrize("what", ["directory", "symlink", "pipe", "no directory", "full"])
def test_h01_where_no_key_can_be_kept_one_serves_for_this_process(
    what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    directory, file = tmp_path, tmp_path / FILE
    if what == "directory":
        file.mkdir()
    elif what == "symlink":
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_text("x" * 22)
        elsewhere.chmod(0o600)
        file.symlink_to(elsewhere)
    elif what == "pipe":
        os.mkfifo(file, 0o600)
    elif what == "no directory":
        directory = tmp_path / "file" / "parley"
        (tmp_path / "file").write_text("")
    else:
        directory = Path("/proc/self")  # nobody makes a file there, not even root
    roots = {browser_root(directory) for _ in range(2)}
    assert len(roots) == 2
    assert all(re.fullmatch(r"/~[A-Za-z0-9_-]{22}", root) for root in roots)
    assert "cannot be used" in caplog.text
    assert "--data-dir" in caplog.text
    assert not any(root[2:] in caplog.text for root in roots)


@pytest.mark.requirement("H01")
def test_h01_a_file_of_somebody_else_is_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    theirs, me = browser_root(tmp_path), os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: me)
    assert browser_root(tmp_path) != theirs
    assert "belongs to somebody else" in caplog.text
    assert (tmp_path / FILE).read_text().strip() == theirs[2:], "it is left as it is"


@pytest.mark.requirement("H01")
def test_h01_two_that_start_at_the_same_moment_agree(tmp_path: Path):
    for number in range(30):
        directory, gate = tmp_path / str(number), threading.Barrier(4)
        roots: list[str] = []

        def start(directory: Path = directory, roots: list[str] = roots, gate: threading.Barrier = gate) -> None:
            gate.wait()
            roots.append(browser_root(directory))

        threads = [threading.Thread(target=start) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert len(set(roots)) == 1
