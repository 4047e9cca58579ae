"""The page of a sign-in: its card, its steps, what can be done there, and what never stands there."""

import html
import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.applications import Starlette

from tests.drive import until
from tests.drive_oauth import Harbour
from tests.web.asgi import Visitor
from tests.web.sign_in.going import allowed, begun, rested, session_of, signed_in
from tests.web.tabs import tab_of

HTMX = {"hx_request": "true"}


async def shown(client: Visitor, path: str) -> str:
    answer = await client.get(path)
    assert answer.status == 200, answer.text[:300]
    return html.unescape(answer.text)


def card_in(page: str) -> str:
    found = re.search(r'<section class="signin" id="sign-in".*?</section>', page, re.DOTALL)
    assert found is not None
    return found[0]


# -------------------------------------------------------------------------------------------------------------- card


async def test_a_sign_in_is_a_card_above_the_inbox_and_no_ask(
    client: Visitor, script: Visitor, stranger: Visitor, harbour: Harbour
):
    path = await begun(script, harbour)
    told = await script.json(f"{path}/inbox")
    assert told["open"] == [] and (await client.get(f"{path}/inbox?count=1")).text == "0"
    brief = told["sign_in"]
    assert brief["state"] == "waiting" and brief["issuer"] == harbour.issuer and brief["scopes"] == ["tide:read"]
    address = brief["authorization_url"]
    asked = parse_qs(urlsplit(address).query)
    assert asked["resource"] == [harbour.resource] and asked["code_challenge_method"] == ["S256"]

    for where in ("", "/tools", "/inbox", "/calls"):
        page = await shown(client, path + where)
        card = card_in(page)
        link = f'href="{address}" target="_blank" rel="noopener noreferrer">Open sign-in page</a>'
        assert link in card and "Use a token instead" in card and "Paste the final address" in card
        assert harbour.resource in card and harbour.issuer in card and "tide:read" in card
        assert page.index('id="sign-in"') < page.index('id="asks"') and "data-empty" not in page.split("<main")[0]
        assert page.count('id="sign-in"') == 1
    steps = await shown(client, f"{path}/sign-in")
    assert steps.count('id="sign-in"') == 1 and "data-empty" in steps.split("<main")[0]
    assert f'<a href="{path}/sign-in" aria-current="page">' in re.sub(r"/~[^/]+", "", steps)
    assert any(one["label"] == "Sign-in" for one in (await script.json(f"{path}/palette"))["items"])

    await allowed(script, stranger, harbour, path)
    await script.json(f"{path}?wait=30")
    assert (await script.json(f"{path}/inbox"))["sign_in"] is None
    assert 'id="sign-in" hidden' in await shown(client, path)


async def test_open_tabs_hear_of_it_at_once(app: Starlette, script: Visitor, stranger: Visitor, harbour: Harbour):
    path = await begun(script, harbour)
    session = session_of(app, path)
    tabs = [tab_of(session, page, since=session.events.seq) for page in ("overview", "sign-in", "log")]
    found = await allowed(script, stranger, harbour, path)
    assert found["state"] == "signed_in"
    said = [patch.html for tab in tabs if (patch := tab.patch()) is not None]
    assert len(said) == 3
    for each in said:
        assert 'hx-target="#sign-in"' in each and 'id="sign-in" hidden' in each and "signed in" in each
    assert 'id="step-token" data-s="done"' in said[1] and 'id="step-token"' not in said[0] + said[2]
    assert f"Sign-in: signed in at {harbour.issuer}" in said[0]


async def test_a_token_that_somebody_has_takes_its_place(
    client: Visitor, script: Visitor, stranger: Visitor, harbour: Harbour
):
    path = await begun(script, harbour)
    answer = await client.form(f"{path}/connect", {"token": "no-good-but-long-enough"})
    assert answer.status == 303
    told = await script.json(f"{path}?wait=30")
    assert told["connection"]["state"] == "lost" and told["connection"]["error"]["kind"] == "http-401"
    assert harbour.saw("/mcp")[-1]["headers"]["authorization"] == "Bearer no-good-but-long-enough"
    page = await shown(client, path)
    assert 'name="token"' in page and 'id="sign-in" hidden' in page


