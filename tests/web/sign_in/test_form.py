"""*Authorization* in the connect form: what it says becomes `target.auth`, and its secrets never come back."""

import html

import pytest

from tests.drive_oauth import Harbour
from tests.web.asgi import Visitor
from tests.web.sign_in.going import rested

SECRET = "a-secret-that-nobody-sees-again"
FORM = {"transport": "http", "auth_kind": "client-credentials", "auth_client_id": "robot", "auth_scopes": "tide:read"}


async def test_a_form_signs_in_as_a_program_and_its_secret_stays_when_it_is_left_blank(
    client: Visitor, script: Visitor, harbour: Harbour
):
    known = {"client_secret": SECRET, "token_endpoint_auth_method": "client_secret_basic"}
    harbour.set(clients={"robot": known})
    answer = await client.form("/s", {**FORM, "url": harbour.resource, "auth_client_secret": SECRET})
    path = str(answer.header("location"))
    assert answer.status == 303, answer.text[:300]
    told = await script.json(f"{path}?wait=30")
    assert told["connection"]["state"] == "ready", told["connection"]
    auth = {"kind": "client-credentials", "client_id": "robot", "scopes": ["tide:read"]}
    assert told["target"]["auth"] == auth and (await rested(script, path))["grant"] == "client_credentials"
    steps = {one["id"]: one["state"] for one in (await rested(script, path))["steps"]}
    assert steps["authorization"] == steps["callback"] == "skipped" and steps["token"] == "done"

    page = (await client.get(f"{path}/connect")).text
    assert SECRET not in page and 'value="robot"' in page and "kept; type to replace it" in page
    again = {**FORM, "url": harbour.resource, "like": path.removeprefix("/s/"), "auth_client_secret": ""}
    assert (await client.form(f"{path}/connect", again)).status == 303
    assert (await script.json(f"{path}?wait=30"))["connection"]["state"] == "ready"
    # Another client does not get the secret of this one.
    answer = await client.form(f"{path}/connect", {**again, "auth_client_id": "other"})
    assert answer.status == 422 and "client_secret or a private_key" in answer.text


@pytest.mark.parametrize(
    ("fields", "auth"),
    [
        ({"auth_kind": ""}, None),
        ({"auth_kind": "none"}, {"kind": "none"}),
        ({"auth_kind": "bearer", "auth_token": SECRET, "auth_client_id": "left over"}, {"kind": "bearer"}),
        ({"auth_kind": "oauth", "auth_scopes": "a b"}, {"kind": "oauth", "client_id": None, "scopes": ["a", "b"]}),
    ],
)
async def test_only_what_belongs_to_a_method_is_read(
    client: Visitor, script: Visitor, harbour: Harbour, fields: dict[str, str], auth: object
):
    answer = await client.form("/s", {"transport": "http", "url": harbour.resource, **fields})
    assert answer.status == 303
    told = await script.json(f"{answer.header('location')}?wait=30".replace("/?session=", "/s/"))
    assert told["target"]["auth"] == auth and SECRET not in str(told)


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"auth_kind": "bearer"}, "auth_token-error", "This is required."),
        ({"auth_kind": "bearer", "auth_token": "two words"}, "auth_token-error", "one word"),
        ({"auth_kind": "oauth", "auth_client_secret": SECRET}, "auth_client_secret-error", "belongs to a client_id"),
        ({"auth_kind": "oauth", "auth_scopes": 'a "b"'}, "auth_scopes-error", "no scope"),
    ],
)
async def test_what_is_wrong_is_said_at_its_field(client: Visitor, fields: dict[str, str], where: str, words: str):
    answer = await client.form("/s", {"transport": "http", "url": "http://127.0.0.1:1/mcp", **fields})
    assert answer.status == 422
    page = html.unescape(answer.text)
    assert words in page.split(f'id="{where}">')[1].split("</span>")[0] and SECRET not in page


async def test_a_script_that_says_something_unknown_hears_so(script: Visitor):
    for auth in (
        {"kind": "magic"},
        {"kind": "none", "token": "x"},
        {"kind": "bearer"},
        {"kind": "oauth", "secret": "x"},
    ):
        answer = await script.post("/s", {"target": {"transport": "http", "url": "http://127.0.0.1:1/", "auth": auth}})
        assert answer.status == 422, auth
