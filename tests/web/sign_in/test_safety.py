"""What a hostile server, a stranger with an address and a curious reader get out of a sign-in: nothing."""

import json
import logging
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from starlette.applications import Starlette

from app import bounds
from app.settings import Settings, local
from tests.drive import until
from tests.drive_oauth import Harbour
from tests.web.asgi import PORT, TOKEN, Visitor
from tests.web.sign_in.going import allowed, begun, rested, session_of, signed_in
from tests.web.test_secrecy import everywhere


def changed(url: str, **parameters: str | None) -> str:
    """The same address with other parameters; None takes one out."""
    found = dict(parse_qsl(urlsplit(url).query)) | parameters
    return f"{url.partition('?')[0]}?{urlencode({name: value for name, value in found.items() if value is not None})}"


# ---------------------------------------------------------------------------------------------------------------- S17

ENDPOINTS = [
    "javascript:alert(1)//", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "\tjavascript:alert(1)",
    "\njavascript:alert(1)", "java\nscript:alert(1)", "data:text/html,<script>alert(1)</script>", "file:///etc/passwd",
    "http://login.example/authorize", "https://ada@login.example/authorize", "https:login.example", "//login.example",
    "vbscript:x", "", 7,
]  # fmt: skip


_LINK = re.compile(
    r"""(?:href|action|src)=["']?\s*(?:java|data:text|file|vbs|http://login|https://ada)""", re.IGNORECASE
)


@pytest.mark.requirement("S17", "R5-75", "R5-62")
async def test_an_address_that_no_browser_should_open_is_refused_and_never_a_link(
    script: Visitor, client: Visitor, harbour: Harbour
):
    for endpoint in ENDPOINTS:
        harbour.set(metadata={"authorization_endpoint": endpoint})
        path = await begun(script, harbour)
        found = await rested(script, path)
        assert found["state"] == "failed" and found["authorization_url"] is None, endpoint
        assert found["failure"]["code"] in ("bad-address", "bad-metadata"), endpoint
        for page in ("/sign-in", "/inbox"):
            assert not _LINK.search((await client.get(path + page)).text), endpoint
        await script.post(f"{path}/close")


@pytest.mark.requirement("S24", "R5-70")
async def test_an_endpoint_that_leads_back_to_parley_is_no_link(script: Visitor, harbour: Harbour):
    harbour.set(metadata={"authorization_endpoint": f"http://127.0.0.1:{PORT}/about"})
    found = await rested(script, await begun(script, harbour))
    assert found["failure"]["code"] == "bad-address" and "this Parley itself" in found["failure"]["sentence"]


INWARD: list[dict[str, Any]] = [
    {"resource": {"authorization_servers": ["http://169.254.169.254/latest"]}},
    {"resource": {"authorization_servers": [f"http://127.0.0.1:{PORT}"]}},
    {"metadata": {"token_endpoint": "http://10.0.0.7/token"}},
    {"metadata": {"registration_endpoint": f"http://127.0.0.1:{PORT}/s"}},
    {"metadata": {"registration_endpoint": "https://169.254.169.254/register"}},
    {"challenge": 'Bearer resource_metadata="https://169.254.169.254/latest/meta-data"'},
    {"challenge": 'Bearer resource_metadata="file:///etc/passwd"'},
]


@pytest.mark.requirement("S24", "R5-70")
async def test_metadata_sends_parley_to_no_place_inside(script: Visitor, harbour: Harbour):
    for settings in INWARD:
        harbour.set(fault=None)
        harbour.set(**settings)
        path = await begun(script, harbour)
        found = await rested(script, path)
        assert found["state"] == "failed", settings
        assert found["failure"]["code"] in ("bad-address", "refused-by-policy"), settings
        await script.post(f"{path}/close")


@pytest.mark.requirement("S24", "R5-70")
async def test_no_step_follows_a_redirect(script: Visitor, harbour: Harbour):
    elsewhere = f"{harbour.issuers['other']}/.well-known/oauth-authorization-server"
    harbour.set(redirects={"/.well-known/oauth-authorization-server": elsewhere}, server_at="nowhere")
    found = await rested(script, await begun(script, harbour))
    assert found["failure"]["code"] == "no-server-metadata"
    assert harbour.saw(at="other") == []


