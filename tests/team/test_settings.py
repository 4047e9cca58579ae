"""What a team is started with: each unsafe combination refuses in one sentence, and the file to begin with is whole."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pydantic import ValidationError

from app.isolation import Isolation, Line, Walls
from app.settings import Limits
from app.team_oidc import Oidc
from app.team_settings import TeamSettings, Unsafe, check, check_isolation, refusals
from tests import settings_table
from tests.drive import ROOT

pytestmark = pytest.mark.requirement("T06")
DEPLOY = ROOT / ".deploy"
PROXY: dict[str, Any] = {"door": "proxy", "trusted_proxies": ("10.0.3.1",)}
OIDC: dict[str, Any] = {
    "issuer": "https://id.example",
    "client_id": "parley",
    "allowed_domains": ("example.com",),
    "admins": ("boss@example.com",),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "data"
    found.mkdir(mode=0o700)
    return found


def settings(folder: Path, **more: Any) -> TeamSettings:
    safe = {"public_url": "https://parley.example", "data_dir": folder, "child_user": "61000-61009"}
    return TeamSettings.model_validate({**safe, **more})


def test_what_is_safe_starts(folder: Path):
    assert list(refusals(settings(folder), {})) == []
    assert list(refusals(settings(folder, door="oidc", oidc=OIDC), {})) == []
    found = settings(folder, oidc={**OIDC, "client_secret_env": "KEY", "endpoints": ("keys.internal:8443",)})
    assert list(refusals(found, {"KEY": "canary"})) == [] and found.oidc is not None
    assert found.oidc.secret({"KEY": "canary"}) == "canary" and "canary" not in repr(found)
    assert found.oidc.reached == {("id.example", 443), ("keys.internal", 8443)}
    check(settings(folder, data_dir=folder / "made" / "later"), {"PARLEY_CONFIG": "x"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"public_url": "http://parley.example"}, "public_url must begin with https://"),
        ({"public_url": "https://parley.example/path"}, "without a path"),
        ({"public_url": "https://u:p@parley.example"}, "without a path"),
        ({"public_url": "https://parley.example/?x"}, "without a path"),
        ({"public_url": "https://Parley.example"}, "small letters"),
        ({"public_url": "https://[bad"}, "is no address"),
        ({"allow": ("parley.example:443",)}, "never its own target"),
        ({"host": "localhost"}, "host takes an address"),
        ({"host": "0.0.0.0"}, "is open to the network"),
        ({"host": "10.0.0.5", "trusted_proxies": ("127.0.0.1",)}, "is open to the network"),
        ({"trusted_proxies": ()}, "nobody could come in"),
        ({"host": "10.0.0.5", "trusted_proxies": ("0.0.0.0/0",)}, "anybody could pose as the proxy"),
        ({"trusted_proxies": ("::/0",)}, "anybody could pose as the proxy"),
        ({**PROXY, "proxy_admins": ("a",)}, 'door = "proxy" needs proxy_header'),
        ({**PROXY, "proxy_header": "Cookie", "proxy_admins": ("a",)}, "browsers do not send"),
        ({**PROXY, "proxy_header": "X-Forwarded-For", "proxy_admins": ("a",)}, "says something else already"),
        ({**PROXY, "proxy_header": "X-Forwarded-User"}, "nobody could become an admin"),
        ({"proxy_header": "X-Forwarded-User"}, "say which of the two"),
        ({"door": "proxy", "proxy_header": "X-Forwarded-User", "proxy_admins": ("a",)}, "could pose as the proxy"),
        ({"proxy_secret_file": "/nowhere"}, "say which of the two"),
        ({"data_dir": Path("here")}, "absolute path"),
        ({"key_file": "here"}, "key_file must be an absolute path"),
        ({"key_file": "/not/there"}, "key_file cannot be read"),
        ({"door": "oidc"}, "needs the table [oidc]"),
        ({"metrics_port": 6281}, "figures have one of their own"),
        ({"oidc": {**OIDC, "issuer": "http://id.example"}}, "oidc.issuer must begin with https://"),
        ({"oidc": {**OIDC, "issuer": "https://u@id.example"}}, "exactly as the provider says it"),
        ({"oidc": {**OIDC, "issuer": "https://[bad"}}, "is no address"),
        ({"oidc": {**OIDC, "scopes": ("email",)}}, "lacks openid"),
        ({"oidc": {**OIDC, "client_secret_env": "NOT_SET_HERE"}}, "which is not set"),
        ({"oidc": {**OIDC, "client_secret_env": "A", "client_secret_file": "/dev/null"}}, "say which of the two"),
        ({"oidc": {**OIDC, "client_secret_file": "/does/not/exist"}}, "oidc.client_secret_file cannot be read"),
        ({"oidc": {**OIDC, "allowed_domains": ()}}, "would let in everybody"),
        ({"oidc": {**OIDC, "admins": ()}}, "nobody could become an admin"),
        ({"oidc": {**OIDC, "role_claim": "groups"}}, "says nothing about its values"),
        ({"oidc": {**OIDC, "roles": {"a": "user"}}}, "say which claim has these values"),
        ({"oidc": {**OIDC, "endpoints": ("keys",)}}, "oidc.endpoints: 'keys' is no name with its port"),
        ({"oidc": OIDC, **PROXY, "proxy_header": "X-Forwarded-User", "proxy_admins": ("a",)}, "say which of"),
        ({"catalogue": {"x": {"transport": "stdio"}}}, "catalogue.x: a server over stdio needs a command"),
        ({"catalogue": {"x": {"transport": "stdio", "command": "a", "reads": ("/",)}}}, "keeps its people"),
        (
            {"catalogue": {"x": {"transport": "demo"}, "y": {"transport": "stdio", "command": "y", "variables": [
                {"name": "X_KEY", "file": "/does/not/exist"}]}}},
            "the file of X_KEY cannot be read",
        ),
    ],
)  # fmt: skip
def test_each_unsafe_combination_has_its_sentence(folder: Path, change: dict[str, Any], words: str):
    [refusal] = refusals(settings(folder, **change), {})
    assert words in refusal and "\n" not in refusal
    with pytest.raises(Unsafe):
        check(settings(folder, **change), {})


def test_a_token_of_local_mode_is_refused(folder: Path):
    [refusal] = refusals(settings(folder), {"PARLEY_TOKEN": "x" * 20})
    assert "people of a team make tokens of their own" in refusal
    assert "xxxx" not in refusal


def test_root_starts_no_servers_as_root(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    [refusal] = refusals(settings(folder, child_user=""), {})
    assert "servers would be root" in refusal
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert list(refusals(settings(folder, child_user=""), {})) == []


def test_a_directory_or_a_secret_that_others_may_read_is_refused(folder: Path, tmp_path: Path):
    folder.chmod(0o750)
    [refusal] = refusals(settings(folder), {})
    assert "chmod 700" in refusal
    folder.chmod(0o700)
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o644)
    variables = [{"name": "KEY", "file": str(secret)}]
    entry = {"transport": "stdio", "command": "/usr/bin/true", "variables": variables}
    [refusal] = refusals(settings(folder, catalogue={"x": entry}), {})
    assert "chmod 600" in refusal
    secret.chmod(0o600)
    assert list(refusals(settings(folder, catalogue={"x": entry}), {})) == []
    inside = {**entry, "variables": [], "reads": [str(tmp_path)]}
    [refusal] = refusals(settings(folder, catalogue={"x": inside}), {})
    assert "keeps its people" in refusal


def test_a_key_is_a_key_and_nobody_elses(folder: Path, tmp_path: Path):
    file = tmp_path / "key"
    file.write_text("not a key")
    file.chmod(0o600)
    [refusal] = refusals(settings(folder, key_file=str(file)), {})
    assert "holds no key; make one with: python -c" in refusal and "not a key" not in refusal
    keys = [Fernet.generate_key().decode() for _ in range(2)]
    file.write_text("\n".join(keys))
    assert list(refusals(settings(folder, key_file=str(file)), {})) == []
    inside = {"x": {"transport": "stdio", "command": "/usr/bin/true", "reads": [str(tmp_path)]}}
    [refusal] = refusals(settings(folder, key_file=str(file), catalogue=inside), {})
    assert "keeps its people" in refusal
    file.chmod(0o644)
    [refusal] = refusals(settings(folder, key_file=str(file)), {})
    assert "chmod 600" in refusal


def test_required_walls_that_are_missing_refuse_the_start(folder: Path):
    lacking = Isolation(Walls(), [Line("Sandbox", "missing", "bwrap is not installed.")])
    check_isolation(settings(folder, isolation="best"), lacking)
    with pytest.raises(Unsafe, match="bwrap is not installed"):
        check_isolation(settings(folder, isolation="required"), lacking)


@pytest.mark.parametrize(
    "change",
    [
        {"allow": ("wiki.internal",)},
        {"trusted_proxies": ("proxy.example",)},
        {"door": "open"},
        {"surprise": 1},
        {"login_hours": 0},
        {"limits": {"surprise": 1}},
    ],
)
def test_what_is_no_setting_is_none(folder: Path, change: dict[str, Any]):
    with pytest.raises(ValidationError):
        settings(folder, **change)


def test_a_team_is_stricter_with_each_person_than_local_mode(folder: Path):
    assert settings(folder).limits.sessions_per_identity == 5 < Limits().sessions_per_identity
    assert settings(folder, limits={"sessions": 10}).limits.sessions_per_identity == 5
    found = settings(folder, limits={"sessions_per_identity": 7}).process()
    assert (found.mode, found.open_browser, found.token, found.limits.sessions_per_identity) == ("team", False, None, 7)


# ---------------------------------------------------------------------------------------------------- the files to copy


def test_the_file_to_begin_with_has_every_setting_and_its_default():
    text = (DEPLOY / "team.toml").read_text(encoding="utf-8")
    found = TeamSettings.model_validate(tomllib.loads(text))
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    for name, field in TeamSettings.model_fields.items():
        here = [line for line in lines if line.startswith((f"{name} = ", f"[{name}]", f"[{name}."))]
        assert here, f"{name} is not explained"
        if not field.is_required() and name not in {"limits", "catalogue", "isolation", "child_user", "allow"}:
            assert getattr(found, name) == field.default, name
    for name in Oidc.model_fields:
        assert [line for line in lines if line.startswith(f"{name} = ")], f"oidc.{name} is not explained"
    assert [entry.id for entry in found.entries] == ["nordwind", "release-runner", "billing"]
    assert found.limits == TeamSettings.model_fields["limits"].default


def test_the_proxy_sets_anew_what_parley_believes():
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    for line in (
        "listen 443 ssl http2;",
        "proxy_set_header X-Forwarded-For $remote_addr;",
        "proxy_set_header X-Forwarded-Proto $scheme;",
        'proxy_set_header X-Forwarded-User "";',
        "proxy_buffering off;",
        "server 127.0.0.1:6281;",
    ):
        assert line in text


def test_the_readme_has_every_setting_as_the_code_has_it():
    readme = settings_table.README.read_text(encoding="utf-8")
    assert settings_table.written(readme) == readme, "write it anew: python -m tests.settings_table --write"
