"""The parts of a sign-in that need no server: scopes, addresses, answers, claims, keys, and where one may be sent."""

import base64
import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from app import bounds
from app.core.auth import AnyAuth, Auth, auth_json, secrets_of
from app.core.challenges import Challenge
from app.core.errors import Invalid
from app.core.events import EventLog
from app.core.grants import Client, Token, claims_of, server_key
from app.core.log import MessageLog
from app.core.sign_in import ORDER, Step, new_sign_in
from app.core.targets import HttpTarget
from app.egress import Egress
from app.policy import Policy, reach_of
from app.protocol.oauth import answers, sdk, tokens
from app.protocol.oauth.asking import Asker
from app.protocol.oauth.authorization import check_state, scopes_for
from app.protocol.oauth.known import Known
from app.protocol.oauth.tokens import assertion
from app.protocol.oauth.words import _WORDS, StepFailed
from app.secrecy import MASK
from app.settings import Limits, local
from app.store.kept import without_secrets

_auth: TypeAdapter[AnyAuth] = TypeAdapter(Auth)


def asker(url: str = "https://harbour.example/mcp", policy: Policy | None = None, **target: Any) -> Asker:
    limits = Limits()
    log = MessageLog(limits, EventLog(limits.events), lambda: 0.0, lambda: 0.0)
    return Asker(HttpTarget(transport="http", url=url, **target), Egress(policy or Policy()), log)


def known(**more: Any) -> Known:
    challenge = more.pop("challenge", None)
    return Known(challenge=None if challenge is None else Challenge("Bearer", (("scope", challenge),)), **more)


@pytest.mark.requirement("R5-51", "R5-52")
def test_metadata_is_looked_for_in_the_order_of_the_specification():
    named, server = "https://h.example/meta", "https://h.example/a/mcp"
    well = "https://h.example/.well-known/oauth-protected-resource"
    assert sdk.resource_metadata_addresses(named, server) == [named, f"{well}/a/mcp", well]
    assert sdk.resource_metadata_addresses("", "https://h.example") == [well]
    base = "https://login.example"
    assert sdk.server_metadata_addresses(f"{base}/tenant", server) == [
        f"{base}/.well-known/oauth-authorization-server/tenant",
        f"{base}/.well-known/openid-configuration/tenant",
        f"{base}/tenant/.well-known/openid-configuration",
    ]
    assert sdk.server_metadata_addresses(base, server) == [
        f"{base}/.well-known/oauth-authorization-server",
        f"{base}/.well-known/openid-configuration",
    ]


@pytest.mark.requirement("R5-53", "R5-58")
@pytest.mark.parametrize(
    ("resource", "covers"),
    [
        ("https://h.example/a/mcp", True),
        ("https://h.example/a", True),
        ("https://h.example", True),
        ("https://h.example/a/mcp2", False),
        ("https://h.example/b", False),
        ("http://h.example/a/mcp", False),
        ("https://evil.example/a/mcp", False),
        ("https://h.example:444/a/mcp", False),
    ],
)
def test_a_resource_is_the_server_or_what_it_is_part_of(resource: str, covers: bool):
    assert sdk.covers(resource, sdk.canonical("https://H.example/a/mcp/")) is covers


@pytest.mark.requirement("R5-59", "R5-60", "R5-65", "R5-78")
def test_which_scopes_are_asked_for():
    listed = {"resource_metadata": {"scopes_supported": ["a", "b"]}}
    offline = {"server_metadata": {"scopes_supported": ["a", "offline_access"]}}
    assert scopes_for(known(challenge="x y", **listed), ()) == ("x", "y"), "the challenge counts, whatever is listed"
    assert scopes_for(known(**listed), ()) == ("a", "b")
    assert scopes_for(known(), ()) == ()
    assert scopes_for(known(**offline), ()) == (), "what an issuer lists is not what the server needs"
    assert scopes_for(known(challenge="x", **listed), ("mine",)) == ("mine",)
    assert scopes_for(known(challenge="c a", earlier_scopes=("a", "b")), ()) == ("a", "b", "c")
    assert scopes_for(known(challenge="x", **offline), ()) == ("x", "offline_access")
    assert scopes_for(known(resource_metadata={"scopes_supported": "no list"}), ()) == ()
    many = " ".join(f"s{at}" for at in range(1_000))
    assert len(scopes_for(known(challenge=many), ())) == bounds.OAUTH_SCOPES


