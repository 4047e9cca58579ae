"""What a certificate says of itself: whose it is, who signed it, from when to when, and its fingerprint.

A reader of the few fields of X.509 that a person compares, written by hand: the standard library tells them only of a
certificate that it has verified, and this is for those that it refused. Bounded by the bytes it is given; what cannot
be read is left empty. It decides nothing. Knows no connection and no page.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_SHOWN: Final = 200
_NAMES: Final = {
    b"\x55\x04\x03": "CN",
    b"\x55\x04\x0a": "O",
    b"\x55\x04\x0b": "OU",
    b"\x55\x04\x06": "C",
    b"\x55\x04\x08": "ST",
    b"\x55\x04\x07": "L",
}
_ALTERNATIVES: Final = b"\x55\x1d\x11"
_SEQUENCE, _OBJECT, _OCTETS, _UTC, _VERSION, _EXTENSIONS = 0x30, 0x06, 0x04, 0x17, 0xA0, 0xA3
_DNS, _ADDRESS = 0x82, 0x87


@dataclass(slots=True, frozen=True)
class Certificate:
    """The fields that a person compares; empty where they cannot be read."""

    fingerprint: str
    """`sha256:` and 64 hexadecimal digits, over all of its bytes."""
    subject: str = ""
    issuer: str = ""
    not_before: float | None = None
    not_after: float | None = None
    names: tuple[str, ...] = ()
    """The hosts that it is for."""

    @property
    def self_signed(self) -> bool:
        return bool(self.subject) and self.subject == self.issuer


def read(der: bytes) -> Certificate:
    """What this certificate says."""
    fingerprint = f"sha256:{hashlib.sha256(der).hexdigest()}"
    try:
        return _read(der, fingerprint)
    except (ValueError, IndexError, OverflowError):
        return Certificate(fingerprint)


def _read(der: bytes, fingerprint: str) -> Certificate:
    signed = _only(_only(der, _SEQUENCE), _SEQUENCE)
    parts = list(_items(signed))
    parts = parts[1:] if parts[0][0] == _VERSION else parts
    _serial, _algorithm, issuer, validity, subject, *rest = parts
    begins, ends = (_moment(tag, body) for tag, body in _items(validity[1]))
    names: list[str] = []
    for tag, body in rest:
        if tag == _EXTENSIONS:
            names = _alternatives(_only(body, _SEQUENCE))
    return Certificate(fingerprint, _name(subject[1]), _name(issuer[1]), begins, ends, tuple(names[:20]))


def _items(body: bytes) -> Iterator[tuple[int, bytes]]:
    """The values that stand one after the other: the tag of each, and what is in it."""
    at = 0
    while at < len(body):
        tag, size = body[at], body[at + 1]
        at += 2
        if size & 0x80:
            many = size & 0x7F
            if not 1 <= many <= 4:
                raise ValueError("not DER")
            size, at = int.from_bytes(body[at : at + many]), at + many
        if at + size > len(body):
            raise ValueError("cut short")
        yield tag, body[at : at + size]
        at += size


def _only(body: bytes, tag: int) -> bytes:
    found = next(_items(body), None)
    if found is None or found[0] != tag:
        raise ValueError("another kind of value")
    return found[1]


def _name(body: bytes) -> str:
    """A distinguished name in the order that it has, like `C=DE, O=Acme, CN=acme.example`."""
    said = []
    for _, group in _items(body):
        for _, pair in _items(group):
            (_, kind), (tag, value) = _items(pair)
            text = value.decode("utf-16-be" if tag == 0x1E else "utf-8", errors="replace")
            said.append(f"{_NAMES[kind]}={text}" if kind in _NAMES else text)
    return ", ".join(said)[:_SHOWN]


def _moment(tag: int, body: bytes) -> float:
    """A time of a certificate, which is always in UTC: with two digits of a year up to 2049, then with four."""
    text = body.decode("ascii")
    if tag == _UTC:
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _alternatives(body: bytes) -> list[str]:
    """The names of the hosts, from the extension that holds them."""
    found: list[str] = []
    for _, extension in _items(body):
        parts = list(_items(extension))
        if parts[0] != (_OBJECT, _ALTERNATIVES) or parts[-1][0] != _OCTETS:
            continue
        for tag, value in _items(_only(parts[-1][1], _SEQUENCE)):
            if tag == _DNS:
                found.append(value.decode("ascii", errors="replace")[:_SHOWN])
            elif tag == _ADDRESS and len(value) in (4, 16):
                found.append(str(ipaddress.ip_address(value)))
    return found
