"""Certificates for peers of tests, made when they are needed: self-signed, of an authority, expired, for others."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Made:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def fingerprint(self) -> str:
        return f"sha256:{self.certificate.fingerprint(hashes.SHA256()).hex()}"

    def files(self, folder: Path) -> list[str]:
        """Where a server finds both."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cert.pem").write_text(self.pem)
        plain = serialization.NoEncryption()
        (folder / "key.pem").write_bytes(
            self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        )
        return [str(folder / "cert.pem"), str(folder / "key.pem")]


def make(
    name: str = "127.0.0.1", *, host: str = "127.0.0.1", by: Made | None = None, ca: bool = False, days: int = 1
) -> Made:
    """A certificate for `host`, signed by an authority or by itself; with negative `days` it has expired."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Kontor"), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )
    now = datetime.datetime.now(datetime.UTC)
    end = now + datetime.timedelta(days=days)
    try:
        named: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        named = x509.DNSName(host)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if by is None else by.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - datetime.timedelta(days=2))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if not ca:
        builder = builder.add_extension(x509.SubjectAlternativeName([named]), critical=False)
    return Made(builder.sign(key if by is None else by.key, hashes.SHA256()), key)
