"""The settings of signing in by OpenID Connect, `[oidc]` in `team.toml`, and which of them are not safe together.

Imported by team mode alone. What talks to the provider is `web/team/oidc.py`, and loaded only where this is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from app.core.catalogue import Role, read_allowed
from app.policy import is_this_machine


class Oidc(BaseModel):
    """A provider whose people are let in."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    issuer: str = Field(max_length=500)
    """Who vouches for people: the issuer, exactly as its discovery document says it."""
    client_id: str = Field(min_length=1, max_length=500)
    """What Parley is called there. Its redirect URI is `public_url` with `/login/oidc/callback`."""
    client_secret_env: str = Field(default="", max_length=200)
    """The variable of the environment that has the secret of this client."""
    client_secret_file: Path | None = None
    """Or a file whose first line is the secret, which nobody else can read. Neither is needed for a public client."""
    label: str = Field(default="single sign-on", min_length=1, max_length=60)
    """What the button on the page says after "Sign in with"."""
    scopes: tuple[str, ...] = Field(default=("openid", "profile", "email"), max_length=20)
    """What is asked for; `openid` is part of it."""
    name_claim: str = Field(default="name", min_length=1, max_length=100)
    """Which claim of the ID token is the name of somebody."""
    allowed_domains: tuple[str, ...] = Field(default=(), max_length=100)
    """Whose verified mail address ends in one of these is let in."""
    everybody: bool = False
    """Whether everybody is let in whom the issuer knows: for an issuer that has only the people of the team."""
    role: Literal["viewer", "user"] = "user"
    """The role of somebody who comes for the first time."""
    admins: tuple[str, ...] = Field(default=(), max_length=100)
    """Who are admins when they come for the first time: verified mail addresses, or `sub` values."""
    role_claim: str = Field(default="", max_length=100)
    """A claim that decides the role at every sign-in, such as `groups`: a text or a list of them."""
    roles: dict[str, Role] = Field(default_factory=dict, max_length=100)
    """What its values mean. Whoever has none of them is not let in; of several the highest counts."""
    endpoints: tuple[str, ...] = Field(default=(), max_length=20)
    """Internal names with their ports, beside the issuer's own, where its token endpoint and its keys are."""

    @property
    def reached(self) -> frozenset[tuple[str, int]]:
        """Names and ports that may lead inwards for signing in, and for nothing else."""
        parts = urlsplit(self.issuer)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        own = ((parts.hostname or "").lower(), port)
        return frozenset((own, *(read_allowed(one) for one in self.endpoints)))

    def secret(self, environment: Mapping[str, str]) -> str:
        """The secret of the client; empty for a public one. Raises OSError."""
        if self.client_secret_file is not None:
            return self.client_secret_file.read_text(encoding="utf-8").partition("\n")[0].strip()
        return environment.get(self.client_secret_env, "") if self.client_secret_env else ""


def refusals(oidc: Oidc, environment: Mapping[str, str]) -> Iterator[str]:
    """Everything of it that is not safe, a sentence each."""
    yield from _address(oidc)
    if "openid" not in oidc.scopes:
        yield "oidc.scopes lacks openid, without which nobody is vouched for"
    if oidc.client_secret_env and oidc.client_secret_file is not None:
        yield "oidc names client_secret_env and client_secret_file; say which of the two is meant"
    elif oidc.client_secret_env and not environment.get(oidc.client_secret_env):
        yield f"oidc.client_secret_env names {oidc.client_secret_env}, which is not set"
    if oidc.role_claim and not oidc.roles:
        yield "oidc.role_claim is set and oidc.roles says nothing about its values, so nobody could come in"
    if oidc.roles and not oidc.role_claim:
        yield "oidc.roles is set and oidc.role_claim is not: say which claim has these values"
    if not (oidc.allowed_domains or oidc.role_claim or oidc.everybody):
        yield (
            "oidc would let in everybody whom the issuer knows; "
            "name allowed_domains or role_claim, or say everybody = true"
        )
    if not oidc.admins and "admin" not in oidc.roles.values():
        yield "oidc needs admins, or a value in roles that makes one: otherwise nobody could become an admin"


def _address(oidc: Oidc) -> Iterator[str]:
    try:
        parts = urlsplit(oidc.issuer)
        _ = parts.port
    except ValueError:
        yield f"oidc.issuer = {oidc.issuer[:100]!r} is no address; write it like https://id.example"
        return
    if not parts.hostname or parts.username is not None or parts.query or parts.fragment:
        yield "oidc.issuer is an address without a query, exactly as the provider says it, like https://id.example"
    elif parts.scheme != "https" and not (parts.scheme == "http" and is_this_machine(parts.hostname)):
        yield "oidc.issuer must begin with https://: who somebody is would cross the network in the open"
    try:
        for one in oidc.endpoints:
            read_allowed(one)
    except ValueError as fault:
        yield f"oidc.endpoints: {fault}"
