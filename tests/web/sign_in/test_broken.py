"""Ten set-ups that people get wrong: the page names the cause, and what to do."""

import html
from typing import Any

import pytest
from starlette.applications import Starlette

from app.core.sign_in import ATTEMPTS
from app.sessions import Session
from tests.drive import until
from tests.drive_oauth import FAULTS, Harbour
from tests.web.asgi import Visitor
from tests.web.sign_in.going import allowed, begun, rested, session_of

CALLBACK = "http://127.0.0.1:6280/oauth/callback"
CAUSES: dict[str, tuple[str, str, str, str]] = {
    "no metadata": (
        "server-metadata",
        "no-metadata",
        "{server} asks for a token, and publishes nothing that says where to get one.",
        "The server should serve /.well-known/oauth-protected-resource, or name it in WWW-Authenticate. If somebody "
        "gave you a token, connect with that.",
    ),
    "wrong resource": (
        "resource-metadata",
        "wrong-resource",
        "The metadata is that of another server: it is for https://boats.example/mcp, and this is {server}.",
        "Correct resource in the server's metadata. If the server is known under both, connect to the one it names.",
    ),
    "wrong issuer": (
        "server-metadata",
        "wrong-issuer",
        "The metadata belongs to another issuer: it says https://login.example, and {issuer} was asked.",
        "issuer there and the address in authorization_servers must be the same, letter by letter, also at the end.",
    ),
    "no PKCE": (
        "authorization",
        "no-pkce",
        "{issuer} does not say that it protects codes with PKCE (S256), so Parley does not sign in there.",
        "It should list S256 in code_challenge_methods_supported.",
    ),
    "refused registration": (
        "registration",
        "registration-refused",
        "{issuer} refused to register Parley (access_denied: Only members register clients).",
        f"Register a client there by hand, with the redirect address {CALLBACK}, and sign in with its client id.",
    ),
    "expired code": (
        "token",
        "code-refused",
        "{issuer} does not take the code (invalid_grant: The code has expired).",
        "A code is good once, for a minute or so, and for one client with one redirect address. Sign in again, soon "
        "after you agree.",
    ),
    "wrong redirect": (
        "registration",
        "wrong-redirect",
        "{issuer} does not take the redirect address of this Parley.",
        f"Register exactly {CALLBACK} for this client.",
    ),
    "TLS failure": (
        "server-metadata",
        "tls",
        "No secure connection to {tls}: self-signed certificate.",
        "Check its certificate. If your company signs it, name the authority under TLS when you connect.",
    ),
    "unreachable server": (
        "server-metadata",
        "unreachable",
        "{closed} cannot be reached: nothing listens at 127.0.0.1 port {port}.",
        "Check that it runs, its address, and your network.",
    ),
    "endless 403": (
        "challenge",
        "endless-scope",
        "{server} still answers 403 after 3 sign-ins that asked for the scopes it wants.",
        "Compare scope in its challenge with the scopes of the token: the server wants one that {issuer} does not "
        "give, or looks for another than it says.",
    ),
}


def read(page: str) -> str:
    """What a page says, without its marks."""
    text = html.unescape(page.replace("<code>", "").replace("</code>", ""))
    return " ".join(text.split())


async def as_far_as_it_goes(session: Session, script: Visitor, stranger: Visitor, harbour: Harbour) -> tuple[Any, int]:
    """The person agrees as often as they are asked; the sign-in in the end, and how often that was."""
    path, often = f"/s/{session.id}", 0
    found = await rested(script, path)
    while found["state"] == "waiting":
        often += 1
        assert often <= ATTEMPTS
        await allowed(script, stranger, harbour, path)
        await until(session, lambda: session.sign_in.current.state in ("waiting", "failed"))  # type: ignore[union-attr]
        found = await rested(script, path)
    return found, often


def test_every_fault_of_the_server_is_one_that_the_page_names():
    assert CAUSES.keys() == set(FAULTS)


@pytest.mark.requirement("R5-53")
@pytest.mark.parametrize("fault", FAULTS)
async def test_the_page_names_the_cause_and_what_to_do(
    fault: str, app: Starlette, script: Visitor, stranger: Visitor, client: Visitor, harbour: Harbour
):
    harbour.set(fault=fault)
    path = await begun(script, harbour)
    found, often = await as_far_as_it_goes(session_of(app, path), script, stranger, harbour)
    step, code, sentence, fix = CAUSES[fault]
    hosts = {name: address.partition("://")[2] for name, address in harbour.issuers.items()}
    values = {**hosts, "server": harbour.resource, "issuer": harbour.issuer, "port": hosts["closed"].rpartition(":")[2]}
    sentence, fix = sentence.format(**values), fix.format(**values)
    failure = {**found["failure"], "fix": found["failure"]["fix"].replace("`", "")}
    assert failure == {"step": step, "code": code, "sentence": sentence, "fix": fix}
    assert often == {"expired code": 1, "endless 403": ATTEMPTS}.get(fault, 0)

    inbox = await script.json(f"{path}/inbox")
    assert inbox["open"] == [] and inbox["sign_in"]["failure"]["sentence"] == sentence
    steps = read((await client.get(f"{path}/sign-in")).text)
    card = read((await client.get(f"{path}/inbox")).text)
    for page in (steps, card):
        assert sentence in page and fix in page and "Try again" in page
    assert f'id="step-{step}" data-s="failed"> <details open>' in steps
    # What needs a client that somebody registered by hand asks for it there and then.
    assert ('id="card-client-wanted" open' in card) is (code in {"registration-refused", "wrong-redirect"})
    await script.post(f"{path}/close")
