"""Signing in more than once: with a good token, after *Forget*, after a cancel, to a server that is never content."""

import html
import json

import pytest
from starlette.applications import Starlette

from tests.drive import until
from tests.drive_oauth import Harbour
from tests.web.asgi import Visitor
from tests.web.sign_in.going import allowed, begun, rested, session_of, signed_in
from tests.web.sign_in.test_broken import as_far_as_it_goes
from tests.web.sign_in.test_engine import asked, called

ALL = {"tide:read", "boat:write"}


def sent(harbour: Harbour) -> list[str]:
    """The methods of what came to the MCP server."""
    return [one["json"]["method"] for one in harbour.saw("/mcp") if one["json"]]


@pytest.mark.requirement("R5-60")
async def test_again_is_the_whole_way_and_forget_begins_at_the_beginning(
    app: Starlette, script: Visitor, stranger: Visitor, client: Visitor, harbour: Harbour
):
    path = await signed_in(script, stranger, harbour)
    session, call = session_of(app, path), await called(script, path, "move_boat")
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.state == "waiting")
    told = await script.json(f"{path}/calls/{call}")
    assert (told["state"], told["waits_for"]) == ("running", "sign-in")
    for page in (f"{path}/calls/{call}", f"{path}/calls"):
        assert "Waiting for sign-in" in (await client.get(page)).text
    page = (await client.get(f"{path}/calls/{call}")).text
    assert f'<a href="{path}/sign-in">signed in</a>' in page and ">Running<" not in page

    assert (await script.post(f"{path}/sign-in", {})).status == 202, "whoever starts over takes along what waits"
    found = await rested(script, path)
    assert (found["state"], found["reason"], found["held"]) == ("waiting", "scope", 1)
    assert set(asked(found["authorization_url"])["scope"].split()) == ALL
    await allowed(script, stranger, harbour, path)
    told = await script.json(f"{path}/calls/{call}?wait=30")
    assert told["state"] == "done" and told["waits_for"] is None

    registered, given = len(harbour.saw("/register")), len(harbour.tokens)
    assert (await script.post(f"{path}/sign-in", {})).status == 202
    found = await rested(script, path)
    assert found["state"] == "waiting" and set(asked(found["authorization_url"])["scope"].split()) == ALL
    states = {one["id"]: one["state"] for one in found["steps"]}
    assert {states[one] for one in ("challenge", "resource-metadata", "server-metadata", "registration")} == {"done"}
    call = await called(script, path, "move_boat")
    assert (await script.json(f"{path}/calls/{call}?wait=30"))["state"] == "done", "the token serves meanwhile"
    assert (await rested(script, path))["state"] == "waiting"
    await script.post(f"{path}/sign-in/refresh")
    found = await rested(script, path)
    assert found["state"] == "waiting" and found["authorization_url"], "a renewed token ends nobody's sign-in"
    assert (await allowed(script, stranger, harbour, path))["state"] == "signed_in"
    assert len(harbour.tokens) == given + 2 and len(harbour.saw("/register")) == registered

    assert (await script.post(f"{path}/sign-in/forget")).status == 200
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.steps[0].runnable)
    found = await rested(script, path)
    assert {one["state"] for one in found["steps"]} == {"todo"} and found["reason"] == "asked"
    assert (await script.post(f"{path}/sign-in", {})).status == 202
    found = await rested(script, path)
    assert found["state"] == "waiting" and asked(found["authorization_url"])["scope"] == "tide:read"
    assert found["steps"][0]["state"] == "done" and "401" in json.dumps(found["steps"][0])
    await script.post(f"{path}/close")


async def test_a_server_that_asks_only_later_is_signed_in_to_again(
    app: Starlette, script: Visitor, stranger: Visitor, harbour: Harbour
):
    harbour.set(open=["initialize", "notifications/initialized", "server/discover", "tools/list"])
    answer = await script.post("/s", {"target": {"transport": "http", "url": harbour.resource}})
    path = answer.json()["url"]
    assert (await script.json(f"{path}?wait=30"))["connection"]["state"] == "ready"
    session, call = session_of(app, path), await called(script, path, "read_tide")
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.state == "waiting")
    await allowed(script, stranger, harbour, path)
    assert (await script.json(f"{path}/calls/{call}?wait=30"))["state"] == "done"
    await script.post(f"{path}/sign-in", {})
    assert (await rested(script, path))["state"] == "waiting", "what it said before counts"
    await script.post(f"{path}/close")


