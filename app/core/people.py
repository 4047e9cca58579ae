"""The people of a team: who they are, how they came in, and the rules about both. Data and pure functions.

Of everything that lets somebody in (an invitation, a login, a token) only a digest is kept; the text itself is shown
once. Knows no store, no clock and no page.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from app import team_bounds as bounds
from app.core.catalogue import Role
from app.core.errors import Conflict, Invalid, NotAllowed

Door = Literal["invitation", "oidc", "proxy"]
Scope = Literal["read", "act"]
"""What a token may do: look at things, or everything that its person may."""
TOKEN_PREFIX: Final = "parley_"  # noqa: S105


@dataclass(slots=True, frozen=True)
class Person:
    """Somebody of the team."""

    id: str
    name: str
    role: Role
    door: Door
    subject: str
    """Who they are at their door: the issuer with the id there, or what the proxy's header says; else empty."""
    made: float
    seen: float = 0.0
    off: float | None = None
    """Since when they are switched off."""


@dataclass(slots=True, frozen=True)
class Invitation:
    """A way in that works once."""

    digest: str
    name: str
    role: Role
    made: float
    expires: float
    by: str
    used: float | None = None
    revoked: bool = False

    def closed(self, now: float) -> str:
        """Why it lets nobody in any more; empty while it does."""
        if self.used is not None:
            return "That invitation was used already: each works once. Ask an admin for another one."
        if self.revoked or now >= self.expires:
            return "That invitation is no longer valid. Ask an admin for another one."
        return ""


@dataclass(slots=True, frozen=True)
class Login:
    """One browser of one person. Its secret is replaced while it is used; the id stays."""

    id: str
    person: str
    digest: str
    made: float
    rotated: float
    seen: float
    expires: float
    agent: str = ""
    """What the browser says it is, to be known again in a list."""
    before: str = ""
    """The digest that was replaced: requests that were on their way still count."""

    def opens(self, digest: str, now: float, idle: float) -> bool:
        """Whether this digest is its secret now."""
        if now >= self.expires or now - self.seen >= idle:
            return False
        late = bool(self.before) and now - self.rotated < bounds.ROTATION_GRACE_SECONDS
        return same(digest, self.digest) or (late and same(digest, self.before))


@dataclass(slots=True, frozen=True)
class Token:
    """What a script of a person sends."""

    id: str
    person: str
    name: str
    scope: Scope
    digest: str
    made: float
    expires: float
    seen: float = 0.0


# ------------------------------------------------------------------------------------------------------------- secrets


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What is kept of it. A random secret of this size needs no salt and no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


# --------------------------------------------------------------------------------------------------------------- rules


def plain_name(name: str) -> str:
    """A name of a person or of a token as it is kept. Raises Invalid."""
    found = " ".join(name.split())
    if not found or len(found) > bounds.PERSON_NAME or not found.isprintable():
        raise Invalid("This name cannot be used.", {"/name": [f"One line of 1 to {bounds.PERSON_NAME} characters."]})
    return found


def token_seconds(days: float) -> float:
    """How long a token lasts. Raises Invalid."""
    if not 0 < days <= bounds.TOKEN_DAYS:
        raise Invalid("This end cannot be used.", {"/days": [f"A token lasts from 1 to {bounds.TOKEN_DAYS} days."]})
    return days * 86_400.0


def check_change(by: Person | None, whom: Person, people: Iterable[Person], *, role: Role | None, off: bool) -> None:
    """Whether somebody may be given another role, or be switched off. Raises NotAllowed.

    Nobody does it to themselves, and the last admin stays one: otherwise nobody could undo it."""
    loses = off or (role is not None and role != "admin")
    admins = [one for one in people if one.role == "admin" and one.off is None]
    if whom.role == "admin" and whom.off is None and loses and [one.id for one in admins] == [whom.id]:
        raise NotAllowed(f"{whom.name} is the only admin. Make somebody else one first.")
    if by is not None and by.id == whom.id and loses:
        raise NotAllowed("Nobody takes their own rights away. Another admin can do that.")


def check_invited(name: str, role: Role, people: Iterable[Person]) -> None:
    """Whether somebody may be invited under this name: who has it already is let in again, as who they are. Raises
    Conflict."""
    known = next((one for one in people if one.name.casefold() == name.casefold()), None)
    if known is None:
        return
    if known.off is not None:
        raise Conflict(f"{known.name} is switched off. Switch them on first, then invite them again.")
    if known.door != "invitation":
        raise Conflict(f"{known.name} signs in by another door. Choose another name.")
    if known.role != role:
        raise Conflict(f"{known.name} is there already, as {known.role}. Change that on the page of people, or invite "
                       f"them as {known.role} to let them in again.")  # fmt: skip
