"""Signing in to a server by OAuth, as data: how far it is, what it has found, and every step with what was checked.

What stands here may be shown: secrets are masked before they come in. Tokens, codes and keys live with whoever makes
the requests (`protocol/oauth/`) and in the vault (`store/vault.py`), and never here. The one exception is the address
that the person's browser opens: it has to be whole, and its `state` is good for one answer within ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from app import bounds

SignInState = Literal["needed", "preparing", "waiting", "exchanging", "signed_in", "failed"]
"""`needed`: the server wants it, and nobody has begun. `preparing`: metadata is read, a client registered. `waiting`:
the person's browser has to open `authorization_url`. `exchanging`: their answer is being made a token, or a token is
being refreshed. `signed_in`: there is a token. `failed`: a step says why."""
SETTLED: Final[frozenset[SignInState]] = frozenset({"needed", "waiting", "signed_in", "failed"})
"""What does not change by itself: somebody has to do something, or nobody has."""

StepState = Literal["todo", "running", "done", "failed", "skipped"]
StepId = Literal[
    "challenge",
    "resource-metadata",
    "server-metadata",
    "registration",
    "authorization",
    "callback",
    "token",
    "refresh",
    "revocation",
]
Reason = Literal["unauthorized", "scope", "expired", "asked"]
"""Why there is a sign-in: a 401; a 403 that wants more scopes; a token that was taken no longer; a person."""
Registration = Literal["pre-registered", "metadata-document", "dynamic"]
Grant = Literal["authorization_code", "client_credentials"]

NAMES: Final[dict[StepId, str]] = {
    "challenge": "Challenge",
    "resource-metadata": "Protected resource metadata",
    "server-metadata": "Authorization server metadata",
    "registration": "Client registration",
    "authorization": "Authorization request",
    "callback": "Authorization response",
    "token": "Token request",
    "refresh": "Token refresh",
    "revocation": "Token revocation",
}
ORDER: Final[tuple[StepId, ...]] = tuple(NAMES)
ATTEMPTS: Final = bounds.OAUTH_ATTEMPTS
"""So often a server may ask for more scopes in a row before Parley believes that it will never be content (R5-60)."""


@dataclass(slots=True, frozen=True)
class Trip:
    """One HTTP request of a step, and what came back."""

    method: str
    url: str
    request_headers: tuple[tuple[str, str], ...] = ()
    request_body: str = ""
    status: int | None = None
    """None when nothing came back; `error` says why."""
    response_headers: tuple[tuple[str, str], ...] = ()
    response_body: str = ""
    error: str = ""
    exchange: int | None = None
    """The seq of its exchange in the log."""


@dataclass(slots=True, frozen=True)
class Check:
    """One thing that was looked at: what, whether it holds, and what was found. `ok` is None for what is only noted:
    allowed, and worth knowing."""

    what: str
    ok: bool | None
    detail: str = ""


@dataclass(slots=True)
class Step:
    """One step of signing in."""

    id: StepId
    state: StepState = "todo"
    trips: list[Trip] = field(default_factory=list)
    """Its requests in order; the last one decided. A step that only the person's browser takes has one without an
    answer, or none."""
    checks: list[Check] = field(default_factory=list)
    sentence: str = ""
    """When it failed: the likely cause, in one sentence. When it was skipped: why."""
    fix: str = ""
    """When it failed: what to do."""
    code: str = ""
    """When it failed: a short name of the cause that tests and scripts can rely on, like `wrong-issuer`."""
    began_at: float | None = None
    took_ms: float | None = None
    runnable: bool = False
    """Whether it can be run now, alone: what it needs is known."""

    @property
    def name(self) -> str:
        """Its name for people, in the words of the specification."""
        return NAMES[self.id]

    @property
    def trip(self) -> Trip | None:
        """The request that decided."""
        return self.trips[-1] if self.trips else None

    def reset(self) -> None:
        """As if it had never been taken."""
        self.state, self.trips, self.checks = "todo", [], []
        self.sentence = self.fix = self.code = ""
        self.began_at = self.took_ms = None


@dataclass(slots=True, frozen=True)
class TokenFacts:
    """What may be told of a token: never the token."""

    scopes: tuple[str, ...]
    obtained_at: float
    expires_at: float | None
    """None when the server does not say."""
    refreshable: bool
    revocable: bool
    claims: dict[str, Any] | None
    """What a JWT says; None when the token is none. Its signature is nobody's business."""
    stored: bool
    """Whether it outlives this process, encrypted."""


@dataclass(slots=True)
class SignIn:
    """One sign-in of a session: to one server, at one authorization server, once or again and again."""

    server: str
    """The address of the MCP server, as it may be shown."""
    state: SignInState = "needed"
    reason: Reason = "unauthorized"
    grant: Grant = "authorization_code"
    resource: str = ""
    """What tokens are asked for: the canonical address of the server, or what its metadata calls it (R5-58)."""
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    """What is asked for; empty when nothing says which."""
    client_id: str = ""
    registration: Registration | None = None
    redirect_uri: str = ""
    authorization_url: str = ""
    """What the person's browser opens, in full; only while `waiting`, and only ever http(s) (R5-75)."""
    waits_until: float | None = None
    """While `waiting`: when the answer comes too late."""
    attempt: int = 0
    """Which of at most `ATTEMPTS` in a row this is: counted for each authorization request, and back to none once the
    server has answered a request with the token."""
    held: int = 0
    """Requests to the server that wait for this, and go on by themselves."""
    token: TokenFacts | None = None
    steps: list[Step] = field(default_factory=list)

    def step(self, which: StepId) -> Step:
        """A step; those of refresh and revocation come into being when they are taken."""
        found = next((one for one in self.steps if one.id == which), None)
        if found is None:
            found = Step(which)
            self.steps.append(found)
            self.steps.sort(key=lambda one: ORDER.index(one.id))
        return found

    def step_of(self, exchange: int) -> Step | None:
        """The step that made an exchange of the log."""
        return next((one for one in self.steps if any(trip.exchange == exchange for trip in one.trips)), None)

    @property
    def failed_step(self) -> Step | None:
        """The step that says why it failed; None unless it did."""
        if self.state != "failed":
            return None
        return next((one for one in reversed(self.steps) if one.state == "failed"), None)

    @property
    def open(self) -> bool:
        """Whether a person has something to do about it: the card in the inbox stands for as long."""
        return self.state != "signed_in"


def new_sign_in(server: str, reason: Reason, grant: Grant = "authorization_code") -> SignIn:
    """A sign-in of which nothing is known but that it is wanted."""
    first: Iterable[StepId] = ORDER[: ORDER.index("refresh")]
    return SignIn(server, reason=reason, grant=grant, steps=[Step(one) for one in first])
