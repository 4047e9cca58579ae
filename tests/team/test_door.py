"""The door of a team: through its proxy, by its name, with a cookie or a token of its people; and who may do what."""

import psutil
import pytest
from starlette.applications import Starlette

from app.core.catalogue import ROLES
from app.sessions import Identity
from app.team_settings import refusals
from app.web.door.guard import Access, GuardedRoute
from app.web.door.rights import IN_A_SESSION, Asker, Needs, decide
from app.web.team.app import public_routes
from app.web.team.house import House
from tests.drive import until
from tests.team.conftest import HOST, ORIGIN, PROXY, Enters, Guest
from tests.web.table import address, method

pytestmark = pytest.mark.requirement("T07")
SECRET = "what-the-proxy-alone-knows"


# ------------------------------------------------------------------------------------------------------------ reaching


@pytest.mark.requirement("S02", "S03")
async def test_only_the_proxy_and_only_by_the_public_name(stranger: Guest):
    assert (await stranger.send("GET", "/", {"x-forwarded-proto": None})).status == 400
    assert (await stranger.send("GET", "/", {"x-forwarded-proto": "http"})).status == 400
    for host in ("evil.example", "127.0.0.1:6281", "localhost", f"{HOST}.evil.example", ""):
        assert (await stranger.send("GET", "/", host=host)).status == 400, host
    assert (await stranger.send("GET", "/")).status == 401
    for origin in ("https://evil.example", f"http://{HOST}", "null"):
        assert (await stranger.send("POST", "/dial", {"origin": origin})).status == 403, origin


async def test_somebody_who_is_not_the_proxy_gets_no_answer(app: Starlette):
    told: list[int] = []

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            told.append(int(str(message["status"])))

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    headers = [(b"host", HOST.encode()), *((key.encode(), value.encode()) for key, value in PROXY.items())]
    for client in (("10.1.2.3", 1), ("::ffff:127.0.0.1", 1), None, ("unix", 0)):
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": client,
            "server": ("127.0.0.1", 1),
            "state": {},
        }
        await app(scope, receive, send)  # type: ignore[arg-type]
    assert told == [403, 401, 403, 403]


@pytest.mark.requirement("S01", "S08")
async def test_the_public_routes_are_these(app: Starlette, stranger: Guest):
    table = [route for route in app.routes if isinstance(route, GuardedRoute)]
    assert len(table) == len(app.routes)
    public = {(method(route), route.path) for route in table if route.access is Access.PUBLIC}
    assert public == {
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/static/{path:path}"),
        ("GET", "/favicon.ico"),
        ("GET", "/invite/{code}"),
        ("POST", "/invite/{code}"),
        ("GET", "/enter"),
    }
    assert [(route.path, route.methods) for route in public_routes()] == [
        (route.path, route.methods) for route in app.routes[: len(public)] if isinstance(route, GuardedRoute)
    ]
    for route in table:
        if route.access is not Access.PUBLIC:
            answer = await stranger.send(method(route), _filled(route))
            assert answer.status == (404 if route.access is Access.GUEST else 401), route.path
    page = await stranger.get("/")
    assert "admin of this Parley" in page.text and "terminal" not in page.text


def _filled(route: GuardedRoute, sid: str = "s-unknown") -> str:
    for name in ("entry", "token", "login", "person", "code", "step", "child", "invitation"):
        route = _with(route, route.path.replace(f"{{{name}}}", "x1"))
    return address(route, sid)


def _with(route: GuardedRoute, path: str) -> GuardedRoute:
    return GuardedRoute(path, route.endpoint, access=route.access, method=method(route), needs=route.needs)


# -------------------------------------------------------------------------------------------------------------- cookies


