"""Tokens: by a code, by a refresh token, as a program; and how one is ended."""

from __future__ import annotations

import base64
import json
import secrets
import time
from typing import Any
from urllib.parse import quote

from app import bounds
from app.core.grants import Client, Token
from app.core.sign_in import Check, Step
from app.protocol.oauth.asking import Asker, Reply
from app.protocol.oauth.known import Known
from app.protocol.oauth.words import StepFailed, said

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_CODES = {"invalid_client": "client-refused", "unauthorized_client": "client-refused", "invalid_scope": "scope-refused"}


async def by_code(step: Step, asker: Asker, known: Known, resource: str, now: float) -> None:
    """The code becomes a token (R5-57, R5-58)."""
    client = known.client
    if client is None or not known.code:
        raise StepFailed("no-code")
    asked = {
        "grant_type": "authorization_code",
        "code": known.code,
        "redirect_uri": client.redirect_uri,
        "code_verifier": known.verifier,
        "resource": resource,
    }
    reply = await _post(step, asker, known, client, asked)
    refused = "wrong-redirect" if "redirect" in reply.text("error_description").lower() else "code-refused"
    known.token = _token(step, asker, known, reply, resource, known.requested, now, {"invalid_grant": refused})


async def as_program(
    step: Step, asker: Asker, known: Known, resource: str, scopes: tuple[str, ...], key: str, now: float
) -> None:
    """A token for a client that is nobody's browser."""
    client = known.client
    if client is None:
        raise StepFailed("no-registration", issuer=asker.shown(known.issuer), redirect="none")
    asked = {"grant_type": "client_credentials", "resource": resource}
    if scopes:
        asked["scope"] = " ".join(scopes)
    known.requested = scopes
    reply = await _post(step, asker, known, client, asked, key)
    known.token = _token(step, asker, known, reply, resource, scopes, now, {})


async def refresh(step: Step, asker: Asker, known: Known, now: float) -> None:
    """A new token for an old one. A server that gives no new refresh token lets the old one go on."""
    client, token = known.client, known.token
    if client is None or token is None or not token.refresh:
        raise StepFailed("refresh-refused", issuer=asker.shown(known.issuer), said=" (there is no refresh token)")
    _of_this_issuer(asker, known, token.issuer)
    asked = {"grant_type": "refresh_token", "refresh_token": token.refresh, "resource": token.resource}
    reply = await _post(step, asker, known, client, asked)
    known.token = _token(
        step,
        asker,
        known,
        reply,
        token.resource,
        token.scopes,
        now,
        {"invalid_grant": "refresh-refused"},
        token.refresh,
    )


async def revoke(step: Step, asker: Asker, known: Known) -> None:
    """End the refresh token, which ends what came of it, else the access token (RFC 7009)."""
    client, token, issuer = known.client, known.token, asker.shown(known.issuer)
    url = known.endpoint("revocation_endpoint")
    if not url or client is None or token is None:
        raise StepFailed("no-revocation", issuer=issuer)
    _of_this_issuer(asker, known, client.issuer, token.issuer)
    for value, kind in ((token.refresh, "refresh_token"), (token.access, "access_token")):
        if not value:
            continue
        body, headers = _proof(known, client, {"token": value, "token_type_hint": kind}, url, "")
        asker.hide(*(proof.rpartition(" ")[2] for _, proof in headers))
        reply = await asker.post_form(step, asker.checked(url, "`revocation_endpoint`"), body, headers)
        step.checks.append(Check(f"The {kind.replace('_', ' ')} is revoked", reply.ok, str(reply.status)))
        if not reply.ok and reply.text("error") != "unsupported_token_type":
            words = said(reply.text("error"), reply.text("error_description")) or f" ({reply.status})"
            raise StepFailed("not-revoked", issuer=issuer, said=words)


# ------------------------------------------------------------------------------------------------------ the endpoint


def _of_this_issuer(asker: Asker, known: Known, *issuers: str) -> None:
    """What one issuer gave is shown to no other one, whatever a server names meanwhile (R5-64, S20)."""
    if any(issuer != known.issuer for issuer in issuers):
        raise StepFailed("client-refused", issuer=asker.shown(known.issuer), said=" (it is one of another issuer)")


