"""Why there is no connection, and what can be done about it right there: a token, a certificate, another address.

The fault of a session, for the page that shows it and for the home page after a first connect that failed. Nothing that
a server names here is fetched: an address is text, or a link by the rules for links.
"""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from app.core import links
from app.core.certificates import Certificate
from app.core.challenges import Challenge
from app.core.errors import Trouble, last_line
from app.core.targets import HttpTarget
from app.core.times import moment
from app.policy import Policy
from app.secrecy import masked_url, without
from app.sessions import Session, Workspace

_WORDS = {
    "realm": "Realm",
    "scope": "Scope",
    "error": "Error",
    "error_description": "Details",
    "resource_metadata": "Metadata",
}
_IN_PROSE = frozenset({"realm", "error_description"})
_LINES = 3
_NOT_FOUND = 127
"""With this a shell says that there is no such program."""


class Row(NamedTuple):
    """One line of what a server says of itself."""

    name: str
    value: str
    code: bool = False
    href: str = ""


class Elsewhere(NamedTuple):
    """Where a server sends us, with its host apart, and the digest that says yes to it."""

    before: str
    host: str
    after: str
    digest: str
    keeps_secrets: bool
    """Whether no secret header is left behind: there is none, or it is of the same origin."""


@dataclass(slots=True, frozen=True)
class Fault:
    """What went wrong with the connection of a session."""

    session: Workspace
    trouble: Trouble

    @property
    def base(self) -> str:
        return self.session.base

    @property
    def heading(self) -> str:
        return self.trouble.heading or self.trouble.message.removesuffix(".")

    @property
    def more(self) -> str:
        """What is to be said besides the heading; a reason that stands there is not said again."""
        more, reason = self.trouble.more, self.heading.partition(": ")[2]
        return more.removesuffix(f": {reason}.") + "." if reason and more.endswith(f": {reason}.") else more

    @property
    def advice(self) -> str:
        """What to do, as far as no button here does it."""
        ended, told = self.trouble.exit_code, bool(self.trouble.last_words)
        if ended not in (None, _NOT_FOUND) and not told:
            return "It wrote nothing to stderr. Connect again."
        told = told and ended is not None
        return "" if told or self.asks_token or self.signs_in or self.elsewhere else self.trouble.advice

    @property
    def has_remedy(self) -> bool:
        """Whether something can be done here that helps more than to connect again."""
        return self.asks_token or self.signs_in or self.trouble.certificate is not None or self.elsewhere is not None

    @property
    def is_client(self) -> bool:
        """Whether this session can connect; a recording cannot."""
        return isinstance(self.session, Session)

    @property
    def is_http(self) -> bool:
        return isinstance(self.session.target, HttpTarget)

    @property
    def last_lines(self) -> list[str]:
        """The last lines on stderr that say something, for a banner."""
        return [line for line in self.trouble.last_words.splitlines() if line.strip()][-_LINES:]

    @property
    def says_why(self) -> bool:
        """Whether the last line of stderr is part of the heading already."""
        line = last_line(self.trouble.last_words)
        return bool(line) and line in self.trouble.heading

    # ---- who may come in

    @property
    def asks_token(self) -> bool:
        """Whether a token may help: the server said so, or said 401 and nothing else."""
        if not self.is_client or not self.is_http or self.trouble.kind not in ("http-401", "http-403"):
            return False
        if self.signs_in:
            return False
        wanted = self.trouble.challenges
        return any(one.is_bearer for one in wanted) if wanted else self.trouble.kind == "http-401"

    @property
    def signs_in(self) -> bool:
        """Whether a sign-in is under way that may help; its card takes a token too."""
        found = self.session.sign_in.current
        return found is not None and found.open and self.trouble.kind in ("http-401", "http-403")

    @property
    def is_calm(self) -> bool:
        """Whether nothing is wrong: the server wants to know who it is, and a person can say so."""
        found = self.session.sign_in.current
        return self.signs_in and found is not None and found.state != "failed"

    @property
    def wants_credentials(self) -> bool:
        return self.trouble.kind == "http-401" or bool(self.trouble.challenges)

    @property
    def tables(self) -> list[list[Row]]:
        """What the server wants to be shown: one table for each challenge, after the host that says so."""
        target = self.session.target
        host = urlsplit(self.session.info.moved_to or target.url).netloc if isinstance(target, HttpTarget) else ""
        where = "" if not isinstance(target, HttpTarget) else self.session.info.moved_to or target.url
        tables = [_challenge_rows(one, where, self.session.own_ports) for one in self.trouble.challenges]
        if self.wants_credentials and host:
            server = Row("Server", masked_url(f"//{host}").removeprefix("//"), code=True)
            tables = [[server, *(tables[0] if tables else [])], *tables[1:]]
        return tables

    # ---- where else to go

    @property
    def elsewhere(self) -> Elsewhere | None:
        """The address of a redirect, when it can be dialled."""
        target, link = self.session.target, links.read(self.trouble.redirect)
        if not self.is_client or link is None or link.user or not isinstance(target, HttpTarget):
            return None
        shown = without(masked_url(link.href), target.secret_values)
        at = len(link.before)
        after = shown[at + len(link.host) :]
        same = not target.secret_names or origin(self.trouble.redirect) == origin(target.url)
        return Elsewhere(link.before, link.host, after, digest_of(self.trouble.redirect), same)

    # ---- whom to believe

    @property
    def certificate(self) -> list[Row]:
        """What the certificate says that was not trusted."""
        shown = self.trouble.certificate
        return [] if shown is None else _certificate_rows(shown)

    @property
    def replaced(self) -> bool:
        """Whether it stands in the place of one that was trusted."""
        target = self.session.target
        return isinstance(target, HttpTarget) and target.tls is not None and bool(target.tls.fingerprint)