@pytest.mark.requirement("S12", "S14")
async def test_an_invitation_becomes_a_cookie_that_is_bound_to_the_host(enters: Enters, house: House, stranger: Guest):
    code, _ = await house.people.invite("Grace", "user", "test", 3600)
    page = await stranger.get(f"/invite/{code}")
    assert (page.status, page.header("referrer-policy")) == (200, "no-referrer")
    assert len(await house.people.invitations()) == 1, "to look at it uses nothing up"
    first = await stranger.form(f"/invite/{code}", cookie="__Host-parley=chosen-by-mallory")
    given = first.header("set-cookie") or ""
    name, _, value = given.partition(";")[0].partition("=")
    assert (name, "chosen-by-mallory" in value) == ("__Host-parley", False)
    assert all(part in given for part in ("; Secure", "; HttpOnly", "; Path=/", "; SameSite=Lax"))
    assert "Domain" not in given
    assert (await stranger.get("/", cookie=f"__Host-parley={value}")).status == 200
    for other in (f"parley={value}", f"parley_6281={value}", f"__host-parley={value}", f"__Host-parley={value}x"):
        assert (await stranger.get("/", cookie=other)).status == 401, other
    again = await stranger.form(f"/invite/{code}")
    assert (again.status, again.all("set-cookie")) == (401, [])
    assert "works once" in again.text


async def test_wrong_invitations_are_slowed_down_for_who_sends_them(stranger: Guest, enters: Enters):
    found = [(await stranger.form(f"/invite/{number}")).status for number in range(12)]
    assert found == [401] * 10 + [429] * 2
    other = Guest(stranger.app, {**stranger.headers, "x-forwarded-for": "203.0.113.9"})
    assert (await other.form("/invite/1")).status == 401
    assert (await (await enters("Grace")).get("/")).status == 200, "the right one still enters"


@pytest.mark.parametrize("address", ["2001:db8::{}", "203.0.113.8:{}", "[2001:db8::{}]:443"])
async def test_nobody_guesses_from_all_addresses_of_a_household(stranger: Guest, address: str):
    found = []
    for number in range(1, 13):
        guest = Guest(stranger.app, {**stranger.headers, "x-forwarded-for": address.format(number)})
        found.append((await guest.form(f"/invite/{number}")).status)
    assert found == [401] * 10 + [429] * 2


async def test_signing_out_ends_this_browser_or_every_one(enters: Enters):
    one, two = await enters("Grace"), await enters("Grace")
    other = await enters("Ada")
    assert (await one.form("/logout")).header("set-cookie") == (
        "__Host-parley=; Secure; HttpOnly; SameSite=Lax; Path=/; Max-Age=0"
    )
    assert [(await each.get("/")).status for each in (one, two, other)] == [401, 200, 200]
    third = await enters("Grace")
    assert (await third.post("/logout", {"everywhere": True})).json() == {"signed_out": 2}
    assert [(await each.get("/")).status for each in (two, third, other)] == [401, 401, 200]


# --------------------------------------------------------------------------------------------------------------- rights


def test_one_function_decides():
    table = {
        (role, needs): decide(Asker(role, owns=True), needs, changes=needs not in {Needs.WATCH, Needs.SIGNED_IN})
        for role in ROLES
        for needs in Needs
    }
    refused = {key: value for key, value in table.items() if value is not None}
    assert refused == {
        ("viewer", Needs.ADMIN): "unknown",
        ("user", Needs.ADMIN): "unknown",
        ("viewer", Needs.ANSWER): "forbidden",
        ("viewer", Needs.OPERATE): "forbidden",
    }
    for needs in IN_A_SESSION:
        for role in ROLES:
            assert decide(Asker(role, owns=False), needs, changes=False) == "unknown", "an admin is no owner either"
    for needs in Needs:
        assert decide(Asker(""), needs, changes=True) is None, "local mode asks nobody"
        reads = needs in {Needs.GUEST, Needs.PUBLIC, Needs.SIGNED_IN, Needs.ADMIN, Needs.WATCH, Needs.PRIVATE}
        assert (decide(Asker("admin", read_only=True, owns=True), needs, changes=False) is None) is reads
        if needs not in {Needs.PUBLIC, Needs.GUEST}:
            assert decide(Asker("admin", read_only=True, owns=True), needs, changes=True) == "forbidden"