async def _post(step: Step, asker: Asker, known: Known, client: Client, asked: dict[str, str], key: str = "") -> Reply:
    """Ask the token endpoint, as the client proves itself there. A client of another issuer is never shown (R5-64)."""
    url = asker.checked(known.endpoint("token_endpoint"), "`token_endpoint`")
    _of_this_issuer(asker, known, client.issuer)
    body, headers = _proof(known, client, asked, url, key)
    asker.hide(*(proof.rpartition(" ")[2] for _, proof in headers))  # a server may quote it
    asker.plain(client.id, client.redirect_uri, known.issuer, asked.get("resource", ""), *known.requested)
    step.checks.append(Check("Client authentication", True, client.method))
    return await asker.post_form(step, url, body, headers)


def _proof(
    known: Known, client: Client, asked: dict[str, str], url: str, key: str
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The same request with what proves who asks."""
    if client.method == "client_secret_basic":
        # RFC 6749 §2.3.1: both are encoded as in a form before they are joined.
        pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
        return asked, [("authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")]
    if client.method == "client_secret_post":
        return {**asked, "client_id": client.id, "client_secret": client.secret}, []
    if client.method == "private_key_jwt" and key:
        proof = {"client_assertion_type": _ASSERTION, "client_assertion": assertion(client.id, known.issuer, key)}
        return {**asked, "client_id": client.id, **proof}, []
    return {**asked, "client_id": client.id}, []


def _token(
    step: Step,
    asker: Asker,
    known: Known,
    reply: Reply,
    resource: str,
    scopes: tuple[str, ...],
    now: float,
    codes: dict[str, str],
    refresh_token: str = "",
) -> Token:
    """The token in an answer of the token endpoint."""
    issuer = asker.shown(known.issuer)
    if not reply.ok:
        error = reply.text("error")
        words = said(error, reply.text("error_description")) or f" ({reply.status})"
        code = (codes | _CODES).get(error, "token-refused")
        redirect = "" if known.client is None else known.client.redirect_uri
        raise StepFailed(code, issuer=issuer, said=words, redirect=redirect)
    access, kind = reply.text("access_token"), reply.text("token_type")
    why = ""
    if not access:
        why = "`access_token` is missing"
    elif len(access) > bounds.OAUTH_TOKEN or any(not 33 <= ord(char) <= 126 for char in access):
        why = "`access_token` cannot stand in a header"
    elif kind and kind.lower() != "bearer":
        why = f"`token_type` is {kind[:40]}"
    step.checks.append(Check("A bearer token", not why, why or "there"))
    if why:
        raise StepFailed("bad-token", issuer=issuer, why=why)
    if not kind:
        step.checks.append(Check("token_type", None, "missing; taken as Bearer"))
    given = tuple(reply.text("scope").split())[: bounds.OAUTH_SCOPES]
    less = [scope for scope in scopes if given and scope not in given and scope != "offline_access"]
    if less:
        step.checks.append(Check("All scopes were given", None, f"without {', '.join(less)}"[:300]))
    seconds = _seconds(reply.value.get("expires_in"))
    step.checks.append(
        Check("Expires", None if seconds is None else True, "not said" if seconds is None else f"in {seconds:g} s")
    )
    renewed = reply.text("refresh_token")
    step.checks.append(Check("Refresh token", True if renewed else None, "there" if renewed else "none"))
    refresh_token = renewed or refresh_token
    return Token(
        access,
        known.issuer,
        resource,
        given or scopes,
        refresh_token if len(refresh_token) <= bounds.OAUTH_TOKEN else "",
        now,
        None if seconds is None else now + seconds,
    )


def _seconds(value: Any) -> float | None:
    """How long a token lives; some servers say it as a text."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 10**9 else None


# ------------------------------------------------------------------------------------------------- a key as the proof


def assertion(client_id: str, audience: str, pem: str) -> str:
    """A JWT that proves to have the key (RFC 7523), good for one minute."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as fault:
        raise StepFailed("bad-key", why=f"it is no key in PEM ({type(fault).__name__})") from None
    now = int(time.time())
    claims = {"iss": client_id, "sub": client_id, "aud": audience, "iat": now, "exp": now + 60,
              "jti": secrets.token_urlsafe(16)}  # fmt: skip
    if isinstance(key, rsa.RSAPrivateKey):
        text = f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{_part(claims)}"
        signed = key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    elif isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1":
        text = f"{_part({'alg': 'ES256', 'typ': 'JWT'})}.{_part(claims)}"
        r, s = utils.decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        signed = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    else:
        raise StepFailed("bad-key", why="it is neither RSA nor P-256")
    return f"{text}.{_encoded(signed)}"


def _part(value: dict[str, Any]) -> str:
    return _encoded(json.dumps(value, separators=(",", ":")).encode())


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
