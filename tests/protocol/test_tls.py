"""Whom a connection believes: a private authority, one certificate, nobody else. Real peers that speak TLS."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.core.errors import Trouble
from app.core.targets import HttpTarget, Tls, target_digest
from app.export.snippets import Wire, as_curl, as_python
from app.sessions import Session
from app.store import without_secrets
from tests.certificates import Made, make
from tests.drive import call_tool, connect, connected, echoes
from tests.drive_http import Peer, raw_peer

pytestmark = pytest.mark.requirement("U-M13")


def target(peer: Peer, transport: Any = "http", **tls: str) -> HttpTarget:
    path = "/mcp" if transport == "http" else "/sse"
    return HttpTarget(transport=transport, url=f"https://127.0.0.1:{peer.port}{path}", tls=Tls(**tls) if tls else None)


def refused(session: Session) -> Trouble:
    assert session.info.state == "lost" and session.info.trouble is not None
    assert session.info.trouble.kind == "tls"
    return session.info.trouble


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_private_authority_is_trusted_besides_those_of_the_machine(
    session: Session, tmp_path: Path, transport: str
):
    authority = make("Kontor CA", ca=True)
    async with raw_peer(tls=make(by=authority).files(tmp_path)) as peer:
        await connect(session, target(peer, transport))
        assert "unable to get local issuer certificate" in refused(session).message
        await connected(session, target(peer, transport, ca=authority.pem))
        await echoes(session)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"host": "another.example"}, "IP address mismatch"),
        ({"days": -1}, "certificate has expired"),
    ],
)
async def test_with_a_private_authority_name_and_dates_are_checked_as_ever(
    session: Session, tmp_path: Path, made: dict[str, Any], words: str
):
    authority = make("Kontor CA", ca=True)
    leaf = make(by=authority, **made)
    async with raw_peer(tls=leaf.files(tmp_path)) as peer:
        await connect(session, target(peer, ca=authority.pem))
        trouble = refused(session)
        assert words in trouble.message
        assert trouble.certificate is not None and trouble.certificate.fingerprint == leaf.fingerprint
        assert peer.requests() == [], "not a byte of HTTP reached a server that is not trusted"


async def test_another_authority_vouches_for_nobody(session: Session, tmp_path: Path):
    async with raw_peer(tls=make(by=make("Kontor CA", ca=True)).files(tmp_path)) as peer:
        await connect(session, target(peer, ca=make("Kontor CA", ca=True).pem))
        assert refused(session).certificate is not None


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("made", [{}, {"host": "another.example"}, {"days": -1}])
async def test_a_fingerprint_takes_the_place_of_every_other_check(
    session: Session, tmp_path: Path, made: dict[str, Any], transport: str
):
    leaf = make(**made)
    async with raw_peer(tls=leaf.files(tmp_path)) as peer:
        await connect(session, target(peer, transport))
        assert refused(session).certificate is not None
        await connected(session, target(peer, transport, fingerprint=leaf.fingerprint))
        await echoes(session)


async def test_the_refused_certificate_is_shown_with_what_a_person_compares(session: Session, tmp_path: Path):
    leaf = make("crm.kontor.example")
    async with raw_peer(tls=leaf.files(tmp_path)) as peer:
        await connect(session, target(peer))
        shown = refused(session).certificate
        assert shown is not None
        assert (shown.subject, shown.issuer) == ("O=Kontor, CN=crm.kontor.example",) * 2
        assert shown.fingerprint == leaf.fingerprint and shown.names == ("127.0.0.1",)
        assert peer.requests() == []


async def test_another_certificate_than_the_trusted_one_is_refused_in_words_and_gets_nothing(
    session: Session, tmp_path: Path
):
    """As when somebody stands in between, or the server was given a new one."""
    trusted, other = make(), make()
    token = "a-token-that-nobody-else-may-see"
    async with raw_peer(tls=trusted.files(tmp_path / "a")) as peer:
        await connected(session, target(peer, fingerprint=trusted.fingerprint))
        await session.disconnect()
    async with raw_peer(tls=other.files(tmp_path / "b")) as peer:
        there = target(peer, fingerprint=trusted.fingerprint).model_copy(update={"headers": {"authorization": token}})
        await connect(session, there)
        trouble = refused(session)
        assert trouble.heading == "The certificate has changed"
        assert "its certificate is not the one that you trusted" in trouble.message
        assert "Somebody may stand between you and the server." in trouble.advice
        assert trouble.certificate is not None and trouble.certificate.fingerprint == other.fingerprint
        assert peer.requests() == []


async def test_a_pin_holds_although_an_authority_of_the_target_vouches_for_the_new_one(
    session: Session, tmp_path: Path
):
    authority = make("Kontor CA", ca=True)
    before, after = make(by=authority), make(by=authority)
    async with raw_peer(tls=after.files(tmp_path)) as peer:
        await connect(session, target(peer, ca=authority.pem, fingerprint=before.fingerprint))
        assert refused(session).heading == "The certificate has changed"


async def test_targets_with_other_trust_share_no_connection(session: Session, tmp_path: Path):
    leaf = make()
    async with raw_peer(tls=leaf.files(tmp_path)) as peer:
        await connected(session, target(peer, fingerprint=leaf.fingerprint))
        await session.disconnect()
        await connect(session, target(peer))
        assert refused(session).certificate is not None


def test_a_fingerprint_is_written_in_one_way(pinned: Made):
    digits = pinned.fingerprint.removeprefix("sha256:")
    colons = ":".join(digits[at : at + 2] for at in range(0, 64, 2)).upper()
    for written in (digits, pinned.fingerprint, colons, f"sha256 Fingerprint={colons}", f" SHA256:{digits} "):
        assert Tls(fingerprint=written).fingerprint == pinned.fingerprint
    for wrong in ("sha1:abcd", digits[:-1], digits + "0", "z" * 64):
        with pytest.raises(ValidationError, match="64 hexadecimal digits"):
            Tls(fingerprint=wrong)


def test_an_authority_is_a_certificate_and_no_key(pinned: Made, tmp_path: Path):
    with pytest.raises(ValidationError, match="no certificate in PEM"):
        Tls(ca="-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----")
    key = Path(pinned.files(tmp_path)[1]).read_text()
    with pytest.raises(ValidationError, match="private key"):
        Tls(ca=pinned.pem + key)
    with pytest.raises(ValidationError):
        Tls.model_validate({"verify": False})


def test_trust_is_part_of_a_target_and_old_targets_are_as_they_were(pinned: Made):
    url = "https://kontor.example/mcp"
    plain = HttpTarget(transport="http", url=url)
    assert "tls" not in plain.model_dump(mode="json") and HttpTarget(transport="http", url=url, tls=Tls()) == plain
    trusting = HttpTarget(transport="http", url=url, tls=Tls(fingerprint=pinned.fingerprint))
    assert target_digest(trusting) != target_digest(plain)
    kept, missing = without_secrets(trusting)
    assert HttpTarget.model_validate_json(kept.model_dump_json()) == trusting and missing == ()
    with pytest.raises(ValidationError, match="has no TLS"):
        HttpTarget(transport="http", url="http://kontor.example/mcp", tls=Tls(ca=pinned.pem))


async def test_a_snippet_says_which_certificate_it_needs(session: Session, tmp_path: Path):
    leaf = make()
    async with raw_peer(tls=leaf.files(tmp_path)) as peer:
        there = target(peer, fingerprint=leaf.fingerprint)
        await connected(session, there)
        done = await call_tool(session, "echo", {"message": "hi"})
        wire = Wire(there, "http", "2025-11-25", False)
        for text, variable in ((as_curl(done, wire), "CURL_CA_BUNDLE"), (as_python(done, wire), "SSL_CERT_FILE")):
            assert leaf.fingerprint in text and variable in text


@pytest.fixture(scope="module")
def pinned() -> Made:
    return make()
