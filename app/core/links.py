"""Addresses that a server wants a person to open: which may become a link, what to warn of, and error -32042.

Nothing here opens or fetches anything: an address is judged by its letters alone (R4-41). `read` is the one decision
whether an address may become a link. It takes only what every reader of addresses understands in the same way, and
gives it back in the form a browser makes of it, so that the host a page stresses is the host that is opened (H07).
Knows no ask and no page.
"""

from __future__ import annotations

import ipaddress
import re
import string
import unicodedata
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from app import bounds
from app.core.calls import CallError, RequiredLink
from app.core.rules import catalogue
from app.core.wire import Finding

URL_ELICITATION_REQUIRED = -32042
_ADDRESS: Final = re.compile(
    r"(?P<scheme>https?)://(?:(?P<user>[A-Za-z0-9._~!$&'()*+,;=:%-]{0,500})@)?"
    r"(?P<host>\[[0-9a-f:]{2,45}\]|[^\x00-\x20\x7f/\\?#@:%\[\]<>\"'^|`{}]{1,253})"
    r"(?::(?P<port>0|[1-9][0-9]{0,4}))?(?P<rest>[/?#][^\x00-\x20\x7f]*)?",
    re.ASCII | re.IGNORECASE,
)
"""Scheme, two slashes, at most one user name, a host of letters that a host can have, a port, and the rest."""
_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*", re.ASCII)
_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)", re.ASCII)
"""A browser reads a host whose last part is a number as an IPv4 address, in six spellings."""
_AS_IT_IS: Final = string.printable
_SMALL: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


_NOT_PUBLIC: Final = frozenset(
    {"localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "onion"}
)
"""The last parts of names that only a network of its own knows."""


@dataclass(slots=True, frozen=True)
class Link:
    """An address that may be opened, as a browser writes it: all of it is ASCII, the host is in small letters."""

    href: str
    before: str
    """What stands before the host: the scheme, and a user name if there is one."""
    host: str
    after: str
    """What stands after the host: port, path, query and fragment."""
    scheme: str
    port: int | None
    user: bool
    """Whether there is a user name, which a reader may take for the host."""
    foreign: bool
    """Whether the host was written in letters of other alphabets, or stands for such letters."""
    loopback: bool
    """Whether it leads back to the machine that opens it."""


def read(url: str) -> Link | None:
    """The address as a link: http or https, strictly read. None for anything else (R4-44, S32, H07)."""
    found = _ADDRESS.fullmatch(url) if len(url) <= bounds.LINK else None
    host = _host(found["host"].translate(_SMALL)) if found else ""
    if found is None or not host:
        return None
    scheme, user, port, rest = found["scheme"].lower(), found["user"], found["port"], found["rest"] or ""
    if (port is not None and int(port) > 65_535) or "\\" in re.split("[?#]", rest, maxsplit=1)[0]:
        return None
    try:
        rest = quote(rest, safe=_AS_IT_IS)
    except UnicodeEncodeError:
        return None
    before = f"{scheme}://" + ("" if user is None else f"{user}@")
    after = ("" if port is None else f":{port}") + rest
    return Link(
        href=before + host + after,
        before=before,
        host=host,
        after=after,
        scheme=scheme,
        port=None if port is None else int(port),
        user=user is not None,
        foreign=any(label.startswith("xn--") for label in host.split(".")),
        loopback=is_loopback(host, or_any=True),
    )


def _host(written: str) -> str:
    """The host as a browser writes it; "" for one that readers may understand differently."""
    if written.startswith("["):
        return _ipv6(written[1:-1])
    try:
        host = written if written.isascii() else written.encode("idna").decode("ascii")
        # There and back it must stay the same: then nothing was mapped to another letter, and nothing dropped.
        letters = host.encode("ascii").decode("idna")
        if letters != written and (not written.isascii() or letters.encode("idna").decode("ascii") != written):
            return ""
        if not _NAME.fullmatch(host) or not _spelled(letters):
            return ""
    except UnicodeError:
        return ""
    if not _NUMBER.fullmatch(host):
        return host
    try:
        return str(ipaddress.IPv4Address(host))
    except ValueError:
        return ""


def _spelled(letters: str) -> bool:
    """Whether other alphabets give it letters only, and no sign that looks like a slash."""
    return all(one.isascii() or one.isalnum() or unicodedata.category(one)[0] == "M" for one in letters)


def _ipv6(written: str) -> str:
    try:
        address = ipaddress.IPv6Address(written)
    except ValueError:
        return ""
    # An IPv4 address in disguise is written in two ways; nobody needs it in a link.
    return "" if address.ipv4_mapped is not None else f"[{address.compressed}]"


def is_loopback(host: str, *, or_any: bool = False) -> bool:
    """Whether a host is this machine, to itself alone; with `or_any`, also the address that stands for all it has."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback or (or_any and address.is_unspecified)


def is_public_name(host: str) -> bool:
    """Whether a name may be of somebody in the world: not one of this machine or of a network without a registry."""
    *rest, last = host.rstrip(".").split(".")
    return bool(rest) and last not in _NOT_PUBLIC and (rest[-1], last) != ("home", "arpa")


def url_findings(url: str) -> list[Finding]:
    """What to warn of before a person opens an address (R4-43)."""
    link = read(url)
    if link is None:
        return [_why_not(url)]
    findings = []
    if link.user:
        findings.append(catalogue.link_with_user())
    if link.foreign:
        findings.append(catalogue.link_foreign(host=link.host))
    if link.scheme == "http" and not link.loopback:
        findings.append(catalogue.link_unencrypted())
    if link.port not in (None, 80, 443) and not link.loopback:
        findings.append(catalogue.link_port(port=link.port))
    return findings


def _why_not(url: str) -> Finding:
    if not url[:8].lower().startswith(("http://", "https://")):
        return catalogue.link_not_web()
    return catalogue.link_ambiguous()


def required_links(error: CallError) -> tuple[list[RequiredLink], list[Finding]]:
    """What error -32042 wants opened before the call is tried again, and what is wrong with how it says so (R4-48).

    No other error has any. An entry that cannot be read is a finding, never a link."""
    if error.code != URL_ELICITATION_REQUIRED:
        return [], []
    listed = error.data.get("elicitations") if isinstance(error.data, dict) else None
    if not isinstance(listed, list) or not listed:
        return [], [catalogue.links_missing()]
    links: list[RequiredLink] = []
    findings: list[Finding] = []
    for at, entry in enumerate(listed[: bounds.REQUIRED_LINKS]):
        problem = _problem(entry)
        if problem:
            findings.append(catalogue.links_entry_broken(at=at, problem=problem))
            continue
        message = entry.get("message")
        if not isinstance(message, str):
            findings.append(catalogue.links_entry_wordless(at=at))
        links.append(RequiredLink(entry["elicitationId"], message if isinstance(message, str) else "", entry["url"]))
    if len(listed) > bounds.REQUIRED_LINKS:
        findings.append(catalogue.links_too_many(count=len(listed), most=bounds.REQUIRED_LINKS))
    return links, findings


def _problem(entry: Any) -> str:
    if not isinstance(entry, dict):
        return "is no object."
    if entry.get("mode") != "url":
        return "is no elicitation in url mode."
    if not isinstance(entry.get("url"), str):
        return "has no `url`."
    if not isinstance(entry.get("elicitationId"), str):
        return "has no `elicitationId`."
    return ""