@pytest.mark.requirement("S19")
def test_an_answer_is_paired_by_its_state_alone():
    waiting = known(state="the-right-one")
    check_state(waiting, "http://127.0.0.1/oauth/callback?code=1&state=the-right-one")
    for wrong in (
        "", "no address", "http://x/?code=1", "http://x/?state=", "http://x/?state=the-right-on",
        "http://x/?state=the-right-one&state=the-right-one", "http://[::x/?state=the-right-one",
        "http://x/#state=the-right-one", "http://x/?" + "&".join(["state=the-right-one"] + ["a=b"] * 100),
    ):  # fmt: skip
        with pytest.raises(Invalid):
            check_state(waiting, wrong)
    with pytest.raises(Invalid):
        check_state(known(), "http://x/?state=")


@pytest.mark.requirement("S17", "R5-62", "R5-75")
def test_which_addresses_of_metadata_are_opened():
    one = asker("http://192.168.0.7/mcp")
    for fine in ("https://login.example/a?b=c", "http://127.0.0.1:9/x", "http://localhost/x", "http://[::1]:8/x"):
        assert one.checked(fine, "x") == fine
    assert one.checked("http://192.168.0.7/meta", "x", of_server=True)
    for wrong in (
        "javascript:alert(1)", " https://x.example", "https://x.example\n", "http://x.example/", "ftp://x.example",
        "https://u@x.example", "https://x.example/#f", "https:x.example", "//x.example", "", "https://",
        "http://192.168.0.7/meta", "http://192.168.0.8/meta",
    ):  # fmt: skip
        with pytest.raises(StepFailed) as failed:
            one.checked(wrong, "`token_endpoint`")
        assert failed.value.code == "bad-address" and "`token_endpoint`" in failed.value.sentence
    with pytest.raises(StepFailed):
        one.checked("http://192.168.0.8/meta", "x", of_server=True)


@pytest.mark.requirement("S24", "R5-70")
def test_a_server_sends_parley_no_further_inside_than_it_is_itself():
    inside = {
        "machine": ["127.0.0.1", "::1"],
        "network": ["10.1.2.3", "192.168.0.1", "fd12::1"],
        "internet": ["1.1.1.1"],
    }
    order = list(inside)
    for reach in order:
        policy = Policy("local", set(), reach)  # type: ignore[arg-type]
        for place, addresses in inside.items():
            for address in addresses:
                refused = policy.refusal("x", address, 443) is not None
                assert refused is (order.index(place) < order.index(reach)), (reach, address)
        assert policy.refusal("x", "169.254.169.254", 80) is not None
        hidden = policy.refusal("x", "::ffff:127.0.0.1", 80)
        assert (hidden is None) is (reach == "machine"), "an address inside of another one is found"
    assert reach_of(["127.0.0.1", "::1"]) == "machine"
    assert reach_of(["10.0.0.1"]) == reach_of(["127.0.0.1", "10.0.0.1"]) == "network"
    assert reach_of(["::ffff:10.0.0.1"]) == "network"
    assert reach_of(["10.0.0.1", "1.1.1.1"]) == "internet", "one address outside is outside"


@pytest.mark.requirement("S24", "R5-70")
async def test_a_server_on_the_internet_names_no_machine_of_ours():
    one = asker("https://harbour.example/mcp")
    one._reach = "internet"
    for inward in ("http://127.0.0.1:1/meta", "https://10.0.0.1/meta", "http://localhost:1/meta"):
        with pytest.raises(StepFailed) as failed:
            await one.get(Step("resource-metadata"), inward)
        assert failed.value.code == "refused-by-policy"
        with pytest.raises(StepFailed) as failed:
            await one.guarded(inward, "`authorization_endpoint`")
        assert failed.value.code == "bad-address"
    own = asker("http://127.0.0.1:7/mcp", Policy("local", {7777}))
    with pytest.raises(StepFailed, match="this Parley itself"):
        await own.guarded("http://127.0.0.1:7777/s", "`authorization_endpoint`")


def _jwt(head: Any, body: Any) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=").decode() for one in (head, body)]
    return ".".join([*parts, "signature"])


def test_the_claims_of_a_jwt_are_read_and_nothing_else_is_taken_for_one():
    assert claims_of(_jwt({"alg": "none"}, {"sub": "ada", "exp": 7})) == {"sub": "ada", "exp": 7}
    wide = _jwt({"alg": "x"}, {"a": "b" * bounds.OAUTH_TOKEN})
    for none in ("opaque", "a.b.c", "..", _jwt({}, [1]), _jwt([], {}), "é.é.é", wide, "a.b", "[" * 2000 + ".."):
        assert claims_of(none) is None


def test_a_token_is_renewed_a_while_before_it_ends():
    def ends_soon(lives: float | None, now: float) -> bool:
        return Token("a", "i", "r", obtained_at=0.0, expires_at=lives).ends_soon(now)

    assert not ends_soon(None, 1e9)
    assert not ends_soon(3600, 3569) and ends_soon(3600, 3571) and ends_soon(3600, 9999)
    assert not ends_soon(20, 15) and ends_soon(20, 17), "one that lives shortly is not renewed before every request"