@pytest.mark.requirement("S15")
async def test_every_route_by_every_role_in_an_own_and_a_foreign_session(app: Starlette, enters: Enters):
    """For somebody else's session, and for what is of admins, the answer is what it is for something that never was."""
    people = {role: await enters(role, role) for role in ROLES}
    victim = await enters("victim")
    assert victim.person is not None
    registry = app.state.registry
    session = registry.open(Identity(victim.person.id, "victim", role="user"))
    for route in app.routes:
        assert isinstance(route, GuardedRoute)
        if route.access is Access.PUBLIC or route.path.startswith(("/logout", "/people", "/me/", "/close-lost")):
            continue
        for role, guest in people.items():
            if route.access in {Access.SESSION, Access.CLOSED}:
                answer = await guest.send(method(route), _filled(route, session.id), {"accept": "application/json"})
                assert answer.status == 404, (role, route.path, answer.text[:200])
                assert victim.person.name not in answer.text
            elif route.needs is Needs.ADMIN and role != "admin":
                answer = await guest.send(method(route), _filled(route), {"accept": "application/json"})
                assert (answer.status, answer.error["kind"]) == (404, "unknown"), (role, route.path)
    assert registry.find(Identity(victim.person.id, "victim"), session.id) is session


async def test_a_viewer_looks_and_does_not_act(app: Starlette, enters: Enters):
    viewer = await enters("viewer", "viewer")
    assert viewer.person is not None
    session = app.state.registry.open(Identity(viewer.person.id, "viewer", role="viewer"))
    for route in app.routes:
        assert isinstance(route, GuardedRoute)
        if route.access is Access.SESSION and route.needs in {Needs.OPERATE, Needs.ANSWER}:
            answer = await viewer.post(_filled(route, session.id))
            assert (answer.status, "Viewers look" in answer.text) == (403, True), route.path
    assert (await viewer.get(f"/s/{session.id}/log")).status == 200
    assert (await viewer.post(f"/s/{session.id}/close")).status == 200


# --------------------------------------------------------------------------------------------------------------- tokens


async def test_a_token_reads_or_acts_and_is_shown_once(enters: Enters, house: House, app: Starlette):
    grace = await enters("Grace")
    made = await grace.form("/me/tokens", {"name": "CI", "scope": "read", "days": "1"})
    text = made.text.partition("parley_")[2].partition("<")[0]
    assert len(text) > 40
    assert text not in (await grace.get("/me")).text
    script = Guest(app, {**PROXY, "authorization": f"Bearer parley_{text}", "accept": "application/json"})
    assert (await script.json("/"))["me"]["name"] == "Grace"
    refused = await script.post("/catalogue/raw/connect")
    assert (refused.status, refused.error["message"]) == (403, "This token may only read. Ask an admin of this Parley.")
    acting = (await grace.post("/me/tokens", {"name": "act", "scope": "act"})).json()
    actor = Guest(app, {**PROXY, "authorization": f"Bearer {acting['token']}", "accept": "application/json"})
    assert (await actor.post("/dial", {"url": "nonsense"})).status == 422
    assert (await actor.post("/me/tokens", {"name": "more", "scope": "act"})).status == 403
    assert (await grace.form(f"/me/tokens/{acting['id']}/revoke")).status == 303
    assert (await actor.get("/")).status == 401
    other = await enters("Ada")
    token = house.people.tokens(grace.person.id if grace.person else "")[0]
    assert (await other.post(f"/me/tokens/{token.id}/revoke")).status == 409
    assert (await script.json("/"))["me"]["name"] == "Grace"


