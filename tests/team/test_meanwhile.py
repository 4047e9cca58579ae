"""What somebody began before they were let in no more: it is not done, and nothing goes on being told to them."""

import json
from collections.abc import Awaitable, Callable

import anyio
import pytest
from starlette.applications import Starlette

from app.sessions import Identity
from app.web.team.house import House
from tests.drive import HANG
from tests.team.conftest import PROXY, Enters, Guest

pytestmark = pytest.mark.requirement("T07")
JSON = {"content-type": "application/json", "accept": "application/json"}


def held(data: object, meanwhile: Callable[[], Awaitable[object]]) -> list[bytes | Callable[[], Awaitable[bytes]]]:
    """A body whose end comes after something else has happened."""
    text = json.dumps(data).encode()

    async def rest() -> bytes:
        await meanwhile()
        return text[1:]

    return [text[:1], rest]


async def test_a_body_that_was_held_back_does_nothing_once_its_sender_is_let_in_no_more(
    enters: Enters, app: Starlette, house: House
):
    boss, admin = await enters("boss", "admin"), await enters("mallory", "admin")
    assert boss.person is not None and admin.person is not None
    before, key = len(await house.people.invitations()), admin.person.id

    async def switched_off() -> None:
        assert (await boss.post(f"/people/{key}/off")).status == 200

    wanted = {"name": "back door", "role": "admin"}
    late = await admin.send("POST", "/people/invite", JSON, held(wanted, switched_off))
    assert (late.status, late.error["kind"]) == (401, "signed-out"), late.text
    assert len(await house.people.invitations()) == before

    # The same of a role that was taken away, of a login that ended, and of a token that was revoked.
    user = await enters("user", "admin")
    assert user.person is not None
    person = user.person.id

    async def demoted() -> None:
        assert (await boss.post(f"/people/{person}/role", {"role": "viewer"})).status == 200

    assert (await user.send("POST", "/people/invite", JSON, held(wanted, demoted))).status == 401
    made = (await user.post("/me/tokens", {"name": "script", "scope": "act"})).json()
    script = Guest(app, {**PROXY, "authorization": f"Bearer {made['token']}", **JSON})

    async def revoked() -> None:
        assert (await user.post(f"/me/tokens/{made['id']}/revoke")).status == 200

    connects = held({"variables": {}}, revoked)
    assert (await script.send("POST", "/catalogue/wiki/connect", JSON, connects)).status == 401

    async def signed_out() -> None:
        assert (await user.post("/logout", {"everywhere": True})).status == 200

    assert (await user.send("POST", "/dial", JSON, held({"url": "https://example.com"}, signed_out))).status == 401
    assert app.state.registry.everybodys() == [] and len(await house.people.invitations()) == before


async def test_a_stream_ends_with_the_token_that_opened_it(enters: Enters, app: Starlette):
    user = await enters("user")
    assert user.person is not None
    session = app.state.registry.open(Identity(user.person.id, "user", role="user"))
    made = (await user.post("/me/tokens", {"name": "script", "scope": "read"})).json()
    script = Guest(app, {**PROXY, "authorization": f"Bearer {made['token']}", "accept": "text/event-stream"})
    heard: list[str] = []

    async def listen() -> None:
        heard.append((await script.get(f"/s/{session.id}/events?format=json")).text)

    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            while not app.state.streams.many(user.person.id):
                await anyio.lowlevel.checkpoint()
            assert (await user.post(f"/me/tokens/{made['id']}/revoke")).status == 200
    assert "signed-out" in heard[0]


async def test_a_token_that_only_reads_finishes_no_sign_in(enters: Enters, app: Starlette):
    user = await enters("user")
    made = (await user.post("/me/tokens", {"name": "script", "scope": "read"})).json()
    script = Guest(app, {**PROXY, "authorization": f"Bearer {made['token']}", "accept": "application/json"})
    assert (await script.get("/oauth/callback?state=x&code=y")).status == 403


async def test_what_was_shared_is_not_acted_on_once_it_is_not(enters: Enters, app: Starlette, house: House):
    ada, linus = await enters("Ada"), await enters("Linus")
    assert ada.person is not None and linus.person is not None
    whom = linus.person.id
    session = app.state.registry.open(Identity(ada.person.id, "Ada", role="user"))
    share = await house.shares.give("session", session.id, "answer", whom, "test")

    async def less() -> None:
        await house.shares.revoke(session.id, share.id)
        await house.shares.give("session", session.id, "watch", whom, "test")

    async def nothing() -> None:
        await house.shares.forget(session.id, whom)

    clear = f"/s/{session.id}/inbox/clear"
    assert (await linus.send("POST", clear, JSON, held({}, less))).status == 403
    await house.shares.give("session", session.id, "answer", whom, "test")
    assert (await linus.send("POST", clear, JSON, held({}, nothing))).status == 404