def test_what_a_server_is_kept_under():
    assert server_key("HTTPS://Host.Example/Mcp/#x") == server_key("https://host.example/Mcp")
    assert server_key("https://h.example/a?x=1") != server_key("https://h.example/a?x=2")
    assert server_key("https://h.example:8443/a") != server_key("https://h.example/a")


@pytest.mark.requirement("S21")
def test_secrets_of_a_target_are_neither_shown_nor_written_nor_in_its_repr():
    cases: list[dict[str, Any]] = [
        {"kind": "bearer", "token": "can4ry-token"},
        {"kind": "oauth", "client_id": "me", "client_secret": "can4ry-secret", "scopes": ["a"]},
        {"kind": "client-credentials", "client_id": "me", "client_secret": "can4ry-secret"},
        {"kind": "client-credentials", "client_id": "me", "private_key": "can4ry-key"},
    ]
    for given in cases:
        target = HttpTarget(transport="http", url="https://x.example", auth=_auth.validate_python(given))
        assert target.secret_values and all("can4ry" in value for value in target.secret_values)
        plain, missing = without_secrets(target)
        assert "can4ry" not in plain.model_dump_json() + repr(target) + repr(target.auth) + json.dumps(
            auth_json(target.auth)
        )
        HttpTarget.model_validate_json(plain.model_dump_json())
        assert bool(missing) is (given["kind"] != "oauth")
    assert secrets_of(None) == () and auth_json(None) is None
    assert "auth" not in HttpTarget(transport="http", url="https://x.example").model_dump()


def test_every_sentence_can_be_said():
    values = dict.fromkeys(("server", "status", "issuer", "found", "url", "why", "name", "said"), "x")
    values |= dict.fromkeys(("redirect", "count", "resource", "host", "limit"), "x")
    for code in _WORDS:
        failed = StepFailed(code, **values)
        assert failed.sentence.endswith(".") and failed.fix.endswith(".") and "{" not in failed.sentence + failed.fix
        assert "{" not in StepFailed(code, **{**values, "issuer": "{curly}"}).fix.replace("{curly}", "")


def test_the_steps_stand_in_their_order():
    one = new_sign_in("https://x.example", "asked")
    assert one.step("revocation").id == "revocation" and one.step("refresh").id == "refresh"
    assert [step.id for step in one.steps] == list(ORDER)


def test_a_key_that_signs_nothing_is_named():
    for wrong in ("nonsense", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"):
        with pytest.raises(StepFailed) as failed:
            assertion("me", "https://login.example", wrong)
        assert failed.value.code == "bad-key" and wrong not in failed.value.sentence


@pytest.mark.requirement("R5-55")
def test_addresses_of_the_settings_are_read_strictly():
    assert local(public_url="https://parley.example.com/").public_url == "https://parley.example.com"
    assert local(client_metadata_url="https://x.example/parley.json").client_metadata_url
    for name, wrong in (
        ("public_url", "parley.example.com"), ("public_url", "https://"), ("public_url", "https://x.example/?a"),
        ("public_url", "javascript://x"), ("client_metadata_url", "http://x.example/p.json"),
        ("client_metadata_url", "https://x.example"), ("client_metadata_url", "https://x.example/#p"),
    ):  # fmt: skip
        with pytest.raises(ValidationError, match="must be an address like"):
            local(**{name: wrong})


def test_what_is_learned_is_masked_wherever_it_stands():
    one = asker()
    one.hide("a-long-secret", "short")
    assert one.shown("https://x.example/a-long-secret?token=7") == f"https://x.example/{MASK}?token={MASK}"
    assert one.shown("https://x.example/short") == "https://x.example/short", "too short to be told from a word"


CANARY = "can4ry-9f8e7d6c5b4a39281706"
PLAIN_CANARY = "moonbeam-raspberry-lantern"


@pytest.mark.requirement("S21")
@pytest.mark.parametrize("plain", [answers.TOKENS, answers.REGISTRATION])
@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": CANARY, "token_type": "Bearer", "scope": f"tide:read {CANARY}"},
        {"sesame": CANARY},
        {"data": {"tokens": [{"value": CANARY}, [CANARY]]}},
        {CANARY: True},
        {"token_type": CANARY},
        {"expires_in": CANARY},
        {"scope": CANARY},
        {"scope": ["tide:read", CANARY]},
        {"error": CANARY},
        {"error": "invalid_grant", "error_description": f'not {CANARY}, nor ("{CANARY}")'},
        {"error_uri": f"https://x.example/?why={CANARY}"},
        {"client_secret": CANARY, "client_id": "parley-7", "registration_access_token": CANARY},
        {"client_id": CANARY, "client_secret": CANARY},
        {"registration_client_uri": f"https://x.example/{CANARY}"},
        {"redirect_uris": [CANARY, {"x": CANARY}], "grant_types": {"a": CANARY}},
        {"gift": PLAIN_CANARY, "scope": PLAIN_CANARY, "error_description": f"take {PLAIN_CANARY}"},
        [CANARY, {"a": [PLAIN_CANARY]}],
        CANARY,
    ],
)
def test_s21_whatever_an_endpoint_answers_no_credential_in_it_is_shown(answer: Any, plain: dict[str, answers.Plain]):
    one = asker()
    one.plain("https://login.example", "tide:read")
    one._learn(answer, plain)
    given = answer.get("scope", "") if isinstance(answer, dict) else ""
    shown = one._disclosed(answer, plain) + " ".join(one.scopes(str(given).split()))
    assert CANARY not in shown and PLAIN_CANARY not in shown and MASK in shown


