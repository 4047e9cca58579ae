"""Signing in by OpenID Connect: the code flow with PKCE, and every check between a provider's answer and a login here.

What a sign-in has to remember (state, nonce, verifier) is sealed into a cookie of the browser that began it, so that
nobody else can finish it, and no stranger fills our memory. All replicas of a team seal with a key made of their common
one, so the browser may come back to any of them; the store knows which answers were used. The provider is asked through
the guarded way out, which may lead inwards to the issuer that an admin named and to nothing else. Its tokens are looked
at once and kept nowhere. Imported only where `[oidc]` is set.
"""

from __future__ import annotations

import hmac
import json
import logging
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus, urlsplit

import anyio
from authlib.common.security import generate_token
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import get_well_known_url
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from joserfc import jwt
from joserfc.errors import ExpiredTokenError, InvalidClaimError, JoseError, MissingClaimError
from joserfc.jwk import KeySet

from app import team_bounds as bounds
from app.core.catalogue import Role
from app.core.errors import ParleyError
from app.core.people import plain_name, same
from app.egress import Egress, EgressError
from app.team_oidc import Oidc

logger = logging.getLogger("parley.team")

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures by a key that only the issuer has: none with a secret that is shared, and never no signature."""
_RANK: Final[tuple[Role, ...]] = ("viewer", "user", "admin")


class NotVouched(ParleyError):
    """Nobody is let in by this answer. `why` is for the audit log, in a few words."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass(slots=True, frozen=True)
class Vouched:
    """Somebody whom the provider vouches for."""

    subject: str
    name: str
    role: Role
    decides: bool
    """Whether the provider decides the role each time, and not only the first time."""


@dataclass(slots=True, frozen=True)
class _Begun:
    state: str
    nonce: str
    verifier: str


