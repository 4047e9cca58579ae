"""What begins on one replica and comes to the other: sign-ins, links, and people who share a session. Behind nginx, and
behind HAProxy. In `make test-team`."""

import re
import threading
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from tests import postgres
from tests.scale.drive import HOST, WAIT, Client, Team, program, stream, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMES_BACK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document",
              "accept": "text/html"}  # fmt: skip
OPENS = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document",
         "accept": "text/html"}  # fmt: skip


def other_than(team: Team, name: str) -> str:
    return next(one for one in team.names if one != name)


def below(address: str) -> str:
    parts = urlsplit(address)
    assert parts.netloc in {"", HOST}, address
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def phone(team: Team) -> Client:
    """Somebody without an account."""
    return team.client(team.address, origin=f"https://{HOST}", accept="text/html")


# ------------------------------------------------------------------------------------------------------------- sign-ins


@pytest.mark.requirement("S19", "T28")
def test_an_answer_of_an_authorization_server_finds_the_replica_that_waits_for_it(team: Team):
    mallory = team.enter("Mallory")
    for name in team.names:
        grace = team.enter(f"Grace of {name}")
        made = team.past(name, grace).post("/dial", json={"url": team.harbour.resource})
        assert made.status_code == 201, made.text
        path = made.json()["url"]
        waiting = until(partial(_waits, grace, path), "the sign-in")
        assert waiting["redirect_uri"] == f"https://{HOST}/oauth/callback", "one address for all of them"
        (state,) = parse_qs(urlsplit(waiting["authorization_url"]).query)["state"]
        assert state.startswith(f"{name}-")
        back = below(team.harbour.allow(waiting["authorization_url"]))
        # It comes to the other one, which sends it on once; nobody else can use it there.
        wrong = team.past(other_than(team, name), grace).get(back, headers=COMES_BACK)
        there = wrong.headers["location"]
        assert (wrong.status_code, there.partition("?")[0]) == (303, f"/oauth/{name}-callback")
        assert mallory.get(there, headers=COMES_BACK).status_code == 400
        lost = team.past(other_than(team, name), grace).get(there, headers=COMES_BACK)
        assert (lost.status_code, "does not answer any more" in lost.text) == (410, True), "and no further"
        assert grace.get(path + "/sign-in").json()["state"] == "waiting", "none of that used it up"
        assert grace.get(there, headers=COMES_BACK).status_code == 200
        until(partial(_is_ready, grace, path), "the connection")
        assert grace.get(there, headers=COMES_BACK).status_code == 400, "once"
        grace.post(f"{path}/close")


@pytest.mark.requirement("S19", "T28")
def test_who_signed_in_on_one_replica_is_signed_in_on_the_other_and_nobody_else_is(team: Team):
    grace, mallory = team.enter("Grace who signs in"), team.enter("Mallory who does not")
    resource, (first, second) = team.harbour.resource, team.names

    def dialled(who: Client, name: str) -> str:
        made = team.past(name, who).post("/dial", json={"url": resource})
        assert made.status_code == 201, made.text
        return str(made.json()["url"])

    here = dialled(grace, first)
    waiting = until(lambda: _waits(grace, here), "the sign-in")
    back = below(team.harbour.allow(waiting["authorization_url"]))
    assert team.past(first, grace).get(back, headers=COMES_BACK).status_code == 200
    until(partial(_is_ready, grace, here), "the connection")

    there = dialled(grace, second)
    until(partial(_is_ready, grace, there), "the connection without a sign-in")
    theirs = dialled(mallory, second)
    assert until(partial(_waits, mallory, theirs), "the sign-in of somebody else")
    mallory.post(f"{theirs}/close")
    with psycopg.connect(team.url) as connection:
        rows = connection.execute("SELECT entry, name, sealed FROM sealed").fetchall()
    assert any(row[0].startswith("sign-in ") for row in rows)
    told = str(rows)
    assert not any(secret in told for secret in team.harbour.secrets), "the store has no token that it can read"
    assert not [*team.folder.rglob("sign-ins*")], "nor has a disk"

    assert grace.post(f"{there}/sign-in/forget").status_code == 200
    again = dialled(grace, first)
    assert until(lambda: _waits(grace, again), "the sign-in, for it was forgotten elsewhere")
    for path in (here, there, again):
        grace.post(f"{path}/close")


def _is_ready(client: Client, path: str) -> bool:
    return bool(client.get(path).json()["connection"]["state"] == "ready")


def _waits(client: Client, path: str) -> dict[str, str] | None:
    found: dict[str, str] = client.get(f"{path}/sign-in").json()
    return found if found["state"] == "waiting" else None


