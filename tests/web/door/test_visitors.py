"""Who is asking: launch codes, cookies, the token."""

import logging
from urllib.parse import quote

import anyio
import pytest
from starlette.applications import Starlette

from app.sessions import Session
from app.sessions.identity import LOCAL
from app.settings import Limits, local
from app.web.door.visitors import Visitors, own_path
from tests.web.asgi import COOKIE, PORT, TOKEN, Visitor


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def cookie_of(answer: object) -> str:
    (value,) = (one for one in answer.all("set-cookie") if one.startswith(f"{COOKIE}="))  # type: ignore[attr-defined]
    return str(value)


# ------------------------------------------------------------------------------------------------------ launch codes


@pytest.mark.requirement("S11", "R5-73")
async def test_a_launch_code_becomes_a_cookie_and_leaves_the_address(
    app: Starlette, stranger: Visitor, codes: list[str]
):
    code, root = app.state.visitors.code, app.state.visitors.root
    answer = await stranger.get(f"/login?code={code}")
    assert answer.status == 303
    assert answer.header("location") == f"{root}/"
    assert answer.header("referrer-policy") == "no-referrer"
    name, _, rest = cookie_of(answer).partition("=")
    value, *attributes = rest.split("; ")
    assert name == COOKIE == f"parley_{PORT}"
    assert set(attributes) == {"HttpOnly", "SameSite=Strict", f"Path={root}/"}
    assert len(value) >= 40
    assert code not in value
    assert (await stranger.get(f"{root}/", cookie=f"{COOKIE}={value}")).status == 200


@pytest.mark.requirement("S11")
async def test_a_code_works_once_and_the_next_one_is_announced(app: Starlette, stranger: Visitor, codes: list[str]):
    first = app.state.visitors.code
    assert codes == []
    assert (await stranger.get(f"/login?code={first}")).status == 303
    assert codes == [app.state.visitors.code]
    assert codes[0] != first
    again = await stranger.get(f"/login?code={first}")
    assert again.status == 401
    assert again.header("set-cookie") is None
    assert (await stranger.get(f"/login?code={codes[0]}")).status == 303


@pytest.mark.requirement("S11")
async def test_looking_at_the_address_does_not_use_up_the_code(app: Starlette, stranger: Visitor, codes: list[str]):
    answer = await stranger.send("HEAD", f"/login?code={app.state.visitors.code}")
    assert (answer.status, answer.header("set-cookie"), codes) == (200, None, [])


async def test_the_browser_that_used_a_code_is_led_on_by_it_and_nobody_else_is(
    app: Starlette, stranger: Visitor, codes: list[str]
):
    """The address once more. The cookie is not sent to /login, so a mark is, which opens nothing by itself."""
    code, root = app.state.visitors.code, app.state.visitors.root
    (mark,) = (one for one in (await stranger.get(f"/login?code={code}")).all("set-cookie") if "_in=" in one)
    assert mark.endswith("; HttpOnly; SameSite=Strict; Path=/login")
    mark = mark.partition(";")[0]
    again = await stranger.get(f"/login?code={code}&next=/about", cookie=mark)
    assert (again.status, again.header("location"), again.all("set-cookie")) == (303, f"{root}/about", [])
    assert len(codes) == 1, "that used up no code"
    for path, cookie in (
        (f"/login?code={code}", None),
        (f"/login?code={code}", f"{COOKIE}_in=guessed"),
        ("/login?code=another", mark),
        ("/login", mark),
        (f"{root}/", mark),
        (f"{root}/", mark.replace("_in=", "=")),
    ):
        answer = await stranger.get(path, cookie=cookie)
        assert answer.status == 401
        assert answer.header("location") is None


async def test_a_click_on_another_site_is_led_on_by_a_page_of_ours(app: Starlette, stranger: Visitor):
    """A SameSite=Strict cookie is not sent along a redirect that began on another site."""
    answer = await stranger.get(
        f"/login?code={app.state.visitors.code}&next=/about",
        sec_fetch_site="cross-site",
        sec_fetch_mode="navigate",
        sec_fetch_dest="document",
    )
    assert (answer.status, answer.header("refresh")) == (200, f"0; url={app.state.visitors.root}/about")
    assert COOKIE in cookie_of(answer)


@pytest.mark.requirement("S11")
async def test_a_code_expires_and_the_next_one_is_announced():
    time, codes = Time(), list[str]()
    visitors = Visitors(local(port=PORT, limits=Limits(launch_code_seconds=600)), announce=codes.append, clock=time)
    first = visitors.code
    time.now += 600
    with pytest.raises(Exception, match="each works once"):
        visitors.login(first)
    assert codes == [visitors.code]
    assert visitors.login(codes[0])


@pytest.mark.requirement("S11")
async def test_an_expired_code_is_replaced_without_anybody_asking():
    seen = anyio.Event()
    visitors = Visitors(local(port=PORT, limits=Limits(launch_code_seconds=0.02)), announce=lambda code: seen.set())
    first = visitors.code
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(visitors.keep_fresh)
        with anyio.fail_after(60):
            await seen.wait()
        tasks.cancel_scope.cancel()
    assert visitors.code != first


