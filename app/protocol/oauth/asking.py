"""The requests of a sign-in: each an exchange in the log and a trip in its step, with every secret masked.

Guarded more tightly than what a person typed: an address that metadata names lies no further inside the network than
the server that named it, is https unless it is on this machine, and leads nowhere else (S17, S24, R5-70).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

import anyio

from app import bounds
from app.core import links
from app.core.json.text import parse
from app.core.sign_in import Step, Trip
from app.egress import Egress, EgressError, split
from app.policy import Policy, Reach, reach_of
from app.protocol.exchanges import Exchanges, egress_trouble
from app.protocol.oauth import answers
from app.protocol.oauth.answers import Plain
from app.protocol.oauth.words import StepFailed, of_egress
from app.secrecy import MASK, masked, masked_headers, masked_url, without
from app.trust import Tls

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from app.core.log import MessageLog
    from app.core.targets import HttpTarget

_SECRET: Final = frozenset(
    {
        "access_token", "refresh_token", "id_token", "token", "client_secret", "code", "code_verifier",
        "client_assertion", "assertion", "registration_access_token",
    }
)  # fmt: skip
"""Members of what is sent and answered that nobody may see."""


@dataclass(slots=True, frozen=True)
class Reply:
    """What came back."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    value: Any
    """Its JSON; None when it is none."""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def text(self, name: str) -> str:
        """A text in its JSON object; empty when it is not there."""
        found = self.value.get(name) if isinstance(self.value, dict) else None
        return found if isinstance(found, str) else ""