@pytest.mark.requirement("S16", "T28")
def test_somebody_signs_in_by_openid_connect_whichever_replica_they_come_back_to(team: Team):
    for name in team.names:
        other = other_than(team, name)
        begun = team.direct(name).get("/login/oidc", headers={"accept": "text/html"})
        assert begun.status_code == 303, begun.text
        cookie = {"cookie": begun.headers["set-cookie"].partition(";")[0]}
        back = below(team.provider.allow(begun.headers["location"]))
        came = team.direct(other).get(back, headers={**COMES_BACK, **cookie})
        assert (came.status_code, came.headers["location"]) == (303, "/"), came.text
        for where in team.names:
            again = team.direct(where).get(back, headers={**COMES_BACK, **cookie})
            assert (again.status_code, "was used already" in again.text) == (401, True), (
                "each answer counts once for all"
            )
        login = next(one for one in came.headers.get_list("set-cookie") if one.startswith("__Host-parley="))
        browser = team.client(team.address, cookie=login.partition(";")[0])
        assert {browser.get("/").status_code for _ in range(4)} == {200}
    back = ""
    for _ in range(4):  # and through the proxy, as it comes
        begun = phone(team).get("/login/oidc")
        back = below(team.provider.allow(begun.headers["location"]))
        cookie = {"cookie": begun.headers["set-cookie"].partition(";")[0]}
        assert phone(team).get(back, headers={**COMES_BACK, **cookie}).status_code == 303
    assert phone(team).get(back, headers=COMES_BACK).status_code == 401, "nobody without the cookie"


# ------------------------------------------------------------------------------------------------------------- together


@pytest.mark.requirement("T30")
def test_people_share_follow_and_claim_whichever_replica_they_come_to(team: Team):
    grace, ada, boss = team.enter("Grace"), team.enter("Ada"), team.enter("Boss", "admin")
    for name in team.names:
        sid = team.session(grace, on=name)
        base, other = f"/s/{sid}", other_than(team, name)
        assert ada.get(base).status_code == 404
        link = grace.post(f"{base}/share", json={"link": True, "may": "answer"}).json()["link"]
        # The link is opened and used where the session is not.
        until(partial(_is_called, team.past(other, ada), below(link), "scale"), "the name of the session")
        joined = team.past(other, ada).post(below(link))
        assert (joined.status_code, joined.json()["url"]) == (200, base)
        assert ada.get(base).status_code == 200, "at once, by the road of the proxy"
        assert all(sid in str(ada.get("/").json()["shared"]) for _ in range(4)), "any replica lists it"
        # Following: the owner opens a page, and it is said where.
        heard: list[str] = []
        tab = team.client(team.address, **dict(ada.headers))
        hearing = threading.Thread(target=_hear, args=(tab, sid, heard))
        hearing.start()
        until(lambda base=base: "Ada" in ada.get(f"{base}/here").text, "Ada being here")  # type: ignore[misc]
        assert ada.post(f"{base}/follow", json={"on": True}).json()["follows"] is True
        assert grace.get(f"{base}/log", headers=OPENS).status_code == 200
        here = ada.get(f"{base}/here").json()
        assert here["path"] == f"{base}/log" and [one["follows"] for one in here["here"] if one["name"] == "Ada"] == [
            True
        ]
        # A claim: others are told who has it, and a wrong road claims nothing.
        aid = team.ask(grace, sid)
        ask = f"{base}/asks/{aid}"
        assert team.past(other, ada).post(f"{ask}/touch", json={}).status_code == 421
        assert "claim" not in grace.get(ask).json()
        assert ada.post(f"{ask}/touch", json={}).json()["claim"]["by"]["name"] == "Ada"
        assert grace.get(ask).json()["claim"]["by"]["name"] == "Ada"
        taken = grace.post(f"{ask}/touch", json={})
        assert taken.status_code == 409 and "Ada" in taken.text
        assert team.past(other, ada).post(f"{ask}/answer", json={"action": "decline"}).status_code == 421
        first = team.answer(ada, sid, aid, f"by Ada on {name}")
        second = team.answer(grace, sid, aid, f"by Grace on {name}")
        assert (first.status_code, second.status_code) == (200, 409)
        until(lambda: "by Ada on" in str(team.state()), "the answer")
        assert "by Grace on" not in str(team.state())
        # Taken away: it ends at once, with the open tab.
        (share,) = [one["id"] for one in grace.get(f"{base}/share").json()["people"]]  # not the link: what came of it
        assert grace.post(f"{base}/share/{share}/revoke").status_code < 400
        hearing.join(WAIT)
        assert heard[-2:] == ["event: bye", "data: revoked"]
        assert ada.get(base).status_code == 404
        audit = until(lambda name=name: _audited(boss, name), "the audit")  # type: ignore[misc]
        assert {"Ada", "Grace"} <= {one["who"] for one in audit}
        grace.post(f"{base}/close")


def _is_called(client: Client, link: str, label: str) -> bool:
    return str(client.get(link).json()["label"]) == label


def _hear(tab: Client, sid: str, heard: list[str]) -> None:
    heard.extend(stream(tab, sid))


