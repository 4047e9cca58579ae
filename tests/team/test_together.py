"""People of a team together: who may look at what of whom, who is here, who answers, and how it ends."""

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.routing import Match

from app import bounds, team_bounds
from app.recordings import codec
from app.sessions import Session
from app.web.door.guard import Access, GuardedRoute
from app.web.door.rights import IN_A_SESSION, Asker, Needs, decide
from app.web.team.house import House
from tests.drive import HANG, ROOT, call_tool, until
from tests.team.conftest import HOST, ORIGIN, Enters, Guest
from tests.web.asgi import Answer
from tests.web.table import address, method

pytestmark = pytest.mark.requirement("T30")
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def form(rpc_id: str) -> str:
    params = {"message": "Which traveller?", "requestedSchema": SCHEMA}
    return json.dumps({"jsonrpc": "2.0", "id": rpc_id, "method": "elicitation/create", "params": params})


async def opened(app: Starlette, owner: Guest, *asks: str) -> Session:
    """A session of somebody with a real server, which asks."""
    await owner.form("/catalogue/raw/connect")
    session: Session = app.state.registry.everybodys()[-1]
    await until(session, lambda: session.info.state == "ready")
    if asks:
        await call_tool(session, "say", {"lines": [*map(form, asks), DONE]})
        await until(session, lambda: session.open_asks == len(asks))
    return session


@dataclass
class Hearing:
    """A stream that is open."""

    said: str = ""
    over: anyio.Event = field(default_factory=anyio.Event)
    stop: anyio.Event = field(default_factory=anyio.Event)
    more: anyio.Event = field(default_factory=anyio.Event)

    async def until(self, words: str) -> None:
        with anyio.fail_after(HANG):
            while words not in self.said:
                self.more = anyio.Event()
                await self.more.wait()


@asynccontextmanager
async def hearing(guest: Guest, path: str) -> AsyncIterator[Hearing]:
    """The stream of one of their tabs."""
    heard = Hearing()
    path, _, query = path.partition("?")
    headers = [(b"host", HOST.encode()), *((k.encode(), v.encode()) for k, v in guest.headers.items())]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
             "headers": headers, "http_version": "1.1", "scheme": "http", "root_path": "", "asgi": {"version": "3.0"},
             "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 1), "state": {}}  # fmt: skip

    async def receive() -> dict[str, str]:
        await heard.stop.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        heard.said += message.get("body", b"").decode()
        heard.more.set()

    async def run() -> None:
        await guest.app(scope, receive, send)
        heard.over.set()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        yield heard
        heard.stop.set()


# --------------------------------------------------------------------------------------------------------------- rights


def test_what_is_shared_is_decided_by_the_same_function():
    table = {
        (role, shared, needs): decide(Asker(role, shared=shared), needs, changes=True)
        for role in ("viewer", "user", "admin")
        for shared in ("watch", "answer")
        for needs in IN_A_SESSION
    }
    allowed = {key for key, refusal in table.items() if refusal is None}
    assert allowed == {
        *((role, shared, Needs.WATCH) for role in ("viewer", "user", "admin") for shared in ("watch", "answer")),
        ("user", "answer", Needs.ANSWER),
        ("admin", "answer", Needs.ANSWER),
    }
    assert {table[key] for key in table.keys() - allowed} == {"forbidden"}, "they see it, so they learn that"
    for needs in IN_A_SESSION:
        token = decide(Asker("user", read_only=True, shared="answer"), needs, changes=False)
        assert (token is None) is (needs is Needs.WATCH)


ANSWERERS_POST = {
    "/inbox/clear", "/asks/{aid}/answer", "/asks/{aid}/reopen", "/asks/{aid}/form", "/asks/{aid}/request",
    "/asks/{aid}/uses", "/asks/{aid}/touch", "/asks/{aid}/draft", "/asks/{aid}/draft/stop",
}  # fmt: skip
OWNERS_GET = {
    "/connect", "/saved/{request}", "/compose", "/asks/{aid}/rule", "/asks/{aid}/link", "/sign-in", "/models", "/rules",
    "/rules/export", "/rules/new", "/rules/{rid}", "/moments", "/share", "/unfinished",
}  # fmt: skip


