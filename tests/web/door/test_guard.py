"""Reach and origin: what a request must be before anything is done."""

import re

import pytest
from starlette.applications import Starlette

from app import __version__
from app.sessions import Session
from app.sessions.identity import LOCAL
from app.web.door.guard import Access, GuardedRoute
from tests.web.asgi import COOKIE, HOST, ORIGIN, TOKEN, Visitor
from tests.web.table import address, each, method

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
FOREIGN_HOSTS = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1@evil",
    "127.0.0.1.evil.example",
    "evil.example:6280",
    "127.0.0.1:6280, evil.example",
    "127.0.0.1:6280 evil",
    "127.0.0.1:port",
    "0.0.0.0:6280",
    "127.1:6280",
    "2130706433:6280",
    "[::ffff:127.0.0.1]:6280",
    "",
]
FROM_ELSEWHERE: list[dict[str, str | None]] = [
    {"origin": "https://evil.example"},
    {"origin": "https://evil.example", "sec-fetch-site": None},
    {"origin": "null"},
    {"origin": "null", "sec-fetch-site": None},
    {"origin": "http://127.0.0.1:9999", "sec-fetch-site": None},
    {"origin": "http://localhost:6280", "sec-fetch-site": None},
    {"origin": "https://127.0.0.1:6280"},
    {"origin": "http://127.0.0.1:6280.evil.example"},
    {"origin": None, "sec-fetch-site": "cross-site"},
    {"origin": None, "sec-fetch-site": "same-site"},
    {"origin": None, "sec-fetch-site": "none"},
    {"origin": None, "sec-fetch-site": "something new"},
    {"origin": None, "sec-fetch-site": None},
    {"origin": "", "sec-fetch-site": None},
    {"sec-fetch-site": "cross-site", "content-type": "text/plain"},
]
OTHER_METHODS = ["PUT", "DELETE", "PATCH", "QUERY", "OPTIONS", "TRACE", "CONNECT", "post", "get", "Post"]


def untouched(app: Starlette, victim: Session) -> bool:
    """Nothing was created, connected, called or closed."""
    return (
        app.state.registry.of(LOCAL) == [victim]
        and victim.info.state == "none"
        and not victim.calls
        and not victim.roots
        and not victim.closed
    )


# ------------------------------------------------------------------------------------------------------------- S01


@each(Access.IDENTITY, Access.SESSION)
@pytest.mark.parametrize("accept", ["text/html", "application/json", "htmx"])
@pytest.mark.requirement("S01", "R5-73")
async def test_without_a_cookie_nothing_is_shown_or_done(
    route: GuardedRoute, accept: str, app: Starlette, stranger: Visitor, victim: Session
):
    headers = {"accept": "text/html", "hx-request": "true"} if accept == "htmx" else {"accept": accept}
    answer = await stranger.send(method(route), address(route, victim.id), headers)
    assert answer.status == 401
    assert untouched(app, victim)
    if accept == "application/json":
        assert answer.error["kind"] == "signed-out"
    else:
        assert ("<html" in answer.text) is (accept == "text/html")


@pytest.mark.requirement("S01")
async def test_an_unknown_path_is_not_told_from_a_known_one(stranger: Visitor):
    assert (await stranger.get("/no/such/path")).status == 401
    assert (await stranger.get("/s/x/y/z")).status == 401


# ------------------------------------------------------------------------------------------------------------- S02


@each()
@pytest.mark.requirement("S02", "R5-73")
async def test_a_foreign_host_is_refused(route: GuardedRoute, app: Starlette, client: Visitor, victim: Session):
    for host in FOREIGN_HOSTS:
        answer = await client.send(method(route), address(route, victim.id), host=host)
        assert answer.status == 400, host
    assert (await client.send(method(route), address(route, victim.id), host=None)).status == 400
    two = await client.send(method(route), address(route, victim.id), [("host", "evil.example")])
    assert two.status == 400
    twice = await client.send(method(route), address(route, victim.id), [("host", HOST)])
    assert twice.status == 400
    assert untouched(app, victim)