def _audited(boss: Client, name: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = boss.get("/audit").json()["entries"]
    return found if any(one["act"] == "answered" for one in found) else []


@pytest.mark.requirement("T30", "S15")
def test_a_phone_opens_an_answer_link_and_a_room_whichever_replica_it_comes_to(team: Team):
    grace = team.enter("Grace")
    for name in team.names:
        sid = team.session(grace, on=name)
        aid = team.ask(grace, sid)
        made = grace.post(f"/s/{sid}/asks/{aid}/link", json={"seconds": 600, "name": "Ines"})
        assert made.status_code == 201, made.text
        link = below(made.json()["url"])
        assert link.startswith(f"/answer/{name}-")
        guest = phone(team)
        pages = [guest.get(link) for _ in range(6)]
        assert {one.status_code for one in pages} == {200} and "Which word" in pages[0].text
        assert team.direct(other_than(team, name)).get(link, headers={"accept": "text/html"}).status_code == 404
        word = f"by phone on {name}"
        sent = guest.post(link, data=_filled(pages[0].text, word))
        assert sent.status_code == 303, sent.text
        until(lambda word=word: word in str(team.state()), "the answer")  # type: ignore[misc]
        assert guest.post(link, data=_filled(pages[0].text, "again")).status_code == 409, "once"
        room = grace.post(f"/s/{sid}/room", json={"seconds": 60})
        assert room.status_code == 201, room.text
        door = below(room.json()["address"])
        assert door.startswith(f"/j/{name}-")
        assert {phone(team).get(door).status_code for _ in range(6)} == {200}
        assert grace.post(f"/s/{sid}/room/close").status_code == 200
        grace.post(f"/s/{sid}/close")


def _filled(page: str, word: str) -> dict[str, str]:
    """The form of a phone as its browser sends it."""
    fields = dict(re.findall(r'<input[^>]*type="hidden"[^>]*name="([^"]+)"[^>]*value="([^"]*)"', page))
    text = re.findall(r'<(?:input|textarea)[^>]*name="([^"]*word[^"]*)"', page)
    buttons = re.findall(r'<button[^>]*name="([^"]+)"[^>]*value="([^"]*)"', page)
    return {**fields, **({buttons[0][0]: buttons[0][1]} if buttons else {}), **dict.fromkeys(text, word)}


# --------------------------------------------------------------------------------------------------------------- limits


@pytest.mark.requirement("T20", "S41")
def test_calls_of_a_minute_are_those_of_all_replicas(tmp_path: Path):
    postgres.needed()
    program("nginx")
    with Team(tmp_path, "nginx", calls_per_minute=6, login_failures_per_minute=3) as team:
        wrong = [team.direct("r1").post("/invite/wrong", headers={"origin": f"https://{HOST}"}) for _ in range(4)]
        assert [one.status_code for one in wrong] == [401, 401, 401, 429]
        until(lambda: team.direct("r2").get("/login/oidc").status_code == 429, "r2 knowing who guesses")
        grace, ada = team.enter("Grace"), team.enter("Ada")
        here, there = (team.session(grace, on=name) for name in team.names)
        assert [_called(grace, here) for _ in range(4)] == [202] * 4
        at_r2 = team.past("r2", grace)
        until(lambda: at_r2.get("/me").json()["limits"]["calls_per_minute"]["used"] == "4", "r2 knowing of them")
        assert [_called(grace, there) for _ in range(3)] == [202, 202, 429]
        until(lambda: _called(grace, here) == 429, "r1 knowing of those of r2")
        assert _called(ada, team.session(ada, on="r1")) == 202, "others do not feel it"
        mine = team.session(ada, on="r2")
        team.postgres.stop()
        assert _called(ada, mine) == 202, "no call waits for the store"
        team.postgres.start()


def _called(client: Client, sid: str) -> int:
    echo = {"method": "tools/call", "params": {"name": "echo", "arguments": {}}}
    return client.post(f"/s/{sid}/calls", json=echo).status_code


@pytest.mark.requirement("T20", "S41")
def test_requests_of_a_minute_are_those_of_all_replicas(tmp_path: Path):
    postgres.needed()
    program("nginx")
    with Team(tmp_path, "nginx", requests_per_minute=60) as team:
        grace, ada = team.enter("Grace"), team.enter("Ada")
        at_r1, at_r2 = (team.past(name, grace) for name in ("r1", "r2"))
        said = [at_r1.get("/me").status_code for _ in range(50)]
        assert set(said) == {200}, "fewer than the limit"
        # Those of r1 come to r2 once a second; from then on both count together.
        until(lambda: at_r2.get("/me").status_code == 429, "r2 counting those of r1")
        until(lambda: at_r1.get("/me").status_code == 429, "and r1 those of r2")
        assert team.past("r1", ada).get("/me").status_code == 200, "others do not feel it"
