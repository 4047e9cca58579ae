"""The vault: what is kept of sign-ins, for whom, and what the disk gets to see of it."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from app import bounds
from app.core.grants import Client, Grant, Token
from app.store.vault import FILE, KEY_FILE, Vault

ISSUER = "https://login.example"
GRANT = Grant(
    Client("parley", ISSUER, "dynamic", "can4ry-secret", "client_secret_basic", "http://127.0.0.1:1/oauth/callback"),
    Token("can4ry-access", ISSUER, "https://x.example/mcp", ("a", "b"), "can4ry-refresh", 1.0, 3601.0),
)


@pytest.mark.requirement("R5-64", "R5-76", "R5-77")
def test_a_grant_is_of_one_person_one_server_and_one_issuer():
    vault = Vault(None)
    vault.put("ada", "https://x.example/mcp", GRANT)
    assert vault.get("ada", "https://x.example/mcp", ISSUER) is GRANT and vault.of("ada", "https://x.example/mcp")
    for other in (("bob", "https://x.example/mcp", ISSUER), ("ada", "https://y.example/mcp", ISSUER),
                  ("ada", "https://x.example/mcp", ISSUER + "/")):  # fmt: skip
        assert vault.get(*other) is None
    vault.spent("ada", "https://x.example/mcp", ISSUER)
    left = vault.get("ada", "https://x.example/mcp", ISSUER)
    assert left is not None and left.client is GRANT.client and not left.token.access and not left.token.refresh
    vault.forget("ada", "https://x.example/mcp", ISSUER)
    assert not vault.of("ada", "https://x.example/mcp") and not vault.keeps
    assert "can4ry" not in repr(GRANT) + repr(GRANT.client) + repr(GRANT.token)


def test_the_least_recently_used_is_forgotten_first():
    vault = Vault(None)
    for at in range(bounds.GRANTS + 1):
        vault.put("ada", f"https://x.example/{at}", GRANT)
        vault.get("ada", "https://x.example/0", ISSUER)
    assert vault.of("ada", "https://x.example/0") and not vault.of("ada", "https://x.example/1")


@pytest.mark.requirement("R5-61", "S21")
def test_on_disk_it_is_sealed_and_comes_back(tmp_path: Path):
    vault = Vault(tmp_path / "data", keep=True)
    vault.load()
    vault.put("ada", "https://x.example/mcp", GRANT)
    vault.write()
    files = list((tmp_path / "data").iterdir())
    assert {one.name for one in files} == {FILE, KEY_FILE} and vault.keeps
    assert all(stat.S_IMODE(one.stat().st_mode) == 0o600 for one in files)
    assert not any(b"can4ry" in one.read_bytes() or b"login.example" in one.read_bytes() for one in files)
    again = Vault(tmp_path / "data", keep=True)
    again.load()
    assert again.get("ada", "https://x.example/mcp", ISSUER) == GRANT
    off = Vault(tmp_path / "data")
    off.load()
    assert not off.of("ada", "https://x.example/mcp"), "who does not keep them does not read them"


@pytest.mark.parametrize("broken", ["no key", "other key", "bad key", "torn", "empty"])
def test_what_cannot_be_read_costs_only_itself(broken: str, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    vault = Vault(tmp_path, keep=True)
    vault.put("ada", "https://x.example/mcp", GRANT)
    vault.write()
    key, file = tmp_path / KEY_FILE, tmp_path / FILE
    if broken == "no key":
        key.unlink()
    elif broken == "other key":
        key.write_bytes(Fernet.generate_key())
    elif broken == "bad key":
        key.write_bytes(b"nonsense")
    else:
        file.write_bytes(file.read_bytes()[:50] if broken == "torn" else b"")
    again = Vault(tmp_path, keep=True)
    again.load()
    assert not again.of("ada", "https://x.example/mcp") and "sign-ins" in caplog.text
    again.put("ada", "https://x.example/mcp", GRANT)
    again.write()
    assert bool(again.trouble) is (broken == "bad key")


def test_a_key_of_the_environment_takes_the_place_of_the_file(tmp_path: Path):
    key = Fernet.generate_key().decode()
    vault = Vault(tmp_path, keep=True, key=key)
    vault.put("ada", "https://x.example/mcp", replace(GRANT, token=replace(GRANT.token, scopes=())))
    vault.write()
    assert [one.name for one in tmp_path.iterdir()] == [FILE]
    assert b"can4ry-access" in Fernet(key).decrypt((tmp_path / FILE).read_bytes())


def test_a_disk_that_says_no_is_said_and_nothing_else_happens(tmp_path: Path):
    (tmp_path / "data").write_text("a file where a directory should be")
    vault = Vault(tmp_path / "data", keep=True)
    vault.load()
    vault.put("ada", "https://x.example/mcp", GRANT)
    vault.write()
    assert vault.trouble and not vault.keeps and vault.of("ada", "https://x.example/mcp")
