"""Challenges of `WWW-Authenticate`: what servers write, and what nobody should."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import bounds
from app.core.challenges import challenges
from app.secrecy import MASK

pytestmark = pytest.mark.requirement("U-S7")

METADATA = "https://mcp.kontor.example/.well-known/oauth-protected-resource"
CASES: list[tuple[str, list[tuple[str, dict[str, str]]]]] = [
    ("Bearer", [("Bearer", {})]),
    ('Bearer realm="kontor"', [("Bearer", {"realm": "kontor"})]),
    (
        f'Bearer resource_metadata="{METADATA}", scope="crm.read crm.write", error="invalid_token", '
        'error_description="token \\"expired\\", get another"',
        [
            (
                "Bearer",
                {
                    "resource_metadata": METADATA,
                    "scope": "crm.read crm.write",
                    "error": "invalid_token",
                    "error_description": 'token "expired", get another',
                },
            )
        ],
    ),
    ("bearer ERROR = invalid_token , Scope=a", [("bearer", {"error": "invalid_token", "scope": "a"})]),
    (
        'Digest realm="x", qop="auth, auth-int", Basic realm="y", charset="UTF-8"',
        [("Digest", {"realm": "x", "qop": "auth, auth-int"}), ("Basic", {"realm": "y", "charset": "UTF-8"})],
    ),
    ("Negotiate, Bearer", [("Negotiate", {}), ("Bearer", {})]),
    ("NTLM TlRMTVNTUAACAA==, Basic realm=x", [("NTLM", {}), ("Basic", {"realm": "x"})]),
    ("Negotiate oYG2MIGzoAMKAQ==", [("Negotiate", {})]),
    (',, Bearer ,, realm="a",', [("Bearer", {"realm": "a"})]),
    ('Bearer realm="never closed', [("Bearer", {"realm": "never closed"})]),
    ('Bearer realm="ends in a backslash\\', [("Bearer", {"realm": "ends in a backslash\\"})]),
    ("Bearer realm=", [("Bearer", {})]),
    ("", []),
    ("=, ;; =", []),
]


@pytest.mark.parametrize(("header", "expected"), CASES)
def test_a_header_is_read_as_its_challenges(header: str, expected: list[tuple[str, dict[str, str]]]):
    assert [(one.scheme, dict(one.parameters)) for one in challenges([header])] == expected


def test_several_headers_are_one_list():
    found = challenges(['Bearer realm="a"', "Basic", 'Custom x="1"'])
    assert [one.scheme for one in found] == ["Bearer", "Basic", "Custom"]
    assert found[0].is_bearer and not found[1].is_bearer and found[0].get("realm") == "a" and found[0].get("no") == ""


def test_a_token_that_the_server_quotes_is_masked():
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl"
    (found,) = challenges([f'Bearer error="invalid_token", error_description="the token {token} has expired"'])
    assert token not in repr(found) and "has expired" in found.get("error_description")


def test_no_header_is_too_long_too_many_or_too_slow():
    assert len(challenges(["a," * 100_000])) == bounds.CHALLENGES
    (found,) = challenges(["Bearer " + ",".join(f"p{n}=1" for n in range(10_000))])
    assert len(found.parameters) == bounds.CHALLENGE_PARAMETERS
    for worst in ('"' * 100_000, "Bearer a=" + "\\" * 100_000, "Bearer " + "=" * 100_000, " " * 100_000, "a " * 50_000):
        assert len(challenges([worst] * 100)) <= bounds.CHALLENGES


@given(st.text(max_size=300))
def test_any_text_is_read(text: str):
    for one in challenges([text]):
        assert one.scheme


@pytest.mark.requirement("R5-59")
def test_whoever_acts_on_a_challenge_gets_its_scopes_as_they_are():
    header = 'Bearer scope="token:read secrets:write", resource_metadata="https://x.example/m?key=abcdefgh"'
    (shown,), (told,) = challenges([header]), challenges([header], to_act_on=True)
    assert told.get("scope") == "token:read secrets:write" and told.get("resource_metadata").endswith("key=abcdefgh")
    assert shown.get("resource_metadata").endswith(MASK)
