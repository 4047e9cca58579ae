"""Two replicas of one team behind nginx, and behind HAProxy: who holds what, and what happens when one dies, is
replaced, or the store is gone. In `make test-team`. One after the other: what a test kills, it starts again."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from tests.scale.drive import HOST, STATE, WAIT, Client, Team, stream, until

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(600)]


def page(client: Client, path: str) -> str:
    return client.get(path, headers={"accept": "text/html"}).text


@contextmanager
def answering(team: Team, client: Client, sids: list[str]) -> Iterator[list[tuple[str, int]]]:
    """Somebody answers one ask after the other in each of these sessions: each word with the status it got. A word is
    sent once and never again."""
    told: list[tuple[str, int]] = []
    over = threading.Event()

    def person(sid: str) -> None:
        with Client(team.address, **dict(client.headers)) as mine:
            number = 0
            while not over.is_set():
                try:
                    aid = team.ask(mine, sid)
                except Exception:  # the replica is being replaced: that is looked at below
                    return
                number += 1
                word = f"{sid} {number}"
                told.append((word, team.answer(mine, sid, aid, word).status_code))

    threads = [threading.Thread(target=person, args=(sid,)) for sid in sids]
    for one in threads:
        one.start()
    try:
        yield told
    finally:
        over.set()
        for one in threads:
            one.join(WAIT)


def words(team: Team) -> list[str]:
    return [one["content"]["word"] for answers in team.state().values() for one in answers if one.get("content")]


@pytest.mark.requirement("T28")
def test_any_replica_lets_somebody_in_and_a_session_goes_to_who_holds_it(team: Team):
    grace = team.enter("Grace")
    assert {grace.get("/").json()["me"]["name"] for _ in range(4)} == {"Grace"}
    sids = {name: team.session(grace, on=name) for name in team.names}
    for name, sid in sids.items():
        assert sid.startswith(f"{name}-")
        assert team.answer(grace, sid, team.ask(grace, sid), f"first {name}").status_code == 200
        other = next(one for one in team.names if one != name)
        asked = team.past(other, grace).post(f"/s/{sid}/calls", json={"method": "ping"})
        assert (asked.status_code, asked.json()["error"]["kind"]) == (421, "elsewhere"), "a wrong road executes nothing"
    assert {"first r1", "first r2"} <= set(words(team))
    listed = [grace.get("/").json() for _ in range(4)]
    for one in listed:
        assert {row["id"] for row in (*one["sessions"], *one["elsewhere"])} >= set(sids.values())
    ada = team.enter("Ada")
    assert all(ada.get(f"/s/{sid}").status_code == 404 for sid in sids.values()), "others know nothing of them"
    for sid in sids.values():
        assert grace.post(f"/s/{sid}/close").status_code < 400
    assert grace.post("/logout", json={}).status_code < 400
    until(lambda: all(grace.get("/").status_code == 401 for _ in range(4)), "being signed out everywhere")


@pytest.mark.requirement("T29", "F26")
def test_a_killed_replica_costs_its_own_sessions_and_they_show_what_was_recorded(team: Team):
    grace, ada = team.enter("Grace"), team.enter("Ada")
    here, there = team.session(ada, on="r1"), team.session(grace, on="r2")
    known = set(team.state())
    held = team.ask(grace, there)
    (asked,) = set(team.state()) - known
    open_here = team.ask(ada, here)
    rid = until(lambda: grace.get(f"/s/{there}").json()["recording"]["rid"], "the recording")
    until(lambda: "elicitation/create" in grace.get(f"/r/{rid}/log").text, "the ask being recorded")
    last: list[str] = []
    tab = team.client(team.address, **dict(ada.headers))
    hearing = threading.Thread(target=lambda: last.extend(stream(tab, here)))
    hearing.start()
    team.kill("r2")
    # Its own people: history, a last word, and nothing is done.
    assert stream(grace, there) == ["event: bye", "data: lost"]
    for path in (f"/s/{there}", f"/s/{there}/log", f"/s/{there}/inbox"):
        found = grace.get(path)
        assert (found.status_code, found.json()["error"]["recording"]) == (410, f"/r/{rid}")
    shown = page(grace, f"/s/{there}")
    for text in ("was last heard of at", "Reconnect", "Which word, q", "kept for 90 days", f"/r/{rid}"):
        assert text in shown, text
    refused = team.answer(grace, there, held, "never")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (421, "elsewhere")
    assert grace.get(f"/r/{rid}/log").status_code == 200, "the whole recording is there"
    assert ada.get(f"/s/{there}").status_code == 404
    # The others notice nothing.
    assert team.answer(ada, here, open_here, "still here").status_code == 200
    until(lambda: "still here" in words(team), "the answer")
    assert hearing.is_alive(), "a stream of the other replica goes on"
    # Home says so, once the lease is over; then it begins anew on a living one.
    lost = until(
        lambda: next((one for one in grace.get("/").json()["elsewhere"] if one["lost_at"]), None), "the lease's end"
    )
    assert (lost["id"], lost["state"]) == (there, "lost")
    assert "Lost with r2" in page(grace, "/")
    again = grace.post(f"/lost/{there}/reconnect", json={})
    assert again.status_code == 201, again.text
    new = again.json()["id"]
    assert new.startswith("r1-")
    until(lambda: grace.get(f"/s/{new}").json()["connection"]["state"] == "ready", "the new connection")
    assert grace.get("/").json()["elsewhere"] == []
    assert team.state()[asked] == [], "nobody answered in its place"
    team.start("r2")
    for client, sid in ((ada, here), (grace, new)):
        client.post(f"/s/{sid}/close")
    hearing.join(WAIT)
    assert last[-2:] == ["event: bye", "data: closed"]


@pytest.mark.requirement("T29", "F26")
def test_what_a_killed_replica_had_under_way_goes_on_elsewhere_once_and_when_somebody_says_so(team: Team):
    grace, ada = team.enter("Grace"), team.enter("Ada")
    there = team.session(grace, on="r2", entry="modern")
    old = team.session(grace, on="r2")
    called = len(team.modern.received("tools/call"))
    team.ask(grace, there)
    team.ask(grace, there, tool="job")
    team.ask(grace, there, password="hunter2hunter2")
    team.ask(grace, old)
    until(lambda: team.kept(there).count("unfinished") and team.kept(old), "what is under way being kept")
    assert "hunter2" not in team.kept(there) and STATE not in team.kept(there), "what is kept is sealed"
    team.kill("r2")
    assert "2 calls can go on from here" in page(grace, f"/s/{there}")
    assert ada.post(f"/lost/{there}/reconnect", json={}).status_code == 404
    new = _reconnected(grace, there)
    other = _reconnected(grace, there)  # in another tab, say: each call goes on in one of them
    left = grace.get(f"/s/{new}/unfinished").json()
    offers = {one["id"]: one for one in left["offers"]}
    assert [(one["kind"], one["can"], one["asked"]) for one in offers.values()] == [
        ("round", True, ["Who sails?"]), ("task", True, []), ("round", False, []),
    ]  # fmt: skip
    round_, task, secret = offers
    shown = page(grace, f"/s/{new}")
    for text in ("From the session that was lost with r2", "Who sails?", "Continue", "A secret was typed into it"):
        assert text in shown, text
    assert ada.post(f"/s/{new}/unfinished/{round_}/continue").status_code == 404
    assert len(team.modern.received("tools/call")) == called + 3, "nothing goes on by itself"
    # Not before it is certain that nobody else goes on with it.
    early = grace.post(f"/s/{new}/unfinished/{round_}/continue")
    assert early.status_code in {202, 409}, early.text
    if early.status_code == 409:
        assert "r2 may still hold this call" in early.text
        until(lambda: grace.post(f"/s/{new}/unfinished/{round_}/continue").status_code == 202, "the lease's end")
    twice = grace.post(f"/s/{other}/unfinished/{round_}/continue")
    assert (twice.status_code, "in another session already" in twice.text) == (409, True), "each goes on once"
    assert grace.post(f"/s/{other}/unfinished/{task}/continue").status_code == 202
    assert grace.post(f"/s/{new}/unfinished/{task}/continue").status_code == 409
    refused = grace.post(f"/s/{new}/unfinished/{secret}/continue")
    assert (refused.status_code, "is not kept" in refused.text) == (409, True)
    assert grace.post(f"/s/{new}/unfinished/{secret}/leave").json()["offers"] == []
    for sid in (new, other):
        (aid,) = until(lambda sid=sid: team.asks(grace, sid), "the question")  # type: ignore[misc]
        said = {"action": "accept", "content": {"name": "Ann"}}
        assert grace.post(f"/s/{sid}/asks/{aid}/answer", json=said).status_code == 200
        (done,) = until(partial(_settled, grace, sid), "the result")
        assert done["state"] == "done" and done["continues"].startswith(f"{there}/") and "Ann" in str(done["result"])
    last = team.modern.received("tools/call")[-1]["params"]
    assert last["requestState"] == STATE and len(team.modern.received("tools/call")) == called + 4
    # Of an older revision the asks are lost, and that is said.
    fresh = _reconnected(grace, old)
    said = grace.get(f"/s/{fresh}/unfinished").json()
    assert (said["offers"], [one["method"] for one in said["lost"]]) == ([], ["elicitation/create"])
    assert "1 ask is lost" in page(grace, f"/s/{fresh}")
    until(lambda: grace.get("/").json()["elsewhere"] == [], "the list without them")
    team.start("r2")
    for sid in (new, other, fresh):
        grace.post(f"/s/{sid}/close")


def _reconnected(client: Client, lost: str) -> str:
    again = client.post(f"/lost/{lost}/reconnect", json={})
    assert again.status_code == 201, again.text
    sid = str(again.json()["id"])
    until(lambda: client.get(f"/s/{sid}").json()["connection"]["state"] == "ready", "the new connection")
    return sid


def _settled(client: Client, sid: str) -> list[dict[str, Any]]:
    calls = [one for one in client.get(f"/s/{sid}/calls").json()["calls"] if one["state"] in {"done", "failed"}]
    return [client.get(f"/s/{sid}/calls/{one['id']}").json() for one in calls]


@pytest.mark.requirement("T26")
def test_a_rolling_restart_loses_no_answer_and_executes_none_twice(team: Team):
    grace = team.enter("Grace")
    sids = [team.session(grace, on=name) for name in team.names for _ in range(2)]
    before = set(words(team))
    with answering(team, grace, sids) as told:
        for name in team.names:
            until(lambda: len(told) > 4, "some answers")
            assert f"{name} opens no session any more" in team.verb("drain", name)
            until(partial(_is_drained, team, name), "the drain")
            many = len(told)
            until(partial(_more, told, many + 4), "answers while it is drained")
            new = [team.session(grace) for _ in range(3)]
            assert not any(sid.startswith(f"{name}-") for sid in new), "one that is drained opens no session"
            for sid in [*sids, *new]:  # in place of half an hour
                if sid.startswith(f"{name}-"):
                    grace.post(f"/s/{sid}/close")
            sids += new
            assert team.replicas[name].wait(WAIT) == 0, "it ends by itself"
            team.end(name)
            team.start(name)
    got = [word for word in words(team) if word not in before]
    taken = [word for word, status in told if status == 200]
    assert len(got) == len(set(got)), "none was executed twice"
    assert set(taken) <= set(got), "each that was taken has arrived"
    assert len(taken) > 20 and all(status in {200, 404, 409} for _, status in told)
    for one in grace.get("/").json()["sessions"] + grace.get("/").json()["elsewhere"]:
        grace.post(f"{one['url']}/close")


@pytest.mark.requirement("F26")
def test_with_the_store_gone_live_sessions_go_on_and_it_is_caught_up_with(team: Team):
    grace = team.enter("Grace")
    sids = [team.session(grace, on=name) for name in team.names]
    code = team.invite("Late")
    statuses: set[int] = set()
    with answering(team, grace, sids) as told:
        until(lambda: len(told) > 4, "some answers")
        team.postgres.stop()
        until(lambda: grace.get("/").json()["degraded"], "the mark")
        for sid in sids:
            until(partial(_says, grace, f"/s/{sid}", "Nothing new is saved"), "the mark in the page")
        many = len(told)
        until(lambda: len(told) > many + 6, "answers without a store")
        stranger = team.client(team.address, origin=f"https://{HOST}")
        refused = stranger.post(f"/invite/{code}")
        assert (refused.status_code, "does not answer" in refused.text) == (503, True)
        for path in ("/", "/me", "/recordings", f"/s/{sids[0]}", f"/s/{sids[0]}/log", "/s/r9-none", "/people"):
            statuses.add(grace.get(path).status_code)
            statuses.add(grace.get(path, headers={"accept": "text/html"}).status_code)
        assert statuses <= {200, 404, 503}
        team.postgres.start()
        until(lambda: not grace.get("/").json()["degraded"], "the end of the mark")
        many = len(told)
        until(lambda: len(told) > many + 4, "answers afterwards")
    assert {status for _, status in told} == {200} and not any(status >= 500 for status in statuses - {503})
    assert sorted(words(team)).count(told[-1][0]) == 1
    assert set(words(team)) >= {word for word, _ in told}
    for sid in sids:  # what happened meanwhile is in the recording
        rid = grace.get(f"/s/{sid}").json()["recording"]["rid"]
        many = sum(word.startswith(sid) for word, _ in told)
        until(partial(_has_answers, grace, rid, many), "catching up")
        grace.post(f"/s/{sid}/close")
    assert stranger.post(f"/invite/{code}").status_code == 303, "the invitation still works"


def _is_drained(team: Team, name: str) -> bool:
    return team.direct(name).get("/readyz").status_code == 503


def _more(told: list[tuple[str, int]], many: int) -> bool:
    return len(told) > many


def _says(client: Client, path: str, text: str) -> bool:
    return text in page(client, path)


def _has_answers(client: Client, rid: str, many: int) -> bool:
    """Whether so many asks of a recording were answered."""
    settled = client.get(f"/r/{rid}/inbox").json()["settled"]
    return sum(one["state"] == "answered" for one in settled) >= min(many, 150)