@dataclass(slots=True)
class Asker:
    """Makes the requests of one sign-in."""

    target: HttpTarget
    egress: Egress
    log: MessageLog
    secrets: set[str] = field(default_factory=set)
    """What nobody may see, though a server should quote it."""
    public: set[str] = field(default_factory=set)
    """What everybody may see, though it looks as if a machine had made it: ids, addresses, scopes."""
    _reach: Reach | None = None

    def hide(self, *values: str) -> None:
        """From now on these are masked wherever they stand. Short ones stand everywhere."""
        self.secrets.update(value for value in values if len(value) >= 8)

    def shown(self, url: str) -> str:
        """An address as it may be shown."""
        return without(masked_url(url), self.secrets)[: bounds.OAUTH_NAME]

    def plain(self, *values: str) -> None:
        """These may be shown wherever they stand, unless they are secrets as well."""
        self.public.update(value for value in values if value)

    def scopes(self, scopes: Iterable[str]) -> tuple[str, ...]:
        """Scopes as they may be shown: a server may call one what it likes."""
        return tuple(self._scope(one) for one in scopes)

    def _scope(self, scope: str) -> str:
        return without(scope if not any(answers.made_runs(scope, self.public)) else MASK, self.secrets)

    # ---- which addresses

    def own(self, url: str) -> bool:
        """Whether an address is of the server itself."""
        try:
            return split(url).origin == split(self.target.url).origin
        except EgressError:
            return False

    def checked(self, url: str, name: str, *, of_server: bool = False) -> str:
        """An address that metadata named as `name`, strictly read. Raises StepFailed for what Parley does not open
        (S17): only https, and http on this machine, or with `of_server` at the server itself."""
        link = links.read(url)
        why = ""
        if link is None or link.user or urlsplit(url).fragment:
            why = "it is no plain http or https address"
        else:
            try:
                split(url)
            except EgressError as fault:
                why = fault.detail
        if not why and link is not None and link.scheme == "http" and not link.loopback:
            why = "" if of_server and self.own(url) else "it is not encrypted"
        if why:
            raise StepFailed("bad-address", name=name, found=self.shown(url)[:200] or "empty", why=why)
        return url

    async def guarded(self, url: str, name: str) -> str:
        """An address for the person's browser: checked, and held against the guard as if Parley went there itself. A
        name that only the browser can resolve passes."""
        self.checked(url, name)
        _, host, port = split(url).origin
        policy = await self._policy()
        for address in await _resolved(host, port):
            reason = policy.refusal(host, address, port)
            if reason is not None:
                raise StepFailed("bad-address", name=name, found=self.shown(url)[:200], why=reason)
        return url

    async def _policy(self) -> Policy:
        if self._reach is None:
            _, host, port = split(self.target.url).origin
            found = await _resolved(host, port)
            self._reach = reach_of(found) if found else "internet"
        known = self.egress.policy
        return Policy(known.mode, known.own_ports, self._reach, known.allowed)

    @asynccontextmanager
    async def _client(self, url: str) -> AsyncGenerator[Egress, None]:
        """The guarded client for an address. An authority that the target names vouches for the authorization server
        too; a certificate that was trusted alone is that of the server."""
        tls = self.target.tls
        if tls is not None and tls.fingerprint and not self.own(url):
            tls = None if not tls.ca else tls.model_copy(update={"fingerprint": ""})
        client = Egress(await self._policy(), None if tls is None else Tls(tls.ca, tls.fingerprint))
        try:
            yield client
        finally:
            with anyio.CancelScope(shield=True):
                await client.aclose()

    # ---- requests

    async def get(self, step: Step, url: str) -> Reply:
        """Read a document."""
        return await self._ask(step, "GET", url, [("accept", "application/json")])

    async def post_json(
        self,
        step: Step,
        url: str,
        said: dict[str, Any],
        headers: Iterable[tuple[str, str]] = (),
        plain: dict[str, Plain] | None = None,
    ) -> Reply:
        """Send a JSON object. With `plain`, no more than these members of the answer are shown."""
        content = json.dumps(said).encode()
        wanted = [("accept", "application/json"), ("content-type", "application/json"), *headers]
        return await self._ask(step, "POST", url, wanted, content, _shown_json(said, self.secrets), plain)

    async def post_form(
        self, step: Step, url: str, said: dict[str, str], headers: Iterable[tuple[str, str]] = ()
    ) -> Reply:
        """Send a form; of the answer no more is shown than is known to be no credential."""
        shown = "\n".join(f"{name}={MASK if name in _SECRET else value}" for name, value in said.items())
        kind = ("content-type", "application/x-www-form-urlencoded")
        wanted = [("accept", "application/json"), kind, *headers]
        content = urlencode(said).encode()
        return await self._ask(step, "POST", url, wanted, content, without(shown, self.secrets), answers.TOKENS)

    async def _ask(
        self,
        step: Step,
        method: str,
        url: str,
        headers: list[tuple[str, str]],
        content: bytes = b"",
        shown: str = "",
        plain: dict[str, Plain] | None = None,
    ) -> Reply:
        host = urlsplit(url).netloc
        sent = masked_headers(headers)
        seconds = bounds.OAUTH_SECONDS
        exchanges: Exchanges | None = None
        try:
            async with self._client(url) as client:
                known = None if plain is None else answers.HEADERS
                exchanges = Exchanges(client, self.log, (), self.secrets, known)
                note = f"Sign-in: {step.name}"
                with anyio.fail_after(seconds):
                    sending = exchanges.send(method, url, headers, content, note=note, connect=seconds, read=seconds)
                    async with sending as (answer, exchange):
                        raw = bytearray()
                        async for chunk in answer.body:
                            raw += chunk
                            if len(raw) > bounds.OAUTH_DOCUMENT:
                                break
        except (EgressError, TimeoutError) as fault:
            if isinstance(fault, TimeoutError):
                fault = EgressError("timeout", f"no answer within {seconds:g} s")
            words = egress_trouble(fault, url, self.secrets).message
            last = None if exchanges is None or exchanges.last is None else exchanges.last.seq
            step.trips.append(Trip(method, self.shown(url), sent, shown, error=words, exchange=last))
            raise of_egress(fault, host) from None
        too_large = len(raw) > bounds.OAUTH_DOCUMENT
        value = None if too_large else parse(bytes(raw)).value
        self._learn(value, plain)
        if plain is not None:
            text = answers.unread(bytes(raw), answer.media_type) if value is None else self._disclosed(value, plain)
        else:
            text = _shown_json(value, self.secrets) if value is not None else self._excerpt(bytes(raw))
        quoted = exchange.response_headers = tuple(
            (name, without(words, self.secrets)) for name, words in exchange.response_headers
        )
        step.trips.append(
            Trip(method, self.shown(url), sent, shown, answer.status, quoted, text, exchange=exchange.seq)
        )
        if too_large:
            raise StepFailed("too-large", host=host, limit=f"{bounds.OAUTH_DOCUMENT // 1024} KiB")
        return Reply(url, answer.status, answer.headers, value)

    def _learn(self, value: Any, plain: dict[str, Plain] | None) -> None:
        """What came is secret before anybody has looked at it."""
        if isinstance(value, dict):
            self.hide(*(found for name in _SECRET if isinstance(found := value.get(name), str)))
            if plain is answers.REGISTRATION and isinstance(found := value.get("client_id"), str):
                self.plain(*({found} - self.secrets))
        if plain is not None:
            self.hide(*answers.credentials_in(value, plain, self.public))

    def _disclosed(self, value: Any, plain: dict[str, Plain]) -> str:
        return without(answers.shown(value, plain, self.public), self.secrets)

    def _excerpt(self, raw: bytes) -> str:
        return masked(without(raw[: bounds.OAUTH_SHOWN].decode(errors="replace"), self.secrets))


def _shown_json(value: Any, secrets: Iterable[str]) -> str:
    """JSON as it may be shown."""
    text = json.dumps(_masked(value), indent=2, ensure_ascii=False, default=str)
    return without(text, secrets)[: bounds.OAUTH_SHOWN]


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: MASK if key in _SECRET and isinstance(one, str) else _masked(one) for key, one in value.items()}
    return [_masked(one) for one in value] if isinstance(value, list) else value


async def _resolved(host: str, port: int) -> list[str]:
    try:
        with anyio.fail_after(bounds.OAUTH_SECONDS):
            found = await anyio.getaddrinfo(host, port)
    except (OSError, UnicodeError, TimeoutError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
