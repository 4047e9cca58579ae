"""One sign-in, step after step: what is taken in which order, and what stands in the sign-in while it is.

Each step can be taken alone, with what those before it have found. Knows no session: whoever runs it says where the
browser comes back to, and what is known from before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final

from app import bounds
from app.core.auth import ClientCredentials, OAuth
from app.core.challenges import challenges
from app.core.grants import Grant, Token, claims_of
from app.core.sign_in import ATTEMPTS, ORDER, Check, SignIn, Step, StepId, TokenFacts
from app.protocol.handshake import CLIENT_INFO
from app.protocol.oauth import authorization, discovery, registration, tokens
from app.protocol.oauth.asking import Asker
from app.protocol.oauth.known import Known
from app.protocol.oauth.words import StepFailed
from app.secrecy import without

logger = logging.getLogger("parley.oauth")

_BY_BROWSER: Final[frozenset[StepId]] = frozenset({"authorization", "callback"})
_OF_A_PERSON: Final[tuple[StepId, ...]] = ("registration", "authorization", "callback", "token")
_INITIALIZE: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT_INFO},
}


def _nothing_kept(_: str) -> Grant | None:
    return None


@dataclass(slots=True, eq=False)
class Flow:
    """One sign-in while it runs, with what it has found."""

    sign_in: SignIn
    asker: Asker
    auth: OAuth | ClientCredentials
    redirect_uri: str
    document: str
    """The address of the client id metadata document, when there is one."""
    changed: Callable[[], None]
    wall: Callable[[], float]
    mono: Callable[[], float]
    recall: Callable[[str], Grant | None] = _nothing_kept
    """What is kept from an earlier sign-in at this issuer, and only at this one (R5-64)."""
    stored: bool = False
    """Whether tokens outlive the process."""
    anew: bool = False
    """Somebody wants a new token, whatever is kept from before."""
    known: Known = field(default_factory=Known)

    # ---- in order

    async def run(self, first: StepId = "resource-metadata") -> None:
        """Take the steps from this one on, as far as nobody else is needed. A token from before is taken up where the
        issuer is still the same."""
        sign_in, program = self.sign_in, isinstance(self.auth, ClientCredentials)
        sign_in.state, sign_in.authorization_url, sign_in.waits_until = "preparing", "", None
        self.known.state = ""
        sign_in.attempt += program  # of a person, each authorization request counts
        for which in ORDER[ORDER.index(first) : ORDER.index("refresh")]:
            if program and which in _BY_BROWSER:
                step = sign_in.step(which)
                step.reset()
                step.state, step.sentence = "skipped", "A program signs in without a browser."
                continue
            if which == "callback":
                return
            if not await self.take(which):
                return
            if which == "server-metadata" and await self._recalled():
                return
        self._signed_in()

    async def _recalled(self) -> bool:
        """Whether a token of an earlier sign-in serves; a client that was registered then is used again."""
        found = self.recall(self.known.issuer)
        if found is None or found.client.issuer != self.known.issuer:
            return False
        self.known.client = self.known.client or found.client
        token = found.token
        if not token.access or self.known.token is not None or self.anew:
            return False
        self.asker.hide(token.access, token.refresh, found.client.secret)
        self.known.client, self.known.token = found.client, token
        if token.ends_soon(self.wall()) and not (token.refresh and await self.take("refresh")):
            self.known.token = None
            return False
        for which in _OF_A_PERSON:
            step = self.sign_in.step(which)
            step.reset()
            step.state, step.sentence = "skipped", "There is a token of an earlier sign-in here."
        self._signed_in()
        return True

    async def answer(self, url: str) -> None:
        """The browser has come back: take its answer, and get the token."""
        self.sign_in.state, self.sign_in.authorization_url, self.sign_in.waits_until = "exchanging", "", None
        self.known.state = ""
        if await self.take("callback", url) and await self.take("token"):
            self._signed_in()

    async def alone(self, which: StepId) -> None:
        """Take one step and no other. Whoever signs in meanwhile is still waited for, unless it is their step."""
        sign_in = self.sign_in
        waiting = bool(sign_in.authorization_url) and which not in ("authorization", "token")
        address, until, state = sign_in.authorization_url, sign_in.waits_until, self.known.state
        sign_in.state = "exchanging" if which in ("token", "refresh", "revocation") else "preparing"
        worked = await self.take(which)
        if which == "revocation" and worked:
            self.known.token = None
        if waiting and (worked or which == "refresh"):
            sign_in.state, sign_in.authorization_url, sign_in.waits_until = "waiting", address, until
            self.known.state = state
        elif self.known.token is not None:
            self._signed_in()
        elif worked and not sign_in.authorization_url:
            sign_in.token, sign_in.state = None, "needed"
        self.tell()

    def _signed_in(self) -> None:
        self.sign_in.state = "signed_in"
        self.sign_in.authorization_url, self.sign_in.waits_until = "", None
        self.tell()

    def fail(self, which: StepId, code: str, **values: object) -> None:
        """It ends here, for a reason that is no step's own."""
        self._failed(self.sign_in.step(which), StepFailed(code, **values))
        self.tell()

    # ---- one step

    async def take(self, which: StepId, url: str = "") -> bool:
        """Take one step; whether it worked. What it found stands in it either way."""
        step = self.sign_in.step(which)
        step.reset()
        step.state, step.began_at = "running", self.wall()
        began = self.mono()
        self.tell()
        fault: StepFailed | None = None
        try:
            await self._take(step, url)
        except StepFailed as found:
            fault = found
        except Exception:
            logger.exception("the step %s of a sign-in failed inside Parley", which)
            fault = StepFailed("internal")
        step.took_ms = (self.mono() - began) * 1000
        self._hide(step)
        if fault is not None:
            self._failed(step, fault)
        else:
            self._done(step)
        self.tell()
        return fault is None

    def _hide(self, step: Step) -> None:
        """What turned out to be a secret in the end is one in all that the step found before."""
        secrets = self.asker.secrets
        step.checks = [replace(one, detail=without(one.detail, secrets)) for one in step.checks]
        step.trips = [
            replace(
                one,
                request_body=without(one.request_body, secrets),
                response_body=without(one.response_body, secrets),
                error=without(one.error, secrets),
            )
            for one in step.trips
        ]

    def _done(self, step: Step) -> None:
        """A step that has not said of itself that it was skipped is done."""
        if step.state == "running":
            step.state = "done"

    def _failed(self, step: Step, fault: StepFailed) -> None:
        secrets = self.asker.secrets  # an answer that refuses may quote what it was sent
        step.state, step.code = "failed", fault.code
        step.sentence, step.fix = without(fault.sentence, secrets), without(fault.fix, secrets)
        self.sign_in.state, self.sign_in.authorization_url, self.sign_in.waits_until = "failed", "", None
        self.known.state = ""

    async def _take(self, step: Step, url: str) -> None:
        known, asker, sign_in = self.known, self.asker, self.sign_in
        match step.id:
            case "challenge":
                await self._knock(step)
            case "resource-metadata":
                await discovery.resource_metadata(step, asker, known)
            case "server-metadata":
                await discovery.server_metadata(step, asker, known)
            case "registration":
                wished = authorization.scopes_for(known, self.auth.scopes)
                await registration.registration(step, asker, known, self.auth, self.redirect_uri, self.document, wished)
            case "authorization":
                address = await authorization.authorization(step, asker, known, self.redirect_uri, self.auth.scopes)
                sign_in.attempt += 1
                sign_in.state, sign_in.authorization_url = "waiting", address
                sign_in.waits_until = self.wall() + bounds.OAUTH_WAIT_SECONDS
            case "callback":
                authorization.callback(step, asker, known, url)
            case "token" if isinstance(self.auth, ClientCredentials):
                wished = authorization.scopes_for(known, self.auth.scopes)
                key, resource = self.auth.private_key, authorization.resource_of(asker, known)
                await tokens.as_program(step, asker, known, resource, wished, key, self.wall())
            case "token":
                await tokens.by_code(step, asker, known, authorization.resource_of(asker, known), self.wall())
                known.earlier_scopes = known.requested
            case "refresh":
                try:
                    await tokens.refresh(step, asker, known, self.wall())
                except StepFailed as fault:
                    if fault.code == "refresh-refused" and known.token is not None:
                        known.token = replace(known.token, refresh="")  # or it would be tried before every request
                    raise
            case "revocation":
                await tokens.revoke(step, asker, known)

    async def _knock(self, step: Step) -> None:
        """Ask the server without a token, to hear what it wants. Some want one only for what comes later: then what
        they said before counts."""
        accept = [("accept", "application/json, text/event-stream")]
        plain = [pair for pair in self.asker.target.headers.items() if pair[0].lower() != "authorization"]
        self.asker.hide(*self.asker.target.secret_values)
        reply = await self.asker.post_json(step, self.asker.target.url, _INITIALIZE, [*accept, *plain])
        if reply.ok and self.known.challenge is not None:
            step.checks.append(Check("Bearer challenge", None, "not for this request; the one from before counts"))
            return
        if reply.status not in (401, 403):
            server = self.asker.shown(self.asker.target.url)
            raise StepFailed("not-asked", server=server, status=reply.status)
        self.challenged(step, [text for name, text in reply.headers if name == "www-authenticate"])

    def challenged(self, step: Step, headers: list[str]) -> None:
        """What the server wants, as its answer says."""
        self.known.challenge = next((one for one in challenges(headers, to_act_on=True) if one.is_bearer), None)
        shown = [without(text, self.asker.secrets) for text in headers]
        bearer = next((one for one in challenges(shown) if one.is_bearer), None)
        step.checks.append(Check("Bearer challenge", bearer is not None, _words(headers) or "no WWW-Authenticate"))
        if bearer is not None:
            for name in ("resource_metadata", "scope", "error", "error_description"):
                if value := bearer.get(name):
                    step.checks.append(Check(name, None, value[: bounds.OAUTH_NAME]))
        step.state = "done"

    # ---- what is shown

    def tell(self) -> None:
        """What stands in the sign-in follows what is known."""
        known, sign_in = self.known, self.sign_in
        sign_in.issuer, sign_in.redirect_uri = self.asker.shown(known.issuer), self.redirect_uri
        if known.looked:
            sign_in.resource = self.asker.shown(authorization.resource_of(self.asker, known))
        sign_in.client_id = "" if known.client is None else known.client.id
        sign_in.registration = None if known.client is None else known.client.registration
        if known.issuer:
            sign_in.scopes = known.requested or authorization.scopes_for(known, self.auth.scopes)
        token = known.token
        sign_in.token = None if token is None else self._facts(token)
        able = {
            "challenge": True,
            "resource-metadata": True,
            "server-metadata": known.looked,
            "registration": bool(known.issuer),
            "authorization": known.client is not None and not isinstance(self.auth, ClientCredentials),
            "callback": False,
            "token": bool(known.code) or (known.client is not None and isinstance(self.auth, ClientCredentials)),
            "refresh": token is not None and bool(token.refresh),
            "revocation": token is not None and bool(known.endpoint("revocation_endpoint")),
        }
        busy = sign_in.state in ("preparing", "exchanging")
        for step in sign_in.steps:
            step.runnable = able[step.id] and not busy
        self.changed()

    def _facts(self, token: Token) -> TokenFacts:
        return TokenFacts(
            scopes=self.asker.scopes(token.scopes),
            obtained_at=token.obtained_at,
            expires_at=token.expires_at,
            refreshable=bool(token.refresh),
            revocable=bool(self.known.endpoint("revocation_endpoint")),
            claims=_without(claims_of(token.access), self.asker.secrets),
            stored=self.stored,
        )

    @property
    def grant(self) -> Grant | None:
        """What the vault may keep of it."""
        client, token = self.known.client, self.known.token
        return None if client is None or token is None else Grant(client, token)

    def adopt(self, grant: Grant | None) -> bool:
        """Use a newer token that another session of the same person has, here or on another replica: to renew the old
        one a second time would cost both. Whether there is one."""
        token = self.known.token
        if grant is None or token is None or not grant.token.access or grant.token.obtained_at <= token.obtained_at:
            return False
        self.asker.hide(grant.token.access, grant.token.refresh)
        self.known.client, self.known.token = grant.client, grant.token
        return True

    @property
    def spent(self) -> bool:
        """Whether the server has been given enough attempts (R5-60)."""
        return self.sign_in.attempt >= ATTEMPTS


def _without(value: Any, secrets: Set[str], depth: int = 20) -> Any:
    """A JSON value without these secrets: a token may quote another one. No claim is deep."""
    if isinstance(value, dict) and depth:
        return {without(name, secrets): _without(one, secrets, depth - 1) for name, one in value.items()}
    if isinstance(value, list) and depth:
        return [_without(one, secrets, depth - 1) for one in value]
    return without(value, secrets) if isinstance(value, str) else value if depth else "…"


def _words(headers: list[str]) -> str:
    return ", ".join(one.scheme for one in challenges(headers))[:200]