@pytest.mark.parametrize("host", ["127.0.0.1:6280", "localhost:6280", "[::1]:6280", "LocalHost:6280", "localhost:9999"])
@pytest.mark.requirement("S02")
async def test_the_loopback_names_are_ours_on_every_published_port(host: str, client: Visitor):
    assert (await client.send("GET", "/", {"origin": None}, host=host)).status == 200


# ------------------------------------------------------------------------------------------------------- S03 to S06


@each(of="POST")
@pytest.mark.requirement("S03", "S04", "S05", "S06", "R5-73")
async def test_a_post_from_elsewhere_does_nothing(
    route: GuardedRoute, app: Starlette, client: Visitor, victim: Session
):
    for headers in FROM_ELSEWHERE:
        answer = await client.send("POST", address(route, victim.id), {"accept": "application/json", **headers})
        assert (answer.status, answer.error["kind"]) == (403, "cross-site"), headers
        assert untouched(app, victim), headers


@each()
@pytest.mark.requirement("S04")
async def test_no_other_method_exists(route: GuardedRoute, app: Starlette, client: Visitor, victim: Session):
    for verb in OTHER_METHODS:
        for site in ("same-origin", "cross-site", "same-site", None):
            answer = await client.send(verb, address(route, victim.id), {"sec-fetch-site": site})
            assert answer.status == 405, (verb, site)
        assert untouched(app, victim), verb


@each()
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.requirement("S04")
async def test_another_site_reads_nothing(route: GuardedRoute, site: str, client: Visitor, victim: Session):
    """As an image, a script, a frame, a fetch or a stream. A link is another matter."""
    for mode, dest in (("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe"), ("no-cors", "script")):
        headers: dict[str, str | None] = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
        answer = await client.send("GET", address(route, victim.id), {**headers, "origin": None})
        assert answer.status == 403, (mode, dest)


@pytest.mark.requirement("S04")
async def test_a_link_from_another_site_leads_in_but_not_to_a_stream(client: Visitor, victim: Session):
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document", "origin": None}
    assert (await client.get("/", **link)).status == 200
    assert (await client.get(f"/s/{victim.id}/events", **link)).status == 403


@pytest.mark.requirement("S03", "S04")
async def test_an_old_browser_that_only_says_its_origin_reads_nothing_from_elsewhere(client: Visitor):
    assert (await client.get("/", origin="https://evil.example", sec_fetch_site=None)).status == 403


@pytest.mark.requirement("S03", "S05")
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": ORIGIN, "sec-fetch-site": "same-origin"},
        {"origin": ORIGIN, "sec-fetch-site": None},
        {"origin": None, "sec-fetch-site": "same-origin"},
    ],
    ids=str,
)
async def test_our_own_page_gets_in(headers: dict[str, str | None], client: Visitor):
    assert (await client.send("POST", "/s", headers)).status == 303


@pytest.mark.requirement("S05", "R5-73")
async def test_a_script_with_a_token_needs_no_origin_and_its_cookies_mean_nothing(
    app: Starlette, script: Visitor, client: Visitor
):
    assert (await script.post("/s")).status == 201
    assert (await script.post("/s", origin="https://evil.example", sec_fetch_site="cross-site")).status == 201
    cookie = client.headers["cookie"]
    assert (await script.get("/", authorization="Bearer wrong-wrong-wrong-wrong", cookie=cookie)).status == 401
    assert (await script.get("/", authorization="bearer " + TOKEN, cookie=f"{COOKIE}=junk")).status == 200


# ------------------------------------------------------------------------------------------------------ S08 to S10


@pytest.mark.requirement("S08")
async def test_strangers_learn_nothing(app: Starlette, stranger: Visitor, script: Visitor, victim: Session):
    for path in (
        "/",
        "/healthz",
        "/login",
        "/login?code=wrong",
        "/static/app.css",
        "/static/nothing",
        "/favicon.ico",
        "/about",
        "/nothing",
        f"/s/{victim.id}",
        "/static/../app/settings.py",
        "/static/%2e%2e/app",
    ):
        for accept in ("text/html", "application/json"):
            answer = await stranger.get(path, accept=accept)
            seen = answer.text + repr(answer.headers)
            for secret in (TOKEN, app.state.visitors.code, victim.id, "/work", "site-packages", "uvicorn", "starlette"):
                assert secret.lower() not in seen.lower(), (path, secret)
            if not path.startswith(("/static/app.css", "/favicon")):
                assert __version__ not in seen, path
            assert not re.search(r"Traceback|File \"", seen)
            assert answer.header("server") is None


