"""Whom a TLS client believes: the authorities of this machine, further ones, or one certificate alone.

Knows TLS; knows no address and no HTTP.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
from dataclasses import dataclass
from typing import TypeVar

_Context = TypeVar("_Context", bound=ssl.SSLContext)


@dataclass(slots=True, frozen=True)
class Tls:
    """How a server proves who it is, beyond the authorities that this machine trusts."""

    ca: str = ""
    """Certificates of further authorities, as PEM. All else is checked as ever."""
    fingerprint: str = ""
    """`sha256:` and the digest of the one certificate to accept. Nothing else of it is checked then."""


class Pinned(ssl.SSLContext):
    """A context that leaves the certificate to whoever holds it against a fingerprint. That the server has the key of
    it is part of every handshake."""

    fingerprint = ""

    def takes(self, shown: bytes) -> bool:
        """Whether a certificate is the one."""
        return hmac.compare_digest(f"sha256:{hashlib.sha256(shown).hexdigest()}", self.fingerprint)


def shown_by(connection: ssl.SSLObject | None) -> bytes:
    """The certificate at the other end of a connection; empty when there is none."""
    return (None if connection is None else connection.getpeercert(binary_form=True)) or b""


def looking() -> ssl.SSLContext:
    """A context that takes any certificate: to look at it, and for nothing else."""
    return _unchecking(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _unchecking(context: _Context) -> _Context:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def context_of(tls: Tls) -> ssl.SSLContext:
    """What a client holds certificates against."""
    if tls.fingerprint:
        pinned = _unchecking(Pinned(ssl.PROTOCOL_TLS_CLIENT))
        pinned.fingerprint = tls.fingerprint
        return pinned
    context = ssl.create_default_context()
    if tls.ca:
        context.load_verify_locations(cadata=tls.ca)
        # What is named by hand is trusted as it is, also where Python 3.13 is stricter than the authority's software.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
