"""Signing in by OpenID Connect, against a real provider in a process of its own: the honest way, and every way in which
an answer is not to be believed (S16). Each refusal says its own sentence, gives no cookie and is written down."""

import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.applications import Starlette

from app.team_oidc import Oidc
from app.team_settings import TeamSettings
from app.web.door.guard import Access, GuardedRoute
from app.web.team.app import public_routes
from app.web.team.house import House
from tests.drive import SERVERS
from tests.drive_http import started
from tests.drive_oauth import Harbour
from tests.team.conftest import Guest
from tests.web.asgi import Answer

pytestmark = pytest.mark.requirement("S16", "T07")
SECRET = "canary-client-secret-5b1f"


class Provider(Harbour):
    """The provider that runs; `allow` and `set` as for the other authorization servers."""

    def __init__(self, peer: Any) -> None:
        self._peer = peer
        self.name: str = self.set()["issuer"]


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with started([sys.executable, str(SERVERS / "openid.py")]) as peer:
        yield Provider(peer)


@pytest.fixture
def provider(running: Provider) -> Provider:
    running.set(now="anew")
    return running


@pytest.fixture
def wanted() -> dict[str, Any]:
    return {"allowed_domains": ("example.com",), "admins": ("Boss@example.com",)}


@pytest.fixture
def settings(
    settings: TeamSettings, provider: Provider, wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> TeamSettings:
    monkeypatch.setenv("OIDC_SECRET", SECRET)
    oidc = Oidc(issuer=provider.name, client_id="parley", client_secret_env="OIDC_SECRET", label="Example", **wanted)
    return settings.model_copy(update={"door": "oidc", "oidc": oidc})


async def begun(stranger: Guest) -> tuple[str, str]:
    """Where the browser is sent, and the cookie that it keeps."""
    answer = await stranger.get("/login/oidc")
    assert answer.status == 303, answer.text
    given = answer.header("set-cookie") or ""
    assert given.startswith("__Host-parley-oidc=")
    assert all(part in given for part in ("; Secure", "; HttpOnly", "; Path=/", "; SameSite=Lax", "; Max-Age=600"))
    return answer.header("location") or "", given.partition(";")[0]


async def returned(stranger: Guest, address: str, cookie: str) -> Answer:
    parts = urlsplit(address)
    assert (parts.netloc, parts.path) == ("parley.example", "/login/oidc/callback")
    # A browser comes back from another site.
    held = "; ".join(filter(None, (stranger.headers.get("cookie"), cookie)))
    come = {"cookie": held, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "document", "origin": None}  # fmt: skip
    return await stranger.send("GET", f"{parts.path}?{parts.query}", come)


async def signed_in(stranger: Guest, provider: Provider) -> Answer:
    address, cookie = await begun(stranger)
    return await returned(stranger, provider.allow(address), cookie)


def browser(stranger: Guest, answer: Answer) -> Guest:
    [cookie] = [one for one in answer.all("set-cookie") if one.startswith("__Host-parley=")]
    return Guest(stranger.app, {**stranger.headers, "cookie": cookie.partition(";")[0]})


def refused(answer: Answer, words: str) -> None:
    assert (answer.status, words in answer.text) == (401, True), answer.text
    assert not [one for one in answer.all("set-cookie") if one.startswith("__Host-parley=")]


@pytest.mark.requirement("S14")
async def test_somebody_signs_in_and_signs_in_again(stranger: Guest, provider: Provider, house: House):
    page = await stranger.get("/")
    assert (page.status, 'href="/login/oidc">Sign in with Example</a>' in page.text) == (401, True)
    assert (await stranger.form("/invite/x")).status == 404, "the other door is closed"
    address, cookie = await begun(stranger)
    asked = {key: value for key, [value] in parse_qs(urlsplit(address).query).items()}
    assert (asked["code_challenge_method"], asked["response_type"], asked["scope"]) == (
        "S256",
        "code",
        "openid profile email",
    )
    assert asked["redirect_uri"] == "https://parley.example/login/oidc/callback"
    assert not any(asked[one] in cookie for one in ("state", "nonce", "code_challenge"))
    answer = await returned(stranger, provider.allow(address), cookie)
    assert (answer.status, answer.header("location")) == (303, "/")
    assert "__Host-parley-oidc=;" in " ".join(answer.all("set-cookie"))
    grace = browser(stranger, answer)
    assert (await grace.json("/"))["me"]["name"] == "Grace Hopper"
    assert (await grace.json("/me"))["role"] == "user"
    again = browser(stranger, await signed_in(grace, provider))
    assert [(await one.get("/")).status for one in (grace, again)] == [401, 200], "a sign-in replaces the login"
    assert len(house.people.all()) == 1
    provider.set(user={"sub": "u-2", "name": "grace hopper", "email": "boss@example.com", "email_verified": True})
    boss = browser(stranger, await signed_in(stranger, provider))
    assert (await boss.json("/"))["me"] | {"id": ""} == {"id": "", "name": "grace hopper (2)", "role": "admin"}
    told = [(one["who"], one["what"]) for one in (await boss.json("/audit?act=signed+in"))["entries"]]
    assert told == [("grace hopper (2)", "by single sign-on"), *[("Grace Hopper", "by single sign-on")] * 2]
    first = next(one for one in house.people.all() if one.name == "Grace Hopper")
    assert (await boss.form(f"/people/{first.id}/off")).status == 303
    provider.set(now="anew")
    off = await signed_in(stranger, provider)
    assert (off.status, "switched you off" in off.text) == (403, True)


@pytest.mark.requirement("S01")
async def test_two_more_addresses_are_public_and_no_others(app: Starlette):
    public = {route.path for route in app.routes if isinstance(route, GuardedRoute) and route.access is Access.PUBLIC}
    assert public - {route.path for route in public_routes()} == {"/login/oidc", "/login/oidc/callback"}


async def test_nothing_of_the_provider_is_kept_or_shown(
    stranger: Guest, provider: Provider, house: House, settings: TeamSettings, caplog: pytest.LogCaptureFixture
):
    provider.set(claims={"x_canary": "canary-claim-77"})
    answer = await signed_in(stranger, provider)
    grace = browser(stranger, answer)
    pages = [answer.text, *[(await grace.get(path)).text for path in ("/", "/me")]]
    await house.audit.flush()
    kept = b"".join(path.read_bytes() for path in settings.data_dir.rglob("*") if path.is_file()).decode("latin-1")
    for secret in [*provider.secrets, "canary-claim-77"]:
        assert not any(secret in text for text in (*pages, caplog.text, kept)), secret[:20]


MARKS: list[tuple[dict[str, Any], str, str]] = [
    ({"callback": {"state": "x" * 48}}, "does not belong to the sign-in that this browser began", "a wrong state"),
    ({"callback": {"state": None}}, "does not belong to the sign-in that this browser began", "a wrong state"),
    ({"callback": {"iss": "https://evil.example"}}, "another issuer", "an answer that names another issuer"),
    ({"callback": {"iss": None}}, "another issuer", "an answer that names no issuer"),
    ({"callback": {"code": None}}, "has no code", "no code"),
    ({"callback": {"code": "invented"}}, "was used already, or is too old", "a code that was used or is too old"),
    ({"callback": {"error": "access_denied", "code": None}}, "(access_denied)", "refused: access_denied"),
    ({"claims": {"iss": "https://evil.example"}}, "another issuer", "an answer that is of another issuer"),
    ({"claims": {"aud": "somebody-else"}}, "made for another application", "a wrong aud"),
    ({"claims": {"aud": ["parley", "other"]}}, "made for another application", "a wrong azp"),
    ({"claims": {"azp": "somebody-else"}}, "made for another application", "a wrong azp"),
    ({"claims": {"nonce": "another"}}, "belongs to another sign-in", "a wrong nonce"),
    ({"claims": {"nonce": None}}, "belongs to another sign-in", "a wrong nonce"),
    ({"claims": {"exp": 1_000_000_000}}, "has expired already", "an expired ID token"),
    ({"claims": {"at_hash": "x"}}, "is not whole", "a wrong at_hash"),
    ({"claims": {"sub": ""}}, "does not say who you are", "no sub"),
    ({"key": "stranger"}, "not signed with a key", "a wrong signature"),
    ({"claims": {"email_verified": False}}, "not one of those that are let in", "an account that is not let in"),
    ({"claims": {"email": "x@evil.example"}}, "not one of those that are let in", "an account that is not let in"),
]


@pytest.mark.requirement("S11")
async def test_each_fault_has_its_sentence_and_gives_no_cookie(stranger: Guest, provider: Provider, house: House):
    for number, (fault, words, noted) in enumerate(MARKS):
        provider.set(now="anew", **fault)
        guest = Guest(stranger.app, {**stranger.headers, "x-forwarded-for": f"203.0.113.{number}"})
        refused(await signed_in(guest, provider), words)
        [entry] = await house.audit.search(act="was refused", most=1)
        assert (entry.who, entry.what, entry.refused) == ("somebody", noted, True), fault
    assert house.people.all() == []


async def test_an_answer_counts_once_and_in_its_own_browser(stranger: Guest, provider: Provider):
    provider.set(replays=True)  # the provider does not look; Parley does
    address, cookie = await begun(stranger)
    back = provider.allow(address)
    _, other = await begun(stranger)
    refused(await returned(stranger, back, other), "does not belong to the sign-in that this browser began")
    refused(await returned(stranger, back, ""), "did not begin a sign-in here")
    refused(await returned(stranger, back, cookie[:-4] + "AAAA"), "did not begin a sign-in here")
    assert (await returned(stranger, back, cookie)).status == 303
    refused(await returned(stranger, back, cookie), "used already: each works once")


async def test_whoever_fails_again_and_again_waits_and_the_provider_is_left_alone(stranger: Guest, provider: Provider):
    found = [
        (await returned(stranger, "https://parley.example/login/oidc/callback?code=x", "")).status for _ in range(11)
    ]
    assert found == [401] * 10 + [429]
    before = len(provider.saw())
    assert (await stranger.get("/login/oidc")).status == 429
    other = Guest(stranger.app, {**stranger.headers, "x-forwarded-for": "203.0.113.99"})
    assert (await signed_in(other, provider)).status == 303
    assert len(provider.saw()) > before


async def test_a_new_key_of_the_provider_is_found(stranger: Guest, provider: Provider, monkeypatch: pytest.MonkeyPatch):
    assert (await signed_in(stranger, provider)).status == 303
    provider.set(now="rotate")
    refused(await signed_in(stranger, provider), "not signed with a key")  # not asked for again within a minute
    monkeypatch.setattr("app.team_bounds.OIDC_KEYS_SECONDS", 0.0)
    assert (await signed_in(stranger, provider)).status == 303


@pytest.mark.requirement("S24")
@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"issuer": "https://evil.example"}, "another issuer"),
        ({"token_endpoint": "http://127.0.0.1:9/token"}, "does not answer"),
        ({"jwks_uri": "http://10.0.0.1/keys"}, "does not answer"),
        ({"jwks_uri": "http://169.254.169.254/keys"}, "does not answer"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "is not set up right"),
        ({"jwks_uri": None}, "is not set up right"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
    ],
)
async def test_what_the_provider_says_of_itself_is_not_believed(
    stranger: Guest, provider: Provider, metadata: dict[str, Any], words: str
):
    provider.set(metadata=metadata)
    answer = await stranger.get("/login/oidc")
    if answer.status == 303:
        answer = await returned(stranger, provider.allow(answer.header("location") or ""), _cookie(answer))
    assert (answer.status in (401, 503), words in answer.text) == (True, True), answer.text


def _cookie(answer: Answer) -> str:
    return (answer.header("set-cookie") or "").partition(";")[0]


@pytest.mark.parametrize("method", ["client_secret_post", "none"])
async def test_the_client_proves_itself_as_the_provider_wants(stranger: Guest, provider: Provider, method: str):
    provider.set(method=method)
    assert (await signed_in(stranger, provider)).status == (303 if method != "none" else 401)
    form = provider.saw("/token")[-1]["form"]
    assert ("client_secret" in form, "code_verifier" in form) == (True, True)


class TestRolesOfTheProvider:
    @pytest.fixture
    def wanted(self) -> dict[str, Any]:
        return {"role_claim": "groups", "roles": {"ops": "admin", "staff": "user", "guests": "viewer"}}

    async def test_a_claim_decides_each_time(self, stranger: Guest, provider: Provider, house: House):
        found = []
        for groups in (["guests", "staff"], "ops", ["staff", 7], []):
            provider.set(claims={"groups": groups})
            answer = await signed_in(stranger, provider)
            found.append(house.people.all()[0].role if answer.status == 303 else answer.status)
        assert found == ["user", "admin", "user", 401]
        assert len(house.people.all()) == 1