async def test_the_final_address_is_pasted_where_the_callback_cannot_reach_parley(
    client: Visitor, script: Visitor, harbour: Harbour
):
    path = await begun(script, harbour)
    good = harbour.allow((await rested(script, path))["authorization_url"])
    wrong = good.replace("state=", "state=x")
    answer = await client.form(f"{path}/sign-in", {"callback_url": wrong}, **HTMX)
    assert answer.status == 422 and 'role="alert"' in answer.text and "<details" in answer.text
    assert (await client.form(f"{path}/sign-in", {"callback_url": wrong})).status == 422
    assert (await script.post(f"{path}/sign-in", {"callback_url": wrong})).status == 422
    assert (await rested(script, path))["state"] == "waiting", "a wrong one uses nothing up"
    answer = await client.form(f"{path}/sign-in", {"callback_url": f" {good} "}, **HTMX)
    assert answer.status == 204
    assert (await rested(script, path))["state"] == "signed_in"
    # The second time it is no answer any more.
    assert (await script.post(f"{path}/sign-in", {"callback_url": good})).status == 409


async def test_a_client_of_ones_own_is_used_as_it_was_typed(client: Visitor, script: Visitor, harbour: Harbour):
    back = "http://127.0.0.1:6280/oauth/callback"
    own = {"client_secret": "a-secret-of-mine", "token_endpoint_auth_method": "client_secret_basic"}
    harbour.set(metadata={"registration_endpoint": None}, clients={"mine": {**own, "redirect_uris": [back]}})
    path = await begun(script, harbour)
    failed = await rested(script, path)
    assert failed["failure"]["code"] == "no-registration"
    card = card_in(await shown(client, path))
    assert 'id="card-client-wanted" open' in card and back in card
    typed = {"client_id": "mine", "client_secret": "a-secret-of-mine", "scopes": "tide:read boat:write"}
    assert (await client.form(f"{path}/sign-in", typed, **HTMX)).status == 204
    found = await rested(script, path)
    assert found["state"] == "waiting" and found["client_id"] == "mine" and found["registration"] == "pre-registered"
    assert found["scopes"] == ["tide:read", "boat:write"]
    answer = await client.form(f"{path}/sign-in", {"callback_url": harbour.allow(found["authorization_url"])}, **HTMX)
    assert answer.status == 204 and (await rested(script, path))["state"] == "signed_in"
    assert "a-secret-of-mine" not in await shown(client, f"{path}/sign-in")


# -------------------------------------------------------------------------------------------------------------- steps


async def test_every_step_has_its_request_its_response_and_what_was_checked(
    client: Visitor, script: Visitor, stranger: Visitor, harbour: Harbour
):
    harbour.set(jwt=True)
    path = await signed_in(script, stranger, harbour)
    page = await shown(client, f"{path}/sign-in")
    steps = dict(re.findall(r'<li class="stp" id="step-([a-z-]+)" data-s="([a-z]+)"', page))
    assert steps == dict.fromkeys(
        ["challenge", "resource-metadata", "server-metadata", "registration", "authorization", "callback", "token"],
        "done",
    )
    for words in (
        "WWW-Authenticate".lower(),
        f"{harbour.resource.removesuffix('/mcp')}/.well-known/oauth-protected-resource/mcp",
        '"authorization_servers"',
        "resource is this server",
        "grant_type",
        "authorization_code",
        "•••",
        "Refresh now",
        "Revoke",
        "Forget",
        "expires in",
        "JWT, claims below",
        "<code>sub</code>",
        "this server",
    ):
        assert words in page, words
    told = await rested(script, path)
    assert told["token"]["claims"]["sub"] == "ada" and "claims" in told["token"]

    # Every request of a step is an exchange of the log, and the two lead to one another.
    asked = [trip["exchange"] for step in told["steps"] for trip in step["trips"] if trip["response"]]
    logged = {one["seq"]: one for one in (await script.json(f"{path}/log"))["exchanges"]}
    assert asked and set(asked) <= logged.keys()
    log = await shown(client, f"{path}/log")
    for seq in asked[1:]:
        assert f"/log#http-{seq}" in page and f'id="http-{seq}"' in log
    assert re.search(r'href="[^"]*/sign-in#step-token">Sign-in: Token request</a>', log)
    first = logged[asked[0]]["message_seqs"][0]
    assert f"/log/{first}" in page
    assert "/sign-in#step-challenge" in await shown(client, f"{path}/log/{first}")


async def test_a_step_runs_alone_and_again(client: Visitor, script: Visitor, harbour: Harbour):
    harbour.set(fault="no PKCE")
    path = await begun(script, harbour)
    assert (await rested(script, path))["failure"]["code"] == "no-pkce"
    harbour.set(fault=None)
    many = len(harbour.saw("/register"))
    answer = await client.form(f"{path}/sign-in/steps/server-metadata", {}, **HTMX)
    assert answer.status == 204
    found = await rested(script, path)
    states = {one["id"]: one["state"] for one in found["steps"]}
    assert states["server-metadata"] == "done" and len(harbour.saw("/register")) == many
    page = await shown(client, f"{path}/sign-in")
    assert "Run again" in page and "Run from here" in page
    assert (await client.form(f"{path}/sign-in/steps/registration", {"go_on": "1"}, **HTMX)).status == 204
    assert (await rested(script, path))["state"] == "waiting"
    assert (await client.form(f"{path}/sign-in/steps/callback", {}, **HTMX)).status == 409
    assert (await client.form(f"{path}/sign-in/steps/nonsense", {}, **HTMX)).status == 404


