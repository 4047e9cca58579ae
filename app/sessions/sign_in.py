"""Signing in to the server of a session by OAuth: how far it is, and what people can do about it.

A 401 while connecting is a fault as it ever was, and the sign-in is prepared beside it: once somebody has signed in,
the session connects again by itself. On a connection that is ready, a request that is refused waits, its time limit
stands still, and it goes on with the new token. So no state of a connection means anything new, and no script that
knows 401 has to learn of it. A token of an earlier sign-in, and the clients of programs, need nobody: they are taken up
on the way.

Every connection that a person begins is bare at first: only when the server has said where to sign in is a token of
that issuer used, and of no other (S20). Every verb returns at once; what comes of it is the event `sign_in.changed`,
with the subject `sign-in`. Is the `Credentials` of the session's link.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from app import bounds
from app.core.auth import AnyAuth, Bearer, ClientCredentials, NoAuth, OAuth
from app.core.challenges import Challenge, challenges
from app.core.errors import Conflict
from app.core.grants import Grant, server_key
from app.core.sign_in import SETTLED, Reason, SignIn, StepId, Trip, new_sign_in
from app.core.targets import HttpTarget
from app.protocol.links.base import Refusal

if TYPE_CHECKING:
    from app.protocol.oauth.flow import Flow
    from app.sessions.registry import SessionRegistry
    from app.sessions.workspace import Workspace

_NOTHING = "No server has asked this session to sign in."
_BUSY = "The sign-in is under way. Wait for it, or forget it."


class SignIns:
    """The sign-in of one session."""

    def __init__(self, session: Workspace, registry: SessionRegistry) -> None:
        self._session, self._registry = session, registry
        self.current: SignIn | None = None
        """What is known of it; None where no server wanted it."""
        self._flow: Flow | None = None
        self._lock = anyio.Lock()
        """One run at a time."""
        self._renewal: anyio.Event | None = None
        """Set when the token that is being renewed now has been."""

    @property
    def owner(self) -> str:
        """Whose sign-in it is."""
        return self._session.owner

    # ---- what people do

    def begin(self, client_id: str = "", client_secret: str = "", scopes: tuple[str, ...] = ()) -> None:
        """Sign in, or anew from the first step on; as this client, or for these scopes, when they are given. Raises
        Conflict where there is nothing to sign in to."""
        target = self._target()
        if client_id or scopes:
            known = target.auth if isinstance(target.auth, OAuth) else OAuth(kind="oauth")
            changes = {"client_id": client_id or known.client_id, "scopes": scopes or known.scopes}
            changes["client_secret"] = client_secret if client_id else known.client_secret
            target = target.model_copy(update={"auth": known.model_copy(update=changes)})
            self._session.target = target
        elif isinstance(target.auth, NoAuth | Bearer):
            target = target.model_copy(update={"auth": None})
            self._session.target = target
        before, flow = self.current, self._flow
        again = before is not None and before.reason == "scope" and before.state != "signed_in"
        self._let_go()
        reason: Reason = "asked" if before is None or not again else before.reason
        current = self.current = new_sign_in(target.shown_url, reason, _grant(target.auth))
        current.held = 0 if before is None else before.held
        if again and before is not None and flow is not None and flow.known.challenge is not None:
            current.steps[0] = before.steps[0]  # the server would not say this again to who has no token at all
        current.state = "preparing"
        self._start(self._run, current, target, flow, not client_id, not scopes)

    def callback(self, url: str) -> None:
        """Go on with the address that the authorization server sent the person's browser to. Raises Invalid when it is
        not the answer that is waited for (S19)."""
        flow = self._flow
        if flow is None or self.current is None:
            raise Conflict(_NOTHING)
        if self.current.state != "waiting":
            raise Conflict("This sign-in waits for no answer any more. Begin it again.")
        from app.protocol.oauth.authorization import check_state

        check_state(flow.known, url)
        self._registry.callbacks.pop(flow.known.state, None)
        self.current.state = "exchanging"
        self._start(self._locked, flow, lambda: flow.answer(url))

    def run(self, step: StepId, *, go_on: bool = False) -> None:
        """Run one step again with what those before it have found; with `go_on`, those after it too."""
        flow, current = self._flow, self.current
        if flow is None or current is None:
            raise Conflict(_NOTHING)
        found = current.step(step)
        if not found.runnable:
            raise Conflict(f"{found.name} cannot be run now: a step before it has not found what it needs.")
        if step in ("refresh", "revocation"):
            go_on = False
        self._registry.callbacks.pop(flow.known.state, None)
        current.state = "preparing"
        self._start(self._locked, flow, lambda: flow.run(step) if go_on else flow.alone(step))

    def refresh(self) -> None:
        """Get a new token by the refresh token. Raises Conflict when there is none."""
        self._has_token("There is no refresh token. Sign in again for a new token.", "refresh")
        self.run("refresh")

    def revoke(self) -> None:
        """Have the token made worthless where it came from, and forget it."""
        self._has_token("The authorization server has no place to revoke a token. Forget it here.", "revocation")
        self.run("revocation")

    def forget(self) -> None:
        """Let go of the token, and of the client that was registered for it."""
        current, flow = self.current, self._flow
        if current is None:
            raise Conflict(_NOTHING)
        if flow is not None:
            key = server_key(self._target().url)
            self._registry.vault.forget(self._session.owner, key, flow.known.issuer)
            self._registry.write_vault(self._session.owner, key)
        self._let_go()
        # Neither what the server wanted last nor what was asked for then: the next sign-in begins at the beginning.
        self.current = new_sign_in(current.server, "asked", current.grant)
        self._registry.start_soon(self._renewed_flow, self.current, flow)
        self._changed()

    def _has_token(self, words: str, step: StepId) -> None:
        if self.current is None:
            raise Conflict(_NOTHING)
        if self.current.token is None:
            raise Conflict("There is no token here. Sign in first.")
        if self.current.state not in SETTLED:
            raise Conflict(_BUSY)
        able = self.current.token.refreshable if step == "refresh" else self.current.token.revocable
        if not able:
            raise Conflict(words)
        self.current.step(step).runnable = True

    # ---- what the link asks (its Credentials)

    async def header(self) -> str:
        """What proves who we are; renewed before it expires."""
        target = self._session.target
        if not isinstance(target, HttpTarget):
            return ""
        if isinstance(target.auth, Bearer):
            return f"Bearer {target.auth.token}"
        flow = self._flow
        token = None if flow is None else flow.known.token
        if flow is None or token is None:
            return ""
        able = token.refresh or isinstance(flow.auth, ClientCredentials)
        if able and token.ends_soon(self._session.wall()):
            await self._renew(flow, token.access)
            token = flow.known.token or token
        return f"Bearer {token.access}"

    def accepted(self, sent: str, *, again: bool) -> None:
        """The server is content: the next time that it is not counts anew (R5-60)."""
        if again and self.current is not None:
            self.current.attempt = 0

    async def renewed(self, refusal: Refusal) -> bool:
        """Whether a request that was refused may be sent again, with a token that is worth more."""
        target, session = self._session.target, self._session
        bearer = next((one for one in challenges(refusal.challenges) if one.is_bearer), None)
        if not isinstance(target, HttpTarget) or not self._concerns(target, refusal, bearer):
            return False
        now = await self.header()
        if now and now != refusal.sent:
            return True  # somebody was quicker
        flow = self._flow
        # A server that refuses what was just renewed would have it renewed for ever.
        token = None if flow is None or refusal.status != 401 or refusal.again else flow.known.token
        if flow is not None and token is not None and token.refresh and await self._renew(flow, token.access):
            return True
        current = self._challenged(target, refusal, bearer)
        alone = current.grant == "client_credentials" or bool(await self._kept(target))
        if session.info.state == "connecting" and not alone:
            return False
        return await self._settled(refusal)

    def _concerns(self, target: HttpTarget, refusal: Refusal, bearer: Challenge | None) -> bool:
        """Whether OAuth may help against this refusal."""
        if isinstance(target.auth, NoAuth | Bearer):
            return False
        if target.auth is None and target.own_credentials and self._flow is None:
            return False
        if refusal.status == 403:
            return bearer is not None and bearer.get("error") == "insufficient_scope"
        return bearer is not None or not challenges(refusal.challenges)

    async def _kept(self, target: HttpTarget) -> dict[str, Grant]:
        """What signing in here before has brought, so that perhaps nobody has to now; by issuer."""
        owner, key = self._session.owner, server_key(target.url)
        await self._registry.vault.bring(owner, key)
        return self._registry.vault.of(owner, key)

    async def _settled(self, refusal: Refusal) -> bool:
        """Wait until somebody has signed in, or will not; the call that waits has all the time it had before. Whoever
        starts over goes on with the same: it is waited for then."""
        with self._holding(refusal.seq), anyio.move_on_after(bounds.OAUTH_WAIT_SECONDS + bounds.OAUTH_SECONDS):
            while self.current is not None and self._goes_on(self.current):
                await self._session.events.next_of("sign-in")
        return self.current is not None and self.current.state == "signed_in"

    def _goes_on(self, current: SignIn) -> bool:
        """Whether something may still come of it. While connecting nobody waits for a person: the handshake has a time
        limit, and begins anew when they have signed in."""
        if current.state == "waiting":
            return self._session.info.state != "connecting"
        return current.state not in SETTLED

    @contextmanager
    def _holding(self, seq: int | None) -> Iterator[None]:
        calls = self._session.calls
        call = next((one for one in calls.running if one.legs and one.legs[-1].request_seq == seq), None)
        self._hold(1)
        if call is not None:
            calls.hold(call, True, for_sign_in=True)
        try:
            yield
        finally:
            self._hold(-1)
            if call is not None:
                calls.hold(call, False, for_sign_in=True)

    def _hold(self, more: int) -> None:
        """So many requests more wait for it; whoever starts over takes them along."""
        if self.current is not None:
            self.current.held = max(0, self.current.held + more)
        self._changed()

    # ---- how it runs

    def connects(self) -> None:
        """A person begins a connection: it is bare until the server has said where to sign in (S20)."""
        self._let_go()
        self.current = None
        self._changed()

    def _challenged(self, target: HttpTarget, refusal: Refusal, bearer: Challenge | None) -> SignIn:
        """A request was refused, and nothing at hand helps: sign in, once for all that were refused meanwhile."""
        before, flow = self.current, self._flow
        if before is not None and before.state not in ("signed_in", "failed", "needed"):
            return before
        reason: Reason = "scope" if refusal.status == 403 else "expired" if refusal.sent else "unauthorized"
        current = self.current = new_sign_in(target.shown_url, reason, _grant(target.auth))
        current.attempt = 0 if before is None else before.attempt
        step, exchange = current.steps[0], refusal.exchange
        step.trips.append(
            Trip(
                exchange.method,
                exchange.url,
                exchange.request_headers,
                "",
                refusal.status,
                exchange.response_headers,
                exchange=exchange.seq,
            )
        )
        current.state = "preparing"
        self._start(self._again, current, target, flow, refusal, bearer)
        return current

    async def _again(
        self, current: SignIn, target: HttpTarget, before: Flow | None, refusal: Refusal, bearer: Challenge | None
    ) -> None:
        """Sign in after a refusal, with what is known from before it: scopes are added to (R5-60), and a client serves
        again at its own issuer (R5-64)."""
        async with self._lock:
            flow = await self._new_flow(current, target)
            if flow is None:
                return
            flow.asker.hide(refusal.sent.rpartition(" ")[2], *(() if before is None else before.asker.secrets))
            flow.challenged(current.steps[0], list(refusal.challenges))
            if before is not None:
                flow.known.client, flow.known.earlier_scopes = before.known.client, before.known.earlier_scopes
                if refusal.status == 403:
                    # What it was good for it still is, whatever comes of this.
                    flow.known.token = before.known.token
                elif refusal.sent and before.known.token is not None:
                    self._registry.vault.spent(self._session.owner, server_key(target.url), before.known.issuer)
            if flow.spent:
                words = {"server": current.server, "count": current.attempt, "resource": "it"}
                issuer = "its issuer" if before is None else before.known.issuer
                flow.fail("challenge", "endless-scope" if refusal.status == 403 else "endless", issuer=issuer, **words)
                return
            await flow.run()
            self._after(flow)

    async def _run(
        self, current: SignIn, target: HttpTarget, before: Flow | None, same_client: bool, same_scopes: bool
    ) -> None:
        """Sign in because somebody wants it: the whole way, though there is a token, which serves meanwhile."""
        async with self._lock:
            flow = await self._new_flow(current, target)
            if flow is None:
                return
            flow.anew = before is not None or not same_scopes
            if before is not None:
                known, earlier = flow.known, before.known
                flow.asker.hide(*before.asker.secrets)
                known.challenge = earlier.challenge
                known.earlier_scopes = earlier.earlier_scopes if same_scopes else ()
                if same_client:
                    known.client, known.token = earlier.client, earlier.token
            heard = current.steps[0].state == "done"
            await flow.run("resource-metadata" if heard else "challenge")
            self._after(flow)

    async def _renewed_flow(self, current: SignIn, before: Flow | None) -> None:
        """A flow that has forgotten everything but where the server wants one to sign in, for steps that are run
        alone."""
        async with self._lock:
            flow = await self._new_flow(current, self._target())
            if flow is not None and before is not None:
                flow.asker.hide(*before.asker.secrets)
                flow.known.challenge = before.known.challenge
            if flow is not None:
                flow.tell()

    async def _locked(self, flow: Flow, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async with self._lock:
            if self._flow is flow:
                await work()
                self._after(flow)

    async def _renew(self, flow: Flow, refused: str) -> bool:
        """A new token without anybody; whether there is one that is not the one that was refused. It is got in a task
        of its own: whoever waits for it may go, and what a refresh token was used up for must be heard all the same."""
        if self._renewal is None:
            self._renewal = anyio.Event()
            self._session.start_soon(self._renewing, flow, refused, self._renewal)
        await self._renewal.wait()
        token = flow.known.token
        return token is not None and token.access != refused

    async def _renewing(self, flow: Flow, refused: str, over: anyio.Event) -> None:
        try:
            async with self._lock:
                token = flow.known.token
                kept = (await self._kept(self._target())).get(flow.known.issuer)
                if token is not None and token.access == refused and not flow.adopt(kept):
                    await flow.alone("token" if isinstance(flow.auth, ClientCredentials) else "refresh")
                    self._after(flow)
        finally:
            self._renewal = None
            over.set()

    async def _new_flow(self, current: SignIn, target: HttpTarget) -> Flow | None:
        """What runs the steps, loaded with the SDK on the first need of it; None when nobody wants it any more."""
        await self._registry.until_ready()
        await anyio.to_thread.run_sync(import_module, "app.protocol.oauth.flow")
        key, owner, vault = server_key(target.url), self._session.owner, self._registry.vault
        await vault.bring(owner, key)
        if self.current is not current:
            return None
        from app.protocol.oauth.asking import Asker
        from app.protocol.oauth.flow import Flow

        asker = Asker(target, self._registry.egress, self._session.messages)
        asker.hide(*target.secret_values)
        auth = target.auth if isinstance(target.auth, OAuth | ClientCredentials) else OAuth(kind="oauth")
        settings = self._registry.settings
        self._flow = Flow(
            current,
            asker,
            auth,
            self._registry.redirect_uri,
            settings.client_metadata_url or "",
            self._changed,
            self._session.wall,
            self._session.mono,
            lambda issuer: _fitting(vault.get(owner, key, issuer), auth),
            vault.keeps,
        )
        self._flow.known.mark = settings.owner_mark
        return self._flow

    def _after(self, flow: Flow) -> None:
        """What a run comes to: a browser is waited for, or there is a token, or not."""
        if self._flow is not flow or self.current is not flow.sign_in:
            return
        session, state = self._session, flow.sign_in.state
        if state == "waiting" and flow.known.state:
            self._registry.callbacks[flow.known.state] = self
            session.start_soon(self._expire, flow, flow.known.state)
        key = server_key(self._target().url)
        if flow.grant is not None and state == "signed_in":
            self._registry.vault.put(session.owner, key, flow.grant)
            self._registry.write_vault(session.owner, key)
            session.signed_in()
        elif flow.known.token is None and any(
            one.id == "revocation" and one.state == "done" for one in flow.sign_in.steps
        ):
            self._registry.vault.forget(session.owner, key, flow.known.issuer)
            self._registry.write_vault(session.owner, key)
        self._changed()

    async def _expire(self, flow: Flow, state: str) -> None:
        """Nobody came back in time."""
        await self._session.sleep(bounds.OAUTH_WAIT_SECONDS)
        if self._registry.callbacks.get(state) is self and flow.known.state == state:
            del self._registry.callbacks[state]
            flow.fail("callback", "no-answer", redirect=flow.redirect_uri)

    def _target(self) -> HttpTarget:
        target = self._session.target
        if not isinstance(target, HttpTarget) or not self._session.dials:
            raise Conflict("Only a server over HTTP is signed in to. A command gets its credentials as variables.")
        return target

    def _let_go(self) -> None:
        if self._flow is not None:
            self._registry.callbacks.pop(self._flow.known.state, None)
        self._flow = None

    def end(self) -> None:
        """The session is over: nobody may answer to it any more."""
        self._let_go()

    def _start(self, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> None:
        self._changed()
        self._session.start_soon(function, *arguments)

    def _changed(self) -> None:
        self._session.changed("sign_in.changed", "sign-in")


def _grant(auth: AnyAuth | None) -> Any:
    return "client_credentials" if isinstance(auth, ClientCredentials) else "authorization_code"


def _fitting(found: Grant | None, auth: OAuth | ClientCredentials) -> Grant | None:
    """What is kept, when it is of the client that is wanted."""
    return None if found is None or (auth.client_id and found.client.id != auth.client_id) else found