# --------------------------------------------------------------------------------------------------- wrong attempts


@pytest.mark.requirement("S11")
@pytest.mark.parametrize("how", ["code", "token"])
async def test_ten_wrong_ones_a_minute_and_the_right_one_still_enters(
    how: str, app: Starlette, stranger: Visitor, script: Visitor
):
    async def attempt() -> int:
        if how == "code":
            answer = await stranger.get("/login?code=wrong")
        else:
            answer = await stranger.get("/", authorization="Bearer wrong-wrong-wrong-wrong")
        if answer.status == 429:
            assert 1 <= int(answer.header("retry-after") or 0) <= 60
        return answer.status

    assert [await attempt() for _ in range(10)] == [401] * 10
    assert [await attempt() for _ in range(3)] == [429] * 3
    assert (await script.get("/")).status == 200
    assert (await stranger.get(f"/login?code={app.state.visitors.code}")).status == 303


@pytest.mark.requirement("M09", "S11")
@pytest.mark.parametrize("how", ["code", "token"])
async def test_m09_wrong_ones_beyond_the_limit_wait_and_right_ones_do_not(
    how: str, app: Starlette, stranger: Visitor, script: Visitor, client: Visitor
):
    """Thirty guessers side by side: each answer comes after its pause, and meanwhile everybody else gets in at once."""
    visitors, pause = app.state.visitors, app.state.settings.limits.login_pause_seconds
    path, headers = ("/login?code=wrong", {}) if how == "code" else ("/", {"authorization": "Bearer wrong-wrong-wrong"})
    for _ in range(10):
        assert (await stranger.send("GET", path, headers)).status == 401
    took: list[float] = []

    async def guess() -> None:
        began = anyio.current_time()
        assert (await stranger.send("GET", path, headers)).status == 429
        took.append(anyio.current_time() - began)

    async with anyio.create_task_group() as group:
        for _ in range(30):
            group.start_soon(guess)
        while visitors._held < 30:
            await anyio.lowlevel.checkpoint()
        assert (await script.get("/")).status == 200
        assert (await client.get("/")).status == 200
        assert (await stranger.get(f"/login?code={visitors.code}")).status == 303
        assert visitors._held == 30, "nobody who is right waited for those who are wrong"
        assert took == []
    assert min(took) >= pause * 0.9
    assert visitors._held == 0


@pytest.mark.requirement("M09")
async def test_m09_waiting_is_no_way_to_take_all_connections(app: Starlette, stranger: Visitor):
    visitors, most = app.state.visitors, app.state.settings.limits.login_waiting
    for _ in range(10):
        await stranger.get("/login?code=wrong")
    async with anyio.create_task_group() as group:
        for _ in range(most):
            group.start_soon(stranger.get, "/login?code=wrong")
        while visitors._held < most:
            await anyio.lowlevel.checkpoint()
        answer = await stranger.get("/login?code=wrong")
        assert (answer.status, answer.header("connection"), visitors._held) == (429, "close", most)
        assert (await stranger.get(f"/login?code={visitors.code}")).status == 303
        visitors.close()  # the process ends: nobody waits any more
    assert visitors._held == 0


@pytest.mark.requirement("S11")
async def test_after_a_minute_wrong_ones_are_only_wrong_again():
    time = Time()
    visitors = Visitors(local(port=PORT), clock=time)

    def attempt() -> int:
        with pytest.raises(Exception) as caught:
            visitors.login("wrong")
        status: int = caught.value.status  # type: ignore[attr-defined]
        return status

    assert [attempt() for _ in range(11)] == [401] * 10 + [429]
    time.now += 61
    assert attempt() == 401