def fault_of(session: Workspace) -> Fault | None:
    """What went wrong with its connection; None when nothing did."""
    return None if session.info.trouble is None else Fault(session, session.info.trouble)


def digest_of(url: str) -> str:
    """What a button says instead of an address, so that its secrets stay here."""
    return hashlib.sha256(url.encode(errors="replace")).hexdigest()[:32]


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an address that can be read."""
    parts = urlsplit(url)
    default = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or default


def _challenge_rows(one: Challenge, server: str, own_ports: set[int]) -> list[Row]:
    rows = [Row("Scheme", one.scheme)]
    for name in [*_WORDS, *dict.fromkeys(name for name, _ in one.parameters if name not in _WORDS)]:
        value = one.get(name)
        if value:
            href = _metadata_link(value, server, own_ports) if name == "resource_metadata" else ""
            rows.append(Row(_WORDS.get(name, name), value, code=name not in _IN_PROSE, href=href))
    return rows


def _metadata_link(value: str, server: str, own_ports: set[int]) -> str:
    """The address as a link, when a person may follow it: strictly read, without a user, encrypted unless the server is
    not, and to a public address unless the server is there too. Never to Parley itself."""
    link = links.read(value)
    if link is None or link.user:
        return ""
    scheme, host, _ = origin(server)
    there = link.host in (host, f"[{host}]") or (link.loopback and links.is_loopback(host))
    if link.scheme == "http" and not (there and scheme == "http"):
        return ""
    port = link.port or {"https": 443, "http": 80}[link.scheme]
    try:
        address = str(ipaddress.ip_address(link.host.strip("[]")))
    except ValueError:
        if not link.loopback:
            return link.href if there or links.is_public_name(link.host) else ""
        address = "127.0.0.1"
    return "" if Policy("local" if there else "team", own_ports).refusal(link.host, address, port) else link.href


def _certificate_rows(shown: Certificate) -> list[Row]:
    digits = shown.fingerprint.removeprefix("sha256:").upper()
    rows = [
        Row("Subject", shown.subject or "cannot be read"),
        Row("Issuer", f"{shown.issuer} (itself)" if shown.self_signed else shown.issuer or "cannot be read"),
    ]
    if shown.names:
        rows.append(Row("For", ", ".join(shown.names), code=True))
    if shown.not_before is not None and shown.not_after is not None:
        rows.append(Row("Valid", f"{moment(shown.not_before):%Y-%m-%d} to {moment(shown.not_after):%Y-%m-%d}"))
    rows.append(Row("SHA-256", ":".join(digits[at : at + 2] for at in range(0, len(digits), 2)), code=True))
    return rows