# ---------------------------------------------------------------------------------------------------------------- S19


@pytest.mark.requirement("S19", "R5-57")
async def test_only_the_answer_that_is_waited_for_is_taken_and_once(
    app: Starlette, script: Visitor, stranger: Visitor, harbour: Harbour
):
    path, other = await begun(script, harbour), await begun(script, harbour)
    mine = (await rested(script, path))["authorization_url"]
    theirs = dict(parse_qsl(urlsplit((await rested(script, other))["authorization_url"]).query))["state"]
    final = harbour.allow(mine)
    for wrong in (changed(final, state=theirs), changed(final, state=None), changed(final, state="x"), "nonsense"):
        answer = await script.post(f"{path}/sign-in", {"callback_url": wrong})
        assert answer.status == 422 and answer.error["fields"].keys() == {"/callback_url"}
        assert (await rested(script, path))["state"] == "waiting", "the right one may still come"
    for wrong in ("/oauth/callback", "/oauth/callback?code=x&state=x", f"/oauth/callback?state={'x' * 20_000}"):
        assert (await stranger.get(wrong)).status == 400
    query = urlsplit(final).query
    assert (await stranger.send("HEAD", f"/oauth/callback?{query}")).status == 200
    answer = await stranger.get(f"/oauth/callback?{query}")
    assert answer.status == 200 and answer.header("set-cookie") is None
    for secret in (*dict(parse_qsl(query)).values(), path, harbour.issuer, harbour.resource):
        assert secret not in answer.text
    assert (await rested(script, path))["state"] == "signed_in"
    again = await stranger.get(f"/oauth/callback?{query}")
    assert again.status == 400 and "used before" in again.text
    assert (await script.post(f"{path}/sign-in", {"callback_url": final})).status == 409
    assert len(harbour.saw("/token")) == 1
    assert (await rested(script, other))["state"] == "waiting", "nobody else's sign-in went on by it"
    await script.post(f"{other}/close")
    assert list(app.state.registry.callbacks) == []


@pytest.mark.requirement("S19")
async def test_after_ten_minutes_it_is_too_late(
    app: Starlette, script: Visitor, stranger: Visitor, harbour: Harbour, monkeypatch: pytest.MonkeyPatch
):
    assert bounds.OAUTH_WAIT_SECONDS == 600
    monkeypatch.setattr(bounds, "OAUTH_WAIT_SECONDS", 0.05)
    path = await begun(script, harbour)
    session = session_of(app, path)
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.state == "failed")
    found = await rested(script, path)
    assert found["failure"]["code"] == "no-answer" and "/oauth/callback" in found["failure"]["fix"]
    assert app.state.registry.callbacks == {} and found["authorization_url"] is None


@pytest.mark.requirement("S15", "S19")
async def test_somebody_else_neither_sees_nor_moves_a_sign_in(script: Visitor, mallory: Visitor, harbour: Harbour):
    path = await begun(script, harbour)
    assert (await mallory.get(f"{path}/sign-in")).status == 404
    for verb in ("", "/refresh", "/revoke", "/forget", "/steps/token"):
        assert (await mallory.form(f"{path}/sign-in{verb}", {})).status == 404


# ---------------------------------------------------------------------------------------------------------------- S20


@pytest.mark.requirement("S20", "R5-64", "R5-76")
async def test_another_issuer_gets_neither_the_client_nor_the_token_of_the_one_before(
    script: Visitor, stranger: Visitor, harbour: Harbour
):
    first = await signed_in(script, stranger, harbour)
    old = harbour.secrets
    await script.post(f"{first}/close")
    harbour.set(which="other")
    seen = len(harbour.saw())
    path = await begun(script, harbour)
    found = await rested(script, path)
    assert found["state"] == "waiting" and found["issuer"] == harbour.issuers["other"]
    assert (await allowed(script, stranger, harbour, path))["state"] == "signed_in"
    later = harbour.saw()[seen:]
    assert [one["path"] for one in later if one["at"] == "other"].count("/register") == 1
    assert not any(secret in json.dumps(one) for one in later for secret in old)
    assert not any(one["at"] == "issuer" for one in later)


