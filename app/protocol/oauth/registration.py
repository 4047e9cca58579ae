"""Who Parley is to an authorization server: known there already, by a document, or registered now (R5-54)."""

from __future__ import annotations

from typing import cast

from app import bounds
from app.core import links
from app.core.auth import ClientCredentials, OAuth
from app.core.grants import METHODS, Client, Method
from app.core.sign_in import Check, Step
from app.protocol.oauth import answers, sdk
from app.protocol.oauth.asking import Asker
from app.protocol.oauth.known import Known
from app.protocol.oauth.words import StepFailed, said

_REDIRECT_ERRORS = frozenset({"invalid_redirect_uri", "redirect_uri_mismatch"})


async def registration(
    step: Step,
    asker: Asker,
    known: Known,
    auth: OAuth | ClientCredentials,
    redirect_uri: str,
    document: str,
    scopes: tuple[str, ...],
) -> None:
    """A client for this issuer. One of another issuer is never used here (R5-64)."""
    asker.hide(auth.client_secret)
    if auth.client_id:
        method = _method(known, auth)
        step.checks.append(Check("Pre-registered client id", True, auth.client_id))
        step.checks.append(Check("Redirect address to register there", None, redirect_uri))
        known.client = Client(auth.client_id, known.issuer, "pre-registered", auth.client_secret, method, redirect_uri)
    elif (client := known.client) is not None and client.issuer == known.issuer and client.redirect_uri == redirect_uri:
        step.checks.append(Check("Registered with this issuer before", True, client.id))
    elif _document_serves(known, document):
        step.checks.append(Check("Client id metadata document", True, document))
        known.client = Client(document, known.issuer, "metadata-document", redirect_uri=redirect_uri)
    elif url := known.endpoint("registration_endpoint"):
        known.client = None
        known.client = await _registered(step, asker, known, url, redirect_uri, scopes)
    else:
        known.client = None
        step.checks.append(Check("registration_endpoint", False, "it is missing"))
        raise StepFailed("no-registration", issuer=asker.shown(known.issuer), redirect=redirect_uri)
    if known.client is not None:
        step.checks.append(Check("At the token endpoint", True, known.client.method))


def _document_serves(known: Known, document: str) -> bool:
    """Whether there is a document that says who Parley is, and the authorization server reads one (R5-55)."""
    reads = known.server_metadata.get("client_id_metadata_document_supported") is True
    return reads and sdk.is_document_address(document)


def _method(known: Known, auth: OAuth | ClientCredentials) -> Method:
    """How a client that somebody registered proves who it is."""
    if isinstance(auth, ClientCredentials) and auth.private_key:
        return "private_key_jwt"
    if not auth.client_secret:
        return "none"
    offered = known.listed("token_endpoint_auth_methods_supported")
    only_post = offered is not None and "client_secret_basic" not in offered and "client_secret_post" in offered
    return "client_secret_post" if only_post else "client_secret_basic"


async def _registered(
    step: Step, asker: Asker, known: Known, url: str, redirect_uri: str, scopes: tuple[str, ...]
) -> Client:
    """Dynamic registration (RFC 7591). What the server changes of what was asked for is what counts."""
    link = links.read(redirect_uri)
    offered = known.listed("token_endpoint_auth_methods_supported") or ("client_secret_basic",)
    wanted = next((one for one in METHODS[:3] if one in offered), "none")
    body = sdk.registration_body(redirect_uri, scopes, wanted, native=link is not None and link.loopback)
    step.checks.append(Check("application_type", True, body["application_type"]))
    asker.plain(redirect_uri, *scopes)
    where = asker.checked(url, "`registration_endpoint`")
    reply = await asker.post_json(step, where, body, plain=answers.REGISTRATION)
    issuer = asker.shown(known.issuer)
    if not reply.ok or not isinstance(reply.value, dict):
        words = said(reply.text("error"), reply.text("error_description")) or f" ({reply.status})"
        code = "wrong-redirect" if reply.text("error") in _REDIRECT_ERRORS else "registration-refused"
        raise StepFailed(code, issuer=issuer, said=words, redirect=redirect_uri)
    try:
        client_id, secret, method, takes = sdk.registered(reply.value, redirect_uri)
    except sdk.Unusable as fault:
        words = said("", f"its answer cannot be used: {fault}")
        raise StepFailed("registration-refused", issuer=issuer, said=words, redirect=redirect_uri) from None
    asker.hide(secret)
    if not takes:
        step.checks.append(Check("Redirect address was taken", False, redirect_uri))
        raise StepFailed("wrong-redirect", issuer=issuer, said="", redirect=redirect_uri)
    if len(client_id) > bounds.OAUTH_NAME:
        raise StepFailed(
            "registration-refused", issuer=issuer, said=" (its client id is too long)", redirect=redirect_uri
        )
    used = method if method in METHODS else wanted if secret or wanted == "none" else "none"
    step.checks.append(Check("Registered", True, client_id))
    return Client(client_id, known.issuer, "dynamic", secret, cast(Method, used), redirect_uri)