class Provider:
    """The provider of one team."""

    def __init__(
        self,
        oidc: Oidc,
        secret: str,
        redirect_uri: str,
        egress: Egress,
        keys: str,
        once: Callable[[str, float], Awaitable[bool]],
    ) -> None:
        self._oidc, self._secret, self._redirect_uri, self._egress = oidc, secret, redirect_uri, egress
        self._seal = MultiFernet([Fernet(_own_key(one)) for one in keys.split()])
        self._once = once
        """Whether a state comes back for the first time: each counts once."""
        self._found: dict[str, Any] = {}
        self._found_at = self._keys_at = -bounds.OIDC_SECONDS
        self._keys: KeySet | None = None
        self._looking = anyio.Lock()

    async def aclose(self) -> None:
        await self._egress.aclose()

    # ---- the beginning

    async def begin(self) -> tuple[str, str]:
        """Where a browser goes to sign in, and what it has to bring back. Raises NotVouched."""
        found = await self._metadata()
        begun = _Begun(generate_token(48), generate_token(48), generate_token(64))
        address = prepare_grant_uri(
            found["authorization_endpoint"],
            self._oidc.client_id,
            "code",
            redirect_uri=self._redirect_uri,
            scope=" ".join(self._oidc.scopes),
            state=begun.state,
            nonce=begun.nonce,
            code_challenge=create_s256_code_challenge(begun.verifier),
            code_challenge_method="S256",
        )
        kept = json.dumps([begun.state, begun.nonce, begun.verifier])
        return str(address), self._seal.encrypt(kept.encode()).decode()

    # ---- the end

    async def finish(self, query: Mapping[str, str], sealed: str) -> Vouched:
        """Who came back, by the answer that their browser brought. Raises NotVouched, a sentence for each reason."""
        begun = self._opened(sealed)
        if not same(query.get("state", ""), begun.state):
            words = "The answer does not belong to the sign-in that this browser began. Sign in again."
            raise NotVouched(words, "a wrong state")
        if not await self._once(begun.state, bounds.OIDC_BEGUN_SECONDS):
            raise NotVouched("This answer was used already: each works once. Sign in again.", "a used state")
        found = await self._metadata()
        said = query.get("iss")
        if said is None and found.get("authorization_response_iss_parameter_supported") is True:
            raise _other_issuer("names no issuer")
        if said is not None and said != self._oidc.issuer:
            raise _other_issuer("names another issuer")
        if query.get("error"):
            code = "".join(char for char in query["error"] if char.isalnum() or char == "_")[:60]
            raise NotVouched(f"The sign-in service did not let you in ({code}). Sign in again.", f"refused: {code}")
        if not query.get("code"):
            raise NotVouched("The answer of the sign-in service has no code. Sign in again.", "no code")
        answer = await self._redeemed(found, query["code"], begun.verifier)
        return self._judged(await self._claims(found, answer, begun.nonce))

    def _opened(self, sealed: str) -> _Begun:
        try:
            kept = json.loads(self._seal.decrypt(sealed.encode("ascii", "replace"), bounds.OIDC_BEGUN_SECONDS))
        except (InvalidToken, ValueError):
            words = "This browser did not begin a sign-in here, or it took more than ten minutes. Sign in again."
            raise NotVouched(words, "no sign-in was begun") from None
        return _Begun(*kept)

    async def _redeemed(self, found: Mapping[str, Any], code: str, verifier: str) -> dict[str, Any]:
        """Exchange the code, once, with the proof that it was us who asked for it."""
        methods = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        more, headers = {}, [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")]
        if self._secret and "client_secret_basic" in methods:
            pair = f"{quote_plus(self._oidc.client_id)}:{quote_plus(self._secret)}"
            headers.append(("authorization", f"Basic {b64encode(pair.encode()).decode()}"))
        elif self._secret:
            more = {"client_id": self._oidc.client_id, "client_secret": self._secret}
        else:
            more = {"client_id": self._oidc.client_id}
        body = prepare_token_request(
            "authorization_code", redirect_uri=self._redirect_uri, code=code, code_verifier=verifier, **more
        )
        status, answer = await self._asked("POST", found["token_endpoint"], headers, body.encode())
        if status == 200:
            return answer
        if answer.get("error") == "invalid_grant":
            words = "The code of this sign-in was used already, or is too old. Sign in again."
            raise NotVouched(words, "a code that was used or is too old")
        logger.warning("the token endpoint answered %d", status)
        raise NotVouched("The sign-in service does not accept this Parley. Tell an admin.", f"token endpoint: {status}")

    # ---- the ID token

    async def _claims(self, found: Mapping[str, Any], answer: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """What the ID token says, when all of it is as it must be."""
        text = answer.get("id_token")
        if not isinstance(text, str):
            raise NotVouched("The sign-in service does not say who you are. Tell an admin.", "no ID token")
        token = await self._signed(found, text)
        options = {
            "iss": {"essential": True, "value": self._oidc.issuer},
            "aud": {"essential": True, "value": self._oidc.client_id},
        }
        params = {"nonce": nonce, "client_id": self._oidc.client_id, "access_token": answer.get("access_token")}
        claims = CodeIDToken(token.claims, token.header, options, params)
        try:
            claims.validate(leeway=bounds.OIDC_LEEWAY)
        except ExpiredTokenError:
            words = "What the sign-in service says of you has expired already. Are the clocks right? Sign in again."
            raise NotVouched(words, "an expired ID token") from None
        except (InvalidClaimError, MissingClaimError) as fault:
            claim = str(fault.claim)
            if claim == "iss":
                raise _other_issuer("is of another issuer") from None
            words = {
                "nonce": "The answer belongs to another sign-in than this one. Sign in again.",
                "aud": "The answer was made for another application than this Parley. Tell an admin.",
                "azp": "The answer was made for another application than this Parley. Tell an admin.",
            }.get(claim, "The answer of the sign-in service is not whole. Tell an admin.")
            raise NotVouched(words, f"a wrong {claim}") from None
        except (JoseError, ValueError, TypeError):
            words = "The answer of the sign-in service is not whole. Tell an admin."
            raise NotVouched(words, "a bad ID token") from None
        return dict(claims)

    async def _signed(self, found: Mapping[str, Any], text: str) -> jwt.Token:
        """The token, when a key of the issuer signed it. Keys are asked for again when it may have a new one."""
        for again in (False, True):
            keys = await self._key_set(found["jwks_uri"], again=again)
            try:
                return jwt.decode(text, keys, algorithms=list(ALGORITHMS))
            except (JoseError, ValueError, TypeError, KeyError):
                continue
        words = "The answer is not signed with a key of the sign-in service. Tell an admin."
        raise NotVouched(words, "a wrong signature")

    def _judged(self, claims: Mapping[str, Any]) -> Vouched:
        """Whether they are among those who are let in, and as what."""
        oidc, sub = self._oidc, claims.get("sub")
        if not isinstance(sub, str) or not sub or len(sub) > 255:
            raise NotVouched("The sign-in service does not say who you are. Tell an admin.", "no sub")
        mail = claims.get("email") if claims.get("email_verified") is True else None
        mail = mail.lower() if isinstance(mail, str) else ""
        role: Role | None = oidc.role
        if oidc.role_claim:
            value = claims.get(oidc.role_claim)
            listed = value if isinstance(value, list) else [value]
            had = [oidc.roles[one] for one in listed if isinstance(one, str) and one in oidc.roles]
            role = max(had, key=_RANK.index, default=None)
        elif sub in oidc.admins or (mail and mail in {one.lower() for one in oidc.admins}):
            role = "admin"
        wanted = {one.lower().lstrip("@") for one in oidc.allowed_domains}
        if role is None or (wanted and mail.rpartition("@")[2] not in wanted):
            words = "Your account is not one of those that are let in here. Ask an admin of this Parley."
            raise NotVouched(words, "an account that is not let in")
        names = [claims.get(oidc.name_claim), claims.get("preferred_username"), mail, sub]
        name = next((one for one in names if isinstance(one, str) and one.strip()), sub)
        shown = "".join(char if char.isprintable() else " " for char in name)[: bounds.PERSON_NAME].strip() or sub[:40]
        return Vouched(f"{oidc.issuer} {sub}", plain_name(shown), role, bool(oidc.role_claim))

    # ---- what the provider says of itself

    async def _metadata(self) -> dict[str, Any]:
        """Its discovery document, which is asked for once in a while."""
        async with self._looking:
            if time.monotonic() - self._found_at >= bounds.OIDC_SECONDS:
                address = get_well_known_url(self._oidc.issuer, external=True)
                status, found = await self._asked("GET", address, [("accept", "application/json")])
                if status != 200:
                    logger.warning("the discovery document of the provider answered %d", status)
                    raise _unreachable()
                self._check(found)
                self._found, self._found_at = found, time.monotonic()
            return self._found

    def _check(self, found: Mapping[str, Any]) -> None:
        if found.get("issuer") != self._oidc.issuer:
            raise _other_issuer("is of another issuer")
        plain = urlsplit(self._oidc.issuer).scheme == "http"  # then the issuer is this machine
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            value = found.get(name)
            parts = urlsplit(value) if isinstance(value, str) and value.isascii() and value.isprintable() else None
            if parts is None or not parts.hostname or parts.scheme not in ({"https", "http"} if plain else {"https"}):
                logger.warning("the discovery document of the provider has no usable %s", name)
                raise NotVouched("The sign-in service is not set up right. Tell an admin.", f"no usable {name}")
        methods = found.get("code_challenge_methods_supported")
        if isinstance(methods, list) and "S256" not in methods:
            raise NotVouched("The sign-in service does not know PKCE (S256). Tell an admin.", "no PKCE")

    async def _key_set(self, address: str, *, again: bool) -> KeySet:
        async with self._looking:
            old = time.monotonic() - self._keys_at
            if self._keys is None or old >= bounds.OIDC_SECONDS or (again and old >= bounds.OIDC_KEYS_SECONDS):
                status, found = await self._asked("GET", address, [("accept", "application/json")])
                try:
                    if status != 200:
                        raise ValueError(status)
                    self._keys = KeySet.import_key_set(found)  # type: ignore[arg-type]
                except (JoseError, ValueError, TypeError, KeyError):
                    logger.warning("the keys of the provider cannot be used")
                    raise _unreachable() from None
                self._keys_at = time.monotonic()
            return self._keys

    async def _asked(
        self, method: str, url: str, headers: list[tuple[str, str]], content: bytes = b""
    ) -> tuple[int, dict[str, Any]]:
        """One request to the provider, whose answer is a small JSON object. Raises NotVouched."""
        body = b""
        try:
            with anyio.fail_after(bounds.OIDC_ASKED_SECONDS):
                async with self._egress.request(method, url, headers, content, connect=10.0, read=10.0) as answer:
                    async for chunk in answer.body:
                        body += chunk
                        if len(body) > bounds.OIDC_ANSWER:
                            raise ValueError("too large")
                    status = answer.status
            found = json.loads(body) if body else {}
        except (EgressError, TimeoutError) as fault:
            logger.warning("the sign-in service cannot be reached: %s", getattr(fault, "detail", "no answer in time"))
            raise _unreachable() from None
        except (ValueError, RecursionError):
            found, status = {}, 502
        return status, found if isinstance(found, dict) else {}


def _own_key(key: str) -> bytes:
    """A key for this purpose alone, made of the one that the team has: nothing else that is sealed opens here."""
    return urlsafe_b64encode(hmac.digest(key.encode(), b"parley: a sign-in that was begun", "sha256"))


def _other_issuer(why: str) -> NotVouched:
    words = "The answer comes from another issuer than the one that this Parley trusts. Tell an admin."
    return NotVouched(words, f"an answer that {why}")


def _unreachable() -> NotVouched:
    return NotVouched("The sign-in service does not answer. Try again in a while, or tell an admin.", "no answer")
