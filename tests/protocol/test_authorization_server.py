"""The authorization server of the tests is one: what it lets through and what it refuses, spoken to by hand."""

import base64
import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from tests.drive_oauth import FAULTS, Harbour, protected

BACK = "http://127.0.0.1:1/oauth/callback"
VERIFIER = "v" * 50
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    with protected(tmp_path_factory.mktemp("tls")) as harbour:
        yield harbour


@pytest.fixture
def harbour(running: Harbour) -> Harbour:
    running.set(fault=None)
    return running


def ask(url: str, body: Any = None, *, form: Any = None, token: str = "") -> tuple[int, dict[str, Any], dict[str, str]]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    data = None
    if body is not None:
        data, headers["content-type"] = json.dumps(body).encode(), "application/json"
    elif form is not None:
        data = urlencode(form).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=20) as answer:
            return answer.status, json.loads(answer.read() or b"{}"), dict(answer.headers)
    except urllib.error.HTTPError as refused:
        with refused:
            text = refused.read().decode()
            return refused.code, json.loads(text) if text.startswith("{") else {"text": text}, dict(refused.headers)


def metadata(harbour: Harbour) -> dict[str, Any]:
    return ask(f"{harbour.issuer}/.well-known/oauth-authorization-server")[1]


def registered(harbour: Harbour) -> dict[str, Any]:
    wanted = {
        "client_name": "By hand",
        "redirect_uris": [BACK],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
    }
    status, client, _ = ask(metadata(harbour)["registration_endpoint"], wanted)
    assert status == 201, client
    return client


def address(harbour: Harbour, client: dict[str, Any], **more: str) -> str:
    asked = {
        "response_type": "code",
        "client_id": client["client_id"],
        "redirect_uri": BACK,
        "state": "s1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": harbour.resource,
        "scope": "tide:read",
        **more,
    }
    return f"{harbour.issuer}/authorize?{urlencode(asked)}"


def redeemed(harbour: Harbour, client: dict[str, Any], back: str, **more: str) -> tuple[int, dict[str, Any]]:
    form = {
        "grant_type": "authorization_code",
        "code": dict(parse_qsl(urlsplit(back).query))["code"],
        "redirect_uri": BACK,
        "client_id": client["client_id"],
        "code_verifier": VERIFIER,
        "resource": harbour.resource,
        **more,
    }
    return ask(f"{harbour.issuer}/token", form=form)[:2]


def signed_in(harbour: Harbour, scope: str = "tide:read") -> tuple[dict[str, Any], dict[str, Any]]:
    client = registered(harbour)
    status, token = redeemed(harbour, client, harbour.allow(address(harbour, client, scope=scope)))
    assert status == 200, token
    return client, token


def call(harbour: Harbour, tool: str, token: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    return ask(harbour.resource, {**CALL, "params": {"name": tool}}, token=token)


def test_the_whole_way_from_a_401_over_a_step_up_and_a_refresh_to_a_revocation(harbour):
    status, _, headers = call(harbour, "read_tide", "")
    pointer = f"{harbour.resource.removesuffix('/mcp')}/.well-known/oauth-protected-resource/mcp"
    assert status == 401 and f'resource_metadata="{pointer}"' in headers["www-authenticate"]
    about = ask(pointer)[1]
    assert about["resource"] == harbour.resource and about["authorization_servers"] == [harbour.issuer]

    client = registered(harbour)
    where = address(harbour, client)
    shown, page = harbour.open(where)
    assert shown == 200 and "Allow" in page and "By hand" in page and "tide:read" in page
    back = harbour.allow(where)
    assert dict(parse_qsl(urlsplit(back).query)).items() >= {"state": "s1", "iss": harbour.issuer}.items()
    status, token = redeemed(harbour, client, back)
    assert status == 200 and token["scope"] == "tide:read" and token["expires_in"] == 3600
    assert redeemed(harbour, client, back)[0] == 400  # a code works once

    assert call(harbour, "read_tide", token["access_token"])[0] == 200
    status, _, headers = call(harbour, "move_boat", token["access_token"])
    assert status == 403 and 'scope="boat:write"' in headers["www-authenticate"]
    _, token = signed_in(harbour, "tide:read boat:write")
    assert call(harbour, "move_boat", token["access_token"])[1]["result"]["content"][0]["text"]

    harbour.set(now="outdate")
    assert call(harbour, "move_boat", token["access_token"])[0] == 401
    again = {"grant_type": "refresh_token", "refresh_token": token["refresh_token"], "resource": harbour.resource}
    owner = next(each["form"]["client_id"] for each in reversed(harbour.saw("/token")))
    status, fresh, _ = ask(f"{harbour.issuer}/token", form={**again, "client_id": owner})
    assert status == 200 and fresh["refresh_token"] != token["refresh_token"]
    assert call(harbour, "move_boat", fresh["access_token"])[0] == 200
    assert ask(f"{harbour.issuer}/token", form={**again, "client_id": owner})[1]["error"] == "invalid_grant"

    gone = {"token": fresh["refresh_token"], "client_id": owner}
    assert ask(f"{harbour.issuer}/revoke", form=gone)[0] == 200
    assert call(harbour, "read_tide", fresh["access_token"])[0] == 401
    for made in (token["access_token"], fresh["refresh_token"]):
        assert made in harbour.secrets


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"code_verifier": "w" * 50}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:2/"}, "invalid_grant"),
        ({"resource": "https://boats.example/mcp"}, "invalid_target"),
    ],
)
def test_a_code_is_redeemed_only_by_whom_it_was_made_for(harbour, wrong, error):
    client = registered(harbour)
    status, said = redeemed(harbour, client, harbour.allow(address(harbour, client)), **wrong)
    assert status == 400 and said["error"] == error