async def test_refresh_revoke_and_forget(
    app: Starlette, client: Visitor, script: Visitor, stranger: Visitor, harbour: Harbour
):
    path = await signed_in(script, stranger, harbour)
    session = session_of(app, path)
    overview = await shown(client, path)
    assert "Signed in at" in overview and "Refresh now" in overview and "data-deadline" in overview
    many = len(harbour.tokens)
    assert (await client.form(f"{path}/sign-in/refresh", {}, **HTMX)).status == 204
    assert (await rested(script, path))["state"] == "signed_in" and len(harbour.tokens) == many + 1
    assert 'id="step-refresh" data-s="done"' in await shown(client, f"{path}/sign-in")
    assert (await client.form(f"{path}/sign-in/revoke", {}, **HTMX)).status == 204
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.token is None)
    assert not harbour.tokens[-1]["good"] and harbour.saw("/revoke")
    await rested(script, path)
    path = await signed_in(script, stranger, harbour)
    assert (await client.form(f"{path}/sign-in/forget", {}, **HTMX)).status == 204
    assert (await rested(script, path))["state"] == "needed"
    card = card_in(await shown(client, path))
    assert "Sign in</button>" in card
    for verb in ("refresh", "revoke"):
        assert (await client.form(f"{path}/sign-in/{verb}", {}, **HTMX)).status == 409


async def test_a_server_that_needs_none_says_so(client: Visitor, opened):
    shelf = await opened()
    page = await shown(client, f"{shelf.path}/sign-in")
    assert "This server has asked for no sign-in." in page and "environment variables" in page
    assert f'href="{shelf.path}/sign-in"' not in re.sub(r"/~[^/]+", "", await shown(client, shelf.path))


# ------------------------------------------------------------------------------------------------ what it never shows


async def test_what_servers_write_is_text(client: Visitor, script: Visitor, harbour: Harbour):
    evil = '"><img src=x onerror=alert(1)><script>alert(2)</script>'
    harbour.set(
        challenge=f'Bearer realm="{evil[2:20]}", scope="tide:read", error_description="<script>alert(3)</script>"',
        points=False,
        refuse={"register": [400, {"error": evil, "error_description": evil}]},
    )
    path = await begun(script, harbour)
    assert (await rested(script, path))["failure"]["code"] == "registration-refused"
    for where in ("", "/inbox", "/sign-in", "/log"):
        page = (await client.get(path + where)).text
        assert "<script>alert" not in page and "<img src=x" not in page


@pytest.mark.requirement("S21")
async def test_no_secret_goes_through_the_stream_of_a_tab(
    app: Starlette, client: Visitor, script: Visitor, stranger: Visitor, harbour: Harbour
):
    """A whole way: signed in, stepped up, refreshed, revoked; what open tabs hear of it, and every page after it."""
    harbour.set(jwt=True)
    path = await begun(script, harbour)
    session = session_of(app, path)
    tabs = [tab_of(session, page, since=0) for page in ("overview", "sign-in", "log", "inbox")]
    heard: list[str] = []

    def listen() -> None:
        heard.extend(patch.html for tab in tabs if (patch := tab.patch()) is not None)

    await allowed(script, stranger, harbour, path)
    await script.json(f"{path}?wait=30")
    listen()
    call = {"method": "tools/call", "params": {"name": "move_boat", "arguments": {}}}
    started = (await script.post(f"{path}/calls", call)).json()
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.state == "waiting")
    listen()
    await allowed(script, stranger, harbour, path)
    assert (await script.json(f"{path}/calls/{started['id']}?wait=30"))["state"] == "done"
    for verb in ("refresh", "revoke"):
        await client.form(f"{path}/sign-in/{verb}", {}, **HTMX)
        await rested(script, path)
        listen()
    assert len(heard) >= 8
    heard += [(await client.get(path + where)).text for where in ("", "/sign-in", "/log", "/connect")]
    everything = html.unescape("\n".join(heard))
    sent = "\n".join(json.dumps(one["form"]) for one in harbour.saw("/token"))
    verifiers = re.findall(r'"code_verifier": "([^"]+)"', sent)
    assert len(verifiers) >= 2 and len(harbour.secrets) >= 8
    assert not [one[:24] for one in (*harbour.secrets, *verifiers) if one in everything]
    assert "ada" in everything, "the claims are there, the token is not"