async def test_what_has_ended_says_how(enters: Enters, house: House, app: Starlette, monkeypatch: pytest.MonkeyPatch):
    grace = await enters("Grace")
    made = (await grace.post("/me/tokens", {"name": "CI", "days": 1})).json()
    second = (await grace.post("/me/tokens", {"name": "other", "days": 1})).json()

    def script(token: str) -> Guest:
        return Guest(app, {**PROXY, "authorization": f"Bearer {token}", "accept": "application/json"})

    assert (await script(second["token"]).get("/me")).status == 200
    assert [one["seen"] is None for one in (await grace.json("/me"))["tokens"]] == [False, True]
    assert (await grace.form(f"/me/tokens/{made['id']}/revoke")).status == 303
    refused = await script(made["token"]).get("/")
    assert (refused.status, refused.error["message"]) == (
        401,
        "That token was revoked. Make another one on the page Me.",
    )
    assert (await script("parley_never").get("/")).error["message"] == "That token is not known here."
    wall = house.people._wall
    for hours, words in ((2, "signed out after 2 hours without use"), (12, "Your sign-in is over: one lasts 12 hours")):
        monkeypatch.setattr(house.people, "_wall", lambda hours=hours: wall() + hours * 3600)
        answer = await grace.get("/")
        assert (answer.status, words in answer.text) == (401, True), answer.text
        assert "Max-Age=0" in (answer.header("set-cookie") or "")
    monkeypatch.setattr(house.people, "_wall", lambda: wall() + 86_401)
    over = await script(second["token"]).get("/")
    assert over.error["message"] == "That token is over. Make another one on the page Me."
    monkeypatch.setattr(house.people, "_wall", lambda: wall() + 3 * 86_400)
    await house.people.sweep()
    assert (house.people._logins, house.people._tokens, house.people._by_digest) == ({}, {}, {})


async def test_an_invitation_that_nobody_used_is_revoked_and_people_are_found(enters: Enters, stranger: Guest):
    boss = await enters("boss", "admin")
    for number in range(11):
        await enters(f"colleague {number}")
    link = (await boss.post("/people/invite", {"name": "Mallory"})).json()["link"]
    [waiting] = (await boss.json("/people"))["invitations"]
    assert waiting["name"] == "Mallory" and waiting["id"] not in link
    assert "1 invitation not used yet" in (await boss.get("/people")).text
    assert (await boss.form(f"/people/invitations/{waiting['id']}/revoke")).status == 303
    assert (await stranger.form(link.removeprefix(ORIGIN))).status == 401
    assert (await boss.post(f"/people/invitations/{waiting['id']}/revoke")).status == 409
    page = (await boss.get("/people?q=gue+1")).text
    assert ("colleague 10" in page, "colleague 2" in page, "Search 12 people" in page) == (True, False, True)
    assert "Nobody has that name." in (await boss.get("/people?q=zzz")).text
    here = {one["name"]: one["here"] for one in (await boss.json("/people"))["people"]}
    assert here["boss"] and len(here) == 12
    acts = [(one["act"], one["what"]) for one in (await boss.json("/audit?q=mallory&days=1"))["entries"]]
    assert acts == [("revoked an invitation", "Mallory"), ("invited", "Mallory as user")]


async def test_the_audit_log_has_pages(enters: Enters, house: House):
    boss = await enters("boss", "admin")
    for number in range(250):
        house.audit.note("", f"p{number}", "called", "echo")
    first = (await boss.get("/audit?act=called")).text
    assert ("p249" in first, "p150<" in first, "p149<" in first, ">Newest<" in first) == (True, True, False, False)
    told, many = {"before": 0}, []
    while told["before"] is not None:
        told = await boss.json(f"/audit?act=called&before={told['before']}")
        many.append((len(told["entries"]), told["total"]))
    assert many == [(100, 250), (100, 250), (50, 250)]
    assert "250 entries" in first
    older = await boss.json("/audit?act=called")
    assert ">Newest<" in (await boss.get(f"/audit?act=called&before={older['before']}")).text
    assert len((await boss.get("/audit.jsonl?act=called&days=7&q=p24")).text.splitlines()) == 11
    assert "Nothing matches." in (await boss.get("/audit?q=zzz")).text


# ----------------------------------------------------------------------------------------------------------- the proxy


