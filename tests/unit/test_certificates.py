"""Certificates as a person compares them, held against a reader that was written by others."""

from hypothesis import example, given
from hypothesis import strategies as st

from app.core.certificates import Certificate, read
from tests.certificates import make


def test_a_certificate_says_what_another_reader_reads_in_it():
    authority = make("Kontor CA", ca=True)
    for made in (
        make("crm.kontor.example", host="crm.kontor.example"),
        make(by=authority),
        make(host="::1"),
        authority,
    ):
        found, real = read(made.der), made.certificate
        assert found.fingerprint == made.fingerprint
        assert found.subject == "O=Kontor, CN=" + real.subject.rfc4514_string().partition("CN=")[2].partition(",")[0]
        assert found.self_signed is (real.issuer == real.subject)
        assert found.not_before == real.not_valid_before_utc.timestamp()
        assert found.not_after == real.not_valid_after_utc.timestamp()
    assert read(make(host="crm.kontor.example").der).names == ("crm.kontor.example",)
    assert read(make(host="::1").der).names == ("::1",)
    assert read(make().der).names == ("127.0.0.1",)
    assert read(make(by=authority).der).issuer == "O=Kontor, CN=Kontor CA"


@given(st.binary(max_size=200))
def test_what_is_no_certificate_has_a_fingerprint_and_nothing_else(junk: bytes):
    found = read(junk)
    assert found == Certificate(found.fingerprint) and found.fingerprint.startswith("sha256:")


@given(st.integers(0, 600), st.integers(0, 255))
@example(1, 0)
def test_a_certificate_with_a_wrong_byte_is_read_as_far_as_it_goes(place: int, byte: int):
    der = bytearray(_DER)
    der[place % len(der)] = byte
    assert read(bytes(der)).fingerprint.startswith("sha256:")
    assert read(bytes(der[: place % len(der)])).fingerprint.startswith("sha256:")


_DER = make().der