def test_what_an_endpoint_answers_that_is_no_credential_can_be_read():
    one = asker()
    one.plain(
        "http://127.0.0.1:7077/oauth/callback",
        "client-0a1b2c3d4e5f60718293",
        "https://login.example/tenant-00112233445566778899",
    )
    answer = {
        "token_type": "Bearer",
        "expires_in": 3600,
        "scope": "tide:read https://www.example.com/auth/userinfo.email DeviceManagementManagedDevices.ReadWrite.All",
        "error": "invalid_grant",
        "error_description": "The client client-0a1b2c3d4e5f60718293 is not allowed to do this.",
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "iss": "https://login.example/tenant-00112233445566778899",
        "active": True,
    }
    one._learn(answer, answers.TOKENS)
    assert json.loads(one._disclosed(answer, answers.TOKENS)) == answer and one.secrets == set()
    registered = {"client_id": "0f1e2d3c4b5a69788796", "grant_types": ["authorization_code", "refresh_token"],
                  "client_id_issued_at": 1799999999, "redirect_uris": ["http://127.0.0.1:7077/oauth/callback"],
                  "client_name": "Parley", "token_endpoint_auth_method": "client_secret_basic"}  # fmt: skip
    one._learn(registered, answers.REGISTRATION)
    assert json.loads(one._disclosed(registered, answers.REGISTRATION)) == registered
    hidden = {"team": {"name": "Acme Corporation"}, "user": "ada-lovelace"}
    one._learn(hidden, answers.TOKENS)
    assert json.loads(one._disclosed(hidden, answers.TOKENS)) == {"team": {"name": MASK}, "user": MASK}
    assert one.secrets == set(), "a name is hidden where it stands, and not wherever it occurs"
    assert answers.unread(b"access_token=x", "application/x-www-form-urlencoded").startswith("14 bytes of application/")


def test_an_answer_full_of_tokens_teaches_no_more_than_can_be_looked_for():
    one = asker()
    many = {f"t{at}": f"can4ry-{at:020}" for at in range(5_000)} | {"scope": f"can4ry-{4_999:020}"}
    one._learn(many, answers.TOKENS)
    assert len(one.secrets) <= bounds.OAUTH_LEARNED and f"can4ry-{4_999:020}" in one.secrets, "what is repeated first"
    assert "can4ry" not in one._disclosed(many, answers.TOKENS)


@pytest.mark.anyio
@pytest.mark.requirement("S20", "R5-64")
@pytest.mark.parametrize(("client_of", "token_of"), [("b", "a"), ("a", "b"), ("a", "a")])
async def test_s20_what_one_issuer_gave_is_neither_renewed_nor_revoked_at_another(client_of: str, token_of: str):
    endpoints = {"token_endpoint": "https://b.example/token", "revocation_endpoint": "https://b.example/revoke"}
    found = known(issuer="https://b.example", server_metadata=endpoints)
    found.client = Client("parley", f"https://{client_of}.example", "dynamic", "can4ry-secret", "client_secret_post")
    found.token = Token(
        "can4ry-access", f"https://{token_of}.example", "https://x.example/mcp", refresh="can4ry-refresh"
    )
    ask = asker()
    for step, take in (
        (Step("refresh"), lambda step: tokens.refresh(step, ask, found, 0.0)),
        (Step("revocation"), lambda step: tokens.revoke(step, ask, found)),
    ):
        with pytest.raises(StepFailed, match="another issuer"):
            await take(step)
        assert step.trips == [], "nobody was asked"


def test_a_resource_that_is_no_address_covers_nothing():
    assert not sdk.covers("http://[", "https://harbour.example/mcp")
