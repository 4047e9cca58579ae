"""The house itself: what lies at the top level, how dependencies are pinned, what the container files say, and that
no address of a package registry has crept in.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import app
from tests import chromium, peers, templates_lint

ROOT = Path(__file__).parents[2]
FOLDERS = {"app", "templates", "static", "tests"}
FILES = {"pyproject.toml", "Makefile", "Dockerfile", "docker-compose.yml", "README.md", "CHANGELOG.md", "LICENSE"}
LOCKS = sorted((ROOT / ".lock").glob("*.txt"))
YAML_STYLE = "{extends: default, rules: {document-start: disable, line-length: {max: 120}}}"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# A host of a package registry, with or without a scheme, whatever comes before and after it.
REGISTRY = re.compile(rb"(?:pypi|pythonhosted|npmjs|yarnpkg|debian)\.(?:org|com|net|io)\b", re.IGNORECASE)


def tracked_files() -> list[Path]:
    """Every file that is or would be committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=120).stdout
    paths = (ROOT / name for name in sorted(set(listed.decode().split("\0"))) if name)
    return [path for path in paths if path.is_file()]


def pins(lock: Path) -> list[tuple[Requirement, int]]:
    """Each requirement of a lock file, and how many hashes it has."""
    text = re.sub(r"\s*#.*", "", lock.read_text(encoding="utf-8"))
    entries = text.replace("\\\n", " ").splitlines()
    return [
        (Requirement(entry.split("--hash")[0]), entry.count("--hash=sha256:")) for entry in entries if entry.strip()
    ]


def versions(lock: Path) -> set[str]:
    return {str(requirement) for requirement, _ in pins(lock)}


# --- the tree --------------------------------------------------------------------------------------------------------


def test_the_top_level_holds_only_what_it_should():
    names = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    assert {name for name in names if not name.startswith(".")} <= FOLDERS | FILES


def test_no_committed_file_names_a_package_registry():
    named = [
        f"{path.relative_to(ROOT)}: {found[0].decode()}"
        for path in tracked_files()
        if (found := REGISTRY.search(path.read_bytes()))
    ]
    assert named == []


@pytest.mark.requirement("S004 checklist")
def test_continuous_integration_runs_what_a_developer_runs():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in script.read_text(encoding="utf-8")
    assert script.read_text(encoding="utf-8").splitlines()[-3:] == ["make test", "make test-team", "make test-peers"]


def test_make_without_a_target_lists_every_command():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = subprocess.run(
        ["make", "--silent"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    ).stdout
    for command in (
        "run",
        "test",
        "test-peers",
        "conformance",
        "check",
        "coverage",
        "bench",
        "screenshots",
        "lock",
        "clean",
    ):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)
        assert f"make {command} " in listed


def test_the_package_knows_its_version():
    assert app.__version__ == PROJECT["project"]["version"]


# --- the pinned lists ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_pinned_requirement_has_a_version_and_hashes(lock):
    assert pins(lock)
    for requirement, hashes in pins(lock):
        assert re.fullmatch(r"==[^*,]+", str(requirement.specifier)), requirement
        assert requirement.url is None
        assert hashes > 0, requirement


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_no_pinned_list_says_where_it_was_made(lock):
    text = lock.read_text(encoding="utf-8")
    assert not re.search(r"://|--(?:extra-)?index-url|--find-links|(?:^|\s)/", text)


def test_the_development_list_contains_the_runtime_list():
    assert versions(ROOT / ".lock" / "runtime.txt") <= versions(ROOT / ".lock" / "dev.txt")


@pytest.mark.parametrize("wanted", PROJECT["project"]["dependencies"])
def test_the_runtime_list_satisfies_pyproject(wanted):
    requirement = Requirement(wanted)
    pinned = {canonicalize_name(pin.name): pin.specifier for pin, _ in pins(ROOT / ".lock" / "runtime.txt")}
    version = str(pinned[canonicalize_name(requirement.name)]).removeprefix("==")
    assert requirement.specifier.contains(version), "run `make lock`"