@pytest.mark.requirement("S11")
async def test_no_secret_reaches_the_log(
    app: Starlette, stranger: Visitor, script: Visitor, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    code = app.state.visitors.code
    await stranger.get("/login?code=wrong-code-of-a-stranger")
    cookie = cookie_of(await stranger.get(f"/login?code={code}")).split("=")[1].split(";")[0]
    await stranger.get(f"{app.state.visitors.root}/", cookie=f"{COOKIE}={cookie}")
    await stranger.get(f"{app.state.visitors.root}/s/nothing", cookie=f"{COOKIE}={cookie}")
    await script.post("/s", {"target": {"transport": "nonsense"}})
    await stranger.get("/", authorization="Bearer wrong-token-of-a-stranger")
    key = app.state.visitors.root[2:]
    for secret in (code, app.state.visitors.code, cookie, key, TOKEN, "wrong-code-of", "wrong-token-of"):
        assert secret not in caplog.text


async def test_without_a_token_scripts_are_told_that_they_are_off(stranger: Visitor, app: Starlette):
    app.state.visitors._token = None
    answer = await stranger.get("/", authorization=f"Bearer {TOKEN}", accept="application/json")
    assert answer.status == 401
    assert "PARLEY_TOKEN" in answer.error["message"]


@pytest.mark.requirement("S11")
@pytest.mark.parametrize(
    "value", ["Bearer ", "Bearer", "Basic dXNlcjpwYXNz", f"Bearer {TOKEN}x", f"Bearer x{TOKEN}", TOKEN]
)
async def test_only_the_exact_token_opens(value: str, stranger: Visitor):
    assert (await stranger.get("/", authorization=value)).status == 401


async def test_two_authorization_headers_are_none(stranger: Visitor):
    twice = [("authorization", f"Bearer {TOKEN}"), ("authorization", f"Bearer {TOKEN}")]
    assert (await stranger.send("GET", "/", twice)).status == 401


# ----------------------------------------------------------------------------------------------------------- cookies


@pytest.mark.requirement("S13")
@pytest.mark.parametrize("value", ["", "x", "of-a-former-process-0123456789abcdefghij", "é", '"quoted"', "a=b=c"])
async def test_a_cookie_we_do_not_know_is_cleared(value: str, client: Visitor, app: Starlette):
    answer = await client.get("/", cookie=f"{COOKIE}={value}")
    assert answer.status == 401
    assert cookie_of(answer) == f"{COOKIE}=; HttpOnly; SameSite=Strict; Path={client.root}/; Max-Age=0"


@pytest.mark.requirement("S13")
async def test_a_tampered_cookie_is_not_ours(client: Visitor):
    good = client.headers["cookie"]
    for bad in (good[:-1], good + "x", good.swapcase().replace(COOKIE.swapcase(), COOKIE)):
        assert (await client.get("/", cookie=bad)).status == 401


@pytest.mark.requirement("S13")
async def test_a_stranger_without_a_cookie_gets_none_cleared(stranger: Visitor):
    assert (await stranger.get("/")).header("set-cookie") is None


async def test_a_cookie_that_another_program_put_before_ours_does_not_lock_us_out(client: Visitor):
    """Cookies ignore ports: any server on this machine can set one of the same name."""
    ours = client.headers["cookie"]
    assert (await client.get("/", cookie=f"{COOKIE}=junk; other=1; {ours}")).status == 200


@pytest.mark.requirement("M03")
@pytest.mark.parametrize("many", [8, 180, 1_000])
async def test_m03_however_many_cookies_are_tossed_before_ours_it_counts(many: int, client: Visitor):
    """A browser sends the cookies of the longest path first, and keeps about 180 of one host."""
    tossed = "; ".join(f"{COOKIE}={'x' * 43}{index}"[:60] for index in range(many))
    assert (await client.get("/", cookie=f"{tossed}; {client.headers['cookie']}")).status == 200
    lines = [("cookie", f"{COOKIE}=junk")] * many
    split = Visitor(client.app, {key: value for key, value in client.headers.items() if key != "cookie"}, client.root)
    assert (await split.send("GET", "/", [*lines, ("cookie", client.headers["cookie"])])).status == 200


async def test_each_browser_has_an_id_of_its_own_that_is_not_its_cookie(app: Starlette):
    visitors = app.state.visitors
    cookies = [visitors.admit(LOCAL) for _ in range(3)]
    came = list(visitors._visitors.values())[-3:]
    assert len({visitor.browser for visitor in came}) == 3
    assert all(cookie not in repr(visitor) for cookie in cookies for visitor in came)


async def test_the_number_of_browsers_is_bounded(app: Starlette):
    for _ in range(300):
        app.state.visitors.admit(LOCAL)
    assert len(app.state.visitors._visitors) == 200


async def test_a_script_and_a_browser_are_the_same_person(script: Visitor, client: Visitor):
    sid = (await script.post("/s")).json()["id"]
    assert [one["id"] for one in (await client.json("/"))["sessions"]] == [sid]


# ---------------------------------------------------------------------------------------------------------------- S18


@pytest.mark.requirement("S18")
@pytest.mark.parametrize(
    "goal",
    [
        "//evil.example",
        "/\\evil.example",
        "https:evil.example",
        "https://evil.example",
        "evil",
        "",
        "/a\r\nSet-Cookie: x=y",
        "/\tevil",
        "\\\\evil",
        "/x\\y",
        "javascript:alert(1)",
        "/ /evil",
        "/é",
        "///evil",
        "/%0d%0a/../\\",
    ],
)
async def test_after_the_login_nobody_is_sent_elsewhere(goal: str, app: Starlette, stranger: Visitor):
    assert own_path(goal) == "/"
    answer = await stranger.get(f"/login?code={app.state.visitors.code}&next={quote(goal, safe='')}")
    assert (answer.status, answer.header("location")) == (303, f"{app.state.visitors.root}/")


@pytest.mark.requirement("S18")
@pytest.mark.parametrize("goal", ["/", "/about", "/s/r0-abc_DEF-123", "/s/x/log?after=3"])
async def test_a_path_of_ours_is_where_one_goes(goal: str):
    assert own_path(goal) == goal


async def test_a_session_id_is_no_way_in(stranger: Visitor, victim: Session):
    """Knowing the address of a session opens nothing (R5-76)."""
    assert (await stranger.get(f"/s/{victim.id}")).status == 401