@pytest.mark.requirement("S20", "R5-64")
async def test_the_same_issuer_is_asked_nothing_twice_and_the_first_request_is_bare(
    script: Visitor, stranger: Visitor, harbour: Harbour
):
    await script.post(f"{await signed_in(script, stranger, harbour)}/close")
    seen = len(harbour.saw())
    path = await begun(script, harbour)
    assert (await script.json(f"{path}?wait=30"))["connection"]["state"] == "ready"
    assert (await rested(script, path))["state"] == "signed_in"
    later = harbour.saw()[seen:]
    assert [one for one in later if one["path"] in ("/register", "/authorize", "/token")] == []
    assert "authorization" not in {name.lower() for name in later[0]["headers"]}
    await script.post(f"{path}/sign-in/forget")


@pytest.mark.requirement("S20", "R5-63")
@pytest.mark.parametrize(
    ("iss", "code"), [(None, "no-iss"), ("https://login.example", "wrong-iss"), ("/", "wrong-iss")]
)
async def test_an_answer_of_another_issuer_is_not_redeemed(
    iss: str | None, code: str, script: Visitor, client: Visitor, harbour: Harbour
):
    path = await begun(script, harbour)
    final = harbour.deny((await rested(script, path))["authorization_url"])
    said = harbour.issuer + "/" if iss == "/" else iss
    hidden = "call 555 now"
    final = changed(final, iss=said, error="access_denied", error_description=hidden)
    assert (await script.post(f"{path}/sign-in", {"callback_url": final})).status == 202
    found = await rested(script, path)
    assert found["failure"]["code"] == code and hidden not in json.dumps(found)
    assert hidden not in (await client.get(f"{path}/sign-in")).text
    assert harbour.saw("/token") == []


# ----------------------------------------------------------------------------------------------------------- S21, F25


class TestCanary:
    """A whole flow, kept on disk, and every place that anybody could read."""

    @pytest.fixture
    def settings(self, tmp_path: Path) -> Settings:
        return local(port=PORT, token=TOKEN, data_dir=tmp_path / "data", keep_sign_ins=True)

    @pytest.mark.requirement("S21", "R5-61")
    @pytest.mark.parametrize("jwt", [False, True])
    async def test_no_token_is_found_anywhere(
        self,
        jwt: bool,
        app: Starlette,
        script: Visitor,
        stranger: Visitor,
        client: Visitor,
        harbour: Harbour,
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
    ):
        caplog.set_level(logging.DEBUG)
        harbour.set(jwt=jwt, refuse={"revoke": [400, {"error": "x", "error_description": "no"}]})
        path = await signed_in(script, stranger, harbour)
        session = session_of(app, path)
        await script.post(f"{path}/calls", {"method": "tools/call", "params": {"name": "move_boat", "arguments": {}}})
        await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.state == "waiting")
        await allowed(script, stranger, harbour, path)
        assert (await script.json(f"{path}/calls/c1?wait=30"))["state"] == "done"
        await script.post(f"{path}/sign-in/refresh")
        await rested(script, path)
        await script.post(f"{path}/sign-in/revoke")
        assert (await rested(script, path))["steps"][-1]["state"] == "failed"
        secrets = harbour.secrets
        assert len(secrets) >= (4 if jwt else 6)
        found = await everywhere(client, script, path)
        for who, visitor in (("page", client), ("json", script)):
            found[f"{who} sign-in"] = (await visitor.get(f"{path}/sign-in")).text
        found["terminal"] = caplog.text
        found["events"] = repr(session.events.since(session.events._events[0].seq - 1))
        found["memory that is shown"] = repr(session.sign_in.current) + repr(session.messages._requests)
        files = [one for one in tmp_path.rglob("*") if one.is_file()]  # noqa: ASYNC240 (a test may block)
        found |= {f"file {one.name}": one.read_bytes().decode("latin-1") for one in files}
        assert {one.stat().st_mode & 0o777 for one in files if one.name.startswith("sign-ins")} == {0o600}
        for where, text in found.items():
            assert not [secret for secret in secrets if secret in text], where
        claims = (await rested(script, path))["token"]["claims"]
        assert (claims["sub"] == "ada") if jwt else (claims is None)