def test_nobody_is_sent_to_an_address_that_was_not_registered(harbour):
    client = registered(harbour)
    status, page = harbour.open(address(harbour, client, redirect_uri="http://127.0.0.1:2/"))
    assert status == 400 and "Allow" not in page
    assert "error=access_denied" in harbour.deny(address(harbour, client))


@pytest.mark.parametrize("at", ["oauth", "openid", "appended"])
def test_its_metadata_is_at_one_place_and_at_no_other(harbour, at):
    harbour.set(server_at=at, issuer_path="/tenant1")
    base = harbour.issuer
    places = {
        "oauth": f"{base}/.well-known/oauth-authorization-server/tenant1",
        "openid": f"{base}/.well-known/openid-configuration/tenant1",
        "appended": f"{base}/tenant1/.well-known/openid-configuration",
    }
    assert {name: ask(url)[0] for name, url in places.items()} == {name: 200 if name == at else 404 for name in places}
    assert ask(places[at])[1]["issuer"] == f"{base}/tenant1"


def test_a_jwt_has_claims_and_a_client_may_be_known_before(harbour):
    known = {"client_secret": "canary-secret-known", "token_endpoint_auth_method": "client_secret_post"}
    harbour.set(jwt=True, clients={"known": {**known, "redirect_uris": [BACK]}})
    client = {"client_id": "known"}
    back = harbour.allow(address(harbour, client))
    assert redeemed(harbour, client, back)[0] == 401
    back = harbour.allow(address(harbour, client))
    status, token = redeemed(harbour, client, back, client_secret="canary-secret-known")
    assert status == 200
    claims = json.loads(base64.urlsafe_b64decode(token["access_token"].split(".")[1] + "=="))
    assert claims["aud"] == harbour.resource and claims["iss"] == harbour.issuer
    assert call(harbour, "read_tide", token["access_token"])[0] == 200
    itself = {"grant_type": "client_credentials", "client_id": "known", "client_secret": "canary-secret-known"}
    status, token, _ = ask(
        f"{harbour.issuer}/token", form={**itself, "resource": harbour.resource, "scope": "tide:read"}
    )
    assert status == 200 and call(harbour, "read_tide", token["access_token"])[0] == 200


def test_a_token_of_another_issuer_or_with_nothing_behind_it_is_not_good(harbour):
    _, token = signed_in(harbour)
    harbour.set(which="other")
    assert call(harbour, "read_tide", token["access_token"])[0] == 401
    harbour.set(which="issuer")
    assert call(harbour, "read_tide", token["access_token"])[0] == 200
    assert call(harbour, "read_tide", "made-up")[0] == 401


def test_each_fault_is_one(harbour):
    """What a client meets first, for every set-up that has a name."""
    met = {}
    for fault in FAULTS:
        harbour.set(fault=fault)
        pointer = f"{harbour.resource.removesuffix('/mcp')}/.well-known/oauth-protected-resource/mcp"
        status, about, _ = ask(pointer)
        server = about.get("authorization_servers", [""])[0]
        if status == 404:
            met[fault] = "404"
        elif about["resource"] != harbour.resource:
            met[fault] = "resource"
        elif server != harbour.issuer:
            with pytest.raises(urllib.error.URLError) as failed:
                ask(f"{server}/.well-known/oauth-authorization-server")
            met[fault] = "certificate" if "CERTIFICATE" in str(failed.value) else "refused"
        elif metadata(harbour)["issuer"] != harbour.issuer:
            met[fault] = "issuer"
        elif "code_challenge_methods_supported" not in metadata(harbour):
            met[fault] = "pkce"
        else:
            wanted = {"redirect_uris": [BACK], "token_endpoint_auth_method": "none"}
            status, client, _ = ask(f"{harbour.issuer}/register", wanted)
            if status == 403:
                met[fault] = "registration"
            elif client["redirect_uris"] != [BACK]:
                met[fault] = "redirect"
                assert harbour.open(address(harbour, client))[0] == 400
            else:
                status, token = redeemed(harbour, client, harbour.allow(address(harbour, client)))
                met[fault] = token.get("error") or str(call(harbour, "read_tide", token["access_token"])[0])
    assert met == {
        "no metadata": "404",
        "wrong resource": "resource",
        "wrong issuer": "issuer",
        "no PKCE": "pkce",
        "refused registration": "registration",
        "expired code": "invalid_grant",
        "wrong redirect": "redirect",
        "TLS failure": "certificate",
        "unreachable server": "refused",
        "endless 403": "403",
    }


def test_both_eras_answer_whoever_is_let_in(harbour):
    _, token = signed_in(harbour)
    legacy = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    assert ask(harbour.resource, legacy, token=token["access_token"])[1]["result"]["serverInfo"]["name"]
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    modern = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
    assert ask(harbour.resource, modern, token=token["access_token"])[1]["result"]["supportedVersions"]
    assert ask(harbour.resource, modern)[0] == 401


def test_what_is_set_is_known_or_refused(harbour):
    with pytest.raises(urllib.error.HTTPError):
        harbour.set(faults=["a slip of the pen"])
    harbour.set(answers={"/token": [500, "text/html", "<h1>Down</h1>"]}, redirects={"/register": "http://127.0.0.1:1/"})
    assert ask(f"{harbour.issuer}/token", form={})[0] == 500
    assert ask(f"{harbour.issuer}/register", {})[0] == 307
