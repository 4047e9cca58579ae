"""The pieces of the SDK's OAuth client that are right for an inspector; the only module here that imports it.

Taken from it: the order of well-known addresses, the canonical name of a resource and whether one covers a server, the
union of scopes, PKCE, the body of a registration and the reading of its answer, what a URL must be to be a client id.

Not taken, because `mcp.client.auth` does not do what is needed here:
- it runs as one generator inside of an HTTP client: no step can be shown, repeated or run alone;
- it dials whatever metadata names: no address guard, no allow-list of schemes, no bound on a body (S17, S24);
- it does not refuse an authorization server that does not list S256 (R5-57), and guesses endpoints where there is none;
- it falls back to the scopes of the authorization server, where the specification leaves the parameter out (R5-59);
- it compares issuers after a URL type has rewritten them, where the specification wants the letters (R5-53, R5-63);
- it counts no attempts (R5-60), waits for ever for an answer, and neither revokes a token nor tells why one failed.
"""

from __future__ import annotations

from typing import Any

from mcp.client.auth import utils
from mcp.client.auth.exceptions import OAuthRegistrationError
from mcp.client.auth.oauth2 import PKCEParameters, check_registration_usable
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import AnyUrl, ValidationError


def resource_metadata_addresses(named: str, server: str) -> list[str]:
    """Where the metadata of a protected resource may be, in order (R5-51)."""
    return utils.build_protected_resource_metadata_discovery_urls(named or None, server)


def server_metadata_addresses(issuer: str, server: str) -> list[str]:
    """Where the metadata of an authorization server may be, in order (R5-52); without an issuer, where servers of
    2025-03-26 have it."""
    return utils.build_oauth_authorization_server_metadata_discovery_urls(issuer or None, server)


def canonical(server: str) -> str:
    """What a server is called as a resource: small letters, no fragment, no slash at its end (R5-58)."""
    found = resource_url_from_server_url(server)
    return found[:-1] if found.endswith("/") and "?" not in found else found


def covers(resource: str, server: str) -> bool:
    """Whether tokens for this resource are for the server: the same origin, and the beginning of its path."""
    try:
        return check_resource_allowed(requested_resource=server, configured_resource=resource)
    except ValueError:  # it is no address
        return False


def union(earlier: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes of both, the earlier ones first (R5-60)."""
    return tuple((utils.union_scopes(" ".join(earlier) or None, " ".join(more) or None) or "").split())


def pkce() -> tuple[str, str]:
    """A verifier, and its S256 challenge (R5-57)."""
    made = PKCEParameters.generate()
    return made.code_verifier, made.code_challenge


def is_document_address(url: str) -> bool:
    """Whether an address may be a client id: https, with a path (R5-55)."""
    return utils.is_valid_client_metadata_url(url)


def registration_body(redirect_uri: str, scopes: tuple[str, ...], method: str, *, native: bool) -> dict[str, Any]:
    """What Parley says of itself when it registers (R5-56, R5-65)."""
    said = OAuthClientMetadata.model_validate(
        {
            "client_name": "Parley",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            "application_type": "native" if native else "web",
            "scope": " ".join(scopes) or None,
        }
    )
    return said.model_dump(mode="json", exclude_none=True)


class Unusable(Exception):
    """The answer to a registration is none that Parley can use; says why, in words of the SDK."""


def registered(answer: dict[str, Any], redirect_uri: str) -> tuple[str, str, str | None, bool]:
    """Client id, secret, the method to use at the token endpoint, and whether our redirect address was taken. Raises
    Unusable."""
    # The SDK keeps the issuer of a client in this member: it is never the server's to say.
    plain = {key: value for key, value in answer.items() if key != "issuer"}
    try:
        found = OAuthClientInformationFull.model_validate(plain)
        check_registration_usable(found)
    except ValidationError as fault:
        wrong = fault.errors(include_url=False, include_input=False)[0]
        raise Unusable(f"{'.'.join(str(part) for part in wrong['loc'])}: {wrong['msg']}") from None
    except OAuthRegistrationError as fault:
        raise Unusable(str(fault)) from None
    ours = not found.redirect_uris or AnyUrl(redirect_uri) in found.redirect_uris
    return found.client_id, found.client_secret or "", found.token_endpoint_auth_method, ours