class TestProxyDoor:
    @pytest.fixture
    def settings(self, settings):
        secret = settings.data_dir.parent / "proxy.secret"
        secret.write_text(f"{SECRET}\n")
        secret.chmod(0o600)
        changes = {"door": "proxy", "proxy_header": "X-Forwarded-User", "proxy_admins": ("boss",)}
        found = settings.model_copy(update={**changes, "proxy_secret_file": str(secret)})
        assert not [one for one in refusals(found, {}) if "proxy" in one]
        return found

    @pytest.fixture
    def stranger(self, stranger):
        stranger.headers["x-parley-proxy"] = SECRET
        return stranger

    async def test_a_server_on_this_machine_does_not_pose_as_the_proxy(self, stranger: Guest):
        for shown in (None, "", "x", "\xe9", SECRET[:-1]):
            answer = await stranger.get("/enter", x_forwarded_user="boss", x_parley_proxy=shown)
            assert (answer.status, answer.header("set-cookie")) == (404, None), shown
        cookie = (await stranger.get("/enter", x_forwarded_user="boss")).header("set-cookie") or ""
        theirs = {"cookie": cookie.partition(";")[0], "x-forwarded-user": "boss"}
        assert (await stranger.send("GET", "/", theirs)).status == 200
        assert (await stranger.send("GET", "/", {**theirs, "x-parley-proxy": None})).status == 401

    async def test_the_header_of_the_proxy_says_who_somebody_is(self, stranger: Guest, house: House):
        assert (await stranger.get("/enter")).status == 404
        assert (await stranger.form("/invite/x")).status == 404
        roles = {}
        for name in ("boss", "grace"):
            answer = await stranger.get("/enter", x_forwarded_user=name)
            cookie = (answer.header("set-cookie") or "").partition(";")[0]
            told = await stranger.send(
                "GET", "/", {"cookie": cookie, "x-forwarded-user": name, "accept": "application/json"}
            )
            roles[name] = told.json()["me"]["role"]
            # A cookie counts for the person whom the proxy names, and for nobody else.
            for other in (None, "mallory", ""):
                seen = await stranger.send("GET", "/", {"cookie": cookie, "x-forwarded-user": other})
                assert seen.status == 401, (name, other)
        assert roles == {"boss": "admin", "grace": "user"}
        grace = next(one for one in house.people.all() if one.name == "grace")
        await house.people.switch_off(None, grace.id)
        assert (await stranger.get("/enter", x_forwarded_user="grace")).status == 403


# ------------------------------------------------------------------------------------------------------------ the gate


@pytest.mark.requirement("S25", "S26")
async def test_commands_of_ones_own_are_refused_and_written_down(enters: Enters, app: Starlette, house: House):
    grace = await enters("Grace")
    for body in (
        {"target": {"transport": "stdio", "command": "sh", "args": ["-c", "id"]}},
        {"target": {"transport": "stdio", "command": "/opt/anything"}},
        {"target": {"transport": ["stdio"], "command": {"sh": 1}}},
    ):
        assert (await grace.post("/s", body)).status == 403
    for fields in (
        {"transport": "stdio", "command": "sh -c id"},
        {"transport": "mcpjson", "mcp_json": '{"mcpServers": {"x": {"command": "sh"}}}'},
        {"_preview": "form", "transport": "stdio", "command": "sh"},
    ):
        assert (await grace.form("/s", fields)).status == 403
    assert (await grace.post("/s", {"target": {"transport": "demo"}})).status == 403
    assert (await grace.post("/dial", {"url": f"{ORIGIN}/"})).status == 403
    assert (await grace.post("/dial", {"url": "http://wiki.internal:8080/other"})).status == 403
    assert [one.target for one in app.state.registry.everybodys() if one.target is not None] == []
    entries = await house.audit.search(act="was refused")
    assert {one.who for one in entries} == {"Grace"} and len(entries) == 9
    assert "a command of their own" in {one.what for one in entries}
    for key in ("../raw", "none", "secret", "..%2Fraw"):
        assert (await grace.post(f"/catalogue/{key}/connect")).status == 404, key