@pytest.mark.requirement("R5-05")
async def test_who_cancels_a_call_that_waits_for_a_token_takes_it_back(
    app: Starlette, script: Visitor, stranger: Visitor, harbour: Harbour
):
    path = await signed_in(script, stranger, harbour)
    session = session_of(app, path)
    await until(session, lambda: session.tools.by_name("read_tide") is not None and not session.calls.running)
    before, given = sent(harbour), len(harbour.tokens)
    harbour.set(now="outdate", hangs=["/token"])
    call = await called(script, path, "read_tide")
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.state == "exchanging")
    assert (await script.post(f"{path}/calls/{call}/cancel")).status < 300
    assert (await script.json(f"{path}/calls/{call}?wait=30"))["state"] == "cancelled"
    assert session.calls.running == []
    harbour.set(hangs=[])
    await until(session, lambda: len(harbour.tokens) == given + 1)  # what the refresh token was used up for is heard
    assert (await rested(script, path))["state"] == "signed_in"
    call = await called(script, path, "read_tide")
    assert (await script.json(f"{path}/calls/{call}?wait=30"))["state"] == "done"

    call = await called(script, path, "move_boat")
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.state == "waiting")
    await script.post(f"{path}/calls/{call}/cancel")
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.held == 0)
    await allowed(script, stranger, harbour, path)
    call = await called(script, path, "read_tide")
    assert (await script.json(f"{path}/calls/{call}?wait=30"))["state"] == "done"
    later = sent(harbour)[len(before) :]
    assert later.count("tools/call") == 4, "neither of the two was sent once more"
    assert "notifications/cancelled" not in later, "and of what the server never had there is nothing to tell"
    await script.post(f"{path}/close")


async def test_a_server_that_refuses_every_token_is_not_asked_for_ever(
    app: Starlette, script: Visitor, stranger: Visitor, harbour: Harbour
):
    path = await signed_in(script, stranger, harbour)
    session, before = session_of(app, path), len(sent(harbour))
    harbour.set(challenge='Bearer realm="harbour"', answers={"/mcp": [401, "text/plain", "no"]})
    call = await called(script, path, "read_tide")
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.state == "waiting")
    refreshed = [one for one in harbour.saw("/token") if one["form"]["grant_type"] == "refresh_token"]
    assert len(refreshed) == 1 and sent(harbour)[before:].count("tools/call") == 2, (
        "renewed once, sent once more, then a person"
    )
    found, often = await as_far_as_it_goes(session, script, stranger, harbour)
    assert (
        found["failure"]["code"] == "endless" and often <= 3 and "refuses every token" in found["failure"]["sentence"]
    )
    assert (await script.json(f"{path}/calls/{call}?wait=30"))["state"] == "failed"
    assert len(harbour.saw("/token")) <= 8
    await script.post(f"{path}/sign-in/forget")
    await script.post(f"{path}/close")


@pytest.mark.requirement("S21")
async def test_what_a_refusal_quotes_and_what_a_token_endpoint_invents_is_not_shown(
    script: Visitor, stranger: Visitor, client: Visitor, harbour: Harbour
):
    canary = "sesame-5e4d3c2b1a0f9e8d7c6b"
    path = await signed_in(script, stranger, harbour)
    harbour.set(token={"sesame": canary, "data": {"more": [{"x": canary + "0"}]}, "scope": f"tide:read {canary}1"})
    quoted = {
        "error": "invalid_grant",
        "error_description": "not {refresh_token}, {code}, {code_verifier}",
        "x": canary,
    }
    await script.post(f"{path}/sign-in/refresh")
    found = await rested(script, path)
    assert found["state"] == "signed_in" and found["token"]["scopes"] == ["tide:read", "•••"]
    harbour.set(refuse={"refresh": [400, quoted], "token": [400, quoted], "revoke": [400, quoted]})
    texts = [json.dumps(found), (await client.get(f"{path}/sign-in")).text, (await client.get(f"{path}/log")).text]
    for verb in ("refresh", "revoke"):
        await script.post(f"{path}/sign-in/{verb}")
        found = await rested(script, path)
        step = next(one for one in found["steps"] if one["id"].startswith(verb[:4]))
        assert step["state"] == "failed" and "invalid_grant: not " in step["sentence"]
        texts += [json.dumps(found), (await client.get(f"{path}/sign-in")).text, (await client.get(path)).text]
    await script.post(f"{path}/sign-in", {})
    found = await allowed(script, stranger, harbour, path)
    assert (
        found["failure"]["code"] == "code-refused" and "not {refresh_token}, •••, •••" in found["failure"]["sentence"]
    )
    texts += [json.dumps(found)] + [(await client.get(path + at)).text for at in ("/sign-in", "/inbox", "/log", "")]
    everything = html.unescape("\n".join(texts))
    verifiers = [one["form"]["code_verifier"] for one in harbour.saw("/token") if "code_verifier" in one["form"]]
    assert len(verifiers) == 2
    assert not [one for one in (*harbour.secrets, *verifiers, canary) if one in everything]
    await script.post(f"{path}/sign-in/forget")
    await script.post(f"{path}/close")


async def test_a_token_that_another_session_has_renewed_is_taken_and_not_renewed_again(
    script: Visitor, stranger: Visitor, harbour: Harbour
):
    first = await signed_in(script, stranger, harbour)
    second = await begun(script, harbour)
    assert (await script.json(f"{second}?wait=30"))["connection"]["state"] == "ready", "with the token that is kept"
    before = len(harbour.saw("/token"))
    harbour.set(now="outdate")
    for path in (first, second):
        call = await called(script, path, "read_tide")
        assert (await script.json(f"{path}/calls/{call}?wait=30"))["state"] == "done"
    assert len(harbour.saw("/token")) == before + 1, "to renew it a second time might cost both"
    harbour.set(now="outdate")
    call = await called(script, second, "read_tide")
    assert (await script.json(f"{second}/calls/{call}?wait=30"))["state"] == "done"
    assert len(harbour.saw("/token")) == before + 2, "who took it can renew it too"
    for path in (first, second):
        await script.post(f"{path}/sign-in/forget")