@each()
@pytest.mark.requirement("S09", "S10", "S34", "S11", "R5-74")
async def test_every_response_is_armoured(
    route: GuardedRoute, client: Visitor, stranger: Visitor, script: Visitor, victim: Session
):
    path, verb = address(route, victim.id), method(route)
    head = "HEAD" if route.name == "events" else verb
    answers = [
        await client.send(head, path),
        await stranger.send(verb, path),
        await stranger.send("DELETE", path),
        await script.send(head, path, {"content-type": "application/json"}, b"{"),
        await script.send(verb, address(route, "nobody") + "/nothing"),
        await client.send(verb, path, host="evil.example"),
        await client.send("POST", path, {"origin": "https://evil.example"}),
        await script.send("POST", path, {"content-length": "999999999"}),
        await stranger.send("OPTIONS", path, {"origin": "https://evil.example"}),
    ]
    for answer in answers:
        assert answer.header("content-security-policy") == CSP
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("referrer-policy") == "no-referrer"
        assert answer.header("cross-origin-opener-policy") == "same-origin"
        assert answer.header("cross-origin-resource-policy") == "same-origin"
        assert not [name for name, _ in answer.headers if name.startswith("access-control-")]
        assert answer.header("server") is None
        kept = route.name in {"static", "favicon"} and answer.status < 400
        assert kept or answer.header("cache-control") == "no-store", answer.status


@each()
@pytest.mark.requirement("S10")
async def test_a_preflight_is_refused(route: GuardedRoute, stranger: Visitor):
    asked: dict[str, str | None] = {
        "origin": "https://evil.example",
        "access-control-request-method": method(route),
        "access-control-request-headers": "authorization",
        "access-control-request-private-network": "true",
    }
    assert (await stranger.send("OPTIONS", address(route), asked)).status == 405


@pytest.mark.requirement("S08")
async def test_what_breaks_in_us_is_said_without_saying_where(
    app: Starlette, client: Visitor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def broken(*args: object) -> None:
        raise RuntimeError("secret detail in /srv/parley/app")

    monkeypatch.setattr("app.web.session.about.about_json", broken)
    for accept in ("text/html", "application/json"):
        answer = await client.get("/about", accept=accept)
        assert answer.status == 500
        assert "secret" not in answer.text
        assert "/srv" not in answer.text
        assert answer.header("content-security-policy") == CSP
    assert "secret detail" in caplog.text, "the terminal says what happened"


async def test_a_websocket_is_turned_away(app: Starlette):
    sent: list[object] = []

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    async def send(message: object) -> None:
        sent.append(message)

    await app({"type": "websocket", "path": "/", "headers": []}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_the_page_of_a_session_that_is_no_more_says_once_why(client: Visitor):
    answer = await client.send("GET", "/s/r0-neverwas/log", {"accept": "text/html"})
    assert answer.status == 404
    assert answer.text.count("<p><b>There is no such session. It may have been closed, or Parley was restarted.") == 1
    assert "never existed" not in answer.text and "Your open sessions are on the home page." in answer.text


@pytest.mark.requirement("S15")
@each(Access.SESSION)
async def test_mallory_finds_no_session_of_another(
    route: GuardedRoute, app: Starlette, mallory: Visitor, victim: Session
):
    for headers in ({"accept": "application/json"}, {"accept": "text/html"}):
        answer = await mallory.send(method(route), address(route, victim.id), headers)
        assert answer.status == 404
    never = await mallory.send(method(route), address(route, "r0-neverwas"), {"accept": "application/json"})
    theirs = await mallory.send(method(route), address(route, victim.id), {"accept": "application/json"})
    assert never.body == theirs.body, "somebody else's is not told from one that never was"
    assert untouched(app, victim)


@pytest.mark.requirement("S15")
async def test_mallory_does_not_see_it_on_the_home_page(mallory: Visitor, client: Visitor, victim: Session):
    assert (await mallory.json("/"))["sessions"] == []
    assert [one["id"] for one in (await client.json("/"))["sessions"]] == [victim.id]
