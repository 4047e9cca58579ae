"""Answer links: one ask, one answer, no account, and no way to anything else."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette

from app import guest_bounds as bounds
from app.sessions import Session
from app.web.door.guard import Access, GuardedRoute
from app.web.door.rights import Asker, Needs, decide
from tests.drive import RawPeer
from tests.web.asgi import HOST, ORIGIN, Visitor
from tests.web.asks.test_asks import SAMPLE, asked, form, replied, request
from tests.web.table import TABLE, address, method

Raw = Callable[..., RawPeer]
GUESTS = {("GET", "/answer/{guest}"), ("POST", "/answer/{guest}")}
ROOTS = request("r", "roots/list", {})


def phone(app: Starlette, cookie: str = "") -> Visitor:
    """A browser on the page behind the link."""
    headers = {"accept": "text/html", "origin": ORIGIN, "sec-fetch-site": "same-origin"}
    return Visitor(app, headers | ({"cookie": cookie} if cookie else {}))


async def made(script: Visitor, ask: str, **body: Any) -> str:
    answer = await script.post(f"{ask}/link", body)
    assert answer.status == 201, answer.text
    url: str = answer.json()["url"]
    assert url.startswith(f"http://{HOST}/answer/") and answer.json()["state"] == "open"
    return url.removeprefix(f"http://{HOST}")


def names(page: str, label: str) -> str:
    """What the control with this label is called."""
    found = re.search(rf'<label for="([^"]+)"[^>]*>{label}</label>', page)
    assert found is not None, page
    name = re.search(rf'id="{re.escape(found[1])}" name="([^"]+)"', page)
    assert name is not None, page
    return name[1]


@pytest.mark.requirement("S01", "S15", "S39")
async def test_a_guest_answers_one_ask_once_and_a_second_try_is_told_kindly(
    app: Starlette, victim: Session, script: Visitor, client: Visitor, raw: Raw
):
    peer = raw()
    [ask] = await asked(victim, peer, form())
    assert (await client.get(f"{ask}/link")).text.count("Make an answer link") == 1
    link = await made(script, ask, name="Ines")
    one, other = phone(app), phone(app)
    page = await one.get(link)
    assert page.status == 200 and "&lt;b&gt;traveller&lt;/b&gt;" in page.text and "this link works once" in page.text
    assert "set-cookie" not in dict(page.headers) and "<a " not in page.text, "it leads nowhere else"
    field = names(page.text, "Full name")
    wrong = await one.form(link, {field: "I", "force": "1", "action": "accept"})
    assert wrong.status == 422 and 'class="err"' in wrong.text and 'value="I"' in wrong.text
    sent = await one.form(link, {field: "Ines", "action": "accept", "force": "1"})
    assert (sent.status, sent.header("location")) == (303, link)
    assert (await replied(victim, peer))["result"]["content"]["name"] == "Ines"
    mark = (sent.header("set-cookie") or "").partition(";")[0]
    assert f"Path={link}" in (sent.header("set-cookie") or "") and "HttpOnly" in (sent.header("set-cookie") or "")
    assert "Thank you" in (await phone(app, mark).get(link)).text
    late = await other.get(link)
    assert late.status == 410 and "Already answered" in late.text and "Ines" not in late.text
    again = await other.form(link, {field: "Mallory", "action": "accept"})
    assert again.status == 409 and "Nothing of yours was sent" in again.text
    told = await script.json(ask)
    assert told["answered_by"] == {"kind": "guest", "name": "Ines"} and told["state"] == "answered"
    assert len([each for each in peer.received() if each.get("id") == "q" and "method" not in each]) == 1
    assert (await script.json(f"{ask}/link"))["state"] == "used"


@pytest.mark.requirement("S01", "S15")
async def test_a_walk_of_all_routes_with_what_a_guest_has(app: Starlette, victim: Session, script: Visitor, raw: Raw):
    [ask] = await asked(victim, raw(), form())
    link = await made(script, ask)
    code, aid = link.rpartition("/")[2], ask.rpartition("/")[2]
    cookies = "; ".join([f"parley_answer={code}", f"parley_6280={code}", f"__Host-parley={code}"])
    one, reached = phone(app, cookies), set[tuple[str, str]]()
    for route in TABLE:
        path = address(route, victim.id).replace("no-such-code", code).replace("/asks/a1", f"/asks/{aid}")
        answer = await one.send("HEAD" if route.name == "events" else method(route), path)
        if answer.status != 401:
            reached.add((method(route), route.path))
    public = {
        ("GET", path) for path in ("/login", "/healthz", "/static/{path:path}", "/favicon.ico", "/oauth/callback")
    }
    assert reached - {("GET", "/login")} == public - {("GET", "/login")} | GUESTS
    assert {(method(route), route.path) for route in TABLE if route.access is Access.GUEST} == GUESTS
    bearer = await one.get("/", authorization=f"Bearer {code}")
    assert bearer.status == 401


@pytest.mark.requirement("S01")
def test_what_a_guest_may_is_one_thing():
    may = {needs for needs in Needs if decide(Asker("guest", owns=True), needs, changes=True) is None}
    assert may == {Needs.PUBLIC, Needs.GUEST}

    async def handler(request: Any) -> Any: ...

    with pytest.raises(ValueError, match="GUEST"):
        GuardedRoute("/answer/{guest}", handler, access=Access.PUBLIC, method="GET")
    with pytest.raises(ValueError, match="GUEST"):
        GuardedRoute("/answer", handler, access=Access.GUEST, method="GET")


@pytest.mark.requirement("S39")
async def test_a_link_that_is_over_says_why(
    app: Starlette, victim: Session, script: Visitor, client: Visitor, raw: Raw
):
    [first, second] = await asked(victim, raw(), form(), request("s", "sampling/createMessage", SAMPLE))
    one = phone(app)
    old = await made(script, first)
    new = await made(script, first, seconds=10)
    assert "Taken back" in (await one.get(old)).text, "one link for each ask"
    links = app.state.registry.links
    links.find(new.rpartition("/")[2]).expires_at = 0.0
    assert "The time is up" in (await one.form(new, {"action": "decline"})).text
    assert victim.inbox.asks[first.rpartition("/")[2]].state == "open"
    withdrawn = await made(script, first)
    assert (await script.post(f"{first}/answer", {"action": "decline"})).status == 200
    gone = await one.get(withdrawn)
    assert gone.status == 410 and "No longer asked" in gone.text and "answered already by a script" in gone.text
    revoked = await made(script, second)
    page = await client.form(f"{second}/link/revoke", hx_request="true")
    assert page.status == 200 and "taken back" in page.text
    assert (await one.form(revoked, {"text": "A harbour"})).status == 409
    nowhere = await one.get("/answer/nobody-knows-this")
    assert nowhere.status == 404 and "leads nowhere" in nowhere.text
    assert (await one.form(await made(script, second), {"text": "x" * (bounds.GUEST_BYTES + 1)})).status == 413


@pytest.mark.requirement("S34")
async def test_the_address_is_shown_once_with_its_code_drawn_here(
    app: Starlette, victim: Session, script: Visitor, client: Visitor, raw: Raw
):
    peer = raw()
    [ask] = await asked(victim, peer, request("s", "sampling/createMessage", SAMPLE))
    page = await client.form(f"{ask}/link", {"minutes": "60", "name": "Ines"}, hx_request="true")
    [url] = set(re.findall(r"http://127\.0\.0\.1:6280(/answer/[\w-]{22})", page.text))
    assert (
        '<svg class="qr-code"' in page.text
        and "style=" not in page.text
        and "listens on this machine only" in page.text
    )
    for later in (await client.get(f"{ask}/link"), await client.get(ask), await client.get(f"/s/{victim.id}/log")):
        assert url not in later.text
    assert url not in str(await script.json(f"{ask}/link"))
    sent = await phone(app).form(url, {"text": "A quiet harbour."})
    assert sent.status == 303
    result = (await replied(victim, peer, "s"))["result"]
    assert (result["content"]["text"], result["model"]) == ("A quiet harbour.", "a person")
    assert (await script.post(f"{ask}/link")).status == 409
