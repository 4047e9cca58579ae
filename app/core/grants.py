"""What signing in has brought: a client that is known to an authorization server, and a token. Secrets, all of it.

Held in memory by the session that uses it and by the vault, keyed by person, server and issuer (R5-64, R5-77). Nothing
here has a `repr`, so that no log line and no traceback shows one.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit, urlunsplit

from app import bounds
from app.core.sign_in import Registration

Method = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
METHODS: Final[tuple[Method, ...]] = ("none", "client_secret_basic", "client_secret_post", "private_key_jwt")


@dataclass(slots=True, frozen=True, repr=False)
class Client:
    """Who Parley is to one authorization server."""

    id: str
    issuer: str
    registration: Registration
    secret: str = ""
    method: Method = "none"
    redirect_uri: str = ""


@dataclass(slots=True, frozen=True, repr=False)
class Token:
    """What a server is shown, and what renews it."""

    access: str
    issuer: str
    resource: str
    scopes: tuple[str, ...] = ()
    refresh: str = ""
    obtained_at: float = 0.0
    expires_at: float | None = None

    def ends_soon(self, now: float) -> bool:
        """Whether it is time for another one: a while before it expires, of one that lives shortly a part of that."""
        if self.expires_at is None:
            return False
        return self.expires_at - now < min(bounds.OAUTH_EARLY_SECONDS, (self.expires_at - self.obtained_at) / 5)


@dataclass(slots=True, frozen=True, repr=False)
class Grant:
    """Both together, as the vault keeps them."""

    client: Client
    token: Token


def server_key(url: str) -> str:
    """What a server is kept under: its address, without what does not tell it from another."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/"), parts.query, ""))


def claims_of(token: str) -> dict[str, Any] | None:
    """What a JWT says, unverified: it is for the server to believe it or not. None when it is none."""
    if len(token) > bounds.OAUTH_TOKEN or token.count(".") != 2:
        return None
    head, body, _ = token.split(".")
    if not isinstance(_decoded(head), dict):
        return None
    found = _decoded(body)
    return found if isinstance(found, dict) else None


def _decoded(part: str) -> Any:
    try:
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