async def test_an_address_that_leads_inwards_is_refused_where_it_is_dialled(enters: Enters, app: Starlette):
    grace = await enters("Grace")
    made = await grace.post("/dial", {"url": "http://127.0.0.1:9/mcp"})
    assert made.status == 201
    told = await grace.json(f"{made.json()['url']}?wait=20")
    assert told["connection"]["state"] == "lost"
    assert "not a public address" in str(told["connection"])
    policy = app.state.registry.egress.policy
    assert policy.refusal("wiki.internal", "10.0.0.1", 8080) is None
    assert policy.refusal("wiki.internal", "10.0.0.1", 22) is not None
    assert policy.refusal("parley.example", "127.0.0.1", 443) is not None


async def test_somebody_picks_a_server_and_talks_to_it(enters: Enters, app: Starlette, house: House):
    grace = await enters("Grace")
    page = await grace.get("/")
    assert "By region" in page.text and "needs REGION" in page.text
    assert "raw.py" not in page.text, "how a server is started is not for people"
    assert (await grace.get("/?entry=region")).text.count("<select") == 1
    wrong = await grace.form("/catalogue/region/connect", {"var.REGION": "east"})
    assert (wrong.status, "One of: north, south." in wrong.text) == (422, True)
    started = await grace.form("/catalogue/raw/connect")
    path = started.header("location") or ""
    assert (started.status, path.startswith("/s/")) == (303, True)
    session = app.state.registry.everybodys()[-1]
    await until(session, lambda: session.info.state == "ready")
    assert (await grace.json(path))["connection"]["state"] == "ready"
    assert "raw.py" not in (await grace.get(path)).text
    assert [(one.who, one.what) for one in await house.audit.search(act="connected")] == [("Grace", "Raw")]


# -------------------------------------------------------------------------------------------------------------- admins


async def test_switched_off_in_the_middle_everything_ends(enters: Enters, app: Starlette, house: House):
    boss, grace = await enters("boss", "admin"), await enters("Grace")
    assert boss.person is not None and grace.person is not None
    await grace.form("/catalogue/raw/connect")
    session = app.state.registry.everybodys()[-1]
    await until(session, lambda: session.info.state == "ready")
    pid = session.info.pid
    assert (await boss.form(f"/people/{boss.person.id}/off")).status == 403
    assert (await boss.form(f"/people/{grace.person.id}/off")).status == 303
    assert ((await grace.get("/")).status, app.state.registry.everybodys(), session.closed) == (401, [], True)
    assert pid is not None and not psutil.pid_exists(pid)
    assert (await boss.form(f"/people/{grace.person.id}/on")).status == 303
    assert (await grace.get("/")).status == 401, "the login has ended for good"


async def test_an_admin_invites_and_reads_who_did_what(enters: Enters, stranger: Guest):
    boss = await enters("boss", "admin")
    made = (await boss.post("/people/invite", {"name": "Grace", "role": "viewer"})).json()
    assert made["link"].startswith(f"{ORIGIN}/invite/")
    assert (await stranger.form(made["link"].removeprefix(ORIGIN))).status == 303
    page = await boss.form("/people/invite", {"name": "Ada"})
    assert f"{ORIGIN}/invite/" in page.text
    people = (await boss.json("/people"))["people"]
    assert [(one["name"], one["role"]) for one in people] == [("boss", "admin"), ("Grace", "viewer")]
    grace = people[1]
    assert (await boss.form(f"/people/{grace['id']}/role", {"role": "user"})).status == 303
    assert (await boss.form(f"/people/{grace['id']}/role", {"role": "king"})).status == 422
    told = (await boss.json("/audit?q=grace"))["entries"]
    assert [(one["who"], one["act"]) for one in told] == [
        ("boss", "changed a role"),
        ("Grace", "signed in"),
        ("boss", "invited"),
    ]
    lines = (await boss.get("/audit.jsonl?act=invited")).text.splitlines()
    assert len(lines) == 2
    assert "changed a role" in (await boss.get("/audit")).text
    assert "bwrap is not installed" in (await boss.get("/isolation")).text
    assert (await boss.json("/isolation"))["lines"][0]["state"] == "missing"
    assert (await boss.get("/people")).status == 200
    assert (await boss.get("/me")).status == 200
