"""What the steps of a sign-in have found so far, secrets and all; it stays with the flow and is never shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from app.core.challenges import Challenge
from app.core.grants import Client, Token


@dataclass(slots=True, repr=False)
class Known:
    """What one step hands to the next."""

    challenge: Challenge | None = None
    resource_metadata: dict[str, Any] | None = None
    """None before it was looked for, and where there is none, as with servers of 2025-03-26."""
    looked: bool = False
    issuer: str = ""
    server_metadata: dict[str, Any] = field(default_factory=dict)
    client: Client | None = None
    earlier_scopes: tuple[str, ...] = ()
    """What was asked for before: more is asked for in addition (R5-60)."""
    verifier: str = ""
    state: str = ""
    mark: str = ""
    """What every `state` begins with: in a team on several machines, which of them waits for the answer."""
    requested: tuple[str, ...] = ()
    code: str = ""
    token: Token | None = None

    def endpoint(self, name: str) -> str:
        """An endpoint that the authorization server names; empty when it names none."""
        found = self.server_metadata.get(name)
        return found if isinstance(found, str) else ""

    def listed(self, name: str) -> tuple[str, ...] | None:
        """A list of texts in its metadata; None when there is none."""
        return texts(self.server_metadata.get(name))


def texts(value: Any) -> tuple[str, ...] | None:
    """The texts of a list; None when it is none."""
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else None