async def test_every_route_as_somebody_who_watches_and_who_answers(app: Starlette, enters: Enters, house: House):
    """Of somebody else's session: everything that shows, but what is about acting; nothing that acts, but answers."""
    ada, grace, linus, mallory = [await enters(name) for name in ("Ada", "Grace", "Linus", "Mallory")]
    session = await opened(app, ada, "q1")
    for guest, may in ((grace, "watch"), (linus, "answer")):
        assert guest.person is not None
        await house.shares.give("session", session.id, may, guest.person.id, "test")  # type: ignore[arg-type]
    refused: dict[str, dict[str, set[str]]] = {"watch": {"GET": set(), "POST": set()}}
    refused["answer"] = {"GET": set(), "POST": set()}
    all_posts = set()
    for route in app.routes:
        assert isinstance(route, GuardedRoute)
        below = route.path.removeprefix("/s/{sid}")
        if route.access is not Access.SESSION or below == "/events":
            continue
        if method(route) == "POST":
            all_posts.add(below)
        for guest, may in ((grace, "watch"), (linus, "answer"), (mallory, "")):
            answer = await guest.send(method(route), address(route, session.id), {"accept": "application/json"})
            if not may:
                assert answer.status == 404, (route.path, answer.text[:200])
            elif answer.status == 403:
                assert "shared with you" in answer.error["message"], route.path
                refused[may][method(route)].add(below)
            elif session.inbox.asks.get("a1") is None or session.closed:
                raise AssertionError(f"{route.path} did something")
    assert refused["watch"]["GET"] == refused["answer"]["GET"] == OWNERS_GET
    assert all_posts - refused["watch"]["POST"] == {"/follow"}
    assert all_posts - refused["answer"]["POST"] == {"/follow"} | ANSWERERS_POST
    assert session.target is not None and session.info.state == "ready"


