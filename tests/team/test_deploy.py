"""The files to copy: the containers of a team are hardened, and their proxy and settings are those that are tested."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet

from app.team_settings import TeamSettings, refusals
from tests.drive import ROOT

pytestmark = pytest.mark.requirement("T09")
DEPLOY = ROOT / ".deploy"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in compose["services"].items() if one["profiles"] == ["team"]}


def test_each_container_of_a_team_has_no_power_and_limits(services: dict[str, Any]):
    assert sorted(services) == ["team", "team-2", "team-proxy", "team-store"]
    for name, one in services.items():
        assert one["read_only"] is True and one["tmpfs"] == ["/tmp"], name
        assert one["cap_drop"] == ["ALL"] and one["security_opt"] == ["no-new-privileges:true"], name
        assert int(one["user"].split(":")[0]) > 0, name
        assert one["mem_limit"] and one["pids_limit"] and one["cpus"], name
        assert {"test", "interval", "timeout", "retries"} <= one["healthcheck"].keys(), name
        assert one["restart"] == "unless-stopped"
        assert not {"privileged", "cap_add", "pid", "ipc", "devices", "network_mode"} & one.keys(), name


def test_the_network_reaches_the_proxy_alone_and_parley_answers_the_proxy_alone(compose: Any, services: Any):
    assert not [name for name, one in services.items() if "ports" in one and name != "team-proxy"]
    assert services["team-store"]["networks"] == {"team": None}
    assert services["team-proxy"]["ports"] == ["80:8080", "443:8443"]
    assert compose["networks"]["team"]["internal"] is True
    address = services["team-proxy"]["networks"]["team"]["ipv4_address"]
    settings = tomllib.loads((DEPLOY / "team.container.toml").read_text(encoding="utf-8"))
    assert settings["trusted_proxies"] == [address]
    proxy = (DEPLOY / "nginx.container.conf").read_text(encoding="utf-8")
    for name, replica in (("team", "r1"), ("team-2", "r2")):
        own = services[name]["networks"]["team"]["ipv4_address"]
        assert services[name]["command"][-2:] == ["--replica", replica]
        assert f"upstream parley_{replica} {{ server {own}:{settings['port']}; }}" in proxy


def test_secrets_come_from_files_and_stand_in_no_variable(compose: Any, services: Any):
    assert all("env_file" not in one for one in services.values())
    named = {name: one["environment"] for name, one in services.items() if "environment" in one}
    words = {"POSTGRES_USER": "parley", "POSTGRES_DB": "parley"}
    assert named == {"team-store": {**words, "POSTGRES_PASSWORD_FILE": "/run/secrets/store-password"}}
    assert services["team"]["secrets"] == services["team-2"]["secrets"] == ["people-key", "store-url"]
    assert services["team-store"]["secrets"] == ["store-password"]
    assert services["team-proxy"]["secrets"] == ["tls-certificate", "tls-key"]
    assert all(set(one) == {"file"} and ".secrets" in one["file"] for one in compose["secrets"].values())
    assert "/.secrets/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert services["team"]["volumes"] == ["team-data:/data"], "a named volume, and nothing of the host"


def test_the_settings_of_the_container_are_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, services: Any):
    monkeypatch.setattr(os, "geteuid", lambda: 10001)
    raw = tomllib.loads((DEPLOY / "team.container.toml").read_text(encoding="utf-8"))
    assert raw["key_file"] == "/run/secrets/people-key"
    assert raw["data_dir"].startswith(services["team"]["volumes"][0].partition(":")[2] + "/")
    assert raw["store"] == {"url_file": "/run/secrets/store-url"}
    address, key = tmp_path / "store-url", tmp_path / "key"
    address.write_text("postgresql://parley:secret@team-store/parley\n")
    key.write_bytes(Fernet.generate_key())
    for file in (address, key):
        file.chmod(0o600)
    settings = TeamSettings.model_validate(
        {**raw, "key_file": str(key), "data_dir": tmp_path / "made", "store": {"url_file": address}}
    )
    assert list(refusals(settings, {})) == []
    [command] = [one for one in services["team"]["command"] if one.endswith(".toml")]
    assert services["team"]["configs"] == [{"source": "team", "target": command}]


def test_the_proxy_of_the_container_is_the_one_that_is_tested():
    """The tests of replicas run nginx with nginx-replicas.conf; the other differs in ports and places alone."""
    names = ("-replicas", ".container")
    plain, container = ((DEPLOY / f"nginx{name}.conf").read_text(encoding="utf-8") for name in names)
    for old, new in {
        "127.0.0.1:6281": "172.31.62.3:6281",
        "127.0.0.1:6282": "172.31.62.4:6281",
        "listen 80;": "listen 8080;",
        "listen [::]:80;": "listen [::]:8080;",
        "listen 443 ": "listen 8443 ",
        "listen [::]:443 ": "listen [::]:8443 ",
        "/etc/ssl/certs/parley.example.pem": "/run/secrets/tls-certificate",
        "/etc/ssl/private/parley.example.key": "/run/secrets/tls-key",
    }.items():
        assert old in plain
        plain = plain.replace(old, new)
    said = [[one for one in text.splitlines() if not one.startswith("#")] for text in (plain, container)]
    assert said[0] == said[1]
