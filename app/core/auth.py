"""How a session proves who it is to an HTTP server: not at all, by a token, or by OAuth."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from app import bounds
from app.core.strict import Strict

_SCOPE: Final = frozenset(map(chr, range(0x21, 0x7F))) - set('"\\')
Scope = Annotated[str, Field(min_length=1, max_length=bounds.OAUTH_NAME)]
Id = Annotated[str, Field(max_length=bounds.OAUTH_NAME)]


def _plain_scopes(value: tuple[str, ...]) -> tuple[str, ...]:
    for scope in value:
        if not set(scope) <= _SCOPE:
            raise ValueError(f"{scope[:60]!r} is no scope: it is one word without quotes")
    return value


class NoAuth(Strict):
    """Nothing is sent, and nothing is tried: a 401 is a 401."""

    kind: Literal["none"]


class Bearer(Strict):
    """A token that somebody has already."""

    kind: Literal["bearer"]
    token: str = Field(min_length=1, max_length=bounds.OAUTH_TOKEN, repr=False)

    @field_validator("token")
    @classmethod
    def _one_word(cls, value: str) -> str:
        if any(not 33 <= ord(char) <= 126 for char in value):
            raise ValueError("a token is one word of letters, digits and signs")
        return value


class OAuth(Strict):
    """Sign in when the server asks for it; this is also what happens where nothing is said."""

    kind: Literal["oauth"]
    client_id: Id = ""
    """Registered with the authorization server by hand; empty lets Parley register."""
    client_secret: Id = Field(default="", repr=False)
    scopes: tuple[Scope, ...] = Field(default=(), max_length=bounds.OAUTH_SCOPES)
    """What to ask for instead of what the server's challenge says."""

    _check = field_validator("scopes")(_plain_scopes)

    @model_validator(mode="after")
    def _secret_of_somebody(self) -> Self:
        if self.client_secret and not self.client_id:
            raise ValueError("a client_secret belongs to a client_id: give both")
        return self


class ClientCredentials(Strict):
    """Sign in as a program, without a person."""

    kind: Literal["client-credentials"]
    client_id: str = Field(min_length=1, max_length=bounds.OAUTH_NAME)
    client_secret: Id = Field(default="", repr=False)
    private_key: str = Field(default="", max_length=bounds.OAUTH_TOKEN, repr=False)
    """An RSA or P-256 key in PEM, in the place of a secret."""
    scopes: tuple[Scope, ...] = Field(default=(), max_length=bounds.OAUTH_SCOPES)

    _check = field_validator("scopes")(_plain_scopes)

    @model_validator(mode="after")
    def _one_proof(self) -> Self:
        if bool(self.client_secret) is bool(self.private_key):
            raise ValueError("give either a client_secret or a private_key")
        return self


AnyAuth = NoAuth | Bearer | OAuth | ClientCredentials
Auth = Annotated[AnyAuth, Field(discriminator="kind")]


def secrets_of(auth: AnyAuth | None) -> tuple[str, ...]:
    """What of it nobody may see."""
    if isinstance(auth, Bearer):
        return (auth.token,)
    if isinstance(auth, OAuth):
        return (auth.client_secret,)
    return (auth.client_secret, auth.private_key) if isinstance(auth, ClientCredentials) else ()


def auth_json(auth: AnyAuth | None) -> dict[str, Any] | None:
    """What of it may be shown."""
    if auth is None:
        return None
    shown: dict[str, Any] = {"kind": auth.kind}
    if isinstance(auth, OAuth | ClientCredentials):
        shown |= {"client_id": auth.client_id or None, "scopes": list(auth.scopes)}
    return shown
