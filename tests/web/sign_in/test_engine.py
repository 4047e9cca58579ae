"""A sign-in from the first 401 on: what is held and goes on, what is renewed, what can be run alone."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from starlette.applications import Starlette

from app.settings import Settings, local
from app.web.app import create_app
from tests.drive import until
from tests.drive_oauth import Harbour
from tests.web.asgi import PORT, TOKEN, Visitor
from tests.web.sign_in.going import allowed, begun, rested, session_of, signed_in

DOCUMENT = "https://parley.example/client.json"
CALLBACK = f"http://127.0.0.1:{PORT}/oauth/callback"


@pytest.fixture
def settings() -> Settings:
    return local(port=PORT, token=TOKEN, client_metadata_url=DOCUMENT)


def asked(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query))


async def called(script: Visitor, path: str, name: str) -> str:
    answer = await script.post(f"{path}/calls", {"method": "tools/call", "params": {"name": name, "arguments": {}}})
    return str(answer.json()["id"])


def step(found: dict[str, Any], which: str) -> dict[str, Any]:
    return next(one for one in found["steps"] if one["id"] == which)


@pytest.mark.requirement("R5-51", "R5-52", "R5-56", "R5-57", "R5-58", "R5-59", "R5-60", "R5-61", "R5-78")
async def test_a_401_is_signed_in_to_and_a_403_is_stepped_up_while_the_call_waits(
    app: Starlette, script: Visitor, stranger: Visitor, harbour: Harbour
):
    before = len(harbour.saw("/token"))
    path = await begun(script, harbour)
    told = await script.json(path)
    assert told["connection"]["state"] == "lost" and told["connection"]["error"]["kind"] == "http-401"
    inbox = await script.json(f"{path}/inbox")
    assert inbox["open"] == [] and inbox["sign_in"]["state"] == "waiting"
    found = await rested(script, path)
    wanted = asked(found["authorization_url"])
    assert wanted["resource"] == harbour.resource and wanted["scope"] == "tide:read"
    assert wanted["code_challenge_method"] == "S256" and wanted["redirect_uri"] == CALLBACK
    registered = step(found, "registration")["request"]["body"]
    assert '"application_type": "native"' in registered and '"refresh_token"' in registered
    assert all(one["exchange"] for one in found["steps"] if one["response"])
    assert (await allowed(script, stranger, harbour, path))["state"] == "signed_in"
    assert (await script.json(f"{path}?wait=30"))["connection"]["state"] == "ready"
    assert (await script.json(f"{path}/inbox"))["sign_in"] is None

    call, session = await called(script, path, "move_boat"), session_of(app, path)
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.state == "waiting")
    assert session.calls[call].state == "running" and session.calls[call].deadline_at is None, "its time stands still"
    found = await rested(script, path)
    assert found["reason"] == "scope" and found["held"] == 1 and found["attempt"] == 2
    assert set(asked(found["authorization_url"])["scope"].split()) == {"tide:read", "boat:write"}
    assert step(found, "registration")["request"] is None, "the client of this issuer serves again"
    await allowed(script, stranger, harbour, path)
    assert (await script.json(f"{path}/calls/{call}?wait=30"))["state"] == "done"
    assert session.sign_in.current is not None and session.sign_in.current.attempt == 0

    harbour.set(now="outdate")
    again = await called(script, path, "read_tide")
    assert (await script.json(f"{path}/calls/{again}?wait=30"))["state"] == "done", "renewed on a 401, by itself"
    assert step(await rested(script, path), "refresh")["state"] == "done"

    assert (await script.post(f"{path}/sign-in/refresh")).status == 202
    found = await rested(script, path)
    assert found["state"] == "signed_in" and len(harbour.saw("/token")) == 4 + before
    alone = await script.post(f"{path}/sign-in/steps/server-metadata", {})
    assert alone.status == 202 and (await rested(script, path))["state"] == "signed_in"
    assert (await script.post(f"{path}/sign-in/steps/callback", {})).status == 409
    assert (await script.post(f"{path}/sign-in/steps/nonsense", {})).status == 404

    assert (await script.post(f"{path}/sign-in/revoke")).status == 202
    found = await rested(script, path)
    assert found["state"] == "needed" and found["token"] is None and harbour.saw("/revoke")
    assert (await script.post(f"{path}/sign-in/refresh")).status == 409
    assert (await script.post(f"{path}/sign-in", {})).status == 202
    assert (await rested(script, path))["state"] == "waiting"
    assert (await script.post(f"{path}/sign-in/forget")).json()["state"] == "needed"
    assert app.state.registry.callbacks == {}


@pytest.mark.requirement("R5-60")
async def test_who_refuses_more_scopes_keeps_what_the_token_was_good_for(
    app: Starlette, script: Visitor, stranger: Visitor, harbour: Harbour
):
    path = await signed_in(script, stranger, harbour)
    session, call = session_of(app, path), await called(script, path, "move_boat")
    await until(session, lambda: session.sign_in.current is not None and session.sign_in.current.state == "waiting")
    final = harbour.deny((await rested(script, path))["authorization_url"])
    assert (await script.post(f"{path}/sign-in", {"callback_url": final})).status == 202
    told = await script.json(f"{path}/calls/{call}?wait=30")
    assert told["state"] == "failed" and "403" in told["error"]["message"]
    found = await rested(script, path)
    assert found["failure"]["code"] == "denied" and found["token"]["scopes"] == ["tide:read"]
    call = await called(script, path, "read_tide")
    assert (await script.json(f"{path}/calls/{call}?wait=30"))["state"] == "done"
    await script.post(f"{path}/sign-in/forget")
    await script.post(f"{path}/close")


@pytest.mark.requirement("R5-54", "R5-55", "R5-65")
async def test_who_parley_is_comes_from_a_registration_by_hand_a_document_or_one_now(
    app: Starlette, script: Visitor, stranger: Visitor, harbour: Harbour
):
    known = {"client_secret": "by-hand-secret", "redirect_uris": [CALLBACK],
             "token_endpoint_auth_method": "client_secret_basic"}  # fmt: skip
    harbour.set(clients={"by-hand": known}, metadata={"client_id_metadata_document_supported": True}, offline=True)
    harbour.set(documents={DOCUMENT: {"client_id": DOCUMENT, "redirect_uris": [CALLBACK], "client_name": "Parley"}})
    path = await signed_in(script, stranger, harbour, kind="oauth", client_id="by-hand", client_secret="by-hand-secret")
    found = await rested(script, path)
    assert found["registration"] == "pre-registered" and found["client_id"] == "by-hand"
    assert "offline_access" in found["scopes"], "listed by the issuer, so it is asked for"
    assert "by-hand-secret" not in (await script.get(f"{path}/sign-in")).text + (await script.get(path)).text
    assert (await script.json(path))["target"]["auth"]["client_id"] == "by-hand"
    await script.post(f"{path}/sign-in/forget")
    await script.post(f"{path}/close")

    registered = len(harbour.saw("/register"))
    path = await signed_in(script, stranger, harbour)
    found = await rested(script, path)
    assert (found["registration"], found["client_id"]) == ("metadata-document", DOCUMENT)
    assert len(harbour.saw("/register")) == registered
    await script.post(f"{path}/sign-in/forget")
    await script.post(f"{path}/close")

    harbour.set(metadata={"registration_endpoint": None}, documents={})
    path = await begun(script, harbour)
    assert (await rested(script, path))["failure"]["code"] == "no-registration"
    said = {"client_id": "by-hand", "client_secret": "by-hand-secret", "scopes": ["tide:read"]}
    assert (await script.post(f"{path}/sign-in", said)).status == 202
    assert (await allowed(script, stranger, harbour, path))["state"] == "signed_in"
    await script.post(f"{path}/sign-in/forget")
    await script.post(f"{path}/close")


async def test_a_program_signs_in_without_a_person(script: Visitor, harbour: Harbour):
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    harbour.set(clients={
        "robot": {"client_secret": "robot-secret-1", "token_endpoint_auth_method": "client_secret_basic"},
        "signer": {"public_key": public, "token_endpoint_auth_method": "private_key_jwt"},
    })  # fmt: skip
    for auth in (
        {"client_id": "robot", "client_secret": "robot-secret-1"},
        {"client_id": "signer", "private_key": pem},
    ):
        path = await begun(script, harbour, kind="client-credentials", scopes=["tide:read"], **auth)
        assert (await script.json(f"{path}?wait=30"))["connection"]["state"] == "ready", await rested(script, path)
        found = await rested(script, path)
        assert found["grant"] == "client_credentials" and found["state"] == "signed_in"
        assert step(found, "authorization")["state"] == "skipped"
        harbour.set(now="forget")
        call = await called(script, path, "read_tide")
        assert (await script.json(f"{path}/calls/{call}?wait=30"))["state"] == "done", "signed in again, by itself"
        await script.post(f"{path}/close")


@pytest.mark.requirement("R5-50", "R5-61")
async def test_what_a_target_says_of_credentials_is_kept_to(script: Visitor, stranger: Visitor, harbour: Harbour):
    path = await begun(script, harbour, kind="none")
    assert (await rested(script, path)) == {"state": "none", "steps": []}
    assert (await script.json(path))["connection"]["error"]["kind"] == "http-401"
    assert (await script.post(f"{path}/sign-in/refresh")).status == 409

    path = await begun(script, harbour, kind="bearer", token="not-a-good-token")
    assert (await rested(script, path))["state"] == "none"
    sent = harbour.saw("/mcp")[-1]["headers"]
    assert {name.lower(): value for name, value in sent.items()}["authorization"] == "Bearer not-a-good-token"
    assert "not-a-good-token" not in (await script.get(path)).text + (await script.get(f"{path}/log")).text

    url = harbour.resource
    for auth in (
        {"kind": "oauth", "client": "x"}, {"kind": "basic"}, {"kind": "bearer"}, {"kind": "bearer", "token": "a b"},
        {"kind": "oauth", "client_secret": "x"}, {"kind": "client-credentials", "client_id": "x"}, {},
        {"kind": "client-credentials", "client_id": "x", "client_secret": "s", "private_key": "k"},
        {"kind": "oauth", "scopes": ["a b"]}, {"kind": "none", "token": "x"},
    ):  # fmt: skip
        answer = await script.post("/s", {"target": {"transport": "http", "url": url, "auth": auth}})
        assert answer.status == 422 and all(where.startswith("/target/auth") for where in answer.error["fields"]), auth
    answer = await script.post("/s", {"target": {"transport": "stdio", "command": "x", "auth": {"kind": "none"}}})
    assert answer.status == 422, "a command gets its credentials as variables"

    own = {"transport": "http", "url": url, "headers": {"Authorization": "Bearer of-their-own"}}
    path = (await script.post("/s", {"target": own})).json()["url"]
    await script.json(f"{path}?wait=30")
    assert (await rested(script, path))["state"] == "none", "a header says it already"
    assert (await script.post(f"{path}/sign-in", {})).status == 202, "and a person may still want it"
    assert (await allowed(script, stranger, harbour, path))["state"] == "signed_in"
    assert (await script.json(f"{path}?wait=30"))["connection"]["state"] == "ready"
    await script.post(f"{path}/sign-in/forget")


@pytest.mark.requirement("R5-77")
async def test_what_one_person_signed_in_with_is_of_no_use_to_another(
    app: Starlette, script: Visitor, stranger: Visitor, mallory: Visitor, harbour: Harbour
):
    await signed_in(script, stranger, harbour)
    registered = len(harbour.saw("/register"))
    form = {"transport": "http", "url": harbour.resource}
    await mallory.form("/s", form)
    theirs = next(one for one in app.state.registry._sessions.values() if one.owner == "mallory")
    await until(theirs, lambda: theirs.sign_in.current is not None and theirs.sign_in.current.state == "waiting")
    assert theirs.info.state == "lost" and len(harbour.saw("/register")) == registered + 1


@pytest.mark.requirement("R5-61")
async def test_a_sign_in_that_is_kept_serves_the_next_process_and_a_lost_key_costs_only_that(
    stranger: Visitor, harbour: Harbour, tmp_path: Path
):
    kept = local(port=PORT, token=TOKEN, data_dir=tmp_path / "data", keep_sign_ins=True)
    headers = {"authorization": f"Bearer {TOKEN}", "accept": "application/json"}
    for run in range(3):
        application = create_app(kept)
        async with application.router.lifespan_context(application):
            await application.state.loaded.wait()
            script, anybody = Visitor(application, headers), Visitor(application, {"accept": "text/html"})
            if run == 0:
                path = await signed_in(script, anybody, harbour)
                assert (await rested(script, path))["token"]["stored"] is True
            else:
                path = await begun(script, harbour)
                wanted = "signed_in" if run == 1 else "waiting"
                assert (await rested(script, path))["state"] == wanted
                assert (await script.json(f"{path}?wait=30"))["connection"]["state"] == (
                    "ready" if run == 1 else "lost"
                )
        if run == 1:
            (tmp_path / "data" / "sign-ins.key").unlink()
