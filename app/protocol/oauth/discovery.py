"""Where to sign in: the metadata of the protected resource, and of the authorization server that it names."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from app import bounds
from app.core.sign_in import Check, Step
from app.protocol.oauth import sdk
from app.protocol.oauth.asking import Asker, Reply
from app.protocol.oauth.known import Known, texts
from app.protocol.oauth.words import StepFailed

ENDPOINTS = ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint")


async def resource_metadata(step: Step, asker: Asker, known: Known) -> None:
    """Read what the server says of itself: where its challenge says, then at the well-known places (R5-51)."""
    known.looked, known.resource_metadata, server = True, None, asker.target.url
    named = "" if known.challenge is None else known.challenge.get("resource_metadata")
    if named:
        asker.checked(named, "`resource_metadata` of the challenge", of_server=True)
    found: Reply | None = None
    for url in dict.fromkeys(sdk.resource_metadata_addresses(named, server)):
        reply = await asker.get(step, url)
        if reply.status == 200 and isinstance(reply.value, dict):
            found = reply
            break
        if reply.status >= 500 or reply.status == 429:
            # It says nothing of whether there is metadata, so nothing may be concluded from it.
            raise StepFailed("bad-metadata", url=asker.shown(url), why=f"the server answers with {reply.status}")
        why = "it is no JSON object" if reply.status == 200 else str(reply.status)
        step.checks.append(Check(f"Metadata at {asker.shown(url)}", None, f"not there ({why})"))
    if found is None:
        step.checks.append(Check("Protected resource metadata", None, "none: perhaps a server of 2025-03-26"))
        step.state, step.sentence = "skipped", "The server publishes none."
        return
    step.checks.append(Check("Found", True, asker.shown(found.url)))
    _check_resource(step, asker, found.value)
    servers = texts(found.value.get("authorization_servers")) or ()
    if not servers:
        why = "it names no authorization server in `authorization_servers`"
        raise StepFailed("bad-metadata", url=asker.shown(found.url), why=why)
    asker.checked(servers[0], "The authorization server in the metadata")
    step.checks.append(Check("Authorization server", True, asker.shown(servers[0])))
    if len(servers) > 1:
        step.checks.append(Check("More authorization servers", None, f"{len(servers) - 1}; the first one is taken"))
    known.resource_metadata = found.value


def _check_resource(step: Step, asker: Asker, metadata: dict[str, Any]) -> None:
    """The metadata must be about this server, or its tokens would be good elsewhere (R5-53)."""
    resource = metadata.get("resource")
    server = sdk.canonical(asker.target.url)
    if not isinstance(resource, str) or not resource:
        step.checks.append(Check("resource is this server", False, "it is missing"))
        raise StepFailed("wrong-resource", found="nothing", server=asker.shown(server))
    fits = len(resource) <= bounds.OAUTH_NAME and sdk.covers(resource, server)
    step.checks.append(Check("resource is this server", fits, asker.shown(resource)))
    if not fits:
        raise StepFailed("wrong-resource", found=asker.shown(resource), server=asker.shown(server))


async def server_metadata(step: Step, asker: Asker, known: Known) -> None:
    """Read what the authorization server offers, at all the places where it may say so (R5-52)."""
    named = () if known.resource_metadata is None else texts(known.resource_metadata.get("authorization_servers")) or ()
    issuer = named[0] if named else ""
    known.server_metadata, known.issuer = {}, ""
    found: Reply | None = None
    for url in sdk.server_metadata_addresses(issuer, asker.target.url):
        asker.checked(url, "The authorization server in the metadata", of_server=not issuer)
        reply = await asker.get(step, url)
        if reply.status == 200 and isinstance(reply.value, dict):
            found = reply
            break
        why = "it is no JSON object" if reply.status == 200 else str(reply.status)
        step.checks.append(Check(f"Metadata at {asker.shown(url)}", None, f"not there ({why})"))
        if reply.status >= 500:
            break
    if found is None:
        shown = asker.shown(issuer or sdk.canonical(asker.target.url))
        raise StepFailed("no-server-metadata" if issuer else "no-metadata", issuer=shown, server=shown)
    step.checks.append(Check("Found", True, asker.shown(found.url)))
    metadata = found.value
    known.issuer = _check_issuer(step, asker, metadata, issuer)
    for name in ENDPOINTS:
        url = metadata.get(name)
        if url is None and name in ("registration_endpoint", "revocation_endpoint"):
            continue
        if not isinstance(url, str):
            raise StepFailed("bad-metadata", url=asker.shown(found.url), why=f"`{name}` is missing")
        asker.checked(url, f"`{name}`")
        step.checks.append(Check(name, True, asker.shown(url)))
    known.server_metadata = metadata


def _check_issuer(step: Step, asker: Asker, metadata: dict[str, Any], issuer: str) -> str:
    """Whose metadata it is: letter by letter the one that was asked (R5-53). Without a name for it, as in 2025-03-26,
    it is the origin of the server, with or without a slash at the end."""
    said = metadata.get("issuer")
    expected = {issuer}
    if not issuer:
        parts = urlsplit(asker.target.url)
        issuer = f"{parts.scheme}://{parts.netloc}"
        expected = {issuer, f"{issuer}/"}
    fits = isinstance(said, str) and said in expected and len(said) <= bounds.OAUTH_NAME
    shown = asker.shown(said) if isinstance(said, str) else "nothing"
    step.checks.append(Check("issuer is the one that was asked", fits, shown))
    if not fits or not isinstance(said, str):
        raise StepFailed("wrong-issuer", found=shown, issuer=asker.shown(issuer))
    return said