class _Acts(HTMLParser):
    """The addresses of a page that somebody could press or follow; what is in a disabled fieldset cannot be."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()
        self._disabled = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "fieldset" and ("disabled" in given or self._disabled):
            self._disabled += 1
        if self._disabled:
            return
        posts = [given.get("hx-post"), given.get("formaction")]
        posts += [given.get("action")] if tag == "form" and "in" not in (given.get("class") or "").split() else []
        self.found |= {("POST", one) for one in posts if one}
        gets = [given.get("hx-get"), given.get("href") if tag == "a" else None]
        self.found |= {("GET", one) for one in gets if one and one.startswith("/")}

    def handle_endtag(self, tag: str) -> None:
        if tag == "fieldset" and self._disabled:
            self._disabled -= 1


async def test_pages_offer_nobody_what_they_may_not_do(app: Starlette, enters: Enters, house: House):
    ada, grace, linus = await enters("Ada"), await enters("Grace"), await enters("Linus")
    session = await opened(app, ada, "q1", "q2")
    [one, two] = session.inbox.open
    await ada.post(f"/s/{session.id}/asks/{two.id}/answer", {"action": "decline"})
    await ada.post(f"/s/{session.id}/rules", {"name": "r", "on": True, "do": {"action": "decline"}})
    for guest, may in ((grace, "watch"), (linus, "answer")):
        assert guest.person is not None
        await house.shares.give("session", session.id, may, guest.person.id, "test")  # type: ignore[arg-type]
    call, seq = next(iter(session.calls)), session.messages.last(1)[0].seq
    below = ["", "/tools", "/tools/echo", "/calls", f"/calls/{call}", "/log", "/inbox", "/tasks", "/roots",
             f"/asks/{one.id}", f"/asks/{two.id}", "/stderr", "/logging", "/resources", "/prompts", "/timeline",
             "/resources/templates", "/stage", "/subscriptions", f"/log/{seq}"]  # fmt: skip
    offered: set[tuple[str, str, str, str]] = set()
    for guest, may in ((grace, "watch"), (linus, "answer")):
        for path in below:
            page = await guest.get(f"/s/{session.id}{path}")
            assert page.status == 200, path
            acts = _Acts()
            acts.feed(page.text)
            for verb, where in acts.found:
                route = _route(app, verb, where.partition("?")[0].partition("#")[0])
                if route is not None and route.needs in IN_A_SESSION:
                    refusal = decide(Asker("user", shared=may), route.needs, changes=verb == "POST")  # type: ignore[arg-type]
                    offered |= {(may, path, verb, where)} if refusal else set()
            if path == "/inbox":
                assert ("You watch this session" in page.text) is (may == "watch")
            assert f'href="/s/{session.id}/share"' not in page.text
        assert offered == set()
        items = (await guest.json(f"/s/{session.id}/palette"))["items"]
        assert not [item for item in items if item.get("post") is not None]
    assert f'href="/s/{session.id}/share"' in (await ada.get(f"/s/{session.id}")).text


def _route(app: Starlette, verb: str, path: str) -> GuardedRoute | None:
    scope = {"type": "http", "method": verb, "path": path, "root_path": "", "headers": []}
    found = (route for route in app.routes if route.matches(scope)[0] is Match.FULL)
    route = next(found, None)
    return route if isinstance(route, GuardedRoute) else None


# ------------------------------------------------------------------------------------------------------------- sharing


async def test_sharing_by_name_and_by_link_and_taking_it_away_at_once(app: Starlette, enters: Enters, house: House):
    ada, grace, linus = await enters("Ada"), await enters("Grace"), await enters("Linus")
    await enters("Vera", "viewer")
    session = await opened(app, ada)
    base = f"/s/{session.id}"
    assert (await grace.get(base)).status == 404
    for wrong, status in (
        ({"person": "Nobody"}, 422),
        ({"person": "Ada"}, 403),
        ({"person": "Vera", "may": "answer"}, 403),
        ({"person": "Grace", "may": "operate"}, 422),
        ({"link": True, "hours": 0}, 422),
        ({"link": True, "hours": 1e9}, 422),
    ):
        assert (await ada.post(f"{base}/share", wrong)).status == status, wrong
    page = await ada.form(f"{base}/share", {"person": "Nobody"})
    assert (page.status, "Nobody of the team has this name." in page.text) == (422, True)
    told = (await ada.post(f"{base}/share", {"person": "grace", "may": "watch"})).json()
    [given] = told["people"]
    assert (given["person"]["name"], given["may"], given["expires"]) == ("Grace", "watch", None)
    assert (await grace.json("/"))["shared"] == [
        {"kind": "session", "url": base, "label": session.label, "owner": "Ada", "may": "watch"}
    ]
    assert "Shared with me" in (await grace.get("/")).text

    made = (await ada.post(f"{base}/share", {"link": True, "may": "answer", "hours": 2})).json()
    path = made["link"].removeprefix(ORIGIN)
    assert path.startswith("/join/")
    assert made["link"].rpartition("/")[2] not in (await ada.get(f"{base}/share")).text, "it is shown once"
    assert (await linus.get(base)).status == 404
    assert "answer what its server asks" in (await linus.get(path)).text
    assert (await linus.get(base)).status == 404, "to look at a link uses nothing"
    joined = await linus.form(path)
    assert (joined.status, joined.header("location")) == (303, base)
    assert (await linus.get(base)).status == 200
    assert (await linus.get("/join/wrong")).status == 404
    assert {one["person"]["name"] for one in (await ada.json(f"{base}/share"))["people"]} == {"Grace", "Linus"}

    async with (
        hearing(grace, f"{base}/events?page=overview&since=-1") as hers,
        hearing(linus, f"{base}/events?format=json&since=0") as his,
    ):
        await hers.until("data:")
        await his.until("people.changed")
        names = [one["name"] for one in (await ada.json(f"{base}/here"))["here"]]
        assert names == ["Grace", "Linus"]
        waits = f"{base}/inbox?wait=20"

        async with anyio.create_task_group() as group:

            async def late() -> None:
                assert (await grace.get(waits)).status == 404, "what was asked before ends with it too"

            group.start_soon(late)
            await anyio.wait_all_tasks_blocked()
            assert (await ada.post(f"{base}/share/{given['id']}/revoke")).status == 200
            await hers.until("event: bye\ndata: revoked")
            await call_tool(session, "say", {"lines": [form("q9"), DONE]})
        assert "Which traveller?" not in hers.said
        assert (await grace.get(base)).status == 404
        assert not his.over.is_set()
        assert (await ada.post(f"{base}/share/{made['id']}/revoke")).status == 200
        await his.until("event: bye\ndata: revoked")
    assert ((await linus.get(base)).status, (await linus.form(path)).status) == (404, 404)
    assert (await ada.post(f"{base}/share/{made['id']}/revoke")).status == 409
    assert (await ada.json(f"{base}/share"))["people"] == []
    acts = [(one.who, one.act) for one in reversed(await house.audit.search()) if one.act != "signed in"]
    assert [one for one in acts if one[1] not in {"was refused", "called"}] == [
        ("Ada", "connected"),
        ("Ada", "shared"),
        ("Ada", "shared"),
        ("Linus", "joined"),
        ("Ada", "revoked a share"),
        ("Ada", "revoked a share"),
    ]


async def test_a_link_ends_by_itself_and_what_was_shared_outlives_a_restart(
    app: Starlette, enters: Enters, house: House, monkeypatch: pytest.MonkeyPatch
):
    ada, grace = await enters("Ada"), await enters("Grace")
    session = await opened(app, ada)
    made = (await ada.post(f"/s/{session.id}/share", {"link": True, "hours": 1})).json()
    await grace.form(made["link"].removeprefix(ORIGIN))
    now = house.shares._wall()
    house.shares._kept.clear()
    await house.shares.open()
    assert (await grace.get(f"/s/{session.id}")).status == 200, "the file has it"
    text = (house.settings.data_dir / "parley.db").read_bytes()
    assert made["link"].rpartition("/")[2].encode() not in text, "of a link only a digest is kept"
    async with hearing(grace, f"/s/{session.id}/events?page=overview&since=-1") as hers:
        await hers.until("data:")
        monkeypatch.setattr(house.shares, "_wall", lambda: now + 3601)
        await hers.until("event: bye\ndata: revoked")
    assert (await grace.get(f"/s/{session.id}")).status == 404
    [link] = (await ada.json(f"/s/{session.id}/share"))["links"]
    assert link["used"] == 0 and link["revoked"] is None, "it is listed for a while"
    monkeypatch.setattr(house.shares, "_wall", lambda: now + 3601 + team_bounds.SHARES_KEPT_SECONDS)
    assert (await ada.json(f"/s/{session.id}/share"))["links"] == []


async def test_a_session_is_handed_over_and_its_owner_keeps_nothing(app: Starlette, enters: Enters, house: House):
    ada, grace = await enters("Ada"), await enters("Grace")
    await enters("Vera", "viewer")
    session = await opened(app, ada)
    base = f"/s/{session.id}"
    assert (await ada.post(f"{base}/hand-over", {"person": "Vera"})).status == 403
    assert (await ada.post(f"{base}/hand-over", {"person": "Ada"})).status == 403
    await ada.post(f"{base}/share", {"person": "Grace", "may": "watch"})
    assert (await grace.post(f"{base}/hand-over", {"person": "Grace"})).status == 403
    model = {"name": "mine", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1", "key": "zq-key-7"}
    assert (await ada.post(f"{base}/models", model)).status == 201
    await ada.post(f"{base}/rules", {"name": "r", "on": True, "do": {"action": "decline"}})
    await ada.post(f"{base}/record", {"on": True})
    [kept] = (await ada.json("/recordings"))["recordings"]
    async with hearing(ada, f"{base}/events?page=overview&since=-1") as hers:
        await hers.until("data:")
        done = await ada.post(f"{base}/hand-over", {"person": "Grace"})
        assert done.json()["owner"]["name"] == "Grace"
        await hers.until("event: bye\ndata: revoked")
    assert ((await ada.get(base)).status, (await ada.post(f"{base}/close")).status) == (404, 404)
    assert session.info.state == "ready", "its connection has nothing of hers, and goes on"
    assert (await grace.json(f"{base}/share"))["people"] == []
    assert "mine" not in session.models.all and session.asks.rules.active == [], "her key is gone, her rules wait"
    [hers_now] = (await grace.json("/recordings"))["recordings"]
    assert hers_now["rid"] != kept["rid"], "what goes on is recorded for who has it now"
    assert [one["rid"] for one in (await ada.json("/recordings"))["recordings"]] == [kept["rid"]]
    assert (await grace.post(f"{base}/close")).status == 200
    [entry] = await house.audit.search(act="handed over")
    assert (entry.who, entry.what.endswith(" to Grace")) == ("Ada", True)


async def test_a_recording_is_shared_to_watch_and_taken_away(app: Starlette, enters: Enters):
    ada, grace = await enters("Ada"), await enters("Grace")
    session = await opened(app, ada)
    await ada.post(f"/s/{session.id}/record", {"on": True})
    await call_tool(session, "echo", {"text": "hello"})
    await ada.post(f"/s/{session.id}/record", {"on": False})
    [row] = (await ada.json("/recordings"))["recordings"]
    base = f"/r/{row['rid']}"
    assert (await grace.get(base)).status == 404
    assert (await ada.post(f"{base}/share", {"person": "Grace", "may": "answer"})).status == 422
    told = (await ada.post(f"{base}/share", {"person": "Grace"})).json()
    assert "Share this recording" in (await ada.get(f"{base}/share")).text
    assert "/join/" in (await ada.form(f"{base}/share", {"link": "1", "may": "watch"})).text
    assert "Nobody of the team" in (await ada.form(f"{base}/share", {"person": "x"})).text
    page = await grace.get(base)
    assert (page.status, "Connect to the same server" in page.text) == (200, False)
    assert "Connect to the same server" in (await ada.get(base)).text
    assert (await grace.get(f"{base}/file")).status == 200
    for act in ("", "/delete", "/masks", "/connect", "/moments", "/share"):
        assert (await grace.post(f"{base}{act}", {})).status == 403, act
    assert [(await grace.get(f"{base}{look}")).status for look in ("/masks", "/share", "/moments")] == [403] * 3
    assert [one["kind"] for one in (await grace.json("/"))["shared"]] == ["recording"]
    made = (await ada.post(f"{base}/share", {"link": True, "hours": 1})).json()
    linus = await enters("Linus")
    assert (await linus.form(made["link"].removeprefix(ORIGIN))).header("location") == base
    async with hearing(grace, f"{base}/events?page=overview&since=-1") as hers:
        await hers.until("data:")
        assert (await ada.post(f"{base}/share/{told['people'][0]['id']}/revoke")).status == 200
        await hers.until("event: bye\ndata: revoked")
    assert [(await one.get(base)).status for one in (grace, linus, ada)] == [404, 200, 200]


# -------------------------------------------------------------------------------------------------- here, and following


async def stranger_of(enters: Enters) -> Answer:
    """The first page of somebody whom nobody shares anything with."""
    return await (await enters("Mallory")).get("/", accept="application/json")


async def test_who_is_here_and_where_the_owner_is(app: Starlette, enters: Enters):
    ada, grace = await enters("Ada Lovelace"), await enters("Grace")
    session = await opened(app, ada)
    base = f"/s/{session.id}"
    await ada.post(f"{base}/share", {"person": "Grace"})
    assert 'id="people-here"' not in (await ada.get(base)).text, "who is alone sees nobody"
    async with (
        hearing(ada, f"{base}/events?page=overview&since=-1") as hers,
        hearing(grace, f"{base}/events?page=overview&since=-1") as watching,
    ):
        await hers.until("2 here: Ada Lovelace, Grace")
        await watching.until("Ada Lovelace lets you watch")
        near = [(await ada.json("/"))["near"], (await grace.json("/"))["near"]]
        found = [[(one["name"], one["words"], one["url"]) for one in each] for each in near]
        assert found == [[("Grace", "in your", base)], [("Ada Lovelace", "in their", base)]]
        assert "Here now" in (await grace.get("/")).text
        assert (await stranger_of(enters)).json()["near"] == [], "nobody else learns of it"
        told = await grace.json(f"{base}/here")
        assert [(one["name"], one["may"]) for one in told["here"]] == [("Ada Lovelace", "own"), ("Grace", "watch")]
        await ada.get(f"{base}/log?q=echo", sec_fetch_dest="document")
        await watching.until(f'data-path="{base}/log?q=echo"')
        await ada.get(f"{base}/share", sec_fetch_dest="document")
        await grace.get(f"{base}/tools", sec_fetch_dest="document")
        assert (await grace.json(f"{base}/here"))["path"] == f"{base}/log?q=echo", (
            "where the other may go, by the owner"
        )
        assert (await grace.form(f"{base}/follow", {"on": "1"})).json()["follows"] is True
        await hers.until("follows the owner")
        await ada.post(f"{base}/share", {"person": "Grace", "may": "answer"})
        await watching.until("event: bye\ndata: rights")


# ------------------------------------------------------------------------------------------------------------- claims


async def test_an_ask_is_claimed_by_name_taken_over_and_answered_once(
    app: Starlette, enters: Enters, house: House, monkeypatch: pytest.MonkeyPatch
):
    ada, grace = await enters("Ada"), await enters("Grace")
    session = await opened(app, ada, "q1", "q2", "q3")
    one, two, three = session.inbox.open
    base = f"/s/{session.id}"
    await ada.post(f"{base}/share", {"person": "Grace", "may": "answer"})
    async with (
        hearing(ada, f"{base}/events?page=overview&since=-1") as hers,
        hearing(grace, f"{base}/events?page=overview&since=-1") as others,
    ):
        await hers.until("data:")
        claimed = (await grace.post(f"{base}/asks/{one.id}/touch")).json()["claim"]
        assert claimed["by"]["name"] == "Grace" and claimed["until"] is not None
        await hers.until("Being answered by")
        await others.until("You are answering")
        assert "Being answered by" not in others.said, "each tab is drawn for who reads it"
        card = (await ada.get(f"{base}/asks/{one.id}")).text
        assert "Take over" in card and re.search(r'<fieldset class="plain-set stack" disabled', card)
        refused = await ada.post(f"{base}/asks/{one.id}/answer", {"action": "accept", "content": {"name": "Ann"}})
        assert (refused.status, refused.error["message"]) == (
            409,
            "Grace is answering this. Take over to answer it yourself.",
        )
        assert (await ada.post(f"{base}/asks/{one.id}/touch")).status == 409
        taken = (await ada.form(f"{base}/asks/{one.id}/touch", {"take_over": "1"}, accept="application/json")).json()
        assert taken["claim"]["by"]["name"] == "Ada"
        await others.until("Being answered by")
        # A minute of silence, and it is anybody's.
        monkeypatch.setattr(session, "wall", lambda wall=session.wall: wall() + bounds.CLAIM_SECONDS + 1)
        assert (await grace.post(f"{base}/asks/{one.id}/touch")).status == 200
        monkeypatch.undo()

    answers: dict[str, Any] = {}

    async def answer(guest: Guest, name: str) -> None:
        body = {"action": "accept", "content": {"name": name}}
        answers[name] = await guest.post(f"{base}/asks/{two.id}/answer", body)

    async with anyio.create_task_group() as group:
        group.start_soon(answer, ada, "by Ada")
        group.start_soon(answer, grace, "by Grace")
    [won] = [name for name, answered in answers.items() if answered.status == 200]
    [lost] = [name for name in answers if name != won]
    assert answers[lost].status == 409
    assert answers[lost].error["message"] == f"This was answered already {won}. Yours was not sent."
    assert answers[won].json()["answered_by"] == {"kind": "person", "name": won.removeprefix("by ")}
    recorded = codec.write(two)
    assert (recorded["answer"]["by"]["name"], "claimed_by" in recorded) == (won.removeprefix("by "), False)
    [entry] = await house.audit.search(act="answered")
    assert entry.who == won.removeprefix("by ")
    sent = [one for one in session.messages.last(50) if one.direction == "out" and one.kind == "response"]
    assert len(sent) == 1
    assert f"Form accepted {won}" in re.sub(r"<[^>]+>", "", (await ada.get(f"{base}/inbox")).text)
    assert won.removeprefix("by ") in (await ada.get(f"{base}/log")).text

    await grace.post(f"{base}/asks/{three.id}/touch", {"keep": True})
    assert three.claimed_by is not None
    [grant] = (await ada.json(f"{base}/share"))["people"]
    await ada.post(f"{base}/share/{grant['id']}/revoke")
    assert (await ada.post(f"{base}/asks/{three.id}/touch")).status == 200, "who is gone has nothing in hand"


def test_local_mode_imports_nothing_of_it():
    program = "import sys, app.server, app.web.app, app.web.routes, app.sessions; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"app.web.live.stream", "app.web.door.reader"} < loaded
    assert not [name for name in loaded if name.startswith("app.web.team")]
    assert not loaded & {"app.core.shares", "app.store.shares", "app.store.team_tables"}