@pytest.mark.parametrize("folder", [peers.NODE_FOLDER, peers.CONFORMANCE_FOLDER], ids=lambda folder: folder.name)
def test_every_package_from_npm_has_a_hash_and_no_address(folder):
    lock = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not any("resolved" in package for package in packages.values())
    wanted = json.loads((folder / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert lock["packages"][""]["dependencies"] == wanted


# --- the container ---------------------------------------------------------------------------------------------------


def dockerfile() -> list[list[str]]:
    """The instructions of the Dockerfile, split into words."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [line.split() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def test_the_compose_file_publishes_on_loopback_only():
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    for service in compose["services"].values():
        assert service["profiles"] in (["local"], ["team"])
        assert service.get("network_mode") != "host"
        if service["profiles"] == ["local"]:
            assert service["ports"]
            assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_the_compose_file_gives_the_container_no_power():
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]["parley"]
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["init"] is True
    assert service["environment"] == ["PARLEY_TOKEN", "PARLEY_DATA_DIR=/data"]
    assert service["volumes"] == ["parley-data:/data"], "a named volume, and nothing of the host"
    assert not {"privileged", "cap_add", "pid", "devices"} & service.keys()


def test_the_image_is_built_from_files_that_exist_and_reach_the_build():
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    sources = [
        source
        for words in dockerfile()
        if words[0] == "COPY" and not words[1].startswith("--from")
        for source in words[1:-1]
    ]
    assert {"pyproject.toml", "app/", "templates/", "static/"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(fnmatch(source.rstrip("/"), rule) or source.startswith(f"{rule}/") for rule in allowed), source


def test_the_image_runs_parley_as_nobody_special():
    instructions = dockerfile()
    last_stage = instructions[[words[0] for words in instructions].index("FROM", 1) :]
    users = [words[1] for words in last_stage if words[0] == "USER"]
    assert len(users) == 1
    assert int(users[0].split(":")[0]) > 0
    command = json.loads(" ".join(next(words[1:] for words in last_stage if words[0] == "CMD")))
    assert command == ["parley", "--host", "0.0.0.0", "--published-on-loopback", "--no-open"]
    assert ["EXPOSE", "6280"] in last_stage


@pytest.mark.parametrize(
    "command",
    [
        ["hadolint", "Dockerfile"],
        ["yamllint", "--strict", "-d", YAML_STYLE, "docker-compose.yml"],
    ],
    ids=lambda command: command[-1],
)
def test_the_linters_of_the_container_files_are_content(command):
    program = Path(sys.executable).parent / command[0]
    result = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


# --- the peers and the browser ---------------------------------------------------------------------------------------


def test_a_named_chromium_is_taken_or_refused_but_never_replaced(monkeypatch, tmp_path):
    program = tmp_path / "chrome"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    monkeypatch.setenv("PARLEY_CHROMIUM", str(program))
    with pytest.raises(chromium.NoChromium, match="PARLEY_CHROMIUM"):
        chromium.find()
    with pytest.raises(chromium.NoChromium, match="PARLEY_CHROMIUM"):
        chromium.ensure()
    program.chmod(0o755)
    assert chromium.find() == program
    assert chromium.ensure() == program


def test_without_a_chromium_playwrights_own_newest_is_taken(monkeypatch, tmp_path):
    monkeypatch.delenv("PARLEY_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    monkeypatch.setattr(chromium, "MAC_APPS", ())
    with pytest.raises(chromium.NoChromium, match="make chromium"):
        chromium.find()
    older, newer = (tmp_path / f"chromium-{build}" / "chrome-linux64" / "chrome" for build in (1200, 1201))
    for program in (older, newer):
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o755)
    assert chromium.find() == newer
    shell = tmp_path / "chromium_headless_shell-1201" / "chrome-headless-shell-linux64" / "chrome-headless-shell"
    shell.parent.mkdir(parents=True)
    newer.rename(shell)
    assert (chromium.find(), chromium.find(whole=True)) == (shell, older), "the shell is lighter"


def test_a_missing_peer_says_what_to_run(monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "ROOT", tmp_path)
    monkeypatch.setattr(peers, "NODE_MODULES", tmp_path / "node_modules")
    monkeypatch.setattr(peers, "CONFORMANCE_FOLDER", tmp_path / "conformance")
    for missing in (peers.mcp1_python, peers.everything_stdio, peers.axe_script):
        with pytest.raises(peers.NotInstalled, match="run `make setup`"):
            missing()
    with pytest.raises(peers.NotInstalled, match="run `make conformance`"):
        peers.conformance_suite()
    for name in peers.OLD:
        with pytest.raises(peers.NotInstalled, match="run `make test-peers`"):
            peers.old_python(name)


def test_each_old_peer_is_pinned_and_made_by_its_name():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^OLD +:= {' '.join(peers.OLD)}$", makefile, re.MULTILINE)
    for name in peers.OLD:
        assert (ROOT / ".lock" / f"peer-old-{name}.txt").is_file()
        assert f"peer-old-{name}" in PROJECT["dependency-groups"]


@pytest.mark.peers
def test_the_peers_are_what_they_claim_to_be():
    def printed(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.strip()

    assert printed(str(peers.node()), "--version").startswith("v24.")
    code = "import importlib.metadata; print(importlib.metadata.version('mcp'))"
    assert printed(peers.mcp1_python(), "-c", code) == "1.30.0"
    assert Path(peers.everything_stdio()[1]).is_file()
    assert peers.axe_script().is_file()


# --- the template lint -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "template",
    [
        '<p style="color: red">',
        "<p STYLE=x>",
        '<p\n  style="{{ x }}">',
        "<style>p {}</style>",
        '<button onclick="go()">',
        "<img src={{ x }} onerror = go()>",
        '<div hx-on:click="go()">',
        '<div hx-on::after-request="go()">',
        '<div data-hx-on:click="go()">',
        """<div hx-vals='js:{"a": b}'>""",
        '<div hx-headers="a: js:b">',
        '<a href="javascript:go()">',
        """<div hx-trigger="keyup[key=='Enter']">""",
        "{{ text|safe }}",
        "{{ text | safe }}",
        "{% autoescape false %}{{ text }}{% endautoescape %}",
        "{{ {'style': x}|xmlattr }}",
        """{{ {"onclick": x}|xmlattr }}""",
        "{{ field(attributes='onclick=\"go()\"') }}",
        "<script>go()</script>",
        "<script {{ nonce }}>go()</script>",
        '<script src="https://example.com/x.js"></script>',
        '<link rel="stylesheet" href="//example.com/x.css">',
        '<img srcset="a.png 1x, http://example.com/b.png 2x">',
        '<a href="https://example.com/">',
        '<form action="http://example.com/">',
        '<div hx-get="https://example.com/">',
        "<p>" + "long " * 40,
        "<p> ",
        "<pre>{{ text }}\n</pre>",
        "<textarea>\n  {{ text }}\n</textarea>",
    ],
)
def test_the_template_lint_objects(template):
    (remark,) = {remark.line for remark in templates_lint.lint(template)}
    assert remark in (1, 2)


@pytest.mark.parametrize(
    "template",
    [
        '<p class="{% if a > b %}on{% endif %}" {{ "hidden" if x }}>on = off, style = plain</p>',
        '<script src="{{ asset("js/page.js") }}" type="module"></script>',
        '<link rel="stylesheet" href="/static/app.css">',
        '<svg xmlns="http://www.w3.org/2000/svg"><use href="/static/icons.svg#x"/></svg>',
        "<p>See https://example.com/ for style=x and onclick=y.</p>",
        '<a href="https://example.com/" rel="noopener noreferrer">out</a>',
        '<div hx-trigger="input changed delay:300ms, every 15s">',
        """<div hx-vals='{"a": 1}' hx-get="/s/{{ id }}">""",
        '<pre class="text"\n  hx-ignore>\n{{ text }}</pre>',
        "<p>" + " long" * 30 + "\n  and on</p>",
        "{# <p style=x> and {{ y|safe }} would be wrong #}",
        "{% set style = 'quiet' %}{% set one = two %}{{ icon(name='on') }}{{ card(style=style) }}",
        "{% for once in ones if once != 'unsafe' %}{{ once|safely }}{% endfor %}",
    ],
)
def test_the_template_lint_is_content(template):
    assert templates_lint.lint(template) == []


def test_no_module_is_longer_than_one_can_read():
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in (ROOT / "app").rglob("*.py")}
    assert {str(path.relative_to(ROOT)): count for path, count in lines.items() if count > 450} == {}
